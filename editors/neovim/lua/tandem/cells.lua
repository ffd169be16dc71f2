--- Cells of the screen: how many a text takes, and what of it has room.
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

---@param text string
---@param room integer cells
---@return string text with `…` in place of what has no room
function M.cut(text, room)
  if vim.fn.strdisplaywidth(text) <= room then
    return text
  end
  while text ~= '' and vim.fn.strdisplaywidth(text) > room - 1 do
    text = vim.fn.strcharpart(text, 0, vim.fn.strchars(text) - 1)
  end
  return text .. '…'
end

--- The first of these parts, as many as have room, with dots between them.
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
