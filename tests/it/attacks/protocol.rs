//! What a broken or hostile client sends: it is answered, and the next request works.

use std::io::Read as _;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use tandem::server::Transport;

use super::scene::Scene;
use crate::driver::World;

/// No case may use more memory than this, in bytes.
const MEMORY: usize = 150 << 20;

fn frame(body: &str) -> String {
    format!("Content-Length: {}\r\n\r\n{body}", body.len())
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table of messages")]
fn malformed_messages_are_answered_with_their_error() {
    let scene = Scene::new();
    let mut play = scene.serve(|_| ());
    let deep = ["[", "]"].map(|bracket| bracket.repeat(200_000)).concat();
    let request = |id: Value, method: &str| {
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": {} }).to_string()
    };
    let prompt = json!({ "sessionId": "nope", "prompt": [{ "type": "text", "text": "x" }] });
    for (id, body, answers, codes) in [
        (
            "protocol-014",
            r#"{"jsonrpc":"2.0","id":5,"method":"#.to_owned(),
            Some(Value::Null),
            [-32700].as_slice(),
        ),
        (
            "protocol-018",
            r#""hi""#.to_owned(),
            Some(Value::Null),
            &[-32600],
        ),
        (
            "protocol-019",
            r#"{"jsonrpc":"2.0","id":519}"#.to_owned(),
            None,
            &[-32600],
        ),
        (
            "protocol-021",
            r#"{"jsonrpc":"2.0","id":521,"method":"tandem/doesNotExist","params":"x"}"#.to_owned(),
            None,
            &[-32600, -32602, -32601],
        ),
        (
            "protocol-023",
            format!(
                "[{},{}]",
                request(json!(777), "tandem/x"),
                request(json!(778), "tandem/x")
            ),
            Some(Value::Null),
            &[-32600],
        ),
        (
            "protocol-030",
            format!(
                r#"{{"jsonrpc":"2.0","id":530,"method":"tandem/doesNotExist","params":{deep}}}"#
            ),
            None,
            &[-32700, -32600, -32601, -32602],
        ),
        (
            "protocol-035",
            request(json!({ "a": 1 }), "tandem/doesNotExist"),
            None,
            &[-32600],
        ),
        (
            "protocol-036",
            request(json!(true), "tandem/doesNotExist"),
            None,
            &[-32600],
        ),
        (
            "protocol-038",
            request(json!(-3), "tandem/doesNotExist"),
            None,
            &[-32601],
        ),
        (
            "protocol-039",
            request(json!(539), "$/nope"),
            Some(json!(539)),
            &[-32601],
        ),
        (
            "protocol-043",
            json!({ "jsonrpc": "2.0", "id": 543, "method": "session/prompt", "params": prompt })
                .to_string(),
            Some(json!(543)),
            &[-32602, -32002, -32603],
        ),
        (
            "protocol-050",
            request(json!(550), "initialize"),
            Some(json!(550)),
            &[-32600],
        ),
    ] {
        play.client.raw(frame(&body).as_bytes());
        let answer = play.client.find(|message| message.get("method").is_none());
        assert!(
            codes.iter().any(|code| answer["error"]["code"] == *code),
            "{id}: {answer}"
        );
        assert!(
            answers.is_none_or(|expected| answer["id"] == expected),
            "{id}: {answer}"
        );
        play.lives();
    }
}

#[test]
fn messages_without_an_answer_get_none() {
    let scene = Scene::new();
    let mut play = scene.serve(|_| ());
    for (id, message) in [
        (
            "protocol-040",
            json!({ "jsonrpc": "2.0", "method": "no/such" }),
        ),
        (
            "protocol-040",
            json!({ "jsonrpc": "2.0", "method": "$/nope" }),
        ),
        (
            "protocol-044",
            json!({ "jsonrpc": "2.0", "method": "textDocument/didOpen", "params": { "x": 1 } }),
        ),
        (
            "protocol-045",
            json!({ "jsonrpc": "2.0", "id": "nobody", "result": {} }),
        ),
        (
            "protocol-045",
            json!({ "jsonrpc": "2.0", "id": 999, "error": { "code": 1, "message": "x" } }),
        ),
    ] {
        play.client.send(&message);
        play.lives();
        let stray = play
            .client
            .seen
            .iter()
            .find(|message| message.get("method").is_none());
        assert_eq!(stray, None, "{id}");
    }
}

#[test]
fn protocol_009_headers_may_be_in_lower_case_and_more() {
    let scene = Scene::new();
    let mut play = scene.serve(|_| ());
    let body = json!({ "jsonrpc": "2.0", "id": 509, "method": "tandem/doesNotExist" }).to_string();
    let more = "X-Foo: bar\r\nContent-Type: application/vscode-jsonrpc; charset=utf8";
    play.client
        .raw(format!("content-length: {}\r\n{more}\r\n\r\n{body}", body.len()).as_bytes());
    assert_eq!(
        play.client.find(|message| message["id"] == 509)["error"]["code"],
        -32601
    );
    play.lives();
}

#[test]
fn protocol_028_a_line_of_200_megabytes_is_not_stored() {
    let world = World::new(json!([]));
    let (program, mut client) = world.serve(Transport::Acp);
    client.call("initialize", json!({ "protocolVersion": 1 }));
    for _ in 0..200 {
        client.raw(&vec![b'A'; 1 << 20]);
    }
    client.raw(b"\n");
    client.find(|message| message["error"].is_object());
    assert!(program.peak_memory() <= MEMORY, "{}", program.peak_memory());
}

/// These tests' client fails on a second response, so this test reads by itself.
#[test]
fn protocol_047_two_requests_with_one_id_are_answered() {
    let world = World::new(json!([]));
    let (_program, mut writer, mut reader) = world.serve_raw(Transport::Lsp);
    let request = |id: u32, method: &str| {
        frame(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": { "capabilities": {} } }).to_string())
    };
    let all = [
        request(1, "initialize"),
        request(77, "no/such"),
        request(77, "no/such"),
        request(78, "no/such"),
    ]
    .concat();
    std::io::Write::write_all(&mut writer, all.as_bytes()).unwrap();
    let (mut seen, mut bytes) = (String::new(), [0; 4096]);
    while !seen.contains("\"id\":78") {
        let length = reader.read(&mut bytes).unwrap();
        assert!(length > 0, "the end came before the answer: {seen}");
        seen += std::str::from_utf8(&bytes[..length]).unwrap();
    }
    assert!(
        (1..=2).contains(&seen.matches("\"id\":77").count()),
        "{seen}"
    );
}

#[test]
fn protocol_048_two_prompts_at_once_are_both_answered() {
    let scene = Scene::new();
    scene.say(json!([[{ "text": "a" }], [{ "text": "b" }]]));
    let mut play = scene.start("ask");
    let prompts = [play.prompt(), play.prompt()];
    for prompt in prompts {
        assert_eq!(
            play.client.answer(prompt)["result"]["stopReason"],
            "end_turn"
        );
    }
    play.works();
    play.log();
}

#[test]
fn protocol_049_a_request_before_initialize_is_refused() {
    let world = World::new(json!([]));
    let (_program, mut client) = world.serve(Transport::Lsp);
    assert_eq!(
        client.call("tandem/doesNotExist", json!({}))["error"]["code"],
        -32002
    );
    client.shake_hands(world.handshake(json!({ "experimental": { "tandem": {} } })));
    client.session(&world);
}

#[test]
fn protocol_059_a_lost_terminal_ends_the_server() {
    let scene = Scene::new();
    let mut play = scene.serve(|_| ());
    play.program.signal(Signal::HUP);
    play.program.ends();
}

#[test]
fn protocol_060_and_061_many_requests_are_answered_even_if_nobody_reads_for_a_while() {
    for (count, pause) in [(100, 0), (20_000, 1)] {
        let scene = Scene::new();
        let mut play = scene.serve(|_| ());
        let reading = play.client.reading();
        let ids: Vec<i64> = std::thread::scope(|scope| {
            let held = reading.lock().unwrap();
            let client = &mut play.client;
            let asking = scope.spawn(move || {
                (0..count)
                    .map(|_| client.ask("tandem/doesNotExist", json!({})))
                    .collect()
            });
            // The case is that nobody reads, so there is nothing to wait for.
            std::thread::sleep(Duration::from_secs(pause));
            drop(held);
            asking.join().unwrap()
        });
        for id in ids {
            assert_eq!(play.client.answer(id)["error"]["code"], -32601);
        }
        assert!(
            play.program.peak_memory() <= MEMORY,
            "{}",
            play.program.peak_memory()
        );
        play.log();
    }
}
