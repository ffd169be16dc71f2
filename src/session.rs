//! One actor per conversation: it owns the history, starts turns, and answers what rules and modes can answer.
//!
//! Commands come in through a bounded mailbox, events leave through a bounded channel shared by all sessions. The
//! actor never waits for the reader of its events while a command is at the door, so a cancel is heard however slow
//! the editor is. Each turn is a task of its own: a panic becomes an error event, never a dead session.

mod checkpoint;
mod connect;
mod permission;
mod servers;
mod store;
mod turns;

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::OptionFuture;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::agent::event::{AgentEvent, Permission};
use crate::agent::prompt;
pub use crate::agent::prompt::{Attachment, Focus, Prompt};
use crate::agent::{Entry, Limits, Steer, Step};
use crate::config::Mode;
use crate::model::{ErrorCode, Instructions, Message, Preamble, Provider, ToolSpec};
use crate::tools::{Tool, mcp};
use crate::workspace::Workspace;
use checkpoint::Checkpoints;
pub use checkpoint::{Review, ReviewError, Reviewed, ReviewedFile, ReviewedTurn, Selection, Undoable};
pub use connect::{NoProvider, mcp_servers, provider, rule_problems, setup};
use permission::{Facts, Policy, Verdict};
use store::Journal;
pub use store::{Listed, Sessions, StoreError};

/// Names a conversation.
pub type SessionId = Arc<str>;

/// Commands that may wait for a session before the sender waits too.
const MAILBOX: usize = 32;
/// Steps that may wait between a turn and its session.
const STEPS: usize = 32;

/// What a session is made of.
pub struct Setup {
    /// Its name.
    pub id: SessionId,
    /// The model, or why there is none.
    pub provider: Result<Provider, NoProvider>,
    /// The files.
    pub workspace: Workspace,
    /// The tools the model is offered.
    pub tools: Arc<[Arc<dyn Tool>]>,
    /// Where more tools come from.
    pub servers: mcp::Servers,
    /// How long the first prompt waits for them.
    pub patience: Duration,
    /// The mode it starts in.
    pub mode: Mode,
    /// The rules of the configuration.
    pub policy: Policy,
    /// When a turn has to stop.
    pub limits: Limits,
    /// Where the texts before its changes are stored; `None`: nowhere.
    pub checkpoints: Option<PathBuf>,
    /// Where its journal is; `None`: nowhere.
    pub journal: Option<PathBuf>,
    /// How it begins.
    pub start: Start,
}

/// How a conversation begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// Empty.
    New,
    /// As it was kept, under the same name: [`AgentEvent::Resumed`] tells when it is there, [`AgentEvent::Error`] why not.
    Resume,
    /// The same, shown again before.
    Replay,
}

/// A name no other conversation has: when it began, in which process, and a count.
#[must_use]
pub fn new_id() -> SessionId {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{:x}-{:x}-{count}", now.as_millis(), std::process::id()).into()
}

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
    /// Look at, keep or take back changes. Only looking works while a turn runs.
    Review(Review, oneshot::Sender<Result<Reviewed, ReviewError>>),
}

