//! Inline edits: one request to the model without tools, shown at the cursor.

use gen_lsp_types::{Range, TextDocumentIdentifier};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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

/// The answer to [`InlineParams`].
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct InlineResult {
    /// The replacement of the range.
    pub text: String,
}
