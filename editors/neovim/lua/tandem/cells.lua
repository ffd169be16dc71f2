--- Cells of the screen: how many a text takes, and how much of it fits.
local M = {}

---@param pieces { [1]: string }[]
---@return integer cells
function M.width(pieces)
  local width = 0
  for _, piece in ipairs(pieces) do
    width = width + vim.fn.strdisplaywidth(piece[1])
  end
  return width
end

--- The first characters of a text, as many as fit.
---@param text string
---@param room number cells
---@return string
local function start(text, room)
  text = vim.fn.strcharpart(text, 0, room) -- each takes a cell
  while text ~= '' and vim.fn.strdisplaywidth(text) > room do
    text = vim.fn.strcharpart(text, 0, vim.fn.strchars(text) - 1)
  end
  return text
end

---@param text string
---@param room number cells
---@return string text with `…` in place of what has no room
function M.cut(text, room)
  if vim.fn.strdisplaywidth(text) <= room then
    return text
  end
  return start(text, room - 1) .. '…'
end

--- A text in rows of at most `room` cells each; the last of `most` rows ends with `…`.
---@param text string without tabs
---@param room number cells
---@param most integer rows
---@return string[]
function M.wrap(text, room, most)
  local rows = {} ---@type string[]
  while #rows + 1 < most and vim.fn.strdisplaywidth(text) > room do
    local row = start(text, room)
    rows[#rows + 1] = row ~= '' and row or vim.fn.strcharpart(text, 0, 1) -- else it would never end
    text = text:sub(#rows[#rows] + 1)
  end
  rows[#rows + 1] = M.cut(text, room)
  return rows
end

--- The first of these parts, as many as fit, with dots between them.
---@param parts string[]
---@param room number cells
---@return string
function M.first(parts, room)
  local line = ''
  for index, part in ipairs(parts) do
    local longer = index == 1 and part or line .. ' · ' .. part
    if vim.fn.strdisplaywidth(longer) > room then
      break
    end
    line = longer
  end
  return line
end

return M
