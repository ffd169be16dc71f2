//! tandem's own folders, such as those of chat files and previous versions: readable only by their owner, and with
//! every file either complete or absent.

pub mod log;

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use cap_std::fs::{Dir, DirEntry};

use super::Root;
use super::disk::{self, blocking};
use log::{Lines, Log, Opened};

/// The largest file that is read at once.
const LARGEST: u64 = 1 << 20;
/// An empty file older than this was left behind.
const EMPTY: Duration = Duration::from_mins(1);
/// How much is read at once to find a short line.
const SECTOR: usize = 512;

/// A folder of tandem's own. Cheap to clone.
#[derive(Debug, Clone)]
pub struct StateFolder(std::sync::Arc<Root>);

/// What can be undone stays stored this long.
pub const AGE: Duration = Duration::from_hours(30 * 24);
/// The oldest of it goes sooner where it has more bytes than this, if it is older than a day.
pub const BYTES: u64 = 4 << 30;
/// What is not older than this stays, however much it is: somebody is working with it.
const FRESH: Duration = Duration::from_hours(24);

/// A file of the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// When it was last written.
    pub written: SystemTime,
}

/// The name under which bytes are stored: their SHA-256 in hexadecimal.
pub fn address(bytes: &[u8]) -> String {
    let mut address = String::with_capacity(64);
    for byte in ring::digest::digest(&ring::digest::SHA256, bytes).as_ref() {
        write!(address, "{byte:02x}").expect("writing to a string cannot fail");
    }
    address
}

