//! What a command did that was interrupted together with tandem, found out from what was left on the disk.

use std::path::Path;
use std::sync::Arc;

use super::{Changed, sorted};
use crate::changes::guard::{SavedGuard, with_repositories};
use crate::changes::snapshot::{Snapshots, retain_until};
use crate::process::Shared;
use crate::process::sandbox::Interrupted;
use crate::workspace::stamp::changed_after;
use crate::workspace::written::Texts;
use crate::workspace::{Root, Workspace};

impl Shared {
    /// What a command of this session changed that was interrupted with tandem itself. Blocks.
    pub(super) fn interrupted(&self, workspace: &Workspace) -> Option<Changed> {
        let left = self.left_behind()?;
        let roots = with_repositories(workspace.roots());
        let mut snapshots = Snapshots::new(
            roots.clone(),
            &left.images(),
            // Nothing runs; before a command does, links become copies.
            self.backups(true),
            &self.surroundings.hidden,
        )
        .ok()?;
        snapshots.load(&left.manifest(), left.began().ok()?).ok()?;
        let ended = left.ended().ok()?;
        let is_later = |path: &Path| changed_after(path, ended);
        let mut written = left.written();
        written.retain(|path, _| !is_later(path));
        let (found, earlier) = snapshots.look_from();
        let is_others = |path: &Path| is_later(path) || workspace.is_approved(path, &written);
        let notes = restore_interrupted(&left, &roots, &mut snapshots, &written, &is_others);
        // Restored files must not count as changed, nor what was moved aside as somebody else's.
        snapshots.go_back(earlier);
        let mut changes = snapshots.look();
        let mut by_others = retain_until(&mut changes, ended);
        by_others.retain(|path| found.files.iter().any(|change| change.path == *path));
        let (changes, overwritten) = snapshots.attribute(changes, &written, true);
        let mut changed = self.report(workspace, &snapshots, changes);
        changed.told.extend(notes.into_iter().chain(overwritten));
        if !by_others.is_empty() {
            changed.told.push(format!(
                "undo doesn't touch files modified since: {}",
                sorted(workspace, by_others.iter())
            ));
        }
        let is_something = |it: &Changed| !it.changes.is_empty() || !it.told.is_empty();
        Some(changed).filter(is_something)
    }

    /// What is left of an interrupted command of this session.
    pub(super) fn left_behind(&self) -> Option<Interrupted> {
        Interrupted::find(
            &self.surroundings.commands()?,
            self.surroundings.session.as_ref()?,
        )
    }
}

/// Restores the protected files that an interrupted command changed; returns notes.
fn restore_interrupted(
    left: &Interrupted,
    roots: &[Arc<Root>],
    snapshots: &mut Snapshots,
    written: &Texts,
    is_others: &dyn Fn(&Path) -> bool,
) -> Vec<String> {
    let guard = match SavedGuard::load(&left.guard(), roots, snapshots.images()) {
        Ok(guard) => guard,
        Err(error) => {
            tracing::info!("cannot read which protected files a command changed: {error}");
            return Vec::new();
        }
    };
    guard.restore(written, is_others, &mut || {
        snapshots.look();
        snapshots.guard()
    })
}
