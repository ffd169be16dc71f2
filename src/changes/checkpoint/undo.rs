//! Undoing and redoing turns around what somebody changed since.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::reviewed::{ReviewError, Reviewed, named, refused, stayed, word_of_git};
use super::{Checkpoints, Kind};
use crate::changes::ChangeSet;
use crate::changes::change_set::EntryChange;
use crate::changes::in_workspace::{Purpose, revert_in};
use crate::changes::revert::{Left, Reason, Reverted};
use crate::workspace::Workspace;

/// A turn that was undone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Undone {
    pub turn: u64,
    /// The files to name to a person.
    #[serde(skip)]
    pub paths: Vec<PathBuf>,
    /// The turn's changes.
    pub changes: ChangeSet,
    /// The changes made by the undo; a redo reverts them.
    pub reverted: ChangeSet,
}

/// What became of undone changes that were applied again.
pub(super) struct Reapplied {
    pub paths: Vec<PathBuf>,
    pub left: Vec<Left>,
    /// The changes that failed with an error of the system.
    pub rest: Option<Undone>,
}

impl Checkpoints {
    /// Undoes a turn, or the last one with changes left.
    pub(super) async fn undo(
        &mut self,
        workspace: &Workspace,
        turn: Option<u64>,
    ) -> Result<Reviewed, ReviewError> {
        let mut overwritten = Vec::new();
        let turns: Vec<u64> = self.turns.iter().rev().map(|entry| entry.turn).collect();
        for its in turns {
            if turn.is_some_and(|turn| turn != its) {
                continue;
            }
            let (undone, left) = self.undo_turn(workspace, its, None).await;
            if let Some(undone) = undone {
                let paths = named(workspace, undone.paths.iter());
                self.push_undone(undone);
                return Ok(Reviewed {
                    message: Some(format!(
                        "undid {}: {paths}{}",
                        self.name_of(its),
                        stayed(workspace, &left)
                    )),
                    note: Some(format!("(the user undid these changes of yours: {paths})")),
                    left,
                    can_redo: true,
                    ..Reviewed::default()
                });
            }
            let is_overwritten = left.iter().all(|left| left.reason.is_change());
            overwritten.extend(left);
            // What the system refuses now can be retried: no earlier turn is undone instead.
            if !is_overwritten {
                break;
            }
        }
        Err(refused(workspace, "undone", &overwritten))
    }

    /// Undoes what is left of a turn, or of its changes to one file; `None` if nothing is left. What the system refused
    /// stays with the turn, to be retried.
    pub(super) async fn undo_turn(
        &mut self,
        workspace: &Workspace,
        turn: u64,
        only: Option<&Path>,
    ) -> (Option<Undone>, Vec<Left>) {
        let images = self.store.images().await;
        let Some(entry) = self.turns.iter_mut().find(|entry| entry.turn == turn) else {
            return (None, Vec::new());
        };
        let mut changes = match only {
            Some(path) => entry.changes.of_file(path),
            None => entry.changes.clone(),
        };
        let undone = revert_in(workspace, changes.clone(), &images, Purpose::Undo).await;
        let Reverted { done, left } = undone;
        if done.is_empty() {
            return (None, without_folders_of(&left, &done));
        }
        let refused = refused_paths(&left);
        changes.retain(|change| !refused.contains(&*change.path));
        entry.changes.subtract(&changes);
        self.turns.retain(|entry| !entry.changes.is_empty());
        let undone = Undone {
            turn,
            paths: paths(&changes, &done),
            changes,
            reverted: done.clone(),
        };
        (Some(undone), without_folders_of(&left, &done))
    }

    /// Undoes what is left of these turns, or of their changes to one file, in this order.
    pub(super) async fn undo_turns(
        &mut self,
        workspace: &Workspace,
        turns: &[u64],
        only: Option<&Path>,
    ) -> (Vec<Undone>, Vec<Left>) {
        let (mut all, mut left) = (Vec::new(), Vec::new());
        for turn in turns {
            let (undone, stays) = self.undo_turn(workspace, *turn, only).await;
            all.extend(undone);
            left.extend(stays);
        }
        (all, left)
    }

