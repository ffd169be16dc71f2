//! The only output of a turn: events for people, entries for the conversation, in the order they happened.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::Entry;
use super::event::AgentEvent;

/// What a turn reports.
#[derive(Debug)]
pub enum Step {
    /// Something happened.
    Event(AgentEvent),
    /// A call ended that changed nothing but a copy of the workspace: it is shown, and there is nothing to undo.
    Tried(AgentEvent),
    /// What the model should know with the next prompt.
    Note(String),
    /// An entry was added to the conversation.
    Entry(Arc<Entry>),
    /// The conversation was compacted: these are all its entries now.
    History(Vec<Arc<Entry>>),
}

/// The sending end. A receiver that is gone is not an error: the turn is cancelled by its token.
#[derive(Debug, Clone)]
pub(super) struct Steps(pub mpsc::Sender<Step>);

impl Steps {
    pub async fn event(&self, event: AgentEvent) {
        let _gone = self.0.send(Step::Event(event)).await;
    }

    pub async fn note(&self, note: String) {
        let _gone = self.0.send(Step::Note(note)).await;
    }

    pub async fn entry(&self, entry: Arc<Entry>) {
        let _gone = self.0.send(Step::Entry(entry)).await;
    }

    pub async fn history(&self, entries: Vec<Arc<Entry>>) {
        let _gone = self.0.send(Step::History(entries)).await;
    }
}
