--- The plugin among settings, files and plugins that it does not expect.
local M = {}

local api = vim.api

---@param t table the harness
---@param model tandem.test.Model
---@param use tandem.test.Driver
function M.test(t, model, use)
  local function ask(text, ...)
    model:script(...)
    vim.cmd('Tandem ask ' .. text)
    use.wait_idle()
  end

  t.test('an empty new file that was changed stops no edit, and the turn ends', function()
    local buf, folder = use.project('empty')
    use.edit_mode()
    vim.cmd('split ' .. folder .. '/new.rs')
    vim.cmd('normal! ia')
    vim.cmd('normal! x')
    t.equal(vim.bo.modified, true)
    vim.cmd('wincmd p')
    ask('Change it', { use.edit_call('c1', 'hello', 'good day') }, { { text = 'Done.' } })
    t.contains(use.text_of(buf), 'good day')
    vim.cmd('silent! bwipe! ' .. folder .. '/new.rs')
  end)

  t.test('an undo leaves unsaved text and events as they were beside a file that cannot be read', function()
    local _, folder = use.project('unreadable')
    use.edit_mode()
    vim.cmd('split ' .. folder .. '/other.rs')
    vim.cmd('normal! ifirst')
    vim.cmd('silent write')
    vim.cmd('normal! osecond')
    local other = api.nvim_get_current_buf()
    vim.fn.delete(folder .. '/other.rs')
    vim.fn.mkdir(folder .. '/other.rs') -- which has a time, and no text
    vim.cmd('wincmd p')
    ask('Change it', { use.edit_call('c1', 'hello', 'good day') }, { { text = 'Done.' } })
    vim.cmd('Tandem undo')
    use.wait_chat(':Tandem redo reapplies it')
    t.equal({ use.text_of(other), vim.o.eventignore }, { 'first\nsecond', '' })
    vim.cmd('silent! bwipe! ' .. other)
  end)

  t.test('a prompt is sent where nothing can be saved', function()
    use.project('full')
    vim.cmd('Tandem')
    use.edit_mode()
    model:script({ { text = 'Sent.' } })
    local stdpath = vim.fn.stdpath
    vim.fn.stdpath = function(what)
      return what == 'state' and '/proc/nowhere' or stdpath(what)
    end
    api.nvim_win_set_cursor(0, { api.nvim_buf_line_count(0), 0 })
    local is_typed, problem = pcall(api.nvim_feedkeys, vim.keycode('AHello<Esc><CR>'), 'xt', false)
    vim.fn.stdpath = stdpath
    t.equal({ is_typed, problem }, { true })
    use.wait_chat('Sent.')
    t.contains(table.concat(use.notified, '\n'), 'Could not save the history: ')
    use.wait_idle()
  end)

  t.test("a file keeps its type's completion and key for help", function()
    local _, folder = use.project('styles')
    vim.fn.writefile({ 'a {}' }, folder .. '/a.css')
    vim.cmd.edit(folder .. '/a.css')
    vim.bo.filetype = 'css'
    vim.cmd.runtime('ftplugin/css.vim')
    local before = { vim.bo.omnifunc, vim.fn.maparg('K', 'n') }
    t.equal(before[1], 'csscomplete#CompleteCSS')
    use.edit_mode()
    t.wait('all clients', function()
      return #vim.lsp.get_clients({ bufnr = 0 }) == 2
    end)
    t.equal({ vim.bo.omnifunc, vim.fn.maparg('K', 'n') }, before)
  end)

  t.test('the last chat window closes beside the float of another plugin', function()
    use.project('float')
    vim.cmd('Tandem')
    vim.cmd('silent! only')
    local float = { relative = 'editor', row = 1, col = 1, width = 5, height = 1 }
    local win = api.nvim_open_win(api.nvim_create_buf(false, true), false, float)
    api.nvim_feedkeys('q', 'xt', false)
    t.equal(vim.bo.filetype == 'tandem', false)
    api.nvim_win_close(win, true)
  end)

  t.test('an edit in place ends with its server, and begins nowhere that cannot change', function()
    local buf = use.project('ended')
    use.edit_mode()
    vim.bo.modifiable = false
    vim.cmd('1,3Tandem edit rename it')
    t.contains(use.notified[#use.notified], "main.rs cannot be edited: 'modifiable' is off")
    vim.bo.modifiable = true
    model:script({ { text = 'fn hello(' }, { gate = 'never' } })
    vim.cmd('1,3Tandem edit rename it')
    model:state('gate:never')
    local client = require('tandem.client').running(use.session().root)
    vim.lsp.stop_client(client.id, true)
    local hints = api.nvim_get_namespaces()['tandem.inline.hint']
    t.wait('the end of the edit', function()
      return #api.nvim_buf_get_extmarks(buf, hints, 0, -1, {}) == 0
    end)
    t.equal(vim.fn.maparg('ga', 'n'), '')
    use.wait_chat('the server ended')
  end)

  t.test('@selection is the last visual selection of the file', function()
    use.project('selected')
    use.edit_mode()
    api.nvim_win_set_cursor(0, { 1, 3 })
    vim.cmd('normal! Vj\27')
    vim.cmd('Tandem')
    model:script({ { text = 'Seen.' } }, { { text = 'Seen again.' } })
    use.session():prompt('Look at @selection')
    use.wait_idle()
    local sent = use.sent_text(model:state().requests[1])
    t.contains(sent, 'fn greet(name')
    t.equal(sent:find('wörld', 1, true), nil)
    vim.cmd('wincmd p')
    api.nvim_win_set_cursor(0, { 6, 0 })
    use.session():prompt('And now @selection')
    use.wait_idle()
    t.contains(use.sent_text(model:state().requests[2]), 'wörld')
  end)

  t.test('a comment on code with fences is one fence longer', function()
    local buf = use.project('fences')
    api.nvim_buf_set_lines(buf, 0, 2, false, { '// `a`', '```rust' })
    vim.cmd('1,2Tandem comment Why?')
    model:script({ { text = 'Because.' } })
    vim.cmd('Tandem comments')
    use.wait_idle()
    t.contains(use.sent_text(model:state().requests[1]), '````\n// `a`\n```rust\n````\nWhy?')
  end)
end

return M
