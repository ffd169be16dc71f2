//! The command line: one file per subcommand. All output goes through a `Write`, so that a closed pipe is an ordinary
//! error rather than a panic.

mod blame;
mod completions;
mod config;
mod demo;
mod doctor;
mod init;
mod logging;
mod login;
mod logs;
mod man;
mod mcp;
mod models;
mod permissions;
mod run;
mod serve;
mod sessions;

use std::path::Path;
use std::process::ExitCode;
use std::{fmt, io};

use anyhow::Context as _;
use clap::{CommandFactory as _, Parser, Subcommand};

use crate::config::{Environment, Flags, Settings, Sources};
#[cfg(unix)]
use crate::process::supervisor;
use crate::server::{LoadSettings, Transport};
use crate::text::display;
use crate::workspace::Root;

pub use logging::log;

/// A coding agent that your editor runs as a language server.
#[derive(Debug, Parser)]
#[command(
    name = "tandem",
    version,
    about,
    propagate_version = true,
    arg_required_else_help = true
)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run as a language server on standard input and output
    Lsp(serve::LspArgs),
    /// Run as an agent of the Agent Client Protocol on standard input and output
    Acp(serve::AcpArgs),
    /// Choose a provider and a model, enter the key, test and save them
    Login(login::Args),
    /// Remove the keys that `login` has stored
    Logout(login::OutArgs),
    /// Fix a failing test in a throwaway project, without a key or network
    Demo(demo::Args),
    /// Check the configuration, the model and the sandbox, and suggest fixes
    Doctor(doctor::Args),
    /// Send one prompt from the terminal and print the answer
    Run(run::Args),
    /// List the models you can use
    Models(models::Args),
    /// List, check and import MCP servers, and log in to them
    #[command(subcommand)]
    Mcp(mcp::Action),
    /// List the permission rules of a workspace, and remove rules
    Permissions(permissions::Args),
    /// List, show, export and remove saved sessions
    #[command(subcommand)]
    Sessions(sessions::Action),
    /// Show which turn wrote each uncommitted line of a file
    Blame(blame::Args),
    /// Show the log
    Logs(logs::Args),
    /// Print or write an editor's configuration, or install its plugin
    Init(init::Args),
    /// Show the configuration and where each setting comes from
    #[command(subcommand)]
    Config(config::Action),
    /// Print completions for a shell
    Completions(completions::Args),
    /// Print a manual page
    Man(man::Args),
    /// Start a command for the server (internal)
    #[cfg(unix)]
    #[command(hide = true)]
    SandboxExec(supervisor::Args),
}

/// Why a command failed, and its exit code.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    error: anyhow::Error,
}

impl Failure {
    /// A usage error.
    fn usage(message: impl fmt::Display) -> Self {
        Self {
            code: 2,
            error: anyhow::anyhow!("{message}"),
        }
    }

    /// The exit code.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The message may quote a server or a file of a repository.
        formatter.write_str(&display::escape(&format!("{:#}", self.error)))
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self {
            code: 1,
            error: error.into(),
        }
    }
}

/// The result of a command.
type Outcome = Result<ExitCode, Failure>;

impl Cli {
    /// Runs the command.
    ///
    /// # Errors
    /// The command failed; the message is for the person.
    pub async fn run(self, environment: Environment) -> Outcome {
        match self.command {
            Command::Lsp(_) => serve::serve(Transport::Lsp, environment).await,
            Command::Acp(args) if args.login => {
                login::log_in(login::Args::default(), &environment).await
            }
            Command::Acp(_) => serve::serve(Transport::Acp, environment).await,
            Command::Login(args) => login::log_in(args, &environment).await,
            Command::Logout(args) => login::log_out(args, &environment).await,
            Command::Demo(args) => demo::run(args).await,
            Command::Doctor(args) => shown(doctor::run(args, &environment).await),
            Command::Run(args) => run::run(args, &environment).await,
            Command::Sessions(action) => done(sessions::run(action, &environment).await),
            Command::Blame(args) => done(blame::run(args, &environment).await),
            Command::Models(args) => shown(models::run(args, &environment).await),
            Command::Mcp(action) => mcp::run(action, &environment).await,
            Command::Permissions(args) => done(permissions::run(args, &environment).await),
            Command::Logs(args) => done(logs::run(&args, &environment, &mut io::stdout())),
            Command::Init(args) => done(init::run(&args, &environment, &mut io::stdout())),
            Command::Config(action) => done(config::run(&action, &environment, &mut io::stdout())),
            Command::Completions(args) => done(completions::run(
                &args,
                &mut Self::command(),
                &mut io::stdout(),
            )),
            #[cfg(unix)]
            Command::SandboxExec(args) => Ok(ExitCode::from(supervisor::run(args)?)),
            Command::Man(args) => done(man::run(&args, Self::command(), &mut io::stdout())),
        }
    }
}

/// The folder of a workspace that a person named.
fn root(directory: &Path) -> anyhow::Result<Root> {
    Root::open(directory).with_context(|| format!("directory {}", directory.display()))
}

/// The outcome of a command that works or fails.
fn done(result: anyhow::Result<()>) -> Outcome {
    shown(result.map(|()| ExitCode::SUCCESS).map_err(Failure::from))
}

/// The outcome of a command that prints. A closed pipe is not an error.
fn shown(outcome: Outcome) -> Outcome {
    let enough = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    match outcome {
        Err(Failure { error, .. }) if error.downcast_ref().is_some_and(enough) => {
            Ok(ExitCode::SUCCESS)
        }
        outcome => outcome,
    }
}

/// Loads the settings of a process with this environment, separately for every connection and workspace.
pub fn settings_loader(environment: Environment) -> LoadSettings {
    Box::new(move |options, workspaces| {
        let editor = options.is_object().then_some(options);
        Settings::load(
            &environment,
            &Sources {
                workspaces,
                editor,
                flags: Flags::default(),
            },
        )
    })
}
