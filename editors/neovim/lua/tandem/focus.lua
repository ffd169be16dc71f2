--- `_tandem/didFocus`: tells the server which file, position and lines the user is looking at. Cheap: sent when the
--- cursor rests or the buffer changes, never twice the same, never while typing.
local client = require('tandem.client')
local position = require('tandem.position')

local api = vim.api
local M = {}

local delay_ms = 100
local timer = nil ---@type uv.uv_timer_t?
local last = nil ---@type table? what was sent last, and to which client

--- The cursor, as an empty range; the lines of the last visual selection while the cursor is where that left it.
---@param win integer
---@param bufnr integer
---@param encoding string
---@return lsp.Range
local function selection(win, bufnr, encoding)
  local row, column = unpack(api.nvim_win_get_cursor(win))
  local first, last = api.nvim_buf_get_mark(bufnr, '<'), api.nvim_buf_get_mark(bufnr, '>')
  local is_there = vim.iter({ first, last }):any(function(mark)
    return mark[1] == row and (mark[2] == column or last[2] == vim.v.maxcol) -- whole lines
  end)
  if first[1] > 0 and is_there and not vim.deep_equal(first, last) then
    return position.range(first[1] - 1, 0, last[1], 0)
  end
  local line = api.nvim_buf_get_lines(bufnr, row - 1, row, false)[1] or ''
  local character = position.units(line:sub(1, column), encoding)
  return position.range(row - 1, character, row - 1, character)
end

---@param win integer
---@return lsp.Range
local function visible(win)
  return position.range(vim.fn.line('w0', win) - 1, 0, vim.fn.line('w$', win), 0)
end

--- The window the user works in: the current one, or the one before when this one shows no file (the chat).
---@return integer win
---@return string? root of its file
local function focused()
  local root
  for _, win in ipairs({ api.nvim_get_current_win(), vim.fn.win_getid(vim.fn.winnr('#')) }) do
    root = win ~= 0 and client.attachable(api.nvim_win_get_buf(win)) or nil
    if root then
      return win, root
    end
  end
  return api.nvim_get_current_win(), nil
end

--- Sends the focus now, if its buffer belongs to a running server.
function M.send()
  local win, root = focused()
  local bufnr = api.nvim_win_get_buf(win)
  local running = root and client.running(root)
  if not running or not vim.lsp.buf_is_attached(bufnr, running.id) then
    return
  end
  local params = {
    textDocument = { uri = vim.uri_from_bufnr(bufnr) },
    selection = selection(win, bufnr, running.offset_encoding),
    visibleRange = visible(win),
  }
  local message = { client = running.id, params = params }
  if not vim.deep_equal(last, message) then
    last = message
    client.notify(running, '_tandem/didFocus', params)
  end
end

---@param group integer augroup
function M.watch(group)
  timer = timer or assert(vim.uv.new_timer())
  api.nvim_create_autocmd({ 'CursorHold', 'BufEnter' }, {
    group = group,
    desc = 'tandem: tell the server what the user is looking at',
    callback = function()
      timer:start(delay_ms, 0, vim.schedule_wrap(M.send))
    end,
  })
end

return M
