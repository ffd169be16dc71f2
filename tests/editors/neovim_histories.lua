--- Random histories in a real Neovim: a person types, saves, undoes, opens and closes files; the model edits them and runs
--- commands that change, remove and move them; both undo, reject, switch chats, quit and come back. In any order, a buffer
--- has the text that a plain model of it predicts, the server reads the same text, and no message waits for a key.
---
--- `TANDEM_HISTORIES` sets the number of histories, `TANDEM_SEED` selects one seed; a failing history is shrunk.
local M = {}

local NAMES = { 'a.txt', 'b.txt', 'd/c.txt', 'e.txt', 'n.txt' }
local FIRST = {
  ['a.txt'] = 'a1.\na2.\na3. ä😀\na4.\na5.\na6.\n',
  ['b.txt'] = 'b1.\r\nb2.\r\nb3.\r\n',
  ['d/c.txt'] = 'c1.\nc2.\nc3.',
  ['e.txt'] = '',
}
local HISTORIES, EVENTS = 4, 14

--- Code that runs in the editor.
local inside = [[
  local api, child = vim.api, { root = ..., busy = 0 }
  local review = getmetatable(require('tandem.review').new({})).__index
  local request, restored = review.request, review.restored
  function review:request(params, callback)
    child.busy = child.busy + 1
    request(self, params, function(...)
      callback(...)
      child.busy = child.busy - 1
    end)
  end
  function review:restored(action, result, ...)
    child.left = #result.left
    restored(self, action, result, ...)
  end
  local function session() return require('tandem.chats').get(child.root) end
  vim.g.played, vim.g.asked = 0, ''
  vim.fn.confirm = function() return 1 end
  vim.keymap.set({ 'n', 'i' }, '<F12>', function() vim.g.played = vim.g.played + 1 end)
  vim.on_key(function()
    if api.nvim_get_mode().mode:find('^r') then vim.g.asked = 'a key is asked for: ' .. vim.fn.execute('messages') end
  end)
  function child.buffers()
    local found = vim.empty_dict()
    for _, buf in ipairs(api.nvim_list_bufs()) do
      local name = vim.fs.normalize(api.nvim_buf_get_name(buf))
      if api.nvim_buf_is_loaded(buf) and vim.bo[buf].buftype == '' and vim.startswith(name, child.root .. '/') then
        local lines = api.nvim_buf_get_lines(buf, 0, -1, false)
        local is_empty = #lines == 1 and lines[1] == ''
        local text = is_empty and '' or table.concat(lines, '\n') .. (vim.bo[buf].eol and '\n' or '')
        found[name:sub(#child.root + 2)] = { text = text, modified = vim.bo[buf].modified }
      end
    end
    return found
  end
  function child.state()
    local now, question = session(), require('tandem.permission').pending()
    if question then
      require('tandem.permission').choose(vim.iter(question.options):find(function(option) return option.kind == 'allow_once' end))
    end
    local is_busy = child.busy > 0 or #now.review.restores > 0 or now.opening or now.coming or now.state ~= 'idle'
    return { rests = not is_busy, mode = now.mode, id = now.id, played = vim.g.played }
  end
  function child.changes()
    return vim.tbl_map(function(change)
      local first, last = require('tandem.marks').rows(change)
      return { name = change.path:sub(#child.root + 2), hunk = change.hunk, first = first, last = last, marked = change.mark ~= nil }
    end, session().review.changes)
  end
  function child.list() session().review:refresh() end
  function child.at(path, row)
    vim.cmd.drop(path)
    api.nvim_win_set_cursor(0, { row, 0 })
  end
  function child.cursor()
    return { vim.fn.expand('%:p'):sub(#child.root + 2), api.nvim_get_current_line() }
  end
  function child.wrong()
    local said = vim.fn.execute("messages"):gsub("E211:[^\n]*", "") -- if the file was removed, its text exists only here
    return vim.g.asked ~= '' and vim.g.asked or said:find('[EW]%d+:') and said or ''
  end
  _G.child = child
]]

---@param text string
---@return string without how its lines end, and whether the last one does
local function plain(text)
  return (text:gsub('\r\n', '\n'):gsub('\n$', ''))
end

---@param path string
---@return string?
local function bytes_of(path)
  local file = io.open(path, 'rb')
  local text = file and file:read('*a')
  if file then
    file:close()
  end
  return text
end

---@param text string
---@return string[]
local function lines_of(text)
  return vim.split(plain(text), '\n', { plain = true })
end

--- These lines as a text, with the final newline of the `text` they replace.
local function text_of(lines, text)
  local joined = table.concat(lines, '\n')
  local ends = text == '' or text:sub(-1) == '\n'
  return joined ~= '' and ends and joined .. '\n' or joined
end

--- A pseudo-random sequence, the same everywhere.
---@param seed integer
---@return fun(count: integer): integer
local function dice(seed)
  local state = seed % 2147483646 + 1
  local function roll(count)
    state = state * 16807 % 2147483647
    return state % count + 1
  end
  roll(2)
  return roll
end

--- Events as plain data, so that any of them can be left out.
---@param seed integer
---@return table[]
local function history(seed)
  local roll, events = dice(seed), {}
  local function pick(weights)
    local all = {}
    for _, entry in ipairs(vim.split(weights, ' ')) do
      local count, what = entry:match('(%d+)(%a+)')
      for _ = 1, tonumber(count) do
        all[#all + 1] = what
      end
    end
    return all[roll(#all)]
  end
  local function name()
    return NAMES[roll(#NAMES)]
  end
  local function typing()
    return { what = 'type', name = name(), how = roll(5), line = roll(5), column = roll(4) }
  end
  for index = 1, EVENTS do
    local what = pick('7turn 6type 4open 1close 3write 1again 2back 2outside 4undo 3redo 2reject 1hunk 1keep 1chat 1other 1quit')
    local event = { what = what, name = name(), choice = roll(6) }
    if what == 'type' then
      event = typing()
    elseif what == 'turn' then
      event.acts = {}
      for number = 1, roll(3) do
        local act = pick('6edit 2write 3append 2top 1overwrite 1remove 1move')
        local types = roll(3) == 1 and typing() or nil
        event.acts[number] = { what = act, name = name(), to = name(), line = roll(5), typing = types, races = roll(2) == 1 }
      end
    end
    events[index] = event
  end
  return events
end

---@class tandem.test.Turn
---@field before table<string, string>
---@field after table<string, string>
---@field count integer of marks at its end
---@field touched? boolean whether anything but the turn changed a file since

---@class tandem.test.Player
---@field screen tandem.test.Screen
---@field root string
---@field texts table<string, string> the files as a person sees them
---@field modified table<string, boolean> whether a buffer has unsaved text; nil without one
---@field exists table<string, boolean> whether it is on the disk
---@field half_undone boolean whether a command removed a file with unsaved text: undo brings back the file, not the text
---@field left table<string, string> what buffers have of files that are gone
---@field count integer of marks in texts, each of which stands once
local Player = {}
Player.__index = Player

function Player.new(t, model, options, root)
  vim.fn.delete(root, 'rf')
  vim.fn.mkdir(root .. '/.git', 'p')
  vim.fn.mkdir(root .. '/d', 'p')
  local player = setmetatable({ t = t, model = model, options = options, root = root, texts = {}, count = 0 }, Player)
  player.chats, player.chat = { { done = {}, undone = {} } }, 1
  for name, text in pairs(FIRST) do
    player:put(name, text)
  end
  player:start()
  player:adopt()
  return player
end

function Player:put(name, text)
  local file = assert(io.open(self.root .. '/' .. name, 'wb'))
  file:write(text)
  file:close()
end

function Player:start()
  local init = self.options.home .. '/histories.lua'
  local screens = dofile(self.options.here .. '/neovim_screen.lua')
  vim.fn.writefile(vim.split(screens.init:format(self.options.plugin, self.options.binary), '\n'), init)
  self.screen = screens.start({
    nvim = vim.v.progpath,
    init = init,
    file = self.root .. '/a.txt',
    cwd = self.root,
    columns = 100,
    rows = 30,
    env = self.options.environment,
  })
  self.played = 0
  self.t.wait('Neovim', function()
    return self:lua('return vim.v.vim_did_enter') == 1
  end)
  self:lua(inside, self.root)
  self:automatic()
end

function Player:automatic()
  self:lua("vim.cmd('Tandem mode auto')")
  self:wait('the mode', function(state)
    return state.mode == 'auto'
  end)
end

--- Runs Lua in the editor, unless it is waiting for a key.
function Player:lua(code, ...)
  local runs = vim.wait(3000, function()
    local mode = self.screen:mode()
    return not mode.blocking and not mode.mode:find('^r')
  end, 5)
  if not runs then
    error('the editor waits for a key:\n' .. self.screen:text())
  end
  return self.screen:lua(code, ...)
end

function Player:wait(what, condition)
  local state
  local ok = vim.wait(20000, function()
    state = self:lua('return child.state()')
    return condition(state)
  end, 5)
  if not ok then
    error(('waited in vain for %s: %s\n%s'):format(what, vim.inspect(state), self.screen:text()))
  end
  return state
end

function Player:rest()
  self:wait('rest', function(state)
    return state.rests
  end)
end

function Player:input(keys)
  vim.rpcrequest(self.screen.channel, 'nvim_input', keys)
end

--- Presses keys, and waits until they have been processed.
function Player:press(keys)
  self.played = self.played + 1
  self:input(keys .. '<F12>')
  self:wait('the keys ' .. keys, function(state)
    return state.played == self.played
  end)
end

function Player:command(line)
  self:press(':' .. line .. '<CR>')
end

---@param word string
---@return string
function Player:mark(word)
  self.count = self.count + 1
  return ('%s%d.'):format(word, self.count)
end

--- The files as a person sees them: a buffer's text if there is one, unless it has nothing unsaved and the file was removed.
---@return table<string, string> texts, table<string, table> buffers
function Player:seen()
  local buffers, texts = self:lua('return child.buffers()'), {}
  for _, name in ipairs(NAMES) do
    local buffer, disk = buffers[name], bytes_of(self.root .. '/' .. name)
    if buffer and (disk or buffer.modified) then
      texts[name] = buffer.text
    else
      texts[name] = disk and disk:gsub('\r\n', '\n')
    end
  end
  return texts, buffers
end

--- Accepts the current state as the expected one.
function Player:adopt()
  local buffers
  self.texts, buffers = self:seen()
  self.modified, self.left, self.exists = {}, {}, {}
  for _, name in ipairs(NAMES) do
    self.exists[name] = bytes_of(self.root .. '/' .. name) ~= nil
  end
  for name, buffer in pairs(buffers) do
    self.modified[name], self.left[name] = buffer.modified, buffer.text
  end
end

--- Invariants that hold after every event.
function Player:check(what)
  local t = self.t
  local texts, buffers = self:seen()
  t.equal(vim.tbl_map(plain, texts), vim.tbl_map(plain, self.texts), what .. ': the files as a person sees them')
  for name, buffer in pairs(buffers) do
    local disk = bytes_of(self.root .. '/' .. name)
    t.equal(buffer.text:find('\r', 1, true), nil, what .. ': a carriage return in the text of ' .. name)
    if not buffer.modified and disk then
      t.equal(plain(disk), plain(buffer.text), what .. ': not modified, and not as on the disk: ' .. name)
    end
  end
  t.equal(self:lua('return child.wrong()'), '', what .. ': messages')
  self:adopt()
  if self.chats[self.chat].asked then
    self:check_review(what)
  end
end

--- The list of changes and its marks match the current text.
function Player:check_review(what)
  self:lua('child.list()')
  self:rest()
  for _, change in ipairs(self:lua('return child.changes()')) do
    local lines, new = lines_of(self.texts[change.name] or ''), {}
    for _, line in ipairs(vim.split(change.hunk.diff, '\n')) do
      if line:sub(1, 1) == '+' then
        new[#new + 1] = line:sub(2):gsub('\r$', '')
      end
    end
    local from = change.hunk.new.start
    local there = vim.list_slice(lines, from, from + change.hunk.new.count - 1)
    self.t.equal(there, new, what .. ': a change under review: ' .. vim.inspect(change))
    if change.marked and #new > 0 then
      self.t.equal({ change.first, change.last }, { from - 1, from - 1 + #new }, what .. ': its mark')
    end
  end
end

--- Keys that type into the visible file; the expected text changes in the same way.
---@return string keys
function Player:typing(event, above)
  local text = self.texts[event.name] or self.left[event.name] or ''
  local lines, mine = lines_of(text), self:mark('mine')
  local row = math.min(event.line, #lines)
  local line = lines[row]
  local column = math.min(event.column - 1, vim.fn.strchars(line))
  local keys = ('%dG'):format(row)
  if above or event.how == 1 then
    table.insert(lines, 1, mine)
    keys = 'ggO' .. mine
  elseif event.how == 2 then
    table.insert(lines, row + 1, mine .. ' ü')
    keys = keys .. 'o' .. mine .. ' ü'
  elseif event.how == 3 then
    lines[row] = vim.fn.strcharpart(line, 0, column) .. mine .. vim.fn.strcharpart(line, column)
    keys = ('%s0%s%s'):format(keys, column == 0 and 'i' or column == 1 and 'a' or ('%dla'):format(column - 1), mine)
  elseif event.how == 4 and #lines > 1 then
    table.remove(lines, row)
    keys = keys .. 'dd'
  else
    lines[#lines] = lines[#lines] .. mine
    keys = 'GA' .. mine
  end
  self.texts[event.name], self.modified[event.name] = text_of(lines, text), true
  return keys .. '<Esc>'
end

--- Events that change files in other ways than by undo make undoing turns inexact.
---@param except? table the chat whose turn it is
function Player:touched(except)
  for _, chat in ipairs(self.chats) do
    for _, turn in ipairs(chat ~= except and vim.list_extend(vim.list_slice(chat.done), chat.undone) or {}) do
      turn.touched = true
    end
  end
end

--- The tool call for an event, and the expected text after it; nil if it has no effect.
function Player:call(act, id, unread)
  local texts, name, new = self.texts, act.name, self:mark('new')
  local text, dos = texts[name], name == 'b.txt'
  local function call(tool, arguments)
    return { call = { id = id, name = tool, arguments = arguments }, fragments = 2 }
  end
  local function run(line)
    return call('run_command', { command = line })
  end
  if act.what ~= 'write' and act.what ~= 'edit' then
    for one, is_modified in pairs(self.modified) do
      if is_modified and not self.exists[one] then
        self.modified[one], self.exists[one] = false, true -- saved because of the command
      end
    end
  end
  if act.what == 'write' then
    if unread[name] and text then
      return nil -- the model cannot replace text it has not read
    end
    texts[name] = new .. '\nwritten 😀\n'
    self.exists[name] = self.exists[name] or self.modified[name] == nil
    self.modified[name] = self.modified[name] ~= nil or nil
    return call('write_file', { path = name, content = texts[name] })
  elseif act.what == 'overwrite' then
    self.exists[name] = true
    texts[name] = 'top\n' .. new .. '\n'
    return run(("printf 'top%s\\n%s%s\\n' > %s"):format(dos and '\\r' or '', new, dos and '\\r' or '', name))
  elseif act.what == 'append' then
    if text and text ~= '' and text:sub(-1) ~= '\n' then
      return nil -- the buffer may have added a final newline
    end
    self.exists[name] = true
    texts[name] = (text or '') .. new .. '\n'
    return run(("printf '%s%s\\n' >> %s"):format(new, dos and '\\r' or '', name))
  elseif not text or text == '' then
    return nil
  elseif act.what == 'edit' then
    local lines = lines_of(text)
    local old = lines[act.line] or ''
    if old == '' then
      return nil
    end
    lines[act.line] = new .. ' é'
    texts[name] = text_of(lines, text)
    self.modified[name] = self.modified[name] ~= nil or nil
    return call('edit_file', { path = name, edits = { { old_text = old, new_text = new .. ' é' } } })
  elseif act.what == 'top' then
    texts[name] = new .. '\n' .. text
    return run(("sed -i '1i %s%s' %s"):format(new, dos and '\\r' or '', name))
  elseif act.what == 'remove' then
    self.half_undone = self.half_undone or self.modified[name]
    texts[name], self.left[name] = self.modified[name] and text or nil, text
    self.exists[name] = false
    return run('rm ' .. name)
  elseif act.to ~= name and not dos and act.to ~= 'b.txt' then
    self.half_undone = self.half_undone or self.modified[name]
    texts[act.to], texts[name], self.left[name] = text, self.modified[name] and text or nil, text
    self.exists[act.to], self.exists[name] = true, false
    return run(('mv %s %s'):format(name, act.to))
  end
end

--- The server reads all files as the person sees them.
function Player:check_read(result, texts)
  local read, name = {}, nil
  for _, line in ipairs(vim.split(result, '\n')) do
    name = line:match('^==> (.*) <==$') or name
    local text = line:match('^%d+\t(.*)$')
    if text then
      read[name] = (read[name] and read[name] .. '\n' or '') .. text:gsub('\r$', '')
    end
  end
  local expected = {}
  for one, text in pairs(texts) do
    expected[one] = plain(text) ~= '' and plain(text) or nil
  end
  for one, text in pairs(read) do
    read[one] = text ~= '' and text or nil
  end
  self.t.equal(read, expected, 'what the server reads of the files:\n' .. result)
end

function Player:show(name)
  if self:lua('return child.cursor()')[1] ~= name then
    self:command('drop ' .. name)
  end
end

local events = {}

function events:turn(event)
  local chat, before, typed, unread = self.chats[self.chat], vim.deepcopy(self.texts), {}, {}
  local replies, plans, changes = {}, {}, false
  self.half_undone = false
  local all = { path = NAMES[1], more_paths = vim.list_slice(NAMES, 2) }
  replies[1] = { { call = { id = 'r', name = 'read_file', arguments = all } } }
  for number, act in ipairs(event.acts) do
    local typing, gate = act.typing, 'g' .. number
    local races = act.races and (act.what == 'edit')
    -- Text typed while the edit was being made doesn't block it, and stays above it.
    local keys = typing and not races and self:typing(typing)
    if typing then
      typed[typing.name], unread[typing.name] = true, true
    end
    local call = self:call(act, 'c' .. number, unread)
    changes = changes or call ~= nil
    if act.what ~= 'edit' and act.what ~= 'write' then
      unread[act.what == 'move' and act.to or act.name] = true
    end
    keys = keys or typing and self:typing(typing, true)
    local reply = { call or { text = 'Nothing.' } }
    if keys then
      table.insert(reply, 1, { gate = gate })
      table.insert(plans, { gate = gate, name = typing.name, keys = keys, races = races })
    end
    table.insert(replies, reply)
    if not call then
      break -- it ends the turn
    end
  end
  table.insert(replies, { { text = 'Done.' } })
  self.model:script(unpack(replies))
  local cursor = self:lua('return child.cursor()')
  self:lua("vim.cmd('Tandem ask Go on')")
  chat.asked = true
  for _, plan in ipairs(plans) do
    self.model:state('gate:' .. plan.gate)
    self:show(plan.name)
    if plan.races then
      self.model:open(plan.gate)
      self:press(plan.keys)
    else
      self:press(plan.keys)
      self.model:open(plan.gate)
    end
  end
  self:rest()
  local requests = self.model:state().requests
  local messages = requests[2].messages
  self:check_read(messages[#messages].content, before)
  local only_edits = vim.iter(event.acts):all(function(act)
    return act.what == 'edit' or act.what == 'write'
  end)
  -- If a command changed the file, Neovim reloads it and keeps the cursor's line number.
  if only_edits and not next(typed) then
    local now = self:lua('return child.cursor()')
    if vim.list_contains(lines_of(self.texts[cursor[1]] or ''), cursor[2]) then
      self.t.equal(now, cursor, 'the cursor is on another line')
    end
  end
  -- A turn in which only the person changed something can't be undone.
  if changes and not vim.deep_equal(before, self.texts) then
    self:touched(chat)
    chat.undone = {}
    table.insert(chat.done, { count = self.count, before = before, after = vim.deepcopy(self.texts), touched = next(typed) ~= nil or self.half_undone })
  end
  if next(typed) then
    self:touched()
  end
end

function events:type(event)
  self:show(event.name)
  self:press(self:typing(event))
  self:touched()
end

function events:open(event)
  self:show(event.name)
end

function events:close(event)
  if self.modified[event.name] ~= nil then
    self:show(event.name == 'a.txt' and 'b.txt' or 'a.txt') -- its window stays open
    self:command('silent bwipeout! ' .. event.name)
    local disk = bytes_of(self.root .. '/' .. event.name)
    self.texts[event.name] = disk and disk:gsub('\r\n', '\n')
    self:touched()
  end
end

function events:write(event)
  if self.modified[event.name] ~= nil then
    self:show(event.name)
    self:press(':write<CR>')
    local text = self.texts[event.name] or self.left[event.name]
    self.texts[event.name] = text
    self.t.equal(bytes_of(self.root .. '/' .. event.name) ~= nil, true, 'it is written')
    self.t.equal(plain(bytes_of(self.root .. '/' .. event.name)), plain(text), 'what is written')
    self:touched()
  end
end

function events:again(event)
  if self.modified[event.name] ~= nil then
    self:show(event.name)
    self:press(':edit!<CR>')
    local disk = bytes_of(self.root .. '/' .. event.name)
    self.texts[event.name] = disk and disk:gsub('\r\n', '\n')
    self:touched()
  end
end

--- Neovim's own undo and redo.
function events:back(event)
  if self.modified[event.name] == nil then
    return
  end
  self:show(event.name)
  self:adopt()
  local before = self.left[event.name]
  self:press('u')
  self:adopt()
  if self.left[event.name] ~= before then
    self:press('<C-r>')
    self:adopt()
    self.t.equal(self.left[event.name], before, 'what Neovim redoes')
    self:press(event.choice < 4 and 'u' or '')
  end
  self:adopt()
  self:touched()
end

--- Another program changes a file that has no unsaved text.
function events:outside(event)
  local path = self.root .. '/' .. event.name
  local disk = bytes_of(path)
  if disk and not self.modified[event.name] then
    if self.modified[event.name] ~= nil then
      self:show(event.name) -- Neovim checks the files shown in windows
    end
    self:put(event.name, self:mark('mine') .. (event.name == 'b.txt' and '\r\n' or '\n') .. disk)
    self:command('checktime')
    self.texts[event.name] = bytes_of(path):gsub('\r\n', '\n')
    self:touched()
  end
end

---@return table<string, true> what a person typed
local function mine(texts)
  local found = {}
  for _, text in pairs(texts) do
    for mark in text:gmatch('mine%d+%.') do
      found[mark] = true
    end
  end
  return found
end

--- No line of the person's is lost, except those that the model replaces again.
---@param turn? tandem.test.Turn that was redone
function Player:keeps_mine(before, what, turn)
  local now = mine((self:seen()))
  local function is_replaced(mark)
    return turn and tonumber(mark:match('%d+')) <= turn.count and not mine(turn.after)[mark]
  end
  for mark in pairs(mine(before)) do
    local is_there = now[mark] or is_replaced(mark) or self:lua('return child.left or 0') > 0
    self.t.equal(is_there, true, what .. ': a line of the person is lost: ' .. mark)
  end
end

function Player:revert(action, from, to, side)
  local chat, before = self.chats[self.chat], self.texts
  local turn = table.remove(chat[from])
  self:command('Tandem ' .. action)
  self:rest()
  if turn and not turn.touched and not chat.lost then
    self.texts = vim.deepcopy(turn[side])
    table.insert(chat[to], turn)
  else
    self:keeps_mine(before, action, action == 'redo' and turn or nil)
    self:adopt()
    table.insert(chat[to], turn)
    self:touched()
  end
  for _, other in ipairs(self.chats) do
    other.lost = other.lost or other ~= chat
  end
end

function events:undo()
  self:revert('undo', 'done', 'undone', 'before')
end

function events:redo()
  self:revert('redo', 'undone', 'done', 'after')
end

function events:reject(event)
  local before = self.texts
  self:lua('child.list()')
  self:rest()
  if #self.chats > 1 or #self:lua('return child.changes()') == 0 then
    return -- with several chats, the one whose change is under the cursor
  end
  self:command('Tandem reject all')
  self:rest()
  self:keeps_mine(before, 'reject')
  if event.choice > 3 then
    self:command('Tandem undo')
    self:rest()
    return
  end
  self:adopt()
  self:touched()
  self.chats[self.chat].lost = true
end

function events:hunk(event)
  self:lua('child.list()')
  self:rest()
  local changes = self:lua('return child.changes()')
  local change = changes[(event.choice - 1) % math.max(1, #changes) + 1]
  if not change or change.hunk.new.count == 0 or not self.texts[change.name] then
    return
  end
  self:lua('child.at(...)', change.name, change.hunk.new.start)
  self:command('Tandem ' .. (event.what == 'keep' and 'keep' or 'reject'))
  self:rest()
  if event.what == 'hunk' then
    local text = self.texts[change.name]
    local lines, old = lines_of(text), change.hunk.oldText ~= '' and lines_of(change.hunk.oldText) or {}
    local from, count = change.hunk.new.start, change.hunk.new.count
    local new = vim.list_extend(vim.list_slice(lines, 1, from - 1), old)
    vim.list_extend(new, vim.list_slice(lines, from + count))
    self.texts[change.name] = text_of(new, text)
    if #new == 0 then
      self:adopt() -- nothing is left of a file that the model created
    end
    self:touched()
  end
  self.chats[self.chat].lost = true
end
events.keep = events.hunk

function events:chat()
  if self.chats[self.chat].asked then
    self:command('Tandem new')
    table.insert(self.chats, { done = {}, undone = {} })
    self.chat = #self.chats
    self:rest()
    self:automatic()
    self:command('wincmd p')
  end
end

--- Makes the chat after this one the current one.
function events:other()
  if #self.chats > 1 then
    self:lua("require('tandem').next_chat()")
    self.chat = self.chat % #self.chats + 1
    self:rest()
  end
end

function events:quit(event)
  local chat = self.chats[self.chat]
  local id = chat.asked and self:lua('return child.state()').id
  local before = self.texts
  vim.rpcnotify(self.screen.channel, 'nvim_input', event.choice > 3 and ':qa!<CR>' or ':xa!<CR>')
  local gone = vim.wait(10000, function()
    return not pcall(vim.rpcrequest, self.screen.channel, 'nvim_get_mode')
  end, 10)
  if not gone then
    error('Neovim does not quit:\n' .. self.screen:text())
  end
  self.chats, self.chat = { chat }, 1
  self:start()
  if id then
    self:lua("require('tandem').resume(...)", id)
    self:rest()
    self:automatic()
  end
  local texts = self:seen()
  if not vim.deep_equal(vim.tbl_map(plain, texts), vim.tbl_map(plain, before)) then
    self:touched()
  end
  chat.undone = {}
  self:adopt()
end

---@param t table
---@param happening table[]
---@return string? problem
function M.play(t, model, options, happening)
  local player = Player.new(t, model, options, vim.uv.fs_realpath(options.home) .. '/histories')
  local ok, problem = xpcall(function()
    for index, event in ipairs(happening) do
      local what = ('%d %s'):format(index, event.what)
      events[event.what](player, event)
      player:check(what)
    end
    events.turn(player, { acts = {} })
    player:check('the end')
  end, debug.traceback)
  local screen = ''
  if not ok then
    pcall(function()
      screen = player.screen:text()
    end)
  end
  pcall(player.screen.stop, player.screen)
  return not ok and tostring(problem) .. '\n' .. screen or nil
end

--- Removes whatever the failure does not need.
local function shrunk(t, model, options, happening, problem)
  local ends = vim.uv.now() + 1000 * tonumber(vim.env.TANDEM_SHRINK or 120)
  local index = #happening
  local function try(fewer)
    local found = vim.uv.now() < ends and M.play(t, model, options, fewer)
    if found then
      happening, problem = fewer, found
    end
    return found
  end
  while index >= 1 do
    local fewer = vim.deepcopy(happening)
    table.remove(fewer, index)
    if not try(fewer) and happening[index].acts then
      for act = #happening[index].acts, 1, -1 do
        local smaller = vim.deepcopy(happening)
        table.remove(smaller[index].acts, act)
        try(smaller)
      end
    end
    index = math.min(index - 1, #happening)
  end
  return happening, problem
end

---@param t table the harness
---@param model tandem.test.Model
---@param options { binary: string, plugin: string, home: string, here: string, environment: table<string, string> }
function M.test(t, model, options)
  t.test('whatever a person and the model do, buffers, the disk and the server agree', function()
    local more, seed = tonumber(vim.env.TANDEM_HISTORIES or ''), tonumber(vim.env.TANDEM_SEED or '')
    local first = seed or more and vim.uv.hrtime() % 1000000 or 1
    local began = vim.uv.now()
    for number = first, first + (seed and 1 or more or HISTORIES) - 1 do
      local happening = history(number)
      local problem = M.play(t, model, options, happening)
      if problem then
        happening, problem = shrunk(t, model, options, happening, problem)
        error(('TANDEM_SEED=%d: %s\n%s'):format(number, problem, vim.inspect(happening)))
      end
    end
    io.stdout:write(('# histories: %.1f s\n'):format((vim.uv.now() - began) / 1000))
  end)
end

return M
