//! What a command changed, as its call reports it.

use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::Shared;
use crate::tools::{FileDiff, Undo};
use crate::workspace::change_set::{Entry, EntryChange};
use crate::workspace::guard::with_repositories;
use crate::workspace::snapshot::{Coverage, Snapshots};
use crate::workspace::{ChangeSet, Workspace, native};

/// No more diffs are shown of one command.
const DIFFS: usize = 100;
/// A text that is larger, in bytes, is not shown as a diff.
const TEXT: u64 = 1 << 20;
/// So many files that are gone are worth a word.
const MANY: usize = 100;
/// As many paths are named.
const NAMED: usize = 5;

/// The snapshots of a session's workspace, made when they are first needed.
pub(super) type Snapshot = Mutex<Option<Snapshots>>;

/// What a command changed.
#[derive(Debug, Default)]
pub(crate) struct Changed {
    pub changes: Arc<ChangeSet>,
    /// The texts among them, unless there are too many.
    pub diffs: Vec<FileDiff>,
    /// What the model and the person should know.
    pub notes: Vec<String>,
}

/// How much of what a command does an undo takes back, and the reason for the rest.
#[derive(Debug, Clone)]
pub(crate) struct Reach {
    pub undo: Undo,
    pub note: Option<String>,
}

impl Shared {
    /// How much an undo of the next command would cover, as far as known since the last look. Blocks.
    pub(super) fn reach(&self, workspace: &Workspace) -> Reach {
        let coverage = self.with_snapshots(workspace, |snapshots| {
            if snapshots.coverage().is_none() {
                let _first = snapshots.look();
            }
            snapshots.coverage().cloned().unwrap_or_default()
        });
        match coverage {
            Err(error) => Reach::nothing(&error.to_string()),
            Ok(Coverage { problem: Some(problem), .. }) => Reach::nothing(&problem),
            Ok(Coverage { left_out, .. }) if left_out.is_empty() => Reach { undo: Undo::Everything, note: None },
            Ok(Coverage { left_out, .. }) => {
                let note = format!("undo does not cover what git ignores: {}", names(workspace, left_out.iter()));
                Reach { undo: Undo::ExceptIgnored, note: Some(note) }
            }
        }
    }

    /// Looks at the workspace right before a command runs that was shown with this `undo`. Blocks.
    pub(super) fn look_before(&self, workspace: &Workspace, undo: Undo) -> io::Result<()> {
        let looked = self.with_snapshots(workspace, |snapshots| {
            let _changed_by_others = snapshots.look();
            snapshots.coverage().and_then(|coverage| coverage.problem.clone())
        });
        match looked {
            _ if undo == Undo::Nothing => Ok(()),
            Ok(None) => Ok(()),
            Ok(Some(problem)) => {
                Err(io::Error::other(format!("undo would not cover it any more: {problem}; try again")))
            }
            Err(error) => Err(error),
        }
    }

    /// What has changed in the workspace since the last look. Blocks.
    pub(super) fn changed(&self, workspace: &Workspace) -> Changed {
        let images = self.surroundings.state.as_ref().map(|state| state.join("checkpoints"));
        let changed = self.with_snapshots(workspace, |snapshots| {
            let before = snapshots.coverage().cloned().unwrap_or_default();
            let changes = snapshots.look();
            let mut notes = Vec::new();
            if let Some(images) = &images
                && let Err(error) = snapshots.publish(&changes, images)
            {
                notes.push(format!("what it changed cannot be undone: the images cannot be stored ({error})"));
            }
            let lost = snapshots.lost(&before);
            if !lost.is_empty() {
                notes.push(format!("it removed what undo does not cover: {}", names(workspace, lost.iter())));
            }
            let diffs = diffs(workspace, snapshots, &changes);
            notes.extend(summary(workspace, &changes, diffs.len()));
            Changed { changes: Arc::new(changes), diffs, notes }
        });
        changed.unwrap_or_else(|error| {
            let notes = vec![format!("what it changed is not known ({error})")];
            Changed { notes, ..Changed::default() }
        })
    }

    fn with_snapshots<T>(&self, workspace: &Workspace, work: impl FnOnce(&mut Snapshots) -> T) -> io::Result<T> {
        let mut snapshots = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshots = match &mut *snapshots {
            Some(snapshots) => snapshots,
            none => {
                let scratch = self.scratch()?;
                let mut hidden = self.surroundings.hidden.clone();
                hidden.push(scratch.folder());
                let roots = with_repositories(workspace.roots());
                none.insert(Snapshots::new(roots, &scratch.images(), &hidden)?)
            }
        };
        Ok(work(snapshots))
    }
}

impl Reach {
    fn nothing(why: &str) -> Self {
        Self { undo: Undo::Nothing, note: Some(format!("undo cannot cover this workspace: {why}")) }
    }
}

fn diffs(workspace: &Workspace, snapshots: &Snapshots, changes: &ChangeSet) -> Vec<FileDiff> {
    let text = |entry: &Entry| match entry {
        Entry::Absent => Some(None),
        entry => Some(Some(snapshots.text(entry, TEXT)?)),
    };
    let diff = |change: &EntryChange| {
        let (old_text, new_text) = (text(&change.before)?, text(&change.after)?);
        if old_text == new_text {
            return None;
        }
        let path = workspace.resolve_path(&change.path).ok()?.absolute();
        Some(FileDiff { path, old_text, new_text: new_text.unwrap_or_default() })
    };
    changes.files.iter().filter_map(diff).take(DIFFS).collect()
}

/// What the diffs do not show.
fn summary(workspace: &Workspace, changes: &ChangeSet, shown: usize) -> Option<String> {
    let gone = changes.files.iter().filter(|change| change.after == Entry::Absent);
    let gone: Vec<_> = gone.filter(|change| !matches!(change.before, Entry::Folder { .. })).collect();
    let files = changes.files.iter().filter(|change| !matches!(change.after, Entry::Folder { .. })).count();
    let mut note = String::new();
    if gone.len() >= MANY {
        let named = names(workspace, gone.iter().map(|change| &change.path));
        write!(note, "it removed {} files: {named}; undo restores them", gone.len()).ok()?;
    } else if files > shown && shown == DIFFS {
        write!(note, "it changed {files} files, {shown} of them are shown").ok()?;
    }
    (!note.is_empty()).then_some(note)
}

/// The first paths, as people know them.
fn names<'a>(workspace: &Workspace, paths: impl ExactSizeIterator<Item = &'a std::path::PathBuf>) -> String {
    let count = paths.len();
    let name = |path: &Path| workspace.resolve_path(path).map_or_else(|_| native::shown(path), |path| path.display());
    let mut names: Vec<_> = paths.map(|path| name(path)).collect();
    names.sort_unstable();
    names.truncate(NAMED);
    let more = count - names.len();
    if more > 0 { format!("{} and {more} more", names.join(", ")) } else { names.join(", ") }
}
