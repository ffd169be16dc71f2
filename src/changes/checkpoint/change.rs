//! A turn's change of a file, and undoing it around the lines somebody changed since.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::reviewed::Left;
use crate::changes::change_set::{ChangeSet, Entry, EntryChange};
use crate::changes::review::without;
use crate::domain::FileDiff;
use crate::domain::Stored;
use crate::workspace::{FileChange, FileError, Source, Workspace, WorkspacePath, blocking};

/// A turn's change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    /// The file's [`identity`](Workspace::identity).
    pub path: PathBuf,
    /// Whether the turn created the file.
    pub created: bool,
    /// The text before; for a created file, the settled part of it.
    pub before: Arc<str>,
    /// The text afterwards; empty for a file that was removed or is not text.
    pub after: Arc<str>,
    /// How the text before was stored, where the file now does not tell.
    pub stored: Option<Stored>,
    /// The part made by commands; `None` once part of it is settled.
    pub command: Option<ByCommand>,
}

/// What the commands of a turn changed at a path, byte for byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ByCommand {
    /// The state before the first command and after the last.
    pub change: EntryChange,
    /// The text before the first command; `None` if there was none or it is unknown.
    pub text: Option<Arc<str>>,
    /// Whether its texts are known: it is text, and not too large.
    pub is_text: bool,
    /// What tools changed after the last command.
    pub edited: Option<Box<Change>>,
}

/// The current file.
pub(super) struct File {
    path: WorkspacePath,
    /// Its text; `None` if it does not exist.
    pub now: Option<Arc<str>>,
    unsaved: bool,
}

/// The changes of a call: what a command did, with its texts if known, and the texts a tool changed.
pub(super) fn all(
    workspace: &Workspace,
    diffs: &[FileDiff],
    command: Option<&ChangeSet>,
) -> Vec<Change> {
    let mut rest: Vec<_> = diffs
        .iter()
        .map(|diff| (workspace.identity(&diff.path), Some(diff)))
        .collect();
    let by_path: HashMap<PathBuf, usize> = rest
        .iter()
        .enumerate()
        .map(|(index, (path, _))| (path.clone(), index))
        .collect();
    let mut changes = Vec::new();
    for change in command.into_iter().flat_map(|command| &command.files) {
        let text = by_path
            .get(&change.path)
            .and_then(|&index| rest.get_mut(index)?.1.take());
        let old_text = text.and_then(|diff| diff.old_text.clone());
        changes.push(Change {
            path: change.path.clone(),
            created: change.before == Entry::Absent,
            before: old_text.clone().unwrap_or_default(),
            after: text
                .map(|diff| Arc::clone(&diff.new_text))
                .unwrap_or_default(),
            stored: None,
            command: Some(ByCommand {
                change: change.clone(),
                text: old_text,
                is_text: text.is_some(),
                edited: None,
            }),
        });
    }
    // An empty file that a command removes has no difference in its text, but its text is needed above.
    let rest = rest
        .into_iter()
        .filter_map(|(path, diff)| Some((path, diff.filter(|diff| !diff.is_nothing())?)));
    changes.extend(rest.map(|(path, diff)| Change::of(path, diff)));
    changes
}

impl Change {
    /// A tool's change of the file of this identity.
    pub fn of(path: PathBuf, diff: &FileDiff) -> Self {
        Self {
            path,
            created: diff.old_text.is_none(),
            before: diff.old_text.clone().unwrap_or_default(),
            after: Arc::clone(&diff.new_text),
            stored: diff.stored,
            command: None,
        }
    }

    /// Combines this change with the one after it. What somebody typed between them is not part of it. `None` if they
    /// cancel out.
    pub fn then(self, next: Self) -> Option<Self> {
        let before = self.before_with(&next);
        let is_known = next.is_after_known();
        let text = self
            .command
            .as_ref()
            .map_or_else(|| Some(Arc::clone(&self.after)), |by| by.text.clone());
        // How the file was stored before a command is part of what the command changed.
        let stored = self
            .stored
            .or(next.stored.filter(|_| self.command.is_none()));
        let command = match (self.command, next.command) {
            (Some(first), Some(second)) => {
                let joined = first.then(second);
                // The commands reverted their own changes, and no tool changed anything before.
                if joined.is_none() && text.is_none() {
                    return None;
                }
                joined
            }
            (Some(first), None) => {
                let edit = Self {
                    path: next.path,
                    after: Arc::clone(&next.after),
                    command: None,
                    ..next
                };
                Some(first.then_edited(edit))
            }
            // The tools' result is known, whatever the command did to it.
            (None, Some(second)) => Some(ByCommand {
                text: second.text.or_else(|| text.clone()),
                ..second
            }),
            (None, None) => None,
        };
        let after = if is_known || command.is_some() {
            next.after
        } else {
            text.unwrap_or(next.after)
        };
        let joined = Self {
            path: self.path,
            created: self.created,
            before,
            after,
            stored,
            command,
        };
        (!joined.is_settled()).then_some(joined)
    }

    /// The text before both changes, with what somebody typed between them.
    fn before_with(&self, next: &Self) -> Arc<str> {
        let is_next_known = next.command.as_ref().is_none_or(|by| by.is_text);
        let is_text_known = self.command.as_ref().is_none_or(|by| by.text.is_some());
        if self.is_after_known() && is_next_known && next.before != self.after {
            return without(&self.before, &self.after, &next.before).0;
        }
        // The text before `next` is unknown.
        if !self.is_after_known() && is_next_known && !is_text_known {
            return Arc::clone(&next.before);
        }
        Arc::clone(&self.before)
    }

