//! The arguments of tool calls: the schema given to the model, and parsing what it sent.
//!
//! Lenient in form, strict in meaning: a number sent as text, a list sent as JSON text, or a name from another agent's
//! tools is understood ([`foreign`]); an argument that would silently change the call's meaning is refused.

mod foreign;
mod words;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use self::foreign::{find, find_word};
use super::ToolError;
use super::names::squash;

/// The JSON Schema of `A`, everything inline, without what only costs tokens.
pub(super) fn schema<A: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<A>().to_value();
    trim(&mut schema);
    if let Value::Object(root) = &mut schema {
        root.remove("description");
    }
    schema
}

/// Drops titles, formats, defaults and `null` from a schema and writes enumerations short.
fn trim(schema: &mut Value) {
    let Value::Object(keys) = schema else { return };
    for key in ["title", "format", "default"] {
        keys.remove(key);
    }
    if let Some(Value::Array(types)) = keys.get("type") {
        let plain = types.iter().find(|name| *name != "null").cloned().unwrap_or_default();
        keys.insert("type".to_owned(), plain);
    }
    if let Some(Value::Array(variants)) = keys.remove("oneOf") {
        let words = variants.iter().filter_map(|variant| variant.get("const").cloned()).collect();
        keys.insert("type".to_owned(), "string".into());
        keys.insert("enum".to_owned(), Value::Array(words));
    }
    if let Some(Value::Object(properties)) = keys.get_mut("properties") {
        properties.values_mut().for_each(trim);
    }
    if let Some(items) = keys.get_mut("items") {
        trim(items);
    }
}

/// How unknown arguments are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unknown {
    /// The call is refused: it might do something other than what was meant.
    Refused,
    /// They are ignored with a note, because the call changes nothing.
    LeftOut,
}

/// Parses arguments; the error names the field and what was expected, and shows a correct call. Also returns a note for
/// the model about how they were interpreted.
pub(super) fn read<A: DeserializeOwned + JsonSchema>(
    arguments: &Value,
    example: &str,
    unknown: Unknown,
) -> Result<(A, Option<String>), ToolError> {
    let schema = schema::<A>();
    let mut arguments = arguments.clone();
    coerce(&mut arguments, &schema);
    let mut left_out = Vec::new();
    if unknown == Unknown::LeftOut {
        leave_out(&mut arguments, &schema, &mut left_out);
    }
    let arguments = check(&arguments, &schema, "")
        .and_then(|()| serde_json::from_value(arguments).map_err(|error| error.to_string()))
        .map_err(|problem| ToolError(format!("wrong arguments: {problem}\nExample: {example}")))?;
    let note = (!left_out.is_empty()).then(|| format!("[not known here and ignored: {}]", left_out.join(", ")));
    Ok((arguments, note))
}

/// Checks that these arguments match the schema after coercion.
pub(super) fn fit(arguments: &Value, schema: &Value) -> Result<(), String> {
    let mut arguments = arguments.clone();
    coerce(&mut arguments, schema);
    check(&arguments, schema, "")
}

/// The arguments after coercion.
pub(super) fn coerced(arguments: &Value, schema: &Value) -> Value {
    let mut arguments = arguments.clone();
    coerce(&mut arguments, schema);
    arguments
}

/// Removes members the schema does not have.
fn leave_out(value: &mut Value, schema: &Value, names: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
            fields.retain(|name, _| {
                let is_known = properties.contains_key(name);
                if !is_known {
                    names.push(format!("`{name}`"));
                }
                is_known
            });
            for (name, value) in fields {
                leave_out(value, &properties[name.as_str()], names);
            }
        }
        Value::Array(items) => {
            let of_item = schema.get("items").unwrap_or(&Value::Null);
            for item in items {
                leave_out(item, of_item, names);
            }
        }
        _ => {}
    }
}

/// Parses incomplete arguments into a type whose fields are all optional.
pub(super) fn read_partial<A: JsonSchema, P: DeserializeOwned + Default>(arguments: &Value) -> P {
    let mut arguments = arguments.clone();
    coerce(&mut arguments, &schema::<A>());
    serde_json::from_value(arguments).unwrap_or_default()
}

