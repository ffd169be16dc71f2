--- Comments on lines, such as those a turn changed: collected beside the code, then sent as one message.
--- Invariant: a comment stays until it was sent or its line was deleted.
local cells = require('tandem.cells')
local context = require('tandem.context')
local decor = require('tandem.decor')
local render = require('tandem.render')
local say = require('tandem.say')

local api = vim.api
local space = api.nvim_create_namespace('tandem.comments')
local M = {}

---@class tandem.Comment
---@field bufnr integer
---@field mark integer extmark over its lines
---@field about tandem.Selection its lines when it was written
---@field text string

---@type table<string, tandem.Comment[]> by workspace root
local by_root = {}

--- Adds a comment, shown after the last of its lines.
---@param root string
---@param bufnr integer
---@param first integer 1-based
---@param last integer 1-based
---@param text string
function M.add(root, bufnr, first, last, text)
  local rows = cells.wrap('» ' .. text:gsub('%s+', ' '), decor.width(bufnr) or vim.o.columns, math.huge)
  local width = #(api.nvim_buf_get_lines(bufnr, last - 1, last, false)[1] or '')
  local mark = api.nvim_buf_set_extmark(bufnr, space, first - 1, 0, {
    end_row = last - 1,
    end_col = width,
    sign_text = '»',
    sign_hl_group = 'TandemNotice',
    virt_lines = vim.tbl_map(function(row)
      return { { row, 'TandemNotice' } }
    end, rows),
    invalidate = true,
  })
  by_root[root] = by_root[root] or {}
  table.insert(by_root[root], { bufnr = bufnr, mark = mark, about = context.lines(bufnr, first, last), text = text })
end

--- The current position of the lines that a comment is about.
---@param comment tandem.Comment
---@return tandem.Selection?
local function selection(comment)
  local is_valid = api.nvim_buf_is_valid(comment.bufnr)
  local found = is_valid and api.nvim_buf_get_extmark_by_id(comment.bufnr, space, comment.mark, { details = true }) or {}
  local row, _, details = unpack(found)
  if not row then
    return comment.about -- the buffer was unloaded, and its marks with it
  elseif details.invalid then
    return nil
  end
  return context.lines(comment.bufnr, row + 1, (details.end_row or row) + 1)
end

--- All comments of a workspace as one message.
---@param comments tandem.Comment[]
---@return string?
local function message(comments)
  local parts = {} ---@type string[]
  for _, comment in ipairs(comments) do
    local about = selection(comment)
    if about then
      local fence = render.fence(vim.split(about.text, '\n', { plain = true }))
      parts[#parts + 1] = ('%s\n%s\n%s\n%s\n%s'):format(context.label(about), fence, about.text, fence, comment.text)
    end
  end
  return #parts > 0 and 'Comments on the code:\n\n' .. table.concat(parts, '\n\n') or nil
end

--- Sends the collected comments and removes them from the buffers.
---@param session tandem.Session
function M.send(session)
  local comments = by_root[session.root] or {}
  local text = message(comments)
  if not text then
    return say('No comments to send (:Tandem comment adds one)')
  end
  by_root[session.root] = nil
  for _, comment in ipairs(comments) do
    if api.nvim_buf_is_valid(comment.bufnr) then
      api.nvim_buf_del_extmark(comment.bufnr, space, comment.mark)
    end
  end
  session:prompt(text)
end

return M
