--- What an edit is going to do, shown in its buffer before it is allowed: lines that go are marked, lines that come stand
--- below them as virtual lines. The text is not touched.
local marks = require('tandem.marks')

local api = vim.api
local namespace = api.nvim_create_namespace('tandem.preview')
local diff = vim.text and vim.text.diff or vim.diff

local M = {}

---@param text string
---@return string[]
local function lines_of(text)
  return vim.split((text:gsub('\r\n?', '\n'):gsub('\n$', '')), '\n', { plain = true })
end

--- Where lines stand in a buffer: what is shown of a large file is a part of it.
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

---@param bufnr integer
---@param text string
---@return table[] virtual lines
local function virtual(bufnr, text)
  local tab = (' '):rep(vim.bo[bufnr].tabstop)
  return vim.tbl_map(function(line)
    line = line:gsub('\t', tab)
    return { { line .. (' '):rep(vim.o.columns - vim.fn.strdisplaywidth(line)), 'TandemReviewAdd' } }
  end, lines_of(text))
end

--- Shows a change in a buffer.
---@param bufnr integer
---@param old string
---@param new string
function M.show(bufnr, old, new)
  local from, to = lines_of(old), lines_of(new)
  local top = find(bufnr, from)
  if not top then
    return
  end
  local hunks = diff(table.concat(from, '\n') .. '\n', table.concat(to, '\n') .. '\n', { result_type = 'indices' })
  for _, hunk in ipairs(hunks --[[@as integer[][] ]]) do
    local first, count, start, added = unpack(hunk)
    local row = top + (count == 0 and first or first - 1)
    if count > 0 then
      api.nvim_buf_set_extmark(bufnr, namespace, row, 0, {
        end_row = row + count,
        hl_group = 'TandemReviewDelete',
        hl_eol = true,
        priority = 95,
        strict = false,
      })
    end
    if added > 0 then
      local below = row + math.max(count, 1) - 1
      local above = count == 0 and row == 0
      api.nvim_buf_set_extmark(bufnr, namespace, count == 0 and math.max(row - 1, 0) or below, 0, {
        virt_lines = virtual(bufnr, table.concat(vim.list_slice(to, start, start + added - 1), '\n')),
        virt_lines_above = above,
        strict = false,
      })
    end
  end
end

---@param bufnr integer
function M.clear(bufnr)
  if api.nvim_buf_is_valid(bufnr) then
    api.nvim_buf_clear_namespace(bufnr, namespace, 0, -1)
  end
end

--- Shows what a tool call is going to change, in the buffers that are open.
---@param call tandem.ToolCall
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
