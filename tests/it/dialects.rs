//! What each provider wants of a request, checked on every request of a conversation: fresh, in a tool turn, after
//! another model, a summary, a steering message and a restart.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::driver::{Client, World};

/// Every hosted provider that has a row, and a model of it.
const PROVIDERS: [(&str, &str); 21] = [
    ("openai", "gpt-5.5"),
    ("azure", "gpt-5.1"),
    ("anthropic", "claude-sonnet-4-6"),
    ("anthropic", "claude-sonnet-4-5"),
    ("openrouter", "anthropic/claude-sonnet-5"),
    ("gemini", "gemini-3.5-flash"),
    ("deepseek", "deepseek-v4-pro"),
    ("moonshot", "kimi-k2.6"),
    ("mistral", "mistral-large-latest"),
    ("xai", "grok-4.3"),
    ("groq", "openai/gpt-oss-120b"),
    ("vllm", "Qwen/Qwen3-Coder"),
    ("together", "Qwen/Qwen3-Coder-480B-A35B"),
    ("cerebras", "gpt-oss-120b"),
    ("fireworks", "accounts/fireworks/models/kimi-k2.6"),
    ("nvidia", "moonshotai/kimi-k2.6"),
    ("github", "openai/gpt-4.1"),
    ("huggingface", "deepseek-ai/DeepSeek-V4-Pro"),
    ("bedrock", "openai.gpt-oss-120b"),
    ("vertex", "google/gemini-3.5-flash"),
    ("zai", "glm-5.2"),
];

/// A client whose conversations begin with the first of `models`.
fn client(world: &World, models: &[(&str, &str)], more: Value) -> Client {
    let mut providers = serde_json::Map::new();
    for (provider, model) in models {
        let entry =
            providers.entry(*provider).or_insert_with(|| json!({ "base-url": world.model.base_url(), "models": {} }));
        entry["models"][*model] = more.clone();
    }
    let (provider, model) = models[0];
    let mut client = world.stranger_on(tandem::server::Transport::Lsp, &[]);
    let mut params = world.handshake(json!({ "experimental": { "tandem": {} } }));
    params["initializationOptions"] = json!({ "model": format!("{provider}/{model}"), "providers": providers });
    client.shake_hands(params);
    client
}

#[track_caller]
fn ask(client: &mut Client, session: &str, text: &str) {
    let id = client.prompt(session, text);
    let answer = client.answer(id);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
}

fn switch(client: &mut Client, session: &str, (provider, model): (&str, &str)) {
    let name = format!("{provider}/{model}");
    let answer =
        client.call("session/set_config_option", json!({ "sessionId": session, "configId": "model", "value": name }));
    assert!(answer["error"].is_null(), "{answer}");
}

/// A thought, words, and two calls side by side.
fn tool_turn(id: &str) -> Value {
    let call =
        |n: u32| json!({ "call": { "id": format!("{id}:{n}"), "name": "glob", "arguments": { "pattern": "*.rs" } } });
    json!([{ "reasoning": "secret thought" }, { "text": "Looking." }, call(1), call(2)])
}

/// What is wrong with a request, by what its provider is known to refuse.
fn faults((provider, model): (&str, &str), body: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let mut wrong = |is: bool, what: &str| {
        if is {
            faults.push(what.to_owned());
        }
    };
    wrong(body["model"] != model, "another model");
    wrong(body.get("temperature").is_some(), "a temperature nobody asked for");
    match provider {
        "openai" | "azure" => responses(body, &mut wrong),
        "anthropic" => messages(model, body, &mut wrong),
        _ => chat(provider, body, &mut wrong),
    }
    faults
}

