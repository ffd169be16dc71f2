//! Undoing and redoing turns, file by file and around the lines somebody changed since.

use std::time::Instant;

use super::Checkpoints;
use super::change::Change;
use super::reviewed::{Left, ReviewError, Reviewed, display, names, refused, stayed};
use crate::tools::FileDiff;
use crate::workspace::Workspace;

/// A turn that was undone.
pub(super) struct Undone {
    turn: u64,
    /// When.
    pub since: Instant,
    /// What the turn had changed, and what undoing that changed, if it still stood.
    files: Vec<(Change, Option<FileDiff>)>,
}

impl Checkpoints {
    /// Undoes a turn, or the last one of which anything still stands.
    pub(super) async fn undo(&mut self, workspace: &Workspace, turn: Option<u64>) -> Result<Reviewed, ReviewError> {
        let mut overwritten = Vec::new();
        let turns: Vec<u64> = self.entries.iter().rev().map(|entry| entry.turn).collect();
        for turn in turns.into_iter().filter(|its| turn.is_none_or(|turn| turn == *its)) {
            let (paths, left) = self.undo_turn(workspace, turn).await?;
            if paths.is_empty() {
                overwritten.extend(left);
                continue;
            }
            let paths = names(&paths);
            return Ok(Reviewed {
                message: Some(format!("undid turn {turn}: {paths}{}", stayed(workspace, &left))),
                remark: Some(format!("(the user undid these changes of yours: {paths})")),
                left,
                turns: Vec::new(),
            });
        }
        Err(refused(workspace, "undone", &overwritten))
    }

    /// Undoes what can be of a turn; gives the files and what stayed. What failed stays with the turn, to be tried again.
    async fn undo_turn(&mut self, workspace: &Workspace, turn: u64) -> Result<(Vec<String>, Vec<Left>), ReviewError> {
        let mut left = Vec::new();
        let (mut files, mut paths, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        let Some(index) = self.entries.iter().position(|entry| entry.turn == turn) else { return Ok((paths, left)) };
        for change in self.entries.get(index).map(|entry| entry.changes.clone()).unwrap_or_default() {
            match change.undo(workspace, &mut left).await {
                Ok(diff) => {
                    paths.extend(diff.as_ref().map(|diff| display(workspace, &diff.path)));
                    files.push((change, diff));
                }
                Err(why) => {
                    left.push(why);
                    failed.push(change);
                }
            }
        }
        if paths.is_empty() {
            return if failed.is_empty() { Ok((paths, left)) } else { Err(refused(workspace, "undone", &left)) };
        }
        if failed.is_empty() {
            self.entries.remove(index);
        } else if let Some(entry) = self.entries.get_mut(index) {
            entry.changes = failed;
        }
        self.undone.push(Undone { turn, since: Instant::now(), files });
        Ok((paths, left))
    }

    /// Redoes a turn that was undone, or the one that was undone last.
    pub(super) async fn redo(&mut self, workspace: &Workspace, turn: Option<u64>) -> Result<Reviewed, ReviewError> {
        let index = self.undone.iter().rposition(|undone| turn.is_none_or(|turn| turn == undone.turn));
        let Some(index) = index else { return Err(ReviewError("there is nothing to redo".to_owned())) };
        let Undone { turn, since, files } = self.undone.remove(index);
        let (mut redone, mut paths, mut failed, mut left) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (change, diff) in files {
            let Some(diff) = diff else {
                redone.push(change);
                continue;
            };
            match Change::of(&diff).undo(workspace, &mut left).await {
                Ok(did) => {
                    paths.extend(did.map(|diff| display(workspace, &diff.path)));
                    redone.push(change);
                }
                Err(why) => {
                    left.push(why);
                    failed.push((change, Some(diff)));
                }
            }
        }
        if !failed.is_empty() {
            self.undone.insert(index, Undone { turn, since, files: failed });
        }
        self.add(turn, redone);
        if paths.is_empty() {
            return Err(refused(workspace, "redone", &left));
        }
        let paths = names(&paths);
        Ok(Reviewed {
            message: Some(format!("redid turn {turn}: {paths}{}", stayed(workspace, &left))),
            remark: Some(format!("(the user redid these changes of yours: {paths})")),
            left,
            turns: Vec::new(),
        })
    }
}
