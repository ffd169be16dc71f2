//! What each turn changed, so that a person can undo it: the last turn, one turn, one file or one hunk.
//!
//! Undoing works around the lines somebody changed since: it never touches them, and one such line does not keep the rest
//! from being undone. What was undone can be redone until another turn changes something. A hunk that was rejected or
//! kept is settled: it is part of neither.

mod change;
mod review;
mod reviewed;
mod store;
mod undo;

use std::path::PathBuf;
use std::time::Instant;

use tokio::sync::watch;

use crate::tools::FileDiff;
use change::Change;
pub use review::{Review, Selection};
pub use reviewed::{Left, ReviewError, Reviewed, ReviewedFile, ReviewedTurn};
use store::Store;
pub(super) use store::{Texts, address, folder};
use undo::Undone;

/// So many bytes of text are remembered; older turns can no longer be undone.
const MEMORY: usize = 64 * 1024 * 1024;

/// What there is to undo and to redo in a conversation, by when it was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Undoable {
    /// The last change.
    pub undo: Option<Instant>,
    /// The last undo.
    pub redo: Option<Instant>,
}

/// The changes of a conversation that are not settled.
pub(super) struct Checkpoints {
    /// By turn, the oldest first.
    entries: Vec<Entry>,
    /// What was undone, the last one last.
    undone: Vec<Undone>,
    store: Store,
    undoable: watch::Sender<Undoable>,
}

/// What a turn changed.
struct Entry {
    /// Its number.
    turn: u64,
    since: Instant,
    /// One a file.
    changes: Vec<Change>,
}

impl Checkpoints {
    /// No changes yet. Before-images go to `folder`; what there is to undo is published to `undoable`.
    pub fn new(folder: Option<PathBuf>, undoable: watch::Sender<Undoable>) -> Self {
        Self { entries: Vec::new(), undone: Vec::new(), store: Store::new(folder), undoable }
    }

    /// Remembers what a turn really changed. The first time the before-images cannot be stored, says why.
    pub async fn record(&mut self, session: &str, turn: u64, diffs: &[FileDiff]) -> Option<String> {
        let real = diffs.iter().filter(|diff| diff.old_text.as_ref() != Some(&diff.new_text));
        let real: Vec<_> = real.cloned().collect();
        if real.is_empty() {
            return None;
        }
        self.undone.clear();
        self.add(turn, real.iter().map(Change::of));
        let problem = self.store.save(session, turn, &real).await.err();
        self.forget_oldest();
        self.publish();
        problem
    }

    /// Remembers what turns of an earlier process changed.
    pub fn restore(&mut self, changed: Vec<(u64, Vec<FileDiff>)>) {
        for (turn, diffs) in changed {
            self.add(turn, diffs.iter().map(Change::of));
        }
        self.forget_oldest();
        self.publish();
    }

    /// The texts that are stored.
    pub async fn texts(&mut self) -> Texts {
        self.store.texts().await
    }

    /// Adds what was changed to what the turn changed before.
    fn add(&mut self, turn: u64, changes: impl IntoIterator<Item = Change>) {
        let index = self.entries.partition_point(|entry| entry.turn < turn);
        if self.entries.get(index).is_none_or(|entry| entry.turn != turn) {
            self.entries.insert(index, Entry { turn, since: Instant::now(), changes: Vec::new() });
        }
        if let Some(entry) = self.entries.get_mut(index) {
            entry.since = Instant::now();
            changes.into_iter().for_each(|change| entry.add(change));
        }
        self.entries.retain(|entry| !entry.changes.is_empty());
    }

    fn forget_oldest(&mut self) {
        let mut bytes = 0;
        let of = |change: &Change| change.before.len() + change.after.len();
        let remembered = self.entries.iter().rev().take_while(|entry| {
            bytes += entry.changes.iter().map(of).sum::<usize>();
            bytes <= MEMORY
        });
        // The last one can be undone however large it is.
        let forgotten = self.entries.len().saturating_sub(remembered.count().max(1));
        self.entries.drain(..forgotten);
    }

    fn publish(&self) {
        let undo = self.entries.iter().map(|entry| entry.since).max();
        let redo = self.undone.last().map(|undone| undone.since);
        self.undoable.send_replace(Undoable { undo, redo });
    }
}

impl Entry {
    /// Adds a change; it becomes one with what was changed in the same file before.
    fn add(&mut self, change: Change) {
        match self.changes.iter().position(|earlier| earlier.path == change.path) {
            Some(index) => {
                let joined = self.changes.remove(index).then(change);
                self.changes.extend(joined);
            }
            None => self.changes.push(change),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(old_text: Option<&str>, new_text: &str) -> FileDiff {
        FileDiff { path: "/w/a".into(), old_text: old_text.map(Into::into), new_text: new_text.into() }
    }

    #[test]
    fn changes_of_a_file_become_one_without_what_was_typed_between() {
        let check = |first: FileDiff, second: FileDiff, expected: Option<FileDiff>| {
            assert_eq!(Change::of(&first).then(Change::of(&second)), expected.as_ref().map(Change::of));
        };
        check(diff(Some("a\n"), "b\n"), diff(Some("b\n"), "c\n"), Some(diff(Some("a\n"), "c\n")));
        check(diff(Some("a\n"), "b\n"), diff(Some("b\n"), "a\n"), None);
        check(diff(None, "b\n"), diff(Some("b\n"), "c\n"), Some(diff(None, "c\n")));
        check(diff(Some("a\n"), ""), diff(None, "c\n"), Some(diff(Some("a\n"), "c\n")));
        let (typed, then) = ("b\n1\nmine\n", "b\n2\nmine\n");
        check(diff(Some("a\n1\n2\n"), "b\n1\n2\n"), diff(Some(typed), then), Some(diff(Some("a\n1\nmine\n"), then)));
        check(diff(Some("a\n"), "b\n"), diff(Some("mine\n"), "c\n"), Some(diff(Some("mine\n"), "c\n")));
        let created = Change { before: "mine\n".into(), ..Change::of(&diff(None, "c\nmine\n")) };
        assert_eq!(
            Change::of(&diff(None, "b\n")).then(Change::of(&diff(Some("b\nmine\n"), "c\nmine\n"))),
            Some(created)
        );
    }

    #[tokio::test]
    async fn a_turn_is_one_entry_and_nothing_is_none() {
        let (undoable, watched) = watch::channel(Undoable::default());
        let mut checkpoints = Checkpoints::new(None, undoable);
        checkpoints.record("s", 1, &[diff(Some("a"), "a")]).await;
        assert_eq!(*watched.borrow(), Undoable::default());
        checkpoints.record("s", 1, &[diff(Some("a"), "b")]).await;
        checkpoints.record("s", 1, &[diff(Some("b"), "c")]).await;
        checkpoints.record("s", 2, &[diff(Some("c"), "d")]).await;
        assert_eq!(checkpoints.entries.len(), 2);
        assert_eq!(checkpoints.entries[0].changes, [Change::of(&diff(Some("a"), "c"))]);
        assert!(watched.borrow().undo.is_some() && watched.borrow().redo.is_none());
    }
}
