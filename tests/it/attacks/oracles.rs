//! What has to hold after a case. An oracle says what is wrong, or nothing; `canaries` proves of each that it can fail.

mod files;
mod live;
pub mod traffic;
mod words;

use serde_json::Value;

use super::case::{Case, Done, unknown};
use super::inputs::Run;

/// What an oracle found.
pub type Found = Result<(), String>;

/// Every kind that is known. Those that do something to the server come last: the others judge what was noted before.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    [files::KINDS, words::KINDS, traffic::KINDS, live::KINDS].into_iter().flatten().copied()
}

/// Judges a run by all oracles of its case.
pub fn judge(run: &mut Run, case: &Case) -> Done<Vec<String>> {
    let place = |oracle: &&Value| kinds().position(|kind| oracle["type"] == kind);
    let mut oracles: Vec<&Value> = case.expect.oracles.iter().collect();
    if let Some(strange) = oracles.iter().find(|oracle| place(oracle).is_none()) {
        return unknown("oracle", &strange["type"]);
    }
    oracles.sort_by_key(place);
    let found = oracles.into_iter().filter_map(|oracle| {
        let oracle = run.scene.vars().value(oracle);
        let wrong = ask(run, case, &oracle).err()?;
        Some(format!("{}: {wrong}", oracle["type"].as_str().unwrap_or_default()))
    });
    Ok(found.collect())
}

/// Asks one oracle.
pub fn ask(run: &mut Run, case: &Case, oracle: &Value) -> Found {
    let kind = oracle["type"].as_str().unwrap_or_default();
    if files::KINDS.contains(&kind) {
        files::ask(run, kind, oracle)
    } else if words::KINDS.contains(&kind) {
        words::ask(&run.notes, kind, oracle)
    } else if traffic::KINDS.contains(&kind) {
        traffic::ask(run, kind, oracle)
    } else {
        live::ask(run, case, kind, oracle)
    }
}

/// An error unless it holds.
fn must(holds: bool, wrong: impl FnOnce() -> String) -> Found {
    if holds { Ok(()) } else { Err(wrong()) }
}

/// The beginning of a text, for a report.
fn short(text: &str) -> String {
    text.chars().take(300).collect()
}
