//! One edit of an open document, from request to verified result.
//!
//! The editor's answer is not trusted: some editors apply nothing and say they did. The document it reports back
//! decides.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::{ATTEMPTS, Attempt};
use crate::text::{self, Hunk, common, hunks};
use crate::workspace::documents::Document;
use crate::workspace::edit::Outcome;
use crate::workspace::editor::{self, Applied, DocumentEdit};
use crate::workspace::{FileError, Workspace, WorkspacePath, blocking};

/// How long an editor may take to report an edit it says it made.
const REPORT: Duration = Duration::from_secs(2);
/// How long to wait for our change after one that was not ours.
const SETTLE: Duration = Duration::from_millis(500);
/// Past this many hunks they are sent as one: editors apply and report each alone, some with a copy of the whole text.
const MANY: usize = 1000;

/// Asks the editor to apply `outcome` and waits until the document shows the result.
pub(super) async fn apply(
    workspace: &Workspace,
    path: &WorkspacePath,
    document: &Document,
    outcome: &Outcome,
) -> Result<Attempt, FileError> {
    let documents = &workspace.0.documents;
    let expectation = documents.expect(&document.uri, outcome.new_text.clone());
    let edit = DocumentEdit {
        uri: document.uri.clone(),
        version: Some(document.version),
        label: format!("tandem: {}", path.display()),
        hunks: editor_hunks(workspace, document, outcome),
    };
    let applied = match editor::in_time(workspace.0.editor.apply(edit)).await {
        Some(Ok(applied)) => applied,
        // The editor applied the edit and reported the change, but did not answer, or failed afterwards.
        _ if expectation.is_met() => return Ok(Attempt::Done(None)),
        Some(Err(error)) => return Err(FileError::Editor(path.display(), error.to_string())),
        None => return Err(FileError::Editor(path.display(), editor::silent())),
    };
    let mut version = document.version;
    // Constant typing does not extend the wait.
    let mut end = Instant::now()
        + if applied == Applied::Yes {
            REPORT
        } else {
            SETTLE
        };
    loop {
        if expectation.is_met() {
            return Ok(Attempt::Done(None));
        }
        let Ok(Some(now)) = timeout_at(end, documents.changed(&document.uri, version)).await else {
            break;
        };
        if applied == Applied::Yes && is_made(document, outcome, &now.text).await {
            let note =
                "someone typed in the file at the same time; read it again before the next edit";
            return Ok(Attempt::Done((!expectation.is_met()).then_some(note)));
        }
        (version, end) = (now.version, end.min(Instant::now() + SETTLE));
    }
    Ok(Attempt::Again(match applied {
        Applied::Refused(reason) => {
            format!("it refused {ATTEMPTS} times ({reason}); ask the user not to type in it for a moment, or to save and close it")
        }
        Applied::Yes => "it reported success, but the text did not change as requested; ask the user to save and close it".to_owned(),
    }))
}

/// Whether `now`, which somebody else may have changed too, contains the edit: at each place the new text is present
/// and the old text is gone.
async fn is_made(document: &Document, outcome: &Outcome, now: &Arc<str>) -> bool {
    let (old, new, now) = (
        Arc::clone(&document.text),
        Arc::clone(&outcome.new_text),
        Arc::clone(now),
    );
    let places = hunks_of(&old, outcome);
    blocking(move || made(&old, &new, &now, &places)).await
}

/// Each replaced region decides, not the similarity of the whole texts: after a large removal the result may still
/// resemble the old text if somebody typed a little.
fn made(old: &str, new: &str, now: &str, places: &[Hunk]) -> bool {
    let (old, new) = (common(old, now), common(new, now));
    let still = |common: &[Range<usize>], place: &Range<usize>| -> usize {
        let first = common.partition_point(|range| range.end <= place.start);
        let inside = common
            .iter()
            .skip(first)
            .take_while(|range| range.start < place.end);
        inside
            .map(|range| {
                range
                    .end
                    .min(place.end)
                    .saturating_sub(range.start.max(place.start))
            })
            .sum()
    };
    let (mut grown, mut shrunk) = (0, 0);
    // Of the removed and of the inserted text: its bytes, and how many of them are in the current text.
    let (mut removed, mut kept, mut inserted, mut there) = (0, 0, 0, 0);
    for place in places {
        let start = place.range.start + grown - shrunk;
        grown += place.new_text.len();
        shrunk += place.range.len();
        removed += place.range.len();
        kept += still(&old, &place.range);
        inserted += place.new_text.len();
        there += still(&new, &(start..start + place.new_text.len()));
    }
    match (removed, inserted) {
        (_, 0) => 2 * kept < removed,
        (0, _) => 2 * there > inserted,
        // As fractions.
        _ => there * removed > kept * inserted,
    }
}

/// The smallest hunks of `outcome`, in the editor's positions.
fn editor_hunks(
    workspace: &Workspace,
    document: &Document,
    outcome: &Outcome,
) -> Vec<(text::Range, String)> {
    let encoding = workspace.0.documents.encoding();
    let text = &document.text;
    let mut hunks = hunks_of(text, outcome);
    if hunks.len() > MANY {
        hunks = united(&hunks, text, &outcome.new_text)
            .into_iter()
            .collect();
    }
    let range = |hunk: Hunk| {
        (
            document.lines.range(text, &hunk.range, encoding),
            hunk.new_text,
        )
    };
    hunks.into_iter().map(range).collect()
}

/// One hunk from the first of `hunks` to the last.
fn united(hunks: &[Hunk], old: &str, new: &str) -> Option<Hunk> {
    let range = hunks.first()?.range.start..hunks.last()?.range.end;
    let new_end = new.len() - (old.len() - range.end);
    let new_text = new.get(range.start..new_end)?.to_owned();
    Some(Hunk { range, new_text })
}

fn hunks_of(text: &str, outcome: &Outcome) -> Vec<Hunk> {
    outcome
        .places
        .iter()
        .flat_map(|place| small(text, place))
        .collect()
}

/// `place` as small hunks.
fn small(text: &str, place: &Hunk) -> Vec<Hunk> {
    let (start, old) = (
        place.range.start,
        text.get(place.range.clone()).unwrap_or_default(),
    );
    let moved = |hunk: Hunk| Hunk {
        range: hunk.range.start + start..hunk.range.end + start,
        ..hunk
    };
    hunks(old, &place.new_text).into_iter().map(moved).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_replaced_region_shows_whether_an_edit_was_applied() {
        let check = |old: &str, new: &str, now: &str, expected: bool| {
            assert_eq!(
                made(old, new, now, &hunks(old, new)),
                expected,
                "{old:?} {new:?} {now:?}"
            );
        };
        // A word is removed from a line while somebody types at both of its ends.
        let (old, new) = ("aaaa bbbbbbbbbbbb cccc\n", "aaaa cccc\n");
        check(old, new, "Xaaaa bbbbbbbbbbbb ccccX\n", false);
        check(old, new, "Xaaaa ccccX\n", true);
        let (old, new) = ("one\ntwo\nthree\n", "one\n2\nthree\n");
        check(old, new, "zero\none\ntwo\nthree\n", false);
        check(old, new, "zero\none\n2\nthree\n", true);
        check(old, new, "one\nt, typed, wo\nthree\n", false);
        check("f(a)\n", "f(a, b)\n", "f(a, b!)\n", true);
        check("f(a)\n", "f(a, b)\n", "f(a!)\n", false);
    }
}
