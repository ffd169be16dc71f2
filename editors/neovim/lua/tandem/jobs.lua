--- The background commands of a session, as the server lists them.
local client = require('tandem.client')
local status = require('tandem.status')

---@class tandem.Jobs
---@field listed wire.Job[]
---@field private session tandem.Session
local Jobs = {}
Jobs.__index = Jobs

---@param session tandem.Session
---@return tandem.Jobs
function Jobs.new(session)
  return setmetatable({ session = session, listed = {} }, Jobs)
end

--- The jobs as the server reported them.
---@param jobs wire.Job[]
function Jobs:take(jobs)
  local before = self:running()
  self.listed = jobs
  self.session.chat:draw_jobs()
  if self:running() ~= before then
    status.changed(self.session)
  end
  require('tandem.jobs_window').draw(self.session)
end

---@return integer
function Jobs:running()
  return vim.iter(self.listed):fold(0, function(count, job)
    return count + (job.state == 'running' and 1 or 0)
  end)
end

--- How many are running, in words; nothing if none is.
---@return string?
function Jobs:count()
  local running = self:running()
  return running > 0 and (running == 1 and '1 job' or ('%d jobs'):format(running)) or nil
end

---@param id? integer
---@return wire.Job?
function Jobs:get(id)
  return vim.iter(self.listed):find(function(job)
    return job.id == id
  end)
end

---@param method string
---@param params table
---@param answered fun(result?: any, problem?: string)
function Jobs:request(method, params, answered)
  local id, connection = self.session.id, self.session.connection
  if not id or not connection then
    return answered(nil, 'no session is open')
  end
  params.sessionId = id
  client.request(connection, method, params, function(err, result)
    answered(result, err and err.message)
  end)
end

--- Requests the list again, because ports change while commands run.
---@param answered fun()
function Jobs:refresh(answered)
  self:request('_tandem/jobs', {}, function(result)
    if result then
      self:take(result.jobs)
    end
    answered()
  end)
end

--- What one printed, from an offset on.
---@param id integer
---@param offset integer
---@param colors boolean with the sequences that select them
---@param answered fun(output?: wire.JobOutput)
function Jobs:output(id, offset, colors, answered)
  self:request('_tandem/jobs/output', { id = id, offset = offset, colors = colors }, answered)
end

--- Sends a request to the server, and shows why if it fails.
---@private
---@param method string
---@param params table
---@param use fun(result: any)
function Jobs:act(method, params, use)
  self:request(method, params, function(result, problem)
    if problem then
      return require('tandem.say')(problem, vim.log.levels.ERROR)
    end
    use(result)
  end)
end

---@param id integer
function Jobs:stop(id)
  self:act('_tandem/jobs/stop', { id = id }, function() end)
end

--- Opens a port in the browser, after the server has asked.
---@param id integer
---@param port integer
function Jobs:open(id, port)
  self:act('_tandem/jobs/open', { id = id, port = port }, function(result)
    if result.url then
      vim.ui.open(result.url)
      require('tandem.say')(('port %d is at %s'):format(port, result.url))
    end
  end)
end

--- Moves the command of a running call to the background.
---@param call string its id
function Jobs:run_in_background(call)
  self:act('_tandem/jobs/background', { toolCallId = call }, function(job)
    require('tandem.say')(('Job %d runs in the background (:Tandem jobs)'):format(job.id))
  end)
end

--- The job that the command of a call has become.
---@param call wire.ToolCall
---@return wire.Job?
function Jobs:of(call)
  return self:get(vim.tbl_get(call, '_meta', 'tandem/job'))
end

---@param milliseconds integer
---@return string
local function duration(milliseconds)
  local minutes = math.floor(milliseconds / 60000)
  if minutes < 1 then
    return ('%d s'):format(math.max(0, milliseconds / 1000))
  end
  return minutes < 60 and ('%d min'):format(minutes) or ('%d h %d min'):format(minutes / 60, minutes % 60)
end

--- How long one has been running, or how it ended.
---@param job wire.Job
---@return string
function Jobs.describe(job)
  if job.state == 'running' then
    local seconds, microseconds = vim.uv.gettimeofday()
    return duration(seconds * 1000 + math.floor(microseconds / 1000) - job.startedAt)
  elseif job.state == 'stopped' then
    return 'stopped'
  end
  return job.exitCode and 'exit ' .. job.exitCode or 'ended'
end

return Jobs
