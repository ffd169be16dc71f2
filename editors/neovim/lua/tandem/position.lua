--- Columns: Neovim counts bytes, LSP counts the units of the negotiated encoding.
local M = {}

--- The length of a text in the units of a position encoding.
---@param text string a line, or the start of one
---@param encoding string utf-8, utf-16 or utf-32
---@return integer
function M.units(text, encoding)
  if encoding == 'utf-8' then
    return #text
  elseif encoding == 'utf-32' then
    return vim.fn.strchars(text)
  end
  return vim.fn.strutf16len(text, true)
end

--- A column in the units of another encoding.
---@param line string
---@param column integer
---@param from string
---@param to string
---@return integer
function M.converted(line, column, from, to)
  local low, high = 0, vim.fn.strchars(line)
  while low < high do -- the first character that ends at or after the column
    local middle = math.floor((low + high) / 2)
    if M.units(vim.fn.strcharpart(line, 0, middle), from) < column then
      low = middle + 1
    else
      high = middle
    end
  end
  return M.units(vim.fn.strcharpart(line, 0, low), to)
end

--- Zero-based, the end exclusive.
---@param line integer
---@param character integer
---@param end_line integer
---@param end_character integer
---@return lsp.Range
function M.range(line, character, end_line, end_character)
  return {
    start = { line = line, character = character },
    ['end'] = { line = end_line, character = end_character },
  }
end

return M
