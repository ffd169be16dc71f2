//! `tandem sandbox-exec`: starts a command and outlives it, so that none of its processes outlive the server.
//!
//! Its standard input is a lifeline.
//!
//! When that is closed (by a cancel, a timeout or the death of the server) or the command ends, everything the command
//! started is killed, daemons included: on Linux they become children of this process when their parents exit, elsewhere they
//! are known by a mark. The supervisor itself is outside the sandbox and cannot be reached from it.

#[cfg(any(test, not(target_os = "linux")))]
mod left;

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::TICK;
use super::sandbox::{self, Restriction};

/// Arguments of `tandem sandbox-exec`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The Landlock rules, as JSON
    #[arg(long)]
    restrict: Option<String>,
    /// The command is bubblewrap: give it the filter of system calls
    #[arg(long)]
    filtered: bool,
    /// Become the command in this folder, with its system calls filtered
    #[arg(long)]
    filter: Option<PathBuf>,
    /// The command has the host's network: the filter allows only internet sockets
    #[arg(long)]
    network: bool,
    /// A file to write when the command ended because nobody listens any more
    #[arg(long)]
    ended: Option<PathBuf>,
    /// Join these namespaces first: a user namespace, and the network that it owns
    #[cfg(target_os = "linux")]
    #[arg(long, num_args = 2)]
    join: Vec<PathBuf>,
    /// Instead of starting a command, connect to the ports that are read from the standard input, a socket
    #[cfg(target_os = "linux")]
    #[arg(long)]
    connect: bool,
    /// The command
    #[arg(last = true, required_unless_present = "connect")]
    argv: Vec<OsString>,
}

/// What a shell calls the end by `SIGKILL`.
const KILLED: u8 = 137;

/// Runs the command to its end and returns its exit code: 128 plus the signal that ended it.
///
/// # Errors
/// It cannot be started, or cannot be sandboxed; then it was not started.
pub fn run(args: Args) -> io::Result<u8> {
    use rustix::process::{WaitOptions, setsid, wait};

    #[cfg(target_os = "linux")]
    sandbox::join(&args.join)?;
    #[cfg(target_os = "linux")]
    if args.connect {
        return super::forward::hand_over_connections().map(|()| 0);
    }
    if let Some(cwd) = &args.filter {
        return Err(sandbox::enter(cwd, args.network, &args.argv));
    }
    // Detaches from any terminal. The leader of a process group has none.
    let _leads = setsid();
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let ended = args.ended.clone();
    let child = start(args)?;
    let pid = rustix::process::Pid::from_child(&child);
    let closed = Arc::new(AtomicBool::new(false));
    let is_closed = Arc::clone(&closed);
    let end = std::thread::spawn(move || {
        let _until_closed = io::stdin().read_to_end(&mut Vec::new());
        closed.store(true, Ordering::SeqCst);
        tree::end(pid);
        mark(ended.as_deref());
        std::process::exit(KILLED.into());
    });
    let status = loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((ended, status))) if ended == pid => break Some(status),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            // The other thread has waited for all of them.
            Err(_) => break None,
        }
    };
    if is_closed.load(Ordering::SeqCst) {
        // The other thread ends this process.
        let _never = end.join();
    }
    let Some(status) = status else {
        return Ok(KILLED);
    };
    tree::end(pid);
    let code = status
        .exit_status()
        .or_else(|| status.terminating_signal().map(|signal| 128 + signal));
    Ok(code
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(u8::MAX))
}

/// Writes the file whose time says that all of the command has ended.
fn mark(ended: Option<&Path>) {
    if let Some(path) = ended {
        // Later than anything the command wrote, also where the clock of files is coarse.
        std::thread::sleep(TICK);
        let _the_folder_is_gone = std::fs::write(path, "");
    }
}

/// Starts the command: a restricted one from a thread of its own, which gets the restriction, any other from this
/// thread, because bubblewrap ends with the thread that started it.
fn start(args: Args) -> io::Result<Child> {
    let filtered = args.filtered.then_some(args.network);
    let Some(restriction) = args.restrict else {
        return spawn(&args.argv, filtered);
    };
    let held = move || {
        serde_json::from_str::<Restriction>(&restriction)?.apply()?;
        spawn(&args.argv, filtered)
    };
    std::thread::spawn(held)
        .join()
        .map_err(|_panic| io::Error::other("starting the command panicked"))?
}

