//! What a client can do for one session: `fs/read_text_file` and `fs/write_text_file` where it has buffers of its own and
//! says so, and its MCP servers.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use serde_json::Value;
use tokio::sync::mpsc;

use super::mcp::Relay;
use crate::protocol::acp;
use crate::rpc::Peer;
use crate::session::SessionId;
use crate::workspace::diagnostics::{Scope, Shown};
use crate::workspace::language::{Answer, Operation, Question};
use crate::workspace::{Applied, DocumentEdit, Editor, EditorError, McpRequest};

/// Which of the two a client supports.
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

/// The editor of one session: open documents go through the connection's own editor, other files through the client.
pub(super) struct SessionEditor {
    pub session: SessionId,
    pub peer: Peer,
    pub access: FileAccess,
    pub relay: Relay,
    pub documents: Arc<dyn Editor>,
}

impl Editor for SessionEditor {
    fn apply(&self, edit: DocumentEdit) -> BoxFuture<'_, Result<Applied, EditorError>> {
        self.documents.apply(edit)
    }

    fn knows_diagnostics(&self) -> bool {
        self.documents.knows_diagnostics()
    }

    fn diagnostics<'a>(&'a self, scope: &'a Scope) -> BoxFuture<'a, Option<Vec<Shown>>> {
        self.documents.diagnostics(scope)
    }

    fn operations(&self) -> &[Operation] {
        self.documents.operations()
    }

    fn language(&self, question: Question) -> BoxFuture<'_, Result<Answer, EditorError>> {
        self.documents.language(question)
    }

    fn read<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Option<String>> {
        if !self.access.read {
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
        if !self.access.write {
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
        self.documents.rereads_within()
    }

    fn saves(&self) -> bool {
        self.documents.saves()
    }

    fn save(&self, uris: Vec<String>) -> BoxFuture<'_, bool> {
        self.documents.save(uris)
    }
}
