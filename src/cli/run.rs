//! `tandem run`: one prompt from the terminal. The answer goes to standard output, everything else to standard error;
//! with `--json`, every event is a line on standard output.

use std::collections::HashMap;
use std::io::{self, IsTerminal as _, Read as _, Write};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::{Failure, Outcome, root, sessions};
use crate::agent::event::{
    About, AgentEvent, Grant, Offer, Permission, PermissionRequest, Scope, Termination,
};
use crate::config::{Environment, Flags, Mode, Settings, Sources};
use crate::domain::{Prompt, ToolKind};
use crate::session::event::SessionEvent;
use crate::session::{Change, Session, SessionId, Setup, Start, new_id, rule_problems, setup};
use crate::text::{Encoding, display, unified};
use crate::workspace::{Documents, NoEditor, Workspace};

/// How many events may be queued for the terminal.
const EVENTS: usize = 256;

/// Arguments of `tandem run`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Print events as JSON, one per line
    #[arg(long)]
    json: bool,
    /// The permission mode: plan, ask, edit or auto
    #[arg(long, value_name = "MODE")]
    mode: Option<Mode>,
    /// The model, as provider/model
    #[arg(long, value_name = "PROVIDER/MODEL")]
    model: Option<String>,
    /// The workspace directory
    #[arg(
        short = 'C',
        long = "directory",
        value_name = "DIR",
        default_value = "."
    )]
    directory: PathBuf,
    /// Continue the last session in this directory
    #[arg(long = "continue", conflicts_with = "session")]
    last: bool,
    /// Continue this session (see `tandem sessions list`)
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// The prompt; `-` stands for standard input, which is also the default
    #[arg(value_name = "PROMPT", trailing_var_arg = true)]
    prompt: Vec<String>,
}

pub(super) async fn run(args: Args, environment: &Environment) -> Outcome {
    let prompt = words(&args)?;
    let root = root(&args.directory)?;
    let flags = Flags {
        model: args.model.as_deref(),
        mode: args.mode,
    };
    let workspaces = [root.path().to_owned()];
    let settings = Settings::load(
        environment,
        &Sources {
            workspaces: &workspaces,
            editor: None,
            flags,
        },
    );
    let mut terminal = Terminal::new(args.json);
    for problem in settings.problems.iter().chain(&rule_problems(&settings)) {
        terminal.line(&format!("tandem: {problem}"))?;
    }
    let (id, start) = conversation(&args, &settings, root.path()).await?;
    let workspace = Workspace::new(
        vec![Arc::new(root)],
        Documents::new(Encoding::Utf8),
        Arc::new(NoEditor),
    );
    let (sender, events) = mpsc::channel(EVENTS);
    let setup = setup(id, start, &settings, workspace);
    // Permissions given in an editor do not apply here, where nobody may be watching: the mode is the configured one or
    // the flag's.
    let setup = Setup {
        keeps_mode: false,
        keeps_model: args.model.is_none(),
        ..setup
    };
    let session = Session::start(setup, sender, &CancellationToken::new());
    if let (Start::New, Some(mode)) = (start, args.mode) {
        drop(session.change(Change::Mode(mode)));
    }
    session.prompt("run".into(), Prompt::text(prompt), Arc::default())?;
    let reason = follow(&session, events, &mut terminal)
        .await
        .map_err(unread)?;
    session.close().await;
    Ok(match reason {
        Termination::Cancelled => ExitCode::from(130),
        Termination::Error => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    })
}

/// The session for the prompt.
async fn conversation(
    args: &Args,
    settings: &Settings,
    folder: &Path,
) -> anyhow::Result<(SessionId, Start)> {
    let id = match &args.session {
        Some(id) => sessions::kept(settings)?.find(id).await?,
        None if args.last => {
            let (page, _) = sessions::kept(settings)?
                .page(Some(folder), None, 1)
                .await?;
            let last = page.into_iter().next();
            let missing = || {
                format!(
                    "there is no saved session for {}; omit --continue",
                    folder.display()
                )
            };
            last.with_context(missing)?.id
        }
        None => return Ok((new_id(), Start::New)),
    };
    Ok((id.into(), Start::Resume))
}

