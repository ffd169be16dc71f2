//! Backups of what git keeps in a repository besides its state: objects, which never change, and logs and settings.
//!
//! They are in the state folder, where no command of the sandbox can reach them and no other names them. An object is
//! stored once, when a look first finds it: loose ones in a file for many, to which one process adds at a time.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Take};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cap_fs_ext::MetadataExt as _;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirEntry, Metadata};

use super::pack::{Pack, Place, image_at};
use crate::workspace::disk;
use crate::workspace::stamp::identity;
use crate::workspace::state::{AGE, BYTES, address, create_private, prune};

/// The prefix of the names of images in a backup.
const PREFIX: &str = "git:";
/// Separates the name of a file for many objects from the offset of one in it.
const AT: char = '@';
/// The folder of files that are no longer in the repository.
const LOST: &str = "lost";
/// The file whose time says when a backup was last used.
const USED: &str = "used";
/// The most processes that work in a repository at a time.
const PROCESSES: usize = 64;
/// A larger loose object is stored in a file of its own.
const LOOSE: u64 = 1 << 20;
/// A larger pack may be a hard link, which costs nothing, and survives all but being overwritten in place.
pub(crate) const COPIED: u64 = 64 << 20;

/// How backups are made.
#[derive(Debug, Clone)]
pub struct Backups {
    /// The folder that they are in.
    pub folder: PathBuf,
    /// Whether the sandbox keeps commands from overwriting large packs, so that links to them are enough.
    pub links: bool,
}

/// The backup of one repository.
#[derive(Debug)]
pub(crate) struct Backup {
    id: String,
    /// Whether large packs are links.
    links: bool,
    dir: Dir,
    lost: Dir,
    /// The files for loose objects, by name. This process adds to the first.
    loose: Vec<(String, Pack)>,
    /// Locked as long as this exists.
    _lock: File,
}

impl Backup {
    /// The backup, among all, of the repository with these `objects`.
    ///
    /// # Errors
    /// The system refuses.
    pub fn open(
        Backups {
            folder: backups,
            links,
        }: &Backups,
        objects: &Path,
    ) -> io::Result<Self> {
        let id = address(objects.as_os_str().as_encoded_bytes());
        let folder = backups.join(&id);
        create_private(&folder.join(LOST))?;
        File::create(folder.join(USED))?.set_modified(SystemTime::now())?;
        remove_unused(backups);
        let dir = Dir::open_ambient_dir(&folder, ambient_authority())?;
        let lost = dir.open_dir(LOST)?;
        prune(&lost)?;
        let (own, lock) = (0..PROCESSES)
            .find_map(|number| {
                let lock = File::create(folder.join(lock_name(number))).ok()?;
                lock.try_lock().ok()?;
                Some((format!("loose-{number}"), lock))
            })
            .ok_or_else(|| io::Error::other("too many processes are using it"))?;
        let is_long = |found: Metadata| found.len() > BYTES;
        if dir.symlink_metadata(&own).is_ok_and(is_long) {
            dir.remove_file(&own)?;
        }
        let mut loose = vec![(own.clone(), Pack::open(&folder.join(&own))?)];
        for number in 0..PROCESSES {
            let name = format!("loose-{number}");
            if name != own
                && let Ok(file) = File::open(folder.join(&name))
            {
                loose.push((name, Pack::of(file)?));
            }
        }
        Ok(Self {
            id,
            links: *links,
            dir,
            lost,
            loose,
            _lock: lock,
        })
    }

    /// The name of an image in this backup.
    fn image(&self, name: &str) -> String {
        format!("{PREFIX}{}/{name}", self.id)
    }

    /// The image stored under this name, and its size.
    pub fn find(&self, name: &str) -> Option<(String, u64)> {
        for (file, pack) in &self.loose {
            if let Some(Place { start, length }) = pack.place(name) {
                return Some((self.image(&format!("{file}{AT}{start}")), length));
            }
        }
        Some((self.image(name), self.size(name)?))
    }

    /// Stores the object `file` in `from`, if it is not there yet under this name.
    pub fn add(&self, from: &Dir, file: &OsStr, name: &str) -> io::Result<()> {
        if self.loose.iter().any(|(_, pack)| pack.has(name)) {
            return Ok(());
        }
        let object = from.open(file)?;
        let found = object.metadata()?;
        let size = found.len();
        if let Some((_, own)) = self.loose.first()
            && size <= LOOSE
            && is_hash(name)
        {
            let mut bytes = Vec::with_capacity(size.try_into().map_err(io::Error::other)?);
            object.take(size).read_to_end(&mut bytes)?;
            return own.write(name, &bytes);
        }
        let links = self.links && size > COPIED && !is_hash(name);
        let is_safe = |own: &Metadata| own.len() == size && (links || !is_same(own, &found));
        if self.has(name, is_safe)? || (links && from.hard_link(file, &self.dir, name).is_ok()) {
            return Ok(());
        }
        if size > COPIED && self.bytes_besides(name)? + size > BYTES {
            let most = BYTES >> 30;
            return Err(io::Error::other(format!("it is larger than {most} GiB")));
        }
        // The system copies what is a file to it, or shares its blocks.
        let object = object.into_std();
        disk::copy_with_mode(&self.dir, Path::new(name), &mut &object, 0o400)
    }

