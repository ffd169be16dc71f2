@echo off
set failed=0
call :check 1000 1 0 1000
call :check 1000 3 100 2900
call :check 250 4 50 950
exit /b %failed%
:check
call total.cmd %1 %2 %3
if %got%==%4 (echo ok    total %1 %2 %3 = %got%) else (echo FAIL  total %1 %2 %3 = %got%, expected %4& set failed=1)
exit /b
