//! One folder of a snapshot: its entries by name, and which of them are read again because they changed.

use std::cmp::Ordering;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cap_std::fs::Metadata;

use super::tracked::Index;
use super::{IGNORED_FILE, Look};
use crate::workspace::change_set::{Entry, EntryChange};
use crate::workspace::walk::{Found, Rules, is_version_control, open_ignore_file};
use crate::workspace::{Root, mode};

/// Two changes this close together may have the same timestamp: a file that changed just before it was read is read
/// again the next time.
const RACE: Duration = Duration::from_millis(50);

/// The entries of a folder, sorted by name; shared by the looks between which none changed.
pub(super) type Listing = Arc<Vec<(OsString, Known)>>;

/// An entry of a folder.
#[derive(Debug, Clone)]
pub(super) struct Known {
    /// An entry with the same stamp has not changed; `None` if that cannot be told.
    stamp: Option<Stamp>,
    pub(super) entry: Entry,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size: u64,
    modified: Option<SystemTime>,
    /// When the inode changed, which no program can set back.
    changed: Option<(i64, i64)>,
    mode: u32,
}

/// A folder to look at.
pub(super) struct Folder {
    pub(super) path: PathBuf,
    /// Relative to its root.
    pub(super) relative: PathBuf,
    /// The ignore rules of the folders above it.
    pub(super) rules: Arc<Rules>,
    /// What git tracks in the root.
    pub(super) tracked: [Arc<Index>; 2],
    /// Whether it is git-ignored: then only what git tracks all the same is listed.
    pub(super) is_ignored: bool,
}

impl Folder {
    /// Lists the folder without reading what is `known` and unchanged; if all of it is, that is the listing. Also returns
    /// the folders in it.
    pub(super) fn list(
        &self,
        root: &Root,
        known: Option<&Listing>,
        look: &Look<'_>,
    ) -> io::Result<(Listing, Vec<Self>)> {
        let entries = self.entries(root)?;
        let found = entries.iter().fold(Found::default(), |found, (name, _)| found.add(name));
        let open = |path: &Path| open_ignore_file(root, path);
        let rules = Rules::of(&self.path, found, &open, Arc::clone(&self.rules));
        let hidden: Vec<&OsStr> = look.hidden.iter().filter_map(|path| self.name_of(path)).collect();
        let (mut listed, mut folders) = (Listed { known, same: 0, changed: None }, Vec::new());
        for (name, found) in entries {
            if hidden.contains(&&*name) || (self.is_ignored && !self.is_tracked(&name, found.is_dir())) {
                continue;
            }
            // The paths of files are needed for few of them.
            if found.is_dir() || found.len() > IGNORED_FILE {
                let path = self.path.join(&name);
                // A file of such a name says where the repository is.
                if is_version_control(&name) && found.is_dir() {
                    look.version_control(root, path);
                    continue;
                }
                let is_ignored = !self.is_ignored && rules.ignores_for_git(&path, found.is_dir());
                let is_tracked = is_ignored && self.is_tracked(&name, found.is_dir());
                if is_ignored && (found.is_dir() || !is_tracked) {
                    look.left_out(path);
                }
                if is_ignored && !is_tracked {
                    continue;
                }
                if found.is_dir() {
                    folders.push(self.inner(&name, &rules, is_ignored));
                }
            }
            listed.add(name, &Stamp::of(&found), |name, old| {
                let path = self.relative.join(name);
                let read = || Known::read(root, &path, &found, look);
                // Whoever made a file unreadable that was copied before may have changed it first.
                let is_shut = found.is_file() && mode::of(&found) & mode::READABLE == 0;
                match old {
                    Some(Known { entry: Entry::File { .. }, .. }) if is_shut => {
                        mode::with(root.dir(), &path, mode::READABLE, read).unwrap_or_else(|_not_ours| read())
                    }
                    _ => read(),
                }
            });
        }
        Ok((listed.finish(), folders))
    }

    /// The folders of a listing of this one.
    pub(super) fn known_folders(&self, known: &Listing) -> Vec<Self> {
        let folders = known.iter().filter(|(_, known)| matches!(known.entry, Entry::Folder { .. }));
        folders.map(|(name, _)| self.inner(name, &self.rules, false)).collect()
    }

    /// A folder in this one.
    fn inner(&self, name: &OsStr, rules: &Arc<Rules>, is_ignored: bool) -> Self {
        Self {
            path: self.path.join(name),
            relative: self.relative.join(name),
            rules: Arc::clone(rules),
            tracked: self.tracked.clone(),
            is_ignored: self.is_ignored || is_ignored,
        }
    }

    /// Whether git tracks what has this `name`, or something in it.
    fn is_tracked(&self, name: &OsStr, is_folder: bool) -> bool {
        let path = self.relative.join(name);
        self.tracked.iter().any(|index| if is_folder { index.lists_below(&path) } else { index.lists(&path) })
    }

    /// What is in the folder, sorted by name.
    fn entries(&self, root: &Root) -> io::Result<Vec<(OsString, Metadata)>> {
        let name = if self.relative.as_os_str().is_empty() { Path::new(".") } else { &self.relative };
        let mut entries = Vec::new();
        for entry in root.dir().read_dir(name)? {
            let entry = entry?;
            if let Ok(found) = entry.metadata() {
                entries.push((entry.file_name(), found));
            }
        }
        entries.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        Ok(entries)
    }

    /// The name of `path` if it is in this folder.
    fn name_of<'a>(&self, path: &'a Path) -> Option<&'a OsStr> {
        path.file_name().filter(|_| path.parent() == Some(&self.path))
    }
}

/// A listing in the making. As long as everything is as it was known, nothing is copied.
struct Listed<'a> {
    known: Option<&'a Listing>,
    /// How many of the known entries come first, unchanged.
    same: usize,
    /// From the first difference on, all entries.
    changed: Option<Vec<(OsString, Known)>>,
}

