//! Which TCP ports a process and its descendants listen on, from the system's tables.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::Pid;

use super::supervisor::tree;

/// The number of the state in which a socket waits for connections.
const LISTEN: &str = "0A";

/// The ports, sorted. Blocks.
pub(super) fn listening(process: u32) -> Vec<u16> {
    let first = i32::try_from(process).ok().and_then(Pid::from_raw);
    let below = first.map(tree::descendants).unwrap_or_default();
    let sockets: BTreeSet<String> = below.into_iter().flat_map(sockets).collect();
    let mut ports = BTreeSet::new();
    for table in ["tcp", "tcp6"] {
        // The table is that of the network which the process is in.
        let table = fs::read_to_string(format!("/proc/{process}/net/{table}"));
        ports.extend(
            table
                .unwrap_or_default()
                .lines()
                .filter_map(|line| port(line, &sockets)),
        );
    }
    ports.into_iter().collect()
}

/// The sockets of a process, by number.
fn sockets(process: Pid) -> Vec<String> {
    let open = fs::read_dir(format!("/proc/{}/fd", process.as_raw_nonzero()));
    let mut sockets = Vec::new();
    for file in open.into_iter().flatten().flatten() {
        let target = fs::read_link(file.path()).unwrap_or_default();
        let target = target.to_string_lossy();
        let number = target.strip_prefix("socket:[");
        sockets.extend(number.map(|number| number.trim_end_matches(']').to_owned()));
    }
    sockets
}

/// The port of a line of the table, if it is one of these sockets and listens.
fn port(line: &str, sockets: &BTreeSet<String>) -> Option<u16> {
    // Number, local address, remote address, state, queues, timer, retries, user, timeout, socket.
    let fields: Vec<_> = line.split_whitespace().collect();
    let (local, state, socket) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
    if *state != LISTEN || !sockets.contains(*socket) {
        return None;
    }
    u16::from_str_radix(local.rsplit_once(':')?.1, 16).ok()
}
