//! Command lines against rules: what allows all of a line, and what denies or questions any part of it.

use super::*;

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
    // The line breaks of a substitution do not begin a here-document before it.
    let hidden = "cat <<EOF \"$(echo a\nrm x\nEOF\n)\"\nbody\nEOF";
    check(&rules, Auto, &run(hidden), "forbid");
    // What one shell takes for text, another one runs.
    for line in [
        "cat <<$'EOF'\nEOF\nrm x\n$'EOF'",
        "cat <<EOF\nE\\\nOF\nrm x\nEOF",
        "cat <<EOF\na\\\nEOF\necho '$(rm x)'\nEOF",
        "cat <<E\\\nOF\n$(rm x)\nEOF",
        "echo \"${v:-'}\"; rm x; echo \"'}\"",
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
fn cautions_require_approval_in_all_modes_and_are_never_remembered() {
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
    // On a case-insensitive disk, its name may be written in capitals.
    check(&rules, Auto, &run("/bin/RM -r x"), "forbid");
}
