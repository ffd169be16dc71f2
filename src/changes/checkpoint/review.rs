//! Listing the changes of turns, and settling them hunk by hunk.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use super::change::{Change, File};
use super::reviewed::{
    ReviewError, Reviewed, ReviewedFile, ReviewedTurn, nothing, refused, stayed,
};
use super::undo::Undone;
use super::{Checkpoints, Entry};
use crate::changes::review::{PendingHunk, pending};
use crate::workspace::{Workspace, blocking};

/// The hunks of earlier turns are not listed if those of the later ones are larger, in bytes: a list is one message.
const LISTED: usize = 8 * 1024 * 1024;
/// How much of a rejected hunk the model sees, in bytes.
const SHOWN: usize = 2000;

/// A person's action on the changes of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Review {
    /// Lists them.
    List,
    /// Settles them: they can no longer be undone. Keeping everything settles what was rejected before, too.
    Keep(Selection),
    /// Undoes and settles them, in one step that `Undo` reverts.
    Reject(Selection),
    /// Undoes a turn; `None` for the last rejection or the last turn with something to undo, whichever is later.
    Undo(Option<u64>),
    /// Redoes an undone turn; `None` for the one undone last.
    Redo(Option<u64>),
    /// Returns files and conversation to the state before this turn.
    Restore(u64),
}

/// A selection of changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// The turn. `None`: with a path, the last turn that changed it; otherwise all turns.
    pub turn: Option<u64>,
    /// The file.
    pub path: Option<PathBuf>,
    /// The hunk of that file.
    pub hunk: Option<usize>,
}

impl Review {
    /// The same, with the selected file as its changes are recorded.
    pub(crate) fn with_identity(mut self, workspace: &Workspace) -> Self {
        if let Self::Keep(selection) | Self::Reject(selection) = &mut self {
            selection.path = selection
                .path
                .take()
                .map(|path| workspace.identity_of_named(&path));
        }
        self
    }
}

impl Checkpoints {
    /// Carries out the action and lists what can be reviewed afterwards.
    ///
    /// # Errors
    /// There is no such change, or nothing could be undone; nothing was changed then.
    pub async fn review(
        &mut self,
        workspace: &Workspace,
        review: Review,
    ) -> Result<Reviewed, ReviewError> {
        let mut reviewed = match review {
            // The conversation belongs to the session.
            Review::List | Review::Restore(_) => Reviewed::default(),
            Review::Keep(selection) => self.keep(workspace, &selection).await?,
            Review::Reject(selection) => self.reject(workspace, &selection).await?,
            Review::Undo(None) if self.to_unreject().is_some() => self.unreject(workspace).await?,
            Review::Undo(turn) => self.undo(workspace, turn).await?,
            Review::Redo(turn) => self.redo(workspace, turn).await?,
        };
        self.publish();
        reviewed.turns = self.list(workspace).await;
        Ok(reviewed)
    }

    /// The last turns, as many as fit.
    async fn list(&self, workspace: &Workspace) -> Vec<ReviewedTurn> {
        let (mut turns, mut bytes) = (VecDeque::new(), 0);
        for entry in self.entries.iter().rev() {
            let mut files = Vec::new();
            for change in &entry.changes {
                let hunks = hunks(workspace, change).await;
                if !hunks.is_empty() {
                    files.push(ReviewedFile {
                        path: change.path.clone(),
                        created: change.created,
                        hunks,
                    });
                }
            }
            let of = |hunk: &PendingHunk| hunk.old_text.len() + hunk.diff.len();
            bytes += files
                .iter()
                .flat_map(|file| &file.hunks)
                .map(of)
                .sum::<usize>();
            if bytes > LISTED && !turns.is_empty() {
                break;
            }
            if !files.is_empty() {
                turns.push_front(ReviewedTurn {
                    turn: entry.turn,
                    files,
                });
            }
        }
        turns.into()
    }

    async fn keep(
        &mut self,
        workspace: &Workspace,
        selection: &Selection,
    ) -> Result<Reviewed, ReviewError> {
        if self.entries.is_empty() {
            return Err(ReviewError("there is nothing to keep or undo".to_owned()));
        }
        let message = if *selection == Selection::default() {
            self.entries.clear();
            self.rejected.clear();
            "Changes kept"
        } else {
            let entry = self.find(selection)?;
            match (&selection.path, selection.hunk) {
                (Some(path), Some(id)) => {
                    let change = entry.change(path)?;
                    let hunk = hunk(workspace, change, id).await?;
                    change.settle(hunk.settled);
                }
                (Some(path), None) => entry.changes.retain(|change| change.path != *path),
                (None, _) => (entry.changes, entry.git) = (Vec::new(), Vec::new()),
            }
            "kept"
        };
        self.forget_settled();
        Ok(Reviewed {
            message: Some(message.to_owned()),
            ..Reviewed::default()
        })
    }

