--- Drafts survive the editor: one file for each workspace root.
local state = require('tandem.state')

local M = {}

local known = {} ---@type table<string, string> the draft of this editor; that of another stays

---@param path string
---@return string
local function read(path)
  return vim.fn.filereadable(path) == 1 and table.concat(vim.fn.readfile(path, 'b'), '\n') or ''
end

---@param root string
---@return string empty when there is none
function M.load(root)
  known[root] = read(state.path('drafts', root))
  return known[root]
end

---@param root string
---@param text string
function M.save(root, text)
  local path = state.path('drafts', root)
  if text == '' then
    if read(path) == known[root] then
      vim.fn.delete(path)
    end
  elseif text ~= read(path) then
    state.write(path, vim.split(text, '\n', { plain = true }), 'b')
  end
  known[root] = text
end

return M
