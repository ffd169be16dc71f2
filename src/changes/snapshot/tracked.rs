//! The files that git tracks, by its index: undo covers them also in git-ignored folders.

use std::collections::HashMap;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

use crate::changes::guard::{git_folder, worktree};
use crate::workspace::Root;

/// A larger index, in bytes, is not read.
const LIMIT: u64 = 256 << 20;
/// The bytes before the entries.
const HEAD: usize = 12;
/// The bytes of an entry before its object's name: times, device, inode, mode, owner and size.
const FIXED: usize = 40;
/// Where in them the mode is.
const MODE: std::ops::Range<usize> = 24..28;
/// The lengths of an object's name: SHA-1, SHA-256.
const HASHES: [usize; 2] = [20, 32];
/// The flag of an entry that has two more bytes of flags.
const EXTENDED: u16 = 0x4000;

/// What a repository tracks: as of this look and of the one before.
#[derive(Debug, Clone)]
pub(super) struct Tracked {
    /// The folder of the repository, relative to its root.
    pub folder: Arc<Path>,
    pub indexes: [Arc<Index>; 2],
}

impl Tracked {
    /// Whether git tracks the file at `path`, relative to the root, or one in the folder there.
    pub fn has(&self, path: &Path, is_folder: bool) -> bool {
        let Ok(path) = path.strip_prefix(&self.folder) else {
            return false;
        };
        self.indexes.iter().any(|index| {
            if is_folder {
                index.lists_below(path)
            } else {
                index.lists(path)
            }
        })
    }
}

/// The names in an index, sorted by bytes as git sorts them.
#[derive(Debug, Default)]
pub(super) struct Index(Vec<Box<[u8]>>);

impl Index {
    /// Reads the index of the repository in a `folder` of the root. One that is not understood lists nothing.
    pub fn read(root: &Root, folder: &Path) -> io::Result<Self> {
        if folder.as_os_str().is_empty() {
            return match worktree(root) {
                Some(own) => Self::read_in(&Root::open(&own)?, Path::new("")),
                None => Self::read_in(root, Path::new(".git")),
            };
        }
        if root.dir().symlink_metadata(folder.join(".git"))?.is_dir() {
            return Self::read_in(root, &folder.join(".git"));
        }
        // Submodules and worktrees of the root's repository.
        let own =
            git_folder(&Root::open(&root.real().join(folder))?).ok_or(io::ErrorKind::NotFound)?;
        Self::read_in(
            root,
            own.strip_prefix(root.real())
                .map_err(|_elsewhere| io::ErrorKind::NotFound)?,
        )
    }

    fn read_in(root: &Root, folder: &Path) -> io::Result<Self> {
        let read = |name: &str| {
            let mut bytes = Vec::new();
            root.open_file(&folder.join(name))?
                .take(LIMIT)
                .read_to_end(&mut bytes)?;
            io::Result::Ok(Self::parse(&bytes).unwrap_or_default())
        };
        let (mut index, shared) = read("index")?;
        if let Some(shared) = shared {
            index.0.append(&mut read(&shared)?.0.0);
            index.0.sort_unstable();
        }
        Ok(index)
    }

    /// The index, and the name of the file with the rest of it if it is split.
    fn parse(bytes: &[u8]) -> Option<(Self, Option<String>)> {
        HASHES
            .iter()
            .find_map(|hash| Self::parse_with(bytes, *hash, &mut |_| ()))
    }

    /// Also passes the bytes of each entry on.
    fn parse_with(
        bytes: &[u8],
        hash: usize,
        pass: &mut dyn FnMut(&[u8]),
    ) -> Option<(Self, Option<String>)> {
        let (head, mut rest) = bytes.split_at_checked(HEAD)?;
        let (version, count) = (number(head.get(4..8)?)?, number(head.get(8..12)?)?);
        if !head.starts_with(b"DIRC") || !(2..=4).contains(&version) {
            return None;
        }
        let mut index = Self::default();
        for _ in 0..count {
            let after = index.entry(rest, version, FIXED + hash)?;
            pass(rest.get(..rest.len() - after.len())?);
            rest = after;
        }
        // Extensions, and at the end the hash of all of it.
        let mut shared = None;
        while rest.len() > hash {
            let (head, after) = rest.split_at_checked(8)?;
            let (data, after) =
                after.split_at_checked(usize::try_from(number(head.get(4..)?)?).ok()?)?;
            if head.starts_with(b"link") {
                shared = Some(data.get(..hash)?).filter(|name| name.iter().any(|byte| *byte != 0));
            }
            rest = after;
        }
        let hex = |name: &[u8]| {
            name.iter().fold("sharedindex.".to_owned(), |hex, byte| {
                format!("{hex}{byte:02x}")
            })
        };
        (rest.len() == hash).then(|| (index, shared.map(hex)))
    }

