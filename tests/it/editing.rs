//! Tools that read and change files: buffers before disk, permission before change.

use serde_json::{Value, json};

use crate::driver::{Client, World, call};

fn edit(path: &str, old: &str, new: &str) -> Value {
    call("c1", "edit_file", json!({ "path": path, "edits": [{ "old_text": old, "new_text": new }] }))
}

fn allow(client: &mut Client) -> Value {
    let question = client.next("session/request_permission");
    client.respond(&question, json!({ "outcome": { "outcome": "selected", "optionId": "allow_once" } }));
    question["params"].clone()
}

/// Takes the server's edit and plays it back as an editor does: the change first, then the answer.
fn apply(client: &mut Client, uri: &str, text: &str) -> Value {
    let request = client.next("workspace/applyEdit");
    let change = &request["params"]["edit"]["documentChanges"][0];
    let version = change["textDocument"]["version"].as_i64().unwrap_or(1) + 1;
    let document = json!({ "uri": uri, "version": version });
    client.notify("textDocument/didChange", json!({ "textDocument": document, "contentChanges": [{ "text": text }] }));
    client.respond(&request, json!({ "applied": true }));
    change.clone()
}

#[test]
fn diffs_of_large_files_show_the_changed_region() {
    let world = World::new(json!([[edit("big.txt", "the only one", "the one")], [{ "text": "done" }]]));
    let lines = |special: &str| format!("{}{special} here\n{}", "before\n".repeat(30_000), "after\n".repeat(30_000));
    world.write("big.txt", &lines("the only one"));
    let mut client = world.client();
    let session = client.session(&world);
    let id = client.prompt(&session, "change it");
    let question = allow(&mut client);
    let shown = |special: &str| format!("{}{special} here\n{}", "before\n".repeat(50), "after\n".repeat(50));
    let diff = &question["toolCall"]["content"][0];
    assert_eq!((&diff["oldText"], &diff["newText"]), (&json!(shown("the only one")), &json!(shown("the one"))));
    assert_eq!(diff["_meta"]["tandem/skippedLines"], 29_950);
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    assert_eq!(world.read("big.txt"), lines("the one"));
}

#[test]
fn edits_of_open_documents_go_to_the_buffer() {
    let world = World::new(json!([[edit("a.rs", "let x = 1;", "let x = 2;")], [{ "text": "done" }]]));
    world.write("a.rs", "// on disk\n");
    let mut client = world.client();
    let uri = world.uri("a.rs");
    client.open(&uri, "// typed, not saved\nlet x = 1;\n");
    let session = client.session(&world);
    let id = client.prompt(&session, "change it");
    let question = allow(&mut client);
    assert_eq!(question["toolCall"]["kind"], "edit");
    let diff = &question["toolCall"]["content"][0];
    assert_eq!(diff["type"], "diff");
    assert_eq!(diff["path"], json!(world.path().join("a.rs")));
    assert_eq!(diff["newText"], "// typed, not saved\nlet x = 2;\n");
    let change = apply(&mut client, &uri, "// typed, not saved\nlet x = 2;\n");
    assert_eq!(change["textDocument"]["version"], 1);
    assert_eq!(change["edits"].as_array().unwrap().len(), 1);
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    assert_eq!(world.read("a.rs"), "// on disk\n", "the disk is the person's to write");
}

#[test]
fn edits_of_closed_files_go_to_disk() {
    let world = World::new(json!([[edit("a.rs", "one", "two")], [{ "text": "done" }]]));
    world.write("a.rs", "one\r\nmore\r\n");
    let mut client = world.client();
    let session = client.session(&world);
    let id = client.prompt(&session, "change it");
    allow(&mut client);
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    assert_eq!(world.read("a.rs"), "two\r\nmore\r\n");
}

