//! `textDocument/inlineCompletion`: suggestions while the person types. Off until it is configured.

use serde_json::{Value, json};

use super::Server;
use super::dispatch::read;
use super::problems::show_message;
use crate::completion::{Answer, Asked, Completer, Place, Suggestion};
use crate::protocol::lsp;
use crate::rpc::{ErrorCode, Params, Peer, Responder};

impl Server {
    /// Reads how to complete from the settings.
    pub(super) fn load_completer(&mut self) {
        self.completer = match Completer::new(&self.load_settings(&[])) {
            Ok(completer) => completer,
            Err(why) => {
                report(&self.peer, &why.message);
                None
            }
        };
    }

    pub(super) fn inline_completion(&mut self, responder: Responder, params: &Params) {
        let Some(completer) = &mut self.completer else {
            let message =
                "inline completion is off: set `model` in the section [completion] of config.toml";
            return responder.error(ErrorCode::MethodNotFound, message);
        };
        let params = match read::<lsp::InlineCompletionParams>(params) {
            Ok(params) => params,
            Err(error) => return responder.refuse(&error),
        };
        let request =
            match completer.ask(&self.documents, place(params, self.client.folders.clone())) {
                Asked::Known(suggestion) => return responder.ok(&items(suggestion)),
                Asked::Request(request) => request,
            };
        let (cancel, peer) = (self.cancellable(responder.id()), self.peer.clone());
        self.tasks.spawn(async move {
            let _over = cancel.clone().drop_guard();
            let Answer { suggestion, notice } = tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    return responder.error(ErrorCode::RequestCanceled, "the completion was cancelled");
                }
                answer = request.answer() => answer,
            };
            if let Some(notice) = notice {
                report(&peer, &notice);
            }
            responder.ok(&items(suggestion));
        });
    }
}

fn place(params: lsp::InlineCompletionParams, folders: Vec<String>) -> Place {
    let lsp::TextDocumentPositionParams {
        text_document,
        position,
    } = params.text_document_position_params;
    let invoked = params.context.trigger_kind == lsp::InlineCompletionTriggerKind::Invoked;
    Place {
        uri: text_document.uri.0,
        at: position.into(),
        invoked,
        folders,
    }
}

/// The suggestion with the range it is for: by then the cursor may be somewhere else.
fn items(suggestion: Option<Suggestion>) -> Value {
    let item =
        suggestion.map(|Suggestion { range, text }| json!({ "insertText": text, "range": range }));
    json!({ "items": item.into_iter().collect::<Vec<_>>() })
}

fn report(peer: &Peer, problem: &str) {
    show_message(
        peer,
        lsp::MessageType::Warning,
        &format!("tandem: inline completion: {problem}"),
    );
}
