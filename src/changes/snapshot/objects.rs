//! What git keeps in a repository besides its state, as of a look. All of it has a backup; what a command removed,
//! overwrote or added there (except new objects) is among its changes.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::io::{self, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use cap_fs_ext::DirExt as _;
use cap_std::fs::{Dir, Metadata};

use super::Look;
use super::folder::Known;
use super::repository::is_small;
use crate::changes::backup::{Backup, COPIED, is_hash};
use crate::changes::change_set::{Entry, EntryChange};
use crate::changes::guard::{besides_state, files_below, folders_of_others, is_below_link};
use crate::domain::lock;
use crate::workspace::stamp::{Stamp, dependable};
use crate::workspace::walk::Queue;
use crate::workspace::{Root, mode};

/// The folder of packs; every other one is named by the first two digits of its objects.
const PACKS: &str = "pack";
/// Of this many objects of a folder in which no name has changed, a look checks that they were not overwritten in place:
/// git makes objects read-only, and packs them long before a folder has more.
const CHECKED: usize = 16;
/// The permission bits of objects.
const MODE: u32 = 0o444;

/// The objects of a repository, and what else has a backup.
#[derive(Debug, Clone)]
pub(super) struct Objects {
    backup: Arc<Backup>,
    /// When the look began.
    begun: SystemTime,
    /// By the name of a folder of objects.
    folders: Folders,
    /// The other files, by their absolute path.
    files: HashMap<PathBuf, Known>,
}

/// By name.
type Folders = BTreeMap<String, Arc<Folder>>;

/// A folder of objects.
#[derive(Debug, Clone, Default)]
struct Folder {
    /// While it stays the same, so do the names.
    stamp: Option<Stamp>,
    /// The names in the folder.
    names: BTreeSet<Box<str>>,
}

/// Whether git only appends to this file of a repository, or keeps the last message in it.
fn is_log(path: &Path, repository: &Path) -> bool {
    let path = path.strip_prefix(repository).unwrap_or(path);
    let is_folder = |name: &str| path.iter().any(|part| part == name);
    let is_setting = path.ends_with("config") || path.ends_with("config.worktree");
    !is_setting && !["hooks", "info", "pack"].into_iter().any(is_folder)
}

/// The name of an object in a backup: the whole hash, or that of a file of a pack.
fn stored_name(folder: &str, file: &str) -> String {
    if folder == PACKS {
        file.to_owned()
    } else {
        format!("{folder}{file}")
    }
}

/// Where the object of this name in a backup is in the folder of objects.
fn path_of(name: &str) -> Option<PathBuf> {
    if is_object(PACKS, name) {
        return Some(Path::new(PACKS).join(name));
    }
    let (folder, file) = name.split_at_checked(2)?;
    is_object(folder, file).then(|| Path::new(folder).join(file))
}

fn is_object(folder: &str, file: &str) -> bool {
    if folder == PACKS {
        file.starts_with("pack-")
    } else {
        is_folder(folder) && is_hash(&format!("{folder}{file}"))
    }
}

