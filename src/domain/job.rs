//! Background commands, as a person sees them.

use schemars::JsonSchema;
use serde::Serialize;
use serde_with::skip_serializing_none;

/// A background command.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Job")]
pub struct JobStatus {
    /// Its number in the session.
    pub id: u32,
    /// The command line.
    pub command: String,
    /// Whether it runs.
    pub state: JobState,
    /// Its exit code, if it exited on its own and the code is known.
    pub exit_code: Option<i32>,
    /// When it was started, in milliseconds since 1970 (UTC).
    pub started_at: u64,
    /// The TCP ports it listens on. Empty where the system does not tell.
    pub ports: Vec<u16>,
}

/// Whether a background command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// It does.
    Running,
    /// It ended by itself.
    Exited,
    /// The person or the model stopped it.
    Stopped,
}

/// A piece of a job's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobOutput {
    /// The text, without other terminal sequences.
    pub text: String,
    /// Where the next output begins.
    pub offset: u64,
    /// The unfinished line after the text. It may still change: the next answer replaces it.
    pub line: String,
}
