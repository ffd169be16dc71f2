//! Jobs: commands that go on in the background, for the model that started them and for the person who watches.
//!
//! An end is reported once to each of them: to the model by the call that reads it, or before its next prompt.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::watch;

use super::{JOBS, Job, Shell, StoppedBy};
use crate::domain::{JobOutput, JobState, JobStatus, ToolError};

impl Shell {
    /// Makes room for another job by dropping the one that ended first.
    ///
    /// # Errors
    /// All of them are running.
    pub(crate) fn make_room(&self) -> Result<(), ToolError> {
        let mut running = self.0.running();
        if running.background.len() < JOBS {
            return Ok(());
        }
        let ended = running
            .background
            .iter()
            .find_map(|(id, job)| job.has_ended().then_some(*id));
        let ended = ended.ok_or_else(|| {
            ToolError(format!(
                "{JOBS} jobs are already running; stop one of them first"
            ))
        })?;
        running.background.remove(&ended);
        Ok(())
    }

    /// Lets a command continue after its call.
    pub(crate) fn keep(&self, job: &Arc<Job>) {
        let mut running = self.0.running();
        running.background.insert(job.id, Arc::clone(job));
        let (changed, of) = (self.0.jobs_changed.clone(), Arc::clone(job));
        running.tasks.spawn(async move {
            of.ended().await;
            changed.send_replace(());
        });
        drop(running);
        self.0.jobs_changed.send_replace(());
    }

    /// A job, running or ended.
    pub(crate) fn job(&self, id: u32) -> Option<Arc<Job>> {
        self.0.running().background.get(&id).cloned()
    }

    /// All jobs, the oldest first.
    pub async fn jobs(&self) -> Vec<JobStatus> {
        let jobs: Vec<_> = self.0.running().background.values().cloned().collect();
        let look = move || jobs.iter().map(with_ports).collect();
        let looked = tokio::task::spawn_blocking(look).await;
        looked.unwrap_or_else(|error| {
            tracing::error!("looking for ports panicked: {error}");
            Vec::new()
        })
    }

    /// Changes whenever a job begins or ends.
    #[must_use]
    pub fn jobs_changed(&self) -> watch::Receiver<()> {
        self.0.jobs_changed.subscribe()
    }

    /// A piece of a job's output from `offset`, a number of bytes; `None` for its end.
    ///
    /// # Errors
    /// There is no such job, or its output cannot be read.
    pub fn job_output(&self, id: u32, offset: Option<u64>) -> Result<JobOutput, ToolError> {
        let job = self.known(id)?;
        job.output
            .piece(offset)
            .map_err(|error| ToolError(format!("the output of job {id}: {error}")))
    }

    /// Stops a job as the person wants it; the model is told before its next prompt.
    ///
    /// # Errors
    /// There is no such job.
    pub async fn stop_job(&self, id: u32) -> Result<JobStatus, ToolError> {
        let job = self.known(id)?;
        job.stopped_by(StoppedBy::Person);
        job.stop().await;
        Ok(job.status())
    }

    /// Stops the jobs of these turns, which the person undoes. The model will not remember them.
    pub async fn stop_jobs_of(&self, turns: RangeInclusive<u64>) {
        let jobs: Vec<_> = self.0.running().background.values().cloned().collect();
        for job in jobs.into_iter().filter(|job| turns.contains(&job.turn)) {
            job.stopped_by(StoppedBy::Person);
            job.told.store(true, Ordering::Relaxed);
            job.stop().await;
        }
    }

    /// What is started from now on belongs to this turn.
    pub fn begin_turn(&self, turn: u64) {
        self.0.turn.store(turn, Ordering::Relaxed);
    }

    /// What the model was not told yet of jobs that have ended, a line each.
    #[must_use]
    pub fn ended_jobs(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for job in self.0.running().background.values() {
            if !job.has_ended() || job.told.swap(true, Ordering::Relaxed) {
                continue;
            }
            let how = match job.status().state {
                JobState::Running | JobState::Exited(None) => "has ended".to_owned(),
                JobState::Exited(Some(code)) => format!("has ended with exit code {code}"),
                JobState::Stopped => "was stopped by the user".to_owned(),
            };
            lines.push(format!("(job {} {how}: `{}`)", job.id, job.command));
        }
        lines
    }

    fn known(&self, id: u32) -> Result<Arc<Job>, ToolError> {
        let unknown = || {
            ToolError(format!(
                "unknown job {id}; `/jobs` lists the jobs of this session"
            ))
        };
        self.job(id).ok_or_else(unknown)
    }
}

/// A job with the ports that its processes listen on.
fn with_ports(job: &Arc<Job>) -> JobStatus {
    let mut status = job.status();
    #[cfg(target_os = "linux")]
    if let (JobState::Running, Some(process)) = (status.state, job.process) {
        status.ports = super::ports::listening(process);
    }
    status
}
