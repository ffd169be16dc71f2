//! Names files: [`Root`] is a directory capability, [`WorkspacePath`] a path below it, and there is no other way to
//! reach a file.
//!
//! A name is resolved by walking it, symlinks included, without ever leaving the roots. Opening uses the resolved path,
//! one component at a time, without following symlinks: if a component was swapped in the meantime, opening fails. A
//! decision about a path therefore applies to the file that is accessed.

mod copied;
mod meant;
mod spelling;

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata, OpenOptions};

pub(crate) use self::spelling::has_aliases;
use super::stamp::identity;
use super::{mode, native};

/// The number of symlinks Linux follows in one name.
const MAX_LINKS: usize = 40;
/// The longest path that Linux opens, in bytes.
const LONGEST: usize = 4096;

/// A workspace folder, opened once: it stays the same folder even if its name later points elsewhere.
#[derive(Debug)]
pub struct Root {
    path: PathBuf,
    real: PathBuf,
    dir: Dir,
    copied: Option<copied::Copied>,
}

impl Root {
    /// Opens the folder `path`, which may itself be reached through symlinks.
    ///
    /// # Errors
    /// It does not exist, is not a directory, or cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = native::plain(std::path::absolute(path)?);
        let real = native::canonical(&path)?;
        let dir = Dir::open_ambient_dir(&real, ambient_authority())?;
        super::disk::sweep(&dir);
        Ok(Self {
            path,
            real,
            dir,
            copied: None,
        })
    }

    /// The folder that the name refers to now, to inspect a command's changes: a different one if this was moved away, an
    /// empty one if the name no longer exists. A copy stays the same.
    pub fn as_named(self: &Arc<Self>) -> Arc<Self> {
        if self.copied.is_some() {
            return Arc::clone(self);
        }
        let is_there = std::fs::symlink_metadata(&self.real).is_ok_and(|found| found.is_dir());
        let dir = if is_there {
            Dir::open_ambient_dir(&self.real, ambient_authority())
        } else {
            // Removed once it is open.
            tempfile::tempdir()
                .and_then(|empty| Dir::open_ambient_dir(empty.path(), ambient_authority()))
        };
        let is_another = |dir: &Dir| {
            let identity = |dir: &Dir| Some(identity(&dir.dir_metadata().ok()?));
            identity(dir) != identity(&self.dir)
        };
        match dir {
            Ok(dir) if is_another(&dir) => Arc::new(Self {
                path: self.path.clone(),
                real: self.real.clone(),
                dir,
                copied: None,
            }),
            _ => Arc::clone(self),
        }
    }

    /// The folder as it was named, absolute.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder with symlinks resolved.
    pub fn real(&self) -> &Path {
        &self.real
    }

    /// The capability: opening below it cannot leave it.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Opens the regular file at `relative` for reading, without blocking and whatever its size. For searching.
    ///
    /// # Errors
    /// It does not exist, leads outside, or is not a regular file.
    pub fn open_file(&self, relative: &Path) -> io::Result<std::fs::File> {
        let file = self
            .dir
            .open_with(relative, OpenOptions::new().read(true).nonblock(true))?;
        if file.metadata()?.is_file() {
            return Ok(file.into_std());
        }
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ))
    }

    fn strip<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        let same = path
            .strip_prefix(&self.path)
            .or_else(|_| path.strip_prefix(&self.real))
            .ok();
        let folded = || {
            native::strip_folded(path, &self.path)
                .or_else(|| native::strip_folded(path, &self.real))
        };
        if cfg!(windows) {
            same.or_else(folded)
        } else {
            same
        }
    }
}

/// A file or folder inside a root, which may not exist yet. Only [`super::Workspace::resolve`] creates one.
#[derive(Debug, Clone)]
pub struct WorkspacePath {
    root: Arc<Root>,
    /// As named, relative to the root.
    relative: PathBuf,
    /// The root of the target, a different one if a symlink leads there.
    target_root: Arc<Root>,
    /// The path with symlinks resolved, relative to `target_root`.
    target: PathBuf,
}

impl WorkspacePath {
    /// The absolute path as a person knows it (below the root as it was named).
    pub fn absolute(&self) -> PathBuf {
        self.root.path.join(&self.relative)
    }

    /// The absolute path with symlinks resolved: the file's name in the system, and the key of its open document.
    pub fn real(&self) -> PathBuf {
        self.target_root.real.join(&self.target)
    }

    /// The absolute path with symlinks below its root resolved: changes of the file are shown under this name. They are
    /// recorded under its [`identity`](super::Workspace::identity).
    pub fn recorded(&self) -> PathBuf {
        self.target_root.path.join(&self.target)
    }

