-- The help, compared with the plugin.
local api = vim.api
local command = require('tandem.command')
local config = require('tandem.config')

---@param t table the harness
---@param use tandem.test.Use
return function(t, use)
  -- help

  local help_file = use.plugin .. '/doc/tandem.txt'
  local help = table.concat(vim.fn.readfile(help_file), '\n')

  ---@return string tags as :helptags makes them; fails if one occurs twice
  local function help_tags()
    local doc = vim.fn.tempname()
    vim.fn.mkdir(doc, 'p')
    assert(vim.uv.fs_copyfile(help_file, doc .. '/tandem.txt'))
    vim.cmd.helptags(doc)
    return table.concat(vim.fn.readfile(doc .. '/tags'), '\n')
  end

  t.test('the help has every subcommand, setting, event and function under its tag', function()
    local tags = help_tags()
    for _, name in ipairs(command.complete('', 'Tandem ', 7)) do
      t.contains(tags, ':Tandem-' .. name .. '\t')
    end
    for key in pairs(config.defaults) do
      t.contains(tags, 'tandem-config-' .. key .. '\t')
    end
    for name in pairs(require('tandem')) do
      t.contains(tags, ('tandem.%s()\t'):format(name))
    end
    for _, event in ipairs({ 'TurnStart', 'TurnEnd', 'Update', 'Permission', 'Review' }) do
      t.contains(tags, 'Tandem' .. event .. '\t')
    end
    for _, map in ipairs(api.nvim_get_keymap('n')) do
      if vim.startswith(map.lhs, '<Plug>(tandem-') then
        t.contains(tags, map.lhs .. '\t')
      end
    end
  end)

  t.test('the help shows the defaults as they are', function()
    local shown = assert(loadstring('return ' .. help:match('\n    vim%.g%.tandem = (%b{})\n<')))()
    t.equal(shown, config.defaults)
    for group, link in pairs(require('tandem.window').highlights) do
      t.equal(help:match('\n    ' .. group .. ' +(%S+)'), link, group)
    end
  end)

  t.test('the links and the lines of the help are right', function()
    local tags = help_tags()
    for link in help:gmatch('|(:?[Tt]andem[^|%s]*)|') do
      t.contains(tags, link .. '\t')
    end
    for line in vim.gsplit(help, '\n') do
      t.equal(vim.fn.strdisplaywidth(line) <= 80, true, line)
    end
  end)

  t.test('the Lua of the pages compiles', function()
    local count = 0
    local folder = vim.fs.dirname(vim.fs.dirname(vim.fs.normalize(assert(vim.uv.fs_realpath(arg[0])))))
    for page, pattern in pairs({ ['README.md'] = '\n```lua\n(.-)\n```', ['doc/tandem.txt'] = '>lua\n(.-)\n<' }) do
      local text = table.concat(vim.fn.readfile(folder .. '/' .. page), '\n')
      for block in text:gmatch(pattern) do
        count = count + 1
        t.equal((loadstring(block) or loadstring('return ' .. block)) ~= nil, true, block)
      end
    end
    t.equal(count > 5, true, 'only ' .. count .. ' blocks were found')
  end)

  t.test('every chat key is in the help', function()
    local chat = require('tandem.chat').new({ root = vim.fn.tempname(), state = 'idle' })
    chat:transcript()
    local keys = help:match('%*tandem%-chat%-keys%*(.-)\n\n.-\n\n')
    for _, mode in ipairs({ 'n', 'i' }) do
      for _, map in ipairs(api.nvim_buf_get_keymap(chat.buf, mode)) do
        t.contains(keys, (map.lhs:gsub('^<C%-.>$', function(key)
          return '<C-' .. key:sub(4):lower()
        end)))
      end
    end
  end)

  t.test('every key of the background commands is in the help', function()
    local session = { root = vim.fn.tempname() }
    session.jobs = require('tandem.jobs').new(session)
    require('tandem.jobs_window').toggle(session)
    local keys = help:match('%*tandem%-jobs%*(.-)\n\n')
    local maps = api.nvim_buf_get_keymap(0, 'n')
    vim.cmd.close()
    t.equal(#maps > 3, true)
    for _, map in ipairs(maps) do
      t.contains(keys, '\n    ' .. map.lhs .. ' ')
    end
  end)
end
