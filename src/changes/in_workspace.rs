//! Reverts changes in a workspace whose files may be open in the editor, or changed since.
//!
//! An edit is reverted as text, through the editor where that has the file; everything else byte for byte. A file that
//! has changed since is reverted as text as well, around the lines that somebody changed.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::join_all;

use super::change_set::{Entry, EntryChange};
use super::edits::{self, Text};
use super::guard::with_repositories;
use super::hunks::{pending, without};
use super::revert::{Left, Reason, Reverted, revert};
use super::{ChangeSet, Images, backup};
use crate::domain::Stored;
use crate::workspace::{
    FileError, OnDisk, Root, Source, Workspace, WorkspacePath, blocking, content, disk,
};

/// Larger texts, in bytes, are not merged.
const TEXT: u64 = 32 << 20;

/// What a revert is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// What somebody changed since stays; the rest goes back to how it was.
    Undo,
    /// A change is made again: a file that somebody changed since is neither removed nor replaced.
    Redo,
}

/// Reverts `changes`; what that changed is in `done`, with its images in `images`.
pub async fn revert_in(
    workspace: &Workspace,
    changes: ChangeSet,
    images: &Arc<Images>,
    purpose: Purpose,
) -> Reverted {
    let mut work = Work {
        workspace,
        images,
        purpose,
        reverted: Reverted::default(),
    };
    let ChangeSet { files, git } = changes;
    let mut others = Vec::new();
    for change in files {
        if change.is_edit {
            let reason = "its previous version is not stored";
            work.text(&change, Reason::Io(reason.to_owned())).await;
        } else {
            others.push(change);
        }
    }
    let mut files = ChangeSet { files: others, git };
    // A folder comes before its contents.
    files.files.sort();
    let left = work.bytes(files.clone()).await;
    // A file that is there again may be open with what was edited before it was removed. A redo removes it either way.
    let done = work.reverted.done.files.len();
    for edit in files.files.iter().filter_map(|change| change.edit.as_ref()) {
        if TextFile::find(workspace, &edit.path)
            .await
            .is_ok_and(|file| file.is_unsaved)
        {
            work.text(edit, Reason::Open).await;
        }
    }
    work.reverted.done.files.truncate(done);
    let by_path: HashMap<&Path, &EntryChange> = files
        .files
        .iter()
        .map(|change| (&*change.path, change))
        .collect();
    let mut folders = Vec::new();
    for left in left {
        match by_path.get(&*left.path) {
            Some(change) if left.reason == Reason::NotEmpty => folders.push((*change).clone()),
            Some(change) if matches!(left.reason, Reason::Changed | Reason::Open) => {
                work.text(change, left.reason).await;
            }
            _ => work.reverted.left.push(left),
        }
    }
    // Their contents may be gone by now.
    let folders = ChangeSet {
        files: folders,
        git: Vec::new(),
    };
    let left = work.bytes(folders).await;
    work.reverted.left.extend(left);
    work.reverted
}

struct Work<'a> {
    workspace: &'a Workspace,
    images: &'a Arc<Images>,
    purpose: Purpose,
    reverted: Reverted,
}

