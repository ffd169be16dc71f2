--- Whether a function that plugins like to replace is still Neovim's own.

---@param f function
---@return boolean
return function(f)
  local source = debug.getinfo(f, 'S').source
  -- Neovim 0.12 has its own modules without their sources ("?"); before, they were named.
  return vim.iter({ '^[@=]?%?$', 'vim/_editor%.lua$', 'vim/ui%.lua$' }):any(function(pattern)
    return source:find(pattern) ~= nil
  end)
end
