--- When the user began to type: a key of a burst that began before a request appeared does not answer it.
local M = {}

--- Keys without a longer pause between them are one burst.
local PAUSE_MS = 700

local began, last = nil, -PAUSE_MS ---@type number?, number

---@return number ms
function M.now()
  return vim.uv.hrtime() / 1e6
end

--- Looks at typed keys from now on; what a map or a script produces is not typed.
function M.watch()
  vim.on_key(function(_, typed)
    if not typed or typed == '' then
      return
    end
    local at = M.now()
    if not began or at - last > PAUSE_MS then
      began = at
    end
    last = at
  end, vim.api.nvim_create_namespace('tandem.typed'))
  vim.api.nvim_create_autocmd('CmdlineEnter', {
    desc = 'tandem: ignore keys typed in the command line as answers',
    callback = function()
      began = M.now()
    end,
  })
end

--- Whether what is being typed now began before the user can have seen what was shown at that time.
---@param shown_at number ms, as of `M.now()`
---@return boolean
function M.is_older_than(shown_at)
  local in_command_line = vim.fn.getcmdtype() ~= ''
  local is_typing = began and (in_command_line or M.now() - last <= PAUSE_MS)
  return is_typing and began < shown_at + PAUSE_MS or false
end

return M
