//! Lines that run `rm f` where only the shell or another program sees it, spelled in every way that is known.

use std::collections::BTreeMap;

use super::*;

/// Constructs that evaluate a subscript, with the position of the name.
const SUBSCRIPTS: &str = r#"
let {}
let {}=1
let x=1 {}
let 1+{}
builtin let {}
command let {}
printf -v {} x
printf -v{} x
builtin printf -v {} x
test -v {}
test ! -v {}
test -n a -a -v {}
test '(' -v {} ')'
[ -v {} ]
[ ! -v {} ]
[[ -v {} ]]
[[ ! -v {} ]]
[[ -n x && -v {} ]]
[[ {} -eq 0 ]]
[[ 0 -ne {} ]]
[[ ! {} -gt 0 ]]
[[ ( 1 -lt {} ) ]]
[[ -n x || {} -le 0 ]]
[[ 1 -ge 1+{} ]]
declare {}=1
declare -i n={}
declare -ir n={}
declare -a b=({})
declare -i n; n={}
declare -i n+={}
declare -n r={}; r=1
declare -n r={}; echo $r
typeset {}=1
typeset -i n={}
typeset -n r={}
f() { local {}=1; }; f
f() { local -i n={}; }; f
f() { local -n r={}; r=1; }; f
readonly {}=1
readonly -a {}=1
export {}=1
read {} <<< x
read -r {} <<< x
read -r x {} <<< 'y z'
unset {}
unset -v {}
wait -p {} -n
getopts a {} -a
x={}; let x
x={}; let y=x+1
x={}; (( x ))
x={}; echo $((x))
x={}; echo $(( $x ))
x={}; echo ${y[x]}
x={}; echo ${y:x}
x={}; echo ${y:0:x}
x={}; y[x]=1
x={}; y=([x]=1)
x={}; [[ $x -eq 0 ]]
x={}; [[ x -eq 0 ]]
x={}; [[ -v $x ]]
x={}; test -v "$x"
x={}; [ -v $x ]
x={}; [ "$x" -v $x ]
x="-v {} -o y"; [ $x = y ]
x={}; [ $x ]
x={}; printf -v "$x" y
x={}; read "$x"
x={}; declare "$x"=1
x={}; unset "$x"
x={}; for ((i = x; i < 1; i++)); do ls; done
x={}; echo ${!x}
x={}; echo "${!x}"
x={}; echo $[x]
x={}; declare -i y=x
x={} ; let "y = $x"
echo ${y[{}]}
echo $(({}))
y[{}]=1
((y = {}))
"#;

/// Constructs that evaluate a text as a command, with the position of the text.
const TEXTS: &str = r#"
eval {}
eval -- {}
builtin eval {}
command eval {}
trap {} EXIT
trap -- {} DEBUG
trap {} ERR; false
builtin trap {} 0
complete -C {} x
complete -W {} x
compgen -C {} x
compgen -W {} x
mapfile -C {} -c 1 a < x
mapfile -c 1 -C {} a < x
mapfile -tC {} -c 1 a < x
readarray -C {} -c 1 a < x
bind -x {}
alias ls={}; ls
source <(echo {})
. <(echo {})
source /dev/stdin <<< {}
echo {} | sh
echo {} | bash -s
echo {} | tee /dev/null | sh
sh <<< {}
sh < <(echo {})
sh -c {}
sh -ec {}
sh -c -- {}
bash -xc {}
bash -O extglob -c {}
bash --norc -c {}
bash --rcfile <(echo {}) -i
bash --init-file x -ic {}
dash -c {}
zsh -c {}
zsh -fc {}
ksh -c {}
fish -c {}
fish --command={}
fish -C {}
nu -c {}
xonsh -c {}
csh -c {}
tcsh -c {}
pwsh -c {}
pwsh -Command {}
busybox sh -c {}
x={}; $x
x={}; eval $x
x={}; eval "$x"
x={}; ${x}
x={}; sh -c "$x"
x={}; bash <<< $x
echo {} > s; sh s
echo {} > s; . ./s
cat <<< {} | sh
at now <<< {}
env -S {}
env -S{}
env -vS {}
env --split-string={}
env --split-string {}
env --sp={}
xargs -I% sh -c {}
watch {}
watch -n 1 {}
script -c {} x
script -qc {} /dev/null
script -c{}
script --command={}
script --com {}
flock x -c {}
flock -n x -c {}
flock -nc {} x
su -c {}
su me -c {}
su --command={} me
runuser -c {} me
parallel {} ::: 1
parallel ::: {}
tmux new -d {}
tmux run-shell {}
screen -dm sh -c {}
nix-shell --run {}
nix-shell --command {}
hyperfine {}
hyperfine --prepare {} ls
hyperfine -p {} ls
entr -s {}
ssh h {}
npm exec -c {}
npx -c {}
capsh -- -c {}
expect -c {}
"#;

