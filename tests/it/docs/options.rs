//! `docs/options.md`, made from the JSON Schema of the configuration: a table for each section.

use std::fmt::Write as _;

use serde_json::Value;

/// The whole page.
pub fn page(schema: &Value) -> String {
    let mut page = "# All options\n\nThe keys of `config.toml`, generated from the option types. The editor's \
                    settings take the same keys except `log`.\n"
        .to_owned();
    section(schema, schema, "", &mut page);
    page
}

fn section(schema: &Value, node: &Value, prefix: &str, page: &mut String) {
    let title = if prefix.is_empty() {
        "Top level".to_owned()
    } else {
        format!("`[{prefix}]`")
    };
    let rows = node["properties"].as_object().unwrap();
    writeln!(
        page,
        "\n## {title}\n\n| key | type | default | meaning |\n|---|---|---|---|"
    )
    .unwrap();
    let mut sections = Vec::new();
    for (key, value) in rows {
        let meaning = value["description"]
            .as_str()
            .unwrap_or_default()
            .replace('\n', " ");
        let inner = resolve(schema, value);
        let entries = inner["additionalProperties"]
            .as_object()
            .map(|_| resolve(schema, &inner["additionalProperties"]));
        let path = [prefix, key]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(".");
        let kind = if inner["properties"].is_object() {
            sections.push((path, inner));
            "section".to_owned()
        } else if let Some(entries) = entries.filter(|entries| entries["properties"].is_object()) {
            sections.push((format!("{path}.NAME"), entries));
            "sections by name".to_owned()
        } else {
            type_name(inner)
        };
        let default = match &value["default"] {
            Value::Null => String::new(),
            default => format!("`{}`", default.to_string().trim_matches('"')),
        };
        writeln!(page, "| `{key}` | {kind} | {default} | {meaning} |").unwrap();
    }
    for (path, node) in sections {
        section(schema, node, &path, page);
    }
}

/// Follows a reference, ignoring the `null` of an optional field.
fn resolve<'a>(schema: &'a Value, value: &'a Value) -> &'a Value {
    if let Some(reference) = value["$ref"].as_str() {
        return resolve(
            schema,
            schema.pointer(reference.trim_start_matches('#')).unwrap(),
        );
    }
    let some = |options: &'a Value| {
        options
            .as_array()?
            .iter()
            .find(|option| option["type"] != "null")
    };
    some(&value["anyOf"]).map_or(value, |option| resolve(schema, option))
}

fn type_name(value: &Value) -> String {
    if let Some(words) = value["oneOf"].as_array().or(value["enum"].as_array()) {
        let words = words.iter().map(|word| word.get("const").unwrap_or(word));
        return words
            .filter_map(Value::as_str)
            .map(|word| format!("`{word}`"))
            .collect::<Vec<_>>()
            .join(", ");
    }
    let name = match &value["type"] {
        Value::Array(names) => names
            .iter()
            .filter_map(Value::as_str)
            .find(|name| *name != "null")
            .unwrap_or_default(),
        name => name.as_str().unwrap_or_default(),
    };
    match name {
        "array" => "list of strings",
        "object" => "table",
        name => name,
    }
    .to_owned()
}
