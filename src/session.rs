//! One actor per conversation: it owns the history, starts turns, and answers what rules and modes can answer.
//!
//! Commands come in through a bounded mailbox, events leave through a bounded channel shared by all sessions. The
//! actor never waits for the reader of its events while a command is at the door, so a cancel is heard however slow
//! the editor is. Each turn is a task of its own: a panic becomes an error event, never a dead session.

mod checkpoint;
mod connect;
mod context;
pub mod permission;
mod questions;
mod resume;
mod servers;
mod store;
mod turns;

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::OptionFuture;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::agent::event::{AgentEvent, Termination, Usage};
use crate::agent::prompt;
pub use crate::agent::prompt::{Attachment, Focus, Prompt};
use crate::agent::{Entry, Guidance, Limits, Spent, Steer, Step};
use crate::config::{Mode, Settings};
pub use crate::model::Effort;
use crate::model::{ErrorCode, Instructions, Message, Preamble, Provider, ToolSpec};
use crate::tools::process::Shell;
use crate::tools::{Redactor, Tool, mcp};
use crate::workspace::{Skill, Workspace};
use checkpoint::Checkpoints;
pub use checkpoint::{Review, ReviewError, Reviewed, ReviewedFile, ReviewedTurn, Selection, Undoable};
pub use connect::{
    NoProvider, Setup, Start, mcp_servers, new_id, provider, provider_named, ready, remembered, rule_problems, setup,
    surroundings,
};
pub use context::{Completer, Completion, Mentionable, typed_mention};
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
const UNANSWERED: &str = "(no answer: the request failed or was cancelled)";

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
    /// Look at, keep or take back changes. Only looking works while a turn runs.
    Review(Review, oneshot::Sender<Result<Reviewed, ReviewError>>),
}

/// The handle of a session. The session ends when the handle is dropped.
pub struct Session {
    mailbox: mpsc::Sender<Command>,
    undoable: watch::Receiver<Option<Undoable>>,
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
        let (changed, undoable) = watch::channel(None);
        let (id, told) = (Arc::clone(&setup.id), events.clone());
        let completer = Completer::new(setup.workspace.clone(), end.clone());
        let actor = Actor::new(setup, events, changed, end.clone());
        let task = tokio::spawn(async move {
            if AssertUnwindSafe(actor.run(commands)).catch_unwind().await.is_err() {
                broke(&id, &told).await;
            }
        });
        Self { mailbox, undoable, completer, end, task }
    }

    /// Hands a command over; a session with a full mailbox is told as an error.
    ///
    /// # Errors
    /// When the session is gone or does not keep up.
    pub fn send(&self, command: Command) -> Result<(), SessionBusy> {
        if matches!(command, Command::Prompt(_)) {
            self.completer.forget();
        }
        self.mailbox.try_send(command).map_err(|_full| SessionBusy)
    }

    /// What there is to take back.
    #[must_use]
    pub fn undoable(&self) -> Option<Undoable> {
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
    /// The folder of the person's own `AGENTS.md`.
    own_files: Option<PathBuf>,
    /// What was kept of it and waits for a model to be encoded for.
    kept: Vec<Message>,
    turns: u64,
    /// What it is to be called, until that was told.
    title: Option<String>,
    checkpoints: Checkpoints,
    journal: Journal,
    start: Start,
    keeps_mode: bool,
    models: Option<Settings>,
    /// What the person did since the last message, for the model.
    remarks: Vec<String>,
    running: Option<Running>,
    outgoing: VecDeque<AgentEvent>,
    events: mpsc::Sender<(SessionId, AgentEvent)>,
    end: CancellationToken,
}

impl Actor {
    fn new(
        setup: Setup,
        events: mpsc::Sender<(SessionId, AgentEvent)>,
        undoable: watch::Sender<Option<Undoable>>,
        end: CancellationToken,
    ) -> Self {
        let id = Arc::clone(&setup.id);
        let folders = setup.workspace.roots().iter().map(|root| root.path().to_owned()).collect();
        Self {
            id: setup.id,
            model: setup.provider.map(|provider| Model::new(provider, &setup.workspace, &setup.tools)),
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
            own_files: setup.own_files,
            kept: Vec::new(),
            turns: 0,
            title: None,
            checkpoints: Checkpoints::new(setup.checkpoints, undoable),
            journal: Journal::new(setup.journal, id, folders),
            start: setup.start,
            keeps_mode: setup.keeps_mode,
            models: setup.models,
            remarks: Vec::new(),
            running: None,
            outgoing: VecDeque::new(),
            events,
            end,
        }
    }

