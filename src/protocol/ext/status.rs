//! The state of a session, and the failure of a turn.

use schemars::JsonSchema;
use serde::Serialize;
use serde_with::skip_serializing_none;

pub use crate::domain::Counts;

/// `_tandem/status`, a notification: the state of a session, for a status line.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The session.
    pub session_id: String,
    /// What it is doing.
    pub state: State,
    /// How many prompts are queued.
    pub queued: usize,
    /// Its mode.
    pub mode: String,
    /// `provider/model`.
    pub model: Option<String>,
    /// The reasoning effort, unless it is the configured one.
    pub effort: Option<String>,
    /// Its usage, once the first answer has arrived.
    pub usage: Option<Usage>,
    /// A notice for people. Clients must not parse it.
    pub message: Option<String>,
    /// Whether the notice, such as "retrying after 2 s", applies only until the turn continues.
    pub passing: bool,
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

/// The usage of a session.
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Usage {
    /// Tokens in the context window.
    pub used: u64,
    /// The size of the window, if known.
    pub size: Option<u64>,
    /// US dollars for the whole session, if prices are known.
    pub cost: Option<f64>,
}

/// The key of an [`Exit`] in the `_meta` of a `tool_call_update`.
pub const EXIT: &str = "tandem/exit";

/// How a command ended: `_meta["tandem/exit"]` of the `tool_call_update` that ends its call.
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Exit {
    /// Its exit code as shells report it (128 plus the signal that ended it), if known.
    pub code: Option<i32>,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
}

/// The key in the `_meta` of a `tool_call_update` that ends a call: `true` if a person did not allow it.
pub const REJECTED: &str = "tandem/rejected";

/// The key in the `_meta` of a `tool_call_update` that ends a command's call: the number of the background job that the
/// command has become.
pub const JOB: &str = "tandem/job";

/// The key of [`Counts`] in the `_meta` of an `agent_message_chunk`, whose text gives the same counts in words.
pub const FINISH: &str = "tandem/finish";

/// The key in the `_meta` of a `tool_call_update` that ends a command's call: how a terminal would show parts of its first
/// text, as a list of [`Styled`].
pub const STYLES: &str = "tandem/styles";

/// A part of a text and its look.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Styled {
    /// Where it begins, in UTF-16 code units.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// One of the terminal's 16 colors, by number, or `#rrggbb`.
    pub color: Option<String>,
    /// The color behind it.
    pub background: Option<String>,
    /// Any of `bold`, `dim`, `italic` and `underline`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub font: Vec<&'static str>,
}

/// The key in the `_meta` of a diff of a large file, which has only the lines around the change: how many lines before
/// them are left out.
pub const SKIPPED_LINES: &str = "tandem/skippedLines";

/// The `data` of the error response to a prompt whose turn failed.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Failure {
    /// The kind of failure.
    pub code: String,
    /// The HTTP status, if there was one.
    pub status: Option<u16>,
    /// Whether the same prompt may work later.
    pub retryable: bool,
}
