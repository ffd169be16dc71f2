//! Edits in place: one request without tools, streamed, and stopped where it is cancelled.

use serde_json::{Value, json};

use crate::driver::{Client, World};

const TEXT: &str = "fn a() {}\nlet é = \"ü\";\nfn b() {}\n";

fn ask(client: &mut Client, uri: &str, instruction: &str) -> i64 {
    let range = json!({ "start": { "line": 1, "character": 0 }, "end": { "line": 2, "character": 0 } });
    let params = json!({ "textDocument": { "uri": uri }, "range": range, "instruction": instruction });
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
    let (world, mut client, uri) =
        opened(json!([[{ "text": "```rust\nlet x" }, { "gate": "half" }, { "text": " = 1;\n```" }]]));
    let id = ask(&mut client, &uri, "rename it");
    let update = client.next("_tandem/inline/update");
    assert_eq!(update["params"], json!({ "id": id, "text": "let x" }));
    world.rehearsal().open("half");
    assert_eq!(client.answer(id)["result"], json!({ "text": "let x = 1;\n" }));
    let requests = world.rehearsal().requests();
    assert_eq!(requests.len(), 1);
    assert!(requests[0].get("tools").is_none(), "{}", requests[0]);
    let sent = requests[0]["messages"].to_string();
    assert!(sent.contains("<selection>let é = \\\"ü\\\";\\n</selection>fn b() {}"), "{sent}");
    assert!(sent.contains("rename it") && sent.contains("a.rs"), "{sent}");
}

#[test]
fn cancelled_rewrites_close_their_connection() {
    let (world, mut client, uri) = opened(json!([[{ "text": "let" }, { "hang": true }], [{ "text": "let y;" }]]));
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
    let (world, mut client, uri) = opened(json!([[{ "status": 401, "body": { "error": { "message": "no" } } }], []]));
    let elsewhere = ask(&mut client, &world.uri("closed.rs"), "rename it");
    assert!(client.answer(elsewhere)["error"]["message"].as_str().unwrap().contains("is not open"));
    let empty = ask(&mut client, &uri, " ");
    assert!(client.answer(empty)["error"]["message"].as_str().unwrap().contains("`instruction` is empty"));
    assert!(world.rehearsal().requests().is_empty());
    let refused = ask(&mut client, &uri, "rename it");
    assert_eq!(client.answer(refused)["error"]["data"]["code"], "auth");
    let nothing = ask(&mut client, &uri, "rename it");
    assert!(client.answer(nothing)["error"]["message"].as_str().unwrap().contains("answer was empty"));
}
