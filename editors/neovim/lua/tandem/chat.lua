--- The conversation as Markdown in a scratch buffer: what was asked, the answer as it streams, reasoning folded,
--- tool calls with their diffs, the plan, and the input at the end.
local Flow = require('tandem.flow')
local Input = require('tandem.input')
local Transcript = require('tandem.transcript')
local cells = require('tandem.cells')
local chats = require('tandem.chats')
local config = require('tandem.config')
local context = require('tandem.context')
local decor = require('tandem.decor')
local draft = require('tandem.draft')
local markdown = require('tandem.markdown')
local render = require('tandem.render')

local api = vim.api
local state_decor = api.nvim_create_namespace('tandem.state')
local cut_decor = api.nvim_create_namespace('tandem.cut')

local user_heading, agent_heading = '## You', '## tandem'

---@class tandem.DrawnTool
---@field block? tandem.Block absent while there is nothing to draw
---@field call wire.ToolCall
---@field width? integer cells of its first line, uncut
---@field room? integer cells of the window when it was drawn
---@field choices? table<integer, wire.PermissionOption> the answers that its rows name

---@class tandem.Prompt a prompt in the transcript
---@field block tandem.Block
---@field text string
---@field selection? tandem.Selection
---@field number? integer of its turn, where it is known

---@class tandem.Chat
---@field session tandem.Session
---@field buf? integer
---@field private text tandem.Transcript
---@field private tools table<string, tandem.DrawnTool> of the running turn, by id
---@field private drawn tandem.DrawnTool[] all that are in the transcript
---@field private prompts tandem.Prompt[] those of the turns
---@field private cut? tandem.Prompt from here on nothing is part of the conversation any more
---@field private flow? tandem.Flow the block that streams
---@field private plan? tandem.Block
---@field private request? tandem.Request the open permission request
---@field input tandem.Input
---@field private after_tool boolean
---@field private last_line? { message: string, block: tandem.Block } the last notice, not to be repeated
local Chat = {}
Chat.__index = Chat

local M = {}

---@param session tandem.Session
---@return tandem.Chat
function M.new(session)
  local chat = setmetatable({ session = session, tools = {}, drawn = {}, prompts = {}, after_tool = false }, Chat)
  chat.input = Input.new(chat)
  return chat
end

--- The transcript; in another buffer when the user deleted its own.
---@return tandem.Transcript
function Chat:transcript()
  if self.buf and api.nvim_buf_is_loaded(self.buf) then
    return self.text
  end
  if self.buf and api.nvim_buf_is_valid(self.buf) then
    api.nvim_buf_delete(self.buf, { force = true }) -- it was unloaded; the name is needed
  end
  self.buf = require('tandem.window').create_buffer(self.session.root)
  if self.text and self.text:move(self.buf) then
    Flow.highlight_loaded(self.text)
    return self.text
  end
  self.text = Transcript.new(self.buf, self:title(), user_heading)
  self.drawn, self.prompts, self.cut = {}, {}, nil
  self:forget()
  self:decorate_fixed()
  if chats.of_root(self.session.root)[1] == self.session then
    self.text:set_input(draft.load(self.session.root))
  end
  return self.text
end

--- Deletes the buffer: the conversation is over.
function Chat:delete()
  if self.buf and api.nvim_buf_is_valid(self.buf) then
    api.nvim_buf_delete(self.buf, { force = true })
  end
end

---@return string
function Chat:title()
  return '# ' .. vim.fs.basename(self.session.root)
end

function Chat:forget()
  self.tools, self.flow, self.plan, self.request, self.after_tool, self.last_line = {}, nil, nil, nil, false, nil
end

--- Clears the conversation; a draft in the input stays.
function Chat:clear()
  local written = self:transcript():input_text()
  self.text:reset(self:title(), user_heading)
  decor.clear(self.buf, 0, -1)
  self.drawn, self.prompts, self.cut = {}, {}, nil
  self:forget()
  self:decorate_fixed()
  self.text:set_input(written)
end

function Chat:decorate_fixed()
  decor.heading(self.buf, 0, vim.fs.basename(self.session.root), 'TandemTitle')
  self:show_state()
