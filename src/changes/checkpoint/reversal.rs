//! What a person undid or rejected in one step: an operation that can be reverted, after a restart too.

use std::path::PathBuf;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::reviewed::{ReviewError, Reviewed, named, nothing, refused, stayed};
use super::undo::Undone;
use super::{Checkpoints, Kind};
use crate::changes::revert::Left;
use crate::workspace::Workspace;

/// What a person undid or rejected in one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Reversal {
    /// Its number in the session, which no other gets.
    pub id: u64,
    pub kind: Kind,
    /// When.
    #[serde(skip, default = "Instant::now")]
    pub since: Instant,
    /// The last turn that was under review then: what later ones changed is undone before a rejection is.
    pub last_turn: u64,
    /// The changes, in the order in which they were undone.
    pub undone: Vec<Undone>,
}

impl Checkpoints {
    /// The index of the last rejection, if no turn has changed anything since.
    pub fn to_unreject(&self) -> Option<usize> {
        let index = self
            .reversals
            .iter()
            .rposition(|one| one.kind == Kind::Rejection)?;
        let last_turn = self.reversals.get(index)?.last_turn;
        let is_last = !self.turns.iter().any(|entry| entry.turn > last_turn);
        is_last.then_some(index)
    }

    /// The turn that an undo without a number begins with; `None` if it restores what was rejected instead.
    pub fn next_undone(&self) -> Option<u64> {
        if self.to_unreject().is_some() {
            return None;
        }
        self.turns.iter().map(|entry| entry.turn).max()
    }

    /// The index of the rejection with this number, if it is still there.
    pub fn rejection(&self, id: u64) -> Option<usize> {
        self.reversals.iter().position(|one| one.id == id)
    }

    /// The undone turn to redo, or the one undone last.
    pub fn to_redo(&self, turn: Option<u64>) -> Option<usize> {
        let is_of = |undone: &Undone| turn.is_none_or(|turn| turn == undone.turn);
        self.reversals
            .iter()
            .rposition(|reversal| reversal.kind == Kind::Undo && reversal.undone.iter().all(is_of))
    }

    /// Redoes an undone turn, or the one undone last.
    pub(super) async fn redo(
        &mut self,
        workspace: &Workspace,
        turn: Option<u64>,
    ) -> Result<Reviewed, ReviewError> {
        while let Some(index) = self.to_redo(turn) {
            let last_turn = self.reversals.get(index).map_or(0, |one| one.last_turn);
            let (did, these) = (
                format!("redid {}", self.name_of(last_turn)),
                "redid these changes of yours",
            );
            let redone = self
                .revert_as(workspace, index, "redone", &did, these)
                .await;
            // The user may have redone it already.
            if redone != Err(nothing()) {
                return redone;
            }
        }
        Err(ReviewError(
            "there is nothing to redo in this session".to_owned(),
        ))
    }

    /// Applies a rejection's changes again.
    pub(super) async fn unreject(
        &mut self,
        workspace: &Workspace,
        index: usize,
    ) -> Result<Reviewed, ReviewError> {
        let (did, these) = ("restored changes", "restored these changes of yours");
        self.revert_as(workspace, index, "restored", did, these)
            .await
    }

    /// Reverts a reversal. The words are for messages: what was `done`, what that `did` for the person, and to `these` for the model.
    async fn revert_as(
        &mut self,
        workspace: &Workspace,
        index: usize,
        done: &str,
        did: &str,
        these: &str,
    ) -> Result<Reviewed, ReviewError> {
        let (paths, left) = self.revert(workspace, index).await;
        if paths.is_empty() {
            return Err(refused(workspace, done, &left));
        }
        let (paths, left_alone) = (named(workspace, paths.iter()), stayed(workspace, &left));
        Ok(Reviewed {
            message: Some(format!("{did}: {paths}{left_alone}")),
            note: Some(format!("(the user {these}: {paths})")),
            left,
            ..Reviewed::default()
        })
    }

    /// Reverts a restore to before `turn`, with the rejection that undid its files.
    pub async fn undo_restore(
        &mut self,
        workspace: &Workspace,
        turn: u64,
        rejection: Option<usize>,
    ) -> Reviewed {
        let left = match rejection {
            Some(index) => self.revert(workspace, index).await.1,
            None => Vec::new(),
        };
        let left_alone = stayed(workspace, &left);
        Reviewed {
            message: Some(format!(
                "restored {} and later{left_alone}",
                self.name_of(turn)
            )),
            left,
            ..Reviewed::default()
        }
    }

    /// Applies again what a reversal undid: the files, and what was left alone. What the system refused can be retried.
    async fn revert(&mut self, workspace: &Workspace, index: usize) -> (Vec<PathBuf>, Vec<Left>) {
        let mut reversal = self.reversals.remove(index);
        let (mut paths, mut left) = (Vec::new(), Vec::new());
        for undone in std::mem::take(&mut reversal.undone).into_iter().rev() {
            let again = self.reapply(workspace, undone).await;
            paths.extend(again.paths);
            left.extend(again.left);
            reversal.undone.extend(again.rest);
        }
        if !reversal.undone.is_empty() {
            reversal.undone.reverse();
            self.reversals.insert(index, reversal);
        }
        paths.sort_unstable();
        paths.dedup();
        (paths, left)
    }
}
