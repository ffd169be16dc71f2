//! The arguments of tool calls: the schema given to the model, and parsing what it sent.
//!
//! Lenient in form, strict in meaning: a number sent as text, a list sent as JSON text, or a name from another agent's
//! tools is understood ([`foreign`]); an argument that would silently change the call's meaning is refused.

mod coerce;
mod foreign;
mod leaks;
mod words;

use std::any::TypeId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use self::coerce::{coerce, is_required};
pub(crate) use self::leaks::bare;
use crate::domain::{ToolError, lock};

/// The JSON Schema of `A`, everything inline, without what only costs tokens. Each call is read with it, so it is made once.
pub(crate) fn schema<A: JsonSchema + 'static>() -> Arc<Value> {
    static MADE: Mutex<BTreeMap<TypeId, Arc<Value>>> = Mutex::new(BTreeMap::new());
    let mut made = lock(&MADE);
    let schema = made.entry(TypeId::of::<A>());
    Arc::clone(schema.or_insert_with(|| make::<A>().into()))
}

fn make<A: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<A>()
        .to_value();
    trim(&mut schema);
    if let Value::Object(root) = &mut schema {
        root.remove("description");
    }
    schema
}

/// Drops titles, formats, defaults, smallest values and `null` from a schema and writes enumerations short.
fn trim(schema: &mut Value) {
    let Value::Object(keys) = schema else { return };
    for key in ["title", "format", "default", "minimum"] {
        keys.remove(key);
    }
    if let Some(Value::Array(types)) = keys.get("type") {
        let plain = types
            .iter()
            .find(|name| *name != "null")
            .cloned()
            .unwrap_or_default();
        keys.insert("type".to_owned(), plain);
    }
    if let Some(Value::Array(variants)) = keys.remove("oneOf") {
        let words = variants
            .iter()
            .filter_map(|variant| variant.get("const").cloned())
            .collect();
        keys.insert("type".to_owned(), "string".into());
        keys.insert("enum".to_owned(), Value::Array(words));
    }
    if let Some(Value::Object(properties)) = keys.get_mut("properties") {
        properties.values_mut().for_each(trim);
    }
    if let Some(items) = keys.get_mut("items") {
        trim(items);
        // The list says what its items are.
        if let Value::Object(keys) = items {
            keys.remove("description");
        }
    }
}

/// How unknown arguments are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// The call is refused: it might do something other than what was meant.
    Refused,
    /// They are ignored with a note, because the call changes nothing.
    LeftOut,
}

/// Parses arguments; the error names the field and what was expected, and shows a correct call. Also returns a note for
/// the model about how they were interpreted.
pub(crate) fn read<A: DeserializeOwned + JsonSchema + 'static>(
    arguments: &Value,
    example: &str,
    unknown: Unknown,
) -> Result<(A, Option<String>), ToolError> {
    let schema = schema::<A>();
    let mut arguments = coerced(arguments, &schema);
    let mut left_out = Vec::new();
    if unknown == Unknown::LeftOut {
        leave_out(&mut arguments, &schema, &mut left_out);
    }
    let arguments = check(&arguments, &schema, "")
        .and_then(|()| serde_json::from_value(arguments).map_err(|error| error.to_string()))
        .map_err(|problem| ToolError(format!("wrong arguments: {problem}\nExample: {example}")))?;
    let note = (!left_out.is_empty())
        .then(|| format!("[unknown arguments, ignored: {}]", left_out.join(", ")));
    Ok((arguments, note))
}

/// Checks that these arguments match the schema after coercion.
pub(crate) fn fit(arguments: &Value, schema: &Value) -> Result<(), String> {
    check(&coerced(arguments, schema), schema, "")
}

/// The arguments after coercion.
pub(crate) fn coerced(arguments: &Value, schema: &Value) -> Value {
    let mut arguments = arguments.clone();
    coerce(&mut arguments, schema);
    arguments
}

