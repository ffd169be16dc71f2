--- One conversation: its state, its requests, and what becomes of its turns.
--- Invariant: a turn that started ends exactly once, whether the server answers, refuses or exits.
local Jobs = require('tandem.jobs')
local client = require('tandem.client')
local context = require('tandem.context')
local permission = require('tandem.permission')
local say = require('tandem.say')
local status = require('tandem.status')
local Turns = require('tandem.turns')

---@class tandem.Coming a conversation that is being loaded
---@field id string
---@field callbacks fun()[] what arrived for it so far

---@class tandem.Session
---@field root string
---@field id? string the server's session id
---@field state 'idle'|'running'|'waiting'
---@field turn integer how many turns began; names the current one
---@field turns tandem.Turns
---@field model? string
---@field mode? string
---@field effort? string
---@field modes { id: string, name: string }[]
---@field options table<string, wire.SessionConfigOption> by id
---@field commands wire.AvailableCommand[]
---@field lacks_model boolean nothing can be asked until one is configured
---@field usage? { used: integer, size: integer, cost?: { amount: number, currency: string } }
---@field began_at? number when the running turn began, in ms
---@field chat tandem.Chat
---@field review tandem.Review
---@field jobs tandem.Jobs
---@field connection? vim.lsp.Client
---@field private stopping boolean the running turn was told to stop
---@field private opening? tandem.OpenCallback[] who waits for the conversation
---@field began boolean there is something to go on with
---@field private lost? string the id of a conversation whose server ended; the next one goes on with it
---@field private loading boolean what comes was said before
---@field private coming? tandem.Coming the conversation that is about to take this one's place
local Session = {}
Session.__index = Session

local M = {}

---@alias tandem.OpenCallback fun(problem?: string)

---@param root string
---@return tandem.Session
function M.new(root)
  local session = setmetatable({ root = root, state = 'idle', turn = 0, modes = {}, options = {}, commands = {} }, Session)
  session.began, session.loading, session.lacks_model = false, false, false
  session.turns, session.stopping = Turns.new(), false
  session.chat = require('tandem.chat').new(session)
  session.review = require('tandem.review').new(session)
  session.jobs = Jobs.new(session)
  return session
end

---@param problem? string
function Session:opened(problem)
  local callbacks = self.opening or {}
  self.opening = nil
  for _, callback in ipairs(callbacks) do
    callback(problem)
  end
end

---@param options wire.SessionConfigOption[]
function Session:set_options(options)
  self.options = {}
  for _, option in ipairs(options or {}) do
    self.options[option.id] = option
  end
  for _, id in ipairs({ 'mode', 'model', 'effort' }) do
    self[id] = self.options[id] and self.options[id].currentValue or self[id]
  end
end

---@param result wire.NewSessionResponse|wire.LoadSessionResponse
function Session:adopt(result)
  self.lost = nil
  if result.modes then
    self.modes, self.mode = result.modes.availableModes, result.modes.currentModeId
  end
  self:set_options(result.configOptions)
  status.changed(self)
end

--- Starts the server and the conversation if needed; callers wait in the meantime.
---@param method 'session/new'|'session/resume'
---@param id? string of a conversation that was kept
function Session:start(method, id)
  client.ensure(self.root, function(connection, problem)
    if not connection then
      return self:opened(problem)
    end
    self.connection, self.id = connection, id -- what is told of it comes before the answer
    local params = { sessionId = id, cwd = self.root, mcpServers = {} }
    client.request(connection, method, params, function(err, result)
      if err then
        self.id, self.lost = nil, nil
        if method == 'session/resume' then
          self.chat:notice(('%s: the model no longer sees the messages above'):format(err.message))
          return self:start('session/new')
        end
        return self:opened(err.message)
      end
      self.id = id or result.sessionId
      self:adopt(result)
      self:opened()
    end)
  end)
end

