//! Checks for effects that no attack may have. The test below proves that each check can fail.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, getpid};
use serde_json::{Value, json};

/// A folder and everything in it. Links are not followed.
pub fn everything(top: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![top.to_owned()];
    while let Some(path) = open.pop() {
        if path.is_dir() && !path.is_symlink() {
            open.extend(
                std::fs::read_dir(&path)
                    .into_iter()
                    .flatten()
                    .flatten()
                    .map(|entry| entry.path()),
            );
        }
        found.push(path);
    }
    found
}

/// Temporary files left over from writing.
pub fn litter(top: &Path) -> Vec<PathBuf> {
    let is_litter = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(".tandem-") || name.ends_with(".tmp")
    };
    everything(top).into_iter().filter(is_litter).collect()
}

/// Whether a message contains a text, plain or escaped.
pub fn tells(message: &Value, text: &str) -> bool {
    let quoted = serde_json::to_string(text).unwrap();
    message.to_string().contains(quoted.trim_matches('"'))
}

/// The first text of these messages that could move a cursor. Fields that carry changes verbatim are exempt.
pub fn control(heard: &[Value]) -> Option<&str> {
    let is_bad = |c: char| c.is_control() && !['\t', '\r', '\n'].contains(&c);
    heard.iter().find_map(|message| {
        let update = &message["params"]["update"];
        let items = update["content"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|item| &item["content"]["text"]);
        let own = [
            &update["title"],
            &message["params"]["toolCall"]["title"],
            &update["content"]["text"],
        ];
        own.into_iter()
            .chain(items)
            .filter_map(Value::as_str)
            .find(|text| text.contains(is_bad))
    })
}

/// What is wrong with the messages of a request: each call must have exactly one result, directly after it.
pub fn mistakes(request: &Value) -> Vec<String> {
    let id = |value: &Value| value.as_str().unwrap_or("none").to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let (mut wrong, mut open) = (Vec::new(), Vec::<String>::new());
    for message in list(&request["messages"]) {
        let blocks = list(&message["content"]);
        let mut results: Vec<String> = blocks
            .iter()
            .filter(|block| block["type"] == "tool_result")
            .map(|block| id(&block["tool_use_id"]))
            .collect();
        if message["role"] == "tool" {
            results.push(id(&message["tool_call_id"]));
        } else if results.is_empty() && !open.is_empty() {
            wrong.push(format!("no result for {open:?}"));
            open.clear();
        }
        for result in results {
            match open.iter().position(|call| *call == result) {
                Some(index) => _ = open.remove(index),
                None => wrong.push(format!("{result} was not called or has its result")),
            }
        }
        open.extend(
            list(&message["tool_calls"])
                .iter()
                .map(|call| id(&call["id"])),
        );
        open.extend(
            blocks
                .iter()
                .filter(|block| block["type"] == "tool_use")
                .map(|block| id(&block["id"])),
        );
    }
    if !open.is_empty() {
        wrong.push(format!("no result for {open:?} at the end"));
    }
    wrong
}

/// The lines of the kernel's tables about the sockets of a process.
pub fn sockets(pid: Pid) -> Vec<String> {
    let pid = pid.as_raw_nonzero();
    let open = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .flatten();
    let targets =
        open.filter_map(|entry| Some(std::fs::read_link(entry.path()).ok()?.display().to_string()));
    let own: HashSet<String> = targets
        .filter_map(|target| {
            Some(
                target
                    .strip_prefix("socket:[")?
                    .trim_end_matches(']')
                    .to_owned(),
            )
        })
        .collect();
    let tables = ["tcp", "tcp6", "udp", "udp6"].map(|table| {
        let lines = std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        lines
            .lines()
            .skip(1)
            .map(|line| format!("{table} {line}"))
            .collect::<Vec<_>>()
    });
    let is_own = |line: &String| {
        line.split_whitespace()
            .nth(10)
            .is_some_and(|inode| own.contains(inode))
    };
    tables.into_iter().flatten().filter(is_own).collect()
}

/// The sockets of a process that other machines can reach.
pub fn open_ports(pid: Pid) -> Vec<String> {
    /// A listening TCP socket, as the kernel writes it.
    const LISTENING: &str = "0A";
    let waits = |line: &String| {
        line.starts_with("udp") || line.split_whitespace().nth(4) == Some(LISTENING)
    };
    sockets(pid).into_iter().filter(waits).collect()
}

/// The processes whose command line ends with these words.
pub fn running(words: &str) -> usize {
    let lines = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines
        .filter(|line| {
            String::from_utf8_lossy(line)
                .replace('\0', " ")
                .trim_end()
                .ends_with(words)
        })
        .count()
}

/// Whether a chat view with this source loads no picture from elsewhere.
pub fn blocks_images(source: &str) -> bool {
    let policy = source
        .lines()
        .find(|line| line.contains("default-src 'none'"));
    policy.is_some_and(|policy| {
        let images = policy
            .split(';')
            .find(|rule| rule.contains("img-src"))
            .unwrap_or_default();
        !images.contains("http") && !images.contains('*')
    })
}

#[test]
fn the_checks_of_attacks_can_fail() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(".tandem-1-0.tmp"), "").unwrap();
    assert_eq!(litter(folder.path()).len(), 1);

    assert!(
        tells(&json!({ "text": "say \"it\"" }), "say \"it\"")
            && !tells(&json!({ "text": "say" }), "it")
    );
    let update = |update: Value| [json!({ "params": { "update": update } })];
    assert!(control(&update(json!({ "content": { "text": "\u{1b}[2K" } }))).is_some());
    assert!(
        control(&update(
            json!({ "content": [{ "content": { "text": "\u{7}" } }] })
        ))
        .is_some()
    );
    assert!(control(&update(json!({ "title": "fine\n" }))).is_none());

    let call = json!({ "role": "assistant", "tool_calls": [{ "id": "c" }] });
    let result = json!({ "role": "tool", "tool_call_id": "c", "content": "" });
    let claude = json!({ "role": "assistant", "content": [{ "type": "tool_use", "id": "c" }] });
    let answer =
        json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "c" }] });
    let user = json!({ "role": "user", "content": "" });
    for (call, result) in [(&call, &result), (&claude, &answer)] {
        assert_eq!(
            mistakes(&json!({ "messages": [user, call, result, user] })),
            Vec::<String>::new()
        );
        for wrong in [
            json!([call]),
            json!([call, user]),
            json!([result]),
            json!([call, result, result]),
        ] {
            assert_ne!(
                mistakes(&json!({ "messages": wrong })),
                Vec::<String>::new(),
                "{wrong}"
            );
        }
    }

    let _door = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    assert!(!open_ports(getpid()).is_empty());
    let time = format!("40{}", std::process::id());
    let words = format!("sleep {time}");
    let mut sleep = std::process::Command::new("sleep")
        .arg(time)
        .spawn()
        .unwrap();
    crate::driver::until("a process is seen", || running(&words) == 1);
    sleep.kill().unwrap();
    sleep.wait().unwrap();
    assert_eq!(running(&words), 0);

    for policy in [
        "",
        "default-src 'none'; img-src https:",
        "default-src 'none'; img-src *",
    ] {
        assert!(!blocks_images(policy), "{policy}");
    }
    assert!(blocks_images(
        "default-src 'none'; img-src vscode-resource:"
    ));
}
