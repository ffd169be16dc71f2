--- The plugin on an 80×24 terminal without a message line ('cmdheight' 0): screen cells, real keys.
local screens = dofile(vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2)) .. '/neovim_screen.lua')

local M = {}

--- The tests of this file.
---@param t table the harness
---@param model tandem.test.Model
---@param setup tandem.test.Setup
function M.test(t, model, setup)
  if vim.fn.executable('tmux') == 0 then
    return t.skip('a small screen', 'tmux is not installed')
  end
  local screen = screens.open(t, setup)
  local function shows(...)
    vim.iter({ ... }):each(function(part)
      screens.wait_text(t, screen, part)
    end)
  end
  local function test(name, body)
    t.test('a small screen: ' .. name, function()
      screens.settle(t, screen)
      screen:resize(80, 24)
      screen:lua('vim.o.cmdheight = 0')
      body()
    end)
  end
  -- Longer than a line of the window beside the chat.
  local long = 'println!("a text that is much longer than a window of forty columns has room for, and its end");'

  test('a message is seen, and waits for no key', function()
    screen:keys(':Tandem undo', 'Enter')
    shows('tandem: Nothing has been changed in this chat yet')
    model:script({ { status = 401, body = { error = { message = 'a wrong key' } } } })
    screen:keys(':Tandem ask Hello', 'Enter')
    shows('tandem: custom: HTTP 401: a wrong key')
    t.equal({ screen:mode().blocking, screen:text():find('Press ENTER', 1, true) }, { false })
    screen:keys(':Tandem undo', 'Enter')
    shows('tandem: there is nothing to undo')
  end)

  test('long lines of a change wrap before it is allowed', function()
    local edits = { { old_text = 'println!("listening on {port}");', new_text = long } }
    screen:lua('vim.wo.wrap = false') -- virtual text does not scroll
    model:script({ { call = { id = 'c1', name = 'edit_file', arguments = { path = 'src/main.rs', edits = edits } } } })
    screen:keys(':Tandem ask Say more', 'Enter')
    shows('needs approval', 'its end");')
    screen:resize(50, 12)
    shows('│ needs approval') -- the state is removed last
    screen:resize(80, 24)
    screen:keys(':Tandem chat', 'Enter')
    screen:keys(':close', 'Enter') -- the chat shows it, too
    shows('its end");')
    screen:lua('vim.wo[vim.fn.bufwinid("main.rs")].wrap = true')
  end)

  test('of several changes, the one to decide about is in view with its answers', function()
    local function change(id, path, count)
      local edits = { { old_text = 'use std::env;', new_text = ('// %s\n'):format(id):rep(count) } }
      return { call = { id = id, name = 'edit_file', arguments = { path = path, edits = edits } } }
    end
    model:script({ change('first', 'src/main.rs', 3), change('second', 'src/main.rs', 30) })
    screen:keys(':Tandem ask Change both', 'Enter')
    shows('│  +// first', '│   ga   Allow', '│  You   ga allow')
    t.equal(screen:text():find('Allow? ─', 1, true), nil, screen:text())
  end)

  test('an edit in place is scrolled into the window as it comes, and its keys are seen', function()
    screens.go_to_chat(t, screen)
    screen:keys('C-w', 'h')
    screen:lua('vim.fn.append(0, vim.fn["repeat"]({ "// a line" }, 14))')
    screen:keys('gg', '17GV4j')
    local lines = { '/// The port.', 'fn port() -> u16 {' }
    for number = 1, 6 do
      lines[#lines + 1] = ('    step(%d);'):format(number)
    end
    lines[#lines + 1] = '    ' .. long
    lines[#lines + 1] = '}'
    model:script({ { text = '```rust\n' .. table.concat(lines, '\n') .. '\n```' } })
    screen:keys(':Tandem edit more steps', 'Enter')
    shows('step(6);', 'its end");', 'eject all')
  end)

  test("a file that a command changed is read again without a question, whatever 'autoread' says", function()
    screen:lua('vim.o.autoread = false')
    screen:keys(':Tandem mode auto', 'Enter')
    shows('Mode: Auto')
    local call = { id = 'c2', name = 'run_command', arguments = { command = 'sed -i s/listening/waiting/ src/main.rs' } }
    model:script({ { call = call } }, { { text = 'Replaced.' }, { gate = 'undo' }, { text = ' Going on.' } })
    screen:keys(':Tandem ask Replace it', 'Enter')
    shows('Replaced.', 'println!("waiting on {port}");')
    t.equal(screen:lua('return vim.o.autoread'), false)
    screen:keys(':Tandem undo', 'Enter') -- is refused, without a message in the middle of the answer
    shows('A turn is still running')
    model:open('undo')
    shows('Replaced. Going on.')
  end)
  screen:stop()
end

return M
