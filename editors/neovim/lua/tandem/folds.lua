--- What folds in a chat: the ranges that 'foldexpr' reads.
local api = vim.api
local M = {}

M.namespace = api.nvim_create_namespace('tandem.folds')

--- The level of a line for 'foldexpr'.
---@param buf integer
---@param row integer zero-based
---@return string
function M.level(buf, row)
  local found = api.nvim_buf_get_extmarks(buf, M.namespace, { row, 0 }, { row, -1 }, { overlap = true, limit = 1 })[1]
  if not found then
    return '0'
  end
  return found[2] == row and '>1' or '1'
end

--- Whether Neovim does not evaluate 'foldexpr' when text changes.
---@return boolean
function M.are_late()
  return vim.fn.mode():find('^[iR]') ~= nil
end

--- Evaluates 'foldexpr' for some rows. In insert mode Neovim does this for no window, not even when the mode ends; a
--- command run from there is not in that mode.
---@param buf integer
---@param first integer zero-based
---@param last integer inclusive
function M.update(buf, first, last)
  local command = vim.keycode('<Cmd>lua vim._foldupdate(vim.api.nvim_get_current_win(), %d, %d)<CR>')
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    if M.are_late() then
      api.nvim_win_call(win, function()
        vim.cmd.normal({ command:format(first, last + 1), bang = true })
      end)
    else
      vim._foldupdate(win, first, last + 1)
    end
  end
end

--- Whether a row is in a closed fold, where the buffer is shown.
---@param buf integer
---@param row integer zero-based
---@return boolean
function M.is_closed(buf, row)
  local win = vim.fn.win_findbuf(buf)[1]
  return not win or api.nvim_win_call(win, function()
    return vim.fn.foldclosed(row + 1) ~= -1
  end)
end

return M
