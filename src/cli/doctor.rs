//! `tandem doctor`: finds what keeps tandem from working, and says what to do about it.

mod paths;
mod versions;

use std::io::{self, IsTerminal as _, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::json;

use super::Outcome;
use crate::config::{Environment, Problem, Provider as Row, Settings};
use crate::domain::{Endpoint, Finding, Verdict};
use crate::model::Provider;
use crate::process::Sandbox;
use crate::session::check;
use crate::session::{self};
use crate::text::display;
use crate::text::display::counted;
use crate::tools::{Redactor, mcp};
use crate::workspace::state::create_private;
use crate::workspace::{Editor, NoEditor};

/// Arguments of `tandem doctor`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
    /// List the files tandem has created, without running checks
    #[arg(long)]
    paths: bool,
}

pub(super) async fn run(args: Args, environment: &Environment) -> Outcome {
    let workspaces: Vec<_> = std::env::current_dir().into_iter().collect();
    let settings = Settings::of(environment, &workspaces);
    if args.paths {
        paths::show(&settings, args.json, &mut io::stdout())?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut report = Report {
        json: args.json,
        secrets: settings.redactor(),
        findings: Vec::new(),
    };
    report.add(Finding::good(
        "tandem",
        format!("version {}", env!("CARGO_PKG_VERSION")),
    ))?;
    for finding in versions::find(environment)
        .into_iter()
        .chain(configuration(&settings))
    {
        report.add(finding)?;
    }
    report.add(state_folder(settings.state_dir.as_deref()))?;
    let editor: Arc<dyn Editor> = Arc::new(NoEditor);
    for server in session::mcp_servers(&settings, &workspaces, &report.secrets.clone(), &editor) {
        report.add(mcp_server(&server).await)?;
    }
    let surroundings = session::surroundings(&settings);
    let found = Sandbox::find(&surroundings).await;
    report.add(sandbox(&found))?;
    report.add(network(&found))?;
    report.add(undo(&found).await)?;
    model(&settings, &mut report).await?;
    report.end()
}

struct Report {
    json: bool,
    /// What no finding may contain.
    secrets: Redactor,
    findings: Vec<Finding>,
}

impl Report {
    /// Shows a finding at once, because probes of a slow model take a while.
    fn add(&mut self, mut finding: Finding) -> io::Result<()> {
        self.secrets.clean(&mut finding.found);
        if let Some(advice) = &mut finding.advice {
            self.secrets.clean(advice);
        }
        if !self.json {
            let mut out = io::stdout().lock();
            let (sign, color) = match finding.verdict {
                Verdict::Good => ("✓", "32"),
                Verdict::Warning => ("!", "33"),
                Verdict::Bad => ("✗", "31"),
            };
            let sign = if out.is_terminal() {
                format!("\x1b[{color}m{sign}\x1b[0m")
            } else {
                sign.to_owned()
            };
            writeln!(
                out,
                "{sign} {:<14} {}",
                finding.check,
                display::escape_line(&finding.found)
            )?;
            if let Some(advice) = &finding.advice {
                for way in display::escape(advice).lines() {
                    writeln!(out, "{:17}→ {}", "", way.strip_prefix("- ").unwrap_or(way))?;
                }
            }
        }
        self.findings.push(finding);
        Ok(())
    }

    fn end(self) -> Outcome {
        let bad = self
            .findings
            .iter()
            .filter(|finding| finding.verdict == Verdict::Bad)
            .count();
        let mut out = io::stdout().lock();
        if self.json {
            serde_json::to_writer_pretty(
                &mut out,
                &json!({ "ok": bad == 0, "findings": self.findings }),
            )?;
            writeln!(out)?;
        } else if bad == 0 {
            writeln!(
                out,
                "\nReady. `tandem init --editor vscode|neovim|helix|zed|jetbrains|emacs` prints an editor's configuration."
            )?;
        } else {
            writeln!(out, "\n{bad} of {} checks failed.", self.findings.len())?;
        }
        Ok(if bad == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}

fn configuration(settings: &Settings) -> Vec<Finding> {
    let rules = session::rule_problems(settings);
    let mut findings: Vec<_> = settings
        .problems
        .iter()
        .chain(&rules)
        .map(|problem| {
            let found = problem.to_string();
            Finding::warning("configuration", found, meanwhile(settings, problem))
        })
        .collect();
    if findings.is_empty() {
        let found = match settings.config_file() {
            Some(file) if file.exists() => file.display().to_string(),
            Some(file) => format!(
                "environment and defaults; {} does not exist",
                file.display()
            ),
            None => "environment and defaults".to_owned(),
        };
        findings.push(Finding::good("configuration", found));
    }
    findings
}

/// The consequence of a mistake until it is corrected.
fn meanwhile(settings: &Settings, problem: &Problem) -> &'static str {
    if settings.lacks_restrictions_until_corrected(problem) {
        "correct it; until then every call requires approval"
    } else {
        "correct it; until then it is ignored"
    }
}

fn state_folder(folder: Option<&Path>) -> Finding {
    let advice =
        "sessions and chat files cannot be saved; set TANDEM_STATE_DIR to a writable directory";
    let Some(folder) = folder else {
        return Finding::warning(
            "state",
            "there is none, because there is no home directory",
            advice,
        );
    };
    let tried = create_private(folder)
        .and_then(|()| tempfile::tempfile_in(folder))
        // Creating an empty file succeeds even on a full disk.
        .and_then(|mut file| file.write_all(&[0; 4096]));
    match tried {
        Ok(()) => Finding::good("state", folder.display().to_string()),
        Err(error) => Finding::warning("state", format!("{}: {error}", folder.display()), advice),
    }
}

/// Starts an MCP server, like the first prompt of a session.
async fn mcp_server(server: &mcp::Server) -> Finding {
    let name = &server.name;
    match mcp::try_out(server).await {
        Ok(mcp::Tried {
            name: title,
            tools,
            notices,
        }) => {
            let title = title.map(|title| format!(" ({title})")).unwrap_or_default();
            let found = format!("`{name}`{title} offers {}", counted(tools, "tool"));
            if notices.is_empty() {
                return Finding::good("mcp", found);
            }
            Finding::warning(
                "mcp",
                format!("{found}; it {}", notices.join("; it ")),
                "reduce the server's tools, if you can",
            )
        }
        Err(why) => Finding::warning(
            "mcp",
            format!("`{name}` {why}"),
            format!(
                "check [mcp.{name}] in config.toml; a program inherits only `env` and variables such as PATH"
            ),
        ),
    }
}

/// The sandbox for commands.
fn sandbox(sandbox: &Sandbox) -> Finding {
    let lacking = sandbox.lacking().join("; ");
    match sandbox.name() {
        Some(name) if lacking.is_empty() => Finding::good("sandbox", name),
        Some(name) => Finding::warning(
            "sandbox",
            format!("{name}, because {lacking}"),
            "commands are sandboxed, but protected files are restored after a command instead of being read-only, and \
             there is no loopback network: install bubblewrap (apt install bubblewrap, dnf install bubblewrap)",
        ),
        None => Finding::warning(
            "sandbox",
            format!("none: {lacking}"),
            "each command requires approval in every mode; on Linux, install bubblewrap and allow user namespaces",
        ),
    }
}

/// Whether the commands of a session reach each other's servers.
fn network(sandbox: &Sandbox) -> Finding {
    match sandbox.shares_network() {
        Ok(()) => Finding::good(
            "network",
            "commands and jobs of a session share a loopback network; nothing else is reachable",
        ),
        Err(_) if sandbox.name().is_none() => Finding::good(
            "network",
            "the network of this machine: there is no sandbox",
        ),
        Err(why) => Finding::warning(
            "network",
            format!("commands of a session do not share a network: {why}"),
            "a command cannot reach a server that another one started, such as a development server; install \
             bubblewrap and allow user namespaces, or let both commands use the network of this machine",
        ),
    }
}

/// How commands are undone, and whether they read unsaved text.
async fn undo(sandbox: &Sandbox) -> Finding {
    let unsaved = match (sandbox.shows_unsaved(), sandbox.covers().await) {
        (true, true) => "commands read and replace the unsaved text of open documents",
        (true, false) => {
            "commands read the unsaved text of open documents and can write to it, but not replace such a file (sed -i)"
        }
        (false, _) => "commands read files from disk, so the editor is asked to save them first",
    };
    Finding::good(
        "command undo",
        format!("snapshot (git-ignored directories not covered); {unsaved}"),
    )
}

async fn model(settings: &Settings, report: &mut Report) -> io::Result<()> {
    let (provider, why) = match session::chosen(settings).await {
        Ok(chosen) => chosen,
        Err(why) => {
            let (found, advice) = why.message.split_once('\n').unwrap_or((
                &why.message,
                "`tandem login` sets up a provider and its key",
            ));
            return report.add(Finding::bad("model", found, advice.trim()));
        }
    };
    report.add(Finding::good(
        "model",
        format!("{}: {why}", provider.place()),
    ))?;
    report.add(Finding::good(
        "API",
        format!(
            "{}: {}; {}",
            provider.api(),
            why_api(settings, &provider),
            thinking(&provider)
        ),
    ))?;
    if let Ok(model) = &settings.model {
        report.add(Finding::good("key", model.key.to_string()))?;
        report.add(Finding::good("proxy", way(model)))?;
        report.add(Finding::good("certificates", authorities(model)))?;
    }
    let mut problem = Ok(());
    check::check(&provider, |finding| {
        if problem.is_ok() {
            problem = report.add(finding);
        }
    })
    .await;
    problem
}

/// Why this API is used for the model.
fn why_api(settings: &Settings, provider: &Provider) -> &'static str {
    let used = settings.model.as_ref().ok().map(|model| model.api);
    match Row::named(&provider.endpoint().provider) {
        Some(row) if used.is_none_or(|api| api == row.api) => "the provider's own",
        Some(_) => "configured, replacing the provider's own",
        None => "as configured; chat by default",
    }
}

/// The model's reasoning effort and prices.
fn thinking(provider: &Provider) -> String {
    let endpoint = provider.endpoint();
    let effort = match (&endpoint.effort, endpoint.effort_sent()) {
        (Some(chosen), _) => chosen.clone(),
        (None, Some(sent)) => format!("default ({sent})"),
        (None, None) => "default".to_owned(),
    };
    let price = provider.prices().map_or_else(
        || "price unknown".to_owned(),
        |prices| {
            format!(
                "${} read and ${} written per million tokens",
                prices.input, prices.output
            )
        },
    );
    format!("effort: {effort}; {price}")
}

/// The proxy for requests to the model.
fn way(model: &Endpoint) -> String {
    match &model.proxy {
        Some(_) if model.is_plain_loopback() => {
            "none (not used for http on this machine)".to_owned()
        }
        Some(proxy) => proxy.to_string(),
        None => "none in the environment".to_owned(),
    }
}

/// The certificate authorities for the model's server.
fn authorities(model: &Endpoint) -> String {
    match &model.ca_file {
        _ if model.is_plain_loopback() => "none needed (http on this machine)".to_owned(),
        Some(file) => format!("the system's, and those in {}", file.display()),
        None => "the system's".to_owned(),
    }
}
