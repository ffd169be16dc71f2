//! The protected files in and below a folder, and their content.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use cap_fs_ext::FileTypeExt as _;
use cap_std::fs::{Dir, DirEntry, FileType};

use super::git;
use crate::workspace::content;
use crate::workspace::protect::{is_protected, is_protected_in};
use crate::workspace::stamp::{self, Stamp};

/// At most this many folders are searched, the upper ones first.
const FOLDERS: usize = 1500;
/// Files up to this size are stored in full, up to [`BYTES`] in total; of others only a change is noticed.
const FILE: u64 = 256 << 10;
const BYTES: u64 = 8 << 20;
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

/// The protected files of a root.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// Everything protected, by its path from the root.
    kept: BTreeMap<PathBuf, Kept>,
    /// The topmost protected files and folders.
    pub units: BTreeSet<PathBuf>,
    /// The folders of git repositories (`.git`, or a bare one), with their inodes where the system has them.
    pub repositories: BTreeMap<PathBuf, Option<u64>>,
    /// Sockets.
    pub sockets: BTreeSet<PathBuf>,
    /// The folders that were searched.
    listed: BTreeMap<PathBuf, Arc<Searched>>,
    incomplete: bool,
    bytes: u64,
}

/// A folder that was searched.
#[derive(Debug)]
struct Searched {
    stamp: Option<Stamp>,
    /// Whether what is in it was still the same then.
    is_settled: bool,
    holds: Holds,
}

/// What in a folder matters.
#[derive(Debug)]
enum Holds {
    /// It is a repository's own folder.
    Repository,
    Entries(Vec<(OsString, Part)>),
}

#[derive(Debug)]
enum Part {
    Repository,
    Protected,
    Folder,
    Socket,
}

/// A protected thing.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kept {
    File { content: Content, executable: bool },
    Link(PathBuf),
    Folder,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content {
    Whole(Vec<u8>),
    /// Too large to store: its size and modification time.
    Mark(u64, Option<cap_std::time::SystemTime>),
}

impl Survey {
    /// Surveys everything below `dir`, breadth first. Folders that have not changed since an `earlier` survey are not
    /// searched again.
    pub fn of(dir: &Dir, earlier: Option<&Self>) -> Self {
        let mut survey = Self::default();
        let (begun, dependable) = (SystemTime::now(), stamp::dependable(dir));
        let mut ahead = VecDeque::from([PathBuf::new()]);
        while let Some(folder) = ahead.pop_front() {
            if survey.listed.len() == FOLDERS {
                survey.incomplete = true;
                break;
            }
            let found = dir.symlink_metadata(name(&folder)).ok();
            let stamp = found.as_ref().map(Stamp::of);
            let known = earlier.and_then(|earlier| earlier.listed.get(&folder));
            let searched = known
                .filter(|known| known.is_settled && known.stamp == stamp)
                .cloned();
            let searched = searched.unwrap_or_else(|| {
                let is_settled =
                    |stamp: &Stamp| stamp.is_on(dependable) && stamp.is_older_than(begun);
                let is_settled = stamp.as_ref().is_some_and(is_settled);
                Arc::new(Searched {
                    stamp,
                    is_settled,
                    holds: Holds::search(dir, &folder),
                })
            });
            survey.add(dir, folder, searched, &mut ahead);
        }
        survey
    }

    fn add(
        &mut self,
        dir: &Dir,
        folder: PathBuf,
        searched: Arc<Searched>,
        ahead: &mut VecDeque<PathBuf>,
    ) {
        let entries = match &searched.holds {
            Holds::Repository => return self.repository(dir, &folder, ahead),
            Holds::Entries(entries) => entries,
        };
        for (name, part) in entries {
            let path = folder.join(name);
            match part {
                Part::Repository => self.repository(dir, &path, ahead),
                Part::Protected => self.unit(dir, path),
                Part::Folder => ahead.push_back(path),
                Part::Socket => _ = self.sockets.insert(path),
            }
        }
        self.listed.insert(folder, searched);
    }

