//! Files on disk, only through the root's capability: bounded reads of regular files, and atomic replacements that
//! leave the old or the new file whatever happens.

mod metadata;
mod temporary;

use std::any::Any;
use std::borrow::Cow;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::sync::Arc;

use cap_std::fs::{Dir, File, FileType, Metadata};
use temporary::Temporary;
use temporary::retried;
pub(super) use temporary::sweep;

use super::content;
use super::error::FileError;
use super::mode;
use super::native::openable;
use super::path::{WorkspacePath, open_here};
use crate::domain::Stored;

/// The largest file read as one text, in bytes: an edit holds about four copies.
pub(super) const LIMIT: u64 = 32 * 1024 * 1024;

/// How much of two files is compared at once, in bytes.
const PIECE: u64 = 64 << 10;

/// The most that is scanned for a range of lines, in bytes.
const LIMIT_IN_PARTS: u64 = 1024 * 1024 * 1024;

impl WorkspacePath {
    /// The bytes of the file on disk, for files that are not text.
    ///
    /// # Errors
    /// The file does not exist, is too large, or cannot be read.
    pub async fn bytes(&self) -> Result<Vec<u8>, FileError> {
        on(self, read_now).await
    }

    /// Lines of a file on disk that is too large to read as one text: from `offset` (1-based), at most `limit` lines
    /// and `bytes` bytes, and whether there are more. Invalid UTF-8 is replaced.
    ///
    /// # Errors
    /// The file is too large even for that, is not text, or cannot be read.
    pub async fn lines(
        &self,
        (offset, limit): (usize, usize),
        bytes: u64,
    ) -> Result<(String, bool), FileError> {
        on(self, move |path| {
            let (file, size) = sized(path, LIMIT_IN_PARTS)?;
            let found = lines(BufReader::new(file), offset, limit, bytes);
            let (text, more) = found.map_err(|error| read_error(path, &error))?;
            if text.contains('\0') {
                Err(FileError::Binary(path.display(), size))
            } else {
                Ok((text, more))
            }
        })
        .await
    }
}

/// Does `work` with a file on a blocking thread.
async fn on<T: Send + 'static>(
    path: &WorkspacePath,
    work: impl FnOnce(&WorkspacePath) -> T + Send + 'static,
) -> T {
    let path = path.clone();
    blocking(move || work(&path)).await
}

/// The text of a regular file, and how it is stored.
pub(crate) async fn text(path: &WorkspacePath) -> Result<(String, Stored), FileError> {
    on(path, |path| {
        let bytes = read_now(path)?;
        let size = bytes.len() as u64;
        content::decode(bytes).ok_or_else(|| FileError::Binary(path.display(), size))
    })
    .await
}

/// [`text`] of a file that may not exist.
pub(super) async fn existing_text(
    path: &WorkspacePath,
) -> Result<Option<(String, Stored)>, FileError> {
    match text(path).await {
        Err(FileError::NotFound(_)) => Ok(None),
        found => found.map(Some),
    }
}

/// A text and how it is stored.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    pub text: Arc<str>,
    /// Without permission bits it has those of the file it replaces, or the usual ones.
    pub stored: Stored,
}

/// Replaces a file's content if it still has the `old` one (`None`: does not exist). Returns `false` if it has not;
/// nothing is changed then.
pub(crate) async fn replace(
    path: &WorkspacePath,
    old: Option<Content>,
    new: Content,
) -> Result<bool, FileError> {
    on(path, move |path| {
        let old = old.as_ref().map(|old| bytes(path, old)).transpose()?;
        let (mode, new) = (new.stored.mode, bytes(path, &new)?);
        replace_now(path, old.as_deref(), &new, mode)
            .map_err(|error| io_error("write", path, &error))
    })
    .await
}

