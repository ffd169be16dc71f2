--- A buffer made of blocks, the last one being what the user writes. Blocks above it grow or are rewritten at any
--- time while the user types, folds and scrolls.
--- Invariants: a block starts at its extmark and ends where the next one starts; text is only ever inserted at a
--- block's end or in place of its whole content; a window follows the end only while its cursor is in the input.
local folds = require('tandem.folds')
local markdown = require('tandem.markdown')

local api = vim.api

local marks = api.nvim_create_namespace('tandem.blocks')
local looks = api.nvim_create_namespace('tandem.looks')

---@class tandem.Block
---@field mark integer extmark at its first row
---@field gap integer empty rows before its content: 0 or 1
---@field next? tandem.Block
---@field prev? tandem.Block
---@field span? { namespace: integer, id: integer } extmark over a content that folds or is highlighted
---@field highlight? string highlight group of the whole content

---@class tandem.BlockOptions
---@field gap? boolean an empty row before it (default true)
---@field fold? boolean the content folds into its first row
---@field highlight? string

---@class tandem.Transcript
---@field buf integer
---@field has_markdown boolean whether it can be highlighted, see markdown.lua
---@field private last tandem.Block the block before the input
---@field private input tandem.Block
---@field private heading string of the input
---@field plain tandem.Flow[] texts of a loaded conversation that are not highlighted yet, in their order
---@field private saved? { lines: string[], marks: table[] } of a buffer that was deleted
local Transcript = {}
Transcript.__index = Transcript

---@param block tandem.Block
---@return integer row of the extmark
function Transcript:start(block)
  return api.nvim_buf_get_extmark_by_id(self.buf, marks, block.mark, {})[1]
end

--- The rows of a block's content, zero-based and inclusive.
---@param block tandem.Block
---@return integer first, integer last
function Transcript:rows(block)
  local count = api.nvim_buf_line_count(self.buf)
  local first = math.min(self:start(block) + block.gap, count - 1) -- commands such as :%d move marks
  local last = block.next and self:start(block.next) or count
  return first, math.max(first, last - 1)
end

---@param row integer
---@param mark? integer moved there instead of a new one
---@return integer mark
function Transcript:anchor(row, mark)
  return api.nvim_buf_set_extmark(self.buf, marks, row, 0, { id = mark, right_gravity = false })
end

--- The windows whose cursor is in the input, which keep showing the end.
---@return integer[]
function Transcript:followers()
  local first = self:start(self.input)
  return vim.tbl_filter(function(win)
    return api.nvim_win_get_cursor(win)[1] > first
  end, vim.fn.win_findbuf(self.buf))
end

--- Shows the end at the bottom of a window again after lines above it were removed: Neovim would leave it at the top,
--- and text added later would be above the visible part.
---@param win integer
local function show_end(win)
  api.nvim_win_call(win, function()
    local cursor = api.nvim_win_get_cursor(win)
    vim.cmd('normal! Gzb')
    api.nvim_win_set_cursor(win, cursor)
  end)
end

--- Scrolls the windows that follow the end to it where something above it pushed it out of view: the editor scrolls only
--- to the cursor, and not for virtual lines.
function Transcript:scroll()
  local last = api.nvim_buf_line_count(self.buf)
  for _, win in ipairs(self:followers()) do
    -- For a line that begins to wrap, 'w$' is correct only after the next redraw.
    if api.nvim_win_get_cursor(win)[1] < last or vim.fn.line('w$', win) < last then
      show_end(win)
    end
  end
end

--- Goes to the end in all windows, which follow it from then on.
function Transcript:follow()
  local followers = self:followers()
  for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
    if not vim.list_contains(followers, win) then
      api.nvim_win_set_cursor(win, { api.nvim_buf_line_count(self.buf), 0 })
    end
  end
  vim.iter(self:followers()):each(show_end)
end

--- Evaluates 'foldexpr' for some rows where Neovim does not.
---@param first integer zero-based
---@param last integer inclusive
function Transcript:fold(first, last)
  if folds.are_late() then
    folds.update(self.buf, first, last)
  end
end

