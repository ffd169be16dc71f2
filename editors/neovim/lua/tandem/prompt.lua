--- A permission request where the chat is not in sight: a small float that never takes the cursor, and a message.
local cells = require('tandem.cells')

local api = vim.api

local M = {}

local win, buf ---@type integer?, integer?

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

--- The title of the request, with its chat if there are several.
---@param question tandem.Question
---@return string
local function title_of(question)
  local chats = require('tandem.chats')
  local root = question.session.root
  local where = #chats.of_root(root) > 1 and ('chat %d: '):format(chats.number(question.session)) or ''
  return where .. (question.call.title or 'run a tool'):gsub('%s+', ' ')
end

--- The keys first, because the end may be truncated.
---@param question tandem.Question
---@return string
function M.message(question)
  return ('%s / %s?  %s'):format(key_for('allow'), key_for('reject'), title_of(question))
end

---@param question tandem.Question
---@return string[]
local function lines_of(question)
  return {
    ' ' .. cells.cut(title_of(question), math.max(20, vim.o.columns - 12)) .. ' ',
    (' %s allow   %s reject   %s details '):format(key_for('allow'), key_for('reject'), key_for('chat')),
  }
end

function M.hide()
  if win and api.nvim_win_is_valid(win) then
    api.nvim_win_close(win, true)
  end
  win = nil
end

--- Shows it in the lower right corner, over nothing that is being edited but the last lines.
---@param question tandem.Question
function M.show(question)
  M.hide()
  if not (buf and api.nvim_buf_is_valid(buf)) then
    buf = api.nvim_create_buf(false, true)
    vim.bo[buf].bufhidden = 'hide'
  end
  local lines = lines_of(question)
  api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  local width = vim.fn.max(vim.tbl_map(vim.fn.strdisplaywidth, lines))
  win = api.nvim_open_win(buf, false, {
    relative = 'editor',
    anchor = 'SE',
    row = vim.o.lines - vim.o.cmdheight - 1,
    col = vim.o.columns,
    width = math.min(width, vim.o.columns - 4),
    height = #lines,
    style = 'minimal',
    border = 'rounded',
    title = { { ' Allow? ', 'TandemQuestion' } },
    focusable = false,
    noautocmd = true,
    zindex = 60,
  })
  vim.wo[win].winhighlight = 'NormalFloat:Normal,FloatBorder:TandemQuestion'
end

return M
