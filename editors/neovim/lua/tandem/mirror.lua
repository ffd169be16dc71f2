--- The server's copy of a buffer. Neovim sends changes as ranges, and some are wrong if a buffer ends in empty lines or
--- is emptied: if the server would have a different number of lines than the buffer, the whole text is sent.
local api = vim.api
local M = {}

---@type table<string, integer> how many line breaks the server knows, by document
local known = {}

--- The last version of each document that was sent to the server. Neovim counts one version for all servers, and starts
--- at 0 again when it opens the document in another one.
---@type table<string, integer>
M.versions = {}

---@param text string
---@return integer
local function breaks(text)
  return select(2, text:gsub('\n', ''))
end

---@param bufnr integer
---@return string
local function text_of(bufnr)
  local ending = ({ unix = '\n', dos = '\r\n', mac = '\r' })[vim.bo[bufnr].fileformat]
  return table.concat(api.nvim_buf_get_lines(bufnr, 0, -1, false), ending) .. (vim.bo[bufnr].eol and ending or '')
end

--- The notification to send.
---@param method string
---@param params table
---@return table
function M.checked(method, params)
  local document = params and params.textDocument or {}
  local uri = document.uri
  if document.version then
    M.versions[uri] = document.version
  end
  if method == 'textDocument/didOpen' then
    known[uri] = breaks(document.text)
  elseif method == 'textDocument/didChange' and known[uri] then
    for _, change in ipairs(params.contentChanges) do
      local range = change.range
      local left = range and known[uri] - (range['end'].line - range.start.line) or 0
      known[uri] = left + breaks(change.text)
    end
    local bufnr = vim.uri_to_bufnr(uri)
    if known[uri] ~= api.nvim_buf_line_count(bufnr) - (vim.bo[bufnr].eol and 0 or 1) then
      local text = text_of(bufnr)
      known[uri] = breaks(text)
      return { textDocument = document, contentChanges = { { text = text } } }
    end
  end
  return params
end

return M
