//! Limits for a turn, a session, and a sub-agent of `explore`.

use std::time::Duration;

/// The limits of a turn.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// For one turn.
    pub turn: Allowance,
    /// For all turns of the session.
    pub session: Allowance,
    /// How many read-only calls run in parallel.
    pub parallel: usize,
}

impl Default for Limits {
    fn default() -> Self {
        let turn = Allowance {
            iterations: Some(250),
            ..Allowance::default()
        };
        Self {
            turn,
            session: Allowance::default(),
            parallel: 8,
        }
    }
}

/// A limit for each resource; `None` means unlimited.
#[derive(Debug, Clone, Copy, Default)]
pub struct Allowance {
    /// Requests to the model.
    pub iterations: Option<u64>,
    /// Tokens read and written.
    pub tokens: Option<u64>,
    /// US dollars.
    pub cost: Option<f64>,
}

/// The limits of one `explore` call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Tokens read and written.
    pub tokens: u64,
    /// Tool calls.
    pub calls: u64,
    /// Time.
    pub time: Duration,
}
