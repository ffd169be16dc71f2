-- What needs no server: nvim --headless -u NONE -l editors/neovim/tests/unit.lua
local folder = vim.fs.dirname(vim.fs.normalize(vim.uv.fs_realpath(arg[0])))
local plugin = vim.fs.dirname(folder)
vim.opt.runtimepath:prepend(plugin)
vim.cmd.runtime('plugin/tandem.lua')
vim.o.swapfile, vim.o.showmode = false, false

local t = dofile(folder .. '/harness.lua')
local api = vim.api
local apply = require('tandem.apply').apply
local command = require('tandem.command')
local config = require('tandem.config')
local context = require('tandem.context')
local permission = require('tandem.permission')
local position = require('tandem.position')
local render = require('tandem.render')
local Transcript = require('tandem.transcript')
local Turns = require('tandem.turns')

local neovims_notify = vim.notify
local notified = {} ---@type string[]
vim.notify = function(message)
  notified[#notified + 1] = message
end

---@param lines string[]
---@return integer buf
local function file(lines)
  local path = vim.fn.tempname() .. '.txt'
  vim.fn.writefile(lines, path)
  vim.cmd.edit(path)
  return api.nvim_get_current_buf()
end

---@param buf integer
---@return string
local function text_of(buf)
  return table.concat(api.nvim_buf_get_lines(buf, 0, -1, false), '\n')
end

-- configuration

t.test('no configuration is the default configuration', function()
  local resolved, problems = config.resolve(nil)
  t.equal(resolved, config.defaults)
  t.equal(problems, {})
end)

t.test('given settings replace the defaults, also deep ones', function()
  local resolved, problems = config.resolve({ chat = { size = 80 }, init_options = { model = 'a/b' } })
  t.equal(problems, {})
  t.equal(resolved.chat, { position = 'right', size = 80, auto_open = true })
  t.equal(resolved.init_options.model, 'a/b')
end)

for problem, given in pairs({
  ['.permision is not a setting (did you mean permission?)'] = { permision = 'chat' },
  ['.zzz is not a setting; see :help tandem-config'] = { zzz = 1 },
  ['.cmd must be a list of strings that is not empty, not "tandem lsp"'] = { cmd = 'tandem lsp' },
  ['.chat.position must be one of right, left, bottom, top, float, tab, not "up"'] = { chat = { position = 'up' } },
  ['.chat.sise is not a setting (did you mean size?)'] = { chat = { sise = 3 } },
  ['.icons must be a table, not 3'] = { icons = 3 },
  [' must be a table, not "x"'] = 'x',
}) do
  t.test('config: ' .. problem, function()
    local resolved, problems = config.resolve(given)
    t.equal(problems, { 'vim.g.tandem' .. problem })
    t.equal(resolved, config.defaults)
  end)
end

t.test('setup() takes the same options, beside those that are set already', function()
  local before = vim.g.tandem
  vim.g.tandem = { env = { A = 'b' } }
  require('tandem').setup({ chat = { size = 80 } })
  require('tandem').setup()
  t.equal(vim.g.tandem, { env = { A = 'b' }, chat = { size = 80 } })
  vim.g.tandem = before
end)

-- columns

for name, case in pairs({
  ascii = { 'abc', 3, 3, 3 },
  umlaut = { 'é', 2, 1, 1 },
  emoji = { '😀x', 5, 3, 2 },
  combining = { 'e\u{301}', 3, 2, 2 },
  empty = { '', 0, 0, 0 },
}) do
  t.test('units: ' .. name, function()
    t.equal(position.units(case[1], 'utf-8'), case[2])
    t.equal(position.units(case[1], 'utf-16'), case[3])
    t.equal(position.units(case[1], 'utf-32'), case[4])
  end)
end

-- what goes along with a question

t.test('a line range is the unsaved text of the buffer', function()
  local buf = file({ 'one', 'two', 'three' })
  api.nvim_buf_set_lines(buf, 1, 2, false, { 'TWO' })
  local chosen = context.range(1, 2)
  t.equal({ chosen.text, chosen.first, chosen.last }, { 'one\nTWO', 1, 2 })
  t.equal(chosen.uri, vim.uri_from_bufnr(buf))
end)

t.test('a characterwise selection is cut at characters, not bytes', function()
  file({ 'aé😀b', 'ünd' })
  vim.cmd('normal! 1G0lvjh\27')
  t.equal(context.range(1, 2).text, 'é😀b\nü')
end)

t.test('a range that is not the last selection means whole lines', function()
  file({ 'abc', 'def', 'ghi' })
  vim.cmd('normal! 1G0vl\27')
  t.equal(context.range(2, 3).text, 'def\nghi')
end)

t.test('a blockwise selection is a block', function()
  file({ 'abc', 'def' })
  vim.cmd('normal! 1G0l\22j\27')
  t.equal(context.range(1, 2).text, 'b\ne')
end)

t.test('the content blocks carry the question, the place and the text', function()
  local chosen = { uri = 'file:///a/b.rs', name = 'b.rs', first = 3, last = 7, text = 'x' }
  t.equal(context.label(chosen), 'b.rs:3-7')
  t.equal(context.blocks('why?', chosen), {
    { type = 'text', text = 'why?' },
    { type = 'resource', resource = { uri = 'file:///a/b.rs#L3-L7', mimeType = 'text/plain', text = 'x' } },
  })
  t.equal(#context.blocks('why?', nil), 1)
end)

t.test('a whole file is only named, a buffer without a file is sent', function()
  local buf = file({ 'abc' })
  local whole = context.whole(buf)
  t.equal(context.blocks('why?', whole)[2], { type = 'resource_link', uri = whole.uri, name = whole.name })
  t.equal(context.label(whole), whole.name)
  vim.cmd.enew()
  api.nvim_buf_set_lines(0, 0, -1, false, { 'no name' })
  t.equal(context.whole(api.nvim_get_current_buf()).text, 'no name')
  vim.bo.buftype = 'nofile'
  vim.cmd.file('tandem proj')
  t.equal({ context.lines(0, 1, 1).uri:match('^%a+'), context.lines(0, 1, 1).name }, { 'untitled', 'tandem proj' })
  vim.cmd.bwipeout({ bang = true })
end)

-- permission

t.test("a question of the model's is answered by a choice, and by nothing else", function()
  local options = {
    { optionId = 'answer_0', name = 'SQLite', kind = 'allow_once' },
    { optionId = 'answer_1', name = 'PostgreSQL', kind = 'allow_once' },
    { optionId = 'reject_once', name = 'No Answer', kind = 'reject_once' },
  }
  local rendered = render.tool({ title = 'Which database?', kind = 'think' }, permission.sorted(options))
  t.equal(vim.list_slice(rendered.lines, 2), {
    'Answer?',
    '- SQLite',
    '- PostgreSQL',
    ' gr   No Answer',
    ' ga   Choose an answer',
  })
  local session = { on_question = function() end, on_answered = function() end }
  local outcome
  coroutine.wrap(function()
    outcome = permission.ask(session, { toolCall = { title = 'Which database?' }, options = options })
  end)()
  local offered
  local select = vim.ui.select
  vim.ui.select = function(items, _, choose)
    offered = items
    choose(nil)
  end
  t.equal(permission.answer('allow_once', 'allow_always'), nil)
  t.equal({ #offered, outcome }, { 2 }, 'no choice is no answer')
  vim.ui.select = function(items, _, choose)
    choose(items[2])
  end
  permission.answer('allow_once', 'allow_always')
  vim.ui.select = select
  t.equal(outcome.outcome.optionId, 'answer_1')
end)

t.test('the safe choice comes first', function()
  local function option(kind)
    return { optionId = kind, name = kind, kind = kind }
  end
  local sorted = permission.sorted({ option('allow_always'), option('allow_once'), option('reject_once') })
  t.equal(sorted[1].kind, 'reject_once')
  t.equal(sorted[2].kind, 'allow_once')
  local project = { optionId = 'project', name = 'project', kind = 'allow_always' }
  sorted = permission.sorted({ option('allow_once'), option('allow_always'), project })
  t.equal(sorted[3].optionId, 'project') -- what the server named first comes first
end)

t.test('a replaced vim.notify is told from Neovim\'s own', function()
  local is_builtin = require('tandem.builtin')
  t.equal(is_builtin(neovims_notify), true)
  t.equal(is_builtin(vim.notify), false)
end)

-- rendering

t.test('a diff has signs, two lines of context and counts', function()
  local diff = render.diff('a\nb\nc\nd\ne\n', 'a\nb\nX\nd\ne\n')
  t.equal(diff, { lines = { ' a', ' b', '-c', '+X', ' d', ' e' }, added = 1, removed = 1 })
end)

t.test('distant hunks are separated, line ends do not matter', function()
  local old = table.concat({ '1', '2', '3', '4', '5', '6', '7', '8', '9' }, '\r\n')
  local new = table.concat({ 'x', '2', '3', '4', '5', '6', '7', '8', 'y' }, '\n')
  t.equal(render.diff(old, new).lines, { '-1', '+x', ' 2', ' 3', '…', ' 7', ' 8', '-9', '+y' })
end)

t.test('the name of the workspace gives way to the state', function()
  local fit = require('tandem.status').fit
  t.equal({ fit('greeter', 20) }, { ' tandem ', 'greeter' })
  t.equal({ fit('größer', 12) }, { ' tandem ', 'grö…' })
  t.equal({ fit('greeter', 9) }, { ' tandem ', '' })
  t.equal({ fit('greeter', 3) }, { '', '' })
end)

t.test('a long line is cut where it does not change, and shown whole where it does', function()
  local long = ('é'):rep(1000)
  local cut = render.diff(long .. '\na\n', long .. '\n' .. long .. '\n').lines
  t.equal({ #cut, cut[1]:match('… %d+ bytes more$'), cut[3] }, { 3, '… 1600 bytes more', '+' .. long })
  t.equal(vim.fn.strtrans(cut[1]), cut[1], 'no character is cut')
end)

t.test('a new file is all additions', function()
  t.equal(render.diff(nil, 'a\nb'), { lines = { '+a', '+b' }, added = 2, removed = 0 })
end)

t.test('an edit shows its diff in a fence that its text cannot close', function()
  local rendered = render.tool({
    toolCallId = '1',
    title = 'Edit a.md',
    content = { { type = 'diff', path = '/a.md', oldText = '```\n', newText = '````\n' } },
  })
  t.equal(rendered.lines, { 'Edit a.md  +1 −1', '```diff', '-```', '+````', '```' })
  t.equal(rendered.fold, false)
end)

t.test('a closed fold shows how much is in it, however long the command is', function()
  local content = { { type = 'content', content = { type = 'text', text = 'a\nb' } } }
  local call = { toolCallId = '1', title = ('wörd '):rep(30), status = 'completed', content = content }
  local line = render.tool(call, nil, 40).lines[1]
  t.equal(vim.fn.strdisplaywidth(line) <= 40, true, line)
  t.contains(line, '…  2 lines')
  t.equal(render.tool({ toolCallId = '1', title = 'ls', status = 'completed', content = content }, nil, 40).lines[1], 'ls  2 lines')
end)

t.test('a diff is shown until it is settled, then it folds', function()
  local call = { toolCallId = '1', title = 'Edit a', content = { { type = 'diff', path = '/a', newText = 'x\n' } } }
  for status, folds in pairs({ pending = false, in_progress = false, completed = true, failed = true }) do
    call.status = status
    t.equal(render.tool(call).fold, folds, status)
  end
  call.status = 'failed'
  table.insert(call.content, { type = 'content', content = { type = 'text', text = 'not found' } })
  t.equal(render.tool(call).fold, false, 'why it failed is shown')
end)

t.test('the output of a call folds, of a failed one it does not', function()
  local call = { toolCallId = '1', title = 'Read\na.txt', status = 'completed' }
  call.content = { { type = 'content', content = { type = 'text', text = '```\nx' } } }
  local rendered = render.tool(call)
  t.equal(rendered.lines, { 'Read a.txt  2 lines', '````', '```', 'x', '````' })
  t.equal(rendered.fold, true)
  call.status = 'failed'
  t.equal(render.tool(call).fold, false)
end)

t.test('a command that runs shows the last lines of its output, unfolded', function()
  local lines = vim.fn.range(1, 30)
  local content = { { type = 'content', content = { type = 'text', text = table.concat(lines, '\n') } } }
  local call = { toolCallId = '1', title = 'make', kind = 'execute', status = 'in_progress', content = content }
  local rendered = render.tool(call)
  t.equal(rendered.fold, false)
  t.equal(vim.list_slice(rendered.lines, 2, 4), { '```', '…', '23' })
  t.equal(rendered.lines[#rendered.lines - 1], '30')
  call.status = 'completed'
  t.equal({ render.tool(call).fold, #render.tool(call).lines }, { true, 33 })
end)

t.test('a question shows the keys of its answers', function()
  local rendered = render.tool({ toolCallId = '1', title = 'Edit a' }, {
    { optionId = 'n', name = 'Reject', kind = 'reject_once' },
    { optionId = 'y', name = 'Allow', kind = 'allow_once' },
  })
  t.equal(rendered.lines, { 'Edit a', 'Allow?', ' gr   Reject', ' ga   Allow' })
end)

t.test('a long diff is capped', function()
  local new = ('x\n'):rep(render.max_diff_lines + 7)
  local content = { { type = 'diff', path = '/a', newText = new } }
  local rendered = render.tool({ toolCallId = '1', title = 'Write a', content = content })
  t.equal(rendered.lines[#rendered.lines - 1], '… 7 more lines')
  t.contains(rendered.lines[1], '+407')
end)

t.test('a plan counts what is done', function()
  local rendered = render.plan({
    { content = 'read', status = 'completed' },
    { content = 'write', status = 'pending' },
  })
  t.equal(rendered.lines, { 'Plan  1 of 2 done', '- read', '- write' })
end)

-- applying edits

---@param buf integer
---@param version integer?
---@param ... lsp.TextEdit
local function change(buf, version, ...)
  local document = { uri = vim.uri_from_bufnr(buf), version = version }
  return { edit = { documentChanges = { { textDocument = document, edits = { ... } } } } }
end

---@param buf integer
---@return integer version as Neovim's language client counts it
local function version_of(buf)
  vim.lsp.util.buf_versions[buf] = api.nvim_buf_get_changedtick(buf)
  return vim.lsp.util.buf_versions[buf]
end

t.test('an edit for the current version is applied', function()
  local buf = file({ 'a😀b' })
  local edit = { range = position.range(0, 3, 0, 4), newText = 'B' }
  t.equal(apply(change(buf, version_of(buf), edit), 'utf-16', 1), { applied = true })
  t.equal(text_of(buf), 'a😀B')
end)

t.test('a stale edit is refused with the reason and changes nothing', function()
  local buf = file({ 'abc' })
  local version = version_of(buf)
  local result = apply(change(buf, version - 1, { range = position.range(0, 0, 0, 3), newText = 'x' }), 'utf-8', 1)
  t.equal(result.applied, false)
  t.contains(result.failureReason, 'changed meanwhile')
  t.equal(text_of(buf), 'abc')
end)

t.test('one stale document stops the whole edit', function()
  local first, second = file({ 'one' }), file({ 'two' })
  local edit = { range = position.range(0, 0, 0, 3), newText = 'x' }
  local params = change(first, version_of(first), edit)
  local stale = change(second, version_of(second) - 1, edit).edit.documentChanges[1]
  table.insert(params.edit.documentChanges, stale)
  t.equal(apply(params, 'utf-8', 1).applied, false)
  t.equal(text_of(first) .. text_of(second), 'onetwo')
end)

t.test('a buffer that cannot be modified refuses', function()
  local buf = file({ 'abc' })
  local version = version_of(buf)
  vim.bo.modifiable = false
  local result = apply(change(buf, version, { range = position.range(0, 0, 0, 3), newText = 'x' }), 'utf-8', 1)
  t.equal(result.applied, false)
  t.contains(result.failureReason, 'modifiable')
  vim.bo.modifiable = true
end)

t.test('text inserted after the last line leaves no empty line', function()
  local buf = file({ 'a', 'é' })
  apply(change(buf, version_of(buf), { range = position.range(2, 0, 2, 0), newText = 'new\n' }), 'utf-16', 1)
  t.equal(text_of(buf), 'a\né\nnew')
  local empty = file({})
  apply(change(empty, version_of(empty), { range = position.range(1, 0, 1, 0), newText = 'x\ny\n' }), 'utf-16', 1)
  t.equal(text_of(empty), 'x\ny')
end)

t.test('edits of one turn are undone together', function()
  local buf = file({ 'a' })
  for _, word in ipairs({ 'x', 'y', 'z' }) do
    apply(change(buf, version_of(buf), { range = position.range(0, 0, 0, 0), newText = word }), 'utf-8', 1)
  end
  t.equal(text_of(buf), 'zyxa')
  vim.cmd('silent undo')
  t.equal(text_of(buf), 'a')
end)

t.test('edits of two turns are undone one by one', function()
  local buf = file({ 'a' })
  apply(change(buf, version_of(buf), { range = position.range(0, 0, 0, 0), newText = 'x' }), 'utf-8', 1)
  apply(change(buf, version_of(buf), { range = position.range(0, 0, 0, 0), newText = 'y' }), 'utf-8', 2)
  vim.cmd('silent undo')
  t.equal(text_of(buf), 'xa')
end)

t.test('what the user typed is not undone with an edit', function()
  local buf = file({ 'a' })
  vim.keymap.set('i', '<F5>', function()
    apply(change(buf, version_of(buf), { range = position.range(0, 0, 0, 0), newText = 'AGENT ' }), 'utf-8', 7)
  end)
  api.nvim_feedkeys(vim.keycode('A typed<F5> on<Esc>'), 'tx', false)
  vim.keymap.del('i', '<F5>')
  local steps = { text_of(buf) }
  for index = 2, 4 do
    vim.cmd('silent undo')
    steps[index] = text_of(buf)
  end
  t.equal(steps, { 'AGENT a typed on', 'AGENT a typed', 'a typed', 'a' })
end)

-- the transcript

---@return tandem.Transcript
local function transcript()
  local buf = api.nvim_create_buf(false, true)
  return Transcript.new(buf, '# title', '## You')
end

t.test('blocks grow and change above the input without touching each other', function()
  local text = transcript()
  local first = text:add({ 'one' })
  local second = text:add({ 'two' }, { gap = false })
  text:append(first, ' more\nlines')
  text:set(second, { '2a', '2b' })
  text:append(second, '!')
  t.equal(text_of(text.buf), '# title\n\none more\nlines\n2a\n2b!\n\n## You\n')
  text:set(second, { '' })
  text:append(first, '.')
  t.equal(text_of(text.buf), '# title\n\none more\nlines.\n\n\n## You\n')
end)

t.test('the input is what stands under the last heading', function()
  local text = transcript()
  text:add({ 'answer' })
  text:set_input('question\nwith two lines')
  text:add({ 'more' })
  t.equal(text:input_text(), 'question\nwith two lines')
  text:set_input('')
  t.equal(text:input_text(), '')
end)

t.test('folds cover a block and nothing after it', function()
  local text = transcript()
  local thought = text:add({ '> Thinking' }, { fold = true })
  text:append(thought, '\n> a\n> b')
  text:add({ 'an error', 'of two lines' }, { highlight = 'ErrorMsg' })
  local levels = {}
  for row = 0, api.nvim_buf_line_count(text.buf) - 1 do
    levels[#levels + 1] = Transcript.fold_level(text.buf, row)
  end
  t.equal(table.concat(levels, ' '), '0 0 >1 1 1 0 0 0 0 0 0')
end)

t.test('a window follows the end only while its cursor is in the input', function()
  local text = transcript()
  vim.cmd.new()
  local win = api.nvim_get_current_win()
  api.nvim_win_set_height(win, 5)
  api.nvim_win_set_buf(win, text.buf)
  api.nvim_win_set_cursor(win, { api.nvim_buf_line_count(text.buf), 0 })
  vim.cmd.wincmd('p')
  local block = text:add({ 'x' })
  text:append(block, ('\nline'):rep(30))
  t.equal(api.nvim_win_get_cursor(win)[1], api.nvim_buf_line_count(text.buf))
  t.equal(vim.fn.line('w$', win), api.nvim_buf_line_count(text.buf))
  api.nvim_win_set_cursor(win, { 3, 0 })
  local top = vim.fn.line('w0', win)
  text:append(block, ('\nline'):rep(30))
  t.equal({ api.nvim_win_get_cursor(win)[1], vim.fn.line('w0', win) }, { 3, top })
  api.nvim_win_close(win, true)
end)

t.test('a transcript that the user emptied can still be written', function()
  local text = transcript()
  local block = text:add({ 'one' })
  api.nvim_buf_set_lines(text.buf, 0, -1, false, {})
  text:append(block, 'two')
  text:set(block, { 'three' })
  text:add({ 'four' })
  text:set_input('five')
  t.contains(text_of(text.buf), 'four')
end)

-- the chat

---@param ... wire.SessionUpdate
---@return string
local function drawn(...)
  local chat = require('tandem.chat').new({ root = vim.fn.tempname(), state = 'running' })
  chat:transcript()
  for _, update in ipairs({ ... }) do
    chat:update(update)
  end
  chat:settle()
  local text = text_of(chat.buf)
  api.nvim_buf_delete(chat.buf, { force = true })
  return (text:gsub('^# [^\n]*\n', ''):gsub('\n\n## You\n$', ''))
end

---@param kind 'agent_message_chunk'|'agent_thought_chunk'
---@param text string
local function delta(kind, text)
  return { sessionUpdate = kind, content = { type = 'text', text = text } }
end

t.test('deltas make blocks without empty lines around them, however they are cut', function()
  local text = drawn(
    delta('agent_thought_chunk', '\n\nhm'),
    delta('agent_thought_chunk', '\n\nso\n'),
    delta('agent_thought_chunk', '\n'),
    delta('agent_message_chunk', '\n'),
    delta('agent_message_chunk', 'It is\r\n'),
    delta('agent_message_chunk', '\nthis.\n\n')
  )
  t.equal(text, '\n> Thinking\n> hm\n> \n> so\n\nIt is\n\nthis.')
end)

t.test('deltas are drawn with the next frame, and all of them before what follows', function()
  local chat = require('tandem.chat').new({ root = vim.fn.tempname(), state = 'running' })
  chat:transcript()
  local changes = 0
  api.nvim_buf_attach(chat.buf, false, {
    on_lines = function()
      changes = changes + 1
    end,
  })
  chat:update(delta('agent_message_chunk', 'first'))
  t.contains(text_of(chat.buf), 'first')
  local before = changes
  for _ = 1, 500 do
    chat:update(delta('agent_message_chunk', ' and'))
  end
  t.equal(changes - before <= 4, true, ('500 deltas made %d changes'):format(changes - before))
  chat:update({ sessionUpdate = 'tool_call', toolCallId = '1', title = 'Read a' })
  t.contains(text_of(chat.buf), ('first' .. (' and'):rep(500)) .. '\n\nRead a')
  chat:update(delta('agent_message_chunk', 'one'))
  chat:update(delta('agent_message_chunk', ' two'))
  t.wait('the next frame', function()
    return text_of(chat.buf):find('one two', 1, true)
  end)
  chat:update(delta('agent_message_chunk', ' three'))
  api.nvim_buf_delete(chat.buf, { force = true })
  vim.wait(50) -- a frame that comes after the buffer is gone
end)

t.test('Markdown is cut where both parts mean the same alone', function()
  local scan = require('tandem.markdown').scan
  local function count(text)
    return (scan(vim.split(text, '\n', { plain = true })))
  end
  t.equal(count('one\ntwo'), 0)
  t.equal(count('one\n\ntwo'), 2)
  t.equal(count('- one\n\n  more of it'), 0)
  t.equal(count('one\n\n```\n\nnot here'), 2)
  t.equal(count('````\n```\n\nx\n````\n\nhere'), 6)
  local _, fences = scan({ 'x', '```lua', 'a', '```', '~~~' })
  t.equal(fences, { { first = 1, last = 3, open = false }, { first = 4, last = 4, open = true } })
end)

if require('tandem.markdown').is_available() then
  t.test('Markdown is highlighted as it streams, without a highlighter over the whole chat', function()
    local chat = require('tandem.chat').new({ root = vim.fn.tempname(), state = 'running' })
    chat:transcript()
    for _, text in ipairs({ 'It **is** `so`.\n\n', '```lua\nlocal x = 1\n', '```\n\nDone **now', '**.' }) do
      chat:update(delta('agent_message_chunk', text))
    end
    chat:settle()
    local found = {}
    local space = api.nvim_get_namespaces()['tandem.markdown']
    for _, mark in ipairs(api.nvim_buf_get_extmarks(chat.buf, space, 0, -1, { details = true })) do
      found[('%d %s'):format(mark[2], mark[4].hl_group or 'hidden')] = true
    end
    for _, expected in ipairs({ '2 @markup.strong.markdown_inline', '4 TandemCode', '5 @keyword.lua', '8 @markup.strong.markdown_inline' }) do
      t.equal(found[expected], true, expected)
    end
    t.equal(vim.treesitter.highlighter.active[chat.buf], nil)
    api.nvim_buf_delete(chat.buf, { force = true })
  end)
end

t.test('tool calls stand together, a changed one changes in place', function()
  local text = drawn(
    { sessionUpdate = 'tool_call', toolCallId = '1', title = 'Read a', status = 'pending' },
    { sessionUpdate = 'tool_call', toolCallId = '2', title = 'Read b', status = 'pending' },
    delta('agent_message_chunk', 'And?'),
    { sessionUpdate = 'tool_call_update', toolCallId = '1', title = 'Read A', status = 'completed' }
  )
  t.equal(text, '\nRead A\nRead b\n\nAnd?')
end)

t.test('calls of kind think are drawn only when they fail', function()
  local thinks = { sessionUpdate = 'tool_call', toolCallId = '1', title = 'Plan', kind = 'think', status = 'pending' }
  t.equal(drawn(thinks), '\n## You\n')
  local fails = { sessionUpdate = 'tool_call_update', toolCallId = '1', status = 'failed' }
  t.equal(drawn(thinks, fails), '\nPlan')
end)

t.test('a plan is drawn once and then changed', function()
  local function plan(status)
    return { sessionUpdate = 'plan', entries = { { content = 'work', status = status } } }
  end
  local text = drawn(plan('pending'), delta('agent_message_chunk', 'x'), plan('completed'))
  t.equal(text, '\nPlan  1 of 1 done\n- work\n\nx')
end)

t.test('a notice is not repeated', function()
  local chat = require('tandem.chat').new({ root = vim.fn.tempname(), state = 'running' })
  chat:notice('again in 5 s')
  chat:notice('again in 5 s')
  t.equal(select(2, text_of(chat.buf):gsub('again', '')), 1)
end)

t.test('updates that are not known are ignored', function()
  t.equal(drawn({ sessionUpdate = 'from_the_future' }), '\n## You\n')
end)

-- what is said and has not ended

t.test('what waits is listed by its place, those that join first, until it is removed', function()
  local turns = Turns.new()
  local first, third, joins = turns:add('first', nil, false), turns:add('third', nil, false), turns:add('now', nil, true)
  local second = turns:add('second', nil, false)
  first.state = 'running'
  second.state, second.position, third.state, third.position = 'queued', 1, 'queued', 2
  t.equal(turns:running(), first)
  t.equal(turns:waiting(), { joins, second, third })
  t.equal({ turns:remove(second), turns:remove(second) }, { true, false })
  t.equal(turns:get(third.id), third)
  t.equal(first.id ~= third.id, true)
  t.equal(#turns:drain(), 3)
  t.equal(turns:any(), false)
end)

for before, expected in pairs({
  ['/'] = { sigil = '/', query = '' },
  ['/co'] = { sigil = '/', query = 'co' },
  ['see @src/ma'] = { sigil = '@', query = 'src/ma' },
  ['see\n@'] = { sigil = '@', query = '' },
  ['(@#parse'] = { sigil = '@', query = '#parse' },
  ['see @"my no'] = { sigil = '@', query = '"my no' },
  ['see @"my notes.md"'] = false,
  ['see /co'] = false,
  ['me@example.com'] = false,
  ['é@x'] = false,
  ['@a b'] = false,
}) do
  t.test(('the word to complete in %q'):format(before), function()
    t.equal(require('tandem.complete').word(before) or false, expected)
  end)
end

-- :Tandem

t.test('the command line completes subcommands and modes', function()
  t.equal(command.complete('s', 'Tandem s', 8), { 'sessions', 'steer', 'stop' })
  t.equal(vim.tbl_contains(command.complete('', "'<,'>Tandem ", 12), 'ask'), true)
  t.equal(command.complete('p', 'Tandem mode p', 13), { 'plan' })
  t.equal(command.complete('', 'Tandem ask ', 11), {})
end)

for line, complaint in pairs({
  ['Tandem frobnicate'] = 'Unknown subcommand "frobnicate". Try: allow, always, ask, back, chat,',
  ['1Tandem stop'] = 'stop takes no range',
  ['Tandem stop now'] = 'stop takes no argument',
  ['Tandem stop'] = 'No turn is running',
  ['Tandem allow'] = 'Nothing to approve right now',
}) do
  t.test(':' .. line .. ' is answered in words', function()
    notified = {}
    vim.cmd(line)
    t.contains(table.concat(notified, '\n'), complaint)
  end)
end

t.test('a server that cannot be run is named, in the chat and as a message', function()
  notified = {}
  vim.g.tandem = { cmd = { '/nonexistent/tandem', 'lsp' } }
  vim.cmd('Tandem ask hello')
  t.contains(table.concat(notified, '\n'), 'cannot run `/nonexistent/tandem`')
  local session = require('tandem.chats').current()
  t.contains(text_of(session.chat.buf), 'cannot run `/nonexistent/tandem`')
  t.equal(session.state, 'idle')
  vim.g.tandem = nil
end)

-- times

for case, shown in pairs({
  ['UTC0 2026-11-21T11:33:20Z'] = '2026-11-21 11:33',
  ['IST-5:30 2026-11-21T20:00:00Z'] = '2026-11-22 01:30',
  ['CET-1CEST,M3.5.0,M10.5.0/3 2026-01-15T12:00:00Z'] = '2026-01-15 13:00',
  ['CET-1CEST,M3.5.0,M10.5.0/3 2026-07-15T12:00:00Z'] = '2026-07-15 14:00',
  ['CET-1CEST,M3.5.0,M10.5.0/3 2026-10-25T00:59:00Z'] = '2026-10-25 02:59',
  ['CET-1CEST,M3.5.0,M10.5.0/3 2026-10-25T01:00:00Z'] = '2026-10-25 02:00',
  ['EST5EDT,M3.2.0,M11.1.0 2028-03-01T04:30:00.125Z'] = '2028-02-29 23:30',
  ['UTC0 2000-02-29T00:00:00Z'] = '2000-02-29 00:00',
  ['UTC0 yesterday'] = '',
}) do
  t.test('the local time of ' .. case, function()
    local zone, stamp = case:match('^(%S+) (.*)$')
    local before = vim.env.TZ
    vim.env.TZ = zone
    local found = require('tandem.clock').local_time(stamp)
    vim.env.TZ = before
    t.equal(found, shown)
  end)
end

t.test('the plugin defines one command and maps only <Plug>', function()
  for _, mode in ipairs({ 'n', 'x', 'i' }) do
    for _, map in ipairs(api.nvim_get_keymap(mode)) do
      local ours = (map.desc or ''):find('^tandem') ~= nil
      t.equal(ours and not vim.startswith(map.lhs, '<Plug>(tandem-'), false, map.lhs)
    end
  end
  t.equal(vim.fn.exists(':Tandem'), 2)
end)

-- help

local help_file = plugin .. '/doc/tandem.txt'
local help = table.concat(vim.fn.readfile(help_file), '\n')

---@return string tags as :helptags makes them; it fails when one is there twice
local function help_tags()
  local doc = vim.fn.tempname()
  vim.fn.mkdir(doc, 'p')
  assert(vim.uv.fs_copyfile(help_file, doc .. '/tandem.txt'))
  vim.cmd.helptags(doc)
  return table.concat(vim.fn.readfile(doc .. '/tags'), '\n')
end

t.test('the help has every subcommand, setting, event and function under its tag', function()
  local tags = help_tags()
  for _, name in ipairs(command.complete('', 'Tandem ', 7)) do
    t.contains(tags, ':Tandem-' .. name .. '\t')
  end
  for key in pairs(config.defaults) do
    t.contains(tags, 'tandem-config-' .. key .. '\t')
  end
  for name in pairs(require('tandem')) do
    t.contains(tags, ('tandem.%s()\t'):format(name))
  end
  for _, event in ipairs({ 'TurnStart', 'TurnEnd', 'Update', 'Permission', 'Review' }) do
    t.contains(tags, 'Tandem' .. event .. '\t')
  end
  for _, map in ipairs(api.nvim_get_keymap('n')) do
    if vim.startswith(map.lhs, '<Plug>(tandem-') then
      t.contains(tags, map.lhs .. '\t')
    end
  end
end)

t.test('the help shows the defaults as they are', function()
  local shown = assert(loadstring('return ' .. help:match('\n    vim%.g%.tandem = (%b{})\n<')))()
  t.equal(shown, config.defaults)
  for group, link in pairs(require('tandem.window').highlights) do
    t.equal(help:match('\n    ' .. group .. ' +(%S+)'), link, group)
  end
end)

t.test('the links and the lines of the help are right', function()
  local tags = help_tags()
  for link in help:gmatch('|(:?[Tt]andem[^|%s]*)|') do
    t.contains(tags, link .. '\t')
  end
  for line in vim.gsplit(help, '\n') do
    t.equal(vim.fn.strdisplaywidth(line) <= 80, true, line)
  end
end)

t.test('the Lua of the pages compiles', function()
  local count = 0
  local folder = vim.fs.dirname(vim.fs.dirname(vim.fs.normalize(assert(vim.uv.fs_realpath(arg[0])))))
  for page, pattern in pairs({ ['README.md'] = '\n```lua\n(.-)\n```', ['doc/tandem.txt'] = '>lua\n(.-)\n<' }) do
    local text = table.concat(vim.fn.readfile(folder .. '/' .. page), '\n')
    for block in text:gmatch(pattern) do
      count = count + 1
      t.equal((loadstring(block) or loadstring('return ' .. block)) ~= nil, true, block)
    end
  end
  t.equal(count > 5, true, 'only ' .. count .. ' blocks were found')
end)

t.test('every chat key is in the help', function()
  local chat = require('tandem.chat').new({ root = vim.fn.tempname(), state = 'idle' })
  chat:transcript()
  local keys = help:match('%*tandem%-chat%-keys%*(.-)\n\n.-\n\n')
  for _, mode in ipairs({ 'n', 'i' }) do
    for _, map in ipairs(api.nvim_buf_get_keymap(chat.buf, mode)) do
      t.contains(keys, (map.lhs:gsub('^<C%-.>$', function(key)
        return '<C-' .. key:sub(4):lower()
      end)))
    end
  end
end)

t.finish()
