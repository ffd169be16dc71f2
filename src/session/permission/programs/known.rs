//! The tables: which programs and built-ins run others, and by which arguments. Blanks separate the words of a list.

/// The row of a program in a table: the one-letter options, and the other marks.
pub(super) fn row(table: &'static str, program: &str) -> Option<(&'static str, Vec<&'static str>)> {
    table.lines().find_map(|line| {
        let (programs, rest) = line.split_once(": ")?;
        let is_in = programs.split(", ").any(|it| it == program);
        let letters = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let (letters, marks) = letters.unwrap_or(("", rest));
        is_in.then(|| (letters, marks.split_ascii_whitespace().collect()))
    })
}

/// Programs that run their arguments or input as commands, or change the meaning of later commands: shells, their built-ins,
/// what runs another program (possibly as another user, elsewhere, later or repeatedly), languages whose code is an
/// argument.
pub(super) const WRAPPERS: &str = "
sh ash bash busybox cmd csh dash elvish fish ksh mksh nu powershell pwsh rbash tcsh toybox xonsh
yash zsh

. alias autoload bind builtin command compdef compgen complete emulate enable eval exec fc hash jobs
let source trap unalias zcompile zmodload

at batch chroot chrt chronic capsh cpulimit crontab dbus-run-session direnv doas entr env expect
faketime fakeroot firejail flatpak flock ftp gdb ionice launchctl lftp lldb ltrace machinectl nice
nix-shell nohup nsenter numactl open osascript parallel perf pkexec proot rsh run0 run-parts runuser
screen script setarch setpriv setsid sg socat softlimit ssh start stdbuf strace su sudo systemd-run
taskset tmux torify time timeout unbuffer unshare valgrind watch watchexec wsl xargs xdg-open
xvfb-run

dc ed emacs ex gnuplot m4 nvim tclsh vi vim view
";

/// Package managers whose `run` takes the name of a script of the project.
pub(super) const SCRIPT_RUNNERS: &str = "npm pnpm yarn";
/// Programs whose first argument is another program.
pub(super) const LAUNCHERS: &str = "bunx npx pipx uvx";
/// Common programs whose arguments are files and texts.
pub(super) const NO_SUBCOMMANDS: &str = "
basename cat chmod chown cmp cp cut dd diff dirname du echo file find grep head kill ln ls mkdir mv
rg rm rmdir sleep sort stat tail tee touch uniq wc which xxd
";

/// Built-ins that only change what later commands mean.
pub(super) const CONTEXT: &str = "cd chdir popd pushd set setopt shopt ulimit umask";
/// Built-ins that take names of variables, whose subscripts the shell evaluates; these change nothing else.
pub(super) const NAMING: &str = "[ getopts printf test wait";
/// The same, but they also set what later commands use.
pub(super) const SETTING: &str = "
declare export local mapfile read readarray readonly typeset unset
";
/// Variables whose value a shell, a loader or many programs evaluate; `*` stands for the rest of a name.
pub(super) const EVALUATED: &str = "
BROWSER EDITOR ENV FCEDIT IFS LESSCLOSE LESSOPEN MAKEFLAGS PAGER PATH SHELL VISUAL BASH* DYLD_*
GIT_* LD_* NODE_OPTIONS* PERL* PROMPT_COMMAND* PS* PYTHON* RUBY* RUSTC* *_COMMAND *_EDITOR
*_LAUNCHER *_PAGER *_RSH *_WRAPPER *OPT *OPTIONS *OPTS
";

/// Options of `git config` that only read it.
pub(super) const READING: &str = "--get --get-all --list -l";
/// Values of variables and settings that start nothing but `cat` or `true`, besides the empty value.
pub(super) const PLAIN_VALUES: &str = "0 1 always auto cat false never no off on true yes";

/// Other programs whose arguments are text, names and files: an argument that looks like a command is not one.
pub(super) const DATA: &str = "
apropos cargo cd egrep fgrep gh git jq man npm pip pytest type
";
/// Programs that run the words after their options, and take nothing else that is evaluated.
pub(super) const PREFIXES: &str = "env ionice nice nohup setsid stdbuf time timeout xargs";
/// Parts of names of long options that take a command or code, for programs not named here.
pub(super) const STEMS: &str = "
askpass bind cmd command eval exec execute hook launcher load pager prepare preview program require
rmt rsh script shell wrapper
";
/// Modules of Python that evaluate their arguments or input.
pub(super) const MODULES: &str = "IPython code pdb timeit";

