//! Inline edits: one request to the model without tools, shown at the cursor.

use gen_lsp_types::TextDocumentIdentifier;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::text::Range;

/// `_tandem/inline`, a request: rewrites a range. Streams as [`InlineUpdate`], answered with an [`InlineResult`], which
/// the client applies when the person accepts it. `$/cancelRequest` stops it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InlineParams {
    /// The document.
    #[schemars(schema_with = "super::lsp::document")]
    pub text_document: TextDocumentIdentifier,
    /// The range to rewrite; if empty, where to insert.
    #[schemars(schema_with = "super::lsp::range")]
    pub range: Range,
    /// What the person wants.
    pub instruction: String,
    /// The replacement to improve on, if the person asked again.
    #[serde(default)]
    pub previous: Option<String>,
}

/// `_tandem/inline/update`, a notification: more of a replacement.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct InlineUpdate {
    /// The id of the `_tandem/inline` request.
    pub id: Value,
    /// The replacement so far.
    pub text: String,
}

/// `_tandem/inline/keep`, a request: the person kept a replacement, which the client has applied. It becomes a turn of the
/// session, after the running one: its model learns of it, and [`Review`](super::Review) lists, rejects and undoes it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeepInline {
    /// The session.
    pub session_id: String,
    /// The document.
    #[schemars(schema_with = "super::lsp::document")]
    pub text_document: TextDocumentIdentifier,
    /// What the person wanted.
    pub instruction: String,
    /// The whole text of the document before.
    pub before: String,
    /// The whole text afterwards.
    pub after: String,
}

/// The answer to [`KeepInline`].
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct KeptInline {
    /// The number of its turn.
    pub turn: u64,
}

/// The answer to [`InlineParams`].
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct InlineResult {
    /// The replacement of the range.
    pub text: String,
}
