//! Restoring files and conversation to the state before a turn in one step, and reverting that.

use std::sync::Arc;

use super::{Actor, Review, ReviewError, Reviewed};
use crate::agent::Entry;
use crate::model::Message;

/// The conversation before it was restored; dropped with the next prompt.
pub(super) struct Restored {
    /// The first turn that was cut.
    pub turn: u64,
    history: Vec<Arc<Entry>>,
    kept: Vec<Message>,
    /// How many turns were undone.
    undone: usize,
}

impl Actor {
    /// Restores files and conversation to the state before `turn`.
    pub(super) async fn restore(&mut self, turn: u64) -> Result<Reviewed, ReviewError> {
        let messages = self.journal.before(turn).await.map_err(ReviewError)?;
        let (undone, reviewed) = self.checkpoints.undo_from(&self.workspace, turn).await;
        let history = std::mem::take(&mut self.history);
        let kept = std::mem::replace(&mut self.kept, messages.clone());
        self.restored.push(Restored {
            turn,
            history,
            kept,
            undone,
        });
        self.guidance.reset_to(messages.iter());
        self.journal.restored(turn, messages);
        self.write().await;
        Ok(reviewed)
    }

    /// Reverts the last restore; `None` if there is none.
    pub(super) async fn unrestore(&mut self) -> Option<Reviewed> {
        let Restored {
            turn,
            history,
            kept,
            undone,
        } = self.restored.pop()?;
        let reviewed = self
            .checkpoints
            .redo_last(&self.workspace, undone, turn)
            .await;
        (self.history, self.kept) = (history, kept);
        let messages: Vec<Message> = self
            .history
            .iter()
            .map(|entry| entry.message().into_owned())
            .collect();
        let messages: Vec<Message> = messages
            .into_iter()
            .chain(self.kept.iter().cloned())
            .collect();
        self.guidance.reset_to(messages.iter());
        self.journal.unrestored(messages);
        self.write().await;
        Some(reviewed)
    }

    /// Adds what can be reviewed now to a result.
    pub(super) async fn listed(&mut self, reviewed: Reviewed) -> Result<Reviewed, ReviewError> {
        let list = self
            .checkpoints
            .review(&self.workspace, Review::List)
            .await?;
        Ok(Reviewed {
            turns: list.turns,
            ..reviewed
        })
    }
}
