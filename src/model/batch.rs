//! A buffer of events: adjacent deltas of the same kind are merged.

use std::collections::VecDeque;

use super::{Failure, Finish, ModelEvent, fault, finish};

/// The events of one read, in order.
#[derive(Debug, Default)]
pub struct Batch(VecDeque<ModelEvent>);

impl Batch {
    /// Adds text of the answer.
    pub(crate) fn text(&mut self, more: &str) {
        match self.0.back_mut() {
            _ if more.is_empty() => {}
            Some(ModelEvent::Text(text)) => text.push_str(more),
            _ => self.push(ModelEvent::Text(more.to_owned())),
        }
    }

    /// Adds reasoning to show.
    pub(crate) fn reasoning(&mut self, more: &str) {
        match self.0.back_mut() {
            _ if more.is_empty() => {}
            Some(ModelEvent::Reasoning(text)) => text.push_str(more),
            _ => self.push(ModelEvent::Reasoning(more.to_owned())),
        }
    }

    /// Adds words of a refusal.
    pub(crate) fn refusal(&mut self, more: &str) {
        match self.0.back_mut() {
            _ if more.is_empty() => {}
            Some(ModelEvent::Refusal(text)) => text.push_str(more),
            _ => self.push(ModelEvent::Refusal(more.to_owned())),
        }
    }

    /// Adds a fragment of the arguments of the call in `slot`.
    pub(crate) fn arguments(&mut self, slot: usize, more: &str) {
        match self.0.back_mut() {
            _ if more.is_empty() => {}
            Some(ModelEvent::CallDelta { slot: last, json }) if *last == slot => {
                json.push_str(more);
            }
            _ => self.push(ModelEvent::CallDelta {
                slot,
                json: more.to_owned(),
            }),
        }
    }

    /// Adds why the model stopped, from the provider's word for it.
    ///
    /// # Errors
    /// The context window is full, or the provider failed in the middle of the answer.
    pub(super) fn finish(&mut self, word: &str) -> Result<(), Failure> {
        let finish = finish::read(word)?;
        let broken = match &finish {
            Finish::Broken(word) => Some(fault::broken_off(word)),
            _ => None,
        };
        self.push(ModelEvent::Finish(finish));
        broken.map_or(Ok(()), Err)
    }

    /// Adds an event as it is.
    pub(crate) fn push(&mut self, event: ModelEvent) {
        self.0.push_back(event);
    }

    /// Takes the first event.
    pub fn pop(&mut self) -> Option<ModelEvent> {
        self.0.pop_front()
    }
}
