-- What goes along with a question, and permission.
local api = vim.api
local context = require('tandem.context')
local permission = require('tandem.permission')
local render = require('tandem.render')

---@param t table the harness
---@param use tandem.test.Use
return function(t, use)
  local file = use.file

  -- context sent with a prompt

  t.test('a line range is the unsaved text of the buffer', function()
    local buf = file({ 'one', 'two', 'three' })
    api.nvim_buf_set_lines(buf, 1, 2, false, { 'TWO' })
    local chosen = context.range(1, 2)
    t.equal({ chosen.text, chosen.first, chosen.last }, { 'one\nTWO', 1, 2 })
    t.equal(chosen.uri, vim.uri_from_bufnr(buf))
  end)

  t.test('a characterwise selection is cut at characters, not bytes', function()
    file({ 'aé😀b', 'ünd' })
    vim.cmd('normal! 1G0lvjh\27')
    t.equal(context.range(1, 2).text, 'é😀b\nü')
  end)

  t.test('a range that is not the last selection means whole lines', function()
    file({ 'abc', 'def', 'ghi' })
    vim.cmd('normal! 1G0vl\27')
    t.equal(context.range(2, 3).text, 'def\nghi')
  end)

  t.test('a blockwise selection is a block', function()
    file({ 'abc', 'def' })
    vim.cmd('normal! 1G0l\22j\27')
    t.equal(context.range(1, 2).text, 'b\ne')
  end)

  t.test('the content blocks carry the question, the place and the text', function()
    local chosen = { uri = 'file:///a/b.rs', name = 'b.rs', first = 3, last = 7, text = 'x' }
    t.equal(context.label(chosen), 'b.rs:3-7')
    t.equal(context.blocks('why?', chosen), {
      { type = 'text', text = 'why?' },
      { type = 'resource', resource = { uri = 'file:///a/b.rs#L3-L7', mimeType = 'text/plain', text = 'x' } },
    })
    t.equal(#context.blocks('why?', nil), 1)
  end)

  t.test('a prompt that was sent can be written into the input again, with what it mentions and its images', function()
    local image = require('tandem.image').save('\137PNG some pixels')
    local chosen = { uri = 'file:///a/b%20c.rs', name = 'b c.rs', first = 3, last = 7, text = 'x' }
    local text = ('like %s here'):format(image)
    t.equal(context.written(context.blocks(text, chosen), '/a'), text .. ' @"b c.rs"#L3-L7')
    local blocks = {
      { type = 'text', text = 'why?' },
      { type = 'resource_link', uri = 'file:///a/b.rs', name = 'b.rs' },
      { type = 'resource', resource = { uri = 'file:///a/b.rs#L4', text = 'y' } },
      { type = 'resource', resource = { uri = 'untitled:buffer-1', text = 'z' } },
      context.blocks(text)[2],
    }
    t.equal(context.written(blocks, '/a'), 'why? @b.rs @b.rs#L4-L4\n' .. image)
  end)

  t.test('a whole file is only named, a buffer without a file is sent', function()
    local buf = file({ 'abc' })
    local whole = context.whole(buf)
    t.equal(context.blocks('why?', whole)[2], { type = 'resource_link', uri = whole.uri, name = whole.name })
    t.equal(context.label(whole), whole.name)
    vim.cmd.enew()
    api.nvim_buf_set_lines(0, 0, -1, false, { 'no name' })
    t.equal(context.whole(api.nvim_get_current_buf()).text, 'no name')
    vim.bo.buftype = 'nofile'
    vim.cmd.file('tandem proj')
    t.equal({ context.lines(0, 1, 1).uri:match('^%a+'), context.lines(0, 1, 1).name }, { 'untitled', 'tandem proj' })
    vim.cmd.bwipeout({ bang = true })
  end)

  -- permission

  t.test("a question of the model's is answered by a choice, and by nothing else", function()
    local options = {
      { optionId = 'answer_0', name = 'SQLite', kind = 'allow_always' },
      { optionId = 'answer_1', name = 'PostgreSQL', kind = 'allow_always' },
      { optionId = 'reject_once', name = 'No Answer', kind = 'reject_once' },
    }
    local rendered = render.tool({ title = 'Which database?', kind = 'think' }, permission.sorted(options))
    t.equal(vim.list_slice(rendered.lines, 2), {
      'Answer?',
      '- SQLite',
      '- PostgreSQL',
      ' gr   No Answer',
      ' ga   Choose an answer',
    })
    local session = { on_request = function() end, on_answered = function() end }
    local outcome
    coroutine.wrap(function()
      outcome = permission.ask(session, { toolCall = { title = 'Which database?' }, options = options })
    end)()
    local offered
    local select = vim.ui.select
    vim.ui.select = function(items, _, choose)
      offered = items
      choose(nil)
    end
    t.equal(permission.answer('allow_once', 'allow_always'), nil)
    t.equal({ #offered, outcome }, { 2 }, 'no choice is no answer')
    vim.ui.select = function(items, _, choose)
      choose(items[2])
    end
    permission.answer('allow_once', 'allow_always')
    vim.ui.select = select
    t.equal(outcome.outcome.optionId, 'answer_1')
  end)

  t.test('a place is read as it is written, with any Markdown around it', function()
    local parse = require('tandem.jump').parse
    for word, place in pairs({
      ['`src/main.rs:12`,'] = { 'src/main.rs', 12 },
      ['(main.rs:12:3)'] = { 'main.rs', 12, 3 },
      ['**lib.rs#L7**'] = { 'lib.rs', 7 },
      ['[code](a/b.rs:4)'] = { 'a/b.rs', 4 },
      ['`/usr/lib/x.lua:3`'] = { '/usr/lib/x.lua', 3 },
      ['../lib/x.lua:4'] = { '../lib/x.lua', 4 },
      ['(`~/x.lua:2`)'] = { '~/x.lua', 2 },
      ['.github/workflows/ci.yml:3'] = { '.github/workflows/ci.yml', 3 },
      ['_init.lua'] = { '_init.lua' },
    }) do
      t.equal({ parse(word) }, place, word)
    end
  end)

  t.test('the safe choice comes first', function()
    local function option(kind)
      return { optionId = kind, name = kind, kind = kind }
    end
    local sorted = permission.sorted({ option('allow_always'), option('allow_once'), option('reject_once') })
    t.equal(sorted[1].kind, 'reject_once')
    t.equal(sorted[2].kind, 'allow_once')
    local project = { optionId = 'project', name = 'project', kind = 'allow_always' }
    sorted = permission.sorted({ option('allow_once'), option('allow_always'), project })
    t.equal(sorted[3].optionId, 'project') -- otherwise in the server's order
  end)

  t.test('a replaced vim.notify is told from Neovim\'s own', function()
    local is_builtin = require('tandem.builtin')
    t.equal(is_builtin(use.neovims_notify), true)
    t.equal(is_builtin(vim.notify), false)
  end)
end
