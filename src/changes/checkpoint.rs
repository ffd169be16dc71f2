//! What each turn changed, so that a person can undo it: the last turn, one turn, one file or one hunk.
//!
//! Undo works around the lines somebody changed since: it never touches them, and one such line does not prevent the
//! rest from being undone.
//!
//! What was undone can be redone until another turn changes something. A kept hunk is settled: it is part of neither. A
//! rejection is an operation of its own, which undo reverts.

mod change;
mod rejected;
mod review;
mod reviewed;
mod store;
mod stored;
mod undo;

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Instant;

use tokio::sync::watch;

use super::stored::Remembered;
use super::texts::Texts;
use crate::changes::ChangeSet;
use crate::changes::change_set::EntryChange;
use crate::domain::FileDiff;
use crate::workspace::Workspace;
use change::Change;
use rejected::Rejected;
pub use review::{Review, Selection};
pub use reviewed::{Left, ReviewError, Reviewed, ReviewedFile, ReviewedTurn};
use store::Store;
use undo::Undone;

/// The most text kept in memory, in bytes; older turns can no longer be undone.
const MEMORY: usize = 64 * 1024 * 1024;

/// Whether there is something to undo and to redo in a conversation, with the time it was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Undoable {
    /// The last change.
    pub undo: Option<Instant>,
    /// The last undo.
    pub redo: Option<Instant>,
}

/// The unsettled changes of a conversation.
pub(crate) struct Checkpoints {
    /// By turn, the oldest first.
    entries: Vec<Entry>,
    /// Undone turns, the last one last.
    undone: Vec<Undone>,
    /// What was rejected, the last step last.
    rejected: Vec<Rejected>,
    store: Store,
    /// The folder of the images that change sets refer to.
    images: Option<PathBuf>,
    undoable: watch::Sender<Undoable>,
}

/// What a turn changed.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// Its number.
    turn: u64,
    since: Instant,
    /// One per file.
    changes: Vec<Change>,
    /// Changes of its commands to git's own state, one per file.
    git: Vec<EntryChange>,
}

impl Checkpoints {
    /// No changes yet. Previous versions are stored in `folder`; `undoable` is updated.
    pub fn new(folder: Option<PathBuf>, undoable: watch::Sender<Undoable>) -> Self {
        Self {
            entries: Vec::new(),
            undone: Vec::new(),
            rejected: Vec::new(),
            store: Store::new(folder.clone()),
            images: folder,
            undoable,
        }
    }

    /// Records the actual changes of a call: texts, and everything a command did. Returns an error the first time
    /// previous versions cannot be stored.
    pub async fn record(
        &mut self,
        workspace: &Workspace,
        (session, turn): (&str, u64),
        diffs: &[FileDiff],
        command: Option<&ChangeSet>,
    ) -> Option<String> {
        let real = diffs.iter().filter(|diff| !diff.is_nothing());
        let real: Vec<_> = real.cloned().collect();
        if real.is_empty() && command.is_none_or(ChangeSet::is_empty) {
            return None;
        }
        self.undone.clear();
        let changes = change::all(workspace, diffs, command);
        self.add(
            turn,
            changes,
            command
                .map(|command| command.git.clone())
                .unwrap_or_default(),
        );
        let problem = self.store.save(session, turn, &real).await.err();
        self.forget_oldest();
        self.publish();
        problem
    }

    /// The turn that an undo without a number begins with; `None` if it restores what was rejected instead.
    pub fn next_undone(&self) -> Option<u64> {
        if self.to_unreject().is_some() {
            return None;
        }
        self.entries.iter().map(|entry| entry.turn).max()
    }

    /// Remembers what a turn of an earlier process changed.
    pub async fn restore(&mut self, workspace: &Workspace, change: Remembered, texts: &Texts) {
        match change {
            Remembered::Changed {
                turn,
                diffs,
                command,
            } => {
                let git = command
                    .as_ref()
                    .map(|command| command.git.clone())
                    .unwrap_or_default();
                self.add(
                    turn,
                    change::all(workspace, &diffs, command.as_deref()),
                    git,
                );
            }
            Remembered::Reviewed(review) => self.take_review(workspace, review, texts).await,
        }
        self.forget_oldest();
        self.publish();
    }

    /// The texts that are stored.
    pub async fn texts(&mut self) -> Texts {
        self.store.texts().await
    }

    /// Adds changes to the turn's previous ones.
    fn add(&mut self, turn: u64, changes: Vec<Change>, git: Vec<EntryChange>) {
        let index = self.entries.partition_point(|entry| entry.turn < turn);
        if self
            .entries
            .get(index)
            .is_none_or(|entry| entry.turn != turn)
        {
            self.entries.insert(
                index,
                Entry {
                    turn,
                    since: Instant::now(),
                    changes: Vec::new(),
                    git: Vec::new(),
                },
            );
        }
        if let Some(entry) = self.entries.get_mut(index) {
            entry.since = Instant::now();
            entry.changes = joined(
                std::mem::take(&mut entry.changes),
                changes,
                |change| &change.path,
                Change::then,
            );
            entry.git = joined(
                std::mem::take(&mut entry.git),
                git,
                |change| &change.path,
                EntryChange::then,
            );
        }
        self.entries.retain(|entry| !entry.is_empty());
    }

    fn forget_oldest(&mut self) {
        forget(&mut self.entries, |entry| size(&entry.changes));
        forget(&mut self.rejected, Rejected::size);
    }

    fn publish(&self) {
        let rejected = self.rejected.last().map(|rejected| rejected.since);
        let undo = self.entries.iter().map(|entry| entry.since).max();
        let undo = undo.max(rejected);
        let redo = self.undone.last().map(|undone| undone.since);
        self.undoable.send_replace(Undoable { undo, redo });
    }
}

impl PartialEq for Entry {
    /// Whether the same is under review of the same turn.
    fn eq(&self, other: &Self) -> bool {
        (self.turn, &self.changes, &self.git) == (other.turn, &other.changes, &other.git)
    }
}

impl Entry {
    fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.git.is_empty()
    }
}

fn size(changes: &[Change]) -> usize {
    let of = |change: &Change| change.before.len() + change.after.len();
    changes.iter().map(of).sum()
}

/// Drops the oldest beyond the memory. The last one can be undone however large it is.
fn forget<T>(list: &mut Vec<T>, size: impl Fn(&T) -> usize) {
    let mut bytes = 0;
    let remembered = list.iter().rev().take_while(|one| {
        bytes += size(one);
        bytes <= MEMORY
    });
    let remembered = remembered.count().max(1);
    list.drain(..list.len().saturating_sub(remembered));
}

/// Merges both lists, with one change per path; changes that cancel out are dropped.
fn joined<T>(
    earlier: Vec<T>,
    later: Vec<T>,
    path: impl Fn(&T) -> &PathBuf,
    then: impl Fn(T, T) -> Option<T>,
) -> Vec<T> {
    let mut by_path: HashMap<PathBuf, usize> = earlier
        .iter()
        .enumerate()
        .map(|(index, change)| (path(change).clone(), index))
        .collect();
    let mut changes: Vec<Option<T>> = earlier.into_iter().map(Some).collect();
    for change in later {
        let index = *by_path
            .entry(path(&change).clone())
            .or_insert(changes.len());
        match changes.get_mut(index) {
            None => changes.push(Some(change)),
            Some(place) => {
                *place = match place.take() {
                    Some(earlier) => then(earlier, change),
                    None => Some(change),
                }
            }
        }
    }
    changes.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests;