    /// Undoes all turns from `first` on: a rejection of what they changed, whose number it returns.
    pub async fn undo_from(
        &mut self,
        workspace: &Workspace,
        first: u64,
    ) -> (Option<u64>, Reviewed) {
        let turns = self.turns.iter().rev().map(|entry| entry.turn);
        let turns: Vec<u64> = turns.take_while(|turn| *turn >= first).collect();
        let (all, left) = self.undo_turns(workspace, &turns, None).await;
        let files = if all.is_empty() {
            String::new()
        } else {
            format!(": {}", files_of(workspace, &all))
        };
        let rejection = turns
            .first()
            .filter(|_| !all.is_empty())
            .map(|last_turn| self.push(Kind::Rejection, *last_turn, all));
        let message = Some(format!(
            "restored to before {}{files}{}",
            self.name_of(first),
            stayed(workspace, &left)
        ));
        let reviewed = Reviewed {
            message,
            left,
            ..Reviewed::default()
        };
        (rejection, reviewed)
    }

    /// Reverts how changes were undone, and puts them under review again.
    pub(super) async fn reapply(&mut self, workspace: &Workspace, mut undone: Undone) -> Reapplied {
        let (turn, changes) = (undone.turn, std::mem::take(&mut undone.changes));
        let images = self.store.images().await;
        let reverted = undone.reverted.clone();
        let redone = revert_in(workspace, reverted, &images, Purpose::Redo).await;
        let Reverted { done, left } = redone;
        // The turn's changes that the system refused to redo before are already under review.
        let paths = paths(&undone.reverted, &done);
        let refused = refused_paths(&left);
        undone
            .reverted
            .retain(|change| refused.contains(&*change.path));
        self.put_back(turn, changes).await;
        Reapplied {
            paths,
            left: without_folders_of(&left, &done),
            rest: (!undone.reverted.is_empty()).then_some(undone),
        }
    }
}

/// Names the files of what was undone.
pub(super) fn files_of(workspace: &Workspace, all: &[Undone]) -> String {
    let paths: BTreeSet<&PathBuf> = all.iter().flat_map(|undone| &undone.paths).collect();
    named(workspace, paths.into_iter())
}

/// What the system refused, which it may not do the next time. Once what is in a folder can go, the folder can.
fn refused_paths(left: &[Left]) -> HashSet<PathBuf> {
    let mut refused: HashSet<PathBuf> = HashSet::new();
    for left in left.iter().filter(|left| left.reason.is_retryable()) {
        refused.insert(left.path.clone());
    }
    let holds_refused = |folder: &Left| refused.iter().any(|path| path.starts_with(&folder.path));
    let folders: Vec<_> = left
        .iter()
        .filter(|left| left.reason == Reason::NotEmpty && holds_refused(left))
        .map(|left| left.path.clone())
        .collect();
    refused.extend(folders);
    refused
}

/// Leaves out folders that stay only because something in them stays: reporting that is enough.
fn without_folders_of(left: &[Left], done: &ChangeSet) -> Vec<Left> {
    let mut stays: Vec<&Path> = left.iter().map(|left| &*left.path).collect();
    for change in &done.files {
        if change.after.is_file() {
            stays.push(&change.path);
        }
    }
    let mut reasons = Vec::new();
    for left in left {
        let is_inside = |path: &&Path| *path != left.path && path.starts_with(&left.path);
        if left.reason != Reason::NotEmpty || !stays.iter().any(is_inside) {
            reasons.push(left.clone());
        }
    }
    reasons
}

/// What a person is told about: the named parts of git's state and the changed files, or folders if there are neither.
/// git also rewrites its index when it is only queried: that, and what has no name, is reported only if nothing else
/// is.
fn paths(changes: &ChangeSet, done: &ChangeSet) -> Vec<PathBuf> {
    let changed: HashSet<&Path> = done.files.iter().map(|change| &*change.path).collect();
    let changed = changes
        .files
        .iter()
        .filter(|change| changed.contains(&*change.path));
    let (folders, files): (Vec<_>, Vec<_>) = changed.partition(|change| change.is_folder());
    let has_name = |change: &&EntryChange| {
        word_of_git(&change.path).is_some() && !change.path.ends_with("index")
    };
    let mut told: Vec<_> = done.git.iter().filter(has_name).collect();
    told.extend(if files.is_empty() { folders } else { files });
    if told.is_empty() {
        told.extend(first_of_git(done));
    }
    told.into_iter().map(|change| change.path.clone()).collect()
}

/// What stands for all changes of git's state.
pub(super) fn first_of_git(changes: &ChangeSet) -> Option<&EntryChange> {
    let rank = |change: &&EntryChange| (word_of_git(&change.path).is_none(), change.is_of_backup());
    changes.git.iter().min_by_key(rank)
}
