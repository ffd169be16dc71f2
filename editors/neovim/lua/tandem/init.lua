--- tandem in Neovim. Everything a user, a key map or a status line calls is here; the rest is internal.
local M = {}

--- Sets options, the same as in `vim.g.tandem`. Nothing needs it to be called.
---@param options? table
function M.setup(options)
  vim.g.tandem = vim.tbl_deep_extend('force', vim.g.tandem or {}, options or {})
end

---@return tandem.Session
local function session()
  return require('tandem.session').current()
end

--- Asks for the text on the command line when there is none.
---@param text? string
---@param prompt string
---@param use fun(text: string)
local function with_text(text, prompt, use)
  if text and vim.trim(text) ~= '' then
    return use(vim.trim(text))
  end
  vim.ui.input({ prompt = prompt }, function(input)
    if input and vim.trim(input) ~= '' then
      use(vim.trim(input))
    end
  end)
end

--- The visual selection, when a map calls from visual mode.
---@return tandem.Selection?
local function visual()
  local mode = vim.fn.mode()
  if mode ~= 'v' and mode ~= 'V' and mode ~= '\22' then
    return nil
  end
  local chosen = require('tandem.context').region(vim.fn.getpos('v'), vim.fn.getpos('.'), mode)
  vim.api.nvim_feedkeys(vim.keycode('<Esc>'), 'n', false)
  return chosen
end

--- Asks a question, about the selection if there is one.
---@param question? string asked for when absent
---@param selection? tandem.Selection default: the visual selection
function M.ask(question, selection)
  local current = session()
  selection = selection or visual()
  with_text(question, 'Ask tandem: ', function(text)
    current:prompt(text, selection)
  end)
end

--- Says something to the running turn, which hears it after its current step; without one, asks.
---@param text? string asked for when absent
---@param selection? tandem.Selection default: the visual selection
function M.steer(text, selection)
  local current = session()
  selection = selection or visual()
  with_text(text, 'Say to tandem: ', function(words)
    current:steer(words, selection)
  end)
end

--- Changes the selection in place: what comes is shown there, and made when it is accepted. Without a selection, asks
--- for the file to be changed.
---@param instruction? string asked for when absent
---@param selection? tandem.Selection default: the visual selection, else the whole buffer
function M.edit(instruction, selection)
  local current = session()
  local bufnr = vim.api.nvim_get_current_buf()
  selection = selection or visual()
  local whole = not selection and require('tandem.context').whole(bufnr)
  with_text(instruction, 'Edit with tandem: ', function(text)
    if whole then
      return current:prompt(('Edit %s: %s'):format(whole.name, text), whole)
    end
    require('tandem.inline').start(bufnr, selection, text)
  end)
end

--- Asks for the problems to be fixed that Neovim shows in the selection, or on the line of the cursor.
---@param selection? tandem.Selection
function M.fix(selection)
  local context = require('tandem.context')
  local row = vim.api.nvim_win_get_cursor(0)[1]
  selection = selection or visual() or context.lines(vim.api.nvim_get_current_buf(), row, row)
  local problems = context.problems(selection)
  if #problems == 0 then
    return require('tandem.say')('No problems are shown in ' .. context.label(selection))
  end
  local text = ('Fix these problems in %s:\n%s'):format(context.label(selection), table.concat(problems, '\n'))
  session():prompt(text, selection)
end

--- Asks for an explanation of the selection, or of the file.
---@param selection? tandem.Selection
function M.explain(selection)
  selection = selection or visual() or require('tandem.context').whole(vim.api.nvim_get_current_buf())
  session():prompt('Explain this code.', selection)
end

--- Asks for tests of the selection, or of the file.
---@param selection? tandem.Selection
function M.tests(selection)
  selection = selection or visual() or require('tandem.context').whole(vim.api.nvim_get_current_buf())
  session():prompt('Write tests for this code, in the style of the tests that are there, and run them.', selection)
end

--- Opens the chat of the current workspace and goes there; from there, closes it.
function M.chat()
  local current = session()
  current.chat:transcript()
  require('tandem.window').toggle(current.chat.buf)
  current:open(function(problem)
    if problem then
      require('tandem.say')(problem, vim.log.levels.ERROR)
    end
  end)
end

--- Stops the running turn.
function M.stop()
  session():stop()
end

--- Switches the mode: plan, ask, edit or auto. Without one, asks for it.
---@param mode? string
function M.mode(mode)
  local current = session()
  if mode and mode ~= '' then
    return current:set_mode(mode)
  end
  vim.ui.select(M.modes(), { prompt = 'tandem mode (now ' .. (current.mode or 'ask') .. ')' }, function(choice)
    if choice then
      current:set_mode(choice)
    end
  end)
