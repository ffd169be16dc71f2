--- Markdown tables, drawn over their text with aligned columns: the text stays what is yanked and searched.
local cells = require('tandem.cells')
local decor = require('tandem.decor')

local api = vim.api
local M = {}

---@alias tandem.Piece { [1]: string, [2]?: string } a text and its highlight

---@class tandem.Cell
---@field pieces tandem.Piece[]
---@field width integer

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
---@param namespace integer
---@param row integer zero-based
---@return table<integer, true> hidden
---@return table<integer, string> highlights
local function looks(buf, namespace, row)
  local hidden, highlights = {}, {}
  for _, mark in ipairs(api.nvim_buf_get_extmarks(buf, namespace, { row, 0 }, { row, -1 }, { details = true })) do
    local details = mark[4]
    for byte = mark[3] + 1, details.end_row == row and details.end_col or 0 do
      hidden[byte] = details.conceal == '' or hidden[byte]
      highlights[byte] = details.hl_group or highlights[byte]
    end
  end
  return hidden, highlights
end

---@param buf integer
---@param namespace integer
---@param row integer zero-based
---@param line string
---@return tandem.Cell[]
local function read(buf, namespace, row, line)
  local hidden, highlights = looks(buf, namespace, row)
  return vim.tbl_map(function(span)
    local cell = { pieces = {}, width = 0 } ---@type tandem.Cell
    for byte = span[1], span[2] do
      local piece = cell.pieces[#cell.pieces]
      local is_escape = line:sub(byte, byte + 1) == '\\|'
      if not hidden[byte] and not is_escape then
        if not piece or piece[2] ~= highlights[byte] then
          piece = { '', highlights[byte] }
          table.insert(cell.pieces, piece)
        end
        piece[1] = piece[1] .. line:sub(byte, byte)
      end
    end
    cell.width = cells.width(cell.pieces)
    return cell
  end, spans(line))
end

---@param row tandem.Cell[]
---@param widths integer[]
---@param rule string the line that says how columns are aligned
---@return tandem.Piece[]
local function row_of(row, widths, rule)
  local out, aligned = {}, spans(rule) ---@type tandem.Piece[]
  for column, width in ipairs(widths) do
    local cell = row[column] or { pieces = {}, width = 0 }
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

---@param widths integer[]
---@return tandem.Piece[]
local function rule_of(widths)
  local parts = vim.tbl_map(function(width)
    return ('─'):rep(width + 2)
  end, widths)
  return { { '├' .. table.concat(parts, '┼') .. '┤', 'TandemRule' } }
end

--- Draws the tables among the rows of a buffer, but not one that has no room: a line that wraps cannot be drawn over.
---@param buf integer
---@param namespace integer that has the highlights of the rows
---@param first integer zero-based row of the first line
---@param lines string[]
---@param fences { first: integer, last: integer }[] zero-based code blocks
function M.draw(buf, namespace, first, lines, fences)
  local room = decor.width(buf) or math.huge
  for _, found in ipairs(find(lines, fences)) do
    local rule = lines[found[1] + 1]
    local rows, widths = {}, {} ---@type table<integer, tandem.Cell[]>, integer[]
    for column in ipairs(spans(rule)) do
      widths[column] = 1
    end
    local widest = 0
    for index = found[1], found[2] do
      widest = math.max(widest, vim.fn.strdisplaywidth(lines[index]))
      if index ~= found[1] + 1 then
        rows[index] = read(buf, namespace, first + index - 1, lines[index])
        for column in ipairs(widths) do
          widths[column] = math.max(widths[column], rows[index][column] and rows[index][column].width or 0)
        end
      end
    end
    local drawn = vim.iter(vim.fn.range(found[1], found[2])):map(function(index)
      return rows[index] and row_of(rows[index], widths, rule) or rule_of(widths)
    end):totable()
    widest = math.max(widest, cells.width(drawn[1]))
    for offset, pieces in ipairs(widest <= room and drawn or {}) do
      local row = first + found[1] + offset - 2
      pieces[#pieces + 1] = { (' '):rep(widest - cells.width(pieces)) }
      api.nvim_buf_set_extmark(buf, namespace, row, 0, { virt_text = pieces, virt_text_pos = 'overlay', priority = 210 })
    end
  end
end

return M
