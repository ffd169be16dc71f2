//! Images of files: their bytes, each named by its SHA-256, so that equal files are stored once.
//!
//! Looks copy every file into a pack that is removed with their session. Images that changes refer to are copied into
//! the folder of previous versions, which outlives the session.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};

use super::change_set::{ChangeSet, Entry, EntryChange};
use super::pack::Pack;
use crate::domain::{FileDiff, lock};
use crate::workspace::state::{address, create_private, named, prune};
use crate::workspace::{content, disk, mode};

/// The folder of previous versions.
pub fn folder(state: &Path) -> PathBuf {
    state.join("checkpoints")
}

/// The folder of the backups of git's objects, beside a folder of images.
pub(crate) fn backups(images: &Path) -> PathBuf {
    images.with_file_name("objects")
}

/// A store of images; what it cannot take stays in memory.
#[derive(Debug, Default)]
pub struct Images {
    /// `None`: all of them are in memory.
    store: Option<Store>,
    /// The folder of the backups of git's objects.
    backups: PathBuf,
    in_memory: Mutex<HashMap<String, Arc<[u8]>>>,
}

#[derive(Debug, Clone)]
enum Store {
    /// Each in a file of its own, so that it can be removed.
    Folder(Arc<Dir>),
    /// All of them in one file, and removed with it.
    Pack(Arc<Pack>),
}

impl Store {
    /// Whether it is there with its `size`: a crash of the system may have cut it. Whoever asks needs it, so it is kept as
    /// long as one that is stored now.
    fn has(&self, name: &str, size: u64) -> bool {
        match self {
            Self::Folder(folder) => {
                let found = folder.open_with(name, OpenOptions::new().write(true));
                found.is_ok_and(|file| {
                    let file = file.into_std();
                    let _is_removed_sooner = file.set_modified(SystemTime::now());
                    file.metadata().is_ok_and(|found| found.len() == size)
                })
            }
            Self::Pack(pack) => pack.has(name),
        }
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        match self {
            Self::Folder(folder) => folder.read(name),
            Self::Pack(pack) => pack.read(name),
        }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Folder(folder) => disk::write_private(folder, name.as_ref(), bytes),
            Self::Pack(pack) => pack.write(name, bytes),
        }
    }
}

