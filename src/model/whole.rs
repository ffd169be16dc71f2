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
    let choice = answer.get_mut("choices")?.get_mut(0)?;
    let finish = choice["finish_reason"]
        .as_str()
        .unwrap_or("stop")
        .to_owned();
    let mut message = choice.get_mut("message")?.take();
    let calls = message.as_object_mut()?.get_mut("tool_calls");
    let calls = calls.and_then(Value::as_array_mut).into_iter().flatten();
    for (index, call) in calls.filter_map(Value::as_object_mut).enumerate() {
        call.insert("index".to_owned(), index.into());
    }
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
    answer["content"].as_array()?;
    let reason = answer["stop_reason"].as_str().unwrap_or("end_turn");
    Some(vec![
        json!({ "type": "message_start", "message": answer }),
        json!({ "type": "message_delta", "delta": { "stop_reason": reason } }),
        json!({ "type": "message_stop" }),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_of_another_shape_is_no_answer() {
        let shapes = [
            "[]",
            "\"text\"",
            "1",
            "null",
            r#"{"choices": []}"#,
            r#"{"choices": "no"}"#,
            r#"{"choices": [1]}"#,
            r#"{"choices": [{"message": [1]}]}"#,
            r#"{"output": {}}"#,
            r#"{"content": "text"}"#,
        ];
        for api in [Api::Chat, Api::Responses, Api::Messages] {
            for body in shapes {
                assert!(stream(api, body).is_none(), "{api:?}: {body}");
            }
        }
        let odd = r#"{"choices": [{"message": {"tool_calls": [1, {"id": "a"}]}}]}"#;
        assert!(stream(Api::Chat, odd).is_some());
    }
}
