-- The plugin as vim.pack installs it in a clean home, with the lines from the README, and from a repository whose root is
-- the plugin.
local M = {}

local TOP = "vim.pack.add({ { src = 'https://…/tandem.git', name = 'tandem' } }, {})"
local CHECK = [[
vim.api.nvim_create_autocmd('VimEnter', {
  callback = function()
    vim.cmd('help tandem')
    local found = { command = vim.fn.exists(':Tandem'), help = vim.fn.expand('%:t') }
    found.setup = pcall(require('tandem').setup, { permission = 'chat' })
    io.stdout:write(vim.json.encode(found), '\n')
    vim.cmd('qa!')
  end,
})
]]

---@param folder string
---@param ... string arguments of git
local function git(folder, ...)
  local who = { 'GIT_AUTHOR_NAME', 'GIT_AUTHOR_EMAIL', 'GIT_COMMITTER_NAME', 'GIT_COMMITTER_EMAIL' }
  local environment = { GIT_CONFIG_GLOBAL = '/dev/null', GIT_CONFIG_NOSYSTEM = '1' }
  for _, name in ipairs(who) do
    environment[name] = 'test@example.com'
  end
  local result = vim.system({ 'git', '-C', folder, ... }, { env = environment, text = true }):wait()
  assert(result.code == 0, result.stderr)
end

---@param t table the harness
---@param _ tandem.test.Model
---@param setup { plugin: string, home: string }
function M.test(t, _, setup)
  if not vim.pack then
    return io.stdout:write('# vim.pack is not in this Neovim\n')
  end
  --- Starts with these lines in a clean home, from a repository that contains the plugin in this folder.
  ---@param name string
  ---@param lines string
  ---@param folder string
  local function installs(name, lines, folder)
    local home, repository = setup.home .. '/clean ' .. name, setup.home .. '/' .. name
    vim.fn.mkdir(home, 'p')
    vim.fn.mkdir(vim.fs.dirname(repository .. folder), 'p')
    assert(vim.system({ 'cp', '-r', setup.plugin, repository .. folder }):wait().code == 0)
    git(repository, 'init', '--quiet', '--initial-branch=main')
    git(repository, 'add', '--all')
    git(repository, 'commit', '--quiet', '--message=one')
    lines = lines:gsub('https://…/tandem.git', 'file://' .. repository):gsub('}, {', '}, { confirm = false,', 1)
    vim.fn.writefile(vim.split(lines .. '\n' .. CHECK, '\n'), home .. '/init.lua')
    local clean = { PATH = vim.env.PATH, HOME = home, VIMRUNTIME = vim.env.VIMRUNTIME, GIT_CONFIG_NOSYSTEM = '1' }
    local command = { vim.v.progpath, '--headless', '-u', home .. '/init.lua' }
    local result = vim.system(command, { env = clean, clear_env = true, text = true }):wait(60000)
    local output = result.stdout .. result.stderr
    local found = output:match('{.-}')
    t.equal(found and vim.json.decode(found) or output, { command = 2, help = 'tandem.txt', setup = true })
  end

  t.test('vim.pack installs the plugin with its help in a clean home', function()
    installs('tandem.nvim', TOP, '')
  end)

  t.test('the lines for vim.pack in the README install it from this repository', function()
    local readme = table.concat(vim.fn.readfile(setup.plugin .. '/README.md'), '\n')
    installs('tandem', assert(readme:match('```lua\n(vim%.pack.-)\n```')), '/editors/neovim')
  end)
end

return M
