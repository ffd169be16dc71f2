--- What the turns of a session changed, hunk by hunk: marks in the buffers, a quickfix list, keep and reject.
--- The server owns the list of pending changes; this is a copy of its latest answer.
local client = require('tandem.client')
local marks = require('tandem.marks')
local say = require('tandem.say')
local status = require('tandem.status')

local api = vim.api

---@class tandem.Lines
---@field start integer 1-based
---@field count integer

---@class tandem.ReviewedHunk as the server lists it
---@field id integer
---@field old tandem.Lines
---@field new tandem.Lines
---@field oldText string
---@field diff string

---@class tandem.Change a hunk, and where it is
---@field turn integer
---@field path string
---@field created boolean
---@field hunk tandem.ReviewedHunk
---@field mark? integer extmark in the file's buffer, when that is loaded
---@field signs? integer[] and those of its lines

---@class tandem.Review
---@field private session tandem.Session
---@field changes tandem.Change[] by file and line
---@field private paths table<string, true> the files that had changes: what was undone can come back
---@field private open boolean whether the old text is shown
---@field private list? integer id of the quickfix list
---@field private listed? table[] the list's entries
---@field private restores { review: tandem.Review, run: fun(), runs?: true }[] of all chats: the one that runs, and those that wait for it
local Review = { restores = {} }
Review.__index = Review

---@param session tandem.Session
---@return tandem.Review
function Review.new(session)
  return setmetatable({ session = session, changes = {}, paths = {}, open = false }, Review)
end

---@param sessions fun(): tandem.Session[]
function Review.watch(sessions)
  api.nvim_create_autocmd('BufReadPost', {
    desc = 'tandem: mark pending changes in files opened or reloaded later',
    callback = function(event)
      for _, session in ipairs(sessions()) do
        if #session.review:of_buffer(event.buf) > 0 then
          session.review:draw()
          vim.schedule(function()
            session:look_at_changes()
          end)
        end
      end
    end,
  })
  local soon = assert(vim.uv.new_timer())
  api.nvim_create_autocmd({ 'TextChanged', 'InsertLeave' }, {
    desc = 'tandem: what the person undoes is not pending any more, and what they redo is again',
    callback = function(event)
      local path = vim.fs.normalize(event.match)
      -- A list may be long: one after several changes in a row.
      soon:start(
        200,
        0,
        vim.schedule_wrap(function()
          for _, session in ipairs(sessions()) do
            if session.review.paths[path] then
              session:look_at_changes()
            end
          end
        end)
      )
    end,
  })
  api.nvim_create_autocmd({ 'BufWinEnter', 'WinResized' }, {
    desc = 'tandem: wrap the old text for the width its windows have now',
    callback = vim.schedule_wrap(function()
      for _, session in ipairs(sessions()) do
        if session.review.open then
          session:look_at_changes()
        end
      end
    end),
  })
end

---@param bufnr integer
---@return tandem.Change[]
function Review:of_buffer(bufnr)
  local path = vim.fs.normalize(api.nvim_buf_get_name(bufnr))
  return vim.tbl_filter(function(change)
    return vim.fs.normalize(change.path) == path
  end, self.changes)
end

function Review:draw()
  marks.clear(self.changes)
  marks.draw(self.changes, self.open)
  self:fill_list()
end

--- A summary of a hunk: its first new line that is not blank, else the first removed line.
---@param change tandem.Change
---@return string
local function summary(change)
  local lines = vim.split(change.hunk.diff, '\n', { plain = true })
  local function first(pattern)
    return vim.iter(lines):find(function(line)
      return line:find(pattern) ~= nil
    end)
  end
  local line = first('^%+%s*%S') or first('^-') or ''
  return ('+%d -%d  %s'):format(change.hunk.new.count, change.hunk.old.count, vim.trim(line:sub(2)))
end

--- Whether the quickfix list on display is ours.
---@return boolean
function Review:has_list()
  return self.list ~= nil and vim.fn.getqflist({ id = 0 }).id == self.list
end

--- Brings the quickfix list up to date, if there is one.
function Review:fill_list()
  if not self:has_list() then
    return
  end
  local items = vim.tbl_map(function(change)
    return { filename = change.path, lnum = marks.rows(change) + 1, text = summary(change) }
  end, self.changes)
  -- A command that jumps to an entry fails if the list changes while the file is being opened.
  local is_bound = vim.iter(vim.fn.getqflist()):all(function(entry)
    return api.nvim_buf_is_valid(entry.bufnr)
  end)
  if not is_bound or not vim.deep_equal(items, self.listed) then
    self.listed = items
    local at = vim.fn.getqflist({ id = self.list, idx = 0 }).idx -- where the next change is, once this one is settled
    vim.fn.setqflist({}, 'r', { id = self.list, items = items, idx = at })
  end
  if #items == 0 then
    vim.cmd.cclose()
  end
