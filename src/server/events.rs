//! What happens in a conversation, on its way to whoever reads it.

use std::collections::HashMap;
use std::sync::Arc;

use super::Server;
use super::conversation::{Reader, send};
use super::updates::{self, Chunk, Projected};
use super::wire::failure;
use crate::agent::event::{AgentEvent, FileDiff, GO_ON, Usage};
use crate::protocol::acp;
use crate::rpc::{TextKind, TextSource};
use crate::session::SessionId;

/// What a client was shown of a conversation, as far as what it is shown next depends on it.
pub(super) struct Shown {
    /// Whose words come next.
    message: Arc<TextSource>,
    thought: Arc<TextSource>,
    answers: u64,
    /// What running calls are about to change: a call that fails keeps its diff.
    proposed: HashMap<String, Vec<FileDiff>>,
    /// What the running call said.
    said: updates::Said,
    /// The question whether the turn goes on, while it is open: a call of ours, not of the model's.
    pause: Option<String>,
    /// How many tokens the model reads at once, where that is known.
    window: Option<u64>,
    /// US dollars so far, where prices are known.
    pub cost: Option<f64>,
}

impl Shown {
    /// Nothing yet.
    pub fn new(id: &SessionId) -> Self {
        let source = |kind| Arc::new(TextSource { session_id: Arc::clone(id), kind, message_id: None });
        Self {
            message: source(TextKind::AgentMessageChunk),
            thought: source(TextKind::AgentThoughtChunk),
            answers: 0,
            proposed: HashMap::new(),
            said: updates::Said::default(),
            pause: None,
            window: None,
            cost: None,
        }
    }

    /// What comes now is another answer.
    fn next_answer(&mut self) {
        self.answers += 1;
        let id: Arc<str> = format!("m{}", self.answers).into();
        let source = |kind| {
            let session_id = Arc::clone(&self.message.session_id);
            Arc::new(TextSource { session_id, kind, message_id: Some(Arc::clone(&id)) })
        };
        (self.message, self.thought) = (source(TextKind::AgentMessageChunk), source(TextKind::AgentThoughtChunk));
    }

    /// What is told of the tokens of a request: how full the window is, and the cost of the whole session. The protocol
    /// has no word for one without the other.
    fn used(&mut self, usage: Usage) -> Option<acp::UsageUpdate> {
        if let Some(cost) = usage.cost {
            *self.cost.get_or_insert_default() += cost;
        }
        let update = acp::UsageUpdate::new(usage.input + usage.output, self.window?);
        Some(update.cost(self.cost.map(|amount| acp::Cost::new(amount, "USD"))))
    }

    /// What a call that ends now was about to change.
    fn proposed(&mut self, event: &AgentEvent) -> Vec<FileDiff> {
        match event {
            AgentEvent::ToolPreview { call_id, preview, .. } if !preview.diffs.is_empty() => {
                self.proposed.insert(call_id.clone(), preview.diffs.clone());
                Vec::new()
            }
            AgentEvent::ToolExecutionEnd { call_id, .. } => self.proposed.remove(call_id).unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    /// The turn is over, and with it all its calls.
    pub fn end_turn(&mut self) {
        self.proposed.clear();
    }
}

impl Server {
    /// Passes an event of a session on to whoever reads it.
    pub(super) fn event(&mut self, id: &SessionId, event: AgentEvent) {
        let Some(conversation) = self.conversations.get_mut(id) else { return };
        let reader = conversation.reader;
        match event {
            AgentEvent::TurnStart { model, context_window, .. } => {
                conversation.model = Some(model);
                conversation.no_model = None;
                conversation.shown.window = context_window;
            }
            AgentEvent::Window { tokens } => conversation.shown.window = Some(tokens),
            AgentEvent::IterationStart { .. } => conversation.shown.next_answer(),
            AgentEvent::Resumed { .. } => self.opened(id, event),
            AgentEvent::Error { message, .. } if conversation.opening.is_some() => self.not_opened(id, &message),
            AgentEvent::Error { message, code, status, retryable } => {
                conversation.failure = Some(failure(&message, code, status, retryable));
            }
            AgentEvent::PermissionRequested { call_id, name, kind, preview, rule, reply: Some(reply) } => {
                match reader {
                    Reader::Client => {
                        if name == GO_ON {
                            conversation.shown.pause = Some(call_id.clone());
                            send(&self.peer, id, updates::pause(&call_id, &preview));
                        }
                        self.ask_permission(id, &call_id, kind, (*preview, rule), reply);
                    }
                    Reader::ChatFile => self.plain_ask(id, &call_id, &preview, rule, reply),
                }
            }
            AgentEvent::PermissionResolved { call_id, .. } => {
                if conversation.shown.pause.take_if(|pause| *pause == call_id).is_some() {
                    send(&self.peer, id, updates::paused(call_id.clone()));
                }
                if reader == Reader::ChatFile {
                    self.plain_answered(id, &call_id);
                }
                self.status(id, None);
            }
            AgentEvent::Usage(usage) if reader == Reader::Client => {
                if let Some(update) = conversation.shown.used(usage) {
                    send(&self.peer, id, acp::SessionUpdate::UsageUpdate(update));
                }
            }
            AgentEvent::ToolOutput { call_id, content } if reader == Reader::Client => {
                let update = conversation.shown.said.more(call_id, &content);
                send(&self.peer, id, update);
            }
            AgentEvent::Done { termination_reason, .. } => self.turn_ended(id, termination_reason),
            event => match reader {
                Reader::Client => self.update(id, event),
                Reader::ChatFile => self.plain_event(id, event),
            },
        }
    }

    fn update(&mut self, id: &SessionId, event: AgentEvent) {
        let Some(conversation) = self.conversations.get_mut(id) else { return };
        let shown = &mut conversation.shown;
        let proposed = shown.proposed(&event);
        match updates::project(event, &proposed) {
            Some(Projected::Text { chunk, text }) => {
                let source = match chunk {
                    Chunk::Message => &shown.message,
                    Chunk::Thought => &shown.thought,
                };
                self.peer.text(source, &text);
            }
            Some(Projected::Update(update)) => send(&self.peer, id, *update),
            Some(Projected::Remark(remark)) => self.remark(id, remark),
            None => {}
        }
    }
}
