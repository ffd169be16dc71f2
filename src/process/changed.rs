//! A command's changes, as its call reports them.

mod git;
mod guarded;
mod interrupted;

use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use self::git::GitRuns;
pub(super) use self::guarded::Guarded;
use super::sandbox::{Interrupted, Sandbox};
use super::{Shared, Shell, TICK};
use crate::changes::backup::Backups;
use crate::changes::change_set::{Entry, EntryChange};
use crate::changes::guard::with_repositories;
use crate::changes::snapshot::{Coverage, Snapshots};
use crate::changes::{ChangeSet, images};
use crate::domain::{FileDiff, Undo, lock};
use crate::workspace::written::Written;
use crate::workspace::{Workspace, blocking, first_names, native};

/// The maximum number of diffs shown for one command.
pub(super) const DIFFS: usize = 100;
/// Larger texts, in bytes, are not shown as a diff.
const TEXT: u64 = 1 << 20;
/// The maximum size of all texts shown as diffs for one command, in bytes.
const TEXTS: usize = 8 << 20;
/// From this many removed files on, a note says so.
const MANY: usize = 100;

/// A session's workspace as it is watched, from when that is first needed.
pub(super) type Watch = Mutex<Option<Watched>>;

#[derive(Debug)]
pub(super) struct Watched {
    snapshots: Snapshots,
    /// What people and tools write.
    written: Written,
    /// When commands run git.
    git_runs: GitRuns,
    /// The changes of background jobs that no call has reported yet.
    by_jobs: ChangeSet,
    /// What the look at the end of a command found, until somebody asks for it; and what undo covered before.
    ended: Option<(Coverage, ChangeSet)>,
    /// Reported changes whose previous contents could not be stored.
    unstored: ChangeSet,
    notes: Vec<String>,
}

impl Watched {
    fn new(workspace: &Workspace, snapshots: Snapshots, git_runs: GitRuns) -> Self {
        let written = workspace.documents().watch_writes();
        Self {
            snapshots,
            written,
            git_runs,
            by_jobs: ChangeSet::default(),
            ended: None,
            unstored: ChangeSet::default(),
            notes: Vec::new(),
        }
    }

    /// What has changed since the last look that somebody asked for, without what people and tools wrote.
    fn look(&mut self) -> ChangeSet {
        let ended = self.ended.take().map(|(_, changes)| changes);
        let changes = self.snapshots.look();
        let changes = self.attributed(changes);
        ended
            .unwrap_or_default()
            .then(changes, self.snapshots.images())
    }

    fn attributed(&mut self, changes: ChangeSet) -> ChangeSet {
        let has_run_git = self.git_runs.has_more();
        let written = self.written.take();
        let (changes, notes) = self.snapshots.attribute(changes, &written, has_run_git);
        self.notes.extend(notes);
        changes
    }

    /// What a command changed, and what undo covered before; if it `has_ended`, as of the look at its end.
    fn look_after(&mut self, has_ended: bool) -> (Coverage, ChangeSet) {
        let ended = self.ended.take_if(|_| has_ended);
        ended.unwrap_or_else(|| {
            let before = self.ended.as_ref().map(|(before, _)| before);
            let before = before.or(self.snapshots.coverage()).cloned();
            (before.unwrap_or_default(), self.look())
        })
    }

    /// Looks while no command runs but jobs in the background, if any.
    fn look_between(&mut self, has_jobs: bool) {
        if has_jobs {
            let changes = self.look();
            let by_jobs = std::mem::take(&mut self.by_jobs);
            self.by_jobs = by_jobs.then(changes, self.snapshots.images());
        } else {
            let _by_others = (
                self.ended.take(),
                self.snapshots.look(),
                self.written.take(),
                self.git_runs.has_more(),
            );
        }
    }
}

/// The changes of a command.
#[derive(Debug, Default)]
pub struct Changed {
    /// All of it.
    pub changes: Arc<ChangeSet>,
    /// The texts among them, unless there are too many.
    pub diffs: Vec<FileDiff>,
    /// Notes for the model and the person.
    pub notes: Vec<String>,
    /// Notices for the person.
    pub told: Vec<String>,
    /// Whether previous contents could not be stored.
    pub is_unstored: bool,
}

