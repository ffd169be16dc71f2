//! Inline completion: off until it is configured, one request per pause, through the API of each kind of server.

mod next_edit;

use serde_json::{Value, json};
use tandem::config::Environment;
use tandem::server::Transport;

use crate::driver::{Client, World};

const TEXT: &str = "fn main() {\n    let x = \n}\n";

/// A client that shows inline completions, with `options` beside the provider's address.
fn client(world: &World, provider: &str, completion: Value) -> Client {
    let home = world.folder.path().join(".home");
    let environment = Environment::made_up(&home, &[("OTHER_API_KEY", "sk-canary-canary")]);
    let mut client = world.stranger_in(Transport::Lsp, environment);
    let mut params = world.handshake(json!({ "textDocument": { "inlineCompletion": {} } }));
    params["initializationOptions"] = json!({
        "completion": completion,
        "providers": { provider: { "base-url": world.model.base_url() } },
        "limits": { "first-byte-timeout": 1 },
    });
    let answer = client.call("initialize", params);
    assert_eq!(
        answer["result"]["capabilities"]["inlineCompletionProvider"],
        json!({}),
        "{answer}"
    );
    client.notify("initialized", json!({}));
    client
}

/// A client of a server that completes with this provider's model, and an open document.
fn opened(script: Value, provider: &str) -> (World, Client, String) {
    let world = World::new(script);
    let model = format!("{provider}/qwen2.5-coder");
    let mut client = client(
        &world,
        provider,
        json!({ "model": model, "debounce-ms": 0 }),
    );
    let uri = world.uri("src/main.rs");
    client.open(&uri, TEXT);
    (world, client, uri)
}

fn ask_at(client: &mut Client, uri: &str, character: u32, trigger: u32) -> i64 {
    let params = json!({
        "textDocument": { "uri": uri },
        "position": { "line": 1, "character": character },
        "context": { "triggerKind": trigger },
    });
    client.ask("textDocument/inlineCompletion", params)
}

/// Requests a completion as an editor does while somebody types.
fn ask(client: &mut Client, uri: &str, character: u32) -> i64 {
    ask_at(client, uri, character, 2)
}

/// The suggested text; empty if there is none.
fn suggested(client: &mut Client, id: i64) -> String {
    let answer = client.answer(id);
    let items = answer["result"]["items"]
        .as_array()
        .unwrap_or_else(|| panic!("{answer}"));
    items
        .iter()
        .map(|item| item["insertText"].as_str().unwrap())
        .collect()
}

fn type_at(client: &mut Client, uri: &str, version: i32, character: u32, text: &str) {
    let place = json!({ "line": 1, "character": character });
    let change = json!({ "range": { "start": place, "end": place }, "text": text });
    let document = json!({ "uri": uri, "version": version });
    client.notify(
        "textDocument/didChange",
        json!({ "textDocument": document, "contentChanges": [change] }),
    );
}

fn document(body: Value) -> Value {
    json!([{ "status": 200, "body": body }])
}

