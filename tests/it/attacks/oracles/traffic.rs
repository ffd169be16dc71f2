//! Who talked to whom, and what the process costs.

use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use serde_json::Value;

use super::{Found, must, short};
use crate::attacks::inputs::Run;

pub const KINDS: &[&str] = &[
    "model_requests",
    "listener_silent",
    "mcp_env_lacks",
    "other_host_saw_no_auth",
    "client_render_blocks_remote_images",
    "no_network",
    "no_listening_sockets",
    "no_process",
    "rss_max_mb",
];

/// A TCP socket that waits for connections, as the kernel writes it.
const LISTENING: &str = "0A";

pub fn ask(run: &Run, kind: &str, oracle: &Value) -> Found {
    let text = |key: &str| oracle[key].as_str().unwrap_or_default();
    match kind {
        "model_requests" => model_requests(run, oracle),
        "listener_silent" => match run.scene.contacts(text("name")) {
            Some(contacts) => must(contacts.is_empty(), || format!("{contacts:?}")),
            None => Err(format!("there is no listener `{}`", text("name"))),
        },
        "mcp_env_lacks" => mcp_env_lacks(&run.scene.base().join("mcp.env"), text("text")),
        "other_host_saw_no_auth" => {
            let heads: Vec<String> = run.other.hits().into_iter().map(|hit| hit.head.to_lowercase()).collect();
            let tells = |head: &String| ["authorization", "x-api-key", "sk-"].iter().any(|word| head.contains(word));
            must(!heads.iter().any(tells), || format!("{heads:?}"))
        }
        "client_render_blocks_remote_images" => {
            let chat = concat!(env!("CARGO_MANIFEST_DIR"), "/editors/vscode/src/chat.ts");
            blocks_images(&std::fs::read_to_string(chat).unwrap())
        }
        "no_network" => {
            let model = format!(":{:04X}", run.notes.port);
            let strangers: Vec<String> =
                sockets(run.server.pid).into_iter().filter(|line| !line.contains(&model)).collect();
            must(strangers.is_empty(), || format!("{strangers:?}"))
        }
        "no_listening_sockets" => no_listening_sockets(run.server.pid),
        "no_process" => {
            let limit = Duration::from_millis(oracle["within_ms"].as_u64().unwrap_or(0));
            no_process(text("cmdline"), run.notes.last + limit)
        }
        _ => {
            let limit = oracle["mb"].as_u64().unwrap_or(0);
            let peak = run.notes.peak >> 20;
            must(peak > 0 || limit == 0, || "the process is gone".to_owned())?;
            must(peak <= limit, || format!("{peak} MB"))
        }
    }
}

fn model_requests(run: &Run, oracle: &Value) -> Found {
    let number = |key: &str| oracle[key].as_u64();
    let hits = &run.notes.hits;
    let count = hits.len() as u64;
    must(count >= number("min").unwrap_or(0) && count <= number("max").unwrap_or(u64::MAX), || format!("{count}"))?;
    let gaps = hits.windows(2).map(|pair| u64::try_from((pair[1].at - pair[0].at).as_millis()).unwrap());
    for gap in gaps {
        let fits = gap >= number("min_gap_ms").unwrap_or(0) && gap <= number("max_gap_ms").unwrap_or(u64::MAX);
        must(fits, || format!("{gap} ms between two"))?;
    }
    Ok(())
}

fn mcp_env_lacks(dump: &Path, text: &str) -> Found {
    let until = Instant::now() + Duration::from_secs(5);
    while !dump.exists() && Instant::now() < until {
        std::thread::yield_now();
    }
    let Ok(seen) = std::fs::read_to_string(dump) else { return Err("no server was started".to_owned()) };
    must(!seen.contains(text), || short(&seen))
}

/// A chat view gets no picture from elsewhere.
pub fn blocks_images(source: &str) -> Found {
    let policy = source.lines().find(|line| line.contains("default-src 'none'")).unwrap_or_default();
    must(!policy.is_empty(), || "there is no default-src 'none'".to_owned())?;
    let images = policy.split(';').find(|rule| rule.contains("img-src")).unwrap_or_default();
    must(!images.contains("http") && !images.contains('*'), || images.to_owned())
}

/// The lines of the kernel's tables that are about sockets of the process.
pub fn sockets(pid: Pid) -> Vec<String> {
    let pid = pid.as_raw_nonzero();
    let own: HashSet<String> = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let target = std::fs::read_link(entry.path()).ok()?.display().to_string();
            Some(target.strip_prefix("socket:[")?.trim_end_matches(']').to_owned())
        })
        .collect();
    let tables = ["tcp", "tcp6", "udp", "udp6"].map(|table| {
        let lines = std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        lines.lines().skip(1).map(|line| format!("{table} {line}")).collect::<Vec<_>>()
    });
    let is_own = |line: &String| line.split_whitespace().nth(10).is_some_and(|inode| own.contains(inode));
    tables.into_iter().flatten().filter(is_own).collect()
}

/// No port of the process is open to others.
pub fn no_listening_sockets(pid: Pid) -> Found {
    must(Path::new(&format!("/proc/{}/fd", pid.as_raw_nonzero())).exists(), || "the process is gone".to_owned())?;
    let waits = |line: &String| line.starts_with("udp") || line.split_whitespace().nth(4) == Some(LISTENING);
    let open: Vec<String> = sockets(pid).into_iter().filter(waits).collect();
    must(open.is_empty(), || format!("{open:?}"))
}

/// No process with these words on its command line is left.
fn no_process(cmdline: &str, until: Instant) -> Found {
    loop {
        let found = running(cmdline);
        if found.is_empty() || Instant::now() > until {
            return must(found.is_empty(), || format!("{found:?}"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The processes with these words on their command line.
fn running(cmdline: &str) -> Vec<String> {
    let all = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let raw = std::fs::read(entry.path().join("cmdline")).ok()?;
        let words = String::from_utf8_lossy(&raw).trim_end_matches('\0').replace('\0', " ");
        // `sleep 42` is not `sleep 420`.
        let ends = |(_, rest): (&str, &str)| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.');
        words.split_once(cmdline).is_some_and(ends).then(|| format!("{}: {words}", entry.file_name().display()))
    });
    all.collect()
}
