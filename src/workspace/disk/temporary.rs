//! The file that new content is written to before it replaces the old file.

use std::ffi::OsStr;
use std::io;
#[cfg(unix)]
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt as _};
use cap_std::fs::{Dir, DirEntry, File, OpenOptions};

/// Prefix and suffix of its name; between them are the process's id and a number.
const AFFIXES: (&str, &str) = (".tandem-", ".tmp");

/// The pauses between attempts at a change while another program is in the way.
const PAUSES: [Duration; 5] = [
    Duration::from_millis(10),
    Duration::from_millis(40),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
];

/// A file that is removed unless it is renamed.
pub(super) struct Temporary<'a> {
    dir: &'a Dir,
    name: String,
    file: File,
    renamed: bool,
}

impl<'a> Temporary<'a> {
    pub fn create(dir: &'a Dir) -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (begin, end) = AFFIXES;
        let options = OpenOptions::new()
            .write(true)
            .create_new(true)
            .follow(FollowSymlinks::No)
            .to_owned();
        loop {
            let name = format!(
                "{begin}{}-{}{end}",
                std::process::id(),
                COUNT.fetch_add(1, Ordering::Relaxed)
            );
            match dir.open_with(&name, &options) {
                Ok(file) => {
                    // Where files cannot be locked, nobody else's are looked at either.
                    let _locked = lock(&file);
                    return Ok(Self {
                        dir,
                        name,
                        file,
                        renamed: false,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// A symbolic link instead of the file.
    #[cfg(unix)]
    pub fn link(dir: &'a Dir, target: &Path) -> io::Result<Self> {
        let temporary = Self::create(dir)?;
        dir.remove_file(&temporary.name)?;
        dir.symlink_contents(target, &temporary.name)?;
        Ok(temporary)
    }

    pub fn file(&self) -> &File {
        &self.file
    }

    pub fn rename(mut self, name: &OsStr) -> io::Result<()> {
        retried(|| self.dir.rename(&self.name, self.dir, name))?;
        self.renamed = true;
        Ok(())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.renamed {
            // If this fails, the file is recognized by its name later; nobody can be notified here.
            let _ = self.dir.remove_file(&self.name);
        }
    }
}

/// Removes files that a killed process left in `dir`. A failure costs only disk space.
pub(in crate::workspace) fn sweep(dir: &Dir) {
    for entry in dir.entries().into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_left = name
            .to_str()
            .and_then(owner)
            .is_some_and(|process| is_left(&entry, process));
        if is_left && !is_locked(dir, &name) {
            let _ = dir.remove_file(name);
        }
    }
}

fn is_locked(dir: &Dir, name: &OsStr) -> bool {
    let options = OpenOptions::new()
        .read(true)
        .nonblock(true)
        .follow(FollowSymlinks::No)
        .to_owned();
    dir.open_with(name, &options)
        .is_ok_and(|file| lock(&file).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock))
}

#[cfg(unix)]
fn lock(file: &File) -> io::Result<()> {
    Ok(rustix::fs::flock(
        file,
        rustix::fs::FlockOperation::NonBlockingLockExclusive,
    )?)
}

#[cfg(not(unix))]
fn lock(_: &File) -> io::Result<()> {
    Ok(())
}

/// The process that made the temporary file `name`.
fn owner(name: &str) -> Option<i32> {
    let (process, _) = name
        .strip_prefix(AFFIXES.0)?
        .strip_suffix(AFFIXES.1)?
        .split_once('-')?;
    process.parse().ok()
}

#[cfg(unix)]
fn is_left(_: &DirEntry, process: i32) -> bool {
    rustix::process::Pid::from_raw(process).is_some_and(|process| {
        rustix::process::test_kill_process(process) == Err(rustix::io::Errno::SRCH)
    })
}

/// Where processes cannot be checked, the age decides: a file is needed only for a moment.
#[cfg(not(unix))]
fn is_left(entry: &DirEntry, process: i32) -> bool {
    let written = entry
        .metadata()
        .and_then(|found| found.modified())
        .map(cap_std::time::SystemTime::into_std);
    let age = written.ok().and_then(|written| written.elapsed().ok());
    process.unsigned_abs() != std::process::id()
        && age.is_some_and(|age| age > Duration::from_mins(1))
}

/// Retries work that another program may block for a moment: on Windows, a scanner or an indexer may have files open.
pub(super) fn retried(work: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    retry(work, is_in_use, if cfg!(windows) { &PAUSES } else { &[] })
}

/// Another program has the file open: `ERROR_ACCESS_DENIED`, `ERROR_SHARING_VIOLATION`, `ERROR_LOCK_VIOLATION`.
fn is_in_use(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(5 | 32 | 33))
}

fn retry(
    mut work: impl FnMut() -> io::Result<()>,
    passes: fn(&io::Error) -> bool,
    pauses: &[Duration],
) -> io::Result<()> {
    for pause in pauses {
        match work() {
            Err(error) if passes(&error) => std::thread::sleep(*pause),
            done => return done,
        }
    }
    work()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_busy_files_are_retried() {
        let check = |code: i32, tries: usize, expected: bool| {
            let mut tried = 0;
            let work = || {
                tried += 1;
                if tried < 3 {
                    Err(io::Error::from_raw_os_error(code))
                } else {
                    Ok(())
                }
            };
            assert_eq!(
                retry(work, is_in_use, &[Duration::ZERO; 4]).is_ok(),
                expected,
                "{code}"
            );
            assert_eq!(tried, tries, "{code}");
        };
        check(32, 3, true);
        check(2, 1, false);
        let mut tried = 0;
        let never = || {
            tried += 1;
            Err(io::Error::from_raw_os_error(5))
        };
        assert!(retry(never, is_in_use, &[Duration::ZERO; 4]).is_err());
        assert_eq!(tried, 5);
    }
}
