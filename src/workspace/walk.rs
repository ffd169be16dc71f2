//! Walks a folder of the workspace for listing and searching: in parallel, by capability, with the rules of git and
//! ripgrep.
//!
//! Left out are files named by `.gitignore`, `.ignore`, `.git/info/exclude` and the person's own excludes (also in a
//! folder that is not a repository), and version control folders; hidden files are not.
//!
//! Symlinks are reported, never followed: whatever is renamed meanwhile, nothing outside the root is listed or opened.
//! Ignore files are read up to a limit and only if they are regular files, so that a pipe called `.gitignore` blocks
//! nothing.

mod ignored;
mod queue;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cap_std::fs::{Dir, FileType};
use tokio_util::sync::CancellationToken;

pub(crate) use self::ignored::{Found, Rules, open as open_ignore_file};
pub(crate) use self::queue::Queue;
use super::native::openable;
use super::{Root, Workspace, WorkspacePath, protect};

/// What a walk can meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symlink, whatever its target.
    Symlink,
    /// A pipe, socket or device.
    Special,
}

/// Something the walk found.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    root: &'a Root,
    /// Absolute path with symlinks resolved.
    pub path: &'a Path,
    /// Its path below the start folder; empty if the walk started at a file.
    pub below: &'a Path,
    /// What it is.
    pub kind: Kind,
    /// Whether all files of its folder count as secrets.
    is_folder_secret: bool,
}

impl Entry<'_> {
    /// Whether it probably holds a secret: searching skips it.
    pub fn is_secret(&self) -> bool {
        self.is_folder_secret
            || self
                .path
                .file_name()
                .is_some_and(|name| protect::is_secret(Path::new(name)))
    }

    /// Opens it for reading.
    ///
    /// # Errors
    /// It is gone, no longer a regular file, or cannot be read.
    pub fn open(&self) -> io::Result<File> {
        open_ignore_file(self.root, self.path)
    }
}

impl Workspace {
    /// Passes everything below `start`, at most `depth` folders deep, to visitors, one per thread, made by `visitor`.
    /// Unordered. If `start` is a file, it is the only entry. Ends early when cancelled. Returns
    /// how many folders could not be read. Blocks.
    ///
    /// # Errors
    /// `start` cannot be opened.
    pub fn walk<V: FnMut(&Entry<'_>)>(
        &self,
        start: &WorkspacePath,
        depth: usize,
        cancel: &CancellationToken,
        visitor: impl Fn() -> V + Sync,
    ) -> io::Result<usize> {
        let path = start.real();
        let is_target_root =
            |root: &&Arc<Root>| path.strip_prefix(root.real()) == Ok(start.target());
        let root = self
            .roots()
            .iter()
            .find(is_target_root)
            .ok_or(io::ErrorKind::NotFound)?;
        let metadata = root.dir().metadata(openable(start.target()))?;
        if !metadata.is_dir() {
            let kind = kind(metadata.file_type());
            visitor()(&Entry {
                root,
                path: &path,
                below: Path::new(""),
                kind,
                is_folder_secret: start.is_secret(),
            });
            return Ok(0);
        }
        let dir = root.dir().open_dir(openable(start.target()))?;
        let first = Folder {
            dir: Source::Open(dir),
            rules: Rules::above(root, start.target()),
            is_secret: holds_secrets(start.target()),
            path,
            depth: 0,
        };
        let walk = Walk {
            root,
            start: start.real(),
            depth,
            cancel,
            unreadable: AtomicUsize::new(0),
            queue: Queue::new(vec![first]),
        };
        walk.queue.share_among(|| {
            let (walk, mut visitor) = (&walk, visitor());
            move |folder| {
                walk.read(folder, &mut visitor).unwrap_or_else(|_| {
                    walk.unreadable.fetch_add(1, Ordering::Relaxed);
                    Vec::new()
                })
            }
        });
        Ok(walk.unreadable.into_inner())
    }
}

fn kind(file_type: FileType) -> Kind {
    if file_type.is_file() {
        Kind::File
    } else if file_type.is_dir() {
        Kind::Folder
    } else if file_type.is_symlink() {
        Kind::Symlink
    } else {
        Kind::Special
    }
}

/// Version control folders, which are never searched.
pub(crate) fn is_version_control(name: &OsStr) -> bool {
    [".git", ".hg", ".jj", ".svn"].iter().any(|it| name == *it)
}

/// Whether every file in `folder` counts as a secret. Checked once per folder, because it is slow.
fn holds_secrets(folder: &Path) -> bool {
    protect::is_secret(&folder.join("any"))
}

struct Walk<'a> {
    root: &'a Root,
    /// Absolute path with symlinks resolved.
    start: PathBuf,
    depth: usize,
    cancel: &'a CancellationToken,
    unreadable: AtomicUsize,
    queue: Queue<Folder>,
}

/// A folder to read.
struct Folder {
    dir: Source,
    /// Absolute, symlinks resolved.
    path: PathBuf,
    /// The rules of the folders above it.
    rules: Arc<Rules>,
    is_secret: bool,
    depth: usize,
}

/// How a folder is opened: late, so that few are open at a time.
enum Source {
    Open(Dir),
    Child(Arc<Dir>, OsString),
}

impl Walk<'_> {
    /// Passes a folder's entries to the visitor and returns the folders in it.
    fn read(
        &self,
        folder: Folder,
        visitor: &mut impl FnMut(&Entry<'_>),
    ) -> io::Result<Vec<Folder>> {
        if self.cancel.is_cancelled() {
            return Ok(Vec::new());
        }
        let dir = match folder.dir {
            Source::Open(dir) => dir,
            Source::Child(parent, name) => parent.open_dir(name)?,
        };
        let dir = Arc::new(dir);
        let entries = dir
            .entries()?
            .map(|entry| entry.and_then(|it| Ok((it.file_name(), kind(it.file_type()?)))));
        let entries = entries.collect::<io::Result<Vec<_>>>()?;
        let found = entries
            .iter()
            .fold(Found::default(), |found, (name, _)| found.add(name));
        let rules = Rules::of(
            &folder.path,
            found,
            &|path| open_ignore_file(self.root, path),
            folder.rules,
        );
        let mut folders = Vec::new();
        for (index, (name, kind)) in entries.into_iter().enumerate() {
            if index % 64 == 0 && self.cancel.is_cancelled() {
                return Ok(Vec::new());
            }
            let path = folder.path.join(&name);
            let is_folder = kind == Kind::Folder;
            if is_version_control(&name) || rules.ignores(&path, is_folder) {
                continue;
            }
            let below = path.strip_prefix(&self.start).unwrap_or(&path);
            visitor(&Entry {
                root: self.root,
                path: &path,
                below,
                kind,
                is_folder_secret: folder.is_secret,
            });
            if is_folder && folder.depth + 1 < self.depth {
                let is_secret = folder.is_secret || holds_secrets(Path::new(&name));
                let dir = Source::Child(dir.clone(), name);
                folders.push(Folder {
                    dir,
                    path,
                    rules: rules.clone(),
                    is_secret,
                    depth: folder.depth + 1,
                });
            }
        }
        Ok(folders)
    }
}

#[cfg(test)]
mod tests;
