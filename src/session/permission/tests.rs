mod numbers;
mod spellings;

use super::*;
use crate::config::Mode::{Ask, Auto, Edit, Plan};

fn target(path: &str) -> Target {
    Target {
        relative: path.into(),
        absolute: format!("/work/{path}"),
        is_alone: true,
    }
}

fn facts(tool: &str, kind: ToolKind) -> Facts {
    let about = About::Call {
        rule_name: tool.into(),
        in_prose: false,
        asks: true,
    };
    Facts {
        tool: tool.into(),
        about,
        kind,
        targets: vec![],
        command: None,
        follows_up: false,
        cautious: false,
        is_question: false,
    }
}

fn edit(path: &str) -> Facts {
    Facts {
        targets: vec![target(path)],
        ..facts("edit_file", ToolKind::Edit)
    }
}

fn run(line: &str) -> Facts {
    let line = Line {
        sandboxed: true,
        ..Line::read(line, Dialect::Posix, false, Undo::ExceptIgnored)
    };
    Facts {
        command: Some(line),
        ..facts("run_command", ToolKind::Execute)
    }
}

fn with(facts: Facts, change: impl Fn(&mut Line)) -> Facts {
    let mut facts = facts;
    facts.command.iter_mut().for_each(change);
    facts
}

fn policy(allow: &[&str], ask: &[&str], deny: &[&str]) -> Policy {
    let owned = |rules: &[&str]| rules.iter().map(ToString::to_string).collect::<Vec<_>>();
    let policy = Policy::new(&owned(allow), &owned(ask), &owned(deny));
    assert_eq!(
        policy.allow.len() + policy.ask.len() + policy.deny.len(),
        allow.len() + ask.len() + deny.len()
    );
    policy
}

#[track_caller]
fn check(policy: &Policy, mode: Mode, facts: &Facts, expected: &str) {
    let verdict = match policy.decide(mode, facts) {
        Verdict::Allow => "allow",
        Verdict::Ask => "ask",
        Verdict::Forbid(_) => "forbid",
    };
    assert_eq!(verdict, expected, "{mode:?} {facts:?}");
}

#[test]
fn a_call_beside_prose_changes_nothing_unless_a_person_allows_it() {
    let none = Policy::default();
    let allowed = policy(&["run_command(ls)", "edit_file(a)"], &[], &[]);
    for (facts, kind) in [(edit("a"), ToolKind::Edit), (run("ls"), ToolKind::Execute)] {
        let facts = Facts {
            about: About::Call {
                rule_name: facts.tool.clone(),
                in_prose: true,
                asks: true,
            },
            ..facts
        };
        assert_eq!(facts.kind, kind);
        check(&none, Ask, &facts, "ask");
        check(&none, Auto, &facts, "forbid");
        check(&allowed, Ask, &facts, "forbid");
        check(&none, Plan, &facts, "forbid");
        check(
            &none,
            Auto,
            &Facts {
                kind: ToolKind::Read,
                command: None,
                ..facts
            },
            "allow",
        );
    }
}

#[test]
fn modes_decide_without_a_rule() {
    let none = Policy::default();
    let read = facts("read_file", ToolKind::Read);
    let other = facts("search_issues", ToolKind::Other);
    let unknown = facts("other", ToolKind::Execute);
    let job = Facts {
        follows_up: true,
        ..facts("run_command", ToolKind::Execute)
    };
    let careful = Facts {
        cautious: true,
        ..facts("read_file", ToolKind::Read)
    };
    let unheld = with(run("make"), |line| line.sandboxed = false);
    let reaching = with(run("make"), |line| line.network = true);
    let lasting = with(run("make"), |line| line.undo = Undo::Nothing);
    for (facts, expected) in [
        (read, ["allow", "allow", "allow", "allow"]),
        (edit("a"), ["forbid", "ask", "allow", "allow"]),
        (run("make"), ["forbid", "ask", "ask", "allow"]),
        (run("make $x > y"), ["forbid", "ask", "ask", "allow"]),
        (unheld, ["forbid", "ask", "ask", "ask"]),
        (reaching, ["forbid", "ask", "ask", "ask"]),
        (lasting, ["forbid", "ask", "ask", "ask"]),
        (unknown, ["forbid", "ask", "ask", "ask"]),
        (job, ["forbid", "allow", "allow", "allow"]),
        (other, ["forbid", "ask", "ask", "ask"]),
        (careful, ["ask", "ask", "ask", "ask"]),
    ] {
        for (mode, expected) in [Plan, Ask, Edit, Auto].into_iter().zip(expected) {
            check(&none, mode, &facts, expected);
        }
    }
}

