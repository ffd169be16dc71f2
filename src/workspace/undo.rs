//! Undoes a change, and removes files. Text that exists nowhere else is never lost.

use super::commit::commit;
use super::disk::{self, Content};
use super::seen::Known;
use super::{Change, FileChange, FileError, FileText, Source, Workspace, WorkspacePath};

/// Removes a file, unless that would lose text that exists nowhere else.
pub(super) async fn remove(
    workspace: &Workspace,
    path: &WorkspacePath,
) -> Result<FileChange, FileError> {
    let _turn = workspace.0.documents.turn(&path.real()).await;
    let file = workspace.peek(path).await?;
    match workspace.0.seen.known(path, &file.text) {
        Known::Changed | Known::ChangedSinceShown => Err(FileError::Changed(path.display())),
        Known::Same | Known::Unread => remove_seen(workspace, path, file).await,
    }
}

/// Undoes a change.
pub(super) async fn undo(
    workspace: &Workspace,
    path: &WorkspacePath,
    change: &FileChange,
) -> Result<FileChange, FileError> {
    if let Some(before) = &change.old_text {
        let revert = Change::Revert {
            before: before.clone(),
            after: change.new_text.clone(),
            stored: change.untold(),
        };
        return commit(workspace, path, &revert).await;
    }
    let _turn = workspace.0.documents.turn(&path.real()).await;
    let file = workspace.peek(path).await?;
    if file.text != change.new_text {
        return Err(FileError::Changed(path.display()));
    }
    let removed = remove_seen(workspace, path, file).await?;
    if let Some(stored) = change.after {
        let path = path.clone();
        disk::blocking(move || path.remove_folders(stored.new_folders)).await;
    }
    Ok(removed)
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
        format: file.format,
        mode: None,
    };
    let Some(mode) = disk::remove(path, content).await? else {
        return Err(FileError::Changed(path.display()));
    };
    workspace.documents().note_written(&path.real(), None);
    Ok(FileChange {
        before: Some(file.format.stored(Some(mode))),
        ..FileChange::new(Some(file.text), "".into())
    })
}
