//! The real process: every way to end, what it writes, and what an editor that does not read costs.

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};
use tandem::server::Transport;

use crate::driver::World;
use crate::program::Program;

fn frame(message: &Value) -> Vec<u8> {
    let body = message.to_string();
    format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

#[test]
fn closing_the_input_ends_the_process() {
    let world = World::new(json!([]));
    for transport in [Transport::Lsp, Transport::Acp] {
        let (mut program, mut client) = world.serve(transport);
        client.call(
            "initialize",
            json!({ "protocolVersion": 1, "capabilities": {} }),
        );
        client.hang_up();
        assert_eq!(program.ends().code(), Some(0), "{transport:?}");
        client.finish();
    }
}

#[test]
fn a_client_with_open_requests_does_not_delay_shutdown() {
    let world = World::new(json!([]));
    world.write("a.txt", "hi\n");
    let (mut program, mut client) = world.serve(Transport::Acp);
    let reads = json!({ "fs": { "readTextFile": true } });
    client.call(
        "initialize",
        json!({ "protocolVersion": 1, "clientCapabilities": reads }),
    );
    let session = client.session(&world);
    client.prompt(&session, "What is in @a.txt?");
    client.next("fs/read_text_file");
    program.signal(Signal::TERM);
    assert_eq!(program.ends().code(), Some(0));
}

#[test]
fn the_exit_code_says_whether_shutdown_came_before_exit() {
    let world = World::new(json!([]));
    let (mut program, mut client) = world.serve_editor();
    client.call("shutdown", Value::Null);
    client.notify("exit", Value::Null);
    assert_eq!(program.ends().code(), Some(0));
    client.finish();

    let (mut program, mut client) = world.serve_editor();
    client.notify("exit", Value::Null);
    assert_eq!(program.ends().code(), Some(1));
    client.finish();
}

#[test]
fn a_frame_without_a_usable_length_ends_the_process_with_a_reason() {
    let world = World::new(json!([]));
    for (header, word) in [
        ("Content-Length: many", "\"many\""),
        ("Content-Length: -5", "\"-5\""),
        ("Content-Length: 99999999999", "1 GiB"),
        ("Content-Type: text/plain", "without Content-Length"),
    ] {
        let (mut program, mut client) = world.serve_editor();
        client.raw(format!("{header}\r\n\r\n{{}}").as_bytes());
        assert_eq!(program.ends().code(), Some(1), "{header}");
        client.finish();
        let reason = program.stderr();
        assert!(reason.contains(word), "{header}: {reason}");
    }
}

/// A prompt whose answer is held midway.
fn in_the_middle_of_a_turn(world: &World) -> (Program, crate::driver::Client, i64) {
    let (program, mut client) = world.serve_editor();
    let session = client.session(world);
    let prompt = client.prompt(&session, "hi");
    assert_eq!(
        client.update("agent_message_chunk")["content"]["text"],
        "half"
    );
    (program, client, prompt)
}

#[test]
fn sigterm_during_a_turn_answers_the_prompt_and_closes_the_model_connection() {
    let world = World::new(json!([[{ "text": "half" }, { "gate": "never" }]]));
    let (mut program, mut client, prompt) = in_the_middle_of_a_turn(&world);
    program.signal(Signal::TERM);
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "cancelled");
    assert_eq!(program.ends().code(), Some(0));
    world.wait(world.rehearsal().closed_early(1));
    client.finish();
}

#[test]
fn closing_the_input_during_a_turn_answers_the_prompt() {
    let world = World::new(json!([[{ "text": "half" }, { "gate": "never" }]]));
    let (mut program, mut client, prompt) = in_the_middle_of_a_turn(&world);
    client.hang_up();
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "cancelled");
    assert_eq!(program.ends().code(), Some(0));
    world.wait(world.rehearsal().closed_early(1));
    client.finish();
}

#[test]
fn a_client_that_stops_reading_ends_the_process() {
    let world = World::new(json!([]));
    let (mut program, mut writer, mut reader) = world.serve_raw(Transport::Lsp);
    handshake(&world, &mut writer, &mut reader);
    drop(reader);
    ask_until_the_end(
        writer,
        frame(&json!({ "jsonrpc": "2.0", "id": 2, "method": "no/such" })),
    );
    assert_eq!(program.ends().code(), Some(0));
}

/// Makes the server write until it notices that nobody reads: programs started by other tests hold the pipe between their
/// fork and their exec, and one message may still fit.
fn ask_until_the_end(mut writer: PipeWriter, question: Vec<u8>) {
    std::thread::spawn(move || while writer.write_all(&question).is_ok() {});
}