#[test]
fn deny_beats_ask_beats_allow_beats_mode() {
    let rules = policy(
        &["edit_file(docs/**)"],
        &["edit_file(docs/api/**)"],
        &["edit_file(docs/api/secret*)"],
    );
    check(&rules, Ask, &edit("docs/a.md"), "allow");
    check(&rules, Edit, &edit("docs/api/a.md"), "ask");
    check(&rules, Edit, &edit("docs/api/secret.md"), "forbid");
    check(&rules, Ask, &edit("src/a.rs"), "ask");
    check(
        &policy(&[], &[], &["read_file(private/**)"]),
        Ask,
        &Facts {
            targets: vec![target("private/a")],
            ..facts("read_file", ToolKind::Read)
        },
        "forbid",
    );
}

#[test]
fn every_file_of_a_patch_must_be_allowed_and_none_denied() {
    let rules = policy(
        &["edit_file(docs/**)", "edit_file(/work/b.md)"],
        &[],
        &["edit_file(src/**)"],
    );
    let patch = |paths: &[&str]| Facts {
        tool: "apply_patch".into(),
        targets: paths.iter().map(|path| target(path)).collect(),
        ..edit("")
    };
    check(&rules, Ask, &patch(&["docs/a.md", "b.md"]), "allow");
    check(&rules, Ask, &patch(&["docs/a.md", "c.md"]), "ask");
    check(&rules, Ask, &patch(&["docs/a.md", "src/b.rs"]), "forbid");
}

#[test]
fn language_server_changes_are_edits_and_questions_need_the_user() {
    let about = About::Call {
        rule_name: "edit_file".into(),
        in_prose: false,
        asks: true,
    };
    let change = Facts {
        about,
        targets: vec![target("docs/a.md")],
        ..facts("code", ToolKind::Edit)
    };
    check(&Policy::default(), Plan, &change, "forbid");
    check(&Policy::default(), Ask, &change, "ask");
    check(
        &policy(&["edit_file(docs/**)"], &[], &[]),
        Ask,
        &change,
        "allow",
    );
    check(
        &policy(&["code"], &[], &["edit_file(docs/**)"]),
        Auto,
        &change,
        "forbid",
    );
    check(
        &policy(&[], &[], &["edit_file"]),
        Auto,
        &facts("code", ToolKind::Search),
        "allow",
    );
    assert_eq!(
        Policy::default().offer(&change).as_deref(),
        Some("edit_file(docs/a.md)")
    );
    let question = Facts {
        is_question: true,
        ..facts("ask_user", ToolKind::Think)
    };
    for mode in [Plan, Ask, Edit, Auto] {
        check(&policy(&["ask_user"], &[], &[]), mode, &question, "ask");
    }
    assert_eq!(Policy::default().offer(&question), None);
}

#[test]
fn a_line_is_allowed_if_all_its_commands_are() {
    let rules = policy(
        &[
            "run_command(cargo test *)",
            "run_command(git status)",
            "run_command(echo *)",
        ],
        &[],
        &[],
    );
    for line in [
        "cargo test",
        "cargo test --lib",
        "git status",
        "cargo test && git status",
        "echo a | echo b; git status\n",
    ] {
        check(&rules, Ask, &run(line), "allow");
    }
    for line in [
        "cargo build",
        "git status -s",
        "echo ok; touch x",
        "echo ok\ntouch x",
        "echo ok && touch x",
        "echo ok | sh",
        "echo $(touch x)",
        "echo `touch x`",
        "echo \"$(touch x)\"",
        "echo ok > x",
        "echo ok &",
        "echo *(e:'touch x':)",
        "{touch,x}",
        "echo {a,b}",
        "x=1 echo ok",
        "env echo ok",
        "sudo echo ok",
        "/bin/echo ok",
        "./echo ok",
        "echo 'a",
        "cargo test $IFS",
        "echo ok \u{202e}",
        "eval echo ok",
        "command echo ok",
        "xargs echo",
    ] {
        check(&rules, Ask, &run(line), "ask");
    }
    check(
        &rules,
        Ask,
        &with(run("echo ok"), |line| line.sandboxed = false),
        "ask",
    );
    check(
        &rules,
        Ask,
        &with(run("echo ok"), |line| line.network = true),
        "ask",
    );
    check(
        &policy(&["network(cargo fetch)"], &[], &[]),
        Ask,
        &with(run("cargo fetch"), |line| line.network = true),
        "allow",
    );
    check(
        &policy(&["network(cargo fetch)"], &[], &[]),
        Ask,
        &run("cargo fetch"),
        "ask",
    );
    check(
        &policy(&["run_command"], &[], &[]),
        Ask,
        &run("echo $(date) > x"),
        "allow",
    );
}

