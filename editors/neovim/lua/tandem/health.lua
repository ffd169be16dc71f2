--- `:checkhealth tandem`.
local client = require('tandem.client')
local config = require('tandem.config')

local health = vim.health
local M = {}

local function check_neovim()
  local version = tostring(vim.version())
  if vim.fn.has('nvim-0.10') == 1 then
    health.ok('Neovim ' .. version)
  else
    health.error('Neovim ' .. version .. ' is too old', 'tandem needs 0.10 or later')
  end
end

local function check_config()
  local _, problems = config.resolve(vim.g.tandem)
  if #problems == 0 then
    health.ok('vim.g.tandem is valid')
  end
  for _, problem in ipairs(problems) do
    health.error(problem, 'see :help tandem-config')
  end
end

local function check_binary()
  local program = config.get().cmd[1]
  local path = vim.fn.exepath(program)
  if path == '' then
    health.error(('`%s` cannot be run'):format(program), {
      'install it: cargo install --path . in the tandem repository',
      "or say where it is: vim.g.tandem = { cmd = { '/path/to/tandem', 'lsp' } }",
    })
    return
  end
  local ok, run = pcall(function()
    return vim.system({ path, '--version' }, { text = true, timeout = 5000 }):wait()
  end)
  if ok and run.code == 0 then
    health.ok(('%s (%s)'):format(vim.trim(run.stdout), path))
  else
    health.warn(('%s --version fails'):format(path), ok and vim.trim(run.stderr or '') or tostring(run))
  end
end

---@param session? tandem.Session
local function check_model(session)
  if not session or not session.id then
    health.info('no conversation yet: the model is known after the first :Tandem')
  elseif session.model then
    health.ok(('model %s, mode %s'):format(session.model, session.mode or 'ask'))
  else
    health.warn('no model is configured', {
      'set TANDEM_BASE_URL, TANDEM_MODEL and TANDEM_API_KEY, or write config.toml, or run a local server',
      'tandem doctor says more',
    })
  end
end

local function check_server()
  local root = client.root(vim.api.nvim_get_current_buf())
  local running = client.running(root)
  if not running then
    health.info(('no server for %s: it starts with the first :Tandem'):format(root))
  else
    local attached = vim.tbl_count(running.attached_buffers)
    health.ok(('server for %s (client %d, %d buffers, %s)'):format(root, running.id, attached, running.offset_encoding))
  end
  local session = require('tandem.session').at(vim.api.nvim_get_current_buf())
  if session and #session.review.changes > 0 then
    health.info(session.review:count() .. ' to review: :Tandem review')
  end
  check_model(session)
end

function M.check()
  health.start('tandem: Neovim and configuration')
  check_neovim()
  check_config()
  health.start('tandem: server')
  check_binary()
  check_server()
end

return M
