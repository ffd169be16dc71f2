//! One command from its start to its end.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::changed::Guarded;
use super::sandbox::BEAT;
use super::tree::{TIMEOUT, Tree};
use super::{Output, Prepared, StandIn, command};
use crate::domain::{JobState, JobStatus};
use crate::process::Live;
use crate::workspace::{Workspace, blocking};

/// A command that runs, or did. It is stopped when this is dropped.
#[derive(Debug)]
pub(crate) struct Job {
    /// Its number in the session.
    pub id: u32,
    pub command: String,
    /// The turn it belongs to.
    pub turn: u64,
    pub started: SystemTime,
    /// The process that everything it starts descends from.
    pub process: Option<u32>,
    pub output: Arc<Output>,
    /// The unsaved texts it reads.
    pub stand_ins: Vec<StandIn>,
    ended: watch::Receiver<Option<Arc<Ended>>>,
    /// Whether a call has reported its end.
    reported: AtomicBool,
    /// Whether its end was reported to the model.
    pub told: AtomicBool,
    /// Its ports that are open on the host, and the ports they have there.
    pub opened: Mutex<BTreeMap<u16, u16>>,
    /// Who stopped it; `None` if it ended on its own.
    pub stopped: OnceLock<StoppedBy>,
    /// Cancelled when the person moves it to the background.
    pub background: CancellationToken,
    stop: CancellationToken,
    _stop: DropGuard,
}

/// Who stopped a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoppedBy {
    Model,
    Person,
}

/// How a command ended.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// Its exit status; `None` if unknown.
    status: Option<ExitStatus>,
    /// How long it ran.
    pub ran: Duration,
    /// Notes for the model about files restored after it.
    pub notes: Vec<String>,
}

impl Ended {
    /// Its exit code as shells report it: 128 plus the signal that ended it.
    pub fn code(&self) -> Option<i32> {
        #[cfg(unix)]
        let signal = self
            .status
            .and_then(|status| std::os::unix::process::ExitStatusExt::signal(&status));
        #[cfg(not(unix))]
        let signal = None::<i32>;
        self.status?.code().or(signal.map(|signal| 128 + signal))
    }
}

impl Job {
    /// Waits for its end.
    pub async fn ended(&self) -> Arc<Ended> {
        let mut ended = self.ended.clone();
        let end = ended
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|end| end.clone());
        end.unwrap_or_default()
    }

    /// Kills it and everything it started, and waits until they are gone.
    pub async fn stop(&self) -> Arc<Ended> {
        self.stop.cancel();
        self.ended().await
    }

    pub fn has_ended(&self) -> bool {
        self.ended.borrow().is_some()
    }

    /// A call reports its end.
    pub fn report(&self) {
        self.told.store(true, Ordering::Relaxed);
        self.reported.store(true, Ordering::Relaxed);
    }

    /// Notes who stops it, if it runs.
    pub fn stopped_by(&self, who: StoppedBy) {
        if !self.has_ended() {
            self.stopped.get_or_init(|| who);
        }
    }

    /// As a person sees it.
    pub fn status(&self) -> JobStatus {
        let ended = self.ended.borrow().clone();
        let (state, exit_code) = match (ended, self.stopped.get()) {
            (None, _) => (JobState::Running, None),
            (Some(_), Some(_)) => (JobState::Stopped, None),
            (Some(ended), None) => (JobState::Exited, ended.code()),
        };
        let started = self.started.duration_since(UNIX_EPOCH).unwrap_or_default();
        JobStatus {
            id: self.id,
            command: self.command.clone(),
            state,
            exit_code,
            started_at: u64::try_from(started.as_millis()).unwrap_or(u64::MAX),
            ports: Vec::new(),
        }
    }

    pub fn is_reported(&self) -> bool {
        self.reported.load(Ordering::Relaxed)
    }
}

/// Starts a command; the returned future has to be run to its end.
pub(super) fn spawn(
    id: u32,
    turn: u64,
    prepared: Prepared,
    output: Arc<Output>,
    live: Option<Live>,
    stop: CancellationToken,
) -> io::Result<(Job, impl Future<Output = ()> + use<>)> {
    let Prepared {
        shown,
        invocation,
        variables,
        cwd,
        guard,
        workspace,
        stand_ins,
        alive,
        scratch: _,
        _scratch: scratch,
    } = prepared;
    let (reader, writer) = io::pipe()?;
    let mut command = command(&invocation.program);
    invocation.add_arguments(&mut command);
    command.env_clear().envs(variables).current_dir(cwd);
    command.stdout(writer.try_clone()?).stderr(writer);
    let begun = Instant::now();
    let tree = Tree::start(command)?;
    let reader_side = Arc::clone(&output);
    let listening = tokio::task::spawn_blocking(move || reader_side.listen(reader, live.as_ref()));
    let (sender, ended) = watch::channel(None);
    let reported = AtomicBool::new(false);
    let job = Job {
        id,
        command: shown,
        turn,
        started: SystemTime::now(),
        process: tree.process(),
        output,
        stand_ins,
        ended,
        reported,
        told: AtomicBool::new(false),
        opened: Mutex::default(),
        stopped: OnceLock::new(),
        background: CancellationToken::new(),
        stop: stop.clone(),
        _stop: stop.clone().drop_guard(),
    };
    let tend = async move {
        let status = noted(&alive, tend(tree, &stop)).await;
        let ran = begun.elapsed();
        gone(listening).await;
        let notes = restore(guard, workspace).await;
        drop(scratch);
        let _nobody_waits = sender.send(Some(Arc::new(Ended { status, ran, notes })));
    };
    Ok((job, tend))
}

/// Does `work`, and notes in the file `alive` again and again that it goes on.
async fn noted<T>(alive: &Path, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    loop {
        if let Ok(done) = tokio::time::timeout(BEAT, &mut work).await {
            return done;
        }
        let alive = alive.to_owned();
        let _matters_only_after_a_crash = blocking(move || std::fs::write(alive, ".")).await;
    }
}

/// Waits for the exit, or kills.
async fn tend(mut tree: Tree, stop: &CancellationToken) -> Option<ExitStatus> {
    match stop.run_until_cancelled(tree.exit()).await {
        Some(status) => status.ok(),
        None => tree.end().await.ok(),
    }
}

/// Waits until nothing holds the output any more.
async fn gone(listening: JoinHandle<()>) {
    match tokio::time::timeout(TIMEOUT, listening).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!("reading a command's output panicked: {error}"),
        Err(_) => tracing::warn!("a process started by a command is still running"),
    }
}

async fn restore(guarded: Option<Guarded>, workspace: Workspace) -> Vec<String> {
    let Some(guarded) = guarded else {
        return Vec::new();
    };
    let restored = tokio::task::spawn_blocking(move || guarded.restore(&workspace)).await;
    restored.unwrap_or_else(|error| {
        tracing::error!("checking protected files panicked: {error}");
        vec!["protected files could not be checked; tell the user".to_owned()]
    })
}
