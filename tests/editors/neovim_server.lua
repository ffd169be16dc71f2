-- A language server for tests, in this process.
local M = {}

---@class tandem.TestServer
---@field request fun(method: string, params: table): any the answer
---@field notify? fun(method: string, params: table, dispatchers: vim.lsp.rpc.Dispatchers)

--- The `cmd` of a client for it.
---@param server tandem.TestServer
---@return fun(dispatchers: vim.lsp.rpc.Dispatchers): vim.lsp.rpc.PublicClient
function M.cmd(server)
  return function(dispatchers)
    local closing, count = false, 0
    return {
      request = function(method, params, callback)
        count = count + 1
        local answer = server.request(method, params)
        vim.schedule(function()
          callback(nil, answer)
        end)
        return true, count
      end,
      notify = function(method, params)
        if server.notify then
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