--- Ensures there is a conversation, then calls back. One that lost its server is resumed.
---@param callback tandem.OpenCallback
function Session:open(callback)
  if self.opening then
    table.insert(self.opening, callback)
  elseif self.id then
    callback()
  else
    self.opening = { callback }
    self:start(self.lost and 'session/resume' or 'session/new', self.lost)
  end
end

--- Sends a request once the session is open; reports failures.
---@param method string
---@param params table
---@param callback fun(result: any)
function Session:request(method, params, callback)
  self:open(function(problem)
    if problem then
      return say(problem, vim.log.levels.ERROR)
    end
    params.sessionId = self.id
    client.request(self.connection, method, params, function(err, result)
      if err then
        return say(err.message, vim.log.levels.ERROR)
      end
      callback(result)
    end)
  end)
end

--- The saved conversations of this workspace, most recently used first.
---@param callback fun(kept: wire.SessionInfo[])
function Session:list(callback)
  self:request('session/list', { cwd = self.root }, function(result)
    callback(vim.tbl_filter(function(kept)
      return kept.sessionId ~= self.id
    end, result.sessions))
  end)
end

--- Resumes a saved conversation in place of the current one, which stays if the other cannot be loaded.
---@param id string
---@param loaded? fun()
function Session:load(id, loaded)
  if self.opening and not self.coming and self.state == 'idle' then -- it is being started
    return self:open(function()
      self:load(id, loaded)
    end)
  elseif self:is_busy() then
    return
  end
  self.coming = { id = id, callbacks = {} }
  self.opening = {
    function(problem)
      self.coming = nil
      if problem then
        self.chat:line('Could not open that session: ' .. problem, 'TandemFailed')
      else
        self:look_at_changes()
        if loaded then
          loaded()
        end
      end
    end,
  }
  client.ensure(self.root, function(connection, problem)
    if not connection then
      return self:opened(problem)
    end
    local params = { sessionId = id, cwd = self.root, mcpServers = {} }
    client.request(connection, 'session/load', params, function(err, result)
      if err then
        return self:opened(err.message)
      end
      self:replace(connection, result)
      self:opened()
    end)
  end)
end

--- The conversation that was loaded is shown now.
---@param connection vim.lsp.Client
---@param result wire.NewSessionResponse|wire.LoadSessionResponse
function Session:replace(connection, result)
  local coming = self.coming ---@cast coming -nil
  self:leave()
  self.coming, self.connection, self.id = nil, connection, coming.id
  self.began, self.loading = true, true
  for _, callback in ipairs(coming.callbacks) do
    callback()
  end
  self.loading = false
  self.chat:loaded()
  self:adopt(result)
  status.changed(self)
end

--- Messages sent while a conversation loads go to the one that is current afterwards.
---@param say_it fun()
---@return boolean waits
function Session:after_loading(say_it)
  if self.coming then
    table.insert(self.opening, say_it)
  end
  return self.coming ~= nil
end

--- Sends a prompt; it is queued if a turn is running.
---@param text string
---@param selection? tandem.Selection
function Session:prompt(text, selection)
  local waits = self:after_loading(function()
    self:prompt(text, selection)
  end)
  if not waits then
    if self.chat.input:written() == text then -- it was given back, and is asked again from elsewhere
      self.chat:transcript():set_input('')
    end
    self:send('session/prompt', self.turns:add(text, selection, false))
  end
end

--- Adds a message to the running turn; without one, sends it as a prompt.
---@param text string
---@param selection? tandem.Selection
function Session:steer(text, selection)
  if not self.turns:any() then
    return self:prompt(text, selection)
  end
  self:send('_tandem/session/steer', self.turns:add(text, selection, true))
end

