//! A folder for what the commands of a session leave between them: their `/tmp` and their home. It goes with the session;
//! one that a killed server left goes when the next session starts.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

const PREFIX: &str = "session-";
const LOCK: &str = "lock";

#[derive(Debug)]
pub(in crate::tools::process) struct Scratch {
    folder: TempDir,
    /// Held as long as the folder is in use.
    _lock: File,
}

impl Scratch {
    /// A new one in `parent`.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(parent: Option<&Path>) -> io::Result<Self> {
        let parent = match parent {
            Some(parent) => parent.to_owned(),
            None => std::env::temp_dir().join("tandem"),
        };
        let mut folders = fs::DirBuilder::new();
        folders.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut folders, 0o700);
        folders.create(&parent)?;
        // Not through a link that somebody else made.
        let parent = parent.canonicalize()?;
        sweep(&parent);
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&parent)?;
        let lock = File::create(folder.path().join(LOCK))?;
        lock.lock()?;
        for part in ["tmp", "home"] {
            folders.create(folder.path().join(part))?;
        }
        Ok(Self { folder, _lock: lock })
    }

    /// The folder itself, which no command sees.
    pub fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    pub fn temporary(&self) -> PathBuf {
        self.folder.path().join("tmp")
    }

    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Shows `places` of the `real` home in this one, as links.
    #[cfg(unix)]
    pub fn link(&self, real: &Path, places: &BTreeSet<PathBuf>) -> io::Result<()> {
        for place in places {
            let link = self.home().join(place);
            if let Some(parent) = link.parent() {
                fs::create_dir_all(parent)?;
            }
            match std::os::unix::fs::symlink(real.join(place), link) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Removes folders that nobody uses any more.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        let in_use = File::open(entry.path().join(LOCK)).and_then(|lock| Ok(lock.try_lock()?)).is_err();
        if is_ours && !in_use {
            let _somebody_else_was_faster = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_server_left_is_swept_and_what_is_in_use_stays() {
        let parent = tempfile::tempdir().unwrap();
        let used = Scratch::new(Some(parent.path())).unwrap();
        let left = parent.path().join("session-left");
        fs::create_dir_all(left.join("home/.cargo")).unwrap();
        File::create(left.join(LOCK)).unwrap();
        let other = Scratch::new(Some(parent.path())).unwrap();
        assert!(used.home().is_dir() && other.temporary().is_dir());
        assert!(!left.exists());
        drop((used, other));
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