/// Converts values whose meaning is certain to what the schema requires; leaves the rest to [`check`].
fn coerce(value: &mut Value, schema: &Value) {
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => coerce_object(value, schema),
        Some("array") => coerce_array(value, schema),
        Some("integer") => {
            let number = match &*value {
                Value::String(text) => text.trim().parse::<i64>().ok(),
                Value::Number(number) => number.as_f64().filter(|_| number.is_f64()).and_then(whole),
                _ => None,
            };
            *value = number.map_or_else(|| value.take(), Value::from);
        }
        Some("boolean") => match value.as_str().map(squash).as_deref() {
            Some("true") => *value = Value::Bool(true),
            Some("false") => *value = Value::Bool(false),
            _ => {}
        },
        Some("string") => coerce_string(value, schema),
        _ => {}
    }
}

/// A whole number that was sent with a decimal point.
#[expect(clippy::cast_possible_truncation, reason = "checked against the range doubles count exactly")]
fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64)
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
    if let Some(label) = value.get("label").and_then(Value::as_str) {
        *value = label.into();
    }
    let Some(words) = schema.get("enum").and_then(Value::as_array) else {
        return;
    };
    if let Some(word) = value.as_str().and_then(|word| find_word(word, words.iter().filter_map(Value::as_str))) {
        *value = Value::String(word.to_owned());
    }
}

fn coerce_array(value: &mut Value, schema: &Value) {
    unpack(value);
    let Some(items) = schema.get("items") else {
        return;
    };
    if is_step(items)
        && let Some(steps) = value.as_str().and_then(foreign::steps)
    {
        *value = steps;
    }
    if value.is_object() && items.get("type").is_some_and(|name| name == "object") {
        *value = Value::Array(vec![value.take()]);
    }
    for item in value.as_array_mut().into_iter().flatten() {
        as_step(item, items);
        coerce(item, items);
    }
}

fn is_step(schema: &Value) -> bool {
    ["content", "status"].iter().all(|name| is_required(name, schema))
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
    let Some(fields) = item.as_object_mut() else { return };
    let has = |fields: &Map<String, Value>, ours| fields.keys().any(|name| find(name, [ours].into_iter()).is_some());
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
    let (Value::Object(fields), Some(Value::Object(properties))) = (value, schema.get("properties")) else {
        return;
    };
    foreign::unwrap(fields, properties);
    foreign::rename(fields, properties);
    foreign::hoist(fields, properties);
    let is_unknown = |name: &str| !properties.contains_key(name);
    fields.retain(|name, value| !value.is_null() || is_required(name, schema));
    blocks(fields, properties);
    fold_single_item(fields, properties);
    fields.retain(|name, value| !is_unknown(name) || !foreign::is_comment(name) && !foreign::is_nothing(value));
    if properties.contains_key("command") {
        command(fields, properties);
    }
    for (name, value) in fields {
        if let Some(schema) = properties.get(name) {
            coerce(value, schema);
        }
    }
}

/// A command may be a list of words; for a job without a command it is `read`.
fn command(fields: &mut Map<String, Value>, properties: &Map<String, Value>) {
    // A program, and its arguments beside it.
    if let (Some(Value::String(program)), Some(Value::Array(words))) = (fields.get("command"), fields.get("args"))
        && !program.contains(char::is_whitespace)
    {
        let words: Vec<Value> = std::iter::once(program.as_str().into()).chain(words.iter().cloned()).collect();
        fields.insert("command".to_owned(), words.into());
        fields.remove("args");
    }
    match fields.get("command") {
        Some(Value::Array(words)) => {
            if let Some(line) = foreign::line(words) {
                fields.insert("command".to_owned(), line.into());
            }
        }
        None if properties.contains_key("job") && fields.contains_key("job") => {
            fields.insert("command".to_owned(), "read".into());
        }
        _ => {}
    }
}

/// `diff` with blocks of SEARCH and REPLACE, for a list of edits.
fn blocks(fields: &mut Map<String, Value>, properties: &Map<String, Value>) {
    if !properties.contains_key("edits") || fields.contains_key("edits") {
        return;
    }
    if let Some(edits) = fields.get("diff").and_then(Value::as_str).and_then(foreign::blocks) {
        fields.remove("diff");
        fields.insert("edits".to_owned(), edits);
    }
}

