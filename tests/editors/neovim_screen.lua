--- A real Neovim in a real terminal (tmux), driven over RPC, seen as the user sees it.
local M = {}

---@class tandem.test.Screen
---@field channel integer RPC to the editor in the terminal
---@field private socket string of tmux
---@field private server integer the process of tmux
local Screen = {}
Screen.__index = Screen

---@param arguments string[]
---@param socket string
---@return string output
local function tmux(socket, arguments)
  local result = vim.system(vim.list_extend({ 'tmux', '-S', socket }, arguments), { text = true }):wait()
  assert(result.code == 0, result.stderr)
  return result.stdout
end

---@class tandem.test.ScreenOptions
---@field nvim string
---@field init string
---@field file string
---@field cwd string
---@field columns integer
---@field rows integer
---@field env table<string, string>

---@param options tandem.test.ScreenOptions
---@return tandem.test.Screen
function M.start(options)
  local folder = vim.fn.tempname()
  vim.fn.mkdir(folder, 'p')
  local socket, rpc, settings = folder .. '/tmux', folder .. '/nvim', folder .. '/tmux.conf'
  vim.fn.writefile({
    'set -g default-terminal "tmux-256color"',
    'set -ga terminal-overrides ",*:Tc"',
    'set -g status off',
    'set -g escape-time 0',
  }, settings)
  local size = { '-x', tostring(options.columns), '-y', tostring(options.rows), '-c', options.cwd }
  local command = { '-f', settings, '-u', 'new-session', '-d' }
  vim.list_extend(command, size)
  for name, value in vim.spairs(options.env) do
    vim.list_extend(command, { '-e', name .. '=' .. value })
  end
  vim.list_extend(command, { options.nvim, '-u', options.init, '--listen', rpc, options.file })
  tmux(socket, command)
  local connected, channel
  vim.wait(10000, function()
    connected, channel = pcall(vim.fn.sockconnect, 'pipe', rpc, { rpc = true })
    return connected
  end, 10)
  local server = tonumber(tmux(socket, { 'display-message', '-p', '#{pid}' }))
  local screen = setmetatable({ socket = socket, server = server, channel = channel }, Screen)
  vim.api.nvim_create_autocmd('VimLeavePre', {
    desc = 'nothing is left behind, however the tests end',
    callback = function()
      screen:stop()
    end,
  })
  assert(connected, 'Neovim does not start in tmux')
  return screen
end

--- Runs Lua in the editor on the screen.
---@param code string
---@param ... any
---@return any
function Screen:lua(code, ...)
  return vim.rpcrequest(self.channel, 'nvim_exec_lua', code, { ... })
end

--- Also answers while the editor waits for a key and runs no Lua.
---@return { mode: string, blocking: boolean }
function Screen:mode()
  return vim.rpcrequest(self.channel, 'nvim_get_mode')
end

---@param ... string as tmux names keys
function Screen:keys(...)
  tmux(self.socket, { 'send-keys', ... })
end

---@return string
function Screen:text()
  return tmux(self.socket, { 'capture-pane', '-p' })
end

--- The screen with its colors, for screen_png.sh.
---@return string
function Screen:colored()
  return tmux(self.socket, { 'capture-pane', '-p', '-e', '-N' })
end

---@param columns integer
---@param rows integer
function Screen:resize(columns, rows)
  tmux(self.socket, { 'resize-window', '-x', tostring(columns), '-y', tostring(rows) })
end

function Screen:stop()
  vim.uv.kill(self.server, 'sigterm')
end

local source = [[
use std::env;

/// The port to listen on, from `PORT`.
fn port() -> u16 {
    let text = env::var("PORT").unwrap();
    text.parse().unwrap()
}

fn main() {
    let port = port();
    println!("listening on {port}");
}
]]

local old = [[
fn port() -> u16 {
    let text = env::var("PORT").unwrap();
    text.parse().unwrap()
}]]

local new = [[
fn port() -> Result<u16, String> {
    let text = env::var("PORT").unwrap_or("8080".into());
    text.parse().map_err(|_| format!("{text:?} is no port"))
}]]

