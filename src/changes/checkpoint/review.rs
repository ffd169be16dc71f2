//! Listing the changes of turns, and settling them hunk by hunk.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::reviewed::{
    ReviewError, Reviewed, ReviewedFile, ReviewedTurn, named, nothing, refused, stayed,
};
use super::undo::{Undone, files_of, first_of_git};
use super::{Checkpoints, Kind, TurnChanges};
use crate::changes::change_set::{Entry, EntryChange};
use crate::changes::edits::{self, Text};
use crate::changes::hunks::{PendingHunk, pending};
use crate::changes::in_workspace::TextFile;
use crate::changes::{ChangeSet, Images};
use crate::workspace::notebook::laid_out_as;
use crate::workspace::{Workspace, blocking};

/// The hunks of earlier turns are not listed if those of the later ones are larger, in bytes: a list is one message.
const LISTED: usize = 8 * 1024 * 1024;
/// How many bytes of the files that a turn's commands changed are searched for hunks.
const SEARCHED: u64 = 32 << 20;
/// How many of these files are listed.
const LISTED_FILES: usize = 100;
/// Larger texts of commands are not listed, in bytes; those of edits always are.
const TEXT: u64 = 1 << 20;
/// What looking for a file costs, in bytes read.
const FILE: u64 = 4096;
/// How much of a rejected hunk the model sees, in bytes.
const SHOWN: usize = 2000;

/// A person's action on the changes of a session.
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
    /// Returns files and the session to the state before this turn.
    Restore(u64),
}

