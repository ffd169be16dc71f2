//! Reviewing what turns changed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `_tandem/review`, a request: the changes that turns of a session made.
///
/// * `list` changes nothing.
/// * `keep` settles changes: they are no longer listed and cannot be undone. Without `turn` and `path` it settles all.
/// * `reject` undoes and settles changes: neither `undo` nor `redo` touches them again. With `path` alone the last turn
///   that changed that file is meant, without either the last turn.
/// * `undo` undoes all of `turn`, or of the last turn of which anything still stands.
/// * `redo` redoes `turn`, or the turn that was undone last. A turn that changes something ends what can be redone.
/// * `restore` takes files and conversation back to before `turn`, as one step that `undo` takes back.
///
/// Lines that somebody changed since are never touched: everything else is undone, and `left` names what stayed. Where
/// nothing could be undone the request fails (`RequestFailed`). Only `list` works while a turn runs. Every action is
/// answered with a [`Reviewed`].
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Review {
    /// The session.
    pub session_id: String,
    /// What happens to them.
    pub action: ReviewAction,
    /// One turn, as listed.
    #[serde(default)]
    pub turn: Option<u64>,
    /// One file, as listed.
    #[serde(default)]
    pub path: Option<std::path::PathBuf>,
    /// One hunk of that file, as listed.
    #[serde(default)]
    pub hunk: Option<usize>,
}

/// What happens to the changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReviewAction {
    /// They are listed.
    List,
    /// They stay.
    Keep,
    /// They go, for good.
    Reject,
    /// The last turn's changes go.
    Undo,
    /// What was undone comes back.
    Redo,
    /// Files and conversation go back to before a turn.
    Restore,
}

/// The answer to every [`Review`]: what can be reviewed now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Reviewed {
    /// Turns of which something is still there, the oldest first.
    pub turns: Vec<ReviewedTurn>,
    /// What was done, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What `undo`, `redo` or `restore` could not change.
    pub left: Vec<Left>,
    /// The first turn that `restore` cut off the conversation: `undo` brings it back until the next prompt.
    #[serde(rename = "cutFrom", skip_serializing_if = "Option::is_none")]
    pub cut_from: Option<u64>,
}

/// Lines that stayed as they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Left {
    /// Absolute.
    pub path: std::path::PathBuf,
    /// The lines, where only some of the file stayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<Lines>,
    /// Why, for people.
    pub reason: String,
}

/// What is still there of a turn's changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReviewedTurn {
    /// Its number.
    pub turn: u64,
    /// The files.
    pub files: Vec<ReviewedFile>,
}

/// What is still there of a turn's changes of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReviewedFile {
    /// Absolute.
    pub path: std::path::PathBuf,
    /// Whether the turn made the file: rejecting removes it.
    pub created: bool,
    /// The hunks, by line. Typing around one moves it, typing inside splits it, and one that was rewritten is gone.
    pub hunks: Vec<ReviewedHunk>,
}

/// A hunk that can be kept or rejected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReviewedHunk {
    /// Its name, which stays the same while other hunks of the file are kept, rejected or typed around.
    pub id: usize,
    /// Its lines in the text without it.
    pub old: Lines,
    /// Its lines in the text as it is now.
    pub new: Lines,
    /// The text of its `old` lines.
    pub old_text: String,
    /// A unified diff from the text without it to the text as it is now, with three lines of context.
    pub diff: String,
}

/// Some lines of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Lines {
    /// The first, counted from 1; with a `count` of 0 the one before which nothing is there.
    pub start: usize,
    /// How many.
    pub count: usize,
}
