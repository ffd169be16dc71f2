//! Reverts a change set: every path becomes what it was, byte for byte, unless somebody changed it since.
//!
//! Only what is still as the command left it is touched. What was changed since, is open in the editor, or cannot be
//! changed is left and listed; the caller may merge the texts among it.

mod left;

use std::collections::BTreeSet;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use cap_std::fs::Dir;

pub use self::left::{Left, Reason};
use crate::changes::backup;
use crate::changes::change_set::{ChangeSet, Entry, EntryChange};
use crate::changes::guard::{is_below_link, set_aside};
use crate::changes::images::Images;
use crate::changes::snapshot::{is_same_index, look_at};
use crate::domain::lock;
use crate::workspace::native::{self, openable};
use crate::workspace::{Root, disk, mode};

/// Folders of a repository that may be empty.
const LASTING: [&str; 4] = [".git", "refs", "refs/heads", "refs/tags"];
/// How many files are reverted in parallel.
const THREADS: usize = 8;

/// The result of a revert.
#[derive(Debug, Default)]
pub struct Reverted {
    /// The reverted changes as a change set; reverting it reapplies them.
    pub done: ChangeSet,
    /// The changes that were not reverted.
    pub left: Vec<Left>,
}

/// Reverts `changes` in `roots`, except those of files for which `is_open` is true. Blocks.
#[must_use]
pub fn revert<'a>(
    roots: &'a [Arc<Root>],
    changes: &'a ChangeSet,
    images: &'a Images,
    is_open: &(dyn Fn(&EntryChange) -> bool + Sync),
) -> Reverted {
    let mut reverted = Reverted::default();
    let revert = Revert {
        roots,
        images,
        writable: Mutex::new(()),
    };
    let (of_backup, state): (Vec<_>, Vec<_>) =
        changes.git.iter().partition(|change| change.is_of_backup());
    let has_moved = revert.has_git_moved(&changes.git, &state);
    let git = |change: &'a EntryChange| {
        (
            change,
            if has_moved {
                Err(Reason::GitMoved)
            } else {
                revert.git(change)
            },
        )
    };
    // What the command created is removed first, innermost first; then what it removed is restored, outermost first. A
    // repository is in the folder it was created with.
    let (made, other): (Vec<_>, Vec<_>) = state
        .into_iter()
        .partition(|change| change.before == Entry::Absent);
    let mut of_git: Vec<_> = made.into_iter().rev().map(git).collect();
    for (change, done) in revert.files(&changes.files, is_open) {
        match done {
            Ok(()) => reverted.done.files.push(change.reversed()),
            Err(reason) => {
                // What the system refused is tried again as a whole.
                if matches!(reason, Reason::Changed | Reason::Open) {
                    reverted.done.files.extend(revert.mode(change));
                }
                reverted.left.push(Left {
                    path: change.path.clone(),
                    reason,
                });
            }
        }
    }
    of_git.extend(
        of_backup
            .into_iter()
            .map(|change| (change, revert.put_back(change, has_moved))),
    );
    of_git.extend(other.into_iter().map(git));
    for (change, done) in of_git {
        match done {
            Ok(()) => reverted.done.git.push(change.reversed()),
            Err(reason) => reverted.left.push(Left {
                path: change.path.clone(),
                reason,
            }),
        }
    }
    for done in [&mut reverted.done.files, &mut reverted.done.git] {
        done.sort();
    }
    reverted
}

/// Whether a file only gets other bytes: then it does not matter when.
fn is_replaced(change: &EntryChange) -> bool {
    matches!(
        (&change.before, &change.after),
        (Entry::File { .. }, Entry::File { .. })
    )
}

/// Whether only a file's permissions changed.
fn is_same_content(change: &EntryChange) -> bool {
    matches!((&change.before, &change.after), (Entry::File { image, .. }, Entry::File { image: same, .. }) if image == same)
}

/// Reverts many files in parallel: each replacement of a file waits for the disk.
fn side_by_side<'a>(
    changes: &[&'a EntryChange],
    one: &(impl Fn(&EntryChange) -> Result<(), Reason> + Sync),
) -> Vec<(&'a EntryChange, Result<(), Reason>)> {
    let each = |chunk: &[&'a EntryChange]| {
        chunk
            .iter()
            .map(|change| (*change, one(change)))
            .collect::<Vec<_>>()
    };
    std::thread::scope(|scope| {
        let size = changes.len().div_ceil(THREADS).max(1);
        let threads: Vec<_> = changes
            .chunks(size)
            .map(|chunk| scope.spawn(move || each(chunk)))
            .collect();
        let mut done = Vec::with_capacity(changes.len());
        for thread in threads {
            done.extend(
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            );
        }
        done
    })
}

