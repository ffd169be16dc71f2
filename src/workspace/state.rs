//! Folders of tandem's own, such as those of chat files and of before-images: their person's alone to read, and every
//! file in them whole or not there.

pub mod log;

use std::fmt::Write as _;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use cap_fs_ext::OpenOptionsSyncExt as _;
use cap_std::fs::{DirEntry, OpenOptions};

use super::Root;
use super::disk::{self, blocking};
use log::{Log, LogError, Opened};

/// A file that is read whole is not longer than this.
const LARGEST: u64 = 1 << 20;
/// An empty file that is older was left behind.
const EMPTY: Duration = Duration::from_mins(1);
/// So much is read at once where a short line is wanted.
const SECTOR: usize = 512;

/// A folder of tandem's own. Cheap to clone.
#[derive(Debug, Clone)]
pub struct StateFolder(std::sync::Arc<Root>);

/// What is kept when a folder is pruned.
#[derive(Debug, Clone, Copy)]
pub struct Retention {
    /// Nothing older.
    pub age: Duration,
    /// No more bytes in all; the oldest files go first.
    pub bytes: u64,
}

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

/// The name under which bytes are stored: their SHA-256, in hexadecimal.
#[must_use]
pub fn address(bytes: &[u8]) -> String {
    let mut address = String::with_capacity(64);
    for byte in ring::digest::digest(&ring::digest::SHA256, bytes).as_ref() {
        write!(address, "{byte:02x}").expect("writing to a string cannot fail");
    }
    address
}

/// An error of a folder that the person may have named, with its name.
fn named(folder: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", folder.display()))
}

impl StateFolder {
    /// Opens the folder `path` and makes what of it is missing.
    ///
    /// # Errors
    /// When it cannot be made or opened.
    pub async fn open(path: PathBuf) -> io::Result<Self> {
        blocking(move || {
            let mut builder = std::fs::DirBuilder::new();
            builder.recursive(true);
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            let opened = builder.create(&path).and_then(|()| Root::open(&path));
            opened.map(|root| Self(std::sync::Arc::new(root))).map_err(|error| named(&path, &error))
        })
        .await
    }

    /// Opens the folder `path`, which is there.
    ///
    /// # Errors
    /// When it is not, or cannot be opened.
    pub async fn existing(path: PathBuf) -> io::Result<Self> {
        blocking(move || {
            Root::open(&path).map(|root| Self(std::sync::Arc::new(root))).map_err(|error| named(&path, &error))
        })
        .await
    }

    /// Writes the file `name`, so that it survives the machine.
    ///
    /// # Errors
    /// When the system would not do it. What was there before is there still.
    pub async fn write(&self, name: &str, bytes: Vec<u8>) -> io::Result<()> {
        let (root, name) = (self.0.clone(), name.to_owned());
        blocking(move || disk::write_synced(root.dir(), name.as_ref(), &bytes)).await
    }

    /// The first `limit` bytes of the file `name`, as text.
    ///
    /// # Errors
    /// When it is not there or cannot be read.
    pub async fn beginning(&self, name: &str, limit: u64) -> io::Result<String> {
        let (root, name) = (self.0.clone(), name.to_owned());
        blocking(move || {
            let mut bytes = Vec::new();
            root.open_file(name.as_ref())?.take(limit).read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        })
        .await
    }

