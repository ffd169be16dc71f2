//! What a turn made of a file, and undoing that around the lines somebody changed since.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::reviewed::Left;
use crate::tools::FileDiff;
use crate::workspace::review::without;
use crate::workspace::{FileChange, FileError, Source, Workspace, WorkspacePath, blocking};

/// What a turn made of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    /// Absolute.
    pub path: PathBuf,
    /// Whether the turn made the file.
    pub created: bool,
    /// The text before; of a file that was created, what of it is settled.
    pub before: Arc<str>,
    /// The text afterwards; empty for a file that was removed.
    pub after: Arc<str>,
}

/// A file as it is.
pub(super) struct File {
    path: WorkspacePath,
    /// Its text; `None`: it does not exist.
    pub now: Option<Arc<str>>,
    unsaved: bool,
}

impl Change {
    pub fn of(diff: &FileDiff) -> Self {
        Self {
            path: diff.path.clone(),
            created: diff.old_text.is_none(),
            before: diff.old_text.clone().unwrap_or_default(),
            after: Arc::clone(&diff.new_text),
        }
    }

    /// This change and the one after it as one. What somebody typed between them is no part of it. `None`: together they
    /// changed nothing.
    pub fn then(self, next: Self) -> Option<Self> {
        let typed_between = next.before != self.after;
        let before = if typed_between { without(&self.before, &self.after, &next.before).0 } else { self.before };
        let joined = Self { path: self.path, created: self.created, before, after: next.after };
        (joined.created || joined.before != joined.after).then_some(joined)
    }

    /// Undoes as much as still stands, and says what that changed; `None`: nothing stands. Adds the lines that stay.
    pub async fn undo(&self, workspace: &Workspace, left: &mut Vec<Left>) -> Result<Option<FileDiff>, Left> {
        let file = File::look(workspace, &self.path).await?;
        let Some(now) = file.now_under(self) else {
            if !self.created {
                left.push(self.left(None, "it was removed since"));
            }
            return Ok(None);
        };
        let (before, after) = (Arc::clone(&self.before), Arc::clone(&self.after));
        let (text, touched) = blocking(move || without(&before, &after, &now)).await;
        left.extend(touched.into_iter().map(|lines| self.left(Some(lines), "changed since")));
        let target = (!self.created || !text.is_empty()).then_some(text);
        if target == file.now {
            return Ok(None);
        }
        file.give(workspace, target).await.map(Some)
    }

    fn left(&self, lines: Option<Range<usize>>, reason: &str) -> Left {
        Left { path: self.path.clone(), lines, reason: reason.to_owned() }
    }
}

impl File {
    pub async fn look(workspace: &Workspace, path: &Path) -> Result<Self, Left> {
        let failed = |reason: String| Left { path: path.to_owned(), lines: None, reason };
        let path = workspace.resolve_path(path).map_err(|error| failed(error.to_string()))?;
        let (now, unsaved) = match workspace.peek(&path).await {
            Ok(file) => (Some(file.text), matches!(file.source, Source::Buffer { unsaved: true, .. })),
            Err(FileError::NotFound(_)) => (None, false),
            Err(error) => return Err(failed(error.to_string())),
        };
        Ok(Self { path, now, unsaved })
    }

    /// The text in which to look for a change; none when the file was removed since, other than by the change itself.
    pub fn now_under(&self, change: &Change) -> Option<Arc<str>> {
        match &self.now {
            None if change.created || !change.after.is_empty() => None,
            now => Some(now.clone().unwrap_or_default()),
        }
    }

    /// Gives the file this text (`None`: removes it); says what that changed.
    pub async fn give(self, workspace: &Workspace, target: Option<Arc<str>>) -> Result<FileDiff, Left> {
        let path = self.path.absolute();
        let failed = |reason: String| Left { path: path.clone(), lines: None, reason };
        if target.is_none() && self.unsaved {
            return Err(failed("it has unsaved text in the editor, so it is not removed".to_owned()));
        }
        let (strategy, lines, notes) = (None, Vec::new(), Vec::new());
        let change = FileChange { old_text: target, new_text: self.now.unwrap_or_default(), strategy, lines, notes };
        let done = workspace.undo(&self.path, &change).await.map_err(|error| failed(error.to_string()))?;
        Ok(FileDiff { path, old_text: done.old_text, new_text: done.new_text })
    }
}
