//! Snapshots of a workspace, so that everything a command does to it can be undone.
//!
//! A [`Snapshots`] has a copy of every file as of the last snapshot. A further snapshot reads only files whose metadata
//! has changed. Git-ignored folders and large ignored files are not covered.

mod attribution;
mod difference;
mod folder;
mod manifest;
mod moved;
mod objects;
mod protected;
mod repository;
mod tracked;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use cap_std::fs::{Dir, Metadata};

use self::difference::{changes, differences};
use self::folder::{Known, Listing};
use self::objects::Objects;
pub use self::protected::Earlier;
use self::repository::Made;
pub(super) use self::tracked::is_same_index;
use self::tracked::{Index, Tracked};
use crate::changes::backup::Backups;
use crate::changes::change_set::{ChangeSet, Entry, EntryChange, unread};
use crate::changes::guard::{is_repository, repositories_in};
use crate::changes::images::Images;
use crate::domain::{is_absent, lock};
use crate::workspace::stamp::{Stamp, changed_after, dependable};
use crate::workspace::state::address;
use crate::workspace::walk::{Queue, Rules};
use crate::workspace::{Root, mode, native};

/// The maximum size of a copied file, in bytes.
const FILE: u64 = 64 << 20;
/// The maximum size of a covered ignored file, in bytes.
const IGNORED_FILE: u64 = 1 << 20;
/// The maximum size of all copies, in bytes.
const BYTES: u64 = 1 << 30;
/// The size at which a manifest is rewritten, in bytes.
const MANIFEST: u64 = 64 << 20;
/// The maximum number of folders searched.
const FOLDERS: u64 = 50_000;

/// The files of some roots as of the last snapshot.
#[derive(Debug)]
pub struct Snapshots {
    roots: Vec<Arc<Root>>,
    hidden: Vec<PathBuf>,
    images: Images,
    /// The backups of git's objects.
    backups: Option<Backups>,
    /// Bytes copied so far.
    copied: AtomicU64,
    seen: Option<Seen>,
    /// The changes since the manifest was written; `None` if it has to be rewritten.
    unsaved: Option<Vec<ChangeSet>>,
}

/// One snapshot.
#[derive(Debug, Clone, Default)]
struct Seen {
    /// By absolute folder path.
    folders: HashMap<PathBuf, Listing>,
    /// Folders that undo does not cover, searched only for protected files.
    beside: HashMap<PathBuf, Listing>,
    /// Whether there are more of the first or of the second than were listed.
    has_more: [bool; 2],
    git: HashMap<PathBuf, Known>,
    /// What git tracks, by the absolute folder of the repository.
    tracked: HashMap<PathBuf, Tracked>,
    /// The `.git` folders, absolute.
    repositories: Vec<PathBuf>,
    /// What the repositories have besides their state, by their folder of objects.
    objects: HashMap<PathBuf, Objects>,
    /// What was removed, overwritten or added there (except objects) since the look before.
    lost: Vec<EntryChange>,
    /// The repositories in which git has moved HEAD since the look before, as its log says.
    advanced: Vec<PathBuf>,
    /// When the interrupted command began.
    interrupted: Option<SystemTime>,
    /// The repositories that are new since the previous snapshot.
    made: Vec<Made>,
    coverage: Coverage,
    /// Whether it was looked at in this process, which alone knows what was left out.
    is_own: bool,
}

/// How much of a workspace an undo can restore.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Why it cannot restore everything that is not ignored, if so.
    pub problem: Option<String>,
    /// The ignored folders and large ignored files, which undo does not cover.
    pub left_out: Vec<PathBuf>,
    /// The `.git` folders in those.
    pub repositories: Vec<PathBuf>,
    /// Whether there is a repository: undo restores all of it, but what may remove it still requires approval.
    pub has_objects: bool,
}

