//! The layers before they are checked: built-in values, files, the environment.

#![expect(
    clippy::disallowed_methods,
    reason = "config reads its own files, which no workspace root names"
)]

use std::io;
use std::path::Path;

use schemars::Schema;
use serde_json::{Value, json};

use super::environment::Environment;
use super::layer::Layer;
use super::options::Options;
use super::problem::{Place, Problem};
use crate::domain::is_absent;

/// The file with a workspace's restrictions.
pub(super) const WORKSPACE_FILE: &str = ".tandem/config.toml";
/// The maximum size of a configuration file, in bytes.
pub(super) const MAX_FILE: u64 = 1 << 20;
/// The same of a file that a repository may have brought along.
pub(super) const MAX_OF_WORKSPACE: u64 = 64 << 10;

/// The defaults.
pub(super) fn built_in() -> Layer {
    let limits = json!({
        "iterations": 250,
        "parallel": 8,
        "command-timeout": 120,
        "connect-timeout": 10,
        "idle-timeout": 90,
    });
    let completion = json!({
        "debounce-ms": 75,
        // What fits on a screen.
        "max-tokens": 256,
        "next-edit": false,
    });
    let finish = json!({"diagnostics": true, "quick-fixes": "preferred"});
    let explore = json!({"tokens": 40_000, "seconds": 60, "calls": 12});
    let tree = json!({
        "mode": "ask",
        "log": "warn",
        "limits": limits,
        "finish": finish,
        "completion": completion,
        "explore": explore,
    });
    Layer::new(tree, Place::Default)
}

/// The JSON Schema of `config.toml`, with the defaults.
pub fn schema() -> Schema {
    let mut schema = schemars::schema_for!(Options);
    add_defaults(&mut schema, "", &built_in().tree);
    schema
}

/// Adds the values of `defaults` to the schemas of their keys, which are those of the object schema at the pointer `at`.
fn add_defaults(schema: &mut Schema, at: &str, defaults: &Value) {
    for (key, value) in defaults.as_object().into_iter().flatten() {
        let key = format!("{at}/properties/{key}");
        let Some(node) = schema.pointer_mut(&key) else {
            continue;
        };
        if !value.is_object() {
            node["default"] = value.clone();
        } else if let Some(section) = node["$ref"].as_str() {
            let section = section.trim_start_matches('#').to_owned();
            add_defaults(schema, &section, value);
        }
    }
}

/// tandem's own variables. The key itself is not copied: the tree contains the name of its variable.
pub(super) fn environment_layer(environment: &Environment) -> Layer {
    let mut layer = Layer::new(json!({}), Place::Default);
    let variables = [
        ("model", "TANDEM_MODEL"),
        ("base-url", "TANDEM_BASE_URL"),
        ("api", "TANDEM_API"),
        ("api-key-env", "TANDEM_API_KEY"),
        ("log", "TANDEM_LOG"),
        ("state-dir", "TANDEM_STATE_DIR"),
    ];
    for (key, variable) in variables {
        if let Some(value) = environment.get(variable) {
            let value = if key == "api-key-env" {
                variable
            } else {
                value
            };
            layer.set(
                key,
                value,
                Place::Environment {
                    variable: variable.to_owned(),
                },
            );
        }
    }
    layer
}

/// The options of a file of at most `most` bytes; empty if there is no file.
pub(super) fn read_file(path: &Path, most: u64, problems: &mut Vec<Problem>) -> Layer {
    let text = read_text(path, most).unwrap_or_else(|error| {
        let place = Place::File {
            file: path.to_owned(),
            line: 1,
            column: 1,
        };
        problems.push(Problem {
            place,
            key: String::new(),
            message: format!("cannot be read: {error}"),
            hides_restrictions: true,
        });
        String::new()
    });
    Layer::from_toml(path, &text, problems)
}

/// The text of a file of at most `most` bytes; empty if there is no file. Only regular files are opened, because a pipe or
/// device in a repository could block the server or fill its memory.
pub(super) fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if is_absent(&error) => return Ok(String::new()),
        Err(error) => return Err(error),
    };
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    if metadata.len() > most {
        return Err(io::Error::other(format!("larger than {} KiB", most >> 10)));
    }
    std::fs::read_to_string(path)
}
