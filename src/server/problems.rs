//! What a person is shown outside sessions: problems of the configuration, messages, pages in the browser.

use serde_json::json;

use super::{Server, Transport};
use crate::config::Settings;
use crate::protocol::lsp::MessageType;
use crate::rpc::Peer;
use crate::text::display;

impl Server {
    /// Shows what is wrong with the configuration, each problem once.
    pub fn show_problems(&mut self, settings: &Settings) {
        for problem in settings
            .problems
            .iter()
            .chain(&crate::session::rule_problems(settings))
        {
            let text = problem.to_string();
            tracing::warn!("{text}");
            if self.reported.insert(text.clone()) {
                match self.transport {
                    Transport::Lsp => show_message(&self.peer, MessageType::Warning, &text),
                    Transport::Acp => self.unshown.push(text),
                }
            }
        }
    }

    /// `window/showDocument`, where the client can.
    pub fn open_in_browser(&self, url: &str) {
        if self.client.can.shows_documents {
            let params = json!({ "uri": url, "external": true });
            self.peer.send("window/showDocument", &params);
        }
    }
}

/// `window/showMessage`. The text is escaped, because it may quote a file, a model or an editor.
pub(super) fn show_message(peer: &Peer, kind: MessageType, text: &str) {
    peer.notify(
        "window/showMessage",
        &json!({ "type": kind, "message": display::escape(text) }),
    );
}
