-- Notebooks in Neovim, where a buffer has their JSON: the model reads and edits their cells.
local M = {}

local api = vim.api

--- A notebook as Jupyter writes it, whose code cell has these lines.
---@param ... string
---@return string[]
local function notebook(...)
  local source = vim.tbl_map(function(line)
    return '    ' .. vim.json.encode(line)
  end, { ... })
  local lines = { '{', ' "cells": [', '  {', '   "cell_type": "code",', '   "execution_count": 3,', '   "id": "b2",' }
  vim.list_extend(lines, { '   "metadata": {},', '   "outputs": [],', '   "source": [' })
  vim.list_extend(lines, vim.split(table.concat(source, ',\n'), '\n'))
  vim.list_extend(lines, { '   ]', '  }', ' ],', ' "metadata": {},', ' "nbformat": 4,', ' "nbformat_minor": 5', '}' })
  return lines
end

---@param t table the harness
---@param model table
---@param use tandem.test.Driver
function M.test(t, model, use)
  t.test('an unsaved notebook is read and edited as cells, reviewed, undone and saved to the byte', function()
    local _, folder = use.project('notebook')
    local path = folder .. '/sums.ipynb'
    vim.fn.writefile(notebook('x = 1\n', 'plot(x)'), path)
    vim.cmd.edit(path)
    local buf = api.nvim_get_current_buf()
    local function lines()
      return api.nvim_buf_get_lines(buf, 0, -1, false)
    end
    local mine = notebook('x = 1\n', 'plot(x)  # mine')
    api.nvim_buf_set_lines(buf, 0, -1, false, mine)
    local function call(name, arguments)
      return { call = { id = name, name = name, arguments = vim.tbl_extend('error', { path = 'sums.ipynb' }, arguments) } }
    end
    local edits = { { old_text = 'x = 1', new_text = 'x = 2\ny = x' } }
    model:script({ call('read_file', vim.empty_dict()) }, { call('edit_file', { edits = edits }) }, { { text = 'It is two.' } })
    vim.cmd('Tandem ask Make it two')
    use.wait_request()
    local read = use.sent_text(model:state().requests[2])
    t.contains(read, '# %% [code] 1')
    t.contains(read, 'plot(x)  # mine')
    t.equal(lines(), mine)
    t.contains(use.chat(), '-x = 1\n+x = 2\n+y = x\n plot(x)  # mine')
    vim.cmd('Tandem allow')
    use.wait_idle()
    local changed = notebook('x = 2\n', 'y = x\n', 'plot(x)  # mine')
    t.equal(lines(), changed)
    t.wait('the change under review', function()
      return #use.session().review.changes == 1
    end)
    vim.cmd('Tandem reject all')
    t.wait('the rejection', function()
      return vim.deep_equal(lines(), mine)
    end)
    vim.cmd('Tandem undo')
    t.wait('the edit again', function()
      return vim.deep_equal(lines(), changed)
    end)
    vim.cmd('silent write')
    t.equal(vim.fn.readfile(path, 'b'), vim.list_extend(changed, { '' }))
  end)
end

return M
