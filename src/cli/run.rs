//! `tandem run`: one prompt from the terminal. The answer goes to standard output, everything else to standard error;
//! with `--json` every event is a line of standard output.

use std::io::{self, IsTerminal as _, Read as _, Write};
use std::path::PathBuf;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::{Failure, Outcome};
use crate::agent::event::{AgentEvent, Permission, Preview, Termination};
use crate::config::{Environment, Flags, Mode, Settings, Sources};
use crate::session::{Command, Prompt, Session, Start, setup};
use crate::text::{Encoding, display, unified};
use crate::workspace::{Documents, NoEditor, Root, Workspace};

/// Events that may wait for the terminal.
const EVENTS: usize = 256;

/// Arguments of `tandem run`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Print one event a line, as JSON
    #[arg(long)]
    json: bool,
    /// What may be done without asking: plan, ask, edit or auto
    #[arg(long, value_name = "MODE")]
    mode: Option<Mode>,
    /// The model, as provider/model
    #[arg(long, value_name = "PROVIDER/MODEL")]
    model: Option<String>,
    /// The workspace folder
    #[arg(short = 'C', long = "directory", value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    /// What you want; read from standard input when left out
    #[arg(value_name = "PROMPT", trailing_var_arg = true)]
    prompt: Vec<String>,
}

pub(super) async fn run(args: Args, environment: &Environment) -> Outcome {
    let prompt = words(&args)?;
    let root = Root::open(&args.directory).with_context(|| format!("folder {}", args.directory.display()))?;
    let flags = Flags { model: args.model.as_deref(), mode: args.mode };
    let workspaces = [root.path().to_owned()];
    let settings = Settings::load(environment, &Sources { workspaces: &workspaces, editor: None, flags });
    let mut terminal = Terminal { json: args.json, stdout: io::stdout(), stderr: io::stderr(), mid_line: false };
    for problem in &settings.problems {
        writeln!(terminal.stderr, "tandem: {problem}")?;
    }
    let workspace = Workspace::new(vec![Arc::new(root)], Documents::new(Encoding::Utf8), Arc::new(NoEditor));
    let (sender, events) = mpsc::channel(EVENTS);
    let session = Session::start(
        setup(crate::session::new_id(), Start::New, &settings, workspace),
        sender,
        &CancellationToken::new(),
    );
    session.send(Command::Prompt(Prompt::text(prompt)))?;
    let reason = follow(&session, events, &mut terminal).await?;
    session.close().await;
    Ok(match reason {
        Termination::Cancelled => ExitCode::from(130),
        Termination::Error => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    })
}

fn words(args: &Args) -> Result<String, Failure> {
    let mut prompt = args.prompt.join(" ");
    if args.prompt.is_empty() && !io::stdin().is_terminal() {
        io::stdin().read_to_string(&mut prompt).context("reading the prompt from standard input")?;
    }
    if prompt.trim().is_empty() {
        return Err(Failure::usage(
            "the prompt is empty: say what you want, as in `tandem run \"explain src/main.rs\"`",
        ));
    }
    Ok(prompt)
}

/// Shows events until the last one, and lets Ctrl-C cancel.
async fn follow(
    session: &Session,
    mut events: mpsc::Receiver<(Arc<str>, AgentEvent)>,
    terminal: &mut Terminal,
) -> anyhow::Result<Termination> {
    // One listener from the first to the last: an interrupt may come while an event is being shown.
    let mut interrupt = pin!(tokio::signal::ctrl_c());
    loop {
        tokio::select! {
            interrupted = &mut interrupt => {
                interrupted?;
                interrupt.set(tokio::signal::ctrl_c());
                session.send(Command::Cancel)?;
            }
            event = events.recv() => {
                let Some((_, event)) = event else { anyhow::bail!("the session ended without a word") };
                let done = match &event {
                    AgentEvent::Done { termination_reason, .. } => Some(*termination_reason),
                    _ => None,
                };
                terminal.show(event)?;
                if let Some(reason) = done {
                    return Ok(reason);
                }
            }
        }
    }
}

