//! The state that a session publishes.

use std::sync::Arc;

use super::Actor;
use super::event::{Activity, State};
use super::extensions::Extensions;
use super::models::Models;
use crate::config::Mode;

impl Actor {
    /// The current state.
    pub fn state(&self) -> State {
        let running = self.running.as_ref().is_some_and(|running| !running.done);
        let activity = match self.questions.open_kind() {
            Some(kind) if running => Activity::Waiting(kind),
            _ if running || !self.queue.is_empty() => Activity::Running,
            _ => Activity::Idle,
        };
        State {
            on_copy: self.on_copy,
            activity,
            queued: self.queue.len(),
            begun: self.conversation.turns > 0,
            usage: self.spending.used,
            ..initial_state(&self.models, &self.extensions, self.questions.mode)
        }
    }

    /// Publishes the state if it changed, and answers changes that have taken effect: a call allowed in the previous
    /// mode has ended by then, or is shown to be running.
    pub fn publish(&mut self) {
        let state = self.state();
        self.outbox.publish(&state);
        if !self.questions.is_changing() {
            self.outbox.answer_changes(&state);
        }
    }
}

/// The state of a session without prompts.
pub(super) fn initial_state(models: &Models, extensions: &Extensions, mode: Mode) -> State {
    State {
        mode,
        model: match &models.provider {
            Ok(provider) => Ok(provider.name()),
            Err(why) => Err(why.message.clone()),
        },
        refusal: models.refusal.clone(),
        models: Arc::clone(&models.choices),
        effort: models.effort,
        has_effort: models.settings.model.is_ok(),
        on_copy: false,
        commands: Arc::clone(&extensions.menu),
        activity: Activity::Idle,
        queued: 0,
        begun: false,
        usage: None,
    }
}