#[test]
fn wrappers_are_allowed_only_by_exact_rules() {
    let rules = policy(
        &[
            "run_command(git *)",
            "run_command(find *)",
            "run_command(tar *)",
            "run_command(env *)",
            "run_command(sh build.sh)",
        ],
        &[],
        &[],
    );
    check(&rules, Ask, &run("git log --oneline"), "allow");
    check(&rules, Ask, &run("sh build.sh"), "allow");
    for line in [
        "git -c core.pager=x log",
        "git ls-remote --upload-pack='touch x' .",
        "find . -exec touch x ';'",
        "find . -delete",
        "tar cf a b --checkpoint=1 --checkpoint-action=exec='touch x'",
        "env -i timeout 5 nice touch x",
        "sh build.sh x",
        "git log | sh build.sh",
    ] {
        check(&rules, Ask, &run(line), "ask");
    }
}

#[test]
fn a_line_is_denied_if_any_command_is_and_asks_if_unclear() {
    let rules = policy(
        &["run_command(git *)"],
        &[],
        &["run_command(git push *)", "run_command(rm *)"],
    );
    for line in [
        "git push",
        "git push -f origin",
        "git status && git push",
        "/bin/rm -rf x",
        "ls; rm x",
        "sh -c 'git push'",
        "bash -lc \"sh -c 'git push'\"",
        "eval rm x",
        "echo $(git push)",
        "for i in a; do rm x; done",
        "f() { rm x; }; f",
        "x=$(rm x) ls",
        "ls > \"$(rm x)\"",
        "cat <<E\n$(rm x)\nE",
        "rm $x",
    ] {
        check(&rules, Auto, &run(line), "forbid");
    }
    for line in [
        "sudo rm x",
        "$x x",
        "git $x",
        "sh -c \"$x\"",
        "r* x",
        "echo 'a",
        "x=rm; $x y",
    ] {
        check(&rules, Auto, &run(line), "ask");
    }
    check(&rules, Auto, &run("make"), "allow");
    check(&rules, Ask, &run("git status"), "allow");
    check(
        &policy(&[], &["run_command(make *)"], &[]),
        Auto,
        &run("make all"),
        "ask",
    );
    check(
        &policy(&[], &[], &["run_command"]),
        Auto,
        &run("make $x"),
        "forbid",
    );
    check(
        &policy(&[], &[], &["network"]),
        Auto,
        &with(run("make"), |line| line.network = true),
        "forbid",
    );
}

#[test]
fn cautions_ask_in_all_modes_and_are_never_remembered() {
    let mut rules = policy(&["edit_file", "run_command"], &[], &[]);
    for facts in [
        Facts {
            cautious: true,
            ..edit(".git/config")
        },
        Facts {
            cautious: true,
            ..run("rm -rf /")
        },
    ] {
        check(&rules, Auto, &facts, "ask");
        assert_eq!(rules.offer(&facts), None);
        assert!(rules.remember(&facts, None).is_err());
        check(&rules, Auto, &facts, "ask");
    }
}

#[test]
fn windows_commands_match_restricting_rules_only() {
    let on_windows = |line: &str| {
        with(run(""), |facts| {
            *facts = Line {
                sandboxed: false,
                ..Line::read(line, Dialect::PowerShell, false, Undo::Nothing)
            };
        })
    };
    let rules = policy(
        &["run_command"],
        &[],
        &["run_command(rm -r *)", "run_command(npm publish *)"],
    );
    for (line, expected) in [
        ("npm.cmd PUBLISH --tag x", "forbid"),
        ("Remove-Item -r x", "forbid"),
        ("del /s x", "ask"),
        ("npm test", "ask"),
        ("iex $x", "ask"),
    ] {
        check(&rules, Auto, &on_windows(line), expected);
    }
    // Its name may be written in capitals where the disk does not care.
    check(&rules, Auto, &run("/bin/RM -r x"), "forbid");
}

