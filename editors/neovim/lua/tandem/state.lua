--- The files of a workspace in Neovim's state directory.
--- Invariant: one that cannot be written, such as on a full disk, is reported once and stops nothing.
local M = {}

local reported = {} ---@type table<string, true>

---@param kind string the folder
---@param root string
---@return string path
function M.path(kind, root)
  return vim.fs.normalize(('%s/tandem/%s/%s'):format(vim.fn.stdpath('state'), kind, vim.fn.sha256(root):sub(1, 16)))
end

---@param path string
---@param lines string[]
---@param flags? string as for writefile()
function M.write(path, lines, flags)
  local is_written, problem = pcall(function()
    vim.fn.mkdir(vim.fs.dirname(path), 'p', tonumber('700', 8))
    vim.fn.writefile(lines, path, flags or '')
  end)
  local kind = vim.fs.basename(vim.fs.dirname(path))
  if not is_written and not reported[kind] then
    reported[kind] = true
    require('tandem.say')(('Could not save the %s: %s'):format(kind, tostring(problem)), vim.log.levels.WARN)
  end
end

return M
