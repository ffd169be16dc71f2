//! The conversations of a connection: a session, its front end, and the requests that wait for it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::client_files::{FileAccess, SessionEditor};
use super::dispatch::{Answer, error, read};
use super::documents::path_of;
use super::front_end::FrontEnd;
use super::prompts::Prompts;
use super::wire::{config_options, mcp_server, modes};
use super::{Server, Transport};
use crate::agent::event::Termination;
use crate::config::{McpServer, Settings};
use crate::protocol::acp;
use crate::rpc::{ErrorCode, Params, Responder, ResponseError};
use crate::session::event::Failure;
use crate::session::{self, Change, Session, SessionId, Start};
use crate::workspace::{Editor, Root, Workspace};

/// A session and its client.
pub(super) struct Conversation {
    pub session: Session,
    /// What it was started with.
    sources: Sources,
    /// How it is shown.
    pub front: Box<dyn FrontEnd>,
    /// The request that waits for the conversation to be loaded.
    pub opening: Option<Opening>,
    /// Prompts that were sent and have not ended.
    pub prompts: Prompts,
}

/// What the settings of a conversation depend on, besides the configuration.
#[derive(Clone)]
struct Sources {
    folders: Vec<PathBuf>,
    /// The MCP servers of the client.
    servers: BTreeMap<String, McpServer>,
}

/// A request to load a conversation.
pub(super) struct Opening {
    pub responder: Responder,
    pub start: Start,
}

impl Conversation {
    /// Closes the session. Waiting requests are answered and the turn is cancelled.
    pub async fn close(mut self) {
        if let Some(Opening { responder, .. }) = self.opening.take() {
            responder.error(
                ErrorCode::RequestFailed,
                "the session was closed before it was loaded",
            );
        }
        self.prompts
            .end(&mut *self.front, &Ok(Termination::Cancelled));
        self.session.close().await;
    }

    /// Shows the session for the first time: its commands and its state.
    pub fn show(&mut self) {
        let Self { session, front, .. } = self;
        front.commands(session.commands());
        front.state(&session.state());
    }
}

impl Server {
    pub(super) fn new_session(&mut self, responder: Responder, params: &Params) {
        let started = read::<NewSession>(params).and_then(|request| {
            self.require_acp()?;
            let servers = request
                .mcp_servers
                .into_iter()
                .map(mcp_server)
                .collect::<Answer<_>>()?;
            let roots = std::iter::once(request.cwd)
                .chain(request.additional_directories)
                .collect();
            let id = session::new_id();
            let front = self.front_end(&id);
            self.start_session((id, Start::New), roots, servers, front)
        });
        let conversation = match started {
            Ok(conversation) => conversation,
            Err(error) => return responder.respond(Err(error)),
        };
        let state = conversation.session.state();
        let response = acp::NewSessionResponse::new(Arc::clone(conversation.session.id()));
        responder.ok(&response
            .modes(modes(state.mode))
            .config_options(config_options(&state)));
        conversation.show();
    }

    /// Starts a conversation in these folders with these MCP servers, in addition to the client's workspace folders and
    /// the configured servers.
    pub(super) fn start_session(
        &mut self,
        (id, start): (SessionId, Start),
        folders: Vec<PathBuf>,
        servers: BTreeMap<String, McpServer>,
        front: Box<dyn FrontEnd>,
    ) -> Answer<&mut Conversation> {
        let mut roots: Vec<Arc<Root>> = Vec::new();
        let workspace = self.client.folders.iter().filter_map(|uri| path_of(uri));
        let required = folders.len();
        for (index, folder) in folders.into_iter().chain(workspace).enumerate() {
            match open_root(&folder) {
                Ok(root) if roots.iter().any(|other| other.real() == root.real()) => {}
                Ok(root) => roots.push(Arc::new(root)),
                Err(error) if index < required => return Err(error),
                Err(problem) => tracing::warn!("workspace folder left out: {}", problem.message),
            }
        }
        let sources = Sources {
            folders: roots.iter().map(|root| root.path().to_owned()).collect(),
            servers,
        };
        let settings = self.settings(sources.clone());
        let workspace = Workspace::new(roots, self.documents.clone(), self.editor_of(&id));
        let setup = crate::session::setup(Arc::clone(&id), start, &settings, workspace);
        let session = Session::start(setup, self.events.clone(), &self.end);
        let conversation = Conversation {
            session,
            sources,
            front,
            opening: None,
            prompts: Prompts::default(),
        };
        Ok(self
            .conversations
            .entry(id)
            .insert_entry(conversation)
            .into_mut())
    }

    /// The settings of a conversation, as they are now.
    fn settings(&mut self, sources: Sources) -> Settings {
        let mut settings = (self.load)(&self.options, &sources.folders);
        self.show_problems(&settings);
        settings.mcp.extend(sources.servers);
        settings
    }

    /// A conversation without a model reads the configuration again: the person may have written one since.
    pub(super) fn reconfigure(&mut self, id: &str) {
        let Some(conversation) = self.conversations.get(id) else {
            return;
        };
        if conversation.session.state().model.is_ok() {
            return;
        }
        let settings = self.settings(conversation.sources.clone());
        if let Some(conversation) = self.conversations.get(id) {
            // Taken before what is sent after it.
            drop(
                conversation
                    .session
                    .change(Change::Settings(Box::new(settings))),
            );
        }
    }

    /// The editor of a session: the connection's own, or one that also asks the client for files where it offers that.
    fn editor_of(&self, id: &SessionId) -> Arc<dyn Editor> {
        if self.client.files == FileAccess::default() {
            return Arc::clone(&self.editor);
        }
        Arc::new(SessionEditor {
            session: Arc::clone(id),
            peer: self.peer.clone(),
            access: self.client.files,
            documents: Arc::clone(&self.editor),
        })
    }

    pub(super) fn conversation(&mut self, id: &str) -> Answer<&mut Conversation> {
        self.conversations.get_mut(id).ok_or_else(|| unknown(id))
    }

    pub(super) fn require_acp(&self) -> Answer<()> {
        if self.client.speaks_acp || self.transport == Transport::Acp {
            return Ok(());
        }
        let message = "this client cannot open sessions: it did not announce capabilities.experimental.tandem in `initialize`";
        Err(error(ErrorCode::InvalidRequest, message))
    }
}

impl Server {
    /// A session panicked: waiting requests are answered.
    pub(super) fn session_panicked(&mut self, id: &SessionId, failure: &Failure) {
        self.requests.forget(id);
        let Some(conversation) = self.conversations.get_mut(id) else {
            return;
        };
        if conversation.opening.is_some() {
            return self.not_opened(id, &failure.message);
        }
        conversation
            .prompts
            .end(&mut *conversation.front, &Err(failure.clone()));
    }
}

/// The fields read of `session/new`. The protocol requires `mcpServers`; a client without such servers may omit it.
#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewSession {
    cwd: PathBuf,
    #[serde(default)]
    additional_directories: Vec<PathBuf>,
    #[serde(default)]
    mcp_servers: Vec<acp::McpServer>,
}

/// The error for an unknown session id.
pub(super) fn unknown(id: &str) -> ResponseError {
    error(
        ErrorCode::InvalidParams,
        format!("unknown session `{id}`; `session/new` starts one"),
    )
}

fn open_root(folder: &Path) -> Answer<Root> {
    let refused = |why: &str| {
        error(
            ErrorCode::InvalidParams,
            format!("cwd {}: {why}", folder.display()),
        )
    };
    if !folder.is_absolute() {
        return Err(refused("expected an absolute path"));
    }
    Root::open(folder).map_err(|problem| refused(&problem.to_string()))
}