/// How much of a command's changes undo covers, and why not more.
#[derive(Debug, Clone)]
pub(crate) struct Reach {
    pub undo: Undo,
    pub note: Option<String>,
    /// The folders and files that it does not cover.
    pub left_out: Vec<PathBuf>,
}

impl Shell {
    /// Does `work` that blocks.
    async fn blocking<T: Send + 'static>(
        &self,
        workspace: &Workspace,
        work: impl FnOnce(&Shared, &Workspace) -> T + Send + 'static,
    ) -> T {
        let (shared, workspace) = (Arc::clone(&self.0), workspace.clone());
        blocking(move || work(&shared, &workspace)).await
    }

    /// How much of the next command's changes undo covers.
    pub(crate) async fn reach(&self, workspace: &Workspace) -> Reach {
        // The first look goes by what the sandbox protects.
        self.holds(workspace).await;
        self.blocking(workspace, Shared::reach).await
    }

    /// The changes of a command that was interrupted when tandem was killed.
    pub async fn interrupted(&self, workspace: &Workspace) -> Option<Changed> {
        self.blocking(workspace, Shared::interrupted).await
    }

    /// Forgets the command that was interrupted.
    pub async fn forget_interrupted(&self) {
        let shared = Arc::clone(&self.0);
        blocking(move || shared.left_behind().map(Interrupted::remove)).await;
    }

    /// What has changed in the workspace since a command was started; of a job in the background, since it was reported.
    /// The look at the end of a command is enough if it `has_ended` and nothing was written since.
    pub(crate) async fn changed(
        &self,
        workspace: &Workspace,
        is_job: bool,
        has_ended: bool,
    ) -> Changed {
        self.blocking(workspace, move |shared, workspace| {
            shared.changed(workspace, is_job, has_ended)
        })
        .await
    }

    /// What has been reported is recorded: it does not have to be found out again if tandem is killed.
    pub async fn recorded(&self) {
        let shared = Arc::clone(&self.0);
        blocking(move || shared.recorded()).await;
    }

    /// The changes of background jobs that no call has reported yet.
    pub async fn changed_by_jobs(&self, workspace: &Workspace) -> Option<Changed> {
        self.blocking(workspace, Shared::changed_by_jobs).await
    }

    /// Looks at the workspace before tandem itself changes it like a command.
    pub(super) async fn look_now(&self, workspace: &Workspace) {
        let looked = self.blocking(workspace, |shared, workspace| {
            shared.look_before(workspace, Undo::Nothing)
        });
        if let Err(error) = looked.await {
            tracing::warn!("the workspace cannot be read: {error}");
        }
    }

    /// Attributes all changes up to now to something other than background jobs.
    pub async fn look_past(&self, workspace: &Workspace) {
        self.blocking(workspace, Shared::look_past).await;
    }
}

impl Shared {
    /// How much an undo of the next command would cover, as far as known since the last look. Blocks.
    fn reach(&self, workspace: &Workspace) -> Reach {
        let Coverage {
            problem,
            left_out,
            repositories,
            has_objects,
        } = match self.coverage(workspace) {
            Ok(coverage) => coverage,
            Err(error) => return Reach::nothing(&error.to_string()),
        };
        if let Some(problem) = problem {
            return Reach::nothing(&problem);
        }
        let is_whole = left_out.is_empty();
        let note = (!is_whole).then(|| {
            let mut note = format!("undo does not cover {}", sorted(workspace, left_out.iter()));
            if !repositories.is_empty() {
                note += ", with the repository ";
                note += &sorted(workspace, repositories.iter());
            }
            note
        });
        let undo = if is_whole && !has_objects {
            Undo::Everything
        } else {
            Undo::ExceptIgnored
        };
        Reach {
            undo,
            note,
            left_out,
        }
    }

