//! Messages to the bytes of a request body.
//!
//! Invariant: what a message becomes depends on nothing but the message and the model, so it is made once. That is why
//! the cache marker of the newest message stands beside the messages and not in one of them.

use serde_json::{Value, json};

use crate::model::body::{self, join};
use crate::model::{Api, AssistantMessage, Endpoint, Instructions, Message, Part, ToolCall, ToolResult, ToolSpec};

/// The dialect demands a limit; every current model allows this much. Settable as `max_tokens`.
const MAX_TOKENS: u32 = 32_000;

/// Everything before the first message of the conversation. The marker on the system prompt caches tools and prompt;
/// the one at the top moves along with the newest message by itself.
pub(in crate::model) fn preamble(endpoint: &Endpoint, instructions: &Instructions) -> Vec<u8> {
    let marker = json!({ "type": "ephemeral" });
    let ours = json!({
        "model": endpoint.model,
        "max_tokens": MAX_TOKENS,
        "stream": true,
        "cache_control": marker,
    });
    let mut fields = body::fields(ours, &endpoint.body);
    if !instructions.tools.is_empty() {
        fields.insert("tools".into(), instructions.tools.iter().map(tool).collect());
    }
    if !instructions.system.trim().is_empty() {
        let system = json!([{ "type": "text", "text": instructions.system, "cache_control": marker }]);
        fields.insert("system".into(), system);
    }
    fields.insert("messages".into(), json!([]));
    body::open(&fields)
}

fn tool(tool: &ToolSpec) -> Value {
    json!({ "name": tool.name, "description": tool.description, "input_schema": tool.parameters })
}

/// One message of the conversation. Neighbors of the same role are joined by the provider; a message without content,
/// which it refuses, becomes nothing.
pub(in crate::model) fn message(endpoint: &Endpoint, message: &Message) -> Vec<u8> {
    let (role, content) = match message {
        Message::User { parts } => ("user", parts.iter().filter_map(part).collect::<Vec<_>>()),
        Message::Assistant(message) => ("assistant", assistant(&endpoint.model, message)),
        Message::Results { results } => ("user", results.iter().map(result).collect()),
    };
    join((!content.is_empty()).then(|| json!({ "role": role, "content": content })))
}

fn part(part: &Part) -> Option<Value> {
    match part {
        Part::Text { text } => block(text),
        Part::Image { mime_type, data } => Some(json!({
            "type": "image",
            "source": { "type": "base64", "media_type": mime_type, "data": data },
        })),
    }
}

/// Blank text blocks are refused.
fn block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }))
}

/// Thinking comes first, and exactly as it was: it is signed.
fn assistant(model: &str, message: &AssistantMessage) -> Vec<Value> {
    let ours = message.reasoning.iter().filter(|item| item.api == Api::Messages && item.model == model);
    let mut content: Vec<Value> = ours.map(|item| item.item.clone()).collect();
    content.extend([&message.text, &message.refusal].into_iter().filter_map(|text| block(text)));
    content.extend(message.calls.iter().map(call));
    content
}

fn call(call: &ToolCall) -> Value {
    let (id, name) = (body::word(&call.id), body::word(&call.name));
    json!({ "type": "tool_use", "id": id, "name": name, "input": body::arguments(&call.arguments) })
}

fn result(result: &ToolResult) -> Value {
    json!({
        "type": "tool_result",
        "tool_use_id": body::word(&result.call_id),
        "content": result.content,
        "is_error": result.is_error,
    })
}