    /// Whether such a file of this name is there; one that was lost is back then.
    fn has(&self, name: &str, is_such: impl Fn(&Metadata) -> bool) -> io::Result<bool> {
        let is_in = |dir: &Dir| {
            dir.symlink_metadata(name)
                .is_ok_and(|found| is_such(&found))
        };
        if is_in(&self.dir) {
            return Ok(true);
        }
        let is_lost = is_in(&self.lost);
        if is_lost {
            self.lost.rename(name, &self.dir, name)?;
        }
        Ok(is_lost)
    }

    /// The size of all other files that are no links, which take no room.
    fn bytes_besides(&self, name: &str) -> io::Result<u64> {
        let size = |entry: io::Result<DirEntry>| {
            let entry = entry?;
            let found = entry.metadata()?;
            let is_link = cfg!(unix) && found.nlink() > 1;
            let is_counted = entry.file_name() != name && !is_link;
            Ok(found.len() * u64::from(is_counted))
        };
        self.dir.entries()?.map(size).sum()
    }

    /// Stores bytes; returns the name of their image.
    pub fn add_bytes(&self, bytes: &[u8]) -> io::Result<String> {
        let name = format!("file-{}", address(bytes));
        if !self.has(&name, |own| own.len() == bytes.len() as u64)? {
            disk::write_private(&self.dir, name.as_ref(), bytes)?;
        }
        Ok(self.image(&name))
    }

    /// Moves aside an image that no file of the repository has any more.
    pub fn lose_image(&self, image: &str) {
        if let Some(name) = image.strip_prefix(&self.image("")) {
            self.lose(name);
        }
    }

    /// The size of the file of this name.
    pub fn size(&self, name: &str) -> Option<u64> {
        [&self.dir, &self.lost]
            .into_iter()
            .find_map(|dir| Some(dir.symlink_metadata(name).ok()?.len()))
    }

    /// Moves aside what is gone from the repository, so that it takes no room.
    pub fn lose_all(&self, is_gone: impl Fn(&str) -> bool) -> io::Result<()> {
        for entry in self.dir.entries()? {
            if let Ok(name) = entry?.file_name().into_string()
                && is_gone(&name)
            {
                self.lose(&name);
            }
        }
        Ok(())
    }

    /// Moves aside a file that the repository no longer has.
    pub fn lose(&self, name: &str) {
        let moved = self.dir.rename(name, &self.lost, name);
        let marked = moved.and_then(|()| {
            // Windows sets the time only of what may be written, Unix that of any file of one's own.
            let mut options = cap_std::fs::OpenOptions::new();
            let options = options.read(true).write(cfg!(windows));
            let file = self.lost.open_with(name, options)?.into_std();
            file.set_modified(SystemTime::now())
        });
        if let Err(error) = marked {
            tracing::debug!("{name} stays in the backup: {error}");
        }
    }

    /// Whether the file that was `found` is the one stored under this name: linking it changed its stamp.
    pub fn is_link(&self, name: &str, found: &Metadata) -> bool {
        let own = self.dir.symlink_metadata(name);
        own.is_ok_and(|own| is_same(&own, found))
    }

    /// Whether the file `other` has the bytes that are stored under this name.
    pub fn has_same(&self, name: &str, other: &mut impl Read) -> bool {
        let own = self.find(name).and_then(|(image, size)| {
            let name = image.strip_prefix(&self.image(""))?;
            open_in(&self.dir, name, size).ok()
        });
        own.is_some_and(|mut own| disk::is_same(&mut own, other).unwrap_or(false))
    }

    /// What is stored: everything the repository had at the last look, and the files it lost `since`.
    pub fn names(&self, since: SystemTime) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for (_, pack) in &self.loose {
            names.extend(pack.names());
        }
        for entry in self.dir.entries()? {
            names.extend(entry?.file_name().into_string());
        }
        for entry in self.lost.entries()? {
            let entry = entry?;
            if entry.metadata()?.modified()?.into_std() >= since {
                names.extend(entry.file_name().into_string());
            }
        }
        Ok(names)
    }
}

