--- Marks the changes under review in the buffers: signs, and on request the old text above the new.
--- The extmarks move as the user types, so they hold the current position of each hunk.
local cells = require('tandem.cells')
local render = require('tandem.render')

local api = vim.api
local hunks = api.nvim_create_namespace('tandem.review')

--- The most rows that a virtual line takes.
local MAX_ROWS = 10

local M = {}

--- The buffer that has a file open.
---@param path string
---@return integer? bufnr
function M.loaded(path)
  local bufnr = vim.fn.bufnr('^' .. vim.fn.escape(path, '[]{}*?,\\^$') .. '$')
  return bufnr ~= -1 and api.nvim_buf_is_loaded(bufnr) and bufnr or nil
end

--- The width in cells of a buffer's narrowest window.
---@param bufnr integer
---@return number
local function room_of(bufnr)
  local room = math.huge
  for _, win in ipairs(vim.fn.win_findbuf(bufnr)) do
    local info = vim.fn.getwininfo(win)[1]
    room = math.min(room, info.width - info.textoff)
  end
  return room
end

--- Text as virtual lines. Neovim cuts and never scrolls them, so they wrap here.
---@param bufnr integer
---@param lines string[]
---@param highlight string
---@return table[]
function M.virtual(bufnr, lines, highlight)
  local tab, room, rows = (' '):rep(vim.bo[bufnr].tabstop), room_of(bufnr), {}
  for _, line in ipairs(lines) do
    for _, row in ipairs(cells.wrap(line:gsub('\t', tab), room, MAX_ROWS)) do
      rows[#rows + 1] = { { row .. (' '):rep(vim.o.columns - vim.fn.strdisplaywidth(row)), highlight } }
    end
  end
  return rows
end

--- Scrolls windows at the top of the buffer so that virtual lines above the first line are visible.
---@param bufnr integer
---@param count integer lines
local function reveal_above(bufnr, count)
  for _, win in ipairs(vim.fn.win_findbuf(bufnr)) do
    api.nvim_win_call(win, function()
      if vim.fn.line('w0') == 1 then
        vim.fn.winrestview({ topfill = count })
      end
    end)
  end
end

local placed = 0

--- Places a mark with its own number: a buffer can have marks of several chats, and a reopened one starts without any.
---@param bufnr integer
---@param row integer
---@param options vim.api.keyset.set_extmark
---@return integer mark
local function place(bufnr, row, options)
  placed = placed + 1
  options.id = placed
  return api.nvim_buf_set_extmark(bufnr, hunks, row, 0, options)
end

--- Marks a hunk at the position from the server.
---@param change tandem.Change
---@param bufnr integer
---@param open boolean
local function draw(change, bufnr, open)
  local count = api.nvim_buf_line_count(bufnr)
  local first = math.min(change.hunk.new.start - 1, count)
  local last = math.min(first + change.hunk.new.count, count)
  local removed, beyond = last == first, first == count
  local row = beyond and count - 1 or first
  local old = open and M.virtual(bufnr, render.lines(change.hunk.oldText), 'TandemReviewDelete') or nil
  change.mark = place(bufnr, row, {
    end_row = math.max(last, row),
    end_col = 0,
    hl_group = open and not removed and 'TandemReviewAdd' or nil,
    hl_eol = true,
    virt_lines = old,
    virt_lines_above = not beyond,
    priority = 90,
  })
  if old and row == 0 and not beyond then
    reveal_above(bufnr, #old)
  end
  change.signs = {}
  for line = row, math.max(last - 1, row) do
    change.signs[#change.signs + 1] = place(bufnr, line, {
      sign_text = removed and (beyond and '▁' or '▔') or '▎',
      sign_hl_group = removed and 'TandemDelete' or 'TandemAdd',
      priority = 9,
    })
  end
end

--- Removes the marks of these changes from the buffers.
---@param changes tandem.Change[]
function M.clear(changes)
  for _, change in ipairs(changes) do
    local bufnr = change.mark and M.loaded(change.path)
    for _, mark in ipairs(bufnr and { change.mark, unpack(change.signs) } or {}) do
      api.nvim_buf_del_extmark(bufnr, hunks, mark)
    end
  end
end

--- Marks hunks in the buffers that are loaded.
---@param changes tandem.Change[]
---@param open boolean whether the old text is shown
function M.draw(changes, open)
  require('tandem.window').define_highlights()
  for _, change in ipairs(changes) do
    local bufnr = M.loaded(change.path)
    change.mark = nil
    if bufnr then
      draw(change, bufnr, open)
    end
  end
end

--- The current position of a hunk: its zero-based first row, and the row after its last.
---@param change tandem.Change
---@return integer first, integer last
function M.rows(change)
  local bufnr = change.mark and M.loaded(change.path)
  local found = bufnr and api.nvim_buf_get_extmark_by_id(bufnr, hunks, change.mark, { details = true }) or {}
  local first = found[1] or change.hunk.new.start - 1
  return first, math.max(found[3] and found[3].end_row or 0, first + math.min(change.hunk.new.count, 1))
end

return M
