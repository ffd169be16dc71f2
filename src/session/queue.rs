//! The prompts of a session: one runs, the others are queued, and each reports how it ended.
//!
//! Invariant: for every prompt that arrives, exactly one of joined, returned and ended is reported, as the last.

use std::sync::Arc;

use super::event::{PromptId, PromptState, ReturnReason, SessionEvent};
use super::slash::{self, Local, Work};
use super::store::QueuedPrompt;
use super::{Actor, Ground, Sent, Steered, failed, shadow};
use crate::agent::event::{AgentEvent, Termination};
use crate::config::Mode;
use crate::domain::{ErrorCode, Failure};

/// How many prompts may be queued.
const WAITING: usize = 8;

/// A queued prompt.
pub(super) struct Queued {
    sent: Sent,
    /// The last reported position; 0 for none.
    position: usize,
}

impl Actor {
    /// A prompt arrived.
    pub(super) async fn accept(&mut self, sent: Sent) {
        if self.queue.len() >= WAITING {
            return self.give_back(sent.id, sent.said, ReturnReason::QueueFull);
        }
        self.revise_plan();
        self.queue.push_back(Queued { sent, position: 0 });
        self.advance().await;
    }

    /// Returns cancelled prompts, starts the next one if nothing runs, and reports new positions.
    pub(super) async fn advance(&mut self) {
        let mut changed = false;
        loop {
            changed |= self.return_cancelled();
            if self.running.is_some() {
                break;
            }
            self.record_edits().await;
            let Some(Queued { sent, position }) = self.queue.pop_front() else {
                break;
            };
            let waited = position > 0;
            if waited {
                // The queue is written together with what the prompt becomes.
                self.note_queue();
            }
            self.start(sent, waited).await;
        }
        for (index, queued) in self.queue.iter_mut().enumerate() {
            if std::mem::replace(&mut queued.position, index + 1) != index + 1 {
                changed = true;
                let state = PromptState::Queued(index + 1);
                self.outgoing
                    .push_back(SessionEvent::Prompt(Arc::clone(&queued.sent.id), state));
            }
        }
        if changed {
            self.note_queue();
            self.write().await;
        }
    }

    /// Records the queue in the journal, so that a killed server loses no prompt.
    pub(super) fn note_queue(&mut self) {
        let prompt = |queued: &Queued| QueuedPrompt {
            id: queued.sent.id.to_string(),
            prompt: (*queued.sent.said).clone(),
        };
        self.journal.queue(self.queue.iter().map(prompt).collect());
    }

    /// Returns the prompts that were cancelled; whether any of them was in the queue.
    fn return_cancelled(&mut self) -> bool {
        let joining = self
            .running
            .iter_mut()
            .flat_map(|running| running.steers.iter_mut());
        let cancelled = joining.filter(|steered| steered.cancel.is_cancelled());
        let withdrawn: Vec<_> = cancelled
            .filter_map(|steered| steered.withdraw().then(|| steered.id.clone()))
            .collect();
        for id in &withdrawn {
            self.return_steered(id, ReturnReason::Cancelled);
        }

        let (cancelled, waiting): (Vec<_>, Vec<_>) = std::mem::take(&mut self.queue)
            .into_iter()
            .partition(|queued| queued.sent.cancel.is_cancelled());
        self.queue = waiting.into();
        let any = !cancelled.is_empty();
        for Queued { sent, .. } in cancelled {
            self.give_back(sent.id, sent.said, ReturnReason::Cancelled);
        }
        any
    }

    /// Withdraws a prompt the model has not seen; returns whether that was possible.
    pub(super) async fn withdraw(&mut self, id: &PromptId) -> bool {
        if let Some(index) = self.queue.iter().position(|queued| queued.sent.id == *id)
            && let Some(Queued { sent, .. }) = self.queue.remove(index)
        {
            self.give_back(sent.id, sent.said, ReturnReason::Withdrawn);
            self.advance().await;
            self.note_queue();
            self.write().await;
            return true;
        }
        let mut joining = self
            .running
            .iter_mut()
            .flat_map(|running| running.steers.iter_mut());
        let withdrawn = joining
            .find(|steered| steered.id == *id)
            .is_some_and(Steered::withdraw);
        if withdrawn {
            self.return_steered(id, ReturnReason::Withdrawn);
        }
        withdrawn
    }

