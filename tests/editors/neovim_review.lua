--- Review, undo and diagnostics of the plugin, in a real Neovim with the real server.
local M = {}

local api = vim.api

local before = { 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine' }

--- A call that changes the first and last lines of main.rs.
local function two_edits()
  local edits = { { old_text = 'one\n', new_text = 'ONE\n' }, { old_text = 'nine', new_text = 'NINE\nTEN' } }
  return { call = { id = 'c1', name = 'edit_file', arguments = { path = 'main.rs', edits = edits } } }
end

---@return string what the model read last
local function result_of(request)
  return vim.inspect(request.messages[#request.messages].content):gsub('\\n', '\n')
end

--- A language server that reports a problem in every line with "bad".
---@return function cmd, fun(): integer looked how many times
local function bad_word_server()
  local looked = 0
  local function look(uri, text, dispatchers)
    local diagnostics = {}
    for row, line in ipairs(vim.split(text, '\n')) do
      if line:find('bad', 1, true) then
        local at = { line = row - 1, character = 0 }
        table.insert(diagnostics, { range = { start = at, ['end'] = at }, severity = 1, message = 'a bad word: ' .. line })
      end
    end
    looked = looked + 1
    dispatchers.notification('textDocument/publishDiagnostics', { uri = uri, diagnostics = diagnostics })
  end
  local cmd = require('tandem.in_process').cmd({
    request = function(method, _, reply)
      reply(nil, method == 'initialize' and { capabilities = { textDocumentSync = 1 } } or nil)
    end,
    notify = function(method, params, dispatchers)
      local text = method == 'textDocument/didOpen' and params.textDocument.text
        or method == 'textDocument/didChange' and params.contentChanges[1].text
      if text then
        vim.schedule(function()
          look(params.textDocument.uri, text, dispatchers)
        end)
      end
    end,
  })
  return cmd, function()
    return looked
  end
end

---@param t table the harness
---@param model tandem.test.Model
---@param use tandem.test.Driver
function M.test(t, model, use)
  local session = use.session

  local function lines()
    return api.nvim_buf_get_lines(0, 0, -1, false)
  end

  --- A project in which one turn changed two places of the open file.
  local function changed(name, reply)
    local buf, folder = use.project('review-' .. name)
    api.nvim_buf_set_lines(buf, 0, -1, false, before)
    vim.cmd('silent write')
    use.edit_mode()
    model:script({ reply or two_edits() }, { { text = 'Changed.' } })
    vim.cmd('Tandem ask Change it')
    use.wait_idle()
    return buf, folder
  end

  local function wait_changes(count)
    t.wait(count .. ' changes', function()
      return #session().review.changes == count
    end)
  end

  local function wait_lines(expected)
    t.wait('the text ' .. table.concat(expected, ' '), function()
      return vim.deep_equal(lines(), expected)
    end)
  end

  ---@return string[] what stands in the sign column, by line
  local function signs(buf)
    local found = {}
    for _, mark in ipairs(api.nvim_buf_get_extmarks(buf, -1, 0, -1, { details = true, type = 'sign' })) do
      found[#found + 1] = (mark[2] + 1) .. vim.trim(mark[4].sign_text or '')
    end
    return found
  end

  ---@return string[] the old text that is shown
  local function old_text(buf)
    local found = {}
    for _, mark in ipairs(api.nvim_buf_get_extmarks(buf, -1, 0, -1, { details = true })) do
      for _, line in ipairs(mark[4].virt_lines or {}) do
        found[#found + 1] = vim.trim(line[1][1])
      end
    end
    return found
  end

  t.test('the next change is gone to from the chat, too', function()
    local buf = use.project('from-the-chat')
    model:script({ use.edit_call('c1', 'hello', 'bonjour') }, { { text = 'French.' } })
    use.edit_mode()
    vim.cmd('Tandem ask Greet in French')
    use.wait_idle()
    vim.cmd('Tandem chat')
    t.wait('the change', function()
      return #use.session().review.changes == 1
    end)
    require('tandem').next_hunk()
    t.equal({ api.nvim_get_current_buf(), api.nvim_win_get_cursor(0)[1] }, { buf, 2 })
  end)

  t.test('the changes of a turn are marked and counted', function()
    local buf = changed('marked')
    wait_changes(2)
    t.equal(signs(buf), { '1▎', '9▎', '10▎' })
    t.equal(old_text(buf), {}, 'the old text is shown on request')
    t.contains(require('tandem').status(), '2 changes')
  end)

  t.test('changes that :edit! throws away are not under review any more', function()
    local buf = changed('again')
    wait_changes(2)
    vim.cmd('silent edit!')
    t.equal(lines(), before)
    wait_changes(0)
    t.equal(signs(buf), {})
  end)

  t.test('a changed line says which turn wrote it, and opens that', function()
    local buf = changed('origins')
    wait_changes(2)
    local at = { line = 0, character = 0 }
    local params = vim.lsp.util.make_text_document_params(buf)
    local function ask(method, more)
      local answers = vim.lsp.buf_request_sync(buf, method, vim.tbl_extend('error', { textDocument = params }, more), 5000)
      local found = {}
      for _, answer in pairs(answers or {}) do
        vim.list_extend(found, method == 'textDocument/hover' and { answer.result } or answer.result or {})
      end
      return found
    end
    if vim.fn.has('nvim-0.11') == 1 then
      local hovers = ask('textDocument/hover', { position = at })
      t.contains(hovers[1].contents.value, 'tandem, turn 1: Change it\nEdit main.rs, ')
      t.equal(#ask('textDocument/hover', { position = { line = 4, character = 0 } }), 0, 'nobody of ours wrote it')
    end
    local actions = ask('textDocument/codeAction', { range = { start = at, ['end'] = at }, context = { diagnostics = {} } })
    local action = actions[#actions]
    t.equal(action.title, 'tandem: Open turn “Change it”')
    local automatic = { range = { start = at, ['end'] = at }, context = { diagnostics = {}, triggerKind = 2 } }
    t.equal(#ask('textDocument/codeAction', automatic), 0, 'no light bulb on every line')
    t.equal(action.arguments, { session().id, 1 })
    local function chat_window()
      return vim.fn.bufwinid(session().chat:transcript().buf)
    end
    if chat_window() ~= -1 then
      api.nvim_win_close(chat_window(), true)
    end
    t.equal(chat_window(), -1)
    vim.lsp.commands[action.command](action)
    t.wait('the chat is shown', function()
      return chat_window() ~= -1
    end)
    t.equal(vim.fn.line('w0', chat_window()), api.nvim_win_get_cursor(chat_window())[1], 'the turn is at the top')
    t.equal(vim.fn.getbufoneline(api.nvim_win_get_buf(chat_window()), vim.fn.line('w0', chat_window())), '## You')
  end)

  t.test('review lists the hunks and shows the old text; again hides it', function()
    local buf = changed('shown')
    wait_changes(2)
    local window = api.nvim_get_current_win()
    vim.cmd('Tandem review')
    t.wait('the list', function()
      return vim.fn.getqflist({ title = 0 }).title == 'tandem changes' and #vim.fn.getqflist() == 2
    end)
    t.equal(api.nvim_get_current_win(), window, 'the focus stays')
    local list = vim.fn.getqflist()
    t.equal({ list[1].lnum, list[2].lnum, list[1].bufnr }, { 1, 9, buf })
    t.equal(old_text(buf), { 'one', 'nine' })
    t.equal(vim.fn.winsaveview().topfill, 1, 'the text above the first line is in sight')
    vim.cmd('Tandem review')
    t.wait('the list is closed', function()
      return vim.fn.getqflist({ winid = 0 }).winid == 0
    end)
    t.equal(old_text(buf), {})
  end)

  t.test('after a change is kept, the list goes on with the next one', function()
    local edits = vim.tbl_map(function(word)
      return { old_text = word .. '\n', new_text = word:upper() .. '\n' }
    end, { 'one', 'three', 'five', 'seven' })
    changed('next', { call = { id = 'c1', name = 'edit_file', arguments = { path = 'main.rs', edits = edits } } })
    wait_changes(4)
    vim.cmd('Tandem review')
    t.wait('the list', function()
      return #vim.fn.getqflist() == 4
    end)
    vim.cmd('cc 2')
    vim.cmd('Tandem keep')
    wait_changes(3)
    vim.cmd('cc')
    t.equal(vim.fn.line('.'), 5)
    vim.cmd('cnext')
    t.equal(vim.fn.line('.'), 7)
    vim.cmd('Tandem review')
  end)

  t.test('from the chat, the list has the cursor, so that a change opens beside the chat', function()
    local buf = changed('listed')
    wait_changes(2)
    local code = api.nvim_get_current_win()
    vim.cmd('Tandem')
    vim.cmd('Tandem review')
    t.wait('the list', function()
      return vim.bo.buftype == 'quickfix'
    end)
    local windows = #api.nvim_tabpage_list_wins(0)
    vim.cmd('cc 2')
    t.equal({ api.nvim_get_current_win(), api.nvim_get_current_buf(), vim.fn.line('.') }, { code, buf, 9 })
    t.equal(#api.nvim_tabpage_list_wins(0), windows)
    vim.cmd('Tandem review')
  end)

  t.test('the hunk under the cursor is rejected after typing above it, and the model learns of it', function()
    changed('reject')
    wait_changes(2)
    api.nvim_buf_set_lines(0, 0, 0, false, { 'mine' })
    api.nvim_win_set_cursor(0, { 11, 0 })
    vim.cmd('Tandem reject')
    local expected = { 'mine', 'ONE', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine' }
    wait_lines(expected)
    wait_changes(1)
    vim.cmd('silent undo')
    t.equal(lines()[11], 'TEN', 'the rejection is an undo step of its own')
    vim.cmd('silent redo')
    t.equal(lines(), expected)
    model:script({ { text = 'I see.' } })
    vim.cmd('Tandem ask And now?')
    use.wait_idle()
    t.contains(use.sent_text(model:state().requests[1]), 'the user rejected this change of yours in main.rs')
  end)

  t.test('a rejection right after a turn waits for the list of changes', function()
    local buf = use.project('review-soon')
    api.nvim_buf_set_lines(buf, 0, -1, false, before)
    vim.cmd('silent write')
    use.edit_mode()
    model:script({ two_edits() }, { { text = 'Changed.' } })
    local at_once = api.nvim_create_autocmd('User', {
      pattern = 'TandemTurnEnd',
      callback = function()
        t.equal(#session().review.changes, 0, 'the list is not there yet')
        api.nvim_win_set_cursor(0, { 1, 0 })
        vim.cmd('Tandem reject')
      end,
    })
    vim.cmd('Tandem ask Change it')
    use.wait_idle()
    api.nvim_del_autocmd(at_once)
    wait_changes(1)
    t.equal(lines()[1], 'one')
    t.equal(lines()[9], 'NINE')
  end)

  t.test('kept changes leave the list, by hunk and all', function()
    local buf = changed('keep')
    wait_changes(2)
    api.nvim_win_set_cursor(0, { 1, 0 })
    vim.cmd('Tandem keep')
    wait_changes(1)
    t.equal(signs(buf), { '9▎', '10▎' })
    vim.cmd('Tandem keep all')
    wait_changes(0)
    t.equal(signs(buf), {})
    t.equal(lines()[1], 'ONE')
  end)

  t.test('the list goes from a file to one that is not open', function()
    local buf = changed('closed')
    wait_changes(2)
    vim.cmd('Tandem review')
    t.wait('the list', function()
      return vim.fn.getqflist({ winid = 0 }).winid ~= 0
    end)
    vim.cmd('silent wall')
    vim.cmd('enew | bunload ' .. buf)
    vim.cmd('cc 2')
    t.equal({ vim.fs.basename(api.nvim_buf_get_name(0)), vim.fn.line('.') }, { 'main.rs', 9 })
    t.equal(vim.fn.getqflist({ idx = 0 }).idx, 2)
    vim.cmd('Tandem review')
  end)

  t.test('the quickfix entry under the cursor is kept or rejected', function()
    local buf = changed('list')
    wait_changes(2)
    vim.cmd('Tandem review')
    t.wait('the list', function()
      return vim.fn.getqflist({ winid = 0 }).winid ~= 0
    end)
    vim.cmd('copen 2')
    api.nvim_win_set_cursor(0, { 2, 0 })
    vim.cmd('Tandem reject')
    wait_changes(1)
    t.equal(#vim.fn.getqflist(), 1)
    vim.cmd('Tandem keep')
    wait_changes(0)
    t.equal(vim.fn.getqflist({ winid = 0 }).winid, 0, 'nothing is left: the list is closed')
    t.equal({ api.nvim_get_current_buf(), lines()[1], lines()[9] }, { buf, 'ONE', 'nine' })
  end)

  t.test('maps go from change to change', function()
    changed('jump')
    wait_changes(2)
    vim.keymap.set('n', ']h', '<Plug>(tandem-next-hunk)')
    vim.keymap.set('n', '[h', '<Plug>(tandem-prev-hunk)')
    vim.keymap.set('n', '<Space>r', '<Plug>(tandem-reject-hunk)')
    local function press(keys)
      api.nvim_feedkeys(vim.keycode(keys), 'xt', false)
      return api.nvim_win_get_cursor(0)[1]
    end
    api.nvim_win_set_cursor(0, { 4, 0 })
    vim.cmd('8,9fold')
    t.equal({ press(']h'), vim.fn.foldclosed(9) }, { 9, -1 }, 'a fold is opened')
    t.equal({ press(']h'), press('[h'), press('[h') }, { 1, 9, 1 })
    press('<Space>r')
    wait_changes(1)
    t.equal(lines()[1], 'one')
  end)

  t.test('undo reverts a whole turn, closed files included, and redo reapplies it', function()
    local calls = { two_edits(), { call = { id = 'c2', name = 'write_file', arguments = { path = 'new.rs', content = 'new\n' } } } }
    local _, folder = use.project('review-undo')
    api.nvim_buf_set_lines(0, 0, -1, false, before)
    vim.cmd('silent write')
    use.edit_mode()
    model:script(calls, { { text = 'Changed.' } })
    vim.cmd('Tandem ask Change it')
    use.wait_idle()
    wait_changes(3)
    t.equal(vim.fn.filereadable(folder .. '/new.rs'), 1)
    vim.cmd('Tandem undo')
    wait_lines(before)
    wait_changes(0)
    t.equal(vim.fn.filereadable(folder .. '/new.rs'), 0)
    t.contains(use.chat(), 'undid “Change it”: main.rs, new.rs\n:Tandem redo')
    vim.cmd('Tandem redo')
    wait_changes(3)
    t.contains(use.chat(), 'redid “Change it”: main.rs, new.rs\n:Tandem undo')
    t.equal(lines()[1], 'ONE')
    vim.cmd('Tandem reject all')
    wait_lines(before)
    vim.cmd('Tandem undo')
    wait_changes(3)
    use.wait_chat('restored changes: main.rs, new.rs\n\n') -- nothing redoes it
    vim.cmd('Tandem reject all')
    wait_lines(before)
  end)

  t.test('rejecting all reverts a turn that a later turn builds on', function()
    changed('twice')
    wait_changes(2)
    local again = { path = 'main.rs', edits = { { old_text = 'ONE', new_text = 'First' } } }
    model:script({ { call = { id = 'c3', name = 'edit_file', arguments = again } } }, { { text = 'Again.' } })
    vim.cmd('Tandem ask Again')
    use.wait_idle()
    t.wait('the second turn', function()
      return lines()[1] == 'First' and #session().review.changes == 2
    end)
    vim.cmd('Tandem reject all')
    wait_lines(before)
    wait_changes(0)
  end)

  t.test('a buffer that has the text of its file again is not modified: what a command does to that is read without a question', function()
    local buf, folder = changed('unmodified')
    wait_changes(2)
    vim.cmd('Tandem reject all')
    wait_lines(before)
    wait_changes(0)
    t.equal(vim.bo[buf].modified, false)
    vim.cmd('Tandem mode auto')
    local command = { command = "sed -i '1i first' main.rs" }
    model:script({ { call = { id = 'c1', name = 'run_command', arguments = command } } }, { { text = 'Inserted.' } })
    vim.cmd('Tandem ask Insert it')
    use.wait_idle()
    t.equal({ lines()[1], vim.bo[buf].modified }, { 'first', false })
    t.equal(vim.fn.readfile(folder .. '/main.rs'), lines())
  end)

  t.test('an empty review is reported', function()
    use.project('review-nothing')
    local notified = use.notified
    for _, command in ipairs({ 'Tandem undo', 'Tandem keep', 'Tandem reject file' }) do
      local count = #notified
      vim.cmd(command)
      t.equal(#notified, count + 1, command)
    end
    vim.cmd('Tandem keep everything')
    t.contains(notified[#notified], 'Try: hunk, file, all')
  end)

  t.test('the model gets the new diagnostics after an edit and can request all', function()
    local cmd, looked = bad_word_server()
    local _, folder = use.project('review-problems')
    api.nvim_buf_set_lines(0, 0, -1, false, { 'bad from the start', 'good' })
    vim.cmd('silent write')
    vim.lsp.start({ name = 'words', cmd = cmd, root_dir = folder })
    t.wait('the first look', function()
      return looked() > 0
    end)
    use.edit_mode()
    local edit = { path = 'main.rs', edits = { { old_text = 'good', new_text = 'good 😀\nbadly' } } }
    model:script(
      { { call = { id = 'c1', name = 'edit_file', arguments = edit } } },
      { { call = { id = 'c2', name = 'diagnostics', arguments = vim.empty_dict() } } },
      { { text = 'Oh.' } },
      { { text = 'It stays.' } }
    )
    vim.cmd('Tandem ask Improve it')
    use.wait_idle()
    local requests = model:state('requests:4').requests
    t.contains(result_of(requests[4]), 'main.rs:3: error: a bad word: badly')
    t.contains(use.text_of(session().chat.buf), '1 new problem in 1 file')
    t.contains(result_of(requests[2]), 'New problems after this change:\nmain.rs:3: error: a bad word: badly')
    t.equal(result_of(requests[2]):find('word: bad from', 1, true), nil, 'old problems are not told')
    t.contains(result_of(requests[3]), 'main.rs:1: error: a bad word: bad from the start\nmain.rs:3: error')
    for _, client in ipairs(vim.lsp.get_clients({ name = 'words' })) do
      vim.lsp.stop_client(client.id, true)
    end
  end)

  t.test('an edit where no language server runs waits for no diagnostics', function()
    local buf = use.project('review-no-server')
    local diagnostics = require('tandem.diagnostics')
    local answer, answered = diagnostics.answer, {}
    diagnostics.answer = function(params, encoding)
      local thread = coroutine.create(answer)
      local _, result = coroutine.resume(thread, params, encoding)
      table.insert(answered, { params.settled, coroutine.status(thread) })
      return result or { documents = {} }
    end
    model:script({ use.edit_call('c1', 'hello', 'bye') }, { { text = 'Done.' } })
    use.edit_mode()
    vim.cmd('Tandem ask Say bye')
    use.wait_idle()
    diagnostics.answer = answer
    t.contains(table.concat(lines(), '\n'), 'bye')
    t.equal(#vim.lsp.get_clients({ bufnr = buf }), 2, 'the server and the code actions, both of the plugin')
    t.equal(answered, { { false, 'dead' }, { false, 'dead' }, { true, 'dead' }, { true, 'dead' } }, 'around the turn and the edit, all at once')
  end)

  t.test('a file that a command makes is shown where its buffer is open, and Neovim asks nothing', function()
    local _, folder = use.project('review-made')
    vim.cmd('Tandem mode auto')
    t.wait('the mode', function()
      return session().mode == 'auto'
    end)
    vim.cmd.edit(folder .. '/made.rs')
    local command = { command = 'echo "// made" > made.rs' }
    model:script({ { call = { id = 'c1', name = 'run_command', arguments = command } } }, { { text = 'Made.' } })
    vim.cmd('Tandem ask Make it')
    use.wait_idle()
    t.equal({ lines(), vim.bo.modified, vim.v.warningmsg }, { { '// made' }, false, '' })
  end)

  t.test('a command that changed an open file goes on as soon as the buffer has its text', function()
    local buf = use.project('review-command')
    local fastest = math.huge
    vim.cmd('Tandem mode auto')
    for number = 1, 3 do
      local began
      local command = { command = ('echo "// %d" >> main.rs'):format(number) }
      model:script({ { call = { id = 'c1', name = 'run_command', arguments = command } } }, { { text = 'Done.' } })
      vim.cmd('Tandem ask Change it')
      model:state('requests:1')
      began = vim.uv.now()
      model:state('requests:2')
      fastest = math.min(fastest, vim.uv.now() - began)
      use.wait_idle()
      t.equal(api.nvim_buf_get_lines(buf, -2, -1, false), { '// ' .. number })
    end
    t.equal(fastest < 700, true, ('the fastest of three took %d ms'):format(fastest))
  end)

  t.test('a plan is a file that can be edited, and starts in a chat of its own, wherever the cursor is', function()
    local _, folder = use.project('plan')
    vim.cmd('Tandem mode plan')
    t.wait('the mode', function()
      return session().mode == 'plan'
    end)
    model:script({ { text = 'I would:\n1. Say it.\n2. Test it.' } }, { { text = 'Carried out.' } })
    vim.cmd('Tandem ask How?')
    local question = use.wait_request()
    local path, planned = question.call.locations[1].path, session()
    local lines = vim.fn.readfile(path)
    t.equal(vim.list_slice(lines, 1, 3), { 'I would:', '1. Say it.', '2. Test it.' })
    lines[3] = '2. Test it twice.'
    vim.fn.writefile(lines, path)
    use.project('elsewhere')
    local select = vim.ui.select
    vim.ui.select = function(items, _, choose)
      for _, item in ipairs(items) do
        if item.name == 'Start in a New Session' then
          choose(item)
        end
      end
    end
    vim.cmd('Tandem allow')
    vim.ui.select = select
    model:state('requests:2')
    vim.cmd.edit(folder .. '/main.rs')
    use.wait_chat('Carried out.')
    use.wait_idle()
    t.equal(session() ~= planned, true, 'another chat')
    local sent = model:state('requests:2').requests[2].messages
    t.equal(#sent, 2, 'the system message and the plan')
    t.contains(use.sent_text({ messages = sent }), '2. Test it twice.')
  end)
end

return M