/// Programs that run their arguments.
const PREFIXES: &str = r"
sudo | sudo -u me | doas | pkexec | env | env -i | env -u X | env A=b | env -C x | env - | nohup | nice | nice
-n 5 | ionice -c 3 | chrt 1 | taskset 1 | timeout 5 | timeout -s KILL 5 | stdbuf -o0 | time | /usr/bin/time |
/usr/bin/time -v | strace | strace -f | ltrace | valgrind | perf stat | perf record -- | setsid | setsid -w |
exec | exec -a x | command | command -p | builtin command | xargs | xargs -n 1 | xargs -0 -P 4 | find . -exec
| find . -execdir | find . -ok | busybox | toybox | chroot . | unshare | unshare -r | nsenter -t 1 | setarch
x86_64 | setpriv | prlimit | choom -n 0 -- | numactl | faketime x | unbuffer | rlwrap | watchexec | entr |
flock x | ssh-agent | dbus-run-session | xvfb-run | systemd-run | fakeroot | proot | firejail | bwrap
--dev-bind / / | gdb --args | direnv exec . | asdf exec | mise exec -- | mise x -- | conda run | poetry run |
pipenv run | uv run | uv tool run | uvx | pipx run | hatch run | pdm run | rye run | bundle exec | rbenv exec
| pyenv exec | volta run | rustup run stable | npx | npx --yes | npm exec | npm exec -- | npm x | pnpm exec |
pnpm dlx | yarn exec | yarn dlx | yarn run | bunx | bun x | bun run | nix shell -c | nix develop -c | nix run
| guix shell -- | stack exec -- | cabal exec | opam exec -- | dune exec | mix cmd | xcrun | ccache | libtool
--mode=execute | scan-build | bear -- | docker run x | docker exec c | podman run x | kubectl exec p -- |
dotenv | dotenvx run -- | foreman run | envdir d | chpst | just --command | cmake -E | cmake -E env | cmake -E
time | git bisect run | git submodule foreach | git for-each-repo --config=x | /lib64/ld-linux-x86-64.so.2 |
coproc | ! | then=1 | eval | hash -p /bin/rm x; x | trap | heroku run | concurrently | nodemon --exec | kcov x
| catchsegv | daemonize | start-stop-daemon --start --exec | socat - EXEC: | cargo watch -s
";

/// Variables whose value another program runs.
const VARIABLES: &str = "
BASH_ENV ENV PROMPT_COMMAND PS4 PS1 PS0 SHELLOPTS BASHOPTS IFS PATH CDPATH LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT
DYLD_INSERT_LIBRARIES DYLD_LIBRARY_PATH GIT_SSH_COMMAND GIT_SSH GIT_EXTERNAL_DIFF GIT_PAGER GIT_EDITOR
GIT_SEQUENCE_EDITOR GIT_ASKPASS SSH_ASKPASS SUDO_ASKPASS GIT_EXEC_PATH GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM
GIT_CONFIG_COUNT GIT_CONFIG_PARAMETERS GIT_PROXY_COMMAND GIT_TEMPLATE_DIR GIT_DIR PAGER MANPAGER MANROFFOPT
BAT_PAGER SYSTEMD_PAGER PSQL_PAGER DELTA_PAGER EDITOR VISUAL FCEDIT HGEDITOR SVN_EDITOR PSQL_EDITOR BROWSER
LESSOPEN LESSCLOSE LESS RSYNC_RSH CVS_RSH TAR_OPTIONS MAKEFLAGS GNUMAKEFLAGS MAKEFILES GCC_EXEC_PREFIX
COMPILER_PATH PYTHONSTARTUP PYTHONPATH PYTHONHOME PYTHONINSPECT PYTHONWARNINGS PYTHONBREAKPOINT NODE_OPTIONS
NODE_PATH PERL5OPT PERL5LIB PERL5DB PERLLIB RUBYOPT RUBYLIB JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS
MAVEN_OPTS GRADLE_OPTS RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER RUSTC RUSTDOC CARGO_BUILD_RUSTC
CARGO_BUILD_RUSTC_WRAPPER CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER
CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER RUSTFLAGS CARGO_ENCODED_RUSTFLAGS npm_config_script_shell
NPM_CONFIG_SCRIPT_SHELL npm_config_node_options FZF_DEFAULT_COMMAND FZF_DEFAULT_OPTS CC CXX LD AR SHELL
MAKESHELL LUA_INIT LUA_PATH LUA_CPATH VIMINIT EXINIT GVIMINIT INPUTRC LESSKEY LESSKEYIN GOFLAGS GCC_SPECS
PHPRC PHP_INI_SCAN_DIR R_PROFILE R_PROFILE_USER JULIA_LOAD_PATH ERL_FLAGS ERL_AFLAGS ELIXIR_ERL_OPTIONS
CLASSPATH CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER QT_PLUGIN_PATH GTK_MODULES GTK_PATH
OPENSSL_CONF GCONV_PATH WGETRC CURL_HOME ANSIBLE_CONFIG TEXMFCNF SCREENRC ZDOTDIR FPATH READNULLCMD NULLCMD
RIPGREP_CONFIG_PATH HOSTALIASES ACKRC TERMINFO CONFIG_SHELL
";

