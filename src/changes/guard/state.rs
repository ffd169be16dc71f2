//! git's state besides objects: the files that an undo has to restore together.

use std::path::{Path, PathBuf};

use cap_std::fs::Dir;

use super::git::MARKS;
use crate::workspace::Root;

/// Files of the repository's folder.
const FILES: [&str; 16] = [
    "AUTO_MERGE",
    "BISECT_EXPECTED_REV",
    "BISECT_LOG",
    "BISECT_NAMES",
    "BISECT_START",
    "BISECT_TERMS",
    "CHERRY_PICK_HEAD",
    "HEAD",
    "MERGE_HEAD",
    "MERGE_MODE",
    "MERGE_MSG",
    "ORIG_HEAD",
    "REVERT_HEAD",
    "index",
    "logs/refs/stash",
    "packed-refs",
];
/// Folders in it, with everything in them.
const FOLDERS: [&str; 6] = [
    "rebase-apply",
    "rebase-merge",
    "refs",
    "reftable",
    "sequencer",
    "worktrees",
];
/// At most this many files are examined: larger repositories have most of their refs packed.
const MOST: usize = 20_000;

/// Whether the root is itself a repository's folder, such as that of a linked worktree.
pub(crate) fn is_repository(root: &Root) -> bool {
    has_marks(root.dir(), Path::new(""))
}

/// The files that hold the state of the root's repository and its worktrees, of its submodules, and of the repositories in
/// the folders `nested`; relative to the root, as those are.
pub(crate) fn git_state(root: &Root, nested: &[PathBuf]) -> Vec<PathBuf> {
    let dir = root.dir();
    let own = if is_repository(root) {
        PathBuf::new()
    } else {
        PathBuf::from(".git")
    };
    let mut ahead: Vec<PathBuf> = nested
        .iter()
        .filter(|folder| **folder != own)
        .cloned()
        .collect();
    ahead.push(own);
    let mut repositories = Vec::new();
    while let Some(folder) = ahead.pop() {
        if has_marks(dir, &folder) {
            ahead.extend(folders(dir, &folder.join("modules")));
            repositories.push(folder);
        } else if folder
            .components()
            .any(|part| part.as_os_str() == "modules")
        {
            // The name of a submodule may be a path.
            ahead.extend(folders(dir, &folder));
        }
    }
    let mut found = Vec::new();
    for repository in repositories {
        found.extend(FILES.iter().map(|file| repository.join(file)));
        let mut ahead: Vec<_> = FOLDERS
            .iter()
            .map(|folder| repository.join(folder))
            .collect();
        while let Some(folder) = ahead.pop().filter(|_| found.len() < MOST) {
            for entry in dir.read_dir(&folder).into_iter().flatten().flatten() {
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                let list = if is_folder { &mut ahead } else { &mut found };
                list.push(folder.join(entry.file_name()));
            }
        }
    }
    found
}

fn has_marks(dir: &Dir, folder: &Path) -> bool {
    MARKS
        .iter()
        .all(|mark| dir.symlink_metadata(folder.join(mark)).is_ok())
}

fn folders(dir: &Dir, folder: &Path) -> Vec<PathBuf> {
    let entries = dir.read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders
        .map(|entry| folder.join(entry.file_name()))
        .collect()
}
