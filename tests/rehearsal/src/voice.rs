//! A rehearsal's answers in each API.

use serde_json::{Value, json};

/// The APIs of model endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Api {
    Chat,
    Responses,
    Messages,
}

/// Encodes one answer in one API.
#[derive(Debug)]
pub(super) struct Voice {
    api: Api,
    /// The number of blocks (or items) started.
    blocks: usize,
    /// The kind of the open block; in the messages API it is closed before the next one begins.
    open: &'static str,
    calls: usize,
    /// The size of the request in bytes: a token is about four of them, and a much smaller count would look like a
    /// truncated prompt.
    request: usize,
}

impl Voice {
    pub(super) fn new(api: Api, request: usize) -> Self {
        Self {
            api,
            blocks: 0,
            open: "",
            calls: 0,
            request,
        }
    }

    pub(super) fn text(&mut self, text: &str) -> Vec<Value> {
        match self.api {
            Api::Chat => vec![chunk(&json!({ "content": text }))],
            Api::Responses => {
                vec![self.item_delta("output_text", "response.output_text.delta", text)]
            }
            Api::Messages => self.block_delta("text", "text_delta", text),
        }
    }

    pub(super) fn reasoning(&mut self, text: &str) -> Vec<Value> {
        match self.api {
            Api::Chat => vec![chunk(&json!({ "reasoning_content": text }))],
            Api::Responses => {
                vec![self.item_delta("reasoning", "response.reasoning_summary_text.delta", text)]
            }
            Api::Messages => self.block_delta("thinking", "thinking_delta", text),
        }
    }

    /// A complete call, with its arguments in these pieces.
    pub(super) fn call(&mut self, id: &str, name: &str, pieces: &[String]) -> Vec<Value> {
        let index = self.calls;
        self.calls += 1;
        match self.api {
            Api::Chat => {
                let function = json!({ "name": name, "arguments": "" });
                let start =
                    json!({ "index": index, "id": id, "type": "function", "function": function });
                let piece = |piece| json!({ "index": index, "function": { "arguments": piece } });
                let fragments = [start].into_iter().chain(pieces.iter().map(piece));
                fragments
                    .map(|fragment| chunk(&json!({ "tool_calls": [fragment] })))
                    .collect()
            }
            Api::Responses => {
                self.begin("function_call");
                let at = self.blocks - 1;
                let item = json!({ "type": "function_call", "call_id": id, "name": name, "arguments": pieces.concat() });
                let event = |kind: &str| json!({ "type": kind, "output_index": at, "item": item });
                let delta = |piece| json!({ "type": "response.function_call_arguments.delta", "output_index": at, "delta": piece });
                let mut events = vec![event("response.output_item.added")];
                events.extend(pieces.iter().map(delta));
                events.push(event("response.output_item.done"));
                events
            }
            Api::Messages => {
                let mut events = self.close();
                self.begin("tool_use");
                let block = json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
                events.push(self.block("content_block_start", "content_block", &block));
                events.extend(pieces.iter().map(|piece| {
                    let delta = json!({ "type": "input_json_delta", "partial_json": piece });
                    self.block("content_block_delta", "delta", &delta)
                }));
                events.extend(self.close());
                events
            }
        }
    }

    /// The end: the reason as named by the chat API, and the token counts.
    pub(super) fn end(&mut self, finish: Option<String>, usage: Option<Value>) -> Vec<Value> {
        let usual = if self.calls > 0 { "tool_calls" } else { "stop" };
        let finish = finish.unwrap_or_else(|| usual.to_owned());
        let usage = usage.unwrap_or_else(
            || json!({ "prompt_tokens": self.request / 4, "completion_tokens": 20 }),
        );
        let tokens = json!({ "input_tokens": usage["prompt_tokens"], "output_tokens": usage["completion_tokens"] });
        match self.api {
            Api::Chat => vec![
                json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": finish }] }),
                json!({ "choices": [], "usage": usage }),
            ],
            Api::Responses => {
                let (kind, reason) = match finish.as_str() {
                    "length" => ("response.incomplete", json!("max_output_tokens")),
                    "content_filter" => ("response.incomplete", json!("content_filter")),
                    _ => ("response.completed", Value::Null),
                };
                let response = json!({ "output": [], "incomplete_details": { "reason": reason }, "usage": tokens });
                vec![json!({ "type": kind, "response": response })]
            }
            Api::Messages => {
                let reason = match finish.as_str() {
                    "stop" => "end_turn",
                    "tool_calls" => "tool_use",
                    "length" => "max_tokens",
                    other => other,
                };
                let mut events = self.close();
                events.push(json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": tokens }));
                events.push(json!({ "type": "message_stop" }));
                events
            }
        }
    }

    fn begin(&mut self, kind: &'static str) {
        self.blocks += 1;
        self.open = kind;
    }

    fn item_delta(&mut self, kind: &'static str, event: &str, text: &str) -> Value {
        if self.open != kind {
            self.begin(kind);
        }
        json!({ "type": event, "output_index": self.blocks - 1, "delta": text })
    }

    fn block_delta(&mut self, kind: &'static str, delta: &str, text: &str) -> Vec<Value> {
        let mut events = Vec::new();
        if self.open != kind {
            events = self.close();
            self.begin(kind);
            events.push(self.block(
                "content_block_start",
                "content_block",
                &json!({ "type": kind, kind: "" }),
            ));
        }
        events.push(self.block(
            "content_block_delta",
            "delta",
            &json!({ "type": delta, kind: text }),
        ));
        events
    }

    fn close(&mut self) -> Vec<Value> {
        if std::mem::take(&mut self.open).is_empty() {
            return Vec::new();
        }
        vec![json!({ "type": "content_block_stop", "index": self.blocks - 1 })]
    }

    fn block(&self, event: &str, field: &str, value: &Value) -> Value {
        json!({ "type": event, "index": self.blocks - 1, field: value })
    }
}

fn chunk(delta: &Value) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
}