/// Options that take a program or a text to run: the program and its prefix, letters, letters that may be combined
/// with them, and long options with their shortest abbreviation; below, complete arguments.
const OPTIONS: &str = r#"
git; ; ; --exec-path 11, --config-env 12
    -c core.pager='rm f' log
    -c alias.x='!rm f' x
    -c 'alias.x=!rm f' x
    -p -c core.pager='rm f' log
    --no-pager -c core.editor='rm f' commit
    -C x -c core.pager='rm f' log
    --config-env core.pager=X log
    config alias.x '!rm f'
    config core.pager 'rm f'
    config --global core.hooksPath x
    config set core.fsmonitor 'rm f'
    config --local --add core.sshCommand 'rm f'
    clone 'ext::rm f' x
    clone "ext::sh -c rm% f" x
    fetch 'ext::rm f'
    pull 'ext::rm f'
    push 'ext::rm f' main
    ls-remote 'ext::rm f'
    remote add o 'ext::rm f'
    remote set-url o 'ext::rm f'
    submodule add 'ext::rm f' x
    archive --remote='ext::rm f' HEAD
    archive --remote 'ext::rm f' HEAD
    submodule --quiet foreach rm f
    submodule foreach --recursive 'rm f'
    bisect start; git bisect run rm f
    filter-branch --tree-filter 'rm f'
    filter-branch --index-filter 'rm f' HEAD
    filter-branch --msg-filter='rm f'
    filter-branch --env-filter 'rm f'
    filter-branch --commit-filter 'rm f'
    filter-branch --parent-filter 'rm f'
    -c core.sshCommand='rm f' fetch
    -c protocol.ext.allow=always clone x
    worktree add -c x
    -c diff.external='rm f' diff
    -c credential.helper='!rm f' fetch
    send-email --smtp-server=/bin/rm
    send-email --to-cmd='rm f'
    send-email --cc-cmd='rm f'
    send-email --sendmail-cmd='rm f'
    instaweb --httpd='rm f'
    instaweb -d 'rm f'
    help -c core.pager=x
    var -c x
git clone; uc; qvn; --upload-pack 4, --template 4, --config 5
git init; ; ; --template 4
git fetch; ; ; --upload-pack 7
git pull; ; ; --upload-pack 7
git fetch-pack; ; ; --upload-pack 7, --exec 6
git ls-remote; ; ; --upload-pack 5, --exec 5
git push; ; ; --receive-pack 5, --exec 4
git send-pack; ; ; --receive-pack 8, --exec 6
git archive --remote=.; ; ; --exec 4
git rebase; x; iqr; --exec 4
git difftool; x; yd; --extcmd 4
    --tool=x
    -t x
git grep; O; nil; --open-files-in-pager 6
git submodule--helper
    foreach 'rm f'
git remote-ext
    a 'rm f' <<< 'connect git-upload-pack'
git merge-index
    rm -a
gh
    alias set z '!rm f'
    alias set --shell z 'rm f'
    alias import - <<< "z: '!rm f'"
    config set pager 'rm f'
    config set -h h editor 'rm f'
pip; ; ; --editor 4
    config edit --editor 'rm f'
pip3.12
    config edit --editor=rm
pytest
    --pdb <<< '!__import__("os").system("rm f")'
ssh; oF; vqTAC
    -o ProxyCommand='rm f' h
    -oProxyCommand='rm f' h
    -vvo 'proxycommand rm f' h
    -o LocalCommand='rm f' -o PermitLocalCommand=yes h
    -o KnownHostsCommand='rm f' h
    h rm f
    -p 22 h 'rm f'
    -J x h rm f
    -I ./x.so h