impl EntryChange {
    /// The inverse change.
    #[must_use]
    pub fn reversed(&self) -> Self {
        Self {
            path: self.path.clone(),
            before: self.after.clone(),
            after: self.before.clone(),
            is_edit: self.is_edit,
            edit: None,
        }
    }
}

struct Revert<'a> {
    roots: &'a [Arc<Root>],
    images: &'a Images,
    /// Held while a folder is made writable: one thread at a time reads and restores its permissions.
    writable: Mutex<()>,
}

type Done<'a> = (&'a EntryChange, Result<(), Reason>);

impl<'a> Revert<'a> {
    /// Reverts everything but git's state.
    fn files(
        &self,
        changes: &'a [EntryChange],
        is_open: &(dyn Fn(&EntryChange) -> bool + Sync),
    ) -> Vec<Done<'a>> {
        // Folders whose permissions changed can be entered before what is in them is looked at, and get theirs last.
        let (folders, other): (Vec<_>, Vec<_>) = changes
            .iter()
            .partition(|change| change.before.is_folder() && change.after.is_folder());
        for change in &folders {
            self.open_up(change);
        }
        let (made, other): (Vec<_>, Vec<_>) = other
            .into_iter()
            .partition(|change| change.before == Entry::Absent || change.after.is_folder());
        let (replaced, other): (Vec<_>, Vec<_>) =
            other.into_iter().partition(|change| is_replaced(change));
        let one = |change: &EntryChange| {
            let has_text = !change.after.is_folder() && !is_same_content(change);
            if has_text && is_open(change) {
                Err(Reason::Open)
            } else {
                self.one(change)
            }
        };
        let mut results: Vec<_> = made
            .into_iter()
            .rev()
            .chain(other)
            .map(|change| (change, one(change)))
            .collect();
        results.extend(side_by_side(&replaced, &one));
        results.extend(
            folders
                .into_iter()
                .rev()
                .map(|change| (change, one(change))),
        );
        results
    }

    fn one(&self, change: &EntryChange) -> Result<(), Reason> {
        let (dir, relative) = self.place(&change.path)?;
        let now = look_at(dir, relative)
            .or_else(|error| look_at_unreadable(dir, relative, error))
            .map_err(failed)?;
        if now == change.before {
            return Ok(());
        }
        // A folder is unchanged if it still exists, since its contents have changes of their own; one in the place of a file
        // may have gone with the last of them.
        let is_free = now == Entry::Absent && !change.before.is_folder();
        if now != change.after && !(change.after.is_folder() && (now.is_folder() || is_free)) {
            return Err(Reason::Changed);
        }
        let replace = || self.replace(dir, relative, &now, &change.before);
        match replace() {
            // The folder is read-only now, but was not when the command changed it.
            Err(Reason::Denied) => {
                let _others_wait = lock(&self.writable);
                in_writable_folder(dir, relative, replace).map_err(failed)?
            }
            replaced => replaced,
        }
    }

    /// Lets the owner into a folder whose permissions the command changed.
    fn open_up(&self, change: &EntryChange) {
        let (Entry::Folder { mode: before }, Entry::Folder { mode: after }) =
            (&change.before, &change.after)
        else {
            return;
        };
        let Ok((dir, relative)) = self.place(&change.path) else {
            return;
        };
        if (before | mode::OWNER) != *after
            && dir
                .symlink_metadata(relative)
                .is_ok_and(|now| mode::of(&now) == *after)
        {
            let _what_is_in_it_says_why = mode::set(dir, relative, before | mode::OWNER);
        }
    }

    /// Only the permissions of a file with other bytes than the command left; gives what reverts that.
    fn mode(&self, change: &EntryChange) -> Option<EntryChange> {
        let (Entry::File { mode: before, .. }, Entry::File { mode: after, .. }) =
            (&change.before, &change.after)
        else {
            return None;
        };
        let (dir, relative) = self.place(&change.path).ok()?;
        let now = look_at(dir, relative).ok()?;
        let Entry::File { image, size, mode } = &now else {
            return None;
        };
        if before == after || mode != after {
            return None;
        }
        mode::set(dir, relative, *before).ok()?;
        let reverted = Entry::File {
            image: image.clone(),
            size: *size,
            mode: *before,
        };
        Some(EntryChange::new(change.path.clone(), now, reverted))
    }

    /// A file or folder of git's state.
    fn git(&self, change: &EntryChange) -> Result<(), Reason> {
        if change.before != Entry::Absent {
            let (dir, path) = self.place(&change.path)?;
            clear_way(dir, path).map_err(failed)?;
        }
        match self.refreshed(change) {
            Some(after) => self.one(&EntryChange {
                after,
                ..change.clone()
            }),
            None => self.one(change),
        }?;
        let is_module = || change.path.iter().any(|part| part == "modules");
        if change.before == Entry::Absent && (!change.after.is_folder() || is_module()) {
            self.remove_empty_folders(&change.path);
        } else if change.path.ends_with("HEAD") {
            self.make_lasting_folders(&change.path);
        }
        Ok(())
    }

    /// Restores what git keeps besides its state, and removes what the command added to it.
    fn put_back(&self, change: &EntryChange, has_moved: bool) -> Result<(), Reason> {
        let (dir, path) = self.place(&change.path)?;
        let is_made = change.before == Entry::Absent && !has_moved;
        if !is_made && !change.before.is_in_backup() {
            return Ok(());
        }
        // What somebody has written there since is theirs, except for further lines of a new log. An overwritten object
        // is not theirs.
        let is_as_left = match &change.after {
            Entry::Special => true,
            Entry::File { image, size, .. } => {
                let mut after =
                    backup::open(self.images.backups(), image, *size).map_err(failed)?;
                let is_log = is_made && native::shown(path).contains(".git/logs/");
                let most = if is_log { *size } else { u64::MAX };
                dir.open(path)
                    .and_then(|now| disk::is_same(&mut now.take(most), &mut after))
                    .unwrap_or(false)
            }
            after => look_at_own(dir, path).map_err(failed)? == *after,
        };
        if !is_as_left {
            return Ok(());
        }
        let Entry::File { image, size, mode } = &change.before else {
            dir.remove_file(path).map_err(failed)?;
            self.remove_empty_folders(&change.path);
            return Ok(());
        };
        let stored = || backup::open(self.images.backups(), image, *size);
        clear_way(dir, path).map_err(failed)?;
        match dir.symlink_metadata(path) {
            Ok(now) if now.is_file() => {
                let is_whole = dir
                    .open(path)
                    .and_then(|mut now| disk::is_same(&mut now, &mut stored()?));
                if is_whole.unwrap_or(false) {
                    return Ok(());
                }
            }
            // Nobody may be at the other end of a pipe.
            Ok(_) => _ = set_aside(dir, path).map_err(failed)?,
            Err(_) => {}
        }
        stored()
            .and_then(|mut stored| disk::copy_with_mode(dir, path, &mut stored, *mode))
            .map_err(failed)
    }

    /// The index now, if git has only rewritten it: it lists the same as the one the command left.
    fn refreshed(&self, change: &EntryChange) -> Option<Entry> {
        let Entry::File { image, .. } = &change.after else {
            return None;
        };
        let (dir, relative) = self
            .place(&change.path)
            .ok()
            .filter(|(_, path)| path.ends_with("index"))?;
        let now = look_at(dir, relative)
            .ok()
            .filter(|now| *now != change.after)?;
        is_same_index(&dir.read(relative).ok()?, &self.images.read(image).ok()?).then_some(now)
    }

    /// Makes the folders beside a HEAD without which git sees no repository.
    fn make_lasting_folders(&self, head: &Path) {
        let Ok((dir, relative)) = self.place(head) else {
            return;
        };
        let folder = relative.parent().unwrap_or(Path::new(""));
        // A worktree has its HEAD in a folder without objects.
        if dir.is_dir(folder.join("objects")) {
            let _nothing_less_than_before = dir.create_dir_all(folder.join("refs"));
        }
    }

    /// Removes the folders that git created for a file: an empty `rebase-merge` would be a rebase in progress.
    fn remove_empty_folders(&self, file: &Path) {
        let Ok((dir, relative)) = self.place(file) else {
            return;
        };
        let ends_with = |folder: &Path| LASTING.iter().any(|lasting| folder.ends_with(lasting));
        let is_gone = |folder: &&Path| {
            // A linked worktree has a folder for refs of its own, which may be empty.
            if folder
                .parent()
                .is_some_and(|above| above.ends_with("worktrees"))
            {
                let _has_refs = dir.remove_dir(folder.join("refs"));
            }
            !folder.as_os_str().is_empty() && !ends_with(folder) && dir.remove_dir(folder).is_ok()
        };
        let _gone = relative.ancestors().skip(1).take_while(is_gone).count();
    }

    /// Whether git's state is no longer as it was left, or a repository has more in it.
    fn has_git_moved(&self, all: &[EntryChange], state: &[&EntryChange]) -> bool {
        let known: BTreeSet<&Path> = all.iter().map(|change| &*change.path).collect();
        let is_known = |path: PathBuf| {
            let next = known.range(&*path..).next();
            next.is_some_and(|next| next.starts_with(&path))
        };
        let is_as_left = |change: &EntryChange| {
            let (dir, relative) = self.place(&change.path)?;
            let now = look_at_own(dir, relative).map_err(failed)?;
            let mut entries = now
                .is_folder()
                .then(|| dir.read_dir(relative))
                .into_iter()
                .flatten()
                .flatten()
                .flatten();
            let has_more = now.is_folder()
                && entries.any(|entry| !is_known(change.path.join(entry.file_name())));
            let is_as_left =
                now == change.after || now == change.before || self.refreshed(change).is_some();
            Ok::<_, Reason>(is_as_left && !has_more)
        };
        state
            .iter()
            .any(|change| !is_as_left(change).is_ok_and(|is_as_left| is_as_left))
    }

    fn place<'p>(&'p self, path: &'p Path) -> Result<(&'p Dir, &'p Path), Reason> {
        let root = self
            .roots
            .iter()
            .find_map(|root| Some((root.dir(), path.strip_prefix(root.real()).ok()?)));
        root.ok_or_else(|| Reason::Io("it is outside the workspace".to_owned()))
    }

    fn replace(&self, dir: &Dir, path: &Path, now: &Entry, before: &Entry) -> Result<(), Reason> {
        match (now, before) {
            (_, Entry::Special) => return Err(Reason::Special),
            (Entry::Folder { .. }, Entry::Folder { mode }) => {
                return mode::set(dir, path, *mode).map_err(failed);
            }
            (
                Entry::File { image, .. },
                Entry::File {
                    image: same, mode, ..
                },
            ) if image == same => {
                return mode::set(dir, path, *mode).map_err(failed);
            }
            (Entry::Folder { .. }, _) => {
                dir.remove_dir(path).map_err(|error| match error.kind() {
                    io::ErrorKind::DirectoryNotEmpty => Reason::NotEmpty,
                    _ => failed(error),
                })?;
            }
            // The new one replaces the old one atomically.
            (Entry::File { .. } | Entry::Link { .. }, Entry::File { .. } | Entry::Link { .. })
            | (Entry::Absent, _) => {}
            _ => dir.remove_file(path).map_err(failed)?,
        }
        self.images.make(dir, path, before).map_err(|error| {
            // If the disk is full, what had to be removed first is restored, so that undo can be retried.
            if dir.symlink_metadata(path).is_err() {
                let _nothing_more_can_be_done = self.images.make(dir, path, now);
            }
            failed(error)
        })
    }
}

