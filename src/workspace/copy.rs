//! A private copy of a workspace, with the unsaved texts in place of their files, to try changes on.
//!
//! Not copied are version control, which commands may read in the original, and tandem's own files. Git-ignored folders
//! are copied as far as they fit. The copy has the names of the original ([`Root::copied`]).

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata, OpenOptions};
use tokio_util::sync::CancellationToken;

use super::native::openable;
use super::walk::{Queue, is_version_control};
use super::{Documents, NoEditor, Root, Shared, Unsaved, Workspace, mode};
use crate::domain::{is_absent, lock};
use crate::text::Encoding;

/// The most bytes that are copied.
const BYTES: u64 = 2 << 30;
/// The most files, folders and links that are copied.
const ENTRIES: u64 = 200_000;
/// The files of `.git` that say which files are ignored and tracked. Git itself reads the original.
const OF_GIT: [&str; 2] = ["index", "info/exclude"];

/// What is not copied, by absolute path.
#[derive(Debug, Default)]
pub struct LeftOut {
    /// Git-ignored folders and large ignored files, which are copied as far as they fit.
    pub ignored: Vec<PathBuf>,
    /// tandem's own files, which nothing of the copy may see.
    pub hidden: Vec<PathBuf>,
}

impl Workspace {
    /// Copies the workspace into `folder`, which is empty, with `unsaved` texts in place of their files. The copy knows
    /// what the session has read, and has no editor. Blocks.
    ///
    /// # Errors
    /// It is too large, cancelled, or the system refuses.
    pub fn copy_to(
        &self,
        folder: &Path,
        unsaved: &[Unsaved],
        left_out: &LeftOut,
        cancel: &CancellationToken,
    ) -> io::Result<Self> {
        let room = Mutex::new(Room {
            bytes: BYTES,
            entries: ENTRIES,
        });
        let mut roots = Vec::new();
        for (index, root) in self.roots().iter().enumerate() {
            let place = folder.join(index.to_string());
            std::fs::create_dir(&place)?;
            let to = Dir::open_ambient_dir(&place, ambient_authority())?;
            let copying = Copying {
                root,
                to,
                left_out,
                cancel,
                room: &room,
            };
            roots.push(Arc::new(Root::copied(root, place, copying.all()?)?));
        }
        let documents = Documents::new(Encoding::default());
        let editor = Arc::new(NoEditor);
        let copy = Self(Arc::new(Shared {
            roots,
            documents,
            editor,
            seen: self.0.seen.fork(),
        }));
        for unsaved in unsaved {
            let path = copy
                .resolve_path(&unsaved.path.real())
                .map_err(io::Error::other)?;
            match path.make_parent() {
                Ok((dir, name)) => dir.write(name, &unsaved.bytes)?,
                // What was its folder is a file now.
                Err(error) if is_absent(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(copy)
    }

    /// Whether this is a copy, whose commands have to run in it and nowhere else.
    pub fn is_copy(&self) -> bool {
        self.roots().iter().any(|root| root.original().is_some())
    }
}

/// How much more may be copied.
#[derive(Debug, Clone, Copy)]
struct Room {
    bytes: u64,
    entries: u64,
}

impl Room {
    fn take(&mut self, bytes: u64) -> io::Result<()> {
        let (bytes, entries) = (self.bytes.checked_sub(bytes), self.entries.checked_sub(1));
        let (Some(bytes), Some(entries)) = (bytes, entries) else {
            let (most, entries) = (BYTES >> 30, ENTRIES);
            return Err(io::Error::other(format!(
                "it has more than {most} GiB or {entries} files that are not ignored"
            )));
        };
        *self = Self { bytes, entries };
        Ok(())
    }
}

/// The copying of one root.
struct Copying<'a> {
    root: &'a Root,
    to: Dir,
    left_out: &'a LeftOut,
    cancel: &'a CancellationToken,
    room: &'a Mutex<Room>,
}

/// What was not copied.
#[derive(Default)]
struct Rest {
    /// What stays where it is, absolute.
    lent: Vec<PathBuf>,
    /// What was left for later.
    excepted: Vec<PathBuf>,
}

impl Copying<'_> {
    /// What is not ignored has to fit; of the rest, whatever does. Returns what stays where it is, absolute.
    fn all(&self) -> io::Result<Vec<PathBuf>> {
        let Rest {
            mut lent,
            mut excepted,
        } = self.below(Path::new(""), &self.left_out.ignored)?;
        excepted.sort_unstable();
        for path in excepted {
            let found = self.root.dir().symlink_metadata(&path)?;
            if self.fits(&path, &found)? {
                self.one(&path, &found)?;
                if found.is_dir() {
                    lent.extend(self.below(&path, &[])?.lent);
                }
            } else {
                lent.push(self.root.real().join(path));
            }
        }
        Ok(lent)
    }

    /// Copies what is in `folder`, whatever its depth, but not what is in `except`.
    fn below(&self, folder: &Path, except: &[PathBuf]) -> io::Result<Rest> {
        let rest = Mutex::new(Rest::default());
        let except: HashSet<&Path> = except.iter().map(PathBuf::as_path).collect();
        Queue::new(vec![folder.to_owned()])
            .try_share(|folder| self.folder(&folder, &except, &rest))?;
        Ok(rest.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Copies what is in `folder` itself. Returns the folders in it.
    fn folder(
        &self,
        folder: &Path,
        except: &HashSet<&Path>,
        rest: &Mutex<Rest>,
    ) -> io::Result<Vec<PathBuf>> {
        let mut folders = Vec::new();
        for (path, found) in self.entries(folder)? {
            let real = self.root.real().join(&path);
            if found.is_dir() && path.file_name().is_some_and(is_version_control) {
                self.version_control(&path)?;
                lock(rest).lent.push(real);
            } else if except.contains(real.as_path()) {
                lock(rest).excepted.push(path);
            } else if self.one(&path, &found)? && found.is_dir() {
                folders.push(path);
            }
        }
        Ok(folders)
    }

    /// What is in a folder, except hidden files.
    fn entries(&self, folder: &Path) -> io::Result<Vec<(PathBuf, Metadata)>> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        let listed = match self.root.dir().read_dir(openable(folder)) {
            Err(error) if is_out_of_reach(&error) => return Ok(Vec::new()),
            listed => listed?,
        };
        let entry = |entry: io::Result<cap_std::fs::DirEntry>| {
            let entry = entry.ok()?;
            let path = folder.join(entry.file_name());
            let is_hidden = self.left_out.hidden.contains(&self.root.real().join(&path));
            Some((path, entry.metadata().ok()?)).filter(|_| !is_hidden)
        };
        Ok(listed.filter_map(entry).collect())
    }

    /// Copies a file, a link, or a folder without what is in it. Returns `false` for what cannot be copied.
    fn one(&self, path: &Path, found: &Metadata) -> io::Result<bool> {
        let take = |bytes| lock(self.room).take(bytes);
        let done = if found.is_dir() {
            take(0)?;
            self.to
                .create_dir(path)
                .and_then(|()| mode::set(&self.to, path, mode::of(found) | mode::OWNER))
        } else if found.is_symlink() {
            take(0)?;
            link(self.root.dir(), &self.to, path)
        } else if found.is_file() {
            take(found.len())?;
            self.file(path)
        } else {
            return Ok(false);
        };
        match done {
            Err(error) if is_out_of_reach(&error) => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let path = path.display();
                Err(io::Error::other(format!(
                    "{path} and another name differ only in case, and the copy can hold only one of them"
                )))
            }
            done => done.map(|()| true),
        }
    }

    /// The system shares the blocks of both files where it can.
    fn file(&self, path: &Path) -> io::Result<()> {
        let mut from = self.root.open_file(path)?;
        // Where two names that differ in case are one, the second must not take the place of the first.
        let mut to = self
            .to
            .open_with(path, OpenOptions::new().write(true).create_new(true))?
            .into_std();
        io::copy(&mut from, &mut to)?;
        let found = from.metadata()?;
        to.set_permissions(found.permissions())?;
        // Build tools compare times.
        to.set_modified(found.modified()?)
    }

    fn version_control(&self, path: &Path) -> io::Result<()> {
        self.to.create_dir(path)?;
        if path.file_name() == Some(OsStr::new(".git")) {
            self.to.create_dir(path.join("info"))?;
            for part in OF_GIT {
                match self.file(&path.join(part)) {
                    Err(error) if !is_out_of_reach(&error) => return Err(error),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Whether there is room for all of it.
    fn fits(&self, path: &Path, found: &Metadata) -> io::Result<bool> {
        let mut room = *lock(self.room);
        let mut fit = room.take(found.len()).is_ok();
        let mut ahead = Vec::from_iter(found.is_dir().then(|| path.to_owned()));
        while let Some(folder) = ahead.pop().filter(|_| fit) {
            for (path, found) in self.entries(&folder)? {
                fit &= room.take(found.len()).is_ok();
                ahead.extend(found.is_dir().then_some(path));
            }
        }
        Ok(fit)
    }
}

#[cfg(unix)]
fn link(from: &Dir, to: &Dir, path: &Path) -> io::Result<()> {
    to.symlink_contents(from.read_link_contents(path)?, path)
}

#[cfg(not(unix))]
fn link(_from: &Dir, _to: &Dir, _path: &Path) -> io::Result<()> {
    Err(io::ErrorKind::NotFound.into())
}

/// What was removed meanwhile, or may not be read, is not there for the session either.
fn is_out_of_reach(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
    )
}
