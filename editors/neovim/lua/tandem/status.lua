--- The state in words for status lines, and User autocommands for everything else.
local cells = require('tandem.cells')

local api = vim.api
local M = {}

local words = { idle = 'ready', running = 'working', waiting = 'needs approval' }

--- How long the running turn has been going on.
---@param session tandem.Session
---@return string?
local function elapsed(session)
  if session.state == 'idle' or not session.began_at then
    return nil
  end
  local seconds = math.floor((vim.uv.now() - session.began_at) / 1000)
  return seconds < 60 and ('%d s'):format(seconds) or ('%d min %02d s'):format(seconds / 60, seconds % 60)
end

---@param count integer
---@return string
local function tokens(count)
  return count < 1000 and ('%d tokens'):format(count) or ('%.1fk tokens'):format(count / 1000)
end

--- What the conversation has used, and what that cost.
---@param usage { used: integer, size: integer, cost?: { amount: number, currency: string } }
---@return string
local function used(usage)
  local parts = { tokens(usage.used) }
  if (usage.size or 0) > 0 then
    parts[1] = ('%s (%d %%)'):format(parts[1], math.floor(100 * usage.used / usage.size + 0.5))
  end
  if usage.cost then
    parts[2] = ('%.2f %s'):format(usage.cost.amount, usage.cost.currency)
  end
  return table.concat(parts, ' · ')
end

--- What a session is doing, and for how long.
---@param session tandem.Session
---@return string
local function activity(session)
  local word = session.state == 'idle' and session.lacks_model and 'no model' or words[session.state]
  local time = elapsed(session)
  return time and ('%s · %s'):format(word, time) or word
end

--- The rest of what is known of a session, the most important first.
---@param session tandem.Session
---@return string[]
local function details(session)
  local parts = {} ---@type string[]
  parts[#parts + 1] = #session.review.changes > 0 and session.review:count() or nil
  parts[#parts + 1] = session.jobs:count()
  parts[#parts + 1] = session:mode_name()
  parts[#parts + 1] = session.model and (session.model:match('[^/]+$') or session.model)
  parts[#parts + 1] = session.effort ~= 'default' and session.effort or nil
  parts[#parts + 1] = session.usage and used(session.usage) or nil
  return parts
end

--- One line about a session, such as `working · 3 s · Auto · sonnet`.
---@param session tandem.Session
---@param room? number cells; the state is always there
---@return string
function M.describe(session, room)
  local state = activity(session)
  return cells.first(vim.list_extend({ state }, details(session)), math.max(room or math.huge, vim.fn.strdisplaywidth(state)))
end

--- The parts of a winbar that fit: always the state, then as many details as possible, then the name of the workspace.
---@param state string
---@param title string
---@param parts string[] the most important first
---@param room integer cells
---@return string title
---@return string details
function M.fit(state, title, parts, room)
  room = room - vim.fn.strdisplaywidth(state)
  local shown = cells.first(parts, room - 3)
  room = room - vim.fn.strdisplaywidth(shown) - 4
  return (room > 4 or vim.fn.strdisplaywidth(title) <= room) and cells.cut(title, room) or '', shown
end

--- The winbar of a chat window (evaluated by Neovim while it draws).
---@return string
function M.winbar()
  local session = require('tandem.chats').at(api.nvim_get_current_buf())
  if not session then
    return ''
  end
  local highlight = ({ idle = 'TandemIdle', running = 'TandemRunning', waiting = 'TandemPending' })[session.state]
  local chats = require('tandem.chats')
  local count = #chats.of_root(session.root)
  -- The number of the chat matters more than what is dropped in a narrow window.
  local number = count > 1 and (' %d/%d'):format(chats.number(session), count) or ''
  local state = ' ' .. activity(session) .. number
  local title, rest = M.fit(state, vim.fs.basename(session.root), details(session), api.nvim_win_get_width(0))
  local function plain(text)
    return (text:gsub('%%', '%%%%'))
  end
  return ('%%#%s#%s%%<  %%#TandemTitle#%s%%=%%#TandemDim#%s%%* '):format(highlight, plain(state), plain(title), plain(rest))
end

--- Redraws what shows the elapsed time, until the turn ends.
---@param session tandem.Session
function M.tick(session)
  local turn = session.turn
  vim.defer_fn(function()
    if session.turn == turn and session.state ~= 'idle' then
      vim.cmd('redrawstatus!')
      M.tick(session)
    end
  end, 1000)
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