    async fn reject(
        &mut self,
        workspace: &Workspace,
        selection: &Selection,
    ) -> Result<Reviewed, ReviewError> {
        let last_turn = self.entries.last().ok_or_else(nothing)?.turn;
        let (undone, reviewed) = match (&selection.path, selection.hunk) {
            // A removed file has one hunk, which is the whole file.
            (Some(path), Some(id)) if !self.find(selection)?.change(path)?.after.is_empty() => {
                let entry = self.find(selection)?;
                let (undone, reviewed) = entry.reject_hunk(workspace, path, id).await?;
                (vec![undone], reviewed)
            }
            (path, _) => {
                // The last turn first: an earlier one has more to reject then.
                let turns: Vec<u64> = if *selection == Selection::default() {
                    self.entries.iter().rev().map(|entry| entry.turn).collect()
                } else {
                    vec![self.find(selection)?.turn]
                };
                self.reject_turns(workspace, &turns, path.as_deref())
                    .await?
            }
        };
        self.push_rejected(last_turn, undone);
        self.forget_settled();
        self.forget_oldest();
        Ok(reviewed)
    }

    async fn reject_turns(
        &mut self,
        workspace: &Workspace,
        turns: &[u64],
        only: Option<&Path>,
    ) -> Result<(Vec<Undone>, Reviewed), ReviewError> {
        let (mut rejected, mut left) = (Vec::new(), Vec::new());
        for turn in turns {
            let (undone, stays) = self.undo_turn(workspace, *turn, only).await;
            rejected.extend(undone);
            left.extend(stays);
        }
        if rejected.is_empty() {
            return Err(refused(workspace, "rejected", &left));
        }
        let paths: BTreeSet<&PathBuf> = rejected.iter().flat_map(|undone| &undone.paths).collect();
        let paths = workspace.named(paths.into_iter());
        let reviewed = Reviewed {
            message: Some(format!("rejected: {paths}{}", stayed(workspace, &left))),
            note: Some(format!(
                "(the user rejected these changes of yours: {paths})"
            )),
            left,
            ..Reviewed::default()
        };
        Ok((rejected, reviewed))
    }

    fn forget_settled(&mut self) {
        for entry in &mut self.entries {
            entry.changes.retain(|change| !change.is_settled());
        }
        self.entries.retain(|entry| !entry.is_empty());
    }

    /// The selected turn.
    fn find(&mut self, selection: &Selection) -> Result<&mut Entry, ReviewError> {
        if selection.hunk.is_some() && selection.path.is_none() {
            return Err(ReviewError("`hunk` needs `path`, too".to_owned()));
        }
        let fits = |entry: &&mut Entry| {
            selection.turn.is_none_or(|turn| turn == entry.turn)
                && selection
                    .path
                    .as_ref()
                    .is_none_or(|path| entry.changes.iter().any(|change| change.path == *path))
        };
        self.entries.iter_mut().rev().find(fits).ok_or_else(nothing)
    }
}

impl Entry {
    fn change(&mut self, path: &Path) -> Result<&mut Change, ReviewError> {
        self.changes
            .iter_mut()
            .find(|change| change.path == *path)
            .ok_or_else(nothing)
    }

    async fn reject_hunk(
        &mut self,
        workspace: &Workspace,
        path: &Path,
        id: usize,
    ) -> Result<(Undone, Reviewed), ReviewError> {
        let turn = self.turn;
        let change = self.change(path)?;
        let hunk = hunk(workspace, change, id).await?;
        let file = File::look(workspace, path)
            .await
            .map_err(|left| ReviewError(left.reason))?;
        let target = (!change.created || !hunk.rejected.is_empty()).then(|| hunk.rejected.clone());
        let removed = target.is_none();
        let rejected = file
            .give(workspace, target, change.stored)
            .await
            .map_err(|left| ReviewError(left.reason))?;
        change.settle(hunk.settled);
        let undone = Undone::hunk(turn, rejected, removed);
        let path = workspace.shown(path);
        let diff = hunk
            .diff
            .get(..hunk.diff.floor_char_boundary(SHOWN))
            .unwrap_or_default();
        let reviewed = Reviewed {
            message: Some(format!("rejected in {path}")),
            note: Some(format!(
                "(the user rejected this change of yours in {path}:\n{diff})"
            )),
            ..Reviewed::default()
        };
        Ok((undone, reviewed))
    }
}

async fn hunk(
    workspace: &Workspace,
    change: &Change,
    id: usize,
) -> Result<PendingHunk, ReviewError> {
    let found = hunks(workspace, change)
        .await
        .into_iter()
        .find(|hunk| hunk.id == id);
    found.ok_or_else(|| ReviewError("this change was edited since, so nothing was done".to_owned()))
}

async fn hunks(workspace: &Workspace, change: &Change) -> Vec<PendingHunk> {
    // A command's change of what is not text, or of one file of very many.
    if change.before == change.after {
        return Vec::new();
    }
    // Nothing can be undone in an unreadable file.
    let Ok(file) = File::look(workspace, &change.path).await else {
        return Vec::new();
    };
    let Some(now) = file.now_under(change) else {
        return Vec::new();
    };
    let Change { before, after, .. } = change.clone();
    blocking(move || pending(&before, &after, &now)).await
}
