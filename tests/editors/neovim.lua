-- The real plugin in a real Neovim with the real server and a scripted model:
--   TANDEM_BIN=target/debug/tandem nvim --headless -u NONE -l tests/editors/neovim.lua
local here = vim.fs.dirname(vim.fs.normalize(vim.uv.fs_realpath(arg[0])))
local repository = vim.fs.dirname(vim.fs.dirname(here))
local plugin = repository .. '/editors/neovim'
vim.opt.runtimepath:prepend(plugin)
vim.cmd.runtime('plugin/tandem.lua')
vim.o.swapfile, vim.o.showmode = false, false

local t = dofile(plugin .. '/tests/harness.lua')
local models = dofile(here .. '/neovim_model.lua')
local driver = dofile(here .. '/neovim_driver.lua')
local api = vim.api
local binary = vim.env.TANDEM_BIN or (repository .. '/target/debug/tandem')
local model = models.start(here .. '/model_server.py')

local home = vim.fn.tempname()
vim.fn.mkdir(home, 'p')
local environment = vim.tbl_extend('error', model:environment(home), {
  XDG_CONFIG_HOME = home .. '/config',
  XDG_STATE_HOME = home .. '/nvim-state',
})
for name, value in pairs(environment) do
  vim.env[name] = value
end
vim.g.tandem = { cmd = { binary, 'lsp' } }

local default_select = vim.ui.select

