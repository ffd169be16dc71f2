//! Playing one task: a session of its own in a folder of its own, and what came of it.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::buffers::{Buffers, spread};
use super::task::{Task, write};
use tandem::agent::event::{AgentEvent, Permission};
use tandem::config::{Environment, Flags, Settings, Sources};
use tandem::domain::Prompt;
use tandem::process::{Ran, Sandbox, Shell};
use tandem::session::event::SessionEvent;
use tandem::session::{Change, Session, SessionId, Setup, Start, new_id, setup, surroundings};
use tandem::workspace::{Documents, Root, Workspace};

/// Events that may wait.
const EVENTS: usize = 256;
/// So long a task may take.
const LIMIT: Duration = Duration::from_mins(30);
/// As much of what a failed check printed is given to the model for its second try, in bytes.
const PRINTED: usize = 8000;

/// What came of a task.
#[derive(Debug)]
pub(super) struct Play {
    /// Whether the check passed, at the first try and at any.
    pub passed_first: bool,
    pub passed: bool,
    /// All events, as `run --json` prints them.
    pub events: Vec<Value>,
    /// The last answer.
    pub answer: String,
    /// Wall time of the turns, in seconds.
    pub seconds: f64,
    /// US dollars, where prices are known.
    pub cost: Option<f64>,
    /// Why a turn failed, which says nothing about the model: a wrong key, a limit, a server that does not answer.
    pub failed: Option<String>,
}

type Events = mpsc::Receiver<(SessionId, SessionEvent)>;

/// Plays a task in a new folder.
pub(super) async fn play(
    task: &Task,
    model: &str,
    environment: &Environment,
) -> anyhow::Result<Play> {
    let home = tempfile::Builder::new()
        .prefix("tandem-eval-")
        .tempdir()
        .context("making a temporary folder")?;
    let home = home
        .path()
        .canonicalize()
        .context("naming a temporary folder")?;
    let (folder, outcome) = (home.join("project"), home.join("outcome"));
    let (buffers, answer) = (outcome.join("buffers"), outcome.join("answer.md"));
    write(&buffers.join(".keep"), "")?;
    task.lay_out(&folder, environment).await?;
    let documents = Buffers::of(task, &folder)?;
    let settings = settings(task, model, &folder, environment);
    let shell = sandboxed(&settings).await?;
    let seen = [&folder, &outcome].map(|folder| Root::open(folder).map(Arc::new));
    let seen = seen.into_iter().collect::<Result<Vec<_>, _>>()?;
    let seen = Workspace::new(
        seen,
        documents.clone(),
        Arc::new(Buffers(documents.clone())),
    );
    let (session, mut events) = start(task, &folder, &documents, &settings)?;
    let mut play = Play {
        passed_first: false,
        passed: false,
        events: Vec::new(),
        answer: String::new(),
        seconds: 0.0,
        cost: None,
        failed: None,
    };
    let mut prompt = task.prompt.clone();
    let tries = if task.may_retry { 2 } else { 1 };
    for attempt in 0..tries {
        let begun = Instant::now();
        session.prompt(
            format!("eval-{attempt}").into(),
            Prompt::text(prompt),
            Arc::default(),
        )?;
        let turn = tokio::time::timeout(LIMIT, follow(&mut events, &mut play)).await;
        play.seconds += begun.elapsed().as_secs_f64();
        let Ok(ended) = turn else {
            session.cancel();
            break;
        };
        ended?;
        if play.failed.is_some() {
            break;
        }
        write(&answer, &play.answer)?;
        spread(&documents, &folder, &buffers)?;
        let Ran {
            code,
            output: printed,
        } = task.check(&shell, &seen, &answer, &buffers).await?;
        play.passed = code == Some(0);
        play.passed_first = play.passed && attempt == 0;
        if play.passed {
            break;
        }
        let end = printed
            .split_at(printed.ceil_char_boundary(printed.len().saturating_sub(PRINTED)))
            .1;
        prompt = format!("The tests fail:\n\n```\n{end}\n```\n\nCorrect the implementation.");
    }
    session.close().await;
    shell.end().await;
    Ok(play)
}

fn settings(task: &Task, model: &str, folder: &Path, environment: &Environment) -> Settings {
    let flags = Flags {
        model: Some(model),
        mode: Some(task.mode),
    };
    let workspaces = [folder.to_owned()];
    Settings::load(
        environment,
        &Sources {
            workspaces: &workspaces,
            editor: None,
            flags,
        },
    )
}

/// What checks run in: without a sandbox there is nothing to play, because a check runs what the model wrote.
async fn sandboxed(settings: &Settings) -> anyhow::Result<Shell> {
    let surroundings = surroundings(settings);
    let found = Sandbox::find(&surroundings).await;
    anyhow::ensure!(
        found.name().is_some(),
        "it needs a sandbox to check what the model wrote: see `tandem doctor`"
    );
    Ok(Shell::new(surroundings))
}

fn start(
    task: &Task,
    folder: &Path,
    documents: &Documents,
    settings: &Settings,
) -> anyhow::Result<(Session, Events)> {
    let root = Root::open(folder)?;
    let workspace = Workspace::new(
        vec![Arc::new(root)],
        documents.clone(),
        Arc::new(Buffers(documents.clone())),
    );
    let (sender, events) = mpsc::channel(EVENTS);
    let setup = setup(new_id(), Start::New, settings, workspace);
    let session = Session::start(
        Setup {
            keeps_mode: false,
            keeps_model: false,
            ..setup
        },
        sender,
        &CancellationToken::new(),
    );
    drop(session.change(Change::Mode(task.mode)));
    Ok((session, events))
}

/// Collects the events of a turn. Whatever requires approval is refused: nobody is there.
async fn follow(events: &mut Events, play: &mut Play) -> anyhow::Result<()> {
    while let Some((_, event)) = events.recv().await {
        let event = match event {
            SessionEvent::Agent(event) => event,
            SessionEvent::State(state) => {
                play.cost = state.usage.and_then(|used| used.cost).or(play.cost);
                continue;
            }
            SessionEvent::Panicked(failure) => anyhow::bail!(failure.message),
            SessionEvent::Prompt(..)
            | SessionEvent::Edited(..)
            | SessionEvent::Jobs(_)
            | SessionEvent::Opened(_) => continue,
        };
        play.events.push(serde_json::to_value(&event)?);
        match event {
            AgentEvent::PermissionRequested(request) => {
                let reply = request.reply.map(|reply| reply.send(Permission::Reject));
                drop(reply);
            }
            AgentEvent::Error(failure) => play.failed = Some(failure.message),
            AgentEvent::Done { answer, .. } => {
                let text = answer.as_deref().map_or("", |it| it.answer_text());
                text.clone_into(&mut play.answer);
                return Ok(());
            }
            _ => {}
        }
    }
    anyhow::bail!("internal error: the session ended without reporting a cause")
}
