//! Stopping a turn: everything stops, every update is flushed, then the prompt is answered.

use serde_json::json;

use crate::driver::World;

#[test]
fn cancel_answers_cancelled_after_flushing_updates_and_closes_the_socket() {
    let world = World::new(json!([[{ "text": "partial" }, { "gate": "never" }]]));
    let mut client = world.client();
    let session = client.session(&world);
    let id = client.prompt(&session, "hi");
    assert_eq!(
        client.update("agent_message_chunk")["content"]["text"],
        "partial"
    );
    client.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(client.answer(id)["result"]["stopReason"], "cancelled");
    world.wait(world.rehearsal().closed_early(1));
}

#[test]
fn cancelling_the_request_of_a_prompt_cancels_the_turn() {
    let world = World::new(json!([[{ "gate": "never" }]]));
    let mut client = world.client();
    let session = client.session(&world);
    let id = client.prompt(&session, "hi");
    world.wait(world.rehearsal().waiting_at("never"));
    client.notify("$/cancelRequest", json!({ "id": id }));
    assert_eq!(client.answer(id)["result"]["stopReason"], "cancelled");
}

#[test]
fn cancel_during_a_permission_request_ends_the_call() {
    let call = json!({ "call": { "id": "c1", "name": "write_file", "arguments": { "path": "a.txt", "content": "x" } } });
    let world = World::new(json!([[call], [{ "text": "fine" }]]));
    let mut client = world.client();
    let session = client.session(&world);
    let id = client.prompt(&session, "write");
    let question = client.next("session/request_permission");
    client.notify("session/cancel", json!({ "sessionId": session }));
    client.respond(&question, json!({ "outcome": { "outcome": "cancelled" } }));
    assert_eq!(client.answer(id)["result"]["stopReason"], "cancelled");
    assert!(!world.path().join("a.txt").exists());
    let id = client.prompt(&session, "go on");
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    let messages = world.rehearsal().requests()[1]["messages"].clone();
    let results = messages
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "tool")
        .count();
    assert_eq!(
        results, 1,
        "the cancelled call has its one result: {messages:#}"
    );
}

#[test]
fn a_cancelled_permission_outcome_ends_the_turn_immediately() {
    let call = json!({ "call": { "id": "c1", "name": "write_file", "arguments": { "path": "a.txt", "content": "x" } } });
    let world = World::new(json!([[call], [{ "text": "never asked for" }]]));
    let mut client = world.client();
    let session = client.session(&world);
    let id = client.prompt(&session, "write");
    let question = client.next("session/request_permission");
    client.respond(&question, json!({ "outcome": { "outcome": "cancelled" } }));
    assert_eq!(client.answer(id)["result"]["stopReason"], "cancelled");
    assert_eq!(world.rehearsal().requests().len(), 1);
}

#[test]
fn closing_the_input_during_a_turn_ends_the_server() {
    let world = World::new(json!([[{ "gate": "never" }]]));
    let mut client = world.client();
    let session = client.session(&world);
    client.prompt(&session, "hi");
    world.wait(world.rehearsal().waiting_at("never"));
    assert_eq!(client.end(), tandem::server::Ended::Well);
    world.wait(world.rehearsal().closed_early(1));
}