scp; oSF; rpvq
    -S /bin/rm a h:b
    -o ProxyCommand='rm f' a h:b
    -roProxyCommand=rm a h:b
sftp; oSFD; rpvq
    -b x h
    -D /bin/rm
ssh-keygen; D
    -D ./x.so
ssh-add; s
    -s ./x.so
tar; IF; cvzf; --to-command 6, --use-compress-program 4, --checkpoint-action 13, --info-script 7, --new-volume-script 6, --rsh-command 5, --rmt-command 5
    cIf 'rm f' a b
    xIf 'rm f' a
    cFf 'rm f' a b
    cf a b --checkpoint=1 --checkpoint-action=exec='rm f'
    cf a b --checkpoint=1 --checkpoint-action exec='rm f'
    xf a --to-command='rm f'
    -cf a -I 'rm f' b
    -cIrm -f a b
    -xvfIrm a
bsdtar; ; ; --use-compress-program 22
cpio; ; ; --rsh-command 5, --rmt-command 5
rsync; e; avzr; --rsh 4, --rsync-path 7
    -e 'rm f' a h:b
    -av --rsh 'rm f' a h:b
    -avze'rm f' a h:b
    --rsync-path='rm f' a h:b
    -M--rsync-path=rm a b
find .;
    -exec rm {} +
    -exec rm '{}' ';'
    -name x -exec rm {} \;
    -execdir rm {} +
    -okdir rm {} \;
    -ok rm {} \;
    -type f -a -exec sh -c 'rm f' \;
    '-exec' rm f ';'
    -e"xec" rm f ';'
gcc;
    -wrapper rm,f a.c
    -wrapper 'rm,f' -c a.c
    -B . a.c
    -B. a.c
    -fplugin=x a.c
    -specs=x a.c
    --specs=x a.c
    -specs x a.c
    @x a.c
    -Wl,-plugin,x a.c
    -Xlinker -plugin -Xlinker x a.c
    -fuse-ld=./x a.c
    -fplugin=./x.so -c a.c
g++;
    -wrapper rm,f a.cc
    -B. a.cc
    -fplugin=x a.cc
cc;
    -wrapper rm,f a.c
    -B. a.c
x86_64-linux-gnu-gcc-12;
    -wrapper rm,f a.c
clang;
    -fplugin=x a.c
    -Xclang -load -Xclang x a.c
    -B. a.c
    --ld-path=./x a.c
    -fuse-ld=./x a.c
    -fpass-plugin=x a.c
    --config=x a.c
    --config x a.c
    @x a.c
    -load x a.c
ld;
    -plugin x a.o
    --plugin x a.o
    --plugin=x a.o
split; ; ; --filter 4
    -l 5 --filter='rm f' x
    x --filter 'rm f'
    --filt='rm f' x
sort; ; ; --compress-program 4
    -S 1 --compress-program rm x
sdiff; ; ; --diff-program 4
diff3; ; ; --diff-program 4
install; ; s; --strip-program 8
    -s --strip-program=rm a b
man; PHC; a; --pager 4, --html 4, --config-file 4
    -P 'rm f' ls
    ls -P 'rm f'
less; ; ; --lesskey-src 9, --lesskey-content 11
    '+!rm f' x
    +'!rm f' x
    "+!rm f" x
    ++'!rm f' x
    -k x y
    +\!rm\ f x
    x '+!rm f'
vim; cSsuU; enR; --cmd 5
    -c '!rm f'
    -c ':!rm f' -c q
    '+!rm f'
    +':!rm f' x
    --cmd '!rm f'
    -es -c '!rm f'
    -es x <<< ':!rm f'
    -S s
    -s s x
    -u s x
    '+:call system("rm f")'
    x -c '!rm f'
vi; c
    -c '!rm f'
    '+!rm f' x
ex; c; s
    -sc '!rm f' x
    -s x <<< '!rm f'
    '+!rm f' x
view; c
    -c '!rm f'
nvim; cSsul; enR; --cmd 5
    --headless -c '!rm f'
    '+!rm f' x
    -l x.lua
    --headless +'!rm f' +q
ed;
    x <<< '!rm f'
    -s x <<< '!rm f'
    '!rm f'
emacs; lf; Qq; --eval 4, --execute 5, --load 4, --funcall 5, --script 5
    -batch -l x
    -eval '(shell-command "rm f")'
    -Q --batch --eval '(x)'
    --ex '(x)'
