//! The root of a copy: the name of the folder it is a copy of, and a capability for the copy.
//!
//! Every tool opens through the capability and shows the name, so a copy is read and changed under the names of the
//! original. Only what starts programs has to know where the copy is.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use super::{Root, WorkspacePath};

/// What a root is a copy of.
#[derive(Debug)]
pub(super) struct Copied {
    place: PathBuf,
    original: Arc<Root>,
    lent: Vec<PathBuf>,
}

impl Root {
    /// The copy of `original` in the folder `place`. What is `lent`, by absolute path, is not in the copy: commands may
    /// read it in the original.
    pub(in crate::workspace) fn copied(
        original: &Arc<Self>,
        place: PathBuf,
        lent: Vec<PathBuf>,
    ) -> io::Result<Self> {
        let dir = Dir::open_ambient_dir(&place, ambient_authority())?;
        let (path, real, original) = (
            original.path.clone(),
            original.real.clone(),
            Arc::clone(original),
        );
        Ok(Self {
            path,
            real,
            dir,
            copied: Some(Copied {
                place,
                original,
                lent,
            }),
        })
    }

    /// Where its files are on the disk.
    pub fn place(&self) -> &Path {
        self.copied
            .as_ref()
            .map_or(&self.real, |copied| &copied.place)
    }

    /// The root it is a copy of.
    pub fn original(&self) -> Option<&Arc<Self>> {
        self.copied.as_ref().map(|copied| &copied.original)
    }

    /// Paths of the original, absolute, that commands in the copy may read.
    pub fn lent(&self) -> &[PathBuf] {
        self.copied.as_ref().map_or(&[], |copied| &copied.lent)
    }
}

impl WorkspacePath {
    /// Where the file is on the disk.
    pub fn place(&self) -> PathBuf {
        self.target_root.place().join(&self.target)
    }

    /// Whether it is a regular file.
    pub fn is_file(&self) -> bool {
        self.found().is_ok_and(|found| found.is_file())
    }

    /// Whether it is a folder.
    pub fn is_folder(&self) -> bool {
        self.found().is_ok_and(|found| found.is_dir())
    }
}
