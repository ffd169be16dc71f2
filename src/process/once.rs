//! Commands of tandem's own in a workspace: sandboxed like the model's, without undo and without a number.

use std::sync::Arc;
use std::time::Duration;

use super::{Job, Output, Shell, job};
use crate::domain::ToolError;
use crate::domain::{CommandLine, Undo};
use crate::workspace::{Workspace, blocking};

/// How much of the output is returned, in bytes.
const MOST: usize = 64_000;

/// A command that has ended.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code; `None` if it did not exit on its own.
    pub code: Option<i32>,
    /// Its output, without the middle if it is long.
    pub output: String,
}

impl Shell {
    /// Runs a command in the first folder of the workspace, at most for `limit`.
    ///
    /// # Errors
    /// There is no sandbox, or it cannot be started.
    pub async fn run_once(
        &self,
        workspace: &Workspace,
        command: String,
        network: bool,
        limit: Duration,
    ) -> Result<Ran, ToolError> {
        let Some(root) = workspace.roots().first() else {
            return Err(ToolError("there is no directory".to_owned()));
        };
        if !self.holds(workspace).await {
            return Err(ToolError(
                "commands are not sandboxed here; nothing was run".to_owned(),
            ));
        }
        let line = CommandLine {
            command,
            dialect: self.dialect(),
            cwd: root.path().to_owned(),
            sandboxed: true,
            network,
            localhost: false,
            undo: Undo::Nothing,
        };
        let job = self
            .start_once(workspace.clone(), line)
            .await
            .map_err(|error| ToolError(error.to_string()))?;
        let (ended, code) = tokio::select! {
            ended = job.ended() => (Arc::clone(&ended), ended.code()),
            () = tokio::time::sleep(limit) => (job.stop().await, None),
        };
        tracing::debug!("a command of our own ran for {:?}", ended.ran);
        Ok(Ran {
            code,
            output: job.output.take(MOST),
        })
    }

    async fn start_once(&self, workspace: Workspace, line: CommandLine) -> std::io::Result<Job> {
        let shared = Arc::clone(&self.0);
        let prepared =
            blocking(move || shared.prepare(&workspace, &line, (Vec::new(), true), None)).await?;
        let output = Arc::new(Output::new(
            "output".to_owned(),
            prepared.scratch.as_deref(),
        ));
        let (job, task) = job::spawn(0, 0, prepared, output, None, self.0.end.child_token())?;
        self.0.running().tasks.spawn(task);
        Ok(job)
    }
}