    /// Only the parts of a repository that make git run something are protected: commits have to work.
    fn repository(&mut self, dir: &Dir, path: &Path, ahead: &mut VecDeque<PathBuf>) {
        for part in git::PARTS {
            let part = path.join(part);
            if dir.symlink_metadata(&part).is_ok() {
                self.unit(dir, part);
            }
        }
        if dir.symlink_metadata(path.join("modules")).is_ok() {
            ahead.push_back(path.join("modules"));
        }
        let inode = dir
            .symlink_metadata(name(path))
            .map(|found| Stamp::of(&found).inode);
        self.repositories
            .insert(path.to_owned(), inode.ok().filter(|inode| *inode != 0));
    }

    fn unit(&mut self, dir: &Dir, path: PathBuf) {
        self.keep(dir, path.clone());
        self.units.insert(path);
    }

    fn keep(&mut self, dir: &Dir, path: PathBuf) {
        // What cannot be examined counts as absent: it cannot be changed either.
        let Ok(kept) = Kept::read(dir, &path, BYTES - self.bytes) else {
            return;
        };
        match &kept {
            Kept::File {
                content: Content::Whole(content),
                ..
            } => self.bytes += content.len() as u64,
            Kept::Folder => {
                for entry in entries(dir, &path) {
                    self.keep(dir, path.join(entry.file_name()));
                }
            }
            _ => {}
        }
        self.kept.insert(path, kept);
    }

