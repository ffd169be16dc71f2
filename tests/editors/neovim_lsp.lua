-- Neovim's own language client with the real server and a scripted model, without our plugin, as an LSP-only client:
--   TANDEM_BIN=target/debug/tandem nvim --headless -u NONE -l tests/editors/neovim_lsp.lua
local here = vim.fs.dirname(vim.fs.normalize(vim.uv.fs_realpath(arg[0])))
local repository = vim.fs.dirname(vim.fs.dirname(here))
vim.o.swapfile, vim.o.showmode = false, false

local t = dofile(repository .. '/editors/neovim/tests/harness.lua')
local models = dofile(here .. '/neovim_model.lua')
local api, lsp = vim.api, vim.lsp
local binary = vim.env.TANDEM_BIN or (repository .. '/target/debug/tandem')
local model = models.start(here .. '/model_server.py')

local home = vim.fn.tempname()
vim.fn.mkdir(home, 'p')
for name, value in pairs(model:environment(home)) do
  vim.env[name] = value
end

local messages = {} ---@type string[]
lsp.handlers['window/showMessage'] = function(_, result)
  table.insert(messages, result.message)
end

local offered = {} ---@type string[][]
--- Nobody answers the menu of a permission request, so it stays open.
vim.ui.select = function(items, options)
  table.insert(offered, vim.tbl_map(options.format_item, items))
end

---@param buf integer
---@return string
local function text_of(buf)
  return table.concat(api.nvim_buf_get_lines(buf, 0, -1, false), '\n')
end

---@param buf integer
---@param part string
local function wait_text(buf, part)
  local ok, problem = pcall(t.wait, ('%q in the buffer'):format(part), function()
    return text_of(buf):find(part, 1, true)
  end)
  if not ok then
    error(('%s; it contains:\n%s'):format(problem, text_of(buf)), 2)
  end
end

local root ---@type string of the project

-- A user's own configuration, as the page for Neovim describes it.
vim.env.PATH = vim.fs.dirname(binary) .. ':' .. vim.env.PATH
local page = table.concat(vim.fn.readfile(repository .. '/editors/neovim/README.md'), '\n')
assert(load(page:match('## Without the plugin.-```lua\n(.-)```')))()

---@param path string
---@return integer buf
local function open(path)
  vim.cmd.edit(path)
  t.wait('the server', function()
    local client = lsp.get_clients({ bufnr = 0, name = 'tandem' })[1]
    return client and client.initialized
  end)
  return api.nvim_get_current_buf()
end

--- A project with a file and a chat, both open, the chat current.
---@param name string
---@return integer chat, integer code
local function project(name)
  root = vim.fs.normalize(vim.uv.fs_realpath(home)) .. '/' .. name
  vim.fn.mkdir(root .. '/.git', 'p')
  vim.fn.writefile({ '/// Adds two numbers.', 'pub fn add(a: i32, b: i32) -> i32 {', '    a + b', '}' }, root .. '/lib.rs')
  vim.fn.writefile({ '# Notes', '', '## You', '' }, root .. '/notes.tandem.md')
  local code = open(root .. '/lib.rs')
  return open(root .. '/notes.tandem.md'), code
end

--- Writes a prompt at the end of the chat and saves it.
---@param chat integer
---@param words string
local function ask(chat, words)
  messages = {}
  api.nvim_buf_set_lines(chat, -1, -1, false, { words })
  api.nvim_win_set_cursor(0, { api.nvim_buf_line_count(chat), 0 })
  vim.cmd('silent write')
end

local function wait_end()
  t.wait('the message that the turn ended', function()
    return vim.list_contains(messages, 'tandem: done')
  end)
end

--- Runs the code action whose title begins with this, as `gra` and a choice from its menu do.
---@param title string
local function act(title)
  local taken = false
  t.wait('the code action ' .. title, function()
    lsp.buf.code_action({
      apply = true,
      filter = function(action)
        local fits = not taken and vim.startswith(action.title, title)
        taken = taken or fits
        return fits
      end,
    })
    return vim.wait(1000, function()
      return taken
    end, 5)
  end)
end

local edit = { path = 'lib.rs', edits = { { old_text = 'a + b', new_text = 'a - b' } } }
local edit_call = { call = { id = 'c1', name = 'edit_file', arguments = edit } }

t.test('the answer streams into the chat file, and text typed below it is the next question', function()
  local chat = project('stream')
  model:script({ { text = 'The first half,' }, { gate = 'middle' }, { text = ' and the second half.' } }, { { text = 'Once more.' } })
  ask(chat, 'How does streaming look?')
  wait_text(chat, 'The first half,\n\n## You')
  t.wait('the cursor where the next question goes', function()
    return api.nvim_get_current_line() == '## You' and vim.fn.line('.') > 5
  end)
  t.equal(text_of(chat):find('second half', 1, true), nil)
  api.nvim_buf_set_lines(chat, -1, -1, false, { '', 'And again?' })
  model:open('middle')
  wait_text(chat, 'The first half, and the second half.\n\n## You\n')
  wait_end()
  ask(chat, 'Please.')
  wait_text(chat, 'Once more.')
  t.contains(models.sent_text(model:state().requests[2]), 'And again?')
end)

t.test('a chat file that is new is answered, too', function()
  project('new')
  local chat = open(root .. '/another.tandem.md')
  model:script({ { text = 'From a new file.' } })
  ask(chat, 'What is here?')
  wait_text(chat, 'From a new file.')
  wait_end()
end)

