//! A conversation and its journal: taking it up again, and writing what happens before anybody is told.

use super::store;
use super::{Actor, NoProvider, Start};
use crate::agent::event::AgentEvent;
use crate::model::ErrorCode;

impl Actor {
    /// Takes the conversation up where its journal ends.
    pub(super) async fn resume(&mut self) {
        let kept = match self.journal.open().await {
            Ok(kept) => kept,
            Err(problem) => {
                let (message, code) = (problem.to_string(), ErrorCode::InvalidRequest);
                // Nothing is said in a conversation that is not the one that was meant.
                self.model = Err(NoProvider { message: message.clone(), code, unset: false });
                return self.fail(message, code);
            }
        };
        self.mode = kept.mode.unwrap_or(self.mode);
        self.turns = kept.turns;
        self.guidance.recall(kept.messages.iter());
        self.kept = kept.messages;
        let texts = self.checkpoints.texts().await;
        self.checkpoints.restore(store::changes(&kept.records, &texts).await);
        if self.start == Start::Replay {
            self.outgoing.extend(store::events(kept.records, &texts).await);
        }
        let title = kept.head.map(|head| head.title).unwrap_or_default();
        self.outgoing.push_back(AgentEvent::Resumed { title, mode: self.mode.name().to_owned(), cost: kept.cost });
        if kept.unreadable > 0 {
            let message = format!("{} lines of this conversation's journal were damaged and left out", kept.unreadable);
            self.outgoing.push_back(AgentEvent::Notice { message });
        }
        self.write().await;
    }

    /// Writes what the journal has noted, before anybody is told of it.
    pub(super) async fn write(&mut self) {
        if let Err(message) = self.journal.flush().await {
            self.outgoing.push_front(AgentEvent::Notice { message });
        }
    }
}
