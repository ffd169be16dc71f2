--- An edit in place: the model's replacement grows next to the lines it replaces, and is applied hunk by hunk when
--- accepted.
--- Invariant: the buffer's text changes only by an acceptance, in one undo step.
local client = require('tandem.client')
local marks = require('tandem.marks')
local position = require('tandem.position')
local preview = require('tandem.preview')
local render = require('tandem.render')
local say = require('tandem.say')

local api = vim.api
local namespace = api.nvim_create_namespace('tandem.inline')
local hints = api.nvim_create_namespace('tandem.inline.hint')
local rows = api.nvim_create_namespace('tandem.inline.rows')

---@class tandem.InlineHunk
---@field mark integer
---@field old string[]
---@field new string[]
---@field before string? the line that lines which are only added follow

---@class tandem.Inline
---@field bufnr integer
---@field first integer zero-based row
---@field old string[]
---@field text string the replacement so far
---@field hunks? tandem.InlineHunk[] when it is complete
---@field connection? vim.lsp.Client
---@field request? integer
---@field tick? integer the buffer's changedtick after what was accepted last
---@field hidden table<string, table> the user's maps of the buffer that ours stand for, by key

local M = {}

---@type table<integer, tandem.Inline> by buffer
local running = {}

---@param inline tandem.Inline
---@param words string
local function show_hint(inline, words)
  local is_first = inline.first == 0
  -- Beside a long line it would hide its end. Above the first line there is no room.
  api.nvim_buf_set_extmark(inline.bufnr, hints, inline.first, 0, {
    id = 1,
    virt_text = is_first and { { '  ' .. words, 'TandemDim' } } or nil,
    virt_text_pos = 'eol',
    virt_lines = not is_first and marks.virtual(inline.bufnr, { words }, 'TandemDim') or nil,
    virt_lines_above = true,
    strict = false,
  })
end

