//! What a session knows of the files: fingerprints of texts it read, and of texts whose change a person was shown.
//!
//! Timestamps prove nothing; only the text does.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::SystemTime;

use super::path::WorkspacePath;
use crate::domain::lock;

/// How many read files are checked for changes, most recently read first.
const LOOKED_AT: usize = 100;

/// Fingerprints by resolved path, valid as long as the process runs.
#[derive(Default)]
pub(super) struct Seen {
    hasher: RandomState,
    files: Mutex<HashMap<PathBuf, File>>,
}

#[derive(Default, Clone, Copy)]
struct File {
    read: Option<Reading>,
    shown: Option<u64>,
    /// The text that an approved change gave a protected file.
    approved: Option<u64>,
}

#[derive(Clone, Copy)]
struct Reading {
    hash: u64,
    at: SystemTime,
    /// The state last reported to the model.
    reported: Option<u64>,
}

/// How a text compares with what the session knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// The same text was read.
    Same,
    /// A different text was read.
    Changed,
    /// Not read; if a change was shown, it was one of this text.
    Unread,
    /// Not read, and a change of a different text was shown.
    ChangedSinceShown,
}

impl Seen {
    /// Another session's, which knows the same to begin with.
    pub fn fork(&self) -> Self {
        Self {
            hasher: self.hasher.clone(),
            files: Mutex::new(self.files().clone()),
        }
    }

    /// The model has read `text`.
    pub fn read(&self, path: &WorkspacePath, text: &str) {
        let reading = Reading {
            hash: self.hash(Some(text)),
            at: SystemTime::now(),
            reported: None,
        };
        self.files().entry(path.real()).or_default().read = Some(reading);
    }

    /// A change of `text` was shown.
    pub fn shown(&self, path: &WorkspacePath, text: &str) {
        let hash = self.hash(Some(text));
        self.files().entry(path.real()).or_default().shown = Some(hash);
    }

    /// An approved change has given the file `text`.
    pub fn approved(&self, path: &WorkspacePath, text: &str) {
        let hash = self.hash(Some(text));
        self.files().entry(path.real()).or_default().approved = Some(hash);
    }

    /// Whether an approved change has given the file `text`.
    pub fn is_approved(&self, path: &Path, text: &str) -> bool {
        let approved = self.files().get(path).and_then(|file| file.approved);
        approved.is_some_and(|hash| hash == self.hash(Some(text)))
    }

    /// Whether the session knows `text`.
    pub fn known(&self, path: &WorkspacePath, text: &str) -> Known {
        let file = self.files().get(&path.real()).copied().unwrap_or_default();
        let is_now = |hash: u64| hash == self.hash(Some(text));
        match (
            file.read.map(|read| is_now(read.hash)),
            file.shown.map(is_now),
        ) {
            (Some(true), _) => Known::Same,
            (Some(false), _) => Known::Changed,
            (None, Some(false)) => Known::ChangedSinceShown,
            (None, _) => Known::Unread,
        }
    }

    /// Whether a change of the file was shown at all.
    pub fn was_shown(&self, path: &WorkspacePath) -> bool {
        self.files()
            .get(&path.real())
            .is_some_and(|file| file.shown.is_some())
    }

    /// The files that were read last, and when.
    pub fn readings(&self) -> Vec<(PathBuf, SystemTime)> {
        let files = self.files();
        let mut read: Vec<_> = files
            .iter()
            .filter_map(|(path, file)| Some((path.clone(), file.read?.at)))
            .collect();
        drop(files);
        read.sort_unstable_by_key(|(_, at)| Reverse(*at));
        read.truncate(LOOKED_AT);
        read
    }

    /// Whether a text (`None`: the file is gone) differs from what was read and has not been reported yet. Marks it as
    /// reported.
    pub fn is_news(&self, path: &WorkspacePath, text: Option<&str>) -> bool {
        let now = self.hash(text);
        let mut files = self.files();
        let Some(read) = files
            .get_mut(&path.real())
            .and_then(|file| file.read.as_mut())
        else {
            return false;
        };
        read.reported.replace(now) != Some(now) && read.hash != now
    }

    fn hash(&self, text: Option<&str>) -> u64 {
        self.hasher.hash_one(text)
    }

    fn files(&self) -> MutexGuard<'_, HashMap<PathBuf, File>> {
        lock(&self.files)
    }
}
