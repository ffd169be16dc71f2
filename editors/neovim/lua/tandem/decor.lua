--- What a chat shows beside its text: headings, signs, highlights, and rows that are hidden.
local config = require('tandem.config')

local api = vim.api
local M = {}

local space = api.nvim_create_namespace('tandem.decor')
M.has_conceal_lines = vim.fn.has('nvim-0.11') == 1

---@param buf integer
---@param first integer
---@param last integer exclusive; -1 for the end
function M.clear(buf, first, last)
  api.nvim_buf_clear_namespace(buf, space, first, last)
end

---@param buf integer
---@param row integer
---@param name string shown instead of the line's Markdown heading
---@param highlight string
function M.heading(buf, row, name, highlight)
  api.nvim_buf_set_extmark(buf, space, row, 0, {
    virt_text = { { name .. '   ', highlight }, { ('─'):rep(400), 'TandemRule' } },
    virt_text_pos = 'overlay',
    priority = 200,
  })
end

local sign_highlights = {
  pending = 'TandemPending',
  in_progress = 'TandemRunning',
  completed = 'TandemDone',
  failed = 'TandemFailed',
}

---@param buf integer
---@param row integer
---@param text? string
---@param highlight string
function M.sign(buf, row, text, highlight)
  api.nvim_buf_set_extmark(buf, space, row, 0, { sign_text = text, sign_hl_group = highlight })
end

--- Hides a row that only Markdown needs, where the editor can.
---@param buf integer
---@param row integer
local function hide(buf, row)
  local width = #api.nvim_buf_get_lines(buf, row, row + 1, true)[1]
  local options = { end_col = width, conceal = '', conceal_lines = M.has_conceal_lines and '' or nil }
  api.nvim_buf_set_extmark(buf, space, row, 0, options)
end

--- Puts rendered lines into a block, with their highlights and signs.
---@param buf integer
---@param text tandem.Transcript
---@param block tandem.Block
---@param rendered tandem.Rendered
function M.draw(buf, text, block, rendered)
  text:set(block, rendered.lines, rendered.fold)
  local top, bottom = text:rows(block)
  M.clear(buf, top, bottom + 1)
  for _, mark in ipairs(rendered.marks) do
    local row = top + mark.row
    api.nvim_buf_set_extmark(buf, space, row, mark.first or 0, {
      end_row = mark.last and row or row + 1,
      end_col = mark.last or 0,
      hl_group = mark.highlight,
      hl_eol = mark.last == nil,
      priority = 200,
    })
    if mark.hidden then
      hide(buf, row)
    end
    if mark.status then
      M.sign(buf, row, config.get().icons[mark.status], sign_highlights[mark.status])
    end
  end
end

--- The cells of a line, where the chat is shown.
---@param buf integer
---@return integer?
function M.width(buf)
  local win = vim.fn.win_findbuf(buf)[1]
  return win and api.nvim_win_get_width(win) - vim.fn.getwininfo(win)[1].textoff
end

return M
