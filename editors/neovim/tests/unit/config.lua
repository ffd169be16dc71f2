-- The configuration, and columns of text.
local config = require('tandem.config')
local position = require('tandem.position')

---@param t table the harness
---@param use tandem.test.Use
return function(t, use)
  -- configuration

  t.test('no configuration is the default configuration', function()
    local resolved, problems = config.resolve(nil)
    t.equal(resolved, config.defaults)
    t.equal(problems, {})
  end)

  t.test('given settings replace the defaults, also deep ones', function()
    local resolved, problems = config.resolve({ chat = { size = 80 }, init_options = { model = 'a/b' } })
    t.equal(problems, {})
    t.equal(resolved.chat, { position = 'right', size = 80, auto_open = true })
    t.equal(resolved.init_options.model, 'a/b')
  end)

  for problem, given in pairs({
    ['.permision is not a setting. Try: chat, cmd, env, icons, init_options, permission, root_markers'] = { permision = 'chat' },
    ['.cmd must be a list of strings that is not empty, not "tandem lsp"'] = { cmd = 'tandem lsp' },
    ['.chat.position must be one of right, left, bottom, top, float, tab, not "up"'] = { chat = { position = 'up' } },
    ['.chat.sise is not a setting. Try: auto_open, position, size'] = { chat = { sise = 3 } },
    ['.icons must be a table, not 3'] = { icons = 3 },
    [' must be a table, not "x"'] = 'x',
  }) do
    t.test('config: ' .. problem, function()
      local resolved, problems = config.resolve(given)
      t.equal(problems, { 'vim.g.tandem' .. problem })
      t.equal(resolved, config.defaults)
    end)
  end

  t.test('setup() takes the same options, beside those that are set already', function()
    local before = vim.g.tandem
    vim.g.tandem = { env = { A = 'b' } }
    require('tandem').setup({ chat = { size = 80 } })
    require('tandem').setup()
    t.equal(vim.g.tandem, { env = { A = 'b' }, chat = { size = 80 } })
    vim.g.tandem = before
  end)

  t.test('checkhealth names a program that is not tandem', function()
    local before = vim.g.tandem
    vim.g.tandem = { cmd = { 'git' } }
    vim.cmd('checkhealth tandem')
    t.contains(use.text_of(0), '/git is another program: git version ')
    vim.cmd('silent! tabonly | silent! only')
    vim.g.tandem = before
  end)

  -- columns

  for name, case in pairs({
    ascii = { 'abc', 3, 3, 3 },
    umlaut = { 'é', 2, 1, 1 },
    emoji = { '😀x', 5, 3, 2 },
    combining = { 'e\u{301}', 3, 2, 2 },
    empty = { '', 0, 0, 0 },
  }) do
    t.test('units: ' .. name, function()
      t.equal(position.units(case[1], 'utf-8'), case[2])
      t.equal(position.units(case[1], 'utf-16'), case[3])
      t.equal(position.units(case[1], 'utf-32'), case[4])
    end)
  end
end
