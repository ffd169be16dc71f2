//! What the file system records about a file or folder, as proof that it has not changed.

use std::path::Path;
use std::time::{Duration, SystemTime};

use cap_std::fs::{Dir, Metadata};

use super::mode;

/// Two changes this close together may have the same timestamp: what changed just before it was read is read again the
/// next time.
const RACE: Duration = Duration::from_millis(50);
/// The same where timestamps are in whole seconds; FAT has only each second one.
const COARSE_RACE: Duration = Duration::from_secs(3);

/// While it stays the same, the file has not changed, and no name in the folder has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    pub inode: u64,
    size: u64,
    modified: Option<SystemTime>,
    /// When the inode changed, which no program can set back: seconds and nanoseconds.
    changed: Option<(i64, i64)>,
    mode: u32,
}

impl Stamp {
    pub fn of(found: &Metadata) -> Self {
        let modified = found
            .modified()
            .ok()
            .map(cap_std::time::SystemTime::into_std);
        let (device, inode) = identity(found);
        Self {
            device,
            inode,
            size: found.len(),
            modified,
            changed: changed(found),
            mode: mode::of(found),
        }
    }

    /// Whether it is so much older than `now` that a change since then has another stamp.
    pub fn is_older_than(&self, now: SystemTime) -> bool {
        let Some(modified) = self.modified else {
            return false;
        };
        let is_coarse = self
            .changed
            .is_some_and(|(_, nanoseconds)| nanoseconds == 0);
        let changed = self.changed.map_or(modified, since_epoch);
        let race = if is_coarse { COARSE_RACE } else { RACE };
        now.duration_since(changed).is_ok_and(|age| age > race)
    }

    /// Whether it is on the file system with this number.
    pub fn is_on(&self, device: Option<u64>) -> bool {
        device == Some(self.device)
    }
}

/// The number of the file system of `dir`, if the stamp of a folder there tells whether a name in it has changed. On
/// a network, or passed on by another program, a folder may keep its times.
#[cfg(target_os = "linux")]
pub(crate) fn dependable(dir: &Dir) -> Option<u64> {
    /// `statfs(2)`: bcachefs, btrfs, ext, f2fs, overlay, tmpfs, XFS, ZFS.
    const KINDS: [u64; 8] = [
        0xca45_1a4e,
        0x9123_683e,
        0xef53,
        0xf2f5_2010,
        0x794c_7630,
        0x0102_1994,
        0x5846_5342,
        0x2fc1_2fc1,
    ];
    let kind = u64::try_from(rustix::fs::fstatfs(dir).ok()?.f_type).ok()?;
    let found = dir.dir_metadata().ok()?;
    KINDS.contains(&kind).then(|| identity(&found).0)
}

/// Not known for the file systems of other systems.
#[cfg(not(target_os = "linux"))]
pub(crate) fn dependable(_dir: &Dir) -> Option<u64> {
    None
}

#[cfg(unix)]
pub(crate) fn identity(found: &Metadata) -> (u64, u64) {
    use cap_fs_ext::MetadataExt as _;
    (found.dev(), found.ino())
}

/// Listing a folder does not report them.
#[cfg(not(unix))]
pub(crate) fn identity(_found: &Metadata) -> (u64, u64) {
    (0, 0)
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "other systems have no such time")]
fn changed(found: &Metadata) -> Option<(i64, i64)> {
    use cap_std::fs::MetadataExt as _;
    Some((found.ctime(), found.ctime_nsec()))
}

#[cfg(not(unix))]
fn changed(_found: &Metadata) -> Option<(i64, i64)> {
    None
}

/// Whether a file has changed at `end` or since, in whatever way. What is in a folder changes it too, so that says nothing.
pub(crate) fn changed_after(path: &Path, end: SystemTime) -> bool {
    let found = path.symlink_metadata().ok();
    let Some(found) = found.filter(|found| !found.is_dir()) else {
        return false;
    };
    #[cfg(unix)]
    let changed = {
        use std::os::unix::fs::MetadataExt as _;
        Some(since_epoch((found.ctime(), found.ctime_nsec())))
    };
    #[cfg(not(unix))]
    let changed = found.modified().ok();
    changed.is_some_and(|changed| changed >= end)
}

fn since_epoch((seconds, nanoseconds): (i64, i64)) -> SystemTime {
    let since = Duration::new(
        seconds.try_into().unwrap_or(0),
        nanoseconds.try_into().unwrap_or(0),
    );
    SystemTime::UNIX_EPOCH + since
}
