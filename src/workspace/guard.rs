//! Watching over protected files while a command runs: what it must not touch is as it was when it is done.
//!
//! A sandbox keeps a command from what is there before it starts ([`Guard::pins`]). Names that are not there yet cannot
//! be kept from it without leaving traces, so they are looked for afterwards: what a command made or changed is moved
//! aside to a name that nothing runs (`AGENTS.md.held`), what was there before is put back. Nothing is overwritten, and
//! what the person or an approved edit wrote in the meantime stays.

mod git;
mod state;
mod survey;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::fs::Dir;

pub(super) use self::state::{git_state, is_repository};
use self::survey::{Kept, Survey};
use super::{Root, native};

/// As many things of one name are set aside.
const MOST_ASIDE: u32 = 1000;

/// What is protected in the roots of a workspace, as it was when a command began.
#[derive(Debug)]
pub struct Guard(Vec<(Arc<Root>, Survey)>);

/// Places that a sandbox keeps a command from, absolute and without symlinks.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Pins {
    /// Folders that stay where they are: what is in them may change.
    pub fixed: Vec<PathBuf>,
    /// Files and folders that stay as they are.
    pub read_only: Vec<PathBuf>,
    /// Sockets of programs that run outside.
    pub sockets: Vec<PathBuf>,
}

/// The roots and the repositories they are worktrees of: what a command works on.
#[must_use]
pub fn with_repositories(roots: &[Arc<Root>]) -> Vec<Arc<Root>> {
    let linked = roots.iter().filter_map(|root| git::linked(root)).filter_map(|path| Root::open(&path).ok());
    let linked = linked.filter(|linked| !roots.iter().any(|root| linked.real().starts_with(root.real())));
    roots.iter().cloned().chain(linked.map(Arc::new)).collect()
}

impl Guard {
    /// Looks at the roots. Blocks.
    #[must_use]
    pub fn new(roots: &[Arc<Root>]) -> Self {
        Self(roots.iter().map(|root| (root.clone(), Survey::of(root.dir()))).collect())
    }

    /// What is to be kept from the command.
    #[must_use]
    pub fn pins(&self) -> Pins {
        let mut pins = Pins::default();
        for (root, survey) in &self.0 {
            let absolute =
                |paths: &BTreeSet<PathBuf>| -> Vec<_> { paths.iter().map(|path| root.real().join(path)).collect() };
            pins.fixed.extend(absolute(&survey.repositories));
            pins.read_only.extend(absolute(&survey.units));
            pins.sockets.extend(absolute(&survey.sockets));
        }
        pins
    }

    /// Looks again and puts right what the command changed; says what that was. With `pinned`, the sandbox kept the command
    /// from what was there before. A file that `is_approved` (by its absolute path) was written by the person. Blocks.
    #[must_use]
    pub fn restore(&self, pinned: bool, is_approved: &dyn Fn(&Path) -> bool) -> Vec<String> {
        let mut notes = Vec::new();
        for (root, before) in &self.0 {
            let after = Survey::of(root.dir());
            let is_others =
                |path: &Path| (pinned && before.is_shielded(path, &after)) || is_approved(&root.real().join(path));
            for path in before.added(&after).into_iter().filter(|path| !is_others(path)) {
                note(&mut notes, set_aside(root.dir(), path), path, "was made by the command");
            }
            for (path, kept) in before.changed(&after).filter(|(path, _)| !is_others(path)) {
                note(&mut notes, put_back(root.dir(), path, kept), path, "was changed by the command");
            }
        }
        notes
    }
}

fn note(notes: &mut Vec<String>, done: io::Result<Option<PathBuf>>, path: &Path, what: &str) {
    let path = native::shown(path);
    notes.push(match done {
        Ok(Some(held)) => format!("{path} is protected and {what}: that is now {}", native::shown(&held)),
        Ok(None) => format!("{path} is protected and {what}: it is as it was again"),
        Err(error) => format!("{path} is protected and {what}, and could not be put right ({error}): tell the user"),
    });
}

/// Moves what is at `path` to a name that is free, and returns that.
pub(super) fn set_aside(dir: &Dir, path: &Path) -> io::Result<Option<PathBuf>> {
    let name = path.file_name().map_or_else(OsString::new, OsString::from);
    for number in 1..=MOST_ASIDE {
        let mut aside = name.clone();
        aside.push(if number == 1 { ".held".to_owned() } else { format!(".held-{number}") });
        let aside = path.with_file_name(aside);
        if dir.symlink_metadata(&aside).is_err() {
            dir.rename(path, dir, &aside)?;
            return Ok(Some(aside));
        }
    }
    Err(io::Error::other(format!("there are {MOST_ASIDE} files of that name set aside already")))
}

/// Makes `path` what it was; what is there now is moved aside.
fn put_back(dir: &Dir, path: &Path, kept: &Kept) -> io::Result<Option<PathBuf>> {
    let held = match dir.symlink_metadata(path) {
        Ok(_) => set_aside(dir, path)?,
        Err(_) => None,
    };
    if let Some(parent) = path.parent() {
        dir.create_dir_all(parent)?;
    }
    kept.write(dir, path)?;
    Ok(held)
}

#[cfg(test)]
mod tests;
