//! One actor per session: it owns the history, starts turns, and decides the permission requests that rules and the mode
//! settle.
//!
//! Each part of a session is the only owner of its state: the models, the conversation with its journal, the context of
//! prompts, extensions, the mode with a turn's open questions, changes, spending, the queue, the running turn and the
//! outbox. The rest of the program sees only the [`State`] that the session publishes.
//!
//! Prompts arrive through a bounded mailbox, setting changes and cancels through a separate `Control`, and events leave
//! through a bounded channel shared by all sessions. The actor accepts input even while the reader of its events is slow,
//! so a cancel always works. Each turn runs in its own task: a panic becomes an error event and does not end the session.

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
mod state;
mod steps;
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
use crate::model::Message;
use crate::process::{Shell, Surroundings};
use crate::text::redact::Redactor;
use crate::tools::mcp;
use crate::workspace::Workspace;
pub use connect::{
    Setup, Start, mcp_servers, new_id, provider, provider_named, provider_or_local, rule_problems,
    setup, surroundings,
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
pub use login::{LoggedIn, by_readiness, change_configuration, log_out, stored_keys};
use models::Models;
pub use offers::{Candidate, chosen, providers};
use outbox::Outbox;
use questions::Questions;
use queue::Queue;
use review::Changes;
use running::Running;
use slash::Commands;
use spending::Spending;
use store::Journal;
pub use store::{LineOrigin, Listed, Sessions, StoreError};

/// A session's id, unique among all saved sessions.
pub type SessionId = Arc<str>;

/// The capacity of the channel from a turn to its session.
const STEPS: usize = 32;

/// The last event of a turn that no model ran.
fn done(answer: Option<Arc<Message>>, termination_reason: Termination) -> AgentEvent {
    AgentEvent::Done {
        answer,
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
    /// The session this one is a fork of; its journal is copied before anything else.
    original: Option<SessionId>,
    /// Whether a resumed session keeps its saved mode.
    keeps_mode: bool,
    /// Whether a resumed session keeps its saved model.
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
        let journal = Journal::new(setup.journal, Arc::clone(&id), folders, setup.chat);
        let conversation = Conversation::new(Arc::clone(&id), journal);
        let state = state::initial_state(&models, &extensions, setup.mode);
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
                unconfirmed: Vec::new(),
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
