//! One actor per conversation: it owns the history, starts turns, and answers what rules and modes can answer.
//!
//! It is made of parts, each the only owner of its state: the models, the conversation with its journal, the context of
//! prompts, extensions, the questions of a turn with the mode, changes, spending, the queue, the running turn and the
//! outbox. Everything else sees the [`State`] it publishes.
//!
//! Prompts arrive through a bounded mailbox, changes and cancels beside it (`Control`), and events leave through a
//! bounded channel shared by all sessions. While something arrives, the actor never waits for the reader of its events,
//! so a cancel works however slow the editor is. Each turn is a task of its own: a panic becomes an error event, never
//! a dead session.

pub mod check;
mod connect;
mod context;
mod control;
mod conversation;
mod environment;
pub mod event;
mod extensions;
mod handle;
mod in_place;
mod inline;
mod jobs;
mod login;
mod models;
mod offers;
mod outbox;
pub mod permission;
mod questions;
mod queue;
mod resume;
mod review;
mod run;
mod running;
mod servers;
mod shadow;
mod slash;
mod spending;
mod store;
pub mod transcript;
mod turns;

use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::agent::Spent;
use crate::agent::event::{AgentEvent, Termination};
use crate::changes::checkpoint::Checkpoints;
pub use crate::changes::checkpoint::{
    Review, ReviewError, Reviewed, ReviewedFile, ReviewedTurn, Selection, Undoable,
};
use crate::domain::{Attachment, Effort, Focus, Prompt, Usage};
use crate::process::{Shell, Surroundings};
use crate::text::redact::Redactor;
use crate::tools::mcp;
use crate::workspace::Workspace;
pub use connect::{
    NoProvider, Setup, Start, mcp_servers, new_id, provider, provider_named, ready, remembered,
    rule_problems, setup, surroundings,
};
use context::Context;
pub use context::{Completer, typed_mention};
use control::Control;
pub use control::{Change, ChangeError};
use conversation::Conversation;
pub use event::Offered;
use event::{SessionEvent, State};
use extensions::Extensions;
use handle::{Command, Sent};
pub use handle::{Session, SessionBusy};
pub use in_place::EditInPlace;
pub use inline::Rewrite;
pub use login::{LoggedIn, by_readiness, change_configuration, log_out};
use models::Models;
pub use offers::{Candidate, OfferedModel, OfferedProvider, chosen, providers};
use outbox::Outbox;
use questions::Questions;
use queue::Queue;
use review::Changes;
use running::Running;
use slash::Commands;
use spending::Spending;
use store::Journal;
pub use store::{LineOrigin, Listed, Sessions, StoreError, Wrote};

/// The id of a conversation.
pub type SessionId = Arc<str>;

/// How many steps may be queued between a turn and its session.
const STEPS: usize = 32;

/// The last event of a turn that no model ran.
fn done(final_text: String, termination_reason: Termination) -> AgentEvent {
    AgentEvent::Done {
        final_text,
        termination_reason,
        iterations: 0,
        usage: Usage::default(),
    }
}

struct Actor {
    id: SessionId,
    workspace: Workspace,
    shell: Shell,
    secrets: Redactor,
    start: Start,
    /// The conversation whose journal has to be copied first.
    original: Option<SessionId>,
    /// Whether a resumed conversation continues in its own mode.
    keeps_mode: bool,
    /// And with its own model.
    keeps_model: bool,
    /// Whether prompts run on a copy of the workspace.
    on_copy: bool,
    models: Models,
    conversation: Conversation,
    context: Context,
    extensions: Extensions,
    questions: Questions,
    changes: Changes,
    spending: Spending,
    queue: Queue,
    running: Option<Running>,
    outbox: Outbox,
    control: Arc<Control>,
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
        let (id, workspace) = (Arc::clone(&setup.id), setup.workspace.clone());
        let shell = Shell::new(Surroundings {
            session: Some(id.to_string()),
            ..setup.surroundings.clone()
        });
        let models = Models::new(&setup, shell.clone());
        let mut extensions = Extensions {
            importable: extensions::importable(&setup),
            servers: setup.servers,
            start_timeout: setup.server_timeout,
            secrets: setup.secrets.clone(),
            commands: Commands {
                own: setup.settings.commands(),
                skills: Arc::clone(&setup.skills),
                ..Commands::default()
            },
            menu: [].into(),
            resources: watch::Sender::default(),
        };
        extensions.take_offers();
        let folders = workspace
            .roots()
            .iter()
            .map(|root| root.path().to_owned())
            .collect();
        let journal = Journal::new(setup.journal, Arc::clone(&id), folders);
        let conversation = Conversation::new(Arc::clone(&id), journal);
        let state = run::initial_state(&models, &extensions, setup.mode);
        Self {
            start: setup.start,
            original: setup.original,
            keeps_mode: setup.keeps_mode,
            keeps_model: setup.keeps_model,
            on_copy: false,
            context: Context {
                workspace: workspace.clone(),
                skills: setup.skills,
                own_files: setup.own_files,
                guidance: conversation.guidance.clone(),
            },
            questions: Questions::new(
                setup.mode,
                setup.settings.widest_mode,
                setup.policy,
                setup.remembered,
            ),
            changes: Changes {
                checkpoints: Checkpoints::new(setup.checkpoints, undoable),
                workspace: workspace.clone(),
                shell: shell.clone(),
            },
            spending: Spending {
                limits: setup.limits,
                spent: Spent::default(),
                window: None,
                used: None,
            },
            queue: Queue::default(),
            running: None,
            outbox: Outbox::new(Arc::clone(&id), events, state),
            secrets: setup.secrets,
            id,
            workspace,
            shell,
            models,
            conversation,
            extensions,
            control,
            end,
        }
    }
}
