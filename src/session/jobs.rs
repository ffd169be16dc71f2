//! `/jobs`: what runs in the background, in a client that has no place of its own for it.

use std::time::Duration;

use crate::domain::{JobOutput, JobState, JobStatus, ToolError};
use crate::process::Shell;
use crate::text::display::escape_line;
use crate::text::fence::fence;

const USAGE: &str = "`/jobs` lists the background commands, `/jobs 1` shows the output of job 1, and `/jobs stop 1` stops it.";

/// Lists the jobs, or does `which` with one of them.
pub(super) async fn answer(shell: &Shell, which: &str) -> String {
    let (action, number) = which
        .rsplit_once(char::is_whitespace)
        .unwrap_or(("", which));
    let done = match (action.trim(), number.parse()) {
        ("", _) if number.is_empty() => Ok(list(&shell.jobs().await)),
        ("", Ok(id)) => output(shell, id),
        ("stop", Ok(id)) => shell.stop_job(id).await.map(|job| line(&job)),
        _ => Ok(USAGE.to_owned()),
    };
    done.unwrap_or_else(|ToolError(why)| why)
}

fn list(jobs: &[JobStatus]) -> String {
    if jobs.is_empty() {
        return "No background command was started in this session.".to_owned();
    }
    let lines: Vec<_> = jobs.iter().map(line).collect();
    format!("{}\n\n{USAGE}", lines.join("\n"))
}

fn line(job: &JobStatus) -> String {
    let mut state = match job.state {
        JobState::Running => {
            let age = job.started.elapsed().unwrap_or_default();
            let age = humantime::format_duration(Duration::from_secs(age.as_secs()));
            format!("running for {age}")
        }
        JobState::Exited(Some(code)) => format!("exit code {code}"),
        JobState::Exited(None) => "exit status unknown".to_owned(),
        JobState::Stopped => "stopped".to_owned(),
    };
    for port in &job.ports {
        state = format!("{state}, port {port}");
    }
    format!("- {} `{}` ({state})", job.id, escape_line(&job.command))
}

/// The end of a job's output.
fn output(shell: &Shell, id: u32) -> Result<String, ToolError> {
    let JobOutput {
        text, truncated, ..
    } = shell.job_output(id, None)?;
    let before = if truncated { "[…]\n" } else { "" };
    let text = format!("{before}{text}");
    let fence = fence(&text);
    Ok(format!("{fence}\n{}\n{fence}", text.trim_end()))
}
