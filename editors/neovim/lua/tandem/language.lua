--- `_tandem/language`: queries Neovim's language servers for the model. Nothing is changed here: edits go back to the
--- server, which treats them like any other edit.
local marks = require('tandem.marks')
local position = require('tandem.position')

local api = vim.api
local M = {}

--- The server gives up a second later.
local TIMEOUT_MS = 9000

local has_method_calls = vim.fn.has('nvim-0.11') == 1

---@class tandem.LanguageQuestion
---@field op string
---@field uri? string
---@field position? lsp.Position
---@field query? string
---@field newName? string
---@field preferred? boolean

---@param client vim.lsp.Client
---@param method string
---@param bufnr integer
---@return boolean
local function supports(client, method, bufnr)
  if has_method_calls then
    return client:supports_method(method, bufnr)
  end
  return client.supports_method(method, { bufnr = bufnr })
end

--- Sends a request to one client and suspends the running coroutine until its answer.
---@param client vim.lsp.Client
---@param method string
---@param params table
---@return any result, string? problem
local function request(client, method, params)
  local thread = assert(coroutine.running(), 'a request handler runs in a coroutine')
  local timer = assert(vim.uv.new_timer())
  local result, problem, is_done, is_waiting = nil, nil, false, false
  local function finish(err, answer)
    if is_done then
      return
    end
    is_done, result, problem = true, answer, err
    timer:close()
    if is_waiting then
      assert(coroutine.resume(thread))
    end
  end
  timer:start(TIMEOUT_MS, 0, vim.schedule_wrap(function()
    finish(('%s does not answer'):format(client.name))
  end))
  require('tandem.client').request(client, method, params, function(err, answer)
    finish(err and err.message, answer)
  end)
  while not is_done do
    is_waiting = true
    coroutine.yield()
  end
  return result, problem
end

---@param uri string
---@param line integer zero-based
---@return string
local function line_of(uri, line)
  local path = vim.uri_to_fname(uri)
  local bufnr = marks.loaded(path)
  if bufnr then
    return api.nvim_buf_get_lines(bufnr, line, line + 1, false)[1] or ''
  end
  return vim.fn.filereadable(path) == 1 and vim.fn.readfile(path, '', line + 1)[line + 1] or ''
end

---@param at lsp.Position
---@param uri string
---@param from string encoding
---@param to string encoding
---@return lsp.Position
local function convert(at, uri, from, to)
  if from == to or at.character == 0 then
    return at
  end
  return { line = at.line, character = position.converted(line_of(uri, at.line), at.character, from, to) }
end

--- The positions of a result in our encoding, whatever its type in the protocol.
---@param value any
---@param uri string of the document that its positions are in, unless something in it says otherwise
---@param from string
---@param to string
---@return any
local function translated(value, uri, from, to)
  if type(value) ~= 'table' then
    return value
  elseif value.line and value.character then
    return convert(value, uri, from, to)
  end
  local document = type(value.textDocument) == 'table' and value.textDocument.uri or nil
  uri = value.targetUri or value.uri or document or uri
  local copy = setmetatable({}, getmetatable(value))
  for key, item in pairs(value) do
    local by_document = type(key) == 'string' and key:match('^%a[%w+.-]*:') and type(item) == 'table'
    copy[key] = translated(item, by_document and key or uri, from, to)
  end
  return copy
end

---@alias tandem.AskClient fun(client: vim.lsp.Client, question: tandem.LanguageQuestion): any, string?

---@param method string
---@param more? fun(question: tandem.LanguageQuestion): table
---@return { method: string, ask: tandem.AskClient }
local function at_position(method, more)
  local function ask(client, question)
    local params = { textDocument = { uri = question.uri }, position = question.position }
    return request(client, method, vim.tbl_extend('error', params, more and more(question) or {}))
  end
  return { method = method, ask = ask }
end

---@param direction 'incomingCalls'|'outgoingCalls'
---@return { method: string, ask: tandem.AskClient }
local function calls(direction)
  local prepare = at_position('textDocument/prepareCallHierarchy')
  local function ask(client, question)
    local items, problem = prepare.ask(client, question)
    local found = {} ---@type table[]
    for _, item in ipairs(items or {}) do
      local answer, why = request(client, 'callHierarchy/' .. direction, { item = item })
      vim.list_extend(found, answer or {})
      problem = problem or why
    end
    return found, problem
  end
  return { method = prepare.method, ask = ask }
end

--- The edit of the first quick fix for a line that has one, the preferred one before others.
---@type tandem.AskClient
local function quick_fix(client, question)
  local row = question.position and question.position.line or 0
  local found = vim.diagnostic.get(vim.uri_to_bufnr(question.uri), { lnum = row })
  local diagnostics = vim.tbl_map(function(diagnostic)
    return vim.tbl_get(diagnostic, 'user_data', 'lsp')
  end, found)
  local range = position.range(row, 0, row, position.units(line_of(question.uri, row), client.offset_encoding))
  if question.preferred then
    local _, exact = vim.iter(pairs(diagnostics)):find(function(_, diagnostic)
      return vim.deep_equal(diagnostic.range.start, question.position)
    end)
    if not exact then
      return nil
    end
    range, diagnostics = exact.range, { exact }
  end
  local actions, problem = request(client, 'textDocument/codeAction', {
    textDocument = { uri = question.uri },
    range = range,
    context = { diagnostics = vim.tbl_values(diagnostics), only = { 'quickfix' }, triggerKind = 1 },
  })
  table.sort(actions or {}, function(a, b)
    return a.isPreferred == true and b.isPreferred ~= true
  end)
  for _, action in ipairs(actions or {}) do
    if question.preferred and not action.isPreferred then
      return nil, problem
    end
    if not action.edit and action.data then
      action = request(client, 'codeAction/resolve', action) or action
    end
    if action.edit then
      return action.edit
    end
  end
  return nil, problem
