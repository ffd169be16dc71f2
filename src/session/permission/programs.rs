//! Knowledge about programs: which run other programs, and which can empty a workspace.
//!
//! These lists serve rules (the first words of such a command do not say what it does); the security boundary is the
//! sandbox.

use std::path::{Component, Path, PathBuf};

use crate::text::shell::program_name as name;

/// Programs that run their arguments or input as commands, or change the meaning of later commands.
const WRAPPERS: &[&str] = &[
    // shells
    "sh",
    "ash",
    "bash",
    "busybox",
    "cmd",
    "csh",
    "dash",
    "elvish",
    "fish",
    "ksh",
    "mksh",
    "nu",
    "powershell",
    "pwsh",
    "rbash",
    "tcsh",
    "toybox",
    "xonsh",
    "yash",
    "zsh",
    // shell built-ins
    ".",
    "alias",
    "autoload",
    "bind",
    "builtin",
    "cd",
    "command",
    "compdef",
    "complete",
    "declare",
    "emulate",
    "enable",
    "eval",
    "exec",
    "export",
    "hash",
    "local",
    "mapfile",
    "popd",
    "pushd",
    "read",
    "readarray",
    "readonly",
    "set",
    "setopt",
    "shopt",
    "source",
    "trap",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "zcompile",
    "zmodload",
    // run another program, possibly as another user, elsewhere, later or repeatedly
    "at",
    "batch",
    "chroot",
    "chrt",
    "chronic",
    "cpulimit",
    "crontab",
    "dbus-run-session",
    "direnv",
    "doas",
    "docker",
    "entr",
    "env",
    "expect",
    "fakeroot",
    "firejail",
    "flatpak",
    "flock",
    "gdb",
    "ionice",
    "kubectl",
    "launchctl",
    "lldb",
    "ltrace",
    "machinectl",
    "nerdctl",
    "nice",
    "nix-shell",
    "nohup",
    "nsenter",
    "numactl",
    "open",
    "osascript",
    "parallel",
    "perf",
    "pkexec",
    "podman",
    "proot",
    "rsh",
    "run0",
    "runuser",
    "screen",
    "script",
    "setarch",
    "setpriv",
    "setsid",
    "softlimit",
    "ssh",
    "start",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "taskset",
    "tmux",
    "torify",
    "timeout",
    "unbuffer",
    "unshare",
    "valgrind",
    "watch",
    "watchexec",
    "wsl",
    "xargs",
    "xdg-open",
    // languages whose code is an argument
    "awk",
    "ed",
    "emacs",
    "ex",
    "gawk",
    "mawk",
    "nawk",
    "nvim",
    "sed",
    "tclsh",
    "vi",
    "vim",
    "view",
];