    /// Adds the first entry of `bytes`; returns the others.
    fn entry<'a>(&mut self, bytes: &'a [u8], version: u32, fixed: usize) -> Option<&'a [u8]> {
        let flags = u16::from_be_bytes(bytes.get(fixed..fixed + 2)?.try_into().ok()?);
        let begin = fixed
            + if version > 2 && flags & EXTENDED != 0 {
                4
            } else {
                2
            };
        let (mut rest, mut name) = (bytes.get(begin..)?, Vec::new());
        if version == 4 {
            // The number of bytes dropped from the end of the previous name.
            let (dropped, after) = varint(rest)?;
            rest = after;
            let last = self.0.last().map_or(&[][..], |last| last);
            name.extend(last.get(..last.len().checked_sub(dropped)?)?);
        }
        let length = memchr::memchr(0, rest)?;
        name.extend_from_slice(rest.get(..length)?);
        self.0.push(name.into());
        if version == 4 {
            return rest.get(length + 1..);
        }
        // Up to a multiple of eight, there is at least one zero after the name.
        bytes.get((begin + length + 8) & !7..)
    }

    /// Whether it lists the file at `path`, relative to the repository's root.
    pub fn lists(&self, path: &Path) -> bool {
        let path = as_in_git(path);
        self.first(&path).is_some_and(|first| *first == *path)
    }

    /// Whether it lists a file in the folder at `path`.
    pub fn lists_below(&self, path: &Path) -> bool {
        let mut path = as_in_git(path);
        path.push(b'/');
        self.first(&path)
            .is_some_and(|first| first.starts_with(&path))
    }

    /// The first name that is not before `name`.
    fn first(&self, name: &[u8]) -> Option<&[u8]> {
        let first = self.0.partition_point(|it| **it < *name);
        self.0.get(first).map(AsRef::as_ref)
    }
}

/// The names of the blobs that an index lists, by path as git writes it; `None` if it is not all in this file.
pub(super) fn blobs(bytes: &[u8]) -> Option<HashMap<Vec<u8>, Vec<u8>>> {
    HASHES.iter().find_map(|hash| {
        let mut names = Vec::new();
        let mut add =
            |entry: &[u8]| names.extend(entry.get(FIXED..FIXED + hash).map(<[u8]>::to_vec));
        let (index, _) =
            Index::parse_with(bytes, *hash, &mut add).filter(|(_, shared)| shared.is_none())?;
        let paths = index.0.into_iter().map(Vec::from);
        Some(paths.zip(names).collect())
    })
}

/// Whether two indexes differ at most in what git knows of the files' times: it writes that anew when somebody only asks for
/// the status.
pub(crate) fn is_same_index(one: &[u8], other: &[u8]) -> bool {
    let listed = |bytes: &[u8]| {
        HASHES.iter().find_map(|hash| {
            let (mut listed, mut end): (Vec<u8>, _) = (Vec::with_capacity(bytes.len()), HEAD);
            let mut add = |entry: &[u8]| {
                end += entry.len();
                let kept = entry.get(MODE).into_iter().chain(entry.get(FIXED..));
                kept.for_each(|part| listed.extend(part));
            };
            Index::parse_with(bytes, *hash, &mut add)?;
            // A commit changes what is after the entries.
            listed.extend(bytes.get(end..bytes.len().checked_sub(*hash)?)?);
            Some(listed)
        })
    };
    listed(one).is_some_and(|one| listed(other) == Some(one))
}

/// A path as an index has it.
pub(super) fn as_in_git(path: &Path) -> Vec<u8> {
    let bytes = path.as_os_str().as_encoded_bytes();
    if cfg!(windows) {
        bytes
            .iter()
            .map(|byte| if *byte == b'\\' { b'/' } else { *byte })
            .collect()
    } else {
        bytes.to_vec()
    }
}

fn number(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

/// A number in git's encoding of offsets, and what is after it.
fn varint(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0_usize;
    for (index, byte) in bytes.iter().enumerate().take(9) {
        value = (value << 7) | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, bytes.get(index + 1..)?));
        }
        value += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_indexes_list_nothing() {
        for bytes in [
            &b""[..],
            b"DIRC",
            b"DIRC\0\0\0\x02\xff\xff\xff\xff",
            b"DIRC\0\0\0\x09\0\0\0\0",
        ] {
            assert!(Index::parse(bytes).is_none(), "{bytes:?}");
        }
        let long = [
            &b"DIRC\0\0\0\x04\0\0\0\x01"[..],
            &[0; 62],
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        ]
        .concat();
        assert!(Index::parse(&long).is_none());
    }
}
