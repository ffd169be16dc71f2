-- What needs no server: nvim --headless -u NONE -l editors/neovim/tests/unit.lua
local folder = vim.fs.dirname(vim.fs.normalize(vim.uv.fs_realpath(arg[0])))
local plugin = vim.fs.dirname(folder)
vim.opt.runtimepath:prepend(plugin)
vim.cmd.runtime('plugin/tandem.lua')
vim.o.swapfile, vim.o.showmode = false, false

local t = dofile(folder .. '/harness.lua')
local api = vim.api

---@class tandem.test.Use what the tests share
---@field plugin string its folder
---@field notified string[] the messages to the user
---@field neovims_notify function
local use = { plugin = plugin, notified = {}, neovims_notify = vim.notify }
vim.notify = function(message)
  use.notified[#use.notified + 1] = message
end

---@param lines string[]
---@return integer buf
function use.file(lines)
  local path = vim.fn.tempname() .. '.txt'
  vim.fn.writefile(lines, path)
  vim.cmd.edit(path)
  return api.nvim_get_current_buf()
end

---@param buf integer
---@return string
function use.text_of(buf)
  return table.concat(api.nvim_buf_get_lines(buf, 0, -1, false), '\n')
end

for _, part in ipairs({ 'config', 'context', 'render', 'apply', 'chat', 'commands', 'help' }) do
  dofile(('%s/unit/%s.lua'):format(folder, part))(t, use)
end
t.finish()
