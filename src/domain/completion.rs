//! What a prompt can mention, as a person chooses it.

use schemars::JsonSchema;
use serde::Serialize;

/// Something a prompt can mention.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Completion {
    /// Replaces the query.
    pub insert: String,
    /// The text to show.
    pub label: String,
    /// What it is.
    pub kind: CompletionKind,
    /// Additional text to show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Kinds of things a prompt can mention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompletionKind {
    /// A file.
    File,
    /// A folder; its name ends with a slash.
    Folder,
    /// The lines of a definition.
    Symbol,
    /// The diagnostics the editor shows.
    Diagnostics,
    /// The editor's selection.
    Selection,
    /// A resource of an MCP server.
    Resource,
}