M.init = [[
vim.opt.runtimepath:prepend(%q)
vim.opt.runtimepath:append(vim.fs.normalize(vim.env.VIMRUNTIME .. '/../../../lib/nvim')) -- Debian's parsers
vim.o.termguicolors, vim.o.number, vim.o.swapfile, vim.o.laststatus = true, true, false, 3
vim.o.statusline = " %%f %%m%%=%%{v:lua.require'tandem'.status()}  %%l:%%c "
vim.opt.shortmess:append('I')
vim.g.tandem = { cmd = { %q, 'lsp' } }
]]

local replies = {
  {
    { reasoning = 'It panics twice: when PORT is unset and when it is no number.\n' },
    { reasoning = 'A default and a clear error are better.' },
    { text = '`port` panics when `PORT` is missing or no number. I make it **return an error** that names the value.' },
    {
      call = {
        id = 'c1',
        name = 'update_plan',
        arguments = {
          entries = {
            { content = 'Read src/main.rs', status = 'completed' },
            { content = 'Return an error from port()', status = 'in_progress' },
            { content = 'Report it in main()', status = 'pending' },
          },
        },
      },
    },
    { call = { id = 'c2', name = 'read_file', arguments = { path = 'src/main.rs' } } },
  },
  {
    {
      call = {
        id = 'c3',
        name = 'edit_file',
        arguments = { path = 'src/main.rs', edits = { { old_text = old, new_text = new } } },
      },
    },
  },
  {
    {
      call = {
        id = 'c5',
        name = 'update_plan',
        arguments = {
          entries = {
            { content = 'Read src/main.rs', status = 'completed' },
            { content = 'Return an error from port()', status = 'completed' },
            { content = 'Report it in main()', status = 'completed' },
          },
        },
      },
    },
  },
  { { text = 'Done: `port` returns an error now.' } },
}

---@param name string of the picture
---@param screen tandem.test.Screen
---@param here string
local function picture(name, screen, here)
  local folder = vim.env.TANDEM_TEST_OUT
  if not (folder and vim.env.TANDEM_PICTURES) then
    return
  end
  vim.fn.mkdir(folder, 'p')
  local path = ('%s/neovim-%d.%d-%s'):format(folder, vim.version().major, vim.version().minor, name)
  local colored = ''
  vim.wait(3000, function() -- highlighting is asynchronous: wait until the screen is stable
    local before = colored
    colored = screen:colored()
    return colored == before
  end, 250)
  vim.fn.writefile(vim.split(colored, '\n'), path .. '.ansi')
  if vim.fn.executable('chromium') == 1 then
    vim.system({ 'bash', here .. '/screen_png.sh', path .. '.png' }, { stdin = colored }):wait()
  end
end

--- Waits until the screen shows a text.
---@param t table the harness
---@param screen tandem.test.Screen
---@param part string
local function wait_text(t, screen, part)
  local ok, problem = pcall(t.wait, ('%q on the screen'):format(part), function()
    return screen:text():find(part, 1, true)
  end, 20000)
  if not ok then
    error(('%s; it shows:\n%s'):format(problem, screen:text()), 2)
  end
end

--- Waits until the plugin considers the request seen and typing stopped.
---@param t table the harness
---@param screen tandem.test.Screen
local function calm(t, screen)
  t.wait('a pause in the typing', function()
    return screen:lua([[
      local typed, question = require('tandem.typed'), require('tandem.permission').pending()
      local is_seen = not question or typed.now() - question.shown_at > 700
      return is_seen and not typed.is_older_than(math.huge)
    ]])
  end)
end

--- Nothing is left from the previous test: no dialog, turn, question or chat window; the file is as on disk, with the cursor in it.
---@param t table the harness
---@param screen tandem.test.Screen
local function settle(t, screen)
  t.wait('normal mode', function()
    local mode = screen:mode()
    local is_normal = not mode.blocking and vim.startswith(mode.mode, 'n')
    if not is_normal then
      screen:keys('C-c', 'Escape')
    end
    return is_normal
  end)
  screen:lua([[
    local typed = require('tandem.typed')
    typed.now = _G.clock or typed.now
    for _, session in ipairs(require('tandem.chats').all()) do
      if session.state ~= 'idle' then
        session:stop()
      end
    end
  ]])
  t.wait('the end of all turns', function()
    return screen:lua([[
      return not require('tandem.permission').pending() and vim.iter(require('tandem.chats').all()):all(function(session)
        return session.state == 'idle'
      end)
    ]])
  end)
  screen:lua(
    [[
      local current = require('tandem.chats').current()
      if current.chat.buf then
        current.chat:transcript():set_input('')
      end
      vim.cmd('botright new | silent! only | edit src/main.rs')
      vim.api.nvim_buf_set_lines(0, 0, -1, false, ...)
      vim.cmd('silent write!')
    ]],
    vim.split(source, '\n', { plain = true, trimempty = true })
  )