/// Whether these are one file, as far as the system says.
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    cfg!(unix) && identity(one) == identity(other)
}

/// Whether this is the name of an object: its hash.
pub(crate) fn is_hash(name: &str) -> bool {
    matches!(name.len(), 40 | 64) && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The file that one of the processes in a repository locks.
fn lock_name(number: usize) -> String {
    format!("lock-{number}")
}

/// Removes the backups of repositories that nobody has worked in for long.
fn remove_unused(backups: &Path) {
    for entry in std::fs::read_dir(backups).into_iter().flatten().flatten() {
        let folder = entry.path();
        let used = std::fs::metadata(folder.join(USED)).and_then(|found| found.modified());
        let is_old = used.is_ok_and(|used| used.elapsed().is_ok_and(|age| age > AGE));
        if is_old && !is_in_use(&folder) {
            let _somebody_else_was_faster = std::fs::remove_dir_all(folder);
        }
    }
}

/// Whether a process has this backup open, however long ago it opened it.
fn is_in_use(folder: &Path) -> bool {
    (0..PROCESSES).any(|number| {
        let lock = File::open(folder.join(lock_name(number)));
        lock.is_ok_and(|lock| lock.try_lock().is_err())
    })
}

/// Whether an image is in a backup.
pub(crate) fn is_backup(image: &str) -> bool {
    image.starts_with(PREFIX)
}

/// The repository that `path` is in, if it has a backup.
pub(crate) fn repository<'a>(backups: &Path, path: &'a Path) -> Option<&'a Path> {
    path.ancestors().find(|folder| {
        let objects = folder.join("objects");
        backups
            .join(address(objects.as_os_str().as_encoded_bytes()))
            .is_dir()
    })
}

/// Opens an image of `size` bytes that is in one of the `backups`.
///
/// # Errors
/// It is not there, or damaged.
pub(crate) fn open(backups: &Path, image: &str, size: u64) -> io::Result<Take<File>> {
    let (id, name) = image
        .strip_prefix(PREFIX)
        .and_then(|image| image.split_once('/'))
        .ok_or(io::ErrorKind::InvalidInput)?;
    let dir = Dir::open_ambient_dir(backups, ambient_authority())?.open_dir(id)?;
    open_in(&dir, name, size)
}

fn open_in(dir: &Dir, name: &str, size: u64) -> io::Result<Take<File>> {
    if let Some((file, start)) = name.split_once(AT) {
        let start = start.parse().map_err(io::Error::other)?;
        let pack = dir.open(file)?.into_std();
        return image_at(
            pack,
            Place {
                start,
                length: size,
            },
        );
    }
    let file = dir
        .open(name)
        .or_else(|_lost| dir.open_dir(LOST)?.open(name))?
        .into_std();
    if file.metadata()?.len() == size {
        Ok(file.take(size))
    } else {
        Err(io::Error::other("its stored copy is damaged"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(folder: &tempfile::TempDir, links: bool) -> Backups {
        Backups {
            folder: folder.path().to_owned(),
            links,
        }
    }

    #[test]
    fn a_backup_is_removed_when_it_is_old_and_nobody_has_it_open() {
        let backups = tempfile::tempdir().unwrap();
        let open = |objects: &str| Backup::open(&of(&backups, true), Path::new(objects)).unwrap();
        let one = open("one");
        let folder = backups.path().join(&one.id);
        let used = File::options().write(true).open(folder.join(USED)).unwrap();
        used.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        drop(open("two"));
        assert!(folder.exists());
        drop(one);
        drop(open("two"));
        assert!(!folder.exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_a_backup_only_of_a_pack_that_no_command_can_overwrite() {
        let (backups, objects) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let dir = Dir::open_ambient_dir(objects.path(), ambient_authority()).unwrap();
        let is_link = |links, name: &str, size| {
            let pack = File::create(objects.path().join(name)).unwrap();
            pack.set_len(size).unwrap();
            let backup = Backup::open(&of(&backups, links), objects.path()).unwrap();
            backup.add(&dir, name.as_ref(), name)?;
            Ok::<_, io::Error>(backup.is_link(name, &dir.metadata(name).unwrap()))
        };
        let (pack, object) = ("pack-1.pack", "0".repeat(40));
        for (links, name, size, expected) in [
            (true, pack, COPIED + 1, true),
            // It was a link, and stays a copy.
            (false, pack, COPIED + 1, false),
            (true, pack, COPIED + 1, false),
            (true, &object, COPIED + 1, false),
            (true, "pack-2.pack", BYTES, true),
        ] {
            let found = is_link(links, name, size).unwrap();
            assert_eq!(found, expected, "{links} {name}");
        }
        assert!(is_link(false, "pack-2.pack", BYTES).is_err());
    }
}
