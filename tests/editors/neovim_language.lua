-- `_tandem/language`: what language servers know, queried through Neovim's own clients. One server is simulated in this
-- process; the other is a real clangd, if installed.
local M = {}

local api = vim.api

local function at(line, first, last)
  return { start = { line = line, character = first }, ['end'] = { line = line, character = last or first } }
end

--- A server that counts in UTF-16 and gives predefined answers.
---@param answers table<string, any|fun(params: table): any>
---@return function cmd, { [1]: string, [2]: table }[] heard
local function made_up_server(answers)
  local heard, providers = {}, { textDocumentSync = 1, codeActionProvider = { resolveProvider = true } }
  for _, provider in ipairs({
    'definition',
    'hover',
    'documentSymbol',
    'workspaceSymbol',
    'callHierarchy',
    'rename',
    'documentFormatting',
  }) do
    providers[provider .. 'Provider'] = true
  end
  local cmd = require('tandem.in_process').cmd({
    request = function(method, params, reply)
      table.insert(heard, { method, params })
      local answer = answers[method]
      if type(answer) == 'function' then
        return reply(nil, answer(params))
      end
      reply(nil, method == 'initialize' and { capabilities = providers } or answer)
    end,
    notify = function(method, params)
      table.insert(heard, { method, params })
    end,
  })
  return cmd, heard
end

