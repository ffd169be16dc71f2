--- The windows of background commands: a session's list, and the output of one command.
--- Invariant: the server is asked only about what a window shows.
local JobOutput = require('tandem.job_output')
local Jobs = require('tandem.jobs')
local cells = require('tandem.cells')
local config = require('tandem.config')
local render = require('tandem.render')
local window = require('tandem.window')

local api = vim.api
local M = {}

local space = api.nvim_create_namespace('tandem.jobs')
local look_ms = 1000
--- How many lines are shown of each in the list.
local listed_lines = 3
local height = 10

---@class tandem.JobsView the list of a session
---@field buf integer
---@field session tandem.Session
---@field outputs table<integer, tandem.JobOutput>
---@field rows integer[] the job of each row
---@field looks boolean it is looked at again

---@type table<tandem.Session, tandem.JobsView>
local views = {}
---@type table<tandem.Session, table<integer, integer>> the buffers of outputs, by job
local followed = setmetatable({}, { __mode = 'k' })

--- Calls back repeatedly, while a window shows the buffer and more is to come.
---@param buf integer
---@param look fun(done: fun(goes_on: boolean))
---@param ended? fun()
local function keep_looking(buf, look, ended)
  look(vim.schedule_wrap(function(goes_on)
    if goes_on and api.nvim_buf_is_valid(buf) then
      vim.defer_fn(function()
        if api.nvim_buf_is_valid(buf) then
          keep_looking(buf, look, ended)
        end
      end, look_ms)
    elseif ended then
      ended()
    end
  end))
end

---@param buf integer
---@param lines string[]
local function set_lines(buf, lines)
  vim.bo[buf].modifiable = true
  api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable = false
end

