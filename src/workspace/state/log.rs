//! A file that only grows, a line at a time, held by one process.
//!
//! What [`Log::append`] has written survives the end of the process, however sudden; only [`Log::sync`] makes it survive
//! the end of the machine. Half a line, which a killed process may leave, is cut off when the file is opened again.

use std::fs::{File, TryLockError};
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom, Write};
use std::sync::Arc;

use cap_std::fs::{Dir, OpenOptions};

use crate::workspace::disk::blocking;

/// What is written at once.
const PIECE: usize = 64 << 10;

/// An open log. Whoever holds it is the only one.
#[derive(Debug, Clone)]
pub struct Log(Arc<File>);

/// A log as it was found.
#[derive(Debug)]
pub struct Opened {
    /// To go on with.
    pub log: Log,
    /// Its whole lines.
    pub text: String,
    /// Whether half a line was cut off its end.
    pub cut: bool,
}

/// Why a log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Another process has it open.
    #[error("another process has it open")]
    Held {
        /// What can be read of it all the same.
        text: String,
    },
    /// The system would not do it.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Log {
    /// Writes the whole lines that `write` makes: in one piece, and long ones without holding them all. What could be written
    /// before a failure is taken back.
    ///
    /// # Errors
    /// When the system would not do it.
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
                // What is left in the buffer is not tried again, and half a record is not left behind.
                let _dropped = out.into_parts();
                file.set_len(before)?;
            }
            written
        })
        .await
    }

    /// Waits until all that was written is on the disk.
    ///
    /// # Errors
    /// When the system would not do it.
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

pub(super) fn open(dir: &Dir, name: &str) -> Result<Opened, LogError> {
    let mut file = dir.open_with(name, &options())?.into_std();
    let held = match file.try_lock() {
        Ok(()) => false,
        Err(TryLockError::WouldBlock) => true,
        Err(TryLockError::Error(error)) => return Err(error.into()),
    };
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let whole = memchr::memrchr(b'\n', &bytes).map_or(0, |end| end + 1);
    let cut = whole < bytes.len();
    bytes.truncate(whole);
    let text = String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    if held {
        return Err(LogError::Held { text });
    }
    if cut {
        file.set_len(whole as u64)?;
    }
    file.seek(SeekFrom::End(0))?;
    Ok(Opened { log: Log(Arc::new(file)), text, cut })
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).append(true);
    #[cfg(unix)]
    cap_std::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