    /// The content of the file `name`; `None` when there is none.
    ///
    /// # Errors
    /// When it cannot be read, is no regular file, or is larger than 1 MiB.
    pub async fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let (root, name) = (self.0.clone(), name.to_owned());
        blocking(move || {
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

    /// The names of its files, in no order.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub async fn names(&self) -> io::Result<Vec<String>> {
        let root = self.0.clone();
        let name = |entry: DirEntry| entry.file_name().into_string().ok();
        blocking(move || Ok(root.dir().entries()?.flatten().filter_map(name).collect())).await
    }

    /// What `pick` makes of its files and the first line of each, the last written first: `count` at most, of those
    /// behind the file `after` (none, when that is gone). No more files are opened than that takes. Empty files that a
    /// killed process left are removed.
    ///
    /// # Errors
    /// When the folder cannot be read. A file that cannot is left out.
    pub async fn pick<T: Send + 'static>(
        &self,
        after: Option<String>,
        count: usize,
        mut pick: impl FnMut(&Found, &[u8]) -> Option<T> + Send + 'static,
    ) -> io::Result<Vec<T>> {
        let root = self.0.clone();
        blocking(move || {
            let mut files = files(&root)?;
            files.retain(|file| !is_left_empty(file) || root.dir().remove_file(&file.name).is_err());
            files.sort_unstable_by(|a, b| b.written.cmp(&a.written).then_with(|| b.name.cmp(&a.name)));
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
    /// When it is not there or the system would not do it.
    pub async fn remove(&self, name: &str) -> io::Result<()> {
        let (root, name) = (self.0.clone(), name.to_owned());
        blocking(move || root.dir().remove_file(name)).await
    }

    /// Begins the log `name`.
    ///
    /// # Errors
    /// When it is there already or cannot be made.
    pub async fn create_log(&self, name: &str) -> io::Result<Log> {
        let (root, name) = (self.0.clone(), name.to_owned());
        blocking(move || log::create(root.dir(), &name)).await
    }

    /// Opens the log `name` to go on with it.
    ///
    /// # Errors
    /// When it is not there, cannot be read, or another process holds it.
    pub async fn open_log(&self, name: &str) -> Result<Opened, LogError> {
        let (root, name) = (self.0.clone(), name.to_owned());
        blocking(move || log::open(root.dir(), &name)).await
    }

    /// Removes what is too old or too much.
    ///
    /// # Errors
    /// When the folder cannot be read. A file that will not go stays.
    pub async fn prune(&self, retention: Retention) -> io::Result<()> {
        let root = self.0.clone();
        blocking(move || {
            for file in outdated(files(&root)?, SystemTime::now(), retention) {
                let _stays = root.dir().remove_file(file.name);
            }
            Ok(())
        })
        .await
    }
}

/// Whether a process made the file and did not live to write to it.
fn is_left_empty(file: &Found) -> bool {
    file.bytes == 0 && file.written.elapsed().is_ok_and(|age| age > EMPTY)
}

fn first_line(root: &Root, name: &str) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    // It was a regular file a moment ago; should it be none any more, it must not block.
    let file = root.dir().open_with(name, OpenOptions::new().read(true).nonblock(true))?.take(LARGEST);
    BufReader::with_capacity(SECTOR, file).read_until(b'\n', &mut line)?;
    Ok(line)
}

fn files(root: &Root) -> io::Result<Vec<Found>> {
    let mut files = Vec::new();
    for entry in root.dir().entries()?.flatten() {
        let (Ok(name), Ok(found)) = (entry.file_name().into_string(), entry.metadata()) else { continue };
        if let (true, Ok(written)) = (found.is_file(), found.modified()) {
            files.push(Found { name, bytes: found.len(), written: written.into_std() });
        }
    }
    Ok(files)
}

/// The files that go.
fn outdated(mut files: Vec<Found>, now: SystemTime, retention: Retention) -> Vec<Found> {
    files.sort_by(|a, b| b.written.cmp(&a.written).then_with(|| a.name.cmp(&b.name)));
    let mut bytes = 0_u64;
    files.retain(|file| {
        bytes = bytes.saturating_add(file.bytes);
        // What is written in the future is not old.
        let age = now.duration_since(file.written).unwrap_or_default();
        age > retention.age || bytes > retention.bytes
    });
    files
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn the_old_and_then_the_oldest_go() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
        let file = |name: &str, bytes, age: u64| Found {
            name: name.to_owned(),
            bytes,
            written: now - Duration::from_secs(age),
        };
        let check = |files: Vec<Found>, expected: &[&str]| {
            let retention = Retention { age: Duration::from_secs(100), bytes: 10 };
            let gone: Vec<_> = outdated(files, now, retention).into_iter().map(|file| file.name).collect();
            assert_eq!(gone, expected);
        };
        check(vec![file("a", 5, 0), file("b", 5, 100)], &[]);
        check(vec![file("a", 1, 0), file("b", 1, 101)], &["b"]);
        check(vec![file("a", 4, 3), file("b", 4, 2), file("c", 4, 1)], &["a"]);
    }

    #[tokio::test]
    async fn as_many_are_picked_as_are_wanted_in_order() {
        let home = tempfile::tempdir().unwrap();
        let folder = StateFolder::open(home.path().join("state")).await.unwrap();
        for number in 0..30_u64 {
            let name = format!("{number:04}");
            folder.write(&name, format!("{name} first\nand second").into_bytes()).await.unwrap();
            let file = File::options().write(true).open(home.path().join("state").join(name)).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(number)).unwrap();
        }
        let (left, new) = (home.path().join("state/left"), home.path().join("state/new"));
        File::create(&left).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        File::create(&new).unwrap();
        let check = async |after: Option<&str>, count: usize, step: u64, expected: Vec<u64>| {
            let pick = move |_: &Found, line: &[u8]| {
                let number: u64 = std::str::from_utf8(line).unwrap().strip_suffix(" first\n")?.parse().ok()?;
                number.is_multiple_of(step).then_some(number)
            };
            assert_eq!(folder.pick(after.map(str::to_owned), count, pick).await.unwrap(), expected);
        };
        check(None, usize::MAX, 1, (0..30).rev().collect()).await;
        check(None, 3, 1, vec![29, 28, 27]).await;
        check(None, 3, 10, vec![20, 10, 0]).await;
        check(Some("0020"), 9, 5, vec![15, 10, 5, 0]).await;
        check(Some("gone"), 9, 1, Vec::new()).await;
        assert_eq!((left.exists(), new.exists()), (false, true));
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn nobody_else_may_read_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("state/checkpoints");
        let folder = StateFolder::open(path.clone()).await.unwrap();
        folder.write("one", b"text".to_vec()).await.unwrap();
        folder.write("one", b"other".to_vec()).await.unwrap();
        let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o700);
        assert_eq!(mode(&path.join("one")), 0o600);
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 1, "no temporary file stays");
        folder.prune(Retention { age: Duration::from_mins(1), bytes: 0 }).await.unwrap();
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0);
    }
}