/// JSON that came as text of JSON.
fn unpack(value: &mut Value) {
    let parsed = value.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    if let Some(parsed) = parsed.filter(|parsed| parsed.is_object() || parsed.is_array()) {
        *value = parsed;
    }
}

/// `{path, old_text, new_text}` for `{path, edits: [{old_text, new_text}]}`: the one item of a missing list, spread out.
fn fold_single_item(fields: &mut Map<String, Value>, properties: &Map<String, Value>) {
    let list =
        properties.iter().find_map(|(name, schema)| Some((name, schema.pointer("/items/properties")?.as_object()?)));
    let Some((list, of_item)) = list.filter(|(name, _)| !fields.contains_key(*name)) else {
        return;
    };
    let (item, rest): (Map<_, _>, Map<_, _>) = std::mem::take(fields).into_iter().partition(|(name, _)| {
        !properties.contains_key(name) && find(name, of_item.keys().map(String::as_str)).is_some()
    });
    *fields = rest;
    if !item.is_empty() {
        fields.insert(list.clone(), Value::Array(vec![Value::Object(item)]));
    }
}

fn is_required(name: &str, schema: &Value) -> bool {
    schema.get("required").and_then(Value::as_array).is_some_and(|names| names.iter().any(|it| it == name))
}

/// Compares a value with its schema; `at` is its name, empty for the arguments as a whole.
fn check(value: &Value, schema: &Value, at: &str) -> Result<(), String> {
    let fits = match schema.get("type").and_then(Value::as_str) {
        Some("object") => match value.as_object() {
            Some(fields) => return check_object(fields, schema, at),
            None => false,
        },
        Some("array") => match value.as_array() {
            Some(items) => return check_array(items, schema, at),
            None => false,
        },
        Some("integer") => value.is_u64(),
        Some("boolean") => value.is_boolean(),
        Some("string") => {
            value.is_string() && schema.get("enum").and_then(Value::as_array).is_none_or(|words| words.contains(value))
        }
        _ => true,
    };
    let name = if at.is_empty() { "the arguments".to_owned() } else { format!("`{at}`") };
    if fits { Ok(()) } else { Err(format!("{name} must be {}, not {}", expected(schema), found(value))) }
}

fn check_object(fields: &Map<String, Value>, schema: &Value, at: &str) -> Result<(), String> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Ok(());
    };
    let full = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
    if let Some(name) = fields.keys().find(|name| !properties.contains_key(*name)) {
        let known: Vec<_> = properties.keys().map(|name| format!("`{name}`")).collect();
        return Err(format!("`{}` is not known here, only {}", full(name), known.join(", ")));
    }
    for (name, schema_of_field) in properties {
        match fields.get(name) {
            Some(value) => check(value, schema_of_field, &full(name))?,
            None if is_required(name, schema) => {
                return Err(format!("`{}` is missing, it must be {}", full(name), expected(schema_of_field)));
            }
            None => {}
        }
    }
    Ok(())
}

fn check_array(items: &[Value], schema: &Value, at: &str) -> Result<(), String> {
    let items_schema = schema.get("items").unwrap_or(&Value::Null);
    items.iter().enumerate().try_for_each(|(index, item)| check(item, items_schema, &format!("{at}[{index}]")))
}

/// The type a schema requires, in words.
fn expected(schema: &Value) -> String {
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        let words: Vec<_> = words.iter().map(Value::to_string).collect();
        return format!("one of {}", words.join(", "));
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("array") => match schema.pointer("/items/properties").and_then(Value::as_object) {
            Some(fields) => format!("a list of {{{}}}", fields.keys().cloned().collect::<Vec<_>>().join(", ")),
            None => "a list".to_owned(),
        },
        Some("integer") => "a whole number, not negative".to_owned(),
        Some("boolean") => "true or false".to_owned(),
        Some("object") => "an object".to_owned(),
        _ => "a string".to_owned(),
    }
}

