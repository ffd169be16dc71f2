--- Images in prompts: a pasted image is saved and its path is written into the input; named images are sent with it. An
--- image of the workspace needs none of this: `@shot.png` is a mention.
local M = {}

--- The image formats models accept, as on the server.
local LARGEST = 3750000

--- Programs that write the clipboard's image to their standard output.
local programs = {
  { 'wl-paste', '--no-newline', '--type', 'image/png' },
  { 'xclip', '-selection', 'clipboard', '-target', 'image/png', '-out' },
  { 'pngpaste', '-' },
}

---@return string
local function folder()
  return vim.fs.normalize(vim.fn.stdpath('cache') .. '/tandem/images')
end

---@param bytes string
---@return boolean
local function is_png(bytes)
  return vim.startswith(bytes, '\137PNG')
end

---@return string? bytes, string? problem
local function from_clipboard()
  local tried = {} ---@type string[]
  for _, program in ipairs(programs) do
    if vim.fn.executable(program[1]) == 1 then
      tried[#tried + 1] = program[1]
      local ok, run = pcall(function()
        return vim.system(program, { timeout = 3000 }):wait()
      end)
      if ok and run.code == 0 and is_png(run.stdout or '') then
        return run.stdout
      end
    end
  end
  if #tried == 0 then
    return nil, 'Pasting an image needs wl-paste, xclip or pngpaste'
  end
  return nil, ('There is no image in the clipboard (%s)'):format(table.concat(tried, ', '))
end

--- Saves an image.
---@param bytes string
---@return string name as it stands in a prompt
function M.save(bytes)
  local path = ('%s/%s.png'):format(folder(), vim.fn.sha256(bytes):sub(1, 12))
  vim.fn.mkdir(folder(), 'p', tonumber('700', 8))
  local file = assert(io.open(path, 'wb'))
  file:write(bytes)
  file:close()
  return ('![image](%s)'):format(path)
end

--- Saves the image in the clipboard.
---@return string? name as it stands in a prompt
---@return string? problem
function M.paste()
  local bytes, problem = from_clipboard()
  if not bytes then
    return nil, problem
  elseif #bytes > LARGEST then
    return nil, ('The image is %.2f MB; the limit is %.2f MB'):format(#bytes / 1e6, LARGEST / 1e6)
  end
  return M.save(bytes)
end

--- The images a prompt names, and its text without their paths.
---@param text string
---@return string text, wire.ContentBlock[] images
function M.split(text)
  local images = {} ---@type wire.ContentBlock[]
  local words = text:gsub('!%[image%]%((.-)%)', function(path)
    local file = vim.fs.dirname(vim.fs.normalize(path)) == folder() and io.open(path, 'rb')
    if not file then
      return nil
    end
    local data = vim.base64.encode(file:read('*a'))
    file:close()
    images[#images + 1] = { type = 'image', mimeType = 'image/png', data = data }
    return ('[image %d]'):format(#images)
  end)
  return words, images
end

return M
