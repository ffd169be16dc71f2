--- Inline completion: Neovim (0.12) asks, shows and inserts; this turns it on where the server offers it, and accepts
--- parts of a suggestion.
local api = vim.api
local M = {}

local METHOD = 'textDocument/inlineCompletion'

local namespace = api.nvim_create_namespace('tandem.next_edit')

--- A suggested edit that is not an insertion at the cursor.
---@class tandem.NextEdit
---@field buf integer
---@field tick integer of the buffer
---@field change lsp.TextEdit
---@field encoding string

local next_edit ---@type tandem.NextEdit?

local function hide()
  if next_edit and api.nvim_buf_is_valid(next_edit.buf) then
    api.nvim_buf_clear_namespace(next_edit.buf, namespace, 0, -1)
  end
  next_edit = nil
end

--- The lines that an edit replaces, counted from 0, and the new ones.
---@param change lsp.TextEdit
---@return integer first
---@return integer behind the last
---@return string[] new
local function lines_of(change)
  local first, last = change.range.start, change.range['end']
  local new = vim.split(change.newText:gsub('^\n', ''):gsub('\n$', ''), '\n')
  return first.line, last.character > first.character and last.line + 1 or last.line, new
end

--- Shows an edit of whole lines: the old ones as deleted, the new ones below. Neovim would draw the new over the old.
---@param edit tandem.NextEdit
local function show(edit)
  next_edit = edit
  local first, last, new = lines_of(edit.change)
  require('tandem.window').define_highlights()
  require('tandem.preview').draw(edit.buf, namespace, { row = first, count = last - first, lines = new })
end

--- Removes edits from the answers that Neovim would show.
---@param client vim.lsp.Client
local function take_edits(client)
  local request = client.request
  client.request = function(self, method, params, handler, buf)
    local complete = handler
    if method == METHOD and complete then
      handler = function(err, result, context)
        hide()
        local item = result and (result.items or result)[1]
        if item and not vim.deep_equal(item.range, { start = params.position, ['end'] = params.position }) then
          result = { items = {} }
          if context.version == vim.lsp.util.buf_versions[context.bufnr] and api.nvim_get_mode().mode:find('^i') then
            show({
              buf = context.bufnr,
              tick = vim.b[context.bufnr].changedtick,
              change = { range = item.range, newText = item.insertText },
              encoding = self.offset_encoding,
            })
          end
        end
        complete(err, result, context)
      end
    end
    return request(self, method, params, handler, buf)
  end
end

--- Applies the edit on display.
---@return boolean there is one
local function accept_edit()
  local edit = next_edit
  if not edit or edit.buf ~= api.nvim_get_current_buf() or edit.tick ~= vim.b.changedtick then
    return false
  end
  vim.schedule(function()
    hide()
    vim.lsp.util.apply_text_edits({ edit.change }, edit.buf, edit.encoding)
    local first, _, new = lines_of(edit.change)
    local last = math.min(first + #new, api.nvim_buf_line_count(0))
    api.nvim_win_set_cursor(0, { last, #vim.fn.getline(last) })
  end)
  return true
end

--- Turns it on in the files of a server that has a model for it.
---@param group integer of autocommands
function M.watch(group)
  if not vim.lsp.inline_completion then
    return
  end
  local watched = {} ---@type table<integer, boolean>
  api.nvim_create_autocmd({ 'TextChangedI', 'TextChangedP', 'InsertLeave', 'BufLeave' }, {
    group = group,
    desc = 'tandem: hide a suggested edit once the text has changed',
    callback = hide,
  })
  api.nvim_create_autocmd('LspAttach', {
    group = group,
    desc = 'tandem: turn on inline completion if the server offers it',
    callback = function(event)
      local client = vim.lsp.get_client_by_id(event.data.client_id)
      if client and client.name == 'tandem' and client:supports_method(METHOD) then
        if not watched[client.id] then
          watched[client.id] = true
          take_edits(client)
        end
        vim.lsp.inline_completion.enable(true, { bufnr = event.buf, client_id = client.id })
      end
    end,
  })
end

--- The first part of a text.
---@param text string
---@param part? 'word'|'line'|'all'
---@return string
function M.part(text, part)
  if part == 'word' then
    return vim.fn.matchstr(text, [[^\_s*\%(\k\+\|\%(\k\@!\S\)\+\)\?]])
  elseif part == 'line' then
    return vim.fn.matchstr(text, [[^\n*[^\n]*]])
  end
  return text
end

--- The rest of a suggestion after the text typed since it was made.
---@param text string
---@param typed string
---@return string? rest nil where something else was typed
function M.rest(text, typed)
  return vim.startswith(text, typed) and text:sub(#typed + 1) or nil
end

---@param item vim.lsp.inline_completion.Item
---@return string typed since it was suggested
local function typed_since(item)
  local row, column = unpack(api.nvim_win_get_cursor(0))
  local first_row, first_column = item.range:to_extmark()
  return row - 1 == first_row and api.nvim_get_current_line():sub(first_column + 1, column) or ''
end

--- The rest of a suggestion that was accepted in part. Neovim requests it again only after a pause.
---@class tandem.Left
---@field text string
---@field buf integer
---@field tick integer of the buffer
---@field cursor [integer, integer]

local left ---@type tandem.Left?

--- The rest, if neither the buffer nor the cursor has changed since.
---@return string?
local function left_here()
  local is_here = left
    and left.buf == api.nvim_get_current_buf()
    and left.tick == vim.b.changedtick
    and vim.deep_equal(left.cursor, api.nvim_win_get_cursor(0))
  return is_here and left.text or nil
end

--- Inserts a part of a suggestion and remembers the rest.
---@param text string
---@param part? 'word'|'line'|'all'
local function insert(text, part)
  local inserted = M.part(text, part)
  api.nvim_paste(inserted, false, -1)
  left = {
    text = text:sub(#inserted + 1),
    buf = api.nvim_get_current_buf(),
    tick = vim.b.changedtick,
    cursor = api.nvim_win_get_cursor(0),
  }
  if left.text == '' then
    left = nil
  end
end

--- Inserts the suggestion at the cursor, or its first word or line; or makes the edit that is suggested.
---@param part? 'word'|'line'|'all'
---@return boolean there was a suggestion
function M.accept(part)
  if not vim.lsp.inline_completion then
    return false
  elseif accept_edit() then
    return true
  end
  local accepted = false
  local is_offered = vim.lsp.inline_completion.get({
    on_accept = function(item)
      accepted = true
      local rest = type(item.insert_text) == 'string' and item.range and M.rest(item.insert_text, typed_since(item))
      if not rest then
        return item -- of another server
      end
      insert(rest, part)
    end,
  })
  if not is_offered and not left_here() then
    return false
  end
  -- Runs after what `get` scheduled. If the key was pressed again before that, it accepts the rest.
  vim.schedule(function()
    local rest = not accepted and left_here()
    if rest then
      insert(rest, part)
    end
  end)
  return true
end

return M
