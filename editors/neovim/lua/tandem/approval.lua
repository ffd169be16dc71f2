--- Shows a permission request where the user sees it: as a preview in the buffers that it would change, in a float that
--- never takes the cursor (while the chat does not show the answers), and in the message line.
--- Invariant: whatever is shown of a request disappears with it.
local cells = require('tandem.cells')
local config = require('tandem.config')
local permission = require('tandem.permission')
local window = require('tandem.window')

local api = vim.api

local M = {}

---@class tandem.Shown the request that is shown
---@field request tandem.Request
---@field row fun(): integer the last row of its answers in the chat
---@field clear_preview fun()
---@field told boolean whether the message line names it

local shown ---@type tandem.Shown?
local win, buf ---@type integer?, integer? of the float
local group = api.nvim_create_augroup('tandem.approval', {})

--- What the user presses, or types, for one of our actions.
---@param action string such as "allow"
---@return string
local function key_for(action)
  local plug = ('<Plug>(tandem-%s)'):format(action)
  for _, map in ipairs(api.nvim_get_keymap('n')) do
    if map.rhs == plug then
      return vim.fn.keytrans(map.lhsraw or map.lhs)
    end
  end
  return ':Tandem ' .. action
end

--- The title of the request, with its workspace if the cursor is in another, and its chat if there are several.
---@param request tandem.Request
---@return string
local function title_of(request)
  local chats = require('tandem.chats')
  local root = request.session.root
  local is_elsewhere = require('tandem.client').root(api.nvim_get_current_buf()) ~= root
  local workspace = is_elsewhere and vim.fs.basename(root) .. ': ' or ''
  local chat = #chats.of_root(root) > 1 and ('chat %d: '):format(chats.number(request.session)) or ''
  return workspace .. chat .. (request.call.title or 'run a tool'):gsub('%s+', ' ')
end

--- The keys first, because the end may be truncated.
---@param request tandem.Request
---@return string
local function message(request)
  return ('%s / %s?  %s'):format(key_for('allow'), key_for('reject'), title_of(request))
end

---@param request tandem.Request
---@return string[]
local function lines_of(request)
  local room = vim.o.columns - 6
  local keys = {} ---@type string[]
  for _, answer in ipairs({ { 'allow', 'allow' }, { 'reject', 'reject' }, { 'chat', 'details' } }) do
    local key = key_for(answer[1])
    keys[#keys + 1] = vim.startswith(key, ':Tandem') and key or ('%s %s'):format(key, answer[2])
  end
  return { (' %s '):format(cells.cut(title_of(request), room)), (' %s '):format(cells.first(keys, room)) }
end

local function hide_float()
  if win and api.nvim_win_is_valid(win) then
    api.nvim_win_close(win, true)
  end
  win = nil
end

--- Shows it in the lower right corner, where it covers only the last lines of what is being edited.
---@param request tandem.Request
local function show_float(request)
  if not (buf and api.nvim_buf_is_valid(buf)) then
    buf = api.nvim_create_buf(false, true)
    vim.bo[buf].bufhidden = 'hide'
  end
  local lines = lines_of(request)
  api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  local width = vim.fn.max(vim.tbl_map(vim.fn.strdisplaywidth, lines))
  local options = {
    relative = 'editor',
    anchor = 'SE',
    row = vim.o.lines - vim.o.cmdheight - 1,
    col = vim.o.columns,
    width = math.min(width, vim.o.columns - 4),
    height = #lines,
    border = 'rounded',
    title = { { ' Allow? ', 'TandemRequest' } },
    focusable = false,
    zindex = 60,
  }
  -- Closing it to open another would be an event that shows it again, and so on.
  if win and api.nvim_win_is_valid(win) and api.nvim_win_get_tabpage(win) == api.nvim_get_current_tabpage() then
    return api.nvim_win_set_config(win, options)
  end
  hide_float()
  win = api.nvim_open_win(buf, false, vim.tbl_extend('error', options, { style = 'minimal', noautocmd = true }))
  vim.wo[win].winhighlight = 'NormalFloat:Normal,FloatBorder:TandemRequest'
end

--- Shows the open request in a float while the chat does not show its answers.
---@return boolean floats
local function look()
  local now = shown ---@cast now -nil
  local chat = now.request.session.chat.buf -- another one since the person deleted it
  local is_seen = api.nvim_buf_is_loaded(chat) and window.shows(chat, now.row())
  local floats = config.get().permission == 'auto' and not is_seen
  if floats then
    show_float(now.request)
  else
    hide_float()
  end
  return floats
end

--- Shows in the buffers what the open request would change there, as wide as their windows are now.
local function draw_preview()
  shown.clear_preview()
  shown.clear_preview = require('tandem.preview').show_call(shown.request.call)
end

--- Shows a request.
---@param request tandem.Request
---@param row fun(): integer the last row of its answers in the chat
function M.show(request, row)
  local chat = request.session.chat.buf ---@cast chat -nil
  shown = { request = request, row = row, clear_preview = function() end, told = false }
  if config.get().chat.auto_open and not window.find_other(chat) then
    window.open(chat, false)
  end
  draw_preview()
  -- Scrolling changes what a window shows, and windows come and go.
  api.nvim_create_autocmd({ 'WinScrolled', 'WinResized', 'WinClosed', 'BufWinEnter', 'TabEnter' }, {
    group = group,
    desc = 'tandem: show the request in a float while no window does, and its change in files opened later',
    callback = vim.schedule_wrap(function(event)
      if shown then
        if event.event == 'WinResized' or event.event == 'BufWinEnter' then
          draw_preview()
        end
        look()
      end
    end),
  })
  local floats = look()
  shown.told = not floats and api.nvim_get_current_buf() ~= chat
  if shown.told then
    require('tandem.say')(message(request))
  end
end

--- Hides a request that was answered or withdrawn.
---@param request tandem.Request
function M.hide(request)
  if not shown or shown.request ~= request then
    return
  end
  local told = shown.told
  shown.clear_preview()
  shown = nil
  api.nvim_clear_autocmds({ group = group })
  hide_float()
  if told then
    require('tandem.say')(('%s: %s'):format(permission.decision(request), title_of(request)))
  end
end

return M
