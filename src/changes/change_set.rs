//! The changes of a command in a workspace: each path with its state before and after.
//!
//! File contents are not stored here: an [`Entry::File`] refers to its bytes by their SHA-256. Both images of every
//! changed file are in the image store of the state directory before anyone sees the change set.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cap_std::fs::{Dir, Metadata};
use serde::{Deserialize, Serialize};

use super::backup::is_backup;
use crate::domain::any_path;
use crate::workspace::mode;

/// The prefix of what replaces the image of a file that is not read.
const UNREAD: &str = "large:";

/// The changes of one command. An undo reverts all of `git` or none of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeSet {
    /// Files, folders and links of the workspace, sorted by path, so that a folder precedes its contents.
    pub files: Vec<EntryChange>,
    /// git's own state: HEAD, refs, index, and a merge or rebase in progress. Of objects, logs and settings, only what was
    /// removed, overwritten, or created without being an object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub git: Vec<EntryChange>,
}

/// One path that a command created, changed or deleted. A move is a deletion and a creation with the same image.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EntryChange {
    /// Absolute, below a root, without symlinks.
    #[serde(with = "any_path")]
    pub path: PathBuf,
    /// The state before.
    pub before: Entry,
    /// The state afterwards.
    pub after: Entry,
    /// Whether it is an edit of a text: where the editor has the file open, it is undone there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_edit: bool,
    /// For a removed file: the edit before, which the editor may still show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edit: Option<Box<EntryChange>>,
}

impl EntryChange {
    /// Whether it concerns what git keeps besides its state: undo restores that, and redo does not remove it again.
    pub(super) fn is_of_backup(&self) -> bool {
        [&self.before, &self.after]
            .into_iter()
            .any(Entry::is_in_backup)
    }

    /// A change that is not an edit.
    pub fn new(path: PathBuf, before: Entry, after: Entry) -> Self {
        Self {
            path,
            before,
            after,
            is_edit: false,
            edit: None,
        }
    }

    /// Whether it is a folder, or was one.
    pub fn is_folder(&self) -> bool {
        self.before.is_folder() || self.after.is_folder()
    }

    /// Combines this change with the one that follows it immediately; `None` if they cancel out.
    pub(super) fn then(self, next: Self) -> Option<Self> {
        (self.before != next.after).then_some(Self {
            after: next.after,
            ..self
        })
    }
}

impl Entry {
    /// Whether its bytes are in a store of images: not in a backup of git's objects, and not too large to be copied.
    pub(super) fn has_image(&self) -> bool {
        matches!(self, Self::File { image, .. } if !image.contains(':'))
    }

    /// Whether its bytes are in a backup of git's objects.
    pub(super) fn is_in_backup(&self) -> bool {
        matches!(self, Self::File { image, .. } if is_backup(image))
    }

    /// What was `found` at `path`; of a file, `read` gives the image and the size. Blocks.
    pub(super) fn of(
        dir: &Dir,
        path: &Path,
        found: &Metadata,
        read: impl FnOnce() -> io::Result<(String, u64)>,
    ) -> io::Result<Self> {
        let mode = mode::of(found);
        Ok(if found.is_dir() {
            Self::Folder { mode }
        } else if found.is_symlink() {
            let target = dir.read_link_contents(path)?;
            Self::Link { target }
        } else if found.is_file() {
            let (image, size) = read()?;
            Self::File { image, size, mode }
        } else {
            Self::Special
        })
    }
}

/// What a file too large to be read has instead of an image, to tell whether it changed; and its size.
pub(super) fn unread(found: &Metadata) -> (String, u64) {
    let modified = found
        .modified()
        .ok()
        .map(cap_std::time::SystemTime::into_std);
    let since = modified.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    let since = since.unwrap_or_default().as_nanos();
    (format!("{UNREAD}{}-{since}", found.len()), found.len())
}

/// The state of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Entry {
    /// Nothing exists there.
    Absent,
    /// A regular file.
    File {
        /// The SHA-256 of its bytes in hexadecimal, which is the name of its image in the store.
        image: String,
        /// Its size in bytes.
        size: u64,
        /// Its permission bits.
        mode: u32,
    },
    /// A symbolic link.
    Link {
        /// Its target.
        #[serde(with = "any_path")]
        target: PathBuf,
    },
    /// A folder; its contents have separate changes.
    Folder {
        /// Its permission bits.
        mode: u32,
    },
    /// A pipe, socket or device, which undo does not restore.
    Special,
}

impl Entry {
    /// Whether it is a regular file.
    pub fn is_file(&self) -> bool {
        matches!(self, Self::File { .. })
    }

