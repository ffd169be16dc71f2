//! What requests look like in the three APIs.

use serde_json::{Map, Value, json};

use crate::model::{
    Api, Arguments, AssistantMessage, Endpoint, Image, Instructions, Message, Part, Provider,
    ReasoningItem, ToolCall, ToolResult, ToolSpec, body,
};

fn provider(api: Api, configured: Value) -> Provider {
    let Value::Object(body) = configured else {
        panic!("no object: {configured}")
    };
    Provider::http(Endpoint {
        body,
        ..Endpoint::new("p", api, "http://localhost/v1", "m")
    })
}

fn user(text: &str) -> Message {
    Message::User {
        parts: vec![Part::Text { text: text.into() }],
    }
}

fn call(id: &str, arguments: Arguments) -> ToolCall {
    ToolCall {
        id: id.into(),
        name: "f".into(),
        arguments,
    }
}

fn results(ids: &[&str]) -> Message {
    let result = |id: &&str| ToolResult {
        call_id: (*id).into(),
        content: "done".into(),
        ..ToolResult::default()
    };
    Message::Results {
        results: ids.iter().map(result).collect(),
    }
}

fn instructions() -> Instructions {
    let parameters = json!({ "type": "object" });
    let tool = ToolSpec {
        name: "f".into(),
        description: "Does f.".into(),
        parameters,
        streams: false,
    };
    Instructions {
        system: "Be brief.".into(),
        tools: [tool].into(),
        conversation: "c".into(),
    }
}

/// The whole body of a request with these messages.
fn request(api: Api, configured: Value, messages: &[Message]) -> Value {
    let provider = provider(api, configured);
    let messages: Vec<_> = messages
        .iter()
        .map(|message| provider.encode(message))
        .collect();
    serde_json::from_slice(&body::close(
        &provider.preamble(&instructions()),
        &messages,
        b"]}",
    ))
    .unwrap()
}

/// A call with complete arguments and one with truncated ones, after some reasoning.
fn conversation(reasoning: Vec<ReasoningItem>) -> Vec<Message> {
    let whole = Arguments::Object(Map::from_iter([("x".to_owned(), json!(1))]));
    let cut = Arguments::Unparsable("{\"x\":".into());
    let answer = AssistantMessage {
        text: "Look:".into(),
        reasoning,
        refusal: String::new(),
        calls: vec![call("a", whole), call("b", cut)],
    };
    vec![
        user("hello"),
        Message::Assistant(answer),
        results(&["a", "b"]),
        user("more"),
    ]
}

fn item(api: Api, model: &str, item: Value) -> ReasoningItem {
    ReasoningItem {
        api,
        model: model.into(),
        provider: String::new(),
        item,
    }
}

/// For each API, one item that may be sent back, and two of each kind that may not.
fn reasoning(api: Api, own: &Value) -> Vec<ReasoningItem> {
    let foreign = if api == Api::Chat {
        Api::Messages
    } else {
        Api::Chat
    };
    vec![
        item(foreign, "m", json!({ "foreign": 1 })),
        item(api, "other", json!({ "foreign": 2 })),
        item(api, "m", own.clone()),
    ]
}

#[test]
fn chat() {
    let own = json!({ "reasoning_content": "hm" });
    let body = request(
        Api::Chat,
        json!({ "temperature": 0 }),
        &conversation(reasoning(Api::Chat, &own)),
    );
    let function = |arguments| json!({ "name": "f", "arguments": arguments });
    assert_eq!(
        body,
        json!({
            "model": "m",
            "stream": true,
            "stream_options": { "include_usage": true },
            "temperature": 0,
            "tools": [{ "type": "function", "function": {
                "name": "f", "description": "Does f.", "parameters": { "type": "object" },
            } }],
            "messages": [
                { "role": "system", "content": "Be brief." },
                { "role": "user", "content": "hello" },
                {
                    "role": "assistant",
                    "content": "Look:",
                    "tool_calls": [
                        { "id": "a", "type": "function", "function": function("{\"x\":1}") },
                        { "id": "b", "type": "function", "function": function("{\"unparsable\":\"{\\\"x\\\":\"}") },
                    ],
                    "reasoning_content": "hm",
                },
                { "role": "tool", "tool_call_id": "a", "content": "done" },
                { "role": "tool", "tool_call_id": "b", "content": "done" },
                { "role": "user", "content": "more" },
            ],
        })
    );
}

