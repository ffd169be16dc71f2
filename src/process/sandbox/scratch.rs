//! A folder shared by the commands of a session: their `/tmp` and home directory. It is removed with the session, or by
//! the next one if the server was killed.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

#[cfg(unix)]
use cap_std::{ambient_authority, fs::Dir};
use tempfile::TempDir;

use crate::workspace::state::create_private;
use crate::workspace::written::{Texts, logged};

const PREFIX: &str = "session-";
const LOCK: &str = "lock";
const MANIFEST: &str = "manifest.json";
const GUARD: &str = "guard.json";
const RUNNING: &str = "running";
const WRITTEN: &str = "written";
const ENDED: &str = "ended";
const ALIVE: &str = "alive";
/// How often it is noted that a command runs.
pub(in crate::process) const BEAT: Duration = Duration::from_secs(1);
/// Has git append some lines to this file when it starts and when it ends. If git cannot open the file, it stays silent about that.
const GIT_TRACE: &str = "GIT_TRACE2";
const GIT_RUNS: &str = ".git-runs";
/// How long the changes of an interrupted command can be undone.
const INTERRUPTED: Duration = Duration::from_hours(7 * 24);

#[derive(Debug)]
pub(in crate::process) struct Scratch {
    /// Held as long as the folder is in use. It is closed first: Windows removes no folder with an open file in it.
    _lock: File,
    folder: TempDir,
}

impl Scratch {
    /// A new folder in `parent`.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn new(parent: Option<&Path>) -> io::Result<Self> {
        let parent = match parent {
            Some(parent) => parent.to_owned(),
            None => std::env::temp_dir().join("tandem"),
        };
        create_private(&parent)?;
        // Not through a link that somebody else created.
        let parent = parent.canonicalize()?;
        Self::sweep(&parent);
        let folder = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir_in(&parent)?;
        // It gets its name only once it is locked: otherwise a sweep could remove it.
        let nameless = folder.path().join("unlocked");
        let lock = File::create(&nameless)?;
        lock.lock()?;
        fs::rename(nameless, folder.path().join(LOCK))?;
        for part in ["tmp", "home", "unsaved"] {
            create_private(&folder.path().join(part))?;
        }
        Ok(Self {
            folder,
            _lock: lock,
        })
    }

    /// Removes the folders in `parent` that are no longer in use.
    pub fn sweep(parent: &Path) {
        for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
            let is_ours = entry
                .file_name()
                .to_str()
                .is_some_and(|name| name.starts_with(PREFIX));
            let in_use = File::open(entry.path().join(LOCK))
                .and_then(|lock| Ok(lock.try_lock()?))
                .is_err();
            if is_ours && !in_use && !is_wanted(&entry.path()) {
                let _somebody_else_was_faster = fs::remove_dir_all(entry.path());
            }
        }
    }

    /// A new folder for copies of the workspace's folders.
    pub fn copies(&self) -> io::Result<PathBuf> {
        let folder = self.folder.path().join("copies");
        fs::create_dir(&folder)?;
        Ok(folder)
    }

    /// The folder itself, which is hidden from commands.
    pub fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    pub fn temporary(&self) -> PathBuf {
        self.folder.path().join("tmp")
    }

    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// The file that records when commands run git.
    pub fn git_runs(&self) -> PathBuf {
        self.temporary().join(GIT_RUNS)
    }

    /// The variable for commands that find the folder for temporary files at `temporary`.
    pub fn git_trace(temporary: &Path) -> (&'static str, PathBuf) {
        (GIT_TRACE, temporary.join(GIT_RUNS))
    }

    /// The file for copies of the workspace's files.
    pub fn images(&self) -> PathBuf {
        self.folder.path().join("images")
    }

    /// Where the snapshot before the running command is.
    pub fn manifest(&self) -> PathBuf {
        self.folder.path().join(MANIFEST)
    }

    /// Where it is logged which files people and tools write while the command runs.
    pub fn written(&self) -> PathBuf {
        self.folder.path().join(WRITTEN)
    }

    /// Where the protected files before the running command are.
    pub fn guard(&self) -> PathBuf {
        self.folder.path().join(GUARD)
    }

    /// The file that names the session whose command runs, as long as it does.
    pub fn running(&self) -> PathBuf {
        self.folder.path().join(RUNNING)
    }

    /// The file whose modification time is when a command was last known to run.
    pub fn alive(&self) -> PathBuf {
        self.folder.path().join(ALIVE)
    }

    /// The file whose modification time is when a command ended, if tandem did not see it end.
    pub fn ended(&self) -> PathBuf {
        self.folder.path().join(ENDED)
    }

    /// The folder for unsaved texts.
    pub fn unsaved(&self) -> PathBuf {
        self.folder.path().join("unsaved")
    }

    /// Links `places` of the `real` home directory into this one. A command may have created a link or file in the way:
    /// nothing is created through that.
    #[cfg(unix)]
    pub fn link(&self, real: &Path, places: &BTreeSet<PathBuf>) -> io::Result<()> {
        let home = Dir::open_ambient_dir(self.home(), ambient_authority())?;
        for place in places {
            let made = place
                .parent()
                .map_or(Ok(()), |parent| home.create_dir_all(parent));
            let linked = made.and_then(|()| home.symlink_contents(real.join(place), place));
            if let Err(error) = linked
                && error.kind() != io::ErrorKind::AlreadyExists
            {
                tracing::debug!("{} is not in a command's home: {error}", place.display());
            }
        }
        Ok(())
    }
}

