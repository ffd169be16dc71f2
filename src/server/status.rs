//! `_tandem/status` and messages: what a status line or a pop-up shows.

use super::Server;
use super::conversation::send;
use super::documents::path_of;
use crate::agent::event::ToolKind;
use crate::config::Settings;
use crate::protocol::lsp::MessageType;
use crate::protocol::{acp, ext};
use crate::rpc::Peer;
use crate::text::display;
use crate::workspace::Root;

impl Server {
    /// Tells how a session is, with something to read.
    pub(super) fn status(&mut self, id: &str, message: Option<String>) {
        let Some(conversation) = self.conversations.get(id) else { return };
        let state = match (&conversation.no_model, conversation.is_running()) {
            (_, true) => ext::State::Running,
            (Some(_), false) => ext::State::NoModel,
            (None, false) => ext::State::Ready,
        };
        self.tell_status(id, state, message);
    }

    /// Something to read that is no part of the answer. The protocol of the other carrier has no word for it: there it is
    /// a thought of its own.
    pub(super) fn remark(&mut self, id: &str, remark: String) {
        if self.carrier == super::Carrier::Acp {
            let thought = acp::ContentChunk::new(format!("{remark}\n").into());
            send(&self.peer, id, acp::SessionUpdate::AgentThoughtChunk(thought));
        } else {
            self.status(id, Some(remark));
        }
    }

    pub(super) fn tell_status(&mut self, id: &str, state: ext::State, message: impl Into<Option<String>>) {
        let message = message.into();
        let Some(conversation) = self.conversations.get(id) else { return };
        if conversation.reader != super::conversation::Reader::Client || self.carrier == super::Carrier::Acp {
            return;
        }
        let status = ext::Status {
            session_id: id.to_owned(),
            state,
            queued: conversation.waiting.len(),
            mode: conversation.mode.name().to_owned(),
            model: conversation.model.clone(),
            effort: conversation.effort.map(|effort| effort.name().to_owned()),
            usage: None,
            message,
        };
        self.peer.notify("_tandem/status", &status);
    }

    /// Says what is wrong with the configuration, once for each new problem.
    pub(super) fn show_problems(&mut self, settings: &Settings) {
        for problem in settings.problems.iter().chain(&crate::session::rule_problems(settings)) {
            let text = problem.to_string();
            tracing::warn!("{text}");
            if self.carrier == super::Carrier::Lsp && !self.told.contains(&text) {
                show_message(&self.peer, MessageType::Warning, &text);
                self.told.insert(text);
            }
        }
    }

    /// The settings are new: what is wrong with them is told; sessions read them when they start.
    pub(super) fn announce(&mut self) {
        let settings = (self.load)(&self.options, &[]);
        self.show_problems(&settings);
        self.sweep();
    }

    /// What a killed process left in the workspace folders goes when the next one starts, not with the first session.
    fn sweep(&mut self) {
        for folder in self.client.folders.iter().filter_map(|folder| path_of(folder)) {
            self.tasks.spawn(async move {
                // Opening sweeps. A folder that cannot be opened is told of when a session needs it.
                let _ = tokio::task::spawn_blocking(move || Root::open(&folder)).await;
            });
        }
    }
}

/// `window/showMessage`. The text may quote a file, a model or an editor.
pub(super) fn show_message(peer: &Peer, kind: MessageType, text: &str) {
    peer.notify("window/showMessage", &serde_json::json!({ "type": kind, "message": display::escape(text) }));
}

/// What a turn waits for, in a few words.
pub(super) fn working(kind: ToolKind) -> String {
    match kind {
        ToolKind::Edit => "asks to edit".to_owned(),
        ToolKind::Execute => "asks to run a command".to_owned(),
        ToolKind::Think => "asks whether to go on".to_owned(),
        _ => "asks for permission".to_owned(),
    }
}