    /// Whether it is a folder.
    pub fn is_folder(&self) -> bool {
        matches!(self, Self::Folder { .. })
    }

    /// The size of a file in bytes; 0 for anything else.
    pub fn size(&self) -> u64 {
        match self {
            Self::File { size, .. } => *size,
            _ => 0,
        }
    }
}

impl ChangeSet {
    /// Adds changes of other paths.
    pub fn extend(&mut self, more: Self) {
        self.files.extend(more.files);
        self.git.extend(more.git);
    }

    /// Leaves only what is `meant`.
    pub fn retain(&mut self, mut meant: impl FnMut(&EntryChange) -> bool) {
        self.files.retain(&mut meant);
        self.git.retain(&mut meant);
    }

    /// Moves the changes of a renamed file, or of the files in a renamed folder, to the new path, unless that path has
    /// changes already. `is_there` gives the entry that tells whether the file existed. Returns whether a change moved.
    pub fn follow(&mut self, from: &Path, to: &Path, is_there: fn(&EntryChange) -> &Entry) -> bool {
        let taken: HashSet<PathBuf> = self.files.iter().map(|one| one.path.clone()).collect();
        let mut followed = false;
        for change in &mut self.files {
            let Ok(below) = change.path.strip_prefix(from) else {
                continue;
            };
            let path: PathBuf = to.components().chain(below.components()).collect();
            let is_other = change.path == from && *is_there(change) == Entry::Absent;
            if is_other || taken.contains(&path) {
                continue;
            }
            if let Some(edit) = &mut change.edit {
                edit.path.clone_from(&path);
            }
            change.path = path;
            followed = true;
        }
        followed
    }

    /// Leaves out the paths of `other`.
    pub fn subtract(&mut self, other: &Self) {
        let changes = other.files.iter().chain(&other.git);
        let paths: HashSet<&Path> = changes.map(|change| &*change.path).collect();
        self.retain(|change| !paths.contains(&*change.path));
    }

    /// The change of a file, with the folders that were made for it alone, or removed with it; git's state goes back as
    /// a whole.
    #[must_use]
    pub fn of_file(&self, path: &Path) -> Self {
        let comes_with_it = |folder: &EntryChange| {
            let is_around = |other: &Path| other != folder.path && other.starts_with(&folder.path);
            let is_for_others = || {
                let mut others = self.files.iter();
                others.any(|other| is_around(&other.path) && !path.starts_with(&other.path))
            };
            folder.is_folder()
                && is_around(path)
                && (folder.after == Entry::Absent
                    || folder.before == Entry::Absent && !is_for_others())
        };
        let files = self
            .files
            .iter()
            .filter(|change| change.path == path || comes_with_it(change));
        Self {
            files: files.cloned().collect(),
            git: if self.git.iter().any(|change| change.path == path) {
                self.git.clone()
            } else {
                Vec::new()
            },
        }
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.git.is_empty()
    }
}

/// The changes of both lists in the order in which their paths were changed first, with one change per path. Blocks.
pub(super) fn joined(
    earlier: Vec<EntryChange>,
    later: Vec<EntryChange>,
    mut then: impl FnMut(EntryChange, EntryChange) -> Option<EntryChange>,
) -> Vec<EntryChange> {
    let mut by_path = HashMap::<PathBuf, usize>::new();
    let mut changes: Vec<Option<EntryChange>> = Vec::with_capacity(earlier.len() + later.len());
    for change in earlier.into_iter().chain(later) {
        match by_path.get(&change.path).copied() {
            None => {
                by_path.insert(change.path.clone(), changes.len());
                changes.push(Some(change));
            }
            Some(index) => {
                let slot = &mut changes[index];
                *slot = match slot.take() {
                    Some(earlier) => then(earlier, change),
                    None => Some(change),
                };
            }
        }
    }
    changes.into_iter().flatten().collect()
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn non_utf8_names_survive_json() {
        use std::os::unix::ffi::OsStringExt as _;
        let path = PathBuf::from(std::ffi::OsString::from_vec(b"/w/\xff".to_vec()));
        let file = Entry::File {
            image: "00".to_owned(),
            size: 1,
            mode: 0o644,
        };
        let changes = ChangeSet {
            files: vec![EntryChange::new(
                path.clone(),
                Entry::Link { target: path },
                file,
            )],
            git: Vec::new(),
        };
        let json = serde_json::to_string(&changes).unwrap();
        assert_eq!(serde_json::from_str::<ChangeSet>(&json).unwrap(), changes);
    }
}
