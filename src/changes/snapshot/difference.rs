//! What differs between two looks.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use super::Seen;
use super::folder::{self, entry};
use super::repository::{with_repositories, without_moved};
use crate::changes::change_set::{ChangeSet, Entry, EntryChange};

/// What has changed between two looks. What an ignore file hides from now on is as it is `now`.
pub(super) fn changes(before: &Seen, after: &Seen, now: &dyn Fn(&Path) -> Entry) -> ChangeSet {
    let mut changes = with_repositories(without_moved(differences(before, after), before), after);
    let (left_out_before, left_out_after) = (left_out(before), left_out(after));
    changes.files.retain_mut(|change| {
        let is_in = |left_out: &HashSet<&Path>| {
            change
                .path
                .ancestors()
                .any(|above| left_out.contains(above))
        };
        match (is_in(&left_out_before), is_in(&left_out_after)) {
            (false, false) => return true,
            (false, true) if change.after == Entry::Absent => {
                change.after = now(&change.path);
                return change.before != change.after;
            }
            _ => {}
        }
        // Files that are no longer hidden, or that git tracks from now on, have not changed.
        change.before != Entry::Absent
            && [before, after]
                .iter()
                .any(|seen| is_tracked(seen, &change.path))
    });
    changes
}

fn left_out(seen: &Seen) -> HashSet<&Path> {
    seen.coverage
        .left_out
        .iter()
        .map(PathBuf::as_path)
        .collect()
}

/// Whether git tracks the file at `path`, or one below it.
fn is_tracked(seen: &Seen, path: &Path) -> bool {
    seen.tracked.iter().any(|(folder, tracked)| {
        let lists = |path: &Path| {
            tracked
                .indexes
                .iter()
                .any(|index| index.lists(path) || index.lists_below(path))
        };
        path.strip_prefix(folder).is_ok_and(lists)
    })
}

/// The differences between two looks.
pub(super) fn differences(before: &Seen, after: &Seen) -> ChangeSet {
    let mut files = Vec::new();
    for (path, listing) in &before.folders {
        folder::compare(path, Some(listing), after.folders.get(path), &mut files);
    }
    for (path, listing) in &after.folders {
        if !before.folders.contains_key(path) {
            folder::compare(path, None, Some(listing), &mut files);
        }
    }
    let all: BTreeSet<&PathBuf> = before.git.keys().chain(after.git.keys()).collect();
    let git = all.into_iter().filter_map(|path| {
        let (before, after) = (entry(before.git.get(path)), entry(after.git.get(path)));
        let change = || EntryChange::new(path.clone(), before.clone(), after.clone());
        (before != after).then(change)
    });
    files.sort();
    ChangeSet {
        files,
        git: git.collect(),
    }
}
