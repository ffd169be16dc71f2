//! A private copy of a workspace with commands of its own, to try changes on and apply them later, or not at all.
//!
//! The copy is in the scratch folder of its commands: it goes with them, and with the next session if tandem is killed.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::sandbox::Scratch;
use super::{Changed, Shared, Shell, Surroundings};
use crate::changes::change_set::{Entry, EntryChange};
use crate::changes::revert::Reason;
use crate::changes::review::without;
use crate::changes::snapshot::Snapshots;
use crate::changes::{ChangeSet, Images, revert_in};
use crate::domain::{FileDiff, ToolError};
use crate::workspace::{FileChange, LeftOut, Source, Unsaved, Workspace, blocking, native};

/// Larger texts, in bytes, are not merged.
const TEXT: u64 = 32 << 20;

/// A copy of a workspace.
pub struct Shadow {
    /// Its commands.
    pub shell: Shell,
    /// Its files, under the names of the original.
    pub workspace: Workspace,
    /// The copy as it was made.
    snapshots: Snapshots,
    /// Keeps the copy.
    _scratch: Arc<Scratch>,
    /// The images of the original and of the copy, and what keeps them.
    images: Arc<Images>,
    _own: Arc<Scratch>,
}

/// What became of changes that were applied.
#[derive(Debug, Default)]
pub struct Applied {
    /// What was changed on the disk.
    pub changes: ChangeSet,
    /// The texts that changed, on the disk and in the editor.
    pub diffs: Vec<FileDiff>,
    /// What was not applied, with the reason.
    pub left: Vec<(PathBuf, String)>,
}

impl Shell {
    /// Copies the workspace as the person sees it, with unsaved text.
    ///
    /// # Errors
    /// It is too large, cancelled, or the system refuses. Nothing of the copy stays.
    pub async fn shadow(
        &self,
        workspace: &Workspace,
        cancel: &CancellationToken,
    ) -> Result<Shadow, ToolError> {
        let unsaved = workspace.unsaved_texts().await;
        let (shared, workspace, cancel) = (Arc::clone(&self.0), workspace.clone(), cancel.clone());
        let made = blocking(move || shared.shadow(&workspace, &unsaved, &cancel)).await;
        made.map_err(|error| ToolError(format!("the workspace cannot be copied: {error}")))
    }

    /// Removes what sessions left behind that were killed.
    pub async fn remove_leftovers(&self) {
        let shared = Arc::clone(&self.0);
        blocking(move || {
            shared
                .surroundings
                .commands()
                .map(|folder| Scratch::sweep(&folder))
        })
        .await;
    }
}

impl Shared {
    /// Blocks.
    fn shadow(
        &self,
        workspace: &Workspace,
        unsaved: &[Unsaved],
        cancel: &CancellationToken,
    ) -> io::Result<Shadow> {
        let coverage = self.coverage(workspace)?;
        if let Some(problem) = coverage.problem {
            return Err(io::Error::other(problem));
        }
        // What an interrupted command did to a copy is of no interest.
        let surroundings = Surroundings {
            session: None,
            ..self.surroundings.clone()
        };
        let sandbox = OnceCell::new_with(self.sandbox.get().cloned());
        let shell = Shell(Arc::new(Self {
            surroundings,
            sandbox,
            ..Self::default()
        }));
        let (scratch, own) = (shell.0.scratch()?, self.scratch()?);
        let hidden = self
            .surroundings
            .hidden
            .iter()
            .filter_map(|path| native::canonical(path).ok());
        let hidden: Vec<_> = hidden.chain([scratch.folder(), own.folder()]).collect();
        let left_out = LeftOut {
            ignored: coverage.left_out,
            hidden,
        };
        let workspace = workspace.copy_to(&scratch.copies()?, unsaved, &left_out, cancel)?;
        // Nearly all of its files have an image there.
        let mut snapshots = Snapshots::new(
            workspace.roots().to_vec(),
            &own.images(),
            None,
            &left_out.hidden,
        )?;
        let _as_it_was_made = snapshots.look();
        shell.0.watch(&workspace, snapshots.fork()?);
        Ok(Shadow {
            shell,
            workspace,
            snapshots,
            _scratch: scratch,
            images: Arc::new(Images::open(&own.images())?),
            _own: own,
        })
    }
}

impl Shadow {
    /// Stops its commands; returns what has changed in the copy.
    pub async fn changed(mut self) -> (Self, Changed) {
        self.shell.end().await;
        blocking(move || {
            let changes = self.snapshots.look();
            let changed = self
                .shell
                .0
                .report(&self.workspace, &self.snapshots, changes);
            (self, changed)
        })
        .await
    }

