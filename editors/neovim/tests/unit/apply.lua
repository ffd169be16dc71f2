-- Edits applied to buffers.
local api = vim.api
local apply = require('tandem.apply').apply
local position = require('tandem.position')

---@param t table the harness
---@param use tandem.test.Use
return function(t, use)
  local file, text_of = use.file, use.text_of

  -- applying edits

  ---@param buf integer
  ---@param version integer?
  ---@param ... lsp.TextEdit
  local function change(buf, version, ...)
    local document = { uri = vim.uri_from_bufnr(buf), version = version }
    return { edit = { documentChanges = { { textDocument = document, edits = { ... } } } } }
  end

  ---@param buf integer
  ---@return integer version that the server was told
  local function version_of(buf)
    local document = { uri = vim.uri_from_bufnr(buf), version = api.nvim_buf_get_changedtick(buf) }
    require('tandem.mirror').checked('textDocument/didChange', { textDocument = document })
    return document.version
  end

  t.test('an edit for the current version is applied', function()
    local buf = file({ 'a😀b' })
    local edit = { range = position.range(0, 3, 0, 4), newText = 'B' }
    t.equal(apply(change(buf, version_of(buf), edit), 'utf-16', 1), { applied = true })
    t.equal(text_of(buf), 'a😀B')
  end)

  t.test('a stale edit is refused with the reason and changes nothing', function()
    local buf = file({ 'abc' })
    local version = version_of(buf)
    local result = apply(change(buf, version - 1, { range = position.range(0, 0, 0, 3), newText = 'x' }), 'utf-8', 1)
    t.equal(result.applied, false)
    t.contains(result.failureReason, 'changed meanwhile')
    t.equal(text_of(buf), 'abc')
  end)

  t.test('one stale document stops the whole edit', function()
    local first, second = file({ 'one' }), file({ 'two' })
    local edit = { range = position.range(0, 0, 0, 3), newText = 'x' }
    local params = change(first, version_of(first), edit)
    local stale = change(second, version_of(second) - 1, edit).edit.documentChanges[1]
    table.insert(params.edit.documentChanges, stale)
    t.equal(apply(params, 'utf-8', 1).applied, false)
    t.equal(text_of(first) .. text_of(second), 'onetwo')
  end)

  t.test('a buffer that cannot be modified refuses', function()
    local buf = file({ 'abc' })
    local version = version_of(buf)
    vim.bo.modifiable = false
    local result = apply(change(buf, version, { range = position.range(0, 0, 0, 3), newText = 'x' }), 'utf-8', 1)
    t.equal(result.applied, false)
    t.contains(result.failureReason, 'modifiable')
    vim.bo.modifiable = true
  end)

  t.test('text inserted after the last line leaves no empty line', function()
    local buf = file({ 'a', 'é' })
    apply(change(buf, version_of(buf), { range = position.range(2, 0, 2, 0), newText = 'new\n' }), 'utf-16', 1)
    t.equal(text_of(buf), 'a\né\nnew')
    local empty = file({})
    apply(change(empty, version_of(empty), { range = position.range(1, 0, 1, 0), newText = 'x\ny\n' }), 'utf-16', 1)
    t.equal(text_of(empty), 'x\ny')
  end)

  t.test('edits of one turn are undone together', function()
    local buf = file({ 'a' })
    for _, word in ipairs({ 'x', 'y', 'z' }) do
      apply(change(buf, version_of(buf), { range = position.range(0, 0, 0, 0), newText = word }), 'utf-8', 1)
    end
    t.equal(text_of(buf), 'zyxa')
    vim.cmd('silent undo')
    t.equal(text_of(buf), 'a')
  end)

  t.test('edits of two turns are undone one by one', function()
    local buf = file({ 'a' })
    apply(change(buf, version_of(buf), { range = position.range(0, 0, 0, 0), newText = 'x' }), 'utf-8', 1)
    apply(change(buf, version_of(buf), { range = position.range(0, 0, 0, 0), newText = 'y' }), 'utf-8', 2)
    vim.cmd('silent undo')
    t.equal(text_of(buf), 'xa')
  end)

  t.test('what the user typed is not undone with an edit', function()
    local buf = file({ 'a' })
    vim.keymap.set('i', '<F5>', function()
      apply(change(buf, version_of(buf), { range = position.range(0, 0, 0, 0), newText = 'AGENT ' }), 'utf-8', 7)
    end)
    api.nvim_feedkeys(vim.keycode('A typed<F5> on<Esc>'), 'tx', false)
    vim.keymap.del('i', '<F5>')
    local steps = { text_of(buf) }
    for index = 2, 4 do
      vim.cmd('silent undo')
      steps[index] = text_of(buf)
    end
    t.equal(steps, { 'AGENT a typed on', 'AGENT a typed', 'a typed', 'a' })
  end)
end
