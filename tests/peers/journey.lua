-- The first part of journey.mjs: a session starts in a real Neovim with the real plugin.
-- NVIM --headless -u NONE -l tests/peers/journey.lua FILE QUESTION (the environment names tandem and the model)
local repository = vim.fs.dirname(vim.fs.dirname(vim.fs.dirname(vim.fs.normalize(vim.uv.fs_realpath(arg[0])))))
local file, question = arg[1], arg[2]
vim.opt.runtimepath:prepend(repository .. '/editors/neovim')
vim.cmd.runtime('plugin/tandem.lua')
vim.o.swapfile = false
vim.g.tandem = { cmd = { vim.env.TANDEM_BIN, 'lsp' } }

local ended = false
vim.api.nvim_create_autocmd('User', {
  pattern = 'TandemTurnEnd',
  callback = function()
    ended = true
  end,
})
vim.cmd.edit(file)
vim.cmd('Tandem ask ' .. question)
assert(vim.wait(20000, function()
  return ended
end, 5), 'the turn does not end')
local chat = require('tandem.chats').current().chat.buf
io.stdout:write(table.concat(vim.api.nvim_buf_get_lines(chat, 0, -1, false), '\n'), '\n')
vim.cmd('qall!')
