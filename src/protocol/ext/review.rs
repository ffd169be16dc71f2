//! Reviewing what turns changed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `_tandem/review`, a request: reviews the changes made by turns of a session.
///
/// * `list` changes nothing.
/// * `keep` settles changes: they are no longer listed and cannot be undone.
/// * `reject` undoes and settles changes in one step, which `undo` reverts.
/// * Both mean all turns without `turn`, and all files without `path`.
/// * `undo` undoes all of `turn`; without it the last rejection or the last turn with changes left, whichever is later.
/// * `redo` redoes `turn`, or the turn undone last. A turn that changes something clears what can be redone.
/// * `restore` returns files and the session to the state before `turn`, as one step that `undo` reverts.
///
/// Lines that somebody changed since are never touched: everything else is undone, and `left` lists what was left
/// alone. If nothing could be undone the request fails (`RequestFailed`). Only `list` works while a turn runs. Every
/// action is answered with [`Reviewed`].
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Review {
    /// The session.
    pub session_id: String,
    /// The action.
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

/// An action on changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReviewAction {
    /// Lists them.
    List,
    /// Keeps them.
    Keep,
    /// Reverts them for good.
    Reject,
    /// Reverts the last turn's changes.
    Undo,
    /// Reapplies what was undone.
    Redo,
    /// Returns files and the session to the state before a turn.
    Restore,
}

/// The answer to every [`Review`]: what can be reviewed now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Reviewed {
    /// Turns with changes left, oldest first. Where their hunks exceed 8 MiB, the earliest turns are not listed until
    /// later ones are settled.
    pub turns: Vec<ReviewedTurn>,
    /// What was done, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What `undo`, `redo` or `restore` could not change.
    pub left: Vec<Left>,
    /// The first turn that `restore` cut from the conversation: `undo` puts it back until the next prompt.
    #[serde(rename = "cutFrom", skip_serializing_if = "Option::is_none")]
    pub cut_from: Option<u64>,
    /// Whether `redo` reverts what was done.
    #[serde(rename = "canRedo")]
    pub can_redo: bool,
}

/// A path as text, whatever the bytes of its names.
fn as_text<S: serde::Serializer>(path: &std::path::Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// Lines that were left alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Left {
    /// Absolute path.
    #[serde(serialize_with = "as_text")]
    pub path: std::path::PathBuf,
    /// The lines, if only part of the file was left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<Lines>,
    /// The reason, for people.
    pub reason: String,
}

/// What is left of a turn's changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReviewedTurn {
    /// Its number.
    pub turn: u64,
    /// The files.
    pub files: Vec<ReviewedFile>,
}

/// What is left of a turn's changes to a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReviewedFile {
    /// Absolute path.
    #[serde(serialize_with = "as_text")]
    pub path: std::path::PathBuf,
    /// Whether the turn created the file: rejecting removes it.
    pub created: bool,
    /// The hunks, by line. Typing around one moves it, typing inside splits it, and one that was rewritten is not
    /// listed.
    pub hunks: Vec<ReviewedHunk>,
}

/// A hunk that can be kept or rejected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReviewedHunk {
    /// Its id, which stays the same while other hunks of the file are kept, rejected or typed around.
    pub id: usize,
    /// Its lines in the text without the hunk.
    pub old: Lines,
    /// Its lines in the current text.
    pub new: Lines,
    /// The text of its `old` lines.
    pub old_text: String,
    /// A unified diff from the text without the hunk to the current text, with three lines of context.
    pub diff: String,
}

/// A range of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Lines {
    /// The first line, counted from 1; if `count` is 0, the range is before that line.
    pub start: usize,
    /// The number of lines.
    pub count: usize,
}
