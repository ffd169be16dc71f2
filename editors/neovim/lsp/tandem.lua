--- For `vim.lsp.enable('tandem')` (Neovim 0.11 and later): the server runs from the first file on,
--- instead of from the first `:Tandem`.
local client = require('tandem.client')

return vim.tbl_extend('force', client.lsp_config(), {
  root_dir = function(bufnr, on_dir)
    local root = client.attachable(bufnr)
    if root then
      client.watch_buffers()
      on_dir(root)
    end
  end,
})
