//! What a revert left alone, and why.

use std::ops::Range;
use std::path::PathBuf;

/// A path that was left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// Absolute path.
    pub path: PathBuf,
    /// The reason.
    pub reason: Reason,
}

/// Why a path was not reverted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// Somebody changed it since.
    #[error("it has been changed since")]
    Changed,
    /// It is open in the editor, which has to change it.
    #[error("it is open in the editor")]
    Open,
    /// Somebody changed these lines of its text since, counted from 0.
    #[error("changed since")]
    Lines(Range<usize>),
    /// Somebody removed it since.
    #[error("it has been removed since")]
    Removed,
    /// Its text is nowhere but in the editor.
    #[error("it has unsaved changes in the editor, so it was not removed")]
    Unsaved,
    /// A folder with other contents.
    #[error("it is not empty")]
    NotEmpty,
    /// It was a pipe, socket or device, or a file of which no copy could be made.
    #[error("it was not a regular file, or could not be copied, such as on a full disk")]
    Special,
    /// Another part of git's state was changed since, and it only goes back as a whole.
    #[error("git's state has changed since")]
    GitMoved,
    /// The system did not permit it.
    #[error("permission denied")]
    Denied,
    /// There is no space for it.
    #[error("there is no space left on the disk; free some, then try again")]
    Full,
    /// The system refused.
    #[error("{0}")]
    Io(String),
}

impl Reason {
    /// Whether it has been changed since; otherwise, the system or the editor refused.
    pub fn is_change(&self) -> bool {
        matches!(
            self,
            Self::Changed | Self::Lines(_) | Self::Removed | Self::GitMoved | Self::NotEmpty
        )
    }

    /// Whether another attempt may succeed.
    pub fn is_retryable(&self) -> bool {
        !self.is_change() && *self != Self::Special
    }
}
