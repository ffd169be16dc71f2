--- The chat's buffer options, its window, its keys and its highlight groups. Never takes the focus unasked.
local config = require('tandem.config')
local jump = require('tandem.jump')
local say = require('tandem.say')

local api = vim.api
local M = {}

--- The highlight groups and their default links.
M.highlights = {
  TandemTitle = 'Title',
  TandemRule = 'NonText',
  TandemUser = 'Function',
  TandemAgent = 'Special',
  TandemThought = 'Comment',
  TandemFolded = 'Normal',
  TandemCode = 'ColorColumn',
  TandemTool = 'Bold',
  TandemAdd = 'Added',
  TandemDelete = 'Removed',
  TandemDim = 'Comment',
  TandemCut = 'Comment',
  TandemNotice = 'DiagnosticInfo',
  TandemRequest = 'DiagnosticWarn',
  TandemKey = 'Visual',
  TandemIdle = 'Comment',
  TandemPending = 'DiagnosticWarn',
  TandemRunning = 'DiagnosticInfo',
  TandemDone = 'DiagnosticOk',
  TandemFailed = 'DiagnosticError',
  TandemReviewAdd = 'DiffAdd',
  TandemReviewDelete = 'DiffDelete',
}

function M.define_highlights()
  for group, link in pairs(M.highlights) do
    api.nvim_set_hl(0, group, { link = link, default = true })
  end
end

--- The session whose chat is in the current buffer.
---@return tandem.Session
local function session()
  return require('tandem.chats').current()
end

---@return boolean
local function in_input()
  return api.nvim_win_get_cursor(0)[1] > session().chat:input_row()
end

--- Opens what the cursor is on, beside the chat: the place that is named there, else the file of the tool call.
local function go_to_place()
  local current = session()
  local place = jump.under_cursor(current.root) or current.chat:location(api.nvim_win_get_cursor(0)[1] - 1)
  if place and place.path then
    jump.open(place)
  else
    say('No file under the cursor')
  end
end

--- The answer under the cursor, where a permission request waits for one.
---@return tandem.PermissionOption?
local function choice()
  return session().chat:choice_at(api.nvim_win_get_cursor(0)[1] - 1)
end

---@param option tandem.PermissionOption
local function choose(option)
  local problem = require('tandem.permission').choose(option)
  if problem then
    say(problem)
  end
end

--- Sends from the input; elsewhere gives the answer under the cursor, or goes to the file there.
local function enter()
  local option = choice()
  if in_input() then
    session().chat.input:submit()
  elseif option then
    choose(option)
  else
    go_to_place()
  end
end

--- A double click on an answer gives it; elsewhere it does what it does in Neovim.
---@return string keys
local function double_click()
  local option = choice()
  if not option then
    return '<2-LeftMouse>'
  end
  vim.schedule(function()
    choose(option)
  end)
  return ''
end

