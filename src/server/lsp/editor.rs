//! `workspace/applyEdit`: how an edit reaches an open buffer.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::protocol::lsp;
use crate::rpc::Peer;
use crate::server::documents::wire_range;
use crate::workspace::{Applied, DocumentEdit, Editor, EditorError};

/// The editor at the other end of a language client.
pub(in crate::server) struct LspEditor {
    peer: Peer,
    /// Whether edits carry a label: some editors show it in their undo list, others print it over the text.
    label: bool,
}

impl LspEditor {
    pub fn new(peer: Peer, label: bool) -> Self {
        Self { peer, label }
    }
}

impl Editor for LspEditor {
    fn apply(&self, edit: DocumentEdit) -> BoxFuture<'_, Result<Applied, EditorError>> {
        let edits: Vec<Value> = edit
            .hunks
            .into_iter()
            .map(|(range, new_text)| json!({ "range": wire_range(range), "newText": new_text }))
            .collect();
        let changes = json!([{ "textDocument": { "uri": edit.uri, "version": edit.version }, "edits": edits }]);
        let mut params = json!({ "edit": { "documentChanges": changes } });
        if self.label {
            params["label"] = edit.label.into();
        }
        let answer = self.peer.request("workspace/applyEdit", &params);
        async move {
            let answer = answer.await.map_err(|error| EditorError(error.to_string()))?;
            let result: lsp::ApplyWorkspaceEditResult =
                serde_json::from_value(answer).map_err(|error| EditorError(error.to_string()))?;
            Ok(if result.applied {
                Applied::Yes
            } else {
                Applied::Refused(result.failure_reason.unwrap_or_else(|| "the editor gave no reason".to_owned()))
            })
        }
        .boxed()
    }
}
