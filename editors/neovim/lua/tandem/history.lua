--- The prompts of a workspace, oldest first: one file per workspace root, which outlives the editor.
local state = require('tandem.state')

local M = {}

local KEPT = 100

---@param root string
---@return string[]
function M.load(root)
  local path = state.path('history', root)
  local lines = vim.fn.filereadable(path) == 1 and vim.fn.readfile(path) or {}
  local prompts = {} ---@type string[]
  for _, line in ipairs(lines) do
    local read, prompt = pcall(vim.json.decode, line)
    prompts[#prompts + 1] = read and type(prompt) == 'string' and prompt or nil
  end
  return prompts
end

--- Adds a prompt; a repeated one moves to the end.
---@param root string
---@param prompt string
function M.add(root, prompt)
  local prompts = vim.tbl_filter(function(other)
    return other ~= prompt
  end, M.load(root))
  prompts[#prompts + 1] = prompt
  local last = vim.list_slice(prompts, math.max(1, #prompts - KEPT + 1))
  state.write(state.path('history', root), vim.tbl_map(vim.json.encode, last))
end

return M
