//! Backups of what git keeps in a repository besides its state: objects, which never change, and logs and settings.
//!
//! They are in the state folder, where no command of the sandbox can reach them and no other names them. An object is
//! stored once, when a look first finds it; what a look no longer finds is kept for as long as a turn can be undone.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, SystemTime};

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use crate::workspace::disk;
use crate::workspace::state::{Retention, address, prune};

/// What an image's name begins with that is in a backup.
const PREFIX: &str = "git:";
/// The folder of what is no longer in the repository.
const LOST: &str = "lost";
/// The file whose time says when a backup was last used.
const USED: &str = "used";
/// What is kept of what is no longer in the repository.
const RETENTION: Retention = Retention {
    age: Duration::from_hours(30 * 24),
    bytes: 4 << 30,
};
/// A larger object is a hard link where the file system has them: it costs nothing, and survives all but being
/// overwritten in place, which the sandbox prevents.
pub(crate) const COPIED: u64 = 64 << 20;

/// The backup of one repository.
#[derive(Debug)]
pub(crate) struct Backup {
    id: String,
    dir: Dir,
    lost: Dir,
}

impl Backup {
    /// The backup, in the folder of all, of the repository with these `objects`.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn open(backups: &Path, objects: &Path) -> io::Result<Self> {
        let id = address(objects.as_os_str().as_encoded_bytes());
        let folder = backups.join(&id);
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder.join(LOST))?;
        File::create(folder.join(USED))?.set_modified(SystemTime::now())?;
        remove_unused(backups);
        let dir = Dir::open_ambient_dir(&folder, ambient_authority())?;
        let lost = dir.open_dir(LOST)?;
        prune(&lost, RETENTION)?;
        Ok(Self { id, dir, lost })
    }

    /// The name of an image in this backup.
    pub(crate) fn image(&self, name: &str) -> String {
        format!("{PREFIX}{}/{name}", self.id)
    }

    /// Stores the object `file` in `from`, if it is not there yet under this name.
    pub(crate) fn add(&self, from: &Dir, file: &OsStr, name: &str, size: u64) -> io::Result<()> {
        let has = |dir: &Dir| {
            dir.symlink_metadata(name)
                .is_ok_and(|found| found.len() == size)
        };
        if has(&self.dir) {
            return Ok(());
        }
        if has(&self.lost) {
            return self.lost.rename(name, &self.dir, name);
        }
        if size > COPIED && from.hard_link(file, &self.dir, name).is_ok() {
            return Ok(());
        }
        disk::copy_with_mode(&self.dir, Path::new(name), &mut from.open(file)?, 0o400)
    }

    /// Stores bytes; returns the name of their image.
    pub(crate) fn add_bytes(&self, bytes: &[u8]) -> io::Result<String> {
        let name = format!("file-{}", address(bytes));
        let size = bytes.len() as u64;
        let has = |dir: &Dir| {
            dir.symlink_metadata(&name)
                .is_ok_and(|found| found.len() == size)
        };
        if !has(&self.dir) && !has(&self.lost) {
            disk::write_private(&self.dir, name.as_ref(), bytes)?;
        }
        Ok(self.image(&name))
    }

    /// The size of what is stored under this name.
    pub(crate) fn size(&self, name: &str) -> Option<u64> {
        [&self.dir, &self.lost]
            .into_iter()
            .find_map(|dir| Some(dir.symlink_metadata(name).ok()?.len()))
    }

    /// Keeps elsewhere what the repository no longer has.
    pub(crate) fn lose(&self, name: &str) {
        let moved = self.dir.rename(name, &self.lost, name);
        let marked = moved.and_then(|()| {
            let file = self.lost.open(name)?.into_std();
            file.set_modified(SystemTime::now())
        });
        if let Err(error) = marked {
            tracing::debug!("{name} stays in the backup: {error}");
        }
    }

    /// Whether the file `other` has the bytes that are stored under this name.
    pub(crate) fn has_same(&self, name: &str, other: &mut impl Read) -> bool {
        let own = self.dir.open(name).or_else(|_lost| self.lost.open(name));
        own.is_ok_and(|mut own| is_same(&mut own, other))
    }

    /// What is stored: everything the repository had at the last look, and what it lost `since`.
    pub(crate) fn names(&self, since: SystemTime) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
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

/// Removes the backups of repositories that nobody has worked in for long.
fn remove_unused(backups: &Path) {
    for entry in std::fs::read_dir(backups).into_iter().flatten().flatten() {
        let used = std::fs::metadata(entry.path().join(USED)).and_then(|found| found.modified());
        if used.is_ok_and(|used| used.elapsed().is_ok_and(|age| age > RETENTION.age)) {
            let _somebody_else_was_faster = std::fs::remove_dir_all(entry.path());
        }
    }
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
pub(crate) fn open(backups: &Path, image: &str, size: u64) -> io::Result<File> {
    let (id, name) = image
        .strip_prefix(PREFIX)
        .and_then(|image| image.split_once('/'))
        .ok_or(io::ErrorKind::InvalidInput)?;
    let dir = Dir::open_ambient_dir(backups, ambient_authority())?.open_dir(id)?;
    let file = dir
        .open(name)
        .or_else(|_lost| dir.open_dir(LOST)?.open(name))?;
    if file.metadata()?.len() == size {
        Ok(file.into_std())
    } else {
        Err(io::Error::other("its stored copy is damaged"))
    }
}

/// Whether both have the same bytes.
pub(crate) fn is_same(one: &mut impl Read, other: &mut impl Read) -> bool {
    let (mut here, mut there) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        let (Ok(read), Ok(other_read)) = (fill(one, &mut here), fill(other, &mut there)) else {
            return false;
        };
        if here.get(..read) != there.get(..other_read) {
            return false;
        }
        if read == 0 {
            return true;
        }
    }
}

/// Reads until the buffer is full or nothing is left.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut read = 0;
    while let Some(rest) = buffer.get_mut(read..).filter(|rest| !rest.is_empty()) {
        match from.read(rest)? {
            0 => break,
            more => read += more,
        }
    }
    Ok(read)
}
