//! The answers of a provider's model as stream events, and the parts that must be sent back.

use serde_json::{Value, json};
use tandem::model::Api;

use super::rows::{Row, api, call_id, keeps_thoughts, thoughts};

/// An answer.
#[derive(Debug, Clone, Default)]
pub struct Said {
    pub text: &'static str,
    /// Names and arguments of the calls.
    pub calls: Vec<(&'static str, Value)>,
    /// Whether it stops midway, while the provider runs a tool of its own.
    pub pauses: bool,
}

/// The parts of an answer that were sent.
#[derive(Debug, Clone)]
pub struct Issued {
    pub row: (String, String),
    /// Values that no other model may receive.
    pub secrets: Vec<String>,
    /// Values that must be returned unchanged: items (Responses), blocks (Messages), fields of the message (Chat).
    pub exact: Value,
}

/// The stream of an answer to a request of this many tokens; `number` is unique per answer.
pub fn speak(row: Row, said: &Said, number: usize, tokens: usize) -> (String, Issued) {
    let thought = format!("thought {number} of {}", row.1);
    let secret = format!("c2VjcmV0{number}-{}", row.0);
    let calls = said
        .calls
        .iter()
        .enumerate()
        .map(|(at, (name, arguments))| Call {
            id: call_id(row, number * 10 + at, name),
            name,
            arguments: arguments.to_string(),
        });
    let answer = Answer {
        row,
        text: said.text,
        thought: thought.clone(),
        secret: secret.clone(),
        tokens,
        calls: calls.collect(),
        pauses: said.pauses,
    };
    let (events, exact) = match api(row.0) {
        Api::Responses => answer.responses(number),
        Api::Messages => answer.messages(),
        Api::Chat => answer.chat(),
    };
    let issued = Issued {
        row: (row.0.to_owned(), row.1.to_owned()),
        secrets: vec![thought, secret],
        exact,
    };
    (events, issued)
}

struct Call {
    id: String,
    name: &'static str,
    arguments: String,
}

struct Answer {
    row: Row,
    text: &'static str,
    thought: String,
    secret: String,
    tokens: usize,
    calls: Vec<Call>,
    pauses: bool,
}

impl Answer {
    fn responses(&self, number: usize) -> (String, Value) {
        let reasoning = |id: &str| {
            json!({ "id": format!("rs_{number}{id}"), "type": "reasoning", "encrypted_content": format!("{}{id}", self.secret),
                "summary": [{ "type": "summary_text", "text": self.thought }] })
        };
        let phase = if self.calls.is_empty() {
            "final_answer"
        } else {
            "commentary"
        };
        let content = json!([{ "type": "output_text", "annotations": [], "logprobs": [], "text": self.text }]);
        let message = json!({ "id": format!("msg_{number}"), "type": "message", "status": "completed", "content": content,
            "phase": phase, "role": "assistant" });
        let thinks = !self.row.1.starts_with("gpt-4");
        let mut items: Vec<Value> = thinks
            .then(|| reasoning("a"))
            .into_iter()
            .chain([message])
            .collect();
        if thinks && !self.calls.is_empty() {
            items.push(reasoning("b"));
        }
        items.extend(self.calls.iter().map(|Call { id, name, arguments }| {
            json!({ "id": format!("fc_{id}"), "type": "function_call", "status": "completed", "arguments": arguments,
                "call_id": id, "name": name })
        }));
        let mut events = vec![
            json!({ "type": "response.created", "response": { "id": "resp_1", "status": "in_progress" } }),
        ];
        for (at, item) in items.iter().enumerate() {
            let mut begun = item.clone();
            for (field, empty) in [
                ("content", json!([])),
                ("summary", json!([])),
                ("arguments", json!("")),
            ] {
                if begun.get(field).is_some() {
                    begun[field] = empty;
                }
            }
            events.push(
                json!({ "type": "response.output_item.added", "output_index": at, "item": begun }),
            );
            events.extend(deltas(item).into_iter().map(|(kind, delta)| {
                json!({ "type": kind, "output_index": at, "item_id": item["id"], "content_index": 0, "delta": delta })
            }));
            events.push(
                json!({ "type": "response.output_item.done", "output_index": at, "item": item }),
            );
        }
        let usage = json!({ "input_tokens": self.tokens, "input_tokens_details": { "cached_tokens": 0 }, "output_tokens": 20 });
        let response =
            json!({ "id": "resp_1", "status": "completed", "output": items, "usage": usage });
        events.push(json!({ "type": "response.completed", "response": response }));
        (named(&events), items.into())
    }