end

local hints = {
  idle = { '<CR> send' },
  running = { '<CR> queue', '<C-c> stop', 'g<CR> send now' },
}

--- The keys that answer a request, named like its answers.
---@param request tandem.Request
---@return string[]
local function request_keys(request)
  local names = {} ---@type table<string, string>
  for _, answer in ipairs(render.answers(request.options)) do
    names[answer.key] = answer.key .. ' ' .. answer.name:lower()
  end
  local in_chat = require('tandem.permission').in_chat(request.options)
  local sends = in_chat and '<CR> ' .. in_chat.name:lower() or ''
  return vim.iter({ names.ga or '', names.gr or '', sends, '<C-c> stop' }):filter(function(key)
    return key ~= ''
  end):totable()
end

--- The keys that are useful now. In insert mode, sending has its own key, and the others need <Esc> first.
---@private
---@return string[]
function Chat:keys()
  local keys = self.request and request_keys(self.request) or hints[self.session.state] or hints.running
  if api.nvim_get_current_buf() ~= self.buf or api.nvim_get_mode().mode:sub(1, 1) ~= 'i' then
    return keys
  end
  return vim.tbl_map(function(key)
    local sends = key:gsub('^<CR>', '<C-s>')
    return sends ~= key and sends or '<Esc>' .. key
  end, keys)
end