/// Arguments that make a program run others: the program, and the beginning of the argument.
const RUNNING: &[(&str, &[&str])] = &[
    ("find", &["-exec", "-ok", "-delete", "-fprint", "-fls"]),
    ("fd", &["-x", "-X", "--exec"]),
    (
        "git",
        &[
            "-c",
            "-C",
            "-O",
            "-x",
            "--config-env",
            "--exec",
            "--ext-diff",
            "--git-dir",
            "--open-files",
            "--output",
            "--paginate",
            "--receive-pack",
            "--textconv",
            "--upload-pack",
            "--work-tree",
            "bisect",
            "config",
            "difftool",
            "ext::",
            "filter-branch",
            "mergetool",
            "submodule",
        ],
    ),
    ("hg", &["--config"]),
    ("go", &["-exec", "-toolexec", "-vettool", "generate", "run"]),
    ("cargo", &["--config"]),
    (
        "tar",
        &[
            "--checkpoint",
            "--to-command",
            "--use-compress",
            "--rsh",
            "--info-script",
            "--new-volume",
            "-I",
            "-F",
        ],
    ),
    ("rsync", &["-e", "--rsh"]),
    ("scp", &["-S", "-o"]),
    ("sftp", &["-S", "-o"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("sort", &["--compress-prog"]),
    ("zip", &["-T", "--unzip-command"]),
    ("man", &["-P", "--pager", "-H", "--html"]),
    ("less", &["+!"]),
    ("make", &["--eval", "SHELL="]),
];

/// Programs that run the text after one of these arguments.
const INTERPRETERS: &[&str] = &[
    "bun", "deno", "julia", "lua", "luajit", "node", "perl", "php", "pypy", "python", "r",
    "rscript", "ruby",
];
const INLINE: &[&str] = &[
    "-c", "-e", "-E", "-p", "-r", "-M", "--eval", "--print", "eval", "-",
];

/// Options may have a suffix; a word has to match exactly.
fn is_meant(start: &str, word: &str) -> bool {
    let is_open = start.len() > 1 && (start.starts_with(['-', '+']) || start.ends_with([':', '=']));
    if is_open {
        word.starts_with(start)
    } else {
        word == start
    }
}

/// Whether the command may run something its first words do not show.
pub(super) fn runs_others(words: &[String]) -> bool {
    let Some((program, arguments)) = words.split_first() else {
        return true;
    };
    let name = name(program);
    let has = |starts: &[&str]| {
        arguments
            .iter()
            .any(|word| starts.iter().any(|start| is_meant(start, word)))
    };
    let interpreter = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    WRAPPERS.contains(&name.as_str())
        || RUNNING
            .iter()
            .any(|(program, starts)| *program == name && has(starts))
        || (INTERPRETERS.contains(&interpreter) && (arguments.is_empty() || has(INLINE)))
}

/// Whether the command removes or moves one of `roots`, or a parent folder of one.
pub(super) fn wipes(words: &[String], cwd: &Path, roots: &[PathBuf]) -> bool {
    let Some((program, arguments)) = words.split_first() else {
        return false;
    };
    let is_recursive = |word: &String| {
        word == "--recursive"
            || (word.starts_with('-') && !word.starts_with("--") && word.contains(['r', 'R']))
    };
    let is_root = |path: &Path| roots.iter().any(|root| root.starts_with(path));
    let is_git = |path: &Path| path.components().any(|part| part.as_os_str() == ".git");
    let any = |words: &[String], is_wiped: &dyn Fn(&Path) -> bool| {
        words.iter().any(|word| is_wiped(&tidy(&cwd.join(word))))
    };
    match name(program).as_str() {
        "rm" => {
            arguments.iter().any(is_recursive)
                && any(arguments, &|path| is_root(path) || is_git(path))
        }
        // The last one is the target.
        "mv" => arguments
            .split_last()
            .is_some_and(|(_, moved)| any(moved, &is_root)),
        _ => false,
    }
}

/// Resolves `.` and `..` by name alone.
fn tidy(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => _ = tidy.pop(),
            part => tidy.push(part),
        }
    }
    tidy
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::shell::Dialect;
    use crate::text::shell::read;

    fn words(line: &str) -> Vec<String> {
        let line = read(line, Dialect::Posix).unwrap();
        line.plain().unwrap().remove(0)
    }

    #[test]
    fn programs_that_run_other_programs_are_recognized() {
        for line in [
            "sh -c x",
            "/bin/BASH x",
            "sudo rm x",
            "env -i timeout 5 nice touch x",
            "xargs rm",
            "eval x",
            "cd sub",
            "git -c core.pager=x log",
            "git ls-remote --upload-pack='touch x' .",
            "git --git-dir=sub status",
            "find . -name x -exec rm '{}' ';'",
            "find . -delete",
            "tar cf a b --checkpoint-action=exec=x",
            "python3.12 -c x",
            "python",
            "node --eval x",
            "perl -e x",
            "awk x",
            "sed -n 1p f",
            "rg --pre x y",
            "cmd.exe",
        ] {
            assert!(runs_others(&words(line)), "{line}");
        }
        for line in [
            "cargo test",
            "git status",
            "git commit -m x",
            "find . -name x",
            "tar xf a",
            "python a.py",
            "python -m pytest",
            "git add configs",
            "npm test",
        ] {
            assert!(!runs_others(&words(line)), "{line}");
        }
    }

    #[test]
    fn removing_the_workspace_is_recognized() {
        let check = |line: &str, expected: bool| {
            let roots = ["/home/me/work".into(), "/srv/other".into()];
            assert_eq!(
                wipes(&words(line), Path::new("/home/me/work/sub"), &roots),
                expected,
                "{line}"
            );
        };
        check("rm -rf /", true);
        check("/bin/rm -fr ..", true);
        check("rm --recursive ../../work/", true);
        check("rm -R /srv", true);
        check("mv /home/me/work /tmp/x", true);
        check("mv a b ..", false);
        check("rm -rf target", false);
        check("rm -rf .", false);
        check("rm /", false);
        check("ls -r /", false);
    }
}
