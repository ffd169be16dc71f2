//! Converts arguments whose meaning is certain to what a schema requires. Pure.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::names::squash;
use super::super::text::elements;
use super::foreign::{self, find_word, means, meant_by};
use super::leaks;
use crate::text::{Fields, repair};

/// Converts values whose meaning is certain to what the schema requires; leaves the rest to [`super::check`].
pub(super) fn coerce(value: &mut Value, schema: &Value) {
    match schema["type"].as_str() {
        Some("object") => coerce_object(value, schema),
        Some("array") => coerce_array(value, schema),
        Some("integer") => {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), |it| it.trim().to_owned());
            let number = text.parse().ok().or_else(|| whole(text.parse().ok()?));
            *value = number.map_or_else(|| value.take(), Value::from);
        }
        Some("boolean") => match foreign::word(value).as_str() {
            "true" | "yes" | "1" => *value = Value::Bool(true),
            "false" | "no" | "0" => *value = Value::Bool(false),
            _ => {}
        },
        Some("string") => coerce_string(value, schema),
        _ => {}
    }
}

/// A number that was sent with a decimal point; a fraction is rounded up.
#[expect(
    clippy::cast_possible_truncation,
    reason = "checked against the range doubles count exactly"
)]
fn whole(number: f64) -> Option<i64> {
    (number.abs() < 9e15).then_some(number.ceil() as i64)
}

fn coerce_string(value: &mut Value, schema: &Value) {
    if let Value::Array(items) = &*value
        && let [Value::String(only)] = items.as_slice()
    {
        *value = only.as_str().into();
    }
    if value.is_i64() || value.is_u64() {
        *value = Value::String(value.to_string());
    }
    // An option has a label; a value may have a name or a type beside it. A type alone is not a value.
    let inner = value.as_object().and_then(|fields| {
        let only = fields
            .iter()
            .find(|(name, _)| fields.len() == 1 && *name != "type");
        let only = only.map(|(_, value)| value);
        only.or_else(|| fields.get("label"))
            .or_else(|| fields.get("value"))
    });
    if let Some(text) = inner.and_then(Value::as_str) {
        *value = text.into();
    }
    let Some(words) = schema["enum"].as_array() else {
        return;
    };
    if let Some(word) = value
        .as_str()
        .and_then(|word| find_word(word, words.iter().filter_map(Value::as_str)))
    {
        *value = Value::String(word.to_owned());
    }
}

fn coerce_array(value: &mut Value, schema: &Value) {
    if let Some(edits) = value.as_str().and_then(foreign::blocks) {
        *value = edits;
    }
    unpack(value);
    unnest(value);
    let Some(items) = schema.get("items") else {
        return;
    };
    from_elements(value, items, true);
    if is_step(items)
        && let Some(steps) = value.as_str().and_then(foreign::steps)
    {
        *value = steps;
    }
    if value.is_object() && items.get("type").is_some_and(|name| name == "object") {
        *value = Value::Array(vec![value.take()]);
    }
    for item in value.as_array_mut().into_iter().flatten() {
        from_elements(item, items, false);
        as_step(item, items);
        coerce(item, items);
    }
}

/// Objects that were written as elements: the members of one (`<content>a</content><status>done</status>`) or, in a list,
/// several, each in an element that is no member.
fn from_elements(value: &mut Value, schema: &Value, is_list: bool) {
    let Some(Value::Object(properties)) = schema.get("properties") else {
        return;
    };
    let Some(elements) = value.as_str().and_then(elements::all) else {
        return;
    };
    let is_member = |name: &str| meant_by(name, properties).is_some();
    let named = elements.iter().map(|(name, _)| *name);
    let names: BTreeSet<&str> = named.clone().collect();
    if is_list && names.len() == 1 && !named.clone().any(is_member) {
        *value = elements.into_iter().map(|(_, item)| item).collect();
    } else if names.len() == elements.len() && named.clone().any(is_member) {
        *value = elements.into_iter().collect();
    }
}

/// A list inside another one, or inside an object: `{"0": …}`, `{"item": …}`.
fn unnest(value: &mut Value) {
    let inner = match &mut *value {
        Value::Array(items) => match items.as_mut_slice() {
            [inner @ Value::Array(_)] => inner.take(),
            _ => return,
        },
        Value::Object(fields)
            if fields
                .keys()
                .enumerate()
                .all(|(at, name)| *name == at.to_string()) =>
        {
            fields.iter_mut().map(|(_, item)| item.take()).collect()
        }
        Value::Object(fields) if fields.len() == 1 => match fields.get_mut("item") {
            Some(inner) => inner.take(),
            None => return,
        },
        _ => return,
    };
    *value = inner;
}

