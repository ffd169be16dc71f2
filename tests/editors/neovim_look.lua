--- What a person sees of the chat: screen cells of a real terminal, real keys.
local screens = dofile(vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2)) .. '/neovim_screen.lua')

local M = {}

--- The tests of this file.
---@param t table the harness
---@param model tandem.test.Model
---@param setup tandem.test.Setup
function M.test(t, model, setup)
  if vim.fn.executable('tmux') == 0 then
    return t.skip('the look of the chat', 'tmux is not installed')
  end
  local screen, folder = screens.open(t, setup)
  local function shows(part)
    screens.wait_text(t, screen, part)
  end
  local function hides(part)
    t.wait(('%q is gone from the screen'):format(part), function()
      return not screen:text():find(part, 1, true)
    end)
  end
  local function test(name, body)
    t.test('the look: ' .. name, function()
      screens.settle(t, screen)
      body()
    end)
  end
  local function command(line)
    screen:keys(':' .. line, 'Enter')
  end
  local function run(text)
    return { call = { id = 'c' .. vim.uv.hrtime(), name = 'run_command', arguments = { command = text } } }
  end
  local edit = {
    call = {
      id = 'look',
      name = 'edit_file',
      arguments = { path = 'src/main.rs', edits = { { old_text = 'let port = port();', new_text = 'let port = 1;' } } },
    },
  }

  test('results and thoughts fold while the chat is in insert mode', function()
    local thoughts = { reasoning = 'first thought\n' }
    local read = { call = { id = 'look-read', name = 'read_file', arguments = { path = 'src/main.rs' } } }
    model:script({ thoughts, { reasoning = 'second thought' }, read }, { { text = 'It has been read.' }, { gate = 'folded' } })
    screens.go_to_chat(t, screen)
    screen:keys('i', 'Read it', 'C-s')
    shows('It has been read.')
    local text = screen:text()
    t.equal({ text:find('second thought', 1, true), text:find('fn main() {\n', 1, true) }, {}, text)
    t.contains(text, '-- INSERT --')
    model:open('folded')
    screen:keys('Escape')
  end)

  test('asking goes to the end of the chat, wherever its cursor was', function()
    model:script({ { text = ('line\n\n'):rep(60) .. 'LAST' } }, { { text = 'An answer below.' } })
    command('Tandem ask Much')
    shows('LAST')
    screens.go_to_chat(t, screen)
    screen:keys('gg', 'C-w', 'p')
    hides('LAST')
    command('Tandem ask Again')
    shows('An answer below.')
    command('Tandem close')
  end)

  test('a request out of view floats until it is in view', function()
    local lines = { text = ('line\n\n'):rep(60) }
    model:script({ lines, { gate = 'away' }, edit }, { { text = 'Not done.' } })
    command('Tandem ask Long')
    model:state('gate:away')
    screens.go_to_chat(t, screen)
    screen:keys('gg', 'C-w', 'p')
    model:open('away')
    shows(' Allow? ─')
    shows(':Tandem reject reject')
    screens.go_to_chat(t, screen)
    screen:keys('G')
    shows(' ga   Allow')
    hides(' Allow? ─')
    screen:keys('gg')
    shows(' Allow? ─')
    screens.calm(t, screen)
    command('Tandem reject')
    hides(' Allow? ─')
    screen:keys('G')
    shows('Not done.')
    command('Tandem close')
  end)

  test('what the message line says of a request does not outlive it', function()
    model:script({ edit }, { { text = 'Left alone.' } })
    command('Tandem ask Edit it')
    shows(':Tandem allow / :Tandem reject?  Edit src/main.rs')
    screens.calm(t, screen)
    screen:lua("vim.schedule(function() require('tandem').reject() end)")
    shows('tandem: Rejected: Edit src/main.rs')
    shows('rejected  +1 −1')
    shows('Left alone.')
    t.equal(screen:text():find('Do not repeat', 1, true), nil, 'what tells the model what to do')
    hides('?  Edit src/main.rs')
    screen:lua([[
      local id = require('tandem.chats').current().id
      require('tandem').close()
      require('tandem').resume(id)
    ]])
    t.wait('the session again', function()
      return screen:lua("return require('tandem.chats').current().began")
    end)
    shows('Left alone.')
    t.contains(screen:text(), '✗ Edit src/main.rs  rejected')
    t.equal(screen:text():find('Do not repeat', 1, true), nil, 'nor in a session that is resumed')
  end)

  test('changes to review are named while there are some', function()
    model:script({ edit }, { { text = ('line\n\n'):rep(60) .. 'Changed.' } })
    command('Tandem mode edit')
    command('Tandem ask Edit it')
    shows('1 change: :Tandem review')
    shows('<CR> send') -- below it
    command('Tandem keep all')
    hides('1 change: ')
    command('Tandem mode ask')
  end)

  test("a changed file is opened beside a buffer that has to stay, without 'hidden'", function()
    local write = { id = 'look-beside', name = 'write_file', arguments = { path = 'beside.txt', content = 'beside it\n' } }
    model:script({ { call = write } }, { { text = 'Written.' } })
    screen:keys('Go// unsaved', 'Escape')
    shows('// unsaved')
    command('Tandem mode edit')
    command('Tandem ask Write it')
    shows('Written.')
    screen:lua("vim.o.hidden = false; vim.keymap.set('n', '<Leader>tj', '<Plug>(tandem-next-hunk)')")
    screen:keys('\\tj')
    shows('1 beside it')
    shows('// unsaved')
    screen:lua('vim.o.hidden = true')
    command('Tandem undo')
    command('Tandem mode ask')
  end)

  test('rejecting the changes of several files asks first', function()
    local function write(name)
      return { call = { id = 'look-' .. name, name = 'write_file', arguments = { path = name, content = 'new\n' } } }
    end
    model:script({ write('one.txt'), write('two.txt') }, { { text = 'Written.' } })
    command('Tandem mode edit')
    command('Tandem ask Write two files')
    shows('2 changes: :Tandem review')
    command('Tandem reject all')
    shows('tandem: reject 2 changes in 2 files?')
    screen:keys('Enter')
    hides('in 2 files?')
    shows('2 changes: :Tandem review')
    command('Tandem reject all')
    shows('in 2 files?')
    screen:keys('r')
    hides('2 changes: :Tandem review')
    t.equal(vim.fn.glob(folder .. '/*.txt'), '')
    command('Tandem mode ask')
  end)

  test('the end of the chat stays at the bottom when a large change folds, and when a prompt returns to the input', function()
    local content = ('a line\n'):rep(60)
    local write = { call = { id = 'look-large', name = 'write_file', arguments = { path = 'large.txt', content = content } } }
    model:script({ { text = ('line\n\n'):rep(30) .. 'It comes now.' }, write }, { { gate = 'folded' }, { text = 'Never said.' } })
    --- How many rows of the screen are below the keys.
    local function below_keys()
      return #vim.split(screen:text():match('<C%-c> stop(.*)$') or screen:text():match('<CR> send(.*)$'), '\n')
    end
    command('Tandem ask Write much')
    shows('Allow?')
    screens.calm(t, screen)
    command('Tandem allow')
    model:state('gate:folded')
    shows('✓ Create large.txt  +60')
    shows('It comes now.') -- above it
    t.equal(below_keys() <= 5, true, screen:text())
    screens.go_to_chat(t, screen)
    screen:keys('G', 'i', 'queued first', 'C-s')
    shows('queued  queued first')
    screen:keys('a draft', 'Escape')
    screen:lua("require('tandem').stop()")
    shows('Stopped.')
    shows('│  a draft')
    shows('│  queued first')
    command('Tandem close')
  end)

  test('a command that fails says so in its title and has no tick', function()
    model:script({ run('echo out; exit 3') }, { { text = 'It failed.' } })
    command('Tandem mode auto')
    command('Tandem ask Run it')
    shows('It failed.')
    t.equal(screen:text():match('✗ Run `echo out; exit 3`  exit 3') ~= nil, true, screen:text())
    model:script({ run('seq 100 400; sleep 0.2; seq 401 600; exit 4') }, { { text = 'It failed at length.' } })
    command('Tandem ask Fail at length')
    shows('It failed at length.')
    shows('exit 4  502 lines')
    shows('600')
    t.equal(screen:text():find('588', 1, true), nil, 'only the last lines are seen')
    command('Tandem mode ask')
  end)

  test('a command in the background says so in its title', function()
    local call = run('sleep 1000')
    call.call.arguments.background = true
    model:script({ call }, { { text = 'It runs on.' } })
    command('Tandem mode auto')
    command('Tandem ask Start it')
    shows('It runs on.')
    shows('Run `sleep 1000`  in the background')
    command('Tandem close')
    command('Tandem mode ask')
  end)

  test('a plan between two texts separates them', function()
    local function plan(id, status)
      local entries = { { content = 'a', status = status } }
      return { call = { id = id, name = 'update_plan', arguments = { entries = entries } } }
    end
    local first = { { text = 'Begun.' }, plan('look-1', 'pending') }
    model:script(first, { { text = 'One text.' }, plan('look-2', 'completed') }, { { text = 'Another text.' } })
    command('Tandem ask Plan')
    shows('Another text.')
    t.equal(screen:text():find('One text.Another', 1, true), nil, screen:text())
    command('Tandem close')
  end)

  test('calls that wait or fail name their file', function()
    local function edit_of(id, path, old)
      local arguments = { path = path, edits = { { old_text = old, new_text = 'x' } } }
      return { call = { id = id, name = 'edit_file', arguments = arguments } }
    end
    local main = edit_of('look-first', 'src/main.rs', 'let port = port();')
    model:script({ main, edit_of('look-second', 'src/main.rs', 'fn main() {') }, { edit_of('look-none', 'src/none.rs', 'a') }, {
      { text = 'Both.' },
    })
    command('Tandem ask Edit twice')
    shows('Allow?')
    local _, count = screen:text():gsub('Edit src/main%.rs', '')
    t.equal(count >= 2, true, screen:text())
    t.equal(screen:text():find('edit_file  ', 1, true), nil, screen:text())
    for _, id in ipairs({ 'look-first', 'look-second' }) do
      t.wait('the request for ' .. id, function()
        return screen:lua([[
          local question = require('tandem.permission').pending()
          return question and question.call.toolCallId
        ]]) == id
      end)
      screens.calm(t, screen)
      command('Tandem reject')
    end
    shows('Both.')
    t.contains(screen:text():match('✗[^\n]*none[^\n]*') or screen:text(), 'src/none.rs')
  end)

  test('why a call failed is shown if it is short; what only the model needs is folded', function()
    local function edit_of(id, path, old)
      local arguments = { path = path, edits = { { old_text = old, new_text = 'x' } } }
      return { call = { id = id, name = 'edit_file', arguments = arguments } }
    end
    model:script({ edit_of('look-short', 'src/none.rs', 'a'), edit_of('look-long', 'src/main.rs', 't') }, { { text = 'Neither.' } })
    command('Tandem ask Edit badly')
    shows('Neither.')
    shows('src/none.rs does not exist')
    shows('✗ Edit src/main.rs  ')
    hides('Quote more lines')
  end)

  test('an edit in place that fails says why, whole, in the chat', function()
    local long = 'Incorrect key.\nThe second line says what to do.'
    model:script({ { status = 401, body = { error = { message = long } } } })
    command('5,6Tandem edit short')
    shows('The second line says what to do.')
  end)

  test('tables are drawn with aligned columns', function()
    model:script({ { text = 'Look:\n\n| name | what it `is` |\n|:--|--:|\n| `a` | **one** |\n| longer | 2 |\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nDone.' } })
    command('Tandem ask Tabulate')
    shows('│ name   │ what it is │')
    shows('├────────┼────────────┤')
    shows('│ a      │        one │')
    shows('│ longer │          2 │')
    shows('│ 1 │ 2 │')
  end)

  test('cells of a table that is too wide are wrapped, and its text is in the fold', function()
    local first, second = '| `fast` | a sentence that is longer than the chat is wide, by far |', '| slow | short |'
    model:script({ { text = 'Look:\n\n| mode | meaning |\n|:--|:--|\n' .. first .. '\n' .. second }, { gate = 'wide' } })
    command('Tandem ask Tabulate widely')
    shows('│ mode │ meaning                               │')
    shows('│ fast │ a sentence that is longer than the    │')
    shows('│      │ chat is wide, by far                  │')
    shows('│ slow │ short                                 │')
    shows('<CR> queue') -- the end of the chat is followed
    screen:resize(160, 36)
    shows('│ fast │ a sentence that is longer than the chat is wide, by │')
    screen:resize(126, 36)
    shows('│ slow │ short                                 │')
    screen:lua("require('tandem.chats').current().chat:notice('A notice below.')")
    shows('A notice below.')
    local text = screen:text()
    t.equal(text:find('│ slow', 1, true) < text:find('A notice below.', 1, true), true, text)
    model:open('wide')
    screens.go_to_chat(t, screen)
    screen:keys('?mode', 'Enter') -- a search opens the fold
    shows('| fast | a sentence')
    hides('│ slow')
    screen:keys('zc')
    shows('│ slow │ short                                 │')
    screen:keys('yy')
    t.wait('the text is yanked', function()
      return screen:lua("return vim.fn.getreg('\"')"):find(first .. '\n' .. second, 1, true)
    end)
  end)

  test('no command takes the input away', function()
    model:script({ { text = 'Got it.' } })
    command('Tandem new')
    screens.go_to_chat(t, screen)
    screen:keys('i', 'draft', 'Escape', 'dd')
    hides('draft')
    screen:keys('i', 'Two', 'Home', 'BSpace')
    shows('│  Two')
    screen:keys('One ', 'Escape')
    shows('│  One Two')
    screen:keys('dgg')
    shows('│  One Two')
    screen:keys('G', 'Enter')
    shows('Got it.')
    t.contains(model:state().requests[1].messages[2].content, 'One Two\n')
    command('Tandem close')
  end)

  test('a chat leaves no empty window in a session of :mksession', function()
    local session = vim.fn.tempname()
    model:script({ { text = 'Noted.' } })
    command('Tandem ask Note it')
    shows('Noted.')
    command('mksession ' .. session)
    t.wait('the session is written', function()
      return vim.uv.fs_stat(session)
    end)
    t.contains(table.concat(vim.fn.readfile(session), '\n'), 'file tandem\\ ')
    local names = [[+lua io.stdout:write(vim.json.encode(vim.tbl_map(function(win)
      return vim.fs.basename(vim.api.nvim_buf_get_name(vim.api.nvim_win_get_buf(win)))
    end, vim.api.nvim_list_wins())))]]
    local load = { '--cmd', 'set rtp^=' .. setup.plugin, '--cmd', 'runtime plugin/tandem.lua', '-S', session, names, '+qa!' }
    local run = vim.system({ vim.v.progpath, '--headless', '-u', 'NONE', '-n', unpack(load) }, { text = true }):wait()
    t.equal(run.stdout, '["main.rs"]', run.stderr)
  end)

  test('a chat whose buffer was deleted is shown as it was', function()
    local wide = '| a | b |\n|--|--|\n| row | a sentence that is longer than the chat is wide, by far |\n'
    model:script({ { text = 'Look:\n\n' .. wide }, { gate = 'deleted' }, { text = '\nAnd more.' } })
    command('Tandem ask Delete the buffer')
    shows('│ row │ a sentence')
    screens.go_to_chat(t, screen)
    screen:keys('i', 'a draft', 'Escape')
    command('bd')
    hides('│ row │ a sentence')
    model:open('deleted')
    command('Tandem')
    shows('│ row │ a sentence')
    shows('And more.')
    shows('│  a draft')
    screen:keys('cc', 'Escape')
  end)

  local function has_width(columns)
    t.wait(('the chat is %d columns wide, as the settings say'):format(columns), function()
      return columns
        == screen:lua('return vim.api.nvim_win_get_width(require("tandem.window").find(require("tandem.chats").current().chat.buf))')
    end)
  end

  test('a narrow chat shows its state first, and keeps its part of a screen that grows', function()
    model:script({ edit }, { { text = 'Narrow.' } })
    screen:resize(80, 24)
    command('Tandem ask Narrow')
    shows('needs approval')
    shows('ga allow · gr reject')
    hides('gr reject ·') -- there is no room for the next key
    screen:resize(160, 36)
    shows('ga allow · gr reject · <C-c> stop')
    screen:resize(80, 24)
    has_width(32)
    hides('gr reject ·')
    screens.calm(t, screen)
    command('Tandem reject')
    shows('Narrow.')
    screen:resize(200, 36)
    has_width(80)
    screen:resize(80, 24) -- which is too small for what it was
    has_width(32)
    screen:resize(126, 36)
  end)

  test('the title of a call has the room of the window, whichever it had when the call ended', function()
    local write = { id = 'look-long', name = 'write_file', arguments = { path = 'a/rather/long/name.txt', content = 'new\n' } }
    model:script({ { call = write } }, { { text = 'Written.' } })
    screen:resize(80, 24)
    command('Tandem mode edit')
    command('Tandem ask Write it')
    shows('✓ Create a/rather/long/n…  +1 −0')
    shows('Written.')
    screen:resize(126, 36)
    shows('✓ Create a/rather/long/name.txt  +1 −0')
    screen:resize(80, 24)
    shows('✓ Create a/rather/long/n…  +1 −0')
    screen:resize(126, 36)
    command('Tandem undo')
    command('Tandem mode ask')
  end)

  test('what stands beside the text of a narrow chat is shown whole, or marked as cut', function()
    screen:resize(80, 24)
    model:script({ { text = 'One.' } }, { { gate = 'narrow' }, { text = 'Two.' } }, { { text = 'Three.' } })
    command('Tandem new')
    command('Tandem ask First')
    shows('One.')
    shows('<CR> send')
    command('Tandem back')
    shows('No longer part of the session;')
    shows(':Tandem undo restores it')
    command('Tandem undo')
    hides('No longer part')
    command('Tandem ask Second')
    shows('working')
    command('Tandem ask A question that is longer than the chat is wide')
    shows('queued  A question that is lo…')
    model:open('narrow')
    shows('Three.')
    model:script({ edit }, { { text = 'Four.' } })
    screen:resize(60, 24)
    command('Tandem mode edit')
    command('Tandem ask Edit')
    shows('│  1 change\n')
    command('Tandem undo')
    command('Tandem mode ask')
    command('Tandem close')
    screen:resize(126, 36)
  end)

  test('the winbar is never cut, however wide the chat is', function()
    model:script({ edit }, { { text = 'Changed.' } })
    command('Tandem mode edit')
    command('Tandem ask Edit it')
    shows('1 change: :Tandem review')
    local cut = screen:lua([[
      local win, cut = require('tandem.window').find(require('tandem.chats').current().chat.buf), {}
      for width = 20, 70 do
        vim.api.nvim_win_set_width(win, width)
        vim.cmd('redraw!')
        local row, column = unpack(vim.api.nvim_win_get_position(win))
        if vim.fn.screenstring(row + 1, column + 1) == '<' then
          cut[#cut + 1] = width
        end
      end
      vim.api.nvim_win_set_width(win, 50)
      return cut
    ]])
    t.equal(cut, {})
    command('Tandem keep all')
    hides('1 change: ')
    command('Tandem mode ask')
  end)

  --- The column and the row of a text on the screen, one-based.
  local function place_of(part)
    for row, line in ipairs(vim.split(screen:text(), '\n')) do
      local at = line:find(part, 1, true)
      if at then
        return vim.fn.strdisplaywidth(line:sub(1, at)), row
      end
    end
    error(('%q is not on the screen'):format(part))
  end

  local function click(part)
    local column, row = place_of(part)
    screen:keys('-l', ('\27[<0;%d;%dM\27[<0;%d;%dm'):format(column, row, column, row))
  end

  test('an answer is given on its row, by <CR> or a double click, but not by one click', function()
    model:script({ edit }, { { text = 'Changed by a double click.' } }, { edit }, { { text = 'Rejected by a key.' } })
    command('Tandem ask Edit it')
    shows('Allow?')
    screens.calm(t, screen)
    click('gr   Reject')
    screens.calm(t, screen)
    shows('needs approval')
    click('ga   Allow')
    click('ga   Allow')
    shows('Changed by a double click.')
    command('Tandem undo')
    shows(':Tandem redo reapplies it')
    command('Tandem ask Edit it')
    shows('gr   Reject')
    screen:keys('G', '?gr', 'Enter') -- the click has moved the cursor to the chat
    screens.calm(t, screen)
    screen:keys('Enter')
    shows('Rejected by a key.')
  end)

  test("an answer to the model's question is chosen without another key to press", function()
    local ask = { id = 'ask', name = 'ask_user', arguments = { question = 'Which one?', options = { 'The red one', 'The blue one' } } }
    model:script({ { call = ask } }, { { text = 'Red it is.' } }, { { call = ask } }, { { text = 'Blue it is.' } })
    command('Tandem ask Which')
    shows('- The red one')
    shows('ga choose an answer · gr no answer')
    screens.calm(t, screen)
    command('Tandem allow')
    shows('1: The red one')
    screen:keys('1', 'Enter')
    shows('Red it is.')
    hides('Press ENTER')
    hides('Choose an answer')
    t.contains(screen:text(), 'The red one')
    command('Tandem ask Which')
    t.wait('the second question', function()
      return screen:lua("return require('tandem.permission').pending() ~= nil")
    end)
    screens.go_to_chat(t, screen)
    screen:keys('?- The blue', 'Enter')
    screens.calm(t, screen)
    screen:keys('Enter')
    shows('Blue it is.')
  end)

  test('the next try of a request takes the place of the one before', function()
    local failed = { { status = 503, body = { error = { message = 'busy' } } } }
    model:script(failed, failed, { { text = 'Answered at last.' } })
    command('Tandem ask Try')
    shows('Answered at last.')
    local _, tries = screen:text():gsub('HTTP 503: busy', '')
    t.equal(tries, 1, screen:text())
  end)

  test('a code block ends with its last line', function()
    model:script({ { text = 'Code:\n\n```rust\nfn a() {}\n```\nText below.' } })
    command('Tandem ask Code')
    shows('Text below.')
    local between = screen:text():match('fn a%(%) {}(.-)Text below')
    local _, rows = between:gsub('\n', '')
    t.equal(rows, vim.fn.has('nvim-0.11') == 1 and 1 or 2, between)
  end)

  test('what was typed into a prompt does not stay in the message line', function()
    model:script({ { text = 'Asked by a map.' } })
    screen:lua("vim.keymap.set('n', '<Leader>ta', '<Plug>(tandem-ask)')")
    screen:keys('\\ta')
    shows('Ask tandem:')
    screen:keys('how so?', 'Enter')
    shows('Asked by a map.')
    hides('Ask tandem:')
  end)

  test('the keys of an edit in place hide nothing of the lines', function()
    model:script({ { text = '    env::var("PORT").map_or(Ok(8080), |text| text.parse()).unwrap_or_default()\n' } })
    command('only | 5,6Tandem edit short')
    shows('ga keep · gr reject')
    shows('    let text = env::var("PORT").unwrap();')
    shows('    text.parse().unwrap()')
    screen:keys('Escape')
    hides('ga keep')
  end)

  test('lines that an edit removes are in the color of what goes, above that of the syntax', function()
    model:script({ { text = 'local y = 2\n' } })
    vim.fn.writefile({ 'local x = 1' }, folder .. '/probe.lua')
    command('only | edit probe.lua | 1Tandem edit rename')
    shows('local y = 2')
    local color = screen:lua("return vim.api.nvim_get_hl(0, { name = 'DiffDelete' }).fg")
    local code = ('%d;%d;%dm'):format(bit.rshift(color, 16), bit.band(bit.rshift(color, 8), 255), bit.band(color, 255))
    t.contains(screen:colored(), code .. 'local x = 1')
    screen:keys('Escape')
    hides('local y = 2')
  end)

  test('the chat takes its room from all windows, and names the keys of the mode', function()
    command('vsplit')
    screens.go_to_chat(t, screen)
    local _, whole = vim.split(screen:text(), '\n')[1]:gsub('use std::env;', '')
    t.equal(whole, 2, screen:text())
    shows('You   <CR> send')
    screen:keys('i')
    shows('You   <C-s> send')
    screen:keys('C-c')
    shows('You   <CR> send')
    hides('-- INSERT --')
    model:script({ { text = 'Begun.' }, { hang = true } })
    screen:keys('i', 'Begin', 'C-s')
    shows('Begun.')
    shows('You   <C-s> queue')
    screen:keys('C-c')
    shows('You   <CR> queue')
    screen:keys('C-c')
    shows('Stopped.')
  end)
  screen:stop()
end

return M