    /// The path relative to its root, for people and models; `.` for the root itself.
    pub fn display(&self) -> String {
        shown(&self.relative)
    }

    /// The path with symlinks resolved, relative to the target's root; shown in a permission request.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// The root it was named in.
    pub fn root(&self) -> &Arc<Root> {
        &self.root
    }

    /// Whether writing here could make something run later or change an agent's rules. Requires approval in every mode.
    pub fn is_protected(&self) -> bool {
        super::protect::is_protected(&self.target) || super::protect::is_protected(&self.relative)
    }

    /// Whether it probably holds a secret: reading requires approval, searching skips it.
    pub fn is_secret(&self) -> bool {
        super::protect::is_secret(&self.target) || super::protect::is_secret(&self.relative)
    }

    /// How many other names (hard links) the file has, if the system reports that.
    pub fn other_names(&self) -> u64 {
        let file = self.found().ok().filter(Metadata::is_file);
        file.map_or(0, |file| {
            cap_fs_ext::MetadataExt::nlink(&file).saturating_sub(1)
        })
    }

    fn found(&self) -> io::Result<Metadata> {
        let target = native::openable(&self.target);
        self.target_root.dir.symlink_metadata(target)
    }

    /// Whether anything exists there.
    pub fn exists(&self) -> bool {
        self.found().is_ok()
    }

    /// Whether its parent folder exists.
    fn has_folder(&self) -> bool {
        let folder = native::openable(self.target.parent().unwrap_or(&self.target));
        let found = self.target_root.dir.metadata(folder);
        found.is_ok_and(|found| found.is_dir())
    }

    /// Whether it is directly in its root.
    fn is_at_top(&self) -> bool {
        self.target.components().count() < 2
    }

    /// Its permission bits, if it exists.
    pub fn mode(&self) -> Option<u32> {
        self.found().ok().map(|found| mode::of(&found))
    }

    /// How many of the folders it is in do not exist.
    pub(crate) fn missing_folders(&self) -> usize {
        let is_missing = |folder: &&Path| self.target_root.dir.symlink_metadata(folder).is_err();
        self.folders().take_while(is_missing).count()
    }

    /// Removes up to `count` of the folders it is in, the innermost first, until one is not empty.
    pub(crate) fn remove_folders(&self, count: usize) {
        let is_removed = |folder: &&Path| self.target_root.dir.remove_dir(folder).is_ok();
        let _rest_is_in_use = self.folders().take(count).take_while(is_removed).count();
    }

    /// The folders it is in, the innermost first, without its root.
    fn folders(&self) -> impl Iterator<Item = &Path> {
        self.target
            .ancestors()
            .skip(1)
            .filter(|folder| !folder.as_os_str().is_empty())
    }

    /// The target of the symbolic link at this path.
    ///
    /// # Errors
    /// It is not a symbolic link.
    pub fn link(&self) -> io::Result<PathBuf> {
        let (dir, name) = self.parent()?;
        dir.read_link_contents(name)
    }

    /// Removes the symbolic link at this path; returns its target.
    ///
    /// # Errors
    /// It is not a symbolic link, or the system refuses.
    pub fn remove_link(&self) -> io::Result<PathBuf> {
        let target = self.link()?;
        let (dir, name) = self.parent()?;
        dir.remove_file(name)?;
        Ok(target)
    }

    /// Moves the symbolic link at this path to a path that does not exist; returns its target.
    ///
    /// # Errors
    /// It is not a symbolic link, something is at `to`, or the system refuses.
    pub fn move_link(&self, to: &Self) -> io::Result<PathBuf> {
        let target = self.link()?;
        if to.exists() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let ((from, name), (folder, new_name)) = (self.parent()?, to.make_parent()?);
        from.rename(name, &folder, new_name)?;
        Ok(target)
    }

    /// When the file was last written, if known.
    pub(crate) fn written(&self) -> Option<SystemTime> {
        Some(self.found().ok()?.modified().ok()?.into_std())
    }

    /// Its parent folder, opened without following symlinks, and its name there.
    pub(crate) fn parent(&self) -> io::Result<(Dir, &OsStr)> {
        self.walk(|dir, name| dir.open_dir_nofollow(name))
    }

    /// [`Self::parent`], creating missing folders.
    pub(crate) fn make_parent(&self) -> io::Result<(Dir, &OsStr)> {
        self.walk(|dir, name| match dir.open_dir_nofollow(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                dir.create_dir(name)?;
                dir.open_dir_nofollow(name)
            }
            opened => opened,
        })
    }

    fn walk(&self, enter: impl Fn(&Dir, &Path) -> io::Result<Dir>) -> io::Result<(Dir, &OsStr)> {
        let name = self.target.file_name().ok_or(io::ErrorKind::IsADirectory)?;
        let mut dir = self.target_root.dir.try_clone()?;
        for part in self.target.parent().into_iter().flat_map(Path::components) {
            dir = enter(&dir, Path::new(part.as_os_str()))?;
        }
        Ok((dir, name))
    }
}

