--- Leaving Neovim: a running turn is not ended unasked, and drafts are saved.
local api = vim.api
local M = {}

--- Whether the command that quits was given with `!`, as far as it was typed.
---@return boolean
local function is_forced()
  return vim.fn.histget('cmd', -1):find('!%s*$') ~= nil
end

--- Neovim continues if the window to be closed is gone: another one takes its place and its buffer.
local function stay()
  local win = api.nvim_get_current_win()
  vim.cmd('noautocmd split')
  api.nvim_win_close(win, true)
end

---@param sessions tandem.Session[]
local function save_drafts(sessions)
  local written = {} ---@type table<string, string[]> by root
  for _, session in ipairs(sessions) do
    local text = session.chat.input:written()
    written[session.root] = written[session.root] or text and {}
    if text and text ~= '' then
      table.insert(written[session.root], text)
    end
  end
  for root, texts in pairs(written) do
    require('tandem.draft').save(root, table.concat(texts, '\n\n'))
  end
end

---@param sessions fun(): tandem.Session[]
function M.watch(sessions)
  local group = api.nvim_create_augroup('tandem.quit', {})
  api.nvim_create_autocmd('ExitPre', {
    group = group,
    desc = 'tandem: ask before quitting while a turn is running',
    callback = function()
      local running = vim.iter(sessions()):any(function(session)
        return session.state ~= 'idle'
      end)
      if not running or is_forced() or #api.nvim_list_uis() == 0 then
        return
      elseif vim.fn.confirm('tandem: a turn is still running. Quit anyway?', '&Quit\n&Stay', 2, 'Warning') ~= 1 then
        stay()
      end
    end,
  })
  api.nvim_create_autocmd({ 'TextChanged', 'TextChangedI', 'TextChangedP', 'VimLeavePre' }, {
    group = group,
    desc = 'tandem: save unsent drafts; a terminal that is closed ends Neovim without a further event',
    callback = function(event)
      if event.event == 'VimLeavePre' or vim.bo[event.buf].filetype == 'tandem' then
        save_drafts(sessions())
      end
    end,
  })
end

return M