impl Listed<'_> {
    /// Adds the next entry by name, which is read unless it is known under this stamp.
    fn add(&mut self, name: OsString, stamp: &Stamp, read: impl FnOnce(&OsStr, Option<&Known>) -> Known) {
        let known = self.known.map_or(&[][..], |known| known);
        if self.changed.is_none() && known.get(self.same).is_some_and(|(old, its)| *old == name && its.has(stamp)) {
            self.same += 1;
            return;
        }
        let old = find(known, &name);
        let unchanged = old.filter(|old| old.has(stamp)).cloned();
        let known = unchanged.unwrap_or_else(|| read(&name, old));
        let same = self.same;
        let copied = || self.known.iter().flat_map(|known| known.iter()).take(same).cloned().collect();
        self.changed.get_or_insert_with(copied).push((name, known));
    }

    fn finish(self) -> Listing {
        match (self.changed, self.known) {
            (Some(changed), _) => Arc::new(changed),
            (None, Some(known)) if known.len() == self.same => Arc::clone(known),
            (None, known) => Arc::new(known.iter().flat_map(|known| known.iter()).take(self.same).cloned().collect()),
        }
    }
}

impl Known {
    /// An entry of which nothing tells whether it has changed.
    pub(super) fn unstamped(entry: Entry) -> Self {
        Self { stamp: None, entry }
    }

    /// What is `known` if it has not changed, else what is there.
    pub(super) fn look(root: &Root, relative: &Path, found: &Metadata, known: Option<&Self>, look: &Look<'_>) -> Self {
        let known = known.filter(|known| known.has(&Stamp::of(found))).cloned();
        known.unwrap_or_else(|| Self::read(root, relative, found, look))
    }

    /// Whether what was `found` is as it was.
    pub(super) fn is_same(&self, found: &Metadata) -> bool {
        self.has(&Stamp::of(found))
    }

    /// Whether it has not changed.
    fn has(&self, stamp: &Stamp) -> bool {
        self.stamp.as_ref() == Some(stamp)
    }

    fn read(root: &Root, relative: &Path, found: &Metadata, look: &Look<'_>) -> Self {
        let stamp = Stamp::of(found);
        let is_settled = stamp.is_older_than(look.begun);
        let entry = if found.is_dir() {
            Entry::Folder { mode: mode::of(found) }
        } else if found.is_symlink() {
            let target = root.dir().read_link_contents(relative);
            target.map_or(Entry::Special, |target| Entry::Link { target })
        } else if found.is_file() {
            let image = look.copy(root, relative, found.len());
            image.map_or(Entry::Special, |(image, size)| Entry::File { image, size, mode: mode::of(found) })
        } else {
            Entry::Special
        };
        // A file that could not be copied is tried again the next time.
        let is_final = is_settled && !(found.is_file() && entry == Entry::Special);
        Self { stamp: is_final.then_some(stamp), entry }
    }
}

impl Stamp {
    fn of(found: &Metadata) -> Self {
        let modified = found.modified().ok().map(cap_std::time::SystemTime::into_std);
        Self { inode: inode(found), size: found.len(), modified, changed: changed(found), mode: mode::of(found) }
    }

    fn is_older_than(&self, now: SystemTime) -> bool {
        let Some(modified) = self.modified else { return false };
        let changed = self.changed.map_or(modified, |(seconds, nanoseconds)| {
            let since = Duration::new(seconds.try_into().unwrap_or(0), nanoseconds.try_into().unwrap_or(0));
            SystemTime::UNIX_EPOCH + since
        });
        now.duration_since(changed).is_ok_and(|age| age > RACE)
    }
}

#[cfg(unix)]
fn inode(found: &Metadata) -> u64 {
    cap_fs_ext::MetadataExt::ino(found)
}

/// What lists a folder does not know it.
#[cfg(not(unix))]
fn inode(_found: &Metadata) -> u64 {
    0
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "other systems have no such time")]
fn changed(found: &Metadata) -> Option<(i64, i64)> {
    use cap_std::fs::MetadataExt as _;
    Some((found.ctime(), found.ctime_nsec()))
}

/// Whether a file has changed at `end` or since, in whatever way.
pub(super) fn changed_after(found: &std::fs::Metadata, end: SystemTime) -> bool {
    #[cfg(unix)]
    let changed = {
        use std::os::unix::fs::MetadataExt as _;
        let since = |seconds: i64, nanoseconds: i64| {
            Duration::new(seconds.try_into().unwrap_or(0), nanoseconds.try_into().unwrap_or(0))
        };
        Some(SystemTime::UNIX_EPOCH + since(found.ctime(), found.ctime_nsec()))
    };
    #[cfg(not(unix))]
    let changed = found.modified().ok();
    changed.is_some_and(|changed| changed >= end)
}

#[cfg(not(unix))]
fn changed(_found: &Metadata) -> Option<(i64, i64)> {
    None
}

fn find<'a>(listing: &'a [(OsString, Known)], name: &OsStr) -> Option<&'a Known> {
    let index = listing.binary_search_by(|(other, _)| other.as_os_str().cmp(name)).ok()?;
    listing.get(index).map(|(_, known)| known)
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
    if before.zip(after).is_some_and(|(before, after)| Arc::ptr_eq(before, after)) {
        return;
    }
    let entries = |listing: Option<&'a Listing>| listing.into_iter().flat_map(|listing| listing.iter()).peekable();
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
        let (old, new) = (entry(old.map(|(_, known)| known)), entry(new.map(|(_, known)| known)));
        if old != new {
            changes.push(EntryChange { path: path.join(name), before: old.clone(), after: new.clone() });
        }
    }
}
