--- The state in words for status lines, and User autocommands for everything else.
local api = vim.api
local M = {}

local words = { idle = 'ready', running = 'working', waiting = 'asks' }

--- One line about a session, such as `working · sonnet · ask`.
---@param session tandem.Session
---@return string
function M.describe(session)
  local parts = { words[session.state] } ---@type string[]
  parts[#parts + 1] = session.model and (session.model:match('[^/]+$') or session.model)
  parts[#parts + 1] = session.effort ~= 'default' and session.effort or nil
  parts[#parts + 1] = session.mode
  if session.usage and (session.usage.size or 0) > 0 then
    parts[#parts + 1] = ('%d %%'):format(math.floor(100 * session.usage.used / session.usage.size + 0.5))
  end
  parts[#parts + 1] = #session.review.changes > 0 and session.review:count() or nil
  return table.concat(parts, ' · ')
end

--- The winbar of a chat window (evaluated by Neovim while it draws).
---@return string
function M.winbar()
  local session = require('tandem.session').at(api.nvim_get_current_buf())
  if not session then
    return ''
  end
  local highlight = ({ idle = 'TandemIdle', running = 'TandemRunning', waiting = 'TandemPending' })[session.state]
  local title = vim.fs.basename(session.root):gsub('%%', '%%%%')
  local state = M.describe(session):gsub('%%', '%%%%')
  return ('%%#TandemTitle# tandem%%* %s%%=%%#%s#%s%%* '):format(title, highlight, state)
end

--- Redraws what shows the state.
---@param session tandem.Session
function M.changed(session)
  session.chat:show_state()
  vim.cmd('redrawstatus!')
end

---@param name 'TandemTurnStart'|'TandemTurnEnd'|'TandemUpdate'|'TandemPermission'|'TandemReview'
---@param session tandem.Session
---@param data? table
function M.event(name, session, data)
  api.nvim_exec_autocmds('User', {
    pattern = name,
    modeline = false,
    data = vim.tbl_extend('force', { root = session.root, session_id = session.id, turn = session.turn }, data or {}),
  })
end

return M
