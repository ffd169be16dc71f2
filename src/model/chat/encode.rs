//! Encodes messages for a request body.
//!
//! Invariant: the encoding depends only on the message and the model, so it is made once.

use serde::Serialize;
use serde_json::{Value, json};

use crate::model::body::{self, join};
use crate::model::host::Echo;
use crate::model::{
    AssistantMessage, Endpoint, Image, Instructions, Message, Part, ToolCall, ToolResult, ToolSpec,
    thinking,
};
use crate::text::Fields;

/// Everything before the first message of the conversation.
pub(in crate::model) fn preamble(endpoint: &Endpoint, instructions: &Instructions) -> Vec<u8> {
    let mut ours = json!({ "model": endpoint.model, "stream": true });
    if endpoint.takes_stream_options() {
        ours["stream_options"] = json!({ "include_usage": true });
    }
    body::cache(&mut ours, endpoint, instructions);
    if endpoint.has_session_id() && !instructions.conversation.is_empty() {
        ours["session_id"] = json!(instructions.conversation);
    }
    if endpoint.wants_cache_control() {
        ours["cache_control"] = json!({ "type": "ephemeral" });
    }
    if endpoint.marks_caches() {
        ours["providerOptions"] = json!({ "gateway": { "caching": "auto" } });
    }
    let mut fields = body::fields(ours, &thinking::fields(endpoint), endpoint);
    body::offer(&mut fields, &instructions.tools, tool);
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

/// A message on the wire. Its text is borrowed, because it may be long.
#[derive(Serialize)]
struct Said<'a> {
    role: &'static str,
    content: Content<'a>,
    #[serde(flatten)]
    fields: Fields,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Parts(Value),
}

fn said<'a>(role: &'static str, content: Content<'a>) -> Said<'a> {
    Said {
        role,
        content,
        fields: Fields::new(),
    }
}

/// One message of the conversation; results are one message each on the wire.
pub(in crate::model) fn message(endpoint: &Endpoint, message: &Message) -> Vec<u8> {
    match message {
        Message::User { parts } => join([said("user", Content::Parts(user(parts)))]),
        Message::Assistant(message) => join([assistant(endpoint, message)]),
        Message::Results { results } => {
            let pictures = pictures(results);
            let gap = pictures.is_some().then(|| between(endpoint)).flatten();
            join(
                results
                    .iter()
                    .map(|result| self::result(endpoint, result))
                    .chain(gap)
                    .chain(pictures),
            )
        }
    }
}

/// The message between results and a person's message, if the server requires one.
pub(in crate::model) fn gap(endpoint: &Endpoint) -> Vec<u8> {
    join(between(endpoint))
}

fn between(endpoint: &Endpoint) -> Option<Said<'static>> {
    let seen = || said("assistant", Content::Text("Seen."));
    endpoint.is_mistral().then(seen)
}

/// Plain text is sent as a string: not every server accepts parts.
fn user(parts: &[Part]) -> Value {
    if let Some(texts) = parts.iter().map(text).collect::<Option<Vec<_>>>() {
        return texts.join("\n\n").into();
    }
    parts
        .iter()
        .map(|part| match part {
            Part::Text { text } | Part::Note { text } => json!({ "type": "text", "text": text }),
            Part::Image(it) => image(it),
        })
        .collect()
}

fn image(Image { mime_type, data }: &Image) -> Value {
    json!({ "type": "image_url", "image_url": { "url": format!("data:{mime_type};base64,{data}") } })
}

/// The API does not accept images in results, so they follow as a user message.
fn pictures(results: &[ToolResult]) -> Option<Said<'_>> {
    let images: Vec<_> = results
        .iter()
        .flat_map(|result| &result.images)
        .map(image)
        .collect();
    if images.is_empty() {
        return None;
    }
    let text = json!({ "type": "text", "text": "(the images of the results above)" });
    let parts = std::iter::once(text).chain(images).collect();
    Some(said("user", Content::Parts(parts)))
}

