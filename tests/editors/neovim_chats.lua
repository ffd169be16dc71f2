-- Several chats of one workspace, going back to a prompt, and the history of prompts.
local M = {}

local api = vim.api

---@param t table the harness
---@param model table
---@param use tandem.test.Driver
function M.test(t, model, use)
  local chats = require('tandem.chats')

  local function text(session)
    return use.text_of(session.chat.buf)
  end

  --- Writes into the input of the visible chat, and sends it with a key.
  local function send(words)
    chats.current().chat:transcript():set_input(words)
    chats.current().chat.input:submit()
    use.wait_idle()
  end

  --- Presses keys in the chat.
  local function press(keys)
    vim.cmd.normal(vim.keycode(keys))
  end

  t.test('two chats of a workspace work side by side in one window', function()
    local _, folder = use.project('chats')
    model:script({ { text = 'It begins' }, { gate = 'first' }, { text = ' and ends.' } }, { { text = 'Second.' } })
    vim.cmd('Tandem chat')
    local first = chats.current()
    first.chat:transcript():set_input('One')
    first.chat.input:submit()
    use.wait_chat('It begins')
    local windows = #api.nvim_list_wins()
    vim.cmd('Tandem new')
    local second = chats.current()
    t.equal(second ~= first, true)
    t.equal(api.nvim_get_current_buf(), second.chat.buf)
    send('Two')
    t.contains(text(second), 'Second.')
    t.equal(text(second):find('It begins', 1, true), nil)
    t.equal(#api.nvim_list_wins(), windows, 'they share a window')
    t.contains(require('tandem.status').winbar(), '2/2')
    press(']c')
    t.equal(chats.current(), first)
    t.equal(first.state, 'running')
    model:open('first')
    use.wait_idle()
    t.contains(text(first), 'It begins and ends.')
    t.equal(#chats.of_root(folder), 2)

    local offered
    local select = vim.ui.select
    vim.ui.select = function(items, options, choose)
      offered = vim.tbl_map(options.format_item, items)
      choose(items[2])
    end
    vim.cmd('Tandem chats')
    vim.ui.select = select
    t.contains(offered[1], '1  One  ready')
    t.equal(chats.current(), second)
    vim.cmd('Tandem close')
    t.equal({ #chats.of_root(folder), chats.current() == first }, { 1, true })
    t.equal(api.nvim_get_current_buf(), first.chat.buf)
  end)

  t.test('commands in the code apply to the chat that the tab page shows, or to the last one entered of two', function()
    local buf, folder = use.project('tabs')
    vim.cmd('Tandem new')
    local first = chats.current()
    model:script({ { text = 'One.' } }, { { text = 'Two.' } }, { { text = 'Three.' } }, { { text = 'Four.' } })
    send('1')
    vim.cmd('tabnew ' .. folder .. '/main.rs')
    vim.cmd('Tandem new')
    local second = chats.current()
    send('2')
    vim.cmd.tabprevious()
    vim.cmd.wincmd('p')
    t.equal(api.nvim_get_current_buf(), buf)
    t.equal(chats.at(buf) == first, true, 'its state is in the status line')
    vim.cmd('Tandem ask 3')
    use.wait_idle()
    t.contains(text(first), 'Three.')
    vim.cmd('silent! tabonly')
    vim.cmd.wincmd('p')
    vim.cmd.split()
    press(']c')
    t.equal({ api.nvim_get_current_buf(), #vim.fn.win_findbuf(first.chat.buf) }, { second.chat.buf, 1 }, 'the other half stays')
    vim.cmd.wincmd('t')
    t.equal(api.nvim_get_current_buf(), buf)
    vim.cmd('Tandem ask 4')
    use.wait_idle()
    t.contains(text(second), 'Four.')
    vim.cmd('Tandem close')
  end)

  t.test('commands about changes apply to the chat whose change is under the cursor, and then to the same one', function()
    local buf = use.project('of-changes')
    model:script({ use.edit_call('c1', 'hello', 'bonjour') }, { { text = 'French.' } }, { use.edit_call('c2', 'wörld', 'world') }, { { text = 'Plain.' } })
    for number, words in ipairs({ 'Greet in French', 'Write plainly' }) do
      vim.cmd(number == 1 and 'Tandem chat' or 'Tandem new')
      use.edit_mode()
      send(words)
      t.wait('the change', function()
        return #chats.current().review.changes == 1
      end)
    end
    vim.cmd.wincmd('p')
    t.equal(api.nvim_get_current_buf(), buf)
    local function run(command, line, ...)
      local expected = { ... }
      api.nvim_win_set_cursor(0, { line, 0 })
      vim.cmd('Tandem ' .. command)
      t.wait(('%s and %s after %s'):format(expected[1], expected[2], command), function()
        local shown = use.text_of(buf)
        return shown:find(expected[1], 1, true) and shown:find(expected[2], 1, true)
      end)
    end
    run('reject all', 2, 'hello', 'world')
    run('undo', 4, 'bonjour', 'world')
    run('undo', 6, 'bonjour', 'wörld')
    run('redo', 4, 'bonjour', 'world')
    run('undo', 2, 'hello', 'world')
    vim.cmd('Tandem close')
  end)

  t.test('a permission request of a hidden chat opens no window and can be answered from anywhere', function()
    local _, folder = use.project('hidden')
    local write = { id = 'w', name = 'write_file', arguments = { path = 'new.rs', content = 'new' } }
    model:script({ { gate = 'ask' }, { call = write } }, { { text = 'Written.' } })
    vim.cmd('Tandem chat')
    local first = chats.current()
    first.chat:transcript():set_input('Write it')
    first.chat.input:submit()
    model:state('gate:ask')
    vim.cmd('Tandem new')
    local shown = api.nvim_get_current_buf()
    model:open('ask')
    use.wait_request()
    t.equal(api.nvim_get_current_buf(), shown)
    t.equal(vim.fn.win_findbuf(first.chat.buf), {})
    vim.cmd('Tandem allow')
    t.wait('the end of the turn', function()
      return first.state == 'idle'
    end)
    t.equal(vim.fn.filereadable(folder .. '/new.rs'), 1)
    vim.cmd('Tandem close')
  end)

  t.test('the chats of two workspaces share a window, and a permission request does not take it', function()
    local write = { id = 'w', name = 'write_file', arguments = { path = 'new.rs', content = 'new' } }
    model:script({ { gate = 'ask' }, { call = write } }, { { text = 'Elsewhere.' } }, { { text = 'Written.' } })
    local _, folder = use.project('window-one')
    vim.cmd('Tandem ask Write it')
    local first = chats.current()
    model:state('gate:ask')
    local windows = #api.nvim_list_wins()
    local other = vim.fs.dirname(folder) .. '/window-two'
    vim.fn.mkdir(other .. '/.git', 'p')
    vim.cmd.edit(other .. '/main.rs')
    vim.cmd('Tandem ask Hello')
    use.wait_chat('Elsewhere.')
    local second = chats.current()
    t.equal(#api.nvim_list_wins(), windows)
    model:open('ask')
    use.wait_request()
    t.equal({ vim.fn.win_findbuf(first.chat.buf), #vim.fn.win_findbuf(second.chat.buf) }, { {}, 1 })
    local floats = vim.tbl_filter(function(win)
      return api.nvim_win_get_config(win).relative ~= ''
    end, api.nvim_list_wins())
    t.contains(use.text_of(api.nvim_win_get_buf(floats[1])), 'window-one: Create new.rs')
    vim.cmd('Tandem allow')
    t.wait('the end of the turn', function()
      return first.state == 'idle'
    end)
  end)

  t.test('files and conversation are restored to before a question, which is edited and sent again', function()
    local buf = use.project('back')
    model:script(
      { use.edit_call('c1', 'hello', 'bonjour') },
      { { text = 'French.' } },
      { use.edit_call('c2', 'bonjour', 'hola') },
      { { text = 'Spanish.' } },
      { { text = 'Italian, then.' } },
      { { text = 'Again.' } }
    )
    use.edit_mode()
    vim.cmd('Tandem chat')
    send('Greet in French')
    send('Greet in Spanish')
    local session = chats.current()
    local function line(number)
      return api.nvim_buf_get_lines(buf, number - 1, number, false)[1]
    end
    t.contains(line(2), 'hola')
    vim.fn.search('Greet in Spanish')
    press('gb')
    t.wait('the file as it was', function()
      return line(2):find('bonjour', 1, true)
    end)
    t.wait('the question in the input', function()
      return session.chat.input:written() == 'Greet in Spanish'
    end)
    t.contains(text(session), 'Spanish.', 'it is shown until the conversation goes on')
    vim.cmd('Tandem undo')
    t.wait('the file as it was before', function()
      return line(2):find('hola', 1, true)
    end)
    t.wait('the conversation as it was', function()
      return not session.chat.cut
    end)

    vim.cmd('Tandem back')
    t.wait('the file as it was', function()
      return line(2):find('bonjour', 1, true)
    end)
    send('Greet in Italian')
    t.equal(text(session):find('Spanish.', 1, true), nil)
    t.contains(text(session), 'French.\n\n## You\nGreet in Italian\n\n## tandem\n\nItalian, then.')
    local requests = model:state().requests
    t.equal(use.sent_text(requests[5]):find('Spanish', 1, true), nil, 'the model knows nothing of it')

    press('gB')
    t.wait('the answer', function()
      return text(session):find('Again.', 1, true)
    end)
    use.wait_idle()
    t.equal(select(2, text(session):gsub('Greet in Italian', '')), 1)
    t.equal(text(session):find('Italian, then.', 1, true), nil)
  end)

  t.test('comments on lines are collected, move with their lines, and are sent as one message', function()
    local buf = use.project('comments')
    model:script({ { text = 'Both, then.' } })
    vim.cmd('2Tandem comment use a template')
    vim.cmd('5,7Tandem comment document this')
    api.nvim_buf_set_lines(buf, 0, 0, false, { '// typed since' })
    vim.cmd('Tandem comments')
    use.wait_idle()
    local sent = use.sent_text(model:state().requests[1])
    t.contains(sent, 'main.rs:3\n```\n    println!("hello {name}");\n```\nuse a template')
    t.contains(sent, 'main.rs:6-8\n```\nfn main() {')
    t.equal(api.nvim_buf_get_extmarks(buf, api.nvim_get_namespaces()['tandem.comments'], 0, -1, {}), {})
    vim.cmd('Tandem comments')
    t.equal(#model:state().requests, 1, 'nothing is sent twice')
  end)

  t.test('a comment on a file that was closed is sent all the same', function()
    local buf = use.project('closed comment')
    model:script({ { text = 'It is noted.' } })
    vim.cmd('2Tandem comment use a template')
    vim.cmd('bdelete! ' .. buf)
    vim.cmd.edit(vim.fn.bufname(buf))
    vim.cmd('Tandem comments')
    use.wait_idle()
    t.contains(use.sent_text(model:state().requests[1]), 'main.rs:2\n```\n    println!("hello {name}");\n```\nuse a template')
  end)

  t.test('an image in the clipboard is sent with the question', function()
    local _, folder = use.project('image')
    local tools, path = folder .. '/tools', vim.env.PATH
    vim.fn.mkdir(tools)
    -- A clipboard without an image, then one with a small PNG.
    local function clipboard(command)
      vim.fn.writefile({ '#!/bin/sh', command }, tools .. '/wl-paste')
      vim.fn.setfperm(tools .. '/wl-paste', 'rwx------')
    end
    vim.env.PATH = tools .. ':' .. path
    local told, notify = nil, vim.notify
    vim.notify = function(message)
      told = message
    end
    vim.cmd('Tandem chat')
    clipboard('exit 1')
    press('gp')
    t.contains(told, 'no image in the clipboard (wl-paste')
    vim.notify = notify
    clipboard([[printf '\211PNG\r\n\032\n-pixels-']])
    model:script({ { text = 'A picture.' } })
    chats.current().chat:transcript():set_input('What is')
    press('gp')
    vim.env.PATH = path
    t.contains(chats.current().chat.input:written(), 'What is\n\n![image](')
    send(chats.current().chat.input:written())
    local sent = vim.json.encode(model:state().requests[1].messages)
    t.contains(sent, 'What is')
    t.contains(sent, '[image 1]')
    t.contains((sent:gsub('\\/', '/')), 'data:image/png;base64,' .. vim.base64.encode('\137PNG\r\n\26\n-pixels-'))
  end)

  t.test(':edit in a chat shows it as it was', function()
    use.project('reread')
    model:script({ { text = 'Still here.' } })
    vim.cmd('Tandem ask Stay')
    use.wait_idle()
    vim.cmd('Tandem chat')
    chats.current().chat:transcript():set_input('a draft')
    local before = use.chat()
    vim.cmd('silent edit!')
    t.equal(use.chat(), before)
    model:script({ { text = 'Gone on.' } })
    chats.current().chat.input:submit()
    use.wait_idle()
    t.contains(use.chat(), '## You\na draft\n\n## tandem\n\nGone on.')
  end)

  t.test('earlier questions replace the draft, which returns after the last one', function()
    use.project('history')
    model:script({ { text = 'a' } }, { { text = 'b' } })
    vim.cmd('Tandem chat')
    send('First question')
    send('Second\nquestion')
    local chat = chats.current().chat
    chat:transcript():set_input('half a')
    api.nvim_win_set_cursor(0, { api.nvim_buf_line_count(0), 0 })
    press('<C-p>')
    t.equal(chat.input:written(), 'Second\nquestion')
    press('<C-p>')
    t.equal(chat.input:written(), 'First question')
    press('<C-p>')
    t.equal(chat.input:written(), 'First question')
    press('<C-n><C-n>')
    t.equal(chat.input:written(), 'half a')
    chat:transcript():set_input('')
    vim.cmd('Tandem new')
    press('<C-p>')
    t.equal(chats.current().chat.input:written(), 'Second\nquestion', 'the chats of a workspace share it')
    chats.current().chat:transcript():set_input('')
    vim.cmd('Tandem close')
  end)
end

return M
