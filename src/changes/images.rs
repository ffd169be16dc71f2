//! Images of files: their bytes, each named by its SHA-256, so that equal files are stored once.
//!
//! Looks copy every file into a folder that goes with their session. What changes refer to is linked into the folder of
//! previous versions, which outlives it.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use super::change_set::{ChangeSet, Entry, EntryChange};
use crate::domain::{FileDiff, lock};
use crate::workspace::state::{Retention, address};
use crate::workspace::{content, disk};

/// Which previous versions stay when a conversation starts to store its own.
pub(crate) const RETENTION: Retention = Retention {
    age: Duration::from_hours(30 * 24),
    bytes: 256 << 20,
};

/// The folder of previous versions.
#[must_use]
pub fn folder(state: &Path) -> PathBuf {
    state.join("checkpoints")
}

/// The folder of the backups of git's objects, beside a folder of images.
pub(crate) fn backups(images: &Path) -> PathBuf {
    images.with_file_name("objects")
}

/// A folder of images; what it cannot take stays in memory.
#[derive(Debug, Default)]
pub struct Images {
    /// `None`: all of them are in memory.
    folder: Option<Dir>,
    /// The folder of the backups of git's objects.
    backups: PathBuf,
    in_memory: Mutex<HashMap<String, Arc<[u8]>>>,
}

impl Images {
    /// Those in the existing `folder`.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(folder: &Path) -> io::Result<Self> {
        Ok(Self {
            folder: Some(Dir::open_ambient_dir(folder, ambient_authority())?),
            backups: backups(folder),
            in_memory: Mutex::default(),
        })
    }

    /// Those in `folder`, which is created if necessary.
    ///
    /// # Errors
    /// It cannot be created or opened.
    pub fn create(folder: &Path) -> io::Result<Self> {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
        Self::open(folder)
    }

    /// The same folder.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn fork(&self) -> io::Result<Self> {
        Ok(Self {
            folder: self.folder.as_ref().map(Dir::try_clone).transpose()?,
            backups: self.backups.clone(),
            in_memory: Mutex::default(),
        })
    }

    /// The folder of the backups of git's objects.
    pub(super) fn backups(&self) -> &Path {
        &self.backups
    }

    /// The bytes of an image, unless a crash of the system has damaged it.
    ///
    /// # Errors
    /// It is not there, is damaged, or cannot be read.
    pub(super) fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        if let Some(bytes) = lock(&self.in_memory).get(name) {
            return Ok(bytes.to_vec());
        }
        let bytes = match &self.folder {
            Some(folder) => folder.read(name),
            None => Err(io::ErrorKind::NotFound.into()),
        };
        let bytes = bytes.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => io::Error::other("its previous version is not stored"),
            _ => error,
        })?;
        if address(&bytes) == name {
            Ok(bytes)
        } else {
            Err(io::Error::other("its stored copy is damaged"))
        }
    }

    /// The content of a file, if it is a text of at most `limit` bytes.
    #[must_use]
    pub fn text(&self, entry: &Entry, limit: u64) -> Option<Arc<str>> {
        let Entry::File { image, size, .. } = entry else {
            return None;
        };
        let bytes = (*size <= limit).then(|| self.read(image).ok())??;
        Some(content::decode(bytes)?.0.into())
    }

    /// Copies a file of about `size` and at most `limit` bytes; returns the name of its image, its size, and whether
    /// the image is new.
    pub(super) fn store(
        &self,
        file: File,
        size: u64,
        limit: u64,
    ) -> io::Result<(String, u64, bool)> {
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
        file.take(limit + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            return Err(io::Error::other("it has grown too large"));
        }
        self.store_bytes(&bytes)
    }

    /// Stores bytes; returns the same as [`Self::store`].
    pub(super) fn store_bytes(&self, bytes: &[u8]) -> io::Result<(String, u64, bool)> {
        let name = address(bytes);
        let is_new = !self.has(&name);
        if is_new {
            let folder = self.folder.as_ref().ok_or(io::ErrorKind::NotFound)?;
            disk::write_private(folder, name.as_ref(), bytes)?;
        }
        Ok((name, bytes.len() as u64, is_new))
    }

    /// Stores bytes so that they survive a crash of the system. Returns their name, and why they are in memory only.
    pub(super) fn keep(&self, bytes: &[u8]) -> (String, Option<io::Error>) {
        let name = address(bytes);
        if self.has(&name) {
            return (name, None);
        }
        let stored = match &self.folder {
            Some(folder) => disk::write_synced(folder, name.as_ref(), bytes).err(),
            None => None,
        };
        if self.folder.is_none() || stored.is_some() {
            lock(&self.in_memory).insert(name.clone(), bytes.into());
        }
        (name, stored)
    }

    /// How many bytes are in memory.
    pub(super) fn bytes_in_memory(&self) -> usize {
        lock(&self.in_memory)
            .values()
            .map(|bytes| bytes.len())
            .sum()
    }

    /// Forgets what is in memory.
    pub(super) fn forget(&self) {
        lock(&self.in_memory).clear();
    }

    /// A change as texts, if it is one of texts of at most `limit` bytes.
    #[must_use]
    pub fn diff(&self, change: &EntryChange, limit: u64) -> Option<FileDiff> {
        let text = |entry: &Entry| match entry {
            Entry::Absent => Some(None),
            entry => Some(Some(self.text(entry, limit)?)),
        };
        let (old_text, new_text) = (text(&change.before)?, text(&change.after)?);
        (old_text != new_text)
            .then(|| FileDiff::new(change.path.clone(), old_text, new_text.unwrap_or_default()))
    }

    /// Copies the images of `changes` into `folder`, too.
    pub(super) fn publish(&self, changes: &ChangeSet, folder: &Path) -> io::Result<()> {
        let to = Self::create(folder)?;
        let entries = changes
            .files
            .iter()
            .chain(&changes.git)
            .flat_map(|change| [&change.before, &change.after]);
        for entry in entries {
            let Entry::File { image, .. } = entry else {
                continue;
            };
            if !entry.has_image() || to.has(image) {
                continue;
            }
            let linked = match (&self.folder, &to.folder) {
                (Some(from), Some(to)) => from.hard_link(image, to, image).is_ok(),
                _ => false,
            };
            if !linked {
                to.store_bytes(&self.read(image)?)?;
            }
        }
        Ok(())
    }

    fn has(&self, name: &str) -> bool {
        let is_in_folder = |folder: &Dir| folder.symlink_metadata(name).is_ok();
        self.folder.as_ref().is_some_and(is_in_folder) || lock(&self.in_memory).contains_key(name)
    }
}
