--- Renders what the server sends as lines of text with highlights. Pure: no buffer, no window.
local cells = require('tandem.cells')

local M = {}

---@class tandem.LineMark
---@field row integer zero-based, within the lines
---@field highlight string
---@field first? integer byte column; the whole line when absent
---@field last? integer
---@field status? wire.ToolCallStatus shown as a sign
---@field hidden? boolean

---@class tandem.Rendered
---@field lines string[]
---@field marks tandem.LineMark[]
---@field fold boolean|integer whether it folds into its first row; a number: without that many rows at its end
---@field width? integer cells of the first line, uncut, where it has to fit into one line of the window
---@field choices? table<integer, wire.PermissionOption> the answers of a request, by row

M.max_diff_lines = 400
M.min_diff_lines = 20
M.max_live_lines = 8
M.max_reason_lines = 4
M.max_failed_lines = 12
M.max_context_bytes = 400
M.min_title_width = 12

local diff = vim.text and vim.text.diff or vim.diff

---@param text string
---@return string[]
function M.split(text)
  text = text:gsub('\r\n?', '\n'):gsub('\n$', '')
  return vim.split(text, '\n', { plain = true })
end

--- The lines of a text, none of an empty one.
---@param text string
---@return string[]
function M.lines(text)
  return text == '' and {} or M.split(text)
end

---@param text string
---@return string ends with a newline, so that no hunk is about the end of the file
local function whole_lines(text)
  text = text:gsub('\r\n?', '\n')
  return (text == '' or vim.endswith(text, '\n')) and text or text .. '\n'
end