/// The handle of a session. The session ends when the handle is dropped.
pub struct Session {
    mailbox: mpsc::Sender<Command>,
    undoable: watch::Receiver<Option<Undoable>>,
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
        let task = tokio::spawn(Actor::new(setup, events, changed, end.clone()).run(commands));
        Self { mailbox, undoable, end, task }
    }

    /// Hands a command over; a session with a full mailbox is told as an error.
    ///
    /// # Errors
    /// When the session is gone or does not keep up.
    pub fn send(&self, command: Command) -> Result<(), SessionBusy> {
        self.mailbox.try_send(command).map_err(|_full| SessionBusy)
    }

    /// What there is to take back.
    #[must_use]
    pub fn undoable(&self) -> Option<Undoable> {
        *self.undoable.borrow()
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

/// The session is gone or does not keep up with its commands.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the session does not keep up; try again")]
pub struct SessionBusy;

/// A turn under way.
struct Running {
    steps: mpsc::Receiver<Step>,
    task: JoinHandle<()>,
    cancel: CancellationToken,
    steering: mpsc::Sender<Steer>,
    /// What it asked and nobody answered yet.
    asked: HashMap<String, Facts>,
    done: bool,
}

struct Actor {
    id: SessionId,
    model: Result<Model, NoProvider>,
    workspace: Workspace,
    tools: Arc<[Arc<dyn Tool>]>,
    servers: mcp::Servers,
    patience: Duration,
    mode: Mode,
    policy: Policy,
    limits: Limits,
    history: Vec<Arc<Entry>>,
    /// What was kept of it and waits for a model to be encoded for.
    kept: Vec<Message>,
    turns: u64,
    /// What it is to be called, until that was told.
    title: Option<String>,
    checkpoints: Checkpoints,
    journal: Journal,
    start: Start,
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
            workspace: setup.workspace,
            tools: setup.tools,
            servers: setup.servers,
            patience: setup.patience,
            mode: setup.mode,
            policy: setup.policy,
            limits: setup.limits,
            history: Vec::new(),
            kept: Vec::new(),
            turns: 0,
            title: None,
            checkpoints: Checkpoints::new(setup.checkpoints, undoable),
            journal: Journal::new(setup.journal, id, folders),
            start: setup.start,
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
                    Some(Command::Steer(prompt, joined)) => self.steer(prompt, joined),
                    Some(Command::Cancel) => self.cancel(),
                    Some(Command::SetMode(mode)) => {
                        self.mode = mode;
                        self.journal.mode(mode);
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
        self.write().await;
        self.journal.synced().await;
        self.servers.close().await;
    }

    /// Takes the conversation up where its journal ends.
    async fn resume(&mut self) {
        let kept = match self.journal.open().await {
            Ok(kept) => kept,
            Err(problem) => return self.fail(problem.to_string(), ErrorCode::InvalidRequest),
        };
        self.mode = kept.mode.unwrap_or(self.mode);
        self.turns = kept.turns;
        self.kept = kept.messages;
        let texts = self.checkpoints.texts().await;
        self.checkpoints.restore(store::changes(&kept.records, &texts).await);
        if self.start == Start::Replay {
            self.outgoing.extend(store::events(kept.records, &texts).await);
        }
        let title = kept.head.map(|head| head.title).unwrap_or_default();
        self.outgoing.push_back(AgentEvent::Resumed { title, mode: self.mode.name().to_owned(), cost: kept.cost });
        if kept.unreadable > 0 {
            let message = format!("{} lines of this conversation's journal were damaged and left out", kept.unreadable);
            self.outgoing.push_back(AgentEvent::Notice { message });
        }
        self.write().await;
    }

    /// Writes what the journal has noted, before anybody is told of it.
    async fn write(&mut self) {
        if let Err(message) = self.journal.flush().await {
            self.outgoing.push_front(AgentEvent::Notice { message });
        }
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
            Step::Entry(entry) => {
                self.journal.message(&entry.message);
                self.history.push(entry);
            }
            Step::History(entries) => {
                self.journal.compacted(entries.iter().map(|entry| entry.message.clone()).collect());
                self.history = entries;
            }
            Step::Event(event) => {
                self.journal.event(&event);
                if let AgentEvent::ToolExecutionEnd { result, .. } = &event {
                    let problem = self.checkpoints.record(&self.id, self.turns, &result.diffs).await;
                    self.outgoing.extend(problem.map(|message| AgentEvent::Notice { message }));
                }
                let title = self.title.take_if(|_| matches!(event, AgentEvent::TurnStart { .. }));
                let event = self.consider(event);
                self.outgoing.extend(event);
                self.outgoing.extend(title.map(|title| AgentEvent::SessionTitle { title }));
            }
        }
    }

    /// Answers a question that the mode or a rule can answer; everything else is passed on.
    fn consider(&mut self, event: AgentEvent) -> Option<AgentEvent> {
        let running = self.running.as_mut()?;
        match event {
            AgentEvent::PermissionRequested { call_id, name, kind, preview, mut reply } => {
                let facts = Facts::new(&name, kind, &preview, &self.workspace);
                let outcome = match self.policy.decide(self.mode, &facts) {
                    Verdict::Allow => Permission::AllowOnce,
                    Verdict::Forbid(why) => Permission::Forbidden(why),
                    Verdict::Ask => {
                        running.asked.insert(call_id.clone(), facts);
                        return Some(AgentEvent::PermissionRequested { call_id, name, kind, preview, reply });
                    }
                };
                if let Some(reply) = reply.take() {
                    let _turn_gone = reply.send(outcome);
                }
                None
            }
            AgentEvent::PermissionResolved { call_id, outcome } => {
                let facts = running.asked.remove(&call_id)?;
                if outcome == Permission::AllowAlways {
                    self.policy.remember(facts);
                }
                Some(AgentEvent::PermissionResolved { call_id, outcome })
            }
            event => {
                running.done |= matches!(event, AgentEvent::Done { .. });
                Some(event)
            }
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
