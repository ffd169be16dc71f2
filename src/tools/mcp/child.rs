//! The program of a server: started with exactly the given environment, and ended with its whole process tree.
#![expect(
    clippy::disallowed_methods,
    reason = "the one place where programs of MCP servers are started"
)]

use crate::domain::lock;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How long a program may take to end after its input is closed.
const GRACE: Duration = Duration::from_millis(300);
/// How much of its standard error is kept, in bytes.
const LAST_WORDS: usize = 2 << 10;

/// A running program. Dropping it kills it and all its descendants.
pub(super) struct Child {
    process: Process,
    /// The process group: the program and its children.
    #[cfg(unix)]
    group: Option<u32>,
    last_words: Arc<Mutex<Vec<u8>>>,
    listening: JoinHandle<()>,
}

impl Child {
    /// Starts a program; also returns its output and input.
    pub fn start(
        words: &[String],
        environment: &BTreeMap<String, String>,
        folder: &Path,
    ) -> io::Result<(Self, ChildStdout, ChildStdin)> {
        let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        #[cfg(windows)]
        let program = &crate::process::windows::find_program(program, environment);
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(environment)
            .current_dir(folder)
            .kill_on_drop(true);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = spawn(command)?;
        let (input, output, errors) = streams(&mut process).ok_or(io::ErrorKind::BrokenPipe)?;
        let last_words = Arc::default();
        let listening = tokio::spawn(listen(errors, Arc::clone(&last_words)));
        Ok((
            Self {
                #[cfg(unix)]
                group: process.id(),
                process,
                last_words,
                listening,
            },
            output,
            input,
        ))
    }

    /// Why it stopped talking.
    pub async fn why(&mut self) -> String {
        let how = match timeout(GRACE, self.process.wait()).await {
            Ok(Ok(status)) => format!("ended ({status})"),
            _ => "closed its output".to_owned(),
        };
        // Its last output is complete when the pipe ends, unless a child of its own holds it open.
        let _held_open = timeout(GRACE, &mut self.listening).await;
        let words = lock(&self.last_words);
        let text = String::from_utf8_lossy(&words);
        match text.lines().map(str::trim).rfind(|line| !line.is_empty()) {
            Some(line) => format!("{how}: {line}"),
            None => how,
        }
    }

    /// Closes its input and waits a moment for it to end; then kills it.
    pub async fn stop(mut self) {
        let _still_there = timeout(GRACE, self.process.wait()).await;
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.listening.abort();
        #[cfg(unix)]
        if let Some(group) = self
            .group
            .and_then(|id| rustix::process::Pid::from_raw(id.cast_signed()))
        {
            let _nobody_left =
                rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

/// Its standard input, output and error.
type Streams = (ChildStdin, ChildStdout, ChildStderr);

#[cfg(unix)]
type Process = tokio::process::Child;

/// Starts it as the first of a process group.
#[cfg(unix)]
fn spawn(mut command: Command) -> io::Result<Process> {
    command.process_group(0).spawn()
}

#[cfg(unix)]
fn streams(process: &mut Process) -> Option<Streams> {
    Some((
        process.stdin.take()?,
        process.stdout.take()?,
        process.stderr.take()?,
    ))
}

#[cfg(windows)]
type Process = crate::process::windows::InJob;

#[cfg(windows)]
use crate::process::windows::in_job as spawn;

#[cfg(windows)]
fn streams(process: &mut Process) -> Option<Streams> {
    Some((
        process.stdin().take()?,
        process.stdout().take()?,
        process.stderr().take()?,
    ))
}

/// Keeps the tail of a program's standard error; all of it is logged.
async fn listen(mut errors: ChildStderr, last_words: Arc<Mutex<Vec<u8>>>) {
    let mut piece = vec![0; LAST_WORDS];
    while let Ok(length @ 1..) = errors.read(&mut piece).await {
        let piece = piece.get(..length).unwrap_or_default();
        tracing::debug!("an MCP server says: {}", String::from_utf8_lossy(piece));
        let mut words = lock(&last_words);
        words.extend_from_slice(piece);
        let excess = words.len().saturating_sub(LAST_WORDS);
        words.drain(..excess);
    }
}
