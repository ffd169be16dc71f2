//! A session that outgrows the model's window: what the model receives then, and what the person is told.

use serde_json::{Value, json};

use crate::driver::{Client, World, call};

/// A client whose model has a context window of this many tokens.
fn client(world: &World, window: u64) -> Client {
    let mut client = world.stranger();
    let mut params = world.handshake(json!({ "experimental": { "tandem": {} } }));
    params["initializationOptions"] = json!({ "providers": { "custom": { "models": { "scripted": { "context-window": window } } } } });
    client.shake_hands(params);
    client
}

fn ask(client: &mut Client, session: &str, text: &str) -> Value {
    let id = client.prompt(session, text);
    client.answer(id)
}

fn usage(tokens: u64) -> Value {
    json!({ "usage": { "prompt_tokens": tokens, "completion_tokens": 10 } })
}

fn overflow() -> Value {
    let message =
        "This model's maximum context length is 8192 tokens, however you requested 9000 tokens.";
    json!({ "status": 400, "body": { "error": { "message": message, "code": "context_length_exceeded" } } })
}

/// The messages of a request without the system prompt.
#[track_caller]
fn messages(world: &World, request: usize) -> Vec<Value> {
    world.rehearsal().requests()[request]["messages"]
        .as_array()
        .unwrap()[1..]
        .to_vec()
}

fn told(client: &mut Client) -> String {
    let status = client.find(|message| {
        message["params"]["message"]
            .as_str()
            .is_some_and(|text| text.starts_with("the session was shortened"))
    });
    status["params"]["message"].as_str().unwrap().to_owned()
}

#[test]
fn old_tool_output_is_removed_first() {
    let read = |id, offset| {
        call(
            id,
            "read_file",
            json!({ "path": "big.txt", "offset": offset }),
        )
    };
    let world = World::new(json!([
        [read("c1", 1), read("c2", 119), read("c3", 237), usage(4000)],
        [call("c4", "glob", json!({ "pattern": "*.x" })), usage(13_000)],
        [{ "text": "Seen." }],
    ]));
    world.write(
        "big.txt",
        &"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n".repeat(400),
    );
    let mut client = client(&world, 16_000);
    let session = client.session(&world);
    assert_eq!(
        ask(&mut client, &session, "look")["result"]["stopReason"],
        "end_turn"
    );
    assert!(
        messages(&world, 1)[2]["content"].as_str().unwrap().len() > 7500,
        "an eighth of the window is read"
    );
    let last = messages(&world, 2);
    assert!(
        last[2]["content"]
            .as_str()
            .unwrap()
            .contains("bytes left out to save room"),
        "{}",
        last[2]
    );
    assert_eq!(last.len(), 7);
    assert_eq!(last[1], messages(&world, 1)[1], "nothing else is rewritten");
    assert!(told(&mut client).ends_with("old tool output was left out"));
}

#[test]
fn then_the_model_summarizes() {
    let world = World::new(json!([
        [call("c1", "update_plan", json!({ "entries": [{ "content": "Win", "status": "in_progress" }] }))],
        [{ "text": "long ".repeat(11_000) }],
        [{ "text": "We chose blue." }],
        [{ "text": "Blue." }],
    ]));
    let mut client = client(&world, 16_000);
    let session = client.session(&world);
    ask(&mut client, &session, "talk");
    assert_eq!(
        ask(&mut client, &session, "which color?")["result"]["stopReason"],
        "end_turn"
    );
    let summary = messages(&world, 2);
    assert!(
        summary.last().unwrap()["content"]
            .as_str()
            .unwrap()
            .starts_with("Summarize the conversation")
    );
    let last = messages(&world, 3);
    let text = last[1]["content"].as_str().unwrap();
    assert!(
        text.starts_with("We chose blue.") && text.contains("- [in_progress] Win"),
        "{text}"
    );
    assert!(
        last[2]["content"]
            .as_str()
            .unwrap()
            .starts_with("which color?")
    );
    assert_eq!(last.len(), 3);
    assert_eq!(
        client.update("agent_thought_chunk")["content"]["text"],
        "We chose blue."
    );
    assert!(told(&mut client).contains("summarized"));
    assert_eq!(world.rehearsal().requests().len(), 4);
}

