-- What a long chat costs the editor: a real Neovim in a real terminal, the real server, a scripted model.
--   TANDEM_BIN=target/release/tandem nvim --headless -u NONE -l tests/editors/neovim_bench.lua [turns] [tokens]
-- Fails if a result exceeds its limit. Run it on an idle machine.
local here = vim.fs.dirname(vim.fs.normalize(vim.uv.fs_realpath(arg[0])))
local repository = vim.fs.dirname(vim.fs.dirname(here))
local plugin = repository .. '/editors/neovim'
local models = dofile(here .. '/neovim_model.lua')
local screens = dofile(here .. '/neovim_screen.lua')
local binary = vim.env.TANDEM_BIN or (repository .. '/target/debug/tandem')
local turns, tokens = tonumber(arg[1]) or 100, tonumber(arg[2]) or 2000

local model = models.start(here .. '/model_server.py')
local home = vim.fn.tempname()
local folder = home .. '/project'
vim.fn.mkdir(folder .. '/.git', 'p')
vim.fn.writefile({ 'fn main() {', '    run();', '}' }, folder .. '/main.rs')
vim.fn.writefile(
  vim.split(screens.init:format(plugin, binary) .. "vim.o.cmdheight = 2\nvim.opt.shortmess:append('F')\n", '\n'),
  home .. '/init.lua'
)
local screen = screens.start({
  nvim = vim.v.progpath,
  init = home .. '/init.lua',
  file = 'main.rs',
  cwd = folder,
  columns = 160,
  rows = 48,
  env = vim.tbl_extend('error', model:environment(home), { VIMRUNTIME = vim.env.VIMRUNTIME }),
})

--- A typical answer: prose with inline markup, a list, a table, code.
local piece = [[
The function `run` **reads** its input before it parses it, see [main.rs](main.rs) and `src/lib.rs:12`.
Each line is *split* at the first colon, and what stands behind it is trimmed.

- first it opens the file, which may fail with `NotFound`
- then it reads all of it, and closes it

| name | what |
|---|---|
| `a` | one |
| `b` | two |

```lua
local function read(path)
  local file = assert(io.open(path))
  return file:read('*a')
end
```

]]

local failures = 0

---@param name string
---@param value number
---@param limit? number
---@param unit string
local function figure(name, value, limit, unit)
  local over = limit and value > limit
  failures = failures + (over and 1 or 0)
  local against = limit and (' (limit %.1f)%s'):format(limit, over and ' OVER' or '') or ''
  io.stdout:write(('%-44s %9.2f %s%s\n'):format(name, value, unit, against))
  io.stdout:flush()
end

---@param until_ms integer
---@param condition string Lua, evaluated in the editor
local function wait_for(until_ms, condition)
  assert(
    vim.wait(until_ms, function()
      return screen:lua('return ' .. condition)
    end, 50),
    'waited in vain for ' .. condition
  )
end

--- Records in the editor how late a 10 ms timer fires, and what the CPU time was spent on.
local probe = [[
  local uv = vim.uv
  local last = uv.hrtime()
  local function cpu()
    local used = uv.getrusage()
    return used.utime.sec + used.stime.sec + (used.utime.usec + used.stime.usec) / 1e6
  end
  _G.probe = { gaps = 0, worst = 0, began = last, cpu = cpu(), used = cpu }
  _G.probe.timer = uv.new_timer()
  _G.probe.timer:start(10, 10, function()
    local now = uv.hrtime()
    local late = (now - last) / 1e6
    last = now
    if late > 50 then
      _G.probe.gaps = _G.probe.gaps + 1
    end
    _G.probe.worst = math.max(_G.probe.worst, late)
  end)
]]

local report = [[
  local p = _G.probe
  p.timer:close()
  return { gaps = p.gaps, worst = p.worst, cpu = p.used() - p.cpu, wall = (vim.uv.hrtime() - p.began) / 1e9 }
]]

local sent = 0

