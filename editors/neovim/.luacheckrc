-- luacheck --config editors/neovim/.luacheckrc editors/neovim tests/editors
std = "luajit"
globals = { "vim" }
max_line_length = 120
ignore = { "212/self" } -- methods that need no state yet are methods
