//! The problems the editor shows: queried by a tool, and reported with the result of an edit that caused them.

use serde_json::{Value, json};

use crate::driver::{Client, World};

/// A client whose plugin can report problems. The end of a turn is not tested here.
fn telling(world: &World) -> Client {
    let mut client = world.stranger();
    let mut hello = world.handshake(
        json!({ "experimental": { "tandem": { "_meta": { "tandem.diagnostics": true } } } }),
    );
    hello["initializationOptions"] = json!({ "finish": { "diagnostics": false } });
    client.shake_hands(hello);
    client
}

fn call(name: &str, arguments: Value) -> Value {
    json!([{ "call": { "id": "c1", "name": name, "arguments": arguments } }])
}

fn edit_one() -> Value {
    call(
        "edit_file",
        json!({ "path": "a.rs", "edits": [{ "old_text": "one", "new_text": "two" }] }),
    )
}

fn problem(line: u32, severity: u8, message: &str) -> Value {
    let at = json!({ "line": line, "character": 0 });
    json!({ "range": { "start": at, "end": at }, "severity": severity, "message": message, "source": "rustc", "code": 308 })
}

fn tell(client: &mut Client, request: &Value, uri: &str, problems: Value) {
    client.respond(
        request,
        json!({ "documents": [{ "uri": uri, "version": 2, "diagnostics": problems }] }),
    );
}

/// A session that edits without asking, with `a.rs` open in the editor.
fn session(client: &mut Client, world: &World) -> String {
    world.write("a.rs", "one\n");
    client.open(&world.uri("a.rs"), "one\n");
    let session = client.session(world);
    client.call(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": "edit" }),
    );
    session
}

/// Acts as the editor for the edit, which puts `two` into `a.rs`.
fn apply(client: &mut Client, world: &World) {
    let request = client.next("workspace/applyEdit");
    let document = json!({ "uri": world.uri("a.rs"), "version": 2 });
    let changes = json!([{ "text": "two\n" }]);
    client.notify(
        "textDocument/didChange",
        json!({ "textDocument": document, "contentChanges": changes }),
    );
    client.respond(&request, json!({ "applied": true }));
}

/// The result of its call, as the model received it.
fn result(world: &World) -> String {
    let last = world.rehearsal().requests().last().unwrap()["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .clone();
    last["content"].as_str().unwrap().to_owned()
}

/// A turn that edits `a.rs`; the server queries the diagnostics before the edit.
fn editing(world: &World) -> (Client, String, i64, Value) {
    let mut client = telling(world);
    let session = session(&mut client, world);
    let prompt = client.prompt(&session, "change it");
    let before = client.next("_tandem/diagnostics");
    (client, session, prompt, before)
}

#[test]
fn edits_report_new_diagnostics_once_they_settle() {
    let world = World::new(json!([edit_one(), [{ "text": "Done." }]]));
    let (mut client, _, prompt, before) = editing(&world);
    let uri = world.uri("a.rs");
    assert_eq!(before["params"], json!({ "uris": [uri], "settled": false }));
    tell(
        &mut client,
        &before,
        &uri,
        json!([problem(0, 1, "old news"), problem(4, 2, "unused")]),
    );
    apply(&mut client, &world);
    let after = client.next("_tandem/diagnostics");
    assert_eq!(after["params"], json!({ "uris": [uri], "settled": true }));
    let now = [
        problem(7, 1, "old news"),
        problem(0, 1, "expected `one`"),
        problem(2, 4, "could be shorter"),
    ];
    tell(&mut client, &after, &uri, json!(now));
    client.answer(prompt);
    let told = result(&world);
    assert!(told.starts_with("Changed a.rs, line 1;"), "{told}");
    let news = "New problems after this change:\na.rs:1: error: expected `one` (rustc 308)\n";
    assert!(
        told.ends_with(news),
        "only what is new, and no hints: {told}"
    );
}

#[test]
fn edits_without_new_diagnostics_report_none() {
    let world = World::new(json!([edit_one(), [{ "text": "Done." }]]));
    let (mut client, _, prompt, before) = editing(&world);
    let uri = world.uri("a.rs");
    tell(
        &mut client,
        &before,
        &uri,
        json!([problem(0, 1, "old news")]),
    );
    apply(&mut client, &world);
    let after = client.next("_tandem/diagnostics");
    tell(&mut client, &after, &uri, json!([]));
    client.answer(prompt);
    assert!(!result(&world).contains("problems"), "{}", result(&world));
}

#[test]
fn an_unresponsive_editor_costs_two_seconds_and_no_error() {
    let world = World::new(json!([edit_one(), [{ "text": "Done." }]]));
    let (mut client, _, prompt, before) = editing(&world);
    tell(&mut client, &before, &world.uri("a.rs"), json!([]));
    apply(&mut client, &world);
    client.next("_tandem/diagnostics");
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");
    assert!(result(&world).starts_with("Changed a.rs"));
}

#[test]
fn cancel_does_not_wait_for_diagnostics() {
    let world = World::new(json!([edit_one()]));
    let (mut client, session, prompt, before) = editing(&world);
    tell(&mut client, &before, &world.uri("a.rs"), json!([]));
    apply(&mut client, &world);
    client.next("_tandem/diagnostics");
    client.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "cancelled");
    let ended = client.find(|message| message["params"]["update"]["status"] == "completed");
    assert_eq!(
        ended["params"]["update"]["toolCallId"], "c1",
        "the edit was made, and its result says so"
    );
}

