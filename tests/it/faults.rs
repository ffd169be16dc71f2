//! Failures around the server: each is explained to the person, and the next prompt works.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tandem::server::Transport;

use crate::driver::{Client, World, call, free_port};

/// A base URL on this machine on which nothing listens.
pub fn dead_address() -> String {
    format!("http://127.0.0.1:{}/v1", free_port())
}

fn edit(path: &str) -> Value {
    call(
        "e",
        "edit_file",
        json!({ "path": path, "edits": [{ "old_text": "one", "new_text": "two" }] }),
    )
}

fn status(code: u16, retry_after: &str, body: Value) -> Value {
    json!([{ "status": code, "headers": { "Retry-After": retry_after }, "body": body }])
}

/// Sends a prompt and returns the error that answers it.
fn fails(client: &mut Client, session: &str) -> Value {
    let id = client.prompt(session, "hi");
    let answer = client.answer(id);
    assert!(answer["error"]["message"].is_string(), "{answer}");
    answer["error"].clone()
}

/// Sends a prompt and expects an answer.
fn works(client: &mut Client, session: &str) {
    let id = client.prompt(session, "hi");
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
}

/// The results of its calls that the model received in its request number `n`.
fn told(world: &World, n: usize) -> String {
    world.rehearsal().requests()[n]["messages"].to_string()
}

/// The words a status line has shown, in order.
fn shown(client: &Client) -> Vec<String> {
    let statuses = client
        .seen
        .iter()
        .filter(|message| message["method"] == "_tandem/status");
    statuses
        .filter_map(|message| message["params"]["message"].as_str().map(str::to_owned))
        .collect()
}

#[test]
fn an_unreachable_endpoint_is_retried_visibly_and_named_with_a_remedy() {
    let world = World::new(json!([]));
    let address = dead_address();
    let environment = [
        ("TANDEM_MODEL", "scripted"),
        ("TANDEM_BASE_URL", address.as_str()),
    ];
    let mut client = world.stranger_on(Transport::Lsp, &environment);
    client.shake_hands(world.handshake(json!({ "experimental": { "tandem": {} } })));
    let session = client.session(&world);
    let error = fails(&mut client, &session);
    assert_eq!(
        error["data"],
        json!({ "code": "network", "retryable": true })
    );
    let words = error["message"].as_str().unwrap();
    assert!(
        words.contains(&address) && words.contains("refused") && words.contains("check"),
        "{words}"
    );
    let tries = shown(&client)
        .iter()
        .filter(|words| words.contains("retrying after"))
        .count();
    assert_eq!(tries, 4, "{:?}", shown(&client));
}

#[test]
fn prompts_waiting_for_an_endpoint_can_be_cancelled() {
    let world = World::new(json!([status(
        503,
        "30",
        json!({ "error": { "message": "restarting" } })
    )]));
    let mut client = world.client();
    let session = client.session(&world);
    let id = client.prompt(&session, "hi");
    let waits = client.find(|message| {
        message["params"]["message"]
            .as_str()
            .is_some_and(|m| m.contains("30 s"))
    });
    assert!(
        waits["params"]["message"]
            .as_str()
            .unwrap()
            .contains("restarting"),
        "{waits}"
    );
    client.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(client.answer(id)["result"]["stopReason"], "cancelled");
}

#[test]
fn rate_limits_wait_as_long_as_the_server_asks() {
    let slow_down = json!({ "error": { "message": "slow down" } });
    let world = World::new(json!([status(429, "1", slow_down), [{ "text": "welcome" }]]));
    let mut client = world.client();
    let session = client.session(&world);
    let begun = Instant::now();
    works(&mut client, &session);
    assert!(
        begun.elapsed() >= Duration::from_secs(1),
        "it came back after {:?}",
        begun.elapsed()
    );
    assert_eq!(client.text(), "welcome");
    let shown = shown(&client);
    assert!(
        shown
            .iter()
            .any(|words| words.contains("slow down") && words.contains("retrying after 1 s")),
        "{shown:?}"
    );
}

