//! Calls as JSON, and what may surround them. Pure.

use serde_json::Value;

use crate::text::marks::{self, Kind};
use crate::text::{Fields, lists, repair};

/// A call as it was written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TextCall {
    pub name: String,
    pub arguments: Fields,
    /// Whether brackets were missing at the end of its JSON.
    pub is_completed: bool,
}

impl TextCall {
    /// A call that was written out.
    pub(super) fn new(name: String, arguments: Fields) -> Self {
        Self {
            name,
            arguments,
            is_completed: false,
        }
    }
}

/// Whether a name is one of a tool.
pub(crate) type IsTool<'a> = &'a dyn Fn(&str) -> bool;

/// The calls that a text begins with, and the rest.
pub(super) type Found<'a> = Option<(Vec<TextCall>, &'a str)>;

/// Words in the key of a call's name, and in that of its arguments.
pub(super) const NAMES: &str = "name tool function action";
pub(super) const ARGUMENTS: &str = "args argument param input";
/// Other members of a call's JSON.
pub(super) const REST: &str =
    "type id index call_id tool_call_id thought thoughts reasoning explanation description";

/// Members whose values are calls.
pub(super) const WRAPPERS: &str = "tool_calls tool_call function_call functionCall tool_uses";

/// Whether a word of these lists is in a key.
pub(super) fn tells(key: &str, lists: &[&str]) -> bool {
    let key = key.to_lowercase();
    let mut words = lists.iter().flat_map(|list| list.split(' '));
    words.any(|word| key.contains(word))
}

pub(super) fn with_json<'a>(name: &str, text: &'a str) -> Found<'a> {
    let (Value::Object(arguments), rest, is_completed) = fenced(text)? else {
        return None;
    };
    Some((
        vec![TextCall {
            name: name.to_owned(),
            arguments,
            is_completed,
        }],
        rest,
    ))
}

/// The object or the list that a text begins with, in a code fence or without one.
pub(super) fn fenced(text: &str) -> Option<(Value, &str, bool)> {
    const FENCE: &str = "```";
    let text = text.trim_start();
    let inside = text.strip_prefix(FENCE);
    let code = inside.map_or(text, |it| {
        it.trim_start_matches(char::is_alphabetic).trim_start()
    });
    // The object may be quoted again, as a string.
    if code.starts_with("{\\\"") {
        let quoted = format!("\"{code}");
        let (object, rest) = repair::first_value(&quoted)?;
        let (value, _, is_completed) = complete(object.as_str()?)?;
        let rest = code.split_at(code.len() - rest.len()).1;
        return Some((value, rest, is_completed));
    }
    let (value, rest, is_completed) = code.starts_with(['{', '[']).then(|| complete(code))??;
    let end = inside.and_then(|_| rest.trim_start().strip_prefix(FENCE));
    Some((value, end.unwrap_or(rest), is_completed))
}

/// The JSON that a text begins with, what follows it, and whether its last brackets were missing.
pub(super) fn complete(text: &str) -> Option<(Value, &str, bool)> {
    let whole = repair::first_value(text).map(|(value, rest)| (value, rest, false));
    whole.or_else(|| unclosed(text).map(|(value, rest)| (value, rest, true)))
}

/// An object without its last brackets, up to the mark that ends the call.
fn unclosed(text: &str) -> Option<(Value, &str)> {
    let ends = marks::ends(&[Kind::Calls, Kind::Named, Kind::Stop]);
    let end = ends.filter_map(|end| marks::find(text, end)).min();
    let (inside, rest) = text.split_at(end.map_or(text.len(), |(at, _)| at));
    Some((repair::unclosed(inside)?, rest))
}

/// The types of a schema.
pub(super) const TYPES: &str = "array boolean integer number object string";

/// Whether fields say what type a value has.
fn is_schema(fields: &Fields) -> bool {
    let named = fields.get("type").and_then(Value::as_str);
    named.is_some_and(|name| lists(TYPES, name)) && !fields.contains_key("value")
}

/// Whether JSON is data: nothing at the top of it names a tool or stands around a call.
pub(super) fn is_data(value: &Value, is_name: IsTool<'_>) -> bool {
    match value {
        Value::Array(items) => items.iter().all(|item| is_data(item, is_name)),
        Value::Object(fields) => !fields.iter().any(|(key, value)| {
            let is_around = key == "function" || lists(WRAPPERS, key);
            is_around || is_name(key) || value.as_str().is_some_and(is_name)
        }),
        _ => false,
    }
}

/// Whether JSON defines a tool, or each item of it does.
pub(super) fn is_definition(value: &Value) -> bool {
    match value {
        Value::Array(items) => !items.is_empty() && items.iter().all(is_definition),
        Value::Object(fields) => {
            fields.values().filter_map(Value::as_object).any(is_schema)
                || fields.get("function").is_some_and(is_definition)
        }
        _ => false,
    }
}

/// A call or a list of calls as JSON: a name, arguments, and nothing that belongs to something else.
pub(super) fn of_json(value: &Value) -> Option<Vec<TextCall>> {
    match value {
        Value::Array(items) => {
            let calls: Vec<TextCall> = items
                .iter()
                .map(of_json)
                .collect::<Option<Vec<_>>>()?
                .concat();
            (!calls.is_empty()).then_some(calls)
        }
        Value::Object(fields) => {
            // A list of calls may have any name.
            if let (Some((name, inner)), 1) = (fields.iter().next(), fields.len())
                && (inner.is_array() || lists(WRAPPERS, name))
            {
                let written = inner.as_str().and_then(repair::value);
                return of_json(written.as_ref().unwrap_or(inner));
            }
            if let Some(inner @ Value::Object(_)) = fields.get("function") {
                let is_known = |name: &String| name == "function" || lists(REST, name);
                return fields.keys().all(is_known).then(|| of_json(inner))?;
            }
            let kind = fields.get("type").and_then(Value::as_str);
            kind.is_none_or(marks::is_kind_of_call).then_some(())?;
            let keys = fields.keys().filter(|key| !lists(REST, key));
            let (arguments, names): (Vec<_>, Vec<_>) = keys.partition(|it| tells(it, &[ARGUMENTS]));
            let ([arguments], [name]) = (&*arguments, &*names) else {
                return None;
            };
            tells(name, &[NAMES]).then_some(())?;
            let arguments = match &fields[*arguments] {
                Value::String(text) => repair::value(text)?,
                other => other.clone(),
            };
            let Value::Object(arguments) = arguments else {
                return None;
            };
            // It describes a tool.
            let mut members = arguments.values().filter_map(Value::as_object);
            if is_schema(&arguments) || members.any(is_schema) {
                return None;
            }
            Some(vec![TextCall::new(
                fields[*name].as_str()?.to_owned(),
                arguments,
            )])
        }
        _ => None,
    }
}

/// The longest name of a tool as a tag, in bytes.
pub(super) const LONGEST: usize = 40;

/// Whether a text is one word.
pub(super) fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// The word at the beginning of a text, and the rest.
pub(super) fn split_word(text: &str) -> (&str, &str) {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split_at(text.find(|c| !is_of_word(c)).unwrap_or(text.len()))
}
