//! One actor per conversation: it owns the history, starts turns, and answers what rules and modes can answer.
//!
//! It is the only owner of the mode, the model, the effort, the queue, the steering messages and the running turn;
//! everything else sees the [`State`] it publishes.
//!
//! Prompts arrive through a bounded mailbox, changes and cancels beside it (`Control`), and events leave through a
//! bounded channel shared by all sessions. While something arrives, the actor never waits for the reader of its events,
//! so a cancel works however slow the editor is. Each turn is a task of its own: a panic becomes an error event, never
//! a dead session.

pub mod check;
mod configure;
mod connect;
mod context;
mod control;
mod environment;
pub mod event;
mod explore;
mod handle;
mod in_place;
mod inline;
mod jobs;
mod login;
mod offered;
mod offers;
pub mod permission;
mod questions;
mod queue;
mod restore;
mod resume;
mod run;
mod servers;
mod shadow;
mod slash;
mod state;
mod store;
pub mod transcript;
mod turns;
mod typing;

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::agent::event::{AgentEvent, Termination};
use crate::agent::prompt;
use crate::agent::{Entry, Guidance, Spent, Steer, Step};
use crate::changes::checkpoint::Checkpoints;
pub use crate::changes::checkpoint::{
    Review, ReviewError, Reviewed, ReviewedFile, ReviewedTurn, Selection, Undoable,
};
use crate::config::{Mode, Settings};
use crate::domain::{Attachment, Effort, Failure, Focus, Limits, Prompt, ToolKind, Usage};
use crate::model::{Instructions, Message, Preamble, Provider, ToolSpec};
use crate::process::{Shell, Surroundings};
use crate::tools::{Redactor, Tool, mcp};
use crate::workspace::{Skill, Workspace};
pub use connect::{
    NoProvider, Setup, Start, mcp_servers, new_id, provider, provider_named, ready, remembered,
    rule_problems, setup, surroundings,
};
pub use context::{Completer, Completion, Mentionable, typed_mention};
use control::Control;
pub use control::{Change, ChangeError};
pub use event::Offered;
use event::{PromptId, SessionEvent, State, Used};
use handle::{Command, Sent};
pub use handle::{Session, SessionBusy};
pub use in_place::EditInPlace;
pub use inline::Rewrite;
pub use login::{LoggedIn, by_readiness, change_configuration, log_out};
pub use offers::{Candidate, OfferedModel, OfferedProvider, chosen, providers};
use permission::Policy;
use permission::remembered::Remembered;
use questions::Questions;
use slash::Commands;
use store::Journal;
pub use store::{LineOrigin, Listed, Sessions, StoreError, Wrote};

/// The id of a conversation.
pub type SessionId = Arc<str>;

/// How many steps may be queued between a turn and its session.
const STEPS: usize = 32;
/// Stands in for the answer of a turn that ended without one: many chat templates reject a conversation in which the
/// roles do not alternate.
const UNANSWERED: &str = "(no answer)";

/// The last event of a turn that failed before it began.
fn failed() -> AgentEvent {
    AgentEvent::Done {
        final_text: String::new(),
        termination_reason: Termination::Error,
        iterations: 0,
        usage: Usage::default(),
    }
}

/// What a turn works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ground {
    /// The workspace.
    Workspace,
    /// A copy of it, whose changes are applied later or not at all.
    Copy,
}

/// A running turn.
struct Running {
    /// The prompt it runs for.
    prompt: PromptId,
    /// The turn's id.
    name: String,
    steps: mpsc::Receiver<Step>,
    task: JoinHandle<()>,
    cancel: CancellationToken,
    steering: mpsc::Sender<Steer>,
    /// Messages that have not joined.
    steers: Vec<Steered>,
    questions: Questions,
    ground: Ground,
    /// Whether the person allowed the rest of the turn.
    is_allowed: bool,
    /// Running calls that may change something, by id.
    changing: HashMap<String, ToolKind>,
    failure: Option<Failure>,
    done: bool,
}

