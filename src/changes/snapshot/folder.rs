//! One folder of a snapshot: its entries by name, and which of them are read again because they changed.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use cap_std::fs::{Dir, Metadata};

use super::tracked::Tracked;
use super::{FILE, IGNORED_FILE, Look};
use crate::changes::change_set::{Entry, EntryChange};
use crate::changes::guard::Holds;
use crate::workspace::native::openable;
use crate::workspace::stamp::Stamp;
use crate::workspace::walk::{Found, Rules, is_version_control, open_ignore_file};
use crate::workspace::{Root, mode};

/// The entries of a folder, sorted by name; shared by the looks between which none changed.
type Entries = Arc<Vec<(OsString, Known)>>;

/// A folder as of a look.
#[derive(Debug, Clone, Default)]
pub(super) struct Listing {
    pub entries: Entries,
    /// `None` if nothing tells whether it still has the same names.
    names: Option<Arc<Names>>,
    /// What a guard has to know of it; `None` where nothing is protected.
    pub holds: Option<Arc<Holds>>,
}

/// All names in a folder that has this stamp.
#[derive(Debug, PartialEq, Eq)]
struct Names {
    stamp: Stamp,
    /// Those that are not entries, sorted.
    left_out: Vec<OsString>,
}

/// An entry of a folder.
#[derive(Debug, Clone)]
pub(super) struct Known {
    /// An entry with the same stamp has not changed; `None` if that cannot be told.
    stamp: Option<Stamp>,
    pub entry: Entry,
}

/// How an entry is covered.
pub(super) enum Part {
    LeftOut,
    File,
    Folder {
        is_ignored: bool,
    },
    /// A repository that was not there before, which undo removes as a whole.
    Repository,
}

/// A folder to look at.
pub(super) struct Folder {
    pub path: PathBuf,
    /// Relative to its root.
    pub relative: PathBuf,
    /// The ignore rules of the folders above it.
    pub rules: Arc<Rules>,
    /// What git tracks in the repository it is in.
    pub tracked: Tracked,
    /// Whether it is git-ignored: then only what git tracks anyway is listed.
    pub is_ignored: bool,
    /// Whether it is in the folder of a new repository: then all of it is listed.
    pub is_repository: bool,
    /// Whether protected files in it matter.
    pub is_searched: bool,
    /// Its stamp before it is looked at.
    pub stamp: Option<Stamp>,
    /// The file system on which the stamp shows whether a name in the folder has changed.
    pub dependable: Option<u64>,
}

