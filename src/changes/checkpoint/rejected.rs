//! What a person rejected, and restoring it: an operation of its own, which undo reverts.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::Checkpoints;
use super::reviewed::{ReviewError, Reviewed, named, nothing, refused, stayed};
use super::undo::{Reapplied, Undone};
use crate::workspace::Workspace;

/// What a person rejected in one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Rejected {
    /// Its number in the session.
    pub id: u64,
    /// The time of the rejection.
    #[serde(skip, default = "Instant::now")]
    pub since: Instant,
    /// The last turn that was under review then: what later ones changed is undone first.
    last_turn: u64,
    /// The changes, in the order in which they were undone.
    undone: Vec<Undone>,
}

/// How the rejections that undo restores became others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rejections {
    /// The numbers of those that are restored or kept, or of which only a part is left.
    pub(super) gone: Vec<u64>,
    /// Those that follow the others.
    pub(super) new: Vec<Rejected>,
}

impl Checkpoints {
    /// Notes what was rejected in one step, so that it can be undone.
    pub(super) fn push_rejected(&mut self, last_turn: u64, undone: Vec<Undone>) {
        self.rejected.push(Rejected {
            id: self.rejected.last().map_or(0, |last| last.id + 1),
            since: Instant::now(),
            last_turn,
            undone,
        });
    }

    /// The turns that a restore undid, the last `count`, count as rejected once the session goes on without them: undo
    /// still restores them, after it undid what came later. Returns what to record.
    pub fn reject_undone(&mut self, last_turn: u64, count: usize) -> Option<Rejections> {
        let first = self.undone.len().saturating_sub(count);
        let undone = self.undone.split_off(first);
        if undone.is_empty() {
            return None;
        }
        self.push_rejected(last_turn, undone);
        self.publish();
        Some(Rejections {
            gone: Vec::new(),
            new: self.rejected.last().cloned().into_iter().collect(),
        })
    }

    /// What was rejected last, if no turn changed something since.
    pub(super) fn to_unreject(&self) -> Option<&[Undone]> {
        let last = self.rejected.last()?;
        let is_later = |turn: u64| turn > last.last_turn;
        let is_last = !self.turns.iter().any(|entry| is_later(entry.turn));
        is_last.then_some(last.undone.as_slice())
    }

    /// Applies again what was rejected last.
    pub(super) async fn unreject(
        &mut self,
        workspace: &Workspace,
    ) -> Result<Reviewed, ReviewError> {
        let Some(rejected) = self.rejected.pop() else {
            return Err(nothing());
        };
        let (mut paths, mut left, mut rest) = (BTreeSet::<PathBuf>::new(), Vec::new(), Vec::new());
        for undone in rejected.undone.into_iter().rev() {
            let Reapplied {
                paths: more,
                left: stays,
                rest: refused,
            } = self.reapply(workspace, undone).await;
            paths.extend(more);
            left.extend(stays);
            rest.extend(refused);
        }
        if !rest.is_empty() {
            rest.reverse();
            self.push_rejected(rejected.last_turn, rest);
        }
        if paths.is_empty() {
            return Err(refused(workspace, "restored", &left));
        }
        let paths = named(workspace, paths.iter());
        Ok(Reviewed {
            message: Some(format!(
                "restored what was rejected: {paths}{}",
                stayed(workspace, &left)
            )),
            note: Some(format!(
                "(the user restored these rejected changes of yours: {paths})"
            )),
            left,
            ..Reviewed::default()
        })
    }
}
