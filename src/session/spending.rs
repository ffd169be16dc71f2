//! What a session has used.

use super::event::Used;
use super::store::Record;
use crate::agent::Spent;
use crate::agent::event::AgentEvent;
use crate::domain::{Limits, Usage};

pub(super) struct Spending {
    pub limits: Limits,
    /// Usage that counts towards the session's limits.
    pub spent: Spent,
    /// The context window in tokens, if known.
    pub window: Option<u64>,
    /// The usage as it is shown.
    pub used: Option<Used>,
}

impl Spending {
    /// Notes what was used; whether it has to be recorded and shown.
    pub fn note(&mut self, event: &AgentEvent) -> bool {
        self.spent.note(event);
        match event {
            AgentEvent::TurnStart { context_window, .. } => self.window = *context_window,
            AgentEvent::Window { tokens } => self.window = Some(*tokens),
            AgentEvent::Usage(usage) => {
                self.add(usage, usage.input + usage.output);
                return true;
            }
            // A request of an explorer fills no part of the conversation's window.
            AgentEvent::Explored { event, .. } => {
                if let AgentEvent::Usage(usage) = &**event {
                    self.add(usage, self.used.map_or(0, |used| used.tokens));
                    return true;
                }
            }
            // Requests count even if the provider does not report their usage.
            AgentEvent::Done { .. } => return true,
            _ => {}
        }
        false
    }

    /// The record of it.
    pub fn record(&self) -> Record {
        Record::Used {
            spent: self.spent,
            tokens: self.used.map_or(0, |used| used.tokens),
            cost: self.used.and_then(|used| used.cost),
        }
    }

    fn add(&mut self, usage: &Usage, tokens: u64) {
        let mut total = Usage {
            cost: self.used.and_then(|used| used.cost),
            ..Usage::default()
        };
        total.add(usage);
        self.used = Some(Used {
            tokens,
            window: self.window,
            cost: total.cost,
        });
    }

    /// The person continues at a limit.
    pub fn go_on(&mut self) {
        self.spent.go_on(&self.limits.session);
    }

    /// Continues with what was used in another process.
    pub fn resume(&mut self, spent: Spent, tokens: u64, cost: Option<f64>) {
        self.spent = spent;
        self.used = (tokens > 0 || cost.is_some()).then_some(Used {
            tokens,
            window: None,
            cost,
        });
    }
}
