--- `vim.g.tandem`: read whenever it is used, checked with clear messages, never fatal. An invalid value is replaced by
--- its default, and the error is reported once.
local M = {}

---@class tandem.Config.Chat
---@field position 'right'|'left'|'bottom'|'top'|'float'|'tab' where the chat window opens
---@field size number a share of the editor below 1, else columns or rows
---@field auto_open boolean open the chat window (never entering it) when a prompt is sent

---@class tandem.Config.Icons
---@field pending string
---@field in_progress string
---@field completed string
---@field failed string

---@class tandem.Config
---@field cmd string[] how to start the server
---@field env table<string, string> environment added for the server
---@field init_options table the server's configuration, as in config.toml (kebab-case keys)
---@field root_markers string[] files or folders that mark a workspace root; else the current directory
---@field permission 'auto'|'chat' where permission requests are shown
---@field chat tandem.Config.Chat
---@field icons tandem.Config.Icons one or two cells each, shown in the sign column

---@type tandem.Config
M.defaults = {
  cmd = { 'tandem', 'lsp' },
  env = {},
  init_options = {},
  root_markers = { '.tandem', '.git', '.hg', '.jj' },
  permission = 'auto',
  chat = { position = 'right', size = 0.4, auto_open = true },
  icons = { pending = '○', in_progress = '●', completed = '✓', failed = '✗' },
}

---@param value any
---@return boolean
local function is_string_list(value)
  if not vim.islist(value) then
    return false
  end
  return vim.iter(value):all(function(item)
    return type(item) == 'string' and item ~= ''
  end)
end

---@param ... string
---@return string expectation, fun(value: any): boolean
local function one_of(...)
  local choices = { ... }
  return 'one of ' .. table.concat(choices, ', '), function(value)
    return vim.tbl_contains(choices, value)
  end
end

---@param name string
---@return string expectation, fun(value: any): boolean
local function a(name)
  return 'a ' .. name, function(value)
    return type(value) == name
  end
end

---@return string expectation, fun(value: any): boolean
local function sign()
  return 'a string of one or two cells', function(value)
    return type(value) == 'string' and vim.tbl_contains({ 1, 2 }, vim.fn.strdisplaywidth(value))
  end
end

--- What each key must be. A nested table is checked key by key.
local schema = {
  cmd = {
    'a list of strings that is not empty',
    function(value)
      return is_string_list(value) and #value > 0
    end,
  },
  env = { a('table') },
  init_options = { a('table') },
  root_markers = { 'a list of strings', is_string_list },
  permission = { one_of('auto', 'chat') },
  chat = {
    keys = {
      position = { one_of('right', 'left', 'bottom', 'top', 'float', 'tab') },
      size = {
        'a number above 0',
        function(value)
          return type(value) == 'number' and value > 0
        end,
      },
      auto_open = { a('boolean') },
    },
  },
  icons = {
    keys = {
      pending = { sign() },
      in_progress = { sign() },
      completed = { sign() },
      failed = { sign() },
    },
  },
}

---@param given table
---@param keys table<string, table>
---@param base table the defaults for these keys
---@param path string how the table is written by the user
---@param problems string[]
---@return table
local function check(given, keys, base, path, problems)
  local result = vim.deepcopy(base)
  for key, value in vim.spairs(given) do
    local rule, name = keys[key], path .. '.' .. tostring(key)
    if not rule then
      local known = vim.tbl_keys(keys)
      table.sort(known)
      problems[#problems + 1] = ('%s is not a setting. Try: %s'):format(name, table.concat(known, ', '))
    elseif rule.keys and type(value) == 'table' then
      result[key] = check(value, rule.keys, base[key], name, problems)
    elseif rule.keys then
      problems[#problems + 1] = ('%s must be a table, not %s'):format(name, vim.inspect(value))
    elseif rule[2](value) then
      result[key] = value
    else
      problems[#problems + 1] = ('%s must be %s, not %s'):format(name, rule[1], vim.inspect(value))
    end
  end
  return result
end

--- Validates a configuration. Pure: returns the problems instead of showing them.
---@param given any what the user wrote into `vim.g.tandem`
---@return tandem.Config config complete, with the default wherever the given value is wrong
---@return string[] problems
function M.resolve(given)
  if given == nil then
    return vim.deepcopy(M.defaults), {}
  elseif type(given) ~= 'table' then
    return vim.deepcopy(M.defaults), { 'vim.g.tandem must be a table, not ' .. vim.inspect(given) }
  end
  local problems = {} ---@type string[]
  local config = check(given, schema, M.defaults, 'vim.g.tandem', problems)
  return config, problems
end

---@return tandem.Config
function M.get()
  local config, problems = M.resolve(vim.g.tandem)
  for _, problem in ipairs(problems) do
    vim.notify_once('tandem: ' .. problem, vim.log.levels.WARN)
  end
  return config
end

return M
