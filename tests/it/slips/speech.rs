//! An answer of a case in the words of a dialect, as the events of its stream.

use serde_json::{Value, json};

/// What an endpoint speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Chat,
    Responses,
    Messages,
}

impl Dialect {
    /// The one spoken at a path.
    pub fn at(path: &str) -> Self {
        match path {
            path if path.ends_with("/messages") => Self::Messages,
            path if path.ends_with("/responses") => Self::Responses,
            _ => Self::Chat,
        }
    }
}

/// What an answer says, ready to be put into words.
struct Speech {
    think: String,
    deltas: Vec<String>,
    /// Ids, names and arguments as the model writes them.
    calls: Vec<(String, String, String)>,
    finish: Option<String>,
    /// Tokens in and out; `None` where the server tells none.
    usage: Option<(u64, u64)>,
}

/// The events of the answer to the request with this number, which had so many bytes.
pub fn speak(dialect: Dialect, answer: &Value, number: usize, bytes: u64) -> Vec<String> {
    if let Some(events) = answer["raw"].as_array() {
        return events.iter().map(raw).collect();
    }
    let speech = Speech::new(answer, number, bytes);
    match dialect {
        Dialect::Chat => speech.chat(),
        Dialect::Responses => speech.responses(),
        Dialect::Messages => speech.messages(),
    }
}

impl Speech {
    fn new(answer: &Value, number: usize, bytes: u64) -> Self {
        let deltas = match &answer["say"] {
            Value::Array(deltas) => deltas
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            say => vec![say.as_str().unwrap_or_default().to_owned()],
        };
        let call = |(index, call): (usize, &Value)| {
            let text = |at: usize| call[at].as_str().unwrap_or_default().to_owned();
            (format!("call_{number}_{index}"), text(0), text(1))
        };
        let usage = match &answer["usage"] {
            Value::Array(usage) => Some((usage[0].as_u64().unwrap(), usage[1].as_u64().unwrap())),
            Value::String(none) if none == "none" => None,
            Value::Number(factor) => Some((scaled(bytes / 4, factor.as_f64().unwrap()), 20)),
            _ => Some((bytes / 4, 20)),
        };
        Self {
            think: answer["think"].as_str().unwrap_or_default().to_owned(),
            deltas: deltas
                .into_iter()
                .filter(|delta| !delta.is_empty())
                .collect(),
            calls: answer["calls"]
                .as_array()
                .into_iter()
                .flatten()
                .enumerate()
                .map(call)
                .collect(),
            finish: answer["finish"].as_str().map(str::to_owned),
            usage,
        }
    }

    fn finish<'a>(&'a self, calls: &'a str, stop: &'a str, length: &'a str) -> &'a str {
        match self.finish.as_deref() {
            None if self.calls.is_empty() => stop,
            None => calls,
            Some("length") => length,
            Some("stop") => stop,
            Some(other) => other,
        }
    }

