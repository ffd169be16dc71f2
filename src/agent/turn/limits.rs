//! Limits: how much a turn, and all turns of a session together, may use before the person is asked whether to
//! continue.

use std::fmt;

use crate::agent::event::AgentEvent;
use crate::domain::{Allowance, Limits, Usage};

/// Usage.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spent {
    /// Requests to the model.
    pub iterations: u64,
    /// Tokens read and written.
    pub tokens: u64,
    /// US dollars, if prices are known.
    pub cost: f64,
}

/// A limit that was reached, with its value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum UsedUp {
    /// Requests.
    Iterations(u64),
    /// Tokens.
    Tokens(u64),
    /// US dollars.
    Cost(f64),
}

impl Allowance {
    /// The first limit that was reached.
    #[must_use]
    pub fn used_up(&self, spent: Spent) -> Option<UsedUp> {
        let Spent {
            iterations,
            tokens,
            cost,
        } = spent;
        if self.iterations.is_some_and(|limit| iterations >= limit) {
            Some(UsedUp::Iterations(iterations))
        } else if self.tokens.is_some_and(|limit| tokens >= limit) {
            Some(UsedUp::Tokens(tokens))
        } else {
            self.cost
                .filter(|limit| cost > 0.0 && cost >= *limit)
                .map(|_| UsedUp::Cost(cost))
        }
    }
}

impl UsedUp {
    /// The name of its setting.
    fn name(self) -> &'static str {
        match self {
            Self::Iterations(_) => "iterations",
            Self::Tokens(_) => "tokens",
            Self::Cost(_) => "cost",
        }
    }
}

impl fmt::Display for UsedUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Iterations(count) => write!(f, "{count} requests to the model"),
            Self::Tokens(count) => write!(f, "{count} tokens"),
            Self::Cost(cost) => write!(f, "{cost:.2} US dollars"),
        }
    }
}

impl Limits {
    /// Why a turn may not send another request. A running request is never aborted: it is paid for.
    pub(super) fn reached(&self, turn: Spent, session: Spent) -> Option<String> {
        let of_turn = self
            .turn
            .used_up(turn)
            .map(|used| format!("{used} (limits.{})", used.name()));
        let of_session = || self.session.used_up(session);
        of_turn.or_else(|| {
            of_session()
                .map(|used| format!("{used} in this session (limits.session-{})", used.name()))
        })
    }

    /// The name of the cost limit that is set.
    pub(super) fn of_cost(&self) -> Option<&'static str> {
        let turn = self.turn.cost.map(|_| "limits.cost");
        turn.or(self.session.cost.map(|_| "limits.session-cost"))
    }
}

impl Spent {
    /// Counts an event's usage.
    pub fn note(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::IterationStart { .. } => self.iterations += 1,
            AgentEvent::Usage(usage) => self.add(usage),
            _ => {}
        }
    }

    /// Counts tokens and their cost.
    pub fn add(&mut self, usage: &Usage) {
        self.tokens += usage.input + usage.output;
        self.cost += usage.cost.unwrap_or_default();
    }

    /// The person chose to continue: limits that were reached count from here.
    pub fn go_on(&mut self, allowance: &Allowance) {
        if allowance.used_up(*self).is_some() {
            *self = Self::default();
        }
    }
}
