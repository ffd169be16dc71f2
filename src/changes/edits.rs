//! Edits of texts as changes of files: an edit is recorded as the bytes that its file has, or would be saved as.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::change_set::{Entry, EntryChange, joined};
use super::hunks::without;
use super::{ChangeSet, Images};
use crate::domain::{FileDiff, Stored};
use crate::workspace::{Workspace, blocking, content};

/// Permission bits where the system has not said any.
pub(super) const FILE: u32 = 0o644;
const FOLDER: u32 = 0o755;

/// What an edit changed: the folders that were made for the file, and the file. Its images are in `images` afterwards,
/// if only in memory; then also returns why. Blocks.
pub(super) fn recorded(
    workspace: &Workspace,
    images: &Images,
    diff: &FileDiff,
) -> (Vec<EntryChange>, Option<io::Error>) {
    let path = workspace.identity(&diff.path);
    let mode = mode_of(workspace, &path).unwrap_or(FILE);
    let mut problem = None;
    let mut image = |text: &str, stored: Option<Stored>| {
        let stored = stored.unwrap_or_default();
        let (entry, error) = keep(images, text, stored, mode);
        problem = error.or(problem.take());
        entry
    };
    let before = match &diff.old_text {
        Some(text) => image(text, diff.before),
        None => Entry::Absent,
    };
    let after = if diff.before.is_some() && diff.after.is_none() {
        Entry::Absent
    } else {
        // A text that its encoding cannot express was written as the one before.
        image(&diff.new_text, diff.after.or(diff.before))
    };
    let folders = diff.after.map_or(0, |stored| stored.new_folders);
    let mut changes = new_folders(workspace, &path, folders);
    changes.push(EntryChange {
        is_edit: true,
        ..EntryChange::new(path, before, after)
    });
    (changes, problem)
}

/// The `count` innermost folders that the file at `path` is in, as they were made for it. Blocks.
pub fn new_folders(workspace: &Workspace, path: &Path, count: usize) -> Vec<EntryChange> {
    let folders = path.ancestors().skip(1).take(count).map(|folder| {
        let mode = mode_of(workspace, folder).unwrap_or(FOLDER);
        EntryChange::new(folder.to_owned(), Entry::Absent, Entry::Folder { mode })
    });
    let mut changes: Vec<_> = folders.collect();
    changes.reverse();
    changes
}

fn mode_of(workspace: &Workspace, path: &Path) -> Option<u32> {
    workspace.resolve_path(path).ok()?.mode()
}

/// A file with this text, whose permission bits are `mode` unless `stored` says others. Blocks.
pub(super) fn keep(
    images: &Images,
    text: &str,
    stored: Stored,
    mode: u32,
) -> (Entry, Option<io::Error>) {
    let encoded = stored.encode(text);
    let bytes = encoded.unwrap_or_else(|_no_such_character| text.as_bytes().into());
    let (image, problem) = images.keep(&bytes);
    let file = Entry::File {
        image,
        size: bytes.len() as u64,
        mode: stored.mode.unwrap_or(mode),
    };
    (file, problem)
}

/// A file with this text, stored like the one before; its permission bits are `mode` if that was none. Blocks.
pub(super) fn like(images: &Images, text: &str, before: &Entry, mode: u32) -> Entry {
    let stored = self::text(images, before, u64::MAX).map(|before| before.stored);
    let stored = stored.unwrap_or_default();
    keep(images, text, stored, mode).0
}

/// A file as text, and how that is stored.
#[derive(Debug, Clone)]
pub(super) struct Text {
    pub text: Arc<str>,
    pub stored: Stored,
}

/// The text of a file; an empty one where nothing is. `None` if it is not text or no longer stored. Blocks.
pub(super) fn text(images: &Images, entry: &Entry, limit: u64) -> Option<Text> {
    let (text, stored) = match entry {
        Entry::Absent => Default::default(),
        Entry::File { image, size, mode } if *size <= limit => {
            let (text, stored) = content::decode(images.read(image).ok()?)?;
            let mode = Some(*mode);
            (text, Stored { mode, ..stored })
        }
        _ => return None,
    };
    Some(Text {
        text: text.into(),
        stored,
    })
}

/// The texts before and after a change; `None` if one of them is not a text, or longer than `limit` bytes.
pub(super) async fn texts(
    images: &Arc<Images>,
    change: &EntryChange,
    limit: u64,
) -> Option<(Text, Text)> {
    let (images, change) = (Arc::clone(images), change.clone());
    blocking(move || {
        let before = text(&images, &change.before, limit)?;
        Some((before, text(&images, &change.after, limit)?))
    })
    .await
}

impl ChangeSet {
    /// These changes and the ones after them as one, in the order in which their paths were changed first. What somebody
    /// changed between them is not part of it. Blocks.
    #[must_use]
    pub fn then(self, next: Self, images: &Images) -> Self {
        let then = |earlier, next| self::then(images, earlier, next);
        Self {
            files: joined(self.files, next.files, then),
            git: joined(self.git, next.git, EntryChange::then),
        }
    }
}

/// Both changes of a path as one; `None` if they cancel out. Where somebody changed the file between them, that is not
/// part of it. Blocks.
pub(super) fn then(
    images: &Images,
    earlier: EntryChange,
    next: EntryChange,
) -> Option<EntryChange> {
    let is_edit = earlier.is_edit && next.is_edit;
    let is_shown = earlier.is_edit && !is_edit && next.after == Entry::Absent;
    let edit = is_shown.then(|| Box::new(earlier.clone()));
    let before = if earlier.after == next.before {
        earlier.before
    } else {
        rebased(images, &earlier, next.before)
    };
    (before != next.after).then_some(EntryChange {
        before,
        is_edit,
        edit,
        ..next
    })
}

/// What would have been there before `change` if somebody had made `now` of its result already then.
fn rebased(images: &Images, change: &EntryChange, now: Entry) -> Entry {
    let (before, after) = (&change.before, &change.after);
    let mode = |now: u32| match (before, after) {
        (Entry::File { mode: before, .. }, Entry::File { mode: after, .. }) if before != after => {
            *before
        }
        _ => now,
    };
    match (before, after, &now) {
        (Entry::Folder { .. }, ..)
        | (Entry::Absent, Entry::Folder { .. }, Entry::Folder { .. }) => {
            return before.clone();
        }
        (
            Entry::File { image, size, .. },
            Entry::File { image: left, .. },
            Entry::File {
                image: found,
                mode: bits,
                ..
            },
        ) if left == found => {
            return Entry::File {
                image: image.clone(),
                size: *size,
                mode: mode(*bits),
            };
        }
        _ => {}
    }
    let Entry::File { mode: bits, .. } = now else {
        return now;
    };
    let texts = [before, after, &now].map(|entry| text(images, entry, u64::MAX));
    let [Some(old), Some(new), Some(found)] = texts else {
        return now;
    };
    let (text, _) = without(&change.path, &old.text, &new.text, &found.text);
    if *before == Entry::Absent && text.is_empty() {
        return Entry::Absent;
    }
    let is_recoded = *before != Entry::Absent && old.stored.is_recoded(new.stored);
    let stored = if is_recoded { old.stored } else { found.stored };
    let stored = Stored {
        mode: Some(mode(bits)),
        ..stored
    };
    keep(images, &text, stored, bits).0
}
