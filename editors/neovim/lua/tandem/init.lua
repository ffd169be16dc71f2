--- tandem in Neovim. Everything a user, a key map or a status line calls is here; the rest is internal.
local M = {}

--- Sets options, the same as in `vim.g.tandem`. Calling it is optional.
---@param options? table
function M.setup(options)
  vim.g.tandem = vim.tbl_deep_extend('force', vim.g.tandem or {}, options or {})
end

---@return tandem.Session
local function session()
  return require('tandem.chats').current()
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
    vim.cmd.echo("''") -- Neovim's own leaves what was typed in the message line
    if input and vim.trim(input) ~= '' then
      use(vim.trim(input))
    end
  end)
end

--- The visual selection, when a map calls from visual mode; ends that mode. An `<Esc>` that is only queued would be read
--- by what comes next: Neovim's own vim.ui.input().
---@return tandem.Selection?
local function visual()
  local mode = vim.fn.mode()
  if mode ~= 'v' and mode ~= 'V' and mode ~= '\22' then
    return nil
  end
  local chosen = require('tandem.context').region(vim.fn.getpos('v'), vim.fn.getpos('.'), mode)
  vim.cmd.normal({ vim.keycode('<Esc>'), bang = true })
  return chosen
end

--- Sends a message, about the selection if there is one.
---@param how 'prompt'|'steer'
---@param prompt string
---@param text? string asked for when absent
---@param selection? tandem.Selection default: the visual selection
local function send(how, prompt, text, selection)
  local current = session()
  selection = selection or visual()
  with_text(text, prompt, function(words)
    current[how](current, words, selection)
  end)
end

--- Sends a prompt, about the selection if there is one.
---@param prompt? string asked for when absent
---@param selection? tandem.Selection default: the visual selection
function M.ask(prompt, selection)
  send('prompt', 'Ask tandem: ', prompt, selection)
end

--- Adds a message to the running turn, which reads it after its current step; without a turn, asks.
---@param text? string asked for when absent
---@param selection? tandem.Selection default: the visual selection
function M.steer(text, selection)
  send('steer', 'Add to the running turn: ', text, selection)
end

--- Edits the selection in place: the change is shown there, and made when it is accepted. Without a selection, asks the
--- model to edit the file.
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

--- Inserts what inline completion suggests (Neovim 0.12), or its first word or line.
---@param part? 'word'|'line'|'all'
---@return boolean accepted false where nothing is suggested, so that a map can do something else
function M.accept(part)
  return require('tandem.suggest').accept(part)
end

--- Asks the model to fix the problems that Neovim shows in the selection, or on the cursor line.
---@param selection? tandem.Selection
function M.fix(selection)
  local context = require('tandem.context')
  local row = vim.api.nvim_win_get_cursor(0)[1]
  selection = selection or visual() or context.lines(vim.api.nvim_get_current_buf(), row, row)
  local problems = context.problems(selection)
  if #problems == 0 then
    return require('tandem.say')('No diagnostics in ' .. context.label(selection))
  end
  local text = ('Fix these diagnostics in %s:\n%s'):format(context.label(selection), table.concat(problems, '\n'))
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
  session():prompt('Write tests for this code, in the style of the existing tests, and run them.', selection)
end

--- Adds a comment to the selection or the line, to be sent with others.
---@param text? string asked for when absent
---@param selection? tandem.Selection default: the visual selection, else the line of the cursor
function M.comment(text, selection)
  local root, bufnr = session().root, vim.api.nvim_get_current_buf()
  selection = selection or visual()
  local row = vim.api.nvim_win_get_cursor(0)[1]
  with_text(text, 'Comment: ', function(words)
    local first, last = selection and selection.first or row, selection and selection.last or row
    require('tandem.comments').add(root, bufnr, first, last, words)
  end)
end

--- Sends the comments that were collected, as one message.
function M.comments()
  require('tandem.comments').send(session())
end