fn text(part: &Part) -> Option<&str> {
    match part {
        Part::Text { text } | Part::Note { text } => Some(text),
        Part::Image(_) => None,
    }
}

fn assistant<'a>(endpoint: &Endpoint, message: &'a AssistantMessage) -> Said<'a> {
    let text = if message.text.is_empty() {
        &message.refusal
    } else {
        &message.text
    };
    let mut said = said("assistant", Content::Text(text));
    if !message.calls.is_empty() {
        if text.is_empty() {
            said.content = Content::Parts(Value::Null);
        }
        let calls = message.calls.iter().map(|call| self::call(endpoint, call));
        said.fields.insert("tool_calls".into(), calls.collect());
    }
    let echo = endpoint.echo();
    for item in message.items_for(endpoint) {
        replay(&mut said, item, text, echo);
    }
    let fields = &mut said.fields;
    if echo == Echo::Always
        && !message.calls.is_empty()
        && !fields.contains_key("reasoning_content")
    {
        fields.insert("reasoning_content".into(), "".into());
    }
    if endpoint.wants_signatures() {
        sign(fields);
    }
    said
}

/// Reasoning is sent back in the field it arrived in.
fn replay(said: &mut Said<'_>, item: &Value, text: &str, echo: Echo) {
    let fields = &mut said.fields;
    let beside_calls = fields.contains_key("tool_calls");
    for (field, value) in item.as_object().into_iter().flatten() {
        match field.as_str() {
            "extra_content" if beside_calls => put_beside_calls(fields, value),
            "content" if beside_calls => {
                let parts = value.as_array().into_iter().flatten().cloned();
                let text = (!text.is_empty()).then(|| json!({ "type": "text", "text": text }));
                said.content = Content::Parts(parts.chain(text).collect());
            }
            "extra_content" | "content" => {}
            _ if echo == Echo::Never => {}
            "reasoning_details" => _ = fields.insert(field.clone(), value.clone()),
            _ if beside_calls || matches!(echo, Echo::Always | Echo::Everything) => {
                _ = fields.insert(field.clone(), value.clone());
            }
            _ => {}
        }
    }
}

/// Data that arrived with calls, by their index in the answer.
fn put_beside_calls(fields: &mut Fields, extras: &Value) {
    for (slot, extra) in extras.as_object().into_iter().flatten() {
        if let Some(call) = slot
            .parse()
            .ok()
            .and_then(|slot: usize| fields["tool_calls"].get_mut(slot))
        {
            call["extra_content"] = extra.clone();
        }
    }
}

/// Gemini refuses calls without its signature. Of parallel calls only the first has one. If none has, another model
/// made them, and the documented placeholder says so.
fn sign(fields: &mut Fields) {
    let Some(Value::Array(calls)) = fields.get_mut("tool_calls") else {
        return;
    };
    if calls
        .iter()
        .any(|call| call.pointer(body::SIGNATURE).is_some())
    {
        return;
    }
    for call in calls {
        call["extra_content"] = json!({ "google": { "thought_signature": body::UNSIGNED } });
    }
}

fn call(endpoint: &Endpoint, call: &ToolCall) -> Value {
    let arguments = body::arguments(&call.arguments).to_string();
    let function = json!({ "name": body::word(&call.name), "arguments": arguments });
    json!({ "id": id(endpoint, &call.id), "type": "function", "function": function })
}

fn result<'a>(endpoint: &Endpoint, result: &'a ToolResult) -> Said<'a> {
    let mut said = said("tool", Content::Text(&result.content));
    let id = id(endpoint, &result.call_id);
    said.fields.insert("tool_call_id".into(), id.into());
    said
}

/// The id of a call in the server's format: the same for call and result, and in every request.
fn id(endpoint: &Endpoint, id: &str) -> String {
    if endpoint.is_mistral() {
        body::nine(id)
    } else {
        body::within(id, endpoint.longest_id())
    }
}
