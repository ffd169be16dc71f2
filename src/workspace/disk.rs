//! Files on disk, through the root's capability only: bounded reads of regular files.

use std::io::Read;

use super::error::FileError;
use super::path::WorkspacePath;

/// The most that is read as one text.
pub(super) const LIMIT: u64 = 100 * 1024 * 1024;

pub(super) async fn read(path: WorkspacePath) -> Result<Vec<u8>, FileError> {
    let name = path.display();
    blocking(move || {
        let mut bytes = Vec::new();
        path.root.open_file(&path.target)?.take(LIMIT).read_to_end(&mut bytes)?;
        Ok(bytes)
    })
    .await
    .map_err(|error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => FileError::NotFound(name),
        _ => FileError::Io { verb: "read", path: name, reason: error.to_string() },
    })
}

pub(super) async fn replace(path: WorkspacePath, text: String) -> Result<(), FileError> {
    let name = path.display();
    blocking(move || path.root.dir().write(&path.target, text))
        .await
        .map_err(|error| FileError::Io { verb: "write", path: name, reason: error.to_string() })
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.expect("file work does not panic and is not aborted")
}