    /// Makes these changes in the original: in the editor where it has the file, merged with what was typed since, and
    /// elsewhere byte for byte. What was changed since is left, unless it is text that can be merged.
    ///
    /// `shell` is the original's: if tandem is killed meanwhile, undo covers what was written as for an interrupted
    /// command.
    pub async fn apply(&self, shell: &Shell, original: &Workspace, changed: &Changed) -> Applied {
        shell.look_now(original).await;
        let applied = self.applied(original, changed).await;
        let _is_reported_here = shell.changed(original, false).await;
        applied
    }

    async fn applied(&self, original: &Workspace, changed: &Changed) -> Applied {
        let (mut merged, mut written) = (Vec::new(), Vec::new());
        for change in &changed.changes.files {
            let in_editor = self.is_new_text(change) && is_in_editor(original, &change.path).await;
            if in_editor {
                merged.push(change);
            } else {
                written.push(change.reversed());
            }
        }
        // Of git's, a copy has only the repositories that were made in it.
        let git = changed
            .changes
            .git
            .iter()
            .map(EntryChange::reversed)
            .collect();
        let written = ChangeSet {
            files: written,
            git,
        };
        let reverted = revert_in(original, written, Arc::clone(&self.images)).await;
        let is_done = |diff: &&FileDiff| {
            let path = original.identity(&diff.path);
            reverted.done.files.iter().any(|change| change.path == path)
        };
        let mut applied = Applied {
            diffs: changed.diffs.iter().filter(is_done).cloned().collect(),
            changes: reverted.done,
            left: Vec::new(),
        };
        for left in reverted.left {
            let change = changed
                .changes
                .files
                .iter()
                .find(|change| change.path == left.path);
            match change.filter(|change| self.is_new_text(change)) {
                Some(change) if matches!(left.reason, Reason::Changed | Reason::Open) => {
                    merged.push(change);
                }
                _ => applied.left.push((left.path, left.reason.to_string())),
            }
        }
        for change in merged {
            self.merge(original, change, &mut applied).await;
        }
        applied
    }

    /// Removes the copy.
    pub async fn end(self) {
        self.shell.end().await;
        blocking(move || drop(self)).await;
    }

    fn text(&self, entry: &Entry) -> Option<Arc<str>> {
        self.snapshots.text(entry, TEXT)
    }

    /// Whether a file has another text and nothing else is different.
    fn is_new_text(&self, change: &EntryChange) -> bool {
        let (Entry::File { mode: before, .. }, Entry::File { mode: after, .. }) =
            (&change.before, &change.after)
        else {
            return false;
        };
        let (old, new) = (self.text(&change.before), self.text(&change.after));
        before == after && old.is_some() && new.is_some() && old != new
    }

    /// Changes a text around what was changed in it since.
    async fn merge(&self, original: &Workspace, change: &EntryChange, applied: &mut Applied) {
        match self.merged(original, change).await {
            Ok((diff, skipped)) => {
                applied.diffs.extend(
                    Some(diff).filter(|diff| diff.old_text.as_ref() != Some(&diff.new_text)),
                );
                let lines = |lines: Range<usize>| {
                    (
                        change.path.clone(),
                        format!("lines {}-{} were changed since", lines.start + 1, lines.end),
                    )
                };
                applied.left.extend(skipped.into_iter().map(lines));
            }
            Err(reason) => applied.left.push((change.path.clone(), reason)),
        }
    }

    /// The change as it was made, and the lines that stay as somebody else wrote them.
    async fn merged(
        &self,
        original: &Workspace,
        change: &EntryChange,
    ) -> Result<(FileDiff, Vec<Range<usize>>), String> {
        let texts = self.text(&change.before).zip(self.text(&change.after));
        let (old, new) = texts.ok_or_else(|| "its text is not known".to_owned())?;
        let path = original
            .resolve_path(&change.path)
            .map_err(|error| error.to_string())?;
        let now = original
            .peek(&path)
            .await
            .map_err(|error| error.to_string())?
            .text;
        let (before, after) = (Arc::clone(&new), Arc::clone(&old));
        let (_, skipped) = blocking(move || without(&before, &after, &now)).await;
        let done = original
            .undo(&path, &FileChange::new(Some(new), old))
            .await
            .map_err(|error| error.to_string())?;
        // From now on the session knows this text.
        let _known = original.read(&path).await;
        Ok((
            FileDiff::new(path.real(), done.old_text, done.new_text),
            skipped,
        ))
    }
}

async fn is_in_editor(workspace: &Workspace, path: &Path) -> bool {
    let Ok(path) = workspace.resolve_path(path) else {
        return false;
    };
    workspace
        .peek(&path)
        .await
        .is_ok_and(|file| matches!(file.source, Source::Buffer { .. }))
}