    fn chat(&self) -> Vec<String> {
        let chunk = |delta: Value, finish: Value| {
            data(
                &json!({ "id": "c", "object": "chat.completion.chunk", "model": "m",
                "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] }),
            )
        };
        let mut events = vec![chunk(
            json!({ "role": "assistant", "content": "" }),
            Value::Null,
        )];
        if !self.think.is_empty() {
            events.push(chunk(
                json!({ "reasoning_content": self.think }),
                Value::Null,
            ));
        }
        events.extend(
            self.deltas
                .iter()
                .map(|delta| chunk(json!({ "content": delta }), Value::Null)),
        );
        for (index, (id, name, arguments)) in self.calls.iter().enumerate() {
            let call = json!({ "index": index, "id": id, "type": "function", "function": { "name": name, "arguments": "" } });
            events.push(chunk(json!({ "tool_calls": [call] }), Value::Null));
            for piece in halves(arguments) {
                let call = json!({ "index": index, "function": { "arguments": piece } });
                events.push(chunk(json!({ "tool_calls": [call] }), Value::Null));
            }
        }
        events.push(chunk(
            json!({}),
            self.finish("tool_calls", "stop", "length").into(),
        ));
        if let Some((input, output)) = self.usage {
            let usage = json!({ "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output });
            events.push(data(&json!({ "id": "c", "object": "chat.completion.chunk", "choices": [], "usage": usage })));
        }
        events.push("data: [DONE]\n\n".to_owned());
        events
    }

    fn responses(&self) -> Vec<String> {
        let mut events = vec![named(
            &json!({ "type": "response.created", "response": { "id": "r", "status": "in_progress" } }),
        )];
        let mut output = Vec::new();
        if !self.think.is_empty() {
            let at = output.len();
            let item = json!({ "type": "reasoning", "id": "rs", "encrypted_content": "e",
                "summary": [{ "type": "summary_text", "text": self.think }] });
            events.push(named(&json!({ "type": "response.output_item.added", "output_index": at, "item": { "type": "reasoning", "id": "rs", "summary": [] } })));
            events.push(named(&json!({ "type": "response.reasoning_summary_text.delta", "output_index": at, "item_id": "rs", "summary_index": 0, "delta": self.think })));
            events.push(named(
                &json!({ "type": "response.output_item.done", "output_index": at, "item": item }),
            ));
            output.push(item);
        }
        if !self.deltas.is_empty() {
            let at = output.len();
            let item = json!({ "type": "message", "id": "msg", "role": "assistant", "status": "completed",
                "content": [{ "type": "output_text", "text": self.deltas.concat(), "annotations": [] }] });
            events.push(named(&json!({ "type": "response.output_item.added", "output_index": at, "item": { "type": "message", "id": "msg", "role": "assistant", "content": [] } })));
            events.extend(self.deltas.iter().map(|delta| {
                named(&json!({ "type": "response.output_text.delta", "output_index": at, "item_id": "msg", "content_index": 0, "delta": delta }))
            }));
            events.push(named(
                &json!({ "type": "response.output_item.done", "output_index": at, "item": item }),
            ));
            output.push(item);
        }
        for (id, name, arguments) in &self.calls {
            let at = output.len();
            let item = |arguments: &str| json!({ "type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name, "arguments": arguments });
            events.push(named(&json!({ "type": "response.output_item.added", "output_index": at, "item": item("") })));
            events.extend(halves(arguments).iter().map(|piece| {
                named(&json!({ "type": "response.function_call_arguments.delta", "output_index": at, "item_id": format!("fc_{id}"), "delta": piece }))
            }));
            events.push(named(
                &json!({ "type": "response.output_item.done", "output_index": at, "item": item(arguments) }),
            ));
            output.push(item(arguments));
        }
        let is_cut = self.finish.as_deref() == Some("length");
        let details = if is_cut {
            json!({ "reason": "max_output_tokens" })
        } else {
            Value::Null
        };
        let usage = self
            .usage
            .map(|(input, output)| json!({ "input_tokens": input, "output_tokens": output }));
        let (kind, status) = if is_cut {
            ("response.incomplete", "incomplete")
        } else {
            ("response.completed", "completed")
        };
        let response = json!({ "id": "r", "status": status, "output": output, "incomplete_details": details, "usage": usage });
        events.push(named(&json!({ "type": kind, "response": response })));
        events
    }

    fn messages(&self) -> Vec<String> {
        let (input, output) = self.usage.unwrap_or_default();
        let message = json!({ "id": "m", "type": "message", "role": "assistant", "content": [], "model": "m",
            "stop_reason": null, "usage": { "input_tokens": input, "output_tokens": 1 } });
        let mut events = vec![named(
            &json!({ "type": "message_start", "message": message }),
        )];
        let mut index = 0;
        let mut block = |start: Value, deltas: Vec<Value>| {
            events.push(named(
                &json!({ "type": "content_block_start", "index": index, "content_block": start }),
            ));
            for delta in deltas {
                events.push(named(
                    &json!({ "type": "content_block_delta", "index": index, "delta": delta }),
                ));
            }
            events.push(named(
                &json!({ "type": "content_block_stop", "index": index }),
            ));
            index += 1;
        };
        if !self.think.is_empty() {
            let thought = json!({ "type": "thinking_delta", "thinking": self.think });
            block(
                json!({ "type": "thinking", "thinking": "" }),
                vec![
                    thought,
                    json!({ "type": "signature_delta", "signature": "s" }),
                ],
            );
        }
        if !self.deltas.is_empty() {
            let text = self
                .deltas
                .iter()
                .map(|delta| json!({ "type": "text_delta", "text": delta }));
            block(json!({ "type": "text", "text": "" }), text.collect());
        }
        for (id, name, arguments) in &self.calls {
            let pieces = halves(arguments)
                .map(|piece| json!({ "type": "input_json_delta", "partial_json": piece }));
            block(
                json!({ "type": "tool_use", "id": id, "name": name, "input": {} }),
                pieces.to_vec(),
            );
        }
        let reason = self.finish("tool_use", "end_turn", "max_tokens");
        let usage = json!({ "output_tokens": output });
        events.push(named(
            &json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": usage }),
        ));
        events.push(named(&json!({ "type": "message_stop" })));
        events
    }
}

/// Tokens that are a share of others.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a few thousand tokens"
)]
fn scaled(tokens: u64, factor: f64) -> u64 {
    (tokens as f64 * factor) as u64
}

fn halves(text: &str) -> [&str; 2] {
    text.split_at(text.floor_char_boundary(text.len() / 2))
        .into()
}

/// An event as a case spells it: a text as it is, anything else as a chunk.
fn raw(event: &Value) -> String {
    event.as_str().map_or_else(|| data(event), str::to_owned)
}

fn data(event: &Value) -> String {
    format!("data: {event}\n\n")
}

fn named(event: &Value) -> String {
    format!(
        "event: {}\ndata: {event}\n\n",
        event["type"].as_str().unwrap()
    )
}
