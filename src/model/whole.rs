//! A whole answer where a stream was expected: some servers and proxies do not stream. It becomes the stream it would have
//! been, so that one decoder reads both.

use serde_json::{Value, json};

use super::Api;

/// The stream of a complete answer; `None` if `body` is not one.
pub(super) fn stream(api: Api, body: &str) -> Option<Vec<u8>> {
    let answer: Value = serde_json::from_str(body).ok()?;
    if answer.get("error").is_some_and(|error| !error.is_null()) {
        return None;
    }
    let events = match api {
        Api::Chat => chat(answer),
        Api::Responses => responses(&answer),
        Api::Messages => messages(&answer),
    }?;
    let mut bytes = Vec::new();
    for event in events {
        bytes.extend_from_slice(format!("data: {event}\n\n").as_bytes());
    }
    Some(bytes)
}

fn chat(mut answer: Value) -> Option<Vec<Value>> {
    let choice = answer["choices"].get_mut(0)?;
    let mut message = choice["message"].take();
    message.as_object()?;
    for (index, call) in (0..).zip(message["tool_calls"].as_array_mut().into_iter().flatten()) {
        call["index"] = json!(index);
    }
    let finish = match choice["finish_reason"].take() {
        Value::String(reason) => reason,
        _ => "stop".to_owned(),
    };
    let choice = json!({ "index": 0, "delta": message, "finish_reason": finish });
    Some(vec![
        json!({ "choices": [choice], "usage": answer["usage"] }),
    ])
}

fn responses(answer: &Value) -> Option<Vec<Value>> {
    answer["output"].as_array()?;
    let kind = if answer["status"] == "incomplete" {
        "response.incomplete"
    } else {
        "response.completed"
    };
    Some(vec![json!({ "type": kind, "response": answer })])
}

fn messages(answer: &Value) -> Option<Vec<Value>> {
    let content = answer["content"].as_array()?;
    let mut events =
        vec![json!({ "type": "message_start", "message": { "usage": answer["usage"] } })];
    for (index, block) in content.iter().enumerate() {
        events
            .push(json!({ "type": "content_block_start", "index": index, "content_block": block }));
        events.push(json!({ "type": "content_block_stop", "index": index }));
    }
    let reason = answer["stop_reason"].as_str().unwrap_or("end_turn");
    events.push(json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": answer["usage"] }));
    events.push(json!({ "type": "message_stop" }));
    Some(events)
}