/// Writes all of a content where the file has its text in another encoding, lacks its end, or is gone. Returns `false` if
/// the file has something else, or lacks only `blanks`, if that may be; nothing is changed then.
pub(crate) async fn complete(
    path: &WorkspacePath,
    new: Content,
    blanks: bool,
) -> Result<bool, FileError> {
    on(path, move |path| {
        let found = match read_now(path) {
            Err(FileError::NotFound(_)) => None,
            found => Some(found?),
        };
        let (begun, whole) = (found.as_deref().unwrap_or_default(), bytes(path, &new)?);
        let mode = new.stored.mode;
        let plain = || new.text.as_bytes().strip_prefix(begun);
        let end = whole.strip_prefix(begun).or_else(plain);
        let is_cut = end.is_some_and(|end| !(blanks && end.trim_ascii().is_empty()));
        let has_text = || content::decode(begun.to_vec()).is_some_and(|it| *it.0 == *new.text);
        if !is_cut && !has_text() {
            return Ok(false);
        }
        let is_done = mode.is_none() && found.as_deref() == Some(&*whole);
        let done = is_done
            || replace_now(path, found.as_deref(), &whole, mode)
                .map_err(|error| io_error("write", path, &error))?;
        Ok(done)
    })
    .await
}

/// Removes a file if it still has the `old` content. Returns its permission bits; `None`: it has another content, and
/// nothing was changed.
pub(crate) async fn remove(path: &WorkspacePath, old: Content) -> Result<Option<u32>, FileError> {
    on(path, move |path| {
        let old = bytes(path, &old)?;
        remove_now(path, &old).map_err(|error| io_error("remove", path, &error))
    })
    .await
}

/// Whether a text can be stored in its encoding.
pub(crate) fn is_encodable(path: &WorkspacePath, content: &Content) -> Result<(), FileError> {
    bytes(path, content).map(drop)
}

fn bytes<'a>(path: &WorkspacePath, content: &'a Content) -> Result<Cow<'a, [u8]>, FileError> {
    let Content { text, stored } = content;
    let missing = |character| FileError::Unencodable(path.display(), stored.shown(text), character);
    stored.encode(text).map_err(missing)
}

/// Runs `work` on a blocking thread.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let done = boxed(Box::new(move || Box::new(work()))).await;
    *done.downcast().expect("the result is the work's")
}

/// What the runtime sees is of one type: the code that runs a task is copied for each type.
async fn boxed(work: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>) -> Box<dyn Any + Send> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

pub(crate) fn read_now(path: &WorkspacePath) -> Result<Vec<u8>, FileError> {
    let (file, size) = sized(path, LIMIT)?;
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    file.take(LIMIT + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| read_error(path, &error))?;
    if bytes.len() as u64 > LIMIT {
        return Err(FileError::TooLarge {
            path: path.display(),
            size: bytes.len() as u64,
            limit: LIMIT,
        });
    }
    Ok(bytes)
}

/// Opens a regular file of at most `limit` bytes; also returns its size.
fn sized(path: &WorkspacePath, limit: u64) -> Result<(File, u64), FileError> {
    let file = open(path)?;
    let size = file
        .metadata()
        .map_err(|error| read_error(path, &error))?
        .len();
    if size > limit {
        Err(FileError::TooLarge {
            path: path.display(),
            size,
            limit,
        })
    } else {
        Ok((file, size))
    }
}

/// Opens a regular file for reading.
pub(crate) fn open(path: &WorkspacePath) -> Result<File, FileError> {
    let failed = |error: io::Error| read_error(path, &error);
    let (dir, name) = path.parent().map_err(failed)?;
    // Checked before opening, because opening a device may have effects, and again afterwards.
    refuse_special(path, &dir.symlink_metadata(name).map_err(failed)?)?;
    let file = open_here(&dir, name).map_err(failed)?;
    refuse_special(path, &file.metadata().map_err(failed)?)?;
    Ok(file)
}

