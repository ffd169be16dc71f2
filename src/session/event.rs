//! What a session reports: events of turns, states of prompts, and its own state.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use tokio::sync::oneshot;

use super::{Effort, ReviewError};
use crate::agent::event::{AgentEvent, Termination};
use crate::config::Mode;
use crate::domain::{Failure, JobStatus, ToolKind};

/// The id of a prompt, unique in its session.
pub type PromptId = Arc<str>;

/// Something a session reports.
#[derive(Debug)]
pub enum SessionEvent {
    /// An event of the running turn, or a notice between turns.
    Agent(AgentEvent),
    /// The new state of a prompt.
    Prompt(PromptId, PromptState),
    /// The state changed.
    State(State),
    /// A background command began or ended. This lists all of them.
    Jobs(Vec<JobStatus>),
    /// The person opened a port of a background command at this address, for a browser.
    Opened(String),
    /// An edit in place was recorded or refused. Its answer is sent once the events before it have been shown.
    Edited(Recorded, Result<u64, ReviewError>),
    /// The session ended with a panic.
    Panicked(Failure),
}

/// Takes the number of an edit's turn, or the reason why it has none.
pub type Recorded = oneshot::Sender<Result<u64, ReviewError>>;

impl From<AgentEvent> for SessionEvent {
    fn from(event: AgentEvent) -> Self {
        Self::Agent(event)
    }
}

/// The state of a prompt. For each prompt, exactly one of `Joined`, `Returned` and `Ended` is reported, as the last.
#[derive(Debug)]
pub enum PromptState {
    /// It is queued at this position, counted from 1.
    Queued(usize),
    /// Its turn runs.
    Running {
        /// The turn's number, as reviews use it; `None` for a command, which changes nothing of its own.
        number: Option<u64>,
        /// The prompt as the client sent it, if it was queued.
        waited: Option<Arc<Value>>,
    },
    /// It joined a running turn.
    Joined,
    /// The model never saw it.
    Returned {
        /// The prompt as the client sent it.
        said: Arc<Value>,
        /// Why.
        reason: ReturnReason,
    },
    /// Its turn ended in this way.
    Ended(Result<Termination, Failure>),
}

/// Why the model never saw a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReturnReason {
    /// It was cancelled.
    Cancelled,
    /// The client withdrew it.
    Withdrawn,
    /// The queue is full.
    QueueFull,
    /// No turn was running.
    NoTurn,
    /// The turn ended first.
    TurnEnded,
    /// The server ended while it was queued.
    Restarted,
    /// The session was closed.
    Closed,
}

/// The state of a session, as of the event that carries it.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// The mode.
    pub mode: Mode,
    /// `provider/model`, or why there is none.
    pub model: Result<String, String>,
    /// Why its provider refused the key of the last prompt.
    pub refusal: Option<String>,
    /// The models to choose from.
    pub models: Arc<[String]>,
    /// The reasoning effort; `None` for the configured one.
    pub effort: Option<Effort>,
    /// Whether the effort can be chosen: a local model that was detected has no configuration.
    pub has_effort: bool,
    /// Whether prompts run on a copy of the workspace.
    pub on_copy: bool,
    /// The slash commands.
    pub commands: Arc<[Offered]>,
    /// What it is doing.
    pub activity: Activity,
    /// How many prompts are queued.
    pub queued: usize,
    /// Whether it was ever prompted.
    pub begun: bool,
    /// Its usage, once the first answer has arrived.
    pub usage: Option<Used>,
}

/// A slash command, for a menu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    /// Its name, without the slash.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Its argument, for display.
    pub hint: Option<String>,
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

/// The usage of a session.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Used {
    /// Tokens of the last request and its answer.
    pub tokens: u64,
    /// The context window in tokens, if known.
    pub window: Option<u64>,
    /// US dollars for the whole session, if prices are known.
    pub cost: Option<f64>,
}
