//! What a setup form requests before there is a session: providers, their models, whether one works.

use serde_json::{Value, json};

use crate::driver::{Client, World, call, choose};
use crate::plain;
use tandem::server::Transport;

#[test]
fn providers_are_listed_with_what_they_need() {
    let world = World::new(json!([]));
    let mut client = world.client();
    let answer = client.call("_tandem/providers", Value::Null);
    let providers = answer["result"]["providers"].as_array().unwrap();
    let named = |name: &str| {
        providers
            .iter()
            .find(|provider| provider["name"] == name)
            .unwrap()
    };
    assert_eq!(named("anthropic")["needsKey"], true);
    assert_eq!(
        named("anthropic")["baseUrl"],
        "https://api.anthropic.com/v1"
    );
    assert_eq!(named("azure").get("baseUrl"), None);
    assert_eq!(named("ollama")["needsKey"], false);
}

#[test]
fn models_come_best_first_with_window_and_price() {
    let world = World::new(json!([]));
    let listed = json!({ "data": [{ "id": "text-embedding-3" }, { "id": "gpt-5.1" }, { "id": "gpt-5.5" }, { "id": "gpt-4o" }] });
    world.rehearsal().document("/v1/models", listed);
    let mut client = world.client();
    let request = json!({ "provider": "openai", "apiKey": "sk-setup-form", "baseUrl": world.model.base_url() });
    let answer = client.call("_tandem/models", request);
    let models = answer["result"]["models"].as_array().unwrap();
    let names: Vec<_> = models
        .iter()
        .map(|model| model["id"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["gpt-5.5", "gpt-5.1", "gpt-4o"]);
    assert_eq!(models[0]["contextWindow"], 922_000);
    assert_eq!(models[0]["price"], json!({ "input": 5.0, "output": 30.0 }));
}

#[test]
fn unreachable_providers_are_reported() {
    let world = World::new(json!([]));
    let mut client = world.client();
    let answer = client.call(
        "_tandem/models",
        json!({ "provider": "openai", "baseUrl": "http://127.0.0.1:9/v1" }),
    );
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("127.0.0.1:9"),
        "{answer}"
    );
    let answer = client.call("_tandem/models", json!({ "provider": "opnai" }));
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("openai"),
        "{answer}"
    );
}

#[test]
fn models_are_checked_like_in_doctor() {
    let call =
        json!([{ "call": { "id": "c1", "name": "report_ready", "arguments": { "ready": true } } }]);
    let world = World::new(json!([[{ "text": "ready" }], call]));
    let mut client = world.client();
    let request = json!({ "provider": "openai", "model": "gpt-5.5", "apiKey": "k", "baseUrl": world.model.base_url() });
    let answer = client.call("_tandem/check", request);
    assert_eq!(answer["result"]["ok"], true, "{answer}");
    let findings = answer["result"]["findings"].as_array().unwrap();
    let checks: Vec<_> = findings
        .iter()
        .map(|finding| finding["check"].as_str().unwrap())
        .collect();
    assert_eq!(checks, ["streaming", "window", "tool calls"]);
    assert!(
        findings.iter().all(|finding| finding["verdict"] == "good"),
        "{findings:?}"
    );
}

/// A first configuration. Settings besides its model apply, too.
fn configuration(world: &World) -> Value {
    json!({
        "model": "mine/scripted",
        "mode": "plan",
        "permissions": { "deny": ["read_file(notes.txt)"] },
        "providers": { "mine": { "base-url": world.model.base_url(), "api-key-env": "" } },
    })
}

fn write_configuration(world: &World) {
    world.write(
        ".home/config/config.toml",
        &toml::to_string(&configuration(world)).unwrap(),
    );
}

/// A model that reads a file, then answers.
fn reader() -> World {
    let read = call("c1", "read_file", json!({ "path": "notes.txt" }));
    World::new(json!([[read], [{ "text": "Answered." }]]))
}

