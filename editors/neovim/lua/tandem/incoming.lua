--- Where the messages of the server go: to the conversation they are about, or to one that is being loaded.
local chats = require('tandem.chats')
local permission = require('tandem.permission')
local status = require('tandem.status')

local M = {}

--- Buffers the updates of a conversation that is still being loaded.
---@param id? string
---@param callback fun()
---@return boolean kept
local function hold(id, callback)
  for _, session in ipairs(chats.all()) do
    if session.coming and session.coming.id == id then
      table.insert(session.coming.callbacks, callback)
      return true
    end
  end
  return false
end

---@type table<string, fun(session: tandem.Session, update: table)> what is not drawn as it comes
local keep = {
  current_mode_update = function(session, update)
    session.mode = update.currentModeId
  end,
  config_option_update = function(session, update)
    session:set_options(update.configOptions)
  end,
  available_commands_update = function(session, update)
    session.commands = update.availableCommands
  end,
  user_message_chunk = function(session, update)
    if session.loading then
      local text = update.content.text or ('(%s)'):format(update.content.type)
      session.chat:begin_turn(text, nil, vim.tbl_get(update, '_meta', 'tandem/turn'))
    end
  end,
  usage_update = function(session, update)
    session.usage = { used = update.used, size = update.size, cost = update.cost }
  end,
}

---@param params { sessionId: string, update: wire.SessionUpdate }
function M.on_update(params)
  local session = chats.by_id(params.sessionId)
  if not session then
    hold(params.sessionId, function()
      M.on_update(params)
    end)
    return
  end
  local kind = params.update.sessionUpdate
  if keep[kind] then
    keep[kind](session, params.update)
    if not session.loading then
      status.changed(session)
    end
  else
    session.chat:update(params.update)
  end
  status.event('TandemUpdate', session, { update = params.update })
end

---@param params wire.Turn
function M.on_turn(params)
  local session = chats.by_id(params.sessionId)
  if session then
    session:on_turn(params)
  else
    hold(params.sessionId, function()
      M.on_turn(params)
    end)
  end
end

---@param params wire.Jobs
function M.on_jobs(params)
  local session = chats.by_id(params.sessionId)
  if session then -- one that is being loaded has none yet
    session.jobs:take(params.jobs)
  end
end

---@param params wire.RequestPermissionRequest
---@return wire.RequestPermissionResponse
function M.on_permission(params)
  local session = chats.by_id(params.sessionId)
  if not session or session.state == 'idle' or session.stopping then
    return { outcome = { outcome = 'cancelled' } }
  end
  local answer = permission.ask(session, params)
  if answer.outcome.optionId == 'answer_start_new' then
    vim.schedule(function()
      require('tandem').start_plan(params.toolCall.locations[1].path, session.root)
    end)
  end
  return answer
end

--- The conversation that has no id yet, else the current one.
---@param root string
---@return tandem.Session
local function being_opened(root)
  return vim.iter(chats.of_root(root)):find(function(session)
    return session.opening ~= nil
  end) or chats.get(root)
end

---@param params wire.Status
---@param client_id integer
function M.on_status(params, client_id)
  local held = hold(params.sessionId, function()
    M.on_status(params, client_id)
  end)
  local connection = vim.lsp.get_client_by_id(client_id)
  local session = chats.by_id(params.sessionId) or connection and being_opened(connection.config.root_dir)
  if held or not session or (params.sessionId and session.id and session.id ~= params.sessionId) then
    return -- or it belongs to one that was closed
  end
  session.model, session.mode = params.model or session.model, params.mode or session.mode
  session.lacks_model = params.state == 'no_model'
  -- Permission requests and the causes of failed turns have their own display.
  local told_anyway = params.state == 'waiting' or params.state == 'no_model' and session.state ~= 'idle'
  if params.message and not told_anyway then
    session.chat:notice(params.message)
  end
  status.changed(session)
end

return M
