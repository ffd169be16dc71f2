--- What was said and the server has not answered: one message runs, the others wait at the server for their turn, or to
--- join the one that runs. Pure: no buffer, no server.
--- Invariants: messages begin in the order they were sent; each is told exactly once, as begun, as joined or as
--- returned, so that nothing is shown twice and nothing that was typed is lost.

---@class tandem.Message
---@field text string
---@field selection? tandem.Selection

---@alias tandem.AnswerCallback fun(err?: { code?: integer, message: string }, result?: table)

---@class tandem.Wire how messages reach the server
---@field prompt fun(said: tandem.Said, callback: tandem.AnswerCallback)
---@field steer fun(said: tandem.Said, callback: tandem.AnswerCallback)
---@field cancel fun() stops the turn and everything that waits

---@class tandem.Listener who hears what became of the messages
---@field began fun(message: tandem.Message) its turn begins
---@field joined fun(message: tandem.Message) it is now part of the running turn
---@field ended fun(message: tandem.Message, err?: { message: string }, result?: { stopReason: string })
---@field returned fun(message: tandem.Message, err?: { message: string }) it was not sent on
---@field changed fun()

---@class tandem.Said
---@field message tandem.Message
---@field joins boolean it joins the running turn, instead of following it
---@field begun boolean
---@field withdrawn boolean stopped: it does not begin by itself, and is not sent in another way
---@field may_repeat boolean sent behind others, and not repeated: which the server does unless all had ended before
---@field taken boolean the turn took it

---@class tandem.Turns
---@field private wire tandem.Wire
---@field private listener tandem.Listener
---@field private prompts tandem.Said[] in the order in which the server answers; only the first one has begun
---@field private joining tandem.Said[]
local Turns = {}
Turns.__index = Turns

--- "This cannot be done now": no turn takes the message.
local INVALID_REQUEST = -32600

---@param list tandem.Said[]
---@param said tandem.Said
---@return boolean found
local function remove(list, said)
  for index, other in ipairs(list) do
    if other == said then
      table.remove(list, index)
      return true
    end
  end
  return false
end

---@param message tandem.Message
---@param joins boolean
---@return tandem.Said
local function fresh(message, joins)
  return { message = message, joins = joins, begun = false, withdrawn = false, may_repeat = false, taken = false }
end

---@return boolean
function Turns:is_running()
  return #self.prompts > 0
end

--- Whether the running turn was told to stop.
---@return boolean
function Turns:is_stopping()
  return self:is_running() and self.prompts[1].withdrawn
end

--- What has not begun.
---@return tandem.Said[]
function Turns:waiting()
  local waiting = vim.list_slice(self.joining)
  for _, said in ipairs(self.prompts) do
    if not said.begun then
      waiting[#waiting + 1] = said
    end
  end
  return waiting
end

---@param said tandem.Said
function Turns:begin(said)
  if not said.begun then
    said.begun = true
    self.listener.began(said.message)
  end
end

--- The turn before has ended, or there was none.
function Turns:begin_next()
  local next = self.prompts[1]
  if next and not next.withdrawn then
    self:begin(next)
  end
end

---@param said tandem.Said
function Turns:join(said)
  remove(self.joining, said)
  self.listener.joined(said.message)
end

---@param said tandem.Said
---@param err? { message: string }
---@param result? { stopReason: string }
function Turns:answered(said, err, result)
  if not remove(self.prompts, said) then
    return -- the server is gone, and it was told
  end
  if said.begun then
    for _, joining in ipairs(vim.list_slice(self.joining)) do
      if joining.taken then -- it was repeated unnoticed
        self:join(joining)
      end
    end
    self.listener.ended(said.message, err, result)
  else
    self.listener.returned(said.message, err)
  end
  self:begin_next()
  self.listener.changed()
end

--- Sends a message, which begins at once or follows what was sent before.
---@param message tandem.Message
function Turns:prompt(message)
  local said = fresh(message, false)
  said.may_repeat = self:is_running()
  table.insert(self.prompts, said)
  self:begin_next()
  self.listener.changed()
  self.wire.prompt(said, function(err, result)
    self:answered(said, err, result)
  end)
end

--- Says something to the running turn; what comes too late for it is a turn of its own.
---@param message tandem.Message
function Turns:steer(message)
  if not self:is_running() then
    return self:prompt(message)
  end
  local said = fresh(message, true)
  table.insert(self.joining, said)
  self.listener.changed()
  self.wire.steer(said, function(err)
    said.taken = not err -- and told where the server repeats it
    if said.taken or not remove(self.joining, said) then
      return
    elseif err.code == INVALID_REQUEST and not said.withdrawn then
      return self:prompt(message)
    end
    self.listener.returned(message, not said.withdrawn and err or nil)
    self.listener.changed()
  end)
end

--- The server repeats a text: of the message whose turn begins, else of one that joins the turn.
---@param text string
function Turns:repeated(text)
  local first = self.prompts[1]
  if not first then
    return
  elseif not first.begun or (first.may_repeat and text == first.message.text) then
    first.may_repeat = false
    self:begin(first)
  elseif self.joining[1] then
    self:join(self.joining[1])
  end
  self.listener.changed()
end

--- Stops the turn. What has not begun is returned as the server answers it.
function Turns:stop()
  for _, list in ipairs({ self.prompts, self.joining }) do
    for _, said in ipairs(list) do
      said.withdrawn = true
    end
  end
  self.wire.cancel()
end

--- The server is gone: nothing will be answered any more.
---@param err { message: string }
function Turns:lost(err)
  local joining = self.joining
  self.joining = {}
  for _, said in ipairs(joining) do
    self.listener.returned(said.message)
  end
  local prompts = vim.list_slice(self.prompts)
  for _, said in ipairs(prompts) do
    said.withdrawn = true
  end
  for _, said in ipairs(prompts) do
    self:answered(said, said.begun and err or nil)
  end
end

local M = {}

---@param wire tandem.Wire
---@param listener tandem.Listener
---@return tandem.Turns
function M.new(wire, listener)
  return setmetatable({ wire = wire, listener = listener, prompts = {}, joining = {} }, Turns)
end

return M
