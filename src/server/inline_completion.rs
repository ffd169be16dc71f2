//! `textDocument/inlineCompletion`: suggestions while the person types. Off until it is configured.

use serde_json::{Value, json};

use super::Server;
use super::dispatch::{Later, error, later};
use super::problems::show_message;
use crate::completion::{Answer, Asked, Completer, Place, Suggestion};
use crate::protocol::lsp;
use crate::rpc::{ErrorCode, Peer, RequestId};

impl Server {
    /// Reads how to complete from the settings.
    pub fn load_completer(&mut self) {
        self.completer = match Completer::new(&self.load_settings(&[])) {
            Ok(completer) => completer,
            Err(why) => {
                report(&self.peer, &why.message);
                None
            }
        };
    }

    pub fn inline_completion(
        &mut self,
        params: lsp::InlineCompletionParams,
        _id: RequestId,
    ) -> Later<Value> {
        let Some(completer) = &mut self.completer else {
            let message =
                "inline completion is off: set `model` in the section [completion] of config.toml";
            return Err(error(ErrorCode::MethodNotFound, message));
        };
        let asked = completer.ask(&self.documents, place(params, self.client.folders.clone()));
        let peer = self.peer.clone();
        later(async move {
            let suggestion = match asked {
                Asked::Known(suggestion) => suggestion,
                Asked::Request(request) => {
                    let Answer { suggestion, notice } = request.answer().await;
                    if let Some(notice) = notice {
                        report(&peer, &notice);
                    }
                    suggestion
                }
            };
            Ok(items(suggestion))
        })
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
