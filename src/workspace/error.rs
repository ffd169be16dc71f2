//! Why a file could not be read or changed, in words that let a model's next try succeed.

use super::edit::MatchError;
use super::path::PathError;

/// What went wrong with a file. The text is meant for the model as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// The name is not one of the workspace.
    #[error(transparent)]
    Path(#[from] PathError),
    /// There is nothing of that name.
    #[error("{0} does not exist")]
    NotFound(String),
    /// A folder, pipe, socket or device.
    #[error("{0} is {1}, not a regular file")]
    Special(String, &'static str),
    /// More bytes than are read at once.
    #[error("{path} is too large: {size} bytes, the limit is {limit}; grep searches it, a command can change it")]
    TooLarge {
        /// The file.
        path: String,
        /// Its size in bytes.
        size: u64,
        /// The most that is read.
        limit: u64,
    },
    /// No text.
    #[error("{0} is a binary file of {1} bytes; it cannot be read or edited as text")]
    Binary(String, u64),
    /// The new text has a character the file's encoding has not.
    #[error("{0} is stored as {1}, which has no {2:?}; use other characters")]
    Unencodable(String, String, char),
    /// It changed since the model read it, and what was asked for would undo that.
    #[error("{0} has changed since you read it; read it again, then repeat the change on the new text")]
    Changed(String),
    /// The model never read what it wants to replace.
    #[error(
        "{0} exists and you have not read it, so it is not overwritten; read it first, then change it or write it anew"
    )]
    Unread(String),
    /// The new text has a line that stands for text left out.
    #[error(
        "{0} was not changed: the line {1:?} stands for text that was left out; write that text, or change only a part"
    )]
    Placeholder(String, String),
    /// It is protected, and nobody was shown what would be changed in it.
    #[error("{0} leads to {1}, which is protected, and no change of that was approved")]
    NotShown(String, String),
    /// The editor has text of it that is nowhere else.
    #[error("{0} has unsaved changes in the editor, so it is not removed; ask to have it saved first")]
    Unsaved(String),
    /// The text to replace was not found, or not once.
    #[error("{path}: {error}{}", if *.changed { " The file has changed since you read it." } else { "" })]
    Match {
        /// The file.
        path: String,
        /// What was not found and what is there instead.
        error: MatchError,
        /// Whether the text is another than the one the model read.
        changed: bool,
    },
    /// The editor would not do it.
    #[error("the editor did not change {0}: {1}")]
    Editor(String, String),
    /// The system would not do it.
    #[error("cannot {verb} {path}: {reason}")]
    Io {
        /// What was tried.
        verb: &'static str,
        /// The file.
        path: String,
        /// The system's words.
        reason: String,
    },
}