#[test]
fn a_client_that_stops_reading_during_a_turn_ends_the_turn() {
    let world = World::new(
        json!([[{ "text": "half" }, { "gate": "on" }, { "text": "more" }, { "gate": "never" }]]),
    );
    let (mut program, mut writer, mut reader) = world.serve_raw(Transport::Acp);
    let mut ask = |method: &str, params: Value| {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        writer.write_all(format!("{message}\n").as_bytes()).unwrap();
    };
    ask("initialize", json!({ "protocolVersion": 1 }));
    read_until(&mut reader, "agentInfo");
    ask(
        "session/new",
        json!({ "cwd": world.path(), "mcpServers": [] }),
    );
    let line = read_until(&mut reader, "configOptions");
    let answer: Value = serde_json::from_str(
        line.lines()
            .find(|line| line.contains("configOptions"))
            .unwrap(),
    )
    .unwrap();
    ask(
        "session/prompt",
        json!({ "sessionId": answer["result"]["sessionId"], "prompt": [{ "type": "text", "text": "hi" }] }),
    );
    world.wait(world.rehearsal().waiting_at("on"));
    drop(reader);
    world.rehearsal().open("on");
    let question = json!({ "jsonrpc": "2.0", "id": 2, "method": "no/such" });
    ask_until_the_end(writer, format!("{question}\n").into_bytes());
    assert_eq!(program.ends().code(), Some(0));
    world.wait(world.rehearsal().closed_early(1));
}

fn handshake(world: &World, writer: &mut PipeWriter, reader: &mut PipeReader) {
    let params = world.handshake(json!({}));
    writer
        .write_all(&frame(
            &json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }),
        ))
        .unwrap();
    read_until(reader, "serverInfo");
}

/// Reads until a word appears, up to the end of a message.
fn read_until(reader: &mut PipeReader, word: &str) -> String {
    let mut seen = String::new();
    let mut bytes = [0; 4096];
    while !seen.contains(word) {
        let length = reader.read(&mut bytes).unwrap();
        assert!(length > 0, "the end came before {word}: {seen}");
        seen.push_str(std::str::from_utf8(&bytes[..length]).unwrap());
    }
    seen
}

#[test]
fn the_process_ends_with_its_editor() {
    let world = World::new(json!([]));
    let mut editor = Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let (mut program, mut client) = world.serve(Transport::Lsp);
    client.shake_hands(json!({ "processId": editor.id(), "capabilities": {} }));
    editor.kill().unwrap();
    editor.wait().unwrap();
    assert_eq!(program.ends().code(), Some(0));
    client.finish();
}

/// The most an editor that doesn't read may cost.
#[cfg(target_os = "linux")]
const GROWTH: usize = 8 << 20;
/// The cost once the queue accepts no more text.
#[cfg(target_os = "linux")]
const FULL: usize = 3 << 20;

#[test]
#[cfg(target_os = "linux")]
fn a_slow_client_loses_nothing_and_costs_little_memory() {
    let numbers: Vec<_> = (1_000_000..1_060_000)
        .map(|number: i32| number.to_string())
        .collect();
    let words = numbers.join(" ");
    let world = World::new(json!([[{ "words": words }, { "gate": "all sent" }]]));
    let (mut program, mut client) = world.serve_editor();
    let session = client.session(&world);
    let before = program.peak_memory();

    let reading = client.reading();
    let pause = reading.lock().unwrap();
    let prompt = client.prompt(&session, "a long story");
    let others: Vec<i64> = (0..200)
        .map(|_| client.ask("no/such", Value::Null))
        .collect();
    world.wait(world.rehearsal().waiting_at("all sent"));
    drop(pause);

    for id in others {
        assert_eq!(client.answer(id)["error"]["code"], -32601);
    }
    world.rehearsal().open("all sent");
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");
    assert!(client.text() == words, "text was lost or shuffled");
    let growth = program.peak_memory() - before;
    assert!(growth <= GROWTH, "it grew by {growth} bytes");
    client.hang_up();
    program.ends();
    client.finish();
}

#[test]
#[cfg(target_os = "linux")]
fn cancel_works_with_a_stalled_client_and_a_full_queue() {
    let line = "all work and no play makes an editor a dull boy ".repeat(20);
    let words = vec![line.trim_end().replace(' ', "_"); 30_000].join(" ");
    let flood = json!([{ "words": words }, { "gate": "never" }]);
    let world = World::new(json!([[{ "text": "warm" }], flood, [{ "text": "awake" }]]));
    let (mut program, mut client) = world.serve_editor();
    let session = client.session(&world);
    let prompt = client.prompt(&session, "hello");
    client.answer(prompt);
    let before = program.peak_memory();

    let reading = client.reading();
    let pause = reading.lock().unwrap();
    let prompt = client.prompt(&session, "a story without end");
    world.wait(world.rehearsal().requested(2));
    program.grows_to(before + FULL);
    client.notify("session/cancel", json!({ "sessionId": session }));
    world.wait(world.rehearsal().closed_early(1));
    let growth = program.peak_memory() - before;
    drop(pause);

    assert!(growth <= GROWTH, "it grew by {growth} bytes");
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "cancelled");
    let prompt = client.prompt(&session, "hello?");
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");
    client.hang_up();
    program.ends();
    client.finish();
}
