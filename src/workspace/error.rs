//! Why a file could not be read or changed, worded so that a model's next attempt succeeds.

use super::edit::MatchError;
use super::path::PathError;

/// What went wrong with a file. The text is meant for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// The name is not one in the workspace.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The file does not exist.
    #[error("{0} does not exist")]
    NotFound(String),
    /// A folder, pipe, socket or device.
    #[error("{0} is {1}, not a regular file")]
    Special(String, &'static str),
    /// The file is too large to read at once.
    #[error(
        "{path} is too large: {size} bytes, the limit is {limit}; grep searches it, a command can change it"
    )]
    TooLarge {
        /// The file.
        path: String,
        /// Its size in bytes.
        size: u64,
        /// The largest size that is read.
        limit: u64,
    },
    /// Not text.
    #[error("{0} is a binary file of {1} bytes; it cannot be read or edited as text")]
    Binary(String, u64),
    /// The file's encoding does not have a character of the new text.
    #[error("{0} is stored as {1}, which cannot represent {2:?}; use other characters")]
    Unencodable(String, String, char),
    /// It changed since the model read it, and the change would revert that.
    #[error(
        "{0} has changed since it was read; read it again, then repeat the change on the new text"
    )]
    Changed(String),
    /// The model has not read the text it wants to replace.
    #[error(
        "{0} exists and was not read before, so it was not overwritten; read it first, then change or rewrite it"
    )]
    Unread(String),
    /// The new text contains a placeholder for omitted text.
    #[error(
        "{0} was not changed: the line {1:?} is a placeholder for omitted text; write that text, or change only a part"
    )]
    Placeholder(String, String),
    /// It is protected, and no change of it was shown for approval.
    #[error("{0} resolves to {1}, which is protected; the change was not approved")]
    NotShown(String, String),
    /// The editor has unsaved text of it.
    #[error(
        "{0} has unsaved changes in the editor, so it was not removed; ask the user to save it first"
    )]
    Unsaved(String),
    /// The editor reads it in an encoding that is not its own.
    #[error(
        "{0} is open in the editor in the wrong encoding, and saving it there would destroy characters, so it was not changed; ask the user to close it or to reopen it with its own encoding"
    )]
    Misread(String),
    /// The text to replace was not found, or not exactly once.
    #[error("{path}: {error}{}", if *.changed { " The file has changed since it was read." } else { "" })]
    Match {
        /// The file.
        path: String,
        /// What was not found, and what is there instead.
        error: MatchError,
        /// Whether the file changed since the model read it.
        changed: bool,
    },
    /// The editor refused.
    #[error("the editor did not change {0}: {1}")]
    Editor(String, String),
    /// The system refused.
    #[error("cannot {verb} {path}: {reason}")]
    Io {
        /// What was attempted.
        verb: &'static str,
        /// The file.
        path: String,
        /// The system's message.
        reason: String,
    },
}