/// A selection of changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// The turn. `None`: all turns; with a hunk, the last one that changed its file.
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
            // The history belongs to the session.
            Review::List | Review::Restore(_) => Reviewed::default(),
            Review::Keep(selection) => self.keep(workspace, &selection).await?,
            Review::Reject(selection) => self.reject(workspace, &selection).await?,
            Review::Undo(turn) => loop {
                let rejection = self.to_unreject().filter(|_| turn.is_none());
                let Some(rejection) = rejection else {
                    break self.undo(workspace, turn).await?;
                };
                let restored = self.unreject(workspace, rejection).await;
                // The user may have restored it already.
                if restored != Err(nothing()) {
                    break restored?;
                }
            },
            Review::Redo(turn) => self.redo(workspace, turn).await?,
        };
        self.publish();
        reviewed.turns = self.list(workspace).await;
        Ok(reviewed)
    }

    /// The last turns, as many as fit.
    async fn list(&mut self, workspace: &Workspace) -> Vec<ReviewedTurn> {
        let images = self.store.images().await;
        let (mut turns, mut bytes) = (VecDeque::new(), 0);
        for entry in self.turns.iter().rev() {
            let files = files(workspace, &images, &entry.changes, &turns).await;
            for hunk in files.iter().flat_map(|file| &file.hunks) {
                bytes += hunk.old_text.len() + hunk.diff.len();
            }
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
        let images = self.store.images().await;
        if self.turns.is_empty() {
            return Err(ReviewError("there is nothing to keep or reject".to_owned()));
        }
        let message = if *selection == Selection::default() {
            self.turns.clear();
            self.reversals
                .retain(|reversal| reversal.kind == Kind::Undo);
            "kept all changes".to_owned()
        } else {
            let entry = self.find(selection)?;
            match (&selection.path, selection.hunk) {
                (Some(path), Some(id)) => {
                    let turn = entry.turn;
                    let change = entry.change(path)?;
                    let kept = hunk(workspace, &images, change, id).await?;
                    settle(&images, change, kept.settled.clone()).await;
                    // Hunks of earlier turns that it repeats are kept with it.
                    for entry in self.turns.iter_mut().filter(|entry| entry.turn < turn) {
                        let Ok(change) = entry.change(path) else {
                            continue;
                        };
                        let is_kept = |hunk: &PendingHunk| hunk.is_repeated_by(&kept);
                        // Each is settled against the text with those before it.
                        for _ in 0..hunks(workspace, &images, change).await.len() {
                            let pending = hunks(workspace, &images, change).await;
                            let Some(hunk) = pending.into_iter().find(is_kept) else {
                                break;
                            };
                            settle(&images, change, hunk.settled).await;
                        }
                    }
                }
                (Some(path), None) => {
                    let is_kept =
                        |entry: &TurnChanges| selection.turn.is_none_or(|turn| turn == entry.turn);
                    for entry in self.turns.iter_mut().filter(|entry| is_kept(entry)) {
                        let kept = entry.changes.of_file(path);
                        entry.changes.subtract(&kept);
                    }
                }
                (None, _) => entry.changes = ChangeSet::default(),
            }
            selection.path.as_ref().map_or_else(
                || "kept".to_owned(),
                |path| format!("kept in {}", named(workspace, [path].into_iter())),
            )
        };
        self.forget_settled();
        Ok(Reviewed {
            message: Some(message),
            ..Reviewed::default()
        })
    }

    async fn reject(
        &mut self,
        workspace: &Workspace,
        selection: &Selection,
    ) -> Result<Reviewed, ReviewError> {
        let images = self.store.images().await;
        let last_turn = self.turns.last().ok_or_else(nothing)?.turn;
        let (undone, reviewed) = match (&selection.path, selection.hunk) {
            // A removed file has one hunk, which is the whole file.
            (Some(path), Some(id))
                if self.find(selection)?.change(path)?.after != Entry::Absent =>
            {
                let entry = self.find(selection)?;
                let (undone, reviewed) = entry.reject_hunk(workspace, &images, path, id).await?;
                (vec![undone], reviewed)
            }
            (path, _) => {
                let last = self.find(selection)?.turn;
                let is_one = selection.turn.is_some() || selection.hunk.is_some();
                let is_chosen = |entry: &&TurnChanges| match path {
                    _ if is_one => entry.turn == last,
                    Some(path) => !entry.changes.of_file(path).is_empty(),
                    None => true,
                };
                // The last turn first: an earlier one has more to reject then.
                let turns = self.turns.iter().rev().filter(is_chosen);
                let turns: Vec<u64> = turns.map(|entry| entry.turn).collect();
                self.reject_turns(workspace, &turns, path.as_deref())
                    .await?
            }
        };
        self.push(Kind::Rejection, last_turn, undone);
        self.forget_settled();
        Ok(reviewed)
    }

    async fn reject_turns(
        &mut self,
        workspace: &Workspace,
        turns: &[u64],
        only: Option<&Path>,
    ) -> Result<(Vec<Undone>, Reviewed), ReviewError> {
        let (rejected, left) = self.undo_turns(workspace, turns, only).await;
        if rejected.is_empty() {
            return Err(refused(workspace, "rejected", &left));
        }
        let paths = files_of(workspace, &rejected);
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
        for entry in &mut self.turns {
            entry.changes.retain(|change| change.before != change.after);
        }
        self.turns.retain(|entry| !entry.changes.is_empty());
    }

    /// The selected turn.
    fn find(&mut self, selection: &Selection) -> Result<&mut TurnChanges, ReviewError> {
        if selection.hunk.is_some() && selection.path.is_none() {
            return Err(ReviewError("`hunk` needs `path`, too".to_owned()));
        }
        for entry in self.turns.iter_mut().rev() {
            let is_turn = selection.turn.is_none_or(|turn| turn == entry.turn);
            let path = selection.path.as_deref();
            if is_turn && path.is_none_or(|path| !entry.changes.of_file(path).is_empty()) {
                return Ok(entry);
            }
        }
        Err(nothing())
    }
}

impl TurnChanges {
    fn change(&mut self, path: &Path) -> Result<&mut EntryChange, ReviewError> {
        let mut files = self.changes.files.iter_mut();
        files
            .find(|change| change.path == *path)
            .ok_or_else(nothing)
    }

