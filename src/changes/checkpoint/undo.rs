//! Undoing and redoing turns, file by file, around the lines somebody changed since.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::Checkpoints;
use super::change::{ByCommand, Change};
use super::reviewed::{Left, ReviewError, Reviewed, refused, stayed};
use crate::changes::change_set::EntryChange;
use crate::changes::revert::Reason;
use crate::changes::revert_in;
use crate::changes::{ChangeSet, Images};
use crate::domain::FileDiff;
use crate::workspace::Workspace;

/// A turn that was undone.
pub(super) struct Undone {
    pub turn: u64,
    /// When.
    pub since: Instant,
    /// The files.
    pub paths: Vec<PathBuf>,
    /// The turn's changes.
    pub changes: Vec<Change>,
    pub git: Vec<EntryChange>,
    /// How they were undone, in order.
    steps: Vec<Step>,
}

/// What became of undone changes that were applied again.
pub(super) struct Reapplied {
    pub paths: Vec<PathBuf>,
    pub left: Vec<Left>,
    /// What the system refused.
    pub rest: Option<Undone>,
}

impl Undone {
    /// A hunk that was rejected: how the file changed, and whether that removed it.
    pub fn hunk(turn: u64, rejected: FileDiff, removed: bool) -> Self {
        let path = rejected.path.clone();
        let old_text = (!removed).then(|| Arc::clone(&rejected.new_text));
        let again = FileDiff {
            path: path.clone(),
            old_text,
            new_text: rejected.old_text.clone().unwrap_or_default(),
            stored: None,
        };
        Self {
            turn,
            since: Instant::now(),
            changes: vec![Change::of(path.clone(), &again)],
            paths: vec![path],
            git: Vec::new(),
            steps: vec![Step::Text(rejected)],
        }
    }
}

/// A step of undoing a turn.
enum Step {
    /// A text was changed.
    Text(FileDiff),
    /// What commands did was reverted.
    Commands(ChangeSet),
}

/// An undo or redo in progress.
struct Work<'a> {
    workspace: &'a Workspace,
    images: Option<PathBuf>,
    /// The files that were changed, each once.
    paths: Vec<PathBuf>,
    known: HashSet<PathBuf>,
    left: Vec<Left>,
    steps: Vec<Step>,
}

impl Checkpoints {
    /// Undoes a turn, or the last one with changes left.
    pub(super) async fn undo(
        &mut self,
        workspace: &Workspace,
        turn: Option<u64>,
    ) -> Result<Reviewed, ReviewError> {
        let mut overwritten = Vec::new();
        let turns: Vec<u64> = self.entries.iter().rev().map(|entry| entry.turn).collect();
        for turn in turns
            .into_iter()
            .filter(|its| turn.is_none_or(|turn| turn == *its))
        {
            let (undone, left) = self.undo_turn(workspace, turn, None).await;
            if let Some(undone) = undone {
                let paths = workspace.named(undone.paths.iter());
                self.push(undone);
                return Ok(Reviewed {
                    message: Some(format!(
                        "undid turn {turn}: {paths}{}",
                        stayed(workspace, &left)
                    )),
                    note: Some(format!("(the user undid these changes of yours: {paths})")),
                    left,
                    can_redo: true,
                    ..Reviewed::default()
                });
            }
            let is_overwritten = left.iter().all(|left| left.is_changed);
            overwritten.extend(left);
            // What the system refuses now can be retried: no earlier turn is undone instead.
            if !is_overwritten {
                break;
            }
        }
        Err(refused(workspace, "undone", &overwritten))
    }

    /// Notes what can be redone: with the rest of the turn if the system refused that before.
    fn push(&mut self, undone: Undone) {
        match self
            .undone
            .last_mut()
            .filter(|last| last.turn == undone.turn)
        {
            Some(last) => {
                last.since = undone.since;
                last.paths.extend(undone.paths);
                last.changes.extend(undone.changes);
                last.git.extend(undone.git);
                last.steps.extend(undone.steps);
            }
            None => self.undone.push(undone),
        }
    }

