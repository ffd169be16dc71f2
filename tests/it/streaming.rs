//! What happens while an answer still streams, and what it costs.

use serde_json::{Value, json};

use crate::driver::{Client, World};

fn read(id: &str, path: &str) -> Value {
    json!({ "call": { "id": id, "name": "read_file", "arguments": { "path": path } }, "fragments": 4 })
}

/// Waits until a call has this status.
fn status(client: &mut Client, id: &str, status: &str) {
    client.find(|message| {
        let update = &message["params"]["update"];
        update["toolCallId"] == id && update["status"] == status
    });
}

#[test]
fn read_only_calls_finish_before_their_answer_ends() {
    let answer =
        json!([read("c1", "a.txt"), { "gate": "between" }, read("c2", "b.txt"), { "gate": "end" }]);
    let world = World::new(json!([answer, [{ "text": "done" }]]));
    world.write("a.txt", "one");
    world.write("b.txt", "two");
    let mut client = world.client();
    let session = client.session(&world);
    let id = client.prompt(&session, "read");
    for (call, gate) in [("c1", "between"), ("c2", "end")] {
        status(&mut client, call, "in_progress");
        status(&mut client, call, "completed");
        world.rehearsal().open(gate);
    }
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    let request = world.rehearsal().requests()[1]["messages"].clone();
    let results: Vec<_> = request
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "tool")
        .collect();
    assert_eq!(
        results
            .iter()
            .map(|result| &result["tool_call_id"])
            .collect::<Vec<_>>(),
        ["c1", "c2"]
    );
}

#[test]
fn usage_shows_window_and_session_cost() {
    let tokens = json!({ "usage": { "prompt_tokens": 1000, "completion_tokens": 100,
        "prompt_tokens_details": { "cached_tokens": 400 } } });
    let told = json!({ "usage": { "prompt_tokens": 2000, "completion_tokens": 1, "cost": 0.25 } });
    let world = World::new(json!([[{ "text": "one" }, tokens], [{ "text": "two" }, told]]));
    world.write(
        ".home/config/config.toml",
        "[providers.custom.models.scripted]\ncontext-window = 8000\nprices = { input = 10.0, cached = 5.0, output = 80.0 }\n",
    );
    let mut client = world.client();
    let session = client.session(&world);
    // The provider's own cost takes precedence over configured prices.
    for (used, cost) in [(1100, 0.016), (2001, 0.266)] {
        let id = client.prompt(&session, "hi");
        client.answer(id);
        let update = client.update("usage_update");
        assert_eq!(
            (&update["used"], &update["size"]),
            (&json!(used), &json!(8000))
        );
        assert_eq!(update["cost"]["currency"], "USD");
        assert!(
            (update["cost"]["amount"].as_f64().unwrap() - cost).abs() < 1e-9,
            "{update}"
        );
    }
}
