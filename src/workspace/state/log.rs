//! An append-only file of lines, locked by one process.
//!
//! What [`Log::append`] has written survives the sudden end of the process; only [`Log::sync`] makes it survive a power
//! failure.
//!
//! An incomplete line, which a killed process may leave, is cut off when the file is opened again.

use std::fs::{File, TryLockError};
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom, Write};
use std::sync::Arc;

use cap_std::fs::{Dir, OpenOptions};

use crate::workspace::disk::blocking;

/// The size of one write.
const PIECE: usize = 64 << 10;

/// An open log, with an exclusive lock.
#[derive(Debug, Clone)]
pub struct Log(Arc<File>);

/// A log that was opened.
#[derive(Debug)]
pub struct Opened {
    /// For appending.
    pub log: Log,
    /// Its complete lines.
    pub text: String,
    /// Whether an incomplete line was cut off.
    pub cut: bool,
}

/// Why a log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Another process has it open.
    #[error("another process has it open")]
    Held {
        /// What can be read nevertheless.
        text: String,
    },
    /// The system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
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
