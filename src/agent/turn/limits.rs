//! Limits: how much a turn, and all turns of a session together, may use before the person is asked whether to
//! continue.

use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::{Goal, State, Termination};
use crate::agent::event::AgentEvent;
use crate::agent::schedule::Outcome;
use crate::domain::{Allowance, Bounds, Limits, Usage};
use crate::model::Message;
use crate::text::display::counted;

/// Usage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// Requests to the model.
    pub iterations: u64,
    /// Tokens read and written.
    pub tokens: u64,
    /// US dollars, if prices are known.
    pub cost: f64,
}

impl Allowance {
    /// The setting of the first limit that was reached, and what was used.
    fn used_up(&self, spent: Spent) -> Option<(&'static str, String)> {
        let Spent {
            iterations,
            tokens,
            cost,
        } = spent;
        if self.iterations.is_some_and(|limit| iterations >= limit) {
            let requests = counted(iterations, "request");
            Some(("iterations", format!("{requests} to the model")))
        } else if self.tokens.is_some_and(|limit| tokens >= limit) {
            Some(("tokens", format!("{tokens} tokens")))
        } else if self.cost.is_some_and(|limit| cost > 0.0 && cost >= limit) {
            Some(("cost", format!("{cost:.2} US dollars")))
        } else {
            None
        }
    }
}

impl Limits {
    /// Why a turn may not send another request. A running request is never aborted: it is paid for.
    pub(super) fn reached(&self, turn: Spent, session: Spent) -> Option<String> {
        if let Some((name, used)) = self.turn.used_up(turn) {
            return Some(format!("{used} (limits.{name})"));
        }
        let (name, used) = self.session.used_up(session)?;
        Some(format!("{used} in this session (limits.session-{name})"))
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
            AgentEvent::Explored { event, .. } => self.note(event),
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

impl State {
    /// The limit that the next request must not pass, if it is reached.
    pub fn limit(&self) -> Option<String> {
        let Goal::Explore { bounds, until } = self.turn.goal else {
            return self.turn.limits.reached(self.spent, self.turn.spent);
        };
        let Bounds { tokens, calls, .. } = bounds;
        // Room for an answer is left: a request at least as large as the next one follows it.
        let ahead = self.spent.tokens + 2 * self.size();
        if self.calls >= calls {
            Some(format!("{calls} calls"))
        } else if ahead >= tokens {
            Some(format!("{} of {tokens} tokens", self.spent.tokens))
        } else {
            until
                .filter(|until| Instant::now() >= *until)
                .map(|_| "most of its time".to_owned())
        }
    }

    /// An explorer at a limit is asked for its answer, once; `Some` if that was its answer.
    pub async fn conclude(&mut self, why: &str) -> Option<Termination> {
        if std::mem::replace(&mut self.is_last, true) {
            return Some(Termination::MaxTurnRequests);
        }
        // A provider may let it call what the request forbids.
        self.turn.tools = Arc::new([]);
        let text = format!("(stopped {why}: answer now with what you found, and say what is open)");
        self.push(Message::note(text)).await;
        None
    }

    /// Counts an answer's calls, and what explorers used for them: the session knows of that already.
    pub fn count(&mut self, outcomes: &[Outcome]) {
        self.calls += outcomes.len() as u64;
        if let Some(explorers) = &self.turn.explorers {
            let used = explorers.take_usage();
            self.usage.add(&used);
            self.spent.add(&used);
            self.turn.spent.add(&used);
        }
    }
}
