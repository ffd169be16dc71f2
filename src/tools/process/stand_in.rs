//! Unsaved text that a command reads in place of the file on disk.
//!
//! The text is in a file of its own in the session's scratch folder, mounted over the real one.
//!
//! What the command writes there becomes an edit of the open document; the real file keeps its content and time until
//! the person saves.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::workspace::{FileChange, FileError, Unsaved, Workspace, blocking};

/// A file that stands in for an unsaved document.
#[derive(Debug)]
pub(crate) struct StandIn {
    unsaved: Unsaved,
    file: NamedTempFile,
}

impl StandIn {
    /// Writes the text of `unsaved` to a new file in `folder`.
    pub fn new(unsaved: Unsaved, folder: &Path) -> io::Result<Self> {
        let mut file = NamedTempFile::new_in(folder)?;
        file.write_all(&unsaved.bytes)?;
        let real = unsaved.path.real();
        file.as_file().set_permissions(real.metadata()?.permissions())?;
        Ok(Self { unsaved, file })
    }

    /// The file with the text.
    pub fn source(&self) -> &Path {
        self.file.path()
    }

    /// The file it is mounted over, without symlinks.
    #[cfg(target_os = "linux")]
    pub fn target(&self) -> PathBuf {
        self.unsaved.path.real()
    }

    /// The file's name for people.
    pub fn display(&self) -> String {
        self.unsaved.path.display()
    }

    /// Whether a command must not change it.
    pub fn is_protected(&self) -> bool {
        self.unsaved.path.is_protected()
    }

    /// Applies the command's changes as an edit of the document; `None` if there are none.
    ///
    /// # Errors
    /// The result is not text, or conflicts with what was typed meanwhile. The document is unchanged then.
    pub async fn take_over(&self, workspace: &Workspace) -> Option<(PathBuf, Result<FileChange, FileError>)> {
        let path = self.source().to_owned();
        let bytes = blocking(move || std::fs::read(path)).await.ok()?;
        if bytes == self.unsaved.bytes || self.is_protected() {
            return None;
        }
        Some((self.unsaved.path.absolute(), workspace.take_over(&self.unsaved, bytes).await))
    }
}
