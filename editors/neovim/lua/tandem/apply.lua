--- `workspace/applyEdit`, answered honestly: Neovim's own handler drops an edit for an old version and
--- answers `applied = true`. Here every document is checked before any is touched, a stale edit is refused
--- with its reason, and the edits of one turn to a buffer are one undo block unless the user typed between them.
local position = require('tandem.position')

local api = vim.api
local util = vim.lsp.util

local M = {}

---@class tandem.UndoBlock
---@field turn string
---@field tick integer the buffer's changedtick right after our last edit

---@type table<integer, tandem.UndoBlock> by buffer
local blocks = {}

---@param uri string
---@return integer? bufnr
local function loaded_buffer(uri)
  local bufnr = vim.uri_to_bufnr(uri)
  return api.nvim_buf_is_loaded(bufnr) and bufnr or nil
end

--- Why a buffer could not be written with this edit in it: a character that its encoding does not have.
---@param edit lsp.TextDocumentEdit
---@param bufnr integer
---@param name string
---@return string?
local function unwritable(edit, bufnr, name)
  local encoding = vim.bo[bufnr].fileencoding
  if encoding == '' or encoding:find('^utf') or encoding:find('^ucs') then
    return nil
  end
  for _, change in ipairs(edit.edits) do
    for character in change.newText:gmatch('[\194-\244][\128-\191]*') do
      if vim.iconv(vim.iconv(character, 'utf-8', encoding) or '', encoding, 'utf-8') ~= character then
        local code = vim.fn.char2nr(character, true)
        local remedy = 'use other characters, or ask the user for :set fileencoding=utf-8'
        return ('%s is written as %s, which cannot represent %s (U+%04X): %s'):format(name, encoding, character, code, remedy)
      end
    end
  end
end

--- Why an edit cannot be applied now, or nil.
---@param edit lsp.TextDocumentEdit
---@return string?
local function objection(edit)
  local document = edit.textDocument
  local bufnr = loaded_buffer(document.uri)
  local name = vim.fn.fnamemodify(vim.uri_to_fname(document.uri), ':~:.')
  local version = document.version
  if version == vim.NIL then
    version = nil
  end
  if not bufnr then
    return version and ('%s is no longer open'):format(name) or nil
  end
  local current = require('tandem.mirror').versions[document.uri] or 0
  if version and version ~= current then
    return ('%s changed meanwhile: the edit is for version %d, the buffer is at %d'):format(name, version, current)
  elseif not vim.bo[bufnr].modifiable then
    return ("%s cannot be changed: 'modifiable' is off"):format(name)
  end
  return unwritable(edit, bufnr, name)
end

--- Text that is inserted after the last line is moved in front of the final newline, which Neovim's buffers
--- only imply: otherwise the file ends with an empty line.
---@param edit lsp.TextEdit
---@param bufnr integer
---@param encoding string
---@return lsp.TextEdit
local function before_final_newline(edit, bufnr, encoding)
  local count = api.nvim_buf_line_count(bufnr)
  if edit.range.start.line < count or edit.newText:sub(-1) ~= '\n' or not vim.bo[bufnr].eol then
    return edit
  end
  local last = api.nvim_buf_get_lines(bufnr, count - 1, count, false)[1]
  if count == 1 and last == '' then
    return { range = position.range(0, 0, 0, 0), newText = (edit.newText:gsub('\r?\n$', '')) }
  end
  local column = position.units(last, encoding)
  local text = '\n' .. edit.newText:gsub('\r?\n$', '')
  return { range = position.range(count - 1, column, count - 1, column), newText = text }
end

--- A final newline that the file did not have arrives as an empty last line, after which Neovim would write another
--- one.
---@param bufnr integer
local function final_newline(bufnr)
  if not vim.bo[bufnr].eol and #api.nvim_buf_get_lines(bufnr, 1, -1, false) > 0 and api.nvim_buf_get_lines(bufnr, -2, -1, false)[1] == '' then
    vim.bo[bufnr].eol = true
    api.nvim_buf_set_lines(bufnr, -2, -1, false, {})
  end
end

--- Ends the undo block that is being written: what follows is undone on its own (`:help undo-break`).
local function break_undo()
  vim.bo.undolevels = vim.bo.undolevels
end

---@param edit lsp.TextDocumentEdit
---@param encoding string
---@param turn? string
local function apply_to_document(edit, encoding, turn)
  local bufnr = vim.uri_to_bufnr(edit.textDocument.uri)
  vim.fn.bufload(bufnr)
  local edits = vim.tbl_map(function(text_edit)
    return before_final_newline(text_edit, bufnr, encoding)
  end, edit.edits)
  api.nvim_buf_call(bufnr, function()
    local block = blocks[bufnr]
    if turn and block and block.turn == turn and block.tick == vim.b.changedtick then
      vim.cmd('silent! undojoin')
    else
      break_undo()
    end
    util.apply_text_edits(edits, bufnr, encoding)
    final_newline(bufnr)
    break_undo()
    blocks[bufnr] = turn and { turn = turn, tick = vim.b.changedtick } or nil
  end)
end

---@param edit lsp.WorkspaceEdit
---@return table[] changes text edits and resource operations, in order
local function changes_of(edit)
  if edit.documentChanges then
    return edit.documentChanges
  end
  local changes = {}
  for uri, edits in vim.spairs(edit.changes or {}) do
    changes[#changes + 1] = { textDocument = { uri = uri }, edits = edits }
  end
  return changes
end

--- Applies all of a workspace edit or nothing of it.
---@param params lsp.ApplyWorkspaceEditParams
---@param encoding string the client's position encoding
---@param turn? string edits of the same turn share an undo block; those of no turn (a review) never do
---@return lsp.ApplyWorkspaceEditResult
function M.apply(params, encoding, turn)
  local changes = changes_of(params.edit)
  for _, change in ipairs(changes) do
    local reason = not change.kind and objection(change)
    if reason then
      return { applied = false, failureReason = reason }
    end
  end
  for index, change in ipairs(changes) do
    local ok, err
    if change.kind then
      ok, err = pcall(util.apply_workspace_edit, { documentChanges = { change } }, encoding)
    else
      ok, err = pcall(apply_to_document, change, encoding, turn)
    end
    if not ok then
      return { applied = false, failureReason = tostring(err), failedChange = index - 1 }
    end
  end
  return { applied = true }
end

return M
