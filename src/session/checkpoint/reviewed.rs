//! What came of a review, and how a person is told.

use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::workspace::review::PendingHunk;
use crate::workspace::{Workspace, native};

/// So many files are named in a message.
const NAMED: usize = 5;

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reviewed {
    /// What can be reviewed now.
    pub turns: Vec<ReviewedTurn>,
    /// What was done, for the person.
    pub message: Option<String>,
    /// What was not undone or redone.
    pub left: Vec<Left>,
    /// The first turn that is cut off the conversation: undo brings it back until the next prompt.
    pub cut_from: Option<u64>,
    /// What was done, for the model.
    pub(in crate::session) remark: Option<String>,
}

/// What stayed as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// The file, absolute.
    pub path: PathBuf,
    /// Its lines as it is now, counted from 0; `None`: the whole file.
    pub lines: Option<Range<usize>>,
    /// Whether somebody changed it since; else it was the system that refused.
    pub is_changed: bool,
    /// Why, in words for the person.
    pub reason: String,
}

/// What still stands of a turn's changes.
#[derive(Debug, Clone, PartialEq)]
pub struct ReviewedTurn {
    /// Its number, counted from 1.
    pub turn: u64,
    /// The files.
    pub files: Vec<ReviewedFile>,
}

/// What still stands of a turn's changes of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct ReviewedFile {
    /// Absolute.
    pub path: PathBuf,
    /// Whether the turn made the file.
    pub created: bool,
    /// The hunks.
    pub hunks: Vec<PendingHunk>,
}

/// Why nothing was done, in words for the person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ReviewError(pub String);

pub(super) fn nothing() -> ReviewError {
    ReviewError("there is nothing to undo".to_owned())
}

pub(super) fn display(workspace: &Workspace, path: &Path) -> String {
    workspace.resolve_path(path).map_or_else(|_| native::shown(path), |path| path.display())
}

/// The first of the files, and how many more there are.
pub(super) fn named(workspace: &Workspace, paths: &[PathBuf]) -> String {
    names(&paths.iter().map(|path| display(workspace, path)).collect::<Vec<_>>())
}

/// The first of the names, and how many more there are.
fn names(all: &[String]) -> String {
    let named = all.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// What stayed, as the end of a message.
pub(super) fn stayed(workspace: &Workspace, left: &[Left]) -> String {
    if left.is_empty() {
        return String::new();
    }
    format!("; left as is: {}", listed(workspace, left))
}

/// Why nothing was `done` ("undone", "redone").
pub(super) fn refused(workspace: &Workspace, done: &str, left: &[Left]) -> ReviewError {
    if left.is_empty() { nothing() } else { ReviewError(format!("nothing was {done}: {}", listed(workspace, left))) }
}

fn listed(workspace: &Workspace, left: &[Left]) -> String {
    let one = |left: &Left| {
        let path = display(workspace, &left.path);
        let lines = match &left.lines {
            Some(lines) if lines.len() > 1 => format!(":{}-{}", lines.start + 1, lines.end),
            Some(lines) => format!(":{}", lines.start + 1),
            None => String::new(),
        };
        format!("{path}{lines} ({})", left.reason)
    };
    names(&left.iter().map(one).collect::<Vec<_>>())
}
