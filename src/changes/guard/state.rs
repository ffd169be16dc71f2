//! git's state besides objects: the files that an undo has to restore together.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, DirEntry, FileType};

use super::git::has_marks;
use crate::workspace::Root;
use crate::workspace::native::openable;

/// Names in capitals that are not state: what was fetched or written last.
const NO_STATE: [&str; 2] = ["FETCH_HEAD", "EDIT_DESCRIPTION"];
/// The log that is state: it has the stashes but the last.
const STASHES: &str = "logs/refs/stash";
/// Folders in it, with everything in them.
const FOLDERS: [&str; 6] = [
    "rebase-apply",
    "rebase-merge",
    "refs",
    "reftable",
    "sequencer",
    "worktrees",
];
/// Folders in it that are neither state nor objects.
const BESIDES: [&str; 4] = ["", "hooks", "info", "objects/info"];
/// Folders in it that are examined separately.
const LOOKED_AT: [&str; 5] = ["hooks", "info", "logs", "modules", "objects"];
/// At most this many files are examined: larger repositories have most of their refs packed.
const MOST: usize = 20_000;

/// Whether the root is itself a repository's folder, such as that of a linked worktree.
pub(crate) fn is_repository(root: &Root) -> bool {
    has_marks(root.dir(), Path::new(""))
}

/// The folders of the repositories in the folders `ahead`, and of their submodules; relative to the root, as those are.
pub(crate) fn repositories(dir: &Dir, mut ahead: Vec<PathBuf>) -> Vec<PathBuf> {
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
    repositories
}

/// The files that hold the state of these repositories and their worktrees.
pub(crate) fn git_state(dir: &Dir, repositories: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for repository in repositories {
        for (name, _) in entries(dir, repository) {
            let path = repository.join(&name);
            if is_state(&name) {
                found.extend(files_below(dir, &path));
                found.push(path);
            }
        }
        found.push(repository.join(STASHES));
        for folder in FOLDERS {
            found.extend(files_below(dir, &repository.join(folder)));
        }
    }
    found
}

/// The files of a repository that are neither state nor objects: logs, settings, hooks.
pub(crate) fn besides_state(dir: &Dir, repository: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in BESIDES.map(|folder| repository.join(folder)) {
        if !is_linked(dir, &folder) {
            let entries = entries(dir, &folder).into_iter();
            found.extend(entries.map(|(name, _)| folder.join(name)));
        }
    }
    found.extend(files_below(dir, &repository.join("logs")));
    let packs = repository.join("objects/pack");
    if !is_linked(dir, &packs) {
        found.push(packs.join("multi-pack-index"));
    }
    let is_in = |path: &Path| path.parent() == Some(repository);
    let is_state = |path: &Path| {
        path.ends_with(STASHES) || (is_in(path) && path.file_name().is_some_and(is_state))
    };
    let is_lock = |path: &Path| {
        path.extension()
            .is_some_and(|extension| extension == "lock")
    };
    found.retain(|path| !is_state(path) && !is_lock(path));
    found
}

/// The folders of a repository that belong to other programs. They may contain data that exists nowhere else, such as
/// git-lfs objects that have not been pushed yet.
pub(crate) fn folders_of_others(dir: &Dir, repository: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = folders(dir, repository).collect();
    let is_own = |name: &&str| FOLDERS.contains(name) || LOOKED_AT.contains(name);
    found.retain(|path| {
        let name = path.file_name().and_then(OsStr::to_str);
        name.is_none_or(|name| !is_own(&name))
    });
    found
}

/// Whether a file of this name in a repository's folder is state: the index, packed refs, and all that git names in
/// capitals (`HEAD`, `MERGE_MSG`, `REBASE_HEAD`) but what a person last wrote or fetched.
fn is_state(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    let is_capital = |byte: u8| byte.is_ascii_uppercase() || byte == b'_';
    let is_other = name.ends_with("_EDITMSG") || NO_STATE.contains(&name);
    matches!(name, "index" | "packed-refs") || (name.bytes().all(is_capital) && !is_other)
}

/// Whether a path in a repository is below a link: what is there is not the repository's own.
pub(crate) fn is_below_link(dir: &Dir, path: &Path) -> bool {
    path.parent().is_some_and(|folder| is_linked(dir, folder))
}

/// Whether a folder in a repository is a link, or below one.
fn is_linked(dir: &Dir, folder: &Path) -> bool {
    let is_link = |path: &Path| {
        dir.symlink_metadata(path)
            .is_ok_and(|found| found.is_symlink())
    };
    let is_inside = |path: &&Path| !path.as_os_str().is_empty() && !path.ends_with(".git");
    folder.ancestors().take_while(is_inside).any(is_link)
}

/// What is in a folder; nothing if it cannot be read.
pub(super) fn entries(dir: &Dir, folder: &Path) -> Vec<(OsString, FileType)> {
    let listed = dir
        .read_dir(openable(folder))
        .into_iter()
        .flatten()
        .flatten();
    let entry = |entry: DirEntry| Some((entry.file_name(), entry.file_type().ok()?));
    listed.filter_map(entry).collect()
}

/// What is in a folder and below it, a folder before what is in it. When `most` are found, no other folder is read.
pub(crate) fn below(dir: &Dir, folder: &Path, most: usize) -> Vec<(PathBuf, FileType)> {
    let (mut found, mut ahead) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = ahead.pop().filter(|_| found.len() < most) {
        for (name, kind) in entries(dir, &folder) {
            let path = folder.join(name);
            ahead.extend(kind.is_dir().then(|| path.clone()));
            found.push((path, kind));
        }
    }
    found
}

pub(crate) fn files_below(dir: &Dir, folder: &Path) -> impl Iterator<Item = PathBuf> {
    let found = (!is_linked(dir, folder)).then(|| below(dir, folder, MOST));
    let found = found.into_iter().flatten();
    found.filter_map(|(path, kind)| (!kind.is_dir()).then_some(path))
}

fn folders(dir: &Dir, folder: &Path) -> impl Iterator<Item = PathBuf> {
    let found = entries(dir, folder).into_iter();
    found.filter_map(move |(name, kind)| kind.is_dir().then(|| folder.join(name)))
}
