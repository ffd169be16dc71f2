//! What a model meant by what it wrote: which tool a name means, what its arguments mean, and which text of an answer is
//! a call. Pure.
//!
//! Invariant: a call that is understood does no more than the same call with our own names. Whether it runs is decided
//! elsewhere, on what it was resolved to.

pub(crate) mod arguments;
pub(crate) mod heredoc;
pub(crate) mod names;
pub mod partial;
pub(crate) mod text;

use serde_json::{Map, Value};

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
    fn accept(&self, name: &str, arguments: &Map<String, Value>) -> Result<(), String>;
}