end

---@type tandem.AskClient
local function format(client, question)
  local bufnr = marks.loaded(vim.uri_to_fname(question.uri))
  local options = bufnr and vim.bo[bufnr] or vim.o
  local width = options.shiftwidth ~= 0 and options.shiftwidth or options.tabstop
  local edits, problem = request(client, 'textDocument/formatting', {
    textDocument = { uri = question.uri },
    options = { tabSize = width, insertSpaces = options.expandtab },
  })
  return edits and { changes = { [question.uri] = edits } }, problem
end

local of_document = {
  method = 'textDocument/documentSymbol',
  ask = function(client, question)
    return request(client, 'textDocument/documentSymbol', { textDocument = { uri = question.uri } })
  end,
}

local of_workspace = {
  method = 'workspace/symbol',
  ask = function(client, question)
    return request(client, 'workspace/symbol', { query = question.query or '' })
  end,
}

---@type table<string, { method: string, ask: tandem.AskClient }>
local operations = {
  definition = at_position('textDocument/definition'),
  declaration = at_position('textDocument/declaration'),
  implementation = at_position('textDocument/implementation'),
  type_definition = at_position('textDocument/typeDefinition'),
  references = at_position('textDocument/references', function()
    return { context = { includeDeclaration = true } }
  end),
  hover = at_position('textDocument/hover'),
  document_symbols = of_document,
  workspace_symbols = of_workspace,
  incoming_calls = calls('incomingCalls'),
  outgoing_calls = calls('outgoingCalls'),
  rename = at_position('textDocument/rename', function(question)
    return { newName = question.newName }
  end),
  quick_fixes = { method = 'textDocument/codeAction', ask = quick_fix },
  format = { method = 'textDocument/formatting', ask = format },
}

--- The supported operations, for the capability.
---@return string[]
function M.operations()
  local names = vim.tbl_keys(operations)
  table.sort(names)
  return names
end

--- The servers for a file that is in no buffer: those of other files of its type.
---@param filetype string
---@return vim.lsp.Client[]
local function clients_of_type(filetype)
  return vim.tbl_filter(function(client)
    return vim.iter(pairs(client.attached_buffers)):any(function(bufnr)
      return api.nvim_buf_is_valid(bufnr) and vim.bo[bufnr].filetype == filetype
    end)
  end, vim.lsp.get_clients())
end

--- Shows a file that is in no buffer to a server during a request about it: loading it here would leave the edits of
--- a rename in a buffer that nobody sees.
---@param client vim.lsp.Client
---@param uri string
---@param filetype string
---@param use fun(): any, string?
---@return any, string?
local function with_opened(client, uri, filetype, use)
  local notify = require('tandem.client').notify
  local text = table.concat(vim.fn.readfile(vim.uri_to_fname(uri)), '\n') .. '\n'
  local document = { uri = uri, languageId = filetype, version = 0, text = text }
  notify(client, 'textDocument/didOpen', { textDocument = document })
  local result, problem = use()
  notify(client, 'textDocument/didClose', { textDocument = { uri = uri } })
  return result, problem
end

---@param client vim.lsp.Client
---@param operation { method: string, ask: tandem.AskClient }
---@param question tandem.LanguageQuestion
---@param encoding string of the question's position, and of the answer's
---@return any, string?
local function ask_client(client, operation, question, encoding)
  local theirs = client.offset_encoding
  local asked = vim.tbl_extend('force', question, {
    position = question.position and convert(question.position, question.uri, encoding, theirs),
  })
  local result, problem = operation.ask(client, asked)
  return translated(result, question.uri or '', theirs, encoding), problem
end

---@param result any
---@return boolean
local function is_empty(result)
  return result == nil or result == vim.NIL or type(result) == 'table' and next(result) == nil
end

--- Asks the servers of the request's document, one after the other, until one has an answer.
---@param question tandem.LanguageQuestion
---@param encoding string
---@return any result, string? problem
local function ask(question, encoding)
  local operation = operations[question.op]
  if not operation then
    return nil, ('unknown operation %q'):format(question.op)
  end
  local path = question.uri and vim.uri_to_fname(question.uri)
  local bufnr = path and marks.loaded(path)
  local filetype = path and (bufnr and vim.bo[bufnr].filetype or vim.filetype.match({ filename = path })) or ''
  local clients = bufnr and vim.lsp.get_clients({ bufnr = bufnr })
    or path and clients_of_type(filetype)
    or vim.lsp.get_clients()
  local result, problem
  for _, client in ipairs(vim.tbl_filter(require('tandem.client').is_foreign, clients)) do
    local at = bufnr or next(client.attached_buffers)
    if at and supports(client, operation.method, at) then
      local function use()
        return ask_client(client, operation, question, encoding)
      end
      problem = nil
      if path and not bufnr then
        result, problem = with_opened(client, question.uri, filetype, use)
      else
        result, problem = use()
      end
      if not is_empty(result) then
        return result
      end
      result = result or vim.NIL
    end
  end
  local what = path and vim.fn.fnamemodify(path, ':.') or 'this workspace'
  return result, problem or result == nil and ('no language server in Neovim supports %s for %s'):format(question.op, what) or nil
end

--- Answers the request. Runs in the request's coroutine and suspends it while waiting.
---@param question tandem.LanguageQuestion
---@param encoding string the position encoding of tandem's client
---@return any result, lsp.ResponseError? error
function M.answer(question, encoding)
  local result, problem = ask(question, encoding)
  if problem then
    return nil, vim.lsp.rpc_response_error(vim.lsp.protocol.ErrorCodes.InternalError, problem)
  end
  return result == nil and vim.NIL or result
end

return M
