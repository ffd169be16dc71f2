//! Shared by the bodies of all APIs: the opening, the messages, the end.

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Api, Arguments, Endpoint, Instructions, Preamble, ToolSpec};
use crate::text::Fields;

/// Closes the body of every API: the list of messages is its last field.
pub(super) const TAIL: &[u8] = b"]}";

/// Where a call carries Gemini's signature of the thoughts before it, and the placeholder for calls without one.
pub(super) const SIGNATURE: &str = "/extra_content/google/thought_signature";
pub(super) const UNSIGNED: &str = "skip_thought_signature_validator";

/// How a person's message and a result begin in the chat API, whose encoder writes the role first.
const USER: &[u8] = br#"{"role":"user""#;
const RESULT: &[u8] = br#"{"role":"tool""#;

/// Our fields and those of the effort, overridden by the configured ones. A configured `null` removes a field; so does
/// `false` (TOML has no null) for a field that is not a flag: not every server accepts `stream_options`.
pub(super) fn fields(ours: Value, effort: &Fields, endpoint: &Endpoint) -> Fields {
    let Value::Object(mut fields) = ours else {
        unreachable!("a body is an object")
    };
    if let Some(tokens) = endpoint.max_tokens {
        fields.insert(endpoint.limit_field().to_owned(), tokens.into());
    }
    fields.extend(effort.clone());
    for (name, value) in &endpoint.body {
        let structured = fields
            .get(name)
            .is_some_and(|ours| ours.is_object() || ours.is_array());
        if value.is_null() || structured && *value == false {
            fields.remove(name);
        } else {
            fields.insert(name.clone(), value.clone());
        }
    }
    let thinks = fields
        .get("thinking")
        .is_some_and(|thinking| thinking["type"] != "disabled")
        || fields
            .get("reasoning")
            .is_some_and(|reasoning| reasoning["effort"] != "none");
    if endpoint.refuses_temperature(thinks) {
        fields.shift_remove("temperature");
    }
    fields
}

/// Adds the fields that keep a conversation in OpenAI's cache.
pub(super) fn cache(ours: &mut Value, endpoint: &Endpoint, instructions: &Instructions) {
    if endpoint.has_cache_key() && !instructions.conversation.is_empty() {
        ours["prompt_cache_key"] = json!(instructions.conversation);
    }
    if let Some(retention) = endpoint.cache_retention() {
        ours["prompt_cache_retention"] = retention.into();
    }
}

/// Adds the tools a model may call; without tools, the request has no such field.
pub(super) fn offer(fields: &mut Fields, tools: &[ToolSpec], tool: impl Fn(&ToolSpec) -> Value) {
    if !tools.is_empty() {
        fields.insert("tools".into(), tools.iter().map(tool).collect());
    }
}

/// The body with these fields, left open: without [`TAIL`], which would close it.
pub(super) fn open(fields: &Fields) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(fields).expect("a JSON value always serializes");
    debug_assert!(
        bytes.ends_with(TAIL),
        "the list of messages is the last field"
    );
    bytes.truncate(bytes.len() - TAIL.len());
    bytes
}

/// The items of a JSON list, without its brackets.
pub(super) fn join(values: impl IntoIterator<Item = impl Serialize>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for value in values {
        if !bytes.is_empty() {
            bytes.push(b',');
        }
        serde_json::to_writer(&mut bytes, &value).expect("a message always serializes");
    }
    bytes
}

/// The whole body of a request.
pub(super) fn close(preamble: &Preamble, messages: &[Bytes], tail: &[u8]) -> Vec<u8> {
    let length = messages
        .iter()
        .map(|message| message.len() + 1 + preamble.gap.len())
        .sum::<usize>();
    let mut body = Vec::with_capacity(preamble.bytes.len() + length + tail.len());
    body.extend_from_slice(&preamble.bytes);
    let mut add = |part: &[u8]| {
        if body.last() != Some(&b'[') {
            body.push(b',');
        }
        body.extend_from_slice(part);
    };
    let mut after_result = false;
    for message in messages.iter().filter(|message| !message.is_empty()) {
        if after_result && !preamble.gap.is_empty() && message.starts_with(USER) {
            add(&preamble.gap);
        }
        add(message);
        after_result = message.starts_with(RESULT);
    }
    body.extend_from_slice(tail);
    body
}

/// The end of a request that must be answered in words. It comes after the messages, so that the beginning is the same
/// as in other requests.
pub(super) fn tail(api: Api, preamble: &Preamble, may_call: bool) -> &'static [u8] {
    match api {
        _ if may_call || preamble.tools.is_empty() => TAIL,
        Api::Chat | Api::Responses => br#"],"tool_choice":"none"}"#,
        Api::Messages => br#"],"tool_choice":{"type":"none"}}"#,
    }
}