fn is_folder(name: &str) -> bool {
    name == PACKS || (name.len() == 2 && name.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

impl Look<'_> {
    /// Examines the repository in this `folder` of the root, and the one that was there before.
    pub fn objects(&self, root: &Root, folder: &Path) {
        let (relative, path) = (
            folder.join("objects"),
            root.real().join(folder).join("objects"),
        );
        let Some(backups) = self.backups else { return };
        let before = self.before.objects.get(&path);
        let backup = match before {
            Some(before) => Ok(Arc::clone(&before.backup)),
            None => Backup::open(backups, &path).map(Arc::new),
        };
        let looked = backup.and_then(|backup| {
            let opened = root.dir().open_dir_nofollow(&relative);
            let is_gone = |name: &str| {
                path_of(name)
                    .is_some_and(|inner| root.dir().metadata(relative.join(inner)).is_err())
            };
            let (folders, mut lost) = match &opened {
                Ok(dir) => {
                    backup.lose_all(is_gone)?;
                    self.folders(dir, &backup, before)?
                }
                Err(_) => (BTreeMap::new(), Vec::new()),
            };
            if let Some(before) = before {
                let mut gone = missing(before, &folders);
                if let Ok(dir) = &opened {
                    leave_packed(&mut gone, dir, &folders, before)?;
                }
                lost.extend(gone);
            } else if let Some(since) = self.before.interrupted {
                let names = backup.names(since)?.into_iter();
                lost.extend(names.filter(|name| is_gone(name)));
            }
            let files = self.files_of_git(root, folder, &backup, before);
            Ok((
                Objects {
                    backup,
                    begun: self.begun,
                    folders,
                    files,
                },
                lost,
            ))
        });
        match looked {
            Ok((objects, lost)) => {
                let lost: Vec<_> = lost
                    .into_iter()
                    .filter_map(|name| loss(root, &relative, &objects.backup, &name))
                    .collect();
                self.with_found(|found| {
                    found.lost.extend(lost);
                    found.objects.insert(path, objects);
                });
            }
            Err(error) => {
                self.problem(format!("{} cannot be stored ({error})", path.display()));
                let known = before.map(|before| (path, before.clone()));
                self.with_found(|found| found.objects.extend(known));
            }
        }
    }

    /// The folders of objects, and the names in the backup of those that were overwritten.
    fn folders(
        &self,
        dir: &Dir,
        backup: &Backup,
        before: Option<&Objects>,
    ) -> io::Result<(Folders, Vec<String>)> {
        let names = dir
            .entries()?
            .map(|entry| Ok(entry?.file_name().into_string().ok()))
            .filter_map(io::Result::transpose)
            .filter(|name| name.as_ref().map_or(true, |name| is_folder(name)))
            .collect::<io::Result<Vec<_>>>()?;
        let device = dependable(dir);
        let looked = Mutex::new((BTreeMap::new(), Vec::new()));
        Queue::new(names).try_share(|name| {
            let folder = self.object_folder(dir, &name, device, backup, before)?;
            if let Some((folder, overwritten)) = folder {
                let mut looked = lock(&looked);
                looked.0.insert(name, folder);
                looked.1.extend(overwritten);
            }
            Ok(Vec::new())
        })?;
        Ok(std::mem::take(&mut *lock(&looked)))
    }

    /// The folder of objects of this `name` if it is one, and the names in the backup of those that were overwritten.
    fn object_folder(
        &self,
        dir: &Dir,
        name: &str,
        device: Option<u64>,
        backup: &Backup,
        before: Option<&Objects>,
    ) -> io::Result<Option<(Arc<Folder>, Vec<String>)>> {
        let Ok(found) = dir.symlink_metadata(name) else {
            return Ok(None);
        };
        if !found.is_dir() {
            return Ok(None);
        }
        let mut overwritten = Vec::new();
        let known = before.and_then(|before| before.folders.get(name));
        let (inner, stamp) = (dir.open_dir(name)?, Stamp::of(&found));
        let same = known.filter(|known| known.stamp.as_ref() == Some(&stamp));
        let is_settled = stamp.is_on(device) && stamp.is_older_than(self.begun);
        let listed = match same {
            Some(same) => Arc::clone(same),
            None => Arc::new(Folder {
                stamp: is_settled.then_some(stamp),
                names: names_in(name, &inner)?,
            }),
        };
        let most = if same.is_some() && name != PACKS {
            CHECKED
        } else {
            usize::MAX
        };
        for file in listed.names.iter().take(most) {
            let stored = stored_name(name, file);
            if !known.is_some_and(|known| known.names.contains(&**file)) {
                match backup.add(&inner, OsStr::new(&**file), &stored) {
                    // git has packed it meanwhile.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    added => added?,
                }
            } else if before.is_some_and(|before| is_overwritten(&inner, file, &stored, before)) {
                overwritten.push(stored);
            }
        }
        Ok(Some((listed, overwritten)))
    }

    /// The logs, settings, hooks and caches of a repository, and other programs' folders in it, unless they are large.
    /// New, different and missing files are changes; a log that
    /// became longer says what happened, an undo included.
    fn files_of_git(
        &self,
        root: &Root,
        folder: &Path,
        backup: &Backup,
        before: Option<&Objects>,
    ) -> HashMap<PathBuf, Known> {
        let mut files = HashMap::new();
        let (small, large): (Vec<_>, Vec<_>) = folders_of_others(root.dir(), folder)
            .into_iter()
            .partition(|path| is_small(root.dir(), path));
        for path in large {
            self.left_out(root.real().join(path));
        }
        let of_others = small.iter().flat_map(|path| files_below(root.dir(), path));
        for relative in besides_state(root.dir(), folder)
            .into_iter()
            .chain(of_others)
        {
            let path = root.real().join(&relative);
            let Ok(found) = root.dir().symlink_metadata(&relative) else {
                continue;
            };
            if !found.is_file() {
                continue;
            }
            let known = before.and_then(|before| before.files.get(&path));
            let file = known.filter(|known| known.is_same(&found)).cloned();
            let file = file.or_else(|| self.file_of_git(root, &relative, &found, backup));
            files.insert(path, file.unwrap_or(Known::unstamped(Entry::Special)));
        }
        let images: HashSet<_> = files.values().filter_map(image_of).collect();
        let before_images = before.map(|before| before.files.values().filter_map(image_of));
        for image in before_images.into_iter().flatten() {
            if !images.contains(image) {
                backup.lose_image(image);
            }
        }
        let top = root.real().join(folder);
        let log = top.join("logs/HEAD");
        let size = |known: Option<&Known>| known.map_or(0, |known| known.entry.size());
        let was_logged =
            before.is_some_and(|before| size(before.files.get(&log)) < size(files.get(&log)));
        let made = files.iter().filter_map(|(path, now)| {
            let is_new = !before?.files.contains_key(path) && now.entry.is_in_backup();
            is_new.then(|| EntryChange::new(path.clone(), Entry::Absent, now.entry.clone()))
        });
        let before = before.map(|before| &before.files).into_iter().flatten();
        let is_there = |path: &Path| {
            path.symlink_metadata().is_ok_and(|found| found.is_file())
                && !is_below_link(root.dir(), within(root, path))
        };
        let lost = before.filter_map(|(path, old)| {
            let now = files.get(path).map_or(&Entry::Absent, |now| &now.entry);
            let is_gone = match (&old.entry, now) {
                (Entry::File { size: before, .. }, Entry::File { size, .. }) => {
                    size < before || (old.entry != *now && !is_log(path, &top))
                }
                (Entry::Special, _) => false,
                // One that is there but cannot be read was not removed.
                _ => !is_there(path),
            };
            let after = || match now {
                Entry::Absent => left_at(root, within(root, path)),
                now => now.clone(),
            };
            is_gone.then(|| EntryChange::new(path.clone(), old.entry.clone(), after()))
        });
        let lost: Vec<_> = lost.chain(made).collect();
        self.with_found(|found| {
            found.lost.extend(lost);
            found.advanced.extend(was_logged.then_some(top));
        });
        files
    }

    fn file_of_git(
        &self,
        root: &Root,
        relative: &Path,
        found: &Metadata,
        backup: &Backup,
    ) -> Option<Known> {
        if found.len() > COPIED {
            return None;
        }
        let bytes = root.dir().read(relative).ok()?;
        let entry = Entry::File {
            image: backup.add_bytes(&bytes).ok()?,
            size: bytes.len() as u64,
            mode: mode::of(found),
        };
        Some(Known::as_found(self.begun, found, entry))
    }
}

/// The image of a file of git's in the backup.
fn image_of(file: &Known) -> Option<&str> {
    match &file.entry {
        Entry::File { image, .. } => Some(image),
        _ => None,
    }
}

/// The objects in a folder.
fn names_in(folder: &str, dir: &Dir) -> io::Result<BTreeSet<Box<str>>> {
    let mut names = BTreeSet::new();
    for entry in dir.entries()? {
        let entry = entry?;
        if let Ok(file) = entry.file_name().into_string()
            && is_object(folder, &file)
            && entry.file_type()?.is_file()
        {
            names.insert(file.into_boxed_str());
        }
    }
    Ok(names)
}

/// Whether an object that was there at the look `before` has other bytes now. What git writes again stays the same.
fn is_overwritten(dir: &Dir, file: &str, stored: &str, before: &Objects) -> bool {
    let Ok(found) = dir.symlink_metadata(file) else {
        return false;
    };
    let is_same = |mut now| before.backup.has_same(stored, &mut now);
    !Stamp::of(&found).is_older_than(before.begun)
        && !before.backup.is_link(stored, &found)
        && !dir.open(file).is_ok_and(is_same)
}

/// An object that is not as it was.
fn loss(root: &Root, objects: &Path, backup: &Backup, name: &str) -> Option<EntryChange> {
    let relative = objects.join(path_of(name)?);
    let (image, size) = backup.find(name)?;
    let after = left_at(root, &relative);
    if after == Entry::Absent && backup.size(name).is_some() {
        backup.lose(name);
    }
    let before = Entry::File {
        image,
        size,
        mode: MODE,
    };
    Some(EntryChange::new(root.real().join(relative), before, after))
}

/// The path relative to the root.
fn within<'a>(root: &Root, path: &'a Path) -> &'a Path {
    path.strip_prefix(root.real()).unwrap_or(path)
}

