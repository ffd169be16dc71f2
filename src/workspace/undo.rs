//! Undoes a change, and removes files. Text that exists nowhere else is never lost.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::commit::commit;
use super::disk::{self, Content};
use super::guard::with_repositories;
use super::revert::{self, Reverted};
use super::seen::Known;
use super::{Change, ChangeSet, FileChange, FileError, FileText, OnDisk, Source, Workspace, WorkspacePath, content};

/// Removes a file, unless that would lose text that exists nowhere else.
pub(super) async fn remove(workspace: &Workspace, path: &WorkspacePath) -> Result<FileChange, FileError> {
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
        let revert = Change::Revert { before: before.clone(), after: change.new_text.clone(), stored: change.stored };
        return commit(workspace, path, &revert).await;
    }
    let _turn = workspace.0.documents.turn(&path.real()).await;
    let file = workspace.peek(path).await?;
    if file.text != change.new_text {
        return Err(FileError::Changed(path.display()));
    }
    let removed = remove_seen(workspace, path, file).await?;
    if let Some(stored) = change.stored {
        let path = path.clone();
        disk::blocking(move || path.remove_folders(stored.missing_folders)).await;
    }
    Ok(removed)
}

/// Undoes a command's changes where everything is as the command left it; `images` is the folder of its file images.
pub(super) async fn revert(workspace: &Workspace, changes: ChangeSet, images: PathBuf) -> Reverted {
    let owned = workspace.clone();
    let (reverted, shown) = disk::blocking(move || {
        let roots = with_repositories(owned.roots());
        let open: Vec<_> = changes.files.iter().filter_map(|change| saved_document(&owned, &change.path)).collect();
        let is_open = |path: &Path| {
            owned.documents().find(path).is_some() && !open.iter().any(|(saved, _)| saved.real() == path)
                // What the editor shows of a file that is gone is no reason to leave the file gone.
                && owned.resolve_path(path).is_ok_and(|path| path.written().is_some())
        };
        let reverted = revert::revert(&roots, &changes, &images, &is_open);
        let now = |(path, old): (WorkspacePath, _)| Some(OnDisk { new: text_now(&path)?, path, old });
        (reverted, open.into_iter().filter_map(now).collect())
    })
    .await;
    workspace.refresh(shown).await;
    reverted
}

/// The open document of a file that has the same text, and that text: the file may be changed on the disk.
fn saved_document(workspace: &Workspace, path: &Path) -> Option<(WorkspacePath, Arc<str>)> {
    let document = workspace.documents().find(path)?;
    let path = workspace.resolve_path(path).ok()?;
    (text_now(&path)? == document.text).then(|| (path, Arc::clone(&document.text)))
}

fn text_now(path: &WorkspacePath) -> Option<Arc<str>> {
    Some(content::decode(disk::read_now(path).ok()?)?.0.into())
}

async fn remove_seen(workspace: &Workspace, path: &WorkspacePath, file: FileText) -> Result<FileChange, FileError> {
    if let Source::Buffer { unsaved: true, .. } = file.source {
        return Err(FileError::Unsaved(path.display()));
    }
    let content = Content { text: file.text.clone(), format: file.format, mode: None };
    let Some(mode) = disk::remove(path, content).await? else { return Err(FileError::Changed(path.display())) };
    workspace.documents().note_written(&path.real(), None);
    let stored = Some(file.format.stored(Some(mode)));
    Ok(FileChange { stored, ..FileChange::new(Some(file.text), "".into()) })
}
