//! What a model server says, as bytes, on the two wires the cases know.

use serde_json::{Value, json};

/// How the model speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    Chat,
    Anthropic,
}

/// A call of a reply: its id, its name and its arguments as the model wrote them.
pub type Call = (String, String, String);

impl Wire {
    pub fn of_path(path: &str) -> Self {
        if path.ends_with("/messages") { Self::Anthropic } else { Self::Chat }
    }

    /// The beginning of an answer.
    pub fn begin(self) -> String {
        match self {
            Self::Chat => String::new(),
            Self::Anthropic => {
                let message = json!({ "id": "m", "type": "message", "role": "assistant", "content": [], "model": "scripted",
                    "stop_reason": null, "usage": { "input_tokens": 1, "output_tokens": 1 } });
                event(&json!({ "type": "message_start", "message": message }))
            }
        }
    }

    /// Words of text, one event each.
    pub fn words(self, text: &str) -> Vec<String> {
        let words: Vec<&str> = text.split_inclusive(' ').collect();
        match self {
            Self::Chat => words.iter().map(|word| chat(&json!({ "content": word }), None)).collect(),
            Self::Anthropic => {
                let block = json!({ "type": "text", "text": "" });
                let mut events =
                    vec![event(&json!({ "type": "content_block_start", "index": 0, "content_block": block }))];
                events.extend(words.iter().map(|word| {
                    let delta = json!({ "type": "text_delta", "text": word });
                    event(&json!({ "type": "content_block_delta", "index": 0, "delta": delta }))
                }));
                events.push(event(&json!({ "type": "content_block_stop", "index": 0 })));
                events
            }
        }
    }

    /// Calls, each in two fragments; `interleave` mixes the fragments of all, the last call first.
    pub fn calls(self, calls: &[Call], interleave: bool) -> Vec<String> {
        let mut parts: Vec<[String; 3]> =
            calls.iter().enumerate().map(|(index, call)| self.call(index, call)).collect();
        if !interleave || self == Self::Anthropic {
            return parts.into_iter().flatten().collect();
        }
        parts.reverse();
        (0..3).flat_map(|step| parts.iter().map(move |part| part[step].clone())).collect()
    }

    fn call(self, index: usize, (id, name, arguments): &Call) -> [String; 3] {
        let half = arguments.floor_char_boundary(arguments.len() / 2);
        let (first, second) = arguments.split_at(half);
        match self {
            Self::Chat => {
                let call = json!({ "index": index, "id": id, "type": "function",
                    "function": { "name": name, "arguments": "" } });
                let more = |piece: &str| {
                    let call = json!({ "index": index, "function": { "arguments": piece } });
                    chat(&json!({ "tool_calls": [call] }), None)
                };
                [chat(&json!({ "tool_calls": [call] }), None), more(first), more(second)]
            }
            Self::Anthropic => {
                let block = json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
                let more = |piece: &str| {
                    let delta = json!({ "type": "input_json_delta", "partial_json": piece });
                    event(&json!({ "type": "content_block_delta", "index": index, "delta": delta }))
                };
                let begin = event(&json!({ "type": "content_block_start", "index": index, "content_block": block }));
                let stop = event(&json!({ "type": "content_block_stop", "index": index }));
                [begin, more(first), more(second) + &stop]
            }
        }
    }

    /// The end of an answer.
    pub fn end(self, has_calls: bool, done: bool) -> String {
        match self {
            Self::Chat => {
                let finish = chat(&json!({}), Some(if has_calls { "tool_calls" } else { "stop" }));
                if done { finish + "data: [DONE]\n\n" } else { finish }
            }
            Self::Anthropic => {
                let reason = if has_calls { "tool_use" } else { "end_turn" };
                let delta = json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": { "output_tokens": 1 } });
                event(&delta) + &event(&json!({ "type": "message_stop" }))
            }
        }
    }

    /// What is wrong with the messages of a request: every call has exactly one result, roles come as the wire wants.
    pub fn mistakes(self, request: &Value) -> Vec<String> {
        let Some(messages) = request["messages"].as_array() else { return vec!["no messages".to_owned()] };
        match self {
            Self::Chat => chat_mistakes(messages),
            Self::Anthropic => anthropic_mistakes(messages),
        }
    }
}

fn event(value: &Value) -> String {
    format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap())
}

fn chat(delta: &Value, finish: Option<&str>) -> String {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
    format!("data: {}\n\n", json!({ "id": "c", "object": "chat.completion.chunk", "choices": [choice] }))
}

fn chat_mistakes(messages: &[Value]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut open: Vec<String> = Vec::new();
    let mut last = "";
    for message in messages {
        let role = message["role"].as_str().unwrap_or("none");
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or("none");
            match open.iter().position(|call| call == id) {
                Some(index) => _ = open.remove(index),
                None => wrong.push(format!("a result for {id}, which was not called or has one")),
            }
            last = "tool";
            continue;
        }
        if !open.is_empty() {
            wrong.push(format!("no result for {open:?}"));
            open.clear();
        }
        if role == last && role == "assistant" {
            wrong.push("two answers in a row".to_owned());
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            open.push(call["id"].as_str().unwrap_or("none").to_owned());
            let arguments = call["function"]["arguments"].as_str().unwrap_or("");
            if serde_json::from_str::<Value>(arguments).is_err() {
                wrong.push(format!("arguments that are no JSON: {arguments}"));
            }
        }
        last = role;
    }
    if !open.is_empty() {
        wrong.push(format!("no result for {open:?}"));
    }
    wrong
}

fn anthropic_mistakes(messages: &[Value]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut open: Vec<&str> = Vec::new();
    let mut last = "";
    for message in messages {
        let role = message["role"].as_str().unwrap_or("none");
        if role == last {
            wrong.push(format!("two of `{role}` in a row"));
        }
        last = role;
        let blocks = || message["content"].as_array().into_iter().flatten();
        for block in blocks().filter(|block| block["type"] == "tool_result") {
            let id = block["tool_use_id"].as_str().unwrap_or("none");
            match open.iter().position(|call| *call == id) {
                Some(index) => _ = open.remove(index),
                None => wrong.push(format!("a result for {id}, which was not called or has one")),
            }
        }
        if !open.is_empty() {
            wrong.push(format!("no result for {open:?}"));
            open.clear();
        }
        open.extend(blocks().filter(|block| block["type"] == "tool_use").filter_map(|block| block["id"].as_str()));
    }
    if !open.is_empty() {
        wrong.push(format!("no result for {open:?}"));
    }
    wrong
}
