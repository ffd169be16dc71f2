//! What happens around a running turn: questions of its guards, steering, prompts that wait.

use serde_json::{Value, json};

use crate::driver::World;

/// Rounds that all make the same call.
fn circles(rounds: u32) -> Value {
    let call = |n: u32| json!({ "call": { "id": format!("c{n}"), "name": "glob", "arguments": { "pattern": "*.x" } } });
    (0..rounds).map(|n| json!([call(n)])).collect()
}

#[test]
fn a_guard_asks_whether_the_turn_goes_on() {
    let world = World::new(circles(12));
    let mut client = world.client();
    let session = client.session(&world);
    // In no mode is it answered without the person.
    client.call("session/set_mode", json!({ "sessionId": session, "modeId": "auto" }));
    let id = client.prompt(&session, "look around");
    for option in ["allow_once", "reject_once"] {
        let question = client.next("session/request_permission");
        let call = &question["params"]["toolCall"];
        let title = call["title"].as_str().unwrap();
        assert!(title.starts_with("Go on? The turn stopped because the model made the same call"), "{title}");
        let kinds = question["params"]["options"].as_array().unwrap().iter().map(|option| option["kind"].clone());
        assert_eq!(kinds.collect::<Vec<_>>(), ["allow_once", "reject_once"]);
        let about = |message: &Value| message["params"]["update"]["toolCallId"] == call["toolCallId"];
        let announced = client.find(about);
        assert_eq!(announced["params"]["update"]["sessionUpdate"], "tool_call");
        client.respond(&question, json!({ "outcome": { "outcome": "selected", "optionId": option } }));
        let answered = client.find(about);
        assert_eq!(answered["params"]["update"]["status"], "completed");
    }
    assert_eq!(client.answer(id)["result"]["stopReason"], "max_turn_requests");
    assert_eq!(world.rehearsal().requests().len(), 8);
}
