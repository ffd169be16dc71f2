//! The Agent Client Protocol's own carrier: one message a line, the same sessions behind it.

use serde_json::json;
use tandem::server::Ended;

use crate::driver::World;

#[test]
fn a_conversation_over_lines() {
    let call =
        json!({ "call": { "id": "c1", "name": "write_file", "arguments": { "path": "a.txt", "content": "hi\n" } } });
    let world = World::new(json!([[call], [{ "text": "written" }]]));
    let mut client = world.acp();
    let answer = client.call("initialize", json!({ "protocolVersion": 1, "clientCapabilities": {} }));
    assert_eq!(answer["result"]["protocolVersion"], 1);
    assert_eq!(answer["result"]["agentInfo"]["name"], "tandem");
    let session = client.session(&world);
    let id = client.prompt(&session, "write");
    let question = client.next("session/request_permission");
    client.respond(&question, json!({ "outcome": { "outcome": "selected", "optionId": "allow_once" } }));
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    assert_eq!(client.text(), "written");
    assert_eq!(world.read("a.txt"), "hi\n");
    assert!(client.seen.iter().all(|message| message["method"] != "_tandem/status"), "clients of ACP know no status");
}

#[test]
fn a_later_version_is_answered_with_ours() {
    let world = World::new(json!([]));
    let mut client = world.acp();
    let answer = client.call("initialize", json!({ "protocolVersion": 7 }));
    assert_eq!(answer["result"]["protocolVersion"], 1);
}

#[test]
fn a_relative_folder_is_refused_and_missing_mcp_servers_are_none() {
    let world = World::new(json!([]));
    let mut client = world.acp();
    client.call("initialize", json!({ "protocolVersion": 1 }));
    let refused = client.call("session/new", json!({ "cwd": "src" }));
    assert_eq!(refused["error"]["code"], -32602);
    assert!(refused["error"]["message"].as_str().unwrap().contains("absolute"), "{refused}");
    let answer = client.call("session/new", json!({ "cwd": world.path() }));
    assert!(answer["result"]["sessionId"].is_string(), "{answer}");
}

#[test]
fn a_bad_line_is_answered_and_the_next_one_works() {
    let world = World::new(json!([]));
    let mut client = world.acp();
    client.raw(b"not json\n");
    assert_eq!(client.find(|message| message["error"]["code"] == -32700)["id"], json!(null));
    client.call("initialize", json!({ "protocolVersion": 1 }));
    assert_eq!(client.end(), Ended::Well);
}