#[test]
fn a_diff_is_shown_while_the_arguments_stream() {
    let mut step = call("c1", "write_file", json!({ "path": "new.txt", "content": "first line\nsecond line\n" }));
    step["fragments"] = 3.into();
    let gated = json!([[{ "text": "writing" }, step], [{ "text": "done" }]]);
    let world = World::new(gated);
    let mut client = world.client();
    let session = client.session(&world);
    let id = client.prompt(&session, "write");
    let announced = client.update("tool_call");
    assert_eq!(announced["toolCallId"], "c1");
    assert_eq!(announced["kind"], "edit");
    let shown = client.find(|message| message["params"]["update"]["content"][0]["type"] == "diff");
    assert_eq!(shown["params"]["update"]["toolCallId"], "c1");
    allow(&mut client);
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    assert_eq!(world.read("new.txt"), "first line\nsecond line\n");
}

#[test]
fn rejected_edits_change_nothing_and_are_reported_to_the_model() {
    let world = World::new(json!([[edit("a.rs", "one", "two")], [{ "text": "as you wish" }]]));
    world.write("a.rs", "one\n");
    let mut client = world.client();
    let session = client.session(&world);
    let id = client.prompt(&session, "change it");
    let question = client.next("session/request_permission");
    client.respond(&question, json!({ "outcome": { "outcome": "selected", "optionId": "reject_once" } }));
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    assert_eq!(world.read("a.rs"), "one\n");
    let failed = client.find(|message| message["params"]["update"]["status"] == "failed");
    let update = &failed["params"]["update"];
    assert_eq!(update["toolCallId"], "c1");
    let content = update["content"].as_array().unwrap();
    assert_eq!(content[0]["newText"], "two\n", "what was refused is still to be seen: {update:#}");
    assert!(content[1]["content"]["text"].as_str().unwrap().starts_with("the user said no"), "{update:#}");
    let messages = world.rehearsal().requests()[1]["messages"].to_string();
    assert!(messages.contains("the user said no"), "{messages}");
}

#[test]
fn plan_mode_refuses_changes_without_asking() {
    let world = World::new(json!([[edit("a.rs", "one", "two")], [{ "text": "a plan" }]]));
    world.write("a.rs", "one\n");
    let mut client = world.client();
    let session = client.session(&world);
    client.call("session/set_mode", json!({ "sessionId": session, "modeId": "plan" }));
    let id = client.prompt(&session, "change it");
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    assert_eq!(world.read("a.rs"), "one\n");
    assert!(client.seen.iter().all(|message| message["method"] != "session/request_permission"));
}

#[test]
fn edit_mode_changes_files_without_asking() {
    let world = World::new(json!([[edit("a.rs", "one", "two")], [{ "text": "done" }]]));
    world.write("a.rs", "one\n");
    let mut client = world.client();
    let session = client.session(&world);
    client.call("session/set_mode", json!({ "sessionId": session, "modeId": "edit" }));
    let id = client.prompt(&session, "change it");
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    assert_eq!(world.read("a.rs"), "two\n");
}

#[test]
fn reading_sees_the_unsaved_buffer() {
    let world = World::new(json!([[call("c1", "read_file", json!({ "path": "a.rs" }))], [{ "text": "seen" }]]));
    world.write("a.rs", "on disk\n");
    let mut client = world.client();
    client.open(&world.uri("a.rs"), "typed but not saved\n");
    let session = client.session(&world);
    let id = client.prompt(&session, "read it");
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    let messages = world.rehearsal().requests()[1]["messages"].to_string();
    assert!(messages.contains("typed but not saved") && !messages.contains("on disk"), "{messages}");
}

#[test]
fn outside_paths_are_reported_to_the_model() {
    let outside = call("c1", "read_file", json!({ "path": "../../etc/passwd" }));
    let world = World::new(json!([[outside, call("c2", "no_such_tool", json!({}))], [{ "text": "sorry" }]]));
    let mut client = world.client();
    let session = client.session(&world);
    let id = client.prompt(&session, "read it");
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    let messages = world.rehearsal().requests()[1]["messages"].to_string();
    assert!(messages.contains("outside"), "{messages}");
    assert!(messages.contains("unknown tool"), "{messages}");
}
