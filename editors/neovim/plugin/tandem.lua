-- Defines :Tandem and the <Plug> maps; everything else loads when one of them is used.
if vim.g.loaded_tandem then
  return
end
vim.g.loaded_tandem = true

if vim.fn.has('nvim-0.10') == 0 then
  local this = vim.version()
  local text = ('tandem needs Neovim 0.10 or later; this is %d.%d.%d'):format(this.major, this.minor, this.patch)
  vim.notify(text, vim.log.levels.ERROR)
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

--- By name: the modes, and what :map says it does.
local maps = {
  ask = { 'nx', 'ask about the selection or the code' },
  steer = { 'nx', 'add to the running turn' },
  edit = { 'nx', 'edit the selection or the buffer' },
  comment = { 'nx', 'comment on the selection or the line' },
  comments = { 'n', 'send the comments' },
  chat = { 'n', 'open or close the chat' },
  jobs = { 'n', 'open or close the background commands' },
  stop = { 'n', 'stop the turn' },
  mode = { 'n', 'choose the mode' },
  model = { 'n', 'choose the model' },
  effort = { 'n', 'choose the effort' },
  allow = { 'n', 'allow the request' },
  reject = { 'n', 'reject the request, or the change here' },
  new = { 'n', 'start another chat' },
  sessions = { 'n', 'resume a session' },
  undo = { 'n', 'undo the last turn' },
  redo = { 'n', 'redo the last undo' },
  fix = { 'nx', 'fix the problems here' },
  explain = { 'nx', 'explain the selection or the file' },
  tests = { 'nx', 'write tests for the selection or the file' },
  review = { 'n', 'review the changes' },
  keep = { 'n', 'keep the change here' },
  reject_hunk = { 'n', 'reject the change here' },
  next_hunk = { 'n', 'go to the next change' },
  prev_hunk = { 'n', 'go to the previous change' },
}

for name, map in pairs(maps) do
  local options = { desc = 'tandem: ' .. map[2], noremap = true }
  options.callback = function()
    require('tandem')[name]()
  end
  for mode in map[1]:gmatch('.') do
    vim.api.nvim_set_keymap(mode, '<Plug>(tandem-' .. name:gsub('_', '-') .. ')', '', options)
  end
end

vim.api.nvim_create_autocmd('SessionLoadPost', {
  group = vim.api.nvim_create_augroup('tandem.session', {}),
  desc = 'tandem: close chat windows that :mksession restored',
  callback = function()
    for _, buf in ipairs(vim.api.nvim_list_bufs()) do
      local name = vim.api.nvim_buf_get_name(buf)
      local is_chat = vim.startswith(vim.fn.fnamemodify(name, ':.'), 'tandem ') and vim.bo[buf].buftype == ''
      if is_chat and not vim.bo[buf].modified and not vim.uv.fs_stat(name) then
        vim.api.nvim_buf_delete(buf, {})
      end
    end
  end,
})