impl Work<'_> {
    /// Reverts byte for byte what is as it was left; returns the rest.
    async fn bytes(&mut self, changes: ChangeSet) -> Vec<Left> {
        if changes.is_empty() {
            return Vec::new();
        }
        let Reverted { done, mut left } = on_disk(self.workspace, changes, self.images).await;
        self.reverted.done.files.extend(done.files);
        self.reverted.done.git.extend(done.git);
        let mut has_moved = false;
        // git's state only goes back as a whole: one of its files stands for all.
        left.retain(|left| {
            left.reason != Reason::GitMoved || !std::mem::replace(&mut has_moved, true)
        });
        left
    }

    /// Reverts the text of a file; one that has none stays, for this `reason`.
    async fn text(&mut self, change: &EntryChange, reason: Reason) {
        let path = &change.path;
        let (done, reasons) = match edits::texts(self.images, change, TEXT).await {
            Some(texts) => self.reverted_text(change, texts).await,
            None => Err(reason),
        }
        .unwrap_or_else(|reason| (Vec::new(), vec![reason]));
        self.reverted.done.files.extend(done);
        self.reverted
            .left
            .extend(reasons.into_iter().map(|reason| Left {
                path: path.clone(),
                reason,
            }));
    }

    /// What reverting a text changed, and what stayed.
    async fn reverted_text(
        &self,
        change: &EntryChange,
        (before, after): (Text, Text),
    ) -> Result<(Vec<EntryChange>, Vec<Reason>), Reason> {
        let is_created = change.before == Entry::Absent;
        let is_removed = change.after == Entry::Absent;
        let file = TextFile::find(self.workspace, &change.path).await?;
        let now = match &file.now {
            Some(now) => Arc::clone(now),
            None if is_removed => Arc::default(),
            None if is_created => return Ok((Vec::new(), Vec::new())),
            None => return Err(Reason::Removed),
        };
        let is_as_left = now == after.text && file.now.is_some() != is_removed;
        if self.purpose == Purpose::Redo && (is_created || is_removed) && !is_as_left {
            return Err(if is_created && file.is_unsaved {
                Reason::Unsaved
            } else {
                Reason::Changed
            });
        }
        // Another file in the place of a removed one is somebody else's.
        let stored = if is_removed {
            file.now.is_none().then_some(before.stored)
        } else {
            stored(&before, &after, is_created)
        };
        let path = change.path.clone();
        let (text, lines) = blocking(move || without(&path, &before.text, &after.text, &now)).await;
        let lines: Vec<_> = lines.into_iter().map(Reason::Lines).collect();
        // Half of a command's text among somebody else's lines would be a file that never existed.
        if self.purpose == Purpose::Redo && !change.is_edit && !lines.is_empty() {
            return Ok((Vec::new(), lines));
        }
        let target = (!is_created || !text.is_empty()).then_some(text);
        if target == file.now && stored.is_none() {
            return Ok((Vec::new(), lines));
        }
        let done = file.write(self.workspace, self.images, target, stored);
        Ok((done.await?, lines))
    }
}

/// How a text is to be stored again, where its file now does not tell.
fn stored(before: &Text, after: &Text, is_created: bool) -> Option<Stored> {
    // A file that was removed and written again has the permissions of a new one.
    let mode = before.stored.mode;
    let mode = mode.filter(|_| !is_created && mode != after.stored.mode);
    let is_recoded = !is_created && before.stored.is_recoded(after.stored);
    (is_recoded || mode.is_some()).then_some(Stored {
        mode,
        ..before.stored
    })
}

/// A text file as it is now.
pub(super) struct TextFile {
    path: WorkspacePath,
    /// Its text; `None` if it does not exist.
    pub now: Option<Arc<str>>,
    is_unsaved: bool,
}

impl TextFile {
    pub async fn find(workspace: &Workspace, path: &Path) -> Result<Self, Reason> {
        let path = workspace
            .resolve_path(path)
            .map_err(|error| Reason::Io(error.to_string()))?;
        let (now, is_unsaved) = match workspace.peek(&path).await {
            Ok(file) => {
                let is_unsaved = matches!(file.source, Source::Buffer { unsaved: true, .. });
                (Some(file.text), is_unsaved)
            }
            Err(FileError::NotFound(_)) => (None, false),
            Err(error) => return Err(Reason::Io(error.to_string())),
        };
        Ok(Self {
            path,
            now,
            is_unsaved,
        })
    }

    /// The text in which to look for the rest of a change; `None` if the file has been removed.
    pub fn under(&self, change: &EntryChange) -> Option<Arc<str>> {
        match &self.now {
            None if change.after != Entry::Absent => None,
            now => Some(now.clone().unwrap_or_default()),
        }
    }

