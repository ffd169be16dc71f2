//! Undoes a change, and removes files. Text that exists nowhere else is never lost.

use super::disk::{self, Content};
use super::seen::Known;
use super::{Change, FileChange, FileError, FileText, Source, Workspace, WorkspacePath};
use crate::domain::Stored;

impl Workspace {
    /// Removes the file from disk.
    ///
    /// # Errors
    /// It has unsaved changes, changed since it was read, is not text, or the system refuses.
    pub async fn remove(&self, path: &WorkspacePath) -> Result<FileChange, FileError> {
        let _turn = self.0.documents.turn(&path.real()).await;
        let file = self.peek(path).await?;
        match self.0.seen.known(path, &file.text) {
            Known::Changed | Known::ChangedSinceShown => Err(FileError::Changed(path.display())),
            Known::Same | Known::Unread => remove_seen(self, path, file).await,
        }
    }

    /// Undoes what is left of `change`; lines changed since stay. Several changes of one file are undone last to first. The
    /// result can be undone like any other change.
    ///
    /// # Errors
    /// Nothing of it is left, or a file to be removed has changed at all.
    pub async fn undo(
        &self,
        path: &WorkspacePath,
        change: &FileChange,
    ) -> Result<FileChange, FileError> {
        if let Some(before) = &change.old_text {
            let revert = Change::Revert {
                before: before.clone(),
                after: change.new_text.clone(),
                stored: change.untold(),
            };
            return self.commit(path, &revert).await;
        }
        let _turn = self.0.documents.turn(&path.real()).await;
        let file = self.peek(path).await?;
        if file.text != change.new_text {
            return Err(FileError::Changed(path.display()));
        }
        let removed = remove_seen(self, path, file).await?;
        if let Some(stored) = change.after {
            let path = path.clone();
            disk::blocking(move || path.remove_folders(stored.new_folders)).await;
        }
        Ok(removed)
    }
}

async fn remove_seen(
    workspace: &Workspace,
    path: &WorkspacePath,
    file: FileText,
) -> Result<FileChange, FileError> {
    if let Source::Buffer { unsaved: true, .. } = file.source {
        return Err(FileError::Unsaved(path.display()));
    }
    let content = Content {
        text: file.text.clone(),
        stored: file.stored,
    };
    let Some(mode) = disk::remove(path, content).await? else {
        return Err(FileError::Changed(path.display()));
    };
    workspace.documents().note_written(&path.real(), None);
    Ok(FileChange {
        before: Some(Stored {
            mode: Some(mode),
            ..file.stored
        }),
        ..FileChange::new(Some(file.text), "".into())
    })
}
