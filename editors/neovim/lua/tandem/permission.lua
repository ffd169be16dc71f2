--- Permission questions: one at a time, the safe choice first, never while the user types, never blocking the
--- stream. Each waits inside the coroutine in which Neovim runs a request handler.
--- Invariant: every question is answered exactly once, by a choice or by "cancelled".
local config = require('tandem.config')
local is_builtin = require('tandem.builtin')

local api = vim.api
local M = {}

---@class tandem.Question
---@field session tandem.Session
---@field call tandem.ToolCall
---@field options tandem.PermissionOption[] the refusals first
---@field thread thread the request's coroutine
---@field outcome? tandem.Outcome

---@type tandem.Question[] the first one is being asked
local queue = {}

local order = { reject_once = 1, reject_always = 2, allow_once = 3, allow_always = 4 }

--- The refusals first, then what allows least.
---@param options tandem.PermissionOption[]
---@return tandem.PermissionOption[]
function M.sorted(options)
  local ranked = {}
  for index, option in ipairs(vim.deepcopy(options)) do
    ranked[index] = { option = option, rank = order[option.kind] or 5, index = index }
  end
  table.sort(ranked, function(a, b) -- of the same kind, what the server named first comes first: it allows less
    return a.rank < b.rank or (a.rank == b.rank and a.index < b.index)
  end)
  return vim.tbl_map(function(entry)
    return entry.option
  end, ranked)
end

local show_next ---@type fun()

---@param question tandem.Question
---@param outcome tandem.Outcome
local function answer(question, outcome)
  if question.outcome then
    return
  end
  question.outcome = outcome
  local was_asked = queue[1] == question
  for index, other in ipairs(queue) do
    if other == question then
      table.remove(queue, index)
    end
  end
  question.session:on_answered(question)
  if coroutine.status(question.thread) == 'suspended' then
    assert(coroutine.resume(question.thread))
  end
  if was_asked then
    show_next()
  end
end

---@param question tandem.Question
---@param option tandem.PermissionOption
---@param rule? string in place of the one that the option names
local function choose(question, option, rule)
  local meta = rule and { tandem = { rule = rule } } or nil
  answer(question, { outcome = { outcome = 'selected', optionId = option.optionId, _meta = meta } })
end

--- Opens the picker, as soon as the user is in normal mode: a key meant for the text is no answer.
---@param question tandem.Question
local function pick(question)
  local mode = api.nvim_get_mode().mode
  if mode ~= 'n' then
    api.nvim_create_autocmd('ModeChanged', {
      pattern = '*:n',
      once = true,
      desc = 'tandem: ask for permission when the user stopped typing',
      callback = vim.schedule_wrap(function()
        if queue[1] == question then
          pick(question)
        end
      end),
    })
    return
  end
  vim.ui.select(question.options, {
    prompt = 'tandem: ' .. (question.call.title or 'run a tool') .. '?',
    kind = 'tandem_permission',
    format_item = function(option)
      return option.name
    end,
  }, function(option)
    if option then
      choose(question, option)
    end
  end)
end

function show_next()
  local question = queue[1]
  if not question then
    return
  end
  question.session:on_question(question)
  local how = config.get().permission
  -- Neovim's own vim.ui.select is a blocking prompt on the command line: nothing arrives while it is open.
  if how == 'select' or (how == 'auto' and not is_builtin(vim.ui.select)) then
    pick(question)
  end
end

--- Asks, and answers when the user did. Runs in the coroutine of the request and suspends it.
---@param session tandem.Session
---@param params tandem.PermissionParams
---@return tandem.Outcome
function M.ask(session, params)
  local question = { ---@type tandem.Question
    session = session,
    call = params.toolCall,
    options = M.sorted(params.options),
    thread = assert(coroutine.running(), 'a request handler runs in a coroutine'),
  }
  queue[#queue + 1] = question
  if queue[1] == question then
    show_next()
  end
  while not question.outcome do
    coroutine.yield()
  end
  return question.outcome
end

--- The question that is being asked now.
---@return tandem.Question?
function M.pending()
  return queue[1]
end

--- Answers the question that is being asked with the first option of the kinds.
---@param ... string option kinds, the best first
---@return boolean answered
function M.answer(...)
  local question = queue[1]
  for _, kind in ipairs({ ... }) do
    for _, option in ipairs(question and question.options or {}) do
      if option.kind == kind then
        choose(question, option)
        return true
      end
    end
  end
  return false
end

--- The rule that an answer for later questions, too, would add.
---@return string?
function M.rule()
  local options = queue[1] and queue[1].options or {}
  return vim.iter(options):map(function(option)
    return vim.tbl_get(option, '_meta', 'tandem', 'rule')
  end):next()
end

--- Answers the question that is being asked, and later ones like it.
---@param scope 'session'|'project'
---@param rule? string in place of the one that is offered
---@return boolean answered
function M.always(scope, rule)
  local id = scope == 'project' and 'allow_always_project' or 'allow_always'
  local question = queue[1]
  local option = vim.iter(question and question.options or {}):find(function(option)
    return option.optionId == id
  end)
  if option then
    choose(question, option, rule)
  end
  return option ~= nil
end

--- Withdraws all questions of a session: it was cancelled or ended.
---@param session tandem.Session
function M.withdraw(session)
  for index = #queue, 1, -1 do -- from the back, so that none of them becomes the one that is asked
    if queue[index].session == session then
      answer(queue[index], { outcome = { outcome = 'cancelled' } })
    end
  end
end

return M
