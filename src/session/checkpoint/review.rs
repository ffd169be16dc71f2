//! Looking at what turns changed, settling it, and taking it back.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Checkpoints, Entry, Origin};
use crate::tools::FileDiff;
use crate::workspace::review::{PendingHunk, kept, pending};
use crate::workspace::{Change, FileChange, FileError, Source, Workspace, WorkspacePath, blocking, edit};

/// As much of a rejected hunk is told to the model, in bytes.
const TOLD: usize = 2000;

/// What a person does about the changes of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Review {
    /// Looks at them.
    List,
    /// Settles them: they can not be taken back any more.
    Keep(Selection),
    /// Takes them back.
    Reject(Selection),
}

/// Which changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Those of one turn. None: with a path the last turn that changed it; else the last change of all, an undo
    /// included, or when keeping everything.
    pub turn: Option<u64>,
    /// Those of one file.
    pub path: Option<PathBuf>,
    /// One hunk of that file.
    pub hunk: Option<usize>,
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reviewed {
    /// What can be reviewed now.
    pub turns: Vec<ReviewedTurn>,
    /// What was done, for the person.
    pub message: Option<String>,
    /// What was done, for the model.
    pub(in crate::session) remark: Option<String>,
}

/// What is still there of a turn's changes.
#[derive(Debug, Clone, PartialEq)]
pub struct ReviewedTurn {
    /// Its number, counted from 1.
    pub turn: u64,
    /// The files.
    pub files: Vec<ReviewedFile>,
}

/// What is still there of a turn's changes of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct ReviewedFile {
    /// Absolute.
    pub path: PathBuf,
    /// Whether the turn made the file.
    pub created: bool,
    /// The hunks.
    pub hunks: Vec<PendingHunk>,
}

/// Why nothing was done, in words for the person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ReviewError(pub String);

/// A file on its way back.
struct Restored {
    path: WorkspacePath,
    /// As it is; `None`: not there.
    now: Option<Arc<str>>,
    unsaved: bool,
    /// As it is to be.
    target: Option<Arc<str>>,
}

impl Checkpoints {
    /// Does it, and lists what is left.
    ///
    /// # Errors
    /// When there is no such change, or taking it back would lose what was typed since; nothing was changed then. Also
    /// when some files could be changed and others not.
    pub async fn review(&mut self, workspace: &Workspace, review: Review) -> Result<Reviewed, ReviewError> {
        let mut reviewed = match review {
            Review::List => Reviewed::default(),
            Review::Keep(selection) => Reviewed { message: Some(self.keep(&selection)?), ..Reviewed::default() },
            Review::Reject(selection) => self.reject(workspace, &selection).await?,
        };
        self.publish();
        reviewed.turns = self.list(workspace).await;
        Ok(reviewed)
    }

    async fn list(&self, workspace: &Workspace) -> Vec<ReviewedTurn> {
        let mut turns = Vec::new();
        for entry in &self.entries {
            let Origin::Turn(turn) = entry.origin else { continue };
            let mut files = Vec::new();
            for change in &entry.changes {
                let hunks = hunks(workspace, change).await;
                if !hunks.is_empty() {
                    files.push(ReviewedFile { path: change.path.clone(), created: change.old_text.is_none(), hunks });
                }
            }
            if !files.is_empty() {
                turns.push(ReviewedTurn { turn, files });
            }
        }
        turns
    }

    fn keep(&mut self, selection: &Selection) -> Result<String, ReviewError> {
        if *selection == Selection::default() {
            if self.entries.is_empty() {
                return Err(ReviewError("there is nothing to keep or undo".to_owned()));
            }
            self.entries.clear();
            return Ok("kept; there is nothing to undo any more".to_owned());
        }
        let index = self.find(selection)?;
        let entry = self.entries.get_mut(index).ok_or_else(nothing)?;
        match (&selection.path, selection.hunk) {
            (Some(path), Some(hunk)) => entry.keep_hunk(path, hunk)?,
            (Some(path), None) => entry.changes.retain(|change| change.path != *path),
            (None, _) => entry.changes.clear(),
        }
        self.entries.retain(|entry| !entry.changes.is_empty());
        Ok("kept".to_owned())
    }

