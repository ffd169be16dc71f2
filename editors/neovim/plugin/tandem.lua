-- Defines :Tandem and the <Plug> maps; everything else loads when one of them is used.
if vim.g.loaded_tandem then
  return
end
vim.g.loaded_tandem = true

if vim.fn.has('nvim-0.10') == 0 then
  vim.notify('tandem needs Neovim 0.10 or later', vim.log.levels.ERROR)
  return
end

vim.api.nvim_create_user_command('Tandem', function(options)
  require('tandem.command').run(options)
end, {
  nargs = '*',
  range = true,
  desc = 'tandem, the coding agent',
  complete = function(...)
    return require('tandem.command').complete(...)
  end,
})

for name, modes in pairs({
  ask = { 'n', 'x' },
  steer = { 'n', 'x' },
  edit = { 'n', 'x' },
  chat = { 'n' },
  stop = { 'n' },
  mode = { 'n' },
  model = { 'n' },
  effort = { 'n' },
  allow = { 'n' },
  reject = { 'n' },
  new = { 'n' },
  undo = { 'n' },
  review = { 'n' },
  keep = { 'n' },
  reject_hunk = { 'n' },
  next_hunk = { 'n' },
  prev_hunk = { 'n' },
}) do
  vim.keymap.set(modes, ('<Plug>(tandem-%s)'):format((name:gsub('_', '-'))), function()
    require('tandem')[name]()
  end, { desc = 'tandem: ' .. name })
end