fn responses(body: &Value, wrong: &mut impl FnMut(bool, &str)) {
    wrong(body["store"] != false || body["include"] != json!(["reasoning.encrypted_content"]), "what is stored");
    wrong(!body["reasoning"]["effort"].is_string() || body["reasoning"]["summary"] != "auto", "no effort or summary");
    wrong(body["prompt_cache_key"].as_str().is_none_or(str::is_empty), "no cache key");
    let items = body["input"].as_array().unwrap();
    let of = |kind: &str| {
        items.iter().filter(|item| item["type"] == kind).map(|item| item["call_id"].clone()).collect::<Vec<_>>()
    };
    wrong(of("function_call") != of("function_call_output"), "calls without their results in order");
}

fn messages(model: &str, body: &Value, wrong: &mut impl FnMut(bool, &str)) {
    let limit = body["max_tokens"].as_u64().unwrap_or_default();
    if model == "claude-sonnet-4-6" {
        wrong(body["thinking"] != json!({ "type": "adaptive" }), "no adaptive thinking");
    } else {
        let budget = body["thinking"]["budget_tokens"].as_u64().unwrap_or_default();
        wrong(budget < 1024 || budget + 8_000 > limit, "no budget, or no room beside it");
    }
    wrong(body.to_string().matches("\"cache_control\"").count() > 4, "more than four cache marks");
    let eager = body["tools"].as_array().unwrap().iter().any(|tool| tool["eager_input_streaming"] == true);
    wrong(!eager, "edits do not stream");
    for pair in body["messages"].as_array().unwrap().windows(2) {
        let calls = pair[0]["content"].as_array().unwrap().iter().filter(|block| block["type"] == "tool_use");
        let results = pair[1]["content"].as_array().unwrap().iter().take_while(|block| block["type"] == "tool_result");
        let ids: Vec<_> = calls.map(|block| &block["id"]).collect();
        wrong(
            ids != results.map(|block| &block["tool_use_id"]).collect::<Vec<_>>(),
            "results that do not answer the calls",
        );
    }
}

fn chat(provider: &str, body: &Value, wrong: &mut impl FnMut(bool, &str)) {
    let messages = body["messages"].as_array().unwrap();
    for (index, message) in messages.iter().enumerate() {
        let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
        for (slot, call) in calls.iter().enumerate() {
            let result = &messages[index + 1 + slot];
            wrong(result["role"] != "tool" || result["tool_call_id"] != call["id"], "a call without its result");
        }
        let after_result = index > 0 && messages[index - 1]["role"] == "tool";
        let extra = calls.first().and_then(|call| call.pointer("/extra_content/google/thought_signature"));
        let id = calls.first().map_or("", |call| call["id"].as_str().unwrap());
        match provider {
            "mistral" => {
                wrong(after_result && message["role"] == "user", "user after tool");
                wrong(
                    !calls.is_empty() && (id.len() != 9 || !id.chars().all(char::is_alphanumeric)),
                    "an id Mistral refuses",
                );
            }
            "gemini" | "vertex" => wrong(!calls.is_empty() && extra.is_none(), "a call without signature"),
            "deepseek" | "moonshot" | "fireworks" | "nvidia" | "huggingface" => {
                wrong(!calls.is_empty() && !message["reasoning_content"].is_string(), "no reasoning_content");
            }
            "groq" => {
                let known = ["role", "content", "tool_calls", "tool_call_id"];
                wrong(
                    message.as_object().unwrap().keys().any(|key| !known.contains(&key.as_str())),
                    "a field Groq refuses",
                );
            }
            _ => {}
        }
    }
    wrong(provider == "mistral" && body.get("stream_options").is_some(), "stream_options");
    wrong(provider == "xai" && body.get("reasoning_effort").is_some(), "an effort nobody chose");
    wrong(provider == "openrouter" && body["cache_control"] != json!({ "type": "ephemeral" }), "no cache for Claude");
}

#[track_caller]
fn check(model: (&str, &str), requests: &[Value]) {
    for (index, body) in requests.iter().enumerate() {
        assert_eq!(faults(model, body), Vec::<String>::new(), "{model:?}, request {index}: {body:#}");
    }
}