end

--- Waits until the chat has the cursor.
---@param t table the harness
---@param screen tandem.test.Screen
local function in_chat(t, screen)
  t.wait('the chat has the cursor', function()
    return screen:lua('return vim.bo.filetype') == 'tandem'
  end)
end

--- Moves to the chat, from where its command would close it.
---@param t table the harness
---@param screen tandem.test.Screen
local function go_to_chat(t, screen)
  if screen:lua('return vim.bo.filetype') ~= 'tandem' then
    screen:keys(':Tandem chat', 'Enter')
  end
  in_chat(t, screen)
end

M.wait_text, M.settle, M.calm, M.picture = wait_text, settle, calm, picture
M.in_chat, M.go_to_chat = in_chat, go_to_chat

---@class tandem.test.Setup
---@field binary string
---@field plugin string
---@field home string
---@field here string
---@field environment table<string, string>

--- Neovim with the plugin on a screen, in a small project.
---@param t table the harness
---@param setup tandem.test.Setup
---@return tandem.test.Screen
---@return string folder
function M.open(t, setup)
  local folder = setup.home .. '/greeter'
  vim.fn.mkdir(folder .. '/.git', 'p')
  vim.fn.mkdir(folder .. '/src', 'p')
  vim.fn.writefile(vim.split(source, '\n', { plain = true, trimempty = true }), folder .. '/src/main.rs')
  vim.fn.writefile(vim.split(M.init:format(setup.plugin, setup.binary), '\n'), setup.home .. '/init.lua')
  local screen = M.start({
    nvim = vim.v.progpath,
    init = setup.home .. '/init.lua',
    file = 'src/main.rs',
    cwd = folder,
    columns = 126,
    rows = 36,
    env = vim.tbl_extend('force', setup.environment, { VIMRUNTIME = vim.env.VIMRUNTIME }),
  })
  t.wait('the plugin', function()
    return screen:lua('return vim.v.vim_did_enter') == 1
  end)
  return screen, folder
end