nano;
sqlite3;
    db '.shell rm f'
    db '.system rm f'
    db .shell\ rm\ f
    db '.sh rm f'
    db '.read |rm f'
    db '.output |rm f'
    db '.once |rm f'
    db '.import "|rm f" t'
    db '.load ./x'
    -cmd '.shell rm f' db 'select 1'
    db 'select 1' '.shell rm f'
    -init x db
    db < x
    db <<< '.shell rm f'
    -batch db '.shell rm f'
    --cmd '.shell rm f' db .tables
    db "select edit('a','rm f')"
    db "SELECT load_extension('./x')"
    db $'.shell rm f'
    db ' .shell rm f'
duckdb; c
    -c '.shell rm f'
psql; f; Aqt; --file 3
    -c '\! rm f'
    -c "copy x to program 'rm f'"
    <<< '\! rm f'
mysql; ; uN; --pager 4
    -e '\! rm f'
    -e 'system rm f'
awk; f
    'BEGIN{system("rm f")}'
    'BEGIN { system ("rm f") }'
    '{print | "rm f"}' x
    'BEGIN{"rm f" | getline}'
    -f x
    -F: -f x
    -v x=1 'BEGIN{system(x)}'
    '{print|"rm f"}' x
    'BEGIN{print "f"|"xargs rm"}'
    'BEGIN{"rm f"|getline x}'
    -- 'BEGIN{system("rm f")}'
gawk; fliE; ; --load 3, --file 3, --exec 3, --include 3, --source 3
    'BEGIN{system("rm f")}'
    -e 'BEGIN{system("rm f")}'
    'BEGIN{x="system"; @x("rm f")}'
    '@load "x"'
    '@include "x"'
    'BEGIN{"rm f" |& getline}'
mawk; f
    'BEGIN{system("rm f")}'
sed; ef; nrEi; --expression 4, --file 3
    '1e rm f' x
    e x
    'e rm f' x
    's/a/rm f/e' x
    's/a/rm f/ge' x
    's,a,rm f,e' x
    -n '$e rm f' x
    -e 'e rm f' x
    -ne '1e rm f' x
    --expression='e rm f' x
    -f s x
    -fs x
    -E 's|a|rm f|Ie' x
    '1!e rm f' x
    's/a/b/;e rm f' x
    '1,3{s/a/rm f/e}' x
    -i 's/a/rm f/e' x
    's/.*/rm f/;e' x
    '1erm f' x
    'y/a/b/;e rm f' x
    's/\//rm f/e' x
    's/[/]/rm f/e' x
    '/\/;/e rm f' x
    ':e;be;e rm f' x
    '\,x,e rm f' x
make; E; ks; --eval 4
    --eval='$(shell rm f)'
    --eval '$(shell rm f)'
    SHELL=rm
    SHELL=/bin/rm x
    CC='rm f'
    'x=$(shell rm f)'
    'x:=$(shell rm f)'
    'x!=rm f'
    x::='$(shell rm f)' all
    MAKE='rm f'
    .SHELLFLAGS='-c rm'
    -f -
    -f-
    -sf-
    -ksf -
    -C x -sf /dev/stdin
    -f/dev/fd/0
    -f /proc/self/fd/0
    --file=-
    --file -
    --fi -
    --makefile=-
    --makefile /dev/stdin all
just; ; ;
    -f - all
    --justfile=- all
ninja; ; ;
    -f /dev/stdin
gmake; E; ; --eval 4
    SHELL=rm
cmake; P
    -E rm f
    -E env rm f
    -E time rm f
    -E remove f
    -E chdir x rm f
    -P x.cmake
    -DCMAKE_C_COMPILER_LAUNCHER=rm .
    -D CMAKE_C_COMPILER=/bin/rm .
    -DX=1 -P x
ctest;
    --build-and-test a b --test-command rm f
    --test-command rm
python3; c; BEIOSsuviqd
    -c 'import os; os.system("rm f")'
    -c'x'
    -W x -c y
    -X x -c y
    -Wx -c y
    -
    - < x
    <<< 'x'
    -m timeit x
    -mtimeit x
    -m pdb x
    -m code
    -Im timeit x
    -i
    -qi
    ""
    -u
    -m IPython -c x
    --check-hash-based-pycs always -c x
python3.12; c; B
pypy3; c; B
ipython; c
    -c 'run(rm)'
perl; eEMmd; nplaw0
    -e 'system("rm f")'
    -ne x
    -lane x
    -pi -e x
    -pi.bak -e x
    -0777 -ne x
    -F: -an -e x
    -w -e x
    -Mx y
    -mx y
    -d:x y
    -
    <<< x
    ""
    -CSD -e x
    -lne'x'
    -i.bak -pe x
    -We x
    -Tx -e y