    /// Undoes what is left of a turn, or of its changes to one file; `None` if nothing is left. What the system refused
    /// stays with the turn, to be retried.
    pub(super) async fn undo_turn(
        &mut self,
        workspace: &Workspace,
        turn: u64,
        only: Option<&Path>,
    ) -> (Option<Undone>, Vec<Left>) {
        let mut work = Work::new(workspace, self.images.clone());
        let Some(entry) = self.entries.iter_mut().find(|entry| entry.turn == turn) else {
            return (None, work.left);
        };
        let is_meant = |change: &Change| only.is_none_or(|path| change.path == *path);
        let changes: Vec<_> = entry
            .changes
            .iter()
            .filter(|change| is_meant(change))
            .cloned()
            .collect();
        let git = if only.is_none() {
            entry.git.clone()
        } else {
            Vec::new()
        };
        let failed: HashSet<PathBuf> = work.undo(&changes, &git).await.into_iter().collect();
        let Work {
            paths, left, steps, ..
        } = work;
        if paths.is_empty() {
            return (None, left);
        }
        entry
            .changes
            .retain(|change| !is_meant(change) || failed.contains(&change.path));
        entry
            .git
            .retain(|change| only.is_some() || failed.contains(&change.path));
        self.entries.retain(|entry| !entry.is_empty());
        let changes = changes
            .into_iter()
            .filter(|change| !failed.contains(&change.path))
            .collect();
        let git = git
            .into_iter()
            .filter(|change| !failed.contains(&change.path))
            .collect();
        (
            Some(Undone {
                turn,
                since: Instant::now(),
                paths,
                changes,
                git,
                steps,
            }),
            left,
        )
    }

    /// Undoes all turns from `first` on; returns how many.
    pub async fn undo_from(&mut self, workspace: &Workspace, first: u64) -> (usize, Reviewed) {
        let turns: Vec<u64> = self
            .entries
            .iter()
            .rev()
            .map(|entry| entry.turn)
            .filter(|turn| *turn >= first)
            .collect();
        let (mut count, mut paths, mut known, mut left) =
            (0, Vec::new(), HashSet::new(), Vec::new());
        for turn in turns {
            let (undone, stays) = self.undo_turn(workspace, turn, None).await;
            left.extend(stays);
            if let Some(undone) = undone {
                count += 1;
                paths.extend(
                    undone
                        .paths
                        .iter()
                        .filter(|path| known.insert((*path).clone()))
                        .cloned(),
                );
                self.undone.push(undone);
            }
        }
        let files = if paths.is_empty() {
            String::new()
        } else {
            format!(": {}", workspace.named(paths.iter()))
        };
        let message = Some(format!(
            "restored to before turn {first}{files}{}",
            stayed(workspace, &left)
        ));
        (
            count,
            Reviewed {
                message,
                left,
                ..Reviewed::default()
            },
        )
    }

    /// Redoes the last `count` turns that were undone to restore the state before turn `first`.
    pub async fn redo_last(&mut self, workspace: &Workspace, count: usize, first: u64) -> Reviewed {
        let mut left = Vec::new();
        for _ in 0..count {
            match self.redo(workspace, None).await {
                Ok(redone) => left.extend(redone.left),
                Err(error) => tracing::debug!("a turn could not be redone: {error}"),
            }
        }
        let message = Some(format!(
            "restored turn {first} and later{}",
            stayed(workspace, &left)
        ));
        Reviewed {
            message,
            left,
            ..Reviewed::default()
        }
    }

    /// The undone turn to redo, or the one undone last.
    pub(super) fn to_redo(&self, turn: Option<u64>) -> Option<usize> {
        self.undone
            .iter()
            .rposition(|undone| turn.is_none_or(|turn| turn == undone.turn))
    }

    /// Redoes an undone turn, or the one undone last.
    pub(super) async fn redo(
        &mut self,
        workspace: &Workspace,
        turn: Option<u64>,
    ) -> Result<Reviewed, ReviewError> {
        let Some(index) = self.to_redo(turn) else {
            return Err(ReviewError("there is nothing to redo".to_owned()));
        };
        let undone = self.undone.remove(index);
        let turn = undone.turn;
        let Reapplied { paths, left, rest } = self.reapply(workspace, undone).await;
        if let Some(rest) = rest {
            self.undone.insert(index, rest);
        }
        if paths.is_empty() {
            return Err(refused(workspace, "redone", &left));
        }
        let paths = workspace.named(paths.iter());
        Ok(Reviewed {
            message: Some(format!(
                "redid turn {turn}: {paths}{}",
                stayed(workspace, &left)
            )),
            note: Some(format!("(the user redid these changes of yours: {paths})")),
            left,
            ..Reviewed::default()
        })
    }

