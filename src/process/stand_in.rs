//! Unsaved text that a command reads in place of the file on disk.
//!
//! The text is in a file of its own in the session's scratch folder, mounted over the real one.
//!
//! What the command writes there, or puts in the place of the file, becomes an edit of the open document; the real file
//! keeps its content and time until the person saves.

use std::fs::Permissions;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

use tempfile::NamedTempFile;

use crate::domain::FileDiff;
use crate::workspace::{Covered, Fate};
use crate::workspace::{FileChange, Unsaved, Workspace, blocking};

/// A file that stands in for an unsaved document.
#[derive(Debug)]
pub(crate) struct StandIn {
    unsaved: Unsaved,
    file: NamedTempFile,
    permissions: Permissions,
    /// The file it covers; `None` if a command cannot replace, move or remove it.
    covered: Option<Arc<Covered>>,
}

/// What became of an open document that a command wrote to.
#[derive(Debug, Default)]
pub(crate) struct TakenOver {
    /// The edit of the document.
    pub diff: Option<FileDiff>,
    /// What the editor or the disk lacks, and why.
    pub note: Option<String>,
}

impl StandIn {
    /// Writes the text of `unsaved` to a new file in `folder`. If it `is_fixed`, a command can only write to it.
    pub fn new(
        workspace: &Workspace,
        unsaved: Unsaved,
        folder: &Path,
        is_fixed: bool,
    ) -> io::Result<Self> {
        let mut file = NamedTempFile::new_in(folder)?;
        file.write_all(&unsaved.bytes)?;
        let permissions = unsaved.path.real().metadata()?.permissions();
        file.as_file().set_permissions(permissions.clone())?;
        let is_fixed = is_fixed || unsaved.path.is_protected();
        let covered = (!is_fixed)
            .then(|| Covered::new(workspace, &unsaved.path))
            .transpose();
        Ok(Self {
            unsaved,
            file,
            permissions,
            covered: covered.map_err(io::Error::other)?.map(Arc::new),
        })
    }

    /// The file with the text.
    pub fn source(&self) -> &Path {
        self.file.path()
    }

    /// The file it is mounted over, without symlinks.
    #[cfg(target_os = "linux")]
    pub fn target(&self) -> std::path::PathBuf {
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

    /// Whether a command cannot replace, move or remove it.
    pub fn is_fixed(&self) -> bool {
        self.covered.is_none()
    }

    /// Applies the command's changes as an edit of the document; what was typed meanwhile stays.
    pub async fn take_over(&self, workspace: &Workspace) -> TakenOver {
        let path = self.source().to_owned();
        let Ok(written) = blocking(move || std::fs::read(path)).await else {
            return TakenOver::default();
        };
        let Some(covered) = self.covered.clone() else {
            return self.edit(workspace, written).await;
        };
        let name = self.display();
        match self.fate(&covered).await {
            Fate::Same => self.edit(workspace, written).await,
            Fate::Removed => TakenOver::default(),
            Fate::Moved(to) => {
                let followed = blocking(move || covered.follow(&to, &written)).await;
                let note = followed
                    .err()
                    .map(|error| format!("the unsaved text of {name} was not moved: {error}"));
                TakenOver { note, diff: None }
            }
            Fate::Replaced(replaced) => {
                let taken = self.edit(workspace, replaced.bytes.clone()).await;
                if taken.note.is_some() {
                    return TakenOver {
                        note: Some(format!("the command's version of {name} is on disk")),
                        ..taken
                    };
                }
                let restored = blocking(move || covered.restore(&replaced)).await;
                let note = restored
                    .err()
                    .map(|error| format!("{name} was not restored on the disk: {error}"));
                TakenOver { note, ..taken }
            }
        }
    }

    /// What the command did to the file; other permissions of the text become the file's.
    async fn fate(&self, covered: &Arc<Covered>) -> Fate {
        let (covered, path, before) = (
            Arc::clone(covered),
            self.source().to_owned(),
            self.permissions.clone(),
        );
        blocking(move || {
            let fate = covered.fate();
            if let Ok(now) = path.metadata().map(|found| found.permissions())
                && matches!(fate, Fate::Same)
                && now != before
                && let Err(error) = covered.set_permissions(now)
            {
                tracing::warn!(
                    "the permissions of an unsaved file are not what a command made them: {error}"
                );
            }
            fate
        })
        .await
    }

    /// Makes the document what the command wrote.
    async fn edit(&self, workspace: &Workspace, bytes: Vec<u8>) -> TakenOver {
        if bytes == self.unsaved.bytes || self.is_protected() {
            return TakenOver::default();
        }
        match workspace.take_over(&self.unsaved, bytes).await {
            Ok(FileChange {
                old_text, new_text, ..
            }) => TakenOver {
                diff: Some(FileDiff::new(
                    self.unsaved.path.absolute(),
                    old_text,
                    new_text,
                )),
                note: None,
            },
            Err(error) => TakenOver {
                diff: None,
                note: Some(format!(
                    "what it wrote to {} is not in the editor: {error}",
                    self.display()
                )),
            },
        }
    }
}
