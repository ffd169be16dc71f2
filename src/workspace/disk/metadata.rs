//! What a replaced file keeps: owner, mode and extended attributes.

use std::io;

use cap_std::fs::File;

/// Copies the metadata of `from` to `to`. Only the mode must succeed: a file must not become more readable than it was.
#[cfg(unix)]
pub(super) fn copy(from: &File, to: &File) -> io::Result<()> {
    use rustix::fs::{Gid, Mode, Uid, fchmod, fchown, fstat};
    let old = fstat(from)?;
    let new = fstat(to)?;
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid) {
        // Only root may change the owner; a group one belongs to can be set. Done before the mode, because it clears
        // set-id bits.
        let (uid, gid) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
        if fchown(to, Some(uid), Some(gid)).is_err() {
            let _ = fchown(to, None, Some(gid));
        }
    }
    fchmod(to, Mode::from_raw_mode(old.st_mode))?;
    copy_attributes(from, to);
    Ok(())
}

#[cfg(not(unix))]
pub(super) fn copy(from: &File, to: &File) -> io::Result<()> {
    to.set_permissions(from.metadata()?.permissions())
}

/// Sets the permission bits.
#[cfg(unix)]
pub(super) fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    file.set_permissions(cap_std::fs::PermissionsExt::from_mode(mode))
}

/// Sets the permission bits: Windows has none.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "as on Unix")]
pub(super) fn set_mode(_: &File, _: u32) -> io::Result<()> {
    Ok(())
}

/// Some attributes belong to the system and cannot be set; the file then loses them.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn copy_attributes(from: &File, to: &File) {
    use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr};
    // The kernel's limits for a list and for a value.
    const MOST: usize = 64 * 1024;
    let mut names = Vec::with_capacity(MOST);
    if flistxattr(from, rustix::buffer::spare_capacity(&mut names)).is_err() {
        return;
    }
    for name in names
        .split(|&byte| byte == 0)
        .filter(|name| !name.is_empty())
    {
        let mut value = Vec::with_capacity(MOST);
        if fgetxattr(from, name, rustix::buffer::spare_capacity(&mut value)).is_ok() {
            let _ = fsetxattr(to, name, &value, XattrFlags::empty());
        }
    }
}

#[cfg(all(unix, not(any(target_os = "linux", target_os = "macos"))))]
fn copy_attributes(_: &File, _: &File) {}
