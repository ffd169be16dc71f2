//! The session owns its mode, queue and turns: what it acknowledges is in effect, and every prompt ends exactly once.

use serde_json::{Value, json};

use crate::driver::{Client, World, choose};

fn set_mode(client: &mut Client, session: &str, mode: &str) -> i64 {
    client.ask(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": mode }),
    )
}

fn prompt_as(client: &mut Client, session: &str, id: &str) -> i64 {
    let prompt = json!([{ "type": "text", "text": format!("prompt {id}") }]);
    let params =
        json!({ "sessionId": session, "prompt": prompt, "_meta": { "tandem/promptId": id } });
    client.ask("session/prompt", params)
}

fn turn(client: &mut Client, prompt: &str, state: &str) -> Value {
    let message = client.find(|message| {
        message["method"] == "_tandem/turn"
            && message["params"]["promptId"] == prompt
            && message["params"]["state"] == state
    });
    message["params"].clone()
}

/// The calls of one answer.
fn calls(calls: &[(&str, &str, Value)]) -> Value {
    calls
        .iter()
        .map(|(id, name, arguments)| json!({ "call": { "id": id, "name": name, "arguments": arguments } }))
        .collect()
}

fn write_call(id: &'static str, path: &str) -> (&'static str, &'static str, Value) {
    (
        id,
        "write_file",
        json!({ "path": path, "content": "written" }),
    )
}

#[test]
fn changes_and_cancel_work_with_a_full_mailbox() {
    let world = World::new(json!([calls(&[write_call("c1", "new.txt")]), [{ "text": "no" }]]));
    let can = json!({ "tandem.diagnostics": true });
    let mut client = world.client_with(json!({ "experimental": { "tandem": { "_meta": can } } }));
    let session = client.session(&world);
    // While the session waits for the editor, it takes nothing out of its mailbox.
    let first = client.prompt(&session, "fix @diagnostics");
    client.next("_tandem/diagnostics");
    let crowd: Vec<_> = (0..40)
        .map(|n| prompt_as(&mut client, &session, &format!("p{n}")))
        .collect();
    let refused = client.answer(crowd[39]);
    assert_eq!(
        refused["error"]["code"], -32803,
        "the mailbox is full: {refused}"
    );
    let modes: Vec<_> = (0..40)
        .map(|n| set_mode(&mut client, &session, ["plan", "auto"][n % 2]))
        .collect();
    let last = set_mode(&mut client, &session, "plan");
    client.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(client.answer(first)["result"]["stopReason"], "cancelled");
    for id in modes.into_iter().chain([last]) {
        assert!(client.answer(id)["result"].is_object());
    }
    for id in crowd.into_iter().take(39) {
        let answer = client.answer(id);
        assert!(
            answer["result"]["stopReason"] == "cancelled" || answer["error"].is_object(),
            "{answer}"
        );
    }
    assert_eq!(
        world.rehearsal().requests().len(),
        0,
        "nothing that was cancelled reaches the model"
    );
    let next = client.prompt(&session, "write it");
    assert_eq!(client.answer(next)["result"]["stopReason"], "end_turn");
    assert!(
        !world.path().join("new.txt").exists(),
        "the mode is the last one that was set"
    );
}

#[test]
fn a_turn_acknowledged_as_plan_never_writes() {
    let world = World::new(json!([
        [{ "gate": "before" }, { "call": { "id": "c1", "name": "write_file", "arguments": { "path": "a.txt", "content": "x" } } }],
        [{ "text": "no" }],
        calls(&[write_call("c2", "b.txt")]),
        [{ "text": "no" }]
    ]));
    let mut client = world.client();
    let session = client.session(&world);
    let id = set_mode(&mut client, &session, "edit");
    client.answer(id);
    let prompt = client.prompt(&session, "write it");
    world.wait(world.rehearsal().waiting_at("before"));
    let id = set_mode(&mut client, &session, "plan");
    client.answer(id);
    world.rehearsal().open("before");
    client.answer(prompt);
    assert!(!world.path().join("a.txt").exists());
    // A permission request that is open when the mode changes is answered by the new mode.
    let id = set_mode(&mut client, &session, "ask");
    client.answer(id);
    let prompt = client.prompt(&session, "write it");
    let request = client.next("session/request_permission");
    let id = set_mode(&mut client, &session, "plan");
    client.answer(id);
    choose(&mut client, &request, "allow_once");
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");
    assert!(!world.path().join("b.txt").exists());
}

