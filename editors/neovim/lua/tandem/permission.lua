--- Permission requests: one at a time, the safe choice first, never taking the cursor, never blocking the stream. Each
--- waits inside the coroutine in which Neovim runs a request handler.
--- Invariants: every request is answered exactly once, by a choice or by "cancelled"; a key pressed before the request
--- could be read never counts as an answer.
local typed = require('tandem.typed')

local M = {}

---@class tandem.Request
---@field session tandem.Session
---@field call wire.ToolCall
---@field options wire.PermissionOption[] the refusals first
---@field thread thread the request's coroutine
---@field shown_at? number when it was shown, in ms
---@field outcome? wire.RequestPermissionResponse

---@type tandem.Request[] the first one is being asked
local queue = {}

local order = { reject_once = 1, reject_always = 2, allow_once = 3, allow_always = 4 }

--- Refusals first, then the options that allow least.
---@param options wire.PermissionOption[]
---@return wire.PermissionOption[]
function M.sorted(options)
  local ranked = {}
  for index, option in ipairs(vim.deepcopy(options)) do
    ranked[index] = { option = option, rank = order[option.kind] or 5, index = index }
  end
  table.sort(ranked, function(a, b) -- within a kind, in the server's order: the first allows least
    return a.rank < b.rank or (a.rank == b.rank and a.index < b.index)
  end)
  return vim.tbl_map(function(entry)
    return entry.option
  end, ranked)
end

---@param options tandem.PermissionOption[]
---@param id? string
---@return tandem.PermissionOption?
local function by_id(options, id)
  return vim.iter(options):find(function(option)
    return option.optionId == id
  end)
end

local show_next ---@type fun()

---@param request tandem.Request
---@param outcome wire.RequestPermissionResponse
local function answer(request, outcome)
  if request.outcome then
    return
  end
  request.outcome = outcome
  local was_asked = queue[1] == request
  for index, other in ipairs(queue) do
    if other == request then
      table.remove(queue, index)
    end
  end
  request.session:on_answered(request)
  if coroutine.status(request.thread) == 'suspended' then
    assert(coroutine.resume(request.thread))
  end
  if was_asked then
    show_next()
  end
end

---@param request tandem.Request
---@param option wire.PermissionOption
---@param rule? string in place of the one that the option names
local function choose(request, option, rule)
  local meta = rule and { tandem = { rule = rule } } or nil
  answer(request, { outcome = { outcome = 'selected', optionId = option.optionId, _meta = meta } })
end

function show_next()
  local request = queue[1]
  if not request then
    return
  end
  request.session:on_request(request)
  request.shown_at = typed.now()
end

--- The request that is answered now.
---@return tandem.Request?
---@return string? problem why what is being typed is no answer to it
local function asked()
  local request = queue[1]
  if not request then
    return nil, 'Nothing to approve right now'
  elseif typed.is_older_than(request.shown_at) then
    return nil, 'Ignored as a stray key: wait a moment, then answer again'
  end
  return request
end

--- Shows a request and returns the user's decision. Runs in the request's coroutine and suspends it.
---@param session tandem.Session
---@param params wire.RequestPermissionRequest
---@return wire.RequestPermissionResponse
function M.ask(session, params)
  local request = { ---@type tandem.Request
    session = session,
    call = params.toolCall,
    options = M.sorted(params.options),
    thread = assert(coroutine.running(), 'a request handler runs in a coroutine'),
  }
  queue[#queue + 1] = request
  if queue[1] == request then
    show_next()
  end
  while not request.outcome do
    coroutine.yield()
  end
  return request.outcome
end

--- The request that is being asked now.
---@return tandem.Request?
function M.pending()
  return queue[1]
end

--- The answers to choose from if the request is a question from the model.
---@param options tandem.PermissionOption[]
---@return tandem.PermissionOption[]
function M.answers_of(options)
  return vim.tbl_filter(function(option)
    return vim.startswith(option.optionId, 'answer_')
  end, options)
end

--- How a request was answered, in words.
---@param request tandem.Request
---@return string
function M.decision(request)
  local id = request.outcome and request.outcome.outcome.optionId
  local option = by_id(request.options, id)
  if not option then
    return 'Withdrawn'
  elseif #M.answers_of(request.options) > 0 then
    return option.name
  end
  return vim.startswith(option.kind, 'reject') and 'Rejected' or 'Allowed'
end

--- Answers the open request with one of its options.
---@param option tandem.PermissionOption
---@return string? problem why it was not answered
function M.choose(option)
  local request, problem = asked()
  if request and vim.list_contains(request.options, option) then
    return choose(request, option)
  end
  return problem or 'This request does not offer that answer'
end

--- Lets the user choose an answer. Opens only on request, so stray keys cannot answer.
---@param request tandem.Request
---@param answers tandem.PermissionOption[]
local function choose_answer(request, answers)
  vim.ui.select(answers, {
    prompt = request.call.title,
    format_item = function(option)
      return option.name
    end,
  }, function(option)
    vim.cmd.redraw() -- what is said next would have to be confirmed below the list of Neovim's own vim.ui.select()
    if option then
      choose(request, option)
    end
  end)
end

--- Answers the open request with the first option of these kinds; for a question from the model, lets the user choose.
---@param ... string option kinds, the best first
---@return string? problem why it was not answered
function M.answer(...)
  local request, problem = asked()
  local answers = request and M.answers_of(request.options) or {}
  if #answers > 0 and vim.list_contains({ ... }, answers[1].kind) then
    return choose_answer(request, answers)
  end
  for _, kind in ipairs(request and { ... } or {}) do
    for _, option in ipairs(request.options) do
      if option.kind == kind then
        choose(request, option)
        return nil
      end
    end
  end
  return problem or 'This request does not offer that answer'
end

--- The answer of a question, or of a plan, that leaves what is wanted to the next prompt.
---@param options tandem.PermissionOption[]
---@return tandem.PermissionOption?
function M.in_chat(options)
  return by_id(options, 'answer_in_chat') or by_id(options, 'answer_start') and by_id(options, 'reject_once')
end

--- Answers the open question or plan of a session by the prompt that was just sent.
---@param session tandem.Session
function M.answer_in_chat(session)
  local request = asked()
  local option = request and request.session == session and M.in_chat(request.options)
  if request and option then
    choose(request, option)
  end
end

--- The rules that Always answers would add, the narrowest first.
---@return string[]
function M.rules()
  local rules = {} ---@type string[]
  for _, option in ipairs(queue[1] and queue[1].options or {}) do
    local rule = vim.tbl_get(option, '_meta', 'tandem', 'rule')
    if rule and not vim.list_contains(rules, rule) then
      rules[#rules + 1] = rule
    end
  end
  return rules
end

--- Answers the open request and later ones like it.
---@param scope 'turn'|'session'|'project'
---@param rule? string in place of the exact one
---@return string? problem why it was not answered
function M.always(scope, rule)
  local id = ({ turn = 'allow_turn', session = 'allow_always', project = 'allow_always_project' })[scope]
  local request, problem = asked()
  local option = request and by_id(request.options, id)
  if not (request and option) then
    return problem or 'This request does not offer that answer'
  end
  choose(request, option, rule or (scope ~= 'turn' and M.rules()[1] or nil))
end

--- Withdraws all requests of a session: it was cancelled or ended.
---@param session tandem.Session
function M.withdraw(session)
  for index = #queue, 1, -1 do -- from the back, so that none of them becomes the one that is asked
    if queue[index].session == session then
      answer(queue[index], { outcome = { outcome = 'cancelled' } })
    end
  end
end

return M
