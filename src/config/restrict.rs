//! Limits what a workspace's own `.tandem/config.toml` may set: a repository can make tandem more careful, never less.
//!
//! It never sets an endpoint, a key, a program to run, an MCP server or a wider permission: opening a repository is not
//! agreeing to what is in it.

use serde_json::Value;

use super::layer::{KeyPath, Layer};
use super::mode::Mode;
use super::problem::Problem;

/// Reports and removes everything in a (checked) layer that does not restrict the layers `below`.
pub(super) fn restrict(layer: &mut Layer, below: &Value, problems: &mut Vec<Problem>) {
    for path in written(&layer.tree) {
        if let Some(message) = objection(&layer.tree, below, &path) {
            layer.reject(&path, message, problems);
        }
    }
}

/// The keys to judge: those of the top, and one level deeper where some may stay.
pub(super) fn written(tree: &Value) -> Vec<KeyPath> {
    let keys = |node: &Value| -> Vec<String> {
        node.as_object()
            .into_iter()
            .flat_map(|map| map.keys().cloned())
            .collect()
    };
    keys(tree)
        .into_iter()
        .flat_map(|key| match key.as_str() {
            "limits" | "permissions" => keys(&tree[&key])
                .into_iter()
                .map(|inner| vec![key.clone(), inner])
                .collect(),
            _ => vec![vec![key]],
        })
        .collect()
}

/// Why the workspace may not set this; `None` if it may.
fn objection(tree: &Value, below: &Value, path: &[String]) -> Option<String> {
    let path: Vec<_> = path.iter().map(String::as_str).collect();
    match path[..] {
        ["permissions", "ask" | "deny"] => None,
        ["mode"] => {
            let (wanted, given) = (mode(tree), mode(below));
            (wanted > given).then(|| "a workspace cannot widen the mode; ignored".to_owned())
        }
        ["limits", limit] => {
            let (wanted, given) = (&tree["limits"][limit], &below["limits"][limit]);
            let wider = given.as_f64().is_some_and(|given| wanted.as_f64() > Some(given));
            wider.then(|| format!("a workspace cannot raise a limit above {given}; ignored"))
        }
        _ => Some(
            "a workspace can only restrict (`mode`, `limits`, `permissions.ask`, `permissions.deny`); ignored".into(),
        ),
    }
}

pub(super) fn mode(tree: &Value) -> Mode {
    serde_json::from_value(tree["mode"].clone()).unwrap_or_default()
}
