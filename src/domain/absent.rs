//! What errors of the system say about a path.

use std::io;

/// Whether nothing is at the path: it is not there, or a folder of it is none.
pub fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