/// Starts `argv`, or bubblewrap with the filter for a command that has the host's network or not.
fn spawn(argv: &[OsString], filtered: Option<bool>) -> io::Result<Child> {
    let (program, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    // Open until the command is started.
    let filter = filtered.map(sandbox::filter).transpose()?;
    if let Some(filter) = &filter {
        rustix::io::fcntl_setfd(filter, rustix::io::FdFlags::empty())?;
        command.args(["--seccomp", &filter.as_raw_fd().to_string()]);
    }
    command.args(arguments).stdin(Stdio::null());
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    #[cfg(not(target_os = "linux"))]
    tree::mark(&mut command);
    command.spawn()
}

#[cfg(target_os = "linux")]
pub(super) mod tree {
    use std::collections::HashMap;
    use std::time::{Duration, Instant};

    use rustix::io::Errno;
    use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};

    /// A process that does not die is stuck in the kernel.
    const TIMEOUT: Duration = Duration::from_secs(5);

    /// Kills everything this process started, until nothing is left.
    pub(super) fn end(_first: Pid) {
        let begun = Instant::now();
        // Orphans become children of this process: without children, nothing is left.
        while has_children() && begun.elapsed() < TIMEOUT {
            let left = descendants(getpid());
            if left.is_empty() {
                return;
            }
            for pid in left {
                // It may have ended at this moment.
                let _gone = kill_process(pid, Signal::KILL);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Whether there are children that have not ended.
    fn has_children() -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    /// All running descendants, from the process table.
    pub(in crate::process) fn descendants(of: Pid) -> Vec<Pid> {
        let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(pid) = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok())
            else {
                continue;
            };
            if let Some((state, parent)) = std::fs::read_to_string(entry.path().join("stat"))
                .ok()
                .as_deref()
                .and_then(stat)
                && state != "Z"
            {
                children.entry(parent).or_default().push(pid);
            }
        }
        let mut found = Vec::new();
        let mut ahead = vec![of.as_raw_nonzero().get()];
        while let Some(parent) = ahead.pop() {
            let born = children.remove(&parent).unwrap_or_default();
            found.extend(born.iter().filter_map(|pid| Pid::from_raw(*pid)));
            ahead.extend(born);
        }
        found
    }

    /// State and parent; the name before them may contain anything, even parentheses.
    fn stat(line: &str) -> Option<(&str, i32)> {
        let (_, rest) = line.rsplit_once(')')?;
        let mut fields = rest.split_whitespace();
        Some((fields.next()?, fields.next()?.parse().ok()?))
    }
}

#[cfg(not(target_os = "linux"))]
mod tree {
    use std::io::Read as _;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use rustix::process::{Pid, Signal, getpid, kill_process, kill_process_group};

    use super::left;

    /// A process that does not die is stuck in the kernel.
    const TIMEOUT: Duration = Duration::from_secs(5);

    /// Marks all that the command will start.
    pub(super) fn mark(command: &mut Command) {
        let outer = std::env::var(left::VARIABLE).unwrap_or_default();
        command.env(
            left::VARIABLE,
            outer + &left::mark(getpid().as_raw_nonzero().get()),
        );
    }

    /// Kills everything this process started, until nothing is left.
    pub(super) fn end(first: Pid) {
        let begun = Instant::now();
        // At once, whatever the table says.
        let _gone = kill_process_group(first, Signal::KILL);
        while begun.elapsed() < TIMEOUT {
            let (group, supervisor) = (
                first.as_raw_nonzero().get(),
                getpid().as_raw_nonzero().get(),
            );
            let left = table().map(|(ps, table)| (ps, left::left(&table, group, supervisor)));
            let Some((ps, left)) = left else { return };
            let left: Vec<Pid> = left
                .into_iter()
                .filter(|pid| *pid != ps)
                .filter_map(Pid::from_raw)
                .collect();
            if left.is_empty() {
                return;
            }
            for pid in left {
                // It may have ended at this moment.
                let _gone = kill_process(pid, Signal::KILL);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// All processes with their environment, and which of them is `ps`.
    fn table() -> Option<(i32, String)> {
        let mut command = Command::new("/bin/ps");
        command
            .args(["-axwwE", "-o", "pid=,ppid=,pgid=,stat=,command="])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut ps = command.spawn().ok()?;
        let mut table = Vec::new();
        let read = ps.stdout.take()?.read_to_end(&mut table);
        // The other thread may have waited for it.
        let _ended = ps.wait();
        read.ok()?;
        Some((
            i32::try_from(ps.id()).ok()?,
            String::from_utf8_lossy(&table).into_owned(),
        ))
    }
}