    /// What snapshots of the workspace cover, as far as known since the last look. Blocks.
    pub fn coverage(&self, workspace: &Workspace) -> io::Result<Coverage> {
        self.with_watched(workspace, |watched| {
            let snapshots = &mut watched.snapshots;
            if snapshots.coverage().is_none() {
                let _first = snapshots.look();
            }
            snapshots.coverage().cloned().unwrap_or_default()
        })
    }

    /// Snapshots of a copy of the workspace, before the first look at it. Blocks.
    pub fn of_copy(
        &self,
        workspace: &Workspace,
        copy: &Workspace,
        hidden: &[PathBuf],
    ) -> io::Result<Snapshots> {
        self.with_watched(workspace, |watched| {
            watched.snapshots.of_copy(copy.roots().to_vec(), hidden)
        })
    }

    /// Examines the workspace right before a command that was shown with this `undo`. Blocks.
    pub fn look_before(&self, workspace: &Workspace, undo: Undo) -> io::Result<()> {
        let looked = self.with_watched(workspace, |watched| {
            watched.look_between(self.has_jobs());
            self.mark_running(watched);
            watched
                .snapshots
                .coverage()
                .and_then(|coverage| coverage.problem.clone())
        });
        match looked {
            _ if undo == Undo::Nothing => Ok(()),
            Ok(None) => Ok(()),
            Ok(Some(problem)) => Err(io::Error::other(format!(
                "undo would no longer cover it: {problem}; try again"
            ))),
            Err(error) => Err(error),
        }
    }

    /// Leaves on the disk what is needed to find out what the command changed if tandem does not see its end.
    fn mark_running(&self, watched: &mut Watched) {
        let (Some(session), Ok(scratch)) = (&self.surroundings.session, self.scratch()) else {
            return;
        };
        let _none_of_an_earlier_command = std::fs::remove_file(scratch.ended());
        if !self.has_jobs() {
            let _none_of_an_earlier_command = std::fs::remove_file(scratch.guard());
        }
        let marked = watched
            .snapshots
            .save(&scratch.manifest())
            .and_then(|()| watched.written.log(&scratch.written()))
            .and_then(|()| std::fs::write(scratch.running(), session));
        if let Err(error) = marked {
            tracing::warn!(
                "the changes of an interrupted command could not be determined: {error}"
            );
        }
    }

    /// Removes the mark of a command that has ended, unless the next one has begun. Blocks.
    fn recorded(&self) {
        let _no_command_begins = lock(&self.watch);
        let Some(scratch) = self.running().scratch.clone() else {
            return;
        };
        if scratch.ended().exists() {
            let _was_not_marked = std::fs::remove_file(scratch.running());
        }
    }

    /// Stores the previous contents for which there was no room before, which the copies of the workspace still have.
    fn store_again(&self) {
        if let Some(watched) = lock(&self.watch).as_mut()
            && !watched.unstored.is_empty()
            && self.store(&watched.snapshots, &watched.unstored).is_ok()
        {
            watched.unstored = ChangeSet::default();
        }
    }

    /// Stores the images of `changes`.
    fn store(&self, snapshots: &Snapshots, changes: &ChangeSet) -> io::Result<()> {
        let images = self.surroundings.state.as_deref().map(images::folder);
        images.map_or(Ok(()), |images| {
            snapshots.images().publish(changes, &images)
        })
    }

    /// What jobs in the background changed that no call has reported; `None` when none runs. Blocks.
    fn changed_by_jobs(&self, workspace: &Workspace) -> Option<Changed> {
        self.store_again();
        self.has_jobs()
            .then(|| self.changed(workspace, true, false))
    }

    /// Takes the workspace as it is now for what jobs in the background go on from. Blocks.
    fn look_past(&self, workspace: &Workspace) {
        if self.has_jobs()
            && let Err(error) = self.with_watched(workspace, |watched| watched.look_between(false))
        {
            tracing::warn!("the workspace cannot be read: {error}");
        }
    }

