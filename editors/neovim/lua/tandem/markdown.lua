--- Incremental Markdown highlighting: settled text is parsed once, a streaming answer only from its last paragraph on.
--- A treesitter highlighter over the whole chat looks at all of it whenever a word arrives.
local decor = require('tandem.decor')

local api = vim.api
local namespace = api.nvim_create_namespace('tandem.markdown')

local M = {}

--- A growing piece is highlighted up to this size, then again when it is complete.
local GROWING_BYTES = 4096
--- A piece larger than this, such as a file that was pasted, is shown without highlights.
local LARGEST_BYTES = 65536

M.namespace = namespace

---@return boolean whether the parsers are installed
function M.is_available()
  local found, parser = pcall(vim.treesitter.get_string_parser, '', 'markdown')
  return found and parser ~= nil
end

--- Where lines can be cut without changing the meaning of either part: before a line at the margin that follows an
--- empty one, outside of code.
---@param lines string[]
---@return integer count how many lines stand for good
---@return { first: integer, last: integer, open: boolean }[] fences zero-based rows of code blocks, with their fences
function M.scan(lines)
  local fences, count, fence = {}, 0, nil
  for index, line in ipairs(lines) do
    local mark = line:match('^%s*(```+)') or line:match('^%s*(~~~+)')
    local block = fences[#fences]
    if fence then
      block.last = index - 1
      if mark and mark:sub(1, #fence) == fence and not line:find('[^`~%s]') then
        fence, block.open = nil, false
      end
    else
      if lines[index - 1] == '' and line:find('^%S') then
        count = index - 1
      end
      if mark then
        fence = mark
        fences[#fences + 1] = { first = index - 1, last = index - 1, open = true }
      end
    end
  end
  return count, fences
end

--- Hides the marks of a fence, and the whole row of a closing one where the editor can.
---@param buf integer
---@param row integer
---@param line string
---@param closes boolean
local function hide_marks(buf, row, line, closes)
  local from, to = line:find('[`~]+')
  local conceal_lines = closes and decor.has_conceal_lines and '' or nil
  api.nvim_buf_set_extmark(buf, namespace, row, from - 1, { end_col = to, conceal = '', conceal_lines = conceal_lines })
end

---@param buf integer
---@param row integer the first one of the piece
---@param lines string[]
---@param fences { first: integer, last: integer, open: boolean }[]
local function mark_code(buf, row, lines, fences)
  for _, block in ipairs(fences) do
    api.nvim_buf_set_extmark(buf, namespace, row + block.first, 0, {
      end_row = row + block.last + (block.open and 1 or 0),
      hl_group = 'TandemCode',
      hl_eol = true,
      priority = 80,
      strict = false,
    })
    hide_marks(buf, row + block.first, lines[block.first + 1], false)
    if not block.open then
      hide_marks(buf, row + block.last, lines[block.last + 1], true)
    end
  end
end

---@param buf integer
---@param row integer
---@param text string
local function mark_captures(buf, row, text)
  local parser = vim.treesitter.get_string_parser(text, 'markdown')
  parser:parse(true)
  parser:for_each_tree(function(tree, part)
    local language = part:lang()
    local query = vim.treesitter.query.get(language, 'highlights')
    if not query then
      return
    end
    for id, node, metadata in query:iter_captures(tree:root(), text) do
      local name, own = query.captures[id], metadata[id] or {}
      if not (vim.startswith(name, '_') or name == 'spell' or name == 'nospell') then
        local range = vim.treesitter.get_range(node, text, own)
        api.nvim_buf_set_extmark(buf, namespace, row + range[1], range[2], {
          end_row = row + range[4],
          end_col = range[5],
          hl_group = ('@%s.%s'):format(name, language),
          -- A fence keeps the name of its language; only marks within lines are hidden.
          conceal = language ~= 'markdown' and (metadata.conceal or own.conceal) or nil,
          priority = (tonumber(metadata.priority or own.priority) or 100) + (language == 'markdown' and 0 or 1),
          strict = false,
        })
      end
    end
  end)
end

--- Highlights rows of a buffer and replaces their earlier highlights.
---@param buf integer
---@param first integer zero-based
---@param last integer inclusive
---@param grows boolean whether more is to come
---@return integer count how many of the rows stand for good
function M.highlight(buf, first, last, grows)
  local lines = api.nvim_buf_get_lines(buf, first, last + 1, false)
  local text = table.concat(lines, '\n') .. '\n'
  local count, fences = M.scan(lines)
  if grows and #text > GROWING_BYTES and count == 0 then
    return 0
  end
  api.nvim_buf_clear_namespace(buf, namespace, first, last + 1)
  mark_code(buf, first, lines, fences)
  if #text <= LARGEST_BYTES then
    mark_captures(buf, first, text)
    require('tandem.table').draw(buf, first, lines, fences)
  end
  return count
end

return M
