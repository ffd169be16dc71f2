//! The editor's own models, requested over its connection.

use serde_json::{Value, json};
use tandem::server::Transport;

use crate::driver::{Client, World};

const MODEL: &str = "copilot/claude-sonnet-4.6";

fn editor(world: &World, has_models: bool) -> Client {
    let model = format!("vscode/{MODEL}");
    let mut client = world.stranger_on(Transport::Lsp, &[("TANDEM_MODEL", &model)]);
    let tandem = json!({ "_meta": { "tandem.models": has_models } });
    client.shake_hands(world.handshake(json!({ "experimental": { "tandem": tandem } })));
    client
}

/// The next request for a chunk; requests for the list are answered along the way.
fn next(client: &mut Client) -> Value {
    loop {
        let request = client.find(|message| {
            let method = message["method"].as_str().unwrap_or_default();
            method.starts_with("_tandem/editorModels") && message["id"].is_i64()
        });
        if request["method"] == "_tandem/editorModels/next" {
            return request;
        }
        let listed = json!({ "data": [{ "id": MODEL, "context_window": 90_000 }] });
        client.respond(&request, listed);
    }
}

/// Answers a request for a completion with these deltas; returns the request.
fn answer(client: &mut Client, deltas: &[Value]) -> Value {
    let first = next(client);
    let id = first["params"]["id"].clone();
    let mut request = first.clone();
    for delta in deltas {
        let chunk = json!({ "choices": [{ "delta": delta }] });
        client.respond(&request, json!({ "chunk": chunk }));
        request = next(client);
        assert_eq!(
            request["params"],
            json!({ "id": id }),
            "the body is sent once"
        );
    }
    client.respond(&request, json!({}));
    first["params"]["body"].clone()
}

fn refuse(client: &mut Client, request: &Value, code: &str) {
    let error = json!({ "code": -32803, "message": "VS Code says no", "data": { "code": code } });
    client.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "error": error }));
}

#[test]
fn a_model_of_the_editor_answers_and_calls_tools() {
    let world = World::new(json!([]));
    world.write("notes.txt", "Buy milk.\n");
    let mut client = editor(&world, true);
    let session = client.session(&world);
    let prompt = client.prompt(&session, "What do I need?");
    let function = json!({ "name": "read_file", "arguments": "{\"path\":\"notes.txt\"}" });
    let call = json!({ "tool_calls": [{ "index": 0, "id": "c1", "function": function }] });
    let asked = answer(&mut client, &[json!({ "content": "I look. " }), call]);
    assert_eq!(asked["model"], MODEL);
    assert_eq!(asked["messages"][0]["role"], "system");
    let tools = asked["tools"].as_array().unwrap();
    assert!(
        tools
            .iter()
            .any(|tool| tool["function"]["name"] == "read_file"),
        "{tools:?}"
    );
    let asked = answer(&mut client, &[json!({ "content": "Milk." })]);
    let last = asked["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["role"], &last["tool_call_id"]),
        (&json!("tool"), &json!("c1"))
    );
    assert!(last["content"].as_str().unwrap().contains("Buy milk."));
    let end = client.answer(prompt);
    assert_eq!(end["result"]["stopReason"], "end_turn", "{end}");
    assert_eq!(client.text(), "I look. Milk.");
}

#[test]
fn a_cancelled_answer_of_the_editor_ends_there() {
    let world = World::new(json!([]));
    let mut client = editor(&world, true);
    let session = client.session(&world);
    let prompt = client.prompt(&session, "Tell me a story");
    let first = next(&mut client);
    let chunk = json!({ "choices": [{ "delta": { "content": "Once upon" } }] });
    client.respond(&first, json!({ "chunk": chunk }));
    next(&mut client);
    client.update("agent_message_chunk");
    client.notify("session/cancel", json!({ "sessionId": session }));
    let end = client.next("_tandem/editorModels/end");
    assert_eq!(end["params"], json!({ "id": first["params"]["id"] }));
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "cancelled");
}

#[test]
fn what_the_editor_refuses_is_reported_once() {
    let world = World::new(json!([]));
    for code in ["auth", "rate_limit", "no_model", "unheard of"] {
        let mut client = editor(&world, true);
        let session = client.session(&world);
        let prompt = client.prompt(&session, "hi");
        let request = next(&mut client);
        refuse(&mut client, &request, code);
        let error = &client.answer(prompt)["error"];
        let expected = if code == "unheard of" {
            "invalid_request"
        } else {
            code
        };
        assert_eq!(error["data"]["code"], expected, "{error}");
        assert!(
            error["message"]
                .as_str()
                .unwrap()
                .contains("VS Code says no"),
            "{error}"
        );
    }
}

#[test]
fn the_setup_form_offers_the_models_of_an_editor_that_has_some() {
    let world = World::new(json!([]));
    for has_models in [true, false] {
        let mut client = editor(&world, has_models);
        let providers = client.call("_tandem/providers", Value::Null)["result"]["providers"].take();
        let mut providers = providers.as_array().unwrap().iter();
        let offered = providers.find(|provider| provider["name"] == "vscode");
        let needs_key = offered.map(|provider| &provider["needsKey"]);
        assert_eq!(needs_key, has_models.then_some(&json!(false)));
    }
    let mut client = editor(&world, true);
    let models = client.ask("_tandem/models", json!({ "provider": "vscode" }));
    let request = client.next("_tandem/editorModels");
    let listed = json!({ "data": [{ "id": MODEL, "context_window": 90_000 }] });
    client.respond(&request, listed);
    let models = client.answer(models)["result"]["models"].take();
    assert_eq!(
        (&models[0]["id"], &models[0]["contextWindow"]),
        (&json!(MODEL), &json!(90_000))
    );
}

#[test]
fn the_models_of_vs_code_do_not_work_elsewhere() {
    let world = World::new(json!([]));
    let mut client = editor(&world, false);
    let session = client.session(&world);
    let prompt = client.prompt(&session, "hi");
    let error = &client.answer(prompt)["error"];
    assert_eq!(error["data"]["code"], "no_model", "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("work only in VS Code"), "{message}");
}