    /// What has changed in the workspace since the last look; with `is_job` also what jobs changed before that. Blocks.
    fn changed(&self, workspace: &Workspace, is_job: bool, has_ended: bool) -> Changed {
        let has_jobs = self.has_jobs();
        let changed = self.with_watched(workspace, |watched| {
            let (before, changes) = watched.look_after(has_ended);
            let earlier = if is_job {
                std::mem::take(&mut watched.by_jobs)
            } else {
                ChangeSet::default()
            };
            let changes = earlier.then(changes, watched.snapshots.images());
            let mut changed = self.report(workspace, &watched.snapshots, changes);
            if changed.is_unstored {
                watched.unstored.extend((*changed.changes).clone());
            }
            changed.told.append(&mut watched.notes);
            let lost = watched.snapshots.lost(&before);
            if !lost.is_empty() {
                let names = sorted(workspace, lost.iter());
                changed
                    .notes
                    .push(format!("it removed files undo can't restore: {names}"));
            }
            if has_jobs {
                self.mark_running(watched);
            }
            changed
        });
        if let Some(scratch) = self.scratch().ok().filter(|_| !has_jobs) {
            // Until its changes are recorded, they are found out once more if tandem is killed.
            let marked = File::create(scratch.ended())
                .and_then(|file| file.set_modified(SystemTime::now() + TICK));
            if let Err(error) = marked {
                tracing::debug!("cannot record when the command ended: {error}");
            }
        }
        changed.unwrap_or_else(|error| {
            let notes = vec![format!("its changes are unknown ({error})")];
            Changed {
                notes,
                ..Changed::default()
            }
        })
    }

    /// Stores the images of `changes` and returns a report of them.
    pub fn report(
        &self,
        workspace: &Workspace,
        snapshots: &Snapshots,
        mut changes: ChangeSet,
    ) -> Changed {
        changes.files.sort();
        changes.git.sort();
        let stored = self.store(snapshots, &changes);
        let Shown {
            diffs,
            besides,
            is_cut,
        } = shown(workspace, snapshots, &changes);
        let lost = |error| {
            format!(
                "previous versions cannot be stored ({error}); until they can, undo does not cover what commands change"
            )
        };
        let told: Vec<_> = stored.err().map(lost).into_iter().collect();
        let besides = (!besides.is_empty()).then(|| first_names(besides.into_iter(), |what| what));
        let notes = summary(workspace, &changes, is_cut.then_some(diffs.len()))
            .into_iter()
            .chain(besides)
            .collect();
        Changed {
            changes: Arc::new(changes),
            diffs,
            notes,
            is_unstored: !told.is_empty(),
            told,
        }
    }

    fn with_watched<T>(
        &self,
        workspace: &Workspace,
        work: impl FnOnce(&mut Watched) -> T,
    ) -> io::Result<T> {
        let mut watched = lock(&self.watch);
        let watched = match &mut *watched {
            Some(watched) => watched,
            none => {
                let scratch = self.scratch()?;
                let mut hidden = self.surroundings.hidden.clone();
                hidden.push(scratch.folder());
                let roots = with_repositories(workspace.roots());
                let links = self.holding(workspace).is_some_and(Sandbox::pins);
                none.insert(Watched::new(
                    workspace,
                    Snapshots::new(roots, &scratch.images(), self.backups(links), &hidden)?,
                    GitRuns::of(&scratch),
                ))
            }
        };
        Ok(work(watched))
    }

    /// The backups of git's objects, if anything is stored.
    fn backups(&self, links: bool) -> Option<Backups> {
        let state = self.surroundings.state.as_deref()?;
        let folder = images::backups(&images::folder(state));
        Some(Backups { folder, links })
    }

    /// The packs that the sandbox has to protect, as of the last look. Blocks.
    pub fn links(&self) -> Vec<PathBuf> {
        let watched = lock(&self.watch);
        watched
            .as_ref()
            .map_or_else(Vec::new, |watched| watched.snapshots.links())
    }

    /// Continues from these snapshots of the workspace.
    ///
    /// # Errors
    /// There is no scratch folder.
    pub fn watch(&self, workspace: &Workspace, snapshots: Snapshots) -> io::Result<()> {
        let git_runs = GitRuns::of(self.scratch()?.as_ref());
        *lock(&self.watch) = Some(Watched::new(workspace, snapshots, git_runs));
        Ok(())
    }
}

