//! One edit of an open document, seen through: asked for, answered, and there.
//!
//! What the editor answers is not believed: some apply nothing and say they did. The document that comes back decides.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::{ATTEMPTS, Attempt};
use crate::text::{Hunk, Range, hunks};
use crate::workspace::documents::Document;
use crate::workspace::edit::Outcome;
use crate::workspace::editor::{self, Applied, DocumentEdit};
use crate::workspace::{FileError, Workspace, WorkspacePath, blocking};

/// So long an editor that says it made an edit may take to report it.
const REPORT: Duration = Duration::from_secs(2);
/// So long after a change that was not ours another may follow that is.
const SETTLE: Duration = Duration::from_millis(500);

/// Asks the editor for `outcome` and waits until the document shows what became of it.
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
        Some(applied) => applied.map_err(|error| FileError::Editor(path.display(), error.to_string()))?,
        // It reports what it does and is silent about it.
        None if expectation.is_met() => return Ok(Attempt::Done(None)),
        None => return Err(FileError::Editor(path.display(), editor::silent())),
    };
    let mut version = document.version;
    let mut wait = if applied == Applied::Yes { REPORT } else { SETTLE };
    loop {
        if expectation.is_met() {
            return Ok(Attempt::Done(None));
        }
        match timeout(wait, documents.changed(&document.uri, version)).await {
            Ok(Some(now)) if applied == Applied::Yes => {
                match nearer(&document.text, &outcome.new_text, &now.text).await {
                    Nearer::New if !expectation.is_met() => {
                        return Ok(Attempt::Done(Some(
                            "someone typed in the file at the same time; read it before the next edit",
                        )));
                    }
                    _ => (version, wait) = (now.version, SETTLE),
                }
            }
            _ => break,
        }
    }
    Ok(Attempt::Again(match applied {
        Applied::Refused(reason) => format!("it refused ({reason}), though asked {ATTEMPTS} times"),
        Applied::Yes => "it said it did, but the text is another".to_owned(),
    }))
}

/// Which of two texts another one was made from.
#[derive(Debug, PartialEq, Eq)]
enum Nearer {
    Old,
    New,
}

/// Whether `now` came of `new`, by someone else typing, or of `old`. What takes less is what happened.
async fn nearer(old: &Arc<str>, new: &Arc<str>, now: &Arc<str>) -> Nearer {
    let (old, new, now) = (Arc::clone(old), Arc::clone(new), Arc::clone(now));
    let distance = |from: &str, to: &str| -> usize {
        hunks(from, to).iter().map(|hunk| hunk.range.len() + hunk.new_text.len()).sum()
    };
    let is_new = blocking(move || distance(&new, &now) < distance(&old, &now)).await;
    if is_new { Nearer::New } else { Nearer::Old }
}

/// The smallest hunks of `outcome`, as the editor counts.
fn editor_hunks(workspace: &Workspace, document: &Document, outcome: &Outcome) -> Vec<(Range, String)> {
    let encoding = workspace.0.documents.encoding();
    let text = &document.text;
    let range = |hunk: Hunk| (document.lines.range(text, &hunk.range, encoding), hunk.new_text);
    outcome.places.iter().flat_map(|place| small(text, place)).map(range).collect()
}

/// `place` as small hunks.
fn small(text: &str, place: &Hunk) -> Vec<Hunk> {
    let (start, old) = (place.range.start, text.get(place.range.clone()).unwrap_or_default());
    let moved = |hunk: Hunk| Hunk { range: hunk.range.start + start..hunk.range.end + start, ..hunk };
    hunks(old, &place.new_text).into_iter().map(moved).collect()
}