t.test('an edit is allowed by a code action, changes only the open buffer, and is undone', function()
  local chat, code = project('edit')
  local before = text_of(code)
  model:script({ { text = 'I subtract.' }, edit_call }, { { text = 'There you are.' } })
  ask(chat, 'Subtract, please.')
  wait_text(chat, 'Answer with a code action')
  t.wait('the menu', function()
    return offered[#offered] and offered[#offered][1] == 'Reject'
  end)
  t.wait('the hint in the code', function()
    local hint = vim.diagnostic.get(code)[1]
    return hint and hint.message:find('Allow? Edit lib.rs', 1, true)
  end)
  t.equal(text_of(code), before)
  act('tandem: Allow: Edit')
  wait_text(chat, 'There you are.')
  wait_text(chat, '> **allowed:** Edit lib.rs')
  t.contains(text_of(code), 'a - b')
  t.equal({ vim.bo[code].modified, table.concat(vim.fn.readfile(root .. '/lib.rs'), '\n') }, { true, before })
  wait_end()
  vim.cmd.buffer(code)
  vim.cmd('silent undo')
  t.equal(text_of(code), before, 'one undo step')
  vim.cmd('silent redo')
  t.contains(text_of(code), 'a - b')
  act('tandem: Undo the last turn')
  wait_text(code, 'a + b')
end)

t.test('a rejected edit is not made', function()
  local chat, code = project('reject')
  local before = text_of(code)
  model:script({ edit_call }, { { text = 'Left as it was.' } })
  ask(chat, 'Subtract, please.')
  wait_text(chat, 'Answer with a code action')
  act('tandem: Reject')
  wait_text(chat, '> **rejected:** Edit lib.rs')
  wait_text(chat, 'Left as it was.')
  t.equal(text_of(code), before)
end)

t.test('a chat has symbols, hovers and locations', function()
  local chat, code = project('read')
  local read = { call = { id = 'c1', name = 'read_file', arguments = { path = 'lib.rs' } } }
  model:script({ read }, { { text = 'It is in lib.rs:3, I think.' } })
  ask(chat, 'Where does it add?')
  wait_text(chat, 'I think.')
  wait_end()
  local client = lsp.get_clients({ bufnr = chat, name = 'tandem' })[1]
  local function request(method, line, character)
    local position = { line = line - 1, character = character }
    local params = { textDocument = { uri = vim.uri_from_bufnr(chat) }, position = position }
    return assert(lsp.buf_request_sync(chat, method, params, 30000))[client.id].result
  end
  t.equal(request('textDocument/documentSymbol', 1, 0)[1].name, 'Where does it add?')
  vim.fn.cursor(1, 1)
  local call = vim.fn.search('✓ Read')
  t.contains(vim.inspect(request('textDocument/hover', call, 3)), 'pub fn add')
  vim.fn.search('lib.rs:3')
  lsp.buf.definition()
  t.wait('the place', function()
    return api.nvim_get_current_buf() == code and api.nvim_win_get_cursor(0)[1] == 3
  end)
end)

t.test('mentions and commands are completed', function()
  local chat = project('complete')
  local client = lsp.get_clients({ bufnr = chat, name = 'tandem' })[1]
  local function labels(line)
    api.nvim_buf_set_lines(chat, 4, -1, false, { line })
    local position = { line = 4, character = #line }
    local params = { textDocument = { uri = vim.uri_from_bufnr(chat) }, position = position }
    local result = assert(lsp.buf_request_sync(chat, 'textDocument/completion', params, 30000))[client.id].result
    return vim.tbl_map(function(item)
      return item.label
    end, result.items or result)
  end
  t.contains(table.concat(labels('What is @li'), ' '), 'lib.rs')
  t.contains(table.concat(labels('/he'), ' '), '/help')
end)

t.test('a turn is cancelled, and the next question is answered', function()
  local chat = project('cancel')
  model:script({ { text = 'It begins' }, { hang = true } }, { { text = 'Back again.' } })
  ask(chat, 'Talk for ever.')
  wait_text(chat, 'It begins')
  act('tandem: Stop')
  model:state('closed:1')
  wait_text(chat, '> stopped')
  t.wait('the message', function()
    return vim.list_contains(messages, 'tandem: stopped')
  end)
  ask(chat, 'Still there?')
  wait_text(chat, 'Back again.')
  wait_end()
end)

local function clangd_beside()
  project('clangd')
  vim.fn.writefile({ 'int twice(int a) { return total(a) * 2; }' }, root .. '/twice.c')
  local buf = open(root .. '/twice.c')
  local id = assert(lsp.start({ name = 'clangd', cmd = { 'clangd' }, root_dir = root }))
  t.wait('the diagnostic of clangd', function()
    local found = vim.diagnostic.get(buf)[1]
    return found and found.message:find('mplicit declaration of function', 1, true)
  end)
  t.equal(#lsp.get_clients({ bufnr = buf }), 2)
  model:script({ { text = 'Declare it.' } })
  act('tandem: Explain this')
  t.contains(models.sent_text(model:state('requests:1').requests[1]), 'return total(a) * 2')
  t.wait('the chat file with the answer', function()
    return vim.endswith(api.nvim_buf_get_name(0), '.tandem.md') and text_of(0):find('Declare it.', 1, true)
  end)
  lsp.stop_client(id, true)
end

if vim.fn.executable('clangd') == 1 then
  t.test('clangd runs beside tandem', clangd_beside)
else
  t.skip('clangd beside tandem', 'clangd is not installed')
end

t.test('the client has reported no error', function()
  t.equal(vim.fn.execute('messages'):match('LSP%[[^\n]*'), nil)
end)

for _, client in ipairs(lsp.get_clients()) do
  lsp.stop_client(client.id)
end
t.test('the servers end when they are asked to', function()
  t.wait('the clients are gone', function()
    return #lsp.get_clients() == 0
  end)
end, true)
model:stop()
t.finish({ again = true })
