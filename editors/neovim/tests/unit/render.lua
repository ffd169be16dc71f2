-- What the server sends as lines of text.
local render = require('tandem.render')

---@param t table the harness
return function(t)
  -- rendering

  t.test('a diff has signs, two lines of context and counts', function()
    local diff = render.diff('a\nb\nc\nd\ne\n', 'a\nb\nX\nd\ne\n')
    t.equal(diff, { lines = { ' a', ' b', '-c', '+X', ' d', ' e' }, added = 1, removed = 1 })
  end)

  t.test('distant hunks are separated, line ends do not matter', function()
    local old = table.concat({ '1', '2', '3', '4', '5', '6', '7', '8', '9' }, '\r\n')
    local new = table.concat({ 'x', '2', '3', '4', '5', '6', '7', '8', 'y' }, '\n')
    t.equal(render.diff(old, new).lines, { '-1', '+x', ' 2', ' 3', '…', ' 7', ' 8', '-9', '+y' })
  end)

  t.test('a long file leaves room for those after it', function()
    local function file(path)
      return { type = 'diff', path = path, newText = ('x\n'):rep(500) }
    end
    local lines = render.tool({ kind = 'edit', title = 'Apply', content = { file('one'), file('two') } }).lines
    local cut = vim.tbl_filter(function(line)
      return vim.startswith(line, '…')
    end, lines)
    t.equal(cut, { '… 100 more lines', '… 480 more lines' })
  end)

  t.test('details and the name of the workspace give way to the state, the least important first', function()
    local details = { '2 changes', 'Ask', 'sonnet' }
    local function fit(room)
      return { require('tandem.status').fit('ready', 'größer', details, room) }
    end
    t.equal(fit(40), { 'größer', '2 changes · Ask · sonnet' })
    t.equal(fit(36), { '', '2 changes · Ask · sonnet' })
    t.equal(fit(29), { 'größ…', '2 changes · Ask' })
    t.equal(fit(18), { '', '2 changes' })
    t.equal(fit(15), { 'größer', '' })
    t.equal(fit(6), { '', '' })
  end)

  t.test('a long line is cut where it does not change, and shown whole where it does', function()
    local long = ('é'):rep(1000)
    local cut = render.diff(long .. '\na\n', long .. '\n' .. long .. '\n').lines
    t.equal({ #cut, cut[1]:match('… %d+ bytes more$'), cut[3] }, { 3, '… 1600 bytes more', '+' .. long })
    t.equal(vim.fn.strtrans(cut[1]), cut[1], 'no character is cut')
  end)

  t.test('a new file is all additions', function()
    t.equal(render.diff(nil, 'a\nb'), { lines = { '+a', '+b' }, added = 2, removed = 0 })
  end)

  t.test('an edit shows its diff in a fence that its text cannot close', function()
    local rendered = render.tool({
      toolCallId = '1',
      title = 'Edit a.md',
      content = { { type = 'diff', path = '/a.md', oldText = '```\n', newText = '````\n' } },
    })
    t.equal(rendered.lines, { 'Edit a.md  +1 −1', '```diff', '-```', '+````', '```' })
  end)

  t.test('a closed fold shows how much is in it, however long the command is', function()
    local content = { { type = 'content', content = { type = 'text', text = 'a\nb' } } }
    local call = { toolCallId = '1', title = ('wörd '):rep(30), status = 'completed', content = content }
    local line = render.tool(call, nil, 40).lines[1]
    t.equal(vim.fn.strdisplaywidth(line) <= 40, true, line)
    t.contains(line, '…  2 lines')
    t.equal(render.tool({ toolCallId = '1', title = 'ls', status = 'completed', content = content }, nil, 40).lines[1], 'ls  2 lines')
  end)

  t.test('a command that changed several files names each, and its fold has the whole command', function()
    local function diff(path)
      return { type = 'diff', path = vim.fn.getcwd() .. path, oldText = 'a\n', newText = 'b\n' }
    end
    local call = { toolCallId = '1', title = 'Run sed -i s/a/b/ x.txt sub/y.txt', kind = 'execute', status = 'completed' }
    call.rawInput = { command = 'sed -i s/a/b/ x.txt sub/y.txt' }
    call.content = { diff('/x.txt'), diff('/sub/y.txt') }
    local rendered = render.tool(call, nil, 20)
    local command = { '```sh', call.rawInput.command, '```' }
    local function file(name)
      return { name .. ' +1 −1', '```diff', '-a', '+b', '```' }
    end
    t.equal(vim.list_slice(rendered.lines, 2), vim.iter({ command, file('x.txt'), file('sub/y.txt') }):flatten():totable())
    call.content = { diff('/x.txt') }
    t.equal(render.tool(call).lines, vim.iter({ call.title .. '  +1 −1', vim.list_slice(file(''), 2) }):flatten():totable())
  end)

  t.test('a text is wrapped even in a window that is narrower than a character', function()
    t.equal(table.concat(require('tandem.cells').wrap('中文', 0, math.huge)), '中文')
  end)

  t.test('a diff is shown while it is asked for, else it folds', function()
    local call = { toolCallId = '1', title = 'Edit a', content = { { type = 'diff', path = '/a', newText = 'x\n' } } }
    for _, status in ipairs({ 'pending', 'in_progress', 'completed', 'failed' }) do
      call.status = status
      t.equal({ render.tool(call).fold, render.tool(call, {}).fold }, { true, false }, status)
    end
    call.status = 'failed'
    table.insert(call.content, { type = 'content', content = { type = 'text', text = 'not found' } })
    t.equal(render.tool(call).fold, false, 'why it failed is shown')
  end)

  t.test('the output of a call folds, of a failed one it does not', function()
    local call = { toolCallId = '1', title = 'Read\na.txt', status = 'completed' }
    call.content = { { type = 'content', content = { type = 'text', text = '```\nx' } } }
    local rendered = render.tool(call)
    t.equal(rendered.lines, { 'Read a.txt  2 lines', '````', '```', 'x', '````' })
    t.equal(rendered.fold, true)
    call.status = 'failed'
    t.equal(render.tool(call).fold, false)
  end)

  t.test('in a narrow window, how many lines there are gives way to what ran', function()
    local content = { { type = 'content', content = { type = 'text', text = 'one\ntwo' } } }
    local call = { toolCallId = '1', title = 'Run `make serve`', kind = 'execute', status = 'completed', content = content }
    call._meta = { ['tandem/job'] = 1 }
    local rendered = render.tool(call, nil, 31)
    t.equal(rendered.lines[1], 'Run `make s…  in the background')
    t.equal(rendered.width, #'Run `make serve`  in the background  2 lines')
  end)

  t.test('a command that runs shows the last lines of its output, unfolded', function()
    local lines = vim.fn.range(1, 30)
    local content = { { type = 'content', content = { type = 'text', text = table.concat(lines, '\n') } } }
    local call = { toolCallId = '1', title = 'make', kind = 'execute', status = 'in_progress', content = content }
    local rendered = render.tool(call)
    t.equal(rendered.fold, false)
    t.equal(vim.list_slice(rendered.lines, 2, 4), { '```', '…', '23' })
    t.equal(rendered.lines[#rendered.lines - 1], '30')
    call.status = 'completed'
    t.equal({ render.tool(call).fold, #render.tool(call).lines }, { true, 33 })
    call.status = 'failed'
    t.equal({ render.tool(call).fold, #render.tool(call).lines }, { 13, 33 }, 'the last lines of a long output stay')
  end)

  t.test('a question shows the keys of its answers', function()
    local rendered = render.tool({ toolCallId = '1', title = 'Edit a' }, {
      { optionId = 'n', name = 'Reject', kind = 'reject_once' },
      { optionId = 'y', name = 'Allow', kind = 'allow_once' },
    })
    t.equal(rendered.lines, { 'Edit a', 'Allow?', ' gr   Reject', ' ga   Allow' })
    local trial = render.tool({ toolCallId = '1', title = 'Apply the changes' }, {
      { optionId = 'n', name = 'Discard', kind = 'reject_once' },
      { optionId = 'y', name = 'Apply', kind = 'allow_once' },
    })
    t.equal(trial.lines, { 'Apply the changes', 'Apply?', ' gr   Discard', ' ga   Apply' })
  end)

  t.test('a long diff is capped', function()
    local new = ('x\n'):rep(render.max_diff_lines + 7)
    local content = { { type = 'diff', path = '/a', newText = new } }
    local rendered = render.tool({ toolCallId = '1', title = 'Write a', content = content })
    t.equal(rendered.lines[#rendered.lines - 1], '… 7 more lines')
    t.contains(rendered.lines[1], '+407')
  end)

  t.test('a plan counts what is done', function()
    local rendered = render.plan({
      { content = 'read', status = 'completed' },
      { content = 'write', status = 'pending' },
    })
    t.equal(rendered.lines, { 'Plan  1 of 2 done', '- read', '- write' })
  end)
end
