//! Telling what a command changed from what people and tools wrote meanwhile: that stays theirs.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{FILE, Seen, Snapshots};
use crate::changes::change_set::{ChangeSet, Entry, EntryChange};
use crate::changes::{edits, guard};
use crate::text::is_untouched;
use crate::workspace::Root;
use crate::workspace::written::Texts;

/// What the command itself did to a file that somebody wrote meanwhile.
enum Part {
    /// Nothing.
    Nothing,
    /// It went on from what was written.
    After(Entry),
    /// It overwrote what was written.
    Over(Arc<str>),
}

impl Seen {
    /// The file at `path` as of the look, if it is covered.
    fn known(&self, path: &Path) -> Option<&Entry> {
        let known = self.folders.get(path.parent()?)?.get(path.file_name()?)?;
        Some(&known.entry)
    }
}

impl Snapshots {
    /// Removes from `changes` what others had `written` meanwhile, and what they had git do, unless a command `has_run_git`.
    /// If a command overwrote the former, it is written again and the command's version is set aside; the notes report that.
    /// Blocks.
    pub fn attribute(
        &mut self,
        mut changes: ChangeSet,
        written: &Texts,
        has_run_git: bool,
    ) -> (ChangeSet, Vec<String>) {
        if !has_run_git {
            self.leave_moves(&mut changes);
        }
        let (mut files, mut notes, mut theirs) = (Vec::new(), Vec::new(), HashSet::new());
        let set_back = self.set_back(&changes, written);
        for change in changes.files.into_iter().chain(set_back) {
            let Some(text) = written.get(&change.path) else {
                files.push(change);
                continue;
            };
            match self.part(&change, text.as_ref()) {
                Part::Nothing => {}
                Part::After(before) => files.push(EntryChange { before, ..change }),
                Part::Over(text) => {
                    notes.push(self.write_again(&change, &text).map_or_else(
                        |error| lost(&change, &error),
                        |aside| overwritten(&change, aside.as_deref()),
                    ));
                    theirs.insert(change.path);
                }
            }
        }
        let mut changes = ChangeSet {
            files,
            git: changes.git,
        };
        if !theirs.is_empty() {
            let mut aside = self.look();
            aside.files.retain(|change| !theirs.contains(&change.path));
            changes = changes.then(aside, &self.images);
        }
        (changes, notes)
    }

    /// The files that others wrote and that are exactly as before again.
    fn set_back(&self, changes: &ChangeSet, written: &Texts) -> Vec<EntryChange> {
        let changed: HashSet<&Path> = changes.files.iter().map(|change| &*change.path).collect();
        let mut set_back = Vec::new();
        for (path, text) in written {
            let known = self.seen.as_ref().and_then(|seen| seen.known(path));
            let Some(entry) = known.filter(|_| !changed.contains(&**path)) else {
                continue;
            };
            // What an editor adds when it saves does not count as a difference.
            let plain = |text: &str| text.replace('\r', "").trim_end().to_owned();
            let now = self.images.text(entry, FILE).map(|text| plain(&text));
            if text.as_ref().is_some_and(|text| now != Some(plain(text))) {
                set_back.push(EntryChange::new(path.clone(), entry.clone(), entry.clone()));
            }
        }
        set_back
    }

    fn part(&self, change: &EntryChange, written: Option<&Arc<str>>) -> Part {
        let Some(written) = written else {
            return if change.after == Entry::Absent {
                Part::Nothing
            } else {
                Part::After(Entry::Absent)
            };
        };
        let (before, after) = (
            self.images.text(&change.before, FILE),
            self.images.text(&change.after, FILE),
        );
        let before = before.unwrap_or_default();
        let Some(after) = after else {
            return Part::Over(Arc::clone(written));
        };
        if after == *written {
            return Part::Nothing;
        }
        if !is_untouched(&before, written, &after) {
            return Part::Over(Arc::clone(written));
        }
        Part::After(self.with_text(change, written))
    }

    /// The file with this text, stored like it was.
    fn with_text(&self, change: &EntryChange, text: &str) -> Entry {
        let mode = match change.after {
            Entry::File { mode, .. } => mode,
            _ => edits::FILE,
        };
        edits::like(&self.images, text, &change.before, mode)
    }

    /// Writes `text` to the file again; returns the new place of the command's version.
    fn write_again(&self, change: &EntryChange, text: &str) -> std::io::Result<Option<PathBuf>> {
        let (root, relative) = self
            .place(&change.path)
            .ok_or(std::io::ErrorKind::NotFound)?;
        let file = self.with_text(change, text);
        guard::put_back(&self.images, root.dir(), relative, &file)
    }

    fn place<'a>(&'a self, path: &'a Path) -> Option<(&'a Root, &'a Path)> {
        self.roots
            .iter()
            .find_map(|root| Some((root.as_ref(), path.strip_prefix(root.real()).ok()?)))
    }
}

fn lost(change: &EntryChange, error: &std::io::Error) -> String {
    let path = change.path.display();
    format!(
        "{path} was saved while the command ran, but the command overwrote it and it cannot be restored ({error}): save it again"
    )
}

fn overwritten(change: &EntryChange, aside: Option<&Path>) -> String {
    let path = change.path.display();
    match aside.and_then(Path::file_name) {
        Some(aside) => format!(
            "{path} was saved while the command ran, and the command then overwrote it: the saved text has been restored, \
             and the command's version is in {}",
            aside.display()
        ),
        None => {
            format!(
                "{path} was saved while the command ran, and the command then removed it: it has been restored"
            )
        }
    }
}
