//! What tandem adds to its two protocols: everything is prefixed `_tandem/`, nothing changes what a standard has.

use gen_lsp_types::{Range, TextDocumentIdentifier};
use serde::{Deserialize, Serialize};

/// `_tandem/didFocus`: what the person is looking at.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DidFocus {
    /// The active file.
    pub text_document: TextDocumentIdentifier,
    /// The selection, or the cursor as an empty range.
    pub selection: Range,
}

/// `_tandem/status`: how the server is, for a status line.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The session it is about; none: the server as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// What it is doing.
    pub state: State,
    /// `provider/model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The session's mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Something to read, such as why it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What the server is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Waiting for a prompt.
    Ready,
    /// A turn runs.
    Running,
    /// A turn waits for the person.
    Waiting,
    /// No model is configured.
    NoModel,
}

/// The `data` of the error a failed turn is answered with.
#[derive(Debug, Clone, Serialize)]
pub struct Failure {
    /// The kind, in a word.
    pub code: String,
    /// The HTTP status, where there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Whether the same prompt may work later.
    pub retryable: bool,
}
