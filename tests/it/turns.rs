//! What happens around a running turn: questions from its guards, steering, queued prompts.

use serde_json::{Value, json};

use crate::driver::World;

/// Rounds that all make the same call.
fn circles(rounds: u32) -> Value {
    let call = |n: u32| json!({ "call": { "id": format!("c{n}"), "name": "glob", "arguments": { "pattern": "*.x" } } });
    (0..rounds).map(|n| json!([call(n)])).collect()
}

#[test]
fn loop_detection_asks_whether_to_continue() {
    let world = World::new(circles(12));
    let mut client = world.client();
    let session = client.session(&world);
    // No mode answers it without the person.
    client.call(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": "auto" }),
    );
    let id = client.prompt(&session, "look around");
    for option in ["allow_once", "reject_once"] {
        let question = client.next("session/request_permission");
        let call = &question["params"]["toolCall"];
        let title = call["title"].as_str().unwrap();
        assert!(
            title.starts_with("Continue? The turn paused because the model made the same call"),
            "{title}"
        );
        let kinds = question["params"]["options"]
            .as_array()
            .unwrap()
            .iter()
            .map(|option| option["kind"].clone());
        assert_eq!(kinds.collect::<Vec<_>>(), ["allow_once", "reject_once"]);
        let about =
            |message: &Value| message["params"]["update"]["toolCallId"] == call["toolCallId"];
        let announced = client.find(about);
        assert_eq!(announced["params"]["update"]["sessionUpdate"], "tool_call");
        client.respond(
            &question,
            json!({ "outcome": { "outcome": "selected", "optionId": option } }),
        );
        let answered = client.find(about);
        assert_eq!(answered["params"]["update"]["status"], "completed");
    }
    assert_eq!(
        client.answer(id)["result"]["stopReason"],
        "max_turn_requests"
    );
    assert_eq!(world.rehearsal().requests().len(), 8);
}

fn steer(client: &mut crate::driver::Client, session: &str, text: &str) -> i64 {
    let prompt = json!([{ "type": "text", "text": text }]);
    client.ask(
        "_tandem/session/steer",
        json!({ "sessionId": session, "prompt": prompt }),
    )
}

#[test]
fn prompts_are_queued_and_answered_in_order() {
    let world = World::new(
        json!([[{ "gate": "first" }, { "text": "one" }], [{ "text": "two" }], [{ "text": "three" }]]),
    );
    let mut client = world.client();
    let session = client.session(&world);
    let ids = ["a", "b", "c"].map(|text| client.prompt(&session, text));
    for n in [1, 2] {
        let status = client.find(|message| {
            message["method"] == "_tandem/status" && message["params"]["queued"] == n
        });
        assert!(
            status["params"]["message"].is_null(),
            "the fields are not repeated as text: {status}"
        );
    }
    world.rehearsal().open("first");
    for (index, id) in ids.into_iter().enumerate() {
        assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
        let answers = client
            .seen
            .iter()
            .filter(|message| message["result"]["stopReason"].is_string())
            .count();
        assert_eq!(answers, 0, "one turn after the other");
        assert_eq!(
            client.update("agent_message_chunk")["content"]["text"],
            ["one", "two", "three"][index]
        );
        if let Some(next) = ["b", "c"].get(index) {
            assert_eq!(
                client.update("user_message_chunk")["content"]["text"],
                *next
            );
        }
    }
    let last = world.rehearsal().requests()[2]["messages"].to_string();
    assert!(
        last.contains("one") && last.contains("two"),
        "one conversation: {last}"
    );
}

#[test]
fn the_queue_is_bounded() {
    let world = World::new(json!([[{ "gate": "never" }]]));
    let mut client = world.client();
    let session = client.session(&world);
    let ids: Vec<_> = (0..9)
        .map(|n| client.prompt(&session, &n.to_string()))
        .collect();
    world.wait(world.rehearsal().waiting_at("never"));
    let tenth = client.prompt(&session, "too many");
    assert_eq!(client.answer(tenth)["error"]["code"], -32600);
    client.notify("$/cancelRequest", json!({ "id": ids[4] }));
    assert_eq!(
        client.answer(ids[4])["result"]["stopReason"],
        "cancelled",
        "the selected one, immediately"
    );
    client.notify("session/cancel", json!({ "sessionId": session }));
    for (_, id) in ids.into_iter().enumerate().filter(|(index, _)| *index != 4) {
        assert_eq!(client.answer(id)["result"]["stopReason"], "cancelled");
    }
    assert_eq!(
        world.rehearsal().requests().len(),
        1,
        "cancelled prompts are not sent"
    );
}

#[test]
fn cancelling_the_running_request_alone_lets_the_next_prompt_start() {
    let world = World::new(json!([[{ "gate": "never" }], [{ "text": "two" }]]));
    let mut client = world.client();
    let session = client.session(&world);
    let [first, second] = ["a", "b"].map(|text| client.prompt(&session, text));
    world.wait(world.rehearsal().waiting_at("never"));
    client.notify("$/cancelRequest", json!({ "id": first }));
    assert_eq!(client.answer(first)["result"]["stopReason"], "cancelled");
    assert_eq!(client.answer(second)["result"]["stopReason"], "end_turn");
}

#[test]
fn closing_a_session_answers_queued_prompts() {
    let world = World::new(json!([[{ "gate": "never" }]]));
    let mut client = world.client();
    let session = client.session(&world);
    let ids = ["a", "b"].map(|text| client.prompt(&session, text));
    client.call("session/close", json!({ "sessionId": session }));
    assert!(
        ids.into_iter()
            .all(|id| client.answer(id)["result"]["stopReason"] == "cancelled")
    );
}

#[test]
fn a_running_turn_is_steered() {
    let call = json!({ "call": { "id": "c1", "name": "glob", "arguments": { "pattern": "*.x" } } });
    let world = World::new(json!([[call, { "gate": "half" }], [{ "text": "as you say" }]]));
    world.write("small.rs", "let it = small;");
    let mut client = world.acp();
    client.call(
        "initialize",
        json!({ "protocolVersion": 1, "clientCapabilities": {} }),
    );
    let session = client.session(&world);
    let early = steer(&mut client, &session, "nobody listens");
    let answer = client.answer(early);
    assert_eq!(answer["error"]["code"], -32600);
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("session/prompt"),
        "{answer}"
    );
    let id = client.prompt(&session, "look");
    world.wait(world.rehearsal().waiting_at("half"));
    let steered = steer(&mut client, &session, "only @small.rs");
    // The session's own reply shows that the preceding message has arrived.
    client.call(
        "_tandem/review",
        json!({ "sessionId": session, "action": "list" }),
    );
    world.rehearsal().open("half");
    assert_eq!(client.answer(steered)["result"], json!({}));
    assert_eq!(
        client.update("user_message_chunk")["content"]["text"],
        "only @small.rs"
    );
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    let messages = world.rehearsal().requests()[1]["messages"].clone();
    let roles: Vec<_> = messages
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "user"]);
    assert!(
        messages[4]["content"]
            .as_str()
            .unwrap()
            .contains("let it = small;"),
        "{messages}"
    );
}
