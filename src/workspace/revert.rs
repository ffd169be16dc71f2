//! Reverts a change set: every path becomes what it was, byte for byte, unless somebody changed it since.
//!
//! Only what is still as the command left it is touched. What was changed since, is open in the editor, or cannot be
//! changed is left and listed; the caller may merge the texts among it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use super::change_set::{ChangeSet, Entry, EntryChange};
use super::snapshot::look_at;
use super::{Root, disk, mode};

/// How many files are reverted in parallel.
const THREADS: usize = 8;

/// The result of a revert.
#[derive(Debug, Default)]
pub struct Reverted {
    /// What was reverted, as a change set of its own: reverting that reapplies the changes.
    pub done: ChangeSet,
    /// What was left alone.
    pub left: Vec<Left>,
}

/// A path that was left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// Absolute path.
    pub path: PathBuf,
    /// The reason.
    pub reason: Reason,
}

/// Why a path was not reverted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// Somebody changed it since.
    #[error("it was changed since")]
    Changed,
    /// It is open in the editor, which has to change it.
    #[error("it is open in the editor")]
    Open,
    /// A folder with other contents.
    #[error("it is not empty")]
    NotEmpty,
    /// It was a pipe, socket or device.
    #[error("it was not a regular file")]
    Special,
    /// Another part of git's state was changed since, and it only goes back as a whole.
    #[error("git has moved on since")]
    GitMoved,
    /// The system did not permit it.
    #[error("permission denied")]
    Denied,
    /// There is no space for it.
    #[error("there is no space left on the disk; free some, then try again")]
    Full,
    /// The system refused.
    #[error("{0}")]
    Io(String),
}

/// Reverts `changes` in `roots` with the images in the folder `images`, except files for which `is_open` is true.
/// Blocks.
#[must_use]
pub fn revert(
    roots: &[Arc<Root>],
    changes: &ChangeSet,
    images: &Path,
    is_open: &(dyn Fn(&Path) -> bool + Sync),
) -> Reverted {
    let mut reverted = Reverted::default();
    let images = match Dir::open_ambient_dir(images, ambient_authority()) {
        Ok(images) => images,
        Err(error) => {
            let reason = Reason::Io(format!("the images cannot be read ({error})"));
            let all = changes.files.iter().chain(&changes.git);
            reverted.left = all.map(|change| Left { path: change.path.clone(), reason: reason.clone() }).collect();
            return reverted;
        }
    };
    let revert = Revert { roots, images, writable: Mutex::new(()) };
    // Folders whose permissions changed can be entered before what is in them is looked at, and get theirs last.
    let (folders, other): (Vec<_>, Vec<_>) =
        changes.files.iter().partition(|change| is_folder(&change.before) && is_folder(&change.after));
    for change in &folders {
        revert.open_up(change);
    }
    // What the command created is removed first, innermost first; then what it removed is restored, outermost first.
    let (made, other): (Vec<_>, Vec<_>) =
        other.into_iter().partition(|change| change.before == Entry::Absent || is_folder(&change.after));
    let (replaced, other): (Vec<_>, Vec<_>) = other.into_iter().partition(|change| is_replaced(change));
    let one = |change: &EntryChange| {
        let has_text = !is_folder(&change.after) && !is_same_content(change);
        if has_text && is_open(&change.path) { Err(Reason::Open) } else { revert.one(change) }
    };
    let mut results: Vec<_> = made.into_iter().rev().chain(other).map(|change| (change, one(change))).collect();
    results.extend(side_by_side(&replaced, &one));
    results.extend(folders.into_iter().rev().map(|change| (change, one(change))));
    for (change, done) in results {
        match done {
            Ok(()) => reverted.done.files.push(change.reversed()),
            Err(reason) => {
                reverted.done.files.extend(revert.mode(change));
                reverted.left.push(Left { path: change.path.clone(), reason });
            }
        }
    }
    reverted.done.files.sort_by(|a, b| a.path.cmp(&b.path));
    revert.git(&changes.git, &mut reverted);
    reverted
}