#[test]
fn persistent_overload_is_an_error_and_the_next_prompt_works() {
    let overloaded = status(529, "0", json!({ "error": { "message": "overloaded" } }));
    let mut script = vec![overloaded; 5];
    script.push(json!([{ "text": "back" }]));
    let world = World::new(Value::Array(script));
    let mut client = world.client();
    let session = client.session(&world);
    let error = fails(&mut client, &session);
    assert_eq!(
        (&error["data"]["code"], &error["data"]["retryable"]),
        (&json!("overloaded"), &json!(true)),
        "{error}"
    );
    assert_eq!(world.rehearsal().requests().len(), 5);
    works(&mut client, &session);
    assert_eq!(client.text(), "back");
}

#[test]
fn too_long_waits_are_reported_instead() {
    let world = World::new(json!([status(
        429,
        "3600",
        json!({ "error": { "message": "come back later" } })
    )]));
    let mut client = world.client();
    let session = client.session(&world);
    let error = fails(&mut client, &session);
    assert_eq!(
        (&error["data"]["code"], &error["data"]["status"]),
        (&json!("rate_limit"), &json!(429)),
        "{error}"
    );
    assert!(
        error["message"].as_str().unwrap().contains("3600 s"),
        "{error}"
    );
}

#[test]
fn truncated_answers_keep_their_text_without_repeating_it() {
    let world =
        World::new(json!([[{ "text": "half an" }, { "cut": true }], [{ "text": " answer" }]]));
    let mut client = world.client();
    let session = client.session(&world);
    let error = fails(&mut client, &session);
    assert_eq!(error["data"]["code"], "truncated", "{error}");
    assert_eq!(client.text(), "half an");
    works(&mut client, &session);
    assert_eq!(client.text(), "half an answer");
    assert_eq!(world.rehearsal().requests().len(), 2);
}

#[test]
fn silent_servers_time_out_as_configured() {
    let world = World::new(json!([[{ "text": "half" }, { "hang": true }], [{ "text": "back" }]]));
    world.write(".home/config/config.toml", "[limits]\nidle-timeout = 1\n");
    let mut client = world.client();
    let session = client.session(&world);
    let error = fails(&mut client, &session);
    assert_eq!(error["data"]["code"], "timeout", "{error}");
    world.wait(world.rehearsal().closed_early(1));
    works(&mut client, &session);
}

#[test]
fn a_web_page_instead_of_a_stream_is_quoted() {
    let page = json!([{ "status": 200, "body": "<html><title>Captive portal</title></html>" }]);
    let world = World::new(json!([page, [{ "text": "back" }]]));
    let mut client = world.client();
    let session = client.session(&world);
    let error = fails(&mut client, &session);
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("Captive portal"),
        "{error}"
    );
    works(&mut client, &session);
}

#[test]
fn a_file_deleted_between_read_and_edit_is_reported_to_the_model() {
    let read = call("r", "read_file", json!({ "path": "a.txt" }));
    let world = World::new(
        json!([[read], [{ "gate": "gone" }, edit("a.txt")], [{ "text": "it is gone" }]]),
    );
    world.write("a.txt", "one\n");
    let mut client = world.client();
    let session = client.session(&world);
    let id = client.prompt(&session, "change it");
    world.wait(world.rehearsal().waiting_at("gone"));
    std::fs::remove_file(world.path().join("a.txt")).unwrap();
    world.rehearsal().open("gone");
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    assert!(
        told(&world, 2).contains("a.txt does not exist"),
        "{}",
        told(&world, 2)
    );
    assert!(!world.path().join("a.txt").exists());
    let failed = client.find(|message| message["params"]["update"]["status"] == "failed");
    assert_eq!(failed["params"]["update"]["toolCallId"], "e");
}

