--- `_tandem/diagnostics`: tells the server what Neovim shows of problems. After an edit the answer waits until those of
--- the new text have come and rest; never when no language server is there to send any.
local client = require('tandem.client')
local position = require('tandem.position')

local api = vim.api
local M = {}

local rest_ms, silence_ms, timeout_ms = 250, 1000, 1500

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
---@return table[] documents
local function documents(buffers, encoding)
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
  local answer = {} ---@type table[]
  for bufnr, diagnostics in pairs(by_buffer) do
    answer[#answer + 1] = { uri = vim.uri_from_bufnr(bufnr), diagnostics = diagnostics }
  end
  return answer
end

---@param bufnr integer
---@return boolean
local function has_language_server(bufnr)
  return vim.iter(vim.lsp.get_clients({ bufnr = bufnr })):any(client.is_foreign)
end

--- Suspends the running coroutine until the diagnostics of these buffers were set and rest.
---@param buffers integer[]
local function settle(buffers)
  local thread = assert(coroutine.running(), 'a request handler runs in a coroutine')
  local timer, began, done = assert(vim.uv.new_timer()), vim.uv.now(), false
  local watch ---@type integer
  local function finish()
    if not done then
      done = true
      timer:close()
      api.nvim_del_autocmd(watch)
      assert(coroutine.resume(thread))
    end
  end
  local function wait(ms)
    timer:start(math.max(0, math.min(ms, began + timeout_ms - vim.uv.now())), 0, vim.schedule_wrap(finish))
  end
  watch = api.nvim_create_autocmd('DiagnosticChanged', {
    desc = 'tandem: the problems after an edit',
    callback = function(event)
      if vim.list_contains(buffers, event.buf) then
        wait(rest_ms)
      end
    end,
  })
  wait(silence_ms)
  while not done do
    coroutine.yield()
  end
end

--- Answers the request. Runs in the request's coroutine and suspends it while waiting.
---@param params { uris: string[], settled: boolean }
---@param encoding string the client's position encoding
---@return { documents: table[] }
function M.answer(params, encoding)
  local buffers = #params.uris > 0 and vim.tbl_map(vim.uri_to_bufnr, params.uris) or nil
  if params.settled and buffers and vim.iter(buffers):any(has_language_server) then
    settle(buffers)
  end
  return { documents = documents(buffers, encoding) }
end

return M
