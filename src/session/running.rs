//! The running turn.

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::event::{PromptId, PromptState, ReturnReason};
use super::outbox::Outbox;
use super::queue::{Queue, Steered};
use crate::agent::event::Termination;
use crate::agent::{Steer, Step};
use crate::domain::{ErrorCode, Failure};

/// A running turn.
pub(super) struct Running {
    /// The prompt it runs for.
    pub prompt: PromptId,
    pub steps: mpsc::Receiver<Step>,
    pub task: JoinHandle<()>,
    pub cancel: CancellationToken,
    pub steering: mpsc::Sender<Steer>,
    pub failure: Option<Failure>,
    pub done: bool,
}

impl Running {
    /// The turn reported its end, and so do the prompts that ended with it.
    pub fn report_end(&mut self, reason: Termination, queue: &mut Queue, outbox: &mut Outbox) {
        self.done = true;
        let end = match reason {
            Termination::Error => Err(self.failure.take().unwrap_or_else(|| {
                Failure::new(
                    ErrorCode::Internal,
                    "internal error: the turn failed without reporting a cause",
                )
            })),
            reason => Ok(reason),
        };
        let reason = if self.cancel.is_cancelled() {
            ReturnReason::Cancelled
        } else {
            ReturnReason::TurnEnded
        };
        for Steered { id, said, .. } in queue.steers.drain(..) {
            outbox.give_back(&id, said, reason);
        }
        outbox.prompt(&self.prompt, PromptState::Ended(end));
    }
}
