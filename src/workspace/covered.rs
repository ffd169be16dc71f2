//! A file on the disk that has unsaved text in the editor, while a command runs.
//!
//! The command may replace, move or remove the file, or write to it where it does not see the unsaved text in its place.
//! What was there is restored once the editor has the new text: on the disk, an unsaved file stays as it was saved.

use std::io::{self, Read as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use cap_fs_ext::MetadataExt as _;
use cap_std::fs::{File, Metadata};

use super::path::resolve_path;
use super::written::Written;
use super::{FileError, Root, Workspace, WorkspacePath, content, disk};

/// A file as it was when the command began.
#[derive(Debug)]
pub struct Covered {
    path: WorkspacePath,
    roots: Vec<Arc<Root>>,
    /// Reads the file whatever happens to its name.
    file: File,
    /// Its content before the command, if the command can write to it.
    before: Option<Vec<u8>>,
    modified: Option<SystemTime>,
    /// What the person saves meanwhile.
    written: Written,
}

/// What a command did to the file, other than writing to the text that it saw there.
#[derive(Debug)]
pub enum Fate {
    /// Nothing.
    Same,
    /// Another file took its place.
    Replaced(Replaced),
    /// It has another name.
    Moved(WorkspacePath),
    /// It was removed.
    Removed,
}

/// A file that a command replaced.
#[derive(Debug)]
pub struct Replaced {
    /// What the command put there.
    pub bytes: Vec<u8>,
    /// The text the person saved in the meantime, which the file should get.
    saved: Option<Vec<u8>>,
}

impl Covered {
    /// The file at `path`, and its content `before` a command that can write to it. Blocks.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn new(
        workspace: &Workspace,
        path: &WorkspacePath,
        before: Option<Vec<u8>>,
    ) -> Result<Self, FileError> {
        let written = workspace.documents().watch_writes();
        let file = disk::open(path)?;
        let found = file.metadata().and_then(|found| found.modified());
        Ok(Self {
            path: path.clone(),
            roots: workspace.roots().to_vec(),
            file,
            before,
            modified: found.ok().map(cap_std::time::SystemTime::into_std),
            written,
        })
    }

    /// What became of it. Blocks.
    pub fn fate(&self) -> Fate {
        let found = self
            .path
            .parent()
            .and_then(|(dir, name)| dir.symlink_metadata(name));
        match found {
            Ok(found) if self.is(&found) && self.before.is_none() => Fate::Same,
            Ok(found) if found.is_file() => {
                let now = disk::read_now(&self.path);
                now.map_or(Fate::Removed, |now| self.replaced(now))
            }
            _ => self.moved().map_or(Fate::Removed, Fate::Moved),
        }
    }

    fn replaced(&self, bytes: Vec<u8>) -> Fate {
        let saved = self
            .written
            .take()
            .remove(&self.path.real())
            .flatten()
            .and_then(|text| {
                let (_, stored) = content::decode(self.bytes().ok()?)?;
                Some(stored.encode(&text).ok()?.into_owned())
            });
        // Many editors replace a file to save it.
        if saved.as_ref().or(self.before.as_ref()) == Some(&bytes) {
            Fate::Same
        } else {
            Fate::Replaced(Replaced { bytes, saved })
        }
    }

    /// Restores the content and the modification time of the file that was replaced. Blocks.
    ///
    /// # Errors
    /// It cannot be written, or was changed again; it is left as it is then.
    pub fn restore(&self, replaced: &Replaced) -> io::Result<()> {
        let before = replaced.saved.clone().map_or_else(|| self.bytes(), Ok)?;
        if !disk::replace_now(&self.path, Some(&replaced.bytes), &before, None)? {
            return Err(io::Error::other("it was changed again"));
        }
        if let Some(modified) = self.modified.filter(|_| replaced.saved.is_none()) {
            let (dir, name) = self.path.parent()?;
            super::path::open_here(&dir, name)?
                .into_std()
                .set_modified(modified)?;
        }
        Ok(())
    }

    /// Writes what the command saw in the file to the place it moved the file to. Blocks.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn follow(&self, to: &WorkspacePath, bytes: &[u8]) -> io::Result<()> {
        if !to.is_protected() && !disk::replace_now(to, Some(&self.bytes()?), bytes, None)? {
            return Err(io::Error::other("it was changed again"));
        }
        Ok(())
    }

    /// Sets the permissions of the file, in which nothing else was changed. Blocks.
    ///
    /// # Errors
    /// The system refuses.
    pub fn set_permissions(&self, permissions: std::fs::Permissions) -> io::Result<()> {
        self.file
            .try_clone()?
            .into_std()
            .set_permissions(permissions)
    }

    fn bytes(&self) -> io::Result<Vec<u8>> {
        if let Some(before) = &self.before {
            return Ok(before.clone());
        }
        let mut bytes = Vec::new();
        let mut file = self.file.try_clone()?;
        io::Seek::rewind(&mut file)?;
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn is(&self, other: &Metadata) -> bool {
        self.file
            .metadata()
            .is_ok_and(|own| (own.dev(), own.ino()) == (other.dev(), other.ino()))
    }

    /// Where in the workspace the file is now.
    fn moved(&self) -> Option<WorkspacePath> {
        let path = resolve_path(&self.roots, &name_now(&self.file)?).ok()?;
        let (dir, name) = path.parent().ok()?;
        dir.symlink_metadata(name)
            .is_ok_and(|found| self.is(&found))
            .then_some(path)
    }
}

/// The name of an open file.
#[cfg(target_os = "linux")]
fn name_now(file: &File) -> Option<PathBuf> {
    use std::os::fd::AsRawFd as _;
    use std::os::unix::ffi::OsStringExt as _;
    let link =
        rustix::fs::readlink(format!("/proc/self/fd/{}", file.as_raw_fd()), Vec::new()).ok()?;
    Some(std::ffi::OsString::from_vec(link.into_bytes()).into())
}

/// Commands see unsaved text on Linux only.
#[cfg(not(target_os = "linux"))]
fn name_now(_file: &File) -> Option<PathBuf> {
    None
}
