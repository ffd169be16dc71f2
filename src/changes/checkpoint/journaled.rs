//! What is under review, to and from the journal: what a person settled, undid or redid stays so after a restart.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::reversal::Reversal;
use super::{Checkpoints, TurnChanges};
use crate::changes::ChangeSet;
use crate::changes::change_set::{Entry, EntryChange, joined};

/// What a journal says of the changes of a turn.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Journaled {
    /// A call of this turn changed something.
    Changed(u64, ChangeSet),
    /// A person settled, undid or redid something.
    Reviewed(Settled),
}

/// What a person settled, undid or redid.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Settled {
    /// What is under review now for each path that it changed, by turn, counted in prompts; empty if nothing differs.
    turns: Vec<(u64, ChangeSet)>,
    /// The numbers of the reversals that were reverted, kept or replaced.
    gone: Vec<u64>,
    /// The new ones, which follow the rest.
    new: Vec<Reversal>,
    /// A turn and what is left of it, in journals written before `turns`.
    #[serde(skip_serializing)]
    turn: Option<u64>,
    /// Likewise.
    #[serde(skip_serializing)]
    left: ChangeSet,
}

/// What a person can still settle, and revert.
pub(crate) struct UnderReview {
    turns: Vec<TurnChanges>,
    reversals: Vec<Reversal>,
}

impl Checkpoints {
    /// The changes under review, and the reversals.
    pub fn under_review(&self) -> UnderReview {
        UnderReview {
            turns: self.turns.clone(),
            reversals: self.reversals.clone(),
        }
    }

    /// How the changes under review differ from those `before`.
    pub fn reviewed_since(&self, before: &UnderReview) -> Settled {
        let mut settled = Settled::default();
        let turns = before.turns.iter().chain(&self.turns);
        let turns: BTreeSet<u64> = turns.map(|entry| entry.turn).collect();
        let of = |turns: &[TurnChanges], turn: u64| {
            let found = turns.iter().find(|entry| entry.turn == turn);
            found.map_or_else(ChangeSet::default, |entry| entry.changes.clone())
        };
        for turn in turns {
            let (old, new) = (of(&before.turns, turn), of(&self.turns, turn));
            let left = ChangeSet {
                files: differing(&old.files, &new.files),
                git: differing(&old.git, &new.git),
            };
            if !left.is_empty() {
                settled.turns.push((turn, left));
            }
        }
        for one in &before.reversals {
            if !self.reversals.contains(one) {
                settled.gone.push(one.id);
            }
        }
        settled.new.clone_from(&self.reversals);
        settled.new.retain(|one| !before.reversals.contains(one));
        settled
    }

    /// How they will differ once this undo or rejection is reverted.
    pub async fn reviewed_ahead(&mut self, reverted: Option<usize>) -> Settled {
        let before = self.under_review();
        if let Some(index) = reverted {
            for undone in self.reversals.remove(index).undone.into_iter().rev() {
                self.put_back(undone.turn, undone.changes).await;
            }
        }
        let reviews = self.reviewed_since(&before);
        (self.turns, self.reversals) = (before.turns, before.reversals);
        reviews
    }

    /// Takes over what an earlier process recorded.
    pub async fn restore(&mut self, recorded: Journaled) {
        match recorded {
            Journaled::Changed(turn, changes) => self.change(turn, changes).await,
            Journaled::Reviewed(Settled {
                turns,
                gone,
                new,
                turn,
                left,
            }) => {
                let earlier = turn.map(|turn| (turn, left));
                for (turn, left) in turns.into_iter().chain(earlier) {
                    let index = self.at(turn);
                    if let Some(entry) = self.turns.get_mut(index) {
                        settle(&mut entry.changes.files, left.files);
                        settle(&mut entry.changes.git, left.git);
                    }
                }
                self.turns.retain(|entry| !entry.changes.is_empty());
                self.reversals.retain(|one| !gone.contains(&one.id));
                let next = new.iter().map(|one| one.id + 1);
                self.next_reversal = next.fold(self.next_reversal, u64::max);
                self.reversals.extend(new);
                self.reversals.sort_by_key(|one| one.id);
            }
        }
        self.publish();
    }
}

impl Settled {
    /// Whether nothing differs.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// What is in `new` instead of what was in `old`.
fn differing(old: &[EntryChange], new: &[EntryChange]) -> Vec<EntryChange> {
    let known: HashMap<&Path, &EntryChange> = old.iter().map(|one| (&*one.path, one)).collect();
    let is_new = |change: &&EntryChange| known.get(&*change.path) != Some(change);
    let mut left: Vec<_> = new.iter().filter(is_new).cloned().collect();
    let there: BTreeSet<&Path> = new.iter().map(|change| &*change.path).collect();
    let gone = old.iter().filter(|change| !there.contains(&*change.path));
    left.extend(gone.map(|change| EntryChange {
        before: Entry::Absent,
        after: Entry::Absent,
        ..change.clone()
    }));
    left
}

/// Replaces the changes of these paths by what is `left`. Files stay in the order in which they were changed.
fn settle(changes: &mut Vec<EntryChange>, left: Vec<EntryChange>) {
    *changes = joined(std::mem::take(changes), left, |_known, left| Some(left));
    changes.retain(|change| change.before != change.after);
}
