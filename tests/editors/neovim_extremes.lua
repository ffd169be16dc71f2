-- Large texts, and buffers, windows and servers that go away at the wrong moment.
local M = {}

local api = vim.api

---@param t table the harness
---@param model tandem.test.Model
---@param use tandem.test.Driver
function M.test(t, model, use)
  local session, chat, text_of, wait_chat, wait_request = use.session, use.chat, use.text_of, use.wait_chat, use.wait_request
  local function edit(old, new)
    return use.edit_call(old, old, new)
  end

  t.test('a line of 2 MB and a file of 5 MB are edited, and the edit is undone', function()
    for name, line in pairs({ ['long line'] = ('x'):rep(2e6), ['large file'] = ('let a = 1;\n'):rep(5e5) }) do
      local buf, folder = use.project(name)
      local text = line .. '\nfn last() {}'
      api.nvim_buf_set_lines(buf, 0, -1, false, vim.split(text, '\n'))
      vim.cmd('silent write')
      model:script({ edit('fn last() {}', 'fn final_one() {}') }, { { text = 'Edited.' } })
      vim.cmd('Tandem mode edit')
      vim.cmd('Tandem ask Rename it')
      use.wait_idle()
      t.equal(text_of(buf) == line .. '\nfn final_one() {}', true, name)
      t.contains(chat(), 'Edited.')
      t.equal(#chat() < 20000, true, 'the chat shows the change, not the text')
      vim.cmd('silent undo')
      t.equal(text_of(buf) == text, true, name .. ' after undo')
      vim.cmd('bwipeout! ' .. vim.fn.fnameescape(folder .. '/main.rs'))
    end
  end)

  t.test('a change of thousands of lines reaches an unsaved buffer as one edit', function()
    local buf = use.project('thousands')
    local lines = {}
    for number = 1, 3000 do
      lines[number] = ('let a%d = old;'):format(number)
    end
    api.nvim_buf_set_lines(buf, 0, -1, false, lines)
    local before, tick = text_of(buf), vim.b[buf].changedtick
    local arguments = { path = 'main.rs', edits = { { old_text = 'old', new_text = 'new', replace_all = true } } }
    model:script({ { call = { id = 'c1', name = 'edit_file', arguments = arguments } } }, { { text = 'All.' } })
    use.edit_mode()
    vim.cmd('Tandem ask Rename all')
    use.wait_idle()
    t.equal(text_of(buf) == before:gsub('old', 'new'), true)
    t.equal(vim.b[buf].changedtick - tick < 10, true, 'one edit, not 3000')
    vim.cmd('silent undo')
    t.equal(text_of(buf) == before, true)
  end)

  t.test('a buffer that gets another name is the file of that name from then on', function()
    local buf = use.project('renamed')
    local arguments = { path = 'other.rs', edits = { { old_text = 'wörld', new_text = 'world' } } }
    local again = { call = { id = 'c2', name = 'edit_file', arguments = arguments } }
    model:script({ edit('hello', 'bonjour') }, { { text = 'French.' } }, { again }, { { text = 'Plain.' } })
    use.edit_mode()
    vim.cmd('Tandem ask Greet in French')
    use.wait_idle()
    vim.cmd('silent file ' .. vim.fn.fnameescape(vim.fn.expand('%:p:h') .. '/other.rs'))
    vim.cmd('Tandem ask Write plainly')
    use.wait_idle()
    t.contains(chat(), 'Plain.')
    t.contains(text_of(buf), 'world')
    vim.cmd('silent write')
    vim.cmd('Tandem undo')
    t.wait('the text before', function()
      return text_of(buf):find('wörld', 1, true)
    end)
    t.contains(text_of(buf), 'bonjour', 'the edit of the file before stays with the text')
    vim.cmd('bwipeout! ' .. buf)
  end)

  t.test('a file is edited after another language server has opened it, too', function()
    local buf, folder = use.project('beside')
    model:script({ edit('hello', 'bonjour') }, { { text = 'French.' } }, { edit('wörld', 'world') }, { { text = 'Plain.' } })
    use.edit_mode()
    vim.cmd('Tandem ask Greet in French')
    use.wait_idle()
    local is_open = false
    local cmd = require('tandem.in_process').cmd({
      request = function(_, _, answer)
        answer(nil, { capabilities = { textDocumentSync = 1 } })
      end,
      notify = function(method)
        is_open = is_open or method == 'textDocument/didOpen'
      end,
    })
    local id = assert(vim.lsp.start({ name = 'beside', cmd = cmd, root_dir = folder }))
    t.wait('the other server', function()
      return is_open
    end)
    vim.cmd('Tandem ask Write plainly')
    use.wait_idle()
    t.contains(chat(), 'Plain.')
    t.contains(text_of(buf), 'world')
    vim.lsp.stop_client(id, true)
  end)

  t.test('what a command writes into an open file is in its buffer once, and undone', function()
    local buf, folder = use.project('written')
    local before = text_of(buf)
    vim.cmd('Tandem mode auto')
    for _, edited in ipairs({ false, true }) do
      if edited then -- the buffer's version differs from that of a newly opened file
        api.nvim_buf_set_lines(buf, 0, 0, false, { '// a line' })
        vim.cmd('silent write')
        before = text_of(buf)
      end
      -- The words share a beginning, so replacing the rest of the first would affect the second, too.
      local call = { id = 'c1', name = 'run_command', arguments = { command = "sed -i 's/hello/hoping/' main.rs" } }
      model:script({ { call = call } }, { { text = 'Replaced.' } })
      vim.cmd('Tandem ask Replace it')
      use.wait_idle()
      local after = before:gsub('hello', 'hoping')
      t.equal({ text_of(buf), vim.bo[buf].modified }, { after, false })
      t.equal(table.concat(vim.fn.readfile(folder .. '/main.rs'), '\n'), after)
      vim.cmd('Tandem undo')
      t.wait('the undo', function()
        return text_of(buf) == before
      end)
    end
  end)

  t.test('an edit of a buffer deleted during the permission request changes the file', function()
    local buf, folder = use.project('deleted')
    model:script({ edit('hello', 'bye') }, { { text = 'Then so.' } })
    vim.cmd('Tandem ask Edit it')
    local current = session()
    wait_request()
    vim.cmd('botright new')
    api.nvim_buf_delete(buf, { force = true })
    vim.cmd('Tandem allow')
    t.wait('the end of the turn', function()
      return current.state == 'idle'
    end)
    t.contains(text_of(current.chat.buf), 'Then so.')
    t.contains(table.concat(vim.fn.readfile(folder .. '/main.rs'), '\n'), 'bye {name}')
    vim.cmd.edit(folder .. '/main.rs')
    t.contains(text_of(0), 'bye {name}')
  end)

  t.test('a chat whose window or buffer is closed during an answer can be reopened and is complete', function()
    use.project('closed')
    model:script({ { text = 'One, ' }, { gate = 'window' }, { text = 'two, ' }, { gate = 'buffer' }, { text = 'three.' } })
    vim.cmd('Tandem ask Count')
    wait_chat('One,')
    api.nvim_win_close(vim.fn.bufwinid(session().chat.buf), true)
    model:open('window')
    wait_chat('two,')
    model:state('gate:buffer')
    vim.cmd('bwipeout! ' .. session().chat.buf)
    model:open('buffer')
    use.wait_idle()
    vim.cmd('Tandem chat')
    t.contains(chat(), 'three.')
    vim.cmd('Tandem chat')
    model:script({ { text = 'Four.' } })
    vim.cmd('Tandem ask And then?')
    use.wait_idle()
    t.contains(chat(), 'Four.')
  end)

  t.test('killing the server withdraws its permission request; the next one is answered, and undone after another kill', function()
    local buf, folder = use.project('killed')
    local function kill()
      local server = vim.lsp.get_client_by_id(require('tandem.client').running(folder).id)
      server.rpc.terminate()
      t.wait('the end of the server', function()
        return require('tandem.client').running(folder) == nil
      end)
    end
    model:script({ edit('hello', 'bye') })
    vim.cmd('Tandem ask Edit it')
    wait_request()
    kill()
    use.wait_idle()
    t.equal(require('tandem.permission').pending(), nil)
    model:script({ edit('hello', 'bye') }, { { text = 'Now.' } })
    vim.cmd('Tandem ask Edit it')
    wait_request()
    vim.cmd('Tandem allow')
    use.wait_idle()
    t.contains(chat(), 'Now.')
    t.contains(text_of(buf), 'bye')
    kill()
    vim.cmd('Tandem undo')
    t.wait('what the server before changed is undone', function()
      return text_of(buf):find('hello', 1, true)
    end)
  end)

  t.test('unsaved text is written without a question after an undo restored its file', function()
    local buf, folder = use.project('restored')
    local file = folder .. '/main.rs'
    vim.cmd('Tandem mode auto')
    -- Reloading creates a state to undo to, without a write.
    vim.o.autoread = true
    vim.fn.writefile(vim.list_extend({ '// read again' }, vim.fn.readfile(file)), file)
    vim.cmd('checktime')
    t.contains(text_of(buf), '// read again')
    vim.bo[buf].undolevels = vim.bo[buf].undolevels -- the following edit is a step of its own, as if typed
    api.nvim_buf_set_lines(buf, 0, 0, false, { '// unsaved' })
    local text = text_of(buf)
    model:script(
      { { call = { id = 'c1', name = 'run_command', arguments = { command = 'rm main.rs' } } } },
      { { text = 'Removed.' } }
    )
    vim.cmd('Tandem ask Remove it')
    use.wait_idle()
    t.equal(vim.uv.fs_stat(file), nil)
    local is_unsaved = vim.bo[buf].modified -- without bubblewrap, it was saved for the command
    vim.cmd('Tandem undo')
    wait_chat('undid “Remove it”: main.rs')
    t.equal({ text_of(buf), vim.bo[buf].modified, vim.bo[buf].readonly }, { text, is_unsaved, false })
    vim.cmd('silent! write')
    t.equal({ table.concat(vim.fn.readfile(file), '\n'), vim.bo[buf].modified }, { text, false })
  end)

  t.test('undos given at once undo as many turns', function()
    local buf = use.project('at once')
    local before = text_of(buf)
    use.edit_mode()
    for _, words in ipairs({ { 'hello', 'bye' }, { 'bye', 'so long' }, { 'so long', 'welcome' } }) do
      model:script({ edit(words[1], words[2]) }, { { text = 'Edited.' } })
      vim.cmd('Tandem ask Edit it')
      use.wait_idle()
    end
    t.contains(text_of(buf), 'welcome')
    for _ = 1, 3 do
      vim.cmd('Tandem undo')
    end
    t.wait('the text before', function()
      return text_of(buf) == before
    end)
    vim.cmd('Tandem redo')
    t.wait('the redo', function()
      return text_of(buf):find('bye', 1, true)
    end)
    api.nvim_buf_set_lines(buf, 0, -1, false, { 'another text' })
    vim.cmd('Tandem undo')
    use.wait_chat('nothing was undone: main.rs:')
  end)

  t.test('changes by another Neovim are noticed and not overwritten', function()
    local buf, folder = use.project('two')
    model:script({ edit('hello', 'bye') }, { { text = 'Both.' } })
    vim.cmd('Tandem ask Edit it')
    wait_request()
    local lines = vim.fn.readfile(folder .. '/main.rs')
    vim.fn.writefile(vim.list_extend({ '// by another Neovim' }, lines), folder .. '/main.rs')
    vim.o.autoread = true
    vim.cmd('Tandem allow')
    use.wait_idle()
    t.contains(chat(), 'Both.')
    vim.cmd('silent! write')
    vim.cmd('silent! checktime')
    local disk = table.concat(vim.fn.readfile(folder .. '/main.rs'), '\n')
    t.equal({ disk:find('by another Neovim', 1, true) ~= nil, text_of(buf):find('bye', 1, true) ~= nil }, { true, true })
  end)
end

return M