    async fn reject(&mut self, workspace: &Workspace, selection: &Selection) -> Result<Reviewed, ReviewError> {
        let index = self.find(selection)?;
        let entry = self.entries.get(index).ok_or_else(nothing)?;
        let mut told = None;
        let mut files = match (&selection.path, selection.hunk) {
            (Some(path), Some(hunk)) => {
                let (file, diff) = entry.without_hunk(workspace, path, hunk).await?;
                told = Some(diff);
                vec![file]
            }
            (path, _) => entry.taken_back(workspace, path.as_deref()).await?,
        };
        files.retain(|file| file.target != file.now);
        if files.is_empty() {
            return Err(ReviewError("nothing of that change is left to undo".to_owned()));
        }
        let brings_back = entry.origin == Origin::Undo;
        let (done, failed) = restore(workspace, files).await;
        let paths = done.iter().map(|(path, _)| path.display()).collect::<Vec<_>>().join(", ");
        let changes = done.into_iter().map(|(_, diff)| diff).collect::<Vec<_>>();
        match (brings_back, changes.is_empty()) {
            (true, _) if failed.is_none() => drop(self.entries.remove(index)),
            (_, false) => self.push(Origin::Undo, changes),
            (_, true) => {}
        }
        if let Some(error) = failed {
            let rest = if paths.is_empty() { String::new() } else { format!("; undone before that: {paths}") };
            self.publish();
            return Err(ReviewError(format!("{error}{rest}")));
        }
        let (message, remark) = match (brings_back, told) {
            (true, _) => {
                (format!("brought back: {paths}"), format!("(the user undid the undo: {paths} changed back again)"))
            }
            (false, Some(diff)) => (
                format!("rejected in {paths}"),
                format!("(the user rejected this change of yours in {paths}:\n{diff})"),
            ),
            (false, None) => (
                format!("undone: {paths} (undo again brings it back)"),
                format!("(the user undid these changes of yours: {paths})"),
            ),
        };
        Ok(Reviewed { message: Some(message), remark: Some(remark), turns: Vec::new() })
    }

    /// The entry that is meant.
    fn find(&self, selection: &Selection) -> Result<usize, ReviewError> {
        if selection.hunk.is_some() && selection.path.is_none() {
            return Err(ReviewError("a hunk is named together with its path".to_owned()));
        }
        let fits = |entry: &Entry| match (selection.turn, &selection.path) {
            (None, None) => true,
            (turn, path) => {
                matches!(entry.origin, Origin::Turn(its) if turn.is_none_or(|turn| turn == its))
                    && path.as_ref().is_none_or(|path| entry.changes.iter().any(|change| change.path == *path))
            }
        };
        self.entries.iter().rposition(fits).ok_or_else(nothing)
    }
}

impl Entry {
    fn keep_hunk(&mut self, path: &Path, hunk: usize) -> Result<(), ReviewError> {
        let change = self.changes.iter_mut().rev().find(|change| change.path == *path).ok_or_else(nothing)?;
        let before = kept(change.old_text.as_deref(), &change.new_text, hunk).ok_or_else(gone)?;
        change.old_text = Some(before.into());
        self.changes.retain(|change| change.old_text.as_ref() != Some(&change.new_text));
        Ok(())
    }

    /// A file without one hunk, and the hunk as the model is told of it.
    async fn without_hunk(
        &self,
        workspace: &Workspace,
        path: &Path,
        hunk: usize,
    ) -> Result<(Restored, String), ReviewError> {
        let change = self.changes.iter().rev().find(|change| change.path == *path).ok_or_else(nothing)?;
        let found = hunks(workspace, change).await.into_iter().find(|found| found.id == hunk).ok_or_else(gone)?;
        let file = Restored::look(workspace, path).await?;
        let diff = found.diff.split_at(found.diff.floor_char_boundary(TOLD)).0.to_owned();
        Ok((file.to(found.rejected)?, diff))
    }