    /// Reverts how changes were undone, and puts them under review again.
    pub(super) async fn reapply(&mut self, workspace: &Workspace, undone: Undone) -> Reapplied {
        let Undone {
            turn,
            since,
            changes,
            git,
            steps,
            ..
        } = undone;
        let mut work = Work::new(workspace, self.images.clone());
        let failed = work.redo(steps, &changes).await;
        let rest = (!failed.is_empty()).then(|| Undone {
            turn,
            since,
            paths: Vec::new(),
            changes: Vec::new(),
            git: Vec::new(),
            steps: failed,
        });
        let Work { paths, left, .. } = work;
        self.add(turn, changes, git);
        Reapplied { paths, left, rest }
    }
}

impl<'a> Work<'a> {
    fn new(workspace: &'a Workspace, images: Option<PathBuf>) -> Self {
        let (paths, known, left, steps) = (Vec::new(), HashSet::new(), Vec::new(), Vec::new());
        Self {
            workspace,
            images,
            paths,
            known,
            left,
            steps,
        }
    }

    /// Undoes a turn's changes, last first: edits after the last command, then commands, then edits before the first
    /// command. Returns the paths the system refused to change.
    async fn undo(&mut self, changes: &[Change], git: &[EntryChange]) -> Vec<PathBuf> {
        let mut failed = Vec::new();
        let mut by_command = Vec::new();
        for change in changes {
            match self.undo_edited(change).await {
                Ok(true) => by_command.push(change),
                Ok(false) => {}
                Err(path) => failed.push(path),
            }
        }
        let files = by_command
            .iter()
            .filter_map(|change| Some(change.command.as_ref()?.change.clone()))
            .collect();
        let refused = self
            .revert(ChangeSet {
                files,
                git: git.to_vec(),
            })
            .await;
        for change in by_command {
            let path = change
                .command
                .as_ref()
                .map_or(&change.path, |command| &command.change.path);
            match refused.get(path) {
                // Once what is in it can go, the folder can.
                Some(Reason::NotEmpty) if holds_refused(path, &refused) => {
                    failed.push(change.path.clone());
                }
                None => {
                    self.changed(&change.path);
                    if let Some(earlier) = change.before_commands() {
                        failed.extend(self.undo_text(&earlier).await);
                    }
                }
                Some(reason) => failed.extend(self.refused(change, reason).await),
            }
        }
        for change in git {
            if let Some(reason) = refused
                .get(&change.path)
                .filter(|reason| is_retryable(reason))
            {
                self.left.push(whole(&change.path, reason));
                failed.push(change.path.clone());
            }
        }
        failed
    }

    /// Undoes tool changes to a file after its last command; returns whether to undo the commands next, or the path if
    /// the system refused.
    async fn undo_edited(&mut self, change: &Change) -> Result<bool, PathBuf> {
        let undone = match &change.command {
            Some(ByCommand { edited: None, .. }) => return Ok(true),
            // Byte for byte if nobody typed since or there is no other way; otherwise as text, around what was typed.
            Some(ByCommand {
                edited: Some(edited),
                is_text,
                ..
            }) if !is_text || change.is_as_left(self.workspace).await => {
                return self.undo_text(edited).await.map_or(Ok(true), Err);
            }
            _ => self.undo_text(change).await,
        };
        undone.map_or(Ok(false), Err)
    }

    fn changed(&mut self, path: &Path) {
        if self.known.insert(path.to_owned()) {
            self.paths.push(path.to_owned());
        }
    }

    /// Undoes what is left of a text; returns the path if the system refused.
    async fn undo_text(&mut self, change: &Change) -> Option<PathBuf> {
        match change.undo(self.workspace, &mut self.left).await {
            Ok(None) => None,
            Ok(Some(diff)) => {
                self.changed(&diff.path);
                self.steps.push(Step::Text(diff));
                None
            }
            Err(why) => {
                self.left.push(why);
                Some(change.path.clone())
            }
        }
    }

