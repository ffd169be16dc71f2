//! The attack cases of `tests/attacks`, played against the real program: what attackers and accidents do, and what holds.
//!
//! `TANDEM_ATTACKS` names another file of the same form. A case passes, fails, or is not run because its setup cannot
//! be built here; that is said loudly and never counts as passed. A word that the runner does not know is a failure.

mod canaries;
mod case;
mod faults;
mod inputs;
mod matrix;
mod model;
mod oracles;
mod scene;
mod server;
mod tools;
mod wire;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Instant;

use case::{Case, Trouble};
use inputs::Run;

use crate::driver::side_by_side;

/// So many cases are played side by side; most of them wait.
const SIDE_BY_SIDE: usize = 6;

/// Cases that do not pass yet, each with the reason. One that passes is named and has to leave the list.
const KNOWN: [(&str, &str); 0] = [];

/// What came of a case.
#[derive(Debug, Clone, PartialEq)]
enum Outcome {
    Passed,
    Failed(Vec<String>),
    NotRun(String),
}

#[test]
fn the_attack_cases_hold() {
    let path = std::env::var("TANDEM_ATTACKS");
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/attacks/attacks.json");
    let path = path.unwrap_or_else(|_| own.to_owned());
    let cases = case::load(&std::fs::read_to_string(&path).unwrap());
    let only = std::env::var("TANDEM_ATTACK").unwrap_or_default();
    let cases: Vec<Case> = cases.into_iter().filter(|case| case.applies() && case.id.contains(&only)).collect();
    assert!(!cases.is_empty(), "no case of {path} applies here");

    let outcomes = play_all(&cases);
    let (report, wrong) = report(&cases, &outcomes);
    // Past the harness, which keeps what tests that pass have printed.
    std::io::stderr().write_all(report.as_bytes()).unwrap();
    assert!(wrong.is_empty(), "{report}\n{}", wrong.join("\n"));
}

/// Plays the cases side by side, the long ones first; what was only late once more, alone.
fn play_all(cases: &[Case]) -> BTreeMap<String, Outcome> {
    let mut order: Vec<&Case> = cases.iter().collect();
    order.sort_by_key(|case| std::cmp::Reverse(length(case)));
    let mut outcomes: BTreeMap<_, _> =
        side_by_side(SIDE_BY_SIDE, order, |case| (case.id.clone(), play(case))).into_iter().collect();
    for case in cases {
        let is_late = |outcome: &Outcome| matches!(outcome, Outcome::Failed(wrong) if wrong.iter().all(|wrong| wrong.contains(": late: ")));
        if is_late(&outcomes[&case.id]) {
            outcomes.insert(case.id.clone(), play(case));
        }
    }
    outcomes
}

/// How long a case takes, roughly: what waits longest begins first.
fn length(case: &Case) -> u64 {
    match case.input["kind"].as_str() {
        Some("sigstop") => case.input["ms"].as_u64().unwrap_or(0),
        Some("kill_at_syscall") => 20_000,
        Some("tool_loop") => 15_000,
        Some("model") => 5000 * case.runs().len() as u64,
        _ => u64::try_from(case.setup.len()).unwrap() * 10,
    }
}

/// Plays all runs of a case; the first that is wrong decides.
fn play(case: &Case) -> Outcome {
    let begun = Instant::now();
    let mut unharmed = 0;
    for input in case.runs() {
        // A kill at a call that is never made is no kill, and neither are those after it.
        if unharmed >= 2 {
            break;
        }
        let judged = Run::play(case, &input).and_then(|mut run| {
            let wrong = oracles::judge(&mut run, case)?;
            Ok((wrong, run.notes.struck))
        });
        match judged {
            Ok((wrong, struck)) if wrong.is_empty() => {
                let is_kill = input["kind"] == "kill_at_syscall" && !struck;
                unharmed = if is_kill { unharmed + 1 } else { 0 };
            }
            Ok((mut wrong, _)) => {
                wrong.push(format!("(n = {}, wire = {}, {:?})", input["n"], input["wire"], begun.elapsed()));
                return Outcome::Failed(wrong);
            }
            Err(Trouble::NotBuilt(why)) => return Outcome::NotRun(why),
            Err(Trouble::Unknown(word)) => return Outcome::Failed(vec![format!("the runner does not know {word}")]),
        }
    }
    Outcome::Passed
}

/// The scores, and what should not be so.
fn report(cases: &[Case], outcomes: &BTreeMap<String, Outcome>) -> (String, Vec<String>) {
    let mut scores: BTreeMap<&str, (usize, usize, usize)> = BTreeMap::new();
    let (mut report, mut wrong) = (String::new(), Vec::new());
    let (mut failures, mut blocked) = (0, 0);
    for case in cases {
        let (passed, applicable, not_run) = scores.entry(&case.category).or_default();
        let known = KNOWN.iter().find(|(id, _)| *id == case.id);
        match &outcomes[&case.id] {
            Outcome::NotRun(why) => {
                *not_run += 1;
                writeln!(report, "skipped {}: {why}", case.id).unwrap();
                continue;
            }
            Outcome::Passed => {
                *passed += 1;
                if known.is_some() {
                    writeln!(report, "{} passes: take it from the list of known failures", case.id).unwrap();
                }
            }
            Outcome::Failed(why) => {
                let is_blocked = case.expect.verdict == "allow";
                let what = if is_blocked { "over-blocking" } else { "FAILED" };
                (failures, blocked) = (failures + usize::from(!is_blocked), blocked + usize::from(is_blocked));
                let line = format!("{what} {} ({}, {}): {}", case.id, case.title, case.severity, why.join("; "));
                writeln!(report, "{line}{}", known.map_or(String::new(), |(_, why)| format!(" [known: {why}]")))
                    .unwrap();
                if known.is_none() {
                    wrong.push(line);
                }
            }
        }
        *applicable += 1;
    }
    for (category, (passed, applicable, not_run)) in scores {
        let rest = if not_run > 0 { format!(", {not_run} not run") } else { String::new() };
        writeln!(report, "attacks: {category} {passed}/{applicable}{rest}").unwrap();
    }
    writeln!(report, "attacks: {failures} security failures, {blocked} over-blocked").unwrap();
    (report, wrong)
}
