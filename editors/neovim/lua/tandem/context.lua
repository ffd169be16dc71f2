--- The context sent with a prompt: the selected text of the buffer, unsaved changes included.
local client = require('tandem.client')

local api = vim.api
local M = {}

---@class tandem.Selection
---@field uri string of the buffer
---@field name string the path as people say it, relative to the workspace root
---@field first? integer 1-based line; absent for a whole file
---@field last? integer 1-based line
---@field text? string absent for a whole file

---@param path string
---@param root string
---@return string
local function name_of(path, root)
  return vim.startswith(path, root .. '/') and path:sub(#root + 2) or vim.fn.fnamemodify(path, ':~')
end

---@param bufnr integer
---@return string uri, string name
local function identity(bufnr)
  local path = vim.fs.normalize(api.nvim_buf_get_name(bufnr))
  if path == '' or vim.bo[bufnr].buftype ~= '' then
    return 'untitled:buffer-' .. bufnr, path == '' and '[No Name]' or vim.fs.basename(path)
  end
  return vim.uri_from_bufnr(bufnr), name_of(path, client.root(bufnr))
end

---@param bufnr integer
---@param first integer
---@param last integer
---@param lines string[]
---@return tandem.Selection
local function selection(bufnr, first, last, lines)
  local uri, name = identity(bufnr)
  return { uri = uri, name = name, first = first, last = last, text = table.concat(lines, '\n') }
end

--- Whole lines of a buffer.
---@param bufnr integer
---@param first integer 1-based
---@param last integer 1-based
---@return tandem.Selection
function M.lines(bufnr, first, last)
  return selection(bufnr, first, last, api.nvim_buf_get_lines(bufnr, first - 1, last, false))
end

--- The text between two positions of the current buffer as a visual mode would select it.
---@param from integer[] as getpos() answers
---@param to integer[]
---@param mode string v, V or CTRL-V
---@return tandem.Selection
function M.region(from, to, mode)
  local first, last = math.min(from[2], to[2]), math.max(from[2], to[2])
  return selection(api.nvim_get_current_buf(), first, last, vim.fn.getregion(from, to, { type = mode }))
end

--- A whole buffer: a file is only named, the server knows its text.
---@param bufnr integer
---@return tandem.Selection
function M.whole(bufnr)
  local uri, name = identity(bufnr)
  if vim.startswith(uri, 'file:') then
    return { uri = uri, name = name }
  end
  return M.lines(bufnr, 1, api.nvim_buf_line_count(bufnr))
end

--- The problems that Neovim shows in a selection, as lines.
---@param chosen tandem.Selection
---@return string[]
function M.problems(chosen)
  local bufnr = vim.uri_to_bufnr(chosen.uri)
  local found = vim.tbl_filter(function(problem)
    local last = problem.end_lnum or problem.lnum
    return not chosen.first or (problem.lnum + 1 <= chosen.last and last + 1 >= chosen.first)
  end, vim.diagnostic.get(bufnr))
  return vim.tbl_map(function(problem)
    local severity = vim.diagnostic.severity[problem.severity]:lower()
    return ('line %d: %s: %s'):format(problem.lnum + 1, severity, (problem.message:gsub('%s+', ' ')))
  end, found)
end

--- What a command's range means: the last visual selection, to the column, when the range is exactly its lines.
---@param line1 integer
---@param line2 integer
---@return tandem.Selection
function M.range(line1, line2)
  local from, to = vim.fn.getpos("'<"), vim.fn.getpos("'>")
  local mode = vim.fn.visualmode()
  if mode ~= '' and mode ~= 'V' and from[2] == line1 and to[2] == line2 then
    return M.region(from, to, mode)
  end
  return M.lines(api.nvim_get_current_buf(), line1, line2)
end

---@param chosen tandem.Selection
---@return string label such as src/main.rs:3-7
function M.label(chosen)
  if not chosen.first then
    return chosen.name
  end
  local lines = chosen.first == chosen.last and chosen.first or (chosen.first .. '-' .. chosen.last)
  return ('%s:%s'):format(chosen.name, lines)
end

--- The selection as words of a message; nothing for a buffer without a file.
---@param chosen tandem.Selection
---@return string? mention such as @src/main.rs#L3-L7
function M.mention(chosen)
  if not vim.startswith(chosen.uri, 'file:') then
    return nil
  end
  local name = chosen.name:find('%s') and '"' .. chosen.name .. '"' or chosen.name
  return chosen.first and ('@%s#L%d-L%d'):format(name, chosen.first, chosen.last) or '@' .. name
end

--- The content blocks of a prompt.
---@param text string
---@param chosen? tandem.Selection
---@return wire.ContentBlock[]
function M.blocks(text, chosen)
  local words, images = require('tandem.image').split(text)
  local blocks = { { type = 'text', text = words } } ---@type wire.ContentBlock[]
  if chosen and not chosen.text then
    blocks[2] = { type = 'resource_link', uri = chosen.uri, name = chosen.name }
  elseif chosen then
    blocks[2] = {
      type = 'resource',
      resource = {
        uri = ('%s#L%d-L%d'):format(chosen.uri, chosen.first, chosen.last),
        mimeType = 'text/plain',
        text = chosen.text,
      },
    }
  end
  return vim.list_extend(blocks, images)
end

--- A prompt that was sent, as it is written in the input: its files and selections are mentions, its images are saved.
---@param blocks wire.ContentBlock[]
---@param root string of its workspace
---@return string
function M.written(blocks, root)
  local text, images = '', 0
  for _, block in ipairs(blocks) do
    local uri = block.uri or vim.tbl_get(block, 'resource', 'uri')
    if block.type == 'text' then
      text = text == '' and block.text or ('%s\n%s'):format(text, block.text)
    elseif block.type == 'image' then
      images = images + 1
      local image = require('tandem.image').save(vim.base64.decode(block.data))
      local placed, count = text:gsub(('%%[image %d%%]'):format(images), function()
        return image
      end)
      text = count > 0 and placed or ('%s\n%s'):format(text, image)
    elseif uri and vim.startswith(uri, 'file:') then
      local file, first, last = uri:match('^(.*)#L(%d+)%-?L?(%d*)$')
      local path = vim.fs.normalize(vim.uri_to_fname(file or uri))
      local chosen = { uri = uri, name = name_of(path, root), first = tonumber(first), last = tonumber(last) or tonumber(first) }
      text = ('%s %s'):format(text, M.mention(chosen))
    end
  end
  return text
end

return M
