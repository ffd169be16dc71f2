//! Messages to the bytes of a request body.
//!
//! Invariant: what a message becomes depends on nothing but the message and the model, so it is made once.

use serde_json::{Map, Value, json};

use crate::model::body::{self, join};
use crate::model::{Api, AssistantMessage, Endpoint, Instructions, Message, Part, ReasoningItem, ToolResult, ToolSpec};

/// Everything before the first message of the conversation.
pub(in crate::model) fn preamble(endpoint: &Endpoint, instructions: &Instructions) -> Vec<u8> {
    let mut fields = body::fields(
        json!({
            "model": endpoint.model,
            "stream": true,
            "stream_options": { "include_usage": true },
        }),
        &endpoint.body,
    );
    if !instructions.tools.is_empty() {
        fields.insert("tools".into(), instructions.tools.iter().map(tool).collect());
    }
    let system = match instructions.system.as_str() {
        "" => Vec::new(),
        system => vec![json!({ "role": "system", "content": system })],
    };
    fields.insert("messages".into(), system.into());
    body::open(&fields)
}

fn tool(tool: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "function": { "name": tool.name, "description": tool.description, "parameters": tool.parameters },
    })
}

/// One message of the conversation; results are one message each on the wire.
pub(in crate::model) fn message(endpoint: &Endpoint, message: &Message) -> Vec<u8> {
    match message {
        Message::User { parts } => join([json!({ "role": "user", "content": user(parts) })]),
        Message::Assistant(message) => join([assistant(&endpoint.model, message)]),
        Message::Results { results } => join(results.iter().map(result)),
    }
}

/// Plain text goes as a string: not every server takes parts.
fn user(parts: &[Part]) -> Value {
    if let Some(texts) = parts.iter().map(text).collect::<Option<Vec<_>>>() {
        return texts.join("\n\n").into();
    }
    parts
        .iter()
        .map(|part| match part {
            Part::Text { text } => json!({ "type": "text", "text": text }),
            Part::Image { mime_type, data } => {
                json!({ "type": "image_url", "image_url": { "url": format!("data:{mime_type};base64,{data}") } })
            }
        })
        .collect()
}

fn text(part: &Part) -> Option<&str> {
    match part {
        Part::Text { text } => Some(text),
        Part::Image { .. } => None,
    }
}

fn assistant(model: &str, message: &AssistantMessage) -> Value {
    let mut fields = Map::new();
    fields.insert("role".into(), "assistant".into());
    let said = if message.text.is_empty() { &message.refusal } else { &message.text };
    let content = if said.is_empty() && !message.calls.is_empty() { Value::Null } else { said.as_str().into() };
    fields.insert("content".into(), content);
    if !message.calls.is_empty() {
        fields.insert("tool_calls".into(), message.calls.iter().map(call).collect());
    }
    for item in message.reasoning.iter().filter(|item| item.api == Api::Chat && item.model == model) {
        replay(&mut fields, item, said);
    }
    fields.into()
}

/// Reasoning goes back in the field it came in. Plain reasoning only together with calls, where the model is still
/// thinking: after a finished answer servers ignore or even refuse it.
fn replay(fields: &mut Map<String, Value>, item: &ReasoningItem, said: &str) {
    for (field, value) in item.item.as_object().into_iter().flatten() {
        match field.as_str() {
            "reasoning_details" => {}
            _ if !fields.contains_key("tool_calls") => continue,
            "extra_content" => {
                for (slot, extra) in value.as_object().into_iter().flatten() {
                    if let Some(call) = slot.parse().ok().and_then(|slot: usize| fields["tool_calls"].get_mut(slot)) {
                        call["extra_content"] = extra.clone();
                    }
                }
                continue;
            }
            "content" => {
                let parts = value.as_array().into_iter().flatten().cloned();
                let text = (!said.is_empty()).then(|| json!({ "type": "text", "text": said }));
                fields.insert("content".into(), parts.chain(text).collect());
                continue;
            }
            _ => {}
        }
        fields.insert(field.clone(), value.clone());
    }
}

fn call(call: &crate::model::ToolCall) -> Value {
    let arguments = body::arguments(&call.arguments).to_string();
    json!({ "id": call.id, "type": "function", "function": { "name": body::word(&call.name), "arguments": arguments } })
}

fn result(result: &ToolResult) -> Value {
    json!({ "role": "tool", "tool_call_id": result.call_id, "content": result.content })
}
