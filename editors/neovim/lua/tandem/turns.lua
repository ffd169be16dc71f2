--- The running and queued messages, as the server reports them (`_tandem/turn`). For display only.

---@class tandem.Message
---@field id string the prompt's name on the wire
---@field text string
---@field selection? tandem.Selection
---@field joins boolean it is to join the running turn, instead of following it
---@field state 'sent'|'queued'|'running'
---@field position? integer in the queue
---@field withdrawn? boolean stopped before it could be sent

---@class tandem.Turns
---@field private open tandem.Message[] in the order in which they were sent
---@field private sent table<string, true> ids of all messages
---@field private count integer
local Turns = {}
Turns.__index = Turns

---@return tandem.Turns
function Turns.new()
  return setmetatable({ open = {}, sent = {}, count = 0 }, Turns)
end

---@param text string
---@param selection? tandem.Selection
---@param joins boolean
---@return tandem.Message
function Turns:add(text, selection, joins)
  self.count = self.count + 1
  local id = ('nvim-%d-%d-%d'):format(vim.uv.os_getpid(), vim.uv.hrtime(), self.count)
  local message = { id = id, text = text, selection = selection, joins = joins, state = 'sent' }
  table.insert(self.open, message)
  self.sent[id] = true
  return message
end

---@param id string
---@return tandem.Message?
function Turns:get(id)
  return vim.iter(self.open):find(function(message)
    return message.id == id
  end)
end

--- Whether a message was sent from here, open or not.
---@param id string
---@return boolean
function Turns:has_sent(id)
  return self.sent[id] ~= nil
end

---@param message tandem.Message
---@return boolean was_open
function Turns:remove(message)
  for index, other in ipairs(self.open) do
    if other == message then
      table.remove(self.open, index)
      return true
    end
  end
  return false
end

--- The message of the running turn.
---@return tandem.Message?
function Turns:running()
  return vim.iter(self.open):find(function(message)
    return message.state == 'running'
  end)
end

---@return boolean
function Turns:any()
  return #self.open > 0
end

--- The queued messages, steering ones first.
---@return tandem.Message[]
function Turns:waiting()
  local waiting = vim.tbl_filter(function(message)
    return message.state ~= 'running'
  end, self.open)
  table.sort(waiting, function(a, b)
    if a.joins ~= b.joins then
      return a.joins
    end
    return (a.position or math.huge) < (b.position or math.huge)
  end)
  return waiting
end

--- All that are open; none is, afterwards.
---@return tandem.Message[]
function Turns:drain()
  local open = self.open
  self.open = {}
  return open
end

return Turns