/// Whether a file only gets other bytes: then it does not matter when.
fn is_replaced(change: &EntryChange) -> bool {
    matches!((&change.before, &change.after), (Entry::File { .. }, Entry::File { .. }))
}

/// Whether only a file's permissions changed.
fn is_same_content(change: &EntryChange) -> bool {
    matches!((&change.before, &change.after), (Entry::File { image, .. }, Entry::File { image: same, .. }) if image == same)
}

/// Reverts many files at once: the system waits for the disk with each that takes the place of another.
fn side_by_side<'a>(
    changes: &[&'a EntryChange],
    one: &(impl Fn(&EntryChange) -> Result<(), Reason> + Sync),
) -> Vec<(&'a EntryChange, Result<(), Reason>)> {
    let each = |chunk: &[&'a EntryChange]| chunk.iter().map(|change| (*change, one(change))).collect::<Vec<_>>();
    std::thread::scope(|scope| {
        let size = changes.len().div_ceil(THREADS).max(1);
        let threads: Vec<_> = changes.chunks(size).map(|chunk| scope.spawn(move || each(chunk))).collect();
        let mut done = Vec::with_capacity(changes.len());
        for thread in threads {
            done.extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    })
}

impl EntryChange {
    /// The inverse change.
    #[must_use]
    pub fn reversed(&self) -> Self {
        Self { path: self.path.clone(), before: self.after.clone(), after: self.before.clone() }
    }
}

struct Revert<'a> {
    roots: &'a [Arc<Root>],
    images: Dir,
    /// Whoever makes a folder writable for a moment: its permissions are read and restored by one thread at a time.
    writable: Mutex<()>,
}

impl Revert<'_> {
    fn one(&self, change: &EntryChange) -> Result<(), Reason> {
        let (dir, relative) = self.place(&change.path)?;
        let now = look_at(dir, relative).or_else(|error| look_at_unreadable(dir, relative, error)).map_err(failed)?;
        if now == change.before {
            return Ok(());
        }
        // A folder is unchanged if it still exists: its contents have changes of their own.
        if now != change.after && !(is_folder(&now) && is_folder(&change.after)) {
            return Err(Reason::Changed);
        }
        let replace = || self.replace(dir, relative, &now, &change.before);
        match replace() {
            // A folder that was read-only before and is so now, or is so again, was not when the command changed it.
            Err(Reason::Denied) => {
                let _others_wait = self.writable.lock().unwrap_or_else(PoisonError::into_inner);
                in_writable_folder(dir, relative, replace).map_err(failed)?
            }
            replaced => replaced,
        }
    }

    /// Lets the owner into a folder whose permissions the command changed.
    fn open_up(&self, change: &EntryChange) {
        let (Entry::Folder { mode: before }, Entry::Folder { mode: after }) = (&change.before, &change.after) else {
            return;
        };
        let Ok((dir, relative)) = self.place(&change.path) else { return };
        if (before | mode::OWNER) != *after && dir.symlink_metadata(relative).is_ok_and(|now| mode::of(&now) == *after)
        {
            let _what_is_in_it_says_why = mode::set(dir, relative, before | mode::OWNER);
        }
    }

    /// Only the permissions of a file with other bytes than the command left; gives what reverts that.
    fn mode(&self, change: &EntryChange) -> Option<EntryChange> {
        let (Entry::File { mode: before, .. }, Entry::File { mode: after, .. }) = (&change.before, &change.after)
        else {
            return None;
        };
        let (dir, relative) = self.place(&change.path).ok()?;
        let now = look_at(dir, relative).ok()?;
        let Entry::File { image, size, mode } = &now else { return None };
        if before == after || mode != after {
            return None;
        }
        mode::set(dir, relative, *before).ok()?;
        let reverted = Entry::File { image: image.clone(), size: *size, mode: *before };
        Some(EntryChange { path: change.path.clone(), before: now, after: reverted })
    }

    /// All of git's state, if git has not moved on.
    fn git(&self, changes: &[EntryChange], reverted: &mut Reverted) {
        let is_as_left = |change: &EntryChange| {
            let now = self.place(&change.path).and_then(|(dir, relative)| look_at(dir, relative).map_err(failed));
            now.is_ok_and(|now| now == change.after || now == change.before)
        };
        let has_moved = !changes.iter().all(is_as_left);
        for change in changes {
            match if has_moved { Err(Reason::GitMoved) } else { self.one(change) } {
                Ok(()) => reverted.done.git.push(change.reversed()),
                Err(reason) => reverted.left.push(Left { path: change.path.clone(), reason }),
            }
        }
    }

    fn place<'a>(&'a self, path: &'a Path) -> Result<(&'a Dir, &'a Path), Reason> {
        let root = self.roots.iter().find_map(|root| Some((root.dir(), path.strip_prefix(root.real()).ok()?)));
        root.ok_or_else(|| Reason::Io("it is outside the workspace".to_owned()))
    }

    fn replace(&self, dir: &Dir, path: &Path, now: &Entry, before: &Entry) -> Result<(), Reason> {
        match (now, before) {
            (_, Entry::Special) => return Err(Reason::Special),
            (Entry::Folder { .. }, Entry::Folder { mode }) => return mode::set(dir, path, *mode).map_err(failed),
            (Entry::File { image, .. }, Entry::File { image: same, mode, .. }) if image == same => {
                return mode::set(dir, path, *mode).map_err(failed);
            }
            (Entry::Folder { .. }, _) => dir.remove_dir(path).map_err(|error| match error.kind() {
                io::ErrorKind::DirectoryNotEmpty => Reason::NotEmpty,
                _ => failed(error),
            })?,
            // The new file replaces the old one atomically.
            (Entry::File { .. } | Entry::Link { .. }, Entry::File { .. }) | (Entry::Absent, _) => {}
            _ => dir.remove_file(path).map_err(failed)?,
        }
        self.make(dir, path, before).map_err(|error| {
            // Where the disk is full, what had to go first is there again, and undo can be tried again.
            if dir.symlink_metadata(path).is_err() {
                let _nothing_more_can_be_done = self.make(dir, path, now);
            }
            failed(error)
        })
    }

    fn make(&self, dir: &Dir, path: &Path, entry: &Entry) -> io::Result<()> {
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
            Entry::Absent | Entry::Special => Ok(()),
            Entry::Folder { mode } => {
                dir.create_dir(path)?;
                mode::set(dir, path, *mode)
            }
            Entry::File { image, mode, .. } => disk::write_with_mode(dir, path, &self.images.read(image)?, *mode),
            Entry::Link { target } => make_link(dir, path, target),
        }
    }
}

