--- Text that arrives in deltas: one block of answer or reasoning.
--- Invariant: a block neither begins nor ends with empty lines, however the deltas are cut.

---@class tandem.Flow
---@field kind 'answer'|'thought'
---@field private text tandem.Transcript
---@field private block? tandem.Block made with the first visible character
---@field private held string newlines that wait for what follows them
local Flow = {}
Flow.__index = Flow

---@param text tandem.Transcript
---@param kind 'answer'|'thought'
---@return tandem.Flow
function Flow.new(text, kind)
  return setmetatable({ text = text, kind = kind, held = '' }, Flow)
end

---@param delta string
function Flow:write(delta)
  delta = delta:gsub('\r', '')
  if not self.block then
    delta = delta:gsub('^%s+', '')
    if delta == '' then
      return
    end
    self:begin()
  end
  local body, newlines = (self.held .. delta):match('^(.-)(\n*)$')
  self.held = newlines
  if body ~= '' then
    self.text:append(self.block, self.kind == 'thought' and body:gsub('\n', '\n> ') or body)
  end
end

function Flow:begin()
  if self.kind == 'thought' then
    self.block = self.text:add({ '> Thinking' }, { fold = true, highlight = 'TandemThought' })
    self.held = '\n'
  else
    self.block = self.text:add({ '' })
  end
end

return Flow