--- The time until a typed letter is on the screen, in ms; the median of the slowest twentieth is `p95`.
---@param count integer
---@return number p95
local function echo(count)
  local taken = {} ---@type number[]
  local letters = 'abcdefghijklmnopqrstuvwxyz'
  for _ = 1, count do
    sent = sent + 1
    local letter = letters:sub(1 + sent % #letters, 1 + sent % #letters)
    local began = vim.uv.hrtime()
    screen:keys('-l', letter)
    local found = vim.wait(5000, function()
      local line = screen:text():match('^%s*1 ([^│]*)') or ''
      return vim.trim(line):sub(-1) == letter
    end, 1)
    assert(found, 'the letter ' .. letter .. ' is not on the screen:\n' .. screen:text())
    taken[#taken + 1] = (vim.uv.hrtime() - began) / 1e6
    -- A person types 25 letters a second, not as many as possible.
    vim.wait(40)
  end
  screen:keys('C-u')
  table.sort(taken)
  return taken[math.ceil(#taken * 0.95)]
end

---@param steps table
---@param during? fun()
---@return table figures, number model_seconds
local function stream(steps, during)
  model:script(steps)
  screen:lua([[require('tandem').ask('Go on')]])
  wait_for(20000, "require('tandem.chats').current().state == 'running'")
  screen:lua(probe)
  if during then
    during()
  end
  wait_for(600000, "require('tandem.chats').current().state == 'idle'")
  local figures = screen:lua(report)
  return figures, model:state().played_seconds
end

local words = 0
local text = {} ---@type string[]
while words < tokens do
  text[#text + 1] = piece
  words = words + select(2, piece:gsub('%S+', ''))
end
local long = table.concat(text)

io.stdout:write(('%s, %d turns, %d tokens\n'):format(vim.split(vim.fn.execute('version'), '\n')[2], turns, words))
wait_for(20000, 'vim.v.vim_did_enter == 1')
local edit = { path = 'main.rs', edits = { { old_text = 'run();', new_text = 'run();' } } }
for index = 1, turns do
  edit.edits[1].new_text = ('run(); // %d'):format(index)
  edit.edits[1].old_text = index == 1 and 'run();' or ('run(); // %d'):format(index - 1)
  model:script(
    { { text = piece }, { call = { id = 'c' .. index, name = 'edit_file', arguments = edit } } },
    { { text = 'Done, and now:\n\n' .. piece } }
  )
  if index == 1 then
    screen:lua([[require('tandem').mode('edit')]])
    wait_for(20000, "require('tandem.chats').current().mode == 'edit'")
  end
  screen:lua([[require('tandem').ask('Turn ' .. ...)]], index)
  wait_for(30000, ("require('tandem.chats').current().turn == %d and require('tandem.chats').current().state == 'idle'"):format(index))
end
screen:lua([[vim.cmd('silent! write') vim.cmd('startinsert!')]])
io.stdout:write(('the chat has %d lines\n'):format(screen:lua([[return vim.api.nvim_buf_line_count(require('tandem.chats').current().chat.buf)]])))

local idle = echo(20)
figure('echo of a letter, idle, p95', idle, nil, 'ms')

-- The control: the same text at the same speed, into a plain buffer beside the code.
screen:lua([[
  local words, chunk = {}, ...
  for word in chunk:gmatch('%s*%S+') do words[#words + 1] = word end
  local buf = vim.api.nvim_create_buf(false, true)
  _G.control = { done = false, win = vim.api.nvim_open_win(buf, false, { split = 'below', win = 0, height = 10 }) }
  local index, timer, began = 0, vim.uv.new_timer(), vim.uv.now()
  timer:start(10, 10, vim.schedule_wrap(function()
    while index < #words and index < (vim.uv.now() - began) / 10 do
      index = index + 1
      local last = vim.api.nvim_buf_line_count(buf) - 1
      local width = #vim.api.nvim_buf_get_lines(buf, last, last + 1, true)[1]
      vim.api.nvim_buf_set_text(buf, last, width, last, width, vim.split(words[index], '\n'))
      vim.api.nvim_win_set_cursor(_G.control.win, { vim.api.nvim_buf_line_count(buf), 0 })
    end
    if index >= #words and not _G.control.done then
      _G.control.done = true
      timer:close()
    end
  end))
]], long)
screen:lua(probe)
wait_for(600000, '_G.control.done')
local control = screen:lua(report)
screen:lua([[vim.api.nvim_win_close(_G.control.win, true)]])
figure('control: gaps over 50 ms', control.gaps, nil, '')
figure('control: CPU', control.cpu * 1000 / words, nil, 'ms a token')

local busy
local paced, model_seconds = stream({ { words = long, delay_ms = 10 } }, function()
  -- Keys are measured well into the stream: a hundred words take a second.
  vim.wait(1000)
  busy = echo(40)
end)
figure('100/s: done after', paced.wall, 1.1 * model_seconds, 's')
figure('100/s: gaps over 50 ms', paced.gaps, control.gaps + 3, '')
figure('100/s: longest gap', paced.worst, nil, 'ms')
figure('100/s: CPU', paced.cpu * 1000 / words, 2, 'ms a token')
figure('100/s: echo of a letter, p95', busy, math.max(60, 2 * idle), 'ms')

local burst, burst_seconds = stream({ { words = long, delay_ms = 0.2 } })
figure('5000/s: done after its end', burst.wall - burst_seconds, 1, 's')
figure('5000/s: gaps over 50 ms', burst.gaps, nil, '')
figure('5000/s: CPU', burst.cpu * 1000 / words, nil, 'ms a token')

-- Reopens the same session, as `:Tandem sessions` does, until its last answer is in the chat.
local answered = "vim.api.nvim_buf_line_count(require('tandem.chats').current().chat.buf)"
local lines = screen:lua('return ' .. answered)
local resumed = screen:lua([[
  local current = require('tandem.chats').current()
  local id = current.id
  require('tandem').close()
  vim.wait(1000, function() return false end, 20) -- the session is closed before it is opened again
  _G.resumed = { began = vim.uv.hrtime(), used = _G.probe.used() }
  current:load(id)
  _G.resumed.ended = vim.wait(60000, function()
    return current.id == id and not current.opening
  end, 5) and vim.uv.hrtime()
  return { wall = (_G.resumed.ended - _G.resumed.began) / 1e9, cpu = _G.probe.used() - _G.resumed.used }
]])
figure(('resume of %d turns'):format(turns + 2), resumed.wall, 1, 's')
figure('resume: CPU of the editor', resumed.cpu, 1, 's')
wait_for(60000, "#require('tandem.chats').current().chat.text.plain == 0")
figure('resume: CPU until all is highlighted', screen:lua('return _G.probe.used() - _G.resumed.used'), nil, 's')
assert(screen:lua('return ' .. answered) > 0.9 * lines, 'the whole conversation is there')
io.stdout:write(('the chat has %d lines, %d when it was resumed\n'):format(lines, screen:lua('return ' .. answered)))

-- What the plugin costs everyone who starts Neovim.
local starts = {} ---@type number[]
for _ = 1, 20 do
  local log = vim.fn.tempname()
  vim.system({ vim.v.progpath, '--headless', '-u', home .. '/init.lua', '--startuptime', log, '+qa' }, { env = { VIMRUNTIME = vim.env.VIMRUNTIME } }):wait()
  for line in io.lines(log) do
    local own = line:match('^%S+%s+(%S+)%s+%S+: sourcing .*/plugin/tandem%.lua')
    starts[#starts + 1] = own and tonumber(own)
  end
end
table.sort(starts)
figure('start of Neovim, median', starts[math.ceil(#starts / 2)] or -1, 0.5, 'ms')

screen:stop()
model:stop()
vim.cmd(failures > 0 and 'cquit 1' or 'qall!')
