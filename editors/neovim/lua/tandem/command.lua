--- `:Tandem`: its subcommands, their arguments and their completion.
local M = {}

---@class tandem.Subcommand
---@field run fun(rest: string, selection?: tandem.Selection)
---@field complete? fun(): string[] the choices for a single word
---@field speaks? boolean its argument is said to tandem
---@field range? boolean takes a range
---@field argument? boolean takes an argument

---@param message string
local function complain(message)
  require('tandem.say')(message, vim.log.levels.ERROR)
end

local scopes = { 'hunk', 'file', 'all' }

--- The scopes of `keep` and `reject`.
---@param rest string
---@param use fun(scope?: 'hunk'|'file'|'all')
local function with_scope(rest, use)
  local scope = vim.trim(rest)
  if scope ~= '' and not vim.list_contains(scopes, scope) then
    return complain(('Unknown scope %q. Try: %s'):format(scope, table.concat(scopes, ', ')))
  end
  use(scope ~= '' and scope or nil)
end

---@type table<string, tandem.Subcommand>
local subcommands = {
  always = {
    argument = true,
    complete = function()
      local rules = require('tandem.permission').rules()
      return #rules > 0 and vim.list_extend(rules, { 'project' }) or {}
    end,
    run = function(rest)
      local rule = vim.trim(rest)
      local shorter = (' ' .. rule):match('^(.-)%s+project$')
      rule = vim.trim(shorter or rule)
      require('tandem').allow_always(rule ~= '' and rule or nil, shorter and 'project' or 'session')
    end,
  },
  health = {
    run = function()
      vim.cmd.checkhealth('tandem')
    end,
  },
}

for _, name in ipairs({ 'ask', 'steer', 'edit', 'comment' }) do
  subcommands[name] = {
    range = true,
    argument = true,
    speaks = name ~= 'comment',
    run = function(rest, selection)
      require('tandem')[name](rest, selection)
    end,
  }
end

for _, name in ipairs({ 'keep', 'reject' }) do
  subcommands[name] = {
    argument = true,
    complete = function()
      return scopes
    end,
    run = function(rest)
      with_scope(rest, require('tandem')[name])
    end,
  }
end

for _, name in ipairs({ 'fix', 'explain', 'tests' }) do
  subcommands[name] = {
    range = true,
    run = function(_, selection)
      require('tandem')[name](selection)
    end,
  }
end

for _, name in ipairs({ 'mode', 'model', 'effort' }) do
  subcommands[name] = {
    argument = true,
    complete = function()
      return name == 'mode' and require('tandem').modes() or require('tandem').choices(name)
    end,
    run = function(rest)
      require('tandem')[name](rest)
    end,
  }
end

local plain =
  { 'chat', 'jobs', 'stop', 'allow', 'new', 'chats', 'close', 'comments', 'back', 'regenerate', 'sessions', 'log', 'undo', 'redo', 'review' }
for _, name in ipairs(plain) do
  subcommands[name] = {
    run = function()
      require('tandem')[name]()
    end,
  }
end

---@return string[]
local function names()
  local sorted = vim.tbl_keys(subcommands)
  table.sort(sorted)
  return sorted
end

--- Runs `:[range]Tandem {args}`.
---@param options vim.api.keyset.create_user_command.command_args
function M.run(options)
  local name, rest = options.args:match('^%s*(%S*)%s*(.*)$')
  name = name == '' and 'chat' or name
  local subcommand = subcommands[name]
  if not subcommand then
    return complain(('Unknown subcommand %q. Try: %s'):format(name, table.concat(names(), ', ')))
  elseif options.range > 0 and not subcommand.range then
    return complain(('%s takes no range'):format(name))
  elseif rest ~= '' and not subcommand.argument then
    return complain(('%s takes no argument'):format(name))
  end
  local selection = options.range > 0 and require('tandem.context').range(options.line1, options.line2) or nil
  subcommand.run(rest, selection)
end

--- Completes the command line up to the cursor.
---@param lead string the word being completed
---@param line string
---@param cursor integer bytes before the cursor
---@return string[]
function M.complete(lead, line, cursor)
  local before = line:sub(1, cursor):match('Tandem%s+(.*)$') or ''
  local name, rest = before:match('^(%S+)%s+(.*)$')
  local subcommand = subcommands[name]
  if subcommand and subcommand.speaks then
    return require('tandem.complete').on_command_line(require('tandem.chats').current(), rest)
  end
  local choices = {} ---@type string[]
  if not name then
    choices = names()
  elseif subcommand and subcommand.complete and not rest:find('%s') then
    choices = subcommand.complete()
  end
  return vim.tbl_filter(function(choice)
    return vim.startswith(choice, lead)
  end, choices)
end

return M