#[test]
fn a_truncated_summary_is_requested_again_and_marked_if_truncated_twice() {
    let cut = json!([{ "text": "We chose" }, { "finish": "length" }]);
    for whole in [true, false] {
        let mut script = vec![json!([{ "text": "long ".repeat(11_000) }]), cut.clone()];
        if whole {
            script.push(json!([{ "text": "We chose blue." }]));
        } else {
            script.extend([cut.clone(), cut.clone()]);
        }
        script.push(json!([{ "text": "Blue." }]));
        let world = World::new(script.into());
        let mut client = client(&world, 16_000);
        let session = client.session(&world);
        ask(&mut client, &session, "talk");
        ask(&mut client, &session, "which color?");
        let again = messages(&world, 2).pop().unwrap().to_string();
        assert!(again.contains("at most 300 words"), "{again}");
        let last = world.rehearsal().requests().pop().unwrap().to_string();
        let is_said = last.contains("summary was cut off here");
        assert_eq!(is_said, !whole, "{last}");
        assert!(last.contains("We chose blue.") == whole, "{last}");
    }
}

#[test]
fn context_overflow_is_recovered_twice_in_a_row() {
    let world = World::new(json!([
        [{ "text": "Hello." }],
        [overflow()],
        [{ "text": "They said hello." }],
        [{ "text": "Again." }],
        [overflow()],
        [{ "text": "They said hello again." }],
        [overflow()],
        [{ "text": "Hello." }],
        [overflow()],
        [{ "text": "Still here." }],
    ]));
    let mut client = world.client();
    let session = client.session(&world);
    ask(&mut client, &session, &"hello ".repeat(100));
    assert_eq!(
        ask(&mut client, &session, "once more")["result"]["stopReason"],
        "end_turn"
    );
    let retried = messages(&world, 3);
    let (first, last) = (
        retried[0]["content"].as_str().unwrap(),
        retried[2]["content"].as_str().unwrap(),
    );
    assert!(
        first.contains("They said hello.") && last.starts_with("once more"),
        "{retried:?}"
    );
    let failed = ask(&mut client, &session, "and again");
    assert_eq!(
        failed["error"]["data"]["code"], "context_overflow",
        "{failed}"
    );
    assert_eq!(world.rehearsal().requests().len(), 9);
    assert_eq!(
        ask(&mut client, &session, "are you there?")["result"]["stopReason"],
        "end_turn"
    );
}

#[test]
fn a_failed_summary_is_reported_and_loses_nothing() {
    let world = World::new(json!([
        [{ "text": "long ".repeat(9000) }],
        [{ "status": 401, "body": { "error": { "message": "no" } } }],
        [{ "text": "Blue." }],
    ]));
    let mut client = client(&world, 12_000);
    let session = client.session(&world);
    ask(&mut client, &session, "talk");
    assert_eq!(
        ask(&mut client, &session, "which color?")["result"]["stopReason"],
        "end_turn"
    );
    assert_eq!(messages(&world, 2).len(), 3, "as it was");
    client.find(|message| {
        message["params"]["message"]
            .as_str()
            .is_some_and(|text| text.contains("could not be summarized"))
    });
}

#[test]
fn unsupported_images_are_dropped_with_a_notice() {
    let refused = "Invalid content type. image_url is only supported by certain models.";
    let world = World::new(json!([
        [{ "status": 400, "body": { "error": { "message": refused } } }],
        [{ "text": "I cannot see it." }],
        [{ "text": "Still here." }],
    ]));
    let mut client = world.client();
    let session = client.session(&world);
    let image = json!({ "type": "image", "mimeType": "image/png", "data": "AAAA" });
    let prompt = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "what is this?" }, image] });
    let answer = client.call("session/prompt", prompt);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert!(
        messages(&world, 0)[0]["content"]
            .to_string()
            .contains("image_url")
    );
    assert_eq!(
        messages(&world, 1)[0]["content"],
        "what is this?\n\n(an image, image/png)"
    );
    let told = client
        .seen
        .iter()
        .filter_map(|message| message["params"]["message"].as_str());
    assert!(
        told.into_iter()
            .any(|text| text.contains("does not accept these images") && text.contains(refused))
    );
    assert_eq!(
        ask(&mut client, &session, "are you there?")["result"]["stopReason"],
        "end_turn"
    );
    assert_eq!(messages(&world, 2)[0], messages(&world, 1)[0]);
}

