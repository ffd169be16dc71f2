//! What is remembered of servers between sessions, in files of the state directory that only its owner can read.
#![expect(
    clippy::disallowed_methods,
    reason = "tandem's own files in the state directory"
)]

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::workspace::state::create_private;

/// A file with one JSON object. Without a state directory it stays empty.
#[derive(Debug, Clone, Default)]
pub(super) struct Store(Option<PathBuf>);

impl Store {
    /// The file of this name in `mcp` of a state directory.
    pub fn new(state: Option<&Path>, name: &str) -> Self {
        Self(state.map(|state| state.join("mcp").join(name)))
    }

    /// The entries; a file that is missing or damaged has none.
    pub fn read<T: DeserializeOwned>(&self) -> BTreeMap<String, T> {
        let text = self.0.as_ref().and_then(|file| std::fs::read(file).ok());
        text.and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_default()
    }

    /// Replaces the entries. Another process sees the old ones or the new ones.
    pub fn write<T: Serialize>(&self, entries: &BTreeMap<String, T>) -> io::Result<()> {
        let Some((file, folder)) = self
            .0
            .as_ref()
            .and_then(|file| Some((file, file.parent()?)))
        else {
            return Err(io::Error::other(
                "there is no state directory; set TANDEM_STATE_DIR",
            ));
        };
        create_private(folder)?;
        // Temporary files are readable by their owner alone, and stay so.
        let temporary = tempfile::NamedTempFile::new_in(folder)?;
        serde_json::to_writer(&temporary, entries)?;
        temporary.persist(file)?;
        Ok(())
    }
}