/// What a command left in the place of a file that has a backup.
fn left_at(root: &Root, relative: &Path) -> Entry {
    let is_free =
        is_below_link(root.dir(), relative) || root.dir().symlink_metadata(relative).is_err();
    if is_free {
        Entry::Absent
    } else {
        Entry::Special
    }
}

/// The names in the backup of what was there before.
fn missing(before: &Objects, after: &Folders) -> Vec<String> {
    let mut missing = Vec::new();
    for (name, folder) in &before.folders {
        let now = after.get(name);
        if now.is_some_and(|now| Arc::ptr_eq(now, folder)) {
            continue;
        }
        let gone = folder
            .names
            .iter()
            .filter(|file| !now.is_some_and(|now| now.names.contains(&**file)));
        missing.extend(gone.map(|file| stored_name(name, file)));
    }
    missing
}

/// Leaves out of what is `gone` the objects that git has put into a new pack.
fn leave_packed(
    gone: &mut Vec<String>,
    dir: &Dir,
    now: &Folders,
    before: &Objects,
) -> io::Result<()> {
    let mut loose: HashMap<Vec<u8>, String> = gone
        .extract_if(.., |name| is_hash(name))
        .map(|name| (hash_of(&name), name))
        .collect();
    let was_there = |file: &str| {
        let packs = before.folders.get(PACKS);
        packs.is_some_and(|packs| packs.names.contains(file))
    };
    for file in now.get(PACKS).into_iter().flat_map(|packs| &packs.names) {
        if file.ends_with(".idx") && !was_there(file) && !loose.is_empty() {
            remove_packed(&mut loose, dir.open(Path::new(PACKS).join(&**file))?)?;
        }
    }
    gone.extend(loose.into_values());
    Ok(())
}

