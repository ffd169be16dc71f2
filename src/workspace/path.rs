//! Naming files: [`Root`] is a directory capability, [`WorkspacePath`] a file under it, and there is no other way to
//! reach one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;

/// A workspace folder, opened once: if its name is made to point elsewhere later, this one stays.
#[derive(Debug)]
pub struct Root {
    path: PathBuf,
    real: PathBuf,
    dir: Dir,
}

impl Root {
    /// Opens the folder `path`, which may itself be reached through symlinks.
    ///
    /// # Errors
    /// When it is not there, no directory, or may not be opened.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        let path = std::path::absolute(path)?;
        let real = path.canonicalize()?;
        let dir = Dir::open_ambient_dir(&real, ambient_authority())?;
        Ok(Self { path, real, dir })
    }

    /// The folder as it was named, absolute.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder with symlinks resolved.
    #[must_use]
    pub fn real(&self) -> &Path {
        &self.real
    }

    /// The capability: opens below it cannot leave it.
    #[must_use]
    pub fn dir(&self) -> &Dir {
        &self.dir
    }
}

/// A file or folder inside a root; it need not exist yet. Only [`super::Workspace::resolve`] makes one.
#[derive(Debug, Clone)]
pub struct WorkspacePath {
    pub(super) root: Arc<Root>,
    /// As named, relative to the root, without `.` and `..`.
    pub(super) relative: PathBuf,
    /// What it names once symlinks are followed, relative to the root.
    pub(super) target: PathBuf,
}

impl WorkspacePath {
    /// Absolute, as a person knows it (below the root as it was named).
    #[must_use]
    pub fn absolute(&self) -> PathBuf {
        self.root.path.join(&self.relative)
    }

    /// Relative to its root, for people and models; `.` for the root itself.
    #[must_use]
    pub fn display(&self) -> String {
        if self.relative.as_os_str().is_empty() { ".".to_owned() } else { self.relative.display().to_string() }
    }

    /// What it names once symlinks are followed, relative to its root.
    #[must_use]
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// The root it is under.
    #[must_use]
    pub fn root(&self) -> &Arc<Root> {
        &self.root
    }

    /// Whether writing here could make something run later or change an agent's rules: asks in every mode.
    #[must_use]
    pub fn is_protected(&self) -> bool {
        super::protect::is_protected(&self.target) || super::protect::is_protected(&self.relative)
    }

    /// Whether it is likely to hold a secret: reading asks, searching skips.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        super::protect::is_secret(&self.target) || super::protect::is_secret(&self.relative)
    }
}

/// Why a name does not name a file of the workspace, in words for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// Nothing was named.
    #[error("the path is empty; name a file relative to the workspace folder")]
    Empty,
    /// It holds a NUL character.
    #[error("the path {0:?} holds a NUL character")]
    Nul(String),
    /// It is outside every root, or leads there.
    #[error("{0} is outside the workspace; only files below {1} can be reached")]
    Outside(String, String),
    /// It could not be looked at.
    #[error("cannot look at {0}: {1}")]
    Io(String, String),
}

impl Root {
    /// Opens the regular file at `relative` for reading. For searching; it may hold anything and be of any size.
    ///
    /// # Errors
    /// When there is none, it leads outside, or it is no regular file.
    pub fn open_file(&self, relative: &Path) -> std::io::Result<std::fs::File> {
        Ok(self.dir.open(relative)?.into_std())
    }
}

impl WorkspacePath {
    /// Absolute with symlinks resolved: what names the file in the system, and finds its open document.
    #[must_use]
    pub fn real(&self) -> PathBuf {
        self.root.real.join(&self.target)
    }
}

pub(super) fn resolve(roots: &[Arc<Root>], name: &str) -> Result<WorkspacePath, PathError> {
    resolve_path(roots, Path::new(name))
}

pub(super) fn resolve_path(roots: &[Arc<Root>], path: &Path) -> Result<WorkspacePath, PathError> {
    let outside = || PathError::Outside(path.display().to_string(), String::new());
    let root = roots.first().ok_or_else(outside)?;
    let relative = path.strip_prefix(&root.path).unwrap_or(path);
    if relative.is_absolute() {
        return Err(outside());
    }
    Ok(WorkspacePath { root: root.clone(), relative: relative.to_owned(), target: relative.to_owned() })
}
