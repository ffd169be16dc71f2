//! A file with unsaved text while a command runs.
//!
//! Where the sandbox can mount files, the command reads the unsaved text: it is in a file of its own in the session's
//! scratch folder, mounted over the real one. Elsewhere the command reads the real file.
//!
//! What the command writes to either, or puts in the place of the file, becomes an edit of the open document; the real
//! file has its content and time again, and keeps them until the person saves.

use std::fs::Permissions;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

use tempfile::NamedTempFile;

use crate::domain::FileDiff;
use crate::workspace::{Covered, Fate};
use crate::workspace::{FileChange, Unsaved, Workspace, blocking};

/// What stands in for an unsaved document.
#[derive(Debug)]
pub(crate) struct StandIn {
    /// What the command reads.
    unsaved: Unsaved,
    /// The file with that, which is mounted, and its permissions; `None` if the command reads the real one.
    mounted: Option<(NamedTempFile, Permissions)>,
    /// The file it covers; `None` if a command cannot replace, move or remove it.
    covered: Option<Arc<Covered>>,
}

/// What became of an open document that a command wrote to.
#[derive(Debug, Default)]
pub(crate) struct TakenOver {
    /// The edit of the document.
    pub diff: Option<FileDiff>,
    /// Changes missing in the editor or on disk, with the reason.
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
            .then(|| Covered::new(workspace, &unsaved.path, None))
            .transpose();
        Ok(Self {
            unsaved,
            mounted: Some((file, permissions)),
            covered: covered.map_err(io::Error::other)?.map(Arc::new),
        })
    }

    /// For a command that reads the file itself, or finds none; `None` if it is protected or no text.
    pub fn on_disk(workspace: &Workspace, unsaved: Unsaved) -> Option<Self> {
        if unsaved.path.is_protected() {
            return None;
        }
        let is_new = unsaved.path.real().symlink_metadata().is_err();
        let unsaved = if is_new {
            unsaved
        } else {
            unsaved.saved().ok()?
        };
        let covered = || {
            let before = Some(unsaved.bytes.clone());
            Covered::new(workspace, &unsaved.path, before)
                .ok()
                .map(Arc::new)
        };
        let covered = if is_new { None } else { Some(covered()?) };
        Some(Self {
            unsaved,
            mounted: None,
            covered,
        })
    }

    /// The mounted file with the text.
    pub fn source(&self) -> Option<&Path> {
        self.mounted.as_ref().map(|(file, _)| file.path())
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
        self.mounted.is_some() && self.covered.is_none()
    }

    /// Applies the command's changes as an edit of the document; what was typed meanwhile stays.
    pub async fn take_over(&self, workspace: &Workspace) -> TakenOver {
        let name = self.display();
        let source = self.source().map(Path::to_owned);
        let read = self.unsaved.bytes.clone();
        let written = blocking(move || source.map_or(Ok(read), std::fs::read));
        let Ok(written) = written.await else {
            return TakenOver::default();
        };
        let Some(covered) = self.covered.clone() else {
            if self.mounted.is_some() {
                return self.edit(workspace, written).await;
            }
            let note = self.unsaved.path.exists().then(|| conflicting(&name));
            return TakenOver { note, diff: None };
        };
        match self.fate(&covered).await {
            Fate::Same => self.edit(workspace, written).await,
            Fate::Removed => TakenOver::default(),
            Fate::Moved(_) if self.mounted.is_none() => TakenOver::default(),
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
                        note: Some(conflicting(&name)),
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
        let covered = Arc::clone(covered);
        let mounted = self.mounted.as_ref();
        let mounted = mounted.map(|(file, before)| (file.path().to_owned(), before.clone()));
        blocking(move || {
            let fate = covered.fate();
            if let Some((path, before)) = mounted
                && let Ok(now) = path.metadata().map(|found| found.permissions())
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
                    "the text that the command wrote to {} did not reach the editor: {error}",
                    self.display()
                )),
            },
        }
    }
}

fn conflicting(name: &str) -> String {
    format!(
        "the command's version of {name} is on disk: it conflicts with unsaved text in the editor"
    )
}