local events = {} ---@type string[]
api.nvim_create_autocmd('User', {
  pattern = 'Tandem*',
  callback = function(event)
    local update = event.data.update
    -- A session's options are known as soon as it is open, before its first turn.
    if not update or update.sessionUpdate ~= 'available_commands_update' then
      events[#events + 1] = event.match:gsub('^Tandem', '')
    end
  end,
})

local use = driver.new(t, home)
use.sent_text = models.sent_text
local notified = use.notified
local project, session, chat, text_of = use.project, use.session, use.chat, use.text_of
local wait_idle, wait_request, wait_chat, edit_call = use.wait_idle, use.wait_request, use.wait_chat, use.edit_call

---@param buf integer
---@return string
local function on_disk(buf)
  return table.concat(vim.fn.readfile(api.nvim_buf_get_name(buf)), '\n')
end

--- The preview of a change: rows to be removed, and virtual lines to be added.
---@param buf integer
---@return string[]
local function previewed(buf)
  local found = {}
  local space = api.nvim_get_namespaces()['tandem.preview']
  for _, mark in ipairs(api.nvim_buf_get_extmarks(buf, space, 0, -1, { details = true })) do
    if mark[4].hl_group then
      found[#found + 1] = ('%d %s'):format(mark[2], mark[4].hl_group)
    end
    for _, line in ipairs(mark[4].virt_lines or {}) do
      found[#found + 1] = ('%d %s'):format(mark[2], (line[1][1]:gsub('%s+$', '')))
    end
  end
  table.sort(found, function(a, b)
    return #a < #b
  end)
  return found
end

t.test('a question about a selection includes unsaved text, and its answer streams', function()
  local buf = project('ask')
  api.nvim_buf_set_lines(buf, 1, 2, false, { '    println!("unsaved 😀 {name}");' })
  model:script({
    { reasoning = 'Let me see.' },
    { text = 'It **greets** ' },
    { gate = 'middle' },
    { text = 'the name.' },
  })
  events = {}
  vim.cmd('1,3Tandem ask What does this do?')
  wait_chat('It **greets**')
  t.equal(session().state, 'running')
  t.equal(chat():find('the name', 1, true), nil, 'the second half is held at the gate')
  local sent = models.sent_text(model:state('gate:middle').requests[1])
  t.contains(sent, 'What does this do?')
  t.contains(sent, 'unsaved 😀 {name}')
  t.contains(sent, 'main.rs')
  t.equal(sent:find('wörld', 1, true), nil, 'only the selection is sent')
  model:open('middle')
  wait_idle()
  t.contains(chat(), 'It **greets** the name.')
  t.contains(chat(), '> Thinking\n> Let me see.')
  t.contains(chat(), '`main.rs:1-3`')
  t.equal(vim.bo[buf].modified, true)
  local of_turn = vim.tbl_filter(function(name)
    return name ~= 'Review' -- the list of a new session may come at any time
  end, events)
  t.equal({ of_turn[1], of_turn[#of_turn] }, { 'TurnStart', 'TurnEnd' })
end)

t.test('read_file returns the unsaved text of a buffer', function()
  local buf = project('read')
  api.nvim_buf_set_lines(buf, 5, 6, false, { '    greet("zebra");' })
  local call = { id = 'c1', name = 'read_file', arguments = { path = 'main.rs' } }
  model:script({ { call = call } }, { { text = 'Read.' } })
  vim.cmd('Tandem ask Read it')
  wait_idle()
  local requests = model:state().requests
  t.contains(models.sent_text(requests[1]), 'main.rs') -- the focus notification told the server where the user is
  t.contains(models.sent_text(requests[2]), 'zebra')
  t.contains(chat(), 'Read.')
end)

t.test('a buffer without a file is not written over before the model has read it', function()
  local _, folder = project('unread')
  vim.cmd.edit(folder .. '/new.rs')
  api.nvim_buf_set_lines(0, 0, -1, false, { '// mine' })
  use.edit_mode()
  local call = { id = 'c1', name = 'write_file', arguments = { path = 'new.rs', content = 'other' } }
  model:script({ { call = call } }, { { text = 'I see.' } })
  vim.cmd('Tandem ask Write it')
  wait_idle()
  local messages = model:state().requests[2].messages
  t.contains(messages[#messages].content, 'read it first')
  t.equal(text_of(0), '// mine')
end)

t.test('read_file returns the text of a buffer that was emptied and filled again', function()
  local buf = project('emptied')
  use.edit_mode() -- from here on, the server knows the buffer
  vim.cmd('silent %delete')
  vim.bo.undolevels = vim.bo.undolevels -- the following edits are a separate undo step
  for _, keys in ipairs({ 'omine<Esc>', 'u', '<C-r>', 'u', '<C-r>' }) do
    vim.cmd('silent normal! ' .. vim.keycode(keys))
  end
  t.equal(text_of(buf), '\nmine')
  local call = { id = 'c1', name = 'read_file', arguments = { path = 'main.rs' } }
  model:script({ { call = call } }, { { text = 'Read.' } })
  vim.cmd('Tandem ask Read it')
  wait_idle()
  local messages = model:state().requests[2].messages
  t.contains(messages[#messages].content, '1\t\n2\tmine\n')
  t.equal(messages[#messages].content:find('3\t', 1, true), nil)
end)

t.test('an edit is previewed, requires approval, changes only the buffer, and is one undo step', function()
  local buf = project('edit')
  local before = text_of(buf)
  local window, cursor = api.nvim_get_current_win(), api.nvim_win_get_cursor(0)
  local call = edit_call('c1', 'println!("hello {name}")', 'println!("hé😀 {name}")')
  model:script({ { text = 'I change it.' }, call }, { { text = 'Changed.' } })
  vim.cmd('1,3Tandem ask greet differently')
  local question = wait_request()
  t.equal(question.options[1].kind, 'reject_once')
  t.equal(text_of(buf), before, 'nothing happens before the answer')
  t.contains(chat(), '-    println!("hello {name}");')
  t.contains(chat(), '+    println!("hé😀 {name}");')
  t.contains(chat(), 'Allow?')
  t.equal(previewed(buf), { '1 TandemReviewDelete', '1     println!("hé😀 {name}");' }, 'the change is shown in its place')
  t.equal({ api.nvim_get_current_win(), api.nvim_win_get_cursor(0) }, { window, cursor }, 'the focus stays')
  t.equal(session().state, 'waiting')
  vim.cmd('Tandem allow')
  wait_idle()
  t.equal(previewed(buf), {})
  t.contains(text_of(buf), 'hé😀 {name}')
  t.equal(vim.bo[buf].modified, true)
  t.equal(on_disk(buf), before, 'the disk is untouched')
  t.equal(chat():find('Allow?', 1, true), nil)
  t.contains(chat(), 'Changed.')
  vim.cmd('silent undo')
  t.equal(text_of(buf), before)
end)

t.test('a final newline that the file did not have is no empty line', function()
  local buf, folder = project('newline')
  local path = folder .. '/main.rs'
  vim.fn.writefile(vim.split('fn main() {}\nfn last() {}', '\n'), path, 'b')
  vim.cmd('silent edit!')
  use.edit_mode()
  model:script({ edit_call('c1', 'fn last() {}', 'fn end() {}\n') }, { { text = 'Done.' } })
  vim.cmd('Tandem ask Rename it')
  wait_idle()
  t.equal(text_of(buf), 'fn main() {}\nfn end() {}')
  vim.cmd('silent write')
  t.equal(vim.fn.readblob(path), vim.fn.list2blob({ ('fn main() {}\nfn end() {}\n'):byte(1, -1) }))
end)

t.test('two edits of one turn are one undo step', function()
  local buf = project('two')
  local before = text_of(buf)
  model:script(
    { edit_call('c1', 'hello', 'good day') },
    { edit_call('c2', 'greet("wörld', 'greet("World') },
    { { text = 'Both.' } }
  )
  vim.cmd('Tandem edit change two things')
  t.contains(models.sent_text(model:state('requests:1').requests[1]), 'Edit main.rs: change two things')
  wait_request()
  vim.cmd('Tandem allow')
  t.wait('the second question', function()
    local question = require('tandem.permission').pending()
    return question and text_of(buf):find('good day', 1, true)
  end)
  vim.cmd('Tandem allow')
  wait_idle()
  t.contains(text_of(buf), 'greet("World')
  vim.cmd('silent undo')
  t.equal(text_of(buf), before)
end)

t.test('a permission request never opens a picker, and a rejected edit is not made', function()
  local buf = project('reject')
  local before, picked = text_of(buf), false
  vim.ui.select = function()
    picked = true
  end
  model:script({ edit_call('c1', 'hello', 'bye') }, { { text = 'Then not.' } })
  vim.cmd('Tandem ask Edit it')
  t.equal(wait_request().options[1].kind, 'reject_once')
  vim.cmd('Tandem reject')
  wait_idle()
  vim.ui.select = default_select
  t.equal(picked, false)
  t.equal(text_of(buf), before)
  t.equal(previewed(buf), {})
  t.contains(chat(), 'Then not.')
end)

t.test('without a visible chat, a float shows the permission request and never takes the focus', function()
  local settings = vim.g.tandem
  vim.g.tandem = vim.tbl_extend('force', settings, { chat = { auto_open = false } })
  local buf = project('float')
  local function floats()
    return vim.tbl_filter(function(win)
      return api.nvim_win_get_config(win).relative ~= ''
    end, api.nvim_list_wins())
  end
  vim.keymap.set('n', '<Leader>ty', '<Plug>(tandem-allow)')
  model:script({ edit_call('c1', 'hello', 'bye') }, { { text = 'Done.' } })
  vim.cmd('Tandem ask Edit it')
  wait_request()
  local float = floats()[1]
  t.equal(api.nvim_win_get_config(float).focusable, false)
  t.equal(api.nvim_get_current_buf(), buf)
  local shown = text_of(api.nvim_win_get_buf(float))
  for _, part in ipairs({ 'Edit main.rs', '\\ty allow', ' · :Tandem reject' }) do
    t.contains(shown, part)
  end
  vim.cmd('Tandem allow')
  wait_idle()
  t.equal(floats(), {})
  t.contains(text_of(buf), 'bye')
  vim.keymap.del('n', '<Leader>ty')
  vim.g.tandem = settings
end)

t.test('a cancelled turn closes the connection to the model, and the chat shows it', function()
  project('cancel')
  model:script({ { text = 'It begins' }, { hang = true } })
  vim.cmd('Tandem ask Take your time')
  wait_chat('It begins')
  local began = vim.uv.hrtime()
  vim.cmd('Tandem stop')
  wait_idle()
  io.stdout:write(('# stop -> turn ended: %.1f ms\n'):format((vim.uv.hrtime() - began) / 1e6))
  t.equal(model:state('closed:1').closed_early, 1)
  t.contains(chat(), 'Stopped.')
  model:script({ { text = 'Back again.' } })
  vim.cmd('Tandem ask And now?')
  wait_idle()
  t.contains(chat(), 'Back again.')
end)

t.test('stopping withdraws the permission request and leaves the buffer unchanged', function()
  local buf = project('withdraw')
  local before = text_of(buf)
  model:script({ edit_call('c1', 'hello', 'bye') }, { { text = 'unused' } })
  vim.cmd('Tandem ask Edit it')
  wait_request()
  vim.cmd('Tandem stop')
  wait_idle()
  t.equal(require('tandem.permission').pending(), nil)
  t.equal(text_of(buf), before)
  t.contains(chat(), 'Stopped.')
end)

t.test('text typed while an edit awaits approval is not lost', function()
  local buf = project('typing')
  model:script({ edit_call('c1', 'println!("hello {name}")', 'println!("bye {name}")') }, { { text = 'Done.' } })
  vim.cmd('Tandem ask Edit it')
  wait_request()
  api.nvim_buf_set_lines(buf, 0, 0, false, { '// typed meanwhile' })
  vim.cmd('Tandem allow')
  api.nvim_buf_set_lines(buf, -1, -1, false, { '// and right after' })
  wait_idle()
  t.contains(text_of(buf), '// typed meanwhile')
  t.contains(text_of(buf), '// and right after')
  t.contains(text_of(buf), 'bye {name}')
end)

t.test('a question from the chat includes the file in the next window', function()
  project('beside')
  vim.cmd('Tandem')
  t.equal(vim.bo.filetype, 'tandem')
  session().chat:transcript():set_input('What is this file?')
  model:script({ { text = 'It greets.' } })
  api.nvim_feedkeys(vim.keycode('G<CR>'), 'xt', false)
  wait_idle()
  t.contains(chat(), 'It greets.')
  t.contains(models.sent_text(model:state().requests[1]), 'beside/main.rs')
end)

t.test('a rejected API key is reported in the chat and as a message, and the next question works', function()
  project('key')
  use.forget_messages()
  local refusal = { error = { message = 'Incorrect API key provided', type = 'invalid_request_error' } }
  model:script({ { status = 401, body = refusal } })
  vim.cmd('Tandem ask Hello?')
  wait_idle()
  t.contains(table.concat(notified, '\n'):lower(), 'key')
  t.contains(chat():lower(), 'key')
  t.equal(chat():find('sk-test-0000', 1, true), nil, 'the key itself is never shown')
  model:script({ { text = 'Hello.' } })
  vim.cmd('Tandem ask Hello again?')
  wait_idle()
  t.contains(chat(), 'Hello.')
end)

t.test('without a model, the question stays and is answered once a model is configured, in the same server', function()
  local with_model, config = vim.g.tandem, home .. '/first.toml'
  local unset = { 'env' }
  for name in pairs(environment) do
    if name:find('^TANDEM_[MBA]') then
      vim.list_extend(unset, { '-u', name })
    end
  end
  vim.g.tandem = { cmd = vim.list_extend(unset, { binary, 'lsp' }), env = { TANDEM_CONFIG = config } }
  local _, folder = project('nomodel')
  local function times(part)
    return #vim.split(chat(), part, { plain = true }) - 1
  end
  local function send_again()
    vim.cmd('Tandem chat')
    api.nvim_feedkeys(vim.keycode('G<CR>'), 'xt', false)
    wait_idle()
    vim.cmd('Tandem chat')
  end
  vim.cmd('Tandem ask Anyone?')
  wait_idle()
  vim.g.tandem = with_model
  t.contains(chat(), '## You\nAnyone?\n\n## tandem\n\nno model configured.')
  t.equal(times('TANDEM_BASE_URL'), 1, 'it is said once')
  t.equal(session().chat:transcript():input_text(), 'Anyone?')
  use.forget_messages()
  vim.cmd('Tandem model')
  t.contains(notified[1], 'no model configured')
  local server = require('tandem.client').running(folder).id
  send_again()
  t.equal(times('TANDEM_BASE_URL'), 2, 'and again')
  t.equal(session().chat:transcript():input_text(), 'Anyone?')
  vim.fn.writefile({
    'model = "mine/test"',
    '[providers.mine]',
    ('base-url = "%s"'):format(model:base_url()),
    'api-key-env = ""',
  }, config)
  model:script({ { text = 'Somebody.' } })
  vim.cmd('Tandem ask Anyone?')
  wait_idle()
  t.contains(chat(), '## You\nAnyone?\n\n## tandem\n\nSomebody.')
  t.equal(session().chat:transcript():input_text(), '')
  t.equal(require('tandem.client').running(folder).id, server, 'no restart')
end)

t.test('the mode is switched and shown', function()
  local buf = project('mode')
  local before = text_of(buf)
  vim.cmd('Tandem mode plan')
  t.wait('the mode', function()
    return session().mode == 'plan'
  end)
  t.contains(require('tandem').status(), 'Plan')
  t.equal(require('tandem').status(25), 'tandem: ready · Plan', 'what has room')
  t.equal(require('tandem').status(1), 'tandem: ready')
  model:script({ edit_call('c1', 'hello', 'bye') }, { { text = 'Only planned.' } })
  vim.cmd('Tandem ask Edit it')
  wait_idle()
  t.equal(text_of(buf), before, 'nothing is edited in plan mode')
  vim.cmd('Tandem mode edit')
  t.wait('the mode', function()
    return session().mode == 'edit'
  end)
  model:script({ edit_call('c2', 'hello', 'bye') }, { { text = 'Edited.' } })
  vim.cmd('Tandem ask Edit it now')
  wait_idle()
  t.contains(text_of(buf), 'bye {name}')
end)

t.test('a new conversation does not include the previous one', function()
  project('new')
  model:script({ { text = 'Noted.' } }, { { text = 'Which word?' } })
  vim.cmd('Tandem ask The word is xylophone')
  wait_idle()
  vim.api.nvim_buf_set_lines(session().chat.buf, -2, -1, false, { 'begun and', 'not sent' })
  vim.cmd('Tandem new')
  t.equal(vim.api.nvim_get_current_buf(), session().chat.buf, 'what is typed next is not typed into the code')
  t.equal(chat():find('xylophone', 1, true), nil)
  t.contains(chat(), 'begun and\nnot sent')
  t.wait('the mode and the commands, before the first prompt', function()
    return session().mode == 'ask' and #session().commands > 0
  end)
  vim.cmd('Tandem ask Which word?')
  wait_idle()
  t.equal(models.sent_text(model:state().requests[2]):find('xylophone', 1, true), nil)
end)

t.test('Always accepts a wider rule', function()
  project('wider')
  local function run(id, command)
    return { { call = { id = id, name = 'run_command', arguments = { command = command } } } }
  end
  model:script(run('c1', 'printf %s one'), run('c2', 'printf %s two'), { { text = 'Both ran.' } })
  vim.cmd('Tandem ask Run them')
  wait_request()
  t.equal(vim.fn.getcompletion('Tandem always ', 'cmdline'), { 'run_command(printf %s one)', 'project' })
  vim.cmd('Tandem always run_command(printf %s *)')
  wait_idle()
  t.contains(chat(), 'Both ran.')
  local sent = vim.json.encode(model:state().requests[3])
  t.equal(sent:find('rejected this call', 1, true), nil)
end)

t.test('one answer allows the rest of a turn, and <Tab> offers a rule for a subcommand', function()
  project('whole')
  local function run(id, command)
    return { call = { id = id, name = 'run_command', arguments = { command = command } } }
  end
  model:script(
    { run('c1', 'git status --short'), run('c2', 'seq 2') },
    { run('c3', 'seq 3') },
    { { text = 'All ran.' } }
  )
  vim.cmd('Tandem ask Run them')
  wait_request()
  t.equal(
    vim.fn.getcompletion('Tandem always ', 'cmdline'),
    { 'run_command(git status --short)', 'run_command(git status *)', 'project' }
  )
  t.contains(chat(), 'g.   Allow All of This Turn')
  require('tandem').allow_turn()
  wait_idle()
  t.contains(chat(), 'All ran.')
  local sent = vim.json.encode(model:state().requests[3])
  t.equal(sent:find('rejected this call', 1, true), nil)
end)

t.test('an earlier conversation can be resumed, and the current one is kept', function()
  project('earlier')
  model:script({ { text = 'Noted.' } }, { { text = 'A new one.' } }, { { text = 'Xylophone.' } })
  vim.cmd('Tandem ask The word is xylophone')
  wait_idle()
  vim.cmd('Tandem new')
  vim.cmd('Tandem ask Something else')
  wait_idle()
  local offered
  vim.ui.select = function(items, options, choose)
    offered = vim.tbl_map(options.format_item, items)
    choose(items[1], 1)
  end
  vim.cmd('Tandem sessions')
  wait_chat('Noted.')
  vim.ui.select = default_select
  t.equal(#offered, 1)
  t.contains(offered[1], 'The word is xylophone')
  t.contains(chat(), '## You\nThe word is xylophone\n\n## tandem\n\nNoted.')
  t.equal(chat():find('Something else', 1, true), nil)
  vim.cmd('Tandem ask Which word?')
  wait_idle()
  t.contains(chat(), 'Xylophone.')
  t.contains(vim.json.encode(model:state().requests[3]), 'The word is xylophone')
  session():back_to(session().chat:prompt_at(3), function(question)
    session().chat.input:give_back(question.text)
  end)
  t.wait('the first question in the input', function()
    return session().chat.input:written() == 'The word is xylophone'
  end)
end)

t.test('a conversation that another process has open is not loaded, and the current one continues', function()
  project('holder')
  model:script({ { text = 'Held.' } })
  vim.cmd('Tandem ask Hold this')
  wait_idle()
  local held = session().id
  project('guest')
  model:script({ { text = 'Mine.' } }, { { text = 'Still mine.' } })
  vim.cmd('Tandem ask Mine?')
  wait_idle()
  local id, before = session().id, chat()
  session():load(held)
  vim.cmd('Tandem ask Still mine?') -- said in the meantime
  wait_chat('Could not open that session: ')
  wait_chat('Still mine.')
  wait_idle()
  t.contains(chat(), 'is open in another window or editor')
  t.contains(chat(), vim.trim((before:gsub('\n## [^\n]*\n*$', ''))))
  t.contains(chat(), 'Still mine.')
  t.equal(session().id, id)
end)

t.test('from the chat to the code: places, tool calls of every turn, code blocks; the chat stays in its window', function()
  local buf, folder = project('places')
  local read = { call = { id = 'c1', name = 'read_file', arguments = { path = 'main.rs' } } }
  model:script(
    { read },
    { { text = 'See **`main.rs:6`**, [it](main.rs#L5) and missing.rs:1.\n\n```rust\nfn a() {}\nfn b() {}\n```\n' } },
    { { text = 'Later.' } }
  )
  vim.cmd('Tandem ask Where?')
  wait_idle()
  vim.cmd('Tandem ask And later?')
  wait_idle()
  local code = api.nvim_get_current_win()
  vim.cmd('Tandem chat')
  local window = api.nvim_get_current_win()
  t.equal(vim.fn.bufname(), 'tandem places')
  local function from(pattern, keys)
    api.nvim_set_current_win(window)
    vim.fn.cursor(1, 1)
    t.equal(vim.fn.search(pattern) > 0, true, pattern)
    api.nvim_feedkeys(vim.keycode(keys), 'xt', false)
    return { api.nvim_get_current_win(), api.nvim_get_current_buf(), api.nvim_win_get_cursor(0)[1] }
  end
  t.equal(from('main\\.rs:6', '<CR>'), { code, buf, 6 })
  t.equal(from('\\[it', 'gf'), { code, buf, 5 })
  t.equal(from('main\\.rs:6', 'gF'), { code, buf, 6 })
  api.nvim_win_set_cursor(code, { 2, 0 })
  t.equal(from('^Read main.rs', '<CR>')[1], code, 'a tool call of an earlier turn')
  use.forget_messages()
  t.equal(from('missing\\.rs', '<CR>')[1], window)
  t.contains(notified[1], 'No file under the cursor')
  from('fn a', '"xgy')
  t.equal(vim.fn.getreg('x'), 'fn a() {}\nfn b() {}\n')
  t.equal(pcall(vim.cmd.edit, folder .. '/main.rs'), false, 'the chat stays in its window')
  api.nvim_win_close(code, true)
  t.equal(from('main\\.rs:6', '<CR>')[2], buf, 'a window is made where none shows code')
end)

t.test('an edit the encoding cannot represent is refused before it is made, and the model learns why', function()
  local buf = project('latin')
  vim.cmd('write ++enc=latin1')
  vim.bo.fileencoding = 'latin1'
  api.nvim_buf_set_lines(buf, 5, 6, false, { '    greet("wörld");' })
  model:script(
    { edit_call('c1', 'hello', '中 hello') },
    { edit_call('c2', 'hello', 'hé') },
    { { text = 'With é then.' } }
  )
  vim.cmd('Tandem mode edit')
  vim.cmd('Tandem ask Edit it')
  wait_idle()
  t.contains(models.sent_text(model:state().requests[2]), 'written as latin1, which cannot represent 中 (U+4E2D)')
  t.equal(text_of(buf):find('中', 1, true), nil)
  t.contains(text_of(buf), 'hé {name}')
end)

t.test('a draft survives a restart', function()
  local _, folder = project('draft')
  vim.cmd('Tandem chat')
  session().chat:transcript():set_input('not sent\nyet')
  api.nvim_exec_autocmds('VimLeavePre', { group = 'tandem.quit' })
  api.nvim_buf_delete(session().chat.buf, { force = true })
  vim.cmd.edit(folder .. '/main.rs')
  vim.cmd('Tandem chat')
  t.equal(session().chat:transcript():input_text(), 'not sent\nyet')
  session().chat:transcript():set_input('')
  api.nvim_exec_autocmds('VimLeavePre', { group = 'tandem.quit' })
  t.equal(require('tandem.draft').load(folder), '')
end)

t.test('a draft outlives what another editor writes in the same workspace', function()
  local one, other = dofile(plugin .. '/lua/tandem/draft.lua'), dofile(plugin .. '/lua/tandem/draft.lua')
  t.equal({ one.load(home), other.load(home) }, { '', '' })
  one.save(home, 'one')
  other.save(home, '')
  t.equal(one.load(home), 'one', 'not deleted by an editor without a draft')
  other.save(home, 'other')
  one.save(home, '')
  t.equal(other.load(home), 'other', 'not deleted by an editor whose draft it is not')
  other.save(home, '')
  one.save(home, 'one')
  t.equal(other.load(home), 'one', 'as the first editor leaves')
end)

t.test('a server that dies ends the turn with a reason, and the next question resumes in a new server', function()
  local _, folder = project('crash')
  local write = { id = 'w', name = 'write_file', arguments = { path = 'new.rs', content = 'new' } }
  local function servers()
    return vim.tbl_filter(function(pid)
      local process = api.nvim_get_proc(pid)
      return process and process.name == vim.fs.basename(binary):sub(1, 15)
    end, api.nvim_get_proc_children(vim.fn.getpid()))
  end
  model:script({ { text = 'so far' }, { call = write } })
  local others = servers()
  vim.cmd('Tandem ask Go on')
  wait_request()
  local first = require('tandem.client').running(folder)
  local new = vim.tbl_filter(function(pid)
    return not vim.list_contains(others, pid)
  end, servers())
  t.equal(#new, 1, 'the server is a child of this editor')
  vim.uv.kill(new[1], 'sigkill')
  wait_idle()
  t.contains(chat(), 'the server ended (signal 9)')
  local signs = api.nvim_buf_get_extmarks(session().chat.buf, -1, 0, -1, { details = true, type = 'sign' })
  t.equal(vim.tbl_map(function(mark)
    return mark[4].sign_hl_group
  end, signs), { 'TandemFailed', 'TandemFailed' }, 'what waited does not any more')
  model:script({ { text = 'Alive.' } })
  vim.cmd('Tandem ask Still there?')
  wait_idle()
  t.contains(chat(), 'Alive.')
  t.equal(require('tandem.client').running(folder).id ~= first.id, true)
  t.contains(vim.json.encode(model:state().requests[1]), 'Go on')
  t.equal(table.concat(notified, '\n'):find('quit with exit code', 1, true), nil, 'Neovim does not tell it as well')
end)

t.test('only files of the workspace are attached', function()
  local buf, folder = project('attach')
  model:script({ { text = 'Hello.' } })
  vim.cmd('Tandem ask Hello')
  wait_idle()
  local id = require('tandem.client').running(folder).id
  t.equal(vim.lsp.buf_is_attached(buf, id), true)
  vim.cmd.edit(folder .. '/new.rs')
  t.equal(vim.lsp.buf_is_attached(0, id), true, 'a new file of the workspace')
  vim.cmd.edit(home .. '/outside.txt')
  t.equal(vim.lsp.buf_is_attached(0, id), false, 'a file elsewhere')
  vim.cmd.enew()
  t.equal(vim.lsp.buf_is_attached(0, id), false, 'a buffer without a name')
  vim.cmd.help()
  t.equal(vim.lsp.buf_is_attached(0, id), false, 'a help page')
  vim.cmd.helpclose()
  local in_chat = vim.lsp.get_clients({ bufnr = require('tandem.chats').get(folder).chat.buf })
  t.equal({ #in_chat, in_chat[1].name }, { 1, 'tandem chat' }, 'the chat has completion, and no server')
end)

t.test('checkhealth reports the binary, its version, the server and the model', function()
  project('attach')
  vim.cmd('Tandem health')
  local report = text_of(0)
  vim.cmd('silent! tabonly')
  local _, folder = project('attach')
  local parts = { 'Neovim ', binary, 'server for ' .. folder, 'session: ready', ' · Ask before edits · test', 'vim.g.tandem is valid' }
  for _, part in ipairs(vim.list_extend(parts, { 'sandbox: ', 'configuration: ', 'state: ' })) do
    t.contains(report, part)
  end
  t.equal(report:find('none yet', 1, true), nil)
  t.equal(report:match('^(.-)tandem: doctor'):find('ERROR', 1, true), nil)
end)

for _, part in ipairs({ 'turns', 'chats', 'extremes', 'language', 'edit', 'notebooks', 'review', 'surroundings' }) do
  dofile(here .. ('/neovim_%s.lua'):format(part)).test(t, model, use)
end

local function enable_starts_one_client()
  vim.lsp.enable('tandem')
  local buf, folder = project('enabled')
  vim.bo.filetype = 'rust'
  t.wait('the client', function()
    return require('tandem.client').running(folder)
  end)
  t.wait('the buffer', function()
    return #vim.lsp.get_clients({ bufnr = buf, name = 'tandem' }) == 1
  end)
  model:script({ { text = 'Enabled.' } })
  vim.cmd('Tandem ask Hello')
  wait_idle()
  t.contains(chat(), 'Enabled.')
  t.equal(#vim.lsp.get_clients({ bufnr = buf, name = 'tandem' }), 1)
  vim.lsp.enable('tandem', false)
end

if vim.lsp.enable then
  t.test('vim.lsp.enable starts the same client, and only one', enable_starts_one_client)
else
  io.stdout:write('# vim.lsp.enable is not in this Neovim\n')
end

for _, part in ipairs({ 'install', 'suggest', 'screen', 'look', 'small', 'jobs', 'histories' }) do
  dofile(here .. ('/neovim_%s.lua'):format(part)).test(t, model, {
    binary = binary,
    plugin = plugin,
    home = home,
    here = here,
    environment = environment,
  })
end

for _, client in ipairs(vim.lsp.get_clients({ name = 'tandem' })) do
  vim.lsp.stop_client(client.id)
end
t.test('the servers end when they are asked to', function()
  t.wait('the clients are gone', function()
    return #vim.lsp.get_clients({ name = 'tandem' }) == 0
  end)
end, true)
model:stop()
t.finish({ again = true })