struct Terminal {
    json: bool,
    stdout: io::Stdout,
    stderr: io::Stderr,
    /// The answer's last line has no end yet.
    mid_line: bool,
}

impl Terminal {
    fn show(&mut self, event: AgentEvent) -> anyhow::Result<()> {
        if self.json {
            let mut line = serde_json::to_vec(&event)?;
            line.push(b'\n');
            self.stdout.write_all(&line)?;
            self.stdout.flush()?;
        }
        match event {
            AgentEvent::PermissionRequested { preview, reply: Some(reply), .. } => self.ask(&preview, reply)?,
            event if !self.json => self.tell(event)?,
            _ => {}
        }
        Ok(())
    }

    fn tell(&mut self, event: AgentEvent) -> io::Result<()> {
        match event {
            AgentEvent::TextDelta { content } => {
                self.mid_line = !content.ends_with('\n');
                self.stdout.write_all(display::escape(&content).as_bytes())?;
                self.stdout.flush()
            }
            AgentEvent::ToolExecutionEnd { name, result, execute_duration_ms, .. } => {
                let (sign, detail) = if result.is_error {
                    ("✗", result.content.lines().next().unwrap_or_default().to_owned())
                } else {
                    let places: Vec<_> =
                        result.locations.iter().map(|place| place.path.display().to_string()).collect();
                    ("✓", places.join(", "))
                };
                self.line(&format!("{sign} {name} {} ({execute_duration_ms:.0} ms)", display::escape_line(&detail)))
            }
            AgentEvent::Retry { wait_ms, reason, .. } => {
                self.line(&format!("… {reason}; next try in {} s", wait_ms.div_ceil(1000)))
            }
            AgentEvent::Notice { message } | AgentEvent::Compaction { summary: message, .. } => {
                self.line(&format!("! {message}"))
            }
            AgentEvent::LoopDetected { tool_name, action, .. } => self.line(&format!("! {tool_name}: {action}")),
            AgentEvent::Error { message, .. } => self.line(&format!("tandem: {}", display::escape(&message))),
            AgentEvent::Done { termination_reason: Termination::Cancelled, .. } => self.line("! cancelled"),
            AgentEvent::Done { .. } => self.end_line(),
            _ => Ok(()),
        }
    }

    fn line(&mut self, text: &str) -> io::Result<()> {
        self.end_line()?;
        writeln!(self.stderr, "{text}")
    }

    fn end_line(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.mid_line) {
            self.stdout.write_all(b"\n")?;
            self.stdout.flush()?;
        }
        Ok(())
    }

    /// Asks on the terminal; where there is none the answer is no.
    fn ask(&mut self, preview: &Preview, reply: oneshot::Sender<Permission>) -> io::Result<()> {
        self.line(&format!("? {}", display::escape_line(&preview.title)))?;
        if let Some(caution) = &preview.caution {
            self.line(&format!("  {}", display::escape_line(caution)))?;
        }
        for diff in &preview.diffs {
            let change = unified(diff.old_text.as_deref().unwrap_or_default(), &diff.new_text, 3);
            self.stderr.write_all(display::escape(&change).as_bytes())?;
        }
        if !io::stdin().is_terminal() {
            self.line("  no terminal to ask on, so the answer is no (--mode edit allows edits)")?;
            let _turn_gone = reply.send(Permission::Reject);
            return Ok(());
        }
        write!(self.stderr, "  allow? [y]es, [a]lways for this file, [N]o: ")?;
        self.stderr.flush()?;
        tokio::task::spawn_blocking(move || {
            let mut answer = String::new();
            let read = io::stdin().read_line(&mut answer);
            let permission = match (read, answer.trim()) {
                (Ok(_), "y" | "yes") => Permission::AllowOnce,
                (Ok(_), "a" | "always") => Permission::AllowAlways,
                _ => Permission::Reject,
            };
            let _turn_gone = reply.send(permission);
        });
        Ok(())
    }
}