/// Removes what the `index` of a pack lists, if it is of git's second version.
fn remove_packed(loose: &mut HashMap<Vec<u8>, String>, index: impl io::Read) -> io::Result<()> {
    let (mut index, mut head) = (BufReader::new(index), [0; 8 + 256 * 4]);
    index.read_exact(&mut head)?;
    if !head.starts_with(b"\xfftOc\0\0\0\x02") {
        return Ok(());
    }
    let count = head
        .last_chunk()
        .map_or(0, |count| u32::from_be_bytes(*count));
    let mut hash = vec![0; loose.keys().next().map_or(0, Vec::len)];
    for _ in 0..count {
        index.read_exact(&mut hash)?;
        loose.remove(&hash);
    }
    Ok(())
}

/// The bytes of a hash.
fn hash_of(name: &str) -> Vec<u8> {
    let bytes = (0..name.len())
        .step_by(2)
        .filter_map(|at| name.get(at..at + 2));
    bytes
        .filter_map(|byte| u8::from_str_radix(byte, 16).ok())
        .collect()
}

/// The packs of these repositories that are not copies, absolute: a command must not overwrite them.
pub(super) fn links(objects: &HashMap<PathBuf, Objects>) -> Vec<PathBuf> {
    let mut links = Vec::new();
    for (
        path,
        Objects {
            backup, folders, ..
        },
    ) in objects
    {
        for name in folders
            .get(PACKS)
            .into_iter()
            .flat_map(|packs| &packs.names)
        {
            if backup.size(name).is_some_and(|size| size > COPIED) {
                links.push(path.join(PACKS).join(&**name));
            }
        }
    }
    links
}