--- The queued messages, as lines above the input.
---@param waiting tandem.Message[]
---@param room number cells
---@return { [1]: string, [2]: string }[][]
local function waiting_lines(waiting, room)
  local lines = vim.tbl_map(function(message)
    local words = render.split(message.text)
    local first = words[1] .. (words[2] and ' …' or '')
    local how = message.joins and 'joining  ' or 'queued  '
    return { { how, 'TandemDim' }, { cells.cut(first, room - #how), 'TandemUser' } }
  end, waiting)
  return lines
end

--- Shows the keys after the input's heading, and above it what is pending: queued messages, changes to review.
function Chat:show_state()
  if not (self.buf and api.nvim_buf_is_loaded(self.buf)) then
    return
  end
  local room = decor.width(self.buf) or math.huge
  local lines = waiting_lines(self.session.turns and self.session.turns:waiting() or {}, room)
  local function add(count, command)
    local line = count .. ': ' .. command
    lines[#lines + 1] = { { vim.fn.strdisplaywidth(line) <= room and line or count, 'TandemDim' } }
  end
  local jobs = self.session.jobs and self.session.jobs:count()
  if jobs then
    add(jobs, ':Tandem jobs')
  end
  local changes = self.session.state == 'idle' and self.session.review and self.session.review:count() or ''
  if changes ~= '' then
    add(changes, ':Tandem review')
  end
  if #lines > 0 then
    lines[#lines + 1] = { { '', 'TandemDim' } }
  end
  local keys = cells.first(self:keys(), room - #'You   ')
  api.nvim_buf_clear_namespace(self.buf, state_decor, 0, -1)
  api.nvim_buf_set_extmark(self.buf, state_decor, self.text:input_row() - 1, 0, {
    virt_text = { { 'You   ', 'TandemUser' }, { keys, 'TandemDim' } },
    virt_text_pos = 'overlay',
    virt_lines = lines,
    virt_lines_above = true,
  })
  self.text:scroll()
end

---@param prompt string
---@param selection? tandem.Selection what is attached
---@param number? integer of the turn
function Chat:begin_turn(prompt, selection, number)
  self:transcript()
  self:remove_cut()
  local block = self:say(prompt, selection and context.label(selection))
  self.prompts[#self.prompts + 1] = { block = block, text = prompt, selection = selection, number = number }
  self:forget()
end

--- Marks everything from this turn on as no longer part of the conversation, which was restored to before it.
---@param from? integer the number of a turn
function Chat:show_cut(from)
  if not (self.buf and api.nvim_buf_is_loaded(self.buf)) then
    return
  end
  api.nvim_buf_clear_namespace(self.buf, cut_decor, 0, -1)
  self.cut = from and vim.iter(self.prompts):find(function(prompt)
    return prompt.number and prompt.number >= from
  end)
  if self.cut then
    api.nvim_buf_set_extmark(self.buf, cut_decor, (self.text:rows(self.cut.block)), 0, {
      end_row = self.text:input_row() - 2,
      hl_group = 'TandemCut',
      hl_eol = true,
      priority = 300,
      virt_lines = { -- which do not wrap
        { { 'No longer part of the session;', 'TandemNotice' } },
        { { ':Tandem undo restores it', 'TandemNotice' } },
      },
      virt_lines_above = true,
    })
  end
end

--- Removes the turns that were cut from the conversation.
function Chat:remove_cut()
  if not self.cut then
    return
  end
  local first = self.text:rows(self.cut.block)
  local function stays(item)
    return not item.block or self.text:rows(item.block) < first
  end
  self.drawn, self.prompts = vim.tbl_filter(stays, self.drawn), vim.tbl_filter(stays, self.prompts)
  api.nvim_buf_clear_namespace(self.buf, cut_decor, 0, -1)
  self.text:cut(self.cut.block)
  self.cut = nil
end

--- The prompt of the turn at a row; the last one below all turns.
---@param row? integer zero-based
---@return tandem.Prompt?
function Chat:prompt_at(row)
  local found ---@type tandem.Prompt?
  for _, prompt in ipairs(self.prompts) do
    if not row or (self.text:rows(prompt.block)) <= row then
      found = prompt
    end
  end
  return found
end

--- Scrolls to a turn, where it is shown.
---@param number? integer
function Chat:show_turn(number)
  local found = vim.iter(self.prompts):find(function(prompt)
    return number and prompt.number == number
  end)
  for _, win in ipairs(found and vim.fn.win_findbuf(self.buf) or {}) do
    api.nvim_win_set_cursor(win, { (self.text:rows(found.block)) + 1, 0 })
    api.nvim_win_call(win, function()
      vim.cmd('normal! zt')
    end)
  end
end

--- Opens the chat, if configured, and scrolls to its end, where the answer appears; never enters it.
function Chat:show()
  local text = self:transcript()
  if config.get().chat.auto_open then
    require('tandem.window').open(self.buf, false)
  end
  text:follow()
end

--- Adds the user's message; the answer goes below it.
---@param prompt string
---@param label? string what is attached
---@return tandem.Block
function Chat:say(prompt, label)
  local text = self:transcript()
  self:settle()
  local lines = vim.list_extend({ user_heading }, render.split(prompt))
  if label then
    lines[#lines + 1] = '`' .. label .. '`'
  end
  local block = text:add(lines)
  decor.heading(self.buf, (text:rows(block)), 'You', 'TandemUser')
  local heading = text:add({ agent_heading })
  decor.heading(self.buf, (text:rows(heading)), 'tandem', 'TandemAgent')
  self.plan, self.after_tool = nil, false
  return block
end

---@param failure? string the server's words
---@param stop_reason? string
function Chat:end_turn(failure, stop_reason)
  self:settle()
  self.request = nil
  for id, drawn in pairs(self.tools) do
    if drawn.call.status == 'pending' or drawn.call.status == 'in_progress' then
      self:tool({ toolCallId = id, status = 'failed' }) -- no further report about it will come
    end
  end
  if failure then
    self:line(failure, 'TandemFailed', config.get().icons.failed)
  elseif stop_reason ~= 'end_turn' then
    self:line(({
      cancelled = 'Stopped.',
      interrupted = 'Interrupted: tandem ended before the answer was complete.',
      error = 'This turn failed.',
      max_tokens = 'The answer was cut off at the token limit.',
      max_turn_requests = 'Paused: the turn reached its limit of requests.',
      refusal = 'The model refused to answer.',
    })[stop_reason] or ('Ended: ' .. tostring(stop_reason)), 'TandemDim')
  end
end

--- Adds a notice that is not part of the answer: a retry, a limit, a configuration error.
---@param message string
function Chat:notice(message)
  self:line(message, 'TandemNotice')
end

---@param message string
---@return string
local function without_numbers(message)
  return (message:gsub('%d+', ''))
end

---@param message string
---@param highlight string
---@param sign? string
function Chat:line(message, highlight, sign)
  local text = self:transcript()
  local last = self.last_line
  if last and message == last.message then
    return
  elseif last and text:is_last(last.block) and without_numbers(last.message) == without_numbers(message) then
    self.last_line = { message = message, block = last.block }
    return text:set(last.block, render.split(message), false) -- such as the next try of a request
  end
  self:settle()
  local block = text:add(render.split(message), { highlight = highlight })
  self.last_line = { message = message, block = block }
  if sign then
    decor.sign(self.buf, (text:rows(block)), sign, highlight)
  end
  self.after_tool = false
end

---@param kind 'answer'|'thought'
---@param delta string
function Chat:stream(kind, delta)
  local text = self:transcript()
  if not self.flow or self.flow.kind ~= kind then
    self:settle()
    self.flow, self.after_tool = Flow.new(text, kind, self.session.loading), false
  end
  self.flow:write(delta)
end

--- Ends the streaming block: something else follows.
function Chat:settle()
  if self.flow then
    self.flow:finish()
    self.flow = nil
  end
end

--- The conversation that was loaded is complete.
function Chat:loaded()
  self:settle()
  Flow.highlight_loaded(self:transcript())
end

---@param drawn tandem.DrawnTool
function Chat:draw_tool(drawn)
  local request = self.request
  local asked = request and request.call.toolCallId == drawn.call.toolCallId
  if drawn.call.kind == 'think' and drawn.call.status ~= 'failed' and not asked and not drawn.block then
    return self:settle() -- what it changes is drawn itself, such as the plan; what the model says next is another text
  elseif not drawn.block then
    self:settle()
    drawn.block = self.text:add({ '' }, { gap = not self.after_tool })
    self.after_tool = true
  end
  local job = self.session.jobs and self.session.jobs:of(drawn.call)
  drawn.room = decor.width(self.buf)
  local rendered = render.tool(drawn.call, asked and request.options or nil, drawn.room, job)
  rendered.marks[1].status = render.status(drawn.call, job)
  drawn.choices, drawn.width = rendered.choices, rendered.width
  decor.draw(self.buf, self.text, drawn.block, rendered)
end

--- Draws a tool call, or the changed parts of one.
---@param change wire.ToolCall only the fields that changed
function Chat:tool(change)
  self:transcript()
  local drawn = self.tools[change.toolCallId]
  if not drawn then
    drawn = { call = {} }
    self.drawn[#self.drawn + 1] = drawn
  end
  drawn.call = vim.tbl_extend('force', drawn.call, change)
  self.tools[change.toolCallId] = drawn
  self:draw_tool(drawn)
end

--- Redraws the calls whose commands run in the background: one began or ended.
function Chat:draw_jobs()
  if self.buf and api.nvim_buf_is_loaded(self.buf) then
    for _, drawn in ipairs(self.drawn) do
      if drawn.block and vim.tbl_get(drawn.call, '_meta', 'tandem/job') then
        self:draw_tool(drawn)
      end
    end
  end
end

--- Redraws what depends on the width of the window.
function Chat:fit()
  local room = decor.width(self.buf)
  for _, drawn in ipairs(room and self.drawn or {}) do
    local was = drawn.room or math.huge
    if drawn.width and was ~= room and drawn.width > math.min(was, room) then
      self:draw_tool(drawn)
    end
  end
  require('tandem.table').redraw(self.buf)
  self:show_state()
end

--- The call under a row, in any turn.
---@param row integer zero-based
---@return wire.ToolCall?
function Chat:call_at(row)
  local drawn = vim.iter(self.drawn):find(function(other)
    return self:covers(other.block, row)
  end)
  return drawn and drawn.call
end

--- The running command under a row, or the only one.
---@param row integer zero-based
---@return wire.ToolCall?
function Chat:running_command(row)
  local function runs(call)
    return call and call.kind == 'execute' and call.status == 'in_progress'
  end
  local call = self:call_at(row)
  local running = vim.tbl_filter(runs, vim.tbl_map(function(drawn)
    return drawn.call
  end, vim.tbl_values(self.tools)))
  return runs(call) and call or #running == 1 and running[1] or nil
end

--- The answer to the open request that a row names.
---@param row integer zero-based
---@return wire.PermissionOption?
function Chat:choice_at(row)
  local drawn = self.request and self.tools[self.request.call.toolCallId]
  local choices = drawn and drawn.choices or {}
  return drawn and choices[row - self.text:rows(drawn.block)]
end

---@param entries wire.PlanEntry[]
function Chat:draw_plan(entries)
  local text = self:transcript()
  local rendered = render.plan(entries)
  if not self.plan then
    self:settle()
    self.after_tool = false
    self.plan = text:add({ '' })
  end
  decor.draw(self.buf, self.text, self.plan, rendered)
end

---@type table<string, fun(chat: tandem.Chat, update: wire.SessionUpdate)>
local draw = {
  agent_message_chunk = function(chat, update)
    if vim.tbl_get(update, '_meta', 'tandem/finish') then
      return chat:notice(vim.trim(update.content.text))
    end
    chat:stream('answer', update.content.text or '')
  end,
  agent_thought_chunk = function(chat, update)
    chat:stream('thought', update.content.text or '')
  end,
  tool_call = Chat.tool,
  tool_call_update = Chat.tool,
  plan = function(chat, update)
    chat:draw_plan(update.entries)
  end,
  session_info_update = function(chat, update)
    local reason = vim.tbl_get(update, '_meta', 'tandem/stopped')
    if reason then
      chat:end_turn(nil, reason)
    end
  end,
}

--- Draws an update; unknown kinds are ignored, as the protocol requires.
---@param update wire.SessionUpdate
function Chat:update(update)
  local how = draw[update.sessionUpdate]
  if how then
    local is_text = how == draw.agent_message_chunk or how == draw.agent_thought_chunk
    if self.flow and not is_text and not self.session.loading then
      self.flow:flush() -- earlier text is shown first
    end
    how(self, update)
  end
end

---@param request tandem.Request
function Chat:ask_permission(request)
  self.request = request
  self:show_state()
  self:tool(request.call)
  local block = self.tools[request.call.toolCallId].block ---@cast block -nil
  require('tandem.approval').show(request, function()
    return select(2, self.text:rows(block))
  end)
end

---@param request tandem.Request
function Chat:permission_answered(request)
  if self.request == request then
    self.request = nil
  end
  require('tandem.approval').hide(request)
  self:tool({ toolCallId = request.call.toolCallId })
end

---@param block? tandem.Block
---@param row integer zero-based
---@return boolean
function Chat:covers(block, row)
  if not block then
    return false
  end
  local first, last = self.text:rows(block)
  return row >= first and row <= last
end

--- The location of the tool call under a row, in any turn.
---@param row integer zero-based
---@return tandem.Place?
function Chat:location(row)
  local call = self:call_at(row)
  if call then
    local diff = vim.iter(call.content or {}):find(function(item)
      return item.type == 'diff'
    end)
    return (call.locations or {})[1] or diff
  end
end

--- The code block that a row is in, as lines without its fences.
---@param row integer zero-based
---@return string[]?
function Chat:code_block(row)
  local text = self:transcript()
  local first, last = text:rows_at(row)
  local lines = api.nvim_buf_get_lines(text.buf, first, last + 1, false) -- a block that was cut off is open only to its end
  row = row - first
  local _, fences = markdown.scan(lines)
  for _, block in ipairs(fences) do
    if block.first <= row and row <= block.last then
      return vim.list_slice(lines, block.first + 2, block.open and block.last + 1 or block.last)
    end
  end
end

--- Whether a window of this tab page shows the end of the answer.
---@return boolean
function Chat:is_followed()
  return require('tandem.window').shows(self.buf, self:input_row() - 1)
end

--- The first row of the input.
---@return integer
function Chat:input_row()
  return self:transcript():input_row()
end

return M
