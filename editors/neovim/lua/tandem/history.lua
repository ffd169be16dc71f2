--- The questions that were asked in a workspace, oldest first: one file a workspace root, which outlives the editor.
local M = {}

local KEPT = 100

---@param root string
---@return string
local function path_of(root)
  return vim.fs.normalize(vim.fn.stdpath('state') .. '/tandem/history/' .. vim.fn.sha256(root):sub(1, 16))
end

---@param root string
---@return string[]
function M.load(root)
  local path = path_of(root)
  local lines = vim.fn.filereadable(path) == 1 and vim.fn.readfile(path) or {}
  local questions = {} ---@type string[]
  for _, line in ipairs(lines) do
    local read, question = pcall(vim.json.decode, line)
    questions[#questions + 1] = read and type(question) == 'string' and question or nil
  end
  return questions
end

--- Adds a question; a repeated one moves to the end.
---@param root string
---@param question string
function M.add(root, question)
  local questions = vim.tbl_filter(function(other)
    return other ~= question
  end, M.load(root))
  questions[#questions + 1] = question
  local path = path_of(root)
  vim.fn.mkdir(vim.fs.dirname(path), 'p', tonumber('700', 8))
  vim.fn.writefile(vim.tbl_map(vim.json.encode, vim.list_slice(questions, math.max(1, #questions - KEPT + 1))), path)
end

return M