fn warnings(client: &Client) -> Vec<String> {
    let shown = client
        .seen
        .iter()
        .filter(|message| message["method"] == "window/showMessage");
    shown
        .map(|message| message["params"]["message"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn each_kind_of_server_is_called_by_its_own_api() {
    let chosen = json!({ "choices": [{ "text": "1;" }] });
    let chat = json!({ "choices": [{ "message": { "role": "assistant", "content": "1;" } }] });
    let (before, after) = ("fn main() {\n    let x = ", "\n}\n");
    let suffix =
        json!({ "prompt": before, "suffix": after, "max_tokens": 256, "model": "qwen2.5-coder" });
    let tokens =
        json!({ "prompt": format!("<|fim_prefix|>{before}<|fim_suffix|>{after}<|fim_middle|>") });
    let ollama =
        json!({ "prompt": before, "suffix": after, "model": "qwen2.5-coder", "stream": false });
    for (provider, path, answer, sent) in [
        (
            "llamacpp",
            "/infill",
            json!({ "content": "1;" }),
            json!({ "input_prefix": before, "input_suffix": after }),
        ),
        (
            "ollama",
            "/api/generate",
            json!({ "response": "1;" }),
            ollama,
        ),
        (
            "mistral",
            "/v1/fim/completions",
            chat.clone(),
            suffix.clone(),
        ),
        ("deepseek", "/beta/completions", chosen.clone(), suffix),
        ("vllm", "/v1/completions", chosen, tokens),
        (
            "openrouter",
            "/v1/chat/completions",
            chat,
            json!({ "model": "qwen2.5-coder" }),
        ),
    ] {
        let (world, mut client, uri) = opened(json!([document(answer)]), provider);
        let id = ask(&mut client, &uri, 12);
        assert_eq!(suggested(&mut client, id), "1;", "{provider}");
        assert_eq!(world.rehearsal().paths(), [path]);
        let request = &world.rehearsal().requests()[0];
        for (field, value) in sent.as_object().unwrap() {
            assert_eq!(&request[field], value, "{provider} {field}");
        }
        if provider == "openrouter" {
            let sent = request["messages"].to_string();
            assert!(
                sent.contains("let x = <cursor/>\\n}") && request.get("tools").is_none(),
                "{request}"
            );
        }
    }
}

#[test]
fn the_api_can_be_chosen_and_a_suffix_is_sent_where_the_tokens_are_unknown() {
    let world = World::new(json!([document(json!({ "choices": [{ "text": "1;" }] }))]));
    let completion = json!({ "model": "mine/some-model", "api": "completions", "debounce-ms": 0, "max-tokens": 9 });
    let mut client = client(&world, "mine", completion);
    let uri = world.uri("main.rs");
    client.open(&uri, TEXT);
    let id = ask(&mut client, &uri, 12);
    assert_eq!(suggested(&mut client, id), "1;");
    let request = &world.rehearsal().requests()[0];
    assert_eq!(
        (&request["suffix"], &request["max_tokens"]),
        (&json!("\n}\n"), &json!(9)),
        "{request}"
    );
}

#[test]
fn without_a_configured_model_nothing_is_offered_and_nothing_is_sent() {
    let world = World::new(json!([]));
    let mut client = world.stranger();
    let params = world.handshake(json!({ "textDocument": { "inlineCompletion": {} } }));
    let answer = client.call("initialize", params);
    assert_eq!(
        answer["result"]["capabilities"].get("inlineCompletionProvider"),
        None
    );
    client.notify("initialized", json!({}));
    let uri = world.uri("main.rs");
    client.open(&uri, TEXT);
    let id = ask(&mut client, &uri, 12);
    let error = &client.answer(id)["error"];
    assert_eq!(error["code"], -32601, "{error}");
    assert!(
        error["message"].as_str().unwrap().contains("[completion]"),
        "{error}"
    );
    assert_eq!(world.rehearsal().connections(), 0);
}

#[test]
fn a_repository_cannot_turn_it_on() {
    let world = World::new(json!([]));
    let options = format!(
        "[completion]\nmodel = \"llamacpp/m\"\n[providers.llamacpp]\nbase-url = \"{}\"\n",
        world.model.base_url()
    );
    world.write(".tandem/config.toml", &options);
    let mut client = world.stranger();
    let params = world.handshake(json!({ "textDocument": { "inlineCompletion": {} } }));
    let answer = client.call("initialize", params);
    assert_eq!(
        answer["result"]["capabilities"].get("inlineCompletionProvider"),
        None,
        "{answer}"
    );
    client.notify("initialized", json!({}));
}

#[test]
fn a_cancelled_request_closes_its_connection() {
    let (world, mut client, uri) = opened(
        json!([[{ "hang": true }], document(json!({ "content": "2;" }))]),
        "llamacpp",
    );
    let id = ask(&mut client, &uri, 12);
    world.wait(world.rehearsal().requested(1));
    client.notify("$/cancelRequest", json!({ "id": id }));
    assert_eq!(client.answer(id)["error"]["code"], -32800);
    world.wait(world.rehearsal().closed_early(1));
    let again = ask(&mut client, &uri, 12);
    assert_eq!(suggested(&mut client, again), "2;");
}

#[test]
fn a_newer_request_replaces_the_previous_one() {
    let (world, mut client, uri) = opened(
        json!([[{ "hang": true }], document(json!({ "content": "2;" }))]),
        "llamacpp",
    );
    let first = ask(&mut client, &uri, 12);
    world.wait(world.rehearsal().requested(1));
    let second = ask(&mut client, &uri, 12);
    assert_eq!(suggested(&mut client, first), "");
    world.wait(world.rehearsal().closed_early(1));
    assert_eq!(suggested(&mut client, second), "2;");
}

#[test]
fn keystrokes_in_a_burst_cost_one_request() {
    let world = World::new(json!([document(json!({ "content": "2;" }))]));
    let mut client = client(
        &world,
        "llamacpp",
        json!({ "model": "llamacpp/m", "debounce-ms": 60_000 }),
    );
    let uri = world.uri("main.rs");
    client.open(&uri, TEXT);
    let burst: Vec<_> = (0..20).map(|_| ask(&mut client, &uri, 12)).collect();
    let invoked = ask_at(&mut client, &uri, 12, 1);
    for id in burst {
        assert_eq!(suggested(&mut client, id), "");
    }
    assert_eq!(suggested(&mut client, invoked), "2;");
    assert_eq!(world.rehearsal().requests().len(), 1);
}

#[test]
fn typing_what_was_suggested_costs_no_request() {
    let (world, mut client, uri) = opened(
        json!([
            document(json!({ "content": "12;" })),
            document(json!({ "content": " // more" }))
        ]),
        "llamacpp",
    );
    let id = ask(&mut client, &uri, 12);
    assert_eq!(suggested(&mut client, id), "12;");
    for (version, (at, typed, rest)) in (2..).zip([(12, "1", "2;"), (13, "2", ";")]) {
        type_at(&mut client, &uri, version, at, typed);
        let id = ask(&mut client, &uri, at + 1);
        assert_eq!(suggested(&mut client, id), rest);
    }
    assert_eq!(world.rehearsal().requests().len(), 1);
    type_at(&mut client, &uri, 4, 14, ";");
    let id = ask(&mut client, &uri, 15);
    assert_eq!(suggested(&mut client, id), " // more");
    assert_eq!(world.rehearsal().requests().len(), 2);
}

#[test]
fn a_failure_is_reported_once_and_followed_by_a_pause() {
    let missing = json!([{ "status": 404, "body": { "error": "no such model" } }]);
    let (world, mut client, uri) = opened(json!([missing, missing]), "ollama");
    let id = ask(&mut client, &uri, 12);
    assert_eq!(suggested(&mut client, id), "");
    let paused = ask(&mut client, &uri, 11);
    assert_eq!(suggested(&mut client, paused), "");
    assert_eq!(world.rehearsal().requests().len(), 1);
    // An explicit request is tried again.
    let invoked = ask_at(&mut client, &uri, 12, 1);
    assert_eq!(suggested(&mut client, invoked), "");
    assert_eq!(world.rehearsal().requests().len(), 2);
    let warnings = warnings(&client);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("inline completion") && warnings[0].contains("no such model"),
        "{warnings:?}"
    );
}

#[test]
fn silent_servers_time_out_and_are_reported_once() {
    let (world, mut client, uri) = opened(json!([[{ "hang": true }]]), "llamacpp");
    let id = ask(&mut client, &uri, 12);
    assert_eq!(suggested(&mut client, id), "");
    world.wait(world.rehearsal().closed_early(1));
    let warnings = warnings(&client);
    assert!(
        warnings.len() == 1 && warnings[0].contains("no completion for 1 s"),
        "{warnings:?}"
    );
}

#[test]
fn secrets_are_not_sent_and_open_files_of_the_workspace_are() {
    let (world, mut client, uri) =
        opened(json!([document(json!({ "content": "1;" }))]), "llamacpp");
    for name in [".env", "certs/server.pem"] {
        let secret = world.uri(name);
        client.open(&secret, "A=1\nB=canary-of-a-secret-file\n");
        let id = ask_at(&mut client, &secret, 2, 1);
        assert_eq!(suggested(&mut client, id), "", "{name}");
    }
    assert_eq!(world.rehearsal().connections(), 0);
    client.open(
        &world.uri("src/lib.rs"),
        "pub fn helper() {} // sk-canary-canary\n",
    );
    client.open("file:///elsewhere/lib.rs", "canary-of-a-foreign-file\n");
    let id = ask(&mut client, &uri, 12);
    assert_eq!(suggested(&mut client, id), "1;");
    let sent = world.rehearsal().requests()[0].to_string();
    assert!(
        sent.contains("pub fn helper()") && sent.contains("src/lib.rs"),
        "{sent}"
    );
    assert!(!sent.contains("canary"), "{sent}");
}

#[test]
fn a_chat_model_is_read_no_further_than_the_line() {
    let (world, mut client, uri) = opened(
        json!([[{ "text": "```rust\nlet x = y" }, { "text": ");\nmore" }, { "hang": true }]]),
        "openrouter",
    );
    type_at(&mut client, &uri, 2, 12, " + f(1);");
    let id = ask(&mut client, &uri, 12);
    assert_eq!(suggested(&mut client, id), "y);");
    world.wait(world.rehearsal().closed_early(1));
}