#[test]
fn removing_the_workspace_is_a_caution() {
    let line = |command: &str| CommandLine {
        command: command.into(),
        dialect: Dialect::Posix,
        cwd: "/work".into(),
        sandboxed: true,
        network: false,
        localhost: true,
        undo: Undo::Everything,
    };
    let roots = ["/work/me".into()];
    assert!(empties(&line("make && rm -rf me"), &roots));
    assert!(!empties(&line("make && rm -rf me/target"), &roots));
}

#[test]
fn always_adds_the_offered_rule() {
    for (facts, rule) in [
        (edit("src/a[1].rs"), Some("edit_file(src/a[[]1[]].rs)")),
        (
            Facts {
                tool: "apply_patch".into(),
                ..edit("a.rs")
            },
            Some("edit_file(a.rs)"),
        ),
        (
            Facts {
                targets: vec![target("a"), target("b")],
                ..edit("")
            },
            None,
        ),
        (
            Facts {
                targets: vec![Target {
                    is_alone: false,
                    ..target("a")
                }],
                ..edit("")
            },
            Some("edit_file(/work/a)"),
        ),
        (
            run("cargo test -- 'a b' '*'"),
            Some("run_command(cargo test -- 'a b' '*')"),
        ),
        (run("sudo make"), Some("run_command(sudo make)")),
        (
            with(run("cargo fetch"), |line| line.network = true),
            Some("network(cargo fetch)"),
        ),
        (with(run("make"), |line| line.sandboxed = false), None),
        (run("a && b"), Some("run_command(a), run_command(b)")),
        (
            run("npm test 2>&1 | tail -5"),
            Some("run_command(npm test), run_command(tail -5)"),
        ),
        (run("cd x && make"), None),
        (run("a; b; c; d; e"), None),
        (run("a > b"), None),
        (
            Facts {
                targets: vec![Target::origin("1f2e".into())],
                ..facts("search_issues", ToolKind::Other)
            },
            Some("search_issues(1f2e)"),
        ),
    ] {
        let mut rules = Policy::default();
        assert_eq!(rules.offer(&facts).as_deref(), rule, "{facts:?}");
        assert_eq!(rules.remember(&facts, None).is_ok(), rule.is_some());
        check(
            &rules,
            Ask,
            &facts,
            if rule.is_some() { "allow" } else { "ask" },
        );
        check(&rules, Ask, &edit("other"), "ask");
        check(&rules, Ask, &run("other"), "ask");
    }
    assert_eq!(
        policy(&[], &["run_command(make *)"], &[]).offer(&run("make x")),
        None,
        "it would change nothing"
    );
}

#[test]
fn a_prefix_rule_names_a_subcommand() {
    for (line, words) in [
        ("npm test", Some("npm test")),
        ("npm test -- --grep price", Some("npm test")),
        ("npm run test:unit -- -w", Some("npm run test:unit")),
        ("cargo test parser", Some("cargo test")),
        ("git commit -m 'a b'", Some("git commit")),
        ("./gradlew check", Some("./gradlew check")),
        ("npm", None),
        ("npm --silent test", None),
        ("npm run", None),
        ("uv run pytest", None),
        ("npx vitest", None),
        ("bundle exec rake", None),
        ("python manage", None),
        ("env npm test", None),
        ("git config user.name x", None),
        ("rm build", None),
        ("pytest tests/a.py", None),
        (
            "make all && npm test 2>&1 | tail -5",
            Some("make all *), run_command(npm test *), run_command(tail -5"),
        ),
    ] {
        let rule = words.map(|words| match words.split_once(" *)") {
            Some(_) => format!("run_command({words})"),
            None => format!("run_command({words} *)"),
        });
        let offer = Policy::default().offers(Auto, &run(line));
        assert_eq!(offer.prefix, rule, "{line}");
    }
    let fetch = with(run("cargo fetch"), |line| line.network = true);
    assert_eq!(Policy::default().offers(Auto, &fetch).prefix, None);
    let policy = policy(&[], &["run_command(npm *)"], &[]);
    let offer = policy.offers(Auto, &run("npm test"));
    assert_eq!(offer, Offer::default(), "a rule asks about it");
}