--- Changes a buffer for the program: not the user's to undo.
---@param buf integer
---@param change fun()
local function without_undo(buf, change)
  local options = vim.bo[buf]
  local modifiable, levels = options.modifiable, options.undolevels
  options.modifiable, options.undolevels = true, -1
  change()
  options.modifiable, options.undolevels, options.modified = modifiable, levels, false
end

--- Changes the buffer for the program, which is no reason to move what the user looks at.
---@param change fun()
function Transcript:write(change)
  local followers, count = self:followers(), api.nvim_buf_line_count(self.buf)
  without_undo(self.buf, change)
  for _, win in ipairs(followers) do
    api.nvim_win_set_cursor(win, api.nvim_win_get_cursor(win)) -- scrolls to where the cursor was carried
  end
  if api.nvim_buf_line_count(self.buf) < count then
    vim.iter(followers):each(show_end)
  else
    self:scroll()
  end
end

---@param row integer
---@return integer bytes
function Transcript:width(row)
  return #api.nvim_buf_get_lines(self.buf, row, row + 1, true)[1]
end

--- Marks what folds (`foldexpr` reads it) or is highlighted as a whole.
---@param block tandem.Block
---@param fold boolean|integer a number: without that many rows at its end
function Transcript:mark_span(block, fold)
  local namespace = fold and folds.namespace or block.highlight and looks or nil
  local span = block.span
  if span and span.namespace ~= namespace then
    api.nvim_buf_del_extmark(self.buf, span.namespace, span.id)
    span = nil
  end
  if namespace then
    local first, last = self:rows(block)
    last = math.max(first, last - (tonumber(fold) or 0))
    local id = api.nvim_buf_set_extmark(self.buf, namespace, first, 0, {
      id = span and span.id,
      end_row = last,
      end_col = self:width(last),
      right_gravity = false,
      end_right_gravity = true,
      hl_group = block.highlight,
      priority = 150,
    })
    span = { namespace = namespace, id = id }
  end
  block.span = span
end

