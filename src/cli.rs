//! The command line: one file a subcommand. Everything a command prints goes through a `Write`, so that a closed pipe is
//! an error like any other and not a panic.

mod completions;
mod config;
mod demo;
mod doctor;
mod eval;
mod init;
mod logging;
mod logs;
mod man;
mod models;
mod permissions;
mod replay;
mod run;
mod serve;
mod sessions;
mod transcript;

use std::process::ExitCode;
use std::{fmt, io};

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::config::{Environment, Flags, Settings, Sources};
use crate::server::{Carrier, LoadSettings};
use crate::text::display;
#[cfg(unix)]
use crate::tools::process::supervisor;

pub use logging::log;

/// A coding agent that your editor runs as a language server.
#[derive(Debug, Parser)]
#[command(name = "tandem", version, about, propagate_version = true, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve an editor as a language server on standard input and output
    Lsp(serve::LspArgs),
    /// Serve an editor as an agent of the Agent Client Protocol on standard input and output
    Acp,
    /// See the main job done, with no key and no network
    Demo(demo::Args),
    /// Find what keeps tandem from working
    Doctor(doctor::Args),
    /// Answer one prompt in the terminal
    Run(run::Args),
    /// Play tasks with a model and report how it did, in numbers
    Eval(eval::Args),
    /// List the models that can be used
    Models(models::Args),
    /// List the permission rules of a workspace, and take back what was allowed
    Permissions(permissions::Args),
    /// List, show, export and remove the conversations that were kept
    Sessions(sessions::Args),
    /// Show what tandem logged
    Logs(logs::Args),
    /// Play recorded model streams through the decoder and print the events
    Replay(replay::Args),
    /// Print or write an editor's configuration
    Init(init::Args),
    /// Show the configuration
    Config(config::Args),
    /// Print completions for a shell
    Completions(completions::Args),
    /// Print a manual page
    Man(man::Args),
    /// Start a command for the server (it calls itself)
    #[cfg(unix)]
    #[command(hide = true)]
    SandboxExec(supervisor::Args),
}

/// Why a command failed, and the exit code that says so.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    error: anyhow::Error,
}

impl Failure {
    /// A mistake in how the command was called.
    fn usage(message: impl fmt::Display) -> Self {
        Self { code: 2, error: anyhow::anyhow!("{message}") }
    }

    /// The exit code.
    #[must_use]
    pub fn code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // It may quote a server or a file of a repository.
        formatter.write_str(&display::escape(&format!("{:#}", self.error)))
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self { code: 1, error: error.into() }
    }
}

/// What a command ends with.
type Outcome = Result<ExitCode, Failure>;

impl Cli {
    /// Runs the command.
    ///
    /// # Errors
    /// When it fails, with words for the person.
    pub async fn run(self, environment: Environment) -> Outcome {
        match self.command {
            Command::Lsp(_) => serve::serve(Carrier::Lsp, environment).await,
            Command::Acp => serve::serve(Carrier::Acp, environment).await,
            Command::Demo(args) => demo::run(args).await,
            Command::Doctor(args) => shown(doctor::run(args, &environment).await),
            Command::Run(args) => run::run(args, &environment).await,
            Command::Eval(args) => shown(eval::run(args, &environment).await),
            Command::Sessions(args) => done(sessions::run(args, &environment).await),
            Command::Models(args) => shown(models::run(args, &environment).await),
            Command::Permissions(args) => done(permissions::run(args, &environment).await),
            Command::Logs(args) => done(logs::run(&args, &environment, &mut io::stdout())),
            Command::Replay(args) => done(replay::run(&args, &mut io::BufWriter::new(io::stdout()))),
            Command::Init(args) => done(init::run(&args, &environment, &mut io::stdout())),
            Command::Config(args) => done(config::run(&args, &environment, &mut io::stdout())),
            Command::Completions(args) => done(completions::run(&args, &mut Self::command(), &mut io::stdout())),
            #[cfg(unix)]
            Command::SandboxExec(args) => Ok(ExitCode::from(supervisor::run(args)?)),
            Command::Man(args) => done(man::run(&args, Self::command(), &mut io::stdout())),
        }
    }
}

/// The end of a command that either works or fails.
fn done(result: anyhow::Result<()>) -> Outcome {
    shown(result.map(|()| ExitCode::SUCCESS).map_err(Failure::from))
}

/// The end of a command that prints. Who stops reading has seen enough.
fn shown(outcome: Outcome) -> Outcome {
    let enough = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    match outcome {
        Err(Failure { error, .. }) if error.downcast_ref().is_some_and(enough) => Ok(ExitCode::SUCCESS),
        outcome => outcome,
    }
}

/// The settings of a process with this environment, for every connection and workspace anew.
#[must_use]
pub fn settings_loader(environment: Environment) -> LoadSettings {
    Box::new(move |options, workspaces| {
        let editor = options.is_object().then_some(options);
        Settings::load(&environment, &Sources { workspaces, editor, flags: Flags::default() })
    })
}
