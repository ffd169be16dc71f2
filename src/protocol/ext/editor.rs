//! What the editor knows: focus, diagnostics, unsaved documents, and answers of its language servers.

use gen_lsp_types::TextDocumentIdentifier;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use crate::domain::Operation;
use crate::text::{Position, Range};

/// `_tandem/didFocus`, a notification: what the person is looking at.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DidFocus {
    /// The active file.
    #[schemars(schema_with = "super::lsp::document")]
    pub text_document: TextDocumentIdentifier,
    /// The selection, or the cursor as an empty range.
    #[schemars(schema_with = "super::lsp::range")]
    pub selection: Range,
}

/// `_tandem/save`, a request from the server: save these documents, because a command that cannot see unsaved text is
/// about to run. Sent to clients with `"tandem.save": true` in `experimental.tandem._meta`; any answer means the
/// documents are saved.
///
/// Also `_tandem/saved`, a notification to the server after these documents were opened: they have no unsaved text, but
/// one may still show the text of a file that was removed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Save {
    /// The documents.
    pub uris: Vec<String>,
}

/// `_tandem/diagnostics`, a request from the server: the diagnostics the editor shows. Sent to clients with
/// `"tandem.diagnostics": true` in `experimental.tandem._meta`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DiagnosticsParams {
    /// For these documents; if empty, for all documents the editor knows.
    pub uris: Vec<String>,
    /// The documents have just changed: answer when the diagnostics of the new text have settled, and within 2 s in
    /// any case. Documents that nothing checks are left out of the answer.
    pub settled: bool,
}

/// The answer to [`DiagnosticsParams`].
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct DiagnosticsResult {
    /// At least those with diagnostics.
    pub documents: Vec<DocumentDiagnostics>,
}

/// One document's diagnostics.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct DocumentDiagnostics {
    /// The document.
    pub uri: String,
    /// The version of the text they are of: the document's, once a report of it has arrived. Absent until then, because
    /// what the editor shows may be of an older text.
    #[serde(default)]
    pub version: Option<i32>,
    /// Its diagnostics.
    #[schemars(schema_with = "super::lsp::diagnostics")]
    pub diagnostics: Vec<Problem>,
}

/// The fields of an LSP `Diagnostic` that tandem reads.
#[derive(Debug, Clone, Deserialize)]
pub struct Problem {
    /// The range it applies to.
    pub range: Range,
    /// 1 error, 2 warning, 3 information, 4 hint.
    #[serde(default)]
    pub severity: Option<u8>,
    /// Its name or number.
    #[serde(default)]
    pub code: Option<Value>,
    /// The program that reported it.
    #[serde(default)]
    pub source: Option<String>,
    /// The message: plain or marked-up text.
    pub message: Value,
}

/// `_tandem/editorModels/next`, a request from the server: the next part of an answer of one of the editor's own models.
/// Answered with `{"chunk": …}`, a chunk in the form of `OpenAI`'s chat completions, or with `{}` when the answer is
/// complete. Sent to clients with `"tandem.models": true` in `experimental.tandem._meta`, which also answer
/// `_tandem/editorModels` with a list in the form of `OpenAI`'s `/models`.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NextChunk {
    /// The server's number for the answer.
    pub id: u64,
    /// In the first one, the request to the model, in the form of `OpenAI`'s chat completions.
    pub body: Option<Value>,
}

/// `_tandem/editorModels/end`, a notification: the server reads no further, and an answer that is not complete is
/// cancelled.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct EndAnswer {
    /// The server's number for the answer.
    pub id: u64,
}

/// `_tandem/language`, a request from the server to the editor's language servers. Sent only for operations a client
/// lists in `"tandem.language": [op, …]` in `experimental.tandem._meta`. Answered within 10 s with LSP's own result
/// type; `rename`, `quick_fixes` and `format` with a `WorkspaceEdit` that the client does not apply. An error if no
/// language server can answer.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LanguageParams {
    /// The operation.
    pub op: Operation,
    /// The document; absent for `workspace_symbols`.
    pub uri: Option<String>,
    /// The position in it.
    #[schemars(schema_with = "super::lsp::position", default)]
    pub position: Option<Position>,
    /// The name to look for (`workspace_symbols`).
    pub query: Option<String>,
    /// Only a fix that the language server marks as preferred for the problem at the position (`quick_fixes`); null if
    /// there is none.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub preferred: bool,
    /// The new name (`rename`).
    pub new_name: Option<String>,
}