impl Images {
    /// The images in the existing `folder`.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let dir = Dir::open_ambient_dir(folder, ambient_authority())?;
        Ok(Self::of(Store::Folder(Arc::new(dir)), backups(folder)))
    }

    /// The images in `folder`, which is created if necessary.
    ///
    /// # Errors
    /// It cannot be created or opened.
    pub fn create(folder: &Path) -> io::Result<Self> {
        create_private(folder)?;
        Self::open(folder)
    }

    /// The same without outdated ones.
    ///
    /// # Errors
    /// It cannot be created, opened or read.
    pub(super) fn pruned(folder: &Path) -> io::Result<Self> {
        let pruned = Self::create(folder).and_then(|images| {
            if let Some(Store::Folder(folder)) = &images.store {
                prune(folder)?;
            }
            Ok(images)
        });
        pruned.map_err(|error| named(folder, &error))
    }

    /// The images in the file `pack`, which is created if necessary, in a private folder. [`Self::fork`] is the only
    /// other way to them as long as they are open.
    ///
    /// # Errors
    /// It cannot be created or read, or is open already.
    pub(super) fn pack(pack: &Path) -> io::Result<Self> {
        let store = Store::Pack(Arc::new(Pack::open_alone(pack)?));
        Ok(Self::of(store, backups(pack)))
    }

    /// The same store.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self {
            store: self.store.clone(),
            backups: self.backups.clone(),
            in_memory: Mutex::default(),
        }
    }

    fn of(store: Store, backups: PathBuf) -> Self {
        Self {
            store: Some(store),
            backups,
            in_memory: Mutex::default(),
        }
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
        let bytes = match &self.store {
            Some(store) => store.read(name),
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
        let is_new = !self.has(&name, bytes.len() as u64);
        if is_new {
            let store = self.store.as_ref().ok_or(io::ErrorKind::NotFound)?;
            store.write(&name, bytes)?;
        }
        Ok((name, bytes.len() as u64, is_new))
    }

    /// Stores bytes so that they survive a crash of the system. Returns their name, and why they are in memory only.
    pub(super) fn keep(&self, bytes: &[u8]) -> (String, Option<io::Error>) {
        let name = address(bytes);
        if self.has(&name, bytes.len() as u64) {
            return (name, None);
        }
        let stored = match &self.store {
            Some(Store::Folder(folder)) => disk::write_synced(folder, name.as_ref(), bytes).err(),
            Some(Store::Pack(pack)) => pack.write(&name, bytes).err(),
            None => None,
        };
        if self.store.is_none() || stored.is_some() {
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
    pub fn diff(&self, change: &EntryChange, limit: u64) -> Option<FileDiff> {
        let text = |entry: &Entry| match entry {
            Entry::Absent => Some(None),
            entry => Some(Some(self.text(entry, limit)?)),
        };
        let (old_text, new_text) = (text(&change.before)?, text(&change.after)?);
        (old_text != new_text)
            .then(|| FileDiff::new(change.path.clone(), old_text, new_text.unwrap_or_default()))
    }

    /// Copies the images of `changes` into `folder`, the store that undo reads. Blocks.
    ///
    /// # Errors
    /// An image cannot be stored.
    pub fn publish(&self, changes: &ChangeSet, folder: &Path) -> io::Result<()> {
        let to = Self::create(folder)?;
        let entries = changes
            .files
            .iter()
            .chain(&changes.git)
            .flat_map(|change| [&change.before, &change.after]);
        for entry in entries {
            let Entry::File { image, size, .. } = entry else {
                continue;
            };
            if entry.has_image() && !to.has(image, *size) {
                to.store_bytes(&self.read(image)?)?;
            }
        }
        Ok(())
    }

    /// Makes what `entry` is at `path`, in the place of an older file if one is there, with the folders above it.
    pub(super) fn make(&self, dir: &Dir, path: &Path, entry: &Entry) -> io::Result<()> {
        match (self.make_in_folder(dir, path, entry), path.parent()) {
            (Err(error), Some(parent)) if error.kind() == io::ErrorKind::NotFound => {
                dir.create_dir_all(parent)?;
                self.make_in_folder(dir, path, entry)
            }
            (made, _) => made,
        }
    }

    fn make_in_folder(&self, dir: &Dir, path: &Path, entry: &Entry) -> io::Result<()> {
        match entry {
            Entry::Absent => Ok(()),
            Entry::Special => Err(io::Error::other(
                "it was not a regular file, or could not be copied, such as on a full disk",
            )),
            Entry::Folder { mode } => {
                dir.create_dir(path)?;
                mode::set(dir, path, *mode)
            }
            Entry::File { image, mode, .. } => {
                disk::copy_with_mode(dir, path, &mut &*self.read(image)?, *mode)
            }
            #[cfg(unix)]
            Entry::Link { target } => disk::link(dir, path, target),
            #[cfg(not(unix))]
            Entry::Link { target } => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!("it was a link to {}", target.display()),
            )),
        }
    }

    fn has(&self, name: &str, size: u64) -> bool {
        let is_stored = |store: &Store| store.has(name, size);
        self.store.as_ref().is_some_and(is_stored) || lock(&self.in_memory).contains_key(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::time::Duration;

    #[test]
    fn what_is_stored_again_is_kept_as_long_as_what_is_new() {
        let folder = tempfile::tempdir().unwrap();
        let looked = Images::pack(&folder.path().join("pack")).unwrap();
        let store = folder.path().join("store");
        let images = Images::create(&store).unwrap();
        let (name, size, _) = looked.store_bytes(b"before").unwrap();
        let file = |image| Entry::File {
            image,
            size,
            mode: 0o600,
        };
        let change = EntryChange::new("/a".into(), file(name.clone()), Entry::Absent);
        let changes = ChangeSet {
            files: vec![change],
            git: Vec::new(),
        };
        let again: [&dyn Fn(); 2] = [&|| looked.publish(&changes, &store).unwrap(), &|| {
            assert!(images.keep(b"before").1.is_none());
        }];
        looked.publish(&changes, &store).unwrap();
        let stored = File::options().write(true).open(store.join(&name)).unwrap();
        for store_again in again {
            stored.set_modified(SystemTime::UNIX_EPOCH).unwrap();
            store_again();
            let age = stored.metadata().unwrap().modified().unwrap().elapsed();
            assert!(age.is_ok_and(|age| age < Duration::from_hours(1)));
        }
        // A crash of the system can leave any part of it.
        for store_again in again {
            File::create(store.join(&name)).unwrap();
            store_again();
            assert_eq!(images.read(&name).unwrap(), b"before");
        }
    }
}
