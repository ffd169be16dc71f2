//! What each turn changed, so that a person can take it back: the last of it, one turn, one file or one hunk.
//!
//! What is taken back is first worked out for all files against their text as it is now, then done, through the
//! workspace like any other change: lines somebody changed since are never trampled, and whatever was taken back can
//! be brought back.

mod review;
mod store;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;

use crate::tools::FileDiff;
use crate::workspace::{Change, edit};
pub use review::{Review, ReviewError, Reviewed, ReviewedFile, ReviewedTurn, Selection};
use store::Store;
pub(super) use store::{Texts, address, folder};

/// So many bytes of text are remembered; the turns before are settled.
const MEMORY: usize = 64 * 1024 * 1024;

/// What there is to take back in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Undoable {
    /// When it was done.
    pub since: Instant,
    /// Whether it is something taken back: undoing brings it back.
    pub is_undo: bool,
}

/// The changes of a conversation that were not settled.
pub(super) struct Checkpoints {
    entries: Vec<Entry>,
    store: Store,
    undoable: watch::Sender<Option<Undoable>>,
}

/// What was changed together.
struct Entry {
    origin: Origin,
    since: Instant,
    /// In the order they were made, in most cases one a file.
    changes: Vec<FileDiff>,
}

/// Who changed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// A turn, by its number.
    Turn(u64),
    /// The person, by taking something back.
    Undo,
}

impl Checkpoints {
    /// No changes yet. Before-images go to `folder`; what there is to take back is told to `undoable`.
    pub fn new(folder: Option<PathBuf>, undoable: watch::Sender<Option<Undoable>>) -> Self {
        Self { entries: Vec::new(), store: Store::new(folder), undoable }
    }

    /// Remembers what a turn really changed. The first time the before-images cannot be stored, says why.
    pub async fn record(&mut self, session: &str, turn: u64, diffs: &[FileDiff]) -> Option<String> {
        let real = diffs.iter().filter(|diff| diff.old_text.as_ref() != Some(&diff.new_text));
        let real: Vec<_> = real.cloned().collect();
        if real.is_empty() {
            return None;
        }
        if self.entries.last().is_none_or(|entry| entry.origin != Origin::Turn(turn)) {
            self.push(Origin::Turn(turn), Vec::new());
        }
        let entry = self.entries.last_mut()?;
        for diff in &real {
            entry.add(diff);
        }
        let problem = self.store.save(session, turn, &real).await.err();
        self.forget_oldest();
        self.publish();
        problem
    }

    /// Remembers what turns of an earlier process changed.
    pub fn restore(&mut self, changed: Vec<(u64, Vec<FileDiff>)>) {
        for (turn, diffs) in changed {
            if self.entries.last().is_none_or(|entry| entry.origin != Origin::Turn(turn)) {
                self.push(Origin::Turn(turn), Vec::new());
            }
            if let Some(entry) = self.entries.last_mut() {
                for diff in &diffs {
                    entry.add(diff);
                }
            }
        }
        self.forget_oldest();
        self.publish();
    }

    /// The texts that are kept.
    pub async fn texts(&mut self) -> Texts {
        self.store.texts().await
    }

    fn push(&mut self, origin: Origin, changes: Vec<FileDiff>) {
        self.entries.push(Entry { origin, since: Instant::now(), changes });
    }

    fn forget_oldest(&mut self) {
        let mut bytes = 0;
        let of = |diff: &FileDiff| diff.new_text.len() + diff.old_text.as_ref().map_or(0, |old| old.len());
        let kept = self.entries.iter().rev().take_while(|entry| {
            bytes += entry.changes.iter().map(of).sum::<usize>();
            bytes <= MEMORY
        });
        // The last one can be taken back however large it is.
        let forgotten = self.entries.len().saturating_sub(kept.count().max(1));
        self.entries.drain(..forgotten);
    }

    fn publish(&self) {
        let last = self.entries.last();
        let last = last.map(|entry| Undoable { since: entry.since, is_undo: entry.origin == Origin::Undo });
        self.undoable.send_replace(last);
    }
}

impl Entry {
    /// Adds a change; it becomes one with what was changed in the same file before.
    fn add(&mut self, diff: &FileDiff) {
        let earlier = self.changes.iter_mut().rev().find(|earlier| earlier.path == diff.path);
        match earlier.and_then(|earlier| Some((joined(earlier, diff)?, earlier))) {
            Some((joined, earlier)) => *earlier = joined,
            None => self.changes.push(diff.clone()),
        }
    }
}

/// Two changes of a file, one after the other, as one. What somebody typed between them is no part of it; `None` where
/// it cannot be told apart.
fn joined(first: &FileDiff, second: &FileDiff) -> Option<FileDiff> {
    let between = second.old_text.clone().unwrap_or_default();
    let old_text = match &first.old_text {
        old_text if between == first.new_text => old_text.clone(),
        None => return None,
        Some(before) => {
            let typing = Change::Revert { before: before.clone(), after: first.new_text.clone() };
            Some(edit::apply(&between, &typing).ok()?.new_text)
        }
    };
    Some(FileDiff { path: first.path.clone(), old_text, new_text: Arc::clone(&second.new_text) })
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
            assert_eq!(joined(&first, &second), expected);
        };
        check(diff(Some("a\n"), "b\n"), diff(Some("b\n"), "c\n"), Some(diff(Some("a\n"), "c\n")));
        check(diff(None, "b\n"), diff(Some("b\n"), "c\n"), Some(diff(None, "c\n")));
        check(diff(Some("a\n"), ""), diff(None, "c\n"), Some(diff(Some("a\n"), "c\n")));
        let (typed, then) = ("b\n1\nmine\n", "b\n2\nmine\n");
        check(diff(Some("a\n1\n2\n"), "b\n1\n2\n"), diff(Some(typed), then), Some(diff(Some("a\n1\nmine\n"), then)));
        check(diff(Some("a\n"), "b\n"), diff(Some("mine\n"), "c\n"), None);
        check(diff(None, "b\n"), diff(Some("b\nmine\n"), "c\n"), None);
    }

    #[tokio::test]
    async fn a_turn_is_one_entry_and_nothing_is_none() {
        let (undoable, watched) = watch::channel(None);
        let mut checkpoints = Checkpoints::new(None, undoable);
        checkpoints.record("s", 1, &[diff(Some("a"), "a")]).await;
        assert_eq!(*watched.borrow(), None);
        checkpoints.record("s", 1, &[diff(Some("a"), "b")]).await;
        checkpoints.record("s", 1, &[diff(Some("b"), "c")]).await;
        checkpoints.record("s", 2, &[diff(Some("c"), "d")]).await;
        assert_eq!(checkpoints.entries.len(), 2);
        assert_eq!(checkpoints.entries[0].changes, [diff(Some("a"), "c")]);
        assert!(watched.borrow().is_some_and(|undoable| !undoable.is_undo));
    }
}
