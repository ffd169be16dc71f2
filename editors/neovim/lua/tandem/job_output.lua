--- The last lines that a background command has printed, as far as it was read.
--- Invariant: the last lines are available, and memory is bounded.

---@class tandem.JobOutput
---@field is_whole boolean it has ended, and nothing is left to read
---@field private jobs tandem.Jobs
---@field private id integer
---@field private limit integer lines
---@field private ended string[] the lines that are complete
---@field private last string the line that is not, as far as it cannot change
---@field private line string the rest of it, as it stands
---@field private offset integer where the next piece begins
local JobOutput = {}
JobOutput.__index = JobOutput

---@param jobs tandem.Jobs
---@param id integer
---@param limit integer how many lines are kept
---@return tandem.JobOutput
function JobOutput.new(jobs, id, limit)
  local output = { jobs = jobs, id = id, limit = limit, ended = {}, last = '', line = '', offset = 0 }
  output.is_whole = false
  return setmetatable(output, JobOutput)
end

--- Reads what was printed since the last time.
---@param done fun(has_news: boolean)
function JobOutput:read(done)
  local job = self.jobs:get(self.id)
  local has_ended = not job or job.state ~= 'running' -- as of now: what it prints until the answer may be incomplete
  self.jobs:output(self.id, self.offset, false, function(piece)
    local has_news = piece ~= nil and (piece.text ~= '' or piece.line ~= self.line)
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
  self.offset, self.last, self.line = piece.offset, table.remove(lines), piece.line
  vim.list_extend(self.ended, lines)
  if #self.ended > self.limit then
    self.ended = vim.list_slice(self.ended, #self.ended - self.limit + 1)
  end
end

---@return string[]
function JobOutput:lines()
  local lines = vim.list_slice(self.ended)
  local last = self.last .. self.line
  if last ~= '' then
    lines[#lines + 1] = last
  end
  return lines
end

return JobOutput
