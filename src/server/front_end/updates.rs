//! The `session/update` notifications of one session.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use crate::agent::event::{About, AgentEvent};
use crate::domain::FileDiff;
use crate::protocol::acp;
use crate::rpc::{Peer, TextKind, TextSource};
use crate::server::permission::Request;
use crate::server::updates::{self, Chunk, Projected};
use crate::server::wire::config_options;
use crate::session::event::{PromptState, State, Used};
use crate::session::{Offered, SessionId};

/// What a client was shown, as far as later updates depend on it.
pub(super) struct Updates {
    peer: Peer,
    id: SessionId,
    /// The message that following text belongs to.
    message: Arc<TextSource>,
    thought: Arc<TextSource>,
    answers: u64,
    /// The changes that running calls propose: a call that fails keeps its diff.
    proposed: HashMap<String, Vec<FileDiff>>,
    /// The displayed output of each running call.
    outputs: HashMap<String, String>,
    /// The open request that is not about a call of the model's.
    pause: Option<String>,
    state: Option<State>,
    /// Whether the client has options that are on or off.
    toggles: bool,
}

impl Updates {
    pub fn new(peer: Peer, id: &SessionId, toggles: bool) -> Self {
        let source = |kind| {
            Arc::new(TextSource {
                session_id: Arc::clone(id),
                kind,
                message_id: None,
            })
        };
        Self {
            peer,
            id: Arc::clone(id),
            message: source(TextKind::AgentMessageChunk),
            thought: source(TextKind::AgentThoughtChunk),
            answers: 0,
            proposed: HashMap::new(),
            outputs: HashMap::new(),
            pause: None,
            state: None,
            toggles,
        }
    }

    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    pub fn send(&self, update: acp::SessionUpdate) {
        let notification = acp::SessionNotification::new(Arc::clone(&self.id), update);
        self.peer.notify("session/update", &notification);
    }

    /// Projects an event to updates; returns notices for which the protocol has no update.
    pub fn event(&mut self, event: AgentEvent) -> Option<String> {
        match event {
            AgentEvent::IterationStart { .. } => self.next_answer(),
            AgentEvent::ToolOutput {
                call_id,
                content,
                line,
            } => {
                let tail = self.outputs.entry(call_id.clone()).or_default();
                let update = updates::output(call_id, tail, &content, &line);
                self.send(update);
            }
            event => {
                if let AgentEvent::ToolExecutionEnd { call_id, .. } = &event {
                    self.outputs.remove(call_id);
                }
                let proposed = self.proposed(&event);
                match updates::project(event, &proposed)? {
                    Projected::Text { chunk, text } => {
                        let source = match chunk {
                            Chunk::Message => &self.message,
                            Chunk::Thought => &self.thought,
                        };
                        self.peer.text(source, &text);
                    }
                    Projected::Update(update) => self.send(*update),
                    Projected::Notice(notice) => return Some(notice),
                }
            }
        }
        None
    }

    /// A queued prompt is shown when it begins.
    pub fn prompt(&mut self, state: &PromptState) {
        match state {
            PromptState::Running { waited, .. } => {
                for block in waited.iter().flat_map(|said| blocks(said)) {
                    self.send(acp::SessionUpdate::UserMessageChunk(
                        acp::ContentChunk::new(block),
                    ));
                }
            }
            PromptState::Ended(_) => self.proposed.clear(),
            _ => {}
        }
    }

    /// Shows the parts of the state that changed.
    pub fn state(&mut self, state: &State) {
        let Some(before) = self.state.replace(state.clone()) else {
            return;
        };
        if before.commands != state.commands {
            self.commands(&state.commands);
        }
        if before.mode != state.mode {
            let mode = acp::CurrentModeUpdate::new(state.mode.name());
            self.send(acp::SessionUpdate::CurrentModeUpdate(mode));
        }
        let options = config_options(state, self.toggles);
        if options != config_options(&before, self.toggles) {
            self.send(acp::SessionUpdate::ConfigOptionUpdate(
                acp::ConfigOptionUpdate::new(options),
            ));
        }
        // ACP's usage update requires both the context size and the usage.
        if before.usage != state.usage
            && let Some(Used {
                tokens,
                window: Some(window),
                cost,
            }) = state.usage
        {
            let cost = cost.map(|amount| acp::Cost::new(amount, "USD"));
            self.send(acp::SessionUpdate::UsageUpdate(
                acp::UsageUpdate::new(tokens, window).cost(cost),
            ));
        }
    }

    pub fn commands(&self, commands: &[Offered]) {
        let command = |offered: &Offered| {
            let command =
                acp::AvailableCommand::new(offered.name.clone(), offered.description.clone());
            let hint = offered.hint.clone().map(acp::UnstructuredCommandInput::new);
            command.input(hint.map(acp::AvailableCommandInput::Unstructured))
        };
        let update = acp::AvailableCommandsUpdate::new(commands.iter().map(command).collect());
        self.send(acp::SessionUpdate::AvailableCommandsUpdate(update));
    }

    /// Clients show no permission request without a call, so a request that is not about one of the model's gets its own.
    pub fn announce(&mut self, request: &Request) {
        if matches!(request.about, About::Pause | About::Plan | About::Server) {
            self.pause = Some(request.call_id.clone());
            self.send(updates::pause(&request.call_id, &request.preview));
        }
    }

    pub fn resolved(&mut self, call_id: &str) {
        if let Some(pause) = self.pause.take_if(|pause| pause == call_id) {
            self.send(updates::paused(pause));
        }
    }

    /// Starts a new answer.
    fn next_answer(&mut self) {
        self.answers += 1;
        let id: Arc<str> = format!("m{}", self.answers).into();
        let source = |kind| {
            let (session_id, message_id) = (Arc::clone(&self.id), Some(Arc::clone(&id)));
            Arc::new(TextSource {
                session_id,
                kind,
                message_id,
            })
        };
        (self.message, self.thought) = (
            source(TextKind::AgentMessageChunk),
            source(TextKind::AgentThoughtChunk),
        );
    }

    /// The changes proposed by a call that ends now.
    fn proposed(&mut self, event: &AgentEvent) -> Vec<FileDiff> {
        match event {
            AgentEvent::ToolPreview {
                call_id, preview, ..
            } => {
                self.proposed.insert(call_id.clone(), preview.diffs.clone());
                Vec::new()
            }
            AgentEvent::ToolExecutionEnd { call_id, .. } => {
                self.proposed.remove(call_id).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }
}

/// The prompt's blocks as they were sent; they were parsed once, so parsing cannot fail.
pub(super) fn blocks(said: &Value) -> Vec<acp::ContentBlock> {
    serde_json::from_value(said.clone()).unwrap_or_default()
}
