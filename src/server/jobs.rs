//! `_tandem/jobs`, `_tandem/jobs/output` and `_tandem/jobs/stop`: what runs in the background of a session.

use std::time::UNIX_EPOCH;

use serde::Serialize;

use super::Server;
use super::dispatch::{Answer, read};
use crate::domain::{JobOutput, JobState, JobStatus, ToolError};
use crate::process::Shell;
use crate::protocol::ext;
use crate::rpc::{ErrorCode, Params, Responder};
use crate::text::display;

impl Server {
    pub(super) fn jobs(&mut self, responder: Responder, params: &Params) {
        let asked = read(params).and_then(|ext::JobsParams { session_id }| {
            let shell = self.shell_of(&session_id)?;
            Ok(async move { Ok(wire(session_id, shell.jobs().await)) })
        });
        self.answer_about_jobs(responder, asked);
    }

    pub(super) fn job_output(&mut self, responder: Responder, params: &Params) {
        let asked = read(params).and_then(|asked: ext::JobOutputParams| {
            let shell = self.shell_of(&asked.session_id)?;
            Ok(async move { shell.job_output(asked.id, asked.offset).map(output) })
        });
        self.answer_about_jobs(responder, asked);
    }

    pub(super) fn stop_job(&mut self, responder: Responder, params: &Params) {
        let asked = read(params).and_then(|asked: ext::StopJob| {
            let shell = self.shell_of(&asked.session_id)?;
            Ok(async move { shell.stop_job(asked.id).await.map(job) })
        });
        self.answer_about_jobs(responder, asked);
    }

    fn shell_of(&mut self, session: &str) -> Answer<Shell> {
        Ok(self.conversation(session)?.session.shell().clone())
    }

    /// Answers when the future does, beside everything else.
    fn answer_about_jobs<W: Serialize>(
        &mut self,
        responder: Responder,
        asked: Answer<impl Future<Output = Result<W, ToolError>> + Send + 'static>,
    ) {
        let asked = match asked {
            Ok(asked) => asked,
            Err(error) => return responder.respond(Err(error)),
        };
        self.tasks.spawn(async move {
            match asked.await {
                Ok(answer) => responder.ok(&answer),
                Err(ToolError(why)) => {
                    responder.error(ErrorCode::RequestFailed, display::escape(&why));
                }
            }
        });
    }
}

/// The jobs of a session as its clients see them.
pub(super) fn wire(session_id: String, jobs: Vec<JobStatus>) -> ext::Jobs {
    ext::Jobs {
        session_id,
        jobs: jobs.into_iter().map(job).collect(),
    }
}

fn job(status: JobStatus) -> ext::Job {
    let JobStatus {
        id,
        command,
        state,
        started,
        ports,
    } = status;
    let (state, exit_code) = match state {
        JobState::Running => (ext::JobState::Running, None),
        JobState::Exited(code) => (ext::JobState::Exited, code),
        JobState::Stopped => (ext::JobState::Stopped, None),
    };
    let started = started.duration_since(UNIX_EPOCH).unwrap_or_default();
    ext::Job {
        id,
        command,
        state,
        exit_code,
        started_at: u64::try_from(started.as_millis()).unwrap_or(u64::MAX),
        ports,
    }
}

fn output(piece: JobOutput) -> ext::JobOutput {
    let JobOutput {
        text,
        offset,
        truncated,
    } = piece;
    ext::JobOutput {
        text,
        offset,
        truncated,
    }
}