end

--- How many changes are pending, in words; an empty string when there are none.
---@return string
function Review:count()
  local count = #self.changes
  return count == 0 and '' or ('%d change%s'):format(count, count == 1 and '' or 's')
end

---@param result { turns: table[], message?: string, cutFrom?: integer }
function Review:take(result)
  self.session.chat:show_cut(result.cutFrom)
  marks.clear(self.changes)
  self.changes = {}
  for _, turn in ipairs(result.turns) do
    for _, file in ipairs(turn.files) do
      for _, hunk in ipairs(file.hunks) do
        local change = { turn = turn.turn, path = file.path, created = file.created, hunk = hunk }
        table.insert(self.changes, change)
        self.paths[vim.fs.normalize(file.path)] = true
      end
    end
  end
  table.sort(self.changes, function(a, b)
    if a.path ~= b.path then
      return a.path < b.path
    end
    return a.hunk.new.start < b.hunk.new.start
  end)
  self.open = self.open and #self.changes > 0
  self:draw()
  status.changed(self.session)
  status.event('TandemReview', self.session, { changes = #self.changes })
end

--- Forgets everything: the conversation is over.
function Review:forget()
  for index = #self.restores, 1, -1 do
    if self.restores[index].review == self then
      table.remove(self.restores, index)
    end
  end
  self:run_first()
  self.paths = {}
  self:take({ turns = {} })
end

--- Asks the server; one that has ended is started again.
---@param params table
---@param callback fun(result?: table, problem?: string)
function Review:request(params, callback)
  local session = self.session
  if not (session.id or session.lost) then
    say('Nothing has been changed in this chat yet (:Tandem sessions lists earlier ones)')
    return callback(nil)
  end
  session:open(function(problem)
    if problem then
      say(problem, vim.log.levels.WARN)
      return callback(nil, problem)
    end
    params.sessionId = session.id
    client.request(session.connection, '_tandem/review', params, function(err, result)
      if err then
        say(err.message, vim.log.levels.WARN)
        return callback(nil, err.message)
      end
      self:take(result)
      callback(result)
    end)
  end)
end

--- Requests the pending changes.
---@param callback? fun()
function Review:refresh(callback)
  self:request({ action = 'list' }, function(result)
    if result and callback then
      callback()
    end
  end)
end

--- Keeps or rejects changes, and reports the outcome.
---@param action 'keep'|'reject'
---@param selection table
function Review:act(action, selection)
  self:request(vim.tbl_extend('force', { action = action }, selection), function(result)
    if not result then
      return self.session.id and self:refresh()
    end
    client.reload(self.session.root)
    say(result.message)
  end)
end

--- Undoes the last turn that has changes, reapplies what the last undo undid, or restores the state before a turn;
--- reports what was left, and why. One at a time: handling an answer steps through the undo states of a buffer, and the
--- server would apply the next request to one of them.
---@param action 'undo'|'redo'|'restore'
---@param turn? integer
---@param callback? fun()
function Review:restore(action, turn, callback)
  if self.session:is_busy() then
    return
  end
  local waiting, restore = self.restores, { review = self }
  function restore.run()
    self:request({ action = action, turn = turn }, function(result, problem)
      if waiting[1] == restore then
        table.remove(waiting, 1)
      end
      if result then
        self:restored(action, result, callback)
      elseif problem then
        self.session.chat:notice(problem) -- which files, and why: too long for a message
        self:refresh()
      end
      self:run_first()
    end)
  end
  table.insert(waiting, restore)
  self:run_first()
end

---@private
function Review:run_first()
  local first = self.restores[1]
  if first and not first.runs then
    first.runs = true
    first.run()
  end
end

---@private
---@param action 'undo'|'redo'|'restore'
---@param result table
---@param callback? fun()
function Review:restored(action, result, callback)
  client.reload(self.session.root, true)
  say(result.message)
  if action ~= 'restore' then -- which is visible in the chat anyway
    local back = action == 'redo' and '\n:Tandem undo undoes it' or result.canRedo and '\n:Tandem redo reapplies it'
    self.session.chat:notice(result.message .. (back or ''))
  end
  if callback then
    callback()
  end
end

--- The hunk at a row, of a file or of the quickfix list.
---@param bufnr integer
---@param row integer zero-based
---@return tandem.Change?
function Review:current(bufnr, row)
  if vim.bo[bufnr].buftype == 'quickfix' then
    return self:has_list() and self.changes[row + 1] or nil
  end
  return vim.iter(self:of_buffer(bufnr)):find(function(change)
    local first, last = marks.rows(change)
    local above = change.hunk.new.count == 0 and 1 or 0
    return first - above <= row and row < math.max(last, first + 1)
  end)
end

--- Asks before changes of more than one file are rejected.
---@return boolean
function Review:may_reject_all()
  local paths = {} ---@type table<string, true>
  for _, change in ipairs(self.changes) do
    paths[change.path] = true
  end
  local files = vim.tbl_count(paths)
  if files < 2 or #api.nvim_list_uis() == 0 then
    return true
  end
  local message = ('tandem: reject %s in %d files?'):format(self:count(), files)
  return vim.fn.confirm(message, '&Reject\n&Cancel', 2, 'Question') == 1
end

--- Keeps or rejects the hunk under the cursor, its file, or all changes.
---@param action 'keep'|'reject'
---@param scope 'hunk'|'file'|'all'
function Review:decide(action, scope)
  local bufnr, row = api.nvim_get_current_buf(), api.nvim_win_get_cursor(0)[1] - 1
  local here = scope ~= 'all' and self:current(bufnr, row) or nil
  local path = scope == 'file' and (here and here.path or api.nvim_buf_get_name(0)) or nil
  local function act(selection)
    if not selection then
      return say(#self.changes == 0 and 'No changes to review' or ('No change to %s here; :Tandem review lists them'):format(action))
    end
    self:act(action, selection)
  end
  if scope ~= 'hunk' then
    return self:refresh(function()
      if scope == 'file' or action == 'keep' or self:may_reject_all() then
        local is_there = vim.iter(self.changes):any(function(change)
          return not path or change.path == path
        end)
        act(is_there and { path = path })
      end
    end)
  end
  -- The list may not be there yet, right after a turn: the hunk is looked up again when it is.
  local function on_hunk()
    local change = self:current(bufnr, row)
    act(change and { turn = change.turn, path = change.path, hunk = change.hunk.id })
  end
  if here then
    return on_hunk()
  end
  self:refresh(on_hunk)
end

--- Toggles the review: the old text in the buffers and a quickfix list.
function Review:toggle()
  self:refresh(function()
    if #self.changes == 0 then
      return say('No changes to review')
    end
    self.open = not self.open
    if self.open then
      vim.fn.setqflist({}, ' ', { title = 'tandem changes' })
      self.list, self.listed = vim.fn.getqflist({ id = 0 }).id, nil
      self:draw()
      local win = api.nvim_get_current_win()
      vim.cmd('botright copen ' .. math.min(#self.changes, 10))
      vim.b.tandem_root = self.session.root -- for the commands that are given in the list
      -- From the chat, one goes to a change in the list: Vim would split or take its window.
      if vim.bo[api.nvim_win_get_buf(win)].buftype == '' then
        api.nvim_set_current_win(win)
      end
    else
      self:draw()
      if self:has_list() then
        vim.cmd.cclose()
      end
    end
  end)
end

--- Goes to the next or previous hunk; after the last one of a file, in the next file.
---@param step 1|-1
function Review:jump(step)
  if #self.changes > 0 then
    return self:go(step)
  end
  -- The list may not be there yet, right after a turn.
  self:refresh(function()
    if #self.changes == 0 then
      return say('No changes to review')
    end
    self:go(step)
  end)
end

---@private
---@param step 1|-1
function Review:go(step)
  local path, row = vim.fs.normalize(api.nvim_buf_get_name(0)), api.nvim_win_get_cursor(0)[1] - 1
  local function is_after(change)
    local there = vim.fs.normalize(change.path)
    return there > path or there == path and marks.rows(change) > row
  end
  local function is_before(change)
    local there = vim.fs.normalize(change.path)
    return there < path or there == path and marks.rows(change) < row
  end
  local ordered = step == 1 and self.changes or vim.iter(self.changes):rev():totable()
  local target = vim.iter(ordered):find(step == 1 and is_after or is_before) or ordered[1]
  vim.cmd("normal! m'")
  if not require('tandem.jump').edit(target.path) then
    return
  end
  local last = api.nvim_buf_line_count(0)
  api.nvim_win_set_cursor(0, { math.min(marks.rows(target) + 1, last), 0 })
  vim.cmd('normal! zv')
end

return Review
