//! A turn in mode `plan` ends with its plan in a file, which the person can edit, and carries it out if they agree.

use serde_json::{Value, json};

use crate::driver::{Client, World, call, choose};

const STEPS: &str = "I would do this:\n1. Rename `one` to `two`.\n2. Run the tests.";

fn script(then: &[Value]) -> Value {
    let read = json!([call("c1", "read_file", json!({ "path": "a.rs" }))]);
    let plan = json!([{ "text": STEPS }]);
    [read, plan].iter().chain(then).cloned().collect()
}

fn edit() -> Value {
    let edits = json!([{ "old_text": "one", "new_text": "two" }]);
    json!([call(
        "c2",
        "edit_file",
        json!({ "path": "a.rs", "edits": edits })
    )])
}

fn say(text: &str) -> Value {
    json!([{ "text": text }])
}

/// A session that was asked for a plan, and the request that ends its turn.
fn planned(world: &World, can: Value) -> (Client, String, i64, Value) {
    world.write("a.rs", "one\n");
    let mut client = world.client_with(json!({ "experimental": { "tandem": { "_meta": can } } }));
    let session = client.session(world);
    let mode = json!({ "sessionId": session, "modeId": "plan" });
    client.call("session/set_mode", mode);
    let prompt = client.prompt(&session, "how would you rename it?");
    let asked = client.next("session/request_permission");
    (client, session, prompt, asked)
}

fn file(asked: &Value) -> std::path::PathBuf {
    let location = &asked["params"]["toolCall"]["locations"][0];
    location["path"].as_str().unwrap().into()
}

fn options(asked: &Value) -> Vec<&str> {
    let options = asked["params"]["options"].as_array().unwrap();
    options
        .iter()
        .map(|option| option["optionId"].as_str().unwrap())
        .collect()
}

fn messages(world: &World, request: usize) -> Vec<Value> {
    world.rehearsal().requests()[request]["messages"]
        .as_array()
        .unwrap()
        .clone()
}

#[test]
fn a_plan_is_a_file_and_starts_as_edited() {
    let world = World::new(script(&[edit(), say("Renamed.")]));
    let (mut client, session, prompt, asked) = planned(&world, json!({}));
    assert_eq!(
        options(&asked),
        ["answer_start", "answer_start_fresh", "reject_once"]
    );
    let plan = std::fs::read_to_string(file(&asked)).unwrap();
    assert!(plan.starts_with(STEPS), "{plan}");
    for part in ["a.rs", &session] {
        assert!(
            plan.contains(part),
            "what was read, and where it comes from: {plan}"
        );
    }
    #[cfg(unix)]
    for private in file(&asked).ancestors().take(2) {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = private.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}: {mode:o}", private.display());
    }
    std::fs::write(file(&asked), plan.replace("Run the tests", "Run all tests")).unwrap();
    choose(&mut client, &asked, "answer_start");
    let edit = client.next("session/request_permission");
    assert_eq!(
        edit["params"]["toolCall"]["title"], "Edit a.rs",
        "no longer in mode plan"
    );
    choose(&mut client, &edit, "allow_once");
    client.answer(prompt);
    assert_eq!(world.read("a.rs"), "two\n");
    client.find(|message| message["params"]["update"]["currentModeId"] == "ask");
    let told = messages(&world, 2).pop().unwrap().to_string();
    assert!(
        told.contains("Run all tests") && told.contains("approved"),
        "{told}"
    );
    client.call("session/delete", json!({ "sessionId": session }));
    assert!(!file(&asked).exists(), "it is removed with its session");
}

#[test]
fn a_plan_starts_in_the_mode_before_it() {
    let world = World::new(script(&[say(STEPS), edit(), say("Renamed.")]));
    world.write("a.rs", "one\n");
    let start = |world: &World| {
        let mut client = world.stranger();
        let mut params = world.handshake(json!({ "experimental": { "tandem": {} } }));
        params["initializationOptions"] = json!({ "mode": "auto" });
        client.shake_hands(params);
        client
    };
    let mut client = start(&world);
    let session = client.session(&world);
    for mode in ["ask", "plan"] {
        let params = json!({ "sessionId": session, "modeId": mode });
        client.call("session/set_mode", params);
    }
    let asks = |client: &mut Client| {
        let prompt = client.prompt(&session, "how would you rename it?");
        (prompt, client.next("session/request_permission"))
    };
    let (prompt, asked) = asks(&mut client);
    choose(&mut client, &asked, "reject_once");
    client.answer(prompt);
    client.end();
    let mut client = start(&world);
    let params = json!({ "sessionId": session, "cwd": world.path(), "mcpServers": [] });
    client.call("session/resume", params);
    let (prompt, asked) = asks(&mut client);
    choose(&mut client, &asked, "answer_start");
    let edit = client.next("session/request_permission");
    assert_eq!(edit["params"]["toolCall"]["title"], "Edit a.rs");
    choose(&mut client, &edit, "allow_once");
    client.answer(prompt);
}

