--- Markdown tables, drawn over their text with aligned columns: the text stays what is yanked and searched.
--- A table that is wider than the window is a fold, which takes one line of the screen: its first line is drawn over the
--- fold, the others are virtual lines above the row that follows. The opened fold shows the text.
local cells = require('tandem.cells')
local decor = require('tandem.decor')
local folds = require('tandem.folds')
local markdown = require('tandem.markdown')

local api = vim.api
local M = {}

--- Longer words are broken in a cell.
local MAX_WORD_WIDTH = 16

local ranges = api.nvim_create_namespace('tandem.tables')
local drawn = api.nvim_create_namespace('tandem.tables.drawn')

---@alias tandem.Piece { [1]: string, [2]?: string } a text and its highlight

---@class tandem.Cell
---@field pieces tandem.Piece[]
---@field width integer
---@field word integer the width of its longest word

--- Where the cells of a row are: bytes, one-based, without the blanks around them.
---@param line string
---@return { [1]: integer, [2]: integer }[]
local function spans(line)
  local found, from = {}, nil ---@type { [1]: integer, [2]: integer }[], integer?
  local function add(last)
    local first = line:find('%S', from) or from
    last = #(line:sub(1, last):gsub('%s+$', ''))
    found[#found + 1] = { first, last }
  end
  for at = 1, #line do
    if line:sub(at, at) == '|' and line:sub(at - 1, at - 1) ~= '\\' then
      if from then
        add(at - 1)
      end
      from = at + 1
    end
  end
  if line:find('[^|%s][^|]*$') then
    add(#line) -- the row is still being written
  end
  return found
end

--- The tables among some lines: their first and last index.
---@param lines string[]
---@param fences { first: integer, last: integer }[]
---@return { [1]: integer, [2]: integer }[]
local function find(lines, fences)
  local found = {}
  for index = 2, #lines do
    local head = lines[index - 1]
    local is_rule = lines[index]:find('^%s*|[%s:|-]*%-[%s:|-]*|%s*$') and head:find('^%s*|')
    local is_code = is_rule and vim.iter(fences):any(function(block)
      return block.first < index and index <= block.last + 1
    end)
    if is_rule and not is_code and #spans(head) == #spans(lines[index]) then
      local last = index
      while lines[last + 1] and lines[last + 1]:find('^%s*|') do
        last = last + 1
      end
      found[#found + 1] = { index - 1, last }
    end
  end
  return found
end

--- What is hidden of a row, and the highlights of the rest, by byte.
---@param buf integer
---@param row integer zero-based
---@return table<integer, true> hidden
---@return table<integer, string> highlights
local function looks(buf, row)
  local hidden, highlights = {}, {}
  for _, mark in ipairs(api.nvim_buf_get_extmarks(buf, markdown.namespace, { row, 0 }, { row, -1 }, { details = true })) do
    local details = mark[4]
    for byte = mark[3] + 1, details.end_row == row and details.end_col or 0 do
      hidden[byte] = details.conceal == '' or hidden[byte]
      highlights[byte] = details.hl_group or highlights[byte]
    end
  end
  return hidden, highlights
end

---@param buf integer
---@param row integer zero-based
---@param line string
---@return tandem.Cell[]
local function read(buf, row, line)
  local hidden, highlights = looks(buf, row)
  return vim.tbl_map(function(span)
    local cell = { pieces = {}, width = 0, word = 0 } ---@type tandem.Cell
    local text = ''
    for byte = span[1], span[2] do
      local piece = cell.pieces[#cell.pieces]
      local is_escape = line:sub(byte, byte + 1) == '\\|'
      if not hidden[byte] and not is_escape then
        if not piece or piece[2] ~= highlights[byte] then
          piece = { '', highlights[byte] }
          table.insert(cell.pieces, piece)
        end
        piece[1] = piece[1] .. line:sub(byte, byte)
        text = text .. line:sub(byte, byte)
      end
    end
    for word in text:gmatch('%S+') do
      cell.word = math.max(cell.word, vim.fn.strdisplaywidth(word))
    end
    cell.width = cells.width(cell.pieces)
    return cell
  end, spans(line))
end

--- The lines of a cell in a column of this width: broken at blanks, or anywhere within longer words.
---@param cell tandem.Cell
---@param width integer
---@return tandem.Cell[]
local function wrap(cell, width)
  local characters = {} ---@type tandem.Piece[]
  for _, piece in ipairs(cell.pieces) do
    for _, character in ipairs(vim.fn.split(piece[1], [[\zs]])) do
      characters[#characters + 1] = { character, piece[2] }
    end
  end
  local lines, from = {}, 1 ---@type tandem.Cell[], integer
  while characters[from] do
    local to, used, blank = from, 0, nil ---@type integer, integer, integer?
    while characters[to] and used + cells.width({ characters[to] }) <= width do
      used = used + cells.width({ characters[to] })
      blank = characters[to][1] == ' ' and to or blank
      to = to + 1
    end
    if characters[to] and characters[to][1] ~= ' ' then
      to = blank or math.max(to, from + 1)
    end
    local pieces = vim.list_slice(characters, from, to - 1)
    lines[#lines + 1] = { pieces = pieces, width = cells.width(pieces), word = 0 }
    from = to
    while characters[from] and characters[from][1] == ' ' do
      from = from + 1
    end
  end
  return lines
end

--- The widths of columns in a window: the widest ones share what the others leave.
---@param natural integer[]
---@param words integer[] the longest word of each
---@param room number cells of a line
---@return integer[]? widths nil if words would have to be broken
local function fit(natural, words, room)
  for most = math.min(vim.fn.max(natural), room), 1, -1 do
    local widths, total = {}, 1
    for column, width in ipairs(natural) do
      widths[column] = math.min(width, math.max(most, math.min(words[column], MAX_WORD_WIDTH)))
      total = total + widths[column] + 3
    end
    if total <= room then
      return widths
    end
  end
end

---@param row tandem.Cell[]
---@param widths integer[]
---@param rule string the line that says how columns are aligned
---@return tandem.Piece[]
local function line_of(row, widths, rule)
  local out, aligned = {}, spans(rule) ---@type tandem.Piece[]
  for column, width in ipairs(widths) do
    local cell = row[column] or { pieces = {}, width = 0, word = 0 }
    local marks = rule:sub(aligned[column][1], aligned[column][2])
    local free = width - cell.width
    local left = not vim.endswith(marks, ':') and 0 or vim.startswith(marks, ':') and math.floor(free / 2) or free
    out[#out + 1] = { '│ ' .. (' '):rep(left), 'TandemRule' }
    vim.list_extend(out, cell.pieces)
    out[#out + 1] = { (' '):rep(free - left + 1) }
  end
  out[#out + 1] = { '│', 'TandemRule' }
  return out
end

--- The lines of a row.
---@param row tandem.Cell[]
---@param widths integer[]
---@param rule string
---@return tandem.Piece[][]
local function lines_of(row, widths, rule)
  local wrapped, height = {}, 1 ---@type tandem.Cell[][], integer
  for column, width in ipairs(widths) do
    local cell = row[column]
    wrapped[column] = cell and cell.width > width and wrap(cell, width) or { cell }
    height = math.max(height, #wrapped[column])
  end
  local lines = {}
  for index = 1, height do
    local parts = {}
    for column in ipairs(widths) do
      parts[column] = wrapped[column][index]
    end
    lines[index] = line_of(parts, widths, rule)
  end
  return lines
end

---@param widths integer[]
---@return tandem.Piece[]
local function rule_of(widths)
  local parts = vim.tbl_map(function(width)
    return ('─'):rep(width + 2)
  end, widths)
  return { { '├' .. table.concat(parts, '┼') .. '┤', 'TandemRule' } }
end

--- The lines of a table that is too narrow for its columns: each row as a list of its cells, below one another.
---@param rows table<integer, tandem.Cell[]>
---@param count integer lines of the table
---@param room integer cells of a line
---@return tandem.Piece[][]
local function records(rows, count, room)
  local lines = {} ---@type tandem.Piece[][]
  for index = 3, math.max(3, count) do
    if index > 3 then
      lines[#lines + 1] = { { ('─'):rep(room), 'TandemRule' } }
    end
    for column, name in ipairs(rows[1]) do
      local cell = (rows[index] or {})[column] or { pieces = {} }
      local pieces = vim.iter({ name.pieces, { { ': ', 'TandemDim' } }, cell.pieces }):flatten(1):totable()
      for _, line in ipairs(wrap({ pieces = pieces }, room)) do
        lines[#lines + 1] = line.pieces
      end
    end
  end
  return lines
end

--- Draws a line over a row of text.
---@param buf integer
---@param row integer zero-based
---@param pieces tandem.Piece[]
---@param width integer cells of the text
local function put(buf, row, pieces, width)
  pieces[#pieces + 1] = { (' '):rep(width - cells.width(pieces)) }
  api.nvim_buf_set_extmark(buf, drawn, row, 0, { virt_text = pieces, virt_text_pos = 'overlay', priority = 210 })
end

--- Makes the rows of a table a fold, or no fold.
---@param buf integer
---@param first integer zero-based
---@param last integer inclusive
---@param is_fold boolean
local function set_fold(buf, first, last, is_fold)
  local before = api.nvim_buf_get_extmarks(buf, folds.namespace, { first, 0 }, { last, -1 }, {})
  api.nvim_buf_clear_namespace(buf, folds.namespace, first, last + 1)
  if is_fold then
    local width = #api.nvim_buf_get_lines(buf, last, last + 1, true)[1]
    api.nvim_buf_set_extmark(buf, folds.namespace, first, 0, { end_row = last, end_col = width })
  end
  if is_fold or #before > 0 then
    folds.update(buf, first, last)
  end
end

--- Draws a table.
---@param buf integer
---@param first integer zero-based
---@param last integer inclusive
local function show(buf, first, last)
  api.nvim_buf_clear_namespace(buf, drawn, first, last + 2)
  local lines = api.nvim_buf_get_lines(buf, first, last + 1, true)
  local rows, widest = {}, 0 ---@type table<integer, tandem.Cell[]>, integer
  local natural, words = {}, {} ---@type integer[], integer[]
  for column in ipairs(spans(lines[2])) do
    natural[column], words[column] = 1, 1
  end
  for index, line in ipairs(lines) do
    widest = math.max(widest, vim.fn.strdisplaywidth(line))
    rows[index] = index ~= 2 and read(buf, first + index - 1, line) or nil
    for column in ipairs(natural) do
      local cell = rows[index] and rows[index][column]
      if cell then
        natural[column] = math.max(natural[column], cell.width)
        words[column] = math.max(words[column], cell.word)
      end
    end
  end
  local room = decor.width(buf) or math.huge
  local widths = fit(natural, words, room)
  local is_wide = math.max(widest, cells.width(rule_of(natural))) > room
  set_fold(buf, first, last, is_wide)
  if is_wide and not folds.is_closed(buf, first) then
    return
  end
  local shown = widths and {} or records(rows, #lines, room)
  for index in ipairs(widths and lines or {}) do
    vim.list_extend(shown, rows[index] and lines_of(rows[index], widths, lines[2]) or { rule_of(widths) })
  end
  if is_wide then
    put(buf, first, table.remove(shown, 1), room)
    -- What is added below the table comes below these lines, too.
    local options = { virt_lines = shown, virt_lines_above = true, right_gravity = false }
    api.nvim_buf_set_extmark(buf, drawn, last + 1, 0, options)
  else
    for index, pieces in ipairs(shown) do
      put(buf, first + index - 1, pieces, widest)
    end
  end
end

--- The tables of a buffer: their first and last row.
---@param buf integer
---@return { [1]: integer, [2]: integer }[]
local function all(buf)
  return vim.tbl_map(function(mark)
    return { mark[2], mark[4].end_row }
  end, api.nvim_buf_get_extmarks(buf, ranges, 0, -1, { details = true }))
end

--- Draws the tables of a buffer again, for a window of another width.
---@param buf integer
function M.redraw(buf)
  for _, range in ipairs(all(buf)) do
    show(buf, range[1], range[2])
  end
end

--- Shows the text of a table whose fold was opened, and draws one whose fold was closed, since there is no event for
--- that.
---@param buf integer
local function look_at_folds(buf)
  for _, range in ipairs(all(buf)) do
    local first = { range[1], 0 }
    local is_fold = api.nvim_buf_get_extmarks(buf, folds.namespace, first, first, {})[1] ~= nil
    local is_drawn = api.nvim_buf_get_extmarks(buf, drawn, first, first, {})[1] ~= nil
    if is_fold and is_drawn ~= folds.is_closed(buf, range[1]) then
      show(buf, range[1], range[2])
      vim.cmd.redraw()
    end
  end
end

--- Draws the tables among the rows of a buffer.
---@param buf integer
---@param first integer zero-based row of the first line
---@param lines string[]
---@param fences { first: integer, last: integer }[] zero-based code blocks
function M.draw(buf, first, lines, fences)
  api.nvim_buf_clear_namespace(buf, ranges, first, first + #lines)
  api.nvim_buf_clear_namespace(buf, drawn, first, first + #lines + 1)
  api.nvim_buf_clear_namespace(buf, folds.namespace, first, first + #lines)
  for _, found in ipairs(find(lines, fences)) do
    local top, bottom = first + found[1] - 1, first + found[2] - 1
    api.nvim_buf_set_extmark(buf, ranges, top, 0, { end_row = bottom, end_col = #lines[found[2]] })
    show(buf, top, bottom)
  end
end

api.nvim_create_autocmd('SafeState', {
  group = api.nvim_create_augroup('tandem.tables', {}),
  desc = 'tandem: redraw tables whose folds were opened or closed',
  callback = function()
    if vim.bo.filetype == 'tandem' then
      look_at_folds(api.nvim_get_current_buf())
    end
  end,
})

return M
