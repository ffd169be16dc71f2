//! As TypeScript.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::{alternatives, bases, fields, has_fields, reference, summary, words};

pub fn render(definitions: &Map<String, Value>) -> String {
    let mut out = "// Generated from src/protocol by tests/it/wire_types.rs; do not edit.\n\
                   import type * as lsp from \"vscode-languageclient/node\";\n"
        .to_owned();
    for (name, schema) in definitions {
        out.push('\n');
        if let Some(summary) = summary(schema) {
            let _ = writeln!(out, "/** {summary} */");
        }
        if is_plain(schema) {
            let _ = writeln!(out, "export interface {name} {{");
            for (field, schema, required) in fields(schema) {
                if let Some(summary) = summary(schema) {
                    let _ = writeln!(out, "  /** {summary} */");
                }
                let optional = if required { "" } else { "?" };
                let _ = writeln!(out, "  readonly {field}{optional}: {};", type_of(schema));
            }
            out.push_str("}\n");
        } else {
            let _ = writeln!(out, "export type {name} = {};", type_of(schema));
        }
    }
    out
}

/// Only fields.
fn is_plain(schema: &Value) -> bool {
    has_fields(schema)
        && alternatives(schema).is_none()
        && bases(schema).next().is_none()
        && reference(schema).is_none()
}

fn type_of(schema: &Value) -> String {
    if let Some(name) = schema["lsp"].as_str() {
        return format!("lsp.{name}");
    }
    if let Some(words) = words(schema) {
        return words.join(" | ");
    }
    let mut parts: Vec<String> = bases(schema).map(type_of).collect();
    parts.extend(reference(schema).map(str::to_owned));
    if let Some(all) = alternatives(schema) {
        let mut all: Vec<String> = all.iter().map(type_of).collect();
        all.dedup();
        let union = all.join(" | ");
        parts.push(if has_fields(schema) || !parts.is_empty() {
            format!("({union})")
        } else {
            union
        });
    }
    if has_fields(schema) {
        let field = |(name, schema, required): (&String, &Value, bool)| {
            format!(
                "readonly {name}{}: {}",
                if required { "" } else { "?" },
                type_of(schema)
            )
        };
        parts.push(format!(
            "{{ {} }}",
            fields(schema).map(field).collect::<Vec<_>>().join("; ")
        ));
    }
    if !parts.is_empty() {
        return parts.join(" & ");
    }
    match &schema["type"] {
        Value::Array(all) => {
            let all = all.iter().map(|one| {
                let mut schema = schema.clone();
                schema["type"] = one.clone();
                type_of(&schema)
            });
            all.collect::<Vec<_>>().join(" | ")
        }
        Value::String(name) => match name.as_str() {
            "array" => match type_of(&schema["items"]) {
                item if item.contains([' ', '|']) => format!("readonly ({item})[]"),
                item => format!("readonly {item}[]"),
            },
            "object" if schema["additionalProperties"].is_object() => {
                format!(
                    "Readonly<Record<string, {}>>",
                    type_of(&schema["additionalProperties"])
                )
            }
            "object" => "Readonly<Record<string, unknown>>".to_owned(),
            "integer" => "number".to_owned(),
            other => other.to_owned(),
        },
        _ => "unknown".to_owned(),
    }
}
