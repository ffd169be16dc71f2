--- Messages on their way to the server: prompts, what steers a turn, and the end of one.
local client = require('tandem.client')
local context = require('tandem.context')

local M = {}

---@param session tandem.Session
---@param method 'session/prompt'|'_tandem/session/steer'
---@param said tandem.Said
---@param callback tandem.AnswerCallback
local function send(session, method, said, callback)
  session:open(function(problem)
    if problem or (said.withdrawn and said.joins) then
      return callback({ message = problem or 'stopped' })
    elseif said.withdrawn then
      return callback(nil, { stopReason = 'cancelled' })
    end
    require('tandem.focus').send()
    local params = { sessionId = session.id, prompt = context.blocks(said.message.text, said.message.selection) }
    client.request(session.connection, method, params, callback)
  end)
end

---@param session tandem.Session
---@return tandem.Wire
function M.new(session)
  return {
    prompt = function(said, callback)
      send(session, 'session/prompt', said, callback)
    end,
    steer = function(said, callback)
      send(session, '_tandem/session/steer', said, callback)
    end,
    cancel = function()
      if session.id and session.connection then
        client.notify(session.connection, 'session/cancel', { sessionId = session.id })
      end
    end,
  }
end

return M
