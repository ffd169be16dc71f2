--- Inline completion: Neovim (0.12) asks, shows and inserts; this turns it on where the server offers it, and accepts
--- parts of a suggestion.
local api = vim.api
local M = {}

local METHOD = 'textDocument/inlineCompletion'

--- Turns it on in the files of a server that has a model for it.
---@param group integer of autocommands
function M.watch(group)
  if not vim.lsp.inline_completion then
    return
  end
  api.nvim_create_autocmd('LspAttach', {
    group = group,
    desc = 'tandem: turn inline completion on where the server offers it',
    callback = function(event)
      local client = vim.lsp.get_client_by_id(event.data.client_id)
      if client and client.name == 'tandem' and client:supports_method(METHOD) then
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

--- Inserts the suggestion at the cursor, or its first word or line.
---@param part? 'word'|'line'|'all'
---@return boolean there was a suggestion
function M.accept(part)
  if not vim.lsp.inline_completion then
    return false
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
