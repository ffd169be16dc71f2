//! What git keeps in a repository besides its state, as of a look: all of it has a backup, and what a command removed of
//! it, overwrote or added to it, but objects, is among its changes.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::fs::{Dir, Metadata};

use super::Look;
use super::folder::Known;
use crate::changes::backup::{Backup, COPIED};
use crate::changes::change_set::{Entry, EntryChange};
use crate::changes::guard::besides_state;
use crate::workspace::stamp::{Stamp, dependable};
use crate::workspace::{Root, mode};

/// The folder of packs; every other one is named by the first two digits of its objects.
const PACKS: &str = "pack";
/// Of this many objects of a folder in which no name has changed, a look checks that they were not overwritten in place:
/// git makes objects read-only, and packs them long before a folder has more.
const CHECKED: usize = 16;
/// A larger log or setting, in bytes, is not stored.
const FILE: u64 = 16 << 20;
/// The permission bits of objects.
const MODE: u32 = 0o444;

/// The objects of a repository, and what else has a backup.
#[derive(Debug, Clone)]
pub(super) struct Objects {
    backup: Arc<Backup>,
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
    /// By name in the folder, sorted.
    objects: Vec<(String, Stamp)>,
}

/// Whether git adds to a file of the repository in this folder, or writes in it what somebody said last.
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
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if folder == PACKS {
        file.starts_with("pack-")
    } else {
        is_folder(folder) && matches!(file.len(), 38 | 62) && is_hex(file)
    }
}