fn check_denied(world: &World) {
    let requests = world.rehearsal().requests();
    assert_eq!(requests.len(), 2);
    assert!(
        requests[1]
            .to_string()
            .contains("one of the user's rules forbids"),
        "{}",
        requests[1]
    );
}

#[test]
fn a_configuration_written_after_a_failed_prompt_is_read_by_the_next_one() {
    for (transport, in_editor) in [
        (Transport::Lsp, false),
        (Transport::Lsp, true),
        (Transport::Acp, false),
    ] {
        let world = reader();
        let mut client = world.stranger_on(transport, &[]);
        client.call(
            "initialize",
            json!({ "protocolVersion": 1, "capabilities": { "experimental": { "tandem": {} } } }),
        );
        let session = client.session(&world);
        let ask = |client: &mut Client| {
            let id = client.prompt(&session, "hi");
            client.answer(id)
        };
        for _ in 0..2 {
            assert_eq!(ask(&mut client)["error"]["data"]["code"], "no_model");
        }
        if in_editor {
            client.notify(
                "workspace/didChangeConfiguration",
                json!({ "settings": configuration(&world) }),
            );
        } else {
            write_configuration(&world);
        }
        assert_eq!(ask(&mut client)["result"]["stopReason"], "end_turn");
        assert_eq!(client.text(), "Answered.");
        assert_eq!(
            client.update("current_mode_update")["currentModeId"],
            "plan"
        );
        check_denied(&world);
    }
}

#[test]
fn a_chat_file_reads_a_configuration_written_after_a_failed_question() {
    let world = reader();
    let mut client = world.stranger_on(Transport::Lsp, &[]);
    client.shake_hands(world.handshake(json!({ "workspace": { "applyEdit": true } })));
    let uri = world.uri("notes.tandem.md");
    let mut text = plain::ask_in_chat(&mut client, &uri, "## You\n\nWhy?\n");
    plain::edit_until(&mut client, &uri, &mut text, |text| {
        text.ends_with("\n\n## You\n\nWhy?\n")
    });
    assert!(text.contains("> **error:** no model configured"), "{text}");
    write_configuration(&world);
    plain::save(&mut client, &uri);
    plain::edit_until(&mut client, &uri, &mut text, |text| {
        text.ends_with("Answered.\n\n## You\n\n")
    });
    check_denied(&world);
}

#[test]
fn settings_of_a_model_that_refused_the_key_are_read_again_by_the_next_prompt() {
    for transport in [Transport::Lsp, Transport::Acp] {
        let refused = json!([{ "status": 401, "body": { "error": { "message": "no such key" } } }]);
        let write = call(
            "c1",
            "write_file",
            json!({ "path": "a.txt", "content": "a" }),
        );
        let world = World::new(json!([
            [{ "text": "Before." }], refused, [write], [{ "text": "Left." }]
        ]));
        let configure = |user: &str, mode: &str| {
            let mut config = configuration(&world);
            config["mode"] = mode.into();
            config["providers"]["mine"]["body"] = json!({ "user": user });
            let config = toml::to_string(&config).unwrap();
            world.write(".home/config/config.toml", &config);
        };
        configure("old", "ask");
        let mut client = world.stranger_on(transport, &[]);
        client.call(
            "initialize",
            json!({ "protocolVersion": 1, "capabilities": { "experimental": { "tandem": {} } } }),
        );
        let session = client.session(&world);
        let before = client.prompt(&session, "hi");
        assert_eq!(client.answer(before)["result"]["stopReason"], "end_turn");
        let refused = client.prompt(&session, "again");
        assert_eq!(client.answer(refused)["error"]["data"]["code"], "auth");
        configure("new", "auto");
        let answered = client.prompt(&session, "and now");
        // The mode is unchanged.
        let request = client.next("session/request_permission");
        choose(&mut client, &request, "reject");
        assert_eq!(client.answer(answered)["result"]["stopReason"], "end_turn");
        let requests = world.rehearsal().requests();
        let users: Vec<_> = requests.iter().map(|request| &request["user"]).collect();
        assert_eq!(users, ["old", "old", "new", "new"]);
    }
}
