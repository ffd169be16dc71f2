//! Undoing a change, and removing a file. Text that is nowhere else is never lost.

use std::path::{Path, PathBuf};

use super::commit::commit;
use super::disk::{self, Content};
use super::guard::with_repositories;
use super::revert::{self, Reverted};
use super::seen::Known;
use super::{Change, ChangeSet, FileChange, FileError, FileText, Source, Workspace, WorkspacePath};

/// Removes a file, unless that would lose text nobody else has.
pub(super) async fn remove(workspace: &Workspace, path: &WorkspacePath) -> Result<FileChange, FileError> {
    let _turn = workspace.0.documents.turn(&path.real()).await;
    let file = workspace.peek(path).await?;
    match workspace.0.seen.known(path, &file.text) {
        Known::Changed | Known::ChangedSinceShown => Err(FileError::Changed(path.display())),
        Known::Same | Known::Unread => remove_seen(path, file).await,
    }
}

/// Undoes what a change did.
pub(super) async fn undo(
    workspace: &Workspace,
    path: &WorkspacePath,
    change: &FileChange,
) -> Result<FileChange, FileError> {
    if let Some(before) = &change.old_text {
        let revert = Change::Revert { before: before.clone(), after: change.new_text.clone() };
        return commit(workspace, path, &revert).await;
    }
    let _turn = workspace.0.documents.turn(&path.real()).await;
    let file = workspace.peek(path).await?;
    if file.text == change.new_text { remove_seen(path, file).await } else { Err(FileError::Changed(path.display())) }
}

/// Undoes what a command did, as far as everything is as the command left it; `images` is the folder of its images.
pub(super) async fn revert(workspace: &Workspace, changes: ChangeSet, images: PathBuf) -> Reverted {
    let workspace = workspace.clone();
    disk::blocking(move || {
        // What the editor shows of a file that is gone is no reason to leave the file gone.
        let is_open = |path: &Path| {
            workspace.documents().find(path).is_some()
                && workspace.resolve_path(path).is_ok_and(|path| path.written().is_some())
        };
        revert::revert(&with_repositories(workspace.roots()), &changes, &images, &is_open)
    })
    .await
}

async fn remove_seen(path: &WorkspacePath, file: FileText) -> Result<FileChange, FileError> {
    if let Source::Buffer { unsaved: true, .. } = file.source {
        return Err(FileError::Unsaved(path.display()));
    }
    if !disk::remove(path, Content { text: file.text.clone(), format: file.format }).await? {
        return Err(FileError::Changed(path.display()));
    }
    let (strategy, lines, notes) = (None, Vec::new(), Vec::new());
    Ok(FileChange { old_text: Some(file.text), new_text: "".into(), strategy, lines, notes })
}