    /// The topmost paths of `after` that are new; of a folder that `is_shared`, what is new in it.
    pub fn added<'a>(&self, after: &'a Self, is_shared: &dyn Fn(&Path) -> bool) -> Vec<&'a Path> {
        let is_new = |path: &Path| after.kept.contains_key(path) && !self.kept.contains_key(path);
        let mut added: Vec<&Path> = Vec::new();
        for (path, kept) in &after.kept {
            let known = !is_new(path) || added.last().is_some_and(|above| path.starts_with(above));
            let was_looked_at = !self.incomplete
                || path
                    .ancestors()
                    .skip(1)
                    .find(|above| !is_new(above))
                    .is_some_and(|above| self.listed.contains_key(above));
            let is_left = *kept == Kept::Folder && is_shared(path);
            if !known && was_looked_at && !is_left && !after.is_inert(path, kept) {
                added.push(path);
            }
        }
        added
    }

    /// The protected files that differ in `after`.
    pub fn changed<'a>(&'a self, after: &'a Self) -> impl Iterator<Item = (&'a Path, &'a Kept)> {
        let lost = |path: &Path| !after.incomplete || after.kept.contains_key(path);
        self.kept
            .iter()
            .filter(move |(path, kept)| after.kept.get(*path) != Some(*kept) && lost(path))
            .map(|(path, kept)| (path.as_path(), kept))
    }

    /// Whether a sandbox that pinned every unit protected `path` from the command: its unit existed, and is still in
    /// the same folders. A change came from outside.
    pub fn is_shielded(&self, path: &Path, after: &Self) -> bool {
        let Some(unit) = path.ancestors().find(|above| self.units.contains(*above)) else {
            return false;
        };
        // A link cannot be pinned.
        let is_link = matches!(self.kept.get(unit), None | Some(Kept::Link(_)));
        let is_same =
            |folder: &Path| self.repositories.contains_key(folder) || self.has_same(folder, after);
        !is_link && unit.ancestors().skip(1).all(is_same)
    }

    /// Whether the searched folder is still where it was.
    fn has_same(&self, folder: &Path, after: &Self) -> bool {
        let inode = |survey: &Self| Some(survey.listed.get(folder)?.stamp.as_ref()?.inode);
        inode(self).is_some() && inode(self) == inode(after)
    }

    /// The repositories that were moved out of a folder that is still there: their paths, and where they are now.
    pub fn moved<'a>(&'a self, after: &'a Self) -> impl Iterator<Item = (&'a Path, &'a Path)> {
        let gone = self.repositories.iter().filter(|(path, inode)| {
            let stays = path
                .parent()
                .is_some_and(|folder| self.has_same(folder, after));
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
    fn is_inert(&self, path: &Path, kept: &Kept) -> bool {
        if !path
            .ancestors()
            .any(|above| self.repositories.contains_key(above))
        {
            return false;
        }
        match kept {
            Kept::Folder => true,
            Kept::Link(_) => false,
            Kept::File { content, .. } => match content {
                Content::Whole(content) => git::is_inert(path, content),
                Content::Mark(..) => false,
            },
        }
    }
}

#[cfg(test)]
impl Survey {
    /// Whether the next survey searches no folder again that has not changed.
    pub fn is_settled(&self) -> bool {
        self.listed.values().all(|searched| searched.is_settled)
    }
}

impl Holds {
    fn search(dir: &Dir, folder: &Path) -> Self {
        let entries: Vec<(OsString, DirEntry)> = entries(dir, folder)
            .into_iter()
            .map(|entry| (entry.file_name(), entry))
            .collect();
        let has = |name: &str| entries.iter().any(|(its, _)| its == name);
        if git::MARKS.iter().all(|name| has(name)) {
            return Self::Repository;
        }
        // The repositories of submodules are searched for like any other: commits have to work in them too.
        let is_of_modules = folder.iter().any(|part| part == "modules");
        let is_all_protected = is_protected(folder) && !is_of_modules;
        let part = |(name, entry): (OsString, DirEntry)| {
            let kind = entry.file_type().ok()?;
            let part = if name == ".git" && kind.is_dir() {
                Part::Repository
            } else if is_all_protected || is_protected_in(folder, &name) {
                Part::Protected
            } else if kind.is_dir() && !SKIPPED.iter().any(|skipped| name == *skipped) {
                Part::Folder
            } else if FileType::is_socket(&kind) {
                Part::Socket
            } else {
                return None;
            };
            Some((name, part))
        };
        Self::Entries(entries.into_iter().filter_map(part).collect())
    }
}

impl Kept {
    fn read(dir: &Dir, path: &Path, room: u64) -> io::Result<Self> {
        let found = dir.symlink_metadata(path)?;
        if found.is_dir() {
            return Ok(Self::Folder);
        }
        if found.is_symlink() {
            return Ok(Self::Link(dir.read_link_contents(path)?));
        }
        let content = if found.is_file() && found.len() <= FILE.min(room) {
            Content::Whole(dir.read(path)?)
        } else {
            Content::Mark(found.len(), found.modified().ok())
        };
        Ok(Self::File {
            content,
            executable: is_executable(&found),
        })
    }

    /// A file with this `text`, stored like the one before.
    pub fn text(text: &str, before: Option<&Self>) -> Self {
        let (format, executable) = match before {
            Some(Self::File {
                content: Content::Whole(bytes),
                executable,
            }) => {
                let known = content::decode(bytes.clone());
                let format = known.map(|(_, format)| format);
                (format.unwrap_or_default(), *executable)
            }
            _ => (content::Format::default(), false),
        };
        let encoded = format.encode(text);
        let bytes = encoded.unwrap_or_else(|_no_such_character| text.as_bytes().into());
        Self::File {
            content: Content::Whole(bytes.into_owned()),
            executable,
        }
    }

    /// Restores it.
    pub fn write(&self, dir: &Dir, path: &Path) -> io::Result<()> {
        match self {
            Self::Folder => dir.create_dir_all(path),
            #[cfg(unix)]
            Self::Link(target) => dir.symlink_contents(target, path),
            Self::File {
                content: Content::Whole(content),
                executable,
            } => {
                dir.write(path, content)?;
                set_executable(dir, path, *executable)
            }
            _ => Err(io::Error::other("it was too large to store")),
        }
    }
}

#[cfg(unix)]
fn is_executable(found: &cap_std::fs::Metadata) -> bool {
    use cap_std::fs::PermissionsExt as _;
    found.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_found: &cap_std::fs::Metadata) -> bool {
    false
}

#[cfg(unix)]
fn set_executable(dir: &Dir, path: &Path, executable: bool) -> io::Result<()> {
    use cap_std::fs::PermissionsExt as _;
    let mode = if executable { 0o755 } else { 0o644 };
    dir.set_permissions(path, cap_std::fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn set_executable(_dir: &Dir, _path: &Path, _executable: bool) -> io::Result<()> {
    Ok(())
}

/// The entries of a folder; empty if it cannot be read.
fn entries(dir: &Dir, folder: &Path) -> Vec<DirEntry> {
    dir.read_dir(name(folder))
        .into_iter()
        .flatten()
        .flatten()
        .collect()
}

/// The name by which a root can open `folder`.
fn name(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    }
}