/// What a server left that was killed while a command ran.
#[derive(Debug)]
pub(in crate::process) struct Interrupted {
    folder: PathBuf,
    _lock: File,
}

impl Interrupted {
    /// What was left in `parent` of a command of `session`.
    pub fn find(parent: &Path, session: &str) -> Option<Self> {
        let folders = fs::read_dir(parent)
            .ok()?
            .flatten()
            .map(|entry| entry.path());
        folders.into_iter().find_map(|folder| {
            let is_its =
                fs::read_to_string(folder.join(RUNNING)).is_ok_and(|running| running == session);
            let lock = is_its
                .then(|| File::open(folder.join(LOCK)).ok())
                .flatten()?;
            lock.try_lock().ok()?;
            Some(Self {
                folder,
                _lock: lock,
            })
        })
    }

    pub fn images(&self) -> PathBuf {
        self.folder.join("images")
    }

    pub fn manifest(&self) -> PathBuf {
        self.folder.join(MANIFEST)
    }

    /// What people and tools wrote while the command ran.
    pub fn written(&self) -> Texts {
        let log = fs::read_to_string(self.folder.join(WRITTEN));
        logged(&log.unwrap_or_default())
    }

    pub fn guard(&self) -> PathBuf {
        self.folder.join(GUARD)
    }

    /// When the command began.
    pub fn began(&self) -> io::Result<SystemTime> {
        self.time_of(RUNNING)
    }

    /// When the command ended, at the latest: what was changed since then is not the command's. Nobody noted the end if the
    /// system crashed.
    pub fn ended(&self) -> io::Result<SystemTime> {
        self.time_of(ENDED).or_else(|_unseen| {
            let began = self.began()?;
            Ok(self.time_of(ALIVE).map_or(began, |alive| alive.max(began)) + 2 * BEAT)
        })
    }

    fn time_of(&self, name: &str) -> io::Result<SystemTime> {
        fs::metadata(self.folder.join(name))?.modified()
    }

    /// Removes it.
    pub fn remove(self) {
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            tracing::warn!("{} stays: {error}", self.folder.display());
        }
    }
}

/// Whether a session may still want to know what its interrupted command changed.
fn is_wanted(folder: &Path) -> bool {
    let began = fs::metadata(folder.join(RUNNING)).and_then(|found| found.modified());
    began.is_ok_and(|began| began.elapsed().is_ok_and(|age| age < INTERRUPTED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_are_swept_and_folders_in_use_kept() {
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

    #[cfg(unix)]
    #[test]
    fn a_redirected_home_is_not_followed() {
        let parent = tempfile::tempdir().unwrap();
        let outside = parent.path().join("outside");
        fs::create_dir(&outside).unwrap();
        let scratch = Scratch::new(Some(&parent.path().join("state"))).unwrap();
        for place in [".cargo", ".local"] {
            std::os::unix::fs::symlink(&outside, scratch.home().join(place)).unwrap();
        }
        fs::write(scratch.home().join(".bun"), "a file").unwrap();
        let places = [
            ".bun/bin",
            ".cargo/bin",
            ".local/share/uv",
            ".nvm",
            "sdk/go",
        ]
        .map(PathBuf::from);
        for _command in 0..2 {
            scratch
                .link(Path::new("/home/me"), &places.clone().into())
                .unwrap();
        }
        assert_eq!(fs::read_dir(outside).unwrap().count(), 0);
        let link = |place: &str| fs::read_link(scratch.home().join(place)).unwrap();
        assert_eq!(
            [link(".nvm"), link("sdk/go")],
            ["/home/me/.nvm", "/home/me/sdk/go"].map(PathBuf::from)
        );
    }
}
