//! The rules that "always" adds, and those that a person edits.

use super::*;

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
    /// In every case, an offered rule allows the call, is narrow, and lets no program run that its words don't show.
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
        "no prefix limits what a shell runs"
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
