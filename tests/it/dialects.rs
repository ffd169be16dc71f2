//! How APIs are chosen and what answers mean in them. What each provider requires of a request is tested in `strict`.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::driver::{Client, World};

/// A client whose sessions start with the first of `models`.
fn client(world: &World, models: &[(&str, &str)], more: Value) -> Client {
    let mut providers = serde_json::Map::new();
    for (provider, model) in models {
        let entry = providers
            .entry(*provider)
            .or_insert_with(|| json!({ "base-url": world.model.base_url(), "models": {} }));
        entry["models"][*model] = more.clone();
    }
    let (provider, model) = models[0];
    let mut client = world.stranger_on(tandem::server::Transport::Lsp, &[]);
    let mut params = world.handshake(json!({ "experimental": { "tandem": {} } }));
    params["initializationOptions"] =
        json!({ "model": format!("{provider}/{model}"), "providers": providers });
    client.shake_hands(params);
    client
}

#[track_caller]
fn ask(client: &mut Client, session: &str, text: &str) {
    let id = client.prompt(session, text);
    let answer = client.answer(id);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
}

/// A thought, words, and two parallel calls.
fn tool_turn(id: &str) -> Value {
    let call = |n: u32| json!({ "call": { "id": format!("{id}:{n}"), "name": "glob", "arguments": { "pattern": "*.rs" } } });
    json!([{ "reasoning": "secret thought" }, { "text": "Looking." }, call(1), call(2)])
}

/// Each request of a session with one model begins with the previous one.
#[track_caller]
fn check_prefix(requests: &[Value]) {
    for pair in requests.windows(2) {
        let bodies = [pair[0].to_string(), pair[1].to_string()];
        let before = bodies[0].trim_end_matches("]}");
        assert!(bodies[1].starts_with(before), "\n{before}\n{}", bodies[1]);
    }
}

#[test]
fn efforts_are_sent_once_in_provider_terms() {
    for (model, field, configured, chosen) in [
        (
            ("openai", "gpt-5.5"),
            "/reasoning/effort",
            json!("low"),
            json!("high"),
        ),
        (
            ("anthropic", "claude-opus-4-8"),
            "/output_config/effort",
            json!("low"),
            json!("high"),
        ),
        (
            ("anthropic", "claude-sonnet-4-5"),
            "/thinking/budget_tokens",
            json!(4_000),
            json!(24_000),
        ),
        (
            ("openrouter", "openai/gpt-5.5"),
            "/reasoning/effort",
            json!("low"),
            json!("high"),
        ),
        (
            ("deepseek", "deepseek-v4-pro"),
            "/reasoning_effort",
            json!("high"),
            json!("high"),
        ),
        (
            ("moonshot", "kimi-k2.6"),
            "/thinking/type",
            json!("enabled"),
            json!("enabled"),
        ),
        (
            ("xai", "grok-4.3"),
            "/reasoning_effort",
            json!("low"),
            json!("high"),
        ),
    ] {
        let world = World::new(json!([[{ "text": "One." }], [{ "text": "Two." }]]));
        let mut client = client(&world, &[model], json!({ "reasoning-effort": "low" }));
        let session = client.session(&world);
        ask(&mut client, &session, "one");
        client.call(
            "session/set_config_option",
            json!({ "sessionId": session, "configId": "effort", "value": "high" }),
        );
        ask(&mut client, &session, "two");
        let requests = world.rehearsal().requests();
        assert_eq!(
            requests[0].pointer(field),
            Some(&configured),
            "{model:?}: {}",
            requests[0]
        );
        assert_eq!(
            requests[1].pointer(field),
            Some(&chosen),
            "{model:?}: {}",
            requests[1]
        );
        let fields = ["reasoning_effort", "reasoning", "thinking", "output_config"];
        let said = fields
            .iter()
            .filter(|field| requests[1].get(**field).is_some())
            .count();
        let expected = if model.1 == "claude-opus-4-8" { 2 } else { 1 };
        assert_eq!(said, expected, "{model:?}: {}", requests[1]);
    }
}

fn refusal(message: &str) -> Value {
    json!([{ "status": 400, "body": { "error": message } }])
}

#[track_caller]
fn notice(client: &mut Client, part: &str) {
    client.find(|message| {
        message["params"]["message"]
            .as_str()
            .is_some_and(|text| text.contains(part))
    });
}

