//! What each turn changed, so that a person can undo it: the last turn, one turn, one file or one hunk.
//!
//! Undo never touches lines that others have changed since, and one such line does not prevent the rest from being
//! undone.
//!
//! An undone turn can be redone until another turn changes something. A kept hunk is settled: undo and redo skip it. A
//! rejection is a separate operation, which undo reverts; so is restoring the state before a turn.

mod journaled;
mod reversal;
mod review;
mod reviewed;
mod store;
mod undo;

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::change_set::{EntryChange, joined};
use super::{ChangeSet, Images, edits};
use crate::domain::FileDiff;
use crate::workspace::{Workspace, blocking};
pub(crate) use journaled::{Journaled, Settled};
use reversal::Reversal;
pub use review::{Review, Selection};
pub use reviewed::{ReviewError, Reviewed, ReviewedFile, ReviewedTurn};
use store::Store;
use undo::Undone;

/// What can be undone and redone in a session, with the time of each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Undoable {
    /// The last change.
    pub undo: Option<Instant>,
    /// The last undo.
    pub redo: Option<Instant>,
}

/// The unsettled changes of a session.
pub(crate) struct Checkpoints {
    /// Oldest first.
    turns: Vec<TurnChanges>,
    /// How the prompt of each turn begins, also of those that changed nothing.
    pub prompts: Vec<String>,
    /// What was undone or rejected, the latest at the end.
    reversals: Vec<Reversal>,
    next_reversal: u64,
    store: Store,
    undoable: watch::Sender<Undoable>,
}

/// What reverts a reversal.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// A redo, as long as no turn changes anything.
    Undo,
    /// An undo.
    Rejection,
}

/// What a turn changed.
#[derive(Debug, Clone)]
pub(crate) struct TurnChanges {
    /// Its number.
    turn: u64,
    since: Instant,
    /// One change per path, in the order in which they were changed first.
    changes: ChangeSet,
}

impl Checkpoints {
    /// No changes yet. Previous versions are stored in `folder`; `undoable` is updated.
    pub fn new(folder: Option<PathBuf>, undoable: watch::Sender<Undoable>) -> Self {
        Self {
            turns: Vec::new(),
            prompts: Vec::new(),
            reversals: Vec::new(),
            next_reversal: 0,
            store: Store::new(folder),
            undoable,
        }
    }

    /// Records what a call changed: everything a command did, and the texts that were edited. Returns it for the
    /// journal, and a notice the first time previous versions cannot be stored.
    pub async fn record(
        &mut self,
        workspace: &Workspace,
        turn: u64,
        diffs: &[FileDiff],
        command: Option<&ChangeSet>,
    ) -> (ChangeSet, Option<String>) {
        let mut changes = command.cloned().unwrap_or_default();
        let by_command: HashSet<&Path> = changes.files.iter().map(|change| &*change.path).collect();
        let is_edit = |diff: &&FileDiff| {
            !diff.is_nothing() && !by_command.contains(&*workspace.identity(&diff.path))
        };
        let diffs: Vec<FileDiff> = diffs.iter().filter(is_edit).cloned().collect();
        if diffs.is_empty() && changes.is_empty() {
            return (changes, None);
        }
        if self.store.is_full() {
            self.turns.clear();
            self.reversals.clear();
        }
        let (edits, problem) = self.edits(workspace, diffs).await;
        changes.files.extend(edits);
        self.change(turn, changes.clone()).await;
        self.publish();
        (changes, self.store.notice(problem))
    }

    /// These edits as changes whose images are stored, and why they could not be.
    pub async fn edits(
        &mut self,
        workspace: &Workspace,
        diffs: Vec<FileDiff>,
    ) -> (Vec<EntryChange>, Option<io::Error>) {
        let (owned, images) = (workspace.clone(), self.store.images().await);
        blocking(move || {
            let (mut edits, mut problem) = (Vec::new(), None);
            for diff in &diffs {
                let (changed, error) = edits::recorded(&owned, &images, diff);
                let then = |earlier, next| edits::then(&images, earlier, next);
                edits = joined(edits, changed, then);
                problem = problem.or(error);
            }
            (edits, problem)
        })
        .await
    }