/// Every request of a conversation with one model is the beginning of the next one.
#[track_caller]
fn check_prefix(requests: &[Value]) {
    for pair in requests.windows(2) {
        let bodies = [pair[0].to_string(), pair[1].to_string()];
        let before = bodies[0].trim_end_matches("]}");
        assert!(bodies[1].starts_with(before), "\n{before}\n{}", bodies[1]);
    }
}

#[test]
fn a_tool_turn_is_as_its_provider_wants_it() {
    for model in PROVIDERS {
        let world = World::new(json!([tool_turn("a"), [{ "text": "Done." }], tool_turn("b"), [{ "text": "Done." }]]));
        let mut client = client(&world, &[model], json!({}));
        let session = client.session(&world);
        ask(&mut client, &session, "look");
        ask(&mut client, &session, "again");
        let requests = world.rehearsal().requests();
        assert_eq!(requests.len(), 4, "{model:?}");
        check(model, &requests);
        check_prefix(&requests);
    }
}

#[test]
fn a_conversation_goes_on_with_every_other_model() {
    for first in [
        ("openai", "gpt-5.5"),
        ("anthropic", "claude-sonnet-4-6"),
        ("deepseek", "deepseek-v4-pro"),
        ("groq", "qwen/qwen3-32b"),
    ] {
        for second in PROVIDERS.into_iter().filter(|second| second.0 != first.0) {
            let world = World::new(
                json!([tool_turn("functions.f"), [{ "text": "Done." }], tool_turn("b"), [{ "text": "Done." }]]),
            );
            let mut client = client(&world, &[first, second], json!({}));
            let session = client.session(&world);
            ask(&mut client, &session, "the first question");
            switch(&mut client, &session, second);
            ask(&mut client, &session, "the second question");
            let requests = world.rehearsal().requests();
            check(first, &requests[..2]);
            check(second, &requests[2..]);
            let body = requests[2].to_string();
            assert!(!body.contains("secret thought"), "{first:?} → {second:?}: foreign reasoning in {body}");
            for words in ["the first question", "Looking.", "Done.", "the second question"] {
                assert!(body.contains(words), "{first:?} → {second:?}: {words} is missing in {body}");
            }
        }
    }
}

#[test]
fn a_steering_message_keeps_the_rules() {
    for model in PROVIDERS {
        let gated = json!([{ "call": { "id": "functions.glob:0", "name": "glob", "arguments": { "pattern": "*" } } }, { "gate": "g" }]);
        let world = World::new(json!([gated, [{ "text": "Done." }]]));
        let mut client = client(&world, &[model], json!({}));
        let session = client.session(&world);
        let prompt = client.prompt(&session, "look");
        world.wait(world.rehearsal().waiting_at("g"));
        let text = json!([{ "type": "text", "text": "only the small ones" }]);
        let steered = client.ask("_tandem/session/steer", json!({ "sessionId": session, "prompt": text }));
        world.rehearsal().open("g");
        client.answer(steered);
        client.answer(prompt);
        check(model, &world.rehearsal().requests());
    }
}

#[test]
fn a_conversation_that_is_taken_up_again_sends_the_same_bytes() {
    for model in PROVIDERS {
        let world = World::new(json!([tool_turn("a"), [{ "text": "Done." }], [{ "text": "Still here." }]]));
        let mut before = client(&world, &[model], json!({}));
        let session = before.session(&world);
        ask(&mut before, &session, "look");
        drop(before);
        let mut after = client(&world, &[model], json!({}));
        let resumed =
            after.call("session/resume", json!({ "sessionId": session, "cwd": world.path(), "mcpServers": [] }));
        assert!(resumed["error"].is_null(), "{resumed}");
        ask(&mut after, &session, "and now?");
        let requests = world.rehearsal().requests();
        check(model, &requests);
        check_prefix(&requests);
    }
}

