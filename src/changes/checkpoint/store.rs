//! The texts before and after each change, in the state folder: the last resort to recover them.
//!
//! A text is stored once, named by its SHA-256. A list per turn, `SESSION-TURN.json`, says which text belongs to which
//! file.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;

use crate::changes::images::RETENTION;
use crate::changes::texts::{StoredChange, Texts};
use crate::domain::FileDiff;
use crate::workspace::state::address;
use crate::workspace::{StateFolder, blocking};

/// Hashing a text up to this size, in bytes, takes less time than a task on another thread.
const SMALL: usize = 4096;

/// Where previous versions are stored.
#[derive(Debug)]
pub(super) enum Store {
    /// Not opened yet.
    Closed(PathBuf),
    /// Ready.
    Open(Images),
    /// There is none, or it failed, which was reported.
    Absent,
}

/// The folder, and what this conversation stored in it.
#[derive(Debug)]
pub(super) struct Images {
    folder: StateFolder,
    /// The addresses of the texts.
    stored: HashSet<String>,
    /// The last turn that changed something, counted from 1.
    turn: u64,
    /// What it changed.
    files: Vec<StoredChange>,
}

impl Store {
    pub fn new(folder: Option<PathBuf>) -> Self {
        folder.map_or(Self::Absent, Self::Closed)
    }

    /// Stores the texts before and after these changes of a turn. Fails at most once; after that nothing is stored.
    pub async fn save(
        &mut self,
        session: &str,
        turn: u64,
        diffs: &[FileDiff],
    ) -> Result<(), String> {
        let saved = match self.images().await {
            Ok(None) => return Ok(()),
            Ok(Some(images)) => images.save(session, turn, diffs).await,
            Err(error) => Err(error),
        };
        saved.map_err(|error| {
            *self = Self::Absent;
            format!(
                "previous versions cannot be stored ({error}); undo works only until tandem exits"
            )
        })
    }

    /// The texts, to be read.
    pub async fn texts(&mut self) -> Texts {
        Texts::in_folder(
            self.images()
                .await
                .ok()
                .flatten()
                .map(|images| images.folder.clone()),
        )
    }

    /// Stores a text; gives its address.
    pub async fn put(&mut self, text: &Arc<str>) -> std::io::Result<String> {
        let owned = Arc::clone(text);
        let address = match text.len() {
            ..=SMALL => address(text.as_bytes()),
            _ => blocking(move || address(owned.as_bytes())).await,
        };
        if let Some(images) = self.images().await? {
            images.store(&address, text).await?;
        }
        Ok(address)
    }

    async fn images(&mut self) -> std::io::Result<Option<&mut Images>> {
        if let Self::Closed(path) = self {
            let folder = StateFolder::open(path.clone()).await?;
            folder.prune(RETENTION).await?;
            *self = Self::Open(Images {
                folder,
                stored: HashSet::new(),
                turn: 0,
                files: Vec::new(),
            });
        }
        Ok(if let Self::Open(images) = self {
            Some(images)
        } else {
            None
        })
    }
}

impl Images {
    /// Hashes only these texts, not those of the turn's earlier changes.
    async fn save(&mut self, session: &str, turn: u64, diffs: &[FileDiff]) -> std::io::Result<()> {
        let new = diffs.to_vec();
        let changes: Vec<StoredChange> =
            blocking(move || new.iter().map(StoredChange::of).collect()).await;
        if self.turn != turn {
            (self.turn, self.files) = (turn, Vec::new());
        }
        for (diff, change) in diffs.iter().zip(changes) {
            if let (Some(text), Some(address)) = (&diff.old_text, &change.before) {
                self.store(address, text).await?;
            }
            self.store(&change.after, &diff.new_text).await?;
            self.list(change);
        }
        let list = json!({ "session": session, "turn": turn, "files": self.files }).to_string();
        self.folder
            .write(&format!("{session}-{turn}.json"), list.into_bytes())
            .await
    }

    /// Lists a change, merged with the change of the same file that it continues.
    fn list(&mut self, change: StoredChange) {
        let earlier = self
            .files
            .iter_mut()
            .rev()
            .find(|earlier| earlier.path == change.path);
        match earlier.filter(|earlier| change.before.as_ref() == Some(&earlier.after)) {
            Some(earlier) => {
                earlier.after = change.after;
                earlier.stored = earlier.stored.or(change.stored);
            }
            None => self.files.push(change),
        }
    }

    /// Stores `text` if it is not there.
    async fn store(&mut self, address: &str, text: &str) -> std::io::Result<()> {
        if !self.stored.contains(address) {
            self.folder.write(address, text.as_bytes().to_vec()).await?;
            self.stored.insert(address.to_owned());
        }
        Ok(())
    }
}
