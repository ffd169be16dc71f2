//! `kill -9` anywhere in a turn: nothing that was acknowledged is lost, the history is valid, the next prompt works.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::driver::{World, side_by_side};

/// Events after which the process is killed.
const POINTS: usize = 50;
/// How many processes run in parallel; most of them wait.
const SIDE_BY_SIDE: usize = 4;

fn script() -> Value {
    let read =
        json!({ "call": { "id": "r", "name": "read_file", "arguments": { "path": "a.txt" } } });
    let edit = json!({ "path": "a.txt", "edits": [{ "old_text": "one", "new_text": "two" }] });
    let edit =
        json!({ "call": { "id": "e", "name": "edit_file", "arguments": edit }, "fragments": 20 });
    json!([
        [{ "reasoning": "First I look." }, { "words": "Let me see what is there", "delay_ms": 1 }, read],
        [{ "words": "now it is changed for good", "delay_ms": 1 }, edit],
        [{ "words": "done and said so", "delay_ms": 1 }],
        [{ "text": "still here" }],
    ])
}

/// Kills a turn after `point` events and continues its session.
fn survives(point: usize) {
    let world = World::new(script());
    world.write("a.txt", "one\n");
    let arguments = ["run", "--json", "--mode", "edit", "change it"];
    let mut child = world
        .command(&arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let heard: Vec<Value> = lines
        .by_ref()
        .take(point)
        .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
        .collect();
    child.kill().unwrap();
    child.wait().unwrap();

    // It continues with the rest of the script.
    let again = world.run(&["run", "--continue", "and now?"]);
    assert_eq!(again.code, Some(0), "after {point}: {}", again.stderr);
    let request = world.rehearsal().requests().pop().unwrap();
    let messages = request["messages"].as_array().unwrap();
    assert_eq!(
        messages[1]["role"], "user",
        "the prompt was acknowledged: {request}"
    );
    answered(messages, point);
    // A result that was reported is in the session.
    for end in heard
        .iter()
        .filter(|event| event["type"] == "iteration_complete")
    {
        let iteration = usize::try_from(end["iteration"].as_u64().unwrap()).unwrap();
        let answers = messages
            .iter()
            .filter(|message| message["role"] == "assistant")
            .count();
        assert!(answers >= iteration, "after {point}: {request}");
    }
    let text = world.read("a.txt");
    assert!(
        text == "one\n" || text == "two\n",
        "after {point}: {text:?}"
    );
}

/// Every call is followed by exactly one result.
fn answered(messages: &[Value], point: usize) {
    let ids = |message: &Value| -> Vec<Value> {
        message["tool_calls"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|call| call["id"].clone())
            .collect()
    };
    let called: Vec<_> = messages.iter().flat_map(ids).collect();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    let results: Vec<_> = results
        .map(|message| message["tool_call_id"].clone())
        .collect();
    assert_eq!(results, called, "after {point}");
}

#[test]
fn a_killed_turn_resumes_from_any_point() {
    side_by_side(SIDE_BY_SIDE, (1..=POINTS).collect(), survives);
}

/// A journal of this many bytes is loaded by a process limited to less memory.
#[cfg(target_os = "linux")]
const JOURNAL: usize = 192 << 20;
#[cfg(target_os = "linux")]
const MEMORY: usize = 150_000_000;

/// Inserts more turns after the first one of the only session; returns its ID.
#[cfg(target_os = "linux")]
fn lengthen(world: &World) -> String {
    use std::io::Write as _;
    let folder = world.home().join("state/sessions");
    let journal = std::fs::read_dir(folder)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let text = std::fs::read_to_string(&journal).unwrap();
    let turn = text
        .lines()
        .filter(|line| line.contains(r#""type":"prompt""#) || line.contains(r#""type":"message""#));
    let turn = turn.collect::<Vec<_>>().join("\n") + "\n";
    let turn = turn.replace("a long story", &"a long story ".repeat(64 << 10));
    let mut out = std::fs::OpenOptions::new()
        .append(true)
        .open(&journal)
        .unwrap();
    for _ in 0..JOURNAL / turn.len() {
        out.write_all(turn.as_bytes()).unwrap();
    }
    assert!(out.metadata().unwrap().len() > MEMORY as u64);
    journal.file_stem().unwrap().to_str().unwrap().to_owned()
}

#[cfg(target_os = "linux")]
#[test]
fn a_long_journal_is_loaded_in_little_memory() {
    let world = World::new(json!([[{ "text": "a long story" }], [{ "text": "still here" }]]));
    assert_eq!(world.run(&["run", "hello"]).code, Some(0));
    let id = lengthen(&world);
    let (mut program, mut client) = world.serve_with(tandem::server::Transport::Acp, |command| {
        let own = std::mem::replace(command, std::process::Command::new("/bin/sh"));
        let limit = format!("ulimit -d {}; exec \"$@\"", MEMORY / 1024);
        command
            .args(["-c", &limit, "sh"])
            .arg(own.get_program())
            .args(own.get_args());
        command
            .current_dir(own.get_current_dir().unwrap())
            .env_clear();
        command.envs(
            own.get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
    });
    client.call(
        "initialize",
        json!({ "protocolVersion": 1, "clientCapabilities": {} }),
    );
    let loaded = client.call(
        "session/load",
        json!({ "sessionId": id, "cwd": world.path(), "mcpServers": [] }),
    );
    assert!(loaded["result"].is_object(), "{loaded}");
    client.find(|message| message.to_string().contains("turns are not shown"));
    client.hang_up();
    assert_eq!(program.ends().code(), Some(0));
}
