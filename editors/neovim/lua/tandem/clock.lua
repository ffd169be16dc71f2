--- Converts the server's times, which are in UTC, to local time.
local M = {}

--- The local time of a moment, with daylight saving time as on that day, not as today.
---@param stamp? string such as `2026-11-21T11:33:00Z`
---@return string empty for what is no time
function M.local_time(stamp)
  local year, month, day, hour, minute = (stamp or ''):match('^(%d+)-(%d+)-(%d+)T(%d+):(%d+)')
  if not year then
    return ''
  end
  -- The UTC date is read as local standard time; reading its own UTC date in the same way gives the offset to correct.
  local read = os.time({ year = year, month = month, day = day, hour = hour, min = minute, isdst = false })
  local utc = os.date('!*t', read) --[[@as osdate]]
  utc.isdst = false
  return vim.fn.strftime('%Y-%m-%d %H:%M', 2 * read - os.time(utc))
end

return M
