--- Messages to the user. Neovim's own vim.notify() stops the editor with "Press ENTER" when a message takes more than
--- the last line, so it gets what fits there (the chat has all of it); one that a plugin put there gets everything.

local is_builtin = require('tandem.builtin')
local cells = require('tandem.cells')

--- The first line of a text, as much of it as has room.
---@param text string
---@param room integer cells
---@return string
local function one_line(text, room)
  local line, more = vim.trim(text):match('^([^\n]*)(\n?)')
  return cells.cut(more == '' and line or line .. ' …', room)
end

---@param message string
---@param level? integer
return function(message, level)
  message = 'tandem: ' .. message
  vim.notify(is_builtin(vim.notify) and one_line(message, vim.v.echospace) or message, level or vim.log.levels.INFO)
end
