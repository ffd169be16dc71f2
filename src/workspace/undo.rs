//! Merges and undoes changes, and removes files. Text that exists nowhere else is never lost.

use std::sync::Arc;

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

    /// Makes the change between two texts in what the first has become, `stored` in this way; lines changed since stay.
    /// Without a text to change it `to`, the file is removed.
    ///
    /// # Errors
    /// All lines to change have been changed since, or a file to be removed has changed at all.
    pub async fn merge(
        &self,
        path: &WorkspacePath,
        from: Arc<str>,
        to: Option<Arc<str>>,
        stored: Option<Stored>,
    ) -> Result<FileChange, FileError> {
        if let Some(to) = to {
            let change = Change::Merge { from, to, stored };
            return self.commit(path, &change).await;
        }
        let _turn = self.0.documents.turn(&path.real()).await;
        let file = self.peek(path).await?;
        if file.text != from {
            return Err(FileError::Changed(path.display()));
        }
        remove_seen(self, path, file).await
    }

    /// Undoes what is left of `change`. Several changes of one file are undone last to first. The result can be undone
    /// like any other change.
    ///
    /// # Errors
    /// As for [`Self::merge`].
    pub async fn undo(
        &self,
        path: &WorkspacePath,
        change: &FileChange,
    ) -> Result<FileChange, FileError> {
        let (from, to) = (change.new_text.clone(), change.old_text.clone());
        let undone = self.merge(path, from, to, change.untold()).await?;
        if let (None, Some(stored)) = (&change.old_text, change.after) {
            let path = path.clone();
            disk::blocking(move || path.remove_folders(stored.new_folders)).await;
        }
        Ok(undone)
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
