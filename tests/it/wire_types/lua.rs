//! As `LuaCATS` annotations.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::{alternatives, bases, fields, has_fields, reference, summary, words};

pub fn render(definitions: &Map<String, Value>) -> String {
    let mut out =
        "---@meta\n-- Generated from src/protocol by tests/it/wire_types.rs; do not edit.\n"
            .to_owned();
    for (name, schema) in definitions {
        out.push('\n');
        match alternatives(schema) {
            Some(all) => union(&mut out, name, schema, all),
            None if has_fields(schema) || schema["type"] == "object" => {
                class(&mut out, &format!("wire.{name}"), schema, &[]);
            }
            None => alias(&mut out, name, schema, &type_of(schema)),
        }
    }
    out
}

fn alias(out: &mut String, name: &str, schema: &Value, definition: &str) {
    describe(out, schema);
    let _ = writeln!(out, "---@alias wire.{name} {definition}");
}

/// `LuaCATS` has no intersections: an alternative with fields of its own is a class that extends the others.
fn union(out: &mut String, name: &str, schema: &Value, all: &[Value]) {
    let mut names: Vec<String> = Vec::new();
    for (index, alternative) in all.iter().enumerate() {
        if has_fields(alternative) || has_fields(schema) {
            let tag = fields(alternative).find_map(|(_, schema, _)| schema["const"].as_str());
            let tag = tag
                .or_else(|| alternative["title"].as_str())
                .map_or(index.to_string(), str::to_owned);
            let class_name = format!("wire.{name}.{tag}");
            let parents: Vec<&Value> = bases(alternative)
                .chain(reference(alternative).map(|_| alternative))
                .collect();
            class(out, &class_name, alternative, &parents);
            if has_fields(schema) {
                write_fields(out, schema);
            }
            out.push('\n');
            names.push(class_name);
        } else {
            names.push(type_of(alternative));
        }
    }
    names.dedup();
    alias(out, name, schema, &names.join("|"));
}

fn class(out: &mut String, name: &str, schema: &Value, parents: &[&Value]) {
    describe(out, schema);
    let parents: Vec<String> = parents.iter().map(|parent| type_of(parent)).collect();
    let extends = if parents.is_empty() {
        String::new()
    } else {
        format!(": {}", parents.join(", "))
    };
    let _ = writeln!(out, "---@class {name}{extends}");
    write_fields(out, schema);
}

fn write_fields(out: &mut String, schema: &Value) {
    for (field, schema, required) in fields(schema) {
        let optional = if required { "" } else { "?" };
        let summary = summary(schema)
            .map(|summary| format!(" {summary}"))
            .unwrap_or_default();
        let _ = writeln!(
            out,
            "---@field {field}{optional} {}{summary}",
            type_of(schema)
        );
    }
}

fn describe(out: &mut String, schema: &Value) {
    if let Some(summary) = summary(schema) {
        let _ = writeln!(out, "---{summary}");
    }
}

fn type_of(schema: &Value) -> String {
    if let Some(name) = reference(schema) {
        return format!("wire.{name}");
    }
    if let Some(name) = schema["lsp"].as_str() {
        return format!("lsp.{name}");
    }
    if let Some(words) = words(schema) {
        return words.join("|");
    }
    if let Some(all) = alternatives(schema) {
        let mut all: Vec<String> = all
            .iter()
            .map(type_of)
            .filter(|name| name != "nil")
            .collect();
        all.dedup();
        return all.join("|");
    }
    if let Some(base) = bases(schema).next() {
        return type_of(base);
    }
    if has_fields(schema) {
        let field = |(name, schema, required): (&String, &Value, bool)| {
            format!(
                "{name}{}: {}",
                if required { "" } else { "?" },
                type_of(schema)
            )
        };
        return format!(
            "{{ {} }}",
            fields(schema).map(field).collect::<Vec<_>>().join(", ")
        );
    }
    match &schema["type"] {
        Value::Array(all) => {
            let all = all.iter().filter(|one| *one != "null").map(|one| {
                let mut schema = schema.clone();
                schema["type"] = one.clone();
                type_of(&schema)
            });
            all.collect::<Vec<_>>().join("|")
        }
        Value::String(name) => match name.as_str() {
            "array" => match type_of(&schema["items"]) {
                item if item.contains('|') => format!("({item})[]"),
                item => format!("{item}[]"),
            },
            "object" => "table<string, any>".to_owned(),
            "null" => "nil".to_owned(),
            other => other.to_owned(),
        },
        _ => "any".to_owned(),
    }
}