    /// Moves the changes of a file or folder that the editor renamed. Returns whether there were any.
    pub fn follow(&mut self, from: &Path, to: &Path) -> bool {
        let mut followed = false;
        for entry in &mut self.turns {
            followed |= entry.changes.follow(from, to, |change| &change.after);
        }
        let undone = self.reversals.iter_mut().flat_map(|one| &mut one.undone);
        for Undone {
            changes, reverted, ..
        } in undone
        {
            followed |= changes.follow(from, to, |change| &change.before);
            followed |= reverted.follow(from, to, |change| &change.after);
        }
        followed
    }

    /// A turn, as a person knows it: no front end numbers its prompts.
    fn name_of(&self, turn: u64) -> String {
        let prompt = (1..)
            .zip(&self.prompts)
            .find(|(number, prompt)| *number == turn && !prompt.is_empty());
        prompt.map_or_else(
            || format!("turn {turn}"),
            |(_, prompt)| format!("“{prompt}”"),
        )
    }

    /// The stored previous versions.
    pub async fn images(&mut self) -> Arc<Images> {
        self.store.images().await
    }

    /// A turn changed something: what was undone before can't be redone any more.
    async fn change(&mut self, turn: u64, changes: ChangeSet) {
        if !changes.is_empty() {
            self.reversals
                .retain(|reversal| reversal.kind == Kind::Rejection);
        }
        self.add(turn, changes).await;
    }

    /// Adds changes to the turn's previous ones.
    async fn add(&mut self, turn: u64, changes: ChangeSet) {
        let images = self.store.images().await;
        let index = self.at(turn);
        if let Some(entry) = self.turns.get_mut(index) {
            let earlier = std::mem::take(&mut entry.changes);
            let join = move || earlier.then(changes, &images);
            (entry.since, entry.changes) = (Instant::now(), blocking(join).await);
        }
        self.turns.retain(|entry| !entry.changes.is_empty());
    }

    /// Adds undone changes again, before the turn's other changes.
    async fn put_back(&mut self, turn: u64, undone: ChangeSet) {
        let index = self.at(turn);
        let entry = self.turns.get_mut(index);
        let others = entry.map(|entry| std::mem::replace(&mut entry.changes, undone));
        self.add(turn, others.unwrap_or_default()).await;
    }

    /// Notes what was undone in one step, so that it can be reverted; returns its number.
    fn push(&mut self, kind: Kind, last_turn: u64, undone: Vec<Undone>) -> u64 {
        let id = self.next_reversal;
        self.next_reversal += 1;
        self.reversals.push(Reversal {
            id,
            kind,
            since: Instant::now(),
            last_turn,
            undone,
        });
        id
    }

    /// Notes what can be redone: with the rest of the turn if the system refused that before.
    fn push_undone(&mut self, undone: Undone) {
        let is_of_turn = |last: &&mut Reversal| {
            last.kind == Kind::Undo && last.undone.iter().all(|one| one.turn == undone.turn)
        };
        match self.reversals.last_mut().filter(is_of_turn) {
            Some(last) => {
                last.since = Instant::now();
                last.undone.push(undone);
            }
            None => _ = self.push(Kind::Undo, undone.turn, vec![undone]),
        }
    }

    /// Where the changes of a turn are, which may be none yet.
    fn at(&mut self, turn: u64) -> usize {
        let index = self.turns.partition_point(|entry| entry.turn < turn);
        if self.turns.get(index).is_none_or(|entry| entry.turn != turn) {
            let entry = TurnChanges {
                turn,
                since: Instant::now(),
                changes: ChangeSet::default(),
            };
            self.turns.insert(index, entry);
        }
        index
    }

    fn publish(&self) {
        let last = |kind: Kind| {
            let mut all = self.reversals.iter().rev();
            Some(all.find(|reversal| reversal.kind == kind)?.since)
        };
        let undo = self.turns.iter().map(|entry| entry.since).max();
        let (undo, redo) = (undo.max(last(Kind::Rejection)), last(Kind::Undo));
        self.undoable.send_replace(Undoable { undo, redo });
    }
}

#[cfg(test)]
mod tests;
