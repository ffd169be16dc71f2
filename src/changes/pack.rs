//! Many images in one file, one after the other: creating a file for each would take most of the time of a look at
//! unknown files, and removing all of them as much again.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Read, Seek as _, SeekFrom, Take, Write as _};
use std::path::Path;
use std::sync::Mutex;

use crate::domain::lock;

/// The header before the bytes of an image, in bytes: three 128-bit numbers, which are both halves of its hash and its
/// length.
const HEADER: u64 = 3 * 16;

/// A file of images, which grows.
#[derive(Debug)]
pub(super) struct Pack(Mutex<Contents>);

#[derive(Debug)]
struct Contents {
    file: File,
    end: u64,
    images: HashMap<Address, Place>,
}

/// The hash of an image, in half the memory of its name.
type Address = (u128, u128);

/// Where the bytes of an image are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub start: u64,
    pub length: u64,
}

impl Pack {
    /// Opens the file `path`, creating it if necessary. Nobody else can open it like this at the same time, because a writer
    /// has to know where the file ends.
    ///
    /// # Errors
    /// It cannot be opened, or somebody has.
    pub fn open_alone(path: &Path) -> io::Result<Self> {
        let file = writable(path)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => io::Error::other(
                "another process has the stored copies open; end it, then try again",
            ),
            TryLockError::Error(error) => error,
        })?;
        Self::cut(file)
    }

    /// The same, if the caller ensures that nobody else adds to the file. Others can read it on every system.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::cut(writable(path)?)
    }

    /// Cuts off what was written in part.
    fn cut(file: File) -> io::Result<Self> {
        let pack = Self::of(file)?;
        let contents = lock(&pack.0);
        contents.file.set_len(contents.end)?;
        drop(contents);
        Ok(pack)
    }

    /// The images in `file`, which another process may add to.
    pub fn of(file: File) -> io::Result<Self> {
        let (images, end) = listed(&file)?;
        Ok(Self(Mutex::new(Contents { file, end, images })))
    }

    pub fn has(&self, name: &str) -> bool {
        self.place(name).is_some()
    }

    pub fn place(&self, name: &str) -> Option<Place> {
        lock(&self.0).images.get(&address(name)?).copied()
    }

    /// The names of all images.
    pub fn names(&self) -> Vec<String> {
        let name = |(first, second): &Address| {
            // Git's usual hash has 40 digits.
            let rest = if *second > u128::from(u32::MAX) {
                HALF
            } else {
                8
            };
            format!("{first:032x}{second:0rest$x}")
        };
        lock(&self.0).images.keys().map(name).collect()
    }

    pub fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let Place { start, length } = self.place(name).ok_or(io::ErrorKind::NotFound)?;
        let mut contents = lock(&self.0);
        contents.file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        (&contents.file).take(length).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let address = address(name).ok_or(io::ErrorKind::InvalidInput)?;
        let contents = &mut *lock(&self.0);
        // Another thread may have read an equal file.
        if contents.images.contains_key(&address) {
            return Ok(());
        }
        contents.append(address, bytes).inspect_err(|_| {
            // A partial image would hide everything after it.
            contents.file.set_len(contents.end).ok();
        })?;
        let (start, length) = (contents.end + HEADER, bytes.len() as u64);
        contents.images.insert(address, Place { start, length });
        contents.end = start + length;
        Ok(())
    }
}

fn writable(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).read(true).append(true).open(path)
}

impl Contents {
    fn append(&mut self, (first, second): Address, bytes: &[u8]) -> io::Result<()> {
        let length = bytes.len() as u128;
        let header = [first, second, length].map(u128::to_be_bytes);
        self.file
            .write_all(&[header.as_flattened(), bytes].concat())
    }
}

/// The bytes of an image in a pack.
///
/// # Errors
/// It is not there, or has another length.
pub(super) fn image_at(mut pack: File, place: Place) -> io::Result<Take<File>> {
    let Place { start, length } = place;
    pack.seek(SeekFrom::Start(
        start.saturating_sub(size_of::<u128>() as u64),
    ))?;
    let (found, size) = (number(&mut pack)?, pack.metadata()?.len());
    if found == u128::from(length) && start.saturating_add(length) <= size {
        Ok(pack.take(length))
    } else {
        Err(io::Error::other("its stored copy is damaged"))
    }
}

fn number(from: &mut impl Read) -> io::Result<u128> {
    let mut bytes = [0; 16];
    from.read_exact(&mut bytes)?;
    Ok(u128::from_be_bytes(bytes))
}

/// The digits of the first half of an address.
const HALF: usize = 32;

/// The address that a name spells in hexadecimal.
fn address(name: &str) -> Option<Address> {
    let (first, second) = name.split_at_checked(HALF)?;
    let half = |digits| u128::from_str_radix(digits, 16).ok();
    Some((half(first)?, half(second)?))
}

/// The images of a file, and where the last whole one ends.
fn listed(file: &File) -> io::Result<(HashMap<Address, Place>, u64)> {
    let (size, mut end) = (file.metadata()?.len(), 0);
    let (mut images, mut file) = (HashMap::new(), BufReader::new(file));
    while end + HEADER <= size {
        let mut number = || number(&mut file);
        let (address, length) = ((number()?, number()?), number()?);
        let start = end + HEADER;
        let Ok(length) = u64::try_from(length) else {
            break;
        };
        let Some(next) = start.checked_add(length).filter(|next| *next <= size) else {
            break;
        };
        images.insert(address, Place { start, length });
        file.seek_relative(length.try_into().map_err(io::Error::other)?)?;
        end = next;
    }
    Ok((images, end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::state;

    #[test]
    fn wherever_a_pack_was_cut_its_whole_images_are_read_and_more_can_follow() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("images");
        let images = ["", "one", "a longer one\n", "one"];
        let stored = |pack: &Pack, text: &str| {
            let read = pack.read(&state::address(text.as_bytes()));
            read.is_ok_and(|bytes| bytes == text.as_bytes())
        };
        let write = |pack: &Pack, text: &str| {
            pack.write(&state::address(text.as_bytes()), text.as_bytes())
                .unwrap();
        };
        let mut ends = Vec::new();
        for text in images {
            write(&Pack::open(&path).unwrap(), text);
            ends.push(path.metadata().unwrap().len());
        }
        assert_eq!(ends[2], ends[3], "an equal image is stored once");
        for cut in (0..=ends[3]).rev() {
            let file = OpenOptions::new().write(true).open(&path).unwrap();
            file.set_len(cut).unwrap();
            let pack = Pack::open(&path).unwrap();
            for (text, end) in images.iter().zip(&ends).take(3) {
                assert_eq!(stored(&pack, text), *end <= cut, "{text:?} of {cut} bytes");
            }
            write(&pack, "more");
            assert!(stored(&Pack::open(&path).unwrap(), "more"));
        }
    }
    /// Who opened it second would add where the first one adds, and the images of both would be damaged.
    #[test]
    fn a_pack_of_images_has_one_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("images");
        let pack = Pack::open_alone(&path).unwrap();
        let refused = Pack::open_alone(&path).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "another process has the stored copies open; end it, then try again"
        );
        drop(pack);
        Pack::open_alone(&path).unwrap();
    }
}
