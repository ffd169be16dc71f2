//! Jobs: commands in the background, with one interface for the model and one for the person.
//!
//! The end of a job is reported to each of them once: to the model by the call that reads the job, or with the next
//! prompt.

#[cfg(target_os = "linux")]
use std::io;
use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use tokio::sync::watch;

#[cfg(target_os = "linux")]
use super::forward::Forward;
use super::{JOBS, Job, Shell, StoppedBy};
use crate::domain::{JobOutput, JobState, JobStatus, ToolError, lock};

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

    /// Whether a command runs in the background.
    pub fn has_job(&self) -> bool {
        let running = self.0.running();
        running.background.values().any(|job| !job.has_ended())
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
    pub fn jobs_changed(&self) -> watch::Receiver<()> {
        self.0.jobs_changed.subscribe()
    }

    /// A job's output from `offset` on, a number of bytes, with its colors if a terminal shows it.
    ///
    /// # Errors
    /// There is no such job, or its output cannot be read.
    pub fn job_output(&self, id: u32, offset: u64, colors: bool) -> Result<JobOutput, ToolError> {
        let job = self.known(id)?;
        job.output
            .from(offset, colors)
            .map_err(|error| ToolError(format!("the output of job {id}: {error}")))
    }

    /// A job as a person sees it, without its ports.
    ///
    /// # Errors
    /// There is no such job.
    pub fn job_status(&self, id: u32) -> Result<JobStatus, ToolError> {
        self.known(id).map(|job| job.status())
    }

    /// Waits for the command of a call, unless the person moves it to the background.
    pub(crate) fn wait_in(&self, call_id: &str, job: &Arc<Job>) {
        let mut running = self.0.running();
        running.calls.retain(|_, job| job.strong_count() > 0);
        running
            .calls
            .insert(call_id.to_owned(), Arc::downgrade(job));
    }

    /// Moves the command of a running call to the background.
    ///
    /// # Errors
    /// The call runs no command, or there are too many jobs.
    pub fn run_in_background(&self, call_id: &str) -> Result<JobStatus, ToolError> {
        let job = self.0.running().calls.get(call_id).and_then(Weak::upgrade);
        let job = job
            .filter(|job| !job.has_ended())
            .ok_or_else(|| ToolError("the command has already ended".to_owned()))?;
        self.make_room()?;
        job.background.cancel();
        Ok(job.status())
    }

    /// Stops a job for the person; the model learns of it with the next prompt.
    ///
    /// # Errors
    /// There is no such job.
    pub async fn stop_job(&self, id: u32) -> Result<JobStatus, ToolError> {
        let job = self.known(id)?;
        job.stopped_by(StoppedBy::Person);
        job.stop().await;
        Ok(job.status())
    }

    /// The host's port for a port of a job that is already reachable: because it was opened, or because the job uses the
    /// host's network.
    ///
    /// # Errors
    /// There is no such job, it does not listen on that port, or nothing can reach it.
    pub async fn reached_at(&self, id: u32, port: u16) -> Result<Option<u16>, ToolError> {
        let job = self.known(id)?;
        let looked = tokio::task::spawn_blocking(move || reached_from(&job, port)).await;
        match looked.map_err(|error| ToolError(error.to_string()))? {
            Some(ReachedFrom::Host) => Ok(Some(port)),
            Some(ReachedFrom::Opened(there)) => Ok(Some(there)),
            Some(ReachedFrom::Network) => Ok(None),
            None => Err(ToolError(format!(
                "job {id} does not listen on port {port}"
            ))),
        }
    }

    /// Opens a port of a job to the host's loopback interface, until the job ends, and gives the address.
    ///
    /// # Errors
    /// There is no such job, it does not listen on that port, or that cannot be reached.
    pub async fn open_port(&self, id: u32, port: u16) -> Result<String, ToolError> {
        let there = match self.reached_at(id, port).await? {
            Some(there) => there,
            None => self.forward(id, port).await?,
        };
        Ok(format!("http://127.0.0.1:{there}/"))
    }

    #[cfg(target_os = "linux")]
    async fn forward(&self, id: u32, port: u16) -> Result<u16, ToolError> {
        let job = self.known(id)?;
        let failed = |error: io::Error| ToolError(format!("port {port} of job {id}: {error}"));
        // Made before the job was started.
        let network = self
            .0
            .sandbox
            .get()
            .and_then(|sandbox| sandbox.network().ok()?);
        let (Some(network), Some(own)) = (network, &self.0.surroundings.program) else {
            return Err(failed(io::ErrorKind::Unsupported.into()));
        };
        let forward = Forward::open(network, own, port).await.map_err(failed)?;
        let there = forward.address().map_err(failed)?.port();
        lock(&job.opened).insert(port, there);
        self.0.running().tasks.spawn(async move {
            tokio::select! {
                _ended = job.ended() => {}
                Err(error) = forward.run() => tracing::warn!("a port of job {id} is closed: {error}"),
            }
            lock(&job.opened).remove(&port);
        });
        Ok(there)
    }

    #[cfg(not(target_os = "linux"))]
    async fn forward(&self, id: u32, port: u16) -> Result<u16, ToolError> {
        std::future::ready(Err(ToolError(format!(
            "port {port} of job {id} cannot be opened on this system"
        ))))
        .await
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

    /// Sets the turn that commands started from now on belong to.
    pub fn begin_turn(&self, turn: u64) {
        self.0.turn.store(turn, Ordering::Relaxed);
    }

    /// Jobs that have ended and were not reported to the model yet, one line each.
    pub fn ended_jobs(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for job in self.0.running().background.values() {
            if !job.has_ended() || job.told.swap(true, Ordering::Relaxed) {
                continue;
            }
            let status = job.status();
            let how = match (status.state, status.exit_code) {
                (JobState::Stopped, _) => "was stopped by the user".to_owned(),
                (_, Some(code)) => format!("has ended with exit code {code}"),
                (_, None) => "has ended".to_owned(),
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

/// Where a port that a job listens on can be reached.
enum ReachedFrom {
    /// The host.
    Host,
    /// The host, at this port.
    Opened(u16),
    /// The network of the session only.
    Network,
}

/// `None` if the job does not listen there. Blocks.
fn reached_from(job: &Arc<Job>, port: u16) -> Option<ReachedFrom> {
    if !with_ports(job).ports.contains(&port) {
        return None;
    }
    if let Some(there) = lock(&job.opened).get(&port) {
        return Some(ReachedFrom::Opened(*there));
    }
    let network = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net")).ok();
    let of_job = network(&job.process?.to_string());
    Some(if of_job.is_some() && of_job == network("self") {
        ReachedFrom::Host
    } else {
        ReachedFrom::Network
    })
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
