//! Messages to the bytes of a request body.
//!
//! Nothing is stored at the provider: the conversation and the encrypted reasoning travel with every request.

use serde_json::{Value, json};

use crate::model::body::{self, join};
use crate::model::{
    Api, AssistantMessage, Endpoint, Instructions, Message, Part, ReasoningItem, ToolCall, ToolResult, ToolSpec,
};

/// Everything before the first item of the conversation.
pub(in crate::model) fn preamble(endpoint: &Endpoint, instructions: &Instructions) -> Vec<u8> {
    let mut ours = json!({ "model": endpoint.model, "stream": true, "store": false });
    if reasons(&endpoint.model) {
        ours["include"] = json!(["reasoning.encrypted_content"]);
    }
    let mut fields = body::fields(ours, &endpoint.body);
    if !instructions.tools.is_empty() {
        fields.insert("tools".into(), instructions.tools.iter().map(tool).collect());
    }
    if !instructions.system.is_empty() {
        fields.insert("instructions".into(), instructions.system.as_str().into());
    }
    fields.insert("input".into(), json!([]));
    body::open(&fields)
}

/// Models that do not reason refuse the request for their reasoning.
fn reasons(model: &str) -> bool {
    !["gpt-3", "gpt-4"].iter().any(|old| model.contains(old))
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
        Message::Assistant(message) => join(assistant(&endpoint.model, message)),
        Message::Results { results } => join(results.iter().map(result)),
    }
}

fn part(part: &Part) -> Value {
    match part {
        Part::Text { text } => json!({ "type": "input_text", "text": text }),
        Part::Image { mime_type, data } => {
            json!({ "type": "input_image", "image_url": format!("data:{mime_type};base64,{data}") })
        }
    }
}

fn assistant(model: &str, message: &AssistantMessage) -> Vec<Value> {
    let mut items: Vec<Value> =
        message.reasoning.iter().filter(|item| returns(item, model)).map(|item| item.item.clone()).collect();
    let mut content = Vec::new();
    if !message.text.is_empty() {
        content.push(json!({ "type": "output_text", "text": message.text }));
    }
    if !message.refusal.is_empty() {
        content.push(json!({ "type": "refusal", "refusal": message.refusal }));
    }
    if !content.is_empty() {
        items.push(json!({ "type": "message", "role": "assistant", "content": content }));
    }
    items.extend(message.calls.iter().map(call));
    items
}

/// Without its encrypted content an item is a reference to something the provider did not store.
fn returns(item: &ReasoningItem, model: &str) -> bool {
    item.api == Api::Responses && item.model == model && item.item["encrypted_content"].is_string()
}

fn call(call: &ToolCall) -> Value {
    let arguments = body::arguments(&call.arguments).to_string();
    json!({ "type": "function_call", "call_id": call.id, "name": body::word(&call.name), "arguments": arguments })
}

fn result(result: &ToolResult) -> Value {
    json!({ "type": "function_call_output", "call_id": result.call_id, "output": result.content })
}
