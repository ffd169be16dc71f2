//! `_tandem/jobs` and the methods below it: what runs in the background of a session.

use serde_json::json;

use super::dispatch::{Answer, Later, error, later};
use super::{Server, Transport};
use crate::domain::{JobStatus, ToolError};
use crate::process::Shell;
use crate::protocol::ext;
use crate::rpc::{ErrorCode, Peer, ResponseError};
use crate::text::display::{self, escape_line};

impl Server {
    pub fn jobs(&mut self, ext::JobsParams { session_id }: ext::JobsParams) -> Later<ext::Jobs> {
        let shell = self.shell_of(&session_id)?;
        later(async move {
            let jobs = shell.jobs().await;
            Ok(ext::Jobs { session_id, jobs })
        })
    }

    pub fn job_output(
        &mut self,
        ext::JobOutputParams {
            session_id,
            id,
            offset,
            colors,
        }: ext::JobOutputParams,
    ) -> Later<ext::JobOutput> {
        let shell = self.shell_of(&session_id)?;
        later(async move { shell.job_output(id, offset, colors).map_err(failed) })
    }

    pub fn stop_job(&mut self, ext::StopJob { session_id, id }: ext::StopJob) -> Later<JobStatus> {
        let shell = self.shell_of(&session_id)?;
        later(async move { shell.stop_job(id).await.map_err(failed) })
    }

    pub fn open_port(&mut self, asked: ext::OpenPort) -> Later<ext::OpenedPort> {
        let shell = self.shell_of(&asked.session_id)?;
        let asking = Asking {
            peer: self.peer.clone(),
            transport: self.transport,
            can: self.client.can.asks,
        };
        let ext::OpenPort {
            session_id,
            id,
            port,
        } = asked;
        let opened = async move {
            let command = escape_line(&shell.job_status(id)?.command).into_owned();
            let is_wanted = shell.reached_at(id, port).await?.is_some()
                || asking.whether_to_open(&session_id, port, &command).await?;
            let url = if is_wanted {
                Some(shell.open_port(id, port).await?)
            } else {
                None
            };
            Ok(ext::OpenedPort { url })
        };
        later(async move { opened.await.map_err(failed) })
    }

    pub fn run_in_background(
        &mut self,
        ext::RunInBackground {
            session_id,
            tool_call_id,
        }: ext::RunInBackground,
    ) -> Later<JobStatus> {
        let shell = self.shell_of(&session_id)?;
        let started = shell.run_in_background(&tool_call_id);
        later(async move { started.map_err(failed) })
    }

    fn shell_of(&mut self, session: &str) -> Answer<Shell> {
        Ok(self.conversation(session)?.session.shell().clone())
    }
}

fn failed(ToolError(why): ToolError) -> ResponseError {
    error(ErrorCode::RequestFailed, display::escape(&why))
}

/// What asks the person on the connection itself: a request from a list of jobs belongs to no turn.
struct Asking {
    peer: Peer,
    transport: Transport,
    /// Whether a language client shows messages with actions.
    can: bool,
}

impl Asking {
    /// # Errors
    /// The person cannot be asked.
    async fn whether_to_open(
        &self,
        session: &str,
        port: u16,
        command: &str,
    ) -> Result<bool, ToolError> {
        const OPEN: &str = "Open";
        let question = format!(
            "Open port {port} of `{command}`? Until the command ends, all programs on this machine can reach it at 127.0.0.1."
        );
        let (method, params, answer) = match self.transport {
            Transport::Lsp => {
                let actions = json!([{ "title": OPEN }, { "title": "Cancel" }]);
                let params = json!({ "type": 3, "message": question, "actions": actions });
                ("window/showMessageRequest", params, "/title")
            }
            Transport::Acp => {
                let option = |kind, name| json!({ "optionId": name, "kind": kind, "name": name });
                let options = [option("allow_once", OPEN), option("reject_once", "Cancel")];
                let call = json!({ "toolCallId": format!("open-{port}"), "title": question, "kind": "other" });
                let params = json!({ "sessionId": session, "toolCall": call, "options": options });
                ("session/request_permission", params, "/outcome/optionId")
            }
        };
        if self.transport == Transport::Lsp && !self.can {
            let why = "the editor cannot ask you whether to open a port, because it shows no messages with buttons";
            return Err(ToolError(why.to_owned()));
        }
        let answered = self.peer.request(method, &params).await;
        Ok(answered.is_ok_and(|it| it.pointer(answer).is_some_and(|said| said == OPEN)))
    }
}
