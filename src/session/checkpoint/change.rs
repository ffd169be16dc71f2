//! What a turn made of a file, and undoing that around the lines somebody changed since.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::reviewed::Left;
use crate::tools::FileDiff;
use crate::workspace::change_set::{ChangeSet, Entry, EntryChange};
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
    /// The text afterwards; empty for a file that was removed, or is no text.
    pub after: Arc<str>,
    /// What commands made of it; none once a part of it is settled.
    pub command: Option<ByCommand>,
}

/// What the commands of a turn made of a path, byte for byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ByCommand {
    /// What was there before the first command and after the last.
    pub change: EntryChange,
    /// The text before the first command; `None` where there was none.
    pub text: Option<Arc<str>>,
    /// Whether its texts are known: it is a text, and not one of too many.
    pub is_text: bool,
    /// Whether it was edited after the last command.
    pub edited: bool,
}

/// A file as it is.
pub(super) struct File {
    path: WorkspacePath,
    /// Its text; `None`: it does not exist.
    pub now: Option<Arc<str>>,
    unsaved: bool,
}

/// The changes of a call: what a command did, with its texts where they are known, and the texts a tool changed.
pub(super) fn all(diffs: &[FileDiff], command: Option<&ChangeSet>) -> Vec<Change> {
    let mut diffs: Vec<_> = diffs.iter().map(|diff| (diff, false)).collect();
    let by_path: HashMap<PathBuf, usize> =
        diffs.iter().enumerate().map(|(index, (diff, _))| (diff.path.clone(), index)).collect();
    let mut changes = Vec::new();
    for change in command.into_iter().flat_map(|command| &command.files) {
        let text = by_path.get(&change.path).and_then(|&index| diffs.get_mut(index));
        let text = text.map(|(diff, is_taken)| {
            *is_taken = true;
            *diff
        });
        let old_text = text.and_then(|diff| diff.old_text.clone());
        changes.push(Change {
            path: change.path.clone(),
            created: change.before == Entry::Absent,
            before: old_text.clone().unwrap_or_default(),
            after: text.map(|diff| Arc::clone(&diff.new_text)).unwrap_or_default(),
            command: Some(ByCommand { change: change.clone(), text: old_text, is_text: text.is_some(), edited: false }),
        });
    }
    // A removed empty file has no difference in its text, but its text is needed above.
    let is_real = |diff: &FileDiff| diff.old_text.as_ref() != Some(&diff.new_text);
    let rest = diffs.into_iter().filter(|(diff, is_taken)| !is_taken && is_real(diff));
    changes.extend(rest.map(|(diff, _)| Change::of(diff)));
    changes
}

impl Change {
    pub fn of(diff: &FileDiff) -> Self {
        Self {
            path: diff.path.clone(),
            created: diff.old_text.is_none(),
            before: diff.old_text.clone().unwrap_or_default(),
            after: Arc::clone(&diff.new_text),
            command: None,
        }
    }

    /// This change and the one after it as one. What somebody typed between them is no part of it. `None`: together they
    /// changed nothing.
    pub fn then(self, next: Self) -> Option<Self> {
        let typed_between = next.before != self.after;
        let before = if typed_between { without(&self.before, &self.after, &next.before).0 } else { self.before };
        let command = match (self.command, next.command) {
            (Some(first), Some(second)) => first.then(second),
            (Some(first), None) => Some(ByCommand { edited: true, ..first }),
            (None, second) => second,
        };
        let joined = Self { path: self.path, created: self.created, before, after: next.after, command };
        (!joined.is_settled()).then_some(joined)
    }

    /// Whether nothing of it is left to undo.
    pub fn is_settled(&self) -> bool {
        self.before == self.after && !self.created && self.command.is_none()
    }

    /// From here on the text before is this one. What is settled is not undone byte for byte any more.
    pub fn settle(&mut self, before: Arc<str>) {
        self.created &= before != self.after;
        (self.before, self.command) = (before, None);
    }

    /// The change back.
    pub fn reversed(&self) -> Self {
        let (before, after) = (Arc::clone(&self.after), Arc::clone(&self.before));
        Self { path: self.path.clone(), created: false, before, after, command: None }
    }

    /// What the turn's tools had made of the text before its first command.
    pub fn before_commands(&self) -> Option<Self> {
        let text = self.command.as_ref()?.text.clone()?;
        (text != self.before || self.created).then(|| Self { after: text, command: None, ..self.clone() })
    }

    /// Undoes as much of the text as still stands, and says what that changed; `None`: nothing stands. Adds the lines that
    /// stay.
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
        Left { path: self.path.clone(), lines, is_changed: true, reason: reason.to_owned() }
    }
}

impl ByCommand {
    fn then(self, next: Self) -> Option<Self> {
        let change = self.change.then(next.change)?;
        Some(Self { change, text: self.text, is_text: self.is_text && next.is_text, edited: false })
    }
}

impl File {
    pub async fn look(workspace: &Workspace, path: &Path) -> Result<Self, Left> {
        let failed = |reason: String| Left { path: path.to_owned(), lines: None, is_changed: false, reason };
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
        let failed = |reason: String| Left { path: path.clone(), lines: None, is_changed: false, reason };
        if target.is_none() && self.unsaved {
            return Err(failed("it has unsaved text in the editor, so it is not removed".to_owned()));
        }
        let (strategy, lines, notes) = (None, Vec::new(), Vec::new());
        let change = FileChange { old_text: target, new_text: self.now.unwrap_or_default(), strategy, lines, notes };
        let done = workspace.undo(&self.path, &change).await.map_err(|error| failed(error.to_string()))?;
        Ok(FileDiff { path, old_text: done.old_text, new_text: done.new_text })
    }
}
