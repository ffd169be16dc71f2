//! Guards protected files while a command runs, and restores them afterwards.
//!
//! A sandbox protects what exists before the command starts ([`Guard::pins`]).
//!
//! Names that do not exist yet cannot be protected without leaving traces, so they are checked afterwards: what a
//! command created or changed is moved aside to a name that nothing runs (`AGENTS.md.held`), and the previous content
//! is restored. Nothing is overwritten. What the person or an approved edit wrote meanwhile stays, or is written again
//! where the command overwrote it.

mod git;
mod saved;
mod state;
mod survey;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::fs::Dir;

pub(super) use self::git::{git_folder, worktree};
pub use self::saved::SavedGuard;
pub(super) use self::state::{
    below, besides_state, files_below, folders_of_others, git_state, is_below_link, is_repository,
    repositories as repositories_in,
};
pub(super) use self::survey::{Holds, Survey, search};
use super::change_set::Entry;
use super::{Images, edits};
use crate::workspace::path::has_aliases;
use crate::workspace::written::Texts;
use crate::workspace::{Root, native};

/// At most this many files with one name are set aside.
const MOST_ASIDE: u32 = 1000;

/// The protected files in a workspace's roots, as they were when a command began.
#[derive(Debug)]
pub struct Guard(Vec<(Arc<Root>, Survey)>);

/// Paths a sandbox protects from a command, absolute and without symlinks.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Pins {
    /// Folders that must not be renamed or removed; their contents may change.
    pub fixed: Vec<PathBuf>,
    /// Files and folders that must not change.
    pub read_only: Vec<PathBuf>,
    /// Sockets of programs outside the sandbox.
    pub sockets: Vec<PathBuf>,
}

/// The roots, and the repositories they are worktrees of. Copies have none: they may only read those.
pub fn with_repositories(roots: &[Arc<Root>]) -> Vec<Arc<Root>> {
    let own: Vec<_> = roots
        .iter()
        .filter(|root| root.original().is_none())
        .cloned()
        .collect();
    roots.iter().cloned().chain(repositories(&own)).collect()
}

/// The repositories elsewhere that the roots are worktrees of.
fn repositories(roots: &[Arc<Root>]) -> Vec<Arc<Root>> {
    let linked = roots
        .iter()
        .filter_map(|root| git::linked(root))
        .filter_map(|path| Root::open(&path).ok());
    linked
        .filter(|linked| {
            !roots
                .iter()
                .any(|root| linked.real().starts_with(root.real()))
        })
        .map(Arc::new)
        .collect()
}

/// What commands in copies may read of the originals, and the sockets in there, which they may not use. Blocks.
pub fn lent(roots: &[Arc<Root>]) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let originals: Vec<_> = roots
        .iter()
        .filter_map(|root| root.original().cloned())
        .collect();
    let linked = repositories(&originals)
        .into_iter()
        .map(|root| root.real().to_owned());
    let paths: Vec<_> = roots
        .iter()
        .flat_map(|root| root.lent().to_vec())
        .chain(linked)
        .collect();
    let sockets = Guard::new(&originals).pins().sockets.into_iter();
    let sockets = sockets
        .filter(|socket| paths.iter().any(|lent| socket.starts_with(lent)))
        .collect();
    (paths, sockets)
}

impl Guard {
    /// Surveys the roots without a look at them. Blocks.
    pub fn new(roots: &[Arc<Root>]) -> Self {
        let survey = |root: &Arc<Root>| (Arc::clone(root), Survey::alone(root.dir()));
        Self(roots.iter().map(survey).collect())
    }

    /// Surveys the same roots again. Blocks.
    #[must_use]
    pub fn again(&self) -> Self {
        let roots: Vec<_> = self.0.iter().map(|(root, _)| Arc::clone(root)).collect();
        Self::new(&roots)
    }

    /// The roots as they were looked at.
    pub(super) fn of(surveys: Vec<(Arc<Root>, Survey)>) -> Self {
        Self(surveys)
    }

    /// What to protect from the command.
    pub fn pins(&self) -> Pins {
        let mut pins = Pins::default();
        for (root, survey) in &self.0 {
            let absolute = |path: &PathBuf| root.real().join(path);
            pins.fixed.extend(survey.repositories.keys().map(absolute));
            pins.read_only.extend(survey.units.iter().map(absolute));
            pins.sockets.extend(survey.sockets.iter().map(absolute));
        }
        pins
    }