--- A line that does not change, truncated if it is too long to read. A line that changes is shown in full, because the
--- user decides about it.
---@param line string
---@return string
local function context_line(line)
  if #line <= M.max_context_bytes then
    return line
  end
  local kept = line:sub(1, M.max_context_bytes + vim.str_utf_end(line, M.max_context_bytes))
  return ('%s … %d bytes more'):format(kept, #line - #kept)
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
      result.lines[#result.lines + 1] = sign == '@' and '…' or sign == ' ' and context_line(line) or line
    end
  end
  return result
end

local line_highlights = { ['+'] = 'TandemAdd', ['-'] = 'TandemDelete' }

--- A fence that no line of the content closes.
---@param lines string[]
---@return string
function M.fence(lines)
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
  local mark = M.fence(lines)
  out.marks[#out.marks + 1] = { row = #out.lines, highlight = 'TandemDim', hidden = true }
  out.lines[#out.lines + 1] = mark .. language
  for _, line in ipairs(lines) do
    local highlight = language == 'diff' and line_highlights[line:sub(1, 1)] or 'TandemDim'
    if language ~= 'text' then
      out.marks[#out.marks + 1] = { row = #out.lines, highlight = highlight }
    end
    out.lines[#out.lines + 1] = line
  end
  out.marks[#out.marks + 1] = { row = #out.lines, highlight = 'TandemDim', hidden = true }
  out.lines[#out.lines + 1] = mark
end

--- A line made of pieces of text, each with its highlight.
---@param out tandem.Rendered
---@param pieces { [1]: string, [2]?: string }[]
local function add_line(out, pieces)
  local line = ''
  for _, piece in ipairs(pieces) do
    local first = #line
    line = line .. piece[1]
    if piece[2] then
      out.marks[#out.marks + 1] = { row = #out.lines, first = first, last = #line, highlight = piece[2] }
    end
  end
  out.lines[#out.lines + 1] = line
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

---@param lines string[]
---@param count integer
---@return string[]
local function last(lines, count)
  if #lines <= count then
    return lines
  end
  return vim.list_extend({ '…' }, vim.list_slice(lines, #lines - count + 1))
end

--- Whether the user did not allow a call, which its title shows.
---@param call wire.ToolCall
---@return boolean
local function is_rejected(call)
  return vim.tbl_get(call, '_meta', 'tandem/rejected') == true
end

--- The body of a tool call: its diffs and its output.
---@param call wire.ToolCall
---@param live boolean whether more output is to come: its last lines are shown
---@param asked boolean whether it is part of a permission request
---@return tandem.Rendered body
---@return { [1]: string, [2]?: string }[] summary what stands behind the title
local function tool_body(call, live, asked)
  local content, status = call.content or {}, call.status
  local body = { lines = {}, marks = {}, fold = false } ---@type tandem.Rendered
  local added, removed, diffs, output = 0, 0, 0, 0
  local files = #vim.tbl_filter(function(item)
    return item.type == 'diff'
  end, content)
  local room = M.max_diff_lines -- of all files: the last of many is found without scrolling past the whole of the first
  for _, item in ipairs(content) do
    if item.type == 'diff' then
      local hunks = M.diff(item.oldText, item.newText or '')
      added, removed, diffs = added + hunks.added, removed + hunks.removed, diffs + 1
      if files > 1 then
        local counts = { { ' +' .. hunks.added, 'TandemAdd' }, { ' ' }, { '−' .. hunks.removed, 'TandemDelete' } }
        add_line(body, vim.list_extend({ { vim.fn.fnamemodify(item.path, ':.'), 'TandemTool' } }, counts))
      end
      add_fenced(body, 'diff', capped(hunks.lines, math.max(room, M.min_diff_lines)))
      room = room - #hunks.lines
    elseif item.type == 'content' and item.content.type == 'text' and vim.trim(item.content.text) ~= '' and not is_rejected(call) then
      local lines = M.split(item.content.text)
      output = output + #lines
      add_fenced(body, asked and 'text' or '', live and last(lines, M.max_live_lines) or lines)
    end
  end
  if diffs > 0 then
    -- Of several calls, only the one that is asked for is open: its answers stay in view.
    body.fold = not asked and (status ~= 'failed' or output == 0)
    return body, { { '  ' }, { '+' .. added, 'TandemAdd' }, { ' ' }, { '−' .. removed, 'TandemDelete' } }
  elseif output > 0 and not asked then
    -- The reason why a command failed is shown; for other calls, a long reason is advice for the model.
    local is_seen = status == 'failed' and (call.kind == 'execute' or output <= M.max_reason_lines)
    -- For a question to the user, the answer is shown.
    body.fold = not live and not is_seen and call.kind ~= 'think'
    if is_seen and output > M.max_failed_lines then
      body.fold = M.max_failed_lines + 1 -- and the fence
    end
    return body, { { '  ' }, { output == 1 and '1 line' or output .. ' lines', 'TandemDim' } }
  end
  return body, {}
end

--- How a command ended or continues, if that is not as expected.
---@param call wire.ToolCall
---@param job? wire.Job as which its command goes on
---@return string?
local function outcome(call, job)
  if is_rejected(call) then
    return 'rejected'
  elseif job and job.state == 'stopped' then
    return 'stopped'
  end
  local code = vim.tbl_get(call, '_meta', 'tandem/exit', 'code') or job and job.exitCode
  if code and code ~= 0 then
    return 'exit ' .. code
  end
  local has_job = vim.tbl_get(call, '_meta', 'tandem/job') or vim.tbl_get(call, 'rawInput', 'background') == true
  return has_job and call.status == 'completed' and not code and 'in the background' or nil
end

local answer_keys = { reject_once = 'gr', allow_once = 'ga', allow_turn = 'g.', allow_always = 'gA' }

--- The keys that answer a request, with what they do, in the order of its answers.
---@param options wire.PermissionOption[]
---@return { key: string, name: string, option?: wire.PermissionOption }[]
function M.answers(options)
  local answers = require('tandem.permission').answers_of(options)
  local found, shown = {}, {} ---@type table[], table<string, true>
  for _, option in ipairs(options) do
    local is_answer = vim.list_contains(answers, option)
    local key = is_answer and answer_keys.allow_once or answer_keys[option.optionId] or answer_keys[option.kind]
    -- A key takes the first of its kind.
    if key and not shown[key] then
      shown[key] = true
      local name = is_answer and 'Choose an answer' or option.name
      found[#found + 1] = { key = key, name = name, option = not is_answer and option or nil }
    end
  end
  return found
end

---@param out tandem.Rendered
---@param options wire.PermissionOption[]
local function add_request(out, options)
  local answers = require('tandem.permission').answers_of(options)
  local allow = vim.iter(options):find(function(option)
    return option.kind == 'allow_once'
  end)
  add_line(out, { { #answers > 0 and 'Answer?' or (allow and allow.name or 'Allow') .. '?', 'TandemRequest' } })
  out.choices = {}
  for _, answer in ipairs(answers) do
    out.choices[#out.lines] = answer
    add_line(out, { { '- ' .. answer.name } })
  end
  for _, answer in ipairs(M.answers(options)) do
    out.choices[#out.lines] = answer.option
    add_line(out, { { ' ' .. answer.key .. ' ', 'TandemKey' }, { '  ' .. answer.name } })
  end
end

--- A tool call: its title, then its diffs (folded once they are settled) or its output (folded, unless the call failed),
--- then the request for permission.
---@param call wire.ToolCall
---@param options? wire.PermissionOption[] when it is being asked for
---@param width? integer cells of a line: a closed fold shows one, which must not hide what stands behind the title
---@param job? wire.Job as which its command goes on
---@return tandem.Rendered
function M.tool(call, options, width, job)
  local live = call.kind == 'execute' and call.status == 'in_progress'
  local body, summary = tool_body(call, live, options ~= nil)
  local title = (call.title or call.kind or 'tool'):gsub('%s+', ' ')
  local out = { lines = {}, marks = {}, fold = body.fold } ---@type tandem.Rendered
  local command = call.kind == 'execute' and vim.tbl_get(call, 'rawInput', 'command')
  local ended = outcome(call, job)
  if ended then
    table.insert(summary, 1, { '  ' .. ended, M.status(call, job) == 'failed' and 'TandemFailed' or 'TandemRunning' })
  end
  out.width = out.fold and cells.width(summary) + cells.width({ { title } }) or nil
  if ended and out.width and width and width < cells.width(summary) + M.min_title_width then
    summary = { summary[1] } -- how many lines there are matters less than the title
  end
  local shown = out.fold and width and cells.cut(title, width - cells.width(summary)) or title
  add_line(out, vim.list_extend({ { shown, 'TandemTool' } }, summary))
  if shown ~= title and type(command) == 'string' then
    add_fenced(out, 'sh', M.split(command)) -- the whole of it, for whoever opens the fold
  end
  local below = #out.lines
  vim.list_extend(out.lines, body.lines)
  for _, mark in ipairs(body.marks) do
    mark.row = mark.row + below
    out.marks[#out.marks + 1] = mark
  end
  if options then
    out.fold = false
    add_request(out, options)
  end
  return out
end

--- The status of a call as it is shown: a command that failed did not succeed, whatever the call did.
---@param call wire.ToolCall
---@param job? wire.Job as which its command goes on
---@return wire.ToolCallStatus
function M.status(call, job)
  if job and job.state ~= 'exited' then
    return job.state == 'running' and 'in_progress' or 'pending'
  end
  local code = vim.tbl_get(call, '_meta', 'tandem/exit', 'code') or job and job.exitCode
  return code and code ~= 0 and 'failed' or call.status or 'pending'
end

local plan_highlights = { in_progress = 'TandemRunning', completed = 'TandemDim' }

---@param entries wire.PlanEntry[]
---@return tandem.Rendered
function M.plan(entries)
  local out = { lines = {}, marks = {}, fold = false } ---@type tandem.Rendered
  local done = #vim.tbl_filter(function(entry)
    return entry.status == 'completed'
  end, entries)
  add_line(out, { { 'Plan', 'TandemTool' }, { '  ' }, { ('%d of %d done'):format(done, #entries), 'TandemDim' } })
  for _, entry in ipairs(entries) do
    out.marks[#out.marks + 1] = { row = #out.lines, highlight = plan_highlights[entry.status], status = entry.status }
    out.lines[#out.lines + 1] = '- ' .. entry.content:gsub('%s+', ' ')
  end
  return out
end

return M
