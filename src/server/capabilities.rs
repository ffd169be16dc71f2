//! The abilities that a language client announces in `initialize`: read here, and checked wherever the server sends
//! something that not every client supports.

use serde_json::{Value, json};

use crate::protocol::lsp::Handshake;

/// The capabilities of a language client. The default is the least: those of one that announces nothing.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a capability the client announces by itself"
)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Capabilities {
    /// `workspace/applyEdit`.
    pub applies_edits: bool,
    /// Edits may name the version they are for (`documentChanges`).
    pub versions_edits: bool,
    /// `window/showDocument`.
    pub shows_documents: bool,
    /// The cursor can be moved in the document that is shown. A Helix that announces `showDocument` closes the prompt that a
    /// person is typing in; its cursor moves along with what is inserted at the end of a question.
    pub moves_cursor: bool,
    /// `window/showMessageRequest` may carry actions.
    pub asks: bool,
    /// `window/workDoneProgress/create`.
    pub shows_progress: bool,
    /// `textDocument/inlineCompletion`.
    pub completes_inline: bool,
    /// A code action may be more than a command.
    pub code_action_literals: bool,
    /// A symbol may contain others.
    pub nested_symbols: bool,
    /// Hovers may be Markdown, and the client prefers that to plain text.
    pub reads_markdown: bool,
    /// `textDocument/codeLens`.
    pub shows_lenses: bool,
    /// `workspace/codeLens/refresh`.
    pub refreshes_lenses: bool,
    /// Code actions may be marked as a model's.
    pub tags_actions: bool,
}

/// `CodeActionTag.LLMGenerated`.
pub(super) const LLM_GENERATED: u8 = 1;

/// Why an edit is not sent to a client that takes none.
pub(super) const TAKES_NO_EDITS: &str =
    "the editor accepts no edits: it did not announce `workspace.applyEdit`";

impl Capabilities {
    pub fn of(handshake: &Handshake) -> Self {
        let names = |path: &str| handshake.capability(path).is_some();
        // Helix shows documents (since 23.10) and does not announce it.
        let is_helix = handshake.client_info.name == "helix";
        let shows_documents = handshake.can("window.showDocument.support");
        Self {
            applies_edits: handshake.can("workspace.applyEdit"),
            // Only `documentChanges` may create, rename and delete files: Neovim names that and not the field.
            versions_edits: handshake.can("workspace.workspaceEdit.documentChanges")
                || names("workspace.workspaceEdit.resourceOperations"),
            shows_documents: shows_documents || is_helix,
            moves_cursor: shows_documents != is_helix,
            asks: names("window.showMessage.messageActionItem"),
            shows_progress: handshake.can("window.workDoneProgress"),
            completes_inline: names("textDocument.inlineCompletion"),
            code_action_literals: names("textDocument.codeAction.codeActionLiteralSupport"),
            nested_symbols: handshake
                .can("textDocument.documentSymbol.hierarchicalDocumentSymbolSupport"),
            reads_markdown: handshake
                .capability("textDocument.hover.contentFormat")
                .is_some_and(|formats| formats[0] == "markdown"),
            shows_lenses: names("textDocument.codeLens"),
            refreshes_lenses: handshake.can("workspace.codeLens.refreshSupport"),
            tags_actions: handshake
                .capability("textDocument.codeAction.tagSupport.valueSet")
                .and_then(Value::as_array)
                .is_some_and(|tags| tags.iter().any(|tag| *tag == LLM_GENERATED)),
        }
    }

    /// A `WorkspaceEdit` of one document, for a version of it where the client takes that.
    pub fn workspace_edit(self, uri: &str, version: Option<i32>, edits: &[Value]) -> Value {
        if self.versions_edits {
            json!({ "documentChanges": [{ "textDocument": { "uri": uri, "version": version }, "edits": edits }] })
        } else {
            json!({ "changes": { uri: edits } })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unannounced_capabilities_of_editors_are_known() {
        let of = |client: &str, capabilities: Value| {
            let handshake =
                json!({ "clientInfo": { "name": client }, "capabilities": capabilities });
            Capabilities::of(&serde_json::from_value(handshake).unwrap())
        };
        assert!(of("helix", json!({})).shows_documents);
        let shows = json!({ "window": { "showDocument": { "support": true } } });
        assert!(of("helix", json!({})).moves_cursor && !of("helix", shows.clone()).moves_cursor);
        assert!(of("Neovim", shows).moves_cursor && !of("Eglot", json!({})).moves_cursor);
        assert!(!of("Eglot", json!({})).shows_documents);
        let neovim =
            json!({ "workspace": { "workspaceEdit": { "resourceOperations": ["rename"] } } });
        assert!(of("Neovim", neovim).versions_edits);
        assert!(!of("Neovim", json!({ "workspace": { "applyEdit": true } })).versions_edits);
    }
}
