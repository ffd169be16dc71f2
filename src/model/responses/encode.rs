//! Encodes messages for a request body.
//!
//! Nothing is stored at the provider: the conversation and the encrypted reasoning are part of every request.

use serde_json::{Value, json};

use super::CUSTOM;
use crate::domain::Effort;
use crate::model::body::{self, join};
use crate::model::family::Family;
use crate::model::{
    Arguments, AssistantMessage, Endpoint, Image, Instructions, Message, Part, ToolCall,
    ToolResult, ToolSpec, thinking,
};

/// Everything before the first item of the conversation.
pub(in crate::model) fn preamble(endpoint: &Endpoint, instructions: &Instructions) -> Vec<u8> {
    let mut ours = json!({ "model": endpoint.model, "stream": true, "store": false });
    if reasons(endpoint) {
        ours["include"] = json!(["reasoning.encrypted_content"]);
    }
    body::cache(&mut ours, endpoint, instructions);
    let mut fields = body::fields(ours, &thinking::fields(endpoint), endpoint);
    body::offer(&mut fields, &instructions.tools, tool);
    let mut input = Vec::new();
    if endpoint.knows_cache_writes() && !instructions.system.is_empty() {
        // Only a message can be marked, and without a mark the cache is written at the newest one alone.
        let marked = json!({
            "type": "input_text",
            "text": instructions.system,
            "prompt_cache_breakpoint": { "mode": "explicit" },
        });
        input.push(json!({ "type": "message", "role": "developer", "content": [marked] }));
    } else if !instructions.system.is_empty() {
        fields.insert("instructions".into(), instructions.system.as_str().into());
    }
    fields.insert("input".into(), input.into());
    body::open(&fields)
}

/// Models without reasoning refuse a request to return it.
fn reasons(endpoint: &Endpoint) -> bool {
    let known = endpoint.known();
    known.family != Family::Gpt || !Effort::taken(&endpoint.provider, &endpoint.model).is_empty()
}

fn tool(tool: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": false,
    })
}

/// One message of the conversation, as one or more items.
pub(in crate::model) fn message(endpoint: &Endpoint, message: &Message) -> Vec<u8> {
    match message {
        Message::User { parts } => {
            let content: Vec<_> = parts.iter().map(part).collect();
            join([json!({ "type": "message", "role": "user", "content": content })])
        }
        Message::Assistant(message) => join(assistant(endpoint, message)),
        Message::Results { results } => {
            join(results.iter().map(|result| self::result(endpoint, result)))
        }
    }
}

fn part(part: &Part) -> Value {
    match part {
        Part::Text { text } | Part::Note { text } => json!({ "type": "input_text", "text": text }),
        Part::Image(it) => image(it),
    }
}

fn image(Image { mime_type, data }: &Image) -> Value {
    json!({ "type": "input_image", "image_url": format!("data:{mime_type};base64,{data}") })
}

/// The items of an answer, unchanged and in order; without them (another model's answer), its text and calls.
fn assistant(endpoint: &Endpoint, message: &AssistantMessage) -> Vec<Value> {
    let ours = message.items_for(endpoint);
    let mut calls: Vec<Option<&ToolCall>> = message.calls.iter().map(Some).collect();
    // If the end of the text was cut off, its item never arrived.
    let is_whole = said(&ours) >= message.text.len() + message.refusal.len();
    let mut items = Vec::new();
    for item in &ours {
        match item["type"].as_str().unwrap_or_default() {
            "message" if !is_whole => {}
            // Without its encrypted content it refers to something the provider did not store.
            "reasoning" if !item["encrypted_content"].is_string() => {}
            "function_call" | "custom_tool_call" => {
                items.extend(placed(endpoint, item, &mut calls));
            }
            _ => items.push((*item).clone()),
        }
    }
    if !is_whole {
        // Nothing may stand between a call and its result.
        let is_call = |item: &Value| item["call_id"].is_string();
        let at = items.iter().position(is_call).unwrap_or(items.len());
        items.splice(at..at, words(message));
    }
    items.extend(
        calls
            .into_iter()
            .flatten()
            .map(|call| self::call(endpoint, call)),
    );
    items
}

/// The size of the items' text, in bytes.
fn said(items: &[&Value]) -> usize {
    let parts = items
        .iter()
        .filter(|item| item["type"] == "message")
        .filter_map(|item| item["content"].as_array());
    let texts = parts
        .flatten()
        .filter_map(|part| part["text"].as_str().or(part["refusal"].as_str()));
    texts.map(str::len).sum()
}

fn words(message: &AssistantMessage) -> Option<Value> {
    let mut content = Vec::new();
    if !message.text.is_empty() {
        content.push(json!({ "type": "output_text", "text": message.text }));
    }
    if !message.refusal.is_empty() {
        content.push(json!({ "type": "refusal", "refusal": message.refusal }));
    }
    (!content.is_empty())
        .then(|| json!({ "type": "message", "role": "assistant", "content": content }))
}

/// The next call, as its original item if both still agree: a call may have a new id or repaired arguments.
fn placed(endpoint: &Endpoint, item: &Value, calls: &mut [Option<&ToolCall>]) -> Option<Value> {
    let next = calls.iter_mut().find(|call| call.is_some())?.take()?;
    let same_arguments = match &next.arguments {
        Arguments::Object(object) => {
            serde_json::from_str::<Value>(item["arguments"].as_str().unwrap_or_default())
                .is_ok_and(|arguments| arguments.as_object() == Some(object))
        }
        Arguments::Unparsable(_) => false,
    };
    let same =
        item["call_id"] == next.id.as_str() && item["name"] == next.name.as_str() && same_arguments;
    let custom = next
        .id
        .strip_prefix(CUSTOM)
        .is_some_and(|id| item["call_id"] == id);
    Some(if same || custom {
        item.clone()
    } else {
        call(endpoint, next)
    })
}

fn call(endpoint: &Endpoint, call: &ToolCall) -> Value {
    let arguments = body::arguments(&call.arguments).to_string();
    if let Some(id) = call.id.strip_prefix(CUSTOM) {
        return json!({ "type": "custom_tool_call", "call_id": id, "name": body::word(&call.name), "input": arguments });
    }
    let id = body::within(&call.id, endpoint.longest_id());
    json!({ "type": "function_call", "call_id": id, "name": body::word(&call.name), "arguments": arguments })
}

fn result(endpoint: &Endpoint, result: &ToolResult) -> Value {
    let (kind, id) = match result.call_id.strip_prefix(CUSTOM) {
        Some(id) => ("custom_tool_call_output", id.to_owned()),
        None => (
            "function_call_output",
            body::within(&result.call_id, endpoint.longest_id()),
        ),
    };
    let output: Value = if result.images.is_empty() {
        result.content.as_str().into()
    } else {
        let text = json!({ "type": "input_text", "text": result.content });
        let images = result.images.iter().map(image);
        std::iter::once(text).chain(images).collect()
    };
    json!({ "type": kind, "call_id": id, "output": output })
}