/// The lines of `file` from `offset` (1-based), at most `limit` lines and `bytes` bytes, and whether there are more.
///
/// # Errors
/// The file cannot be read.
pub fn lines(
    mut file: impl BufRead,
    offset: usize,
    limit: usize,
    bytes: u64,
) -> io::Result<(String, bool)> {
    for _ in 1..offset {
        if file.skip_until(b'\n')? == 0 {
            return Ok((String::new(), false));
        }
    }
    let mut text = Vec::new();
    for _ in 0..limit {
        let room = bytes.saturating_sub(text.len() as u64);
        if room == 0 || file.by_ref().take(room).read_until(b'\n', &mut text)? == 0 {
            break;
        }
    }
    let more = !filled(&mut file)?.is_empty();
    // What the limit has cut is on the next page, unless it is all of this one.
    if let Some(end) = memchr::memrchr(b'\n', &text).filter(|_| more) {
        text.truncate(end + 1);
    }
    Ok((String::from_utf8_lossy(&text).into_owned(), more))
}

/// The next bytes to read; empty at the end. Interrupted reads are retried.
fn filled(file: &mut impl BufRead) -> io::Result<&[u8]> {
    while let Err(error) = file.fill_buf() {
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    file.fill_buf()
}

fn refuse_special(path: &WorkspacePath, found: &Metadata) -> Result<(), FileError> {
    match special_kind(found.file_type()) {
        Some(kind) => Err(FileError::Special(path.display(), kind)),
        None => Ok(()),
    }
}

/// The kind of a file that is not a regular one.
fn special_kind(kind: FileType) -> Option<&'static str> {
    use cap_fs_ext::FileTypeExt;
    if kind.is_file() {
        return None;
    }
    Some(match kind {
        kind if kind.is_dir() => "a directory",
        kind if kind.is_symlink() => "replaced by a symbolic link while it was being opened",
        kind if kind.is_fifo() => "a named pipe",
        kind if kind.is_socket() => "a socket",
        kind if kind.is_char_device() || kind.is_block_device() => "a device",
        _ => "something",
    })
}

fn read_error(path: &WorkspacePath, error: &io::Error) -> FileError {
    match error.kind() {
        io::ErrorKind::NotFound => FileError::NotFound(path.display()),
        _ => io_error("read", path, error),
    }
}

fn io_error(verb: &'static str, path: &WorkspacePath, error: &io::Error) -> FileError {
    let reason = match error.kind() {
        io::ErrorKind::IsADirectory => return FileError::Special(path.display(), "a directory"),
        io::ErrorKind::PermissionDenied => {
            "permission denied; only the user can grant it".to_owned()
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            "the file system is read-only; only the user can change that".to_owned()
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "no space left on device; ask the user to free some".to_owned()
        }
        io::ErrorKind::NotADirectory => "part of its path is not a directory".to_owned(),
        _ => error.to_string(),
    };
    FileError::Io {
        verb,
        path: path.display(),
        reason,
    }
}

/// Replaces a file's content; see [`replace`].
pub(crate) fn replace_now(
    path: &WorkspacePath,
    expected: Option<&[u8]>,
    bytes: &[u8],
    mode: Option<u32>,
) -> io::Result<bool> {
    let (dir, name) = path.make_parent()?;
    let old = match dir.symlink_metadata(name) {
        Ok(found) => Some(found),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if let Some(old) = &old {
        refuse_unwritable(old)?;
    }
    sweep(&dir);
    let temporary = Temporary::create(&dir)?;
    if old.is_some() {
        metadata::copy(&open_here(&dir, name)?, temporary.file())?;
    }
    if let Some(mode) = mode {
        metadata::set_mode(temporary.file(), mode)?;
    }
    temporary.file().write_all(bytes)?;
    temporary.file().sync_all()?;
    // The last check before the rename: a person may have saved the file while the bytes were being written.
    if !holds(&dir, name, expected)? {
        return Ok(false);
    }
    temporary.rename(name)?;
    sync_folder(&dir)?;
    Ok(true)
}

/// Writes a file that only its owner may read.
pub(crate) fn write_private(dir: &Dir, name: &OsStr, bytes: &[u8]) -> io::Result<()> {
    private(dir, bytes)?.rename(name)
}

/// [`write_private`], synced to disk.
pub(crate) fn write_synced(dir: &Dir, name: &OsStr, bytes: &[u8]) -> io::Result<()> {
    let temporary = private(dir, bytes)?;
    temporary.file().sync_all()?;
    temporary.rename(name)?;
    sync_folder(dir)
}

fn private<'a>(dir: &'a Dir, bytes: &[u8]) -> io::Result<Temporary<'a>> {
    let temporary = Temporary::create(dir)?;
    metadata::set_mode(temporary.file(), 0o600)?;
    temporary.file().write_all(bytes)?;
    Ok(temporary)
}

