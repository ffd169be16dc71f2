//! Facts about a model that needs no configuration: its window, its prices, and which model to choose.

use serde_json::{Value, json};

use crate::driver::{Client, World};

/// A client with these variables and options.
fn client(world: &World, variables: &[(&str, &str)], options: Value) -> Client {
    let mut client = world.stranger_on(tandem::server::Transport::Lsp, variables);
    let mut params = world.handshake(json!({ "experimental": { "tandem": {} } }));
    params["initializationOptions"] = options;
    client.shake_hands(params);
    client
}

fn at(world: &World, provider: &str, model: Value) -> Value {
    json!({ "model": model, "providers": { provider: { "base-url": world.model.base_url() } } })
}

#[track_caller]
fn ask(client: &mut Client, world: &World, text: &str) -> Value {
    let session = client.session(world);
    let id = client.prompt(&session, text);
    client.answer(id)
}

#[track_caller]
fn notice(client: &mut Client, parts: &[&str]) {
    client.find(|message| {
        message["params"]["message"]
            .as_str()
            .is_some_and(|text| parts.iter().all(|part| text.contains(part)))
    });
}

#[test]
fn a_key_alone_yields_window_and_cost_with_the_first_answer() {
    let world = World::new(json!([[{ "text": "Hello." }]]));
    let mut client = client(
        &world,
        &[("OPENAI_API_KEY", "k")],
        at(&world, "openai", Value::Null),
    );
    ask(&mut client, &world, "hello");
    let usage = client.update("usage_update");
    assert_eq!(usage["size"], 922_000);
    assert!(
        usage["used"].as_u64() > Some(1000) && usage["cost"]["amount"].as_f64() > Some(0.0),
        "{usage}"
    );
}

#[test]
fn the_best_available_model_is_chosen() {
    let world = World::new(json!([[{ "text": "Hello." }]]));
    let listed = json!({ "data": [{ "id": "text-embedding-3" }, { "id": "gpt-5.1" }, { "id": "gpt-5.6" }, { "id": "gpt-5.6-mini" }] });
    world.rehearsal().document("/v1/models", listed);
    let mut client = client(
        &world,
        &[("OPENAI_API_KEY", "k")],
        at(&world, "openai", Value::Null),
    );
    ask(&mut client, &world, "hello");
    assert_eq!(world.rehearsal().requests()[0]["model"], "gpt-5.6");
}

#[test]
fn retired_models_are_answered_with_available_ones() {
    let gone = json!({ "status": 404, "body": { "error": { "message": "The model `deepseek-chat` does not exist" } } });
    let world = World::new(json!([[gone]]));
    let listed = json!({ "data": [{ "id": "deepseek-v4-flash" }, { "id": "deepseek-v4-pro" }] });
    world.rehearsal().document("/v1/models", listed);
    let mut client = client(
        &world,
        &[],
        at(&world, "deepseek", json!("deepseek/deepseek-chat")),
    );
    let answer = ask(&mut client, &world, "hello");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("deepseek-v4-flash") && message.contains("deepseek-v4-pro"),
        "{message}"
    );
}

#[test]
fn the_endpoint_overrides_the_table_and_the_configuration_overrides_both() {
    for (configured, expected) in [(Value::Null, 100_000), (json!(50_000), 50_000)] {
        let world = World::new(json!([[{ "text": "Hello." }]]));
        let listed = json!({ "data": [{ "id": "gpt-5.1", "context_length": 100_000 }] });
        world.rehearsal().document("/v1/models", listed);
        let mut options = at(&world, "openai", json!("openai/gpt-5.1"));
        if configured.is_u64() {
            options["providers"]["openai"]["models"] =
                json!({ "gpt-5.1": { "context-window": configured } });
        }
        let mut client = client(&world, &[], options);
        ask(&mut client, &world, "hello");
        assert_eq!(client.update("usage_update")["size"], expected);
    }
}

#[test]
fn local_windows_are_read_and_small_ones_reported_once() {
    let world = World::new(json!([[{ "text": "Hello." }], [{ "text": "Again." }]]));
    world.rehearsal().document(
        "/api/ps",
        json!({ "models": [{ "name": "qwen3-coder:latest", "context_length": 4096 }] }),
    );
    let mut client = client(
        &world,
        &[],
        at(&world, "ollama", json!("ollama/qwen3-coder")),
    );
    let session = client.session(&world);
    for text in ["hello", "again"] {
        let id = client.prompt(&session, text);
        client.answer(id);
        assert_eq!(client.update("usage_update")["size"], 4096);
    }
    notice(
        &mut client,
        &[
            "4096",
            "OLLAMA_CONTEXT_LENGTH=64000 ollama serve",
            "`num_ctx`",
        ],
    );
    let again = client
        .seen
        .iter()
        .filter(|message| message.to_string().contains("OLLAMA_CONTEXT_LENGTH"));
    assert_eq!(again.count(), 0, "once is enough");
}

#[test]
fn a_token_count_below_any_window_is_no_evidence_of_one() {
    let odd = json!({ "usage": { "prompt_tokens": 11, "completion_tokens": 1 } });
    let world = World::new(json!([
        [{ "text": long(11_000) }, odd],
        [{ "text": "Done." }, odd],
        [{ "text": "Done." }, odd],
    ]));
    let mut client = client(
        &world,
        &[],
        at(&world, "ollama", json!("ollama/qwen3-coder")),
    );
    let session = client.session(&world);
    for text in ["talk", "look", "again"] {
        let id = client.prompt(&session, text);
        client.answer(id);
    }
    let warned = client
        .seen
        .iter()
        .any(|message| message.to_string().contains("read only 11 of"));
    assert!(!warned, "{:#?}", client.seen);
    assert_eq!(
        world.rehearsal().requests().len(),
        3,
        "nothing is compacted"
    );
}

/// A text of this many distinct words: a local model that repeats itself is stopped.
fn long(words: usize) -> String {
    (0..words).fold(String::new(), |text, word| text + &format!("{word:x} "))
}

#[test]
fn silently_truncated_prompts_are_detected_and_compacted() {
    let cut = json!({ "usage": { "prompt_tokens": 4096, "completion_tokens": 10 } });
    let read =
        json!({ "call": { "id": "c1", "name": "read_file", "arguments": { "path": "long.rs" } } });
    let world = World::new(json!([
        [{ "text": long(11_000) }],
        [read, cut],
        [{ "text": "A summary." }],
        [{ "text": "Done." }],
    ]));
    world.write("long.rs", "fn main() {}");
    let mut client = client(
        &world,
        &[],
        at(&world, "ollama", json!("ollama/qwen3-coder")),
    );
    let session = client.session(&world);
    for text in ["talk", "look"] {
        let id = client.prompt(&session, text);
        client.answer(id);
    }
    notice(
        &mut client,
        &["read only 4096 of about", "OLLAMA_CONTEXT_LENGTH=64000"],
    );
    let requests = world.rehearsal().requests();
    let sizes: Vec<usize> = requests
        .iter()
        .map(|body| body["messages"].to_string().len())
        .collect();
    assert!(sizes[3] * 3 < sizes[1], "{sizes:?}");
}
