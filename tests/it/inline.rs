//! Edits in place: one request without tools, streamed, and stopped immediately when cancelled.

use serde_json::{Value, json};

use crate::driver::{Client, World};

const TEXT: &str = "fn a() {}\nlet é = \"ü\";\nfn b() {}\n";

fn ask(client: &mut Client, uri: &str, instruction: &str) -> i64 {
    let range =
        json!({ "start": { "line": 1, "character": 0 }, "end": { "line": 2, "character": 0 } });
    let params =
        json!({ "textDocument": { "uri": uri }, "range": range, "instruction": instruction });
    client.ask("_tandem/inline", params)
}

fn opened(script: Value) -> (World, Client, String) {
    let world = World::new(script);
    let mut client = world.client();
    let uri = world.uri("a.rs");
    client.open(&uri, TEXT);
    (world, client, uri)
}

#[test]
fn a_range_is_rewritten_by_one_request_without_tools_and_streamed() {
    let (world, mut client, uri) = opened(
        json!([[{ "text": "```rust\nlet x" }, { "gate": "half" }, { "text": " = 1;\n```" }]]),
    );
    let id = ask(&mut client, &uri, "rename it");
    let update = client.next("_tandem/inline/update");
    assert_eq!(update["params"], json!({ "id": id, "text": "let x" }));
    world.rehearsal().open("half");
    assert_eq!(
        client.answer(id)["result"],
        json!({ "text": "let x = 1;\n" })
    );
    let requests = world.rehearsal().requests();
    assert_eq!(requests.len(), 1);
    assert!(requests[0].get("tools").is_none(), "{}", requests[0]);
    let sent = requests[0]["messages"].to_string();
    assert!(
        sent.contains("<selection>let é = \\\"ü\\\";\\n</selection>fn b() {}"),
        "{sent}"
    );
    assert!(
        sent.contains("rename it") && sent.contains("a.rs"),
        "{sent}"
    );
}

#[test]
fn thoughts_that_no_server_separated_are_no_replacement() {
    let thoughts = json!([{ "text": "It wants x.\n" }, { "text": "</think>\nlet x = 1;" }]);
    let (_world, mut client, uri) = opened(json!([thoughts]));
    let id = ask(&mut client, &uri, "rename it");
    assert_eq!(
        client.answer(id)["result"],
        json!({ "text": "let x = 1;\n" })
    );
}

#[test]
fn cancelled_rewrites_close_their_connection() {
    let (world, mut client, uri) =
        opened(json!([[{ "text": "let" }, { "hang": true }], [{ "text": "let y;" }]]));
    let id = ask(&mut client, &uri, "rename it");
    client.next("_tandem/inline/update");
    client.notify("$/cancelRequest", json!({ "id": id }));
    assert_eq!(client.answer(id)["error"]["code"], -32800);
    world.wait(world.rehearsal().closed_early(1));
    let again = ask(&mut client, &uri, "try again");
    assert_eq!(client.answer(again)["result"]["text"], "let y;\n");
}

#[test]
fn impossible_rewrites_are_refused_with_a_reason() {
    let (world, mut client, uri) = opened(json!([
        [{ "status": 401, "body": { "error": { "message": "no" } } }],
        [],
        [{ "text": "let x" }, { "finish": "length" }],
    ]));
    let elsewhere = ask(&mut client, &world.uri("closed.rs"), "rename it");
    assert!(
        client.answer(elsewhere)["error"]["message"]
            .as_str()
            .unwrap()
            .contains("is not open")
    );
    let empty = ask(&mut client, &uri, " ");
    assert!(
        client.answer(empty)["error"]["message"]
            .as_str()
            .unwrap()
            .contains("`instruction` is empty")
    );
    assert!(world.rehearsal().requests().is_empty());
    let refused = ask(&mut client, &uri, "rename it");
    assert_eq!(client.answer(refused)["error"]["data"]["code"], "auth");
    let nothing = ask(&mut client, &uri, "rename it");
    assert!(
        client.answer(nothing)["error"]["message"]
            .as_str()
            .unwrap()
            .contains("answer was empty")
    );
    let half = ask(&mut client, &uri, "rename it");
    assert!(
        client.answer(half)["error"]["message"]
            .as_str()
            .unwrap()
            .contains("cut off")
    );
}

const AFTER: &str = "fn a() {}\nlet x = 1;\nfn b() {}\n";

/// The person keeps the change of the second line, which the client applies.
fn keep(client: &mut Client, session: &str, uri: &str) -> i64 {
    let document = json!({ "uri": uri, "version": 2 });
    client.notify(
        "textDocument/didChange",
        json!({ "textDocument": document, "contentChanges": [{ "text": AFTER }] }),
    );
    let kept = json!({ "sessionId": session, "textDocument": { "uri": uri }, "instruction": "rename it",
        "before": TEXT, "after": AFTER });
    client.ask("_tandem/inline/keep", kept)
}

fn review(client: &mut Client, session: &str, action: &str) -> i64 {
    client.ask(
        "_tandem/review",
        json!({ "sessionId": session, "action": action }),
    )
}

/// The messages of the last request.
fn last_messages(world: &World) -> Vec<Value> {
    world.rehearsal().requests().pop().unwrap()["messages"]
        .as_array()
        .unwrap()
        .clone()
}

