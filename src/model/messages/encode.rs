//! Encodes messages for a request body.
//!
//! Invariant: the encoding depends only on the message and the model, so it is made once. Therefore the cache marker of
//! the newest message is outside the messages.

use serde_json::{Map, Value, json};

use crate::model::body::{self, join};
use crate::model::family::Family;
use crate::model::host::Echo;
use crate::model::{
    AssistantMessage, Endpoint, Image, Instructions, Message, Part, ToolCall, ToolResult, ToolSpec,
    thinking,
};

/// Everything before the first message of the conversation. The marker on the system prompt caches tools and prompt;
/// the top-level one follows the newest message automatically. (The API allows four.)
pub(in crate::model) fn preamble(endpoint: &Endpoint, instructions: &Instructions) -> Vec<u8> {
    let marker = json!({ "type": "ephemeral" });
    let ours = json!({
        "model": endpoint.model,
        "stream": true,
        "cache_control": marker,
    });
    let mut fields = body::fields(ours, &thinking::fields(endpoint), endpoint);
    fit_budget(&mut fields);
    let tool = |tool: &ToolSpec| self::tool(endpoint, tool);
    body::offer(&mut fields, &instructions.tools, tool);
    if !instructions.system.trim().is_empty() {
        // A configured lifetime applies to both markers: the one that lives longer has to come first.
        let marker = fields.get("cache_control").cloned().unwrap_or(marker);
        let system =
            json!([{ "type": "text", "text": instructions.system, "cache_control": marker }]);
        fields.insert("system".into(), system);
    }
    fields.insert("messages".into(), json!([]));
    body::open(&fields)
}

/// A budget that exceeds the configured `max_tokens` is reduced.
fn fit_budget(fields: &mut Map<String, Value>) {
    let limit = fields
        .get("max_tokens")
        .and_then(Value::as_u64)
        .unwrap_or(u64::MAX);
    let Some(thinking) = fields.get_mut("thinking") else {
        return;
    };
    if thinking["budget_tokens"]
        .as_u64()
        .is_some_and(|budget| budget >= limit)
    {
        let budget = limit / 2;
        if budget < 1_024 {
            fields.shift_remove("thinking");
        } else {
            thinking["budget_tokens"] = budget.into();
        }
    }
}

/// Claude buffers each argument of a tool unless it is asked to stream them.
fn tool(endpoint: &Endpoint, tool: &ToolSpec) -> Value {
    let mut spec = json!({ "name": tool.name, "description": tool.description, "input_schema": tool.parameters });
    if tool.streams && endpoint.known().family == Family::Claude {
        spec["eager_input_streaming"] = true.into();
    }
    spec
}

/// One message of the conversation. The provider joins consecutive messages of one role; a message without content,
/// which it would refuse, is omitted.
pub(in crate::model) fn message(endpoint: &Endpoint, message: &Message) -> Vec<u8> {
    let (role, content) = match message {
        Message::User { parts } => ("user", parts.iter().filter_map(part).collect::<Vec<_>>()),
        Message::Assistant(message) => ("assistant", assistant(endpoint, message)),
        Message::Results { results } => ("user", results.iter().map(result).collect()),
    };
    join((!content.is_empty()).then(|| json!({ "role": role, "content": content })))
}

fn part(part: &Part) -> Option<Value> {
    match part {
        Part::Text { text } | Part::Note { text } => block(text),
        Part::Image(it) => Some(image(it)),
    }
}

fn image(Image { mime_type, data }: &Image) -> Value {
    json!({ "type": "image", "source": { "type": "base64", "media_type": mime_type, "data": data } })
}

/// Blank text blocks are refused.
fn block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }))
}

/// The model's blocks are sent back unchanged and in order, because thinking is signed. Calls keep their position.
fn assistant(endpoint: &Endpoint, message: &AssistantMessage) -> Vec<Value> {
    let ours = message.items_for(endpoint);
    let is_claude = endpoint.known().family == Family::Claude;
    let mut calls: Vec<Option<&ToolCall>> = message.calls.iter().map(Some).collect();
    let mut content = Vec::new();
    for item in &ours {
        match item["type"].as_str().unwrap_or_default() {
            "text" => content.extend(block(item["text"].as_str().unwrap_or_default())),
            "tool_use" => content.extend(placed(item, &mut calls).map(call)),
            // A gateway has lost its signature.
            "thinking" if is_claude && item["signature"] == "" => {}
            _ => content.push((*item).clone()),
        }
    }
    if !ours.iter().any(|item| item["type"] == "text") {
        content.extend(
            [&message.text, &message.refusal]
                .into_iter()
                .filter_map(|text| block(text)),
        );
    }
    content.extend(calls.into_iter().flatten().map(call));
    let thinks = endpoint.echo() == Echo::Always && endpoint.effort.as_deref() != Some("none");
    let is_thought = |block: &Value| {
        block["type"]
            .as_str()
            .is_some_and(|kind| kind.ends_with("thinking"))
    };
    if thinks && !message.calls.is_empty() && !content.iter().any(is_thought) {
        // Calls without a thought are refused, even those of another model.
        content.insert(
            0,
            json!({ "type": "thinking", "thinking": "", "signature": "" }),
        );
    }
    content
}

/// The call at this position, by its number among the calls.
fn placed<'a>(item: &Value, calls: &mut [Option<&'a ToolCall>]) -> Option<&'a ToolCall> {
    let slot = item["slot"]
        .as_u64()
        .and_then(|slot| usize::try_from(slot).ok())?;
    calls.get_mut(slot)?.take()
}

fn call(call: &ToolCall) -> Value {
    let (id, name) = (body::word(&call.id), body::word(&call.name));
    json!({ "type": "tool_use", "id": id, "name": name, "input": body::arguments(&call.arguments) })
}

fn result(result: &ToolResult) -> Value {
    let content: Value = if result.images.is_empty() {
        result.content.as_str().into()
    } else {
        let images = result.images.iter().map(image);
        block(&result.content).into_iter().chain(images).collect()
    };
    json!({
        "type": "tool_result",
        "tool_use_id": body::word(&result.call_id),
        "content": content,
        "is_error": result.is_error,
    })
}
