--- What the server sends as lines of text with highlights. Pure: no buffer, no window.
local M = {}

---@class tandem.LineMark
---@field row integer zero-based, within the lines
---@field highlight string the group of the whole line

---@class tandem.Rendered
---@field lines string[]
---@field marks tandem.LineMark[]
---@field detail string what stands behind the first line, dimmed
---@field fold boolean

M.max_diff_lines = 400

local diff = vim.text and vim.text.diff or vim.diff

---@param text string
---@return string[]
function M.split(text)
  text = text:gsub('\r\n?', '\n'):gsub('\n$', '')
  return vim.split(text, '\n', { plain = true })
end

---@param text string
---@return string ends with a newline, so that no hunk is about the end of the file
local function whole_lines(text)
  return text == '' and text or (text:gsub('\r\n?', '\n'):gsub('\n?$', '\n'))
end

---@class tandem.Diff
---@field lines string[] as in a unified diff, without the file names
---@field added integer
---@field removed integer

--- A unified diff with two lines of context.
---@param old? string
---@param new string
---@return tandem.Diff
function M.diff(old, new)
  local text = diff(whole_lines(old or ''), whole_lines(new), { result_type = 'unified', ctxlen = 2 }) --[[@as string]]
  local result = { lines = {}, added = 0, removed = 0 } ---@type tandem.Diff
  for line in vim.gsplit((text:gsub('\n$', '')), '\n', { plain = true }) do
    local sign = line:sub(1, 1)
    result.added = result.added + (sign == '+' and 1 or 0)
    result.removed = result.removed + (sign == '-' and 1 or 0)
    if line ~= '' and not (sign == '@' and #result.lines == 0) then
      result.lines[#result.lines + 1] = sign == '@' and '…' or line
    end
  end
  return result
end

local line_highlights = { ['+'] = 'TandemAdd', ['-'] = 'TandemDelete' }

--- A fence that no line of the content closes.
---@param lines string[]
---@return string
local function fence(lines)
  local longest = 2
  for _, line in ipairs(lines) do
    longest = math.max(longest, #(line:match('^%s*(`+)') or ''))
  end
  return ('`'):rep(longest + 1)
end

---@param out tandem.Rendered
---@param language string
---@param lines string[]
local function add_fenced(out, language, lines)
  local mark = fence(lines)
  out.lines[#out.lines + 1] = mark .. language
  for _, line in ipairs(lines) do
    if language == 'diff' and line_highlights[line:sub(1, 1)] then
      out.marks[#out.marks + 1] = { row = #out.lines, highlight = line_highlights[line:sub(1, 1)] }
    end
    out.lines[#out.lines + 1] = line
  end
  out.lines[#out.lines + 1] = mark
end

---@param lines string[]
---@param limit integer
---@return string[]
local function capped(lines, limit)
  if #lines <= limit then
    return lines
  end
  local kept = vim.list_slice(lines, 1, limit)
  kept[#kept + 1] = ('… %d more lines'):format(#lines - limit)
  return kept
end

---@param call tandem.ToolCall
---@return string
local function title(call)
  return (call.title or call.kind or 'tool'):gsub('%s+', ' ')
end

--- A tool call: a line, then its diffs (shown) or its output (folded, unless the call failed).
---@param call tandem.ToolCall
---@return tandem.Rendered
function M.tool(call)
  local out = { lines = { (title(call)) }, marks = {}, detail = '', fold = false } ---@type tandem.Rendered
  local added, removed, diffs, output = 0, 0, 0, 0
  for _, item in ipairs(call.content or {}) do
    if item.type == 'diff' then
      local hunks = M.diff(item.oldText, item.newText or '')
      added, removed, diffs = added + hunks.added, removed + hunks.removed, diffs + 1
      add_fenced(out, 'diff', capped(hunks.lines, M.max_diff_lines))
    elseif item.type == 'content' and item.content.type == 'text' and vim.trim(item.content.text) ~= '' then
      local lines = M.split(item.content.text)
      output = output + #lines
      add_fenced(out, '', lines)
    end
  end
  if diffs > 0 then
    out.detail = ('+%d −%d'):format(added, removed)
  elseif output > 0 then
    out.detail = output == 1 and '1 line' or output .. ' lines'
    out.fold = call.status ~= 'failed'
  end
  return out
end

local boxes = { pending = '- [ ] ', in_progress = '- [-] ', completed = '- [x] ' }
local plan_highlights = { in_progress = 'TandemRunning', completed = 'TandemDim' }

---@param entries tandem.PlanEntry[]
---@return tandem.Rendered
function M.plan(entries)
  local out = { lines = { 'Plan' }, marks = {}, detail = '', fold = false } ---@type tandem.Rendered
  local done = 0
  for _, entry in ipairs(entries) do
    done = done + (entry.status == 'completed' and 1 or 0)
    if plan_highlights[entry.status] then
      out.marks[#out.marks + 1] = { row = #out.lines, highlight = plan_highlights[entry.status] }
    end
    out.lines[#out.lines + 1] = (boxes[entry.status] or boxes.pending) .. entry.content:gsub('%s+', ' ')
  end
  out.detail = ('%d of %d done'):format(done, #entries)
  return out
end

return M
