//! The queue of a session: steering messages for the running turn, and, until it ends, prompts in order and edits in
//! place, which are recorded before the prompts.
//!
//! Invariant: the last report about a prompt is exactly one of joined, returned and ended.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::Sent;
use super::event::{PromptId, PromptState, ReturnReason};
use super::in_place::Waiting;
use super::outbox::Outbox;
use super::store::{Journal, QueuedPrompt, Record};

/// How many prompts may be queued.
const PROMPTS: usize = 8;

#[derive(Default)]
pub(super) struct Queue {
    prompts: VecDeque<Queued>,
    /// Messages that have not joined the running turn.
    pub steers: Vec<Steered>,
    pub edits: VecDeque<Waiting>,
    /// Whether the journal has other prompts.
    is_unrecorded: bool,
}

/// A queued prompt.
struct Queued {
    sent: Sent,
    /// The last reported position; 0 for none.
    position: usize,
}

/// A steering message that has not joined.
pub(super) struct Steered {
    pub id: PromptId,
    pub said: Arc<Value>,
    /// Cancels it alone, or with its turn.
    pub cancel: CancellationToken,
    /// Closing it withdraws the message, unless the turn has already taken it (`None`).
    pub taken: Option<oneshot::Receiver<()>>,
}

impl Queue {
    pub fn is_empty(&self) -> bool {
        self.prompts.is_empty()
    }

    pub fn len(&self) -> usize {
        self.prompts.len()
    }

    pub fn is_full(&self) -> bool {
        self.len() >= PROMPTS
    }

    pub fn push(&mut self, sent: Sent) {
        self.prompts.push_back(Queued { sent, position: 0 });
    }

    /// The next prompt, and whether it was queued.
    pub fn pop(&mut self) -> Option<(Sent, bool)> {
        let Queued { sent, position } = self.prompts.pop_front()?;
        self.is_unrecorded |= position > 0;
        Some((sent, position > 0))
    }

    /// Returns the prompts that `is_meant` selects, unless the turn has already taken them; true if there were any.
    pub fn withdraw(
        &mut self,
        reason: ReturnReason,
        outbox: &mut Outbox,
        is_meant: impl Fn(&PromptId, &CancellationToken) -> bool,
    ) -> bool {
        let mut any = false;
        self.steers.retain_mut(|steered| {
            if is_meant(&steered.id, &steered.cancel)
                && let Some(mut taken) = steered.taken.take()
            {
                taken.close();
                if taken.try_recv().is_err() {
                    any = true;
                    outbox.give_back(&steered.id, steered.said.clone(), reason);
                    return false;
                }
            }
            true
        });
        self.prompts.retain(|Queued { sent, .. }| {
            if !is_meant(&sent.id, &sent.cancel) {
                return true;
            }
            any = true;
            self.is_unrecorded = true;
            outbox.give_back(&sent.id, sent.said.clone(), reason);
            false
        });
        any
    }

    /// The session is closed and its prompts have been returned to their senders.
    pub fn clear(&mut self) {
        self.is_unrecorded |= !self.is_empty();
        self.prompts.clear();
    }

    pub fn report_positions(&mut self, outbox: &mut Outbox) {
        for (queued, position) in self.prompts.iter_mut().zip(1..) {
            if std::mem::replace(&mut queued.position, position) != position {
                self.is_unrecorded = true;
                outbox.prompt(&queued.sent.id, PromptState::Queued(position));
            }
        }
    }

    /// Records the prompts, so that a killed server loses none; true if something had changed.
    pub fn record(&mut self, journal: &mut Journal) -> bool {
        if !std::mem::take(&mut self.is_unrecorded) {
            return false;
        }
        let mut prompts = Vec::new();
        for Queued { sent, .. } in &self.prompts {
            prompts.push(QueuedPrompt {
                id: sent.id.to_string(),
                prompt: (*sent.said).clone(),
            });
        }
        journal.note(Record::Queue { prompts });
        true
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;
    use crate::config::Mode;
    use crate::session::event::{Activity, State};

    #[test]
    fn a_message_that_the_turn_took_is_not_returned_however_often_it_is_cancelled() {
        let state = State {
            mode: Mode::Ask,
            model: Err(String::new()),
            refusal: None,
            models: [].into(),
            effort: None,
            has_effort: false,
            on_copy: false,
            commands: [].into(),
            activity: Activity::Running,
            queued: 0,
            begun: true,
            usage: None,
        };
        let (events, _) = mpsc::channel(1);
        let mut outbox = Outbox::new("s".into(), events, state);
        let mut queue = Queue::default();
        let mut joins = Vec::new();
        for id in ["taken", "waiting"] {
            let (join, taken) = oneshot::channel();
            let (id, cancel) = (id.into(), CancellationToken::new());
            cancel.cancel();
            queue.steers.push(Steered {
                id,
                said: Arc::default(),
                cancel,
                taken: Some(taken),
            });
            joins.push(join);
        }
        joins.remove(0).send(()).unwrap();
        let mut returned = Vec::new();
        for _ in 0..3 {
            returned.push(
                queue.withdraw(ReturnReason::Cancelled, &mut outbox, |_, cancel| {
                    cancel.is_cancelled()
                }),
            );
        }
        assert_eq!(returned, [true, false, false]);
        assert_eq!(&*queue.steers[0].id, "taken");
    }
}
