--- Drafts survive the editor: one file for each workspace root.
local M = {}

local saved = {} ---@type table<string, string> what the file of a root contains, as far as it is known

---@param root string
---@return string
local function path_of(root)
  return vim.fs.normalize(vim.fn.stdpath('state') .. '/tandem/drafts/' .. vim.fn.sha256(root):sub(1, 16))
end

---@param root string
---@return string empty when there is none
function M.load(root)
  local path = path_of(root)
  saved[root] = vim.fn.filereadable(path) == 1 and table.concat(vim.fn.readfile(path), '\n') or ''
  return saved[root]
end

---@param root string
---@param text string
function M.save(root, text)
  if saved[root] == text then
    return
  end
  saved[root] = text
  local path = path_of(root)
  if text == '' then
    vim.fn.delete(path)
    return
  end
  vim.fn.mkdir(vim.fs.dirname(path), 'p', tonumber('700', 8))
  vim.fn.writefile(vim.split(text, '\n', { plain = true }), path)
end

return M
