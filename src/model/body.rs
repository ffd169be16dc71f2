//! What the bodies of all dialects have in common: an opening, messages put side by side, a tail.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::{Arguments, Preamble};

/// Closes the body of every dialect: the list of messages is its last field.
pub(super) const TAIL: &[u8] = b"]}";

/// Our fields with the configured ones over them. A configured `null` removes a field; so does `false`, which TOML can
/// say, where ours is no flag: not every server takes `stream_options`.
pub(super) fn fields(ours: Value, configured: &Map<String, Value>) -> Map<String, Value> {
    let Value::Object(mut fields) = ours else { unreachable!("a body is an object") };
    for (name, value) in configured {
        let structured = fields.get(name).is_some_and(|ours| ours.is_object() || ours.is_array());
        if value.is_null() || structured && *value == false {
            fields.remove(name);
        } else {
            fields.insert(name.clone(), value.clone());
        }
    }
    fields
}

/// The body with these fields, open at its end: [`TAIL`], which would close it, is taken away.
pub(super) fn open(fields: &Map<String, Value>) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(fields).expect("a JSON value always serializes");
    debug_assert!(bytes.ends_with(TAIL), "the list of messages is the last field");
    bytes.truncate(bytes.len() - TAIL.len());
    bytes
}

/// Values side by side, as they stand in a list.
pub(super) fn join(values: impl IntoIterator<Item = Value>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for value in values {
        if !bytes.is_empty() {
            bytes.push(b',');
        }
        serde_json::to_writer(&mut bytes, &value).expect("a JSON value always serializes");
    }
    bytes
}

/// The whole body of a request.
pub(super) fn close(preamble: &Preamble, messages: &[Bytes]) -> Vec<u8> {
    let length = messages.iter().map(|message| message.len() + 1).sum::<usize>();
    let mut body = Vec::with_capacity(preamble.bytes.len() + length + TAIL.len());
    body.extend_from_slice(&preamble.bytes);
    for message in messages.iter().filter(|message| !message.is_empty()) {
        if body.last() != Some(&b'[') {
            body.push(b',');
        }
        body.extend_from_slice(message);
    }
    body.extend_from_slice(TAIL);
    body
}

/// Arguments as they stand in the history: always an object, because servers parse them again.
pub(super) fn arguments(arguments: &Arguments) -> Value {
    match arguments {
        Arguments::Object(object) => object.clone().into(),
        Arguments::Unparsable(text) => json!({ "unparsable": text }),
    }
}

/// A name as every server accepts it. One that a model made up would else spoil all requests that follow.
pub(super) fn word(name: &str) -> String {
    let accepted = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let word: String = name.chars().map(accepted).take(64).collect();
    if word.is_empty() { "unknown".to_owned() } else { word }
}
