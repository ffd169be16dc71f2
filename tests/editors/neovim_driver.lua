--- What the tests of the Neovim plugin share: projects to work in, the chat of the current session, waiting for its turns.
local M = {}

local api = vim.api

local source = {
  'fn greet(name: &str) {',
  '    println!("hello {name}");',
  '}',
  '',
  'fn main() {',
  '    greet("wörld 😀");',
  '}',
}

---@param buf integer
---@return string
function M.text_of(buf)
  return table.concat(api.nvim_buf_get_lines(buf, 0, -1, false), '\n')
end

--- A tool call that replaces a text in main.rs.
---@param id string
---@param old string
---@param new string
function M.edit_call(id, old, new)
  local arguments = { path = 'main.rs', edits = { { old_text = old, new_text = new } } }
  return { call = { id = id, name = 'edit_file', arguments = arguments }, fragments = 6 }
end

--- The current session.
function M.session()
  return require('tandem.chats').current()
end

--- The text of its chat.
---@return string
function M.chat()
  return M.text_of(M.session().chat.buf)
end

---@class tandem.test.Driver
---@field project fun(name: string): integer, string
---@field wait_idle fun()
---@field wait_request fun(): tandem.Request
---@field wait_chat fun(text: string)
---@field edit_mode fun()
---@field notified string[] every message of the plugin
---@field forget_messages fun()
---@field sent_text fun(request: table): string

--- The driver of a test run with its own home directory.
---@param t table the harness
---@param home string
---@return tandem.test.Driver
function M.new(t, home)
  local driver = setmetatable({ notified = {} }, { __index = M })
  vim.notify = function(message)
    table.insert(driver.notified, message)
  end

  function driver.forget_messages()
    while #driver.notified > 0 do
      table.remove(driver.notified)
    end
  end

  function t.recover()
    local sessions = require('tandem.chats').all()
    for _, session in ipairs(sessions) do
      if session.state ~= 'idle' then
        session:stop()
      end
    end
    vim.wait(5000, function()
      return not require('tandem.permission').pending() and vim.iter(sessions):all(function(session)
        return session.state == 'idle'
      end)
    end, 5)
  end

  --- A project with one file, which is open and current.
  ---@param name string
  ---@return integer buf, string folder
  function driver.project(name)
    local folder = vim.fs.normalize(vim.uv.fs_realpath(home)) .. '/' .. name
    vim.fn.mkdir(folder .. '/.git', 'p')
    vim.fn.writefile(source, folder .. '/main.rs')
    vim.cmd('botright new')
    vim.cmd('silent! only')
    vim.cmd.edit(folder .. '/main.rs')
    return api.nvim_get_current_buf(), folder
  end

  function driver.wait_idle()
    t.wait('the end of the turn', function()
      return M.session().state == 'idle'
    end)
  end

  --- Waits for a permission request that accepts answers: keys typed for an earlier test no longer count.
  function driver.wait_request()
    return t.wait('a permission request', function()
      local question = require('tandem.permission').pending()
      return question and not require('tandem.typed').is_older_than(question.shown_at) and question
    end)
  end

  --- Waits until the chat contains a text.
  function driver.wait_chat(text)
    t.wait(('%q in the chat'):format(text), function()
      return M.session().chat.buf and M.chat():find(text, 1, true)
    end)
  end

  --- From here on, edits require no permission.
  function driver.edit_mode()
    vim.cmd('Tandem mode edit')
    t.wait('the mode', function()
      return M.session().mode == 'edit'
    end)
  end

  return driver
end

return M