--- The replacement so far; the lines that have not arrived count as unchanged.
---@param inline tandem.Inline
---@return string[]
local function so_far(inline)
  local new = render.lines(inline.text)
  if not vim.endswith(inline.text, '\n') then
    table.remove(new) -- it may go on
  end
  return vim.list_extend(new, vim.list_slice(inline.old, #new + 1))
end

--- Where one of the selected lines is now; the mark after the last one counts, too.
---@param inline tandem.Inline
---@param index integer zero-based
---@return integer? row nil when the buffer was read anew
local function now_at(inline, index)
  return api.nvim_buf_get_extmark_by_id(inline.bufnr, rows, index + 1, {})[1]
end

--- Draws what turns the selected lines into others, where those lines are now.
---@param inline tandem.Inline
---@param new string[]
---@return tandem.InlineHunk[]
local function draw(inline, new)
  inline.first = now_at(inline, 0) or inline.first
  api.nvim_buf_clear_namespace(inline.bufnr, namespace, 0, -1)
  local drawn = {} ---@type tandem.InlineHunk[]
  for _, hunk in ipairs(preview.hunks(inline.old, new)) do
    local old = vim.list_slice(inline.old, hunk.row + 1, hunk.row + hunk.count)
    local before = hunk.count == 0 and inline.old[hunk.row] or nil
    hunk.row = now_at(inline, hunk.row) or inline.first + hunk.row
    local mark = preview.draw(inline.bufnr, namespace, hunk)
    drawn[#drawn + 1] = { mark = mark, old = old, new = hunk.lines, before = before }
  end
  return drawn
end

--- Scrolls the window until it shows the whole change, or starts with it. If the cursor is elsewhere, the window stays.
---@param inline tandem.Inline
local function reveal(inline)
  local row, last = api.nvim_win_get_cursor(0)[1] - 1, inline.first + #inline.old
  if api.nvim_get_current_buf() ~= inline.bufnr or row < inline.first or row > last then
    return
  end
  local view = vim.fn.winsaveview()
  -- Virtual lines below a row belong to the next one.
  local lines = { start_row = view.topline - 1, end_row = last < api.nvim_buf_line_count(0) and last or nil }
  while lines.start_row < inline.first - 1 and api.nvim_win_text_height(0, lines).all > vim.fn.winheight(0) do
    lines.start_row = lines.start_row + 1
    vim.fn.winrestview({ topline = lines.start_row + 1, topfill = 0, skipcol = 0 })
  end
end

---@param inline tandem.Inline
local function finish(inline)
  running[inline.bufnr] = nil
  if not api.nvim_buf_is_loaded(inline.bufnr) then
    return
  end
  for _, space in ipairs({ namespace, hints, rows }) do
    api.nvim_buf_clear_namespace(inline.bufnr, space, 0, -1)
  end
  for key, map in pairs(inline.hidden) do
    pcall(vim.keymap.del, 'n', key, { buffer = inline.bufnr })
    if map.buffer == 1 then
      api.nvim_buf_call(inline.bufnr, function()
        vim.fn.mapset('n', false, map)
      end)
    end
  end
end

---@param inline tandem.Inline
---@param hunk tandem.InlineHunk
---@return integer? row nil when its lines are not what they were
local function row_of(inline, hunk)
  local row = api.nvim_buf_get_extmark_by_id(inline.bufnr, namespace, hunk.mark, {})[1]
  if not row then
    return nil
  end
  local expected = hunk.before and { hunk.before } or hunk.old
  local first = hunk.before and row - 1 or row
  local now = first >= 0 and api.nvim_buf_get_lines(inline.bufnr, first, first + #expected, false)
  return vim.deep_equal(now, expected) and row or nil
end

---@param inline tandem.Inline
---@param hunk tandem.InlineHunk
local function drop(inline, hunk)
  inline.hunks = vim.tbl_filter(function(other)
    return other ~= hunk
  end, inline.hunks)
end

---@param count integer
local function report_lost(count)
  if count > 0 then
    say(('%d change%s not made: you edited these lines'):format(count, count == 1 and '' or 's'), vim.log.levels.WARN)
  end
end

--- Applies hunks; everything accepted without typing in between is one undo step.
---@param inline tandem.Inline
---@param hunks tandem.InlineHunk[]
local function accept(inline, hunks)
  local lost = 0
  for _, hunk in ipairs(hunks) do
    local row = row_of(inline, hunk)
    if row then
      if inline.tick == api.nvim_buf_get_changedtick(inline.bufnr) then
        vim.cmd('silent! undojoin')
      end
      api.nvim_buf_set_lines(inline.bufnr, row, row + #hunk.old, false, hunk.new)
      inline.tick = api.nvim_buf_get_changedtick(inline.bufnr)
    else
      lost = lost + 1
    end
    drop(inline, hunk)
  end
  report_lost(lost)
end

--- Redraws the open hunks at their current positions; those whose lines were edited are dropped.
---@param inline tandem.Inline
local function redraw(inline)
  local open = vim.tbl_map(function(hunk)
    return { hunk = hunk, row = row_of(inline, hunk) }
  end, inline.hunks)
  api.nvim_buf_clear_namespace(inline.bufnr, namespace, 0, -1)
  inline.hunks = {}
  for _, at in ipairs(open) do
    if at.row then
      local shown = { row = at.row, count = #at.hunk.old, lines = at.hunk.new }
      at.hunk.mark = preview.draw(inline.bufnr, namespace, shown)
      table.insert(inline.hunks, at.hunk)
    end
  end
  report_lost(#open - #inline.hunks)
  if #inline.hunks == 0 then
    return finish(inline)
  end
  inline.first = row_of(inline, inline.hunks[1]) or inline.first
  show_hint(inline, 'ga keep · gr reject · gA keep all · <Esc> reject all')
  reveal(inline)
end

api.nvim_create_autocmd('WinResized', {
  group = api.nvim_create_augroup('tandem.inline', {}),
  desc = 'tandem: wrap an edit in place for the width its windows have now',
  callback = vim.schedule_wrap(function()
    for _, inline in pairs(running) do
      if inline.hunks and api.nvim_buf_is_loaded(inline.bufnr) then
        redraw(inline)
      end
    end
  end),
})

--- The hunk at the cursor, else the next one.
---@param inline tandem.Inline
---@return tandem.InlineHunk
local function current(inline)
  local row = api.nvim_win_get_cursor(0)[1] - 1
  local at_or_after = vim.iter(inline.hunks):find(function(hunk)
    local first = row_of(inline, hunk)
    return first and row <= first + math.max(#hunk.old, 1) - 1
  end)
  return at_or_after or inline.hunks[#inline.hunks]
end

---@param inline tandem.Inline
local function cancel(inline)
  if inline.request and not inline.hunks then
    client.cancel(inline.connection, inline.request)
  end
  finish(inline)
end

---@param inline tandem.Inline
local function set_keys(inline)
  local function map(key, desc, does)
    inline.hidden[key] = api.nvim_buf_call(inline.bufnr, function()
      return vim.fn.maparg(key, 'n', false, true)
    end)
    vim.keymap.set('n', key, does, { buffer = inline.bufnr, nowait = true, desc = 'tandem: ' .. desc })
  end
  map('<Esc>', 'reject the edit', function()
    cancel(inline)
  end)
  map('ga', 'keep the change', function()
    if inline.hunks then
      accept(inline, { current(inline) })
      redraw(inline)
    end
  end)
  map('gA', 'keep all changes', function()
    if inline.hunks then
      accept(inline, vim.list_slice(inline.hunks))
      finish(inline)
    end
  end)
  map('gr', 'reject the change', function()
    if inline.hunks then
      drop(inline, current(inline))
      redraw(inline)
    end
  end)
end

--- Adds the next part of a replacement.
---@param params { id: any, text: string }
function M.on_update(params)
  for _, inline in pairs(running) do
    if inline.request == params.id and not inline.hunks and api.nvim_buf_is_loaded(inline.bufnr) then
      inline.text = params.text
      draw(inline, so_far(inline))
      show_hint(inline, 'writing · <Esc> stop')
      reveal(inline)
    end
  end
end

--- Reports why an edit failed: the first line as a message, all of it in the chat.
---@param bufnr integer
---@param why string
local function failed(bufnr, why)
  local chat = require('tandem.chats').get(client.root(bufnr)).chat
  chat:show()
  chat:line(why, 'TandemFailed')
  say(why, vim.log.levels.ERROR)
end

--- The server ended: what it did not finish writing will not come. What is complete can still be kept.
---@param id integer of the client
---@param why string
function M.on_server_exit(id, why)
  for bufnr, inline in pairs(running) do
    if inline.connection.id == id and not inline.hunks then
      finish(inline)
      if api.nvim_buf_is_loaded(bufnr) then -- it may have been wiped out meanwhile
        failed(bufnr, why)
      end
    end
  end
end

---@param inline tandem.Inline
---@param err? lsp.ResponseError
---@param result? { text: string }
local function answered(inline, err, result)
  if running[inline.bufnr] ~= inline or not api.nvim_buf_is_loaded(inline.bufnr) then
    return -- it was cancelled
  elseif err then
    finish(inline)
    return failed(inline.bufnr, err.message)
  end
  inline.text = result.text
  inline.hunks = draw(inline, render.lines(inline.text))
  if #inline.hunks == 0 then
    say('The model suggested no changes')
  end
  redraw(inline)
end

--- Requests a rewrite of the selected lines and shows it as it arrives.
---@param bufnr integer
---@param selection tandem.Selection
---@param instruction string
function M.start(bufnr, selection, instruction)
  local before = running[bufnr]
  if not vim.bo[bufnr].modifiable then
    return say(("%s cannot be edited: 'modifiable' is off"):format(selection.name), vim.log.levels.WARN)
  elseif before then
    cancel(before)
  end
  local first, last = selection.first - 1, selection.last
  local inline = { bufnr = bufnr, first = first, text = '', hidden = {} } ---@type tandem.Inline
  inline.old = api.nvim_buf_get_lines(bufnr, first, last, false)
  client.ensure(client.root(bufnr), function(connection, problem)
    if not connection then
      return failed(bufnr, problem)
    elseif not vim.lsp.buf_is_attached(bufnr, connection.id) then
      return say('Only files in the workspace can be edited in place')
    end
    require('tandem.window').define_highlights()
    running[bufnr], inline.connection = inline, connection
    for index = 0, #inline.old do
      api.nvim_buf_set_extmark(bufnr, rows, first + index, 0, { id = index + 1, strict = false })
    end
    set_keys(inline)
    show_hint(inline, 'asking · <Esc> stop')
    local again = before and before.first == first and before.text ~= '' and before.text or nil
    inline.request = client.request(connection, '_tandem/inline', {
      textDocument = { uri = vim.uri_from_bufnr(bufnr) },
      range = position.range(first, 0, last, 0),
      instruction = instruction,
      previous = again,
    }, function(err, result)
      answered(inline, err, result)
    end)
  end)
end

return M
