//! Permission bits of files and folders.

use std::io;
use std::path::Path;

use cap_std::fs::{Dir, Metadata};

/// The owner may do everything.
pub(crate) const OWNER: u32 = 0o700;
/// The owner may read it.
pub(crate) const READABLE: u32 = 0o400;

/// The permission bits.
#[cfg(unix)]
pub(crate) fn of(found: &Metadata) -> u32 {
    cap_std::fs::PermissionsExt::mode(&found.permissions()) & 0o7777
}

/// The permission bits: Windows has only one.
#[cfg(not(unix))]
pub(crate) fn of(found: &Metadata) -> u32 {
    if found.permissions().readonly() {
        0o444
    } else {
        0o644
    }
}

/// Sets the permission bits of what is at `path`, which must not be a link.
#[cfg(unix)]
pub(crate) fn set(dir: &Dir, path: &Path, mode: u32) -> io::Result<()> {
    use cap_std::fs::PermissionsExt as _;
    dir.set_permissions(path, cap_std::fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
pub(crate) fn set(_dir: &Dir, _path: &Path, _mode: u32) -> io::Result<()> {
    Ok(())
}

/// Does `work` while what is at `path` has these permission bits too.
pub(crate) fn with<T>(
    dir: &Dir,
    path: &Path,
    bits: u32,
    work: impl FnOnce() -> T,
) -> io::Result<T> {
    let before = of(&dir.symlink_metadata(path)?);
    set(dir, path, before | bits)?;
    let done = work();
    set(dir, path, before)?;
    Ok(done)
}
