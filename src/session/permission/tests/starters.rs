//! What starts another program, or has a shell evaluate a text, never runs unasked.

use super::*;

type Starter = (
    &'static str,
    &'static str,
    &'static str,
    &'static [(&'static str, usize)],
    &'static [&'static str],
);

/// Ways to start another program: the program and its prefix, one-letter options that start one, letters that may be
/// combined with them, long options with their shortest unambiguous form, and other arguments.
const STARTERS: &[Starter] = &[
    (
        "python3",
        "c",
        "BsuE",
        &[],
        &["-Bc 'rm f'", "-", "-Buc 'rm f'", "-W ignore -c 'rm f'"],
    ),
    ("python3.12", "c", "Bs", &[], &["", "-u"]),
    ("perl", "eE", "nlp", &[], &["-ne 'rm'", "-MO=x f", "-d:x f"]),
    ("ruby", "e", "nlp", &[], &["-ne 'rm'"]),
    (
        "node",
        "ep",
        "",
        &[("--eval", 4), ("--print", 4)],
        &["-pe 1"],
    ),
    ("php", "r", "nq", &[("--run", 4)], &[]),
    (
        "git clone",
        "u",
        "nq",
        &[("--upload-pack", 5), ("--config", 6), ("--template", 4)],
        &["-c core.x=y a", "ext::x"],
    ),
    ("git init", "", "", &[("--template", 4)], &[]),
    ("git fetch", "", "", &[("--upload-pack", 5)], &[]),
    (
        "git",
        "",
        "",
        &[],
        &[
            "-c core.pager=x log",
            "--config-env=a=b log",
            "--exec-path=x log",
            "rebase -ix x",
            "grep -nOx y",
            "bisect run x",
        ],
    ),
    (
        "tar",
        "IF",
        "xvf",
        &[
            ("--checkpoint-action", 14),
            ("--to-command", 4),
            ("--use-compress-program", 5),
            ("--info-script", 6),
        ],
        &["cF x a", "xvIf x a"],
    ),
    (
        "rsync",
        "e",
        "avz",
        &[("--rsh", 4), ("--rsync-path", 7)],
        &[],
    ),
    ("split", "", "", &[("--filter", 3)], &[]),
    ("sort", "", "", &[("--compress-program", 5)], &[]),
    (
        "zip",
        "T",
        "rq",
        &[("--unzip-command", 4)],
        &["-r a b -TT x"],
    ),
    ("man", "P", "a", &[("--pager", 4)], &[]),
    (
        "make",
        "E",
        "ks",
        &[("--eval", 4)],
        &["SHELL=x", "A='$(shell rm f)'", "A='`rm f`'"],
    ),
    (
        "gcc",
        "",
        "",
        &[],
        &[
            "-wrapper x,y a.c",
            "-Bx a.c",
            "-specs=x a.c",
            "-fplugin=x a.c",
            "@x",
        ],
    ),
    (
        "x86_64-linux-gnu-g++-12",
        "",
        "",
        &[],
        &["-wrapper x,y a.c"],
    ),
    (
        "sqlite3",
        "",
        "",
        &[],
        &[
            "db '.shell rm f'",
            "db '.sh rm f'",
            "db '.sys rm f'",
            "db '.once |rm f'",
            "db",
            "-cmd x db y",
            "db 'select 1;\n.shell rm f'",
            "db \"select load_extension('x')\"",
        ],
    ),
    (
        "find .",
        "",
        "",
        &[],
        &[
            "-exec rm f ';'",
            "-execdir rm f ';'",
            "-ok rm f ';'",
            "-okdir rm f ';'",
        ],
    ),
    ("nmap", "", "", &[("--script", 5)], &["-sC a"]),
    ("less", "", "", &[], &["'+!rm f' a", "'+G!rm f' a"]),
    ("rg", "", "", &[("--pre", 5)], &[]),
    (
        "wget",
        "e",
        "q",
        &[("--use-askpass", 5), ("--execute", 4)],
        &[],
    ),
    ("scp", "So", "rp", &[], &[]),
    (
        "cmake",
        "",
        "",
        &[],
        &["-E rm f", "-P x", "-DCMAKE_C_COMPILER=x"],
    ),
    ("npm", "", "", &[], &["exec rm f", "x rm"]),
    (
        "printf",
        "",
        "",
        &[],
        &[
            "-v 'a[$(rm f)]' x",
            "'-va[$(rm f)]' x",
            "-v PATH x",
            "-v \"a[x]\" y",
        ],
    ),
    (
        "test",
        "",
        "",
        &[],
        &["-v 'a[$(rm f)]'", "1 -a -v 'a[$(rm f)]'", "-R 'a[$(rm f)]'"],
    ),
    ("unset", "", "", &[], &["'a[$(rm f)]'", "-v 'a[$(rm f)]'"]),
    ("wait", "", "", &[], &["-p 'a[$(rm f)]'", "'-pa[$(rm f)]'"]),
    (
        "read",
        "",
        "",
        &[],
        &["'a[$(rm f)]'", "-r x 'a[$(rm f)]'", "PS4"],
    ),
    ("getopts", "", "", &[], &["a 'a[$(rm f)]'"]),
    ("mapfile", "C", "t", &[], &["'a[$(rm f)]'"]),
    ("readarray", "C", "t", &[], &[]),
    (
        "declare",
        "",
        "",
        &[],
        &[
            "'a[$(rm f)]=1'",
            "-i 'x=a[$(rm f)]'",
            "-xi x=y",
            "-n 'r=a[$(rm f)]'",
            "PATH=x",
        ],
    ),
    ("typeset", "", "", &[], &["'a[$(rm f)]=1'", "-i x=y"]),
    ("local", "", "", &[], &["'a[$(rm f)]=1'"]),
    (
        "export",
        "",
        "",
        &[],
        &[
            "PATH=x",
            "BASH_ENV=x",
            "'PROMPT_COMMAND=rm f'",
            "PS4=x",
            "IFS=x",
            "GIT_SSH_COMMAND=x",
            "LD_PRELOAD=x",
        ],
    ),
    ("let", "", "", &[], &["'a[$(rm f)]=1'", "x=y"]),
    ("compgen", "CFW", "", &[], &[]),
    ("complete", "CFW", "", &[], &[]),
    ("bind", "x", "", &[], &[]),
    ("trap", "", "", &[], &["'rm f' EXIT", "\"rm f\" DEBUG"]),
    ("source", "", "", &[], &["x"]),
    (".", "", "", &[], &["x"]),
    ("jobs", "x", "", &[], &[]),
    ("fc", "s", "", &[], &[]),
    ("enable", "f", "", &[], &[]),
    ("hash", "p", "", &[], &[]),
    ("alias", "", "", &[], &["x='rm f'"]),
    ("env", "S", "i", &[("--split-string", 4)], &["rm f"]),
    ("xargs", "", "", &[], &["rm", "-n1 rm"]),
    ("awk", "", "", &[], &["'BEGIN { system(\"rm f\") }'"]),
    ("sed", "", "", &[], &["'1e rm f' x", "-n 's/x/y/e' x"]),
    ("vim", "c", "", &[], &["'+!rm f'"]),
    ("ssh", "o", "", &[], &["-oProxyCommand=x a", "a rm f"]),
    ("m4", "", "", &[], &["x"]),
];