/// Programs that run containers. Their subcommands are a closed list: a plugin may add one that runs anything.
pub(super) const CONTAINERS: &str = "docker nerdctl podman";
/// Their subcommands, and those of `compose`, that run nothing.
pub(super) const RUNNING_NOTHING: &str = "
config cp diff down events history images info inspect kill logs ls network port ps pull push rename
rm rmi search stats stop tag top version volume
";
/// Harmless commands of `sqlite3`, except those that it cannot tell from an abbreviation.
pub(super) const SQLITE: &str = "
.databases .dump .fullschema .headers .indexes .mode .schema .tables
";

/// Arguments that make a program run others: one-letter options in brackets, and others. Of the others, `--long` also
/// stands for its abbreviations, `-word` and what begins or ends with a sign for what begins so, and `*text` for what
/// contains the text.
pub(super) const RUNNING: &str = r"
gh alias: set import
gh config: set
kubectl: attach config debug exec plugin run --kubeconfig
find: -exec -ok -delete -fprint -fls
fd, fdfind: [xX] --exec --exec-batch
git: -c -O -x --config-env --exec --ext-diff --open-files-in-pager --output --receive-pack --textconv --upload-pack bisect config difftool *ext:: filter-branch hook merge-index mergetool remote-ext submodule submodule--helper
git clone: [cu] --config --template
git instaweb: [d] --httpd
git grep: [O]
git init: --template
git rebase: [x]
git send-email: --smtp-server --sendmail-cmd --to-cmd --cc-cmd
hg: --config --ssh --remotecmd
svn: --config-option --diff-cmd --diff3-cmd --editor-cmd --merge-tool
go: *-exec *-toolexec *-vettool -w generate run *-extld
cargo: --config *linker watch
rustc: *link @ -Z
tar, bsdtar, gtar: [IF] --checkpoint-action --info-script --new-volume-script --rmt-command --rsh-command --to-command --use-compress-program
rsync: [eM] --rsh --rsync-path --remote-option
scp: [DFSo]
sftp: [DFSbo]
ssh-add: [s]
ssh-keygen: [D]
rg: --pre --hostname-bin
sort: --compress-program
split: --filter
install: --strip-program
sdiff, diff3: --diff-program
patch: [eg] --ed --get
zip: [T] --unzip-command
man: [CPH] --config-file --pager --html
less: [k] + --lesskey-content --lesskey-file --lesskey-src
make, gmake: [E] --eval SHELL= MAKE= MAKEFLAGS= .SHELLFLAGS= *!= *$ *`
cmake: -E -P *COMPILER= *LAUNCHER=
cc, c++, gcc, g++, clang, clang++: -wrapper -B -specs --specs -fplugin -fuse-ld -Xclang -Xlinker -load @ *-plugin --config --ld-path
ld: -plugin --plugin
java: -XX:On -agent -javaagent @
wget: [e] --execute --use-askpass --config
nc: [ce]
ncat: [ce] --exec --sh-exec --lua-exec
pytest: --pdb --trace
nmap: [A] --script -sC
tcpdump: [z]
rpm: [E] --eval --pipe
npm: [c] --browser --call --editor --git --node-options --script-shell --shell exec explore set x
pip: --editor
npx: [c] --call
sqlite3: -cmd --cmd -init --init *load_extension *edit(
psql: [f] *\ *program *PROGRAM --file
mysql: *\ *system *source --pager
";

/// Programs that run code: the options and words for that in the same form. After the first operand, the arguments are
/// the script's.
pub(super) const INTERPRETERS: &str = "
bun: [epr] --eval --print --preload exec x
deno: eval repl
julia: [eELi] --eval --print --load
lua, luajit: [eil]
node, nodejs: [epri] --eval --print --require --import --loader --experimental-loader --interactive
perl: [eEMmdx]
php: [rRBEa] *auto_ --run --process-code --process-begin --process-end --interactive
pypy, python: [c]
r: [e]
ruby: [er]
";