impl Snapshots {
    /// Snapshots of `roots` with copies of files in the file `pack`, and those of git's objects among the `backups`.
    /// What is `hidden` from commands is left out.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn new(
        roots: Vec<Arc<Root>>,
        pack: &Path,
        backups: Option<Backups>,
        hidden: &[PathBuf],
    ) -> io::Result<Self> {
        Ok(Self::with(roots, Images::pack(pack)?, backups, hidden))
    }

    /// Snapshots of a copy of the roots, with the same images: nothing else may add to their file.
    #[must_use]
    pub fn of_copy(&self, roots: Vec<Arc<Root>>, hidden: &[PathBuf]) -> Self {
        Self::with(roots, self.images.fork(), None, hidden)
    }

    fn with(
        roots: Vec<Arc<Root>>,
        images: Images,
        backups: Option<Backups>,
        hidden: &[PathBuf],
    ) -> Self {
        let hidden = hidden
            .iter()
            .filter_map(|path| native::canonical(path).ok())
            .collect();
        Self {
            roots,
            hidden,
            images,
            backups,
            copied: AtomicU64::new(0),
            seen: None,
            unsaved: None,
        }
    }

    /// A copy that continues from the same look, with the same images.
    #[must_use]
    pub fn fork(&self) -> Self {
        let (images, backups) = (self.images.fork(), self.backups.clone());
        Self {
            copied: AtomicU64::new(self.copied.load(Ordering::Relaxed)),
            seen: self.seen.clone(),
            ..Self::with(self.roots.clone(), images, backups, &self.hidden)
        }
    }

    /// The images that the looks made.
    pub fn images(&self) -> &Images {
        &self.images
    }

    /// The coverage of the last look; `None` before the first.
    pub fn coverage(&self) -> Option<&Coverage> {
        self.seen.as_ref().map(|seen| &seen.coverage)
    }

    /// Examines every file and returns what changed since the last look; the first look returns no changes. Blocks.
    pub fn look(&mut self) -> ChangeSet {
        self.look_from().0
    }

    /// The same, and what the look went on from.
    pub fn look_from(&mut self) -> (ChangeSet, Earlier) {
        let is_first = self.seen.is_none();
        for root in &mut self.roots {
            *root = root.as_named();
        }
        let before = self.seen.take().unwrap_or_default();
        let look = Look {
            before: &before,
            images: &self.images,
            backups: self.backups.as_ref(),
            begun: SystemTime::now(),
            hidden: &self.hidden,
            copied: &self.copied,
            folders: AtomicU64::new(0),
            beside: Mutex::default(),
            found: Mutex::default(),
        };
        for root in &self.roots {
            look.root(root);
        }
        let mut after = look.with_found(std::mem::take);
        after.is_own = true;
        let now = |path: &Path| {
            self.roots
                .iter()
                .find_map(|root| look.entry(root, path))
                .unwrap_or(Entry::Absent)
        };
        let mut changes = if is_first {
            ChangeSet::default()
        } else {
            changes(&before, &after, &now)
        };
        let lost = std::mem::take(&mut after.lost);
        changes.git.extend(lost.into_iter().filter(|_| !is_first));
        changes.git.sort();
        let saved = self.unsaved.as_ref().map_or(0, Vec::len);
        if let Some(unsaved) = self.unsaved.as_mut().filter(|_| !changes.is_empty()) {
            let git = changes
                .git
                .iter()
                .filter(|change| after.git.contains_key(&change.path))
                .cloned()
                .collect();
            unsaved.push(ChangeSet {
                files: changes.files.clone(),
                git,
            });
        }
        // From now on, new repositories are like any other: their state is covered.
        after
            .folders
            .retain(|path, _| !after.made.iter().any(|made| path.starts_with(&made.path)));
        self.seen = Some(after);
        let seen = (!is_first).then_some(before);
        (changes, Earlier { seen, saved })
    }

    /// Writes the snapshot to the file `manifest`, or what has changed since the last write. Blocks.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn save(&mut self, manifest: &Path) -> io::Result<()> {
        let Some(seen) = &self.seen else {
            return Ok(());
        };
        let is_long = manifest
            .metadata()
            .is_ok_and(|found| found.len() > MANIFEST);
        match self.unsaved.take().filter(|_| !is_long) {
            Some(unsaved) => manifest::append(manifest, &unsaved)?,
            None => manifest::begin(manifest, &differences(&Seen::default(), seen))?,
        }
        self.unsaved = Some(Vec::new());
        Ok(())
    }

    /// Continues from the snapshot saved before a command that `began` then: the next look finds what has changed since.
    /// Blocks.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn load(&mut self, manifest: &Path, began: SystemTime) -> io::Result<()> {
        self.seen = Some(Seen {
            interrupted: Some(began),
            ..manifest::load(manifest)?
        });
        Ok(())
    }

    /// The packs that a sandbox must protect from being overwritten, absolute.
    pub fn links(&self) -> Vec<PathBuf> {
        self.seen
            .as_ref()
            .map_or_else(Vec::new, |seen| objects::links(&seen.objects))
    }

    /// The ignored folders, their repositories, and large ignored files that are gone since `earlier`.
    pub fn lost(&self, earlier: &Coverage) -> Vec<PathBuf> {
        let is_gone = |path: &Path| path.symlink_metadata().is_err();
        let paths = earlier.left_out.iter().filter(|path| is_gone(path));
        let repositories = earlier.repositories.iter();
        let repositories = repositories.filter(|path| is_gone(&path.join("objects")));
        paths.chain(repositories).cloned().collect()
    }
}