/// What came instead, in words; long values by their kind.
fn found(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) if text.chars().count() > 40 => "a string".to_owned(),
        short => short.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};
    use serde_json::{Value, json};

    use super::{Unknown, read, schema};
    use crate::tools::PlanStatus;

    /// For the tests alone.
    #[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    struct Arguments {
        /// A file.
        path: String,
        /// A number.
        limit: Option<usize>,
        /// A switch.
        #[serde(default)]
        all: bool,
        /// Things.
        edits: Vec<Item>,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    struct Item {
        old_text: String,
        /// How far.
        status: PlanStatus,
    }

    #[test]
    fn schema_is_small() {
        let expected = json!({
            "type": "object",
            "properties": {
                "path": {"description": "A file.", "type": "string"},
                "limit": {"description": "A number.", "type": "integer", "minimum": 0},
                "all": {"description": "A switch.", "type": "boolean"},
                "edits": {"description": "Things.", "type": "array", "items": {
                    "type": "object",
                    "properties": {
                        "old_text": {"type": "string"},
                        "status": {"description": "How far.", "type": "string", "enum": ["pending", "in_progress", "completed"]},
                    },
                    "required": ["old_text", "status"],
                }},
            },
            "required": ["path", "edits"],
        });
        assert_eq!(schema::<Arguments>(), expected);
    }

    #[test]
    fn common_slips_are_understood() {
        let plain =
            json!({"path": "a", "limit": 5, "all": true, "edits": [{"old_text": "x", "status": "in_progress"}]});
        let check = |slip: Value| {
            let (read, note) = read::<Arguments>(&slip, "", Unknown::Refused).unwrap();
            assert_eq!(note, None);
            assert_eq!(serde_json::to_value(read).unwrap(), plain, "{slip}");
        };
        let item = json!({"old_text": "x", "status": "in_progress"});
        check(plain.clone());
        check(json!({"path": "a", "limit": "5", "all": "true", "edits": [item]}));
        check(json!({"file_path": "a", "limit": 5.0, "all": "True", "edits": item}));
        check(json!({"filePath": "a", "limit": 5, "all": true, "edits": item.to_string()}));
        check(json!({"path": "a", "limit": 5, "all": true, "edits": json!([item]).to_string()}));
        check(json!({"path": "a", "limit": 5, "all": true, "edits": [{"oldString": "x", "status": "in-progress"}]}));
        check(json!({"path": "a", "limit": 5, "all": true, "old_str": "x", "status": "In Progress"}));
        check(Value::String(plain.to_string()));
    }

    #[test]
    fn null_means_absent_and_numbers_can_be_strings() {
        let arguments = json!({"path": 404, "limit": null, "all": null, "edits": []});
        let (read, _) = read::<Arguments>(&arguments, "", Unknown::Refused).unwrap();
        assert_eq!(read, Arguments { path: "404".to_owned(), limit: None, all: false, edits: vec![] });
    }

    #[test]
    fn an_error_names_the_field_and_what_was_expected() {
        let check = |arguments: Value, expected: &str| {
            let error = read::<Arguments>(&arguments, "{…}", Unknown::Refused).unwrap_err();
            assert_eq!(error.0, format!("wrong arguments: {expected}\nExample: {{…}}"));
        };
        check(Value::Null, "the arguments must be an object, not null");
        check(json!({"edits": []}), "`path` is missing, it must be a string");
        check(json!({"path": "a"}), "`edits` is missing, it must be a list of {old_text, status}");
        check(json!({"path": ["a", "b"], "edits": []}), "`path` must be a string, not a list");
        check(json!({"path": "a", "limit": -1, "edits": []}), "`limit` must be a whole number, not negative, not -1");
        check(
            json!({"path": "a", "limit": "many", "edits": []}),
            "`limit` must be a whole number, not negative, not \"many\"",
        );
        check(
            json!({"path": "a", "edits": [{"old_text": "x", "status": "pending"}, {}]}),
            "`edits[1].old_text` is missing, it must be a string",
        );
        check(
            json!({"path": "a", "edits": [{"old_text": "x", "status": "maybe"}]}),
            "`edits[0].status` must be one of \"pending\", \"in_progress\", \"completed\", not \"maybe\"",
        );
        check(
            json!({"path": "a", "edits": [], "append": true}),
            "`append` is not known here, only `path`, `limit`, `all`, `edits`",
        );
    }
}