/// The same body without the fields at these paths, such as `reasoning.effort`. Fields of tools are left out of each.
pub(super) fn without(body: &[u8], paths: &[String]) -> Vec<u8> {
    let Ok(mut value) = serde_json::from_slice::<Value>(body) else {
        return body.to_vec();
    };
    for path in paths {
        remove(&mut value, path);
        let tools = value.get_mut("tools").and_then(Value::as_array_mut);
        for tool in tools.into_iter().flatten() {
            remove(tool, path);
        }
    }
    serde_json::to_vec(&value).expect("a JSON value always serializes")
}

/// The messages of a body, which the responses dialect calls its input.
fn messages(body: &mut Value) -> Option<&mut Vec<Value>> {
    let fields = body.as_object_mut()?;
    let field = if fields.contains_key("input") {
        "input"
    } else {
        "messages"
    };
    fields.get_mut(field)?.as_array_mut()
}

/// How many messages a body has.
pub(super) fn length(body: &[u8]) -> usize {
    let mut body = serde_json::from_slice(body).unwrap_or_default();
    messages(&mut body).map_or(0, |messages| messages.len())
}

/// The same body without the thoughts in its first messages.
pub(super) fn without_thoughts(body: &[u8], first: usize) -> Vec<u8> {
    let mut value = serde_json::from_slice(body).unwrap_or_default();
    let Some(messages) = messages(&mut value) else {
        return body.to_vec();
    };
    let later = messages.split_off(first.min(messages.len()));
    messages.iter_mut().for_each(forget_thoughts);
    messages.retain(|message| message["type"] != "reasoning" && message["content"] != json!([]));
    messages.extend(later);
    serde_json::to_vec(&value).expect("a JSON value always serializes")
}

fn forget_thoughts(message: &mut Value) {
    if let Some(Value::Array(blocks)) = message.get_mut("content") {
        let is_thought = |block: &Value| {
            matches!(
                block["type"].as_str(),
                Some("thinking" | "redacted_thinking")
            )
        };
        blocks.retain(|block| !is_thought(block));
    }
    if let Some(Value::Array(calls)) = message.get_mut("tool_calls") {
        let signatures = calls
            .iter_mut()
            .filter_map(|call| call.pointer_mut(SIGNATURE));
        signatures.for_each(|signature| *signature = UNSIGNED.into());
    }
    if let Some(fields) = message.as_object_mut() {
        fields.shift_remove("reasoning_details");
        // An item with an id refers to the thoughts that came with it.
        if fields.contains_key("type") {
            fields.shift_remove("id");
        }
    }
}

fn remove(value: &mut Value, path: &str) {
    let (parent, field) = path.rsplit_once('.').unwrap_or(("", path));
    let parent = if parent.is_empty() {
        Some(value)
    } else {
        value.get_mut(parent)
    };
    if let Some(Value::Object(parent)) = parent {
        parent.shift_remove(field);
    }
}

/// Arguments as they stand in the history: always an object, because servers parse them again.
pub(super) fn arguments(arguments: &Arguments) -> Value {
    match arguments {
        Arguments::Object(object) => object.clone().into(),
        Arguments::Unparsable(text) => json!({ "unparsable": text }),
    }
}

/// A name that every server accepts. An invalid name made up by a model would break all following requests.
pub(super) fn word(name: &str) -> String {
    let accepted = |c: char| {
        if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') {
            c
        } else {
            '_'
        }
    };
    let word: String = name.chars().map(accepted).take(64).collect();
    if word.is_empty() {
        "unknown".to_owned()
    } else {
        word
    }
}

/// An id of at most this many characters: a longer one is replaced by its hash.
pub(super) fn within(id: &str, longest: usize) -> String {
    if id.len() <= longest {
        id.to_owned()
    } else {
        nine(id)
    }
}

/// An id in the form Mistral's templates require: nine letters or digits. Any other id is replaced by its hash, so that
/// it is the same in every request.
pub(super) fn nine(id: &str) -> String {
    const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    if id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return id.to_owned();
    }
    // FNV-1a: the standard library's hashes may change between versions, and this one is in histories.
    let mut hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut nine = String::with_capacity(9);
    for _ in 0..9 {
        let index = usize::try_from(hash % 62).expect("less than 62");
        nine.push(char::from(LETTERS[index]));
        hash /= 62;
    }
    nine
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_the_refused_fields_changes() {
        let refused = ["a.b".to_owned(), "strict".to_owned()];
        let check = |body: &str, expected: &str| {
            let sent = without(body.as_bytes(), &refused);
            assert_eq!(String::from_utf8(sent).unwrap(), expected);
        };
        check(r#"{"a":{"b":1,"c":2},"d":3}"#, r#"{"a":{"c":2},"d":3}"#);
        check(
            r#"{"tools":[{"strict":true,"n":1}]}"#,
            r#"{"tools":[{"n":1}]}"#,
        );
    }
}