/// All their spellings.
fn starters() -> Vec<(String, String)> {
    let mut lines = Vec::new();
    for (program, letters, beside, longs, others) in STARTERS {
        let mut add = |arguments: &str| {
            let line = format!("{program} {arguments}");
            lines.push((
                program.split(' ').next().unwrap().to_owned(),
                line.trim_end().to_owned(),
            ));
        };
        for letter in letters.chars() {
            add(&format!("-{letter} 'rm f' a"));
            add(&format!("'-{letter}rm f' a"));
            add(&format!("\"-\"{letter} 'rm f' a"));
            add(&format!("\\-{letter} 'rm f' a"));
            for other in beside.chars() {
                add(&format!("-{other}{letter} 'rm f' a"));
            }
        }
        for (long, shortest) in *longs {
            for length in *shortest..=long.len() {
                add(&format!("{}='rm f' a", long.get(..length).unwrap()));
                add(&format!("{} 'rm f' a", long.get(..length).unwrap()));
            }
        }
        others.iter().for_each(|other| add(other));
    }
    lines
}

#[test]
fn what_starts_other_programs_never_runs_unasked() {
    let deny = policy(&[], &[], &["run_command(rm *)"]);
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (program, line) in starters() {
        let allow = policy(&[&format!("run_command({program} *)")], &[], &[]);
        let by_path = format!("/usr/bin/{line}");
        for line in [
            line.clone(),
            format!("cd x && {line} | cat"),
            format!("FOO=bar {line}"),
            by_path,
        ] {
            count += 1;
            if deny.decide(Auto, &run(&line)) == Verdict::Allow
                || allow.decide(Ask, &run(&line)) == Verdict::Allow
            {
                wrong.push(line);
            }
        }
    }
    assert!(count >= 300, "{count}");
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn what_a_shell_evaluates_never_runs_unasked() {
    let deny = policy(&[], &[], &["run_command(rm *)"]);
    let allow = policy(
        &[
            "run_command(echo *)",
            "run_command(printf *)",
            "run_command(ls *)",
            "run_command(test *)",
        ],
        &[],
        &[],
    );
    for line in [
        "echo $((a))",
        "echo $((a[$(rm f)]))",
        "echo $((x + 1))",
        "echo ${x@P}",
        "echo ${a[x]}",
        "echo ${x:y}",
        "echo ${!x}",
        "echo $[x]",
        "[[ a -eq 'a[$(rm f)]' ]] && ls",
        "[[ 'a[$(rm f)]' -lt 1 ]] || ls",
        "[[ -v 'a[$(rm f)]' ]]",
        "[[ $x -gt 1 ]]",
        "((x)) && ls",
        "for ((i = x; i; i++)); do ls; done",
        "a[x]=1 ls",
        "BASH_ENV=x ls",
        "PROMPT_COMMAND='rm f' ls",
        "PS4='$(rm f)' ls",
        "PATH=.:$PATH ls",
        "IFS=x ls",
        "LD_PRELOAD=x ls",
        "GIT_PAGER=x git log",
        "PAGER=rm git log",
        "CC='rm f' make",
        "make CC=rm",
        "make CC='rm f'",
        "echo x | xargs rm",
        "echo 'rm f' | sh",
        "bash <<< 'rm f'",
        "npx rm f",
        "uv run rm f",
        "yarn exec rm f",
        "time -p rm f",
        "! rm f",
        "coproc rm f",
        "ls <(rm f)",
        "x=(`rm f`)",
        "select x in $(rm f); do ls; done",
        "echo \"${x:-$(rm f)}\"",
        "case $(rm f) in *) ls;; esac",
        "if ls; then rm f; fi",
        "while rm f; do ls; done",
        "tar $x",
        "tar *",
        "git clone $x",
    ] {
        for (rules, mode) in [(&deny, Auto), (&allow, Ask)] {
            assert_ne!(
                rules.decide(mode, &run(line)),
                Verdict::Allow,
                "{line} {mode:?}"
            );
        }
    }
}