---@param t table the harness
---@param model tandem.test.Model
---@param use tandem.test.Driver
function M.test(t, model, use)
  --- The answers, in UTF-8.
  local function ask(question)
    local done, result, err
    coroutine.wrap(function()
      result, err = require('tandem.language').answer(question, 'utf-8')
      done = true
    end)()
    t.wait('the answer', function()
      return done
    end)
    return result, err and err.message
  end

  --- A server for the visible file.
  local function with_server(name, answers, body)
    local buf, folder = use.project(name)
    vim.bo[buf].filetype = 'rust'
    api.nvim_buf_set_lines(buf, 0, 1, false, { '/* 😀 */ fn greet(name: &str) {' })
    local cmd, heard = made_up_server(answers)
    local id = assert(vim.lsp.start({ name = 'made up', cmd = cmd, root_dir = folder }))
    t.wait('the server', function()
      return #vim.lsp.get_clients({ bufnr = buf, name = 'made up' }) == 1
    end)
    body(vim.uri_from_bufnr(buf), folder, heard)
    vim.lsp.stop_client(id, true)
  end

  local function methods(heard)
    return vim.tbl_map(function(message)
      return message[1]
    end, heard)
  end

  t.test('the model is answered by the language servers of a buffer, in its own encoding', function()
    local answers = {}
    with_server('language', answers, function(uri, _, heard)
      answers['textDocument/definition'] = { { uri = uri, range = at(0, 12, 17) } }
      local result = ask({ op = 'definition', uri = uri, position = { line = 0, character = 14 } })
      t.equal(result, { { uri = uri, range = at(0, 14, 19) } })
      t.equal(heard[#heard][2].position, { line = 0, character = 12 }, 'the server counts in UTF-16')

      answers['textDocument/rename'] = function(params)
        return { changes = { [uri] = { { range = at(0, 12, 17), newText = params.newName } } } }
      end
      result = ask({ op = 'rename', uri = uri, position = { line = 0, character = 14 }, newName = 'hail' })
      t.equal(result.changes[uri][1], { range = at(0, 14, 19), newText = 'hail' })
      t.contains(api.nvim_buf_get_lines(0, 0, 1, false)[1], 'greet', 'it is not applied')

      local item = { name = 'greet', kind = 12, uri = uri, range = at(0, 12), selectionRange = at(0, 12) }
      answers['textDocument/prepareCallHierarchy'] = { item }
      answers['callHierarchy/incomingCalls'] = { { from = item, fromRanges = { at(5, 4, 9) } } }
      result = ask({ op = 'incoming_calls', uri = uri, position = { line = 0, character = 14 } })
      t.equal({ result[1].from.range.start.character, result[1].fromRanges[1] }, { 14, at(5, 4, 9) })

      answers['textDocument/codeAction'] = { { title = 'other' }, { title = 'best', isPreferred = true, data = 1 } }
      answers['codeAction/resolve'] = function(action)
        return { title = action.title, edit = { changes = { [uri] = { { range = at(3, 0), newText = action.title } } } } }
      end
      result = ask({ op = 'quick_fixes', uri = uri, position = { line = 3, character = 0 } })
      t.equal(result.changes[uri][1].newText, 'best')

      answers['textDocument/formatting'] = { { range = at(3, 0), newText = '' } }
      t.equal(ask({ op = 'format', uri = uri }).changes[uri], answers['textDocument/formatting'])
      t.equal(ask({ op = 'workspace_symbols', query = 'greet' }), vim.NIL)
    end)
  end)

  t.test('a file without a buffer is opened only in the language servers of its type', function()
    local answers = {}
    with_server('unopened', answers, function(_, folder, heard)
      local other = vim.uri_from_fname(folder .. '/other.rs')
      vim.fn.writefile({ 'fn other() {}' }, folder .. '/other.rs')
      vim.fn.bufload(vim.fn.bufadd(folder .. '/other.rs.orig')) -- is a different file
      answers['textDocument/hover'] = { contents = 'fn other()' }
      t.equal(ask({ op = 'hover', uri = other, position = { line = 0, character = 3 } }).contents, 'fn other()')
      t.equal(vim.list_slice(methods(heard), #heard - 2), { 'textDocument/didOpen', 'textDocument/hover', 'textDocument/didClose' })
      t.equal(heard[#heard - 2][2].textDocument.text, 'fn other() {}\n')
      t.equal(vim.fn.bufexists(folder .. '/other.rs'), 0)

      vim.fn.writefile({ 'x = 1' }, folder .. '/other.py')
      local _, problem = ask({ op = 'hover', uri = vim.uri_from_fname(folder .. '/other.py'), position = { line = 0, character = 0 } })
      t.contains(problem, 'no language server in Neovim supports hover for ')
      _, problem = ask({ op = 'dance', uri = other })
      t.contains(problem, 'unknown operation')
    end)
  end)

  if vim.fn.executable('clangd') == 0 then
    io.stdout:write('# there is no clangd\n')
    return
  end
  t.test('a real clangd answers for the model', function()
    local _, folder = use.project('clang')
    vim.fn.writefile({ 'int total(int a);', 'int twice(int a) { return total(a) * 2; }' }, folder .. '/use.c')
    vim.fn.writefile({ 'int total(int a) { return a; }' }, folder .. '/total.c')
    vim.cmd.edit(folder .. '/use.c')
    local buf = api.nvim_get_current_buf()
    vim.bo[buf].filetype = 'c'
    local id = assert(vim.lsp.start({ name = 'clangd', cmd = { 'clangd' }, root_dir = folder }))
    t.wait('clangd', function()
      return #vim.lsp.get_clients({ bufnr = buf, name = 'clangd' }) == 1
    end)
    local uri = vim.uri_from_bufnr(buf)
    local result = ask({ op = 'definition', uri = uri, position = { line = 1, character = 27 } })
    t.equal((result[1] or result).range.start, { line = 0, character = 4 })
    result = ask({ op = 'rename', uri = uri, position = { line = 1, character = 27 }, newName = 'sum' })
    t.equal(#vim.tbl_get(result, 'changes', uri), 2)
    local other = vim.uri_from_fname(folder .. '/total.c')
    t.equal(ask({ op = 'document_symbols', uri = other })[1].name, 'total')
    vim.lsp.stop_client(id, true)
  end)

  t.test('a turn ends without new problems: clangd includes what is missing, the model corrects the rest', function()
    local _, folder = use.project('clean')
    vim.fn.writefile({ '#pragma once', 'int log_it(int amount);' }, folder .. '/log.h')
    vim.fn.writefile({ '#include "log.h"', 'int log_it(int amount) { return amount; }' }, folder .. '/log.cpp')
    local before = { 'int old = missing;', '', 'int main() {', '  return 1;', '}' }
    vim.fn.writefile(before, folder .. '/use.cpp')
    local id
    for _, name in ipairs({ 'log.cpp', 'use.cpp' }) do
      vim.cmd.edit(folder .. '/' .. name)
      vim.bo.filetype = 'cpp'
      id = assert(vim.lsp.start({ name = 'clangd', cmd = { 'clangd' }, root_dir = folder }))
    end
    t.wait('the old problem', function()
      return #vim.diagnostic.get(0) > 0
    end)
    local function edit(id, old, new)
      local arguments = { path = 'use.cpp', edits = { { old_text = old, new_text = new } } }
      return { call = { id = id, name = 'edit_file', arguments = arguments } }
    end
    use.edit_mode()
    model:script(
      { edit('c1', 'return 1;', 'int amount = "one";\n  return log_it(amount);') },
      { { text = 'Done.' } },
      { edit('c2', '"one"', '1') },
      { { text = 'Now it is right.' } }
    )
    vim.cmd('Tandem ask Log it')
    use.wait_idle()
    local requests = model:state('requests:4').requests
    local returned = vim.inspect(requests[3].messages[#requests[3].messages].content)
    t.contains(returned, 'use.cpp:5: error: Cannot initialize a variable of type')
    t.contains(returned, 'fixed this already')
    t.equal(returned:find("undeclared identifier 'missing'", 1, true), nil, 'the old problem is not mentioned')
    t.equal(api.nvim_buf_get_lines(0, 0, 1, false), { '#include "log.h"' })
    t.contains(use.text_of(use.session().chat.buf), '1 import fixed by clang')
    vim.cmd('Tandem undo')
    t.wait('the text before the turn', function()
      return vim.deep_equal(api.nvim_buf_get_lines(0, 0, -1, false), before)
    end)
    vim.lsp.stop_client(id, true)
  end)

  t.test('a report of an older text is never believed', function()
    local cmd, publish = nil, nil
    cmd = require('tandem.in_process').cmd({
      request = function(method, _, reply)
        reply(nil, method == 'initialize' and { capabilities = { textDocumentSync = 1 } } or nil)
      end,
      notify = function(_, _, dispatchers)
        publish = function(uri, version, message)
          local diagnostics = { { range = at(0, 0), severity = 1, message = message } }
          dispatchers.notification('textDocument/publishDiagnostics', { uri = uri, version = version, diagnostics = diagnostics })
        end
      end,
    })
    local buf, folder = use.project('stale')
    local id = assert(vim.lsp.start({ name = 'late', cmd = cmd, root_dir = folder }))
    t.wait('the server', function()
      return publish ~= nil
    end)
    local uri = vim.uri_from_bufnr(buf)
    local function settled()
      local answer
      coroutine.wrap(function()
        answer = require('tandem.diagnostics').answer({ uris = { uri }, settled = true }, 'utf-8')
      end)()
      t.wait('the answer', function()
        return answer ~= nil
      end)
      return answer.documents[1]
    end
    local versions = vim.lsp.util.buf_versions
    publish(uri, versions[buf], 'now')
    t.equal(settled().version, versions[buf])
    local old = versions[buf]
    api.nvim_buf_set_lines(buf, 0, 1, false, { 'changed' })
    publish(uri, old, 'late')
    t.equal(settled().version, nil, 'of the text before')
    publish(uri, versions[buf], 'now')
    t.equal(settled().version, versions[buf])
    vim.lsp.stop_client(id, true)
  end)
end

return M
