--- Completion in prompts: `/commands` at the beginning, `@mentions` anywhere.
local client = require('tandem.client')

local api = vim.api
local M = {}

---@class tandem.Word
---@field sigil '/'|'@'
---@field query string what stands between it and the cursor

--- The word before the cursor that can be completed.
---@param before string the message up to the cursor
---@return tandem.Word?
function M.word(before)
  local command = before:match('^/(%S*)$')
  if command then
    return { sigil = '/', query = command }
  end
  for at in before:gmatch('()@') do -- the first that can begin it, because names may contain others
    local query = before:sub(at + 1)
    local begins = at == 1 or before:sub(at - 1, at - 1):find('[%s(%[{"\'`]')
    if begins and (query:find('^"[^"\n]*$') or not query:find('[%s"]')) then
      return { sigil = '@', query = query }
    end
  end
end

---@param commands wire.AvailableCommand[]
---@param query string
---@return wire.Completion[]
function M.commands(commands, query)
  local fitting = vim.tbl_filter(function(command)
    return vim.startswith(command.name, query)
  end, commands)
  return vim.tbl_map(function(command)
    return { insert = command.name, label = '/' .. command.name, kind = '', detail = command.description }
  end, fitting)
end

--- The completions of a word, from an open conversation.
---@param session tandem.Session
---@param word tandem.Word
---@param callback fun(items: wire.Completion[])
local function find(session, word, callback)
  if word.sigil == '/' then
    return callback(M.commands(session.commands, word.query))
  end
  local params = { sessionId = session.id, query = word.query }
  client.request(session.connection, '_tandem/complete', params, function(err, result)
    callback(err and {} or result.items)
  end)
end

--- The completions of a word; starts the conversation if there is none.
---@param session tandem.Session
---@param word tandem.Word
---@param callback fun(items: wire.Completion[])
function M.items(session, word, callback)
  session:open(function(problem)
    if problem then
      require('tandem.say')(problem, vim.log.levels.ERROR)
      return callback({})
    end
    find(session, word, callback)
  end)
end

--- The message up to a place in the input: the input's lines above, and that line up to it.
---@param session tandem.Session
---@param row integer 0-based
---@param column integer bytes
---@return string
function M.before(session, row, column)
  local lines = api.nvim_buf_get_lines(session.chat.buf, session.chat:input_row(), row + 1, false)
  lines[#lines] = lines[#lines] and lines[#lines]:sub(1, column)
  return table.concat(lines, '\n')
end

---@param session tandem.Session
---@return tandem.Word?
local function word_at_cursor(session)
  local row, column = unpack(api.nvim_win_get_cursor(0))
  return M.word(M.before(session, row - 1, column))
end

---@param item wire.Completion
---@return vim.v.completed_item
local function entry(item)
  return { word = item.insert, abbr = item.label, kind = item.kind, menu = item.detail or '', dup = 1 }
end

--- For 'omnifunc' of the chat. Neovim's own, for language servers, keeps only what begins with the word:
--- no `src/main.rs` for `@ma`. The answer comes later, as that of Neovim's own.
---@return integer
function M.omnifunc()
  local bufnr = api.nvim_get_current_buf()
  local session = require('tandem.chats').of_chat(bufnr)
  local word = session and word_at_cursor(session)
  if not session or not word then
    return -2
  end
  vim.schedule(function()
    M.items(session, word, function(items)
      local is_typing = api.nvim_get_mode().mode:sub(1, 1) == 'i' and api.nvim_get_current_buf() == bufnr
      if is_typing and vim.deep_equal(word_at_cursor(session), word) then
        vim.fn.complete(api.nvim_win_get_cursor(0)[2] - #word.query + 1, vim.tbl_map(entry, items))
      end
    end)
  end)
  return -2 -- cancel silently: nothing yet
end

local COMMAND_LINE_MS = 500

--- For the command line, which blocks until the answer.
---@param session tandem.Session
---@param before string the message up to the cursor
---@return string[] the last word as it may go on
function M.on_command_line(session, before)
  local word = M.word(before)
  if not word or not session.id or word.query:find('%s') then
    return {} -- of a quoted name Neovim would replace the last word alone
  end
  local found ---@type wire.Completion[]?
  find(session, word, function(items)
    found = items
  end)
  vim.wait(COMMAND_LINE_MS, function()
    return found ~= nil
  end, 5)
  local lead = before:match('%S*$')
  local kept = lead:sub(1, #lead - #word.query)
  return vim.tbl_map(function(item)
    return kept .. item.insert
  end, found or {})
end

return M
