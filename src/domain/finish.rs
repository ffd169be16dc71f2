//! What happens when the model wants to end a turn that changed something.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The checks at the end of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// Whether the editor's diagnostics are compared with those before the turn.
    pub diagnostics: bool,
    /// Whether preferred quick fixes that only import or format are applied.
    pub quick_fixes: bool,
    /// A command that has to succeed.
    pub command: Option<String>,
}

impl Default for Finish {
    fn default() -> Self {
        Self {
            diagnostics: true,
            quick_fixes: true,
            command: None,
        }
    }
}

/// What the checks at the end of a turn found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Finish")]
pub struct Counts {
    /// Errors and warnings that were not there before the turn.
    pub new: usize,
    /// How many were fixed by quick fixes.
    pub fixed: usize,
    /// In how many of the changed files the editor looked for them.
    pub files: usize,
    /// How many of them changed since the editor's last report.
    pub unknown: usize,
}
