//! The files that git tracks, by its index: undo covers them also in git-ignored folders.

use std::io::{self, Read as _};
use std::path::Path;

use crate::workspace::Root;

/// A larger index, in bytes, is not read.
const LIMIT: u64 = 256 << 20;
/// The bytes of an entry before its flags: times, device, inode, mode, owner, size and the object's name (SHA-1).
const FIXED: usize = 60;
/// The flag of an entry that has two more bytes of flags.
const EXTENDED: u16 = 0x4000;

/// The names in an index, sorted by bytes as git sorts them.
#[derive(Debug, Default)]
pub(super) struct Index {
    names: Vec<u8>,
    /// Where each name ends.
    ends: Vec<usize>,
}

impl Index {
    /// Reads the index of the root's repository. One that is not understood (with SHA-256, or split) lists nothing.
    pub(super) fn read(root: &Root) -> io::Result<Self> {
        let mut bytes = Vec::new();
        root.open_file(Path::new(".git/index"))?.take(LIMIT).read_to_end(&mut bytes)?;
        Ok(Self::parse(&bytes).unwrap_or_default())
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (head, mut rest) = bytes.split_at_checked(12)?;
        let (version, count) = (number(head.get(4..8)?)?, number(head.get(8..12)?)?);
        if !head.starts_with(b"DIRC") || !(2..=4).contains(&version) {
            return None;
        }
        let mut index = Self::default();
        for _ in 0..count {
            rest = index.entry(rest, version)?;
        }
        Some(index)
    }

    /// Adds the first entry of `bytes`; returns the others.
    fn entry<'a>(&mut self, bytes: &'a [u8], version: u32) -> Option<&'a [u8]> {
        let flags = u16::from_be_bytes(bytes.get(FIXED..FIXED + 2)?.try_into().ok()?);
        let begin = FIXED + if version > 2 && flags & EXTENDED != 0 { 4 } else { 2 };
        let mut name = bytes.get(begin..)?;
        if version == 4 {
            // The number of bytes dropped from the end of the previous name.
            let (dropped, after) = varint(name)?;
            name = after;
            let last = self.ends.len().checked_sub(1).map_or(&[][..], |last| self.name(last));
            let shared = last.get(..last.len().checked_sub(dropped)?)?.to_vec();
            self.names.extend(shared);
        }
        let length = memchr::memchr(0, name)?;
        self.names.extend_from_slice(name.get(..length)?);
        self.ends.push(self.names.len());
        if version == 4 {
            return name.get(length + 1..);
        }
        // Up to a multiple of eight, there is at least one zero after the name.
        bytes.get((begin + length + 8) & !7..)
    }

    fn name(&self, index: usize) -> &[u8] {
        let begin = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(index).and_then(|end| self.names.get(begin..*end)).unwrap_or_default()
    }

    /// Whether it lists the file at `path`, relative to the repository's root.
    pub(super) fn lists(&self, path: &Path) -> bool {
        let path = as_in_git(path);
        self.name(self.first(&path)) == path && !path.is_empty()
    }

    /// Whether it lists a file in the folder at `path`.
    pub(super) fn lists_below(&self, path: &Path) -> bool {
        let mut path = as_in_git(path);
        path.push(b'/');
        self.name(self.first(&path)).starts_with(&path)
    }

    /// The first name that is not before `name`.
    fn first(&self, name: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.ends.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.name(middle) < name { low = middle + 1 } else { high = middle }
        }
        low
    }
}

fn as_in_git(path: &Path) -> Vec<u8> {
    let bytes = path.as_os_str().as_encoded_bytes();
    if cfg!(windows) {
        bytes.iter().map(|byte| if *byte == b'\\' { b'/' } else { *byte }).collect()
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
        for bytes in [&b""[..], b"DIRC", b"DIRC\0\0\0\x02\xff\xff\xff\xff", b"DIRC\0\0\0\x09\0\0\0\0"] {
            assert!(Index::parse(bytes).is_none(), "{bytes:?}");
        }
        let long = [&b"DIRC\0\0\0\x04\0\0\0\x01"[..], &[0; 62], b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"].concat();
        assert!(Index::parse(&long).is_none());
    }
}