end

--- The modes the server offers.
---@return string[]
function M.modes()
  local offered = vim.tbl_map(function(mode)
    return mode.id
  end, session().modes)
  return #offered > 0 and offered or { 'plan', 'ask', 'edit', 'auto' }
end

--- Sets an option; without a value, asks for it among those the server offers.
---@param id 'model'|'effort'
---@param value? string
local function set_option(id, value)
  local current = session()
  if value and value ~= '' then
    return current:set_option(id, value)
  end
  current:open(function(problem)
    local option = current.options[id]
    if problem or not option then
      return require('tandem.say')(problem or ('this model offers no ' .. id), vim.log.levels.ERROR)
    end
    vim.ui.select(option.options, {
      prompt = ('tandem %s (now %s)'):format(id, option.currentValue),
      format_item = function(choice)
        return choice.name
      end,
    }, function(choice)
      if choice then
        current:set_option(id, choice.value)
      end
    end)
  end)
end

--- Goes on with another model. Without one, asks for it.
---@param model? string
function M.model(model)
  set_option('model', model)
end

--- How hard the model thinks: default, low, medium or high. Without one, asks for it.
---@param effort? string
function M.effort(effort)
  set_option('effort', effort)
end

--- The values that the server offers for an option of the conversation.
---@param id 'model'|'effort'
---@return string[]
function M.choices(id)
  local option = session().options[id]
  return vim.tbl_map(function(choice)
    return choice.value
  end, option and option.options or {})
end

---@param problem? string
local function complain(problem)
  if problem then
    require('tandem.say')(problem)
  end
end

--- Answers the open permission request.
function M.allow()
  complain(require('tandem.permission').answer('allow_once', 'allow_always'))
end

--- Answers the open permission request, and later ones like it.
---@param rule? string which those are; default: what is offered
---@param scope? 'session'|'project' for how long; default: the session
function M.allow_always(rule, scope)
  complain(require('tandem.permission').always(scope or 'session', rule))
end

--- Answers the pending permission question; without one, rejects a change that was made.
---@param scope? 'hunk'|'file'|'all' default: the hunk under the cursor; given, no question is answered
function M.reject(scope)
  if not scope and require('tandem.permission').pending() then
    return complain(require('tandem.permission').answer('reject_once', 'reject_always'))
  end
  session().review:decide('reject', scope or 'hunk')
end

--- Keeps a change that was made: it is not listed any more.
---@param scope? 'hunk'|'file'|'all' default: the hunk under the cursor
function M.keep(scope)
  session().review:decide('keep', scope or 'hunk')
end

--- Rejects the hunk under the cursor, whatever is being asked.
function M.reject_hunk()
  M.reject('hunk')
end

--- Undoes everything the last turn changed, closed files included, except lines that were edited since.
function M.undo()
  session().review:restore('undo')
end

--- Reapplies what the last undo undid.
function M.redo()
  session().review:restore('redo')
end

--- Shows what turns changed: a quickfix list, and the old text above the new; again: hides it.
function M.review()
  session().review:toggle()
end

--- Goes to the next change to review.
function M.next_hunk()
  session().review:jump(1)
end

--- Goes to the previous change to review.
function M.prev_hunk()
  session().review:jump(-1)
end

--- Begins a new conversation.
function M.new()
  session():reset()
end

--- Asks which earlier conversation of this workspace to go on with.
function M.sessions()
  local current = session()
  current:list(function(kept)
    if #kept == 0 then
      return require('tandem.say')('No other saved conversations in this workspace')
    end
    vim.ui.select(kept, {
      prompt = 'Resume conversation',
      format_item = function(choice)
        return ('%s  %s'):format(require('tandem.clock').local_time(choice.updatedAt), choice.title or choice.sessionId)
      end,
    }, function(choice)
      if choice then
        require('tandem.window').open(current.chat:transcript().buf, false)
        current:load(choice.sessionId)
      end
    end)
  end)
end

--- Opens the log of the language client, which has the server's stderr.
function M.log()
  local path = vim.lsp.log.get_filename and vim.lsp.log.get_filename() or vim.lsp.get_log_path()
  vim.cmd.split(vim.fn.fnameescape(path))
  vim.cmd('normal! G')
end

--- For status lines: the state of the current buffer's conversation, or an empty string.
---@return string
function M.status()
  local current = require('tandem.session').at(vim.api.nvim_get_current_buf())
  return current and ('tandem: ' .. require('tandem.status').describe(current)) or ''
end

return M
