//! Files that are more than text: those that run or steer something when they are written, and those that hold secrets.

use std::path::Path;

/// Whether writing `path` (relative to its root) could make something run later or change an agent's rules.
#[must_use]
pub fn is_protected(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git"))
}

/// Whether `path` is likely to hold a secret.
#[must_use]
pub fn is_secret(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".env"))
}