fn is_folder(name: &str) -> bool {
    name == PACKS || (name.len() == 2 && name.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

impl Objects {
    /// The packs that are no copy: nothing may overwrite them.
    pub(super) fn links(&self) -> impl Iterator<Item = PathBuf> {
        let packs = self.folders.get(PACKS).into_iter();
        packs
            .flat_map(|folder| &folder.objects)
            .filter(|(name, _)| self.backup.size(name).is_some_and(|size| size > COPIED))
            .map(|(name, _)| Path::new(PACKS).join(name))
    }
}

impl Look<'_> {
    /// Looks at the repository in this `folder` of the root, and at the one that was there before.
    pub(super) fn objects(&self, root: &Root, folder: &Path) {
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
            let opened = root.dir().open_dir(&relative);
            let (folders, mut lost) = match &opened {
                Ok(dir) => self.folders(dir, &backup, before)?,
                Err(_) => (BTreeMap::new(), Vec::new()),
            };
            if let Some(before) = before {
                lost.extend(missing(before, &folders));
            } else if let Some(since) = self.before.interrupted {
                let is_gone = |name: &String| {
                    path_of(name)
                        .is_some_and(|inner| root.dir().metadata(relative.join(inner)).is_err())
                };
                lost.extend(backup.names(since)?.into_iter().filter(is_gone));
            }
            let files = self.files_of_git(root, folder, &backup, before);
            Ok((
                Objects {
                    backup,
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
        let (mut folders, mut overwritten) = (BTreeMap::new(), Vec::new());
        let device = dependable(dir);
        for entry in dir.entries()? {
            let Ok(name) = entry?.file_name().into_string() else {
                continue;
            };
            let (Ok(found), true) = (dir.symlink_metadata(&name), is_folder(&name)) else {
                continue;
            };
            if found.is_dir() {
                let known = before.and_then(|before| before.folders.get(&name));
                let stamp = Stamp::of(&found);
                let is_settled = stamp.is_on(device) && stamp.is_older_than(self.begun);
                let mut listed = objects_in(
                    (&name, &dir.open_dir(&name)?),
                    known.filter(|known| known.stamp.as_ref() == Some(&stamp)),
                    known,
                    (backup, &mut overwritten),
                )?;
                if let Some(listed) = Arc::get_mut(&mut listed) {
                    listed.stamp = is_settled.then_some(stamp);
                }
                folders.insert(name, listed);
            }
        }
        Ok((folders, overwritten))
    }

    /// The logs, settings, hooks and caches of a repository. What is new, different or gone is among the changes; a log that
    /// became longer says what happened, an undo included.
    fn files_of_git(
        &self,
        root: &Root,
        folder: &Path,
        backup: &Backup,
        before: Option<&Objects>,
    ) -> HashMap<PathBuf, Known> {
        let mut files = HashMap::new();
        for relative in besides_state(root.dir(), folder) {
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
        let top = root.real().join(folder);
        let made = files.iter().filter_map(|(path, now)| {
            let is_new = !before?.files.contains_key(path) && now.entry.is_in_backup();
            is_new.then(|| EntryChange::new(path.clone(), Entry::Absent, now.entry.clone()))
        });
        let before = before.map(|before| &before.files).into_iter().flatten();
        let lost = before.filter_map(|(path, old)| {
            let now = files.get(path).map_or(&Entry::Absent, |now| &now.entry);
            let is_gone = match (&old.entry, now) {
                (Entry::File { size: before, .. }, Entry::File { size, .. }) => {
                    size < before || (old.entry != *now && !is_log(path, &top))
                }
                (Entry::Special, _) => false,
                // One that is there but cannot be read was not removed.
                _ => path.symlink_metadata().is_err(),
            };
            is_gone.then(|| EntryChange {
                path: path.clone(),
                before: old.entry.clone(),
                after: now.clone(),
                is_edit: false,
            })
        });
        let lost: Vec<_> = lost.chain(made).collect();
        self.with_found(|found| found.lost.extend(lost));
        files
    }

    fn file_of_git(
        &self,
        root: &Root,
        relative: &Path,
        found: &Metadata,
        backup: &Backup,
    ) -> Option<Known> {
        if found.len() > FILE {
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

/// The objects in a folder. Those that are new are stored; if no name is, the folder is the `same`.
fn objects_in(
    (folder, dir): (&str, &Dir),
    same: Option<&Arc<Folder>>,
    known: Option<&Arc<Folder>>,
    (backup, overwritten): (&Backup, &mut Vec<String>),
) -> io::Result<Arc<Folder>> {
    if let Some(same) = same {
        let most = if folder == PACKS { usize::MAX } else { CHECKED };
        let is_same = |(file, stamp): &(String, Stamp)| {
            dir.symlink_metadata(file)
                .is_ok_and(|found| Stamp::of(&found) == *stamp)
        };
        if same.objects.iter().take(most).all(is_same) {
            return Ok(Arc::clone(same));
        }
    }
    let mut objects = Vec::new();
    for entry in dir.entries()? {
        let Ok(file) = entry?.file_name().into_string() else {
            continue;
        };
        let Some(found) = dir.symlink_metadata(&file).ok().filter(Metadata::is_file) else {
            continue;
        };
        if !is_object(folder, &file) {
            continue;
        }
        let (stamp, name) = (Stamp::of(&found), stored_name(folder, &file));
        let old = known.and_then(|known| {
            let at = known
                .objects
                .binary_search_by(|(other, _)| other.cmp(&file))
                .ok()?;
            known.objects.get(at)
        });
        match old {
            Some((_, old)) if *old == stamp => {}
            // git gives an object that it would write again another time.
            Some(_)
                if !dir
                    .open(&file)
                    .is_ok_and(|mut now| backup.has_same(&name, &mut now)) =>
            {
                overwritten.push(name);
            }
            Some(_) => {}
            None => backup.add(dir, OsStr::new(&file), &name, found.len())?,
        }
        objects.push((file, stamp));
    }
    objects.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    Ok(Arc::new(Folder {
        stamp: None,
        objects,
    }))
}

/// An object that is not as it was.
fn loss(root: &Root, objects: &Path, backup: &Backup, name: &str) -> Option<EntryChange> {
    let relative = objects.join(path_of(name)?);
    let size = backup.size(name)?;
    let after = if root.dir().symlink_metadata(&relative).is_ok() {
        Entry::Special
    } else {
        backup.lose(name);
        Entry::Absent
    };
    Some(EntryChange {
        path: root.real().join(relative),
        before: Entry::File {
            image: backup.image(name),
            size,
            mode: MODE,
        },
        after,
        is_edit: false,
    })
}

/// The names in the backup of what was there before.
fn missing<'a>(before: &'a Objects, after: &'a Folders) -> impl Iterator<Item = String> + 'a {
    before.folders.iter().flat_map(|(name, folder)| {
        let now = after.get(name);
        let is_same = now.is_some_and(|now| Arc::ptr_eq(now, folder));
        let objects = folder.objects.iter().filter(move |_| !is_same);
        let gone = objects.filter(move |(file, _)| {
            now.is_none_or(|now| {
                now.objects
                    .binary_search_by(|(other, _)| other.cmp(file))
                    .is_err()
            })
        });
        gone.map(move |(file, _)| stored_name(name, file))
    })
}

/// The packs of these repositories that a command must not overwrite, absolute.
pub(super) fn links(objects: &HashMap<PathBuf, Objects>) -> Vec<PathBuf> {
    let links = |(path, objects): (&PathBuf, &Objects)| {
        objects
            .links()
            .map(|link| path.join(link))
            .collect::<Vec<_>>()
    };
    objects.iter().flat_map(links).collect()
}