/// Removes members the schema does not have.
fn leave_out(value: &mut Value, schema: &Value, names: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let Some(properties) = schema["properties"].as_object() else {
                return;
            };
            fields.retain(|name, value| {
                let of_field = properties.get(name);
                match of_field {
                    Some(schema) => leave_out(value, schema, names),
                    None => names.push(format!("`{name}`")),
                }
                of_field.is_some()
            });
        }
        Value::Array(items) => {
            for item in items {
                leave_out(item, &schema["items"], names);
            }
        }
        _ => {}
    }
}

/// Incomplete arguments, as far as they have arrived.
pub(crate) fn partial<A: JsonSchema + 'static>(arguments: &Value) -> Value {
    coerced(arguments, &schema::<A>())
}

/// Compares a value with its schema; `at` is its name, empty for the arguments as a whole.
fn check(value: &Value, schema: &Value, at: &str) -> Result<(), String> {
    let kind = schema["type"].as_str();
    let fits = match (kind, value) {
        (Some("object"), Value::Object(fields)) => return check_object(fields, schema, at),
        (Some("array"), Value::Array(items)) => {
            let check = |(index, item)| check(item, &schema["items"], &format!("{at}[{index}]"));
            return items.iter().enumerate().try_for_each(check);
        }
        (Some("object" | "array"), _) => false,
        (Some("integer"), value) => value.is_u64(),
        // The number of places to edit may stand for all of them.
        (Some("boolean"), value) => {
            value.is_boolean() || at.ends_with("replace_all") && value.as_u64() > Some(1)
        }
        (Some("string"), value) => {
            let words = schema["enum"].as_array();
            value.is_string() && words.is_none_or(|words| words.contains(value))
        }
        _ => true,
    };
    if fits {
        return Ok(());
    }
    let (expected, found) = (expected(schema), found(value));
    Err(match at {
        "" => format!("the arguments must be {expected}, not {found}"),
        at => format!("`{at}` must be {expected}, not {found}"),
    })
}

fn check_object(fields: &Map<String, Value>, schema: &Value, at: &str) -> Result<(), String> {
    let Some(properties) = schema["properties"].as_object() else {
        return Ok(());
    };
    let full = |name: &str| match at {
        "" => name.to_owned(),
        at => format!("{at}.{name}"),
    };
    if let Some(name) = fields.keys().find(|name| !properties.contains_key(*name)) {
        let known: Vec<_> = properties.keys().map(|name| format!("`{name}`")).collect();
        return Err(format!(
            "unknown argument `{}`; expected {}",
            full(name),
            known.join(", ")
        ));
    }
    for (name, schema_of_field) in properties {
        match fields.get(name) {
            Some(value) => check(value, schema_of_field, &full(name))?,
            None if is_required(name, schema) => {
                return Err(format!(
                    "`{}` is missing, it must be {}",
                    full(name),
                    expected(schema_of_field)
                ));
            }
            None => {}
        }
    }
    Ok(())
}

