//! The client as the editor of a session: `workspace/applyEdit`, which edits an open buffer, `fs/read_text_file` and
//! `fs/write_text_file` where it has buffers of its own and says so, its MCP servers, and `_tandem/diagnostics` and
//! `_tandem/language`, which return what it knows.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::capabilities::{Capabilities, TAKES_NO_EDITS};
use super::lsp::language;
use super::mcp::Relay;
use crate::protocol::{acp, ext, lsp};
use crate::rpc::Peer;
use crate::session::SessionId;
use crate::workspace::diagnostics::{Diagnostic, Scope, Severity, Shown};
use crate::workspace::language::{Answer, Operation, Question};
use crate::workspace::native::file_of;
use crate::workspace::{Applied, DocumentEdit, Editor, EditorError, McpRequest};

/// An editor that formats on save takes a while; one that asks its person something is not waited for.
const SAVING: Duration = Duration::from_secs(5);
/// A language server that is still reading the project may take longer; a model does better than wait.
const LANGUAGE: Duration = Duration::from_secs(10);

/// What an editor supports, also beyond the standard.
#[derive(Debug, Clone, Default)]
pub(super) struct Abilities {
    /// The standard's capabilities.
    pub standard: Capabilities,
    /// Whether edits may carry a label: some editors show it in their undo list, others print it over the text.
    pub label: bool,
    /// Whether it answers `_tandem/diagnostics`.
    pub diagnostics: bool,
    /// How long it may take to read a file again that changed on the disk.
    pub rereads_within: Duration,
    /// Whether it saves documents on request (`_tandem/save`).
    pub saves: bool,
    /// What its language servers can be asked (`_tandem/language`).
    pub operations: Vec<Operation>,
    /// Which `fs/*` methods it offers.
    pub files: FileAccess,
}

/// Which of `fs/read_text_file` and `fs/write_text_file` a client supports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FileAccess {
    pub read: bool,
    pub write: bool,
}

impl FileAccess {
    /// Reads `clientCapabilities`.
    pub fn of(capabilities: &Value) -> Self {
        let says = |name: &str| capabilities["fs"][name] == true;
        Self {
            read: says("readTextFile"),
            write: says("writeTextFile"),
        }
    }
}

/// The editor of one session.
pub(super) struct SessionEditor {
    pub session: SessionId,
    pub peer: Peer,
    pub relay: Relay,
    pub can: Abilities,
}

