-- Inline completion in a real Neovim on a real screen, with the server and a scripted model.
local M = {}

local INIT = [[
vim.opt.runtimepath:prepend(%q)
vim.o.swapfile, vim.o.laststatus = false, 0
vim.opt.shortmess:append('I')
vim.g.tandem = {
  cmd = { %q, 'lsp' },
  init_options = {
    completion = %s,
    providers = { mine = { ['base-url'] = %q } },
  },
}
vim.lsp.enable('tandem')
for key, part in pairs({ ['<M-w>'] = 'word', ['<M-l>'] = 'line', ['<Tab>'] = 'all' }) do
  vim.keymap.set('i', key, function()
    return require('tandem').accept(part) and '' or '(nothing)'
  end, { expr = true })
end
]]

---@param t table the harness
---@param model tandem.test.Model
---@param setup { binary: string, plugin: string, home: string, here: string, environment: table<string, string> }
function M.test(t, model, setup)
  if not vim.lsp.inline_completion then
    return io.stdout:write('# inline completion is not in this Neovim\n')
  elseif vim.fn.executable('tmux') == 0 then
    return t.skip('inline completion', 'tmux is not installed')
  end
  local folder = setup.home .. '/suggest'
  vim.fn.mkdir(folder .. '/.git', 'p')
  local screen
  --- Starts Neovim with a file.
  ---@param completion string the options
  ---@param text string[]
  local function start(completion, text)
    vim.fn.writefile(text, folder .. '/main.txt')
    local init = setup.home .. '/suggest.lua'
    local url = setup.environment.TANDEM_BASE_URL
    vim.fn.writefile(vim.split(INIT:format(setup.plugin, setup.binary, completion, url), '\n'), init)
    screen = dofile(setup.here .. '/neovim_screen.lua').start({
      nvim = vim.v.progpath,
      init = init,
      file = 'main.txt',
      cwd = folder,
      columns = 80,
      rows = 12,
      env = vim.tbl_extend('force', setup.environment, { VIMRUNTIME = vim.env.VIMRUNTIME }),
    })
  end
  start("{ model = 'mine/coder' }", { 'fn main() {', '}' })
  local function lines()
    return screen:lua('return vim.api.nvim_buf_get_lines(0, 0, -1, false)')
  end
  local function wait_lines(expected)
    local ok, problem = pcall(t.wait, vim.inspect(expected), function()
      return vim.deep_equal(lines(), expected)
    end, 20000)
    if not ok then
      error(('%s; it has:\n%s'):format(problem, vim.inspect(lines())), 2)
    end
  end
  local function wait_text(part)
    t.wait(part .. ' on the screen', function()
      return screen:text():find(part, 1, true)
    end, 20000)
  end

  --- The model gives the same answer however slowly keys arrive and whatever requests come in between.
  ---@param text string
  ---@param completed? boolean by the API of completions
  local function suggest(text, completed)
    local replies = {}
    for number = 1, 20 do
      local body = { choices = { { text = text, finish_reason = 'stop' } } }
      replies[number] = { completed and { status = 200, body = body } or { text = text } }
    end
    model:script(unpack(replies))
  end

  t.test('a suggestion is shown and accepted by word, by line and completely, without another request', function()
    suggest('compute(1);\n    let b = 2;\n    done();')
    t.wait('inline completion', function()
      return screen:lua('return #vim.lsp.get_clients({ bufnr = 0, name = "tandem" }) == 1')
    end, 20000)
    screen:keys('ggo    let a = ')
    wait_text('let a = compute(1);')
    wait_text('let b = 2;')
    t.equal(lines(), { 'fn main() {', '    let a = ', '}' }, 'it is not in the buffer')
    local asked = #model:state().requests
    screen:keys('M-w')
    wait_lines({ 'fn main() {', '    let a = compute', '}' })
    screen:keys('M-w', 'M-w')
    wait_lines({ 'fn main() {', '    let a = compute(1', '}' })
    screen:keys('M-l')
    wait_lines({ 'fn main() {', '    let a = compute(1);', '}' })
    wait_text('let b = 2;')
    t.equal(#model:state().requests, asked, 'what is left of it is known')
    screen:keys('Tab')
    wait_lines({ 'fn main() {', '    let a = compute(1);', '    let b = 2;', '    done();', '}' })
  end)

  t.test('typed text of a suggestion is not inserted twice', function()
    suggest('x = 1;')
    screen:keys('Escape', 'Go', 'let ')
    wait_text('let x = 1;')
    screen:keys('x ', 'Tab')
    wait_lines({ 'fn main() {', '    let a = compute(1);', '    let b = 2;', '    done();', '}', 'let x = 1;' })
    screen:keys('Escape')
  end)
  screen:stop()

  t.test('the next edit is shown where it is, with the old lines, and accepted as one', function()
    start(
      "{ model = 'mine/sweep-next-edit-1.5B', api = 'completions', ['next-edit'] = true }",
      { 'fn area(side: u32) -> u32 {', '    // a square', '    side * side', '}' }
    )
    suggest('fn area(length: u32) -> u32 {\n    // a square\n    length * length\n}\n', true)
    t.wait('inline completion', function()
      return screen:lua('return #vim.lsp.get_clients({ bufnr = 0, name = "tandem" }) == 1')
    end, 20000)
    screen:keys('gg0f(lcw', 'length')
    wait_text('length * length')
    local shown = screen:text():match('    side %* side *\n    length %* length *\n}')
    t.equal(shown ~= nil, true, 'the new line below the old one')
    t.equal(lines()[3], '    side * side', 'it is not in the buffer')
    screen:keys('Tab')
    wait_lines({ 'fn area(length: u32) -> u32 {', '    // a square', '    length * length', '}' })
    t.equal(screen:lua('return vim.api.nvim_win_get_cursor(0)'), { 3, 19 }, 'the cursor is behind it')
    screen:keys('Escape', 'u', 'Escape')
    screen:stop()
  end)

  t.test('the next edit of several lines is shown line by line, long ones wrapped', function()
    start(
      "{ model = 'mine/sweep-next-edit-1.5B', api = 'completions', ['next-edit'] = true }",
      { 'fn area(side: u32) -> u32 {', '    // a square', '    side * side', '}' }
    )
    local long = '\tlet doubled = ' .. ('length + '):rep(8) .. 'last;'
    suggest('fn area(length: u32) -> u32 {\n    // a square\n' .. long .. '\n    doubled * length\n}\n', true)
    t.wait('inline completion', function()
      return screen:lua('return #vim.lsp.get_clients({ bufnr = 0, name = "tandem" }) == 1')
    end, 20000)
    screen:keys('gg0f(lcw', 'length')
    wait_text('doubled * length')
    local shown = screen:text()
    t.equal(shown:find('    side %* side *\n        let doubled = [^\n]*\n[^\n]*last; *\n    doubled %* length *\n}') ~= nil, true, shown)
    screen:keys('Tab')
    wait_lines({ 'fn area(length: u32) -> u32 {', '    // a square', long, '    doubled * length', '}' })
    screen:keys('Escape')
    screen:stop()
  end)
end

return M
