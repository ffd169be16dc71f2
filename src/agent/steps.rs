//! The only output of a turn: events for people, entries for the conversation, in the order they happened.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::Entry;
use super::event::AgentEvent;
use crate::domain::Preview;

/// What a turn reports.
#[derive(Debug)]
pub enum Step {
    /// Something happened.
    Event(AgentEvent),
    /// A call ended that changed nothing but a copy of the workspace: it is shown, and there is nothing to undo.
    Tried(AgentEvent),
    /// A call is about to make the edits of this preview: it waits until they are recorded.
    Announced {
        /// The call's id.
        call_id: String,
        /// As it was allowed.
        preview: Arc<Preview>,
        /// Answered or dropped then.
        recorded: oneshot::Sender<()>,
    },
    /// What the model should know with the next prompt.
    Note(String),
    /// An entry was added to the conversation.
    Entry(Arc<Entry>),
    /// The conversation was compacted: these are all its entries now.
    History(Vec<Arc<Entry>>),
}

/// The sending end. A receiver that is gone is not an error: the turn is cancelled by its token.
#[derive(Debug, Clone)]
pub struct Steps(pub mpsc::Sender<Step>);

impl Steps {
    /// Reports a step.
    pub async fn send(&self, step: Step) {
        let _gone = self.0.send(step).await;
    }

    /// Reports what happened.
    pub async fn event(&self, event: AgentEvent) {
        self.send(Step::Event(event)).await;
    }

    /// Announces what a call may edit, and waits until that is recorded.
    pub async fn announce(&self, call_id: &str, preview: Arc<Preview>) {
        let (recorded, is_recorded) = oneshot::channel();
        let call_id = call_id.to_owned();
        self.send(Step::Announced {
            call_id,
            preview,
            recorded,
        })
        .await;
        let _nobody_records_it = is_recorded.await;
    }

    /// Shows the user a notice.
    pub async fn notice(&self, message: String) {
        self.event(AgentEvent::Notice { message }).await;
    }
}