/// A steering message that has not joined.
struct Steered {
    id: PromptId,
    said: Arc<Value>,
    /// Cancels it alone, or with its turn.
    cancel: CancellationToken,
    /// Closing it before the turn has taken the message withdraws the message.
    taken: oneshot::Receiver<()>,
}

impl Steered {
    /// Takes the message back; `false` when the turn was quicker.
    fn withdraw(&mut self) -> bool {
        self.taken.close();
        self.taken.try_recv().is_err()
    }
}

struct Actor {
    id: SessionId,
    model: Result<Model, NoProvider>,
    /// The models used before, for what their servers revealed.
    former: Vec<Provider>,
    /// The reasoning effort; `None` for the configured one.
    effort: Option<Effort>,
    workspace: Workspace,
    /// What the client adds to the system prompt.
    instructions: String,
    tools: Arc<[Arc<dyn Tool>]>,
    skills: Arc<[Skill]>,
    servers: mcp::Servers,
    server_timeout: Duration,
    shell: Shell,
    mode: Mode,
    /// Whether prompts run on a copy of the workspace.
    on_copy: bool,
    policy: Policy,
    remembered: Option<Remembered>,
    secrets: Redactor,
    limits: Limits,
    /// Usage that counts towards the session's limits.
    spent: Spent,
    history: Vec<Arc<Entry>>,
    guidance: Guidance,
    /// Whether it was encoded for another model.
    stale: bool,
    /// The search for a better model than the default one of a key.
    better: JoinSet<Option<Provider>>,
    /// The search for MCP servers of other agents that the person was not shown yet.
    importable: JoinSet<Vec<String>>,
    /// A local server's evaluation of what the next request begins with.
    evaluating: JoinSet<()>,
    /// The folder of the person's own `AGENTS.md`.
    own_files: Option<PathBuf>,
    /// Loaded messages that wait for a model to be encoded for.
    kept: Vec<Message>,
    turns: u64,
    /// Its title, until that was reported.
    title: Option<String>,
    checkpoints: Checkpoints,
    restored: Vec<restore::Restored>,
    journal: Journal,
    start: Start,
    /// The conversation whose journal has to be copied first.
    original: Option<SessionId>,
    keeps_mode: bool,
    models: Option<Settings>,
    settings: Settings,
    /// The models to choose from.
    choices: Arc<[String]>,
    commands: Commands,
    /// The commands for menus.
    offered: Arc<[Offered]>,
    /// The resources of MCP servers.
    resources: watch::Sender<Arc<[mcp::Resource]>>,
    /// Notes for the model about what the person did since the last message.
    notes: Vec<String>,
    running: Option<Running>,
    /// Queued prompts.
    queue: VecDeque<queue::Queued>,
    /// Edits in place that wait for the running turn.
    edits: VecDeque<in_place::Waiting>,
    /// Turns since the last prompt that had another purpose.
    others: u32,
    /// The context window in tokens, if known.
    window: Option<u64>,
    used: Option<Used>,
    outgoing: VecDeque<SessionEvent>,
    events: mpsc::Sender<(SessionId, SessionEvent)>,
    control: Arc<Control>,
    /// Changes that were applied but not answered.
    taken: Vec<control::Taken>,
    published: watch::Sender<State>,
    end: CancellationToken,
}