    async fn reject_hunk(
        &mut self,
        workspace: &Workspace,
        images: &Arc<Images>,
        path: &Path,
        id: usize,
    ) -> Result<(Undone, Reviewed), ReviewError> {
        let turn = self.turn;
        let change = self.change(path)?;
        let hunk = hunk(workspace, images, change, id).await?;
        let refused = |reason: crate::changes::revert::Reason| ReviewError(reason.to_string());
        let file = TextFile::find(workspace, path).await.map_err(refused)?;
        let is_created = change.before == Entry::Absent;
        let target = (!is_created || !hunk.rejected.is_empty()).then_some(hunk.rejected);
        let reverted = file.write(workspace, images, target, None).await;
        let reverted = reverted.map_err(refused)?;
        let before = change.before.clone();
        settle(images, change, hunk.settled).await;
        let settled = EntryChange {
            before,
            after: change.before.clone(),
            ..change.clone()
        };
        let undone = Undone {
            turn,
            paths: vec![path.to_owned()],
            changes: ChangeSet {
                files: vec![settled],
                git: Vec::new(),
            },
            reverted: ChangeSet {
                files: reverted,
                git: Vec::new(),
            },
        };
        let path = workspace.shown(path);
        let (diff, _) = hunk.diff.split_at(hunk.diff.floor_char_boundary(SHOWN));
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

/// From now on `before` is the text before the change: what it has of the text afterwards is settled.
async fn settle(images: &Arc<Images>, change: &mut EntryChange, before: Arc<str>) {
    let (images, owned) = (Arc::clone(images), change.clone());
    change.before = blocking(move || {
        let text = |entry| edits::text(&images, entry, u64::MAX);
        let (Some(old), Some(new)) = (text(&owned.before), text(&owned.after)) else {
            return owned.after;
        };
        // A program may have laid the notebook out anew since.
        if *before == *laid_out_as(&owned.path, &new.text, &before) {
            return owned.after;
        }
        let stored = if owned.before == Entry::Absent {
            new.stored
        } else {
            old.stored
        };
        edits::keep(&images, &before, stored, edits::FILE).0
    })
    .await;
}

/// What is left of a turn's changes in each file; what `later` turns repeat is listed with them. For a turn that
/// changed only git's state, that state.
async fn files(
    workspace: &Workspace,
    images: &Arc<Images>,
    changes: &ChangeSet,
    later: &VecDeque<ReviewedTurn>,
) -> Vec<ReviewedFile> {
    let (mut files, mut searched, mut listed) = (Vec::new(), 0, 0);
    for change in &changes.files {
        if !change.is_edit {
            searched += FILE + change.before.size() + change.after.size();
            if searched > SEARCHED || listed == LISTED_FILES {
                continue;
            }
        }
        let mut hunks = hunks(workspace, images, change).await;
        let again = later.iter().flat_map(|turn| &turn.files);
        let again: Vec<_> = again
            .filter(|file| file.path == change.path)
            .flat_map(|file| &file.hunks)
            .collect();
        hunks.retain(|hunk| !again.iter().any(|later| hunk.is_repeated_by(later)));
        if !hunks.is_empty() {
            listed += usize::from(!change.is_edit);
            files.push(ReviewedFile {
                path: change.path.clone(),
                created: change.before == Entry::Absent,
                hunks,
            });
        }
    }
    if let (true, Some(first)) = (changes.files.is_empty(), first_of_git(changes)) {
        files.push(ReviewedFile {
            path: first.path.clone(),
            created: first.before == Entry::Absent,
            hunks: Vec::new(),
        });
    }
    files
}

async fn hunk(
    workspace: &Workspace,
    images: &Arc<Images>,
    change: &EntryChange,
    id: usize,
) -> Result<PendingHunk, ReviewError> {
    let found = hunks(workspace, images, change)
        .await
        .into_iter()
        .find(|hunk| hunk.id == id);
    found.ok_or_else(|| {
        ReviewError("this change has been edited since; nothing was done".to_owned())
    })
}

/// The hunks that can be undone; none where a file is not text or cannot be read.
async fn hunks(
    workspace: &Workspace,
    images: &Arc<Images>,
    change: &EntryChange,
) -> Vec<PendingHunk> {
    if change.is_folder() {
        return Vec::new();
    }
    let limit = if change.is_edit { u64::MAX } else { TEXT };
    let texts = edits::texts(images, change, limit).await;
    let Some((Text { text: before, .. }, Text { text: after, .. })) = texts else {
        return Vec::new();
    };
    if before == after {
        return Vec::new();
    }
    let Ok(file) = TextFile::find(workspace, &change.path).await else {
        return Vec::new();
    };
    let Some(now) = file.under(change) else {
        return Vec::new();
    };
    let path = change.path.clone();
    blocking(move || pending(&path, &before, &after, &now)).await
}
