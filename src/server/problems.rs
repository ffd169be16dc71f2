//! Messages that belong to no session: problems of the configuration.

use super::{Server, Transport};
use crate::config::Settings;
use crate::protocol::lsp::MessageType;
use crate::rpc::Peer;
use crate::text::display;
use crate::workspace::Root;

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

    /// Shows the problems of changed settings. Sessions read settings when they start, and while they have no model.
    pub fn announce(&mut self) {
        let settings = self.load_settings(&[]);
        self.show_problems(&settings);
        self.sweep();
    }

    /// Removes what a killed process left in the workspace folders, on start rather than with the first session.
    fn sweep(&mut self) {
        for folder in self.client.folders() {
            self.tasks.spawn(async move {
                // Opening a workspace sweeps it. A folder that cannot be opened is reported when a session needs it.
                let _ = tokio::task::spawn_blocking(move || Root::open(&folder)).await;
            });
        }
    }
}

/// `window/showMessage`. The text is escaped, because it may quote a file, a model or an editor.
pub(super) fn show_message(peer: &Peer, kind: MessageType, text: &str) {
    peer.notify(
        "window/showMessage",
        &serde_json::json!({ "type": kind, "message": display::escape(text) }),
    );
}