/// Opens `name` in `dir` for reading, without blocking or following symlinks.
pub(crate) fn open_here(dir: &Dir, name: &OsStr) -> io::Result<cap_std::fs::File> {
    dir.open_with(
        name,
        OpenOptions::new()
            .read(true)
            .follow(FollowSymlinks::No)
            .nonblock(true),
    )
}

fn shown(relative: &Path) -> String {
    if relative.as_os_str().is_empty() {
        ".".to_owned()
    } else {
        native::shown(relative)
    }
}

/// Why a name is not a file of the workspace, worded for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The name is empty.
    #[error("the path is empty; name a file relative to the workspace directory")]
    Empty,
    /// The name contains a NUL character.
    #[error("the path {0:?} contains a NUL character")]
    Nul(String),
    /// The name is longer than any path.
    #[error(
        "the path has {0} bytes, which is too long; name a file relative to the workspace directory"
    )]
    TooLong(usize),
    /// The name uses backslashes for folders.
    #[error("the path {0:?} uses backslashes and no such file exists; use / between directories")]
    Backslash(String),
    /// The path is outside every root, or leads there.
    #[error("{path} is outside the workspace; only files in {roots} can be reached{hint}")]
    Outside {
        /// The name.
        path: String,
        /// The workspace folders.
        roots: String,
        /// `. Did you mean …?`, or nothing.
        hint: String,
    },
    /// The path could not be resolved.
    #[error("cannot follow {path}: {reason}")]
    Unresolvable {
        /// The name.
        path: String,
        /// The system's message.
        reason: String,
    },
}

/// The path in `roots` for `name`: relative to the first, absolute in any, a `file:` URI, or a close spelling
/// ([`meant`]).
pub(super) fn resolve(roots: &[Arc<Root>], name: &str) -> Result<WorkspacePath, PathError> {
    // Looking for it would take a time that grows with the square of its length.
    if name.len() > LONGEST {
        return Err(PathError::TooLong(name.len()));
    }
    let trimmed = name.trim();
    if !trimmed.starts_with("file:") {
        return meant::resolve(roots, name);
    }
    let exact = native::file_of(trimmed)
        .ok_or_else(|| outside(roots, Path::new(name)))
        .and_then(|path| resolve_path(roots, &path));
    exact.or_else(|error| {
        meant::resolve(roots, name)
            .ok()
            .filter(WorkspacePath::exists)
            .ok_or(error)
    })
}

/// The symbolic link called `name`, itself; `None` if something else is there.
pub(super) fn resolve_link(roots: &[Arc<Root>], name: &str) -> Option<WorkspacePath> {
    let name = Some(name).filter(|name| name.len() <= LONGEST)?;
    let path = walked(roots, Path::new(name), true).ok()?;
    path.link().is_ok().then_some(path)
}

/// [`resolve`] for a path in the system's encoding.
pub(crate) fn resolve_path(roots: &[Arc<Root>], path: &Path) -> Result<WorkspacePath, PathError> {
    walked(roots, path, false)
}

/// If it `ends_at_link`, a link in the last component is not followed.
fn walked(
    roots: &[Arc<Root>],
    path: &Path,
    ends_at_link: bool,
) -> Result<WorkspacePath, PathError> {
    let bytes = path.as_os_str().as_encoded_bytes();
    if bytes.trim_ascii().is_empty() {
        return Err(PathError::Empty);
    }
    if bytes.contains(&0) {
        return Err(PathError::Nul(path.display().to_string()));
    }
    let (root, relative) = place(roots, path).ok_or_else(|| outside(roots, path))?;
    let walk = |relative: &Path| {
        let mut walk = Walk {
            roots,
            named: path,
            root: Arc::clone(root),
            target: PathBuf::new(),
            links: 0,
            is_missing: false,
            ends_at_link,
        };
        walk.run(relative).map(|()| walk)
    };
    let walked = walk(relative)?;
    // `link/..` is not the folder that the link is in.
    let goes_up = relative
        .components()
        .any(|part| part == Component::ParentDir);
    let leads_there = |tidied: &PathBuf| {
        walk(tidied).is_ok_and(|again| {
            again.target == walked.target && Arc::ptr_eq(&again.root, &walked.root)
        })
    };
    let tidied = tidy(relative).filter(|tidied| !goes_up || leads_there(tidied));
    let (root, relative) = match tidied {
        Some(relative) => (root.clone(), relative),
        None => (walked.root.clone(), walked.target.clone()),
    };
    Ok(WorkspacePath {
        root,
        relative,
        target_root: walked.root,
        target: walked.target,
    })
}

