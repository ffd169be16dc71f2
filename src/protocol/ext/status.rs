//! The state of a session, and how a turn failed.

use schemars::JsonSchema;
use serde::Serialize;

/// `_tandem/status`, a notification: the state of a session, for a status line.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The session.
    pub session_id: String,
    /// What it is doing.
    pub state: State,
    /// How many prompts wait for their turn.
    pub queued: usize,
    /// Its mode.
    pub mode: String,
    /// `provider/model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The reasoning effort, where it is not the configured one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// What it used, from the first answer on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// A notice for people. Nothing else is to be read from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What a session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Waiting for a prompt.
    Ready,
    /// A turn runs.
    Running,
    /// A turn waits for the person.
    Waiting,
    /// No model is configured.
    NoModel,
}

/// What a session used.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Usage {
    /// Tokens in the context window.
    pub used: u64,
    /// The size of the window, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// US dollars of the whole session, where prices are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

/// The `data` of the error that answers the prompt of a failed turn.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Failure {
    /// The kind, in a word.
    pub code: String,
    /// The HTTP status, where there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Whether the same prompt may work later.
    pub retryable: bool,
}