#[test]
fn responses() {
    let own =
        json!({ "type": "reasoning", "id": "r", "summary": [], "encrypted_content": "secret" });
    let mut reasoning = reasoning(Api::Responses, &own);
    reasoning.push(item(
        Api::Responses,
        "m",
        json!({ "type": "reasoning", "id": "not stored" }),
    ));
    let body = request(
        Api::Responses,
        json!({ "reasoning": { "effort": "low" } }),
        &conversation(reasoning),
    );
    let message = |role, kind, text| json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] });
    assert_eq!(
        body,
        json!({
            "model": "m",
            "stream": true,
            "store": false,
            "include": ["reasoning.encrypted_content"],
            "prompt_cache_key": "c",
            "reasoning": { "effort": "low" },
            "tools": [{
                "type": "function", "name": "f", "description": "Does f.", "parameters": { "type": "object" }, "strict": false,
            }],
            "instructions": "Be brief.",
            "input": [
                message("user", "input_text", "hello"),
                own,
                message("assistant", "output_text", "Look:"),
                { "type": "function_call", "call_id": "a", "name": "f", "arguments": "{\"x\":1}" },
                { "type": "function_call", "call_id": "b", "name": "f", "arguments": "{\"unparsable\":\"{\\\"x\\\":\"}" },
                { "type": "function_call_output", "call_id": "a", "output": "done" },
                { "type": "function_call_output", "call_id": "b", "output": "done" },
                message("user", "input_text", "more"),
            ],
        })
    );
}

#[test]
fn messages() {
    let own = json!({ "type": "thinking", "thinking": "hm", "signature": "s" });
    let body = request(
        Api::Messages,
        json!({ "max_tokens": 100 }),
        &conversation(reasoning(Api::Messages, &own)),
    );
    let marker = json!({ "type": "ephemeral" });
    let result = |id| json!({ "type": "tool_result", "tool_use_id": id, "content": "done", "is_error": false });
    assert_eq!(
        body,
        json!({
            "model": "m",
            "max_tokens": 100,
            "stream": true,
            "cache_control": marker,
            "tools": [{ "name": "f", "description": "Does f.", "input_schema": { "type": "object" } }],
            "system": [{ "type": "text", "text": "Be brief.", "cache_control": marker }],
            "messages": [
                { "role": "user", "content": [{ "type": "text", "text": "hello" }] },
                { "role": "assistant", "content": [
                    own,
                    { "type": "text", "text": "Look:" },
                    { "type": "tool_use", "id": "a", "name": "f", "input": { "x": 1 } },
                    { "type": "tool_use", "id": "b", "name": "f", "input": { "unparsable": "{\"x\":" } },
                ] },
                { "role": "user", "content": [result("a"), result("b")] },
                { "role": "user", "content": [{ "type": "text", "text": "more" }] },
            ],
        })
    );
}

