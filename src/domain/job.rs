//! Background commands, as a person sees them.

use std::time::SystemTime;

use schemars::JsonSchema;
use serde::Serialize;

/// A job as a person sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobStatus {
    /// Its number in the session.
    pub id: u32,
    /// The command line.
    pub command: String,
    /// Whether it runs.
    pub state: JobState,
    /// When it was started.
    pub started: SystemTime,
    /// The TCP ports it listens on, as far as the system tells.
    pub ports: Vec<u16>,
}

/// Whether a job runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
    /// It does.
    Running,
    /// It ended by itself, with this exit code if that is known.
    Exited(Option<i32>),
    /// The person or the model stopped it.
    Stopped,
}

/// A piece of a job's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobOutput {
    /// The text, without other terminal sequences.
    pub text: String,
    /// Where what is printed next begins.
    pub offset: u64,
    /// The unfinished line after the text. It may still change: the next answer replaces it.
    pub line: String,
}