/// The updates that show the edit: who requested it in which turn, and what changed.
fn shown(client: &mut Client) -> (Value, Value) {
    let asked = client.update("user_message_chunk");
    let edited = client.find(|message| {
        let update = &message["params"]["update"];
        update["sessionUpdate"] == "tool_call_update" && update["status"] == "completed"
    });
    assert_eq!(
        client.update("agent_message_chunk")["content"]["text"],
        "Edited in place."
    );
    (asked, edited["params"]["update"]["content"][0].clone())
}

#[test]
fn a_kept_edit_is_a_turn_that_can_be_rejected_and_the_model_learns_of_both() {
    let (world, mut client, uri) = opened(json!([[{ "text": "I see." }], [{ "text": "Again." }]]));
    let session = client.session(&world);
    let kept = keep(&mut client, &session, &uri);
    assert_eq!(client.answer(kept)["result"], json!({ "turn": 1 }));
    let (asked, edited) = shown(&mut client);
    assert_eq!(
        (&asked["content"]["text"], &asked["_meta"]["tandem/turn"]),
        (&json!("rename it"), &json!(1))
    );
    assert_eq!(
        (&edited["oldText"], &edited["newText"]),
        (&json!(TEXT), &json!(AFTER))
    );
    let listed = review(&mut client, &session, "list");
    let turns = client.answer(listed)["result"]["turns"].clone();
    assert_eq!(
        turns[0]["files"][0]["hunks"][0]["oldText"], "let é = \"ü\";\n",
        "{turns}"
    );

    let question = client.prompt(&session, "what did I change?");
    client.answer(question);
    let messages = last_messages(&world);
    let roles: Vec<_> = messages
        .iter()
        .map(|message| message["role"].clone())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
    let told = messages[1].to_string();
    assert!(
        told.contains("rename it") && told.contains("inline edit") && told.contains("+let x = 1;"),
        "{told}"
    );

    let rejected = review(&mut client, &session, "reject");
    let request = client.next("workspace/applyEdit");
    let document = json!({ "uri": uri, "version": 3 });
    client.notify(
        "textDocument/didChange",
        json!({ "textDocument": document, "contentChanges": [{ "text": TEXT }] }),
    );
    client.respond(&request, json!({ "applied": true }));
    assert!(request["params"].to_string().contains("é = "), "{request}");
    assert_eq!(client.answer(rejected)["result"]["turns"], json!([]));
    let question = client.prompt(&session, "and now?");
    client.answer(question);
    let told = last_messages(&world).pop().unwrap().to_string();
    assert!(
        told.contains("(the user rejected these changes of yours: a.rs)"),
        "{told}"
    );
}

#[test]
fn a_kept_edit_follows_the_running_turn() {
    let (world, mut client, uri) =
        opened(json!([[{ "text": "Half" }, { "gate": "half" }, { "text": " done." }]]));
    let session = client.session(&world);
    let running = client.prompt(&session, "explain");
    client.update("agent_message_chunk");
    let kept = keep(&mut client, &session, &uri);
    let listed = review(&mut client, &session, "list");
    assert_eq!(client.answer(listed)["result"]["turns"], json!([]));
    world.rehearsal().open("half");
    assert_eq!(client.answer(running)["result"]["stopReason"], "end_turn");
    assert_eq!(client.answer(kept)["result"], json!({ "turn": 2 }));
    let listed = review(&mut client, &session, "list");
    assert_eq!(client.answer(listed)["result"]["turns"][0]["turn"], 2);
}

#[test]
fn a_kept_edit_is_shown_and_undone_in_another_process() {
    let (world, mut first, uri) = opened(json!([[{ "text": "Noted." }]]));
    world.write("a.rs", AFTER);
    let session = first.session(&world);
    let kept = keep(&mut first, &session, &uri);
    first.answer(kept);
    let before = shown(&mut first);
    first.end();

    let mut second = world.client();
    second.call(
        "session/load",
        json!({ "sessionId": session, "cwd": world.path(), "mcpServers": [] }),
    );
    assert_eq!(shown(&mut second), before);
    let undone = review(&mut second, &session, "undo");
    assert_eq!(
        second.answer(undone)["result"]["message"],
        "undid “rename it”: a.rs"
    );
    assert_eq!(world.read("a.rs"), TEXT);
    let restored = second.call(
        "_tandem/review",
        json!({ "sessionId": session, "action": "restore", "turn": 1 }),
    );
    assert_eq!(restored["result"]["cutFrom"], 1, "{restored}");
    let question = second.prompt(&session, "hello");
    second.answer(question);
    let messages = last_messages(&world);
    assert_eq!(
        messages.len(),
        2,
        "the conversation begins again: {messages:?}"
    );
}

#[test]
fn edits_that_cannot_be_recorded_are_refused_with_a_reason() {
    let (world, mut client, _) = opened(json!([]));
    let session = client.session(&world);
    for (session, uri, reason) in [
        (
            &*session,
            "untitled:Untitled-1",
            "untitled:Untitled-1 is not a file",
        ),
        (&*session, "file:///etc/passwd", "/etc/passwd"),
        ("none", "file:///etc/passwd", "session"),
    ] {
        let kept = keep(&mut client, session, uri);
        let refused = client.answer(kept)["error"]["message"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(refused.contains(reason), "{refused}");
    }
    let listed = review(&mut client, &session, "list");
    assert_eq!(client.answer(listed)["result"]["turns"], json!([]));
}
