//! What a session knows of the files: fingerprints of the texts it read, and of those a person was shown a change of.
//!
//! Time stamps prove nothing; only the text does.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::path::WorkspacePath;

/// Fingerprints by resolved path; good as long as the process runs.
#[derive(Default)]
pub(super) struct Seen {
    hasher: RandomState,
    files: Mutex<HashMap<PathBuf, File>>,
}

#[derive(Default, Clone, Copy)]
struct File {
    read: Option<u64>,
    shown: Option<u64>,
}

/// How a text compares with what the session knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// It is the one that was read.
    Same,
    /// Another one was read.
    Changed,
    /// None was read, but a change of this one was shown, if any.
    Unread,
    /// None was read, and a change of another one was shown.
    ChangedSinceShown,
}

impl Seen {
    /// The model has read `text`.
    pub(super) fn read(&self, path: &WorkspacePath, text: &str) {
        let hash = self.hash(text);
        self.files().entry(path.real()).or_default().read = Some(hash);
    }

    /// A change of `text` was shown.
    pub(super) fn shown(&self, path: &WorkspacePath, text: &str) {
        let hash = self.hash(text);
        self.files().entry(path.real()).or_default().shown = Some(hash);
    }

    /// Whether the session knows `text`.
    pub(super) fn known(&self, path: &WorkspacePath, text: &str) -> Known {
        let file = self.files().get(&path.real()).copied().unwrap_or_default();
        let is_now = |hash: u64| hash == self.hash(text);
        match (file.read.map(is_now), file.shown.map(is_now)) {
            (Some(true), _) => Known::Same,
            (Some(false), _) => Known::Changed,
            (None, Some(false)) => Known::ChangedSinceShown,
            (None, _) => Known::Unread,
        }
    }

    /// Whether a change of the file was shown at all.
    pub(super) fn was_shown(&self, path: &WorkspacePath) -> bool {
        self.files().get(&path.real()).is_some_and(|file| file.shown.is_some())
    }

    fn hash(&self, text: &str) -> u64 {
        self.hasher.hash_one(text)
    }

    fn files(&self) -> MutexGuard<'_, HashMap<PathBuf, File>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