    /// Restores what the command changed, as found by a `survey` of the roots, and returns notes about it. With `pinned`,
    /// the sandbox protected what existed before. A file that `is_approved` (by its absolute path) was written by the user;
    /// `written` is what people and tools wrote while the command ran. Blocks.
    #[must_use]
    pub fn restore(
        &self,
        pinned: bool,
        written: &Texts,
        is_approved: &dyn Fn(&Path) -> bool,
        survey: &mut dyn FnMut() -> Self,
    ) -> Vec<String> {
        let mut notes = Vec::new();
        let mut now = survey();
        if !pinned && self.move_back(&now, &mut notes) {
            now = survey();
        }
        for ((root, before), (_, after)) in self.0.iter().zip(&now.0) {
            // Under another spelling, a mount may not be in the way.
            let is_shielded = |path: &Path| {
                pinned && before.is_shielded(root.dir(), path) && !has_aliases(root.dir(), path)
            };
            let by_others = |path: &Path| written.get(&root.real().join(path));
            let is_others = |path: &Path| {
                let is_removed =
                    || by_others(path) == Some(&None) && root.dir().symlink_metadata(path).is_err();
                is_shielded(path) || is_approved(&root.real().join(path)) || is_removed()
            };
            let mut restore = |path: &Path, kept: &Entry, what: &str| {
                let target = match by_others(path) {
                    Some(Some(text)) => edits::like(&before.images, text, kept, edits::FILE),
                    Some(None) => Entry::Absent,
                    None => kept.clone(),
                };
                let mut done = put_back(&before.images, root.dir(), path, &target).map(state);
                if let (Ok(state), Some(Some(_))) = (&mut done, by_others(path)) {
                    state.push_str("; the text saved in the meantime was restored");
                }
                note(&mut notes, done, path, what);
            };
            // A folder that somebody else wrote in is not the command's as a whole.
            let is_shared = |folder: &Path| {
                let folder = root.real().join(folder);
                let mut written = written.keys();
                written.any(|path| *path != folder && path.starts_with(&folder))
            };
            for path in before.added(after, &is_shared) {
                if !is_others(path) {
                    restore(path, &Entry::Absent, "was created by the command");
                }
            }
            for (path, kept) in before.changed(after) {
                if !is_others(path) {
                    restore(path, kept, "was changed by the command");
                }
            }
        }
        notes
    }

    /// Moves repositories that the command moved back to their folders, since nothing else has their objects; returns
    /// whether there were any.
    fn move_back(&self, now: &Self, notes: &mut Vec<String>) -> bool {
        let known = notes.len();
        for ((root, before), (_, after)) in self.0.iter().zip(&now.0) {
            let dir = root.dir();
            // A repository that is moved back may contain others, which are in place again then.
            let moved: Vec<_> = before.moved(dir, after).collect();
            for (path, now) in moved {
                let held = put_back(&before.images, dir, path, &Entry::Absent);
                let done = held.and_then(|held| {
                    dir.rename(now, dir, path)?;
                    Ok(state(held))
                });
                note(notes, done, path, "was moved by the command");
            }
        }
        notes.len() > known
    }
}

/// What became of a file; `held` is where the command's version is now, if there is one.
fn state(held: Option<PathBuf>) -> String {
    match held {
        Some(held) => format!("the command's version is now {}", native::shown(&held)),
        None => "it was restored".to_owned(),
    }
}

fn note(notes: &mut Vec<String>, done: io::Result<String>, path: &Path, what: &str) {
    let path = native::shown(path);
    notes.push(match done {
        Ok(state) => format!("{path} is protected and {what}; {state}"),
        Err(error) => format!(
            "{path} is protected and {what}, and could not be restored ({error}): tell the user"
        ),
    });
}

/// Moves what is at `path` to a name that is free, and returns that.
pub(super) fn set_aside(dir: &Dir, path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().map_or_else(OsString::new, OsString::from);
    for number in 1..=MOST_ASIDE {
        let mut aside = name.clone();
        aside.push(if number == 1 {
            ".held".to_owned()
        } else {
            format!(".held-{number}")
        });
        let aside = path.with_file_name(aside);
        if dir.symlink_metadata(&aside).is_err() {
            dir.rename(path, dir, &aside)?;
            return Ok(aside);
        }
    }
    Err(io::Error::other(format!(
        "{MOST_ASIDE} files with that name are already set aside"
    )))
}

/// Makes `path` what `entry` is; returns the new place of what was there.
pub(super) fn put_back(
    images: &Images,
    dir: &Dir,
    path: &Path,
    entry: &Entry,
) -> io::Result<Option<PathBuf>> {
    let held = match dir.symlink_metadata(path) {
        Ok(_) => Some(set_aside(dir, path)?),
        Err(_) => None,
    };
    images.make(dir, path, entry)?;
    Ok(held)
}

#[cfg(test)]
mod tests;
