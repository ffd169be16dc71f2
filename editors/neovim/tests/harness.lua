--- A small test harness: runs named tests in order, reports where each failure is, and prints a count at the end.
---@field recover fun() called after a test that failed: whatever it left open must not fail the next one
local M = { passed = 0, failed = 0, skipped = 0, recover = function() end }

--- The only test of this run: `finish` reruns a failed test in an editor of its own.
local AGAIN = 'TANDEM_TEST_AGAIN'
---@type { name: string, problem: string, is_of_all?: boolean }? the last one that failed
local failure

---@param text string
local function say(text)
  io.stdout:write(text .. '\n')
  io.stdout:flush()
end

---@param name string
---@param body fun()
---@param is_of_all? boolean it is about all the others, and means nothing alone
function M.test(name, body, is_of_all)
  if (vim.env[AGAIN] or name) ~= name then
    return
  end
  local ok, problem = xpcall(body, debug.traceback)
  if ok then
    M.passed = M.passed + 1
    say('ok ' .. name)
  else
    M.failed = M.failed + 1
    failure = { name = name, problem = tostring(problem), is_of_all = is_of_all }
    say(('FAILED %s\n  %s'):format(name, (tostring(problem):gsub('\n', '\n  '))))
    M.recover()
  end
end

---@param name string
---@param why string
function M.skip(name, why)
  M.skipped = M.skipped + 1
  say(('skipped %s: %s'):format(name, why))
end

--- Fails unless both are deeply equal.
---@param actual any
---@param expected any
---@param what? string
function M.equal(actual, expected, what)
  if not vim.deep_equal(actual, expected) then
    local message = '%s\n  expected: %s\n  actual:   %s'
    error(message:format(what or 'not equal', vim.inspect(expected), vim.inspect(actual)), 2)
  end
end

--- Fails unless the text contains the part.
---@param text string
---@param part string
function M.contains(text, part)
  if not text:find(part, 1, true) then
    error(('%q is not in:\n%s'):format(part, text), 2)
  end
end

--- Waits for a condition; a failure names it.
---@param what string
---@param condition fun(): any
---@param timeout_ms? integer
---@return any value what the condition answered
function M.wait(what, condition, timeout_ms)
  local value
  local function met()
    value = condition()
    return value
  end
  if not vim.wait(timeout_ms or 60000, met, 5) then
    error('waited in vain for: ' .. what, 2)
  end
  return value
end

--- If exactly one test failed, reruns it alone in a new editor: on a busy machine, a key or a frame can be late. If it
--- passes there, it counts as passed, and a warning names it.
local function play_again()
  local command = { vim.v.progpath, '--headless', '-u', 'NONE', '-l', arg[0] }
  local run = vim.system(command, { env = { [AGAIN] = failure.name }, text = true }):wait()
  local output = run.stdout .. run.stderr
  say('  ' .. output:gsub('\n', '\n  '))
  if run.code == 0 and run.stdout:find('ok ' .. failure.name .. '\n', 1, true) then
    M.passed, M.failed = M.passed + 1, 0
    local reason = vim.split(failure.problem, '\n')[1]
    say(('WARNING: %s: failed, and passed when it was played once more: %s'):format(failure.name, reason))
  end
end

--- Prints the count as the last line and ends the editor.
---@param options? { again?: boolean } whether a failed test may be run again
function M.finish(options)
  if options and options.again and M.failed == 1 and not failure.is_of_all and not vim.env[AGAIN] then
    play_again()
  end
  local skipped = M.skipped > 0 and (', %d skipped'):format(M.skipped) or ''
  say(('%d passed, %d failed%s'):format(M.passed, M.failed, skipped))
  vim.cmd(M.failed > 0 and 'cquit 1' or 'qall!')
end

return M
