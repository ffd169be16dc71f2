//! What an editor can do for the workspace. The server implements it once per transport; the terminal has [`NoEditor`].

use std::path::Path;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, ready};
use serde_json::Value;
use tokio::sync::mpsc;

use super::diagnostics::{Scope, Shown};
use super::language::{Answer, Operation, Question};
use crate::text::Range;

/// The editor's side of reading and writing. The default methods decline, and the disk is used instead.
pub trait Editor: Send + Sync {
    /// Changes an open document (LSP `workspace/applyEdit`). The answer is not trusted: the document is checked
    /// afterwards.
    fn apply(&self, edit: DocumentEdit) -> BoxFuture<'_, Result<Applied, EditorError>>;

    /// The editor's text for `path`, including unsaved changes (ACP `fs/read_text_file`).
    fn read<'a>(&'a self, _path: &'a Path) -> BoxFuture<'a, Option<String>> {
        ready(None).boxed()
    }

    /// Writes `text` to `path` through the editor (ACP `fs/write_text_file`); `None` if it cannot.
    fn write<'a>(
        &'a self,
        _path: &'a Path,
        _text: &'a str,
    ) -> BoxFuture<'a, Option<Result<(), EditorError>>> {
        ready(None).boxed()
    }

    /// Whether [`Self::diagnostics`] is supported.
    fn knows_diagnostics(&self) -> bool {
        false
    }

    /// The diagnostics the editor shows; `None` if it cannot report them.
    fn diagnostics<'a>(&'a self, _scope: &'a Scope) -> BoxFuture<'a, Option<Vec<Shown>>> {
        ready(None).boxed()
    }

    /// What its language servers can be asked.
    fn operations(&self) -> &[Operation] {
        &[]
    }

    /// Asks its language servers; only for one of [`Self::operations`].
    fn language(&self, _question: Question) -> BoxFuture<'_, Result<Answer, EditorError>> {
        ready(Err(EditorError("it has no language servers".to_owned()))).boxed()
    }

    /// Sends a request to one of its own MCP servers (ACP `mcp/message`) and gives the answer, an object with `result` or
    /// `error`. Dropping the future cancels the request. What the server says meanwhile goes to `notifications`.
    fn mcp(
        &self,
        _request: McpRequest,
        _notifications: mpsc::Sender<Value>,
    ) -> BoxFuture<'_, Result<Value, EditorError>> {
        ready(Err(EditorError("it has no MCP servers".to_owned()))).boxed()
    }

    /// How long it may take to reload a file that changed on disk; zero if it does not do so by itself.
    fn rereads_within(&self) -> Duration {
        Duration::ZERO
    }

    /// Whether [`Self::save`] is supported.
    fn saves(&self) -> bool {
        false
    }

    /// Saves the open documents with these URIs (`_tandem/save`); `false` if the editor does not support it.
    fn save(&self, _uris: Vec<String>) -> BoxFuture<'_, bool> {
        ready(false).boxed()
    }
}

/// A request to an MCP server of the editor.
#[derive(Debug, Clone, PartialEq)]
pub struct McpRequest {
    /// What the editor calls the server.
    pub server: String,
    /// MCP's method.
    pub method: String,
    /// Its parameters, an object.
    pub params: Value,
}

/// A change of one open document, its ranges in the encoding negotiated for [`super::Documents`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentEdit {
    /// The document's URI as the editor wrote it.
    pub uri: String,
    /// The version the ranges were computed for.
    pub version: Option<i32>,
    /// A description for the undo list.
    pub label: String,
    /// Replacements in order, not overlapping.
    pub hunks: Vec<(Range, String)>,
}

/// The editor's answer to an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Applied {
    /// It says the edit was applied.
    Yes,
    /// It refused, with its reason.
    Refused(String),
}

/// The editor could not be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the editor did not answer: {0}")]
pub struct EditorError(pub String);

/// Timeout for an editor's answer: it may be busy, or ask its person first.
const ANSWER: Duration = Duration::from_secs(30);

/// The editor's answer if it arrives in time.
pub(super) async fn in_time<T>(answer: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(ANSWER, answer).await.ok()
}

/// The message about an editor that did not answer. It may still apply the edit.
pub(super) fn silent() -> String {
    format!(
        "it has not answered for {} s and may still make the edit; read the file before the next change",
        ANSWER.as_secs()
    )
}

/// No editor at all: every file is on disk.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoEditor;

impl Editor for NoEditor {
    fn apply(&self, edit: DocumentEdit) -> BoxFuture<'_, Result<Applied, EditorError>> {
        ready(Ok(Applied::Refused(format!(
            "no editor has {} open",
            edit.uri
        ))))
        .boxed()
    }
}
