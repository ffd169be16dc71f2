//! The state a session publishes.

use std::sync::Arc;

use super::event::{Activity, State, Used};
use super::{Actor, Offered, Setup};
use crate::domain::Usage;

impl State {
    /// The state of a new session.
    pub(super) fn initial(setup: &Setup, commands: Arc<[Offered]>) -> Self {
        let model = setup
            .provider
            .as_ref()
            .map(super::Provider::name)
            .map_err(|why| why.message.clone());
        let mut models = setup.settings.known_models();
        models.extend(model.clone().ok().filter(|model| !models.contains(model)));
        Self {
            mode: setup.mode,
            model,
            models: models.into(),
            effort: None,
            has_effort: setup.settings.model.is_ok(),
            on_copy: false,
            commands,
            activity: Activity::Idle,
            queued: 0,
            begun: false,
            usage: None,
        }
    }
}

impl Actor {
    /// The current state.
    pub(super) fn state(&self) -> State {
        let running = self.running.as_ref().filter(|running| !running.done);
        let activity = match running {
            Some(running) => running
                .questions
                .open_kind()
                .map_or(Activity::Running, Activity::Waiting),
            None if self.queue.is_empty() => Activity::Idle,
            None => Activity::Running,
        };
        State {
            mode: self.mode,
            model: self
                .model
                .as_ref()
                .map(|model| model.provider.name())
                .map_err(|why| why.message.clone()),
            models: Arc::clone(&self.choices),
            effort: self.effort,
            has_effort: self.settings.model.is_ok(),
            on_copy: self.on_copy,
            commands: Arc::clone(&self.offered),
            activity,
            queued: self.queue.len(),
            begun: self.turns > 0,
            usage: self.used,
        }
    }

    /// `provider/model`, if there is one.
    pub(super) fn model_name(&self) -> Option<String> {
        self.model.as_ref().ok().map(|model| model.provider.name())
    }

    /// The models to choose from: the configured ones, and the current one.
    pub(super) fn choose_from(&self) -> Arc<[String]> {
        let mut models = self.settings.known_models();
        models.extend(self.model_name().filter(|model| !models.contains(model)));
        models.into()
    }

    /// Notes the usage of a request; one of an explorer fills no part of the conversation's window.
    pub(super) fn note_usage(&mut self, usage: Usage, is_explorer: bool) {
        let before = self.used;
        let mut total = Usage {
            cost: before.and_then(|used| used.cost),
            ..Usage::default()
        };
        total.add(&usage);
        let tokens = if is_explorer {
            before.map_or(0, |used| used.tokens)
        } else {
            usage.input + usage.output
        };
        // The usage of a turn is shown before its end is reported.
        self.used = Some(Used {
            tokens,
            window: self.window,
            cost: total.cost,
        });
        self.publish();
    }
}
