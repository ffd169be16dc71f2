//! What git did for somebody else while a command ran, such as a checkout in a terminal: that stays theirs.
//!
//! Nothing is lost if a command did it after all: files only go from one content to another, and git has both.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256};

use super::Snapshots;
use super::tracked::{as_in_git, blobs};
use crate::changes::change_set::{ChangeSet, Entry, EntryChange};

/// The blobs of an index, by path.
type Blobs = HashMap<Vec<u8>, Vec<u8>>;

impl Snapshots {
    /// Takes what git did out of `changes`, wherever it moved a HEAD since the look before.
    pub(super) fn leave_moves(&self, changes: &mut ChangeSet) {
        for repository in self.seen.iter().flat_map(|seen| &seen.advanced) {
            if let Some(worktree) = repository.parent().filter(|_| repository.ends_with(".git")) {
                self.leave_files(changes, repository, worktree);
            }
            // A branch that is gone is only there in what was seen of it.
            let is_lost = |change: &EntryChange| {
                let refs = repository.join("refs");
                change.after == Entry::Absent && change.path.starts_with(refs)
            };
            let is_log = |change: &EntryChange| change.path.starts_with(repository.join("logs"));
            changes.git.retain(|change| {
                !change.path.starts_with(repository)
                    || is_lost(change)
                    || (change.is_of_backup() && !is_log(change))
            });
        }
    }

    fn leave_files(&self, changes: &mut ChangeSet, repository: &Path, worktree: &Path) {
        let index = repository.join("index");
        let listed = |entry: &Entry| match entry {
            Entry::File { image, .. } => blobs(&self.images.read(image).ok()?),
            _ => Some(Blobs::new()),
        };
        let changed = changes.git.iter().find(|change| change.path == index);
        let Some((before, after)) =
            changed.and_then(|change| Some((listed(&change.before)?, listed(&change.after)?)))
        else {
            return;
        };
        let mut folders = BTreeSet::new();
        changes.files.retain(|change| {
            let Ok(relative) = change.path.strip_prefix(worktree) else {
                return true;
            };
            let path = as_in_git(relative);
            let is_gits = !change.is_folder()
                && self.is_blob(&change.before, before.get(&path))
                && self.is_blob(&change.after, after.get(&path));
            if is_gits {
                folders.extend(change.path.ancestors().skip(1).map(Path::to_owned));
            }
            !is_gits
        });
        let others: BTreeSet<_> = (changes.files.iter())
            .filter(|change| !change.is_folder())
            .flat_map(|change| change.path.ancestors().skip(1))
            .map(Path::to_owned)
            .collect();
        changes.files.retain(|change| {
            !change.is_folder() || !folders.contains(&change.path) || others.contains(&change.path)
        });
    }

    /// Whether a file has the content of this blob; without one, whether there is none.
    fn is_blob(&self, entry: &Entry, blob: Option<&Vec<u8>>) -> bool {
        let bytes = match entry {
            Entry::Absent => return blob.is_none(),
            Entry::File { image, .. } => self.images.read(image).ok(),
            Entry::Link { target } => Some(as_in_git(target)),
            Entry::Folder { .. } | Entry::Special => None,
        };
        let Some((bytes, blob)) = bytes.zip(blob) else {
            return false;
        };
        let kind = if blob.len() == SHA256.output_len() {
            &SHA256
        } else {
            &SHA1_FOR_LEGACY_USE_ONLY
        };
        let mut hash = Context::new(kind);
        hash.update(format!("blob {}\0", bytes.len()).as_bytes());
        hash.update(&bytes);
        hash.finish().as_ref() == blob.as_slice()
    }
}
