--- The keys of the chat in a float, which needs no help tags.
local api = vim.api
local M = {}

---@param buf integer
---@return string[]
local function lines_of(buf)
  local lines, seen = {}, {} ---@type string[], table<string, boolean>
  for _, mode in ipairs({ 'n', 'i' }) do
    for _, map in ipairs(api.nvim_buf_get_keymap(buf, mode)) do
      local what = (map.desc or ''):match('^tandem: (.*)$')
      if what and not seen[mode .. what] then
        seen[mode .. what] = true
        local key = vim.fn.keytrans(map.lhsraw or map.lhs):gsub('<lt>', '<')
        lines[#lines + 1] = (' %-8s %s%s '):format(key, what, mode == 'i' and ' (insert mode)' or '')
      end
    end
  end
  table.sort(lines)
  return lines
end

--- Shows what the keys of a buffer do; any of the usual keys closes it.
---@param buf integer
function M.show(buf)
  local lines = lines_of(buf)
  local shown = api.nvim_create_buf(false, true)
  api.nvim_buf_set_lines(shown, 0, -1, false, lines)
  vim.bo[shown].modifiable, vim.bo[shown].bufhidden = false, 'wipe'
  local width = vim.fn.max(vim.tbl_map(vim.fn.strdisplaywidth, lines))
  local win = api.nvim_open_win(shown, true, {
    relative = 'editor',
    row = math.max(0, math.floor((vim.o.lines - #lines) / 2) - 1),
    col = math.max(0, math.floor((vim.o.columns - width) / 2)),
    width = math.min(width, vim.o.columns - 4),
    height = math.min(#lines, vim.o.lines - 4),
    style = 'minimal',
    border = 'rounded',
    title = ' tandem: keys of the chat ',
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