/// Sets aside what is in the place of a folder above `path`, and makes the folder.
fn clear_way(dir: &Dir, path: &Path) -> io::Result<()> {
    let mut above: Vec<_> = path
        .ancestors()
        .skip(1)
        .filter(|above| !above.as_os_str().is_empty())
        .collect();
    above.reverse();
    for folder in above {
        match dir.symlink_metadata(folder) {
            Ok(found) if found.is_dir() => continue,
            Ok(_) => _ = set_aside(dir, folder)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        dir.create_dir(folder)?;
    }
    Ok(())
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn failed(error: io::Error) -> Reason {
    match error.kind() {
        io::ErrorKind::PermissionDenied => Reason::Denied,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Reason::Full,
        _ => Reason::Io(error.to_string()),
    }
}

/// What a repository has at `path`.
fn look_at_own(dir: &Dir, path: &Path) -> io::Result<Entry> {
    if is_below_link(dir, path) {
        return Ok(Entry::Absent);
    }
    look_at(dir, path)
}

/// [`look_at`] for a file that its owner may not read; `denied` is why that is tried.
fn look_at_unreadable(dir: &Dir, path: &Path, denied: io::Error) -> io::Result<Entry> {
    let found = dir.symlink_metadata(path)?;
    if denied.kind() != io::ErrorKind::PermissionDenied || !found.is_file() {
        return Err(denied);
    }
    match mode::with(dir, path, mode::READABLE, || look_at(dir, path))?? {
        Entry::File { image, size, .. } => Ok(Entry::File {
            image,
            size,
            mode: mode::of(&found),
        }),
        other => Ok(other),
    }
}

/// Does `work` in the folder of `path` while its owner may change it.
fn in_writable_folder<T>(dir: &Dir, path: &Path, work: impl FnOnce() -> T) -> io::Result<T> {
    let folder = openable(path.parent().unwrap_or(path));
    mode::with(dir, folder, mode::OWNER, work)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_named_with_the_way_out() {
        let full = failed(io::ErrorKind::StorageFull.into());
        assert_eq!(
            full.to_string(),
            "there is no space left on the disk; free some, then try again"
        );
    }
}