proptest::proptest! {
    /// Whatever follows: an offered rule allows the call, is narrow, and lets no program run what its words do not show.
    #[test]
    fn prefix_rules_are_narrow_and_never_evaluate(
        program in proptest::sample::select(vec!["npm", "git", "make", "sh", "env", "python3", "node", "npx", "uv", "find", "sudo", "awk", "x/y"]),
        words in proptest::collection::vec("[a-z]{1,4}|run|exec|sh|-[a-z]|--[a-z]{2,5}|[a-z]/[a-z]|test", 0..5),
        more in proptest::collection::vec("-c|-e|--eval|--call|exec|x|--config=a", 0..3),
    ) {
        let line = [vec![program.to_owned()], words].concat();
        let facts = run(&line.join(" "));
        if let Some([rule]) = facts.prefixes().as_deref() {
            let mut policy = Policy::default();
            let added = policy.remember(&facts, Some(rule)).unwrap().remove(0);
            assert!(added.futile().is_none() && added.is_narrow(), "{rule}");
            assert!(!["sh", "env", "python3", "node", "npx", "find", "sudo", "awk"].contains(&program), "{rule}");
            check(&policy, Ask, &facts, "allow");
            let other = [line[..2].to_vec(), more].concat();
            if programs::runs_others(&other) {
                check(&policy, Ask, &run(&other.join(" ")), "ask");
            }
        }
    }
}

#[test]
fn an_edited_rule_must_be_about_the_call_and_narrow() {
    let edited = |facts: &Facts, rule: &str| {
        Policy::default()
            .remember(facts, Some(rule))
            .map(|rules| rules[0].to_string())
    };
    let test = run("cargo test --lib");
    for rule in [
        "run_command(cargo test *)",
        "run_command(cargo test --lib)",
        "run_command(cargo test --lib *)",
    ] {
        assert_eq!(edited(&test, rule).as_deref(), Ok(rule));
    }
    for (rule, why) in [
        ("run_command(cargo build)", "does not allow this call"),
        ("network(cargo test *)", "does not allow this call"),
        ("edit_file(src/**)", "does not allow this call"),
        ("run_command(cargo *)", "is too broad"),
        ("run_command(*)", "is too broad"),
        ("run_command", "is too broad"),
        ("run_command(cargo test *) x", "closing `)`"),
    ] {
        let problem = edited(&test, rule).unwrap_err();
        assert!(problem.contains(why), "{rule}: {problem}");
    }
    assert!(
        edited(&run("sh a.sh"), "run_command(sh a.sh *)").is_err(),
        "no prefix says what a shell does"
    );
    assert!(
        edited(&run("a && b"), "run_command(a b *)").is_err(),
        "never for a compound"
    );
    assert_eq!(
        edited(&edit("src/a.rs"), "edit_file(src/**)").as_deref(),
        Ok("edit_file(src/**)")
    );
    assert!(edited(&edit("src/a.rs"), "edit_file(**)").is_err());
}

#[test]
fn unreadable_rules_fail_closed() {
    let rules = Policy::new(&["edit_file".into()], &[], &["edit_file(src/**".into()]);
    check(&rules, Ask, &edit("src/a.rs"), "ask");
}

type Starter = (
    &'static str,
    &'static str,
    &'static str,
    &'static [(&'static str, usize)],
    &'static [&'static str],
);

/// What starts another program: the program with what comes before, one-letter options that do and ones that may stand
/// with them, long options with their shortest unmistakable form, and other arguments.
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

/// Every spelling of them.
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