#[test]
fn a_summary_keeps_words_instructions_and_rules() {
    for model in PROVIDERS {
        let full = json!([{ "status": 400, "body": { "error": { "message": "prompt is too long: 210000 tokens > 200000 maximum" } } }]);
        let world = World::new(json!([tool_turn("a"), full, [{ "text": "What was found." }], [{ "text": "Done." }]]));
        world.write("AGENTS.md", "RULE-ONE: use tabs.");
        world.write("long.rs", &"// line\n".repeat(2000));
        let mut client = client(&world, &[model], json!({}));
        let session = client.session(&world);
        ask(&mut client, &session, "THE-REQUEST, word for word, about @long.rs");
        let requests = world.rehearsal().requests();
        assert_eq!(requests.len(), 4, "{model:?}");
        let choice = &requests[2]["tool_choice"];
        assert!(*choice == "none" || choice["type"] == "none", "{model:?}: {choice}");
        check(model, &requests);
        let body = requests[3].to_string();
        assert!(
            body.contains("THE-REQUEST") && body.contains("RULE-ONE") && body.contains("What was found."),
            "{body}"
        );
        assert_eq!(requests[3]["tools"], requests[0]["tools"]);
        assert_eq!(client.text(), "Looking.Done.", "a summary is no answer");
    }
}

#[test]
fn an_effort_is_said_once_and_in_the_providers_words() {
    for (model, field, configured, chosen) in [
        (("openai", "gpt-5.5"), "/reasoning/effort", json!("low"), json!("high")),
        (("anthropic", "claude-opus-4-8"), "/output_config/effort", json!("low"), json!("high")),
        (("anthropic", "claude-sonnet-4-5"), "/thinking/budget_tokens", json!(4_000), json!(24_000)),
        (("openrouter", "openai/gpt-5.5"), "/reasoning/effort", json!("low"), json!("high")),
        (("deepseek", "deepseek-v4-pro"), "/reasoning_effort", json!("high"), json!("high")),
        (("moonshot", "kimi-k2.6"), "/thinking/type", json!("enabled"), json!("enabled")),
        (("xai", "grok-4.3"), "/reasoning_effort", json!("low"), json!("high")),
    ] {
        let world = World::new(json!([[{ "text": "One." }], [{ "text": "Two." }]]));
        let mut client = client(&world, &[model], json!({ "reasoning-effort": "low" }));
        let session = client.session(&world);
        ask(&mut client, &session, "one");
        client
            .call("session/set_config_option", json!({ "sessionId": session, "configId": "effort", "value": "high" }));
        ask(&mut client, &session, "two");
        let requests = world.rehearsal().requests();
        assert_eq!(requests[0].pointer(field), Some(&configured), "{model:?}: {}", requests[0]);
        assert_eq!(requests[1].pointer(field), Some(&chosen), "{model:?}: {}", requests[1]);
        let fields = ["reasoning_effort", "reasoning", "thinking", "output_config"];
        let said = fields.iter().filter(|field| requests[1].get(**field).is_some()).count();
        let expected = if model.1 == "claude-opus-4-8" { 2 } else { 1 };
        assert_eq!(said, expected, "{model:?}: {}", requests[1]);
    }
}

fn refusal(message: &str) -> Value {
    json!([{ "status": 400, "body": { "error": message } }])
}

#[track_caller]
fn notice(client: &mut Client, part: &str) {
    client.find(|message| message["params"]["message"].as_str().is_some_and(|text| text.contains(part)));
}

#[test]
fn a_refused_field_is_left_out_once_and_for_the_session() {
    let refused = refusal("Model grok-4.3 does not support parameter reasoningEffort.");
    let world = World::new(json!([refused, [{ "text": "One." }], [{ "text": "Two." }]]));
    let mut client = client(&world, &[("xai", "grok-4.3")], json!({ "reasoning-effort": "low" }));
    let session = client.session(&world);
    ask(&mut client, &session, "one");
    notice(&mut client, "`reasoning_effort`");
    client.call("session/set_config_option", json!({ "sessionId": session, "configId": "effort", "value": "high" }));
    ask(&mut client, &session, "two");
    let efforts: Vec<_> =
        world.rehearsal().requests().iter().map(|body| body.get("reasoning_effort").is_some()).collect();
    assert_eq!(efforts, [true, false, false]);
}