--- Starts the server and the session of a chat before its first prompt, for what they offer: modes, models, commands.
---@param chosen tandem.Session
local function prepare(chosen)
  chosen:open(function(problem)
    if problem then
      require('tandem.say')(problem, vim.log.levels.ERROR)
    end
  end)
end

--- Opens the chat of the current workspace and goes there; from there, closes it.
function M.chat()
  local current = session()
  current.chat:transcript()
  require('tandem.window').toggle(current.chat.buf)
  prepare(current)
end

--- Shows the background commands of the session and goes there; from there, closes them.
function M.jobs()
  require('tandem.jobs_window').toggle(session())
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
  vim.ui.select(M.modes(), {
    prompt = 'tandem mode (now ' .. (current:mode_name() or 'ask') .. ')',
    format_item = function(choice)
      return current:mode_name(choice)
    end,
  }, function(choice)
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
      local lack = current.lacks_model and 'no model configured' or ('this model does not support ' .. id)
      return require('tandem.say')(problem or lack, vim.log.levels.ERROR)
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

--- Switches to another model. Without one, asks for it.
---@param model? string
function M.model(model)
  set_option('model', model)
end

--- Sets the reasoning effort: default, low, medium or high. Without one, asks for it.
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

---@return tandem.Review
local function review()
  return require('tandem.chats').of_changes().review
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

--- Answers the open permission request and those that follow in its turn.
function M.allow_turn()
  complain(require('tandem.permission').always('turn'))
end

--- Answers the open permission request and later ones like it.
---@param rule? string which those are; default: what is offered
---@param scope? 'session'|'project' for how long; default: the session
function M.allow_always(rule, scope)
  complain(require('tandem.permission').always(scope or 'session', rule))
end

--- Rejects the open permission request; without one, rejects a change under review.
---@param scope? 'hunk'|'file'|'all' default: the hunk under the cursor; given, no request is answered
function M.reject(scope)
  if not scope and require('tandem.permission').pending() then
    return complain(require('tandem.permission').answer('reject_once', 'reject_always'))
  end
  review():decide('reject', scope or 'hunk')
end

--- Keeps a change under review, which removes it from the list.
---@param scope? 'hunk'|'file'|'all' default: the hunk under the cursor
function M.keep(scope)
  review():decide('keep', scope or 'hunk')
end

--- Rejects the hunk under the cursor, even if a permission request is open.
function M.reject_hunk()
  M.reject('hunk')
end

--- Undoes everything the last turn changed, closed files included, except lines that were edited since.
function M.undo()
  review():restore('undo')
end

--- Redoes the last undo.
function M.redo()
  review():restore('redo')
end

--- Shows what turns changed: a quickfix list, and the old text above the new; again: hides it.
function M.review()
  review():toggle()
end

--- Goes to the next change to review.
function M.next_hunk()
  review():jump(1)
end

--- Goes to the previous change to review.
function M.prev_hunk()
  review():jump(-1)
end

--- Shows a chat, as the current one of its workspace.
---@param chosen tandem.Session
---@param focus? boolean whether the cursor goes there, too
local function show_chat(chosen, focus)
  require('tandem.chats').select(chosen)
  chosen.chat:transcript()
  require('tandem.window').open(chosen.chat.buf, focus or vim.bo.filetype == 'tandem')
end

--- Starts another chat, goes there and moves the unsent input to it; the previous one continues. An unused chat is reused.
function M.new()
  local current = session()
  if current.began or current.state ~= 'idle' then
    local text = current.chat:transcript():input_text()
    current.chat:transcript():set_input('')
    current = require('tandem.chats').create(current.root)
    current.chat:transcript():set_input(text)
  end
  show_chat(current, true)
  prepare(current)
end

--- Starts a chat that carries out the plan in a file, as it is in its buffer.
---@param path string
---@param root? string the workspace; default: that of the current buffer
function M.start_plan(path, root)
  local is_loaded = vim.fn.bufloaded(path) == 1
  local lines = is_loaded and vim.api.nvim_buf_get_lines(vim.fn.bufadd(path), 0, -1, false) or vim.fn.readfile(path)
  local created = require('tandem.chats').create(root or session().root)
  show_chat(created)
  created:prompt('Carry out this plan:\n\n' .. table.concat(lines, '\n'))
end

--- Switches to another chat of the workspace; starts one if there is only one.
---@param step 1|-1
local function step_chat(step)
  local current = session()
  local there = require('tandem.chats').beside(current, step)
  if there == current then
    return require('tandem.say')('No other chat (:Tandem new starts one)')
  end
  show_chat(there)
end

--- Shows the next chat of the workspace.
function M.next_chat()
  step_chat(1)
end

--- Shows the previous chat of the workspace.
function M.prev_chat()
  step_chat(-1)
end

--- Asks which of the open chats of the workspace to show.
function M.chats()
  local chats = require('tandem.chats')
  vim.ui.select(chats.of_root(session().root), {
    prompt = 'Chat',
    format_item = function(other)
      local prompt = other.chat:prompt_at()
      local first = prompt and vim.split(prompt.text, '\n')[1] or '(no prompt yet)'
      return ('%d  %s  %s'):format(chats.number(other), first, require('tandem.status').describe(other))
    end,
  }, function(choice)
    if choice then
      show_chat(choice)
    end
  end)
end

--- Ends the current chat, which stays among the saved conversations; the one before is shown then.
function M.close()
  local chats = require('tandem.chats')
  local current = session()
  if current:is_busy() then
    return
  end
  local others = #chats.of_root(current.root) > 1
  current:leave()
  if others then
    local was_shown = require('tandem.window').find(current.chat.buf)
    chats.remove(current)
    if was_shown then
      show_chat(chats.get(current.root))
    end
    current.chat:delete()
  end
end

--- The prompt under the cursor, in the chat; elsewhere the last one.
---@return tandem.Session, tandem.Prompt?
local function prompt_here()
  local current = session()
  local in_chat = vim.api.nvim_get_current_buf() == current.chat.buf
  return current, current.chat:prompt_at(in_chat and vim.api.nvim_win_get_cursor(0)[1] - 1 or nil)
end

--- Rewinds files and conversation to just before a prompt, and puts it into the input to be edited: in the chat the one
--- under the cursor, else the last one.
function M.back()
  local current, prompt = prompt_here()
  current:back_to(prompt, function(prompt)
    current.chat.input:give_back(prompt.text, prompt.selection)
    show_chat(current)
    current.chat:transcript():follow()
  end)
end

--- Rewinds to just before a prompt and sends it again.
function M.regenerate()
  local current, prompt = prompt_here()
  current:back_to(prompt, function(prompt)
    current:prompt(prompt.text, prompt.selection)
  end)
end

--- Shows and continues a saved conversation.
---@param id string
---@param turn? integer where it is scrolled to
function M.resume(id, turn)
  local open = require('tandem.chats').by_id(id)
  if open then
    show_chat(open)
    return open.chat:show_turn(turn)
  end
  local current = session()
  require('tandem.window').open(current.chat:transcript().buf, false)
  current:load(id, function()
    current.chat:show_turn(turn)
  end)
end

--- Lets the user pick an earlier conversation of this workspace to resume.
function M.sessions()
  local current = session()
  if current.state ~= 'idle' and current:is_busy() then
    return
  end
  current:list(function(kept)
    if #kept == 0 then
      return require('tandem.say')('No other saved sessions in this workspace')
    end
    vim.ui.select(kept, {
      prompt = 'Resume session',
      format_item = function(choice)
        return ('%s  %s'):format(require('tandem.clock').local_time(choice.updatedAt), choice.title or choice.sessionId)
      end,
    }, function(choice)
      vim.cmd.redraw() -- what is said next would have to be confirmed below the list of Neovim's own vim.ui.select()
      if choice then
        M.resume(choice.sessionId)
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
---@param width? integer cells that it may take: the state and as much of the rest as fits
---@return string
function M.status(width)
  local current = require('tandem.chats').at(vim.api.nvim_get_current_buf())
  return current and 'tandem: ' .. require('tandem.status').describe(current, width and width - #'tandem: ') or ''
end

return M
