//! Limits on all turns of a session together: the person is asked as at the limits of one turn, even in another
//! process.

use serde_json::json;

use crate::driver::{World, call, choose};

/// Answers of 120 tokens each.
fn answers(count: usize) -> serde_json::Value {
    let usage = json!({ "usage": { "prompt_tokens": 100, "completion_tokens": 20 } });
    (0..count)
        .map(|_| json!([{ "text": "Yes." }, usage]))
        .collect()
}

#[test]
fn a_session_at_its_limit_asks_and_restarts_the_count_on_approval() {
    let world = World::new(answers(4));
    let mut client = world.stranger();
    let mut hello = world.handshake(json!({ "experimental": { "tandem": {} } }));
    hello["initializationOptions"] = json!({ "limits": { "session-tokens": 240 } });
    client.shake_hands(hello);
    let session = client.session(&world);
    for _ in 0..2 {
        let prompt = client.prompt(&session, "Really?");
        assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");
    }
    for (option, reason, requests) in [
        ("reject_once", "max_turn_requests", 2),
        ("allow_once", "end_turn", 3),
    ] {
        let prompt = client.prompt(&session, "Really?");
        let question = client.next("session/request_permission");
        let title = question["params"]["toolCall"]["title"].as_str().unwrap();
        assert!(
            title.contains("240 tokens in this session (limits.session-tokens)"),
            "{title}"
        );
        let options = question["params"]["options"].as_array().unwrap();
        let chosen = options
            .iter()
            .find(|offered| offered["kind"] == option)
            .unwrap()["optionId"]
            .clone();
        client.respond(
            &question,
            json!({ "outcome": { "outcome": "selected", "optionId": chosen } }),
        );
        assert_eq!(client.answer(prompt)["result"]["stopReason"], reason);
        assert_eq!(world.rehearsal().requests().len(), requests);
    }
    let prompt = client.prompt(&session, "Really?");
    assert_eq!(
        client.answer(prompt)["result"]["stopReason"],
        "end_turn",
        "nobody is asked again"
    );
    client.end();
}

#[cfg(unix)]
#[test]
fn session_usage_is_stored() {
    let world = World::new(answers(3));
    world.write(".home/config.toml", "[limits]\nsession-tokens = 240\n");
    world.run(&["run", "Really?"]);
    world.run(&["run", "--continue", "Really?"]);
    let third = world.run(&["run", "--continue", "Really?"]);
    assert!(
        third
            .stderr
            .contains("stopped after 240 tokens in this session (limits.session-tokens)"),
        "{third:?}"
    );
    assert_eq!(world.rehearsal().requests().len(), 2);
}

#[cfg(unix)]
#[test]
fn a_count_that_restarted_stays_so_and_a_killed_turn_counts() {
    let mut script = answers(4).as_array().unwrap().clone();
    let glob = call("c1", "glob", json!({ "pattern": "*" }));
    script[2] = json!([glob, script[2][1]]);
    script.insert(3, json!([{ "gate": "never" }]));
    let world = World::new(script.into());
    world.write(".home/config.toml", "[limits]\nsession-tokens = 240\n");
    let (mut program, mut client) = world.serve_editor();
    let session = client.session(&world);
    for _ in 0..2 {
        let prompt = client.prompt(&session, "Really?");
        client.answer(prompt);
    }
    client.prompt(&session, "Really?");
    let question = client.next("session/request_permission");
    choose(&mut client, &question, "allow_once");
    world.wait(world.rehearsal().waiting_at("never"));
    program.signal(rustix::process::Signal::KILL);
    program.ends();
    let next = world.run(&["run", "--continue", "Really?"]);
    assert_eq!(world.rehearsal().requests().len(), 5, "{next:?}");
    let last = world.run(&["run", "--continue", "Really?"]);
    let why = "stopped after 240 tokens in this session";
    assert!(last.stderr.contains(why), "{last:?}");
}