    async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        let mut batch = Vec::with_capacity(STEPS);
        let (events, end) = (self.events.clone(), self.end.clone());
        self.recall().await;
        if self.start != Start::New {
            self.resume().await;
        }
        self.look_for_a_model().await;
        let provider = self.model.as_ref().ok().map(|model| model.provider.clone());
        let warming = provider.map(|provider| tokio::spawn(async move { provider.warm().await }));
        loop {
            let idle = self.outgoing.is_empty();
            let steps = self.running.as_mut().filter(|_| idle);
            let next = OptionFuture::from(steps.map(|running| running.steps.recv_many(&mut batch, STEPS)));
            tokio::select! {
                biased;
                () = end.cancelled() => break,
                command = commands.recv() => match command {
                    Some(Command::Prompt(prompt)) => {
                        self.settle().await;
                        self.look_for_a_model().await;
                        self.prompt(prompt).await;
                    }
                    Some(Command::Compact) => {
                        self.settle().await;
                        self.look_for_a_model().await;
                        self.compact().await;
                    }
                    Some(Command::Steer(prompt, joined)) => self.steer(prompt, joined).await,
                    Some(Command::Cancel) => self.cancel(),
                    Some(Command::SetMode(mode)) => {
                        self.mode = mode;
                        self.journal.mode(mode);
                        self.write().await;
                    }
                    Some(Command::SetModel(provider, effort)) => {
                        self.set_model(provider, effort);
                        self.write().await;
                    }
                    Some(Command::Review(review, reply)) => {
                        self.settle().await;
                        let reviewed = end.run_until_cancelled(self.review(review)).await;
                        let _asker_gone = reviewed.map(|reviewed| reply.send(reviewed));
                    }
                    None => break,
                },
                room = events.reserve(), if !idle => match (room, self.outgoing.pop_front()) {
                    (Ok(room), Some(event)) => room.send((Arc::clone(&self.id), event)),
                    _ => break,
                },
                Some(count) = next => if count == 0 {
                    self.turn_ended().await;
                } else {
                    for step in batch.drain(..) {
                        self.step(step).await;
                    }
                    self.write().await;
                    if self.running.as_ref().is_some_and(|running| running.done) {
                        self.journal.sync().await;
                    }
                },
            }
        }
        if let Some(warming) = warming {
            warming.abort();
        }
        if let Some(running) = self.running.take() {
            running.cancel.cancel();
            drop(running.steps);
            let _ended = running.task.await;
        }
        // What was chosen right before the end is kept.
        while let Ok(command) = commands.try_recv() {
            match command {
                Command::SetMode(mode) => self.journal.mode(mode),
                Command::SetModel(provider, effort) => self.set_model(provider, effort),
                _ => {}
            }
        }
        self.write().await;
        self.journal.synced().await;
        self.shell.end().await;
        self.servers.close().await;
    }

    /// With nothing configured, a model server that runs on this machine is taken: also one that was started only now.
    async fn look_for_a_model(&mut self) {
        if self.model.as_ref().is_err_and(|why| why.unset)
            && let Some(provider) = connect::local().await
        {
            self.model = Ok(Model::new(provider, &self.workspace, &self.tools));
        }
    }

    async fn review(&mut self, review: Review) -> Result<Reviewed, ReviewError> {
        if self.running.is_some() && review != Review::List {
            return Err(ReviewError("a turn is running: wait for its end or cancel it".to_owned()));
        }
        let mut reviewed = self.checkpoints.review(&self.workspace, review).await?;
        self.remarks.extend(reviewed.remark.take());
        Ok(reviewed)
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Entry(entry) => self.keep(entry),
            Step::History(entries) => {
                self.journal.compacted(entries.iter().map(|entry| entry.message()).collect());
                self.history = entries;
            }
            Step::Event(event) => {
                self.journal.event(&event);
                self.spent.note(&event);
                if let AgentEvent::ToolExecutionEnd { result, .. } = &event {
                    let problem = self.checkpoints.record(&self.id, self.turns, &result.diffs).await;
                    self.outgoing.extend(problem.map(|message| AgentEvent::Notice { message }));
                }
                let title = self.title.take_if(|_| matches!(event, AgentEvent::TurnStart { .. }));
                self.consider(event).await;
                self.outgoing.extend(title.map(|title| AgentEvent::SessionTitle { title }));
            }
        }
    }

    /// Questions are answered or asked, everything else is passed on.
    async fn consider(&mut self, event: AgentEvent) {
        match event {
            AgentEvent::PermissionRequested { .. } => self.question(event),
            AgentEvent::PermissionResolved { call_id, outcome } => self.answered(call_id, outcome).await,
            event => {
                if let Some(running) = &mut self.running {
                    running.done |= matches!(event, AgentEvent::Done { .. });
                }
                self.outgoing.push_back(self.without_secrets(event));
            }
        }
    }

    /// What others said may quote a key.
    fn without_secrets(&self, mut event: AgentEvent) -> AgentEvent {
        if let AgentEvent::Error { message: text, .. }
        | AgentEvent::Notice { message: text }
        | AgentEvent::Retry { reason: text, .. }
        | AgentEvent::ToolOutput { content: text, .. } = &mut event
        {
            self.secrets.clean(text);
        }
        event
    }

    /// What the person allowed for this project holds again.
    async fn recall(&mut self) {
        let Some(remembered) = &self.remembered else { return };
        match remembered.rules().await {
            Ok(rules) => self.policy.recall(rules),
            Err(error) => tracing::warn!("what was allowed in this project cannot be read: {error}"),
        }
    }
}

/// A model and the bytes that open each of its requests.
struct Model {
    provider: Provider,
    preamble: Preamble,
}

impl Model {
    fn new(provider: Provider, workspace: &Workspace, tools: &[Arc<dyn Tool>]) -> Self {
        let preamble = preamble(&provider, workspace, tools);
        Self { provider, preamble }
    }
}

/// The bytes that open every request with these tools.
fn preamble(provider: &Provider, workspace: &Workspace, tools: &[Arc<dyn Tool>]) -> Preamble {
    let tools = tools.iter().map(|tool| spec(&**tool)).collect();
    provider.preamble(&Instructions { system: prompt::system(workspace), tools })
}

/// A tool as the model is told of it.
fn spec(tool: &dyn Tool) -> ToolSpec {
    ToolSpec { name: tool.name().to_owned(), description: tool.description().to_owned(), parameters: tool.parameters() }
}