#[test]
fn refused_fields_are_dropped_for_the_session() {
    let refused = refusal("Model grok-4.3 does not support parameter reasoningEffort.");
    let world = World::new(json!([refused, [{ "text": "One." }], [{ "text": "Two." }]]));
    let mut client = client(
        &world,
        &[("xai", "grok-4.3")],
        json!({ "reasoning-effort": "low" }),
    );
    let session = client.session(&world);
    ask(&mut client, &session, "one");
    notice(&mut client, "`reasoning_effort`");
    client.call(
        "session/set_config_option",
        json!({ "sessionId": session, "configId": "effort", "value": "high" }),
    );
    ask(&mut client, &session, "two");
    let efforts: Vec<_> = world
        .rehearsal()
        .requests()
        .iter()
        .map(|body| body.get("reasoning_effort").is_some())
        .collect();
    assert_eq!(efforts, [true, false, false]);
}

#[test]
fn a_server_that_names_another_api_is_used_with_it() {
    let refused = refusal(
        "Function tools are not supported in /v1/chat/completions. Please use /v1/responses instead.",
    );
    let world =
        World::new(json!([refused, tool_turn("a"), [{ "text": "Done." }], [{ "text": "Again." }]]));
    let mut client = client(&world, &[("mine", "gpt-5.6")], json!({}));
    let session = client.session(&world);
    ask(&mut client, &session, "look");
    notice(&mut client, "`responses` API");
    ask(&mut client, &session, "again");
    let requests = world.rehearsal().requests();
    let in_responses: Vec<_> = requests
        .iter()
        .map(|body| body.get("input").is_some())
        .collect();
    assert_eq!(in_responses, [false, true, true, true]);
    check_prefix(&requests[1..]);
}

/// An answer with a signed or encrypted thought, in a provider's API. Gemini's is part of a call.
fn thoughtful(provider: &str, thought: &str) -> String {
    let lines = match provider {
        "anthropic" => vec![
            json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "thinking", "thinking": thought, "signature": "s" } }),
            json!({ "type": "content_block_stop", "index": 0 }),
            json!({ "type": "content_block_start", "index": 1, "content_block": { "type": "text", "text": "Done." } }),
            json!({ "type": "content_block_stop", "index": 1 }),
            json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" } }),
            json!({ "type": "message_stop" }),
        ],
        "openai" => {
            let said = json!({ "type": "message", "id": "msg_1", "role": "assistant",
                "content": [{ "type": "output_text", "text": "Done." }] });
            let reasoning = json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": thought });
            vec![
                json!({ "type": "response.output_item.done", "output_index": 0, "item": reasoning }),
                json!({ "type": "response.output_item.done", "output_index": 1, "item": said }),
                json!({ "type": "response.completed", "response": { "output": [] } }),
            ]
        }
        _ => {
            let function = json!({ "name": "glob", "arguments": "{\"pattern\": \"*\"}" });
            let call = json!({ "index": 0, "id": thought, "function": function,
                "extra_content": { "google": { "thought_signature": thought } } });
            vec![
                json!({ "choices": [{ "delta": { "tool_calls": [call] }, "finish_reason": "tool_calls" }] }),
            ]
        }
    };
    lines
        .iter()
        .map(|line| format!("data: {line}\n\n"))
        .collect::<Vec<_>>()
        .concat()
}

/// Providers refuse thoughts if what came before them has changed: through a summary, a newer version of tandem, another
/// account.
#[test]
fn thoughts_that_a_provider_does_not_take_back_are_omitted_and_new_ones_are_not() {
    let bound = "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation.";
    let undecodable =
        "The encrypted content could not be verified. Reason: it could not be decrypted or parsed.";
    for (model, refused) in [
        (("anthropic", "claude-opus-5-5"), bound),
        (("openai", "gpt-6.1-sol"), undecodable),
        (
            ("gemini", "gemini-3.8-flash"),
            "Corrupted thought signature.",
        ),
    ] {
        let is_call = model.0 == "gemini";
        let mut script = Vec::new();
        for thought in ["first", "second", "third"] {
            if thought == "second" {
                script.push(refusal(refused));
            }
            script.push(json!([{ "raw": thoughtful(model.0, thought) }]));
            if is_call {
                script.push(json!([{ "text": "Done." }]));
            }
        }
        let world = World::new(script.into());
        let mut client = client(&world, &[model], json!({}));
        let session = client.session(&world);
        for question in ["one", "two", "three"] {
            ask(&mut client, &session, question);
        }
        notice(&mut client, "earlier reasoning");
        let has = |sent: &str, thought: &str| {
            let mut fields = ["thinking", "encrypted_content", "thought_signature"].iter();
            fields.any(|field| sent.contains(&format!("\"{field}\":\"{thought}\"")))
        };
        let seen = |request: &Value| match request.to_string() {
            sent if has(&sent, "first") => "first",
            sent if has(&sent, "second") => "second",
            _ => "",
        };
        let seen: Vec<_> = world.rehearsal().requests().iter().map(seen).collect();
        let expected: &[&str] = if is_call {
            &["", "first", "first", "", "second", "second", "second"]
        } else {
            &["", "first", "", "second"]
        };
        assert_eq!(seen, expected, "{model:?}");
    }
}

