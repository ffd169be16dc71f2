--- `_tandem/diagnostics`: reports the problems that Neovim shows. After an edit, the answer waits until every language
--- server that reports any has reported on the new text; never where none does.
local client = require('tandem.client')
local position = require('tandem.position')

local api = vim.api
local M = {}

local rest_ms, silence_ms, timeout_ms, poll_ms = 250, 1000, 1500, 25

---@class tandem.Reports what language servers reported of a buffer
---@field versions table<integer, integer> by client: the version of the text that its last report was of
---@field at integer when the last one came
---@field version? integer the version of the last request
---@field since integer when that was first requested

local reports = {} ---@type table<string, tandem.Reports> by path
--- Clients: true once they have reported anything, false after they let a wait pass in silence.
local speaks = {} ---@type table<integer, boolean>

---@param path string
---@return tandem.Reports
local function of(path)
  reports[path] = reports[path] or { versions = {}, at = 0, since = 0 }
  return reports[path]
end

---@param bufnr integer
---@return integer version of the text as language servers have it
local function version_of(bufnr)
  return vim.lsp.util.buf_versions[bufnr] or 0
end

---@param uri string
---@return integer? bufnr
local function loaded(uri)
  return vim.fn.bufloaded(vim.uri_to_fname(uri)) == 1 and vim.uri_to_bufnr(uri) or nil
end

--- Notes each report that passes through a handler, with the version of the text it is of.
---@param method string
---@param report fun(result: any, context: lsp.HandlerContext): string? uri, integer? version
local function watch(method, report)
  local handle = vim.lsp.handlers[method]
  vim.lsp.handlers[method] = function(err, result, context, ...)
    local uri, version
    if not err and result then
      uri, version = report(result, context)
    end
    if uri and client.is_foreign({ id = context.client_id }) then
      local bufnr, reported = loaded(uri), of(vim.uri_to_fname(uri))
      -- Without a version it is taken for a report of the text at its arrival.
      reported.versions[context.client_id] = version or bufnr and version_of(bufnr)
      reported.at, speaks[context.client_id] = vim.uv.now(), true
    end
    return handle(err, result, context, ...)
  end
end

watch('textDocument/publishDiagnostics', function(result)
  return result.uri, result.version
end)
watch('textDocument/diagnostic', function(_, context)
  return vim.tbl_get(context, 'params', 'textDocument', 'uri'), context.version
end)

---@param found vim.Diagnostic
---@param encoding string
---@return lsp.Diagnostic
local function wire(found, encoding)
  local function character(row, column)
    local line = api.nvim_buf_is_loaded(found.bufnr) and api.nvim_buf_get_lines(found.bufnr, row, row + 1, false)[1]
    return line and position.units(line:sub(1, column), encoding) or column
  end
  local last, last_column = found.end_lnum or found.lnum, found.end_col or found.col
  return {
    range = position.range(found.lnum, character(found.lnum, found.col), last, character(last, last_column)),
    severity = found.severity,
    source = found.source,
    code = found.code,
    message = found.message,
  }
end

---@param buffers? integer[] absent: all
---@param encoding string
---@return table<integer, lsp.Diagnostic[]> by buffer
local function shown(buffers, encoding)
  local by_buffer = {} ---@type table<integer, lsp.Diagnostic[]>
  for _, bufnr in ipairs(buffers or {}) do
    by_buffer[bufnr] = {}
  end
  for _, found in ipairs(vim.diagnostic.get()) do
    local wanted = not buffers or by_buffer[found.bufnr]
    if wanted and api.nvim_buf_is_valid(found.bufnr) then
      by_buffer[found.bufnr] = by_buffer[found.bufnr] or {}
      table.insert(by_buffer[found.bufnr], wire(found, encoding))
    end
  end
  return by_buffer
end

--- The language servers of a buffer that may report on it, and whether all have reported on its text.
---@param bufnr integer
---@return vim.lsp.Client[] checkers, boolean are_done, tandem.Reports
local function checkers(bufnr)
  local reported, version = of(api.nvim_buf_get_name(bufnr)), version_of(bufnr)
  if reported.version ~= version then
    reported.version, reported.since = version, vim.uv.now()
  end
  local found = vim.tbl_filter(function(one)
    return client.is_foreign(one) and speaks[one.id] ~= false
  end, vim.lsp.get_clients({ bufnr = bufnr }))
  local are_done = vim.iter(found):all(function(one)
    return reported.versions[one.id] == version
  end)
  return found, are_done, reported
end

--- How long to wait for the reports on a buffer.
---@param bufnr integer
---@return integer milliseconds
local function remaining(bufnr)
  if not api.nvim_buf_is_loaded(bufnr) then -- it was deleted meanwhile
    return 0
  end
  local found, are_done, reported = checkers(bufnr)
  local ends = are_done and reported.at + rest_ms or reported.since + silence_ms
  return #found > 0 and ends - vim.uv.now() or 0
end

--- Suspends the running coroutine until these buffers have been reported on and no further reports arrive.
---@param buffers integer[]
local function settle(buffers)
  local thread = assert(coroutine.running(), 'a request handler runs in a coroutine')
  local ends = vim.uv.now() + timeout_ms
  while vim.uv.now() < ends and vim.iter(buffers):any(function(bufnr)
    return remaining(bufnr) > 0
  end) do
    vim.defer_fn(function()
      assert(coroutine.resume(thread))
    end, poll_ms)
    coroutine.yield()
  end
end

--- What is known about the current text of a buffer; nil if nothing checks it.
---@param bufnr integer
---@param diagnostics lsp.Diagnostic[]
---@return wire.DocumentDiagnostics?
local function settled(bufnr, diagnostics)
  for _, one in ipairs(checkers(bufnr)) do
    speaks[one.id] = speaks[one.id] or false
  end
  local found, are_done = checkers(bufnr)
  local uri = vim.uri_from_bufnr(bufnr)
  return #found > 0 and { uri = uri, version = are_done and version_of(bufnr) or nil, diagnostics = diagnostics } or nil
end

--- Answers the request. Runs in the request's coroutine and suspends it while waiting.
---@param params { uris: string[], settled: boolean }
---@param encoding string the client's position encoding
---@return { documents: table[] }
function M.answer(params, encoding)
  local buffers ---@type integer[]?
  if #params.uris > 0 then
    buffers = vim.iter(params.uris):map(loaded):totable()
  end
  if params.settled and buffers then
    settle(buffers)
  end
  local documents = {} ---@type table[]
  for bufnr, diagnostics in pairs(shown(buffers, encoding)) do
    if params.settled and api.nvim_buf_is_loaded(bufnr) then
      table.insert(documents, settled(bufnr, diagnostics))
    elseif not params.settled then
      table.insert(documents, { uri = vim.uri_from_bufnr(bufnr), diagnostics = diagnostics })
    end
  end
  return { documents = documents }
end

return M
