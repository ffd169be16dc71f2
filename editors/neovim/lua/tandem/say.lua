--- Messages to the user. Neovim's own vim.notify() stops the editor with "Press ENTER" when a message takes more than
--- the last line, so it gets what fits there (the chat has all of it); one that a plugin put there gets everything.

local is_builtin = require('tandem.builtin')

--- The first line of a text, cut to a number of cells.
---@param text string
---@param cells integer
---@return string
local function one_line(text, cells)
  local line = vim.split(vim.trim(text), '\n', { plain = true })[1]
  local cut = line ~= vim.trim(text)
  while vim.fn.strdisplaywidth(line) > cells - (cut and 2 or 0) do
    line, cut = vim.fn.strcharpart(line, 0, vim.fn.strchars(line) - 1), true
  end
  return cut and line .. ' …' or line
end

---@param message string
---@param level? integer
return function(message, level)
  message = 'tandem: ' .. message
  vim.notify(is_builtin(vim.notify) and one_line(message, vim.v.echospace) or message, level or vim.log.levels.INFO)
end
