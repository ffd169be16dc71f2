--- Background commands as a person sees them: screen cells of a real terminal, real keys, real commands.
local screens = dofile(vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2)) .. '/neovim_screen.lua')

local M = {}

--- Serves on a port of its own choice and prints it, and a line for each request.
local server = [[
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"served")
    def log_message(self, *_): print("asked for", self.path, flush=True)
http = http.server.HTTPServer(("127.0.0.1", 0), Handler)
open("port", "w").write(str(http.server_port))
print("first line\nsecond line\nthird line\nready\n\033[31m 10%\r 90%\033[m", end="", flush=True)
http.serve_forever()
]]

--- The tests of this file.
---@param t table the harness
---@param model tandem.test.Model
---@param setup tandem.test.Setup
function M.test(t, model, setup)
  if vim.fn.executable('tmux') == 0 then
    return t.skip('background commands', 'tmux is not installed')
  end
  local screen, folder = screens.open(t, setup)
  vim.fn.writefile(vim.split(server, '\n'), folder .. '/server.py')
  local function shows(part)
    screens.wait_text(t, screen, part)
  end
  local function matches(what, pattern)
    local ok = pcall(t.wait, what, function()
      return screen:text():find(pattern)
    end)
    t.equal(ok or screen:text(), true, what)
  end
  local function hides(part)
    t.wait(('%q is gone from the screen'):format(part), function()
      return not screen:text():find(part, 1, true)
    end)
  end
  local function command(line)
    screen:keys(':' .. line, 'Enter')
  end
  local function run(id, line, background)
    return { call = { id = id, name = 'run_command', arguments = { command = line, background = background } } }
  end
  local function test(name, body)
    t.test('background commands: ' .. name, function()
      screens.settle(t, screen)
      body()
    end)
  end

  test('the window lists them with state, age, ports and last lines; the output follows; one stops', function()
    model:script({ run('serve', 'python3 server.py', true), run('fail', 'echo lost; exit 3', true) }, { { text = 'Both began.' } })
    command('Tandem mode auto')
    command('Tandem ask Serve it')
    shows('Both began.')
    shows('1 job: :Tandem jobs')
    matches('the count in the status line', 'tandem: [^\n]*1 job ·')
    matches('the card has no tick while it runs', '● Run `python3 server')
    command('Tandem jobs')
    shows('Background commands ')
    shows('<CR> output · x stop · o open · q close')
    shows('third line')
    shows('ready')
    local port = vim.fn.readfile(folder .. '/port')[1]
    matches('state, age, port and command', ('● %%d+ s +:%s  python3 server%%.py'):format(port))
    shows(' 90%')
    t.equal(screen:text():find('10%', 1, true), nil, 'a progress bar redraws')
    t.equal(screen:text():find('first line', 1, true), nil, 'only the last lines of each')
    matches('the one that failed', '✗ exit 3 +echo lost; exit 3')
    screens.picture('jobs', screen, setup.here)

    screen:keys('gg', 'Enter')
    shows('first line')
    shows(' 90%')
    t.equal(screen:text():find('10%', 1, true), nil, 'a progress bar redraws')
    local _, colored = screen:colored():gsub('\27%[[%d;]*31m 90%%', '')
    t.equal(colored == 1 or screen:colored(), true, 'colors stay')
    matches('the title of the output', '%d+ s  python3 server%.py')
    matches('the keys beside the list have room, or are not there', 'Background commands +<CR> output · x stop[^\n]*│')
    t.equal(screen:text():find('Background commands[^\n│]*<[^C]'), nil, screen:text())
    -- Another command of the session can reach it, and the window follows its output.
    local ask = 'for i in $(seq 1 30); do curl -s http://127.0.0.1:$(cat port)/page$i; done'
    model:script({ run('ask', ask) }, { { text = 'It answers.' } })
    command('Tandem ask Test it')
    shows('It answers.')
    shows('asked for /page30')
    hides('first line')
    screens.picture('output', screen, setup.here)

    -- The browser can reach it after the person agrees, until it is stopped.
    screen:lua('vim.ui.open = function(url) _G.opened = url end')
    screen:keys('o')
    shows('Open port ' .. port .. ' of `python3 server.py`?')
    t.equal(screen:text():find('listening on a port', 1, true), nil)
    screens.picture('open', screen, setup.here)
    screen:keys('c')
    hides('Open port')
    screen:keys('o')
    shows('Open port')
    screen:keys('o')
    shows(('port %s is at http://127.0.0.1:'):format(port))
    local url = screen:lua('return _G.opened')
    local function fetch()
      return vim.system({ 'curl', '-s', '--max-time', '20', url .. 'opened' }, { text = true }):wait().stdout
    end
    t.equal(fetch(), 'served')
    shows('asked for /opened')

    screen:keys('x')
    matches('it is stopped', 'stopped +:?%d* *python3 server%.py')
    screen:lua([[ -- the chat shows its end, and the card may be above that
      for _, window in ipairs(vim.api.nvim_list_wins()) do
        if vim.bo[vim.api.nvim_win_get_buf(window)].filetype == 'tandem' then
          vim.api.nvim_win_call(window, function() vim.fn.winrestview({ topline = 1, lnum = 1 }) end)
        end
      end
    ]])
    matches('and so says its card', '○ Run `python3 serv[^\n]*stopped')
    t.wait('the port is closed', function()
      return fetch() == ''
    end)
    hides('1 job running in the background')
    t.equal(screen:text():find('%d job'), nil, screen:text())
    screen:keys('x')
    shows('This command has already ended')
    screen:keys('q')
    hides('asked for /page27')
    screen:keys('g?')
    shows('keys of the background commands')
    screen:keys('q')
    command('Tandem jobs')
    hides('Background commands ')
    command('Tandem close')
  end)

  test('a running command goes on in the background, and the model with what it has said', function()
    model:script({ run('long', 'echo begun; sleep 1000') }, { { text = 'I go on meanwhile.' } })
    command('Tandem mode auto')
    command('Tandem ask Run it')
    shows('begun')
    screens.go_to_chat(t, screen)
    screen:keys('G', 'g&') -- it is the only one
    shows('I go on meanwhile.')
    matches('the card', '● Run `echo begun; s[^\n]*in the background')
    local sent = vim.json.encode(model:state().requests[2])
    t.contains(sent, 'moved it to the background as job 1')
    t.contains(sent, 'begun')
    screen:keys('gg', 'g&')
    shows('No running command under the cursor')
    command('Tandem close')
  end)

  test('the list stays on its command while others print, and ends with the session', function()
    local ticking = 'i=0; while :; do i=$((i+1)); echo tick $i; sleep 0.2; done'
    model:script({ run('tick', ticking, true), run('sleep', 'sleep 1000', true) }, { { text = 'They run.' } })
    command('Tandem mode auto')
    command('Tandem jobs')
    shows('No background commands in this session')
    command('Tandem ask Run them')
    shows('They run.')
    shows('2 jobs: :Tandem jobs')
    screen:keys('G')
    t.wait('the second one under the cursor', function() -- a busy machine handles the key later
      return screen:lua('return vim.api.nvim_get_current_line()') == 'sleep 1000'
    end)
    matches('three lines below the first', 'tick %d+[^\n]*\n +tick %d+[^\n]*\n +tick %d+')
    t.equal(screen:lua('return vim.api.nvim_get_current_line()'), 'sleep 1000')
    screen:keys('x')
    matches('the second one is stopped', 'stopped +sleep 1000')
    command('Tandem close')
    shows('No background commands in this session')
    t.equal(screen:text():find('%d job'), nil, screen:text())
    command('Tandem mode ask')
  end)
  screen:stop()
end

return M