#[test]
fn each_prompt_has_exactly_one_end() {
    let world =
        World::new(json!([[{ "gate": "first" }, { "text": "one" }], [{ "gate": "second" }]]));
    let mut client = world.client();
    let session = client.session(&world);
    let ids = ["a", "b", "c", "d"].map(|id| prompt_as(&mut client, &session, id));
    turn(&mut client, "a", "running");
    assert_eq!(turn(&mut client, "d", "queued")["position"], 3);
    let again = prompt_as(&mut client, &session, "a");
    assert_eq!(
        client.answer(again)["error"]["code"],
        -32602,
        "a name is used once"
    );
    // One is withdrawn, and those behind it move up.
    let withdraw = json!({ "sessionId": session, "promptId": "b" });
    assert_eq!(
        client.call("_tandem/turn/withdraw", withdraw.clone())["result"],
        json!({})
    );
    let returned = turn(&mut client, "b", "returned");
    assert_eq!(
        (&returned["reason"], &returned["prompt"][0]["text"]),
        (&json!("withdrawn"), &json!("prompt b"))
    );
    assert_eq!(turn(&mut client, "d", "queued")["position"], 2);
    assert!(
        client.call("_tandem/turn/withdraw", withdraw)["error"].is_object(),
        "it is gone"
    );
    let withdraw = json!({ "sessionId": session, "promptId": "a" });
    assert!(
        client.call("_tandem/turn/withdraw", withdraw)["error"].is_object(),
        "it runs"
    );
    world.rehearsal().open("first");
    let ended = turn(&mut client, "a", "ended");
    assert_eq!(ended["reason"], "end_turn");
    // A cancel ends the running turn and returns the queued prompts.
    world.wait(world.rehearsal().waiting_at("second"));
    client.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(turn(&mut client, "c", "ended")["reason"], "cancelled");
    assert_eq!(turn(&mut client, "d", "returned")["reason"], "cancelled");
    for id in ids {
        client.answer(id);
    }
    client.call("session/close", json!({ "sessionId": session }));
    let is_last = |state: &Value| {
        ["joined", "returned", "ended"]
            .iter()
            .any(|last| state == last)
    };
    assert!(
        client
            .seen
            .iter()
            .all(|message| !is_last(&message["params"]["state"])),
        "{:#?}",
        client.seen
    );
}

#[test]
fn prompts_have_the_numbers_of_their_turns_and_ids() {
    let world = World::new(json!([[{ "text": "one" }]]));
    let mut client = world.client();
    let session = client.session(&world);
    let id = prompt_as(&mut client, &session, "mine");
    client.answer(id);
    assert_eq!(turn(&mut client, "mine", "running")["turn"], 1);
    let id = client.ask(
        "session/prompt",
        json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "/help" }] }),
    );
    client.answer(id);
    // The server assigns missing IDs.
    assert_eq!(turn(&mut client, "tandem-1", "ended")["reason"], "end_turn");
}

#[test]
fn a_steering_message_joins_or_is_returned() {
    let call = json!({ "call": { "id": "c1", "name": "glob", "arguments": { "pattern": "*.x" } } });
    let world =
        World::new(json!([[call, { "gate": "half" }], [{ "gate": "late" }, { "text": "done" }]]));
    let mut client = world.client();
    let session = client.session(&world);
    let steer = |client: &mut Client, id: &str| {
        let prompt = json!([{ "type": "text", "text": id }]);
        let params =
            json!({ "sessionId": session, "prompt": prompt, "_meta": { "tandem/promptId": id } });
        client.ask("_tandem/session/steer", params)
    };
    let early = steer(&mut client, "early");
    assert!(client.answer(early)["error"].is_object());
    assert_eq!(turn(&mut client, "early", "returned")["reason"], "no_turn");
    let id = prompt_as(&mut client, &session, "a");
    world.wait(world.rehearsal().waiting_at("half"));
    let [joins, withdrawn] = ["joins", "withdrawn"].map(|id| steer(&mut client, id));
    let withdraw = json!({ "sessionId": session, "promptId": "withdrawn" });
    assert_eq!(
        client.call("_tandem/turn/withdraw", withdraw)["result"],
        json!({})
    );
    assert!(client.answer(withdrawn)["error"].is_object());
    assert_eq!(
        turn(&mut client, "withdrawn", "returned")["reason"],
        "withdrawn"
    );
    world.rehearsal().open("half");
    assert_eq!(client.answer(joins)["result"], json!({}));
    turn(&mut client, "joins", "joined");
    world.rehearsal().open("late");
    client.answer(id);
    let sent = world.rehearsal().requests()[1]["messages"].to_string();
    assert!(
        sent.contains("joins") && !sent.contains("withdrawn"),
        "{sent}"
    );
}

