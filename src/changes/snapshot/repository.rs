//! The repositories of a workspace: of one that was there before, undo covers git's state and what is lost of the rest;
//! one that a command made goes and comes as a whole.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, Metadata};

use super::folder::{Known, Part};
use super::{Look, Seen};
use crate::changes::change_set::{ChangeSet, Entry, EntryChange};
use crate::changes::guard::{below, git_state, is_below_link};
use crate::workspace::{Root, mode};

/// The largest new repository, or folder of another program in one, that is copied: files and bytes.
const REPOSITORY: (usize, u64) = (5_000, 64 << 20);

/// A repository that a command made.
#[derive(Debug, Clone)]
pub(super) struct Made {
    pub path: PathBuf,
    mode: u32,
    /// Whether it is small enough to be copied, so that undo and redo cover all of it; they leave any other alone.
    is_copied: bool,
}

impl Look<'_> {
    /// The folder of a repository: git's are examined separately, but a new one is examined like any other folder.
    pub fn version_control(&self, root: &Root, path: PathBuf, found: &Metadata) -> Part {
        let is_git = path.file_name().is_some_and(|name| name == ".git");
        if !is_git {
            self.left_out(path);
            return Part::LeftOut;
        }
        let made = (self.is_new(&path) && !self.has_lost_one()).then(|| Made {
            path: path.clone(),
            mode: mode::of(found),
            is_copied: is_small(root.dir(), path.strip_prefix(root.real()).unwrap_or(&path)),
        });
        let part = if made.as_ref().is_some_and(|made| made.is_copied) {
            Part::Repository
        } else {
            Part::LeftOut
        };
        self.with_found(|found| {
            found.repositories.push(path);
            found.made.extend(made);
            found.coverage.has_objects = true;
        });
        part
    }

    /// Examines all of a submodule's repository, in a `folder` of the workspace's, that was not there before.
    pub fn module(&self, root: &Root, folder: &Path) {
        let path = root.real().join(folder);
        let is_known = self.before.git.contains_key(&path.join("HEAD"));
        let is_module = folder.iter().any(|part| part == "modules");
        let is_in_made =
            self.with_found(|found| found.made.iter().any(|made| path.starts_with(&made.path)));
        if !is_module || is_known || is_in_made || !self.before.is_own || self.has_lost_one() {
            return;
        }
        let Ok(found) = root.dir().symlink_metadata(folder) else {
            return;
        };
        let is_copied = is_small(root.dir(), folder);
        if is_copied {
            self.repository(root, folder);
        }
        let mode = mode::of(&found);
        let made = Made {
            path,
            mode,
            is_copied,
        };
        self.with_found(|found| found.made.push(made));
    }

    /// The state of these repositories.
    pub fn git(&self, root: &Root, repositories: &[PathBuf]) {
        let mut git: HashMap<_, _> = git_state(root.dir(), repositories)
            .iter()
            .map(|path| self.git_entry(root, path))
            .collect();
        // A file that is no longer listed may have become a folder.
        for (path, known) in &self.before.git {
            if let Ok(relative) = path.strip_prefix(root.real())
                && known.entry != Entry::Absent
                && !git.contains_key(path)
                && !is_below_link(root.dir(), relative)
            {
                git.extend([self.git_entry(root, relative)]);
            }
        }
        self.with_found(|found| found.git.extend(git));
    }

    fn git_entry(&self, root: &Root, relative: &Path) -> (PathBuf, Known) {
        let path = root.real().join(relative);
        let known = match root.dir().symlink_metadata(relative) {
            Ok(found) => Known::look(root, relative, &found, self.before.git.get(&path), self),
            Err(_) => Known::unstamped(Entry::Absent),
        };
        (path, known)
    }

    /// Whether a repository is no longer where it was. A new one may be the same, moved, so none counts as made.
    fn has_lost_one(&self) -> bool {
        self.before
            .repositories
            .iter()
            .any(|path| path.symlink_metadata().is_err())
    }

    /// Whether there was certainly nothing at `path` at the previous look: the innermost folder above it that was
    /// listed had nothing of that name, and no ignore file hid it.
    fn is_new(&self, path: &Path) -> bool {
        let Seen {
            folders,
            repositories,
            coverage,
            is_own,
            ..
        } = self.before;
        let mut outer = path.ancestors().zip(path.ancestors().skip(1));
        let listed =
            outer.find_map(|(inner, above)| Some((inner.file_name()?, folders.get(above)?)));
        let is_left_out = |above: &Path| {
            repositories
                .iter()
                .chain(&coverage.left_out)
                .any(|left_out| left_out == above)
        };
        let was_absent = listed.is_some_and(|(name, listing)| listing.get(name).is_none());
        *is_own && was_absent && !path.ancestors().any(is_left_out)
    }
}

/// Leaves out what a repository that the command moved has now: undo makes it again where it was.
pub(super) fn without_moved(mut changes: ChangeSet, before: &Seen) -> ChangeSet {
    if before
        .repositories
        .iter()
        .all(|path| path.symlink_metadata().is_ok())
    {
        return changes;
    }
    let has_objects = |change: &&EntryChange| {
        change.before == Entry::Absent
            && change.path.ends_with("objects")
            && change.after.is_folder()
    };
    let objects = changes.files.iter().filter(has_objects);
    let holders: Vec<_> = objects
        .filter_map(|change| change.path.parent())
        .map(Path::to_owned)
        .collect();
    changes
        .files
        .retain(|change| !holders.iter().any(|holder| change.path.starts_with(holder)));
    changes
}

/// Counts all of a repository that was made as git's state, which undo reverts as a whole.
pub(super) fn with_repositories(mut changes: ChangeSet, after: &Seen) -> ChangeSet {
    if after.made.is_empty() {
        return changes;
    }
    let of = |path: &Path| after.made.iter().find(|made| path.starts_with(&made.path));
    changes.git.retain(|change| of(&change.path).is_none());
    changes.git.extend(
        changes
            .files
            .extract_if(.., |change| of(&change.path).is_some()),
    );
    changes
        .git
        .extend(after.made.iter().filter(|made| made.is_copied).map(|made| {
            EntryChange::new(
                made.path.clone(),
                Entry::Absent,
                Entry::Folder { mode: made.mode },
            )
        }));
    changes.git.sort();
    changes
}

/// Whether the repository at `path`, or a folder in one, is small enough to be copied as a whole.
pub(super) fn is_small(dir: &Dir, path: &Path) -> bool {
    let found = below(dir, path, REPOSITORY.0 + 1);
    let size = |(path, _): &(PathBuf, _)| Some(dir.symlink_metadata(path).ok()?.len());
    found.len() <= REPOSITORY.0
        && found
            .iter()
            .map(size)
            .sum::<Option<u64>>()
            .is_some_and(|bytes| bytes <= REPOSITORY.1)
}
