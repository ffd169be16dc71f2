//! `kill -9` anywhere in a turn: nothing that was acknowledged is lost, the history is valid, the next prompt works.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::driver::World;

/// Events after which the process is killed.
const POINTS: usize = 50;

fn script() -> Value {
    let read = json!({ "call": { "id": "r", "name": "read_file", "arguments": { "path": "a.txt" } } });
    let edit = json!({ "path": "a.txt", "edits": [{ "old_text": "one", "new_text": "two" }] });
    let edit = json!({ "call": { "id": "e", "name": "edit_file", "arguments": edit }, "fragments": 20 });
    json!([
        [{ "reasoning": "First I look." }, { "words": "Let me see what is there", "delay_ms": 1 }, read],
        [{ "words": "now it is changed for good", "delay_ms": 1 }, edit],
        [{ "words": "done and said so", "delay_ms": 1 }],
        [{ "text": "still here" }],
    ])
}

/// Kills a turn after `point` events and goes on with its conversation.
fn survives(point: usize) {
    let world = World::new(script());
    world.write("a.txt", "one\n");
    let arguments = ["run", "--json", "--mode", "edit", "change it"];
    let mut child = world.command(&arguments).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let heard: Vec<Value> =
        lines.by_ref().take(point).map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    child.kill().unwrap();
    child.wait().unwrap();

    // It goes on with what is left of the script.
    let again = world.run(&["run", "--continue", "and now?"]);
    assert_eq!(again.code, Some(0), "after {point}: {}", again.stderr);
    let request = world.rehearsal().requests().pop().unwrap();
    let messages = request["messages"].as_array().unwrap();
    assert_eq!(messages[1]["role"], "user", "the prompt was acknowledged: {request}");
    answered(messages, point);
    // A result that was told is in the conversation.
    for end in heard.iter().filter(|event| event["type"] == "iteration_complete") {
        let iteration = usize::try_from(end["iteration"].as_u64().unwrap()).unwrap();
        let answers = messages.iter().filter(|message| message["role"] == "assistant").count();
        assert!(answers >= iteration, "after {point}: {request}");
    }
    let text = world.read("a.txt");
    assert!(text == "one\n" || text == "two\n", "after {point}: {text:?}");
}

/// Every call is followed by exactly one result.
fn answered(messages: &[Value], point: usize) {
    let ids = |message: &Value| -> Vec<Value> {
        message["tool_calls"].as_array().into_iter().flatten().map(|call| call["id"].clone()).collect()
    };
    let called: Vec<_> = messages.iter().flat_map(ids).collect();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    let results: Vec<_> = results.map(|message| message["tool_call_id"].clone()).collect();
    assert_eq!(results, called, "after {point}");
}

#[test]
fn a_killed_turn_resumes_from_any_point() {
    for point in 1..=POINTS {
        survives(point);
    }
}