#[test]
fn reads_overtake_a_permission_request_and_writes_do_not() {
    let read = |id| (id, "glob", json!({ "pattern": "*.x" }));
    let world = World::new(json!([
        calls(&[write_call("w1", "one.txt"), write_call("w2", "two.txt"), read("r1")]),
        [{ "text": "done" }]
    ]));
    let mut client = world.client();
    let session = client.session(&world);
    let prompt = client.prompt(&session, "go");
    let first = client.next("session/request_permission");
    assert_eq!(first["params"]["toolCall"]["toolCallId"], "w1");
    client.find(|message| {
        message["params"]["update"]["toolCallId"] == "r1"
            && message["params"]["update"]["status"] == "completed"
    });
    assert!(
        client
            .seen
            .iter()
            .all(|message| message["method"] != "session/request_permission"),
        "writes wait"
    );
    choose(&mut client, &first, "allow_once");
    let second = client.next("session/request_permission");
    assert_eq!(second["params"]["toolCall"]["toolCallId"], "w2");
    assert_eq!(world.read("one.txt"), "written");
    choose(&mut client, &second, "reject_once");
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");
    assert!(!world.path().join("two.txt").exists());
}

#[test]
fn queued_prompts_of_a_server_that_ended_are_returned_on_load() {
    for is_shut_down in [false, true] {
        return_on_load(is_shut_down);
    }
}

fn return_on_load(is_shut_down: bool) {
    let world = World::new(json!([[{ "gate": "never" }]]));
    let mut client = world.client();
    let session = client.session(&world);
    for id in ["a", "b", "c"] {
        prompt_as(&mut client, &session, id);
    }
    turn(&mut client, "c", "queued");
    if is_shut_down {
        client.call("shutdown", Value::Null);
    }
    client.end();
    drop(client);
    for expected in [&["b", "c"][..], &[]] {
        let mut client = world.client();
        let load = json!({ "sessionId": session, "cwd": world.path(), "mcpServers": [] });
        assert!(client.call("session/load", load)["result"].is_object());
        for id in expected {
            let returned = turn(&mut client, id, "returned");
            assert_eq!(returned["reason"], "restarted");
            assert_eq!(returned["prompt"][0]["text"], format!("prompt {id}"));
        }
        client.call("session/close", json!({ "sessionId": session }));
        assert!(
            client
                .seen
                .iter()
                .all(|message| message["method"] != "_tandem/turn"),
            "once"
        );
    }
}

#[test]
fn prompts_returned_on_close_are_not_returned_again() {
    let world = World::new(json!([[{ "gate": "never" }]]));
    let mut client = world.client();
    let session = client.session(&world);
    for id in ["a", "b"] {
        prompt_as(&mut client, &session, id);
    }
    turn(&mut client, "b", "queued");
    assert_eq!(
        client.call("session/close", json!({ "sessionId": session }))["result"],
        json!({})
    );
    assert_eq!(turn(&mut client, "b", "returned")["reason"], "closed");
    let load = json!({ "sessionId": session, "cwd": world.path(), "mcpServers": [] });
    assert!(client.call("session/load", load)["result"].is_object());
    client.call("session/close", json!({ "sessionId": session }));
    assert!(
        client
            .seen
            .iter()
            .all(|message| message["params"]["promptId"] != "b"),
        "{:#?}",
        client.seen
    );
}

#[test]
fn cancelling_a_steering_request_withdraws_it() {
    let call = json!({ "call": { "id": "c1", "name": "glob", "arguments": { "pattern": "*.x" } } });
    let world = World::new(json!([[call, { "gate": "half" }], [{ "text": "done" }]]));
    let mut client = world.client();
    let session = client.session(&world);
    let id = prompt_as(&mut client, &session, "a");
    world.wait(world.rehearsal().waiting_at("half"));
    let prompt = json!([{ "type": "text", "text": "never mind" }]);
    let params =
        json!({ "sessionId": session, "prompt": prompt, "_meta": { "tandem/promptId": "s" } });
    let steer = client.ask("_tandem/session/steer", params);
    client.notify("$/cancelRequest", json!({ "id": steer }));
    assert_eq!(client.answer(steer)["error"]["code"], -32800);
    assert_eq!(turn(&mut client, "s", "returned")["reason"], "cancelled");
    world.rehearsal().open("half");
    assert_eq!(
        client.answer(id)["result"]["stopReason"],
        "end_turn",
        "the turn goes on"
    );
    assert!(
        !world.rehearsal().requests()[1]["messages"]
            .to_string()
            .contains("never mind")
    );
}

#[test]
fn the_status_has_fields() {
    let world = World::new(json!([[{ "gate": "first" }], [{ "text": "two" }]]));
    let mut client = world.client();
    let session = client.session(&world);
    let status = |client: &mut Client, state: &str, queued: u64| {
        let found = client.find(|message| {
            let params = &message["params"];
            message["method"] == "_tandem/status"
                && params["state"] == state
                && params["queued"] == queued
        });
        found["params"].clone()
    };
    assert_eq!(status(&mut client, "ready", 0)["mode"], "ask");
    let ids = ["a", "b"].map(|id| prompt_as(&mut client, &session, id));
    assert!(status(&mut client, "running", 1)["model"].is_string());
    world.rehearsal().open("first");
    for id in ids {
        client.answer(id);
    }
    status(&mut client, "ready", 0);
}
