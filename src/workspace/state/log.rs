//! An append-only file of lines, locked by one process.
//!
//! What [`Log::append`] has written survives the sudden end of the process; only [`Log::sync`] makes it survive a power
//! failure.
//!
//! An incomplete line, which a killed process may leave, is cut off when the file is opened again.

use std::fs::{File, TryLockError};
use std::io::{self, BufRead as _, BufReader, BufWriter, Write};
use std::sync::Arc;
use std::time::Duration;

use cap_fs_ext::OpenOptionsSyncExt as _;
use cap_std::fs::{Dir, OpenOptions};

use crate::workspace::disk::blocking;

/// The size of one write.
const PIECE: usize = 64 << 10;
/// How often a lock is tried, and the pause after each try: a process that this one starts has all its locks, too, until it runs its
/// program.
const TRIES: usize = 5;
const PAUSE: Duration = Duration::from_millis(10);

/// An open log, with an exclusive lock.
#[derive(Debug, Clone)]
pub struct Log(Arc<File>);

/// A log that was opened.
#[derive(Debug)]
pub struct Opened<T> {
    /// For appending; `None`: another process has it open.
    pub log: Option<Log>,
    /// What was read from its lines.
    pub read: T,
    /// Whether it ended with an incomplete line.
    pub cut: bool,
}

/// The complete lines of a log, one at a time.
#[derive(Debug)]
pub struct Lines<'a> {
    file: BufReader<&'a File>,
    /// The bytes of the lines so far.
    bytes: u64,
    cut: bool,
    failed: Option<io::Error>,
}

impl Iterator for Lines<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let mut line = Vec::new();
        match self.file.read_until(b'\n', &mut line) {
            Ok(0) => return None,
            Ok(bytes) if line.pop() == Some(b'\n') => self.bytes += bytes as u64,
            Ok(_) => {
                self.cut = true;
                return None;
            }
            Err(error) => {
                self.failed = Some(error);
                return None;
            }
        }
        Some(
            String::from_utf8(line)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
        )
    }
}

impl Log {
    /// Appends the complete lines that `write` produces, in one piece, without buffering long ones in full. After a
    /// failure, the part already written is removed.
    ///
    /// # Errors
    /// The system refuses.
    pub async fn append<F>(&self, write: F) -> io::Result<()>
    where
        F: FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static,
    {
        let file = Arc::clone(&self.0);
        blocking(move || {
            let before = file.metadata()?.len();
            let mut out = BufWriter::with_capacity(PIECE, &*file);
            let written = write(&mut out).and_then(|()| out.flush());
            if written.is_err() {
                // The rest of the buffer is not retried, and an incomplete record is not left behind.
                let _dropped = out.into_parts();
                file.set_len(before)?;
            }
            written
        })
        .await
    }

    /// Waits until everything written is on disk.
    ///
    /// # Errors
    /// The system refuses.
    pub async fn sync(&self) -> io::Result<()> {
        let file = Arc::clone(&self.0);
        blocking(move || file.sync_data()).await
    }
}

pub(super) fn create(dir: &Dir, name: &str) -> io::Result<Log> {
    let file = dir.open_with(name, options().create_new(true))?.into_std();
    file.lock()?;
    Ok(Log(Arc::new(file)))
}

pub(super) fn open<T>(
    dir: &Dir,
    name: &str,
    read: impl FnOnce(&mut Lines<'_>) -> T,
) -> io::Result<Opened<T>> {
    let file = dir.open_with(name, &options())?.into_std();
    let is_held = is_held(&file)?;
    let (read, bytes, cut) = self::read(&file, read)?;
    if cut && !is_held {
        file.set_len(bytes)?;
    }
    Ok(Opened {
        log: (!is_held).then(|| Log(Arc::new(file))),
        read,
        cut,
    })
}

/// Whether another process has the file; otherwise this one has it from now on. Blocks.
fn is_held(file: &File) -> io::Result<bool> {
    for _ in 0..TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(false),
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(true)
}

/// What `read` makes of the lines of a log, their bytes, and whether an incomplete one follows.
pub(super) fn read<T>(
    file: &File,
    read: impl FnOnce(&mut Lines<'_>) -> T,
) -> io::Result<(T, u64, bool)> {
    let mut lines = Lines {
        file: BufReader::with_capacity(PIECE, file),
        bytes: 0,
        cut: false,
        failed: None,
    };
    let read = read(&mut lines);
    // Only the end says whether it is complete.
    lines.by_ref().for_each(drop);
    let Lines {
        bytes, cut, failed, ..
    } = lines;
    failed.map_or(Ok((read, bytes, cut)), Err)
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).append(true).nonblock(true);
    #[cfg(unix)]
    cap_std::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
