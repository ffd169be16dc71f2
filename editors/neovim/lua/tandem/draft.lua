--- Drafts survive the editor: one file for each workspace root.
local M = {}

local known = {} ---@type table<string, string> the draft of this editor; that of another stays

---@param root string
---@return string
local function path_of(root)
  return vim.fs.normalize(vim.fn.stdpath('state') .. '/tandem/drafts/' .. vim.fn.sha256(root):sub(1, 16))
end

---@param path string
---@return string
local function read(path)
  return vim.fn.filereadable(path) == 1 and table.concat(vim.fn.readfile(path, 'b'), '\n') or ''
end

---@param root string
---@return string empty when there is none
function M.load(root)
  known[root] = read(path_of(root))
  return known[root]
end

---@param root string
---@param text string
function M.save(root, text)
  local path = path_of(root)
  if text == '' then
    if read(path) == known[root] then
      vim.fn.delete(path)
    end
  elseif text ~= read(path) then
    vim.fn.mkdir(vim.fs.dirname(path), 'p', tonumber('700', 8))
    vim.fn.writefile(vim.split(text, '\n', { plain = true }), path, 'b')
  end
  known[root] = text
end

return M
