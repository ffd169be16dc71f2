//! The network of a session: its commands and jobs share one, which has a loopback interface and nothing else.
//!
//! A network belongs to a user namespace, and only a process in that one may join it. Both exist as long as tandem has
//! them open, and end with it, whatever becomes of the processes in them.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;

/// A network without a way out, and the user namespace it belongs to.
#[derive(Debug)]
pub struct Network {
    user: File,
    network: File,
}

impl Network {
    /// The one that the process with this id is in.
    ///
    /// # Errors
    /// The process is gone, or somebody else's.
    pub(super) fn of(process: u32) -> io::Result<Self> {
        let open = |name| File::open(format!("/proc/{process}/ns/{name}"));
        Ok(Self {
            user: open("user")?,
            network: open("net")?,
        })
    }

    /// Where another process of this user finds both: a path instead of an inherited descriptor, which would be
    /// everybody's that is started at the same time.
    pub(in crate::process) fn places(&self) -> [PathBuf; 2] {
        let own = std::process::id();
        [&self.user, &self.network]
            .map(|file| format!("/proc/{own}/fd/{}", file.as_raw_fd()).into())
    }
}

/// Joins the user namespace and the network at these places. For a process with one thread.
///
/// # Errors
/// The server is gone, or the system refuses.
#[cfg(target_os = "linux")]
pub(in crate::process) fn join(places: &[PathBuf]) -> io::Result<()> {
    // Both are opened first: a process in another user namespace may not look into that of the server.
    let opened = places
        .iter()
        .map(File::open)
        .collect::<io::Result<Vec<_>>>()?;
    for namespace in opened {
        rustix::thread::move_into_link_name_space(std::os::fd::AsFd::as_fd(&namespace), None)?;
    }
    Ok(())
}