fn is_step(schema: &Value) -> bool {
    ["content", "status"]
        .iter()
        .all(|name| is_required(name, schema))
}

/// A step of a plan may be just its text; it is pending unless it says otherwise.
fn as_step(item: &mut Value, schema: &Value) {
    if !is_step(schema) {
        return;
    }
    if let Value::String(words) = &*item
        && !words.trim_start().starts_with('{')
    {
        *item = serde_json::json!({ "content": words });
    }
    let Some(fields) = item.as_object_mut() else {
        return;
    };
    let has = |fields: &Fields, ours| fields.keys().any(|name| means(name, ours));
    if !has(fields, "content")
        && let Some(words) = fields.remove("description")
    {
        fields.insert("content".to_owned(), words);
    }
    if !has(fields, "status") {
        fields.insert("status".to_owned(), "pending".into());
    }
}

fn coerce_object(value: &mut Value, schema: &Value) {
    unpack(value);
    let (Value::Object(fields), Some(Value::Object(properties))) =
        (value, schema.get("properties"))
    else {
        return;
    };
    foreign::unwrap(fields, properties);
    foreign::operation(fields, properties);
    leaks::repair(fields, properties);
    foreign::rename(fields, properties);
    foreign::hoist(fields, properties);
    foreign::spread_paths(fields, properties);
    let is_unknown = |name: &str| !properties.contains_key(name);
    fields.retain(|name, value| {
        !is_absent(name, value, properties.get(name)) || is_required(name, schema)
    });
    blocks(fields, properties);
    fold_single_item(fields, properties);
    // Where the text to replace is quoted, numbers of lines only repeat its place.
    let replaces = ["edits", "old_text"]
        .iter()
        .any(|it| properties.contains_key(*it));
    fields.retain(|name, value| {
        let adds_nothing = foreign::is_comment(name, value)
            || foreign::is_nothing(name, value)
            || (replaces && foreign::is_line_number(name, value));
        !(is_unknown(name) && adds_nothing)
    });
    if properties.contains_key("command") {
        command(fields, properties);
    }
    for (name, value) in fields {
        if let Some(schema) = properties.get(name) {
            unpack_text(name, value, schema);
            // An object in place of a text of a file is not one of its members.
            if !is_text(name) || !value.is_object() {
                coerce(value, schema);
            }
        }
    }
}

/// Whether an optional argument says nothing: `null`, an empty text, or a number that stands for no limit.
fn is_absent(name: &str, value: &Value, schema: Option<&Value>) -> bool {
    let is_number = schema.is_some_and(|schema| schema["type"] == "integer");
    match value {
        // No text to replace is an empty one, as for a file that does not exist.
        Value::Null => !means(name, "old_text"),
        Value::String(text) if is_number => {
            ["", "null", "none", "undefined"].contains(&squash(text).as_str())
        }
        Value::String(text) => text.is_empty() && schema.is_some(),
        value => is_number && (*value == -1 || name == "timeout_s" && *value == 0),
    }
}

/// Whether an argument is a text of a file.
fn is_text(name: &str) -> bool {
    ["content", "old_text", "new_text", "patch"].contains(&name)
}

/// A text that came as an object with the same name, as JSON that was not written out, or as its lines.
fn unpack_text(name: &str, value: &mut Value, schema: &Value) {
    if schema["type"] != "string" {
        return;
    }
    let inner = match &*value {
        Value::Array(items) => match items.as_slice() {
            [only] => only,
            _ => value,
        },
        value => value,
    };
    if let Value::Object(inner) = inner
        && let Some((key, text)) = inner.iter().next()
        && inner.len() == 1
        && squash(key) == squash(name)
    {
        *value = text.clone();
    }
    match &*value {
        Value::Null if name == "old_text" => *value = "".into(),
        // The whole text is escaped once more: no file is one line that ends with an escape.
        Value::String(text)
            if name == "content"
                && !text.contains('\n')
                && text.matches("\\n").count() > 1
                && text
                    .strip_suffix("\\n")
                    .is_some_and(|text| !text.ends_with('\\')) =>
        {
            *value = repair::unescape(text).into();
        }
        Value::Array(items) if is_text(name) => {
            if let Some(lines) = foreign::lines(items) {
                *value = lines.into();
            }
        }
        Value::Object(_) if name == "content" => {
            *value = serde_json::to_string_pretty(value)
                .unwrap_or_default()
                .into();
        }
        _ => {}
    }
}

