//! The texts as they were before and after each change, in the state folder: what a person can go back to when nothing else is left.
//!
//! A text is stored once, named by its SHA-256. Beside the texts is a list a turn, `SESSION-TURN.json`, that says which
//! text was whose.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::session::store::Change;
use crate::tools::FileDiff;
use crate::workspace::state::Retention;
use crate::workspace::{StateFolder, blocking};

/// What stays when a conversation begins to store.
const RETENTION: Retention = Retention { age: Duration::from_hours(30 * 24), bytes: 256 * 1024 * 1024 };

/// Where before-images go.
#[derive(Debug)]
pub(super) enum Store {
    /// Not opened yet.
    Closed(PathBuf),
    /// Ready.
    Open(Images),
    /// There is none, or it failed: that was said.
    Absent,
}

/// The folder, and what this conversation stored there.
#[derive(Debug)]
pub(super) struct Images {
    folder: StateFolder,
    /// The addresses of the texts.
    stored: HashSet<String>,
    /// The last turn that changed something, counted from 1.
    turn: u64,
    /// What it changed.
    files: Vec<Change>,
}

/// Where the texts are.
pub(in crate::session) fn folder(state: &Path) -> PathBuf {
    state.join("checkpoints")
}

impl Store {
    pub fn new(folder: Option<PathBuf>) -> Self {
        folder.map_or(Self::Absent, Self::Closed)
    }

    /// Stores what the files were before and after these changes of a turn. Fails once at most; then nothing is stored any more.
    pub async fn save(&mut self, session: &str, turn: u64, diffs: &[FileDiff]) -> Result<(), String> {
        let saved = match self.images().await {
            Ok(None) => return Ok(()),
            Ok(Some(images)) => images.save(session, turn, diffs).await,
            Err(error) => Err(error),
        };
        saved.map_err(|error| {
            *self = Self::Absent;
            format!("the texts before the changes cannot be stored ({error}); undo works as long as tandem runs")
        })
    }

    /// The texts, to be read.
    pub async fn texts(&mut self) -> Texts {
        Texts(self.images().await.ok().flatten().map(|images| images.folder.clone()))
    }

    async fn images(&mut self) -> std::io::Result<Option<&mut Images>> {
        if let Self::Closed(path) = self {
            let folder = StateFolder::open(path.clone()).await?;
            folder.prune(RETENTION).await?;
            *self = Self::Open(Images { folder, stored: HashSet::new(), turn: 0, files: Vec::new() });
        }
        Ok(if let Self::Open(images) = self { Some(images) } else { None })
    }
}

/// The texts that are kept, to be read.
#[derive(Debug)]
pub(in crate::session) struct Texts(Option<StateFolder>);

impl Texts {
    /// Those of the state folder `state`.
    pub async fn of(state: &Path) -> Self {
        Self(StateFolder::existing(folder(state)).await.ok())
    }

    /// The text of this address, if it is still there.
    pub async fn get(&self, address: &str) -> Option<Arc<str>> {
        Some(self.0.as_ref()?.beginning(address, RETENTION.bytes).await.ok()?.into())
    }
}

impl Images {
    /// Only these texts are hashed, not those of the turn's changes before.
    async fn save(&mut self, session: &str, turn: u64, diffs: &[FileDiff]) -> std::io::Result<()> {
        let new = diffs.to_vec();
        let changes: Vec<Change> = blocking(move || new.iter().map(Change::of).collect()).await;
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
        self.folder.write(&format!("{session}-{turn}.json"), list.into_bytes()).await
    }

    /// Lists a change; it becomes one with the change of the file that it goes on from.
    fn list(&mut self, change: Change) {
        let earlier = self.files.iter_mut().rev().find(|earlier| earlier.path == change.path);
        match earlier.filter(|earlier| change.before.as_ref() == Some(&earlier.after)) {
            Some(earlier) => earlier.after = change.after,
            None => self.files.push(change),
        }
    }

    /// Has `text` there afterwards.
    async fn store(&mut self, address: &str, text: &str) -> std::io::Result<()> {
        if !self.stored.contains(address) {
            self.folder.write(address, text.as_bytes().to_vec()).await?;
            self.stored.insert(address.to_owned());
        }
        Ok(())
    }
}

/// What a text is called.
pub(in crate::session) fn address(text: &str) -> String {
    let mut address = String::with_capacity(64);
    for byte in ring::digest::digest(&ring::digest::SHA256, text.as_bytes()).as_ref() {
        write!(address, "{byte:02x}").expect("writing to a string cannot fail");
    }
    address
}
