//! What is left to review of a turn after a person kept, rejected, undid or redid something, as a journal has it.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::ChangeSet;
use super::change_set::{EntryChange, any_path};
use crate::domain::{FileDiff, Stored};

/// What a journal says of the changes of turns.
#[derive(Debug, PartialEq)]
pub(crate) enum Remembered {
    /// A call changed something: the texts, and all that a command did.
    Changed {
        turn: u64,
        diffs: Vec<FileDiff>,
        command: Option<Arc<ChangeSet>>,
    },
    /// A person settled, undid or redid something.
    Reviewed(StoredReview),
}

/// What a review changed of a turn; texts are stored beside the journals, by their address.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredReview {
    /// The turn, counted in prompts.
    pub turn: u64,
    /// The files that it changed.
    pub files: Vec<StoredFile>,
    /// What is left of git's own state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub git: Vec<EntryChange>,
}

/// What is left to review of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredFile {
    /// Absolute.
    #[serde(with = "any_path")]
    pub path: PathBuf,
    /// The change; `None`: nothing is left of it.
    pub change: Option<StoredLeft>,
}

/// A change of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredLeft {
    /// Whether the turn made the file.
    pub created: bool,
    /// The text before.
    pub before: String,
    /// The text afterwards.
    pub after: String,
    /// How the text before was stored, where the file now does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<Stored>,
    /// What commands made of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<StoredCommand>,
}

/// What commands made of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredCommand {
    /// Byte for byte.
    pub change: EntryChange,
    /// The text before the first command, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Whether its texts are known.
    pub is_text: bool,
    /// What tools made of it after the last command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<Box<StoredLeft>>,
}
