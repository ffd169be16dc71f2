--- A language server in this process: the transport between its handlers and Neovim.
--- Invariant: a request is answered after it returns, never during the call.
local M = {}

---@class tandem.InProcess
---@field request fun(method: string, params: any, answer: fun(err: any, result: any))
---@field notify? fun(method: string, params: any, dispatchers: vim.lsp.rpc.Dispatchers)

--- The `cmd` of a client for a server.
---@param server tandem.InProcess
---@return fun(dispatchers: vim.lsp.rpc.Dispatchers): vim.lsp.rpc.PublicClient
function M.cmd(server)
  return function(dispatchers)
    local closing, count = false, 0
    return {
      request = function(method, params, callback)
        count = count + 1
        server.request(method, params, vim.schedule_wrap(callback))
        return true, count
      end,
      notify = function(method, params)
        if method == 'exit' then
          closing = true
          dispatchers.on_exit(0, 0)
        elseif server.notify then
          server.notify(method, params, dispatchers)
        end
        return true
      end,
      is_closing = function()
        return closing
      end,
      terminate = function()
        closing = true
      end,
    }
  end
end

return M
