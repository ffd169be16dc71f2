--- Shows in its buffer what an edit will do before it is allowed: removed lines are marked, added lines follow as
--- virtual lines. The text is not touched.
local marks = require('tandem.marks')
local render = require('tandem.render')

local api = vim.api
local namespace = api.nvim_create_namespace('tandem.preview')
local diff = vim.text and vim.text.diff or vim.diff

local M = {}

--- Finds where the lines are in a buffer: of a large file, a diff shows only a part.
---@param bufnr integer
---@param wanted string[]
---@return integer? row zero-based; nil when they are not there, or more than once
local function find(bufnr, wanted)
  local lines = api.nvim_buf_get_lines(bufnr, 0, -1, false)
  local found ---@type integer?
  for row = 0, #lines - #wanted do
    local index = 1
    while index <= #wanted and lines[row + index] == wanted[index] do
      index = index + 1
    end
    if index > #wanted then
      if found then
        return nil
      end
      found = row
    end
  end
  return found
end

---@class tandem.PreviewHunk
---@field row integer zero-based; with a count of 0 the row that the lines come before
---@field count integer rows that go
---@field lines string[] that come

--- The hunks that turn some lines into others.
---@param from string[]
---@param to string[]
---@return tandem.PreviewHunk[]
function M.hunks(from, to)
  local function joined(lines)
    return #lines == 0 and '' or table.concat(lines, '\n') .. '\n'
  end
  local found = diff(joined(from), joined(to), { result_type = 'indices' })
  return vim.tbl_map(function(hunk)
    local first, count, start, added = unpack(hunk)
    local row = count == 0 and first or first - 1
    return { row = row, count = count, lines = vim.list_slice(to, start, start + added - 1) }
  end, found --[[@as integer[][] ]])
end

--- The priority of the highlight for removed rows: below the syntax, whose colors stay readable on a background. If the
--- color scheme has no background for it, such as the default, only the text's color shows it, so it goes above the
--- syntax and semantic tokens.
---@return integer priority
local function removed_priority()
  local group = api.nvim_get_hl(0, { name = 'TandemReviewDelete', link = false })
  local background = vim.o.termguicolors and group.bg or not vim.o.termguicolors and group.ctermbg
  return (background or group.reverse) and 95 or 150
end

--- Shows a hunk: removed rows are marked, added lines are virtual.
---@param bufnr integer
---@param space integer namespace
---@param hunk tandem.PreviewHunk
---@return integer mark over the rows that go, or before which the lines come
function M.draw(bufnr, space, hunk)
  local virtual_lines = #hunk.lines > 0 and marks.virtual(bufnr, hunk.lines, 'TandemReviewAdd') or nil
  local mark = api.nvim_buf_set_extmark(bufnr, space, hunk.row, 0, {
    end_row = hunk.row + hunk.count,
    hl_group = hunk.count > 0 and 'TandemReviewDelete' or nil,
    hl_eol = true,
    virt_lines = hunk.count == 0 and virtual_lines or nil,
    virt_lines_above = true,
    priority = removed_priority(),
    strict = false,
  })
  if hunk.count > 0 and virtual_lines then
    local below = { virt_lines = virtual_lines, strict = false }
    api.nvim_buf_set_extmark(bufnr, space, hunk.row + hunk.count - 1, 0, below)
  end
  return mark
end

--- Shows a change in a buffer.
---@param bufnr integer
---@param old string
---@param new string
function M.show(bufnr, old, new)
  local from = render.split(old)
  local top = find(bufnr, from)
  for _, hunk in ipairs(top and M.hunks(from, render.split(new)) or {}) do
    hunk.row = hunk.row + top
    M.draw(bufnr, namespace, hunk)
  end
end

---@param bufnr integer
function M.clear(bufnr)
  if api.nvim_buf_is_valid(bufnr) then
    api.nvim_buf_clear_namespace(bufnr, namespace, 0, -1)
  end
end

--- Shows what a tool call is going to change, in the buffers that are open.
---@param call wire.ToolCall
---@return fun() clear
function M.show_call(call)
  require('tandem.window').define_highlights()
  local shown = {} ---@type integer[]
  for _, item in ipairs(call.content or {}) do
    local bufnr = item.type == 'diff' and item.oldText and marks.loaded(item.path)
    if bufnr then
      M.show(bufnr, item.oldText, item.newText or '')
      shown[#shown + 1] = bufnr
    end
  end
  return function()
    vim.iter(shown):each(M.clear)
  end
end

return M
