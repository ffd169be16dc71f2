//! Commands in the background, which a person watches and stops.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::domain::{JobOutput, JobStatus};

/// `_tandem/jobs`, a request: the background commands of a session.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobsParams {
    /// The session.
    pub session_id: String,
}

/// The answer to [`JobsParams`], and `_tandem/jobs/changed`, a notification: one of them began or ended.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Jobs {
    /// The session.
    pub session_id: String,
    /// The oldest first. Eight at most, ended ones included.
    pub jobs: Vec<JobStatus>,
}

/// `_tandem/jobs/output`, a request: a job's output as a terminal shows it. Beyond 64,000 bytes, the middle is omitted and
/// replaced by a line that says so.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobOutputParams {
    /// The session.
    pub session_id: String,
    /// The job.
    pub id: u32,
    /// Where it begins: the `offset` of an earlier answer; without it, at the beginning.
    #[serde(default)]
    pub offset: u64,
    /// Whether the text keeps the sequences that select colors (SGR), for a terminal.
    #[serde(default)]
    pub colors: bool,
}

/// `_tandem/jobs/stop`, a request: stops a job and everything it started. Answered with the [`JobStatus`] once all of it has
/// ended; it is reported to the model before its next prompt.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StopJob {
    /// The session.
    pub session_id: String,
    /// The job.
    pub id: u32,
}

/// `_tandem/jobs/open`, a request: opens a port of a job on `127.0.0.1` of this machine, until the job ends. The server asks the
/// person first (`window/showMessageRequest`, or `session/request_permission` over ACP), unless it is open already.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenPort {
    /// The session.
    pub session_id: String,
    /// The job.
    pub id: u32,
    /// The port, one of the job's.
    pub port: u16,
}

/// The answer to [`OpenPort`].
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct OpenedPort {
    /// The address for a browser on this machine; absent if the person did not want it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// `_tandem/jobs/background`, a request: a running command becomes a job, and its call ends with the output so far. Answered
/// with the [`JobStatus`].
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunInBackground {
    /// The session.
    pub session_id: String,
    /// The call that runs the command.
    pub tool_call_id: String,
}