    /// The files as they are to be without these changes, the last change taken back first.
    async fn taken_back(&self, workspace: &Workspace, only: Option<&Path>) -> Result<Vec<Restored>, ReviewError> {
        let mut files: Vec<Restored> = Vec::new();
        for change in self.changes.iter().rev().filter(|change| only.is_none_or(|path| change.path == *path)) {
            let known = files.iter().position(|file| file.path.absolute() == change.path);
            let file = match known {
                Some(index) => files.remove(index),
                None => Restored::look(workspace, &change.path).await?,
            };
            let target = before(change, file.target.clone()).await;
            let target = target.map_err(|why| ReviewError(format!("{}: {why}", file.path.display())))?;
            files.push(file.to(target)?);
        }
        Ok(files)
    }
}

impl Restored {
    async fn look(workspace: &Workspace, path: &Path) -> Result<Self, ReviewError> {
        let path = workspace.resolve_path(path).map_err(|error| ReviewError(error.to_string()))?;
        let (now, unsaved) = match workspace.peek(&path).await {
            Ok(file) => (Some(file.text), matches!(file.source, Source::Buffer { unsaved: true, .. })),
            Err(FileError::NotFound(_)) => (None, false),
            Err(error) => return Err(ReviewError(error.to_string())),
        };
        Ok(Self { path, target: now.clone(), now, unsaved })
    }

    fn to(self, target: Option<Arc<str>>) -> Result<Self, ReviewError> {
        if target.is_none() && self.unsaved {
            return Err(ReviewError(format!(
                "{} has unsaved text in the editor, so it is not removed",
                self.path.display()
            )));
        }
        Ok(Self { target, ..self })
    }
}

/// What a file that is `now` so was before `change`. What has been typed since stays; an error says why it cannot.
async fn before(change: &FileDiff, now: Option<Arc<str>>) -> Result<Option<Arc<str>>, String> {
    let refused = |why: &str| Err(why.to_owned());
    let Some(before) = change.old_text.clone() else {
        return match now {
            Some(now) if now != change.new_text => {
                refused("it was created then and has been changed since, so it is not removed")
            }
            _ => Ok(None),
        };
    };
    if now.is_none() && !change.new_text.is_empty() {
        return refused("it does not exist any more");
    }
    let revert = Change::Revert { before, after: change.new_text.clone() };
    let reverted = blocking(move || edit::apply(&now.unwrap_or_default(), &revert)).await;
    reverted.map(|outcome| Some(outcome.new_text)).map_err(|error| error.to_string())
}

async fn hunks(workspace: &Workspace, change: &FileDiff) -> Vec<PendingHunk> {
    let Ok(path) = workspace.resolve_path(&change.path) else { return Vec::new() };
    let now = match workspace.peek(&path).await {
        Ok(file) => Some(file.text),
        Err(FileError::NotFound(_)) => None,
        // Nothing can be taken back in what cannot be read.
        Err(_) => return Vec::new(),
    };
    let FileDiff { old_text, new_text, .. } = change.clone();
    blocking(move || pending(old_text.as_deref(), &new_text, now.as_deref())).await
}

/// Gives files their texts, up to the first that does not take it.
async fn restore(workspace: &Workspace, files: Vec<Restored>) -> (Vec<(WorkspacePath, FileDiff)>, Option<FileError>) {
    let mut done = Vec::new();
    for Restored { path, now, target, .. } in files {
        let new_text = now.unwrap_or_default();
        let (strategy, lines, notes) = (None, Vec::new(), Vec::new());
        let change = FileChange { old_text: target, new_text, strategy, lines, notes };
        match workspace.undo(&path, &change).await {
            Ok(FileChange { old_text, new_text, .. }) => {
                let diff = FileDiff { path: path.absolute(), old_text, new_text };
                done.push((path, diff));
            }
            Err(error) => return (done, Some(error)),
        }
    }
    (done, None)
}

fn nothing() -> ReviewError {
    ReviewError("there is nothing to undo".to_owned())
}

fn gone() -> ReviewError {
    ReviewError("that hunk is not there any more".to_owned())
}
