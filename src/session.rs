//! One actor per conversation: it owns the history, starts turns, and answers what rules and modes can answer.
//!
//! Commands come in through a bounded mailbox, events leave through a bounded channel shared by all sessions. The
//! actor never waits for the reader of its events while a command is at the door, so a cancel is heard however slow
//! the editor is. Each turn is a task of its own: a panic becomes an error event, never a dead session.

pub mod check;
mod checkpoint;
mod connect;
mod context;
mod inline;
mod offers;
pub mod permission;
mod questions;
mod restore;
mod resume;
mod run;
mod servers;
mod store;
mod texts;
mod turns;

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::agent::event::{AgentEvent, Termination, Usage};
use crate::agent::prompt;
pub use crate::agent::prompt::{Attachment, Focus, Prompt};
use crate::agent::{Entry, Guidance, Limits, Spent, Steer, Step};
use crate::config::{Mode, Settings};
pub use crate::model::Effort;
use crate::model::{ErrorCode, Instructions, Message, Preamble, Provider, ToolSpec};
use crate::tools::process::Shell;
use crate::tools::{Redactor, Tool, ToolKind, mcp};
use crate::workspace::{Skill, Workspace};
use checkpoint::Checkpoints;
pub use checkpoint::{Left, Review, ReviewError, Reviewed, ReviewedFile, ReviewedTurn, Selection, Undoable};
pub use connect::{
    NoProvider, Setup, Start, mcp_servers, new_id, provider, provider_named, ready, remembered, rule_problems, setup,
    surroundings,
};
pub use context::{Completer, Completion, Mentionable, typed_mention};
pub use inline::{NotRewritten, Rewrite};
pub use offers::{Candidate, OfferedModel, OfferedProvider, chosen, providers};
use permission::Policy;
use permission::remembered::Remembered;
use questions::Questions;
use store::Journal;
pub use store::{Listed, Sessions, StoreError};

/// Names a conversation.
pub type SessionId = Arc<str>;

/// Commands that may wait for a session before the sender waits too.
const MAILBOX: usize = 32;
/// Steps that may wait between a turn and its session.
const STEPS: usize = 32;
/// What stands in the history where a turn ended without an answer: many chat templates refuse a conversation in which
/// the roles do not take turns.
const UNANSWERED: &str = "(no answer)";

/// What can be asked of a session.
#[derive(Debug)]
pub enum Command {
    /// Start a turn. The caller makes sure that none runs; one that does is an error event.
    Prompt(Prompt),
    /// Say something to the running turn; told when it has joined, dropped when no turn takes it.
    Steer(Prompt, oneshot::Sender<()>),
    /// Start a turn that makes the conversation shorter, as [`Command::Prompt`] starts one.
    Compact,
    /// Stop the turn, if one runs.
    Cancel,
    /// Change the mode, also of a running turn.
    SetMode(Mode),
    /// Another model answers from the next prompt on, thinking this hard (`None`: as configured); a running turn ends
    /// with the one it began with.
    SetModel(Provider, Option<Effort>),
    /// List, keep, reject, undo or redo changes. Only listing works while a turn runs.
    Review(Review, oneshot::Sender<Result<Reviewed, ReviewError>>),
}

/// The handle of a session. The session ends when the handle is dropped.
pub struct Session {
    mailbox: mpsc::Sender<Command>,
    /// Counts the cancels in the mailbox: a prompt that is being put together does not wait for its turn to hear of one.
    cancels: watch::Sender<u64>,
    undoable: watch::Receiver<Undoable>,
    completer: Completer,
    end: CancellationToken,
    task: JoinHandle<()>,
}

impl Session {
    /// Starts a conversation whose events go to `events`.
    #[must_use]
    pub fn start(setup: Setup, events: mpsc::Sender<(SessionId, AgentEvent)>, parent: &CancellationToken) -> Self {
        let (mailbox, commands) = mpsc::channel(MAILBOX);
        let end = parent.child_token();
        let (changed, undoable) = watch::channel(Undoable::default());
        let (id, told) = (Arc::clone(&setup.id), events.clone());
        let completer = Completer::new(setup.workspace.clone(), end.clone());
        let (cancels, cancelled) = watch::channel(0);
        let actor = Actor::new(setup, events, changed, Cancels { sent: cancelled, heard: 0 }, end.clone());
        let task = tokio::spawn(async move {
            if AssertUnwindSafe(actor.run(commands)).catch_unwind().await.is_err() {
                broke(&id, &told).await;
            }
        });
        Self { mailbox, cancels, undoable, completer, end, task }
    }

    /// Hands a command over; a session with a full mailbox is told as an error.
    ///
    /// # Errors
    /// When the session is gone or does not keep up.
    pub fn send(&self, command: Command) -> Result<(), SessionBusy> {
        if matches!(command, Command::Prompt(_)) {
            self.completer.forget();
        }
        let is_cancel = matches!(command, Command::Cancel);
        self.mailbox.try_send(command).map_err(|_full| SessionBusy)?;
        if is_cancel {
            self.cancels.send_modify(|count| *count += 1);
        }
        Ok(())
    }

    /// What there is to undo and to redo.
    #[must_use]
    pub fn undoable(&self) -> Undoable {
        *self.undoable.borrow()
    }

    /// Offers what a prompt can mention.
    #[must_use]
    pub fn completer(&self) -> Completer {
        self.completer.clone()
    }

    /// Stops the running turn, if any, and waits until the session is gone.
    pub async fn close(self) {
        self.end.cancel();
        drop(self.mailbox);
        if let Err(error) = self.task.await {
            tracing::error!("a session broke: {error}");
        }
    }
}

