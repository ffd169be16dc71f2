--- The keys of a window in a float, which needs no help tags.
local api = vim.api
local M = {}

---@class tandem.Key
---@field mode string|string[]
---@field lhs string
---@field desc string

--- One line per action, in order, with the first of the keys for it.
---@param keys tandem.Key[]
---@return string[]
local function lines_of(keys)
  local lines, by_desc = {}, {} ---@type string[], table<string, true>
  for _, key in ipairs(keys) do
    local what = key.desc .. (key.mode == 'i' and ' (insert mode)' or '')
    if not by_desc[what] then
      lines[#lines + 1] = (' %-8s %s '):format(key.lhs, what)
      by_desc[what] = true
    end
  end
  return lines
end

--- Shows what keys do; any of the usual keys closes it.
---@param keys tandem.Key[]
---@param title? string default: those of the chat
function M.show(keys, title)
  local lines = lines_of(keys)
  local shown = api.nvim_create_buf(false, true)
  api.nvim_buf_set_lines(shown, 0, -1, false, lines)
  vim.bo[shown].modifiable, vim.bo[shown].bufhidden = false, 'wipe'
  title = (' tandem: keys of %s '):format(title or 'the chat')
  local width = vim.fn.max(vim.tbl_map(vim.fn.strdisplaywidth, vim.list_extend({ title }, lines)))
  local win = api.nvim_open_win(shown, true, {
    relative = 'editor',
    row = math.max(0, math.floor((vim.o.lines - #lines) / 2) - 1),
    col = math.max(0, math.floor((vim.o.columns - width) / 2)),
    width = math.min(width, vim.o.columns - 4),
    height = math.min(#lines, vim.o.lines - 4),
    style = 'minimal',
    border = 'rounded',
    title = title,
  })
  for _, key in ipairs({ 'q', '<Esc>', '<CR>', 'g?' }) do
    vim.keymap.set('n', key, function()
      pcall(api.nvim_win_close, win, true)
    end, { buffer = shown, nowait = true })
  end
  api.nvim_create_autocmd('WinLeave', {
    buffer = shown,
    once = true,
    callback = function()
      pcall(api.nvim_win_close, win, true)
    end,
  })
end

return M
