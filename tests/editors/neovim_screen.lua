--- A real Neovim in a real terminal (tmux), driven over RPC, seen as the user sees it.
local M = {}

---@class tandem.test.Screen
---@field channel integer RPC to the editor in the terminal
---@field private socket string of tmux
local Screen = {}
Screen.__index = Screen

---@param arguments string[]
---@param socket string
---@return string output
local function tmux(socket, arguments)
  local result = vim.system(vim.list_extend({ 'tmux', '-S', socket }, arguments), { text = true }):wait()
  assert(result.code == 0, result.stderr)
  return result.stdout
end

---@param options { nvim: string, init: string, file: string, cwd: string, columns: integer, rows: integer, env: table<string, string> }
---@return tandem.test.Screen
function M.start(options)
  local folder = vim.fn.tempname()
  vim.fn.mkdir(folder, 'p')
  local socket, rpc, settings = folder .. '/tmux', folder .. '/nvim', folder .. '/tmux.conf'
  vim.fn.writefile({
    'set -g default-terminal "tmux-256color"',
    'set -ga terminal-overrides ",*:Tc"',
    'set -g status off',
    'set -g escape-time 0',
  }, settings)
  local size = { '-x', tostring(options.columns), '-y', tostring(options.rows), '-c', options.cwd }
  local command = { '-f', settings, '-u', 'new-session', '-d' }
  vim.list_extend(command, size)
  for name, value in vim.spairs(options.env) do
    vim.list_extend(command, { '-e', name .. '=' .. value })
  end
  vim.list_extend(command, { options.nvim, '-u', options.init, '--listen', rpc, options.file })
  tmux(socket, command)
  assert(
    vim.wait(10000, function()
      return vim.uv.fs_stat(rpc) ~= nil
    end, 10),
    'Neovim does not start in tmux'
  )
  return setmetatable({ socket = socket, channel = vim.fn.sockconnect('pipe', rpc, { rpc = true }) }, Screen)
end

--- Runs Lua in the editor on the screen.
---@param code string
---@param ... any
---@return any
function Screen:lua(code, ...)
  return vim.rpcrequest(self.channel, 'nvim_exec_lua', code, { ... })
end

---@param ... string as tmux names keys
function Screen:keys(...)
  tmux(self.socket, { 'send-keys', ... })
end

---@return string
function Screen:text()
  return tmux(self.socket, { 'capture-pane', '-p' })
end

--- The screen with its colors, for screen_png.sh.
---@return string
function Screen:colored()
  return tmux(self.socket, { 'capture-pane', '-p', '-e', '-N' })
end

function Screen:stop()
  pcall(vim.fn.chanclose, self.channel)
  tmux(self.socket, { 'kill-server' })
end

return M