fn words(args: &Args) -> Result<String, Failure> {
    let mut words: Vec<_> = args.prompt.iter().map(String::as_str).collect();
    if words.is_empty() && !io::stdin().is_terminal() {
        words.push("-");
    }
    let mut input = String::new();
    if words.contains(&"-") {
        io::stdin()
            .read_to_string(&mut input)
            .context("reading standard input")?;
    }
    let prompt = words
        .iter()
        .map(|&word| if word == "-" { &input } else { word })
        .collect::<Vec<_>>()
        .join(" ");
    if prompt.trim().is_empty() {
        return Err(Failure::usage(
            "the prompt is empty; write one, as in `tandem run \"explain src/main.rs\"`",
        ));
    }
    Ok(prompt)
}

/// Shows events until the last one; Ctrl-C cancels.
async fn follow(
    session: &Session,
    mut events: mpsc::Receiver<(SessionId, SessionEvent)>,
    terminal: &mut Terminal,
) -> anyhow::Result<Termination> {
    // One listener for the whole time: an interrupt may arrive while an event is being shown.
    let mut interrupt = pin!(tokio::signal::ctrl_c());
    loop {
        tokio::select! {
            interrupted = &mut interrupt => {
                interrupted?;
                interrupt.set(tokio::signal::ctrl_c());
                session.cancel();
            }
            event = events.recv() => {
                let event = match event {
                    Some((_, SessionEvent::Agent(event))) => event,
                    Some((_, SessionEvent::Panicked(failure))) => anyhow::bail!(failure.message),
                    Some(_) => continue,
                    None => anyhow::bail!("internal error: the session ended without reporting a cause"),
                };
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

/// A closed output ends a turn that may have changed something: this is neither a success nor an internal error.
fn unread(error: anyhow::Error) -> anyhow::Error {
    let is_gone = error
        .downcast_ref()
        .is_some_and(|error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe);
    if is_gone {
        anyhow::anyhow!("the output was closed, so the turn was stopped")
    } else {
        error
    }
}

struct Terminal {
    json: bool,
    stdout: io::Stdout,
    stderr: io::Stderr,
    /// Whether the answer's last line is incomplete.
    mid_line: bool,
    /// Descriptions of running calls, by id.
    calls: HashMap<String, (ToolKind, String)>,
}

impl Terminal {
    fn new(json: bool) -> Self {
        Self {
            json,
            stdout: io::stdout(),
            stderr: io::stderr(),
            mid_line: false,
            calls: HashMap::new(),
        }
    }

    fn show(&mut self, event: AgentEvent) -> anyhow::Result<()> {
        if self.json {
            let mut line = serde_json::to_vec(&event)?;
            line.push(b'\n');
            self.stdout.write_all(&line)?;
            self.stdout.flush()?;
        }
        match event {
            AgentEvent::PermissionRequested(request) => self.ask(*request)?,
            event if !self.json => self.tell(event)?,
            _ => {}
        }
        Ok(())
    }

    fn tell(&mut self, event: AgentEvent) -> io::Result<()> {
        if let Some(notice) = event.notice() {
            return self.line(&format!("! {notice}"));
        }
        match event {
            AgentEvent::TextDelta { content } => {
                self.mid_line = !content.ends_with('\n');
                self.stdout
                    .write_all(display::escape_piece(&content).as_bytes())?;
                self.stdout.flush()
            }
            AgentEvent::ToolPreview {
                call_id,
                kind,
                preview,
            } => {
                self.calls.insert(call_id, (kind, preview.title));
                Ok(())
            }
            // Only commands run long enough to need this.
            AgentEvent::ToolExecutionStart { call_id, name, .. } => {
                match self.calls.get(&call_id) {
                    Some((ToolKind::Execute, title)) => {
                        let words = display::escape_line(&format!("{name}: {title}")).into_owned();
                        self.line(&format!("… {words}"))
                    }
                    _ => Ok(()),
                }
            }
            AgentEvent::ToolExecutionEnd {
                call_id,
                name,
                result,
                execute_duration_ms,
                ..
            } => {
                let (sign, how) = result.outcome();
                let title = self.calls.remove(&call_id).map(|(_, title)| title);
                let words: Vec<_> = [Some(name), title, how].into_iter().flatten().collect();
                self.line(&format!(
                    "{sign} {} ({execute_duration_ms:.0} ms)",
                    display::escape_line(&words.join(": "))
                ))
            }
            AgentEvent::Retry {
                wait_ms, reason, ..
            } => self.line(&format!(
                "… {reason}; retrying after {} s",
                wait_ms.div_ceil(1000)
            )),
            AgentEvent::Resumed {
                title,
                mode,
                model,
                effort,
                ..
            } => {
                let effort = effort.map(|effort| format!(", effort {}", effort.name()));
                let how = format!(
                    "mode {mode}, {}{}",
                    model.unwrap_or_default(),
                    effort.unwrap_or_default()
                );
                self.line(&format!(
                    "… continuing: {} ({})",
                    display::escape_line(&title),
                    display::escape_line(&how)
                ))
            }
            AgentEvent::Error(failure) => self.line(&format!("tandem: {failure}")),
            AgentEvent::Done {
                termination_reason: Termination::Cancelled,
                ..
            } => self.line("! cancelled"),
            AgentEvent::Done { .. } => self.end_line(),
            _ => Ok(()),
        }
    }

    fn line(&mut self, text: &str) -> io::Result<()> {
        self.end_line()?;
        writeln!(self.stderr, "{}", display::escape(text))
    }

    fn end_line(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.mid_line) {
            self.stdout.write_all(b"\n")?;
            self.stdout.flush()?;
        }
        Ok(())
    }

    /// Asks on the terminal; without a terminal the answer is no.
    fn ask(&mut self, request: PermissionRequest) -> io::Result<()> {
        let PermissionRequest {
            about,
            preview,
            offer,
            reply: Some(reply),
            ..
        } = request
        else {
            return Ok(());
        };
        if about == About::Plan {
            // The next command starts it, with what the person changed in the file.
            let _turn_gone = reply.send(Permission::Reject);
            return self.line(&format!(
                "! {}",
                preview.note.as_deref().unwrap_or_default()
            ));
        }
        self.line(&format!("? {}", display::escape_line(&preview.title)))?;
        for line in preview.description() {
            self.line(&format!("  {}", line.replace('\n', "\n  ")))?;
        }
        if let Some(answers) = &preview.answers {
            return self.question(answers.clone(), reply);
        }
        for diff in &preview.diffs {
            let change = unified(
                diff.old_text.as_deref().unwrap_or_default(),
                &diff.new_text,
                3,
            );
            self.stderr.write_all(display::escape(&change).as_bytes())?;
        }
        if !io::stdin().is_terminal() {
            let (done, hint) = match about {
                About::Apply => ("discarded", ""),
                _ if preview.diffs.is_empty() || preview.caution.is_some() => ("refused", ""),
                _ => ("refused", " (--mode edit allows edits)"),
            };
            self.line(&format!(
                "  {done}, because there is no terminal to ask in{hint}"
            ))?;
            let _turn_gone = reply.send(Permission::unasked());
            return Ok(());
        }
        let turn = if offer.turn {
            ", all of this [t]urn"
        } else {
            ""
        };
        let always = offer
            .rule
            .as_deref()
            .map(display::escape_line)
            .map_or_else(String::new, |rule| {
                format!(", [a]lways {rule}, [p] always for this project")
            });
        write!(self.stderr, "  allow? [y]es{turn}{always}, [N]o: ")?;
        self.stderr.flush()?;
        read_answer(reply, move |answer| understood(answer, &offer));
        Ok(())
    }

    /// Asks a question of the model; without a terminal, nobody answers it.
    fn question(
        &mut self,
        answers: Vec<String>,
        reply: oneshot::Sender<Permission>,
    ) -> io::Result<()> {
        for (number, answer) in (1..).zip(&answers) {
            self.line(&format!("  {number}. {}", display::escape_line(answer)))?;
        }
        if !io::stdin().is_terminal() {
            self.line("  no terminal to ask in, so nobody answers")?;
            let _turn_gone = reply.send(Permission::Reject);
            return Ok(());
        }
        write!(self.stderr, "  answer: ")?;
        self.stderr.flush()?;
        read_answer(reply, move |answer| answered(answer, &answers));
        Ok(())
    }
}

/// Passes on what the next line means. What was typed before the question was shown answers nothing.
fn read_answer(
    reply: oneshot::Sender<Permission>,
    meant: impl FnOnce(&str) -> Permission + Send + 'static,
) {
    #[cfg(unix)]
    let _no_terminal =
        rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
    tokio::task::spawn_blocking(move || {
        let mut answer = String::new();
        let read = io::stdin().read_line(&mut answer);
        let _turn_gone = reply.send(read.map_or(Permission::Reject, |_| meant(&answer)));
    });
}

/// What was typed is the answer; the number of an offered answer stands for it, and an empty line is no answer.
fn answered(typed: &str, answers: &[String]) -> Permission {
    let typed = typed.trim();
    let offered = typed
        .parse::<usize>()
        .ok()
        .and_then(|number| answers.get(number.checked_sub(1)?));
    match offered {
        Some(answer) => Permission::Answered(answer.clone()),
        None if typed.is_empty() => Permission::Reject,
        None => Permission::Answered(typed.to_owned()),
    }
}

/// Only a clear yes to what was offered is a yes.
fn understood(answer: &str, offer: &Offer) -> Permission {
    let (word, rule) = answer
        .trim()
        .split_once(' ')
        .map_or((answer.trim(), None), |(word, rule)| (word, Some(rule)));
    let grant = |scope| {
        Permission::AllowAlways(Grant {
            scope,
            rule: rule.map(|rule| rule.trim().to_owned()),
        })
    };
    match (word, rule) {
        ("y" | "yes", None) => Permission::AllowOnce,
        ("t" | "turn", None) if offer.turn => grant(Scope::Turn),
        ("a" | "always", _) if offer.rule.is_some() => grant(Scope::Session),
        ("p" | "project", _) if offer.rule.is_some() => grant(Scope::Project),
        _ => Permission::Reject,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_typed_or_chosen_by_number() {
        let check = |typed: &str, expected: Permission| {
            assert_eq!(
                answered(typed, &["SQLite".to_owned(), "Postgres".to_owned()]),
                expected,
                "{typed:?}"
            );
        };
        check("2\n", Permission::Answered("Postgres".to_owned()));
        check("3\n", Permission::Answered("3".to_owned()));
        check("0", Permission::Answered("0".to_owned()));
        check(" neither\n", Permission::Answered("neither".to_owned()));
        check("\n", Permission::Reject);
    }

    #[test]
    fn anything_but_a_clear_yes_is_no() {
        let check = |answer: &str, expected: Permission| {
            let offer = Offer {
                rule: Some("edit_file(src/a)".to_owned()),
                turn: true,
                ..Offer::default()
            };
            assert_eq!(understood(answer, &offer), expected, "{answer:?}");
        };
        let grant = |scope, rule: Option<&str>| {
            Permission::AllowAlways(Grant {
                scope,
                rule: rule.map(str::to_owned),
            })
        };
        check("y\n", Permission::AllowOnce);
        check("a\n", grant(Scope::Session, None));
        check("t\n", grant(Scope::Turn, None));
        check(
            "p edit_file(src/**)\n",
            grant(Scope::Project, Some("edit_file(src/**)")),
        );
        for answer in ["", "\n", "n", "yes please", "sure", "A"] {
            check(answer, Permission::Reject);
        }
        for answer in ["a", "p", "t"] {
            let outcome = understood(answer, &Offer::default());
            assert_eq!(outcome, Permission::Reject, "{answer} was not offered");
        }
    }
}
