-- The transcript and the chat in it.
local api = vim.api
local Transcript = require('tandem.transcript')

---@param t table the harness
---@param use tandem.test.Use
return function(t, use)
  local text_of = use.text_of

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

  t.test('an undo in the input reverts what was typed, and nothing that the chat wrote', function()
    local text = transcript()
    local function undo_all(expected)
      vim.bo[text.buf].undolevels = vim.bo[text.buf].undolevels -- ends the undo block
      api.nvim_buf_set_lines(text.buf, -2, -1, false, { 'typed' })
      api.nvim_buf_call(text.buf, function()
        for _ = 1, 3 do
          vim.cmd('silent undo')
        end
      end)
      t.equal(text_of(text.buf), expected)
    end
    undo_all('# title\n\n## You\n')
    text:add({ 'answer' })
    undo_all('# title\n\nanswer\n\n## You\n')
    text:save()
    text:move(api.nvim_create_buf(false, true))
    undo_all('# title\n\nanswer\n\n## You\n')
  end)

  t.test('the server learns of the first character of each prompt, and of no other', function()
    local text, began = transcript(), 0
    local session = {
      root = vim.fn.tempname(),
      prompt = function() end,
      typing_began = function()
        began = began + 1
      end,
    }
    local input = require('tandem.input').new({
      buf = text.buf,
      session = session,
      transcript = function()
        return text
      end,
    })
    for _, written in ipairs({ 'h', 'hi', '', ' ', 'a' }) do
      text:set_input(written)
      input:typed()
    end
    t.equal(began, 2)
    input:submit()
    text:set_input('n')
    input:typed()
    t.equal(began, 3)
  end)

  t.test('folds cover a block and nothing after it', function()
    local text = transcript()
    local thought = text:add({ '> Thinking' }, { fold = true })
    text:append(thought, '\n> a\n> b')
    text:add({ 'an error', 'of two lines' }, { highlight = 'ErrorMsg' })
    local levels = {}
    for row = 0, api.nvim_buf_line_count(text.buf) - 1 do
      levels[#levels + 1] = require('tandem.folds').level(text.buf, row)
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
    vim.wait(50) -- a frame that arrives after the buffer was deleted
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

    t.test('a loaded conversation is highlighted where it is seen at once, and then everywhere', function()
      local chat = require('tandem.chat').new({ root = vim.fn.tempname(), state = 'idle', loading = true })
      chat:transcript()
      for turn = 1, 20 do
        chat:begin_turn('Question ' .. turn, nil, turn)
        chat:update(delta('agent_message_chunk', 'It **is**.\n\n' .. ('line\n'):rep(10)))
      end
      require('tandem.window').open(chat.buf, false)
      chat.session.loading = false
      chat:loaded()
      local space = api.nvim_get_namespaces()['tandem.markdown']
      --- The number of highlighted answers, and the row of the first one.
      local function highlighted()
        local strong = vim.tbl_filter(function(mark)
          return mark[4].hl_group == '@markup.strong.markdown_inline'
        end, api.nvim_buf_get_extmarks(chat.buf, space, 0, -1, { details = true }))
        return #strong, strong[1] and strong[1][2] or -1
      end
      local count, first = highlighted()
      local top = vim.fn.line('w0', vim.fn.win_findbuf(chat.buf)[1])
      t.equal(count > 0 and count < 20 and first + 1 <= top + 15, true, ('%d from row %d, shown from %d'):format(count, first, top))
      chat.text:cut(chat.prompts[2].block) -- a removed answer has no highlights
      t.wait('the rest', function()
        return #chat.text.plain == 0
      end)
      t.equal({ highlighted() }, { 1, 7 })
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

  t.test('more chats listen to no more events, also when they are closed', function()
    local chats, root = require('tandem.chats'), vim.fn.tempname()
    local function listeners()
      return #vim.tbl_filter(function(autocmd)
        return vim.startswith(autocmd.desc or '', 'tandem: ')
      end, api.nvim_get_autocmds({}))
    end
    local first = chats.create(root)
    local before = listeners()
    chats.remove(chats.create(root))
    t.equal(listeners(), before)
    chats.remove(first)
  end)
end