impl Folder {
    /// Lists the folder without reading what is `known` and unchanged; if all of it is, that is the listing. Also returns
    /// the folders in it.
    pub fn list(
        &self,
        root: &Root,
        known: Option<&Listing>,
        look: &Look<'_>,
    ) -> io::Result<(Listing, Vec<Self>)> {
        let dir = root.dir().open_dir(openable(&self.relative))?;
        let (names, are_known) = self.names(&dir, known)?;
        let ignore_files = names
            .iter()
            .fold(Found::default(), |found, name| found.add(name));
        let open = |path: &Path| open_ignore_file(root, path);
        let rules = Rules::of(&self.path, ignore_files, &open, Arc::clone(&self.rules));
        let is_nested =
            names.iter().any(|name| **name == *".git") && !self.relative.as_os_str().is_empty();
        let nested = is_nested.then(|| look.tracked(root, &self.relative));
        let tracked = nested.as_ref().unwrap_or(&self.tracked);
        let hidden: Vec<&OsStr> = look
            .hidden
            .iter()
            .filter_map(|path| self.name_of(path))
            .collect();
        let (mut entries, mut left_out, mut folders) = (Vec::new(), Vec::new(), Vec::new());
        let mut unchanged = 0;
        let all = found(&dir, names)?;
        let holds = self.holds(&all, known.filter(|_| are_known));
        let searched = |name: &OsStr| holds.as_ref().and_then(|holds| holds.inner(name));
        for (name, found) in all {
            let stamp = Stamp::of(&found);
            let is_hidden = hidden.contains(&&*name);
            let inner = searched(&name).filter(|_| !is_hidden);
            let part = if is_hidden {
                Part::LeftOut
            } else {
                self.part(root, (&name, &found), (&rules, tracked), look)
            };
            if matches!(part, Part::LeftOut | Part::Repository) {
                look.search_later(inner.iter().map(|inner| self.relative.join(inner)));
            }
            match part {
                Part::LeftOut => {
                    left_out.push(name.into_owned());
                    continue;
                }
                Part::Repository => {
                    folders.push(Self {
                        is_repository: true,
                        ..self.inner(&name, (&rules, tracked), false)
                    });
                    left_out.push(name.into_owned());
                    continue;
                }
                Part::File => {}
                Part::Folder { is_ignored } => {
                    folders.push(Self {
                        stamp: Some(stamp.clone()),
                        is_searched: inner.is_some(),
                        ..self.inner(&name, (&rules, tracked), is_ignored)
                    });
                }
            }
            let old = known.and_then(|known| known.get(&name));
            let same = old.filter(|old| old.has(&stamp)).cloned();
            unchanged += usize::from(same.is_some());
            let entry = same.unwrap_or_else(|| self.read(root, (&name, &found), old, look));
            entries.push((name.into_owned(), entry));
        }
        // Two looks between which nothing changed share the entries.
        let shared = known.map(|known| &known.entries);
        let shared = shared.filter(|it| it.len() == unchanged && entries.len() == unchanged);
        let entries = shared.map_or_else(|| Arc::new(entries), Arc::clone);
        Ok((
            Listing {
                entries,
                names: Names::settled(
                    self.stamp.as_ref(),
                    left_out,
                    known,
                    (look.begun, self.dependable),
                ),
                holds,
            },
            folders,
        ))
    }

