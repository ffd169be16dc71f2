--- `:checkhealth tandem`.
local client = require('tandem.client')
local config = require('tandem.config')

local health = vim.health
local M = {}

--- It asks the model's endpoint, which may be slow.
local DOCTOR_MS = 20000

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
      'install it: cargo install --locked --path . in the tandem repository',
      "or set its path: vim.g.tandem = { cmd = { '/path/to/tandem', 'lsp' } }",
    })
    return
  end
  local ok, run = pcall(function()
    return vim.system({ path, '--version' }, { text = true, timeout = 5000 }):wait()
  end)
  if ok and run.code == 0 and not run.stdout:find('^tandem %d') then
    health.warn(('%s is another program: %s'):format(path, vim.split(run.stdout, '\n')[1]), 'set the path of tandem in vim.g.tandem.cmd')
  elseif ok and run.code == 0 then
    health.ok(('%s (%s)'):format(vim.trim(run.stdout), path))
  else
    health.warn(('%s --version fails'):format(path), ok and vim.trim(run.stderr or '') or tostring(run))
  end
end

--- What `tandem doctor` finds: configuration, key, network, the model's window, the sandbox.
local function check_doctor()
  local options = config.get()
  local path = vim.fn.exepath(options.cmd[1])
  if path == '' then
    return
  end
  health.start('tandem: doctor')
  local folder = require('tandem.chats').recent_root() or vim.fn.getcwd()
  local ok, run = pcall(function()
    local settings = { text = true, timeout = DOCTOR_MS, cwd = folder, env = options.env }
    return vim.system({ path, 'doctor', '--json' }, settings):wait()
  end)
  local read, report = pcall(vim.json.decode, ok and run.stdout or '')
  if not read then
    return health.warn('`tandem doctor` printed no report', ok and vim.trim(run.stderr or '') or tostring(run))
  end
  for _, finding in ipairs(report.findings) do
    local say = ({ good = health.ok, bad = health.error })[finding.verdict] or health.warn
    local advice = finding.advice and finding.advice:gsub('^%- ', '')
    say(('%s: %s'):format(finding.check, finding.found), advice and vim.split(advice, '\n- ', { plain = true }))
  end
end

---@param session tandem.Session
local function check_session(session)
  local running = client.running(session.root)
  if not running then
    return health.info(('no server for %s: it starts when the chat is opened'):format(session.root))
  end
  local attached = vim.tbl_count(running.attached_buffers)
  local buffers = attached == 1 and '1 buffer' or attached .. ' buffers'
  health.ok(('server for %s (client %d, %s, %s)'):format(session.root, running.id, buffers, running.offset_encoding))
  if session.id then
    health.ok(('session: %s'):format(require('tandem.status').describe(session)))
  end
  if running.server_capabilities.inlineCompletionProvider then
    health.ok("inline completion: on, accepted by require('tandem').accept()")
  end
  if #session.review.changes > 0 then
    health.info(session.review:count() .. ' to review: :Tandem review')
  end
end

local function check_servers()
  health.start('tandem: sessions')
  local sessions = require('tandem.chats').all()
  vim.iter(sessions):each(check_session)
  if #sessions == 0 then
    health.info('none yet: the server starts with the first :Tandem')
  end
end

function M.check()
  health.start('tandem: Neovim and configuration')
  check_neovim()
  check_config()
  check_binary()
  check_servers()
  check_doctor()
end

return M
