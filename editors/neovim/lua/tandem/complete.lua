--- Completion in prompts: `/commands` at the beginning, `@mentions` anywhere.
local client = require('tandem.client')

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
  local text, query = before:match('^(.*)@([^@]*)$')
  local begins = text and (text == '' or text:find('[%s(%[{"\'`]$'))
  local is_open = query and (query:find('^"[^"\n]*$') or not query:find('[%s"]'))
  return begins and is_open and { sigil = '@', query = query } or nil
end

---@param commands tandem.AvailableCommand[]
---@param query string
---@return tandem.Completion[]
function M.commands(commands, query)
  local fitting = vim.tbl_filter(function(command)
    return vim.startswith(command.name, query)
  end, commands)
  return vim.tbl_map(function(command)
    return { insert = command.name, label = '/' .. command.name, kind = '', detail = command.description }
  end, fitting)
end

--- What can stand for a word, from a conversation that is open.
---@param session tandem.Session
---@param word tandem.Word
---@param callback fun(items: tandem.Completion[])
local function find(session, word, callback)
  if word.sigil == '/' then
    return callback(M.commands(session.commands, word.query))
  end
  local params = { sessionId = session.id, query = word.query }
  client.request(session.connection, '_tandem/complete', params, function(err, result)
    callback(err and {} or result.items)
  end)
end

--- What can stand for a word; the conversation begins where there is none.
---@param session tandem.Session
---@param word tandem.Word
---@param callback fun(items: tandem.Completion[])
function M.items(session, word, callback)
  session:open(function(problem)
    if problem then
      require('tandem.say')(problem, vim.log.levels.ERROR)
      return callback({})
    end
    find(session, word, callback)
  end)
end

local COMMAND_LINE_MS = 500

--- For the command line, which waits for the answer.
---@param session tandem.Session
---@param before string the message up to the cursor
---@return string[] the last word as it may go on
function M.on_command_line(session, before)
  local word = M.word(before)
  if not word or not session.id or word.query:find('%s') then
    return {} -- of a quoted name Neovim would replace the last word alone
  end
  local found ---@type tandem.Completion[]?
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