/// Writes what is read from elsewhere to a file with these permission bits, atomically. It keeps the owner and the
/// attributes of the file it replaces, as far as the system permits.
pub(crate) fn copy_with_mode(
    dir: &Dir,
    path: &Path,
    from: &mut impl Read,
    mode: u32,
) -> io::Result<()> {
    let (folder, name) = place(dir, path)?;
    let temporary = Temporary::create(&folder)?;
    if let Ok(old) = open_here(&folder, name) {
        metadata::copy(&old, temporary.file())?;
    }
    // Nobody may read it meanwhile who may not read the result.
    metadata::set_mode(temporary.file(), mode & 0o600)?;
    io::copy(from, &mut temporary.file())?;
    metadata::set_mode(temporary.file(), mode)?;
    temporary.rename(name)
}

/// Makes a symbolic link atomically, in the place of an older file or link if one is there.
#[cfg(unix)]
pub(crate) fn link(dir: &Dir, path: &Path, target: &Path) -> io::Result<()> {
    let (folder, name) = place(dir, path)?;
    Temporary::link(&folder, target)?.rename(name)
}

/// The folder that `path` is in, and its name there.
fn place<'a>(dir: &Dir, path: &'a Path) -> io::Result<(Dir, &'a OsStr)> {
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let folder = dir.open_dir(openable(path.parent().unwrap_or(path)))?;
    Ok((folder, name))
}

fn remove_now(path: &WorkspacePath, expected: &[u8]) -> io::Result<Option<u32>> {
    let (dir, name) = path.parent()?;
    let old = dir.symlink_metadata(name)?;
    refuse_unwritable(&old)?;
    if !holds(&dir, name, Some(expected))? {
        return Ok(None);
    }
    retried(|| dir.remove_file(name))?;
    sync_folder(&dir)?;
    Ok(Some(mode::of(&old)))
}

fn refuse_unwritable(old: &Metadata) -> io::Result<()> {
    if !old.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if old.permissions().readonly() {
        return Err(io::Error::other("it is read-only"));
    }
    Ok(())
}

/// Whether a file has this content (`None`: does not exist).
fn holds(dir: &Dir, name: &OsStr, content: Option<&[u8]>) -> io::Result<bool> {
    match (open_here(dir, name), content) {
        (Ok(mut file), Some(mut content)) => is_same(&mut file, &mut content),
        (Err(error), _) if error.kind() != io::ErrorKind::NotFound => Err(error),
        (file, content) => Ok(file.is_ok() == content.is_some()),
    }
}

/// Whether both have the same bytes. They are read in pieces, so that a large file is not in memory twice.
pub(crate) fn is_same(one: &mut impl Read, other: &mut impl Read) -> io::Result<bool> {
    let (mut here, mut there) = (Vec::new(), Vec::new());
    loop {
        one.by_ref().take(PIECE).read_to_end(&mut here)?;
        other.by_ref().take(PIECE).read_to_end(&mut there)?;
        if here != there || here.is_empty() {
            return Ok(here == there);
        }
        here.clear();
        there.clear();
    }
}

#[cfg(unix)]
fn sync_folder(dir: &Dir) -> io::Result<()> {
    match rustix::fs::fsync(dir.open(".")?) {
        // Some file systems cannot sync a folder.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::OPNOTSUPP) | Ok(()) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(unix))]
fn sync_folder(_: &Dir) -> io::Result<()> {
    Ok(())
}
