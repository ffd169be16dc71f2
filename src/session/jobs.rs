//! `/jobs`: what runs in the background, in a client that has no place of its own for it.

use std::time::{Duration, UNIX_EPOCH};

use tokio::sync::watch::{Receiver, error::RecvError};
use tokio::time::{Instant, sleep_until};

use super::event::SessionEvent;
use super::outbox::Outbox;
use crate::domain::{JobOutput, JobState, JobStatus, ToolError};
use crate::process::Shell;
use crate::text::display::escape_line;
use crate::text::fence::fence;

/// The least time between two reports.
const INTERVAL: Duration = Duration::from_millis(100);

/// Reports that a job of a session began or ended, ten times a second at most. What happens in between is one report.
pub(super) struct JobChanges {
    changed: Receiver<()>,
    next: Instant,
}

impl JobChanges {
    pub fn new(changed: Receiver<()>) -> Self {
        let next = Instant::now();
        Self { changed, next }
    }

    /// Waits until there is something to report. Cancel safe: a change is taken last.
    ///
    /// # Errors
    /// The shell is gone.
    pub async fn next(&mut self) -> Result<(), RecvError> {
        sleep_until(self.next).await;
        self.changed.changed().await?;
        self.next = Instant::now() + INTERVAL;
        Ok(())
    }
}

const USAGE: &str = "`/jobs` lists the background commands, `/jobs 1` shows the output of job 1, `/jobs stop 1` stops it, and `/jobs open 1` \
    opens its port to this machine until it ends.";

/// Lists the jobs, or does `which` with one of them.
pub(super) async fn answer(shell: &Shell, which: &str, outbox: &mut Outbox) -> String {
    let (action, number) = which
        .rsplit_once(char::is_whitespace)
        .unwrap_or(("", which));
    let done = match (action.trim(), number.parse()) {
        ("", _) if number.is_empty() => Ok(list(&shell.jobs().await)),
        ("", Ok(id)) => output(shell, id),
        ("open", Ok(id)) => open(shell, id, outbox).await,
        ("stop", Ok(id)) => shell.stop_job(id).await.map(|job| line(&job)),
        _ => Ok(USAGE.to_owned()),
    };
    done.unwrap_or_else(|ToolError(why)| why)
}

fn list(jobs: &[JobStatus]) -> String {
    if jobs.is_empty() {
        return "No background commands in this session.".to_owned();
    }
    let lines: Vec<_> = jobs.iter().map(line).collect();
    format!("{}\n\n{USAGE}", lines.join("\n"))
}

fn line(job: &JobStatus) -> String {
    let mut state = match (job.state, job.exit_code) {
        (JobState::Running, _) => {
            let started = UNIX_EPOCH + Duration::from_millis(job.started_at);
            let age = started.elapsed().unwrap_or_default();
            let age = humantime::format_duration(Duration::from_secs(age.as_secs()));
            format!("running for {age}")
        }
        (JobState::Stopped, _) => "stopped".to_owned(),
        (JobState::Exited, Some(code)) => format!("exit code {code}"),
        (JobState::Exited, None) => "exit status unknown".to_owned(),
    };
    for port in &job.ports {
        state = format!("{state}, port {port}");
    }
    format!("- {} `{}` ({state})", job.id, escape_line(&job.command))
}

/// Opens the ports of a job, usually only one. Typing the command counts as approval.
async fn open(shell: &Shell, id: u32, outbox: &mut Outbox) -> Result<String, ToolError> {
    shell.job_status(id)?;
    let jobs = shell.jobs().await;
    let ports = jobs
        .into_iter()
        .find(|job| job.id == id)
        .map(|job| job.ports);
    let mut lines = Vec::new();
    for port in ports.unwrap_or_default() {
        let url = shell.open_port(id, port).await?;
        lines.push(format!("port {port}: <{url}>"));
        outbox.push(SessionEvent::Opened(url));
    }
    if lines.is_empty() {
        return Err(ToolError(format!("job {id} isn't listening on a port")));
    }
    Ok(lines.join("\n"))
}

/// A job's output.
fn output(shell: &Shell, id: u32) -> Result<String, ToolError> {
    let JobOutput { text, line, .. } = shell.job_output(id, 0, false)?;
    let text = format!("{text}{line}");
    let fence = fence(&text);
    Ok(format!("{fence}\n{}\n{fence}", text.trim_end()))
}

#[cfg(test)]
mod tests {
    use tokio::sync::watch;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_changes_is_ten_reports_a_second_and_the_last_change_is_reported() {
        let (sender, receiver) = watch::channel(());
        let mut changes = JobChanges::new(receiver);
        let flood = tokio::spawn(async move {
            for _ in 0..3000 {
                sender.send_replace(());
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        let (begun, mut reports) = (Instant::now(), Vec::new());
        loop {
            tokio::select! {
                Ok(()) = changes.next() => reports.push(begun.elapsed()),
                // A session that does something else in between loses no change.
                () = tokio::time::sleep(Duration::from_millis(7)) => {}
                else => break,
            }
            if flood.is_finished() && begun.elapsed() > Duration::from_secs(4) {
                break;
            }
        }
        let within = |second| reports.iter().filter(|at| at.as_secs() == second).count();
        assert_eq!([0, 1, 2].map(within), [10; 3], "{reports:?}");
        assert!(
            *reports.last().unwrap() >= Duration::from_millis(2999),
            "{reports:?}"
        );
    }
}
