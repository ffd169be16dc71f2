//! Runs the model's commands: in a sandbox, with their output captured, and ended as a process tree.
//!
//! Every process a command starts is killed when it exits, and all commands end with their session. A command is over
//! when it exits; its process tree is gone once no process has the other end of its output pipe open.

#![expect(clippy::disallowed_methods, reason = "this module starts processes")]

mod changed;
mod committed;
#[cfg(target_os = "linux")]
mod forward;
mod job;
mod jobs;
pub mod keyring;
mod live;
mod once;
mod output;
mod plain;
#[cfg(target_os = "linux")]
mod ports;
mod prepared;
mod sandbox;
mod shadow;
mod shell;
mod stand_in;
#[cfg(unix)]
pub mod supervisor;
mod tree;
#[cfg(windows)]
pub(crate) mod windows;

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use tokio::sync::{OnceCell, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use self::changed::Changed;
pub(crate) use self::changed::Reach;
use self::changed::Watch;
pub use self::committed::committed;
pub(crate) use self::job::{Ended, Job, StoppedBy};
pub use self::live::Live;
pub use self::once::Ran;
pub(crate) use self::output::Output;
use self::prepared::Prepared;
use self::sandbox::{Invocation, Scratch};
pub use self::sandbox::{Network, Sandbox};
pub use self::shadow::{Applied, Shadow};
pub use self::shell::{Dialect, ShellProgram};
pub(crate) use self::stand_in::{StandIn, TakenOver};
#[cfg(target_os = "linux")]
use crate::domain::find_program_in;
use crate::domain::{CommandLine, ToolError, lock};
use crate::workspace::{Unsaved, Workspace, blocking};

/// How many commands' outputs are kept for `read_file`.
const OUTPUTS: usize = 32;
/// Longer than the resolution of file times.
const TICK: Duration = Duration::from_millis(20);
/// How many background commands are kept, including ended ones.
const JOBS: usize = 8;

/// The environment of a session's commands.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The variables for commands; none of them is a secret.
    pub variables: BTreeMap<String, String>,
    /// This program, which on Unix starts commands as `supervisor`.
    pub program: Option<PathBuf>,
    /// The folder for data that lasts as long as a session.
    pub state: Option<PathBuf>,
    /// The session.
    pub session: Option<String>,
    /// tandem's own files and folders, hidden from commands.
    pub hidden: Vec<PathBuf>,
    /// How long a command may run unless the model requests another timeout.
    pub timeout: Option<Duration>,
}

/// The commands of a session. Cheap to clone; clones share state.
#[derive(Debug, Clone, Default)]
pub struct Shell(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    surroundings: Surroundings,
    sandbox: OnceCell<Sandbox>,
    running: Mutex<Running>,
    watch: Arc<Watch>,
    /// The turn that commands are started in.
    turn: AtomicU64,
    /// Changes whenever a job begins or ends.
    jobs_changed: watch::Sender<()>,
    end: CancellationToken,
}

#[derive(Debug, Default)]
struct Running {
    scratch: Option<Arc<Scratch>>,
    last: u32,
    outputs: VecDeque<(u32, Arc<Output>)>,
    background: BTreeMap<u32, Arc<Job>>,
    /// The commands that calls wait for, by the call's id.
    calls: BTreeMap<String, Weak<Job>>,
    tasks: JoinSet<()>,
}

impl Shell {
    /// Commands in this environment; nothing runs yet.
    pub fn new(surroundings: Surroundings) -> Self {
        Self(Arc::new(Shared {
            surroundings,
            ..Shared::default()
        }))
    }

    /// What command lines are written in.
    pub fn dialect(&self) -> Dialect {
        self.0.surroundings.shell().dialect
    }

    /// The shell that reads command lines, by name.
    pub fn program(&self) -> String {
        let program = self.0.surroundings.shell().program;
        program
            .file_stem()
            .unwrap_or(program.as_os_str())
            .to_string_lossy()
            .into_owned()
    }