#[test]
fn a_file_deleted_during_a_permission_request_is_not_recreated() {
    let world = World::new(json!([[edit("a.txt")], [{ "text": "it is gone" }]]));
    world.write("a.txt", "one\n");
    let mut client = world.client();
    let session = client.session(&world);
    let id = client.prompt(&session, "change it");
    let question = client.next("session/request_permission");
    std::fs::remove_file(world.path().join("a.txt")).unwrap();
    client.respond(
        &question,
        json!({ "outcome": { "outcome": "selected", "optionId": "allow_once" } }),
    );
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    assert!(!world.path().join("a.txt").exists());
    assert!(told(&world, 1).contains("a.txt"), "{}", told(&world, 1));
    client.find(|message| message["params"]["update"]["status"] == "failed");
}

#[test]
fn binary_files_are_neither_read_nor_edited() {
    let read = call("r", "read_file", json!({ "path": "a.bin" }));
    let world = World::new(json!([[read, edit("a.bin")], [{ "text": "not for me" }]]));
    let bytes = b"one\0\x01\x02\xff";
    std::fs::write(world.path().join("a.bin"), bytes).unwrap();
    let mut client = world.client();
    let session = client.session(&world);
    works(&mut client, &session);
    assert_eq!(
        told(&world, 1)
            .matches("a.bin is a binary file of 7 bytes")
            .count(),
        2,
        "{}",
        told(&world, 1)
    );
    assert_eq!(std::fs::read(world.path().join("a.bin")).unwrap(), bytes);
}

#[test]
fn edits_refused_by_the_editor_are_reported_to_the_model() {
    let world = World::new(json!([[edit("a.rs")], [{ "text": "a pity" }], [{ "text": "fine" }]]));
    world.write("a.rs", "on disk\n");
    let mut client = world.client();
    client.open(&world.uri("a.rs"), "one\n");
    let session = client.session(&world);
    client.call(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": "edit" }),
    );
    let id = client.prompt(&session, "change it");
    loop {
        let is_answer = |message: &Value| message.get("method").is_none() && message["id"] == id;
        let message =
            client.find(|message| is_answer(message) || message["method"] == "workspace/applyEdit");
        if is_answer(&message) {
            client.seen.push_back(message);
            break;
        }
        client.respond(
            &message,
            json!({ "applied": false, "failureReason": "the buffer is read-only" }),
        );
    }
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    assert!(
        told(&world, 1).contains("the buffer is read-only"),
        "{}",
        told(&world, 1)
    );
    assert_eq!(
        world.read("a.rs"),
        "on disk\n",
        "never behind the editor's back"
    );
    works(&mut client, &session);
}

#[test]
fn configuration_mistakes_are_located_and_prompts_still_work() {
    let world = World::new(json!([[{ "text": "hello" }]]));
    world.write(
        ".home/config/config.toml",
        "mode = \"edit\"\n\n[limits]\nitertions = 5\n",
    );
    let mut client = world.client();
    let message = client.next("window/showMessage");
    let words = message["params"]["message"].as_str().unwrap();
    for word in ["config.toml:4", "limits.itertions", "iterations"] {
        assert!(words.contains(word), "{word} is missing in {words}");
    }
    let session = client.session(&world);
    works(&mut client, &session);
    let again = client
        .seen
        .iter()
        .filter(|message| message["method"] == "window/showMessage")
        .count();
    assert_eq!(again, 0, "a mistake is reported once");
}

#[test]
fn broken_toml_is_located_and_prompts_still_work() {
    let world = World::new(json!([[{ "text": "hello" }]]));
    world.write(
        ".home/config/config.toml",
        "mode = \"ask\"\nmodel = \"unclosed\n",
    );
    let mut client = world.client();
    let message = client.next("window/showMessage");
    assert!(
        message["params"]["message"]
            .as_str()
            .unwrap()
            .contains("config.toml:2"),
        "{message}"
    );
    let session = client.session(&world);
    works(&mut client, &session);
}
