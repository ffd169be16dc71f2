--- The scripted model server (model_server.py) as an object, over a plain HTTP client on libuv.
local M = {}

---@class tandem.test.Model
---@field port integer
---@field private process vim.SystemObj
local Model = {}
Model.__index = Model

--- Starts the server and returns once it listens.
---@param script string path of model_server.py
---@return tandem.test.Model
function M.start(script)
  local output = ''
  local process = vim.system({ 'python3', script }, {
    stdout = function(_, data)
      output = output .. (data or '')
    end,
  })
  assert(
    vim.wait(15000, function()
      return output:find('PORT %d+\n') ~= nil
    end, 5),
    'the model server does not start'
  )
  local model = setmetatable({ port = tonumber(output:match('PORT (%d+)')), process = process }, Model)
  vim.api.nvim_create_autocmd('VimLeavePre', {
    desc = 'nothing is left behind, however the tests end',
    callback = function()
      model:stop()
    end,
  })
  return model
end

---@return string
function Model:base_url()
  return ('http://127.0.0.1:%d/v1'):format(self.port)
end

--- One HTTP exchange; the server closes the connection after it.
---@param method string
---@param path string
---@param body? any sent as JSON
---@return any
function Model:call(method, path, body)
  local data = body and vim.json.encode(body) or ''
  local head = ('%s %s HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: %d\r\n\r\n'):format(method, path, #data)
  local response, finished = '', false
  local socket = assert(vim.uv.new_tcp())
  socket:connect('127.0.0.1', self.port, function(problem)
    assert(not problem, problem)
    socket:write(head .. data)
    socket:read_start(function(_, chunk)
      response = response .. (chunk or '')
      finished = chunk == nil
    end)
  end)
  vim.wait(65000, function()
    return finished
  end, 2)
  socket:close()
  local status, payload = response:match('^HTTP/1.1 (%d+).-\r\n\r\n(.*)$')
  assert(status == '200', ('%s %s: %s'):format(method, path, response))
  return vim.json.decode(payload)
end

--- The environment in which tandem uses this model, without the user's settings.
---@param home string
---@return table<string, string>
function Model:environment(home)
  return {
    HOME = home,
    TANDEM_CONFIG = home .. '/none.toml',
    TANDEM_STATE_DIR = home .. '/state',
    TANDEM_MODEL = 'test',
    TANDEM_BASE_URL = self:base_url(),
    TANDEM_API_KEY = 'sk-test-000000000000',
    TANDEM_API = 'chat',
  }
end

--- Clears the state and sets the next replies.
---@param ... table a list of steps for each reply
function Model:script(...)
  self:call('POST', '/ctl/reset')
  self:call('POST', '/ctl/script', { ... })
end

---@param gate string
function Model:open(gate)
  self:call('POST', '/ctl/open/' .. gate)
end

--- Waits for `gate:NAME`, `requests:N` or `closed:N` and returns the server's state.
---@param condition? string
---@return { requests: table[], waiting: string[], consumed: integer, closed_early: integer }
function Model:state(condition)
  return self:call('GET', '/ctl/state' .. (condition and '?wait=' .. condition or ''))
end

--- All strings in the messages of a request, whatever their shape.
---@param request { messages: table[] }
---@return string
function M.sent_text(request)
  local texts = {} ---@type string[]
  local function collect(value)
    if type(value) == 'string' then
      texts[#texts + 1] = value
    elseif type(value) == 'table' then
      vim.iter(vim.tbl_values(value)):each(collect)
    end
  end
  collect(request.messages)
  return table.concat(texts, '\n')
end

function Model:stop()
  self.process:kill('sigterm')
end

return M