/// The root that contains `path` and the path below it; the innermost one if roots are nested.
pub(super) fn place<'a>(
    roots: &'a [Arc<Root>],
    path: &'a Path,
) -> Option<(&'a Arc<Root>, &'a Path)> {
    if path.has_root() || matches!(path.components().next(), Some(Component::Prefix(_))) {
        let inside = roots
            .iter()
            .filter_map(|root| Some((root, root.strip(path)?)));
        return inside.min_by_key(|(_, relative)| relative.components().count());
    }
    roots.first().map(|root| (root, path))
}

fn outside(roots: &[Arc<Root>], path: &Path) -> PathError {
    let roots: Vec<_> = roots.iter().map(|root| native::shown(&root.path)).collect();
    PathError::Outside {
        path: native::shown(path),
        roots: roots.join(", "),
        hint: String::new(),
    }
}

/// `relative` without `.` and `..`; `None` if it leads outside.
fn tidy(relative: &Path) -> Option<PathBuf> {
    let mut tidy = PathBuf::new();
    for part in relative.components() {
        match part {
            Component::Normal(name) => tidy.push(name),
            Component::CurDir => {}
            Component::ParentDir if tidy.pop() => {}
            _ => return None,
        }
    }
    Some(tidy)
}

/// Resolves a name through the roots.
struct Walk<'a> {
    roots: &'a [Arc<Root>],
    named: &'a Path,
    root: Arc<Root>,
    /// Free of symlinks.
    target: PathBuf,
    links: usize,
    /// Whether nothing is there, and nothing below it.
    is_missing: bool,
    ends_at_link: bool,
}

impl Walk<'_> {
    fn run(&mut self, relative: &Path) -> Result<(), PathError> {
        let mut ahead: VecDeque<OsString> = parts(relative);
        while let Some(name) = ahead.pop_front() {
            match name.as_encoded_bytes() {
                b"." => {}
                b".." if self.target.pop() => self.is_missing = false,
                b".." => return Err(outside(self.roots, self.named)),
                _ => {
                    self.refuse_special_name(&name)?;
                    if self.is_missing {
                        self.target.push(name);
                        continue;
                    }
                    self.target.push(self.root.spelling(&self.target, name));
                    if self.ends_at_link && ahead.is_empty() {
                        continue;
                    }
                    if let Some(link) = self.link()? {
                        self.target.pop();
                        let mut through = self.enter(&link)?;
                        through.append(&mut ahead);
                        ahead = through;
                    }
                }
            }
        }
        Ok(())
    }

    /// On Windows a colon names a stream of a file, or a drive, and some names are those of devices.
    fn refuse_special_name(&self, name: &OsStr) -> Result<(), PathError> {
        if cfg!(unix) {
            return Ok(());
        }
        if name.as_encoded_bytes().contains(&b':') {
            return Err(outside(self.roots, self.named));
        }
        let reason = name.to_str().and_then(native::reserved);
        let failed = |reason: &str| PathError::Unresolvable {
            path: native::shown(self.named),
            reason: reason.to_owned(),
        };
        reason.map_or(Ok(()), |reason| Err(failed(reason)))
    }

    /// The target of the symlink at `target`, if it is one.
    fn link(&mut self) -> Result<Option<PathBuf>, PathError> {
        match self.root.dir.symlink_metadata(&self.target) {
            Ok(found) if found.is_symlink() => {}
            // If it does not exist or cannot be examined, whoever opens it reports that.
            found => {
                self.is_missing = found.is_err();
                return Ok(None);
            }
        }
        self.links += 1;
        let link = match self.links {
            ..=MAX_LINKS => self
                .root
                .dir
                .read_link_contents(&self.target)
                .map_err(|error| error.to_string()),
            _ => Err("too many symbolic links".to_owned()),
        };
        link.map(Some).map_err(|reason| PathError::Unresolvable {
            path: self.named.display().to_string(),
            reason,
        })
    }

    /// The components a symlink adds, after moving to where it starts.
    fn enter(&mut self, link: &Path) -> Result<VecDeque<OsString>, PathError> {
        if !link.has_root() {
            return Ok(parts(link));
        }
        let (root, relative) =
            place(self.roots, link).ok_or_else(|| outside(self.roots, self.named))?;
        self.root = root.clone();
        self.target.clear();
        Ok(parts(relative))
    }
}

fn parts(path: &Path) -> VecDeque<OsString> {
    path.components()
        .map(|part| part.as_os_str().to_owned())
        .collect()
}