/// A command may be a list of words; for a job without a command it is `read`.
fn command(fields: &mut Fields, properties: &Fields) {
    // A program, and its arguments beside it.
    if let (Some(Value::String(program)), Some(Value::Array(words))) =
        (fields.get("command"), fields.get("args"))
        && !program.contains(char::is_whitespace)
    {
        let program = std::iter::once(program.as_str().into());
        let words = program.chain(words.iter().cloned()).collect();
        fields.insert("command".to_owned(), words);
        fields.remove("args");
    }
    let Some(command) = fields.get_mut("command") else {
        if properties.contains_key("job") && fields.contains_key("job") {
            fields.insert("command".to_owned(), "read".into());
        }
        return;
    };
    if let Value::String(line) = command {
        // A shell's prompt is not part of what is typed after it.
        if let Some(typed) = line.strip_prefix("$ ")
            && !typed.contains('\n')
        {
            *line = typed.to_owned();
        }
        // Operators that a server has escaped for HTML.
        let signs = [" &gt; ", " &lt; ", " &amp;&amp; "];
        if !line.contains(['"', '\'']) && signs.iter().any(|sign| line.contains(sign)) {
            *line = repair::dereferenced(line);
        }
        if line.starts_with("[\"")
            && let Ok(words @ Value::Array(_)) = serde_json::from_str(line)
        {
            *command = words;
        }
    }
    if let Value::Array(words) = command
        && let Some(line) = foreign::line(words)
    {
        *command = line.into();
    }
}

/// Blocks of SEARCH and REPLACE, whatever they are called, for a list of edits.
fn blocks(fields: &mut Fields, properties: &Fields) {
    if !properties.contains_key("edits") || fields.contains_key("edits") {
        return;
    }
    let text = fields.iter().find_map(|(name, text)| {
        let edits = foreign::blocks(text.as_str().filter(|_| !properties.contains_key(name))?)?;
        Some((name.clone(), edits))
    });
    if let Some((name, edits)) = text {
        fields.remove(&name);
        fields.insert("edits".to_owned(), edits);
    }
}

/// How often JSON may be encoded.
const LAYERS: usize = 3;

/// JSON that came as text of JSON.
fn unpack(value: &mut Value) {
    let mut inner = None;
    for _ in 0..LAYERS {
        let Value::String(text) = inner.as_ref().unwrap_or(value) else {
            break;
        };
        let Some(parsed) = repair::value(text) else {
            break;
        };
        inner = Some(parsed);
    }
    if let Some(parsed) = inner.filter(|parsed| parsed.is_object() || parsed.is_array()) {
        *value = parsed;
    }
}

/// `{path, old_text, new_text}` for `{path, edits: [{old_text, new_text}]}`: the one item of a missing list, spread out.
fn fold_single_item(fields: &mut Fields, properties: &Fields) {
    let list = properties
        .iter()
        .find_map(|(name, schema)| Some((name, schema.pointer("/items/properties")?.as_object()?)));
    let is_missing = |name: &str| fields.get(name).is_none_or(Value::is_null);
    let Some((list, of_item)) = list.filter(|(name, _)| is_missing(name)) else {
        return;
    };
    let numbered = |name: &str| {
        name.ends_with('1')
            .then(|| name.trim_end_matches(['1', '_']).to_owned())
    };
    let known = |name: &str| meant_by(name, of_item).is_some();
    let (item, rest): (Fields, Fields) =
        std::mem::take(fields).into_iter().partition(|(name, _)| {
            !properties.contains_key(name)
                && (known(name) || numbered(name).is_some_and(|name| known(&name)))
        });
    *fields = rest;
    let item: Fields = item
        .into_iter()
        .map(|(name, value)| (numbered(&name).unwrap_or(name), value))
        .collect();
    if !item.is_empty() {
        fields.insert(list.clone(), Value::Array(vec![Value::Object(item)]));
    }
}

pub(super) fn is_required(name: &str, schema: &Value) -> bool {
    schema["required"]
        .as_array()
        .is_some_and(|names| names.iter().any(|it| it == name))
}
