//! Reverting a command's changes in a workspace whose files may be open in the editor.

use std::path::Path;
use std::sync::Arc;

use super::guard::with_repositories;
use super::revert::{Reverted, revert};
use super::{ChangeSet, Images, backup};
use crate::workspace::{OnDisk, Root, Workspace, WorkspacePath, blocking, content, disk};

/// Undoes a command's changes where everything is as the command left it.
pub async fn revert_in(workspace: &Workspace, changes: ChangeSet, images: Arc<Images>) -> Reverted {
    let owned = workspace.clone();
    let (reverted, shown) = blocking(move || {
        let roots = standing(with_repositories(owned.roots()), &changes, &images);
        let open: Vec<_> = changes.files.iter().filter_map(|change| saved_document(&owned, &change.path)).collect();
        let is_open = |path: &Path| {
            owned.documents().find(path).is_some() && !open.iter().any(|(saved, _)| saved.real() == path)
                // What the editor shows of a file that is gone is no reason to leave the file gone.
                && owned.resolve_path(path).is_ok_and(|path| path.written().is_some())
        };
        let reverted = revert(&roots, &changes, &images, &is_open);
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

/// The roots that `changes` are in, with those a command left no sign of: a folder that it removed is made again, since
/// nothing can be in the old one, and a repository whose worktree no longer names it is known by its backup.
fn standing(mut roots: Vec<Arc<Root>>, changes: &ChangeSet, images: &Images) -> Vec<Arc<Root>> {
    let open = |path: &Path| {
        std::fs::create_dir_all(path)?;
        Root::open(path).map(Arc::new)
    };
    for root in &mut roots {
        if root.real().symlink_metadata().is_err() {
            *root = open(root.real()).unwrap_or_else(|_refused| Arc::clone(root));
        }
    }
    for change in &changes.git {
        let is_in = |root: &Arc<Root>| change.path.starts_with(root.real());
        if !roots.iter().any(is_in)
            && let Some(repository) = backup::repository(images.backups(), &change.path)
        {
            roots.extend(open(repository));
        }
    }
    roots
}