--- Sends a message; what becomes of it is reported by `_tandem/turn`.
---@param method 'session/prompt'|'_tandem/session/steer'
---@param message tandem.Message
function Session:send(method, message)
  if self.state == 'idle' then
    self.began_at = vim.uv.now()
    self:enter('running')
  end
  require('tandem.chats').use(self)
  self.chat:show()
  status.changed(self)
  self:open(function(problem)
    if problem then
      return self:not_sent(message, { message = problem })
    elseif message.withdrawn then
      return self:not_sent(message)
    end
    require('tandem.focus').send()
    client.request(self.connection, method, {
      sessionId = self.id,
      prompt = context.blocks(message.text, message.selection),
      _meta = { ['tandem/promptId'] = message.id },
    }, function(err)
      if err then
        self:not_sent(message, err) -- unless it was reported
      end
    end)
  end)
end

--- A message that did not get a turn. If nothing else is going on, its failure is shown like that of a turn, and the
--- message returns to the input.
---@param message tandem.Message
---@param err? { message: string }
function Session:not_sent(message, err)
  if not self.turns:remove(message) then
    return
  elseif err and not self.turns:any() then
    self:begin(message)
    self:finish(err)
    self.chat.input:give_back(message.text, message.selection)
  else
    self:return_message(message, err)
  end
  self:rest()
end

--- Nothing is running or queued any more.
function Session:rest()
  if not self.turns:any() then
    self.state = 'idle'
  end
  status.changed(self)
end

---@type table<wire.PromptState, fun(session: tandem.Session, message: tandem.Message, turn: wire.Turn)>
local on_state = {
  queued = function(_, message, turn)
    message.state, message.position = 'queued', turn.position
  end,
  running = function(session, message, turn)
    message.state, message.joins = 'running', false
    session:begin(message, turn.turn)
  end,
  joined = function(session, message)
    session.turns:remove(message)
    session.chat:say(message.text, message.selection and context.label(message.selection))
  end,
  returned = function(session, message, turn)
    session.turns:remove(message)
    local late = turn.reason == 'no_turn' or turn.reason == 'turn_ended'
    if late and message.joins and not message.withdrawn then
      return session:prompt(message.text, message.selection) -- it is a turn of its own
    end
    session:return_message(message)
  end,
  ended = function(session, message, turn)
    local err = turn.message and { message = turn.message }
    if message.state ~= 'running' then
      return session:not_sent(message, err) -- such as without a model
    end
    session.turns:remove(message)
    session:finish(err, turn.reason)
    if turn.reason == 'end_turn' and session.state == 'idle' and not session.chat:is_followed() then
      say('Done: ' .. message.text)
    end
  end,
}

--- What became of a prompt.
---@param turn wire.Turn
function Session:on_turn(turn)
  local message = self.turns:get(turn.promptId)
  if not message then
    -- It was queued when the server before ended. One of this chat is back in the input since then.
    if turn.state == 'returned' and turn.prompt and not self.turns:has_sent(turn.promptId) then
      self:return_message({ text = context.written(turn.prompt, self.root) })
    end
    return
  end
  on_state[turn.state](self, message, turn)
  self:rest()
end

---@param message tandem.Message
---@param number? integer the turn's, where files and conversation can go back to before it
function Session:begin(message, number)
  self.turn, self.began, self.began_at, self.stopping = self.turn + 1, true, vim.uv.now(), false
  status.tick(self)
  self:enter('running')
  self.chat:begin_turn(message.text, message.selection, number)
  status.event('TandemTurnStart', self)
end

--- Puts a message that was not sent on back into the input.
---@param message tandem.Message
---@param err? { message: string }
function Session:return_message(message, err)
  local why = err and (' (%s)'):format(err.message) or ''
  self.chat:line(('Not sent; moved back to the input%s: %s'):format(why, message.text), 'TandemNotice')
  self.chat.input:give_back(message.text, message.selection)
end

--- Restores files and conversation to before a prompt, as one step that an undo reverts.
---@param prompt? tandem.Prompt
---@param next fun(prompt: tandem.Prompt)
function Session:back_to(prompt, next)
  if not prompt then
    return say('No prompt to rewind to')
  elseif not prompt.number then
    return say('Cannot rewind to this prompt: it was never answered')
  end
  self.review:restore('restore', prompt.number, function()
    next(prompt)
  end)