/// The type a schema requires, in words.
fn expected(schema: &Value) -> String {
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<_> = words.iter().map(Value::to_string).collect();
        return format!("one of {}", words.join(", "));
    }
    match schema["type"].as_str() {
        Some("array") => match schema["items"]["properties"].as_object() {
            Some(fields) => {
                let names: Vec<&str> = fields.keys().map(String::as_str).collect();
                format!("a list of {{{}}}", names.join(", "))
            }
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

    use super::{Unknown, coerced, fit, read, schema};
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

    /// A thing.
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
                "limit": {"description": "A number.", "type": "integer"},
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
        assert_eq!(*schema::<Arguments>(), expected);
    }

    #[test]
    fn common_slips_are_understood() {
        let plain = json!({"path": "a", "limit": 5, "all": true, "edits": [{"old_text": "x", "status": "in_progress"}]});
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
        check(
            json!({"path": "a", "limit": 5, "all": true, "edits": [{"oldString": "x", "status": "in-progress"}]}),
        );
        check(
            json!({"path": "a", "limit": 5, "all": true, "old_str": "x", "status": "In Progress"}),
        );
        check(Value::String(plain.to_string()));
    }

    #[test]
    fn what_changes_a_call_is_neither_dropped_nor_replaced() {
        let text = json!({ "type": "string" });
        let schema = |names: &[&str]| {
            let properties = names.iter().map(|name| ((*name).to_owned(), text.clone()));
            json!({ "type": "object", "properties": properties.collect::<crate::text::Fields>() })
        };
        let write = schema(&["path", "content"]);
        let edit = schema(&["old_text", "new_text"]);
        let run = schema(&["command", "cwd"]);
        // JSON is the text of a file, whatever its only member is called.
        for (schema, sent, expected) in [
            (
                &write,
                json!({ "content": { "data": { "a": 1 } } }),
                json!({ "content": "{\n  \"data\": {\n    \"a\": 1\n  }\n}" }),
            ),
            (
                &write,
                json!({ "content": { "text": "x" } }),
                json!({ "content": "{\n  \"text\": \"x\"\n}" }),
            ),
            (
                &write,
                json!({ "content": { "content": "x" } }),
                json!({ "content": "x" }),
            ),
            (
                &run,
                json!({ "arguments": { "command": "pwd" }, "workdir": "sub" }),
                json!({ "command": "pwd", "cwd": "sub" }),
            ),
            (
                &run,
                json!({ "name": "run_command", "arguments": { "command": "pwd" } }),
                json!({ "command": "pwd" }),
            ),
            (
                &write,
                json!({ "file": "a", "path": "a", "content": "x" }),
                json!({ "path": "a", "content": "x" }),
            ),
        ] {
            assert_eq!(coerced(&sent, schema), expected, "{sent}");
        }
        for (schema, sent) in [
            (&write, json!({ "content": [{ "a": "x" }] })),
            (
                &edit,
                json!({ "old_text": "a", "new_text": { "version": "2" } }),
            ),
            (
                &write,
                json!({ "directory": "sub", "path": "d.txt", "content": "x" }),
            ),
            (&run, json!({ "input": "yes", "command": "cat" })),
            (
                &run,
                json!({ "arguments": { "command": "pwd", "cwd": "a" }, "workdir": "b" }),
            ),
        ] {
            assert!(fit(&sent, schema).is_err(), "{sent}");
        }
    }

    #[test]
    fn null_means_absent_and_numbers_can_be_strings() {
        let arguments = json!({"path": 404, "limit": null, "all": null, "edits": []});
        let (read, _) = read::<Arguments>(&arguments, "", Unknown::Refused).unwrap();
        assert_eq!(
            read,
            Arguments {
                path: "404".to_owned(),
                limit: None,
                all: false,
                edits: vec![]
            }
        );
    }

    #[test]
    fn an_error_names_the_field_and_what_was_expected() {
        let check = |arguments: Value, expected: &str| {
            let error = read::<Arguments>(&arguments, "{…}", Unknown::Refused).unwrap_err();
            assert_eq!(
                error.0,
                format!("wrong arguments: {expected}\nExample: {{…}}")
            );
        };
        check(Value::Null, "the arguments must be an object, not null");
        check(
            json!({"edits": []}),
            "`path` is missing, it must be a string",
        );
        check(
            json!({"path": "a"}),
            "`edits` is missing, it must be a list of {old_text, status}",
        );
        check(
            json!({"path": ["a", "b"], "edits": []}),
            "`path` must be a string, not a list",
        );
        check(
            json!({"path": "a", "limit": -2, "edits": []}),
            "`limit` must be a whole number, not negative, not -2",
        );
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
            "unknown argument `append`; expected `path`, `limit`, `all`, `edits`",
        );
    }
}
