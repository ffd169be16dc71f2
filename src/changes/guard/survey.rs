//! The protected files of a root and their content, as a look at its folders found them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_fs_ext::FileTypeExt as _;
use cap_std::fs::{Dir, FileType};

use super::git;
use super::state::{below, entries};
use crate::changes::change_set::{Entry, unread};
use crate::changes::images::Images;
use crate::workspace::native::openable;
use crate::workspace::protect::{is_hook, is_protected_in};
use crate::workspace::stamp::Stamp;

/// At most this many folders that undo does not cover are searched, the upper ones first.
const FOLDERS: usize = 1500;
/// Files up to this size are stored in full, up to [`BYTES`] in total; of others only a change is noticed.
const FILE: u64 = 256 << 10;
const BYTES: usize = 8 << 20;
/// Folders with thousands of third-party files, which no editor or agent takes instructions from.
const SKIPPED: [&str; 7] = [
    "node_modules",
    "target",
    ".venv",
    "venv",
    "__pycache__",
    ".tox",
    ".cache",
];

/// The folder of a repository with those of its submodules.
const MODULES: &str = "modules";
/// Its folders that have nothing but what git writes.
const WRITTEN_BY_GIT: [&str; 5] = ["lfs", "logs", "objects", "refs", git::WORKTREES];

/// The protected files of a root.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// Everything protected, by its path from the root.
    pub(super) kept: BTreeMap<PathBuf, Entry>,
    /// The content of the files, in memory.
    pub(super) images: Images,
    /// The topmost protected files and folders.
    pub(super) units: BTreeSet<PathBuf>,
    /// The folders of git repositories (`.git`, or a bare one), with their inodes where the system has them.
    pub(super) repositories: BTreeMap<PathBuf, Option<u64>>,
    /// Sockets.
    pub(super) sockets: BTreeSet<PathBuf>,
    /// The inodes of the folders above those.
    pub(super) above: BTreeMap<PathBuf, u64>,
    /// The folders that were searched, if others were not.
    pub(super) searched: Option<BTreeSet<PathBuf>>,
}

/// The parts of a folder that matter to a guard.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Holds {
    /// Whether it is a repository's own folder.
    is_repository: bool,
    /// By name.
    parts: BTreeMap<OsString, Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Repository,
    Protected,
    Folder,
    Socket,
}

impl Survey {
    /// What the folders of a root contain; `is_complete` if these are all the folders to search.
    pub fn of(dir: &Dir, holds: &BTreeMap<&Path, &Holds>, is_complete: bool) -> Self {
        let searched = || holds.keys().map(|path| (*path).to_owned()).collect();
        let mut survey = Self {
            searched: (!is_complete).then(searched),
            ..Self::default()
        };
        for (folder, holds) in holds {
            if holds.is_repository {
                survey.repository(dir, folder);
            }
            for (name, part) in &holds.parts {
                match part {
                    Part::Repository => survey.repository(dir, &folder.join(name)),
                    Part::Protected => survey.unit(dir, folder.join(name)),
                    Part::Socket => _ = survey.sockets.insert(folder.join(name)),
                    Part::Folder => {}
                }
            }
        }
        let units = survey.units.iter().chain(survey.repositories.keys());
        for folder in units.flat_map(|unit| unit.ancestors().skip(1)) {
            if !survey.above.contains_key(folder)
                && let Some(inode) = inode(dir, folder)
            {
                survey.above.insert(folder.to_owned(), inode);
            }
        }
        survey
    }

    /// Surveys everything below `dir` without a look.
    pub(super) fn alone(dir: &Dir) -> Self {
        let find = |folder: &Path| Some(Arc::new(Holds::search(dir, folder)));
        let (found, is_complete) = search(vec![PathBuf::new()], find);
        let holds = found.iter().map(|(folder, holds)| (&**folder, &**holds));
        Self::of(dir, &holds.collect(), is_complete)
    }

    /// Only the parts of a repository that make git run something are protected: commits have to work.
    fn repository(&mut self, dir: &Dir, path: &Path) {
        for part in git::PARTS {
            let part = path.join(part);
            if dir.symlink_metadata(&part).is_ok() {
                self.unit(dir, part);
            }
        }
        let worktrees = path.join(git::WORKTREES);
        for (name, _) in entries(dir, &worktrees) {
            let own = worktrees.join(name);
            let named = own.join(git::SETTINGS_ELSEWHERE);
            if git::names_another(dir, &named) {
                self.unit(dir, named);
            }
            let settings = own.join(git::OF_WORKTREE);
            if dir.symlink_metadata(&settings).is_ok() {
                self.unit(dir, settings);
            }
        }
        self.repositories.insert(path.to_owned(), inode(dir, path));
    }

