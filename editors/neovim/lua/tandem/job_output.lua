--- What a background command has printed, as far as it was read.
--- Invariant: the last lines are there, and memory is bounded.

---@class tandem.JobOutput
---@field is_whole boolean it has ended, and nothing is left to read
---@field private jobs tandem.Jobs
---@field private id integer
---@field private limit integer lines
---@field private ended string[] the lines that are complete
---@field private last string the line that is not
---@field private offset? integer where the next piece begins
---@field private is_cut boolean
local JobOutput = {}
JobOutput.__index = JobOutput

---@param jobs tandem.Jobs
---@param id integer
---@param limit integer how many lines are kept
---@return tandem.JobOutput
function JobOutput.new(jobs, id, limit)
  local output = { jobs = jobs, id = id, limit = limit, ended = {}, last = '', is_cut = false, is_whole = false }
  return setmetatable(output, JobOutput)
end

--- Reads what was printed since the last time.
---@param done fun(has_news: boolean)
function JobOutput:read(done)
  local job = self.jobs:get(self.id)
  local has_ended = not job or job.state ~= 'running' -- as of now: what it prints until the answer may be incomplete
  self.jobs:output(self.id, self.offset, function(piece)
    local has_news = piece ~= nil and piece.text ~= ''
    if piece then
      self:add(piece)
    end
    self.is_whole = not piece or has_ended and not has_news
    done(has_news)
  end)
end

---@private
---@param piece wire.JobOutput
function JobOutput:add(piece)
  local lines = vim.split(self.last .. piece.text, '\n', { plain = true })
  self.offset, self.last = piece.offset, table.remove(lines)
  vim.list_extend(self.ended, lines)
  self.is_cut = self.is_cut or piece.truncated or #self.ended > self.limit
  if #self.ended > self.limit then
    self.ended = vim.list_slice(self.ended, #self.ended - self.limit + 1)
  end
end

---@return string[]
function JobOutput:lines()
  local lines = vim.list_slice(self.ended)
  if self.last ~= '' then
    lines[#lines + 1] = self.last
  end
  return lines
end

--- All of them, after a line that says so where earlier ones are left out.
---@return string[]
function JobOutput:page()
  return vim.list_extend(self.is_cut and { '… earlier output left out' } or {}, self:lines())
end

return JobOutput
