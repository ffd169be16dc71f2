//! Which turn wrote a line.

use gen_lsp_types::TextDocumentIdentifier;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Lines;
use crate::text::Range;

/// `_tandem/origins`, a request: which turns wrote the uncommitted lines of an open document. Answered with [`Origin`]s, by
/// line. Lines written by others, and lines whose origin is not certain, have none.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OriginsParams {
    /// The document.
    #[schemars(schema_with = "super::lsp::document")]
    pub text_document: TextDocumentIdentifier,
    /// Only these lines of it.
    #[serde(default)]
    #[schemars(schema_with = "super::lsp::range", default)]
    pub range: Option<Range>,
}

/// Neighboring lines that one tool call wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// The lines.
    pub lines: Lines,
    /// The session, which may not be open.
    pub session_id: String,
    /// The turn.
    pub turn: u64,
    /// The beginning of its prompt.
    pub prompt: String,
    /// `provider/model`.
    pub model: String,
    /// The title of the tool call or command.
    pub by: String,
    /// Whether somebody has edited the lines since.
    pub edited: bool,
}
