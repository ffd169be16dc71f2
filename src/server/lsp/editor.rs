//! `workspace/applyEdit`: how an edit reaches an open buffer.

use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use serde_json::{Value, json};

use crate::protocol::ext::Save;
use crate::protocol::lsp;
use crate::rpc::Peer;
use crate::server::documents::wire_range;
use crate::workspace::{Applied, DocumentEdit, Editor, EditorError};

/// An editor that formats on save takes its time; one that asks its person something is not waited for.
const SAVING: Duration = Duration::from_secs(5);

/// The editor at the other end of a language client.
pub(in crate::server) struct LspEditor {
    peer: Peer,
    /// Whether edits carry a label: some editors show it in their undo list, others print it over the text.
    label: bool,
    /// Whether it saves documents when asked to.
    saves: bool,
}

impl LspEditor {
    pub fn new(peer: Peer, label: bool, saves: bool) -> Self {
        Self { peer, label, saves }
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
    fn save(&self, uris: Vec<String>) -> BoxFuture<'_, bool> {
        if !self.saves {
            return ready(false).boxed();
        }
        let answer = self.peer.request("_tandem/save", &Save { uris });
        async move { tokio::time::timeout(SAVING, answer).await.is_ok_and(|answer| answer.is_ok()) }.boxed()
    }
}
