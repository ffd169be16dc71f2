//! Interprets a model's tool calls: which tool a name refers to, what its arguments mean, and which part of an answer's
//! text is a call. Pure.
//!
//! Invariant: an interpreted call does no more than the same call written with tandem's own names. Permission is decided
//! elsewhere, on the resolved call.

pub(crate) mod arguments;
pub(crate) mod heredoc;
pub(crate) mod names;
pub mod partial;
pub(crate) mod text;

use serde_json::Value;

use crate::text::{Fields, marks};

/// The tools that a model is offered, as far as they decide what it meant.
pub trait Catalog {
    /// Their names.
    fn names(&self) -> Vec<&str>;

    /// The name of the tool that a name means, ours or another agent's.
    fn resolve(&self, name: &str) -> Option<String>;

    /// The schema of a tool's arguments.
    fn parameters(&self, name: &str) -> Option<Value>;

    /// Whether a name means a tool that changes nothing.
    fn only_reads(&self, name: &str) -> bool;

    /// Whether a call is beyond doubt: it names a tool and matches its schema.
    ///
    /// # Errors
    /// What is wrong with it, for the model.
    fn accept(&self, name: &str, arguments: &Fields) -> Result<(), String>;
}

/// What the model is told where an argument contained another call.
pub(crate) const SWALLOWED: &str = "[text after the end of an argument contained another call, which was not run: make it separately]";

/// Whether another call or message begins in a text of these arguments.
pub(crate) fn holds_another(arguments: &Value) -> bool {
    match arguments {
        Value::String(text) => {
            let mut places = text.match_indices(marks::SIGNS);
            places.any(|(at, _)| marks::begins_another(text.split_at(at).1))
        }
        Value::Array(items) => items.iter().any(holds_another),
        Value::Object(fields) => fields.values().any(holds_another),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
