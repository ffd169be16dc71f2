//! `ask_user`: the model asks for one fact in the middle of its turn, and continues with the answer.

use serde_json::{Value, json};

use crate::driver::{Client, World, choose};

fn asking(arguments: Value) -> World {
    let call = json!([{ "call": { "id": "c1", "name": "ask_user", "arguments": arguments } }]);
    World::new(json!([call, [{ "text": "I see." }]]))
}

fn which() -> Value {
    json!({ "question": "Which database?", "options": ["SQLite", "PostgreSQL"] })
}

/// The result of its call, as the model received it.
fn result(world: &World) -> String {
    let requests = world.rehearsal().requests();
    let messages = requests.last().unwrap()["messages"]
        .as_array()
        .unwrap()
        .clone();
    let result = messages
        .iter()
        .rfind(|message| message["role"] == "tool")
        .unwrap();
    result["content"].as_str().unwrap().to_owned()
}

fn in_mode(client: &mut Client, world: &World, mode: &str) -> String {
    let session = client.session(world);
    client.call(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": mode }),
    );
    session
}

#[test]
fn answers_are_offered_in_all_modes_and_the_chosen_one_continues_the_turn() {
    for mode in ["plan", "auto"] {
        let world = asking(which());
        let mut client = world.client();
        let session = in_mode(&mut client, &world, mode);
        let prompt = client.prompt(&session, "set it up");
        let request = client.next("session/request_permission");
        assert_eq!(request["params"]["toolCall"]["title"], "Which database?");
        let options = request["params"]["options"].as_array().unwrap().clone();
        let names: Vec<_> = options
            .iter()
            .map(|option| option["name"].as_str().unwrap())
            .collect();
        assert_eq!(
            names,
            ["SQLite", "PostgreSQL", "Answer in the Chat", "No Answer"],
            "{mode}"
        );
        assert!(
            options.iter().all(|option| option["kind"] != "allow_once"),
            "a key that allows must not answer"
        );
        choose(
            &mut client,
            &request,
            options[1]["optionId"].as_str().unwrap(),
        );
        assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");
        assert_eq!(result(&world), "The user answers: PostgreSQL\n");
    }
}

#[test]
fn an_answer_in_other_words_is_the_next_message() {
    let world = asking(which());
    let mut client = world.client();
    let session = client.session(&world);
    let prompt = client.prompt(&session, "set it up");
    let request = client.next("session/request_permission");
    choose(&mut client, &request, "answer_in_chat");
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");
    assert!(
        result(&world).starts_with("The user answers: I'll answer in my next message."),
        "{}",
        result(&world)
    );
}

#[test]
fn a_missing_answer_is_reported_and_the_turn_continues() {
    let world = asking(which());
    let mut client = world.client();
    let session = client.session(&world);
    let prompt = client.prompt(&session, "set it up");
    let request = client.next("session/request_permission");
    choose(&mut client, &request, "reject_once");
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");
    assert!(
        result(&world).starts_with("Nobody answered."),
        "{}",
        result(&world)
    );
}

#[test]
fn a_message_during_a_question_is_its_answer() {
    let world = asking(json!({ "question": "Which port?" }));
    let mut client = world.client();
    let session = client.session(&world);
    let prompt = client.prompt(&session, "set it up");
    client.next("session/request_permission");
    let words = json!([{ "type": "text", "text": "8443" }]);
    client.call(
        "_tandem/session/steer",
        json!({ "sessionId": session, "prompt": words }),
    );
    client.answer(prompt);
    assert_eq!(
        result(&world),
        "The user answers: see the message that follows\n"
    );
    let last = world.rehearsal().requests().last().unwrap()["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .clone();
    assert!(
        last["role"] == "user" && last["content"].to_string().contains("8443"),
        "{last}"
    );
}

#[test]
fn a_client_with_forms_gets_a_form() {
    for (answer, told) in [
        (
            json!({ "action": "accept", "content": { "answer": "SQLite" } }),
            "The user answers: SQLite\n",
        ),
        (
            json!({ "action": "accept", "content": { "other": "DuckDB" } }),
            "The user answers: DuckDB\n",
        ),
        (json!({ "action": "decline" }), "Nobody answered."),
    ] {
        let world = asking(which());
        let mut client = world.acp();
        let capabilities = json!({ "elicitation": { "form": {} } });
        client.call(
            "initialize",
            json!({ "protocolVersion": 1, "clientCapabilities": capabilities }),
        );
        let session = client.session(&world);
        let prompt = client.prompt(&session, "set it up");
        let request = client.next("elicitation/create");
        assert_eq!(request["params"]["message"], "Which database?");
        let choices = request["params"]
            .pointer("/requestedSchema/properties/answer/enum")
            .unwrap();
        assert_eq!(*choices, json!(["SQLite", "PostgreSQL"]));
        client.respond(&request, answer);
        client.answer(prompt);
        assert!(result(&world).starts_with(told), "{}", result(&world));
    }
}

#[test]
fn question_formats_of_other_agents_are_understood() {
    let options = json!([{ "label": "SQLite", "description": "a file" }, { "label": "PostgreSQL", "description": "a server" }]);
    let question = json!({ "question": "Which database?", "header": "DB", "multiSelect": false, "options": options });
    let world = asking(json!({ "questions": [question] }));
    let mut client = world.client();
    let session = client.session(&world);
    let prompt = client.prompt(&session, "set it up");
    let request = client.next("session/request_permission");
    assert_eq!(request["params"]["options"][1]["name"], "PostgreSQL");
    choose(&mut client, &request, "answer_0");
    client.answer(prompt);
    assert!(
        result(&world).starts_with("The user answers: SQLite\n"),
        "{}",
        result(&world)
    );
}

#[test]
fn a_question_does_not_stay_open_when_its_turn_is_cancelled() {
    let world = asking(which());
    // The real program has one thread.
    let (mut program, mut client) = world.serve_editor();
    let session = client.session(&world);
    let prompt = client.prompt(&session, "set it up");
    client.next("session/request_permission");
    client.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "cancelled");
    let reject = json!({ "command": "tandem.reject", "arguments": [] });
    let late = client.call("workspace/executeCommand", reject);
    assert!(
        late["error"]["message"]
            .as_str()
            .is_some_and(|why| why.contains("no pending permission request")),
        "{late}"
    );
    client.hang_up();
    program.ends();
}