--- A buffer that is deleted with its window, and its keys.
---@param session tandem.Session
---@param name string
---@param keys { [1]: string, [2]: string, [3]: fun() }[]
---@return integer buf
local function create_buffer(session, name, keys)
  local buf = api.nvim_create_buf(false, true)
  window.define_highlights()
  vim.bo[buf].bufhidden, vim.bo[buf].modeline, vim.bo[buf].modifiable = 'wipe', false, false
  vim.bo[buf].filetype = 'tandem-jobs'
  pcall(api.nvim_buf_set_name, buf, name) -- of two chats of a workspace, the first has it
  vim.b[buf].tandem_root = session.root
  local listed = {} ---@type tandem.Key[]
  for _, key in ipairs(keys) do
    listed[#listed + 1] = { mode = 'n', lhs = key[1], desc = key[2] }
    vim.keymap.set('n', key[1], key[3], { buffer = buf, desc = 'tandem: ' .. key[2], nowait = true })
  end
  vim.keymap.set('n', 'g?', function()
    require('tandem.keys').show(listed, 'the background commands')
  end, { buffer = buf, desc = 'tandem: show these keys', nowait = true })
  return buf
end

---@param buf integer
---@param where vim.api.keyset.win_config
---@param wrap boolean
---@return integer win
local function open_window(buf, where, wrap)
  local win = api.nvim_open_win(buf, true, where)
  for option, value in pairs({
    wrap = wrap,
    number = false,
    relativenumber = false,
    list = false,
    spell = false,
    statuscolumn = '',
    signcolumn = wrap and 'no' or 'yes:1',
    foldcolumn = '0',
    foldenable = false,
    cursorline = not wrap,
    winfixheight = true,
    winbar = "%{%v:lua.require'tandem.jobs_window'.winbar()%}",
    winhighlight = 'WinBar:Normal,WinBarNC:Normal',
  }) do
    vim.wo[win][0][option] = value
  end
  vim.wo[win].winfixbuf = true
  return win
end

--- The line above a window: a title, and the keys that fit (evaluated by Neovim while it draws).
---@return string
function M.winbar()
  local bar = vim.b.tandem_bar
  local room = api.nvim_win_get_width(0) - 3
  local title = cells.cut(bar.title, room)
  local keys = cells.first(bar.keys, room - vim.fn.strdisplaywidth(title))
  return ('%%#TandemTitle# %s %%=%%#TandemDim#%s '):format(title:gsub('%%', '%%%%'), keys)
end

---@param buf integer
---@param title string
---@param keys string[] the most important first
local function set_winbar(buf, title, keys)
  vim.b[buf].tandem_bar = { title = title, keys = keys }
end

---@param job wire.Job
---@return string
local function first_line(job)
  local lines = render.split(job.command)
  return lines[1] .. (lines[2] and ' …' or '')
end

local looks = {
  running = { 'in_progress', 'TandemRunning' },
  stopped = { 'pending', 'TandemDim' },
  exited = { 'failed', 'TandemFailed' },
}

--- The row of a job: its state as a sign, then how long it has been running, its ports and the command.
---@param buf integer
---@param row integer
---@param job wire.Job
local function decorate(buf, row, job)
  local look = job.exitCode == 0 and { 'completed', 'TandemDone' } or looks[job.state]
  local ports = table.concat(vim.tbl_map(function(port)
    return (' :%d'):format(port)
  end, job.ports))
  api.nvim_buf_set_extmark(buf, space, row, 0, {
    sign_text = config.get().icons[look[1]],
    sign_hl_group = look[2],
    virt_text = { { ('%-7s'):format(Jobs.describe(job)), look[2] }, { ports .. '  ', 'TandemNotice' } },
    virt_text_pos = 'inline',
  })
end

---@param view tandem.JobsView
local function draw_list(view)
  local cursors = {} ---@type table<integer, integer>
  for _, win in ipairs(vim.fn.win_findbuf(view.buf)) do
    cursors[win] = view.rows[api.nvim_win_get_cursor(win)[1]]
  end
  local jobs = view.session.jobs.listed
  local lines, firsts = {}, {} ---@type string[], table<integer, integer>
  view.rows = {}
  view.outputs = vim.iter(jobs):fold({}, function(kept, job)
    kept[job.id] = view.outputs[job.id] -- those of a session that was closed are forgotten
    return kept
  end)
  for _, job in ipairs(jobs) do
    firsts[job.id] = #lines + 1
    lines[#lines + 1] = first_line(job)
    local output = view.outputs[job.id] and view.outputs[job.id]:lines() or {}
    for _, line in ipairs(vim.list_slice(output, #output - listed_lines + 1)) do
      lines[#lines + 1] = '  ' .. line
    end
    while #view.rows < #lines do
      table.insert(view.rows, job.id)
    end
  end
  set_lines(view.buf, #jobs > 0 and lines or { 'No background commands in this session' })
  api.nvim_buf_clear_namespace(view.buf, space, 0, -1)
  for row, id in ipairs(view.rows) do
    if firsts[id] == row then
      decorate(view.buf, row - 1, assert(view.session.jobs:get(id)))
    else
      api.nvim_buf_set_extmark(view.buf, space, row - 1, 0, { line_hl_group = 'TandemDim' })
    end
  end
  for win, id in pairs(cursors) do
    if firsts[id] and view.rows[api.nvim_win_get_cursor(win)[1]] ~= id then
      api.nvim_win_set_cursor(win, { firsts[id], 0 })
    end
  end
end

--- Reads the outputs of a list, one after the other, and draws it.
---@param view tandem.JobsView
---@param done fun(goes_on: boolean)
local function look_at_list(view, done)
  view.session.jobs:refresh(function()
    local left = vim.tbl_filter(function(job)
      view.outputs[job.id] = view.outputs[job.id] or JobOutput.new(view.session.jobs, job.id, listed_lines)
      return not view.outputs[job.id].is_whole
    end, view.session.jobs.listed)
    local function next_output()
      local job = table.remove(left, 1)
      if job then
        return view.outputs[job.id]:read(next_output)
      end
      M.draw(view.session)
      done(vim.iter(view.session.jobs.listed):any(function(listed)
        local output = view.outputs[listed.id]
        return not output or not output.is_whole
      end))
    end
    next_output()
  end)
end

---@param view tandem.JobsView
local function look_again(view)
  if not view.looks then
    view.looks = true
    keep_looking(view.buf, function(done)
      look_at_list(view, done)
    end, function()
      view.looks = false
      M.draw(view.session) -- one may have begun meanwhile
    end)
  end
end

--- Draws the list of a session where it is shown. The output of a new command is followed from now on.
---@param session tandem.Session
function M.draw(session)
  local view = views[session]
  if not view then
    return
  elseif not api.nvim_buf_is_valid(view.buf) then
    views[session] = nil
    return
  end
  draw_list(view)
  local is_new = vim.iter(session.jobs.listed):any(function(job)
    return not view.outputs[job.id]
  end)
  if is_new then
    look_again(view)
  end
end

---@param session tandem.Session
---@param id integer
local function stop(session, id)
  local job = session.jobs:get(id)
  if not job or job.state ~= 'running' then
    return require('tandem.say')('This command has already ended')
  end
  session.jobs:stop(id)
end

---@param session tandem.Session
---@param id integer
local function open_port(session, id)
  local job = session.jobs:get(id)
  local ports = job and job.ports or {}
  if #ports == 0 then
    return require('tandem.say')('This command is not listening on a port')
  elseif #ports == 1 then
    return session.jobs:open(id, ports[1])
  end
  vim.ui.select(ports, { prompt = 'Open port' }, function(port)
    if port then
      session.jobs:open(id, port)
    end
  end)
end

--- Shows what a job prints, as it comes: the window follows while its cursor is on the last line.
---@param session tandem.Session
---@param id integer
local function show_output(session, id)
  local job = session.jobs:get(id)
  if not job then
    return
  end
  local name = ('tandem job %d of %s'):format(id, vim.fs.basename(session.root))
  local there = vim.tbl_get(followed, session, id)
  local win = there and api.nvim_buf_is_valid(there) and window.find(there)
  if win then
    return api.nvim_set_current_win(win)
  end
  local buf = create_buffer(session, name, {
    {
      'x',
      'stop the command',
      function()
        stop(session, id)
      end,
    },
    {
      'o',
      'open its port in the browser',
      function()
        open_port(session, id)
      end,
    },
    { 'q', 'close the window', window.close },
  })
  followed[session] = followed[session] or {}
  followed[session][id] = buf
  local function draw_title()
    local now = session.jobs:get(id) or job
    set_winbar(buf, ('%s  %s'):format(Jobs.describe(now), first_line(now)), { 'x stop', 'o open', 'q close' })
  end
  draw_title()
  local list = views[session] and window.find(views[session].buf)
  open_window(buf, list and { split = 'right', win = list } or { split = 'below', win = -1, height = height }, true)
  local terminal, known = api.nvim_open_term(buf, {}), { offset = 0, line = '' }
  vim.cmd('normal! G') -- the window follows what is printed while its cursor is on the last line
  keep_looking(buf, function(done)
    local is_running = (session.jobs:get(id) or job).state == 'running'
    session.jobs:output(
      id,
      known.offset,
      true,
      vim.schedule_wrap(function(piece)
        if not piece or not api.nvim_buf_is_valid(buf) then
          return
        end
        draw_title()
        if piece.text ~= '' or piece.line ~= known.line then
          -- The last line is written again while it changes. It is cut at the edge, so that it is one row.
          local text = ('\r\27[K%s\27[?7l%s\27[?7h'):format(piece.text:gsub('\n', '\r\n'), piece.line)
          api.nvim_chan_send(terminal, text)
        end
        known = piece
        done(is_running)
      end)
    )
  end)
end

--- The job under the cursor of a list.
---@param view tandem.JobsView
---@return integer?
local function under_cursor(view)
  return view.rows[api.nvim_win_get_cursor(0)[1]]
end

--- Shows the list of a session and goes there; from there, closes it.
---@param session tandem.Session
function M.toggle(session)
  local view = views[session]
  local win = view and api.nvim_buf_is_valid(view.buf) and window.find(view.buf)
  if win and win == api.nvim_get_current_win() then
    return window.close()
  elseif win then
    return api.nvim_set_current_win(win)
  end
  view = { session = session, outputs = {}, rows = {}, looks = false }
  local function with_job(use)
    return function()
      local id = under_cursor(view)
      if id then
        use(session, id)
      end
    end
  end
  view.buf = create_buffer(session, 'tandem jobs of ' .. vim.fs.basename(session.root), {
    { '<CR>', 'follow the output', with_job(show_output) },
    { 'x', 'stop the command', with_job(stop) },
    { 'o', 'open its port in the browser', with_job(open_port) },
    { 'q', 'close the window', window.close },
  })
  set_winbar(view.buf, 'Background commands', { '<CR> output', 'x stop', 'o open', 'q close' })
  views[session] = view
  open_window(view.buf, { split = 'below', win = -1, height = height }, false)
  draw_list(view)
  look_again(view)
end

return M
