-- `tandem init --editor neovim --write` installs the plugin; it needs no setup(). From a clone of the repository instead:
-- vim.opt.runtimepath:append(vim.fn.expand('~/src/tandem/editors/neovim'))

-- Optional. Neovim 0.11 and later: start tandem with the first file instead of the first prompt.
if vim.lsp.enable then
  vim.lsp.enable('tandem')
end

-- Optional: keys.
vim.keymap.set('n', '<leader>tt', '<Plug>(tandem-chat)', { desc = 'tandem: chat' })
vim.keymap.set({ 'n', 'x' }, '<leader>ta', '<Plug>(tandem-ask)', { desc = 'tandem: ask' })
vim.keymap.set({ 'n', 'x' }, '<leader>te', '<Plug>(tandem-edit)', { desc = 'tandem: edit' })
vim.keymap.set('n', '<leader>ts', '<Plug>(tandem-stop)', { desc = 'tandem: stop' })