    /// The default timeout.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.0.surroundings.timeout
    }

    /// Whether commands in this workspace run in a sandbox.
    pub async fn holds(&self, workspace: &Workspace) -> bool {
        self.0
            .sandbox
            .get_or_init(|| Sandbox::find(&self.0.surroundings))
            .await;
        self.0.holding(workspace).is_some()
    }

    /// Whether commands of this workspace read the unsaved text of open documents.
    pub(crate) async fn shows_unsaved(&self, workspace: &Workspace) -> bool {
        self.holds(workspace).await && self.0.sandbox.get().is_some_and(Sandbox::shows_unsaved)
    }

    /// Whether sandboxed commands of this workspace share a network.
    pub async fn shares_network(&self, workspace: &Workspace) -> bool {
        self.holds(workspace).await
            && self
                .0
                .sandbox
                .get()
                .is_some_and(|sandbox| sandbox.shares_network().is_ok())
    }

    /// Whether a sandboxed command reaches what another one serves on `localhost`.
    pub(crate) async fn shares_localhost(&self, workspace: &Workspace) -> bool {
        // macOS's sandbox leaves them that of the machine.
        cfg!(target_os = "macos") || self.shares_network(workspace).await
    }

    /// Starts a command that sees the `unsaved` texts in place of their files.
    ///
    /// # Errors
    /// It cannot be started as shown.
    pub(crate) async fn start(
        &self,
        workspace: &Workspace,
        line: &CommandLine,
        live: Option<Live>,
        unsaved: Vec<Unsaved>,
    ) -> Result<Arc<Job>, ToolError> {
        if self.holds(workspace).await != line.sandboxed {
            return Err(ToolError(
                "the sandbox differs from the one shown; nothing was run".to_owned(),
            ));
        }
        let is_fixed = match self.0.sandbox.get() {
            Some(sandbox) if !unsaved.is_empty() => !sandbox.covers().await,
            _ => true,
        };
        let (shared, workspace, line) = (Arc::clone(&self.0), workspace.clone(), line.clone());
        let failed =
            |error: io::Error| ToolError(format!("the command cannot be started: {error}"));
        let prepared = blocking(move || {
            // Before anything is looked at, so that no save is missed.
            let written = workspace.documents().watch_writes();
            shared.look_before(&workspace, line.undo)?;
            shared.prepare(&workspace, &line, (unsaved, is_fixed), Some(written))
        });
        let prepared = prepared.await.map_err(failed)?;
        let mut running = self.0.running();
        running.last += 1;
        let id = running.last;
        let output = Arc::new(Output::new(
            format!("output:{id}"),
            prepared.scratch.as_deref(),
        ));
        running.outputs.push_back((id, Arc::clone(&output)));
        if running.outputs.len() > OUTPUTS {
            running.outputs.pop_front();
        }
        let stop = self.0.end.child_token();
        let turn = self.0.turn.load(Ordering::Relaxed);
        let (job, task) = job::spawn(id, turn, prepared, output, live, stop).map_err(failed)?;
        while running.tasks.try_join_next().is_some() {}
        running.tasks.spawn(task);
        Ok(Arc::new(job))
    }

    /// The output of the command with this number.
    pub(crate) fn output(&self, id: u32) -> Option<Arc<Output>> {
        self.0
            .running()
            .outputs
            .iter()
            .find(|(other, _)| *other == id)
            .map(|(_, output)| Arc::clone(output))
    }

    /// Stops all commands and waits until they have ended.
    pub async fn end(&self) {
        self.0.end.cancel();
        let mut tasks = std::mem::take(&mut self.0.running().tasks);
        while tasks.join_next().await.is_some() {}
        let _last = self.0.running().scratch.take();
    }
}