#[cfg(unix)]
fn make_link(dir: &Dir, path: &Path, target: &Path) -> io::Result<()> {
    dir.symlink_contents(target, path)
}

#[cfg(not(unix))]
fn make_link(_dir: &Dir, _path: &Path, target: &Path) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, format!("it was a link to {}", target.display())))
}

fn is_folder(entry: &Entry) -> bool {
    matches!(entry, Entry::Folder { .. })
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn failed(error: io::Error) -> Reason {
    match error.kind() {
        io::ErrorKind::PermissionDenied => Reason::Denied,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Reason::Full,
        _ => Reason::Io(error.to_string()),
    }
}

/// [`look_at`] for a file that its owner may not read; `denied` is why that is tried.
fn look_at_unreadable(dir: &Dir, path: &Path, denied: io::Error) -> io::Result<Entry> {
    let found = dir.symlink_metadata(path)?;
    if denied.kind() != io::ErrorKind::PermissionDenied || !found.is_file() {
        return Err(denied);
    }
    match mode::with(dir, path, mode::READABLE, || look_at(dir, path))?? {
        Entry::File { image, size, .. } => Ok(Entry::File { image, size, mode: mode::of(&found) }),
        other => Ok(other),
    }
}

/// Does `work` in the folder of `path` while its owner may change it.
fn in_writable_folder<T>(dir: &Dir, path: &Path, work: impl FnOnce() -> T) -> io::Result<T> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    mode::with(dir, folder, mode::OWNER, work)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_named_with_the_way_out() {
        let full = failed(io::ErrorKind::StorageFull.into());
        assert_eq!(full.to_string(), "there is no space left on the disk; free some, then try again");
    }
}
