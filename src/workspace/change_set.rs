//! What a command did to the files of a workspace: each path with what stood there before and after.
//!
//! Contents are not held here: an [`Entry::File`] names its bytes by their SHA-256, and both images of every changed file
//! are in the state folder's store of images, under that name, before anybody gets to see the change set.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The changes of one command. An undo takes back all of `git` or none of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeSet {
    /// Files, folders and links of the workspace, sorted by path: a folder comes before what is in it.
    pub files: Vec<EntryChange>,
    /// What git itself keeps: HEAD, refs, index, and the state of a merge or rebase; never objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub git: Vec<EntryChange>,
}

/// One path that a command created, changed or deleted. A move is a deletion and a creation with the same image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryChange {
    /// Absolute, below a root without symlinks.
    #[serde(with = "any_path")]
    pub path: PathBuf,
    /// What was there.
    pub before: Entry,
    /// What is there now.
    pub after: Entry,
}

impl EntryChange {
    /// This change and the one after it as one; `None`: together they changed nothing.
    #[must_use]
    pub fn then(self, next: Self) -> Option<Self> {
        (self.before != next.after).then_some(Self { after: next.after, ..self })
    }
}

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Entry {
    /// Nothing.
    Absent,
    /// A regular file.
    File {
        /// The SHA-256 of its bytes, in hexadecimal: the name of its image in the store.
        image: String,
        /// Its size in bytes.
        size: u64,
        /// Its permission bits.
        mode: u32,
    },
    /// A symbolic link.
    Link {
        /// What it holds.
        #[serde(with = "any_path")]
        target: PathBuf,
    },
    /// A folder; what is in it has changes of its own.
    Folder {
        /// Its permission bits.
        mode: u32,
    },
    /// A pipe, socket or device, which no undo makes again.
    Special,
}

impl ChangeSet {
    /// These changes and the ones after them as one.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        Self { files: joined(self.files, next.files), git: joined(self.git, next.git) }
    }

    /// Whether nothing changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.git.is_empty()
    }
}

/// Both lists as one, sorted by path, in which the changes of a path are one.
fn joined(earlier: Vec<EntryChange>, later: Vec<EntryChange>) -> Vec<EntryChange> {
    let mut by_path: BTreeMap<PathBuf, EntryChange> =
        earlier.into_iter().map(|change| (change.path.clone(), change)).collect();
    for change in later {
        let joined = match by_path.remove(&change.path) {
            Some(earlier) => earlier.then(change),
            None => Some(change),
        };
        by_path.extend(joined.map(|change| (change.path.clone(), change)));
    }
    by_path.into_values().collect()
}

/// Paths as JSON, whatever their bytes: a string where they are UTF-8, else the list of them.
mod any_path {
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize as _, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum AnyPath {
        Text(PathBuf),
        Bytes(Vec<u8>),
    }

    pub(super) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        match path.to_str() {
            Some(text) => text.serialize(serializer),
            None => path.as_os_str().as_encoded_bytes().serialize(serializer),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        match AnyPath::deserialize(deserializer)? {
            AnyPath::Text(path) => Ok(path),
            AnyPath::Bytes(bytes) => of_bytes(bytes).ok_or_else(|| serde::de::Error::custom("no path of this system")),
        }
    }

    #[cfg(unix)]
    #[expect(clippy::unnecessary_wraps, reason = "not every system takes any bytes")]
    fn of_bytes(bytes: Vec<u8>) -> Option<PathBuf> {
        use std::os::unix::ffi::OsStringExt as _;
        Some(std::ffi::OsString::from_vec(bytes).into())
    }

    #[cfg(not(unix))]
    fn of_bytes(bytes: Vec<u8>) -> Option<PathBuf> {
        Some(String::from_utf8(bytes).ok()?.into())
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_not_utf8_survives_json() {
        use std::os::unix::ffi::OsStringExt as _;
        let path = PathBuf::from(std::ffi::OsString::from_vec(b"/w/\xff".to_vec()));
        let file = Entry::File { image: "00".to_owned(), size: 1, mode: 0o644 };
        let changes = ChangeSet {
            files: vec![EntryChange { path: path.clone(), before: Entry::Link { target: path }, after: file }],
            git: Vec::new(),
        };
        let json = serde_json::to_string(&changes).unwrap();
        assert_eq!(serde_json::from_str::<ChangeSet>(&json).unwrap(), changes);
    }
}