/// Lines that a rule on something else must not stop.
const UNRELATED: &[&str] = &[
    "FOO=bar ls",
    "FOO=bar BAZ= npm test",
    "RUST_LOG=debug CI=1 cargo test",
    "ls 2>/dev/null",
    "cargo test 2>&1 | tail -5",
    "npm run build > log 2>&1",
    "echo $((3 > 2))",
    "echo $HOME \"$x\" ${x:-y}",
    "cd web && npm test",
    "cd web; ls *.rs src/**/*.ts {a,b} ~/x",
    "ls # rm f",
    "wc -l $(git ls-files)",
    "for f in *.md; do wc -l \"$f\"; done",
    "if [ -f x ]; then cat x; fi",
    "[[ -f x && $y == z* ]] && ls",
    "[[ $# -gt 1 ]] && ls",
    "while read -r line; do echo \"$line\"; done < x",
    "case $x in a) ls;; esac",
    "(cd web && npm test)",
    "f() { ls; }; f",
    "set -e; make test",
    "export FOO=bar; make",
    "cat <<E > x\nrm $y\nE",
    "grep rm x",
    "echo 'rm f'",
    "git rm x",
    "git commit -m 'rm f'",
    "git push -u origin main",
    "git add -u",
    "git log --oneline -5",
    "sh -c 'make test'",
    "bash -lc 'cargo test | tail -5'",
    "eval 'make test'",
    "make CC=clang V=1 -j8",
    "python3 -m pytest -x -c setup.cfg",
    "python3 a.py -c x",
    "node build.js -p -e prod",
    "node --version",
    "ruby a.rb -e x",
    "tar czf a.tgz src",
    "tar xf a.tar -C x",
    "gcc -O2 -o a a.c",
    "rsync -av a b",
    "printf '%s\\n' x",
    "printf -v x y",
    "test -n x",
    "[ 1 -lt 2 ]",
    "unset x",
    "wait",
    "sqlite3 db 'select 1' .tables",
    "sqlite3 db .schema",
    "cmake -S . -B build -DFOO=E",
    "npm test",
    "npx prettier --check .",
    "node --check src/index.js",
    "make -f build.mk all",
    "just --justfile ci.just test",
    "uv run pytest",
    "find . -name '*.rs'",
    "split -l 5 x",
    "go test ./... -ldflags '-s -w'",
    "sleep 1 & ls",
    "sed -n 1,20p f",
    "sed -n '/^## /,$p' CHANGELOG.md | head -40",
    "sed -i 's/foo/bar/g' a.rs",
    "sed -E -e 's,a/(b|c),\\1,2' -e '$d' f",
    "sed '/^$/d; s/ *$//' f",
    "sed -i.bak '3,5!s#x#rm f#I' f",
    "awk '{ print $1 }' f",
    "awk -F, 'NR > 1 { s += $3 } END { print s }' f.csv",
    "awk -v n=3 'NR == n' f",
    "find . -name rm",
    "git log --format='%h rm %s'",
    "git log --grep 'rm f'",
    "git diff --stat HEAD~1",
    "rg 'rm -rf' src",
    "grep -rn -e 'rm f' src",
    "cargo test rm",
    "cargo run -- --command rm",
    "npm run rm",
    "npm rm left-pad",
    "pip install rm",
    "man rm",
    "type rm; which rm",
    "mkdir rm",
    "cat rm",
    "tee x <<E\nrm f\nE",
    "tar tf a.tar",
    "tar -tvf a.tgz",
    "RUSTFLAGS='-D warnings' cargo build",
    "CFLAGS='-O2 -g' make",
    "export RUST_BACKTRACE=1",
    "docker-compose up -d",
    "pytest -x -k 'not slow'",
    "pytest -c setup.cfg",
    "jest -t 'renames a file'",
    "eslint --fix src",
    "terraform plan -out x",
    "pre-commit run --all-files",
    "mytool --no-pager -c x",
    "uv run pytest -k warm",
    "poetry run ruff check",
    "bundle exec rspec",
    "yarn run build --pre rmdir",
    "npx tsc --noEmit",
    "test -n \"$x\" && ls",
    "[ \"$x\" = y ] || [ ! -f \"$y\" ] && ls",
    "x=(a b c); ls",
    "m=([1]=a [2]=b); ls",
    "echo $((1 + 2)) $(( 10 % 3 ))",
    "printf '%d\\n' 3",
    "diff -u a b",
    "sort -t, -k2 -u x",
    "xz -dk a.xz",
    "curl -sS -o x http://localhost:1/",
    "date +%s",
    "command -v rm",
    "timeout -s KILL 60 cargo test -q",
    "nice -n 10 make -j2",
    "env FOO=1 -u BAR ls",
    "env | sort | head -3",
    "nohup time cargo build",
    "git ls-files | xargs wc -l",
    "git diff --name-only | xargs -r -n1 basename",
    "docker ps --format '{{.Names}}'",
    "kubectl version --client",
    "awk 'NR==1 || $2 > 3' a",
    "basename \"$PWD\"",
    "stat -c '%s %n' a",
    "diff <(sort a) <(sort b) || true",
    "trap 'echo bye' EXIT; ls",
    "while IFS= read -r line; do echo \"> $line\"; done < a.txt",
    "IFS=, read -r a b < a.csv; echo \"$b\"",
    "arr=(a b c); echo \"${arr[1]}\" \"${arr[@]:1}\" ${#arr[@]}",
    "v=$(date +%F); echo \"${v:0:7}\"",
    "x=5; [[ $x -gt 3 && -n $HOME ]] && echo ok",
    "i=0; while [ $i -lt 3 ]; do i=$((i+1)); done",
    "echo $(( RANDOM % 6 + 1 ))",
    "printf '%s\\n' \"$x\"",
    "git -c color.ui=always -c user.name=me diff HEAD~1",
    "git -c core.quotepath=false diff --name-only",
    "git -C sub status --short",
    "git config --get user.name || true",
    "GIT_PAGER=cat git log -2",
    "GIT_AUTHOR_DATE='2020-01-01' git commit --allow-empty -qm old",
    "PYTHONPATH=src python3 -m pytest tests -q",
    "pytest -k 'rm or mv' -x --tb=short",
    "node --test test/",
    "comm -12 <(sort a.txt) <(sort b.txt)",
    "awk 'BEGIN {\n  x = \"rm f\"\n  print x\n}'",
    "awk -v n=\"$n\" '{ print n }' a.txt",
    "seq 1 3 | xargs -I{} echo \"item {}\"",
    "ls *.txt | xargs -I{} cp {} {}.bak",
    "printf 'a b' | xargs -n 1 -P 2 echo",
    "find . -name '*.py' -exec grep -l rm {} +",
    "find . -type f -exec wc -l {} \\; -exec stat {} \\;",
    "npx eslint 'src/**/*.{ts,tsx}' --max-warnings 0",
    "md5sum *.txt | sort | uniq -d",
    "tar -czf dist.tgz dist/ --exclude='*.map'",
    "./configure --prefix=\"$HOME/.local\" && make -j\"$(nproc)\" all",
    ": \"${PORT:=3000}\"; ./app < \"$f\" > \"${f%.in}.out\"",
    "sleep 0.1 & wait $!",
    "sed ':a;N;$!ba;s/x/y/' f",
    "exec 3> out.log; echo hi >&3; exec 3>&-",
    "awk '/rm -rf/ {print FILENAME}' *.sh",
    "git diff --name-only | xargs -r gofmt -l",
    "git switch -c feature/x",
    "bash -n scripts/deploy.sh && echo ok",
    "A=1; B=2; echo $((A + B))",
    "ssh --version",
    "python3 -m unittest discover -s tests -p 'test_*.py'",
];

#[test]
fn lines_that_a_rule_does_not_concern_do_not_ask() {
    let deny = policy(&[], &[], &["run_command(rm *)", "run_command(git reset *)"]);
    let asks: Vec<_> = UNRELATED
        .iter()
        .filter(|line| deny.decide(Auto, &run(line)) != Verdict::Allow)
        .collect();
    assert_eq!(asks, Vec::<&&str>::new());
    for line in [
        "git push -u origin main",
        "tar czf a.tgz src",
        "python3 -m pytest -c x",
        "python3 a.py -c x",
        "gcc -O2 a.c",
        "make V=1 -j8",
        "printf -v x y",
        "test -n x",
        "sqlite3 db .tables",
        "docker logs web",
        "docker compose ps",
    ] {
        let program = line.split(' ').next().unwrap();
        check(
            &policy(&[&format!("run_command({program} *)")], &[], &[]),
            Ask,
            &run(line),
            "allow",
        );
    }
    // A plugin may run anything.
    for line in [
        "docker model run x",
        "docker compose up",
        "docker --host x ps",
        "docker config",
    ] {
        check(
            &policy(&["run_command(docker *)"], &[], &[]),
            Ask,
            &run(line),
            "ask",
        );
    }
}