    /// Reverts what commands did; returns the paths that were not reverted, with reasons.
    async fn revert(&mut self, changes: ChangeSet) -> HashMap<PathBuf, Reason> {
        if changes.is_empty() {
            return HashMap::new();
        }
        let images = match &self.images {
            Some(images) => Images::open(images).unwrap_or_default(),
            None => Images::default(),
        };
        let has_git = !changes.git.is_empty();
        let reverted = revert_in(self.workspace, changes, Arc::new(images)).await;
        if !reverted.done.is_empty() {
            for change in &reverted.done.files {
                self.changed(&change.path);
            }
            if has_git && reverted.done.files.is_empty() {
                self.paths
                    .extend(reverted.done.git.first().map(|change| change.path.clone()));
            }
            self.steps.push(Step::Commands(reverted.done));
        }
        let git = reverted
            .left
            .iter()
            .find(|left| left.reason == Reason::GitMoved);
        self.left
            .extend(git.map(|left| whole(&left.path, &left.reason)));
        reverted
            .left
            .into_iter()
            .map(|left| (left.path, left.reason))
            .collect()
    }

    /// The path is not as the commands left it: undoes its text around what changed, else leaves it.
    async fn refused(&mut self, change: &Change, reason: &Reason) -> Option<PathBuf> {
        let is_text = change
            .command
            .as_ref()
            .is_some_and(|command| command.is_text);
        if is_text && matches!(reason, Reason::Changed | Reason::Open) {
            return self.undo_text(&change.until_last_command()).await;
        }
        self.left.push(whole(&change.path, reason));
        is_retryable(reason).then(|| change.path.clone())
    }

    /// The path is not as undo left it: redoes its text around what changed, else leaves it.
    async fn redo_refused(&mut self, path: &Path, reason: &Reason, changes: &[Change]) {
        let is_text = |change: &&Change| {
            change.path == *path && change.command.as_ref().is_some_and(|by| by.is_text)
        };
        match changes
            .iter()
            .find(is_text)
            .filter(|change| !change.created)
        {
            Some(change) if matches!(reason, Reason::Changed | Reason::Open) => {
                let _refused = self
                    .undo_text(&change.until_last_command().reversed())
                    .await;
            }
            _ => self.left.push(whole(path, reason)),
        }
    }

    /// Reverts the steps, last first; returns those the system refused.
    async fn redo(&mut self, steps: Vec<Step>, changes: &[Change]) -> Vec<Step> {
        let mut failed = Vec::new();
        for step in steps.into_iter().rev() {
            match step {
                Step::Text(diff) => {
                    if self
                        .undo_text(&Change::of(diff.path.clone(), &diff))
                        .await
                        .is_some()
                    {
                        failed.insert(0, Step::Text(diff));
                    }
                }
                Step::Commands(set) => {
                    let refused = self.revert(set.clone()).await;
                    for change in &set.files {
                        match refused.get(&change.path) {
                            None => self.changed(&change.path),
                            Some(reason) => self.redo_refused(&change.path, reason, changes).await,
                        }
                    }
                    let is_left = |change: &EntryChange| {
                        refused.get(&change.path).is_some_and(is_retryable)
                            || holds_refused(&change.path, &refused)
                    };
                    let ChangeSet { mut files, mut git } = set;
                    files.retain(is_left);
                    git.retain(is_left);
                    let why = |change: &EntryChange| {
                        Some(whole(&change.path, refused.get(&change.path)?))
                    };
                    self.left.extend(git.iter().filter_map(why));
                    if !(files.is_empty() && git.is_empty()) {
                        failed.insert(0, Step::Commands(ChangeSet { files, git }));
                    }
                }
            }
        }
        failed
    }
}

/// Whether the system refused, which it may not do the next time.
fn is_retryable(reason: &Reason) -> bool {
    matches!(reason, Reason::Denied | Reason::Full | Reason::Io(_))
}

/// Whether the folder could not be removed because the system refused to remove something in it.
fn holds_refused(folder: &Path, refused: &HashMap<PathBuf, Reason>) -> bool {
    let is_inside = |path: &Path| path != folder && path.starts_with(folder);
    refused.get(folder) == Some(&Reason::NotEmpty)
        && refused
            .iter()
            .any(|(path, reason)| is_inside(path) && is_retryable(reason))
}

fn whole(path: &Path, reason: &Reason) -> Left {
    let is_changed = matches!(
        reason,
        Reason::Changed | Reason::GitMoved | Reason::NotEmpty
    );
    Left {
        path: path.to_owned(),
        lines: None,
        is_changed,
        reason: reason.to_string(),
    }
}