end

---@param state 'idle'|'running'|'waiting'
function Session:enter(state)
  self.state = state
  status.changed(self)
end

--- Ends a turn; the next one may start.
---@param err? { message: string }
---@param reason? string ACP's stop reason
function Session:finish(err, reason)
  permission.withdraw(self)
  client.reload(self.root)
  self:enter(self.turns:any() and 'running' or 'idle') -- no gap between two turns
  self.chat:end_turn(err and err.message, reason)
  self:look_at_changes()
  if err then
    say(err.message, vim.log.levels.ERROR)
  end
  status.event('TandemTurnEnd', self, { stop_reason = not err and reason or nil, error = err and err.message })
end

--- Marks the changes of the turn, and lists them in the chat.
function Session:look_at_changes()
  if not self.id then
    return
  end
  self.review:refresh()
end

--- The person began to type a prompt.
function Session:typing_began()
  if self.id and self.connection then
    client.notify(self.connection, '_tandem/didStartTyping', { sessionId = self.id })
  end
end

--- Stops the running turn and the queued messages; the server reports the outcome of each.
function Session:stop()
  if not self.turns:any() then
    return say('No turn is running')
  end
  self.stopping = self.turns:running() ~= nil
  for _, message in ipairs(self.turns:waiting()) do
    message.withdrawn = true
  end
  if self.id and self.connection then
    client.notify(self.connection, 'session/cancel', { sessionId = self.id })
  end
  permission.withdraw(self)
end

--- Sets an option of the conversation, such as the model.
---@param id string
---@param value string
function Session:set_option(id, value)
  self:request('session/set_config_option', { configId = id, value = value }, function(result)
    self:set_options(result.configOptions)
    status.changed(self)
    say(('%s %s'):format(id, self[id]))
  end)
end

--- The name of a mode as people read it.
---@param mode? string default: the current one
---@return string?
function Session:mode_name(mode)
  mode = mode or self.mode
  local offered = vim.iter(self.modes):find(function(other)
    return other.id == mode
  end)
  return offered and offered.name or mode
end

--- Switches the mode (plan, ask, edit, auto).
---@param mode string
function Session:set_mode(mode)
  self:request('session/set_mode', { modeId = mode }, function()
    self.mode = mode
    status.changed(self)
    say('Mode: ' .. self:mode_name())
  end)
end

--- Whether a turn is running; reports it if so.
---@return boolean
function Session:is_busy()
  local busy = self.state ~= 'idle' or self.opening ~= nil
  if busy then
    say('A turn is still running (:Tandem stop ends it)', vim.log.levels.WARN)
  end
  return busy
end

function Session:leave()
  if self.id and self.connection then
    client.request(self.connection, 'session/close', { sessionId = self.id }, function() end)
  end
  self.id, self.lost, self.usage, self.began = nil, nil, nil, false
  self.review:forget()
  self.jobs:take({}) -- they end with it
  self.chat:clear()
  status.changed(self)
end

---@param why string
---@param failed boolean it ended by itself
function Session:on_server_exit(why, failed)
  if failed and self.state == 'idle' then
    say(why, vim.log.levels.ERROR) -- a turn that ends with it says so
  end
  self.lost = self.began and (self.id or self.lost) or nil
  self.id, self.connection, self.loading = nil, nil, false
  self.review:forget()
  self.jobs:take({})
  local running = self.turns:running()
  for _, message in ipairs(self.turns:drain()) do
    if message ~= running then
      self:return_message(message)
    end
  end
  if running then
    self:finish({ message = why })
  end
  self:rest()
  self:opened(why)
end

---@param request tandem.Request
function Session:on_request(request)
  self:enter('waiting')
  self.chat:ask_permission(request)
  status.event('TandemPermission', self, { title = request.call.title, tool_call = request.call })
end

---@param request tandem.Request
function Session:on_answered(request)
  if self.state == 'waiting' then
    self:enter('running')
  end
  self.chat:permission_answered(request)
end

return M