impl Reach {
    fn nothing(why: &str) -> Self {
        Self {
            undo: Undo::Nothing,
            note: Some(format!("undo cannot cover this workspace: {why}")),
            left_out: Vec::new(),
        }
    }
}

/// How the changes are shown.
#[derive(Default)]
struct Shown {
    /// The texts that changed.
    diffs: Vec<FileDiff>,
    /// What else changed, in words.
    besides: Vec<String>,
    /// Whether there are more: undo covers those too, but only as whole files.
    is_cut: bool,
}

fn shown(workspace: &Workspace, snapshots: &Snapshots, changes: &ChangeSet) -> Shown {
    let diff = |change: &EntryChange| {
        let diff = snapshots.images().diff(change, TEXT)?;
        let path = workspace.resolve_path(&change.path).ok()?.absolute();
        Some(FileDiff { path, ..diff })
    };
    let (mut shown, mut bytes) = (Shown::default(), 0);
    for change in &changes.files {
        let diff = diff(change);
        shown.besides.extend(
            besides(change, diff.is_some())
                .map(|what| format!("{}: {what}", workspace.shown(&change.path))),
        );
        let Some(diff) = diff else { continue };
        bytes += diff.old_text.as_ref().map_or(0, |old| old.len()) + diff.new_text.len();
        if shown.diffs.len() == DIFFS || bytes > TEXTS {
            return Shown {
                is_cut: true,
                ..shown
            };
        }
        shown.diffs.push(diff);
    }
    shown
}

/// What changed at a path besides its text, which may be shown.
fn besides(change: &EntryChange, has_diff: bool) -> Option<String> {
    let mode = |before: &u32, after: &u32| {
        (before != after).then(|| format!("permissions {before:o} → {after:o}"))
    };
    let unseen = |what: &str, size: &u64| {
        let why = if *size > TEXT {
            "too large to show"
        } else {
            "not text"
        };
        (!has_diff).then(|| format!("{what} ({why})"))
    };
    match (&change.before, &change.after) {
        (
            Entry::File {
                image,
                mode: before,
                ..
            },
            Entry::File {
                image: same,
                size,
                mode: after,
            },
        ) => mode(before, after).or_else(|| unseen("changed", size).filter(|_| image != same)),
        (Entry::Folder { mode: before }, Entry::Folder { mode: after }) => mode(before, after),
        (_, Entry::Link { target }) => Some(format!("a link to {}", native::shown(target))),
        (Entry::Link { .. }, Entry::Absent) => Some("removed (a link)".to_owned()),
        (_, Entry::File { size, .. }) => unseen("created", size),
        (Entry::File { size, .. }, Entry::Absent) => unseen("removed", size),
        (_, Entry::Special) => Some("not a regular file".to_owned()),
        _ => None,
    }
}

/// What the diffs do not show.
fn summary(workspace: &Workspace, changes: &ChangeSet, shown: Option<usize>) -> Option<String> {
    let gone = changes
        .files
        .iter()
        .filter(|change| change.after == Entry::Absent);
    let gone: Vec<_> = gone.filter(|change| !change.before.is_folder()).collect();
    let files = changes
        .files
        .iter()
        .filter(|change| !change.after.is_folder())
        .count();
    let mut note = String::new();
    if gone.len() >= MANY {
        let named = workspace.named(gone.iter().map(|change| &change.path));
        write!(
            note,
            "it removed {} files: {named}; undo restores them",
            gone.len()
        )
        .ok()?;
    } else if let Some(shown) = shown {
        write!(note, "it changed {files} files, of which {shown} are shown").ok()?;
    }
    (!note.is_empty()).then_some(note)
}

/// Names the first of these files in their order, and counts the others.
fn sorted<'a>(workspace: &Workspace, paths: impl Iterator<Item = &'a PathBuf>) -> String {
    let mut paths: Vec<_> = paths.collect();
    paths.sort_unstable();
    workspace.named(paths.into_iter())
}