/// One look at all roots, by several threads.
struct Look<'a> {
    before: &'a Seen,
    images: &'a Images,
    backups: Option<&'a Backups>,
    begun: SystemTime,
    hidden: &'a [PathBuf],
    copied: &'a AtomicU64,
    folders: AtomicU64,
    /// The folders to search for what is protected, relative to the root.
    beside: Mutex<Vec<PathBuf>>,
    found: Mutex<Seen>,
}

impl Look<'_> {
    fn root(&self, root: &Arc<Root>) {
        let objects = root.real().join("objects");
        // A root with files stays one, even if a command makes it look like a repository.
        let is_repository = self.before.objects.contains_key(&objects)
            || (is_repository(root) && !self.before.folders.contains_key(root.real()));
        if is_repository {
            self.with_found(|found| found.coverage.has_objects = true);
            self.search_later([PathBuf::new()]);
        } else {
            self.files(root);
        }
        self.search(root);
        let mut ahead = vec![PathBuf::from(if is_repository { "" } else { ".git" })];
        self.with_found(|found| {
            let inner = found.repositories.iter();
            let inner = inner.filter_map(|path| path.strip_prefix(root.real()).ok());
            ahead.extend(inner.map(Path::to_owned));
        });
        let mut repositories = repositories_in(root.dir(), ahead);
        // A command may have left nothing that looks like a repository.
        let known = self.before.objects.keys().filter_map(|objects| {
            Some(objects.parent()?.strip_prefix(root.real()).ok()?.to_owned())
        });
        repositories.extend(known);
        repositories.sort_unstable();
        repositories.dedup();
        self.git(root, &repositories);
        for repository in repositories {
            self.module(root, &repository);
            self.objects(root, &repository);
        }
    }

    /// What git tracks in the repository in this `folder` of the root. Its index is read if it has changed.
    fn tracked(&self, root: &Root, folder: &Path) -> Tracked {
        let (path, real) = (folder.join(".git/index"), root.real().join(folder));
        let before = self.before.tracked.get(&real).map(
            |Tracked {
                 indexes: [now, _], ..
             }| Arc::clone(now),
        );
        let known = self.before.git.get(&root.real().join(&path));
        let is_known = root
            .dir()
            .symlink_metadata(&path)
            .is_ok_and(|found| known.is_some_and(|it| it.is_same(&found)));
        let read = || Index::read(root, folder).map(Arc::new).unwrap_or_default();
        let now = before.clone().filter(|_| is_known).unwrap_or_else(read);
        let tracked = Tracked {
            folder: folder.into(),
            indexes: [now, before.unwrap_or_default()],
        };
        self.with_found(|found| found.tracked.insert(real, tracked.clone()));
        tracked
    }

    fn files(&self, root: &Root) {
        let found = root.dir().dir_metadata().ok();
        let first = folder::Folder {
            stamp: found.map(|found| Stamp::of(&found)),
            is_searched: true,
            ..self.top(root, Path::new(""))
        };
        Queue::new(vec![first]).share(|folder| self.folder(root, &folder));
    }

    /// Looks at all that is in the folder of a repository.
    fn repository(&self, root: &Root, folder: &Path) {
        let first = folder::Folder {
            is_repository: true,
            ..self.top(root, folder)
        };
        Queue::new(vec![first]).share(|folder| self.folder(root, &folder));
    }

    /// The first of the folders to look at.
    fn top(&self, root: &Root, folder: &Path) -> folder::Folder {
        folder::Folder {
            path: root.real().join(folder),
            relative: folder.to_owned(),
            rules: Rules::above(root, Path::new("")),
            tracked: self.tracked(root, Path::new("")),
            is_ignored: false,
            is_repository: false,
            is_searched: false,
            stamp: None,
            dependable: dependable(root.dir()),
        }
    }

    /// Lists a folder; returns the folders in it.
    fn folder(&self, root: &Root, folder: &folder::Folder) -> Vec<folder::Folder> {
        if self.folders.fetch_add(1, Ordering::Relaxed) == FOLDERS {
            self.problem(format!("the workspace has more than {FOLDERS} directories"));
            self.with_found(|found| found.has_more[0] = true);
        }
        if self.folders.load(Ordering::Relaxed) > FOLDERS {
            return Vec::new();
        }
        let known = self.before.folders.get(&folder.path);
        let listed = match (folder.list(root, known, self), known) {
            (Err(error), Some(known)) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.shut(root, folder, known).map_err(|_not_ours| error)
            }
            (listed, _) => listed,
        };
        match listed {
            Ok((mut listing, inner)) => {
                self.with_found(|found| {
                    // A root may be in a folder of another that is not searched.
                    let other = found.folders.get(&folder.path);
                    listing.holds = listing.holds.or_else(|| other?.holds.clone());
                    found.folders.insert(folder.path.clone(), listing)
                });
                inner
            }
            // It was removed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                self.problem(format!(
                    "{} cannot be read ({error})",
                    folder.path.display()
                ));
                // Nothing says that what is in it was removed.
                let Some(known) = known else {
                    return Vec::new();
                };
                self.with_found(|found| found.folders.insert(folder.path.clone(), known.clone()));
                folder.known_folders(known)
            }
        }
    }

    /// Lists a folder that the command made unreadable, perhaps after changing what is in it: that is read too, while the
    /// owner may enter.
    fn shut(
        &self,
        root: &Root,
        folder: &folder::Folder,
        known: &Listing,
    ) -> io::Result<(Listing, Vec<folder::Folder>)> {
        mode::with(root.dir(), &folder.relative, mode::OWNER, || {
            let (listing, mut ahead) = folder.list(root, Some(known), self)?;
            while let Some(inner) = ahead.pop() {
                ahead.extend(self.folder(root, &inner));
            }
            Ok((listing, Vec::new()))
        })?
    }

    /// What is at `path` now; `None` if that is not in the root.
    fn entry(&self, root: &Root, path: &Path) -> Option<Entry> {
        let relative = path.strip_prefix(root.real()).ok()?;
        let found = root.dir().symlink_metadata(relative);
        Some(found.map_or(Entry::Absent, |found| {
            Known::look(root, relative, &found, None, self).entry
        }))
    }

    /// Copies a file whose current content is not known. If it cannot be copied, that is a problem, and only its size
    /// is known.
    fn copy(&self, root: &Root, relative: &Path, found: &Metadata) -> io::Result<(String, u64)> {
        let (path, size) = (root.real().join(relative), found.len());
        if size > FILE {
            self.problem(format!(
                "{} is larger than {} MiB",
                path.display(),
                FILE >> 20
            ));
            return Ok(unread(found));
        }
        if self.copied.load(Ordering::Relaxed) + size > BYTES {
            let why = format!("its files are larger than {} GiB in total", BYTES >> 30);
            self.problem(why.clone());
            return Err(io::Error::other(why));
        }
        let copied = root
            .open_file(relative)
            .and_then(|file| self.images.store(file, size, FILE));
        if let Err(error) = &copied
            && error.kind() != io::ErrorKind::NotFound
        {
            self.problem(format!("{} cannot be copied ({error})", path.display()));
        }
        let (image, size, is_new) = copied?;
        if is_new {
            self.copied.fetch_add(size, Ordering::Relaxed);
        }
        Ok((image, size))
    }

    fn left_out(&self, path: PathBuf) {
        self.with_found(|found| found.coverage.left_out.push(path));
    }

    fn problem(&self, why: String) {
        self.with_found(|found| _ = found.coverage.problem.get_or_insert(why));
    }

    fn with_found<T>(&self, change: impl FnOnce(&mut Seen) -> T) -> T {
        change(&mut lock(&self.found))
    }
}

/// Keeps in `changes` only what existed at the time `end`: anything written later was not the command's. Returns the files
/// it dropped. Blocks.
pub fn retain_until(changes: &mut ChangeSet, end: SystemTime) -> Vec<PathBuf> {
    let is_later = |change: &EntryChange| changed_after(&change.path, end);
    let later: Vec<_> = changes
        .files
        .extract_if(.., |change| is_later(change))
        .map(|change| change.path)
        .collect();
    if changes.git.iter().any(is_later) {
        changes.git.retain(EntryChange::is_of_backup);
    }
    later
}

/// The current state of `path` in `dir`. Blocks.
///
/// # Errors
/// It cannot be read.
pub(super) fn look_at(dir: &Dir, path: &Path) -> io::Result<Entry> {
    let found = match dir.symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if is_absent(&error) => return Ok(Entry::Absent),
        Err(error) => return Err(error),
    };
    Entry::of(dir, path, &found, || {
        if found.len() > FILE {
            return Ok(unread(&found));
        }
        let bytes = dir.read(path)?;
        Ok((address(&bytes), bytes.len() as u64))
    })
}

#[cfg(test)]
mod tests;
