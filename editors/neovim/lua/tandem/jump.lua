--- From the chat to the code: `src/main.rs:12` under the cursor, in a window that shows code.
local api = vim.api
local M = {}

---@class tandem.Place
---@field path string absolute
---@field line? integer 1-based
---@field column? integer 1-based

--- A window of this tab page that shows a file, the one used last if it does; else a new one.
---@return integer win
local function code_window()
  local function shows_code(win)
    return api.nvim_win_get_config(win).relative == '' and vim.bo[api.nvim_win_get_buf(win)].buftype == '' and not vim.wo[win].winfixbuf
  end
  local wins = api.nvim_tabpage_list_wins(0)
  table.insert(wins, 1, vim.fn.win_getid(vim.fn.winnr('#')))
  local found = vim.iter(wins):find(function(win)
    return win ~= 0 and shows_code(win)
  end)
  if found then
    return found
  end
  local buf = api.nvim_create_buf(true, false)
  return api.nvim_open_win(buf, false, { split = 'left', win = -1 })
end

--- Shows a file in the current window, or beside it where its buffer has to stay: the chat, or a changed one ('nohidden').
---@param path string
---@return boolean shown false if that was declined, as on Neovim's question about a swap file
function M.edit(path)
  if vim.bo.buftype ~= '' or vim.wo.winfixbuf then
    api.nvim_set_current_win(code_window())
  end
  local buf = api.nvim_get_current_buf()
  local name = api.nvim_buf_get_name(buf)
  if vim.fs.normalize(name) == vim.fs.normalize(path) then
    return true
  end
  local stays = vim.bo[buf].modified and not vim.o.hidden and #vim.fn.win_findbuf(buf) == 1
  local is_open = pcall(vim.cmd[stays and 'split' or 'edit'], vim.fn.fnameescape(path))
  return is_open or api.nvim_buf_get_name(0) ~= name -- the question is an error, even if its answer opens the file
end

--- Opens a place where code is shown, and goes there.
---@param place tandem.Place
function M.open(place)
  api.nvim_set_current_win(code_window())
  vim.cmd("normal! m'")
  if M.edit(place.path) and place.line then
    local line = math.max(1, math.min(place.line, api.nvim_buf_line_count(0)))
    api.nvim_win_set_cursor(0, { line, math.max(0, (place.column or 1) - 1) })
    vim.cmd('normal! zv')
  end
end

--- The location a word names: `main.rs:12`, `main.rs:12:3`, `main.rs#L12`, with any Markdown around it.
---@param word string
---@return string? name, integer? line, integer? column
function M.parse(word)
  local link = word:match('%]%(([^)]+)%)')
  word = (link or word):gsub('^%p+', function(marks)
    return marks:match('[./~_-]+$') or '' -- with which names begin: `/usr`, `../lib`, `.github`
  end)
  for _, pattern in ipairs({ '^([^:`#]+)#L(%d+)', '^([^:`]+):(%d+):(%d+)', '^([^:`]+):(%d+)', '^([^:`]+)' }) do
    local name, line, column = word:match(pattern)
    if name then
      name = name:gsub('[%),.;>"\'*]+$', '')
      return name ~= '' and name or nil, tonumber(line), tonumber(column)
    end
  end
end

--- The place that the text under the cursor names, if there is such a file.
---@param root string what relative names are relative to
---@return tandem.Place?
function M.under_cursor(root)
  local name, line, column = M.parse(vim.fn.expand('<cWORD>'))
  if not name then
    return nil
  end
  local path = vim.startswith(name, '/') and name or vim.startswith(name, '~') and vim.fs.normalize(name) or root .. '/' .. name
  local found = vim.uv.fs_stat(path)
  return found and found.type == 'file' and { path = vim.fs.normalize(path), line = line, column = column } or nil
end

return M
