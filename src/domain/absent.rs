//! What system errors tell about a path.

use std::io;

/// Whether nothing exists at the path: it is missing, or one of its folders is not a folder.
pub fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
