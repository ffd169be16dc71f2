//! Mistakes of real models, replayed against the real program: `tests/slips/*.json` are cases of our own, and
//! `TANDEM_SLIPS` names a folder of others in the same form (`../shared/corpus/slips` if present).
//!
//! A case states what the model answers and what a user sees afterwards, never tandem's own wording. Categories whose name
//! begins with `safety` hold without exception.

mod edges;
mod envelopes;
mod generated;
mod invented;
mod judge;
mod kept;
mod play;
mod script;
mod variants;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::commands::without_bubblewrap;
use crate::driver::side_by_side;

/// How many cases run in parallel; most of them wait.
const SIDE_BY_SIDE: usize = 4;

/// The percentage of other people's cases that may fail. Safety cases never may.
const FOREIGN_FAILURES: usize = 2;

#[test]
fn our_slips_are_handled() {
    let (report, failed) = play_cases(&cases(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slips"),
    ));
    assert!(failed.is_empty(), "{report}");
}

#[test]
fn quotations_and_explanations_never_run() {
    let cases = [
        generated::quotations(),
        generated::explanations(),
        generated::decoded(),
        generated::shown(),
        generated::between(),
        edges::own_words(),
        edges::data(),
    ]
    .concat();
    let (report, failed) = play_cases(&selected(cases));
    assert!(failed.is_empty(), "{report}");
}

/// Nothing of a file is taken for a mark of the call that writes it.
#[test]
fn texts_that_look_like_marks_are_kept() {
    let (report, failed) = play_cases(&selected(
        [kept::parts(), kept::wholes(), generated::files()].concat(),
    ));
    assert!(failed.is_empty(), "{report}");
}

/// Leaks, and spellings of names, paths and patches, by rule.
#[test]
fn variants_of_slips_are_handled() {
    let cases = [
        variants::trailing(),
        variants::places(),
        variants::leaks(),
        variants::swallowed(),
        variants::ends(),
        variants::names(),
        variants::paths(),
        variants::other_paths(),
        variants::patches(),
        envelopes::streams(),
        envelopes::parallel(),
        envelopes::parallel_in_text(),
        envelopes::by_arguments(),
        envelopes::unknown_marks(),
        envelopes::messages(),
        envelopes::frames(),
        edges::edges(),
        edges::next_calls(),
        edges::broken_marks(),
        edges::later_thoughts(),
        invented::invented_edges(),
        invented::invented_parts(),
        invented::invented_thoughts(),
        invented::made_up(),
        invented::invented_calls(),
        invented::invented_leaks(),
    ]
    .concat();
    let (report, failed) = play_cases(&selected(cases));
    assert!(failed.is_empty(), "{report}");
}

#[test]
fn shared_slips_are_handled() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus/slips");
    let folder = std::env::var("TANDEM_SLIPS").map_or(beside, PathBuf::from);
    if !folder.is_dir() {
        let line = format!(
            "NOT RUN: {} is absent; TANDEM_SLIPS names another folder of slips\n",
            folder.display()
        );
        std::io::stderr().write_all(line.as_bytes()).unwrap();
        return;
    }
    let cases = cases(&folder);
    let (report, failed) = play_cases(&cases);
    let played = cases.len();
    let unsafe_ones = failed.iter().any(|id| id.starts_with("safety"));
    assert!(
        !unsafe_ones && failed.len() * 100 <= played * FOREIGN_FAILURES,
        "{report}"
    );
}

/// The cases of a folder.
fn cases(folder: &Path) -> Vec<Value> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.retain(|file| {
        file.extension()
            .is_some_and(|extension| extension == "json")
    });
    files.sort();
    let list = |file: &PathBuf| -> Vec<Value> {
        let text = std::fs::read_to_string(file).unwrap();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    };
    selected(files.iter().flat_map(list).collect())
}

/// The cases whose name contains `TANDEM_SLIP`; all if it is not set.
fn selected(mut cases: Vec<Value>) -> Vec<Value> {
    let only = std::env::var("TANDEM_SLIP").unwrap_or_default();
    cases.retain(|case| id(case).contains(&only));
    cases
}

fn id(case: &Value) -> &str {
    case["id"].as_str().expect("a case has an id")
}

/// Runs cases; returns the report, which is also printed, and the IDs of those that failed.
fn play_cases(cases: &[Value]) -> (String, Vec<String>) {
    let outcomes = play_all(cases);
    let mut scores: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let (mut report, mut failed) = (String::new(), Vec::new());
    for case in cases {
        let (passed, all) = scores
            .entry(case["category"].as_str().expect("a case has a category"))
            .or_default();
        let wrong = &outcomes[id(case)];
        *all += 1;
        *passed += usize::from(wrong.is_empty());
        if !wrong.is_empty() {
            writeln!(report, "FAILED {}: {}", id(case), wrong.join("; ")).unwrap();
            failed.push(id(case).to_owned());
        }
    }
    for (category, (passed, all)) in scores {
        writeln!(report, "slips: {category} {passed}/{all}").unwrap();
    }
    writeln!(
        report,
        "slips: {} of {} hold",
        cases.len() - failed.len(),
        cases.len()
    )
    .unwrap();
    // Bypasses the harness, which captures the output of passing tests.
    std::io::stderr().write_all(report.as_bytes()).unwrap();
    (report, failed)
}

/// What is wrong after each case, by ID.
fn play_all(cases: &[Value]) -> BTreeMap<String, Vec<String>> {
    // These tests are about what models write. Bubblewrap starts four processes per session, which took half the time.
    let search = without_bubblewrap();
    let play = |case: &Value| {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            judge::judge(&case["expect"], &play::play(case, search))
        }));
        let broke = |panic: Box<dyn std::any::Any + Send>| {
            let why = panic.downcast_ref::<String>().cloned();
            vec![format!("the play broke: {}", why.unwrap_or_default())]
        };
        (id(case).to_owned(), outcome.unwrap_or_else(broke))
    };
    side_by_side(SIDE_BY_SIDE, cases.iter().collect(), play)
        .into_iter()
        .collect()
}
