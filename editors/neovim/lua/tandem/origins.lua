--- Why a line is here: the turn that wrote it, for `K` and code actions.
local client = require('tandem.client')

local M = {}

--- The origins of lines, from the running server; a query never starts one.
---@param params { textDocument: lsp.TextDocumentIdentifier }
---@param range lsp.Range
---@param callback fun(origins: wire.Origin[])
function M.of(params, range, callback)
  local running = client.running(client.root(vim.uri_to_bufnr(params.textDocument.uri)))
  if not running then
    return callback({})
  end
  ---@type wire.OriginsParams
  local request = { textDocument = { uri = params.textDocument.uri }, range = range }
  client.request(running, '_tandem/origins', request, function(_, origins)
    callback(origins or {})
  end)
end

--- Answers `textDocument/hover`.
---@param params lsp.HoverParams
---@param callback fun(err: any, result: any)
function M.hover(params, callback)
  M.of(params, { start = params.position, ['end'] = params.position }, function(origins)
    local origin = origins[1]
    if not origin then
      return callback(nil, nil)
    end
    local since = origin.edited and ' (edited since)' or ''
    local text = ('tandem, turn %d: %s%s\n%s, %s'):format(origin.turn, origin.prompt, since, origin.by, origin.model)
    callback(nil, { contents = { kind = 'plaintext', value = text } })
  end)
end

--- The code actions on lines: each turn that wrote some of them.
---@param params lsp.CodeActionParams
---@param callback fun(actions: lsp.Command[])
function M.actions(params, callback)
  M.of(params, params.range, function(origins)
    local actions, known = {}, {} ---@type lsp.Command[], table<string, true>
    for _, origin in ipairs(origins) do
      local title = ('tandem: Open turn “%s”'):format(origin.prompt)
      local name = ('%s %d'):format(origin.sessionId, origin.turn)
      if not known[name] then
        known[name] = true
        actions[#actions + 1] = { title = title, command = 'tandem.open_turn', arguments = { origin.sessionId, origin.turn } }
      end
    end
    callback(actions)
  end)
end

vim.lsp.commands['tandem.open_turn'] = function(command)
  require('tandem').resume(command.arguments[1], command.arguments[2])
end

return M
