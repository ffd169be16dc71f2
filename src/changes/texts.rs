//! The texts before and after each change, in the state folder, each named by its address: the SHA-256 of its bytes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::changes::change_set::any_path;
use crate::changes::images::{self, RETENTION};
use crate::domain::FileDiff;
use crate::domain::Stored;
use crate::workspace::StateFolder;
use crate::workspace::state::address;

/// The address of the empty text.
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// The stored texts, for reading.
#[derive(Debug)]
pub(crate) struct Texts(Option<StateFolder>);

impl Texts {
    /// Those in `folder`; `None` for none.
    pub fn in_folder(folder: Option<StateFolder>) -> Self {
        Self(folder)
    }

    /// Those of the state folder `state`.
    pub async fn of(state: &Path) -> Self {
        Self(StateFolder::existing(images::folder(state)).await.ok())
    }

    /// The text with this address, if it still exists.
    pub async fn get(&self, address: &str) -> Option<Arc<str>> {
        // Thousands of changes of a command may have none.
        if address == EMPTY {
            return Some(Arc::default());
        }
        Some(
            self.0
                .as_ref()?
                .beginning(address, RETENTION.bytes)
                .await
                .ok()?
                .into(),
        )
    }
}

/// A change of a file; the texts are stored beside the journals, by address.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredChange {
    /// Absolute path.
    #[serde(with = "any_path")]
    pub path: PathBuf,
    /// `None` for a file that did not exist.
    pub before: Option<String>,
    /// The text afterwards.
    pub after: String,
    /// How the text before was stored, where the file now does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<Stored>,
}

impl StoredChange {
    /// Takes a while where the texts are large.
    pub fn of(diff: &FileDiff) -> Self {
        Self {
            path: diff.path.clone(),
            before: diff.old_text.as_ref().map(|text| address(text.as_bytes())),
            after: address(diff.new_text.as_bytes()),
            stored: diff.stored,
        }
    }
}
