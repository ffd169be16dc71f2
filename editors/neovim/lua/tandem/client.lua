--- The language client: one server per workspace root, started on first use, attached to the root's files.
--- Invariant: each request for a client gets exactly one callback, with the client or the reason for its failure.
local config = require('tandem.config')

local api = vim.api
local M = {}

local has_method_calls = vim.fn.has('nvim-0.11') == 1

---@alias tandem.ClientCallback fun(client?: vim.lsp.Client, problem?: string)

---@type table<string, vim.lsp.Client> initialized clients by root
local ready = {}
---@type table<string, tandem.ClientCallback[]> who waits for a starting client, by root
local waiting = {}
---@type table<string, integer> ids of starting clients by root
local starting = {}
---@type table<integer, true> ids of the plugin's own clients; Neovim gives no id twice
local own = {}
local watching = false

---@param root string
---@param client? vim.lsp.Client
---@param problem? string
local function answer(root, client, problem)
  local callbacks = waiting[root] or {}
  waiting[root], starting[root] = nil, nil
  for _, callback in ipairs(callbacks) do
    callback(client, problem)
  end
end

---@param root string
---@param path string normalized
---@return boolean
function M.contains(root, path)
  return path == root or vim.startswith(path, vim.endswith(root, '/') and root or root .. '/')
end

--- A buffer that is a file with a name: never a special buffer, a URL or a terminal.
---@param bufnr integer
---@return boolean
local function is_file(bufnr)
  local name = api.nvim_buf_get_name(bufnr)
  return api.nvim_buf_is_loaded(bufnr)
    and vim.bo[bufnr].buftype == ''
    and name ~= ''
    and not name:match('^%a[%w+.-]+://')
end

---@param path string
---@return string root
local function root_of(path)
  return vim.fs.normalize(vim.fs.root(path, config.get().root_markers) or vim.fn.getcwd())
end

--- The workspace root that belongs to a buffer: of its file, else of the current directory.
---@param bufnr integer
---@return string
function M.root(bufnr)
  return vim.b[bufnr].tandem_root or root_of(is_file(bufnr) and api.nvim_buf_get_name(bufnr) or vim.fn.getcwd())
end

--- The root to attach a buffer under, or nil if tandem should leave the buffer alone.
---@param bufnr integer
---@return string?
function M.attachable(bufnr)
  if not is_file(bufnr) then
    return nil
  end
  local path = vim.fs.normalize(api.nvim_buf_get_name(bufnr))
  local root = root_of(path)
  return M.contains(root, path) and root or nil
end

---@return table capabilities Neovim's own plus the opt-in to the session methods
local function capabilities()
  return vim.tbl_deep_extend('force', vim.lsp.protocol.make_client_capabilities(), {
    experimental = {
      tandem = {
        fs = { readTextFile = false, writeTextFile = false },
        terminal = false,
        _meta = {
          ['tandem.diagnostics'] = true,
          ['tandem.save'] = true,
          ['tandem.plan'] = true,
          ['tandem.language'] = require('tandem.language').operations(),
        },
      },
    },
  })
end

--- While exiting, Neovim still receives messages but has no buffers left: an error would wait for a key forever.
---@generic F: function
---@param callback F
---@return F
local function unless_exiting(callback)
  return function(...)
    if vim.v.exiting == vim.NIL then
      return callback(...)
    end
  end
end

