--- Messages sent while a turn runs: queued, joined, returned; and the options of a session.
local M = {}

local api = vim.api

--- The tests of this file.
---@param t table the harness
---@param model tandem.test.Model
---@param use tandem.test.Driver
function M.test(t, model, use)
  local session, chat, wait_chat = use.session, use.chat, use.wait_chat

  local function input()
    return session().chat:transcript():input_text()
  end

  local function write(text)
    session().chat:transcript():set_input(text)
  end

  --- The queued messages, as shown above the input.
  local function waiting()
    local namespace = api.nvim_get_namespaces()['tandem.state']
    local mark = api.nvim_buf_get_extmarks(session().chat.buf, namespace, 0, -1, { details = true })[1]
    return vim.tbl_map(function(line)
      return line[1][1] .. (line[2] and line[2][1] or '')
    end, mark and mark[4].virt_lines or {})
  end

  local function wait_waiting(expected)
    t.wait('above the input: ' .. table.concat(expected, ' '), function()
      return vim.deep_equal(waiting(), expected)
    end)
  end

  local function count(words)
    return select(2, chat():gsub(vim.pesc(words), ''))
  end

  t.test('a question during a turn is queued, shown as queued, and sent when the turn ends', function()
    use.project('busy')
    model:script(
      { { text = 'working' }, { gate = 'busy' }, { text = ' done' } },
      { { gate = 'second' }, { text = 'Second answer.' } },
      { { text = 'Third answer.' } }
    )
    vim.cmd('Tandem ask First')
    wait_chat('working')
    vim.cmd('Tandem chat')
    write('Second')
    session().chat.input:submit()
    t.equal(input(), '')
    vim.cmd('1Tandem ask Third')
    wait_waiting({ 'queued  Second', 'queued  Third', '' })
    t.equal(count('Second'), 0)
    model:open('busy')
    model:state('gate:second')
    wait_chat('Second')
    wait_waiting({ 'queued  Third', '' })
    model:open('second')
    wait_chat('Third answer.')
    use.wait_idle()
    wait_waiting({})
    t.contains(chat(), 'working done\n\n## You\nSecond\n\n## tandem\n\nSecond answer.\n\n## You\nThird\n')
    t.equal({ count('Third\n'), count('Third answer.'), count('queued') }, { 1, 1, 0 })
    vim.cmd('Tandem chat')
    t.equal(vim.bo.filetype ~= 'tandem', true, ':Tandem chat closes the chat from inside')
  end)

  t.test('a steering message joins the running turn', function()
    use.project('steer')
    local read = { call = { id = 'c1', name = 'read_file', arguments = { path = 'main.rs' } } }
    local answer = { { gate = 'joined' }, { text = 'All three.' } }
    model:script({ { text = 'I read it.' }, { gate = 'steer' }, read }, answer)
    vim.cmd('Tandem ask Read it')
    wait_chat('I read it.')
    vim.cmd('Tandem steer The second line, too')
    write('And be short')
    session().chat.input:steer()
    wait_waiting({ 'joining  The second line, too', 'joining  And be short', '' })
    t.equal(#vim.fn.getcompletion('Tandem ask @main', 'cmdline'), 1, 'the server has read all that was sent')
    model:open('steer')
    model:state('gate:joined')
    wait_chat('And be short')
    wait_waiting({})
    model:open('joined')
    wait_chat('All three.')
    use.wait_idle()
    local requests = model:state().requests
    t.equal(#requests, 2, 'it is one turn')
    t.contains(use.sent_text(requests[2]), 'The second line, too')
    t.contains(chat(), '## You\nThe second line, too\n\n## tandem\n\n## You\nAnd be short\n\n## tandem\n\nAll three.')
    t.equal(count('And be short'), 1)
  end)

  t.test('a steering message without a running turn is a question', function()
    use.project('alone')
    model:script({ { text = 'Alone.' } })
    vim.cmd('Tandem steer Anyone?')
    use.wait_idle()
    t.contains(chat(), '## You\nAnyone?\n\n## tandem\n\nAlone.')
  end)

  t.test('stopping returns queued messages to the input, a selection as a mention', function()
    use.project('dropped')
    model:script({ { text = 'It begins' }, { hang = true } })
    vim.cmd('Tandem ask First')
    wait_chat('It begins')
    write('A draft')
    vim.cmd('2,3Tandem ask Second')
    vim.cmd('Tandem steer Third')
    vim.cmd('Tandem stop')
    wait_chat('Not sent; moved back to the input: Second')
    wait_chat('Not sent; moved back to the input: Third')
    use.wait_idle()
    wait_waiting({})
    local written = vim.split(input(), '\n\n', { plain = true })
    t.equal(table.remove(written, 1), 'A draft')
    table.sort(written)
    t.equal(written, { 'Second @main.rs#L2-L3', 'Third' })
    t.equal(count('## You\nSecond'), 0)
    model:script({ { text = 'Back again.' } })
    write('And now?')
    session().chat.input:submit()
    use.wait_idle()
    t.contains(chat(), 'Back again.')
  end)

  t.test('messages queued when the server ends return to the input once, and in another chat with what they mention', function()
    local buf, folder = use.project('queued')
    local function kill_while_one_is_queued()
      api.nvim_set_current_win(vim.fn.win_findbuf(buf)[1])
      model:script({ { text = 'It begins' }, { hang = true } })
      vim.cmd('Tandem ask First')
      wait_chat('It begins')
      vim.cmd('2,3Tandem ask Second')
      wait_waiting({ 'queued  Second', '' })
      require('tandem.client').running(folder).rpc.terminate()
      t.wait('the end of the server', function()
        return require('tandem.client').running(folder) == nil
      end)
      use.wait_idle()
      t.equal(input(), 'Second @main.rs#L2-L3')
    end
    kill_while_one_is_queued()
    model:script({ { text = 'Third answer.' } })
    vim.cmd('Tandem ask Third')
    wait_chat('Third answer.')
    use.wait_idle()
    t.equal(input(), 'Second @main.rs#L2-L3')
    local id = session().id
    write('')
    vim.cmd('Tandem new')
    require('tandem').resume(id)
    kill_while_one_is_queued()
    write('')
    vim.cmd('Tandem new')
    require('tandem').resume(id)
    wait_chat('Third answer.')
    t.wait('the queued message', function()
      return input() == 'Second @main.rs#L2-L3'
    end)
  end)

  t.test("what is sent from the chat while the model's question or plan is open is the answer", function()
    use.project('own-answer')
    local arguments = { question = 'Which port?', options = { '80', '8080' } }
    model:script(
      { { call = { id = 'q', name = 'ask_user', arguments = arguments } } },
      { { text = 'Which port, then?' } },
      { { text = 'Then 9000.' } }
    )
    vim.cmd('Tandem ask Set it up')
    use.wait_request()
    write('9000, please')
    session().chat.input:submit()
    wait_chat('Then 9000.')
    use.wait_idle()
    t.contains(chat(), '## You\n9000, please\n\n## tandem')
    t.contains(use.sent_text(model:state().requests[2]), "I'll answer in my next message")
    t.equal({ input(), require('tandem.permission').pending() }, { '' })
    session():set_mode('plan')
    t.wait('the mode', function()
      return session().mode == 'plan'
    end)
    model:script({ { text = 'I would:\n1. Say it.\n2. Test it.' } }, { { text = 'No plan is needed.' } })
    vim.cmd('Tandem ask How?')
    use.wait_request()
    write('Say it twice')
    session().chat.input:submit()
    wait_chat('No plan is needed.')
    use.wait_idle()
    t.contains(chat(), '## You\nSay it twice\n\n## tandem')
    t.equal({ session().mode, input(), require('tandem.permission').pending() }, { 'plan', '' })
  end)

  t.test('slash commands are completed and answered without the model', function()
    use.project('slash')
    model:script({ { text = 'Hello.' } })
    vim.cmd('Tandem ask Hello')
    use.wait_idle()
    t.equal(vim.fn.getcompletion('Tandem ask /com', 'cmdline'), { '/compact' })
    t.equal(vim.fn.getcompletion('Tandem ask look at /com', 'cmdline'), {}, 'at the beginning only')
    vim.cmd('Tandem ask /help')
    use.wait_idle()
    t.contains(chat(), '`/compact`')
    t.equal(#model:state().requests, 1)
  end)

  t.test('mentions of files and definitions are completed and include unsaved text', function()
    local buf = use.project('mention')
    model:script({ { text = 'Hello.' } }, { { text = 'It greets.' } })
    vim.cmd('Tandem ask Hello')
    use.wait_idle()
    t.equal(vim.fn.getcompletion('Tandem ask see @mai', 'cmdline'), { '@main.rs' })
    t.equal(vim.fn.getcompletion('Tandem ask see (@#gree', 'cmdline'), { '(@main.rs#L1-L3' })
    api.nvim_buf_set_lines(buf, 1, 2, false, { '    println!("mentioned {name}");' })
    vim.cmd('Tandem ask see @main.rs#L1-L3')
    use.wait_idle()
    t.contains(use.sent_text(model:state().requests[2]), 'mentioned {name}')
  end)

  t.test('model and effort are completed, selected and sent', function()
    use.project('options')
    model:script({ { text = 'Hello.' } }, { { text = 'Thought through.' } })
    vim.cmd('Tandem ask Hello')
    use.wait_idle()
    t.equal(vim.fn.getcompletion('Tandem effort ', 'cmdline'), { 'default', 'low', 'medium', 'high' })
    local names = vim.fn.getcompletion('Tandem model ', 'cmdline')
    t.equal(names, { session().model })
    vim.cmd('Tandem model ' .. names[1])
    vim.cmd('Tandem effort high')
    t.wait('the effort', function()
      return session().effort == 'high'
    end)
    t.contains(require('tandem').status(), 'high')
    vim.cmd('Tandem ask Think')
    use.wait_idle()
    t.equal(model:state().requests[2].reasoning_effort, 'high')
  end)
end

return M
