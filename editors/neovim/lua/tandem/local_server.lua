--- Answers requests that Neovim sends to language servers, in this process: completion in the chat, so that
--- `vim.lsp.completion`, blink.cmp and nvim-cmp all offer mentions and commands; hover (`K`) and code actions (`gra`)
--- in files.
local client = require('tandem.client')

local api = vim.api
local M = {}

--- The chat whose buffer this is.
---@param bufnr integer
---@return tandem.Session?
local function chat_session(bufnr)
  return vim.b[bufnr].tandem_root and require('tandem.chats').of_chat(bufnr) or nil
end

---@param item wire.Completion
---@param word tandem.Word
---@param position lsp.Position
---@return lsp.CompletionItem
local function completion_item(item, word, position)
  local kinds = vim.lsp.protocol.CompletionItemKind
  local kind = ({ file = kinds.File, folder = kinds.Folder, symbol = kinds.Function })[item.kind] or kinds.Text
  local first = { line = position.line, character = position.character - #word.query }
  return {
    label = item.label,
    kind = item.kind == '' and kinds.Keyword or kind,
    detail = item.detail,
    filterText = word.query .. item.insert,
    textEdit = { range = { start = first, ['end'] = position }, newText = item.insert },
  }
end

---@param params lsp.CompletionParams
---@param callback fun(err: any, result: any)
local function completion(params, callback)
  local bufnr = vim.uri_to_bufnr(params.textDocument.uri)
  local session, complete = chat_session(bufnr), require('tandem.complete')
  if not session then
    return callback(nil, {})
  end
  local word = complete.word(complete.before(session, params.position.line, params.position.character))
  if not word then
    return callback(nil, {})
  end
  complete.items(session, word, function(items)
    callback(nil, {
      isIncomplete = true, -- the server knows far more than it sends
      items = vim.iter(ipairs(items)):map(function(index, item)
        return vim.tbl_extend('error', completion_item(item, word, params.position), { sortText = ('%03d'):format(index) })
      end):totable(),
    })
  end)
end

---@param params lsp.CodeActionParams
---@return lsp.Command[]
local function code_actions(params)
  local first, last = params.range.start.line + 1, params.range['end'].line + 1
  if params.range['end'].character == 0 and last > first then
    last = last - 1
  end
  local arguments = { { bufnr = vim.uri_to_bufnr(params.textDocument.uri), first = first, last = last } }
  local titles = { 'ask', 'tandem: Ask about this', 'edit', 'tandem: Edit this', 'explain', 'tandem: Explain this' }
  -- Neovim sends only the diagnostics that are this server's own.
  local selection = require('tandem.context').lines(arguments[1].bufnr, first, last)
  if #require('tandem.context').problems(selection) > 0 then
    vim.list_extend(titles, { 'fix', 'tandem: Fix this' })
  end
  local actions = {} ---@type lsp.Command[]
  for index = 1, #titles, 2 do
    actions[#actions + 1] = { title = titles[index + 1], command = 'tandem.' .. titles[index], arguments = arguments }
  end
  return actions
end

for _, name in ipairs({ 'ask', 'edit', 'explain', 'fix' }) do
  vim.lsp.commands['tandem.' .. name] = function(command)
    local at = command.arguments[1]
    local selection = require('tandem.context').lines(at.bufnr, at.first, at.last)
    if name == 'ask' or name == 'edit' then
      return require('tandem')[name](nil, selection)
    end
    require('tandem')[name](selection)
  end
end

---@type table<string, fun(params: any, callback: fun(err: any, result: any))>
local requests = {
  shutdown = function(_, callback)
    callback(nil, vim.NIL)
  end,
  ['textDocument/completion'] = completion,
  ['textDocument/hover'] = function(params, callback)
    require('tandem.origins').hover(params, callback)
  end,
  ['textDocument/codeAction'] = function(params, callback)
    if params.context.triggerKind == vim.lsp.protocol.CodeActionTriggerKind.Automatic then
      return callback(nil, {}) -- else a light bulb would be on every line
    end
    local actions = code_actions(params)
    require('tandem.origins').actions(params, function(more)
      callback(nil, vim.list_extend(actions, more))
    end)
  end,
}

--- One for chats, one for files: Neovim replaces the 'omnifunc' of a file type where any server completes.
---@type table<string, lsp.ServerCapabilities> by name
local offers = {
  ['tandem chat'] = { completionProvider = { triggerCharacters = { '@', '/', '#' } } },
  -- Before 0.11, each client without an answer for a line reported that.
  ['tandem code'] = { codeActionProvider = true, hoverProvider = vim.fn.has('nvim-0.11') == 1 },
}

---@param name string
---@return fun(dispatchers: vim.lsp.rpc.Dispatchers): vim.lsp.rpc.PublicClient
local function cmd_of(name)
  local capabilities = vim.tbl_extend('error', { positionEncoding = 'utf-8' }, offers[name])
  return require('tandem.in_process').cmd({
    request = function(method, params, answer)
      local handler = requests[method]
      if method == 'initialize' then
        answer(nil, { capabilities = capabilities, serverInfo = { name = name } })
      elseif handler then
        handler(params, answer)
      else
        answer({ code = -32601, message = 'no method ' .. method })
      end
    end,
  })
end

--- Leaves `K` as it is where no language server of the user's explains code, since Neovim maps it for any server.
---@param bufnr integer
local function keep_keywordprg(bufnr)
  local is_theirs = vim.iter(vim.lsp.get_clients({ bufnr = bufnr, method = 'textDocument/hover' })):any(client.is_foreign)
  local map = api.nvim_buf_call(bufnr, function()
    return vim.fn.maparg('K', 'n', false, true)
  end)
  if not is_theirs and map.buffer == 1 and map.desc == 'vim.lsp.buf.hover()' then
    vim.keymap.del('n', 'K', { buffer = bufnr })
  end
end

--- Attaches it to a chat or a file.
---@param bufnr integer
function M.attach(bufnr)
  local utf8 = vim.lsp.protocol.make_client_capabilities()
  utf8.general.positionEncodings = { 'utf-8' }
  local name = vim.b[bufnr].tandem_root and 'tandem chat' or 'tandem code'
  vim.lsp.start({
    name = name,
    cmd = cmd_of(name),
    root_dir = client.root(bufnr),
    capabilities = utf8,
    offset_encoding = 'utf-8',
    on_init = client.claim,
    on_attach = function(_, attached)
      keep_keywordprg(attached)
    end,
  }, { bufnr = bufnr, silent = true })
end

return M
