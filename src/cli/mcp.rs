//! `tandem mcp`: lists the configured MCP servers, logs in and out, and checks that they work.

mod import;

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use futures_util::future::{BoxFuture, FutureExt as _};
use tokio_util::sync::CancellationToken;

use super::{Failure, Outcome};
use crate::config::{Environment, Settings};
use crate::session;
use crate::text::display::counted;
use crate::text::{Redactor, display};
use crate::tools::mcp::{Challenge, Login, Server, Tried, Way, try_out};
use crate::tools::{Ask, Person, Preview, Reply};
use crate::workspace::{Editor, NoEditor};

const NONE: &str = "no MCP servers are configured ([mcp.NAME] in config.toml)";

/// What `tandem mcp` does.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Action {
    /// List the configured servers
    List,
    /// Log in to a server in the browser
    Login {
        /// The name of the server
        name: String,
        /// Print the address instead of opening a browser
        #[arg(long)]
        no_browser: bool,
    },
    /// Log out of a server
    Logout {
        /// The name of the server
        name: String,
    },
    /// Start a server and list its tools
    Check {
        /// The name of the server
        name: String,
    },
    /// List the servers of this workspace and of other agents, or copy some into config.toml
    Import {
        /// The names of the servers to copy
        names: Vec<String>,
    },
}

pub(super) async fn run(action: Action, environment: &Environment) -> Outcome {
    let workspaces: Vec<PathBuf> = std::env::current_dir().into_iter().collect();
    let settings = Settings::of(environment, &workspaces);
    let secrets = settings.redactor();
    let editor: Arc<dyn Editor> = Arc::new(NoEditor);
    let servers = session::mcp_servers(&settings, &workspaces, &secrets, &editor);
    let mut out = io::stdout();
    match action {
        Action::List => {
            for server in &servers {
                writeln!(out, "{}", secrets.redact(&line(server)))?;
            }
            if servers.is_empty() {
                writeln!(out, "{NONE}")?;
            }
        }
        Action::Login { name, no_browser } => {
            let login = login(find(&servers, &name)?)?;
            let terminal = Terminal { opens: !no_browser };
            let done = login
                .log_in(&Challenge::default(), &Person::new(terminal))
                .await;
            done.map_err(|why| anyhow!("MCP server `{name}` {why}"))?;
            writeln!(out, "logged in to {name}")?;
        }
        Action::Logout { name } => {
            let login = login(find(&servers, &name)?)?;
            let was_there = login.log_out().await.context("the stored login")?;
            let done = if was_there {
                "logged out of"
            } else {
                "not logged in to"
            };
            writeln!(out, "{done} {name}")?;
        }
        Action::Check { name } => return check(find(&servers, &name)?, &secrets).await,
        Action::Import { names } => {
            let workspace = workspaces.first().map_or_else(PathBuf::new, PathBuf::clone);
            return import::run(&names, &settings, &workspace).await;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A server in one line.
fn line(server: &Server) -> String {
    let what = match &server.way {
        Way::Command { words, .. } => words.join(" "),
        Way::Url(address) => address.url.clone(),
        Way::Editor { .. } => "in the editor".to_owned(),
    };
    let login = server.login().and_then(|login| login.issuer());
    let login = login.map_or_else(String::new, |issuer| format!("  (logged in at {issuer})"));
    display::escape_line(&format!("{}  {what}{login}", server.name)).into_owned()
}

fn find<'a>(servers: &'a [Server], name: &str) -> Result<&'a Server, Failure> {
    let found = servers.iter().find(|server| server.name == name);
    found.ok_or_else(|| {
        let names: Vec<_> = servers.iter().map(|server| server.name.as_str()).collect();
        Failure::usage(format!(
            "there is no MCP server `{name}`; {}",
            match names.as_slice() {
                [] => NONE.to_owned(),
                names => format!("configured servers: {}", names.join(", ")),
            }
        ))
    })
}

fn login(server: &Server) -> Result<&Login, Failure> {
    let login = server.login().map(AsRef::as_ref);
    login.ok_or_else(|| {
        Failure::usage(format!(
            "MCP server `{}` is a program: it gets its credentials from `env`",
            server.name
        ))
    })
}

async fn check(server: &Server, secrets: &Redactor) -> Outcome {
    let name = &server.name;
    let Tried {
        name: title,
        tools,
        notices,
    } = try_out(server)
        .await
        .map_err(|why| anyhow!("MCP server `{name}` {}", secrets.redact(&why)))?;
    let title = title.map_or_else(String::new, |title| format!(" ({title})"));
    let found = format!("{name}{title} offers {}", counted(tools, "tool"));
    writeln!(io::stdout(), "{}", display::escape_line(&found))?;
    for notice in &notices {
        writeln!(io::stdout(), "  it {}", display::escape_line(notice))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The person at a terminal.
struct Terminal {
    /// Whether the browser is opened for them.
    opens: bool,
}

impl Ask for Terminal {
    fn ask(&self, request: Preview, withdrawn: CancellationToken) -> BoxFuture<'static, Reply> {
        let mut out = io::stderr();
        let said = [Some(request.title), request.link.clone(), request.note];
        for text in said.into_iter().flatten() {
            let _nobody_reads = writeln!(out, "{}", display::escape_line(&text));
        }
        match request.link {
            Some(link) => {
                if self.opens {
                    open(&link);
                }
                std::future::ready(Reply::Yes).boxed()
            }
            None => async move {
                let pasted = withdrawn.run_until_cancelled(pasted()).await;
                pasted.map_or(Reply::No, Reply::Text)
            }
            .boxed(),
        }
    }
}

/// The next line; without a terminal nothing is ever pasted.
async fn pasted() -> String {
    if !io::stdin().is_terminal() {
        return std::future::pending().await;
    }
    let (sender, line) = tokio::sync::oneshot::channel();
    // A thread of its own: the program ends although it still reads.
    std::thread::spawn(move || {
        let mut line = String::new();
        let _gone = io::stdin()
            .lock()
            .read_line(&mut line)
            .map(|_| sender.send(line));
    });
    match line.await {
        Ok(line) => line,
        Err(_ended) => std::future::pending().await,
    }
}

/// Opens an address in the person's browser. The address is printed as well, so it may fail.
#[expect(
    clippy::disallowed_methods,
    reason = "the person's own browser, at an address they asked for"
)]
fn open(link: &str) {
    let (program, arguments) = if cfg!(target_os = "macos") {
        ("open", vec![link])
    } else if cfg!(windows) {
        ("rundll32", vec!["url.dll,FileProtocolHandler", link])
    } else {
        ("xdg-open", vec![link])
    };
    let _not_installed = std::process::Command::new(program)
        .args(arguments)
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn();
}