ruby; er; nplaw
    -e x
    -ne x
    -pe x
    -rx -e y
    -ruri y
    -Ku -e x
    -
    <<< x
    ""
    -W0 -e x
    -Ilib -e x
    --disable=gems -e x
node; epr; i; --eval 6, --print 7, --require 9, --import 8, --loader 8, --experimental-loader 21
    -e x
    -pe x
    -p x
    --eval=x
    -r ./x y
    -
    <<< x
    ""
    --input-type=module -e x
    --no-warnings -e x
    -i -e x
    --env-file=x y
    --inspect -e x
deno;
    eval x
    eval -p x
    run -
    repl --eval x
    eval --ext=ts x
    run --allow-all -
    -q eval x
bun; e; ; --eval 6, --print 7
    -e x
    -p x
    --preload ./x y
    -r ./x y
    exec 'rm f'
    x rm f
php; ErRB; qn; --run 4
    -r 'system("rm f");'
    -d auto_prepend_file=x y
    -dauto_prepend_file=x y
    -a
    -n -r x
    -
    <<< x
    ""
lua; el; i
    -e x
    -lx y
    -
    <<< x
    ""
luajit; el
    -e x
Rscript; e
    -e 'run(rm)'
    --vanilla -e 'run(rm)'
R; e
    -e x
    --file=x
    -q -e x
julia; eEL; q; --eval 4, --print 4, --load 4
    -e x
    --project -e x
ghc;
    -e 'run(rm)'
elixir; e; ; --eval 6
    -e 'run(rm)'
erl;
    -eval 'run(rm)'
    -noshell -eval 'run(rm)'
groovy; e
    -e 'run(rm)'
scala; e
    -e 'run(rm)'
clojure; e
    -e 'run(rm)'
    -M -e 'run(rm)'
swipl;
guile; c
    -c 'run(rm)'
racket; e
    -e 'run(rm)'
sbcl;
    --eval 'run(rm)'
    --noinform --eval 'run(rm)'
octave;
    --eval 'run(rm)'
gnuplot; e
    -e 'system "rm f"'
ocaml; e
    -e 'run(rm)'
raku; e
    -e 'run(rm)'
    -ne 'run(rm)'
osascript; e
    -e 'do shell script "rm f"'
dc; e
    -e '!rm f'
    <<< '!rm f'
    --expression='!rm f'
m4;
    <<< 'syscmd(rm f)'
gdb; x; q
    -ex '!rm f'
    -batch -ex 'shell rm f'
    --eval-command='shell rm f'
    -x s
    --command=s
    -iex 'shell rm f'
    --args rm f
    -q -ex 'python x'
lldb; os; ; --one-line 6
    -o 'platform shell rm f'
    -b -o x
    -- rm f
zip; ; ; --unzip-command 7
    -T -TT 'rm f' a b
    a b -TT 'rm f'
    -T -TT rm a b
wget; e; q; --use-askpass 6, --execute 4
    -e use_askpass=rm x
    --use-askpass=rm x
tcpdump; z
    -G1 -w f -z rm
    -nz rm
socat;
    EXEC:'rm f' -
    - SYSTEM:'rm f'
    - exec:'rm f'
    TCP-LISTEN:1,fork EXEC:rm
nc; ec; lvn
    -e rm h 1
    -lc 'rm f'
ncat; ec; lvn; --exec 4, --sh-exec 4, --lua-exec 4
rg; ; ; --pre 5, --hostname-bin 14
    --pre=rm x
    x --pre rm
    -n --pre rm x
fd; xX; HIt; --exec 6, --exec-batch 12
    -x rm
    -X rm
    --exec rm
    -Hx rm
    x -x rm {}
    -e rs -x rm
fdfind; xX; HI; --exec 6
fzf; ; ; --preview 9, --bind 6
    --preview 'rm f'
    --bind 'start:execute(rm f)'
    --bind=enter:become(rm\ f)
bat; ; ; --pager 7
    --pager 'rm f' x
    --paging=always --pager=rm x
ack; ; ; --pager 7
    --pager='rm f' x
ag; ; ; --pager 7
    --pager 'rm f' x
delta; ; ; --pager 7
go;
    build -toolexec='rm f'
    build -toolexec 'rm f' .
    test -exec 'rm f'
    test -exec='rm f' ./...
    run -exec rm .
    vet -vettool=rm
    build --toolexec=rm
    test --exec rm
    env -w CC=rm
    build -ldflags '-extld rm'
    build -ldflags=-extld=rm
    generate -run x