impl Editor for SessionEditor {
    fn apply(&self, edit: DocumentEdit) -> BoxFuture<'_, Result<Applied, EditorError>> {
        if !self.can.standard.applies_edits {
            return ready(Err(EditorError(TAKES_NO_EDITS.to_owned()))).boxed();
        }
        let edits: Vec<Value> = edit
            .hunks
            .into_iter()
            .map(|(range, new_text)| json!({ "range": range, "newText": new_text }))
            .collect();
        let mut params =
            json!({ "edit": self.can.standard.workspace_edit(&edit.uri, edit.version, &edits) });
        if self.can.label {
            params["label"] = edit.label.into();
        }
        let answer = self.peer.request("workspace/applyEdit", &params);
        async move {
            let answer = answer
                .await
                .map_err(|error| EditorError(error.to_string()))?;
            let result: lsp::ApplyWorkspaceEditResult =
                serde_json::from_value(answer).map_err(|error| EditorError(error.to_string()))?;
            Ok(if result.applied {
                Applied::Yes
            } else {
                Applied::Refused(
                    result
                        .failure_reason
                        .unwrap_or_else(|| "the editor gave no reason".to_owned()),
                )
            })
        }
        .boxed()
    }

    fn read<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Option<String>> {
        if !self.can.files.read {
            return ready(None).boxed();
        }
        let request = acp::ReadTextFileRequest::new(Arc::clone(&self.session), path);
        let answer = self.peer.request("fs/read_text_file", &request);
        // If the client cannot read a file (for example because it does not exist), the disk is tried.
        async move { answer.await.ok()?["content"].as_str().map(str::to_owned) }.boxed()
    }

    fn write<'a>(
        &'a self,
        path: &'a Path,
        text: &'a str,
    ) -> BoxFuture<'a, Option<Result<(), EditorError>>> {
        if !self.can.files.write {
            return ready(None).boxed();
        }
        let request = acp::WriteTextFileRequest::new(Arc::clone(&self.session), path, text);
        let answer = self.peer.request("fs/write_text_file", &request);
        async move {
            Some(
                answer
                    .await
                    .map(drop)
                    .map_err(|error| EditorError(error.to_string())),
            )
        }
        .boxed()
    }

    fn mcp(
        &self,
        request: McpRequest,
        notifications: mpsc::Sender<Value>,
    ) -> BoxFuture<'_, Result<Value, EditorError>> {
        self.relay.request(request, notifications).boxed()
    }

    fn rereads_within(&self) -> Duration {
        self.can.rereads_within
    }

    fn saves(&self) -> bool {
        self.can.saves
    }

    fn save(&self, uris: Vec<String>) -> BoxFuture<'_, bool> {
        if !self.can.saves {
            return ready(false).boxed();
        }
        let answer = self.peer.request("_tandem/save", &ext::Save { uris });
        async move {
            tokio::time::timeout(SAVING, answer)
                .await
                .is_ok_and(|answer| answer.is_ok())
        }
        .boxed()
    }

    fn operations(&self) -> &[Operation] {
        &self.can.operations
    }

    fn language(&self, question: Question) -> BoxFuture<'_, Result<Answer, EditorError>> {
        let (operation, uri) = (question.operation, question.uri.clone());
        let answer = self
            .peer
            .request("_tandem/language", &language::params(question));
        async move {
            let limit = format!("no answer within {} s", LANGUAGE.as_secs());
            let answer = tokio::time::timeout(LANGUAGE, answer)
                .await
                .map_err(|_| EditorError(limit))?;
            let result = answer.map_err(|error| EditorError(error.to_string()))?;
            language::answer(operation, uri.as_deref(), &result).map_err(EditorError)
        }
        .boxed()
    }

    fn knows_diagnostics(&self) -> bool {
        self.can.diagnostics
    }

    fn diagnostics<'a>(&'a self, scope: &'a Scope) -> BoxFuture<'a, Option<Vec<Shown>>> {
        if !self.can.diagnostics {
            return ready(None).boxed();
        }
        let params = ext::DiagnosticsParams {
            uris: scope.uris.clone(),
            settled: scope.settled,
        };
        let answer = self.peer.request("_tandem/diagnostics", &params);
        async move {
            let answer = answer
                .await
                .inspect_err(|error| tracing::warn!("_tandem/diagnostics: {error}"))
                .ok()?;
            let read = serde_json::from_value::<ext::DiagnosticsResult>(answer);
            let result = read
                .inspect_err(|error| tracing::warn!("_tandem/diagnostics: {error}"))
                .ok()?;
            Some(result.documents.into_iter().filter_map(shown).collect())
        }
        .boxed()
    }
}

/// The diagnostics of a document; `None` if its URI is not a file's.
fn shown(document: ext::DocumentDiagnostics) -> Option<Shown> {
    let path = file_of(&document.uri)?;
    let problem = |found: ext::Problem| Diagnostic {
        path: path.clone(),
        start: found.range.start,
        severity: match found.severity {
            Some(1) | None => Severity::Error,
            Some(2) => Severity::Warning,
            Some(3) => Severity::Information,
            Some(_) => Severity::Hint,
        },
        source: [found.source, found.code.as_ref().map(word)]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" "),
        message: word(&found.message),
    };
    Some(Shown {
        diagnostics: document.diagnostics.into_iter().map(problem).collect(),
        version: document.version,
        path,
    })
}

/// A code may be a number; a message may be marked-up text.
fn word(value: &Value) -> String {
    let text = value.as_str().or_else(|| value["value"].as_str());
    text.map_or_else(|| value.to_string(), str::to_owned)
}