impl Actor {
    fn new(
        setup: Setup,
        events: mpsc::Sender<(SessionId, SessionEvent)>,
        undoable: watch::Sender<Undoable>,
        control: Arc<Control>,
        end: CancellationToken,
    ) -> Self {
        let (id, better) = (Arc::clone(&setup.id), search(&setup));
        let folders = setup
            .workspace
            .roots()
            .iter()
            .map(|root| root.path().to_owned())
            .collect();
        let commands = Commands {
            own: setup.settings.commands(),
            skills: Arc::clone(&setup.skills),
            servers: setup.servers.prefixes(),
            prompts: Vec::new(),
        };
        let state = State::initial(&setup, commands.available().into());
        Self {
            importable: offered::importable(&setup),
            id: setup.id,
            model: setup.provider.map(|provider| {
                Model::new(
                    provider,
                    &id,
                    &setup.workspace,
                    &setup.tools,
                    ["", &setup.instructions],
                )
            }),
            former: Vec::new(),
            effort: None,
            workspace: setup.workspace,
            instructions: setup.instructions,
            tools: setup.tools,
            skills: setup.skills,
            servers: setup.servers,
            server_timeout: setup.server_timeout,
            shell: Shell::new(Surroundings {
                session: Some(id.to_string()),
                ..setup.surroundings
            }),
            mode: setup.mode,
            on_copy: false,
            policy: setup.policy,
            remembered: setup.remembered,
            secrets: setup.secrets,
            limits: setup.limits,
            spent: Spent::default(),
            history: Vec::new(),
            guidance: Guidance::default(),
            stale: false,
            better,
            evaluating: JoinSet::new(),
            own_files: setup.own_files,
            kept: Vec::new(),
            turns: 0,
            title: None,
            checkpoints: Checkpoints::new(setup.checkpoints, undoable),
            restored: Vec::new(),
            journal: Journal::new(setup.journal, id, folders),
            start: setup.start,
            original: setup.original,
            keeps_mode: setup.keeps_mode,
            models: setup.models,
            settings: setup.settings,
            choices: Arc::clone(&state.models),
            commands,
            offered: Arc::clone(&state.commands),
            resources: watch::Sender::default(),
            notes: Vec::new(),
            running: None,
            queue: VecDeque::new(),
            edits: VecDeque::new(),
            others: 0,
            window: None,
            used: None,
            outgoing: VecDeque::new(),
            events,
            control,
            taken: Vec::new(),
            published: watch::Sender::new(state),
            end,
        }
    }
}

/// Searches for a better model than the default one of a key, if nobody chose a model.
fn search(setup: &Setup) -> JoinSet<Option<Provider>> {
    let provider = setup.provider.as_ref().ok().filter(|_| setup.by_key);
    provider
        .map(|provider| offers::better(provider.clone()))
        .into_iter()
        .collect()
}

/// A model, with the bytes at the beginning of each of its requests.
struct Model {
    provider: Provider,
    preamble: Preamble,
}

impl Model {
    /// A model for the conversation `id`, with its environment line (empty before its first prompt) and what the client
    /// adds to the system prompt.
    fn new(
        provider: Provider,
        id: &SessionId,
        workspace: &Workspace,
        tools: &[Arc<dyn Tool>],
        [environment, instructions]: [&str; 2],
    ) -> Self {
        let mut system = prompt::system(&provider, workspace, tools, environment);
        prompt::append(&mut system, instructions);
        let preamble = preamble(&provider, id, system, tools);
        Self { provider, preamble }
    }
}

impl Actor {
    /// A model for this conversation.
    fn model_of(&self, provider: Provider) -> Model {
        Model::new(
            provider,
            &self.id,
            &self.workspace,
            &self.tools,
            [&self.journal.environment, &self.instructions],
        )
    }
}

/// The bytes at the beginning of every request in the conversation `id` with these tools.
fn preamble(
    provider: &Provider,
    id: &SessionId,
    system: String,
    tools: &[Arc<dyn Tool>],
) -> Preamble {
    let tools = tools.iter().map(|tool| spec(&**tool)).collect();
    provider.preamble(&Instructions {
        system,
        tools,
        conversation: Arc::clone(id),
    })
}

/// A tool's description for the model.
fn spec(tool: &dyn Tool) -> ToolSpec {
    ToolSpec {
        name: tool.name().to_owned(),
        description: tool.description().to_owned(),
        parameters: tool.parameters(),
        streams: tool.kind() == ToolKind::Edit,
    }
}