    fn unit(&mut self, dir: &Dir, path: PathBuf) {
        self.keep(dir, &path);
        if self.kept.get(&path).is_some_and(Entry::is_folder) {
            for (inner, _) in below(dir, &path, usize::MAX) {
                self.keep(dir, &inner);
            }
        }
        self.units.insert(path);
    }

    fn keep(&mut self, dir: &Dir, path: &Path) {
        let room = BYTES.saturating_sub(self.images.bytes_in_memory());
        let entry = dir.symlink_metadata(path).and_then(|found| {
            Entry::of(dir, path, &found, || {
                if found.len() > FILE.min(room as u64) {
                    return Ok(unread(&found));
                }
                let bytes = dir.read(path)?;
                Ok((self.images.keep(&bytes).0, bytes.len() as u64))
            })
        });
        // What cannot be examined counts as absent: it cannot be changed either.
        if let Ok(entry) = entry {
            self.kept.insert(path.to_owned(), entry);
        }
    }

    /// The topmost paths of `after` that are new; of a folder that `is_shared`, what is new in it.
    pub(super) fn added<'a>(
        &self,
        after: &'a Self,
        is_shared: &dyn Fn(&Path) -> bool,
    ) -> Vec<&'a Path> {
        let is_new = |path: &Path| after.kept.contains_key(path) && !self.kept.contains_key(path);
        let mut added: Vec<&Path> = Vec::new();
        for (path, kept) in &after.kept {
            let known = !is_new(path) || added.last().is_some_and(|above| path.starts_with(above));
            let was_looked_at = self.searched.as_ref().is_none_or(|searched| {
                let mut above = path.ancestors().skip(1);
                let known = above.clone().find(|above| !is_new(above));
                known.is_some_and(|above| searched.contains(above))
                    // All parts of a repository are looked at.
                    || above.any(|above| self.repositories.contains_key(above))
            });
            let is_left = kept.is_folder() && is_shared(path);
            if !known && was_looked_at && !is_left && !after.is_inert(path, kept) {
                added.push(path);
            }
        }
        added
    }

    /// The protected files that differ in `after`.
    pub(super) fn changed<'a>(
        &'a self,
        after: &'a Self,
    ) -> impl Iterator<Item = (&'a Path, &'a Entry)> {
        // What is in a folder is compared by itself.
        let is_same =
            |now: &Entry, kept: &Entry| now == kept || now.is_folder() && kept.is_folder();
        let changed = move |(path, kept): (&'a PathBuf, &'a Entry)| {
            let is_changed = match after.kept.get(path) {
                Some(now) => !is_same(now, kept),
                None => after.searched.is_none(),
            };
            is_changed.then_some((path.as_path(), kept))
        };
        self.kept.iter().filter_map(changed)
    }

    /// Whether a sandbox that pinned every unit protected `path` from the command: its unit existed, and is still in
    /// the same folders. A change came from outside.
    pub(super) fn is_shielded(&self, dir: &Dir, path: &Path) -> bool {
        let Some(unit) = path.ancestors().find(|above| self.units.contains(*above)) else {
            return false;
        };
        // A link cannot be pinned.
        let is_link = matches!(self.kept.get(unit), None | Some(Entry::Link { .. }));
        let is_same =
            |folder: &Path| self.repositories.contains_key(folder) || self.has_same(dir, folder);
        !is_link && unit.ancestors().skip(1).all(is_same)
    }

    /// Whether the folder above something protected is still where it was.
    fn has_same(&self, dir: &Dir, folder: &Path) -> bool {
        let known = self.above.get(folder);
        known.is_some() && known == inode(dir, folder).as_ref()
    }

    /// The repositories that were moved out of a folder that is still there: their paths, and where they are now.
    pub(super) fn moved<'a>(
        &'a self,
        dir: &Dir,
        after: &'a Self,
    ) -> impl Iterator<Item = (&'a Path, &'a Path)> {
        let gone = self.repositories.iter().filter(|(path, inode)| {
            let stays = path
                .parent()
                .is_some_and(|folder| self.has_same(dir, folder));
            inode.is_some() && stays && after.repositories.get(*path) != Some(*inode)
        });
        gone.filter_map(|(path, inode)| {
            let (now, _) = after
                .repositories
                .iter()
                .find(|(_, other)| *other == inode)?;
            Some((path.as_path(), now.as_path()))
        })
    }

    /// Whether a new part of a repository makes git run nothing, such as what `git init` creates.
    fn is_inert(&self, path: &Path, kept: &Entry) -> bool {
        let is_in_repository = path
            .ancestors()
            .any(|above| self.repositories.contains_key(above));
        is_in_repository
            && match kept {
                Entry::File { image, .. } => {
                    let content = self.images.read(image);
                    content.is_ok_and(|content| git::is_inert(path, &content))
                }
                kept => kept.is_folder(),
            }
    }
}