--- The tests of this file. With TANDEM_TEST_OUT set, the screens are saved there.
---@param t table the harness
---@param model tandem.test.Model
---@param setup tandem.test.Setup
function M.test(t, model, setup)
  if vim.fn.executable('tmux') == 0 then
    return t.skip('the screen', 'tmux is not installed')
  end
  local screen, folder = M.open(t, setup)

  --- A test that doesn't depend on earlier ones.
  ---@param name string
  ---@param body fun()
  local function test(name, body)
    t.test('on the screen: ' .. name, function()
      settle(t, screen)
      body()
    end)
  end
  test('a permission request leaves the cursor in the code, a key in the chat allows it, undo reverts it', function()
    model:script(unpack(replies))
    wait_text(t, screen, 'fn main()')
    screen:keys('4GVjjj:Tandem ask What happens without PORT?', 'Enter')
    wait_text(t, screen, 'Allow?')
    wait_text(t, screen, '+fn port() -> Result<u16, String>')
    wait_text(t, screen, '-fn port() -> u16 {')
    t.equal(screen:text():find('panics twice', 1, true), nil, 'the reasoning is folded')
    t.equal(screen:lua('return vim.fn.expand("%:t")'), 'main.rs')
    t.equal(screen:mode().mode, 'n')
    picture('question', screen, setup.here)
    screen:keys('Go// typed meanwhile', 'Escape')
    wait_text(t, screen, '// typed meanwhile')
    wait_text(t, screen, 'Allow?')
    go_to_chat(t, screen)
    calm(t, screen)
    screen:keys('ga')
    wait_text(t, screen, 'returns an error now')
    wait_text(t, screen, '<CR> send\n')
    picture('done', screen, setup.here)
    screen:keys('q')
    t.wait('the chat is closed', function()
      return screen:lua('return vim.fn.expand("%:t")') == 'main.rs'
    end)
    wait_text(t, screen, 'is no port')
    screen:keys('u')
    wait_text(t, screen, '.unwrap()')
    t.equal(screen:text():find('is no port', 1, true), nil)
    wait_text(t, screen, '// typed meanwhile')
  end)

  test('a permission request for a command shows all its details', function()
    local command = 'cargo test --package greeter port'
    local call = { id = 'c4', name = 'run_command', arguments = { command = command } }
    model:script({ { text = 'I run the tests of `port`.' }, { call = call } }, { { text = 'Not run.' } })
    screen:keys('Go// unsaved', 'Escape', ':Tandem ask Do its tests pass?', 'Enter')
    wait_text(t, screen, 'Allow?')
    local asked = screen:lua([[
      local chat = require('tandem.chats').current().chat
      return table.concat(vim.api.nvim_buf_get_lines(chat.buf, 0, -1, false), '\n')
    ]])
    local always, place = ('Always (session): run_command(%s)'):format(command), command .. '\nin ' .. folder
    for _, part in ipairs({ place, 'in the sandbox, without network', always }) do
      t.contains(asked, part)
    end
    -- It sees the unsaved text of src/main.rs; if the sandbox can't show that, it is saved first.
    t.equal(screen:lua('return vim.bo[vim.fn.bufnr("src/main.rs")].modified'), true)
    t.equal(asked:find('ignores unsaved changes', 1, true), nil)
    picture('command', screen, setup.here)
    calm(t, screen)
    screen:keys(':Tandem reject', 'Enter')
    wait_text(t, screen, 'Not run.')
  end)

  test('maps on a visual selection ask with the vim.ui.input of Neovim itself', function()
    screen:lua([[
      for key, name in pairs({ a = 'ask', e = 'edit', w = 'steer', m = 'comment' }) do
        vim.keymap.set({ 'n', 'x' }, '<Leader>t' .. key, ('<Plug>(tandem-%s)'):format(name))
      end
    ]])
    local function say(keys, prompt, words)
      screen:keys(keys)
      wait_text(t, screen, prompt)
      screen:keys(words, 'Enter')
    end
    local function last_request()
      local requests = model:state().requests
      return vim.json.encode(requests[#requests])
    end
    model:script({ { text = 'Asked.' } })
    say('4GVjj\\ta', 'Ask tandem:', 'why the loop?')
    wait_text(t, screen, 'Asked.')
    wait_text(t, screen, 'main.rs:4-6')
    t.contains(last_request(), 'why the loop?')

    model:script({ { text = new:gsub('Result<u16, String>', 'u32') .. '\n' } })
    say('4GVjj\\te', 'Edit with tandem:', 'open every port')
    wait_text(t, screen, 'ga keep')
    t.contains(last_request(), 'open every port')
    screen:keys('Escape')

    model:script({ { text = 'Explained.' } })
    say('4Gvjj\\tm', 'Comment:', 'explain this')
    wait_text(t, screen, '» explain this')
    screen:keys(':Tandem comments', 'Enter')
    wait_text(t, screen, 'Explained.')
    t.contains(last_request(), 'main.rs:4-6')

    model:script({ { text = 'It begins.' }, { hang = true } })
    screen:keys(':Tandem ask Begin', 'Enter')
    wait_text(t, screen, 'It begins.')
    say('4GVjj\\tw', 'Add to the running turn:', 'mind the type')
    wait_text(t, screen, 'joining  mind the type')
    t.equal(screen:mode(), { mode = 'n', blocking = false })
    local lines = screen:lua("return vim.fn.getbufline('src/main.rs', 1, '$')")
    t.equal(table.concat(lines, '\n') .. '\n', source, 'no key was a command')
  end)

  test('stray keys answer no permission request, whatever picker is installed', function()
    screen:lua([[
      vim.ui.select = function(_, _, choose)
        _G.picked = true
      end
    ]])
    model:script({ { gate = 'typing' }, replies[2][1] }, { { text = 'Not edited.' } })
    screen:keys(':Tandem ask Again', 'Enter')
    model:state('gate:typing')
    screen:keys('Gonow')
    wait_text(t, screen, '-- INSERT --')
    model:open('typing')
    wait_text(t, screen, 'Allow?')
    screen:keys('o', 'Enter', 'y', 'Enter', 'a', 'Enter', 'Escape', 'y', 'Enter', 'o', 'Enter', 'a', 'Enter', 'Escape')
    calm(t, screen)
    t.equal(screen:lua('return _G.picked == nil'), true)
    t.contains(screen:text(), 'Allow?')
    screen:keys(':Tandem reject', 'Enter')
    wait_text(t, screen, 'Not edited.')
  end)

  test('keys typed before a permission request appeared do not answer it', function()
    model:script({ { gate = 'moment' }, replies[2][1] }, { { text = 'Refused at last.' } })
    screen:keys(':Tandem ask And again', 'Enter')
    model:state('gate:moment')
    go_to_chat(t, screen)
    -- From here on, no time passes for the plugin, however slow the machine is.
    screen:lua([[
      local typed = require('tandem.typed')
      local now = typed.now()
      _G.clock, typed.now = typed.now, function()
        return now
      end
    ]])
    screen:keys('k')
    model:open('moment')
    wait_text(t, screen, 'Allow?')
    screen:keys('ga')
    wait_text(t, screen, 'Ignored as a stray key')
    t.equal(screen:lua("return require('tandem.permission').pending() ~= nil"), true)
    screen:lua("require('tandem.typed').now = _G.clock")
    calm(t, screen)
    screen:keys('gr')
    wait_text(t, screen, 'Refused at last.')
  end)

  test('a long message does not block the editor', function()
    model:script({ { status = 401, body = { error = { message = ('Incorrect key. '):rep(30) } } } })
    screen:keys(':Tandem ask Hello', 'Enter')
    wait_text(t, screen, 'Incorrect key. Incorrect key.')
    t.equal(screen:mode(), { mode = 'n', blocking = false })
  end)

  test('a server that dies is reported in one line that does not block the editor', function()
    screen:lua("return vim.uv.kill(vim.fn.max(vim.api.nvim_get_proc_children(vim.fn.getpid())), 'sigkill')")
    wait_text(t, screen, 'the server ended (signal 9)')
    t.wait('the client is gone', function()
      return screen:lua("return #vim.lsp.get_clients({ name = 'tandem' })") == 0
    end)
    t.equal(screen:mode(), { mode = 'n', blocking = false })
    t.equal(screen:text():find('quit with exit code', 1, true), nil)
  end)

  test('typing in the transcript goes to the input', function()
    model:script({ { text = 'Written in the chat.' } })
    go_to_chat(t, screen)
    screen:keys('ggdd', 'iSay it', 'Escape', 'Enter')
    wait_text(t, screen, 'Written in the chat.')
    wait_text(t, screen, 'Say it')
    t.contains(screen:lua('return vim.api.nvim_buf_get_lines(0, 0, 1, false)[1]'), '# greeter')
  end)

  test('commands and mentions are completed in the input', function()
    local function wait_line(line)
      t.wait(line, function()
        return screen:lua('return vim.api.nvim_get_current_line()') == line
      end)
    end
    go_to_chat(t, screen)
    screen:lua("vim.o.completeopt = 'menuone,noselect'")
    screen:keys('i/', 'C-x', 'C-o')
    wait_text(t, screen, 'Undo the last turn')
    screen:keys('C-p')
    wait_line('/help')
    screen:keys('C-y', 'C-s')
    wait_text(t, screen, 'Add your own as')
    screen:keys('See @ma', 'C-x', 'C-o')
    wait_text(t, screen, 'src/main.rs file')
    picture('complete', screen, setup.here)
    screen:keys('C-n', 'C-y')
    wait_line('See @src/main.rs')
    screen:keys('Escape')
    screen:keys('cc')
    wait_line('')
    screen:keys('Escape')
  end)

  test('queued messages are shown above the input and return to it', function()
    model:script({ { text = 'It begins.' }, { hang = true } })
    screen:keys(':Tandem ask Begin', 'Enter')
    wait_text(t, screen, 'It begins.')
    screen:keys(':Tandem ask And the tests?', 'Enter')
    wait_text(t, screen, 'queued  And the tests?')
    screen:keys(':Tandem steer Only port, please', 'Enter')
    wait_text(t, screen, 'joining  Only port, please')
    picture('waiting', screen, setup.here)
    screen:keys(':Tandem stop', 'Enter')
    wait_text(t, screen, 'Not sent; moved back to the input')
    t.wait('both in the input', function()
      local input = screen:lua([[return require('tandem.chats').current().chat:transcript():input_text()]])
      return input == 'And the tests?\n\nOnly port, please' or input == 'Only port, please\n\nAnd the tests?'
    end)
    picture('back', screen, setup.here)
    screen:lua([[require('tandem.chats').current().chat:transcript():set_input('')]])
  end)

  test('text typed into the input while an answer streams stays intact', function()
    model:script({ { words = ('streamed '):rep(150), delay_ms = 4 }, { text = 'THE_END' } })
    go_to_chat(t, screen)
    screen:keys('iStream', 'Escape', 'Enter')
    wait_text(t, screen, 'streamed streamed')
    screen:keys('i')
    local question = 'typed letter by letter while it streams'
    for letter in question:gmatch('.') do
      screen:keys('-l', letter)
    end
    wait_text(t, screen, 'THE_END')
    screen:keys('Escape')
    wait_text(t, screen, question)
    screen:keys('ccanother one', 'Escape')
    wait_text(t, screen, 'another one')
    screen:keys('u')
    wait_text(t, screen, question)
    wait_text(t, screen, 'THE_END')
  end)

  test('changes of the input are undone and redone while an answer streams', function()
    model:script({ { text = 'It begins.' }, { gate = 'first' }, { text = '\n\nMIDDLE' }, { gate = 'second' }, { text = '\n\nTHE_END' } })
    go_to_chat(t, screen)
    screen:keys('i', 'Go', 'C-s')
    wait_text(t, screen, 'It begins.')
    screen:keys('a first line', 'Enter', 'a second line', 'Escape')
    model:open('first')
    wait_text(t, screen, 'MIDDLE')
    local function draft(expected)
      t.wait('the draft ' .. expected, function()
        return screen:lua([[return require('tandem.chats').current().chat:transcript():draft()]]) == expected
      end)
    end
    screen:keys('dd')
    draft('a first line')
    model:open('second')
    wait_text(t, screen, 'THE_END')
    screen:keys('u')
    draft('a first line\na second line')
    screen:keys('u')
    draft('')
    screen:keys('C-r')
    draft('a first line\na second line')
    screen:keys('G', 'A', ' with more', 'Escape')
    draft('a first line\na second line with more')
    screen:keys('u', 'u', 'u')
    draft('Go') -- what was sent is a change, too
  end)

  test('a new conversation is visible, however long the previous one was', function()
    model:script({ { text = ('long '):rep(2000) .. '\n\nLAST' } }, { { text = 'Seen.' } })
    screen:keys(':Tandem ask Much', 'Enter')
    wait_text(t, screen, 'LAST')
    wait_text(t, screen, '<CR> send\n')
    screen:keys(':Tandem new', 'Enter')
    t.wait('the chat is empty', function()
      return not screen:text():find('LAST', 1, true)
    end)
    screen:keys(':Tandem ask Again', 'Enter')
    wait_text(t, screen, 'Seen.')
  end)

  test('quitting while a turn runs asks first', function()
    model:script({ { text = 'It runs.' }, { hang = true } })
    screen:keys(':Tandem ask Run', 'Enter')
    wait_text(t, screen, 'It runs.')
    wait_text(t, screen, 'working')
    t.wait('the elapsed time', function()
      return screen:text():find('working · %d s')
    end)
    local windows = screen:lua('return #vim.api.nvim_list_wins()')
    for _, command in ipairs({ ':qa', ':wqa' }) do
      screen:keys(command, 'Enter')
      wait_text(t, screen, 'a turn is still running. Quit anyway?')
      screen:keys('s')
      t.wait('the editor goes on', function()
        return not screen:text():find('Quit anyway', 1, true)
      end)
    end
    t.equal(screen:lua('return #vim.api.nvim_list_wins()'), windows)
    t.equal(screen:lua("return require('tandem.chats').current().state"), 'running')
    screen:keys(':Tandem stop', 'Enter')
    wait_text(t, screen, 'Stopped.')
  end)
  screen:stop()
end

return M