#[test]
fn a_plan_starts_alone_in_the_context() {
    let world = World::new(script(&[say("Done.")]));
    let (mut client, _, prompt, asked) = planned(&world, json!({}));
    let plan = std::fs::read_to_string(file(&asked)).unwrap();
    choose(&mut client, &asked, "answer_start_fresh");
    client.answer(prompt);
    let sent = messages(&world, 2);
    assert_eq!(sent.len(), 2, "the system's message and the plan: {sent:?}");
    assert!(sent[1].to_string().contains("Rename `one`"));
    let request = world.rehearsal().requests()[2].to_string();
    // However long the path of the temporary directory is.
    let fresh = request.replace(world.path().to_str().unwrap(), "/w").len();
    assert!(
        fresh <= plan.len() + 8 * 1024,
        "{fresh} bytes with a plan of {}",
        plan.len()
    );
}

#[test]
fn a_client_that_opens_sessions_opens_the_one_for_the_plan() {
    let world = World::new(script(&[]));
    let (mut client, _, prompt, asked) = planned(&world, json!({ "tandem.plan": true }));
    assert_eq!(
        options(&asked),
        ["answer_start", "answer_start_new", "reject_once"]
    );
    choose(&mut client, &asked, "answer_start_new");
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!(world.rehearsal().requests().len(), 2);
}

#[test]
fn a_message_revises_the_plan() {
    let world = World::new(script(&[say("As you wish.")]));
    let (mut client, session, prompt, _) = planned(&world, json!({}));
    let next = client.prompt(&session, "only rename it");
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");
    client.answer(next);
    let told = messages(&world, 2).pop().unwrap().to_string();
    assert!(
        told.contains("only rename it") && told.contains("mode plan"),
        "{told}"
    );
}

#[test]
fn a_plan_that_the_model_was_asked_for_again_is_one_too() {
    let world = World::new(json!([[{ "text": "" }], [{ "text": STEPS }], [{ "text": "Yes." }]]));
    let (mut client, session, prompt, asked) = planned(&world, json!({}));
    choose(&mut client, &asked, "reject_once");
    client.answer(prompt);
    let mode = json!({ "sessionId": session, "modeId": "edit" });
    client.call("session/set_mode", mode);
    let prompt = client.prompt(&session, "may you edit now?");
    client.answer(prompt);
    let told = messages(&world, 2).pop().unwrap().to_string();
    assert!(told.contains("no longer plan"), "{told}");
}

#[test]
fn an_answer_without_a_plan_starts_no_request() {
    let world = World::new(json!([say("It is a number.")]));
    let mut client = world.client();
    let session = client.session(&world);
    let mode = json!({ "sessionId": session, "modeId": "plan" });
    client.call("session/set_mode", mode);
    let prompt = client.prompt(&session, "what is it?");
    client.answer(prompt);
}

#[test]
fn a_summary_says_that_only_a_plan_is_wanted_until_the_mode_changes() {
    let world = World::new(json!([
        [{ "text": "long ".repeat(2000) }],
        [{ "text": "I looked around." }],
        [{ "text": "yes" }],
    ]));
    let mut client = world.client();
    let session = client.session(&world);
    let mode = json!({ "sessionId": session, "modeId": "plan" });
    client.call("session/set_mode", mode);
    let mode = json!({ "sessionId": session, "modeId": "edit" });
    for words in ["how would you do it?", "/compact"] {
        let prompt = client.prompt(&session, words);
        client.answer(prompt);
    }
    client.call("session/set_mode", mode);
    let prompt = client.prompt(&session, "do it");
    client.answer(prompt);
    let told = messages(&world, 2);
    assert!(told[1].to_string().contains("mode plan"), "{told:?}");
    let last = told.last().unwrap().to_string();
    assert!(last.contains("no longer plan"), "{told:?}");
}