    /// Whether the text afterwards is known; otherwise it is empty.
    fn is_after_known(&self) -> bool {
        self.command
            .as_ref()
            .is_none_or(|by| by.is_text || by.edited.is_some())
    }

    /// Whether nothing is left to undo.
    pub fn is_settled(&self) -> bool {
        self.before == self.after
            && !self.created
            && self.command.is_none()
            && self.stored.is_none()
    }

    /// Sets the text before. A settled change is no longer undone byte for byte.
    pub fn settle(&mut self, before: Arc<str>) {
        self.created &= before != self.after;
        self.stored = self.stored.filter(|_| before != self.after);
        (self.before, self.command) = (before, None);
    }

    /// The inverse change.
    pub fn reversed(&self) -> Self {
        let (before, after) = (Arc::clone(&self.after), Arc::clone(&self.before));
        Self {
            path: self.path.clone(),
            created: false,
            before,
            after,
            stored: None,
            command: None,
        }
    }

    /// What the turn's tools had changed before its first command.
    pub fn before_commands(&self) -> Option<Self> {
        let text = self.command.as_ref()?.text.clone()?;
        (text != self.before || self.created).then(|| Self {
            after: text,
            command: None,
            ..self.clone()
        })
    }

    /// What the turn had changed after its last command.
    pub fn until_last_command(&self) -> Self {
        let edited = self.command.as_ref().and_then(|by| by.edited.as_ref());
        let after = edited.map_or(&self.after, |edited| &edited.before);
        Self {
            after: Arc::clone(after),
            command: None,
            ..self.clone()
        }
    }

    /// Whether the file still has the text from the turn, or is still gone.
    pub async fn is_as_left(&self, workspace: &Workspace) -> bool {
        File::look(workspace, &self.path)
            .await
            .is_ok_and(|file| file.now.unwrap_or_default() == self.after)
    }

    /// Undoes what is left of the change and returns what that changed; `None` if nothing is left. Adds the lines that
    /// stay to `left`.
    pub async fn undo(
        &self,
        workspace: &Workspace,
        left: &mut Vec<Left>,
    ) -> Result<Option<FileDiff>, Left> {
        let file = File::look(workspace, &self.path).await?;
        let Some(now) = file.now_under(self) else {
            if !self.created {
                left.push(self.left(None, "it was removed since"));
            }
            return Ok(None);
        };
        let (before, after) = (Arc::clone(&self.before), Arc::clone(&self.after));
        let (text, touched) = blocking(move || without(&before, &after, &now)).await;
        left.extend(
            touched
                .into_iter()
                .map(|lines| self.left(Some(lines), "changed since")),
        );
        let target = (!self.created || !text.is_empty()).then_some(text);
        if target == file.now && self.stored.is_none() {
            return Ok(None);
        }
        let diff = file.give(workspace, target, self.stored).await?;
        Ok((!diff.is_nothing()).then_some(diff))
    }

    fn left(&self, lines: Option<Range<usize>>, reason: &str) -> Left {
        Left {
            path: self.path.clone(),
            lines,
            is_changed: true,
            reason: reason.to_owned(),
        }
    }
}

impl ByCommand {
    fn then(self, next: Self) -> Option<Self> {
        let change = self.change.then(next.change)?;
        Some(Self {
            change,
            text: self.text,
            is_text: self.is_text && next.is_text,
            edited: None,
        })
    }

    fn then_edited(self, next: Change) -> Self {
        let edited = match self.edited {
            Some(edited) => edited.then(next),
            None => Some(next),
        };
        Self {
            edited: edited.map(Box::new),
            ..self
        }
    }
}

impl File {
    pub async fn look(workspace: &Workspace, path: &Path) -> Result<Self, Left> {
        let failed = |reason: String| Left {
            path: path.to_owned(),
            lines: None,
            is_changed: false,
            reason,
        };
        let path = workspace
            .resolve_path(path)
            .map_err(|error| failed(error.to_string()))?;
        let (now, unsaved) = match workspace.peek(&path).await {
            Ok(file) => (
                Some(file.text),
                matches!(file.source, Source::Buffer { unsaved: true, .. }),
            ),
            Err(FileError::NotFound(_)) => (None, false),
            Err(error) => return Err(failed(error.to_string())),
        };
        Ok(Self { path, now, unsaved })
    }

    /// The text in which to look for a change; `None` if the file was removed since, other than by the change itself.
    pub fn now_under(&self, change: &Change) -> Option<Arc<str>> {
        match &self.now {
            None if change.created || !change.after.is_empty() => None,
            now => Some(now.clone().unwrap_or_default()),
        }
    }

    /// Writes this text (`None` removes the file), `stored` in this way; returns what that changed.
    pub async fn give(
        self,
        workspace: &Workspace,
        target: Option<Arc<str>>,
        stored: Option<Stored>,
    ) -> Result<FileDiff, Left> {
        let path = self.path.real();
        let failed = |reason: String| Left {
            path: path.clone(),
            lines: None,
            is_changed: false,
            reason,
        };
        if target.is_none() && self.unsaved {
            return Err(failed(
                "it has unsaved changes in the editor, so it was not removed".to_owned(),
            ));
        }
        let change = FileChange {
            stored,
            ..FileChange::new(target, self.now.unwrap_or_default())
        };
        let done = workspace
            .undo(&self.path, &change)
            .await
            .map_err(|error| failed(error.to_string()))?;
        Ok(FileDiff {
            path,
            old_text: done.old_text,
            new_text: done.new_text,
            stored: done.stored,
        })
    }
}
