--- Text that arrives in deltas: one block of answer or reasoning. Deltas are drawn once per screen frame, not
--- as often as they arrive.
--- Invariant: a block neither starts nor ends with empty lines, however the deltas are split.
local markdown = require('tandem.markdown')

local FRAME_MS = 33

---@class tandem.Flow
---@field kind 'answer'|'thought'
---@field private text tandem.Transcript
---@field private block? tandem.Block made with the first visible character
---@field private held string newlines that wait for what follows them
---@field private deltas string[] not drawn yet
---@field private drawn_at number
---@field private waits boolean for the next frame
---@field private standing integer how many rows are highlighted for good
---@field private is_whole boolean nothing is to come: it is drawn when it is finished
local Flow = {}
Flow.__index = Flow

---@param text tandem.Transcript
---@param kind 'answer'|'thought'
---@param is_whole boolean whether it comes from a conversation that is loaded
---@return tandem.Flow
function Flow.new(text, kind, is_whole)
  local flow = { text = text, kind = kind, held = '', deltas = {}, drawn_at = 0, waits = false, standing = 0, is_whole = is_whole }
  return setmetatable(flow, Flow)
end

--- Takes a delta: the first one is drawn at once, later ones with the next frame.
---@param delta string
function Flow:write(delta)
  self.deltas[#self.deltas + 1] = delta
  if self.is_whole then
    return
  end
  local rest = self.drawn_at + FRAME_MS - vim.uv.now()
  if rest <= 0 then
    self:flush()
  elseif not self.waits then
    self.waits = true
    vim.defer_fn(function()
      self.waits = false
      if vim.api.nvim_buf_is_loaded(self.text.buf) then
        self:flush()
      end
    end, rest)
  end
end

--- Draws what has arrived, and highlights it.
function Flow:flush()
  if self:draw() then
    self:highlight(true)
  end
end

--- Draws what has arrived.
---@private
---@return boolean drawn
function Flow:draw()
  if #self.deltas == 0 then
    return false
  end
  local delta = table.concat(self.deltas):gsub('\r', '')
  self.deltas, self.drawn_at = {}, vim.uv.now()
  if not self.block then
    delta = delta:gsub('^%s+', '')
    if delta == '' then
      return false
    end
    self:begin()
  end
  local body, newlines = (self.held .. delta):match('^(.-)(\n*)$')
  self.held = newlines
  if body ~= '' then
    self.text:append(self.block, self.kind == 'thought' and body:gsub('\n', '\n> ') or body)
  end
  return body ~= ''
end

--- Draws all of it: something else follows.
function Flow:finish()
  self:draw()
  if not self.is_whole then
    self:highlight(false)
  elseif self.block then
    table.insert(self.text.plain, self)
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

---@private
---@param grows boolean
function Flow:highlight(grows)
  if self.block and self.kind == 'answer' and self.text.has_markdown then
    local first, last = self.text:rows(self.block)
    local from = math.min(first + self.standing, last)
    self.standing = self.standing + markdown.highlight(self.text.buf, from, last, grows)
    self.text:scroll() -- tables take more lines than their text
  end
end

--- Highlights what was loaded: visible text at once, then one block after the other, handling keys in between.
---@param text tandem.Transcript
function Flow.highlight_loaded(text)
  if not vim.api.nvim_buf_is_loaded(text.buf) then
    return
  end
  local win = vim.fn.win_findbuf(text.buf)[1]
  local top = win and vim.fn.line('w0', win) or math.huge
  local bottom = win and vim.fn.line('w$', win) or math.huge
  repeat
    local index = #text.plain
    while index > 0 and text:start(text.plain[index].block) >= bottom do
      index = index - 1
    end
    local flow = table.remove(text.plain, math.max(index, 1)) ---@type tandem.Flow?
    if not flow then
      return
    end
    flow:highlight(false)
    local _, last = text:rows(flow.block)
  until last + 1 < top
  vim.defer_fn(function()
    Flow.highlight_loaded(text)
  end, 1)
end

return Flow