cargo; ; ; --config 8
    --config 'build.rustc-wrapper="rm"' build
    build --config build.rustc-wrapper="rm"
    test --config target.x.runner='"rm"'
    rustc -- -C linker=rm
    rustc -- -Clinker=rm
    watch -s 'rm f'
    watch -x 'rm f'
    watch -- rm f
    +nightly --config x build
rustc;
    -C linker=rm a.rs
    -Clinker=rm a.rs
    --codegen linker=rm a.rs
    --codegen=linker=rm a.rs
    -Zcodegen-backend=x a.rs
    @x
java;
    -XX:OnOutOfMemoryError='rm f' X
    -XX:OnError='rm f' X
    -agentpath:x X
    -javaagent:x X
    -agentlib:x X
    '-XX:OnError=rm f' X
    @x
gradle; ; q
npm; ; ; --editor 4, --browser 4, --git 5, --shell 7
    config edit --editor='rm f'
    docs lodash --browser 'rm f'
    --script-shell=rm test
    test --script-shell=rm
    run x --script-shell rm
    config set script-shell rm
    set script-shell rm
    pkg set scripts.test='rm f'
    exec rm f
    exec -- rm f
    x rm f
    exec -c 'rm f'
    exec --call 'rm f'
    --node-options='-r ./x' test
    explore x -- rm f
    explore x rm f
    start --script-shell=rm
pnpm;
    --shell-mode exec 'rm f'
    --script-shell=rm test
pylint;
    --init-hook='import os; os.system("rm f")' x
    --init-hook 'x' y
just; c; ; --command 9, --shell 7
    --shell rm x
nodemon; x; ; --exec 6
    -x 'rm f'
    --exec rm
mocha; ; ; --require 9
enable; f
    -f ./x.so y
hash; p
    -p /bin/rm ls
fc; se
    -s x
    -e rm
    -e 'rm f'
bind; xf
    -x '"a": rm f'
    -f x
"#;

fn quotings(text: &str) -> [String; 3] {
    let mut escaped = String::new();
    for character in text.chars() {
        escaped.extend((!character.is_ascii_alphanumeric()).then_some('\\'));
        escaped.push(character);
    }
    let quoted = text.replace('$', "\\$").replace('`', "\\`");
    [format!("'{text}'"), format!("\"{quoted}\""), escaped]
}

/// The lines of a table.
fn rows(table: &'static str) -> impl Iterator<Item = &'static str> {
    table.lines().filter(|line| !line.is_empty())
}

/// The spellings that a row of [`OPTIONS`] describes.
fn options(row: &str) -> Vec<String> {
    let mut parts = row.split(';').map(str::trim);
    let mut part = || parts.next().unwrap_or_default();
    let (_, letters, beside, longs) = (part(), part(), part(), part());
    let mut options = Vec::new();
    for letter in letters.chars() {
        options.extend(
            [
                "-{} 'rm f' a",
                "'-{}rm f' a",
                "\"-{}\" 'rm f' a",
                "\\-{} 'rm f' a",
                "-''{} 'rm f'",
            ]
            .map(|spelling| spelling.replace("{}", &letter.to_string())),
        );
        for other in beside.chars() {
            options.extend([
                format!("-{other}{letter} 'rm f' a"),
                format!("-{other} -{letter} 'rm f' a"),
                format!("'-{other}{letter}rm f' a"),
            ]);
        }
    }
    for long in longs.split(',').filter(|long| !long.is_empty()) {
        let (long, shortest) = long.trim().split_once(' ').unwrap();
        for length in shortest.parse().unwrap()..=long.len() {
            let short = long.get(..length).unwrap();
            options.extend([
                format!("{short}='rm f' a"),
                format!("{short} 'rm f' a"),
                format!("'{short}=rm f' a"),
            ]);
        }
    }
    options
}

/// Their kinds, and the lines.
fn lines() -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    let mut add = |kind, line: String| lines.push((kind, line));
    for template in rows(SUBSCRIPTS) {
        for name in ["a[$(rm f)]", "a[`rm f`]", "a[0$(rm f)]"]
            .iter()
            .flat_map(|name| quotings(name))
        {
            add("subscript", template.replace("{}", &name));
        }
    }
    for template in rows(TEXTS) {
        for text in quotings("rm f") {
            add("text", template.replace("{}", &text));
        }
    }
    for prefix in PREFIXES.replace('\n', " ").split('|') {
        for command in ["rm f", "/bin/rm f", "'rm' f", "r\"m\" f"] {
            add("prefix", format!("{} {command}", prefix.trim()));
        }
    }
    for name in VARIABLES.split_whitespace() {
        for form in [
            "{}='rm f' ls",
            "env {}='rm f' ls",
            "export {}='rm f'; ls",
            "{}='rm f' ; ls",
            "declare -x {}='rm f'; ls",
        ] {
            add("variable", form.replace("{}", name));
        }
    }
    let mut program = "";
    for row in rows(OPTIONS) {
        if let Some(arguments) = row.strip_prefix("    ") {
            add(
                "option",
                format!("{program} {arguments}")
                    .trim_end_matches(" \"\"")
                    .to_owned(),
            );
        } else {
            program = row.split(';').next().unwrap_or(row);
            for arguments in options(row) {
                add("option", format!("{program} {arguments}"));
            }
        }
    }
    lines
}

