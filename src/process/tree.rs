//! A program with everything it starts, which ends with it.
//!
//! On Unix the program is the [`supervisor`](super::supervisor), which sees to that, also when this process is killed: its
//! standard input is a lifeline. On Windows it is in a job object, which the system ends with the last handle to it.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::process::Command;

/// How long to wait for a killed tree to be gone. The supervisor itself gives up after five seconds; the rest is for
/// its own start, since whatever it has not found yet would outlive it.
pub(super) const TIMEOUT: Duration = Duration::from_secs(15);

/// A tree of processes. Dropping it ends it.
pub(super) struct Tree {
    #[cfg(unix)]
    first: tokio::process::Child,
    #[cfg(unix)]
    lifeline: Option<tokio::process::ChildStdin>,
    #[cfg(windows)]
    first: super::windows::InJob,
}

#[cfg(unix)]
impl Tree {
    /// Starts a program, which gets a lifeline as its standard input.
    pub fn start(mut command: Command) -> io::Result<Self> {
        command.stdin(std::process::Stdio::piped());
        let mut first = command.spawn()?;
        let lifeline = first.stdin.take();
        Ok(Self { first, lifeline })
    }

    /// Its first process, while that runs.
    pub fn process(&self) -> Option<u32> {
        self.first.id()
    }

    /// Waits for its exit; then all of it is gone.
    pub async fn exit(&mut self) -> io::Result<ExitStatus> {
        self.first.wait().await
    }

    /// Ends it, whatever that takes.
    pub async fn end(&mut self) -> io::Result<ExitStatus> {
        drop(self.lifeline.take());
        if let Ok(status) = tokio::time::timeout(TIMEOUT, self.first.wait()).await {
            return status;
        }
        self.first.kill().await?;
        self.first.wait().await
    }
}

#[cfg(windows)]
impl Tree {
    /// Starts a program.
    pub fn start(mut command: Command) -> io::Result<Self> {
        command.stdin(std::process::Stdio::null());
        Ok(Self {
            first: super::windows::in_job(command)?,
        })
    }

    /// Its first process, while that runs.
    pub fn process(&self) -> Option<u32> {
        self.first.inner().id()
    }

    /// Waits for its exit, then kills what it left running.
    pub async fn exit(&mut self) -> io::Result<ExitStatus> {
        let status = self.first.inner_mut().wait().await;
        self.first.start_kill()?;
        status
    }

    /// Ends it.
    pub async fn end(&mut self) -> io::Result<ExitStatus> {
        self.first.start_kill()?;
        let exit = tokio::time::timeout(TIMEOUT, self.first.inner_mut().wait()).await;
        exit.map_err(|_elapsed| io::Error::from(io::ErrorKind::TimedOut))?
    }
}
