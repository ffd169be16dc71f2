//! What a session reports: its events, in order, when there is room for them, and the state they lead to.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::{mpsc, watch};

use super::control::Taken;
use super::event::{PromptId, PromptState, ReturnReason, SessionEvent, State};
use super::{SessionId, done};
use crate::agent::event::{AgentEvent, Termination};
use crate::domain::Failure;

pub(super) struct Outbox {
    id: SessionId,
    events: mpsc::Sender<(SessionId, SessionEvent)>,
    waiting: VecDeque<SessionEvent>,
    published: watch::Sender<State>,
    /// The senders of answers to changes that were applied but not answered yet.
    taken: Vec<Taken>,
}

impl Outbox {
    pub fn new(
        id: SessionId,
        events: mpsc::Sender<(SessionId, SessionEvent)>,
        state: State,
    ) -> Self {
        Self {
            id,
            events,
            waiting: VecDeque::new(),
            published: watch::Sender::new(state),
            taken: Vec::new(),
        }
    }

    /// The published state.
    pub fn subscribe(&self) -> watch::Receiver<State> {
        self.published.subscribe()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Sends the first event once there is room, or `None` if nobody receives it. Pending while there is no event. Cancel
    /// safe.
    pub async fn send(&mut self) -> Option<()> {
        if self.waiting.is_empty() {
            return std::future::pending().await;
        }
        let room = self.events.reserve().await.ok()?;
        room.send((Arc::clone(&self.id), self.waiting.pop_front()?));
        Some(())
    }

    pub fn push(&mut self, event: impl Into<SessionEvent>) {
        self.waiting.push_back(event.into());
    }

    /// Reports what a person should know.
    pub fn notices(&mut self, messages: impl IntoIterator<Item = String>) {
        for message in messages {
            self.push(AgentEvent::Notice { message });
        }
    }

    /// Reports before everything else that the session cannot be saved.
    pub fn unsaved(&mut self, message: String) {
        self.waiting
            .push_front(AgentEvent::Notice { message }.into());
    }

    pub fn title(&mut self, title: Option<String>) {
        if let Some(title) = title {
            self.push(AgentEvent::SessionTitle { title });
        }
    }

    pub fn failure(&mut self, failure: Failure) {
        self.push(AgentEvent::Error(failure));
        self.push(done(None, Termination::Error));
    }

    pub fn prompt(&mut self, id: &PromptId, state: PromptState) {
        self.push(SessionEvent::Prompt(Arc::clone(id), state));
    }

    /// Returns a prompt that the model never saw.
    pub fn give_back(&mut self, id: &PromptId, said: Arc<Value>, reason: ReturnReason) {
        self.prompt(id, PromptState::Returned { said, reason });
    }

    /// A change was applied; whoever requested it is answered when it takes effect.
    pub fn taken(&mut self, taken: Taken) {
        self.taken.push(taken);
    }

    /// Publishes the state if it changed.
    pub fn publish(&mut self, state: &State) {
        if *self.published.borrow() != *state {
            self.published.send_replace(state.clone());
            self.push(SessionEvent::State(state.clone()));
        }
    }

    /// The changes that were applied have taken effect.
    pub fn answer_changes(&mut self, state: &State) {
        for taken in self.taken.drain(..) {
            taken.send(Ok(state.clone())).ok();
        }
    }
}