/// Programs that run their arguments, with options of their own, nested; and options before a subcommand.
#[test]
fn no_prefix_and_no_option_hides_a_denied_command() {
    let deny = policy(&[], &[], &["run_command(rm *)", "run_command(git push *)"]);
    let prefixes = [
        "env",
        "env -i",
        "env A=b",
        "env -u A",
        "env -",
        "nice",
        "nice -n 5",
        "nohup",
        "timeout 5",
        "timeout -k 1 -s KILL 5s",
        "time",
        "time -p",
        "setsid -w",
        "stdbuf -oL",
        "ionice -c 3",
        "xargs",
        "xargs -0r",
        "xargs -n 1 -P 4",
        "xargs -I{}",
        "xargs -I {}",
        "xargs -0I %",
        "xargs -i",
        "xargs --replace=%",
    ];
    let inner = [
        "rm f",
        "/bin/rm f",
        "sh -c 'rm f'",
        "env -S 'rm f'",
        "git push",
        "git --no-pager push origin",
        "git -C x push",
        "git -c a=b push",
        "find . -exec rm f +",
        "bash -c -e 'rm f'",
        "python3 -c x",
    ];
    let fed = [
        "echo rm | xargs -I{} {} f",
        "echo rm | xargs -I % % f",
        "echo rm | xargs -0I % % f",
        "echo rm f | xargs env",
        "echo -exec rm f + | xargs find .",
        "echo -c 'rm f' | xargs sh",
        "echo push | xargs git",
        "env sh <<< 'rm f'",
        "nice python3 < x",
        "python3 -v < x",
        "env LD_PRELOAD=x ls",
        "env -S'rm f'",
        "make -f - <<< $'x:\\n\\trm f'",
        "trap 'rm f' EXIT",
        "run-parts x",
        "docker run x rm f",
        "kubectl exec p -- rm f",
        "docker compose exec c rm f",
    ];
    let mut lines: Vec<String> = fed.map(str::to_owned).to_vec();
    for outer in prefixes {
        for prefix in prefixes {
            lines.extend(
                inner
                    .iter()
                    .map(|inner| format!("{outer} {prefix} {inner}")),
            );
        }
    }
    assert!(lines.len() > 5000, "{}", lines.len());
    lines.retain(|line| deny.decide(Auto, &run(line)) == Verdict::Allow);
    assert_eq!(lines, Vec::<String>::new());
}

#[test]
fn no_spelling_of_a_denied_command_runs_unasked() {
    let deny = policy(&[], &[], &["run_command(rm *)"]);
    let (mut wrong, mut counts) = (Vec::new(), BTreeMap::<&str, [usize; 3]>::new());
    for (kind, line) in lines() {
        let [all, denied, allowed] = counts.entry(kind).or_default();
        *all += 1;
        if deny.decide(Auto, &run(&line)) == Verdict::Allow {
            *denied += 1;
            wrong.push(format!("denied {kind}: {line}"));
        }
        // Excluded: a rule that names such a program allows whatever its arguments or its text run.
        let program = line.split(' ').next().unwrap();
        let rule = format!("run_command({program} *)");
        let is_innocent = !["prefix", "text"].contains(&kind) && Rule::parse(&rule).is_ok();
        if is_innocent {
            let allow = policy(
                &[&rule, "run_command(ls *)", "run_command(echo *)"],
                &[],
                &[],
            );
            if allow.decide(Ask, &run(&line)) == Verdict::Allow {
                *allowed += 1;
                wrong.push(format!("allowed {kind}: {line}"));
            }
        }
    }
    assert!(counts.values().map(|[all, ..]| all).sum::<usize>() >= 2000);
    assert!(wrong.is_empty(), "{counts:?}\n{}", wrong.join("\n"));
}