--- Yanks the code block under the cursor, as `"xy` would.
local function yank_code()
  local lines = session().chat:code_block(api.nvim_win_get_cursor(0)[1] - 1)
  if not lines then
    return say('No code block under the cursor')
  end
  vim.fn.setreg(vim.v.register, lines, 'l')
  say(('Yanked %d line%s'):format(#lines, #lines == 1 and '' or 's'))
end

--- Moves the running command under the cursor, or the only one, to the background.
local function run_in_background()
  local current = session()
  local call = current.chat:running_command(api.nvim_win_get_cursor(0)[1] - 1)
  if not call then
    return say('No running command under the cursor')
  end
  current.jobs:run_in_background(call.toolCallId)
end

---@param buf integer
local function set_keys(buf)
  local listed = {} ---@type tandem.Key[]
  local function map(mode, lhs, rhs, desc, expr)
    listed[#listed + 1] = { mode = mode, lhs = lhs, desc = desc }
    vim.keymap.set(mode, lhs, rhs, { buffer = buf, desc = 'tandem: ' .. desc, nowait = true, expr = expr })
  end
  local tandem = require('tandem')
  for _, key in ipairs({ 'i', 'a', 'o', 'I', 'A', 'O' }) do
    map('n', key, function()
      vim.bo.modifiable = true
      return in_input() and key or 'GA'
    end, 'write', true)
  end
  map('n', '<CR>', enter, 'send, choose the answer, or go to the file')
  map({ 'n', 'i' }, '<2-LeftMouse>', double_click, 'choose the answer', true)
  map('i', '<C-s>', function()
    session().chat.input:submit()
  end, 'send')
  -- An interrupt would end insert mode without events and leave the mode's name on the screen.
  vim.keymap.set('i', '<C-c>', '<Esc>', { buffer = buf, desc = 'tandem: leave insert mode' })
  map('n', 'g<CR>', function()
    session().chat.input:steer()
  end, 'send to the running turn')
  map('n', '<C-c>', tandem.stop, 'stop the turn')
  map('n', '<C-p>', function()
    session().chat.input:recall(-1)
  end, 'previous prompt')
  map('n', '<C-n>', function()
    session().chat.input:recall(1)
  end, 'next prompt')
  map('n', 'u', function()
    session().chat.input:undo(-1)
  end, 'undo a change of the input')
  map('n', '<C-r>', function()
    session().chat.input:undo(1)
  end, 'redo a change of the input')
  map('n', 'gp', function()
    session().chat.input:paste_image()
  end, 'paste the image in the clipboard')
  map('n', 'ga', tandem.allow, 'allow')
  map('n', 'g.', tandem.allow_turn, 'allow, and the rest of the turn')
  map('n', 'gA', tandem.allow_always, 'always allow')
  map('n', 'gr', tandem.reject, 'reject')
  map('n', 'gf', go_to_place, 'go to the file')
  map('n', 'gF', go_to_place, 'go to the file and line')
  map('n', 'gy', yank_code, 'yank the code block')
  map('n', 'g&', run_in_background, 'run the command in the background')
  map('n', ']]', [[<Cmd>call search('^## ', 'W')<CR>]], 'next message')
  map('n', '[[', [[<Cmd>call search('^## ', 'bW')<CR>]], 'previous message')
  map('n', 'gb', tandem.back, 'rewind to just before the prompt, and edit it')
  map('n', 'gB', tandem.regenerate, 'rewind to just before the prompt, and send it again')
  map('n', ']c', tandem.next_chat, 'next chat')
  map('n', '[c', tandem.prev_chat, 'previous chat')
  map('n', 'q', function()
    return vim.fn.reg_recording() ~= '' and 'q' or [[<Cmd>lua require('tandem.window').close()<CR>]]
  end, 'close the chat, or end recording', true)
  map('n', 'g?', function()
    require('tandem.keys').show(listed)
  end, 'show these keys')
end

---@param buf integer
local function guard_transcript(buf)
  api.nvim_create_autocmd('BufReadCmd', {
    buffer = buf,
    desc = 'tandem: :edit redraws the chat',
    callback = function()
      session().chat.text:move(buf)
    end,
  })
  api.nvim_create_autocmd('BufUnload', {
    buffer = buf,
    desc = 'tandem: keep the session when its buffer is deleted',
    callback = function()
      local shown = require('tandem.chats').of_chat(buf)
      if shown and vim.v.exiting == vim.NIL then
        shown.chat.text:save()
      end
    end,
  })
  api.nvim_create_autocmd('BufEnter', {
    buffer = buf,
    desc = 'tandem: of several chats in view, commands apply to the one entered last',
    callback = function()
      local entered = require('tandem.chats').of_chat(buf)
      if entered then
        require('tandem.chats').select(entered)
      end
    end,
  })
  api.nvim_create_autocmd('InsertCharPre', {
    buffer = buf,
    desc = 'tandem: what is typed above the input, as after scrolling, is written in the input',
    callback = function()
      if in_input() then
        return
      end
      local typed = vim.v.char
      vim.v.char = ''
      vim.schedule(function() -- no text may be changed before
        local text = session().chat.text
        text:set_input(text:draft() .. typed)
        api.nvim_win_set_cursor(0, { api.nvim_buf_line_count(buf), vim.v.maxcol })
      end)
    end,
  })
  api.nvim_create_autocmd({ 'TextChangedI', 'TextChangedP' }, {
    buffer = buf,
    desc = 'tandem: tell the server that typing a prompt has begun',
    callback = function()
      session().chat.input:typed()
    end,
  })
  api.nvim_create_autocmd({ 'TextChanged', 'TextChangedI', 'TextChangedP' }, {
    buffer = buf,
    desc = 'tandem: keep the input below its heading',
    callback = function()
      session().chat.text:repair_input()
    end,
  })
  api.nvim_create_autocmd({ 'TextChanged', 'InsertLeave' }, {
    buffer = buf,
    desc = 'tandem: changes of the input can be undone',
    callback = function()
      session().chat.input:changed()
    end,
  })
  api.nvim_create_autocmd('ModeChanged', {
    pattern = { '*:i', 'i*:n' },
    desc = 'tandem: show the keys of the current mode',
    callback = function()
      local shown = api.nvim_get_current_buf() == buf and require('tandem.chats').of_chat(buf)
      if shown then
        shown.chat:show_state()
      end
      return not api.nvim_buf_is_valid(buf) -- which removes this
    end,
  })
  api.nvim_create_autocmd({ 'CursorMoved', 'CursorMovedI', 'BufEnter' }, {
    buffer = buf,
    desc = 'tandem: allow changes in the input only',
    callback = function()
      local inside = in_input()
      if vim.bo[buf].modifiable ~= inside then
        vim.bo[buf].modifiable = inside
      end
    end,
  })
end

--- A name that no buffer has: of the folder, else of its path, with a number where there are several chats.
---@param root string
---@return string
local function free_name(root)
  local folder, path = vim.fs.basename(root), vim.fn.fnamemodify(root, ':~')
  local number = #require('tandem.chats').of_root(root)
  local name = ('tandem %s%s'):format(folder, number > 1 and ' ' .. number or '')
  while vim.fn.bufexists(name) == 1 do
    name = ('tandem %s%s'):format(path, number > 1 and ' ' .. number or '')
    number = number + 1
  end
  return name
end

---@param root string
---@return integer buf
function M.create_buffer(root)
  M.define_highlights()
  local buf = api.nvim_create_buf(false, true)
  api.nvim_buf_set_name(buf, free_name(root))
  vim.b[buf].tandem_root = root
  vim.bo[buf].bufhidden = 'hide'
  vim.bo[buf].modeline = false
  -- Indents wrapped lines of lists, diffs and answers to choose from.
  vim.bo[buf].formatlistpat = [[^\s*\([-+*]\|\d\+[.)]\|g[aAr.] \)\s*]]
  vim.bo[buf].omnifunc = "v:lua.require'tandem.complete'.omnifunc"
  vim.bo[buf].filetype = 'tandem'
  if not require('tandem.markdown').is_available() then
    vim.bo[buf].syntax = 'markdown'
  end
  set_keys(buf)
  guard_transcript(buf)
  require('tandem.local_server').attach(buf)
  return buf
end

local window_options = {
  wrap = true,
  linebreak = true,
  smoothscroll = true, -- else a paragraph taller than the window hides itself
  breakindent = true,
  breakindentopt = 'list:-1',
  number = false,
  relativenumber = false,
  list = false,
  spell = false,
  cursorline = false,
  colorcolumn = '',
  statuscolumn = '',
  signcolumn = 'yes:1',
  foldcolumn = '0',
  foldmethod = 'expr',
  foldexpr = "v:lua.require'tandem.window'.fold_level()",
  foldtext = '',
  foldlevel = 0,
  foldenable = true,
  fillchars = 'fold: ,eob: ',
  conceallevel = 2,
  concealcursor = 'nc',
  winbar = "%{%v:lua.require'tandem.status'.winbar()%}",
  winhighlight = 'NormalFloat:Normal,FloatBorder:Normal,Folded:TandemFolded,WinBar:Normal,WinBarNC:Normal',
}

--- For 'foldexpr'.
---@return string
function M.fold_level()
  return require('tandem.folds').level(api.nvim_get_current_buf(), vim.v.lnum - 1)
end

---@return boolean beside the code, not above or below
local function is_beside()
  local position = config.get().chat.position
  return position == 'right' or position == 'left'
end

---@return vim.api.keyset.win_config
local function placement()
  local chat = config.get().chat
  if chat.position == 'float' then
    local width = math.floor(chat.size < 1 and vim.o.columns * math.max(chat.size, 0.6) or chat.size)
    local height = math.floor(vim.o.lines * 0.8)
    return {
      relative = 'editor',
      width = math.min(width, vim.o.columns - 4),
      height = height,
      row = math.floor((vim.o.lines - height) / 2) - 1,
      col = math.floor((vim.o.columns - math.min(width, vim.o.columns - 4)) / 2),
      border = 'rounded',
    }
  end
  local beside = is_beside()
  local total = beside and vim.o.columns or vim.o.lines
  local size = math.floor(chat.size < 1 and total * chat.size or chat.size)
  local split = ({ right = 'right', left = 'left', bottom = 'below', top = 'above' })[chat.position]
  return { split = split, win = -1, [beside and 'width' or 'height'] = math.max(1, math.min(size, total - 2)) }
end

--- Gives a window its share of the screen.
---@param win integer
local function set_size(win)
  local wanted = placement()
  if wanted.relative then
    return api.nvim_win_set_config(win, wanted)
  end
  if wanted.width then
    api.nvim_win_set_width(win, wanted.width)
  else
    api.nvim_win_set_height(win, wanted.height)
  end
  vim.w[win].tandem_size = wanted.width or wanted.height
end

---@param win integer
---@return boolean it is the only one of its tab page
local function is_alone(win)
  return vim.iter(api.nvim_tabpage_list_wins(api.nvim_win_get_tabpage(win))):all(function(other)
    return other == win or api.nvim_win_get_config(other).relative ~= ''
  end)
end

--- Draws what depends on the width of a window. What is opened from the chat is opened beside it, unless it is alone.
---@param win integer
local function fit(win)
  local shown = require('tandem.chats').of_chat(api.nvim_win_get_buf(win))
  if shown then
    shown.chat:fit()
    local is_fixed = not is_alone(win)
    vim.wo[win][0].winfixbuf = is_fixed
    vim.wo[win][0][is_beside() and 'winfixwidth' or 'winfixheight'] = is_fixed
  end
end

--- Keeps the part of the screen that the settings name when the screen changes its size, unless the window was resized.
local function watch_size()
  local group = api.nvim_create_augroup('tandem.size', {})
  api.nvim_create_autocmd('WinResized', {
    group = group,
    desc = 'tandem: fit keys and tables to the width of the chat',
    callback = function()
      vim.iter(vim.v.event.windows):filter(api.nvim_win_is_valid):each(fit)
    end,
  })
  api.nvim_create_autocmd('VimResized', {
    group = group,
    desc = "tandem: keep the chat's share of the screen",
    callback = function()
      for _, win in ipairs(api.nvim_list_wins()) do
        local size = vim.w[win].tandem_size
        local now, total = api.nvim_win_get_width(win), vim.o.columns
        if not is_beside() then
          now, total = api.nvim_win_get_height(win), vim.o.lines
        end
        local is_squeezed = size and size > total - 2 -- the editor made it smaller
        if (size == now or is_squeezed) and config.get().chat.position ~= 'tab' then
          set_size(win)
        end
      end
    end,
  })
end

---@param buf integer
---@return integer? win the window that shows the buffer: of this tab page, unless the chat has one of its own
function M.find(buf)
  local wins = config.get().chat.position == 'tab' and api.nvim_list_wins() or api.nvim_tabpage_list_wins(0)
  return vim.iter(wins):find(function(win)
    return api.nvim_win_get_buf(win) == buf
  end)
end

--- Whether a window of this tab page shows a row of a buffer.
---@param buf integer
---@param row integer zero-based
---@return boolean
function M.shows(buf, row)
  return vim.iter(api.nvim_tabpage_list_wins(0)):any(function(win)
    local is_there = api.nvim_win_get_buf(win) == buf
    return is_there and vim.fn.line('w0', win) <= row + 1 and row + 1 <= vim.fn.line('w$', win)
  end)
end

--- The window of this tab page that shows another chat, the current one first: two would leave no room for the code.
---@param buf integer
---@return integer?
function M.find_other(buf)
  local wins = { { api.nvim_get_current_win() }, api.nvim_tabpage_list_wins(0) }
  return vim.iter(wins):flatten():find(function(win)
    local shown = api.nvim_win_get_buf(win)
    return shown ~= buf and vim.bo[shown].filetype == 'tandem'
  end)
end

--- Shows a chat in a window, with the options it needs.
---@param win integer
---@param buf integer
local function put(win, buf)
  vim.wo[win].winfixbuf = false
  api.nvim_win_set_buf(win, buf)
  for option, value in pairs(window_options) do
    vim.wo[win][0][option] = value
  end
  api.nvim_win_set_cursor(win, { api.nvim_buf_line_count(buf), 0 })
end

--- Opens a window where the settings place it; the cursor stays.
---@param buf integer
---@return integer win
local function open_window(buf)
  if config.get().chat.position ~= 'tab' then
    local win = api.nvim_open_win(buf, false, placement())
    vim.w[win].tandem_size = is_beside() and api.nvim_win_get_width(win) or api.nvim_win_get_height(win)
    return win
  end
  local here = api.nvim_get_current_win()
  vim.cmd('tab split')
  local win = api.nvim_get_current_win()
  vim.wo[win].winfixbuf = false
  api.nvim_win_set_buf(win, buf)
  api.nvim_set_current_win(here)
  return win
end

--- Shows the chat.
---@param buf integer
---@param focus boolean whether the cursor goes there
function M.open(buf, focus)
  local win = M.find(buf)
  if not win and vim.fn.getcmdwintype() ~= '' then
    return -- no window can be opened from the command-line window
  elseif not win then
    local other = M.find_other(buf)
    win = other or open_window(buf)
    put(win, buf)
    fit(win)
    if not other and vim.o.equalalways then -- as `:split` does: the room comes from all windows, not from one
      vim.cmd(is_beside() and 'horizontal wincmd =' or 'vertical wincmd =')
    end
    watch_size()
  end
  if focus then
    api.nvim_set_current_win(win)
  end
end

--- Closes the current window. If it is the last one, another replaces it, since its size is fixed.
function M.close()
  local win = api.nvim_get_current_win()
  if is_alone(win) and #api.nvim_list_tabpages() == 1 then
    vim.cmd.new()
  end
  api.nvim_win_close(win, false)
end

--- Shows the chat and goes there; from there, closes it.
---@param buf integer
function M.toggle(buf)
  if api.nvim_get_current_buf() == buf then
    M.close()
  else
    M.open(buf, true)
  end
end

return M