#[test]
fn unsupported_images_of_results_are_dropped_too() {
    let refused = "Invalid content type. image_url is only supported by certain models.";
    let world = World::new(json!([
        [{ "call": { "id": "c1", "name": "read_file", "arguments": { "path": "dot.png" } } }],
        [{ "status": 400, "body": { "error": { "message": refused } } }],
        [{ "text": "I cannot see it." }],
    ]));
    std::fs::write(
        world.path().join("dot.png"),
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    )
    .unwrap();
    let mut client = world.client();
    let session = client.session(&world);
    assert_eq!(
        ask(&mut client, &session, "what is in dot.png?")["result"]["stopReason"],
        "end_turn"
    );
    let has_picture = |request: usize| {
        json!(messages(&world, request))
            .to_string()
            .contains("image_url")
    };
    assert!(
        has_picture(1) && !has_picture(2),
        "{:?}",
        messages(&world, 2)
    );
    assert!(
        json!(messages(&world, 2))
            .to_string()
            .contains("(an image, image/png)")
    );
}

/// What servers report when a request doesn't fit, and the window it names.
#[test]
#[expect(clippy::too_many_lines, reason = "one table of words")]
fn the_window_in_the_words_of_each_server_is_used_in_every_dialect() {
    let error =
        |message: &str| json!({ "error": { "message": message, "type": "invalid_request_error" } });
    let llamacpp = |message: &str| json!({ "error": { "code": 400, "message": message, "type": "exceed_context_size_error", "n_prompt_tokens": 17438, "n_ctx": 8192 } });
    let bodies = [
        (
            "chat",
            llamacpp(
                "request (17438 tokens) exceeds the available context size (8192 tokens), try increasing it",
            ),
            Some(8192),
        ),
        (
            "messages",
            llamacpp("the request exceeds the available context size, try increasing it"),
            Some(8192),
        ),
        (
            "responses",
            llamacpp(
                "request (17438 tokens) exceeds the available context size (8192 tokens), try increasing it",
            ),
            Some(8192),
        ),
        (
            "chat",
            error(
                "This model's maximum context length is 8192 tokens. However, you requested 9500 tokens (8476 in the messages, 1024 in the completion). Please reduce the length of the messages or completion.",
            ),
            Some(8192),
        ),
        (
            "messages",
            error(
                "You passed 8193 input tokens and requested 0 output tokens. However, the model's context length is only 8192 tokens, resulting in a maximum input length of 8192 tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=8193)",
            ),
            Some(8192),
        ),
        (
            "responses",
            error(
                "This model's maximum context length is 32768 tokens and your request has 20000 input tokens (20000 > 32768 - 16384).",
            ),
            Some(32_768),
        ),
        (
            "chat",
            error(
                "Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of 9224 tokens: 8200 tokens from the input messages and 1024 tokens for the completion.",
            ),
            Some(8192),
        ),
        (
            "chat",
            json!({ "error": "Trying to keep the first 9237 tokens when context the overflows. However, the model is loaded with context length of only 8192 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input" }),
            Some(8192),
        ),
        (
            "responses",
            json!({ "error": "The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length, or provide a shorter input" }),
            None,
        ),
        (
            "messages",
            json!({ "error": "Reached context length of 4096 tokens with model (arch: qwen2) that does not currently support mid-generation context overflow." }),
            None,
        ),
        (
            "chat",
            error("prompt too long; exceeded max context length by 11258 tokens"),
            None,
        ),
        (
            "chat",
            error(
                "This model's maximum context length is 128000 tokens. However, your messages resulted in 128011 tokens (127735 in the messages, 276 in the functions). Please reduce the length of the messages or functions.",
            ),
            Some(128_000),
        ),
        (
            "responses",
            json!({ "error": { "message": "Your input exceeds the context window of this model. Please adjust your input and try again.", "code": "context_length_exceeded", "param": "input" } }),
            None,
        ),
        (
            "messages",
            json!({ "type": "error", "error": { "type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum" } }),
            Some(200_000),
        ),
        (
            "messages",
            json!({ "type": "error", "error": { "type": "invalid_request_error", "message": "input length and `max_tokens` exceed context limit: 199000 + 32000 > 200000, decrease input length or `max_tokens` and try again" } }),
            Some(200_000),
        ),
        (
            "chat",
            json!([{ "error": { "code": 400, "message": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", "status": "INVALID_ARGUMENT" } }]),
            Some(1_048_576),
        ),
    ];
    for (api, body, window) in bodies {
        let refused = json!({ "status": 400, "body": body });
        let world = World::new(json!([
            [{ "text": "Hello." }],
            [refused], [{ "text": "They said hello." }],
            [refused], [{ "text": "They said it twice." }],
            [{ "text": "Again." }],
        ]));
        let mut client = world.stranger();
        let mut params = world.handshake(json!({ "experimental": { "tandem": {} } }));
        let provider =
            json!({ "base-url": world.model.base_url(), "api": api, "models": { "mine": {} } });
        params["initializationOptions"] =
            json!({ "model": "own/mine", "providers": { "own": provider } });
        client.shake_hands(params);
        let session = client.session(&world);
        ask(&mut client, &session, &"hello ".repeat(2000));
        let answer = ask(&mut client, &session, "once more");
        assert_eq!(
            answer["result"]["stopReason"], "end_turn",
            "{api} {body} {answer}"
        );
        let mut sizes = client
            .seen
            .iter()
            .filter_map(|message| message["params"]["update"]["size"].as_u64());
        assert_eq!(sizes.next_back(), window, "{api} {body}");
    }
}

#[test]
fn no_call_has_the_id_of_an_earlier_one_of_its_session() {
    let write = |path| {
        call(
            "c1",
            "write_file",
            json!({ "path": path, "content": "x\n" }),
        )
    };
    let world = World::new(json!([
        [write("a.txt")],
        [{ "text": "long ".repeat(2000) }],
        [{ "text": "In short." }],
        [write("b.txt")],
        [{ "text": "Done." }],
        [write("c.txt")],
        [{ "text": "Done." }],
    ]));
    let start = |world: &World, method: &str, session: &str| {
        let mut client = world.client();
        let params = json!({ "sessionId": session, "cwd": world.path(), "mcpServers": [] });
        let session = client.call(method, params)["result"]["sessionId"].clone();
        (client, session)
    };
    let (mut client, session) = start(&world, "session/new", "");
    let session = session.as_str().unwrap();
    let edit = json!({ "sessionId": session, "modeId": "edit" });
    client.call("session/set_mode", edit);
    for words in ["write a", "/compact", "write b"] {
        ask(&mut client, session, words);
    }
    client.end();
    let (mut client, _) = start(&world, "session/resume", session);
    ask(&mut client, session, "write c");
    client.end();
    let (mut client, _) = start(&world, "session/load", session);
    let mut calls = Vec::new();
    for _ in 0..3 {
        let shown = client.update("tool_call");
        let id = shown["toolCallId"].clone();
        let ended = client.find(|message| {
            let update = &message["params"]["update"];
            update["toolCallId"] == id && update["status"] == "completed"
        });
        let path = ended["params"]["update"]["content"][0]["path"].clone();
        calls.push((id, path));
    }
    for (at, (id, path)) in calls.iter().enumerate() {
        let earlier = calls.iter().take(at);
        assert!(earlier.clone().all(|other| other.0 != *id), "{calls:?}");
        assert!(path.is_string(), "{calls:?}");
    }
}

#[test]
fn a_cancelled_summary_leaves_everything_as_it_was() {
    let world = World::new(json!([
        [call("c1", "read_file", json!({ "path": "a.txt" }))],
        [{ "text": "long ".repeat(2000) }],
        [{ "gate": "never" }],
        [{ "text": "Still here." }],
    ]));
    world.write("a.txt", &"line\n".repeat(500));
    let mut client = world.client();
    let session = client.session(&world);
    ask(&mut client, &session, "read it");
    let compact = client.prompt(&session, "/compact");
    world.wait(world.rehearsal().waiting_at("never"));
    client.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(client.answer(compact)["result"]["stopReason"], "cancelled");
    ask(&mut client, &session, "what was in it?");
    let last = world.rehearsal().requests().len() - 1;
    assert_eq!(messages(&world, last)[..3], messages(&world, 1)[..3]);
}