/// Makes a folder that only its owner may read, and those above it.
pub(crate) fn create_private(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Waits until no other process holds the lock at `path`; this one holds it until the file is dropped.
///
/// # Errors
/// It cannot be made, or the file system has no locks.
pub async fn lock_file(path: PathBuf) -> io::Result<File> {
    blocking(move || {
        create_private(path.parent().unwrap_or(&path))?;
        let mut options = File::options();
        options.create(true).truncate(false).write(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path)?;
        file.lock()?;
        Ok(file)
    })
    .await
}

/// Adds the folder to an error, because the person may have configured it.
pub(crate) fn named(folder: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", folder.display()))
}

impl StateFolder {
    /// Opens the folder `path`, creating it if necessary.
    ///
    /// # Errors
    /// It cannot be created or opened.
    pub async fn open(path: PathBuf) -> io::Result<Self> {
        let folder = path.clone();
        blocking(move || create_private(&folder).map_err(|error| named(&folder, &error))).await?;
        Self::existing(path).await
    }

    /// Opens the existing folder `path`.
    ///
    /// # Errors
    /// It does not exist or cannot be opened.
    pub async fn existing(path: PathBuf) -> io::Result<Self> {
        blocking(move || {
            Root::open(&path)
                .map(|root| Self(std::sync::Arc::new(root)))
                .map_err(|error| named(&path, &error))
        })
        .await
    }

    /// Does something with the file `name` on a thread that may block.
    async fn on<T: Send + 'static>(
        &self,
        name: &str,
        act: impl FnOnce(&Root, &str) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let (root, name) = (self.0.clone(), name.to_owned());
        blocking(move || act(&root, &name)).await
    }

    /// Writes the file `name`, synced to disk.
    ///
    /// # Errors
    /// The system refuses; the previous content is still there then.
    pub async fn write(&self, name: &str, bytes: Vec<u8>) -> io::Result<()> {
        self.on(name, move |root, name| {
            disk::write_synced(root.dir(), name.as_ref(), &bytes)
        })
        .await
    }

    /// The first `limit` bytes of the file `name`, as text.
    ///
    /// # Errors
    /// It does not exist or cannot be read.
    pub async fn beginning(&self, name: &str, limit: u64) -> io::Result<String> {
        self.on(name, move |root, name| {
            let mut bytes = Vec::new();
            root.open_file(name.as_ref())?
                .take(limit)
                .read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        })
        .await
    }

    /// The content of the file `name`; `None` if it does not exist.
    ///
    /// # Errors
    /// It cannot be read, is not a regular file, or is larger than 1 MiB.
    pub async fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        self.on(name, |root, name| {
            let file = match root.open_file(name.as_ref()) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
            };
            let mut bytes = Vec::new();
            file.take(LARGEST + 1).read_to_end(&mut bytes)?;
            if bytes.len() as u64 > LARGEST {
                return Err(io::Error::other("larger than 1 MiB"));
            }
            Ok(Some(bytes))
        })
        .await
    }

    /// The names of its files, unordered.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub async fn names(&self) -> io::Result<Vec<String>> {
        let root = self.0.clone();
        let name = |entry: DirEntry| entry.file_name().into_string().ok();
        blocking(move || Ok(root.dir().entries()?.flatten().filter_map(name).collect())).await
    }

    /// Calls `pick` for its files with the first line of each, most recently written first, until `count` results are
    /// found, starting after the file `after` (no results if that is gone). Opens no more files than necessary.
    ///
    /// # Errors
    /// The folder cannot be read. Unreadable files are skipped.
    pub async fn pick<T: Send + 'static>(
        &self,
        after: Option<String>,
        count: usize,
        mut pick: impl FnMut(&Found, &[u8]) -> Option<T> + Send + 'static,
    ) -> io::Result<Vec<T>> {
        let root = self.0.clone();
        blocking(move || {
            let mut files = files(root.dir())?;
            files
                .retain(|file| !is_left_empty(file) || root.dir().remove_file(&file.name).is_err());
            files.sort_unstable_by(|a, b| {
                b.written.cmp(&a.written).then_with(|| b.name.cmp(&a.name))
            });
            let mut files = files.iter();
            if let Some(after) = after {
                let _skipped = files.by_ref().find(|file| file.name == after);
            }
            let picked = files.filter_map(|file| pick(file, &first_line(&root, &file.name).ok()?));
            Ok(picked.take(count).collect())
        })
        .await
    }

    /// Removes the file `name`.
    ///
    /// # Errors
    /// It does not exist or the system refuses.
    pub async fn remove(&self, name: &str) -> io::Result<()> {
        self.on(name, |root, name| root.dir().remove_file(name))
            .await
    }

    /// Creates the log `name`.
    ///
    /// # Errors
    /// It already exists or cannot be created.
    pub async fn create_log(&self, name: &str) -> io::Result<Log> {
        self.on(name, |root, name| log::create(root.dir(), name))
            .await
    }

    /// Opens the log `name` to append to it, once `read` has had its lines.
    ///
    /// # Errors
    /// It does not exist or cannot be read.
    pub async fn open_log<T: Send + 'static>(
        &self,
        name: &str,
        read: impl FnOnce(&mut Lines<'_>) -> T + Send + 'static,
    ) -> io::Result<Opened<T>> {
        self.on(name, |root, name| log::open(root.dir(), name, read))
            .await
    }

    /// What `read` makes of the lines of the log `name`, whoever has it open.
    ///
    /// # Errors
    /// It does not exist or cannot be read.
    pub async fn read_log<T: Send + 'static>(
        &self,
        name: &str,
        read: impl FnOnce(&mut Lines<'_>) -> T + Send + 'static,
    ) -> io::Result<T> {
        self.on(name, |root, name| {
            log::read(&root.open_file(name.as_ref())?, read).map(|(read, ..)| read)
        })
        .await
    }
}

/// Removes files that are too old or too large in total, and what killed processes left. Blocks.
///
/// # Errors
/// The folder cannot be read. Files that cannot be removed stay.
pub(crate) fn prune(dir: &Dir) -> io::Result<()> {
    disk::sweep(dir);
    for file in outdated(files(dir)?, SystemTime::now()) {
        let _stays = dir.remove_file(file.name);
    }
    Ok(())
}

/// Whether the process that created the file was killed before it wrote to it.
fn is_left_empty(file: &Found) -> bool {
    file.bytes == 0 && file.written.elapsed().is_ok_and(|age| age > EMPTY)
}

fn first_line(root: &Root, name: &str) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let file = root.open_file(name.as_ref())?.take(LARGEST);
    BufReader::with_capacity(SECTOR, file).read_until(b'\n', &mut line)?;
    Ok(line)
}