#[test]
fn calls_have_a_thought_where_the_server_demands_one() {
    let own = json!({ "type": "thinking", "thinking": "hm", "signature": "s" });
    let thoughts = |author: &str, provider: &str, model: &str, effort: Option<&str>| {
        let answer = AssistantMessage {
            calls: vec![call("a", Arguments::Object(Map::new()))],
            reasoning: vec![item(Api::Messages, author, own.clone())],
            ..AssistantMessage::default()
        };
        let endpoint = Endpoint {
            effort: effort.map(str::to_owned),
            ..Endpoint::new(provider, Api::Messages, "", model)
        };
        let provider = Provider::http(endpoint);
        let body = body::close(
            &provider.preamble(&instructions()),
            &[provider.encode(&Message::Assistant(answer))],
            b"]}",
        );
        let mut body: Value = serde_json::from_slice(&body).unwrap();
        let Value::Array(mut blocks) = body["messages"][0]["content"].take() else {
            panic!("{body}")
        };
        blocks.retain(|block| block["type"] == "thinking");
        blocks
    };
    let empty = json!({ "type": "thinking", "thinking": "", "signature": "" });
    for (provider, model) in [
        ("deepseek", "deepseek-v4-pro"),
        ("proxy", "deepseek-v4-pro"),
        ("kimi-coding", "kimi-k2.6"),
    ] {
        assert_eq!(thoughts(model, provider, model, None), vec![own.clone()]);
        assert_eq!(
            thoughts("other", provider, model, None),
            vec![empty.clone()]
        );
        assert!(thoughts("other", provider, model, Some("none")).is_empty());
    }
    for (provider, model) in [("anthropic", "claude-sonnet-5-5"), ("proxy", "qwen3-coder")] {
        assert!(thoughts("other", provider, model, None).is_empty());
    }
}

#[test]
fn only_models_whose_version_is_known_get_cache_breakpoints() {
    for (model, expected) in [("gpt-6-sol", true), ("gpt-prod", false)] {
        let provider = Provider::http(Endpoint::new("azure", Api::Responses, "", model));
        let preamble = provider.preamble(&instructions());
        let opening = String::from_utf8_lossy(&preamble.bytes);
        assert_eq!(opening.contains("prompt_cache_breakpoint"), expected);
    }
}

#[test]
fn a_message_without_content_leaves_no_gap() {
    let nothing = Message::Assistant(AssistantMessage {
        text: " \n".into(),
        ..AssistantMessage::default()
    });
    let body = request(Api::Messages, json!({}), &[user("a"), nothing, user("b")]);
    assert_eq!(body["messages"].as_array().unwrap().len(), 2);
}

#[test]
fn unsupported_fields_can_be_omitted() {
    for off in [json!(false), json!(null)] {
        let body = request(Api::Chat, json!({ "stream_options": off }), &[user("a")]);
        assert!(body.get("stream_options").is_none(), "{body}");
    }
    assert_eq!(
        request(Api::Responses, json!({ "store": false }), &[user("a")])["store"],
        false
    );
}

#[test]
fn images_are_encoded_for_each_dialect() {
    let image = Part::Image(Image::new("image/png", &[0; 3]));
    let message = [Message::User {
        parts: vec![Part::Text { text: "see".into() }, image],
    }];
    let url = "data:image/png;base64,AAAA";
    let chat = request(Api::Chat, json!({}), &message);
    assert_eq!(chat["messages"][1]["content"][1]["image_url"]["url"], url);
    let responses = request(Api::Responses, json!({}), &message);
    assert_eq!(
        responses["input"][0]["content"][1],
        json!({ "type": "input_image", "image_url": url })
    );
    let messages = request(Api::Messages, json!({}), &message);
    assert_eq!(
        messages["messages"][0]["content"][1]["source"]["data"],
        "AAAA"
    );
}

#[test]
fn invalid_names_and_ids_are_sanitized() {
    let odd = |name: &str| ToolCall {
        name: name.into(),
        ..call("functions.f:0", Arguments::Object(Map::new()))
    };
    let answer = AssistantMessage {
        calls: vec![odd("read file"), odd("")],
        ..AssistantMessage::default()
    };
    let history = [Message::Assistant(answer), results(&["functions.f:0"])];
    let messages = request(Api::Messages, json!({}), &history)["messages"].take();
    assert_eq!(messages[0]["content"][0]["name"], "read_file");
    assert_eq!(messages[0]["content"][1]["name"], "unknown");
    assert_eq!(messages[0]["content"][0]["id"], "functions_f_0");
    assert_eq!(messages[1]["content"][0]["tool_use_id"], "functions_f_0");
    let chat = request(Api::Chat, json!({}), &history);
    assert_eq!(chat["messages"][1]["tool_calls"][0]["id"], "functions.f:0");
}