    /// What a guard has to know of the folder: what is known of it if no name in it has changed.
    fn holds(
        &self,
        all: &[(Cow<'_, OsStr>, Metadata)],
        known: Option<&Listing>,
    ) -> Option<Arc<Holds>> {
        if !self.is_searched {
            return None;
        }
        let kinds = all.iter().map(|(name, found)| (&**name, found.file_type()));
        let known = known.and_then(|known| known.holds.clone());
        Some(known.unwrap_or_else(|| Arc::new(Holds::of(&self.relative, kinds))))
    }

    /// The names in the folder, sorted, and whether they are as known: they are not read again if none can have changed.
    fn names<'k>(
        &self,
        dir: &Dir,
        known: Option<&'k Listing>,
    ) -> io::Result<(Vec<Cow<'k, OsStr>>, bool)> {
        if let Some(Listing {
            entries,
            names: Some(names),
            ..
        }) = known
            && self.stamp.as_ref() == Some(&names.stamp)
        {
            let all = entries.iter().map(|(name, _)| name).chain(&names.left_out);
            let mut all: Vec<_> = all.map(|name| Cow::Borrowed(name.as_os_str())).collect();
            if !names.left_out.is_empty() {
                all.sort_unstable();
            }
            return Ok((all, true));
        }
        let names = dir
            .entries()?
            .map(|entry| Ok(Cow::Owned(entry?.file_name())));
        let mut names = names.collect::<io::Result<Vec<_>>>()?;
        names.sort_unstable();
        Ok((names, false))
    }

    /// How what was `found` under this name is covered.
    fn part(
        &self,
        root: &Root,
        (name, found): (&OsStr, &Metadata),
        (rules, tracked): (&Rules, &Tracked),
        look: &Look<'_>,
    ) -> Part {
        let is_tracked = || tracked.has(&self.relative.join(name), found.is_dir());
        if self.is_repository {
            return if found.is_dir() {
                Part::Folder { is_ignored: false }
            } else {
                Part::File
            };
        }
        if self.is_ignored && !is_tracked() {
            return Part::LeftOut;
        }
        // The paths of files are needed for few of them.
        if !found.is_dir() && found.len() <= IGNORED_FILE {
            return Part::File;
        }
        let path = self.path.join(name);
        // A file of such a name says where the repository is.
        if is_version_control(name) && found.is_dir() {
            return look.version_control(root, path, found);
        }
        let is_ignored = !self.is_ignored && rules.ignores_for_git(&path, found.is_dir());
        let is_tracked = is_ignored && is_tracked();
        if is_ignored && (found.is_dir() || !is_tracked) {
            look.left_out(path);
        }
        match (is_ignored && !is_tracked, found.is_dir()) {
            (true, _) => Part::LeftOut,
            (false, true) => Part::Folder { is_ignored },
            (false, false) => Part::File,
        }
    }

    /// Reads what was `found` under this name, where something else was known.
    fn read(
        &self,
        root: &Root,
        (name, found): (&OsStr, &Metadata),
        old: Option<&Known>,
        look: &Look<'_>,
    ) -> Known {
        let path = self.relative.join(name);
        let read = || Known::read(root, &path, found, look);
        // A file that was copied before and is unreadable now may have been changed in between.
        let is_shut = found.is_file() && mode::of(found) & mode::READABLE == 0;
        match old {
            Some(Known {
                entry: Entry::File { .. },
                ..
            }) if is_shut => mode::with(root.dir(), &path, mode::READABLE, read)
                .unwrap_or_else(|_not_ours| read()),
            _ => read(),
        }
    }

    /// The folders of a listing of this one.
    pub fn known_folders(&self, known: &Listing) -> Vec<Self> {
        let folders = known
            .entries
            .iter()
            .filter(|(_, known)| known.entry.is_folder());
        let is_searched = |name| {
            known
                .holds
                .as_ref()
                .is_some_and(|it| it.inner(name).is_some())
        };
        folders
            .map(|(name, _)| Self {
                is_searched: is_searched(name),
                ..self.inner(name, (&self.rules, &self.tracked), false)
            })
            .collect()
    }

    /// A folder in this one.
    fn inner(
        &self,
        name: &OsStr,
        (rules, tracked): (&Arc<Rules>, &Tracked),
        is_ignored: bool,
    ) -> Self {
        Self {
            path: self.path.join(name),
            relative: self.relative.join(name),
            rules: Arc::clone(rules),
            tracked: tracked.clone(),
            is_ignored: self.is_ignored || is_ignored,
            is_repository: self.is_repository,
            is_searched: false,
            stamp: None,
            dependable: self.dependable,
        }
    }

    /// The name of `path` if it is in this folder.
    fn name_of<'a>(&self, path: &'a Path) -> Option<&'a OsStr> {
        path.file_name()
            .filter(|_| path.parent() == Some(&self.path))
    }
}

impl Names {
    /// What a look that began at `begun` leaves for the next one, so that the names need not be read again. `device` is
    /// the file system on which a stamp shows whether a name has changed.
    fn settled(
        stamp: Option<&Stamp>,
        left_out: Vec<OsString>,
        known: Option<&Listing>,
        (begun, device): (SystemTime, Option<u64>),
    ) -> Option<Arc<Self>> {
        let stamp = stamp.filter(|stamp| stamp.is_on(device) && stamp.is_older_than(begun))?;
        let names = Self {
            stamp: stamp.clone(),
            left_out,
        };
        let same = known
            .and_then(|known| known.names.as_ref())
            .filter(|known| ***known == names);
        Some(same.map_or_else(|| Arc::new(names), Arc::clone))
    }
}

impl Listing {
    /// Searches a folder for protected files; undo does not cover its contents.
    pub fn search(
        dir: &Dir,
        folder: &Path,
        known: Option<&Self>,
        look: (SystemTime, Option<u64>),
    ) -> Option<Self> {
        let stamp = Stamp::of(&dir.symlink_metadata(openable(folder)).ok()?);
        let names = known.and_then(|known| known.names.as_ref());
        if names.is_some_and(|names| names.stamp == stamp) {
            return known.cloned();
        }
        Some(Self {
            entries: Entries::default(),
            names: Names::settled(Some(&stamp), Vec::new(), None, look),
            holds: Some(Arc::new(Holds::search(dir, folder))),
        })
    }