impl Shared {
    /// The sandbox that holds commands in this workspace, once it is known.
    fn holding(&self, workspace: &Workspace) -> Option<&Sandbox> {
        let (surroundings, roots) = (&self.surroundings, workspace.roots());
        let home = surroundings.home();
        let sandbox = self.sandbox.get()?;
        let holds = sandbox.holds(roots, home.as_deref(), &surroundings.hidden);
        holds.then_some(sandbox)
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        lock(&self.running)
    }

    /// Whether a job in the background runs, or ended without a report.
    fn has_jobs(&self) -> bool {
        self.running()
            .background
            .values()
            .any(|job| !job.is_reported())
    }

    fn scratch(&self) -> io::Result<Arc<Scratch>> {
        let mut running = self.running();
        if let Some(scratch) = &running.scratch {
            return Ok(Arc::clone(scratch));
        }
        let scratch = Arc::new(Scratch::new(self.surroundings.commands().as_deref())?);
        running.scratch = Some(Arc::clone(&scratch));
        Ok(scratch)
    }
}

impl Surroundings {
    #[cfg(unix)]
    fn path(&self) -> &str {
        path_of(&self.variables)
    }

    /// Where the folders of sessions are.
    fn commands(&self) -> Option<PathBuf> {
        self.state.as_ref().map(|state| state.join("commands"))
    }

    /// The home folder, without symlinks.
    fn home(&self) -> Option<PathBuf> {
        let home = self
            .variables
            .get("HOME")
            .or_else(|| self.variables.get("USERPROFILE"))?;
        Path::new(home).canonicalize().ok()
    }

    /// The program with this name in the search path of commands. Workspaces are skipped: a command may have put it there.
    #[cfg(target_os = "linux")]
    fn which(&self, name: &str) -> Option<PathBuf> {
        find_program_in(self.path().as_ref(), name)
    }

    /// The shell that reads command lines.
    pub fn shell(&self) -> ShellProgram {
        ShellProgram::find(&self.variables)
    }

    /// What starts `argv` with no sandbox.
    #[cfg(unix)]
    fn plainly(&self, argv: Vec<OsString>, _dialect: Dialect) -> io::Result<Invocation> {
        self.supervised(&sandbox::Start::Plainly, argv)
    }

    /// What starts `argv` with no sandbox: nothing but a job object, which [`tree`] makes, is needed to end it.
    #[cfg(windows)]
    #[expect(clippy::unused_self, reason = "on Unix this program starts it")]
    fn plainly(&self, argv: Vec<OsString>, dialect: Dialect) -> io::Result<Invocation> {
        let mut argv = argv.into_iter();
        let program = argv.next().ok_or(io::ErrorKind::InvalidInput)?.into();
        Ok(Invocation {
            program,
            arguments: argv.collect(),
            verbatim: dialect == Dialect::Cmd,
        })
    }

    /// What starts `argv` by way of the [`supervisor`].
    #[cfg(unix)]
    fn supervised(&self, start: &sandbox::Start, argv: Vec<OsString>) -> io::Result<Invocation> {
        let missing = "the path of this program is unknown";
        let program = self
            .program
            .clone()
            .ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, missing))?;
        let mut arguments = vec![OsString::from("sandbox-exec")];
        match start {
            sandbox::Start::Plainly => {}
            sandbox::Start::Filtered { network } => {
                arguments.push("--filtered".into());
                arguments.extend(network.then(|| "--network".into()));
            }
            sandbox::Start::Restricted(how) => {
                arguments.extend(["--restrict".into(), serde_json::to_string(how)?.into()]);
            }
        }
        arguments.push("--".into());
        arguments.extend(argv);
        Ok(Invocation { program, arguments })
    }
}

/// The search path.
fn path_of(variables: &BTreeMap<String, String>) -> &str {
    variables
        .get("PATH")
        .map_or("/usr/local/bin:/usr/bin:/bin", String::as_str)
}

fn command(program: &Path) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(program);
    command.kill_on_drop(true);
    command
}