/// A session that panicked is over, and whoever waits for it learns so.
async fn broke(id: &SessionId, events: &mpsc::Sender<(SessionId, AgentEvent)>) {
    tracing::error!("session {id} broke");
    let message = "the session broke (a bug of tandem; its log has the cause): begin or load a session".to_owned();
    for event in failed(message, ErrorCode::Internal) {
        let _nobody_listens = events.send((Arc::clone(id), event)).await;
    }
}

/// The events of a turn that failed before it began.
fn failed(message: String, code: ErrorCode) -> [AgentEvent; 2] {
    [
        AgentEvent::Error { message, code, status: None, retryable: false },
        AgentEvent::Done {
            final_text: String::new(),
            termination_reason: Termination::Error,
            iterations: 0,
            usage: Usage::default(),
        },
    ]
}

/// The session is gone or does not keep up with its commands.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the session is gone or does not keep up; try again, or begin another one")]
pub struct SessionBusy;

/// The cancels that were sent, and how many of them were taken out of the mailbox.
struct Cancels {
    sent: watch::Receiver<u64>,
    heard: u64,
}

/// A turn under way.
struct Running {
    steps: mpsc::Receiver<Step>,
    task: JoinHandle<()>,
    cancel: CancellationToken,
    steering: mpsc::Sender<Steer>,
    questions: Questions,
    done: bool,
}

struct Actor {
    id: SessionId,
    model: Result<Model, NoProvider>,
    /// How hard it thinks; `None`: as configured.
    effort: Option<Effort>,
    workspace: Workspace,
    tools: Arc<[Arc<dyn Tool>]>,
    skills: Arc<[Skill]>,
    servers: mcp::Servers,
    patience: Duration,
    shell: Shell,
    mode: Mode,
    policy: Policy,
    remembered: Option<Remembered>,
    secrets: Redactor,
    limits: Limits,
    /// What the session has used, as far as it counts for its limits.
    spent: Spent,
    history: Vec<Arc<Entry>>,
    guidance: Guidance,
    /// It was encoded for another model.
    stale: bool,
    /// A better model than the one that stands for a key, while it is looked for.
    better: JoinSet<Option<Provider>>,
    /// The folder of the person's own `AGENTS.md`.
    own_files: Option<PathBuf>,
    /// What was kept of it and waits for a model to be encoded for.
    kept: Vec<Message>,
    turns: u64,
    /// What it is to be called, until that was told.
    title: Option<String>,
    checkpoints: Checkpoints,
    restored: Vec<restore::Restored>,
    journal: Journal,
    start: Start,
    keeps_mode: bool,
    models: Option<Settings>,
    /// What the person did since the last message, for the model.
    remarks: Vec<String>,
    running: Option<Running>,
    outgoing: VecDeque<AgentEvent>,
    events: mpsc::Sender<(SessionId, AgentEvent)>,
    cancels: Cancels,
    end: CancellationToken,
}

impl Actor {
    fn new(
        setup: Setup,
        events: mpsc::Sender<(SessionId, AgentEvent)>,
        undoable: watch::Sender<Undoable>,
        cancels: Cancels,
        end: CancellationToken,
    ) -> Self {
        let id = Arc::clone(&setup.id);
        let mut better = JoinSet::new();
        if let Some(provider) = setup.provider.as_ref().ok().filter(|_| setup.by_key) {
            better.spawn(offers::better(provider.clone()));
        }
        let folders = setup.workspace.roots().iter().map(|root| root.path().to_owned()).collect();
        Self {
            id: setup.id,
            model: setup.provider.map(|provider| Model::new(provider, &id, &setup.workspace, &setup.tools)),
            effort: None,
            workspace: setup.workspace,
            tools: setup.tools,
            skills: setup.skills,
            servers: setup.servers,
            patience: setup.patience,
            shell: Shell::new(setup.surroundings),
            mode: setup.mode,
            policy: setup.policy,
            remembered: setup.remembered,
            secrets: setup.secrets,
            limits: setup.limits,
            spent: Spent::default(),
            history: Vec::new(),
            guidance: Guidance::default(),
            stale: false,
            better,
            own_files: setup.own_files,
            kept: Vec::new(),
            turns: 0,
            title: None,
            checkpoints: Checkpoints::new(setup.checkpoints, undoable),
            restored: Vec::new(),
            journal: Journal::new(setup.journal, id, folders),
            start: setup.start,
            keeps_mode: setup.keeps_mode,
            models: setup.models,
            remarks: Vec::new(),
            running: None,
            outgoing: VecDeque::new(),
            events,
            cancels,
            end,
        }
    }
}

/// A model and the bytes that open each of its requests.
struct Model {
    provider: Provider,
    preamble: Preamble,
}

impl Model {
    fn new(provider: Provider, id: &SessionId, workspace: &Workspace, tools: &[Arc<dyn Tool>]) -> Self {
        let preamble = preamble(&provider, id, workspace, tools);
        Self { provider, preamble }
    }
}

/// The bytes that open every request with these tools in the conversation `id`.
fn preamble(provider: &Provider, id: &SessionId, workspace: &Workspace, tools: &[Arc<dyn Tool>]) -> Preamble {
    let edits_by_patch = tools.iter().any(|tool| tool.name() == "apply_patch");
    let system = prompt::system(provider, workspace, edits_by_patch);
    let tools = tools.iter().map(|tool| spec(&**tool)).collect();
    provider.preamble(&Instructions { system, tools, conversation: Arc::clone(id) })
}

/// A tool as the model is told of it.
fn spec(tool: &dyn Tool) -> ToolSpec {
    ToolSpec {
        name: tool.name().to_owned(),
        description: tool.description().to_owned(),
        parameters: tool.parameters(),
        streams: tool.kind() == ToolKind::Edit,
    }
}