#[test]
fn items_are_sent_back_verbatim_and_in_order() {
    let item = |item: Value| json!({ "type": "response.output_item.done", "output_index": item["at"], "item": item["item"] });
    let reasoning = |id: &str| json!({ "type": "reasoning", "id": id, "summary": [], "encrypted_content": format!("secret-{id}") });
    let message = json!({ "type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "commentary",
        "content": [{ "type": "output_text", "text": "Looking.", "annotations": [] }] });
    let call = json!({ "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "glob",
        "arguments": "{\"pattern\": \"*.rs\"}", "status": "completed" });
    let custom = json!({ "type": "custom_tool_call", "id": "ctc_1", "call_id": "call_2", "name": "apply_patch", "input": "no patch" });
    let items = [reasoning("rs_1"), message, reasoning("rs_2"), call, custom];
    let mut stream = String::new();
    for (at, value) in items.iter().enumerate() {
        write!(
            stream,
            "data: {}\n\n",
            item(json!({ "at": at, "item": value }))
        )
        .unwrap();
    }
    stream.push_str("data: {\"type\":\"response.completed\",\"response\":{\"output\":[]}}\n\n");
    let world = World::new(json!([[{ "raw": stream }], [{ "text": "Done." }]]));
    let mut client = client(&world, &[("openai", "gpt-5.5")], json!({}));
    let session = client.session(&world);
    ask(&mut client, &session, "look");
    let input = world.rehearsal().requests()[1]["input"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(input[1..6], items);
    assert_eq!(
        (&input[6]["type"], &input[6]["call_id"]),
        (&json!("function_call_output"), &json!("call_1"))
    );
    assert_eq!(
        (&input[7]["type"], &input[7]["call_id"]),
        (&json!("custom_tool_call_output"), &json!("call_2"))
    );
}

#[test]
fn pause_turn_is_resent_and_a_full_window_is_an_overflow() {
    let lines = |events: &[Value]| {
        events
            .iter()
            .map(|event| format!("data: {event}\n\n"))
            .collect::<Vec<_>>()
            .concat()
    };
    let raw = |events: &[Value]| json!([{ "raw": lines(events) }]);
    let text = json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "Half" } });
    let stop =
        |reason: &str| json!({ "type": "message_delta", "delta": { "stop_reason": reason } });
    let end = json!({ "type": "message_stop" });
    let world = World::new(json!([
        raw(&[text.clone(), stop("pause_turn"), end.clone()]),
        [{ "text": " and half." }],
        raw(&[text, stop("model_context_window_exceeded"), end]),
        [{ "text": "A summary." }],
        [{ "text": "Whole." }],
    ]));
    let mut client = client(&world, &[("anthropic", "claude-sonnet-4-6")], json!({}));
    let session = client.session(&world);
    ask(&mut client, &session, &"please ".repeat(50));
    let requests = world.rehearsal().requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(
        requests[1]["messages"].as_array().unwrap().last().unwrap()["role"],
        "assistant"
    );
    ask(&mut client, &session, &"more ".repeat(50));
    let requests = world.rehearsal().requests();
    assert_eq!(requests.len(), 5, "the summary, and the request again");
    assert_eq!(
        requests[4]["messages"].as_array().unwrap().last().unwrap()["role"],
        "user",
        "{:#}",
        requests[4]
    );
}

#[test]
fn a_complete_json_answer_is_accepted_instead_of_a_stream() {
    for (model, body) in [
        (
            ("mine", "m"),
            json!({ "choices": [{ "message": { "role": "assistant", "content": "Whole." }, "finish_reason": "stop" }],
            "usage": { "prompt_tokens": 5, "completion_tokens": 2 } }),
        ),
        (
            ("openai", "gpt-5.5"),
            json!({ "status": "completed", "output": [{ "type": "message", "role": "assistant",
            "content": [{ "type": "output_text", "text": "Whole." }] }] }),
        ),
        (
            ("anthropic", "claude-sonnet-4-6"),
            json!({ "type": "message", "content": [{ "type": "text", "text": "Whole." }],
            "stop_reason": "end_turn", "usage": { "input_tokens": 5, "output_tokens": 2 } }),
        ),
    ] {
        let world = World::new(json!([[{ "status": 200, "body": body }]]));
        let mut client = client(&world, &[model], json!({}));
        let session = client.session(&world);
        ask(&mut client, &session, "hello");
        assert_eq!(client.text(), "Whole.", "{model:?}");
    }
}
