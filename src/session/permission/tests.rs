mod lines;
mod numbers;
mod remember;
mod removal;
mod spellings;
mod starters;
mod unrelated;

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
fn tandems_own_files_require_approval_in_every_mode() {
    let own = vec!["/work/settings/tandem".into(), "/work/mine.toml".into()];
    let guarding = policy(&["edit_file", "read_file"], &[], &[]).guarding(own);
    for path in ["settings/tandem/permissions/x.json", "mine.toml"] {
        let read = Facts {
            targets: vec![target(path)],
            ..facts("read_file", ToolKind::Read)
        };
        for mode in [Ask, Edit, Auto] {
            check(&guarding, mode, &edit(path), "ask");
            check(&guarding, mode, &read, "ask");
        }
    }
    check(&guarding, Ask, &edit("settings/tandem.md"), "allow");
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
fn unreadable_rules_fail_closed() {
    let rules = Policy::new(&["edit_file".into()], &[], &["edit_file(src/**".into()]);
    for mode in [Ask, Edit, Auto] {
        check(&rules, mode, &edit("src/a.rs"), "ask");
    }
}