    /// Writes this text (`None` removes the file), `stored` in this way; returns what that changed.
    pub async fn write(
        self,
        workspace: &Workspace,
        images: &Arc<Images>,
        target: Option<Arc<str>>,
        stored: Option<Stored>,
    ) -> Result<Vec<EntryChange>, Reason> {
        if target.is_none() && self.is_unsaved {
            return Err(Reason::Unsaved);
        }
        let now = self.now.unwrap_or_default();
        let done = workspace
            .merge(&self.path, now, target, stored)
            .await
            .map_err(|error| Reason::Io(error.to_string()))?;
        let diff = done.diff_of(self.path.real());
        if diff.is_nothing() {
            return Ok(Vec::new());
        }
        let (workspace, images) = (workspace.clone(), Arc::clone(images));
        let (done, _in_memory) =
            blocking(move || edits::recorded(&workspace, &images, &diff)).await;
        Ok(done)
    }
}

/// Those of some edits that were made: each file is as it was to become.
pub async fn made(
    workspace: &Workspace,
    images: &Arc<Images>,
    edits: Vec<EntryChange>,
) -> ChangeSet {
    // All at once: each may wait for a silent editor.
    let made = join_all(edits.into_iter().map(async |change| {
        let is_made = if change.after == Entry::Absent {
            // An editor may still show it.
            matches!(change.path.try_exists(), Ok(false))
        } else {
            let file = TextFile::find(workspace, &change.path).await.ok();
            let now = file.and_then(|file| file.now);
            let texts = edits::texts(images, &change, TEXT).await;
            now.is_some() && now == texts.map(|(_, after)| after.text)
        };
        (is_made || change.path.is_dir()).then_some(change)
    }));
    ChangeSet {
        files: made.await.into_iter().flatten().collect(),
        ..ChangeSet::default()
    }
}

/// Reverts what is as the change left it, also in documents that show what is on the disk.
async fn on_disk(workspace: &Workspace, changes: ChangeSet, images: &Arc<Images>) -> Reverted {
    let (owned, images) = (workspace.clone(), Arc::clone(images));
    let (reverted, shown) = blocking(move || {
        let roots = standing(with_repositories(owned.roots()), &changes, &images);
        let open: Vec<_> = changes
            .files
            .iter()
            .filter_map(|change| saved_document(&owned, &change.path))
            .collect();
        let is_open = |change: &EntryChange| {
            let path = &*change.path;
            let is_saved = open.iter().any(|(saved, _)| saved.real() == path);
            let document = owned.documents().find(path).filter(|_| !is_saved);
            document.is_some_and(|document| {
                // A deleted file is restored even though the editor still shows its text.
                owned
                    .resolve_path(path)
                    .is_ok_and(|path| path.written().is_some())
                    && has_any(&document.text, change, &images)
            })
        };
        let reverted = revert(&roots, &changes, &images, &is_open);
        let now = |(path, old): (WorkspacePath, _)| {
            Some(OnDisk {
                new: text_now(&path)?,
                path,
                old: Some(old),
            })
        };
        (reverted, open.into_iter().filter_map(now).collect())
    })
    .await;
    workspace.refresh(shown).await;
    reverted
}

/// The open document of a file that has the same text, or had it until a command changed or removed it, and that text:
/// the file may be changed on the disk.
fn saved_document(workspace: &Workspace, path: &Path) -> Option<(WorkspacePath, Arc<str>)> {
    let documents = workspace.documents();
    let document = documents.of_file(path)?;
    let path = workspace.resolve_path(path).ok()?;
    if text_now(&path).as_ref() == Some(&document.text) {
        documents.note_stored(&document);
    }
    let is_stored = documents.is_stored(&document);
    is_stored.then(|| (path, Arc::clone(&document.text)))
}

/// Whether any part of the change is in an unsaved text; otherwise it is only in the file.
fn has_any(text: &str, change: &EntryChange, images: &Images) -> bool {
    let read = |entry| edits::text(images, entry, TEXT);
    read(&change.after).is_some_and(|after| {
        let before = read(&change.before).map_or_else(Arc::default, |before| before.text);
        !pending(&change.path, &before, &after.text, text).is_empty()
    })
}

fn text_now(path: &WorkspacePath) -> Option<Arc<str>> {
    Some(content::decode(disk::read_now(path).ok()?)?.0.into())
}

/// The roots that `changes` are in, including those that a command left no trace of: a root that it removed is created
/// again, since the old one must be empty, and a repository that its worktree no longer names is known by its backup.
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
