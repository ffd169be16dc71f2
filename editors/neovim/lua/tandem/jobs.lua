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

--- What the server told of them.
---@param jobs wire.Job[]
function Jobs:take(jobs)
  local before = self:running()
  self.listed = jobs
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

--- How many run, in words; nothing where none does.
---@return string?
function Jobs:count()
  local running = self:running()
  return running > 0 and (running == 1 and '1 job' or ('%d jobs'):format(running)) or nil
end

---@param id integer
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

--- Lists them again: the ports change while they run.
---@param answered fun()
function Jobs:refresh(answered)
  self:request('_tandem/jobs', {}, function(result)
    if result then
      self:take(result.jobs)
    end
    answered()
  end)
end

--- A piece of what one printed, from an offset, or its end.
---@param id integer
---@param offset? integer
---@param answered fun(output?: wire.JobOutput)
function Jobs:output(id, offset, answered)
  self:request('_tandem/jobs/output', { id = id, offset = offset }, answered)
end

---@param id integer
function Jobs:stop(id)
  self:request('_tandem/jobs/stop', { id = id }, function(_, problem)
    if problem then
      require('tandem.say')(problem, vim.log.levels.ERROR)
    end
  end)
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

--- For how long one has been running, or how it ended.
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
