--- The conversations of the editor: several per workspace root, one of which is current.
--- Invariant: once it was asked for, a root always has a current conversation, which is one of its own.
local client = require('tandem.client')

local api = vim.api
local M = {}

---@class tandem.Chats of one root
---@field all tandem.Session[] in the order in which they were begun
---@field current tandem.Session
---@field used tandem.Session the last one that was shown or asked, or whose changes a command was about

---@type table<string, tandem.Chats>
local by_root = {}
local watching = false

--- Starts another conversation of a root and makes it the current one.
---@param root string
---@return tandem.Session
function M.create(root)
  local session = require('tandem.session').new(root)
  local chats = by_root[root] or { all = {} }
  table.insert(chats.all, session)
  chats.current, chats.used, by_root[root] = session, session, chats
  if not watching then
    watching = true
    require('tandem.typed').watch()
    require('tandem.quit').watch(M.all)
    require('tandem.review').watch(M.all)
  end
  return session
end

--- The current conversation of a root.
---@param root string
---@return tandem.Session
function M.get(root)
  return by_root[root] and by_root[root].current or M.create(root)
end

---@param root string
---@return tandem.Session[]
function M.of_root(root)
  return by_root[root] and by_root[root].all or {}
end

---@return tandem.Session[]
function M.all()
  local all = {} ---@type tandem.Session[]
  for _, chats in pairs(by_root) do
    vim.list_extend(all, chats.all)
  end
  return all
end

---@param session tandem.Session
function M.use(session)
  by_root[session.root].used = session
end

---@param session tandem.Session
function M.select(session)
  by_root[session.root].current = session
  M.use(session)
end

--- The conversation this many places after another one, wrapping around at the end.
---@param session tandem.Session
---@param step integer
---@return tandem.Session
function M.beside(session, step)
  local all = by_root[session.root].all
  return all[(M.number(session) - 1 + step) % #all + 1]
end

--- The number of a conversation in its root.
---@param session tandem.Session
---@return integer
function M.number(session)
  for index, other in ipairs(by_root[session.root].all) do
    if other == session then
      return index
    end
  end
  error('a session is one of its root')
end

--- The server of a root ended.
---@param root string
---@param why string
---@param failed boolean it ended by itself
function M.on_server_exit(root, why, failed)
  M.get(root)
  for _, session in ipairs(M.of_root(root)) do
    session:on_server_exit(why, failed)
  end
end

--- Forgets a conversation; the one before it becomes the current one.
---@param session tandem.Session
function M.remove(session)
  local chats = by_root[session.root]
  local index = M.number(session)
  table.remove(chats.all, index)
  if chats.current == session then
    chats.current = chats.all[math.max(1, index - 1)]
  end
  if chats.used == session then
    chats.used = chats.current
  end
  if not chats.current then
    by_root[session.root] = nil
  end
end

--- The conversation of a chat buffer.
---@param bufnr integer
---@return tandem.Session?
function M.of_chat(bufnr)
  return vim.iter(M.all()):find(function(session)
    return session.chat.buf == bufnr
  end)
end

--- The conversation of a root that this tab page shows, the current one first; else the current one.
---@param root string
---@return tandem.Session
local function here(root)
  local current = M.get(root)
  local shown = vim.tbl_map(api.nvim_win_get_buf, api.nvim_tabpage_list_wins(0))
  return vim.iter({ { current }, M.of_root(root) }):flatten():find(function(session)
    return vim.list_contains(shown, session.chat.buf)
  end) or current
end

--- The conversation of the current buffer: its own if it is a chat, else the one of its workspace that is in view.
---@return tandem.Session
function M.current()
  local bufnr = api.nvim_get_current_buf()
  return M.of_chat(bufnr) or here(client.root(bufnr))
end

--- The conversation that a command about changes applies to: the chat of the current buffer, else the one that has the
--- change under the cursor, else the one that was used last.
---@return tandem.Session
function M.of_changes()
  local bufnr, row = api.nvim_get_current_buf(), api.nvim_win_get_cursor(0)[1] - 1
  local chats = by_root[M.current().root]
  local there = vim.iter({ { chats.used }, chats.all }):flatten():find(function(session)
    return session.review:current(bufnr, row) ~= nil
  end)
  local session = M.of_chat(bufnr) or there or chats.used
  M.use(session)
  return session
end

--- The conversation that a buffer belongs to, if there is one. Cheap: status lines ask on every redraw.
---@param bufnr integer
---@return tandem.Session?
function M.at(bufnr)
  if vim.b[bufnr].tandem_root then
    local chat = M.of_chat(bufnr)
    if chat then
      return chat
    end
  end
  local name = api.nvim_buf_get_name(bufnr)
  local path = vim.b[bufnr].tandem_root or vim.fs.normalize(name ~= '' and name or vim.fn.getcwd())
  local best ---@type string?
  for root in pairs(by_root) do
    if client.contains(root, path) and (not best or #root > #best) then
      best = root
    end
  end
  return best and here(best)
end

---@param id? string
---@return tandem.Session?
function M.by_id(id)
  return vim.iter(M.all()):find(function(session)
    return id ~= nil and session.id == id
  end)
end

--- The workspace in which something was asked last.
---@return string?
function M.recent_root()
  local recent ---@type tandem.Session?
  for _, session in ipairs(M.all()) do
    if session.began_at and (not recent or session.began_at > recent.began_at) then
      recent = session
    end
  end
  return recent and recent.root
end

return M