    /// The entry of this name.
    pub fn get(&self, name: &OsStr) -> Option<&Known> {
        let index = self
            .entries
            .binary_search_by(|(other, _)| other.as_os_str().cmp(name));
        self.entries.get(index.ok()?).map(|(_, known)| known)
    }
}

#[cfg(test)]
impl Listing {
    /// Whether the next look reads nothing of it again that has not changed.
    pub fn is_settled(&self) -> bool {
        self.names.is_some() && self.entries.iter().all(|(_, known)| known.stamp.is_some())
    }
}

impl Known {
    /// An entry with nothing to show whether it has changed.
    pub fn unstamped(entry: Entry) -> Self {
        Self { stamp: None, entry }
    }

    /// An entry as it was `found` by a look that began then.
    pub fn as_found(begun: SystemTime, found: &Metadata, entry: Entry) -> Self {
        let stamp = Some(Stamp::of(found)).filter(|stamp| stamp.is_older_than(begun));
        Self { stamp, entry }
    }

    /// The `known` entry if it has not changed, else the current one.
    pub fn look(
        root: &Root,
        relative: &Path,
        found: &Metadata,
        known: Option<&Self>,
        look: &Look<'_>,
    ) -> Self {
        let known = known.filter(|known| known.has(&Stamp::of(found))).cloned();
        known.unwrap_or_else(|| Self::read(root, relative, found, look))
    }

    /// Whether the `found` entry is unchanged.
    pub fn is_same(&self, found: &Metadata) -> bool {
        self.has(&Stamp::of(found))
    }

    /// Whether it has not changed.
    fn has(&self, stamp: &Stamp) -> bool {
        self.stamp.as_ref() == Some(stamp)
    }

    fn read(root: &Root, relative: &Path, found: &Metadata, look: &Look<'_>) -> Self {
        let stamp = Stamp::of(found);
        let is_settled = stamp.is_older_than(look.begun);
        let entry = Entry::of(root.dir(), relative, found, || {
            look.copy(root, relative, found)
        });
        let entry = entry.unwrap_or(Entry::Special);
        // A file that could not be copied is tried again the next time.
        let is_copied = !found.is_file() || (entry != Entry::Special && found.len() <= FILE);
        let is_final = is_settled && is_copied;
        Self {
            stamp: is_final.then_some(stamp),
            entry,
        }
    }
}

/// What is under these names of a folder, as far as it is still there.
fn found<'a>(dir: &Dir, names: Vec<Cow<'a, OsStr>>) -> io::Result<Vec<(Cow<'a, OsStr>, Metadata)>> {
    let mut all = Vec::with_capacity(names.len());
    for name in names {
        match dir.symlink_metadata(&*name) {
            Ok(found) => all.push((name, found)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

/// Converts a listing's entry for a change set.
pub(super) fn entry(known: Option<&Known>) -> &Entry {
    known.map_or(&Entry::Absent, |known| &known.entry)
}

/// Adds the differences between two listings of the folder at `path`.
pub(super) fn compare<'a>(
    path: &Path,
    before: Option<&'a Listing>,
    after: Option<&'a Listing>,
    changes: &mut Vec<EntryChange>,
) {
    if before
        .zip(after)
        .is_some_and(|(before, after)| Arc::ptr_eq(&before.entries, &after.entries))
    {
        return;
    }
    let entries = |listing: Option<&'a Listing>| {
        listing
            .into_iter()
            .flat_map(|listing| listing.entries.iter())
            .peekable()
    };
    let (mut before, mut after) = (entries(before), entries(after));
    loop {
        let order = match (before.peek(), after.peek()) {
            (Some((old, _)), Some((new, _))) => old.cmp(new),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return,
        };
        let old = if order.is_gt() { None } else { before.next() };
        let new = if order.is_lt() { None } else { after.next() };
        let Some((name, _)) = old.or(new) else { return };
        let (old, new) = (
            entry(old.map(|(_, known)| known)),
            entry(new.map(|(_, known)| known)),
        );
        if old != new {
            changes.push(EntryChange::new(path.join(name), old.clone(), new.clone()));
        }
    }
}
