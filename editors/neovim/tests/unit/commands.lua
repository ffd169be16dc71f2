-- Messages that have not ended, `:Tandem`, times.
local api = vim.api
local command = require('tandem.command')
local Turns = require('tandem.turns')

---@param t table the harness
---@param use tandem.test.Use
return function(t, use)
  local text_of = use.text_of

  -- unfinished messages

  t.test('what waits is listed by its place, those that join first, until it is removed', function()
    local turns = Turns.new()
    local first, third, joins = turns:add('first', nil, false), turns:add('third', nil, false), turns:add('now', nil, true)
    local second = turns:add('second', nil, false)
    first.state = 'running'
    second.state, second.position, third.state, third.position = 'queued', 1, 'queued', 2
    t.equal(turns:running(), first)
    t.equal(turns:waiting(), { joins, second, third })
    t.equal({ turns:remove(second), turns:remove(second) }, { true, false })
    t.equal(turns:get(third.id), third)
    t.equal(first.id ~= third.id, true)
    t.equal(#turns:drain(), 3)
    t.equal(turns:any(), false)
  end)

  for before, expected in pairs({
    ['/'] = { sigil = '/', query = '' },
    ['/co'] = { sigil = '/', query = 'co' },
    ['see @src/ma'] = { sigil = '@', query = 'src/ma' },
    ['see\n@'] = { sigil = '@', query = '' },
    ['(@#parse'] = { sigil = '@', query = '#parse' },
    ['see @"my no'] = { sigil = '@', query = '"my no' },
    ['see @packages/@scope/f'] = { sigil = '@', query = 'packages/@scope/f' },
    ['@a (@"@scope/my f'] = { sigil = '@', query = '"@scope/my f' },
    ['see @"my notes.md"'] = false,
    ['see /co'] = false,
    ['me@example.com'] = false,
    ['é@x'] = false,
    ['@a b'] = false,
  }) do
    t.test(('the word to complete in %q'):format(before), function()
      t.equal(require('tandem.complete').word(before) or false, expected)
    end)
  end

  -- :Tandem

  t.test('the command line completes subcommands and modes', function()
    t.equal(command.complete('s', 'Tandem s', 8), { 'sessions', 'steer', 'stop' })
    t.equal(vim.tbl_contains(command.complete('', "'<,'>Tandem ", 12), 'ask'), true)
    t.equal(command.complete('p', 'Tandem mode p', 13), { 'plan' })
    t.equal(command.complete('', 'Tandem ask ', 11), {})
  end)

  for line, complaint in pairs({
    ['Tandem frobnicate'] = 'Unknown subcommand "frobnicate". Try: allow, always, ask, back, chat,',
    ['1Tandem stop'] = 'stop takes no range',
    ['Tandem stop now'] = 'stop takes no argument',
    ['Tandem stop'] = 'No turn is running',
    ['Tandem allow'] = 'Nothing to approve right now',
  }) do
    t.test(':' .. line .. ' is answered in words', function()
      use.notified = {}
      vim.cmd(line)
      t.contains(table.concat(use.notified, '\n'), complaint)
    end)
  end

  t.test('a server that cannot be run is named, in the chat and as a message', function()
    use.notified = {}
    vim.g.tandem = { cmd = { '/nonexistent/tandem', 'lsp' } }
    vim.cmd('Tandem ask hello')
    t.contains(table.concat(use.notified, '\n'), 'cannot run `/nonexistent/tandem`')
    local session = require('tandem.chats').current()
    t.contains(text_of(session.chat.buf), 'cannot run `/nonexistent/tandem`')
    t.equal(session.state, 'idle')
    vim.g.tandem = nil
  end)

  -- times

  for case, shown in pairs({
    ['UTC0 2026-11-21T11:33:20Z'] = '2026-11-21 11:33',
    ['IST-5:30 2026-11-21T20:00:00Z'] = '2026-11-22 01:30',
    ['CET-1CEST,M3.5.0,M10.5.0/3 2026-01-15T12:00:00Z'] = '2026-01-15 13:00',
    ['CET-1CEST,M3.5.0,M10.5.0/3 2026-07-15T12:00:00Z'] = '2026-07-15 14:00',
    ['CET-1CEST,M3.5.0,M10.5.0/3 2026-10-25T00:59:00Z'] = '2026-10-25 02:59',
    ['CET-1CEST,M3.5.0,M10.5.0/3 2026-10-25T01:00:00Z'] = '2026-10-25 02:00',
    ['EST5EDT,M3.2.0,M11.1.0 2028-03-01T04:30:00.125Z'] = '2028-02-29 23:30',
    ['UTC0 2000-02-29T00:00:00Z'] = '2000-02-29 00:00',
    ['UTC0 yesterday'] = '',
  }) do
    t.test('the local time of ' .. case, function()
      local zone, stamp = case:match('^(%S+) (.*)$')
      local before = vim.env.TZ
      vim.env.TZ = zone
      local found = require('tandem.clock').local_time(stamp)
      vim.env.TZ = before
      t.equal(found, shown)
    end)
  end

  t.test('the plugin defines one command and maps only <Plug>', function()
    for _, mode in ipairs({ 'n', 'x', 'i' }) do
      for _, map in ipairs(api.nvim_get_keymap(mode)) do
        local ours = (map.desc or ''):find('^tandem') ~= nil
        t.equal(ours and not vim.startswith(map.lhs, '<Plug>(tandem-'), false, map.lhs)
      end
    end
    t.equal(vim.fn.exists(':Tandem'), 2)
  end)
end