--- Adds a block before the input.
---@param lines string[]
---@param options? tandem.BlockOptions
---@return tandem.Block
function Transcript:add(lines, options)
  options = options or {}
  local gap = options.gap == false and 0 or 1
  local block = { gap = gap, prev = self.last, next = self.input, highlight = options.highlight } ---@type tandem.Block
  self:write(function()
    local row = self:start(self.input)
    local rows = block.gap == 1 and { '', '' } or { '' }
    api.nvim_buf_set_lines(self.buf, row, row, true, rows)
    block.mark = self:anchor(row)
    self:anchor(row + #rows, self.input.mark)
    self.last.next, self.last = block, block
    self:mark_span(block, options.fold or false)
    self:put(block, lines)
  end)
  return block
end

--- The rows of the block that a row is in, or below.
---@param row integer zero-based
---@return integer first, integer last
function Transcript:rows_at(row)
  local block = self.last
  while block.prev and self:start(block) > row do
    block = block.prev
  end
  return self:rows(block)
end

---@param block tandem.Block
---@return boolean
function Transcript:is_last(block)
  return self.last == block
end

--- Removes a block and all that follow it, but for the input.
---@param block tandem.Block
function Transcript:cut(block)
  self:write(function()
    local first, last = self:start(block), self:start(self.input)
    api.nvim_buf_clear_namespace(self.buf, -1, first, last)
    api.nvim_buf_set_lines(self.buf, first, last, true, {})
    self.last = block.prev
    self.last.next = self.input
  end)
  self.plain = vim.tbl_filter(function(flow)
    return self:start(flow.block) ~= nil
  end, self.plain)
end

---@param block tandem.Block
---@param lines string[]
function Transcript:put(block, lines)
  local first, last = self:rows(block)
  api.nvim_buf_set_text(self.buf, first, 0, last, self:width(last), lines)
end

--- Replaces a block's content.
---@param block tandem.Block
---@param lines string[]
---@param fold? boolean|integer see mark_span
function Transcript:set(block, lines, fold)
  self:write(function()
    self:mark_span(block, fold or false)
    self:put(block, lines)
    self:mark_span(block, fold or false)
  end)
  if type(fold) == 'number' then
    folds.update(self.buf, self:rows(block)) -- the mark was over all rows while they were put there
  else
    self:fold(self:rows(block))
  end
  if fold then
    vim.iter(self:followers()):each(show_end)
  end
end

--- Continues a block's content.
---@param block tandem.Block
---@param text string
function Transcript:append(block, text)
  local _, last = self:rows(block)
  self:write(function()
    local column = self:width(last)
    api.nvim_buf_set_text(self.buf, last, column, last, column, vim.split(text, '\n', { plain = true }))
  end)
  if block.span and block.span.namespace == folds.namespace then
    local _, now = self:rows(block)
    self:fold(last, now)
  end
end

--- The row on which the input's first line stands.
---@return integer
function Transcript:input_row()
  return (self:rows(self.input)) + 1
end

---@return string
function Transcript:draft()
  return table.concat(api.nvim_buf_get_lines(self.buf, self:input_row(), -1, false), '\n')
end

---@return string without the blanks around it
function Transcript:input_text()
  return vim.trim(self:draft())
end

--- Gives the input its row again after `dd` on the only one or a backspace on the first; a command that deleted its heading
--- is undone.
function Transcript:repair_input()
  local row = self:rows(self.input)
  local line = api.nvim_buf_get_lines(self.buf, row, row + 1, true)[1]
  if line == self.heading and row < api.nvim_buf_line_count(self.buf) - 1 then
    return
  end
  vim.bo[self.buf].modifiable = true -- the cursor may be above
  if vim.startswith(line, self.heading) then
    api.nvim_buf_set_text(self.buf, row, #self.heading, row, #self.heading, { '', '' })
    api.nvim_win_set_cursor(0, { row + 2, 0 })
  else
    vim.cmd('silent! undo')
  end
end

---@param text string
function Transcript:set_input(text)
  self:write(function()
    api.nvim_buf_set_lines(self.buf, self:input_row(), -1, false, vim.split(text, '\n', { plain = true }))
  end)
end

--- Empties everything but the title.
---@param title string
---@param heading string of the input
function Transcript:reset(title, heading)
  self.heading, self.saved, self.plain = heading, nil, {}
  api.nvim_buf_clear_namespace(self.buf, -1, 0, -1)
  vim.bo[self.buf].modifiable = true
  without_undo(self.buf, function()
    api.nvim_buf_set_lines(self.buf, 0, -1, false, { title, '', heading, '' })
  end)
  self.input = { mark = self:anchor(1), gap = 1 }
  self.last = { mark = self:anchor(0), gap = 0, next = self.input }
  vim.iter(vim.fn.win_findbuf(self.buf)):each(show_end)
end

--- Saves the text of a buffer that is being deleted, with everything drawn in it.
function Transcript:save()
  self.saved = { lines = api.nvim_buf_get_lines(self.buf, 0, -1, false), marks = {} }
  for name, namespace in pairs(api.nvim_get_namespaces()) do
    local found = vim.startswith(name, 'tandem.') and api.nvim_buf_get_extmarks(self.buf, namespace, 0, -1, { details = true })
    vim.list_extend(self.saved.marks, found or {})
  end
end

--- Continues in another buffer.
---@param buf integer
---@return boolean moved
function Transcript:move(buf)
  local saved = self.saved
  if not saved then
    return false
  end
  self.buf, self.saved = buf, nil
  vim.bo[buf].modifiable = true
  without_undo(buf, function()
    api.nvim_buf_set_lines(buf, 0, -1, false, saved.lines)
  end)
  for _, mark in ipairs(saved.marks) do
    local id, row, column, options = unpack(mark)
    local namespace = options.ns_id
    options.ns_id, options.invalid, options.id = nil, nil, id
    api.nvim_buf_set_extmark(buf, namespace, row, column, options)
  end
  return true
end

---@param buf integer
---@param title string
---@param heading string
---@return tandem.Transcript
function Transcript.new(buf, title, heading)
  local transcript = setmetatable({ buf = buf, has_markdown = markdown.is_available() }, Transcript)
  transcript:reset(title, heading)
  return transcript
end

return Transcript
