--- Times of the server, which are in UTC, as those of the user's place.
local M = {}

--- Days from 1970 to a date, by years that begin in March: so the leap day is a year's last.
---@param year integer
---@param month integer
---@param day integer
---@return integer
local function days(year, month, day)
  if month < 3 then
    year, month = year - 1, month + 12
  end
  local leaps = math.floor(year / 4) - math.floor(year / 100) + math.floor(year / 400)
  return 365 * year + leaps + math.floor((153 * (month - 3) + 2) / 5) + day - 719469
end

--- The local time of a moment, with the summer time of that day and not of today.
---@param stamp? string such as `2026-11-21T11:33:00Z`
---@return string empty for what is no time
function M.local_time(stamp)
  local parts = { (stamp or ''):match('^(%d+)-(%d+)-(%d+)T(%d+):(%d+)') }
  if #parts == 0 then
    return ''
  end
  local year, month, day, hour, minute = unpack(vim.tbl_map(tonumber, parts))
  return vim.fn.strftime('%Y-%m-%d %H:%M', (days(year, month, day) * 24 + hour) * 3600 + minute * 60)
end

return M
