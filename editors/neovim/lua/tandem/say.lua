--- Messages to the user. Neovim's own vim.notify() stops the editor with "Press ENTER" when a message takes more than
--- the last line, so it gets what fits there (the chat has all of it); a plugin's replacement for it gets everything.

local is_builtin = require('tandem.builtin')
local cells = require('tandem.cells')

--- The first line of a text, as much of it as fits.
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
  level = level or vim.log.levels.INFO
  if not is_builtin(vim.notify) then
    return vim.notify(message, level)
  end
  if vim.o.cmdheight > 0 then
    return vim.notify(one_line(message, vim.v.echospace), level)
  end
  -- Without a message line, an error or a message after a command waits for a key, and the status line, which is
  -- redrawn when the state changes, hides earlier messages.
  vim.defer_fn(function()
    vim.notify(one_line(message, vim.v.echospace), math.min(level, vim.log.levels.WARN))
  end, 200)
end