fn files(dir: &Dir) -> io::Result<Vec<Found>> {
    let mut files = Vec::new();
    for entry in dir.entries()?.flatten() {
        let (Ok(name), Ok(found)) = (entry.file_name().into_string(), entry.metadata()) else {
            continue;
        };
        if let (true, Ok(written)) = (found.is_file(), found.modified()) {
            files.push(Found {
                name,
                bytes: found.len(),
                written: written.into_std(),
            });
        }
    }
    Ok(files)
}

/// The files to remove.
fn outdated(mut files: Vec<Found>, now: SystemTime) -> Vec<Found> {
    files.sort_by(|a, b| b.written.cmp(&a.written).then_with(|| a.name.cmp(&b.name)));
    let mut bytes = 0_u64;
    files.retain(|file| {
        bytes = bytes.saturating_add(file.bytes);
        // A file with a time in the future is not old.
        let age = now.duration_since(file.written).unwrap_or_default();
        age > AGE || (bytes > BYTES && age > FRESH)
    });
    files
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn old_entries_are_pruned_oldest_first() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_hours(1000);
        let file = |name: &str, quarters, hours: u64| Found {
            name: name.to_owned(),
            bytes: quarters * BYTES / 4,
            written: now - Duration::from_hours(hours),
        };
        let check = |files: Vec<Found>, expected: &[&str]| {
            let gone: Vec<_> = outdated(files, now)
                .into_iter()
                .map(|file| file.name)
                .collect();
            assert_eq!(gone, expected);
        };
        check(vec![file("a", 2, 0), file("b", 2, 720)], &[]);
        check(vec![file("a", 1, 0), file("b", 1, 721)], &["b"]);
        let last = |hours| vec![file("a", 2, hours), file("b", 2, 20), file("c", 2, 1)];
        check(last(25), &["a"]);
        check(last(24), &[]);
    }

    #[tokio::test]
    async fn the_requested_number_is_picked_in_order() {
        let home = tempfile::tempdir().unwrap();
        let folder = StateFolder::open(home.path().join("state")).await.unwrap();
        for number in 0..30_u64 {
            let name = format!("{number:04}");
            folder
                .write(&name, format!("{name} first\nand second").into_bytes())
                .await
                .unwrap();
            let file = File::options()
                .write(true)
                .open(home.path().join("state").join(name))
                .unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(number))
                .unwrap();
        }
        let (left, new) = (
            home.path().join("state/left"),
            home.path().join("state/new"),
        );
        File::create(&left)
            .unwrap()
            .set_modified(SystemTime::UNIX_EPOCH)
            .unwrap();
        File::create(&new).unwrap();
        let check = async |after: Option<&str>, count: usize, step: u64, expected: Vec<u64>| {
            let pick = move |_: &Found, line: &[u8]| {
                let number: u64 = std::str::from_utf8(line)
                    .unwrap()
                    .strip_suffix(" first\n")?
                    .parse()
                    .ok()?;
                number.is_multiple_of(step).then_some(number)
            };
            assert_eq!(
                folder
                    .pick(after.map(str::to_owned), count, pick)
                    .await
                    .unwrap(),
                expected
            );
        };
        check(None, usize::MAX, 1, (0..30).rev().collect()).await;
        check(None, 3, 1, vec![29, 28, 27]).await;
        check(None, 3, 10, vec![20, 10, 0]).await;
        check(Some("0020"), 9, 5, vec![15, 10, 5, 0]).await;
        check(Some("gone"), 9, 1, Vec::new()).await;
        assert_eq!((left.exists(), new.exists()), (false, true));
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_pipe_is_no_log() {
        let home = tempfile::tempdir().unwrap();
        let pipe = home.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        let folder = StateFolder::existing(home.path().to_owned()).await.unwrap();
        let opened = folder.open_log("pipe", |lines| lines.count()).await;
        assert_eq!(opened.unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn state_files_are_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("state/checkpoints");
        let folder = StateFolder::open(path.clone()).await.unwrap();
        folder.write("one", b"text".to_vec()).await.unwrap();
        folder.write("one", b"other".to_vec()).await.unwrap();
        let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o700);
        assert_eq!(mode(&path.join("one")), 0o600);
        assert_eq!(
            std::fs::read_dir(&path).unwrap().count(),
            1,
            "no temporary file stays"
        );
    }
}
