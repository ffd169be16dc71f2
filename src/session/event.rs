//! What a session reports: what its turns do, what becomes of its prompts, and its state.

use std::sync::Arc;

use serde_json::Value;

use super::Effort;
use crate::agent::event::{AgentEvent, Termination};
use crate::config::Mode;
use crate::domain::{ErrorCode, ToolKind};

/// Names a prompt, uniquely in its session.
pub type PromptId = Arc<str>;

/// Something a session reports.
#[derive(Debug)]
pub enum SessionEvent {
    /// What the running turn does, or a notice between turns.
    Agent(AgentEvent),
    /// What became of a prompt.
    Prompt(PromptId, PromptState),
    /// The state changed.
    State(State),
    /// The session ended with a panic.
    Broke(Failure),
}

impl From<AgentEvent> for SessionEvent {
    fn from(event: AgentEvent) -> Self {
        Self::Agent(event)
    }
}

/// What became of a prompt. For each that was sent, exactly one of `Joined`, `Returned` and `Ended` is reported, last.
#[derive(Debug)]
pub enum PromptState {
    /// It waits for the turns before it: so many, counted from 1.
    Queued(usize),
    /// Its turn runs.
    Running {
        /// The turn's name.
        turn: String,
        /// The prompt as the client sent it, when it had to wait.
        waited: Option<Arc<Value>>,
    },
    /// It joined a running turn.
    Joined {
        /// The turn's name.
        turn: String,
    },
    /// The model never saw it.
    Returned {
        /// The prompt as the client sent it.
        said: Arc<Value>,
        /// Why.
        reason: ReturnReason,
    },
    /// Its turn ended.
    Ended {
        /// The turn's name.
        turn: String,
        /// How.
        end: Result<Termination, Failure>,
    },
}

/// Why the model never saw a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReturnReason {
    /// It was cancelled.
    Cancelled,
    /// The client took it back.
    Withdrawn,
    /// Too many prompts wait.
    QueueFull,
    /// No turn runs that it could join.
    NoTurn,
    /// The turn ended before it could join.
    TurnEnded,
    /// The server ended while it waited.
    Restarted,
    /// The session was closed.
    Closed,
}

impl ReturnReason {
    /// Its name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::Withdrawn => "withdrawn",
            Self::QueueFull => "queue_full",
            Self::NoTurn => "no_turn",
            Self::TurnEnded => "turn_ended",
            Self::Restarted => "restarted",
            Self::Closed => "closed",
        }
    }
}

/// Why a turn failed.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The cause and the way out.
    pub message: String,
    /// The kind.
    pub code: ErrorCode,
    /// The HTTP status, where there was one.
    pub status: Option<u16>,
    /// Whether the same prompt may work later.
    pub retryable: bool,
}

/// The state of a session, as of the event that carries it.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// The mode.
    pub mode: Mode,
    /// `provider/model`, or why there is none.
    pub model: Result<String, String>,
    /// The models to choose from.
    pub models: Arc<[String]>,
    /// How hard the model thinks; `None`: as configured.
    pub effort: Option<Effort>,
    /// Whether the effort can be chosen: a model that was found on this machine is in no configuration.
    pub has_effort: bool,
    /// What it is doing.
    pub activity: Activity,
    /// How many prompts wait for their turn.
    pub queued: usize,
    /// Whether it was ever prompted.
    pub begun: bool,
    /// What it used, from the first answer on.
    pub usage: Option<Used>,
}

impl State {
    /// Whether a turn runs.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.activity != Activity::Idle
    }
}

/// What a session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// Nothing.
    Idle,
    /// A turn runs.
    Running,
    /// A turn waits for the person to decide about a call of this kind.
    Waiting(ToolKind),
}

/// What a session used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Used {
    /// Tokens of the last request and its answer.
    pub tokens: u64,
    /// How many the model reads at once, where that is known.
    pub window: Option<u64>,
    /// US dollars of the whole session, where prices are known.
    pub cost: Option<f64>,
}
