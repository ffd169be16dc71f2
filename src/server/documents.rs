//! The editor's documents, folders and focus, as it reports them.

use serde_json::Value;

use super::Server;
use crate::config;
use crate::domain::Focus;
use crate::protocol::{ext, lsp};
use crate::workspace::ContentChange;
use crate::workspace::native::file_of;

impl Server {
    pub fn did_open(&mut self, params: lsp::DidOpenTextDocumentParams) {
        let lsp::TextDocumentItem {
            uri,
            language_id,
            version,
            text,
        } = params.text_document;
        let language = serde_json::to_value(language_id).ok();
        let language = language
            .as_ref()
            .and_then(Value::as_str)
            .unwrap_or_default();
        self.documents.open(&uri.0, version, language, &text);
        self.chat_opened(&uri.0);
        let documents = self.documents.clone();
        self.tasks
            .spawn(async move { documents.look_at_file(&uri.0).await });
    }

    pub fn did_change(&mut self, params: lsp::DidChangeTextDocumentParams) {
        let lsp::VersionedTextDocumentIdentifier {
            version,
            text_document_identifier,
        } = params.text_document;
        let changes: Vec<_> = params
            .content_changes
            .into_iter()
            .map(content_change)
            .collect();
        let uri = &text_document_identifier.uri.0;
        if let Some(completer) = &self.completer {
            completer.note_change(&self.documents, uri, &changes);
        }
        self.documents.change(uri, version, &changes);
        if self.chats.hints().follows(uri) {
            self.show_hunks();
        }
    }

    pub fn did_save(&mut self, params: lsp::DidSaveTextDocumentParams) {
        self.documents.save(&params.text_document.uri.0);
        self.saved(&params.text_document.uri.0);
        self.show_hunks();
    }

    /// Marks documents as saved. Without this, the server knows only if the file exists.
    pub fn saved_documents(&mut self, params: ext::Save) {
        for uri in &params.uris {
            if let Some(document) = self.documents.get(uri) {
                self.documents.note_stored(&document);
            }
        }
    }

    pub fn did_close(&mut self, params: lsp::DidCloseTextDocumentParams) {
        self.documents.close(&params.text_document.uri.0);
    }

    pub fn did_change_folders(&mut self, params: lsp::DidChangeWorkspaceFoldersParams) {
        self.client.folders.retain(|folder| {
            params
                .event
                .removed
                .iter()
                .all(|removed| removed.uri.0 != *folder)
        });
        self.client
            .folders
            .extend(params.event.added.into_iter().map(|added| added.uri.0));
    }

    pub fn did_rename_files(&mut self, params: lsp::RenameFilesParams) {
        let names: Vec<_> = params
            .files
            .iter()
            .filter_map(|file| Some((file_of(&file.old_uri.0)?, file_of(&file.new_uri.0)?)))
            .collect();
        for (id, conversation) in &self.conversations {
            if let Err(busy) = conversation.session.renamed(names.clone()) {
                tracing::warn!(%id, "cannot follow a renamed file: {busy}");
            }
        }
        self.show_hunks();
    }

    pub fn did_change_configuration(&mut self, params: Value) {
        let settings = &params["settings"];
        // An editor without a section for each server sends what other servers read, too, or nothing.
        let are_ours = || self.client.speaks_acp || config::has_ours(settings);
        let ours = settings
            .get("tandem")
            .or_else(|| are_ours().then_some(settings));
        if let Some(ours) = ours
            && ours.is_object()
        {
            self.options = ours.clone();
            self.check_workspace();
            let ids: Vec<_> = self.conversations.keys().cloned().collect();
            for id in ids {
                self.pass_settings(&id);
            }
            if self.client.can.completes_inline {
                self.load_completer();
            }
        }
    }

    /// A document that is not a file clears the focus.
    pub fn did_focus(&mut self, params: ext::DidFocus) {
        let selection = &params.selection;
        let lines = (
            selection.start.line.saturating_add(1),
            selection.last_line().saturating_add(1),
        );
        let is_selection = selection.start != selection.end;
        self.focus = file_of(&params.text_document.uri.0).map(|path| Focus {
            path,
            lines,
            is_selection,
        });
    }
}

fn content_change(event: lsp::TextDocumentContentChangeEvent) -> ContentChange {
    use lsp::TextDocumentContentChangeEvent as Event;
    match event {
        Event::TextDocumentContentChangePartial(part) => ContentChange {
            range: Some(part.range.into()),
            text: part.text,
        },
        Event::TextDocumentContentChangeWholeDocument(whole) => ContentChange {
            range: None,
            text: whole.text,
        },
    }
}
