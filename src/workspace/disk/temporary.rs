//! The file a new content is written to before it takes the old one's name.

use std::ffi::OsStr;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, File, OpenOptions};

/// What its name begins and ends with; between them are the process's id and a number.
const AFFIXES: (&str, &str) = (".tandem-", ".tmp");

/// A file that disappears unless it is renamed.
pub(super) struct Temporary<'a> {
    dir: &'a Dir,
    name: String,
    file: File,
    renamed: bool,
}

impl<'a> Temporary<'a> {
    pub(super) fn create(dir: &'a Dir) -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (begin, end) = AFFIXES;
        let name = format!("{begin}{}-{}{end}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let options = OpenOptions::new().write(true).create_new(true).follow(FollowSymlinks::No).to_owned();
        let file = dir.open_with(&name, &options)?;
        Ok(Self { dir, name, file, renamed: false })
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn rename(mut self, name: &OsStr) -> io::Result<()> {
        self.dir.rename(&self.name, self.dir, name)?;
        self.renamed = true;
        Ok(())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.renamed {
            // A failure leaves a file that is recognized by its name; there is nobody to tell.
            let _ = self.dir.remove_file(&self.name);
        }
    }
}

/// Removes what a killed process left in `dir`. A failure costs nothing but the space.
pub(in crate::workspace) fn sweep(dir: &Dir) {
    for entry in dir.entries().into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name.to_str().and_then(owner).is_some_and(is_gone) {
            let _ = dir.remove_file(name);
        }
    }
}

/// The process that made the temporary file `name`.
fn owner(name: &str) -> Option<i32> {
    let (process, _) = name.strip_prefix(AFFIXES.0)?.strip_suffix(AFFIXES.1)?.split_once('-')?;
    process.parse().ok()
}

#[cfg(unix)]
fn is_gone(process: i32) -> bool {
    rustix::process::Pid::from_raw(process)
        .is_some_and(|process| rustix::process::test_kill_process(process) == Err(rustix::io::Errno::SRCH))
}

#[cfg(not(unix))]
fn is_gone(_: i32) -> bool {
    false
}