#[test]
fn a_server_that_names_the_other_dialect_is_asked_there() {
    let refused =
        refusal("Function tools are not supported in /v1/chat/completions. Please use /v1/responses instead.");
    let world = World::new(json!([refused, tool_turn("a"), [{ "text": "Done." }], [{ "text": "Again." }]]));
    let mut client = client(&world, &[("mine", "gpt-5.6")], json!({}));
    let session = client.session(&world);
    ask(&mut client, &session, "look");
    notice(&mut client, "`responses` dialect");
    ask(&mut client, &session, "again");
    let requests = world.rehearsal().requests();
    let in_responses: Vec<_> = requests.iter().map(|body| body.get("input").is_some()).collect();
    assert_eq!(in_responses, [false, true, true, true]);
    check_prefix(&requests[1..]);
}

#[test]
fn items_go_back_as_they_came_and_in_their_order() {
    let item =
        |item: Value| json!({ "type": "response.output_item.done", "output_index": item["at"], "item": item["item"] });
    let reasoning =
        |id: &str| json!({ "type": "reasoning", "id": id, "summary": [], "encrypted_content": format!("secret-{id}") });
    let message = json!({ "type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "commentary",
        "content": [{ "type": "output_text", "text": "Looking.", "annotations": [] }] });
    let call = json!({ "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "glob",
        "arguments": "{\"pattern\": \"*.rs\"}", "status": "completed" });
    let custom = json!({ "type": "custom_tool_call", "id": "ctc_1", "call_id": "call_2", "name": "apply_patch", "input": "no patch" });
    let items = [reasoning("rs_1"), message, reasoning("rs_2"), call, custom];
    let mut stream = String::new();
    for (at, value) in items.iter().enumerate() {
        write!(stream, "data: {}\n\n", item(json!({ "at": at, "item": value }))).unwrap();
    }
    stream.push_str("data: {\"type\":\"response.completed\",\"response\":{\"output\":[]}}\n\n");
    let world = World::new(json!([[{ "raw": stream }], [{ "text": "Done." }]]));
    let mut client = client(&world, &[("openai", "gpt-5.5")], json!({}));
    let session = client.session(&world);
    ask(&mut client, &session, "look");
    let input = world.rehearsal().requests()[1]["input"].as_array().unwrap().clone();
    assert_eq!(input[1..6], items);
    assert_eq!((&input[6]["type"], &input[6]["call_id"]), (&json!("function_call_output"), &json!("call_1")));
    assert_eq!((&input[7]["type"], &input[7]["call_id"]), (&json!("custom_tool_call_output"), &json!("call_2")));
}

#[test]
fn a_pause_is_sent_again_and_a_full_window_is_an_overflow() {
    let lines = |events: &[Value]| events.iter().map(|event| format!("data: {event}\n\n")).collect::<Vec<_>>().concat();
    let raw = |events: &[Value]| json!([{ "raw": lines(events) }]);
    let text =
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "Half" } });
    let stop = |reason: &str| json!({ "type": "message_delta", "delta": { "stop_reason": reason } });
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
    assert_eq!(requests[1]["messages"].as_array().unwrap().last().unwrap()["role"], "assistant");
    ask(&mut client, &session, &"more ".repeat(50));
    let requests = world.rehearsal().requests();
    assert_eq!(requests.len(), 5, "the summary, and the request again");
    assert_eq!(requests[4]["messages"].as_array().unwrap().last().unwrap()["role"], "user", "{:#}", requests[4]);
}

#[test]
fn a_whole_answer_where_a_stream_was_expected_is_an_answer() {
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
