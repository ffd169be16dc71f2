//! Copies of files, each named by the SHA-256 of its bytes.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use crate::changes::change_set::{ChangeSet, Entry};
use crate::workspace::disk;
use crate::workspace::state::address;

/// A folder of images.
#[derive(Debug)]
pub(super) struct Images(Dir);

impl Images {
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        Ok(Self(Dir::open_ambient_dir(folder, ambient_authority())?))
    }

    /// The same folder.
    pub(super) fn fork(&self) -> io::Result<Self> {
        Ok(Self(self.0.try_clone()?))
    }

    /// The bytes of an image.
    pub(super) fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        self.0.read(name)
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
        let is_new = !has(&self.0, &name);
        if is_new {
            disk::write_private(&self.0, name.as_ref(), bytes)?;
        }
        Ok((name, bytes.len() as u64, is_new))
    }

    /// Copies the images of `changes` into `folder`, too.
    pub(super) fn publish(&self, changes: &ChangeSet, folder: &Path) -> io::Result<()> {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
        let to = Dir::open_ambient_dir(folder, ambient_authority())?;
        let entries = changes
            .files
            .iter()
            .chain(&changes.git)
            .flat_map(|change| [&change.before, &change.after]);
        for entry in entries {
            let Entry::File { image, .. } = entry else {
                continue;
            };
            if !has(&to, image) && self.0.hard_link(image, &to, image).is_err() {
                disk::write_private(&to, image.as_ref(), &self.0.read(image)?)?;
            }
        }
        Ok(())
    }
}

fn has(folder: &Dir, image: &str) -> bool {
    folder.symlink_metadata(image).is_ok()
}
