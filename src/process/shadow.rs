//! A private copy of a workspace with commands of its own, to try changes on and apply them later, or not at all.
//!
//! The copy is in the scratch folder of its commands: it goes with them, and with the next session if tandem is killed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::changed::DIFFS;
use super::sandbox::Scratch;
use super::{Changed, Shared, Shell, Surroundings};
use crate::changes::change_set::EntryChange;
use crate::changes::revert::{Reason, Reverted};
use crate::changes::snapshot::Snapshots;
use crate::changes::{ChangeSet, Images, Purpose, images, revert_in};
use crate::domain::{FileDiff, ToolError};
use crate::workspace::{LeftOut, Source, Unsaved, Workspace, blocking, native};

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
    /// The changes on disk.
    pub changes: ChangeSet,
    /// The changed texts, on disk and in the editor.
    pub diffs: Vec<FileDiff>,
    /// The changes that were not applied, with the reason.
    pub left: Vec<(PathBuf, Reason)>,
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
        self.holds(workspace).await;
        let unsaved = workspace.unsaved_texts().await;
        let (shared, workspace, cancel) = (Arc::clone(&self.0), workspace.clone(), cancel.clone());
        let made = blocking(move || shared.shadow(&workspace, &unsaved, &cancel)).await;
        made.map_err(|error| ToolError(format!("the workspace cannot be copied: {error}")))
    }

    /// Removes what killed sessions left behind.
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
        // Its commands share a network of their own: a server of the session would change the workspace.
        let shell = Shell::new(surroundings);
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
        let copy = workspace.copy_to(&scratch.copies()?, unsaved, &left_out, cancel)?;
        // Nearly all of its files have an image there.
        let mut snapshots = self.of_copy(workspace, &copy, &left_out.hidden)?;
        let _as_it_was_made = snapshots.look();
        shell.0.watch(&copy, snapshots.fork())?;
        let images = match self.surroundings.state.as_deref() {
            // Where undo reads them.
            Some(state) => Images::create(&images::folder(state))?,
            None => snapshots.images().fork(),
        };
        Ok(Shadow {
            shell,
            workspace: copy,
            snapshots,
            _scratch: scratch,
            images: Arc::new(images),
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

    /// Makes these changes in the original: in the editor if it has the file open, merged with what was typed since, and
    /// elsewhere byte for byte. Files that have changed since are left alone, unless their text can be merged.
    ///
    /// `shell` is the original's: if tandem is killed meanwhile, undo covers what was written as for an interrupted
    /// command.
    pub async fn apply(&self, shell: &Shell, original: &Workspace, changed: &Changed) -> Applied {
        shell.look_now(original).await;
        let applied = self.applied(original, changed).await;
        let _is_reported_here = shell.changed(original, false, false).await;
        applied
    }

    async fn applied(&self, original: &Workspace, changed: &Changed) -> Applied {
        // The only git state in a copy is that of repositories made there.
        let mut changes = ChangeSet::default();
        for change in &changed.changes.git {
            changes.git.push(change.reversed());
        }
        for change in &changed.changes.files {
            let is_edit = change.before.is_file()
                && change.after.is_file()
                && self.images.diff(change, TEXT).is_some()
                && is_in_editor(original, &change.path).await;
            changes.files.push(EntryChange {
                is_edit,
                ..change.reversed()
            });
        }
        let Reverted { done, left } =
            revert_in(original, changes, &self.images, Purpose::Redo).await;
        for change in done.files.iter().filter(|change| change.is_edit) {
            if let Ok(path) = original.resolve_path(&change.path) {
                // From now on the session knows this text.
                original.read(&path).await.ok();
            }
        }
        let diffs = done
            .files
            .iter()
            .filter_map(|change| self.images.diff(change, TEXT));
        Applied {
            diffs: diffs.take(DIFFS).collect(),
            changes: done,
            left: left
                .into_iter()
                .map(|left| (left.path, left.reason))
                .collect(),
        }
    }

    /// Removes the copy.
    pub async fn end(self) {
        self.shell.end().await;
        blocking(move || drop(self)).await;
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