---@type table<string, fun(err: any, params: any, context: lsp.HandlerContext): any, any>
local handlers = vim.tbl_map(unless_exiting, {
  ['workspace/applyEdit'] = function(_, params, context)
    local client = assert(vim.lsp.get_client_by_id(context.client_id))
    -- A command may have written the files: unmodified buffers are reloaded instead of edited. Neovim gives reloaded
    -- text the version of the previous text, which this edit was made for.
    if M.reload(client.config.root_dir) then
      return { applied = false, failureReason = 'files changed on disk and were reloaded' }
    end
    local turns = vim.tbl_map(function(session)
      return session.state ~= 'idle' and session.turn or 0
    end, require('tandem.chats').of_root(client.config.root_dir))
    local turn = table.concat(turns, ' ') -- of each chat
    return require('tandem.apply').apply(params, client.offset_encoding, turn:find('[1-9]') and turn or nil)
  end,
  ['session/update'] = function(_, params)
    require('tandem.incoming').on_update(params)
  end,
  ['_tandem/turn'] = function(_, params)
    require('tandem.incoming').on_turn(params)
  end,
  ['_tandem/jobs/changed'] = function(_, params)
    require('tandem.incoming').on_jobs(params)
  end,
  ['session/request_permission'] = function(_, params)
    return require('tandem.incoming').on_permission(params)
  end,
  ['_tandem/inline/update'] = function(_, params)
    require('tandem.inline').on_update(params)
  end,
  ['_tandem/diagnostics'] = function(_, params, context)
    local client = assert(vim.lsp.get_client_by_id(context.client_id))
    return require('tandem.diagnostics').answer(params, client.offset_encoding)
  end,
  ['_tandem/language'] = function(_, params, context)
    local client = assert(vim.lsp.get_client_by_id(context.client_id))
    return require('tandem.language').answer(params, client.offset_encoding)
  end,
  ['_tandem/save'] = function(_, params)
    for _, uri in ipairs(params.uris) do
      local bufnr = vim.uri_to_bufnr(uri)
      if api.nvim_buf_is_loaded(bufnr) and vim.bo[bufnr].modified then
        -- One that cannot be written stays modified, which the server sees.
        pcall(api.nvim_buf_call, bufnr, function()
          vim.cmd('silent update')
        end)
      end
    end
    return vim.NIL
  end,
  ['_tandem/status'] = function(_, params, context)
    require('tandem.incoming').on_status(params, context.client_id)
  end,
  ['window/showMessageRequest'] = function(_, params)
    local titles = vim.tbl_map(function(action)
      return '&' .. action.title
    end, params.actions or {})
    local chosen = vim.fn.confirm('tandem: ' .. params.message, table.concat(titles, '\n'), #titles, 'Question')
    return (params.actions or {})[chosen] or vim.NIL
  end,
  ['window/showMessage'] = function(_, params)
    local levels = { vim.log.levels.ERROR, vim.log.levels.WARN, vim.log.levels.INFO, vim.log.levels.DEBUG }
    require('tandem.say')(params.message, levels[params.type])
  end,
})

--- Registers a client as the plugin's own, before it is attached to a buffer.
---@param client vim.lsp.Client
function M.claim(client)
  own[client.id] = true
end

--- Whether a client is not tandem's: a language server, as far as the plugin knows.
---@param client vim.lsp.Client
---@return boolean
function M.is_foreign(client)
  return not own[client.id]
end

--- The configuration for `vim.lsp.start` and, as `lsp/tandem.lua`, for `vim.lsp.enable`.
---@return vim.lsp.ClientConfig
function M.lsp_config()
  local options = config.get()
  return {
    name = 'tandem',
    cmd = options.cmd,
    cmd_env = options.env,
    init_options = next(options.init_options) and options.init_options or vim.empty_dict(),
    capabilities = capabilities(),
    flags = { debounce_text_changes = 0 },
    handlers = handlers,
    before_init = function(_, started)
      waiting[started.root_dir] = waiting[started.root_dir] or {}
    end,
    on_init = function(client)
      M.claim(client)
      local notify = client.rpc.notify
      client.rpc.notify = function(method, params)
        return notify(method, require('tandem.mirror').checked(method, params))
      end
      local root = client.config.root_dir
      ready[root] = client
      M.attach_all(client)
      answer(root, client)
    end,
    on_exit = vim.schedule_wrap(unless_exiting(function(code, signal, id)
      M.on_exit(code, signal, id)
    end)),
  }
end

---@param code integer
---@param signal integer
---@param id integer
function M.on_exit(code, signal, id)
  local failed = code ~= 0 or (signal ~= 0 and signal ~= 15)
  local cause = signal == 0 and 'exit code ' .. code or 'signal ' .. signal
  local why = ('the server ended (%s); see :Tandem log'):format(cause)
  for root, client in pairs(ready) do
    if client.id == id then
      ready[root] = nil
      require('tandem.chats').on_server_exit(root, why, failed)
      require('tandem.inline').on_server_exit(id, why)
    end
  end
  for root in pairs(waiting) do
    if not starting[root] or starting[root] == id then -- others start on
      answer(root, nil, why)
    end
  end
end

--- Runs the server so that its end is reported once, by the plugin: Neovim also reports one that failed, in a message
--- of several lines that waits for a key.
---@param settings vim.lsp.ClientConfig
---@return vim.lsp.ClientConfig
local function told_once(settings)
  local program = settings.cmd
  if type(program) ~= 'table' then
    return settings
  end
  local ended_with = { 0, 0 }
  return vim.tbl_extend('force', settings, {
    cmd = function(dispatchers)
      local ours = vim.tbl_extend('force', dispatchers, {
        on_exit = function(code, signal)
          ended_with = { code, signal }
          dispatchers.on_exit(0, 0)
        end,
      })
      local place = { cwd = settings.cmd_cwd, env = settings.cmd_env, detached = settings.detached }
      return vim.lsp.rpc.start(program, ours, place)
    end,
    on_exit = function(_, _, id)
      for _, listener in ipairs(type(settings.on_exit) == 'table' and settings.on_exit or { settings.on_exit }) do
        listener(ended_with[1], ended_with[2], id)
      end
    end,
  })
end

--- `vim.lsp.config('tandem', …)` of the user is merged with lsp/tandem.lua by Neovim 0.11 and later.
---@return vim.lsp.ClientConfig
local function merged_config()
  return vim.lsp.config and vim.lsp.config.tandem or M.lsp_config()
end

---@param root string
---@return vim.lsp.ClientConfig
local function config_for(root)
  return vim.tbl_extend('force', told_once(merged_config()), {
    root_dir = root,
    workspace_folders = { { uri = vim.uri_from_fname(root), name = vim.fs.basename(root) } },
  })
end

---@param root string
---@return integer? client_id
local function start(root)
  if has_method_calls then
    return vim.lsp.start(config_for(root), { attach = false })
  end
  return vim.lsp.start_client(config_for(root))
end

--- The client of a root, started when there is none.
---@param root string
---@param callback tandem.ClientCallback
function M.ensure(root, callback)
  if ready[root] then
    return callback(ready[root])
  elseif waiting[root] then
    table.insert(waiting[root], callback)
    return
  end
  local cmd = merged_config().cmd
  if type(cmd) == 'table' and vim.fn.executable(cmd[1]) == 0 then
    return callback(nil, ('cannot run `%s`: install tandem or set vim.g.tandem.cmd; see :Tandem health'):format(cmd[1]))
  end
  waiting[root] = { callback }
  M.watch_buffers()
  starting[root] = start(root)
  if not starting[root] then
    answer(root, nil, 'the server did not start; see :Tandem log')
  end
end

---@param root string
---@return vim.lsp.Client?
function M.running(root)
  return ready[root]
end

---@param bufnr integer
---@return boolean
local function has_file(bufnr)
  return vim.uv.fs_stat(api.nvim_buf_get_name(bufnr)) ~= nil
end

---@param client vim.lsp.Client
---@param bufnr integer
local function attach(client, bufnr)
  vim.b[bufnr].tandem_is_new = not has_file(bufnr)
  if M.attachable(bufnr) == client.config.root_dir and not vim.lsp.buf_is_attached(bufnr, client.id) then
    vim.lsp.buf_attach_client(bufnr, client.id)
    require('tandem.local_server').attach(bufnr)
  end
end

---@param client vim.lsp.Client
function M.attach_all(client)
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    attach(client, bufnr)
  end
end

--- Attaches the files that are opened from now on, and reports where the user is.
function M.watch_buffers()
  if watching then
    return
  end
  watching = true
  local group = api.nvim_create_augroup('tandem', {})
  api.nvim_create_autocmd('BufFilePre', {
    group = group,
    desc = 'tandem: close a file when its buffer is renamed (Neovim itself does so only on the next write)',
    callback = function(event)
      local client = ready[M.attachable(event.buf)]
      if client and vim.lsp.buf_is_attached(event.buf, client.id) then
        vim.lsp.buf_detach_client(event.buf, client.id)
      end
    end,
  })
  api.nvim_create_autocmd({ 'BufReadPost', 'BufNewFile', 'BufWritePost', 'BufFilePost', 'FileType' }, {
    group = group,
    desc = 'tandem: attach files of a workspace that has a server',
    callback = function(event)
      local client = ready[M.attachable(event.buf)]
      if client then
        attach(client, event.buf)
      end
    end,
  })
  require('tandem.focus').watch(group)
  require('tandem.suggest').watch(group)
end

---@param path string
---@return string[]? lines nil if there is no such file, or it cannot be read
local function stored_lines(path)
  local is_read, lines = pcall(vim.fn.readfile, path)
  return is_read and lines or nil
end

--- A file that was removed and written again, as an undo does, is older than what Neovim has read: `:write` would ask.
--- Neovim notes the new time of a buffer without changes, so the unsaved text steps back for a moment. If the file
--- differs from the text that was read, nothing is noted, and the question is justified.
---@param bufnr integer
local function note_time(bufnr)
  local name, current = api.nvim_buf_get_name(bufnr), vim.fn.undotree(bufnr).seq_cur
  local time = vim.fn.getftime(name)
  if vim.b[bufnr].tandem_time == time or time < 0 or vim.fn.mode() ~= 'n' then
    return
  end
  local lines = stored_lines(name)
  if not lines then
    return
  end
  vim.b[bufnr].tandem_time = time
  api.nvim_buf_call(bufnr, function()
    local view, ignored = vim.fn.winsaveview(), vim.o.eventignore
    vim.o.eventignore = 'all'
    -- Step by step, because `:earlier 1f` goes past a reloaded text.
    local undone
    while vim.bo.modified and undone ~= vim.fn.undotree().seq_cur do
      undone = vim.fn.undotree().seq_cur
      vim.cmd('silent! undo')
    end
    if not vim.bo.modified and vim.deep_equal(lines, api.nvim_buf_get_lines(0, 0, -1, false)) then
      vim.cmd('silent! checktime %')
    end
    vim.cmd('silent! undo ' .. current)
    vim.o.eventignore = ignored
    vim.fn.winrestview(view)
  end)
end

--- Reloads a file that has changed. `:checktime` would ask what to do if the file was created after its buffer (W13), or if
--- 'autoread' is off (W11).
---@param bufnr integer
local function reread(bufnr)
  if vim.b[bufnr].tandem_is_new and has_file(bufnr) then
    api.nvim_buf_call(bufnr, function()
      vim.cmd('silent! edit')
    end)
  else
    local autoread = vim.go.autoread
    vim.go.autoread = true
    vim.cmd(('silent! checktime %d'):format(bufnr))
    vim.go.autoread = autoread
  end
end

--- Whether a buffer has the text of its file. The sizes are compared first: that costs nothing.
---@param bufnr integer
---@return boolean
local function is_stored(bufnr)
  local name, count = api.nvim_buf_get_name(bufnr), api.nvim_buf_line_count(bufnr)
  local ending = vim.bo[bufnr].fileformat == 'dos' and '\r' or ''
  local size = api.nvim_buf_get_offset(bufnr, count) + count * #ending
  if math.abs(vim.fn.getfsize(name) - size) > 2 then
    return false
  end
  local lines = vim.tbl_map(function(line)
    return line .. ending
  end, api.nvim_buf_get_lines(bufnr, 0, -1, false))
  local stored = stored_lines(name)
  return stored ~= nil and vim.deep_equal(lines, #stored > 0 and stored or { ending })
end

--- Reloads files that a command changed on disk, if their buffers are unchanged.
---@param root string
---@param is_restored? boolean whether an undo may have written files again
---@return boolean found whether there was one
function M.reload(root, is_restored)
  local found = false
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    if M.attachable(bufnr) == root then
      if vim.bo[bufnr].modified and is_stored(bufnr) then -- such as after a rejection
        vim.bo[bufnr].modified = false
      end
      if not vim.bo[bufnr].modified then
        local tick = api.nvim_buf_get_changedtick(bufnr)
        reread(bufnr)
        found = found or api.nvim_buf_get_changedtick(bufnr) ~= tick
      elseif is_restored then -- never within a turn, whose edits are one undo step
        note_time(bufnr)
      end
    end
  end
  return found
end

---@param client vim.lsp.Client
---@param method string
---@param params table
---@param callback fun(err?: lsp.ResponseError, result?: any)
---@return integer? id of the request
function M.request(client, method, params, callback)
  local id
  callback = unless_exiting(callback)
  if has_method_calls then
    _, id = client:request(method, params, callback)
  else
    _, id = client.request(method, params, callback)
  end
  return id
end

--- Cancels a request.
---@param client vim.lsp.Client
---@param id integer
function M.cancel(client, id)
  if has_method_calls then
    client:cancel_request(id)
  else
    client.cancel_request(id)
  end
end

---@param client vim.lsp.Client
---@param method string
---@param params table
function M.notify(client, method, params)
  if has_method_calls then
    client:notify(method, params)
  else
    client.notify(method, params)
  end
end

return M