    /// Gives back a message that the running turn does not take any more.
    fn return_steered(&mut self, id: &PromptId, reason: ReturnReason) {
        let Some(running) = &mut self.running else {
            return;
        };
        let Some(index) = running.steers.iter().position(|steered| steered.id == *id) else {
            return;
        };
        let Steered { id, said, .. } = running.steers.remove(index);
        self.give_back(id, said, reason);
    }

    pub(super) fn give_back(
        &mut self,
        id: PromptId,
        said: Arc<serde_json::Value>,
        reason: ReturnReason,
    ) {
        self.outgoing.push_back(SessionEvent::Prompt(
            id,
            PromptState::Returned { said, reason },
        ));
    }

    async fn start(&mut self, sent: Sent, waited: bool) {
        let Sent {
            id,
            prompt,
            said,
            cancel,
        } = sent;
        let sent = said;
        let waited = waited.then(|| Arc::clone(&sent));
        self.look_for_a_model().await;
        let mut work = match slash::understand(prompt, &self.commands) {
            Work::Try(_) if self.mode == Mode::Plan => {
                Work::Local(Local::Say(shadow::NOT_IN_PLAN.to_owned()))
            }
            Work::Prompt(prompt) if self.on_copy && self.mode != Mode::Plan => Work::Try(prompt),
            work => work,
        };
        if let Work::Prompt(prompt) | Work::Try(prompt) = &mut work
            && let Some(Err(why)) = cancel.run_until_cancelled(self.fetch_prompt(prompt)).await
        {
            work = Work::Local(Local::Say(why));
        }
        match work {
            Work::Prompt(prompt) => {
                self.prompt(id, prompt, &sent, waited, cancel, Ground::Workspace)
                    .await;
            }
            Work::Try(prompt) => {
                self.prompt(id, prompt, &sent, waited, cancel, Ground::Copy)
                    .await;
            }
            Work::Compact => self.compact(id, waited, cancel).await,
            Work::Local(local) => {
                let turn = self.other_turn();
                self.report(
                    &id,
                    PromptState::Running {
                        turn: turn.clone(),
                        number: None,
                        waited,
                    },
                );
                self.answer_locally(local).await;
                self.report(
                    &id,
                    PromptState::Ended {
                        turn,
                        end: Ok(Termination::EndTurn),
                    },
                );
            }
        }
    }

    /// An id for a turn without a prompt of its own.
    pub(super) fn other_turn(&mut self) -> String {
        self.others += 1;
        format!("{}-{}.{}", self.id, self.turns, self.others)
    }

    pub(super) fn report(&mut self, id: &PromptId, state: PromptState) {
        self.outgoing
            .push_back(SessionEvent::Prompt(Arc::clone(id), state));
    }

    /// A prompt failed before its turn began.
    pub(super) fn fail(&mut self, id: &PromptId, failure: Failure) {
        self.tell_failure(failure.clone());
        let turn = self.other_turn();
        self.report(
            id,
            PromptState::Ended {
                turn,
                end: Err(failure),
            },
        );
    }

    pub(super) fn tell_failure(&mut self, failure: Failure) {
        self.tell(AgentEvent::Error(failure));
        self.tell(failed());
    }

    /// The turn reported its end, and so do the prompts that ended with it.
    pub(super) fn report_end(&mut self, reason: Termination) {
        let Some(running) = &mut self.running else {
            return;
        };
        running.done = true;
        let end = match reason {
            Termination::Error => Err(running.failure.take().unwrap_or_else(internal)),
            reason => Ok(reason),
        };
        let (id, turn) = (Arc::clone(&running.prompt), running.name.clone());
        let late = std::mem::take(&mut running.steers);
        let reason = if running.cancel.is_cancelled() {
            ReturnReason::Cancelled
        } else {
            ReturnReason::TurnEnded
        };
        for Steered { id, said, .. } in late {
            self.give_back(id, said, reason);
        }
        self.report(&id, PromptState::Ended { turn, end });
    }
}

/// The failure of a turn that did not report its error.
fn internal() -> Failure {
    Failure::new(
        ErrorCode::Internal,
        "internal error: the turn failed without reporting a cause",
    )
}
