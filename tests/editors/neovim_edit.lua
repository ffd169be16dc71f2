--- Edits in place, code actions and completion, started from the editor itself.
local M = {}

local api = vim.api

---@param t table the harness
---@param model tandem.test.Model
---@param use tandem.test.Driver
function M.test(t, model, use)
  local function lines(buf)
    return api.nvim_buf_get_lines(buf, 0, -1, false)
  end

  local function press(keys)
    api.nvim_feedkeys(vim.keycode(keys), 'xt', false)
  end

  --- Edits that are shown but not made.
  local function shown(buf)
    local found = {}
    local space = api.nvim_get_namespaces()['tandem.inline']
    for _, mark in ipairs(api.nvim_buf_get_extmarks(buf, space, 0, -1, { details = true })) do
      if mark[4].hl_group then
        found[#found + 1] = ('-%d'):format(mark[2] + 1)
      end
      for _, line in ipairs(mark[4].virt_lines or {}) do
        found[#found + 1] = '+' .. vim.trim(line[1][1])
      end
    end
    table.sort(found, function(a, b) -- removed lines, then added ones
      return a:sub(1, 1) > b:sub(1, 1) or (a:sub(1, 1) == b:sub(1, 1) and #a > #b)
    end)
    return found
  end

  local function wait_shown(buf, expected)
    t.wait('the changes ' .. table.concat(expected, ' '), function()
      return vim.deep_equal(shown(buf), expected)
    end)
  end

  --- The replacement is complete.
  local function wait_ready(buf, expected)
    wait_shown(buf, expected)
    t.wait('the keys that keep', function()
      local space = api.nvim_get_namespaces()['tandem.inline.hint']
      local hint = api.nvim_buf_get_extmarks(buf, space, 0, -1, { details = true })[1]
      return hint and vim.inspect(hint[4]):find('gA keep all', 1, true)
    end)
  end

  local rewritten = { 'fn hello(name: &str) {', '    println!("hello {name}");', '    // done', '}' }

  t.test('an edit in place streams next to the lines, and is accepted hunk by hunk in one undo step', function()
    local buf = use.project('inline')
    local before = lines(buf)
    vim.keymap.set('n', 'gr', '<Nop>', { buffer = buf, desc = 'the references, of a language server' })
    model:script({
      { text = rewritten[1] .. '\n' },
      { gate = 'inline' },
      { text = table.concat(vim.list_slice(rewritten, 2), '\n') .. '\n' },
    })
    vim.cmd('1,3Tandem edit call it hello')
    wait_shown(buf, { '-1', '+fn hello(name: &str) {' })
    t.equal(lines(buf), before, 'nothing is changed while it streams')
    local sent = use.sent_text(model:state('gate:inline').requests[1])
    t.contains(sent, 'call it hello')
    t.contains(sent, '<selection>fn greet(name: &str) {')
    model:open('inline')
    wait_ready(buf, { '-1', '+fn hello(name: &str) {', '+// done' })
    api.nvim_win_set_cursor(0, { 1, 0 })
    press('ga')
    t.equal(lines(buf)[1], rewritten[1])
    t.equal(shown(buf), { '+// done' })
    press('ga')
    t.equal(vim.list_slice(lines(buf), 1, 4), rewritten)
    t.equal(shown(buf), {})
    t.equal(vim.fn.maparg('ga', 'n'), '', 'its keys are gone')
    t.contains(vim.fn.maparg('gr', 'n', false, true).desc or '', 'the references')
    vim.cmd('silent undo')
    t.equal(lines(buf), before)
  end)

  t.test('<Esc> leaves the buffer unchanged, while the edit streams and after; rejected hunks are not applied', function()
    local buf = use.project('escape')
    local before = lines(buf)
    model:script({ { text = 'fn other() {\n' }, { hang = true } })
    vim.cmd('1,3Tandem edit call it other')
    wait_shown(buf, { '-1', '+fn other() {' })
    press('<Esc>')
    t.equal({ lines(buf), shown(buf) }, { before, {} })
    model:state('closed:1')
    local whole = table.concat(rewritten, '\n') .. '\n'
    model:script({ { text = whole } }, { { text = whole } })
    vim.cmd('1,3Tandem edit call it hello')
    wait_ready(buf, { '-1', '+fn hello(name: &str) {', '+// done' })
    vim.cmd('1,3Tandem edit shorter, please')
    t.contains(use.sent_text(model:state('requests:2').requests[2]), 'You proposed this replacement before')
    wait_ready(buf, { '-1', '+fn hello(name: &str) {', '+// done' })
    api.nvim_win_set_cursor(0, { 1, 0 })
    press('gr')
    t.equal({ lines(buf), shown(buf) }, { before, { '+// done' } })
    press('<Esc>')
    t.equal({ lines(buf), shown(buf) }, { before, {} })
    t.equal(vim.bo[buf].modified, false)
  end)

  t.test('text typed into a hunk in the meantime is not overwritten', function()
    local buf = use.project('typed')
    model:script({ { text = table.concat(rewritten, '\n') .. '\n' } })
    vim.cmd('1,3Tandem edit call it hello')
    wait_ready(buf, { '-1', '+fn hello(name: &str) {', '+// done' })
    api.nvim_buf_set_text(buf, 0, 0, 0, 0, { 'pub ' })
    press('gA')
    t.equal(vim.list_slice(lines(buf), 1, 4), { 'pub fn greet(name: &str) {', rewritten[2], '    // done', '}' })
    t.contains(table.concat(use.notified, '\n'), '1 change not made: you edited these lines')
  end)

  t.test('an edit in place follows its lines while the model writes, and leaves those that are edited meanwhile', function()
    local buf = use.project('meanwhile')
    local function begin(gate)
      model:script({
        { text = rewritten[1] .. '\n' },
        { gate = gate },
        { text = table.concat(vim.list_slice(rewritten, 2), '\n') .. '\n' },
      })
      local first = vim.fn.search('^fn greet', 'cw')
      vim.cmd(('%d,%dTandem edit call it hello'):format(first, first + 2))
      wait_shown(buf, { '-' .. first, '+fn hello(name: &str) {' })
      use.forget_messages()
    end
    local before = lines(buf)
    begin('above')
    api.nvim_buf_set_lines(buf, 0, 0, false, { '// one', '// two' })
    model:open('above')
    wait_ready(buf, { '-3', '+fn hello(name: &str) {', '+// done' })
    press('gA')
    t.equal(vim.list_slice(lines(buf), 1, 6), { '// one', '// two', unpack(rewritten) })
    vim.cmd('silent undo')
    begin('within')
    api.nvim_buf_set_text(buf, 2, 0, 2, 0, { 'pub ' })
    api.nvim_buf_set_lines(buf, 3, 3, false, { '    // three' })
    model:open('within')
    wait_ready(buf, { '+// done' })
    t.contains(table.concat(use.notified, '\n'), '1 change not made: you edited these lines')
    press('ga')
    local both = { '// one', '// two', 'pub ' .. before[1], '    // three', before[2], '    // done', '}' }
    t.equal(vim.list_slice(lines(buf), 1, 7), both)
    api.nvim_buf_set_lines(buf, 0, -1, false, before)
    begin('gone')
    api.nvim_buf_set_lines(buf, 0, 3, false, {})
    model:open('gone')
    t.wait('the message', function()
      return table.concat(use.notified, '\n'):find('2 changes not made: you edited these lines', 1, true)
    end)
    t.equal({ lines(buf), shown(buf) }, { vim.list_slice(before, 4), {} })
  end)

  t.test('code actions ask, edit, explain and fix', function()
    local buf, folder = use.project('actions')
    model:script({ { text = 'Explained.' } }, { { text = 'Fixed.' } })
    vim.cmd('1Tandem explain')
    use.wait_idle()
    local client = vim.lsp.get_clients({ bufnr = buf, name = 'tandem code' })[1]
    t.equal(client ~= nil, true)
    local space = api.nvim_create_namespace('a linter')
    vim.diagnostic.set(space, buf, { { lnum = 1, col = 0, message = 'no such macro', severity = 1 } })
    local offered
    local select = vim.ui.select
    vim.ui.select = function(items, _, choose)
      offered = vim.tbl_map(function(item)
        return item.action.title
      end, items)
      choose(items[#items], #items)
    end
    api.nvim_win_set_cursor(0, { 2, 0 })
    vim.lsp.buf.code_action()
    t.wait('the question', function()
      return #model:state().requests == 2
    end)
    use.wait_idle()
    vim.ui.select = select
    t.equal(offered, { 'tandem: Ask about this', 'tandem: Edit this', 'tandem: Explain this', 'tandem: Fix this' })
    t.contains(use.sent_text(model:state().requests[2]), 'Fix these diagnostics in main.rs:2:\nline 2: error: no such macro')
    vim.diagnostic.reset(space, buf)
    vim.cmd('2Tandem fix')
    t.contains(table.concat(use.notified, '\n'), 'No diagnostics in main.rs:2')
    t.equal(#vim.lsp.get_clients({ name = 'tandem code', bufnr = vim.fn.bufadd(folder .. '/none') }), 0)
  end)

  t.test('mentions and commands are offered to completion plugins by a language server in the chat', function()
    use.project('completion')
    model:script({ { text = 'Hello.' } })
    vim.cmd('Tandem ask Hello')
    use.wait_idle()
    vim.cmd('Tandem chat')
    local buf = api.nvim_get_current_buf()
    local chat = require('tandem.chats').current().chat
    local client = vim.lsp.get_clients({ bufnr = buf, name = 'tandem chat' })[1]
    local function offered(text)
      chat:transcript():set_input(text)
      local row = chat:input_row()
      local params = { textDocument = { uri = vim.uri_from_bufnr(buf) }, position = { line = row, character = #text } }
      local answer
      require('tandem.client').request(client, 'textDocument/completion', params, function(_, result)
        answer = result
      end)
      t.wait('the answer', function()
        return answer
      end)
      return answer.items or {}
    end
    local item = offered('see @mai')[1]
    t.equal({ item.label, item.textEdit.newText, item.textEdit.range.start.character }, { 'main.rs', 'main.rs', 5 })
    t.equal(offered('/com')[1].label, '/compact')
    t.equal(offered('nothing here'), {})
    chat:transcript():set_input('')
  end)

  t.test('the chat opens as a float or in a tab page, and never takes the cursor unasked', function()
    local settings = vim.g.tandem
    for _, position in ipairs({ 'float', 'tab' }) do
      vim.g.tandem = vim.tbl_extend('force', settings, { chat = { position = position } })
      local buf = use.project('layout-' .. position)
      model:script({ { text = 'Hello.' } })
      vim.cmd('Tandem ask Hello')
      use.wait_idle()
      t.equal(api.nvim_get_current_buf(), buf)
      local chat = require('tandem.chats').current().chat.buf
      local win = vim.fn.win_findbuf(chat)[1]
      t.equal(api.nvim_win_get_config(win).relative, position == 'float' and 'editor' or '')
      t.equal(#api.nvim_list_tabpages(), position == 'tab' and 2 or 1)
      vim.cmd('Tandem chat')
      t.equal(api.nvim_get_current_win(), win)
      vim.cmd('Tandem chat')
      t.equal({ vim.fn.win_findbuf(chat), #api.nvim_list_tabpages() }, { {}, 1 })
    end
    vim.g.tandem = settings
  end)

  t.test('g? shows the keys without help tags', function()
    use.project('help')
    vim.cmd('Tandem chat')
    press('g?')
    t.equal(api.nvim_win_get_config(0).relative, 'editor')
    local text = table.concat(lines(0), '\n')
    for _, part in ipairs({ 'gy ', 'yank the code block', '<CR> ', 'insert mode' }) do
      t.contains(text, part)
    end
    press('q')
    t.equal(vim.bo.filetype, 'tandem')
  end)
end

return M