#[test]
fn closed_files_do_not_wait_for_diagnostics() {
    let world = World::new(json!([edit_one(), [{ "text": "Done." }]]));
    world.write("a.rs", "one\n");
    let mut client = telling(&world);
    let session = client.session(&world);
    client.call(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": "edit" }),
    );
    let prompt = client.prompt(&session, "change it");
    client.answer(prompt);
    assert_eq!(world.read("a.rs"), "two\n");
    assert!(
        client
            .seen
            .iter()
            .all(|message| message["method"] != "_tandem/diagnostics")
    );
}

#[test]
fn the_model_can_ask_for_diagnostics() {
    let world =
        World::new(json!([call("diagnostics", json!({ "path": "src" })), [{ "text": "I see." }]]));
    world.write("src/b.rs", "");
    let mut client = telling(&world);
    let session = client.session(&world);
    let prompt = client.prompt(&session, "what is wrong?");
    let asked = client.next("_tandem/diagnostics");
    assert_eq!(asked["params"], json!({ "uris": [], "settled": false }));
    let document = |uri: String, problems: Value| json!({ "uri": uri, "diagnostics": problems });
    let documents = json!([
        document(
            world.uri("src/b.rs"),
            json!([problem(8, 2, "unused"), problem(9, 1, "mismatched\ntypes")])
        ),
        document(world.uri("a.rs"), json!([problem(0, 1, "elsewhere")])),
        document(
            "file:///etc/other.rs".to_owned(),
            json!([problem(0, 1, "outside")])
        ),
        document(
            "untitled:Untitled-1".to_owned(),
            json!([problem(0, 1, "no file")])
        ),
    ]);
    client.respond(&asked, json!({ "documents": documents }));
    client.answer(prompt);
    let expected = "src/b.rs:10: error: mismatched\n  types (rustc 308)\nsrc/b.rs:9: warning: unused (rustc 308)\n";
    assert_eq!(result(&world), expected);
    let requests = world.rehearsal().requests();
    assert!(
        requests[0].to_string().len() <= 12_288,
        "the first request is {} bytes",
        requests[0].to_string().len()
    );
}

#[test]
fn the_tool_is_offered_only_if_the_editor_supports_it() {
    let world = World::new(json!([[{ "text": "Hello." }]]));
    let mut client = world.client();
    let session = client.session(&world);
    let prompt = client.prompt(&session, "hello");
    client.answer(prompt);
    let tools = world.rehearsal().requests()[0]["tools"].to_string();
    assert!(
        tools.contains("read_file") && !tools.contains("diagnostics"),
        "{tools}"
    );
}