    fn messages(&self) -> (String, Value) {
        let thinking = |part: &str| json!({ "type": "thinking", "thinking": self.thought, "signature": format!("{}{part}", self.secret) });
        let mut blocks = vec![
            thinking("a"),
            json!({ "type": "redacted_thinking", "data": format!("{}r", self.secret) }),
            json!({ "type": "text", "text": self.text }),
        ];
        if !self.calls.is_empty() {
            blocks.push(thinking("b"));
        }
        blocks.extend(self.calls.iter().map(|Call { id, name, arguments }| {
            json!({ "type": "tool_use", "id": id, "name": name, "input": serde_json::from_str::<Value>(arguments).unwrap() })
        }));
        if self.pauses {
            let input = json!({ "query": "tandem" });
            blocks.push(json!({ "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": input }));
        }
        let usage = json!({ "input_tokens": self.tokens, "cache_read_input_tokens": 0, "output_tokens": 1 });
        let message = json!({ "id": "msg_1", "type": "message", "role": "assistant", "content": [], "usage": usage });
        let mut events = vec![
            json!({ "type": "message_start", "message": message }),
            json!({ "type": "ping" }),
        ];
        for (index, block) in blocks.iter().enumerate() {
            let (begun, deltas) = in_pieces(block);
            events.push(
                json!({ "type": "content_block_start", "index": index, "content_block": begun }),
            );
            events.extend(deltas.into_iter().map(
                |delta| json!({ "type": "content_block_delta", "index": index, "delta": delta }),
            ));
            events.push(json!({ "type": "content_block_stop", "index": index }));
        }
        let reason = match self {
            Self { pauses: true, .. } => "pause_turn",
            Self { calls, .. } if calls.is_empty() => "end_turn",
            _ => "tool_use",
        };
        let usage = json!({ "output_tokens": 20 });
        events.push(
            json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": usage }),
        );
        events.push(json!({ "type": "message_stop" }));
        (named(&events), blocks.into())
    }

    fn chat(&self) -> (String, Value) {
        let chunk = |delta: Value, finish: Value| json!({ "id": "c", "object": "chat.completion.chunk", "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] });
        let mut events = vec![chunk(
            json!({ "role": "assistant", "content": "" }),
            Value::Null,
        )];
        let mut exact = json!({});
        let (provider, _) = self.row;
        if let Some(field) = thoughts(self.row) {
            let mut delta = json!({ field: self.thought });
            if provider == "openrouter" {
                let detail = json!({ "type": "reasoning.text", "text": self.thought, "signature": self.secret,
                    "format": "anthropic-claude-v1", "index": 0 });
                delta["reasoning_details"] = json!([detail]);
                exact["reasoning_details"] = json!([detail]);
            } else if field == "reasoning_content"
                && (!self.calls.is_empty() || keeps_thoughts(self.row))
            {
                exact[field] = json!(self.thought);
            }
            events.push(chunk(delta, Value::Null));
        }
        if provider == "mistral" {
            let thinking = json!([{ "type": "thinking", "thinking": [{ "type": "text", "text": self.thought }] }]);
            events.push(chunk(json!({ "content": thinking }), Value::Null));
        }
        events.push(chunk(json!({ "content": self.text }), Value::Null));
        for (
            index,
            Call {
                id,
                name,
                arguments,
            },
        ) in self.calls.iter().enumerate()
        {
            let function = json!({ "name": name, "arguments": arguments });
            let mut call =
                json!({ "index": index, "id": id, "type": "function", "function": function });
            if index == 0 && matches!(provider, "gemini" | "vertex") {
                call["extra_content"] = json!({ "google": { "thought_signature": self.secret } });
                exact["extra_content"] = call["extra_content"].clone();
            }
            events.push(chunk(json!({ "tool_calls": [call] }), Value::Null));
        }
        let finish = if self.calls.is_empty() {
            "stop"
        } else {
            "tool_calls"
        };
        events.push(chunk(json!({}), finish.into()));
        let usage = json!({ "prompt_tokens": self.tokens, "completion_tokens": 20, "total_tokens": self.tokens + 20 });
        events.push(
            json!({ "id": "c", "object": "chat.completion.chunk", "choices": [], "usage": usage }),
        );
        let events: Vec<_> = events
            .iter()
            .map(|event| format!("data: {event}\n\n"))
            .collect();
        (events.concat() + "data: [DONE]\n\n", exact)
    }
}

/// The deltas of an item in the Responses API.
fn deltas(item: &Value) -> Vec<(&'static str, Value)> {
    match item["type"].as_str().unwrap() {
        "reasoning" => vec![(
            "response.reasoning_summary_text.delta",
            item["summary"][0]["text"].clone(),
        )],
        "message" => vec![(
            "response.output_text.delta",
            item["content"][0]["text"].clone(),
        )],
        _ => vec![(
            "response.function_call_arguments.delta",
            item["arguments"].clone(),
        )],
    }
}

/// The beginning of a block in the Messages API, and its deltas.
fn in_pieces(block: &Value) -> (Value, Vec<Value>) {
    let mut begun = block.clone();
    let deltas = match block["type"].as_str().unwrap() {
        "thinking" => {
            (begun["thinking"], begun["signature"]) = (json!(""), json!(""));
            let thought = json!({ "type": "thinking_delta", "thinking": block["thinking"] });
            vec![
                thought,
                json!({ "type": "signature_delta", "signature": block["signature"] }),
            ]
        }
        "text" => {
            begun["text"] = json!("");
            vec![json!({ "type": "text_delta", "text": block["text"] })]
        }
        "tool_use" | "server_tool_use" => {
            begun["input"] = json!({});
            vec![json!({ "type": "input_json_delta", "partial_json": block["input"].to_string() })]
        }
        _ => Vec::new(),
    };
    (begun, deltas)
}

fn named(events: &[Value]) -> String {
    let named = |event: &Value| {
        format!(
            "event: {}\ndata: {event}\n\n",
            event["type"].as_str().unwrap()
        )
    };
    events.iter().map(named).collect()
}