/// What the folders `ahead` and those below them hold, as `find` gives it, the upper ones first; and whether those are all.
pub(crate) fn search(
    ahead: Vec<PathBuf>,
    mut find: impl FnMut(&Path) -> Option<Arc<Holds>>,
) -> (BTreeMap<PathBuf, Arc<Holds>>, bool) {
    let (mut found, mut ahead) = (BTreeMap::new(), VecDeque::from(ahead));
    let depth = |path: &PathBuf| (path.iter().count(), path.clone());
    ahead.make_contiguous().sort_by_cached_key(depth);
    while let Some(folder) = ahead.pop_front() {
        if found.len() == FOLDERS {
            return (found, false);
        }
        if let Some(holds) = find(&folder) {
            ahead.extend(holds.folders().map(|inner| folder.join(inner)));
            found.insert(folder, holds);
        }
    }
    (found, true)
}

impl Holds {
    pub fn search(dir: &Dir, folder: &Path) -> Self {
        let entries = entries(dir, folder);
        Self::of(folder, entries.iter().map(|(name, kind)| (&**name, *kind)))
    }

    /// What these `entries` of a folder hold, which is named relative to its root.
    pub fn of<'a>(
        folder: &Path,
        entries: impl Iterator<Item = (&'a OsStr, FileType)> + Clone,
    ) -> Self {
        let has = |mark: &str| {
            let mut names = entries.clone();
            names.any(|(name, _)| name.eq_ignore_ascii_case(mark))
        };
        let is_repository = has("HEAD") && (has("commondir") || (has("objects") && has("refs")));
        let mut parts = BTreeMap::new();
        for (name, kind) in entries {
            // A command may make any folder look like a repository.
            let is_in = |names: &[&str]| names.iter().any(|other| name == *other);
            let is_skipped = is_in(&SKIPPED) || (is_repository && is_in(&WRITTEN_BY_GIT));
            let part = if name == ".git" && kind.is_dir() {
                Part::Repository
            } else if is_protected_in(folder, name) && !(kind.is_dir() && is_hook(name)) {
                Part::Protected
            } else if kind.is_dir() && !is_skipped {
                Part::Folder
            } else if FileType::is_socket(&kind) {
                Part::Socket
            } else {
                continue;
            };
            parts.insert(name.to_owned(), part);
        }
        Self {
            is_repository,
            parts,
        }
    }

    /// Whether there is more in it than folders that have to be searched.
    pub fn matters(&self) -> bool {
        self.is_repository || self.parts.values().any(|part| *part != Part::Folder)
    }

    /// Whether the folder is a worktree with a repository of its own.
    pub fn has_repository(&self) -> bool {
        self.parts.get(OsStr::new(".git")) == Some(&Part::Repository)
    }

    /// The folder to search for the part of this name, relative to this folder.
    pub fn inner(&self, name: &OsStr) -> Option<PathBuf> {
        match self.parts.get(name)? {
            Part::Folder => Some(name.into()),
            // The repositories of submodules are searched for like any other: commits have to work in them too.
            Part::Repository => Some(Path::new(name).join(MODULES)),
            Part::Protected | Part::Socket => None,
        }
    }

    /// The folders to search, relative to this folder.
    pub fn folders(&self) -> impl Iterator<Item = PathBuf> {
        self.parts.keys().filter_map(|name| self.inner(name))
    }
}

/// The inode of a folder, where the system has them.
fn inode(dir: &Dir, folder: &Path) -> Option<u64> {
    let found = dir.symlink_metadata(openable(folder)).ok()?;
    Some(Stamp::of(&found).inode).filter(|inode| *inode != 0)
}
