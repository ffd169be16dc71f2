//! The protected files of a command: as the look before it found them, and restored with the look after it.

use std::path::Path;
use std::sync::Arc;

use super::{Watch, Watched};
use crate::changes::{ChangeSet, Guard, Images};
use crate::domain::lock;
use crate::process::Shared;
use crate::workspace::written::Written;
use crate::workspace::{Root, Workspace};

/// How the protected files are restored after a command.
pub(in crate::process) struct Guarded {
    pub guard: Guard,
    /// The watched workspace whose last look the guard was made from, if it was.
    watch: Option<Arc<Watch>>,
    /// Whether all of its changes are made by its end: then those of unsaved text are taken over.
    is_done: bool,
    /// Whether the sandbox pins what existed before.
    is_pinned: bool,
    /// What people and tools write meanwhile.
    written: Written,
}

impl Shared {
    /// Guards the protected files as they were just looked at, or as they are.
    pub fn guarded(
        &self,
        workspace: &Workspace,
        roots: &[Arc<Root>],
        (is_pinned, is_done): (bool, bool),
        written: Option<Written>,
    ) -> Guarded {
        let watched = lock(&self.watch);
        let looked = watched.as_ref().filter(|_| written.is_some());
        let guard = looked.and_then(|watched| watched.guard(roots));
        let watch = guard.is_some().then(|| Arc::clone(&self.watch));
        let guard = guard.unwrap_or_else(|| Guard::new(roots));
        if let Some(watched) = looked.filter(|_| !self.has_jobs()) {
            self.save(&guard, watched.snapshots.images(), is_pinned);
        }
        Guarded {
            written: written.unwrap_or_else(|| workspace.documents().watch_writes()),
            guard,
            watch,
            is_done,
            is_pinned,
        }
    }

    /// Leaves on the disk what is needed to restore the protected files if tandem does not see the end of the first of the
    /// commands that run.
    fn save(&self, guard: &Guard, images: &Images, is_pinned: bool) {
        let saved = self
            .scratch()
            .and_then(|scratch| guard.save(&scratch.guard(), images, is_pinned));
        if let Err(error) = saved {
            tracing::warn!("protected files could not be restored after a crash: {error}");
        }
    }
}

impl Watched {
    /// The protected files of these roots as of the last look; `None` if that did not see all of them.
    fn guard(&self, roots: &[Arc<Root>]) -> Option<Guard> {
        let is_whole = self.snapshots.lists_all(roots);
        is_whole.then(|| self.snapshots.guard())
    }

    /// Looks at what a command has changed and restores what is protected of that; returns notes. What the command changed is
    /// remembered if it `is_done`.
    fn restore(
        &mut self,
        is_done: bool,
        restore: impl FnOnce(&mut dyn FnMut() -> Guard) -> Vec<String>,
    ) -> Vec<String> {
        let before = self.snapshots.coverage().cloned().unwrap_or_default();
        let mut looked = None;
        let mut look = || {
            // Restored files must not count as changed.
            if let Some((_, earlier)) = looked.take() {
                self.snapshots.go_back(earlier);
            }
            looked = Some(self.snapshots.look_from());
            self.snapshots.guard()
        };
        let notes = restore(&mut look);
        if !notes.is_empty() {
            look();
        }
        let Some((changes, earlier)) = looked else {
            return notes;
        };
        if !is_done {
            self.snapshots.go_back(earlier);
            return notes;
        }
        let changes = self.attributed(changes);
        let (before, others) = self.ended.take().unwrap_or((before, ChangeSet::default()));
        let changes = others.then(changes, self.snapshots.images());
        self.ended = Some((before, changes));
        notes
    }
}

impl Guarded {
    /// Restores the protected files after the command; returns notes. Blocks.
    pub fn restore(self, workspace: &Workspace) -> Vec<String> {
        let written = self.written.take();
        let is_approved = |path: &Path| workspace.is_approved(path, &written);
        let restore = |survey: &mut dyn FnMut() -> Guard| {
            self.guard
                .restore(self.is_pinned, &written, &is_approved, survey)
        };
        let mut watched = self.watch.as_ref().map(|watch| lock(watch));
        match watched.as_mut().and_then(|watched| watched.as_mut()) {
            Some(watched) => watched.restore(self.is_done, restore),
            None => restore(&mut || self.guard.again()),
        }
    }
}
