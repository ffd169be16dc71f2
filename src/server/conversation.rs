//! The `session/*` methods: between the wire's sessions and ours.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::client_files::{FileAccess, SessionEditor};
use super::dispatch::{Answer, error, read};
use super::documents::path_of;
use super::events::Shown;
use super::slash::Commands;
use super::turns::Waiting;
use super::wire::{config_options, mcp_server, modes};
use super::{Carrier, Server};
use crate::config::{McpServer, Mode, Settings};
use crate::protocol::acp;
use crate::rpc::{ErrorCode, Params, Peer, Responder, ResponseError};
use crate::session::{self, Command, Completer, Effort, Session, SessionBusy, SessionId, Start, Undoable};
use crate::workspace::{Editor, Root, Workspace};

/// A session as its client knows it.
pub(super) struct Conversation {
    session: Session,
    pub mode: Mode,
    pub model: Option<String>,
    /// How hard the model thinks; `None`: as configured.
    pub effort: Option<Effort>,
    /// What else it could be, and with which keys.
    pub settings: Settings,
    /// The slash commands besides ours.
    pub commands: Commands,
    /// Why prompts cannot work, where that is known.
    pub no_model: Option<String>,
    /// Who waits for the conversation to be taken up again.
    pub opening: Option<Opening>,
    /// The prompt that waits for its turn's end.
    pub prompt: Option<Responder>,
    /// Those that wait for it.
    pub waiting: VecDeque<Waiting>,
    pub failure: Option<ResponseError>,
    /// What the client was shown of it.
    pub shown: Shown,
    /// Who reads along.
    pub reader: Reader,
}

/// A request to take a conversation up again.
pub(super) struct Opening {
    pub responder: Responder,
    pub start: Start,
}

/// Who reads the events of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// The client, as updates.
    Client,
    /// A chat file of a plain client.
    ChatFile,
}

impl Conversation {
    pub fn send(&self, command: Command) {
        if let Err(busy) = self.try_send(command) {
            tracing::error!("{busy}");
        }
    }

    /// The same, for who can tell somebody.
    pub fn try_send(&self, command: Command) -> Result<(), SessionBusy> {
        self.session.send(command)
    }

    /// What there is to take back.
    pub fn undoable(&self) -> Undoable {
        self.session.undoable()
    }

    /// Offers what a prompt can mention.
    pub fn completer(&self) -> Completer {
        self.session.completer()
    }

    /// Ends the session. Whoever waits for it is answered; the turn is cancelled.
    pub async fn close(mut self) {
        if let Some(Opening { responder, .. }) = self.opening.take() {
            responder.error(ErrorCode::RequestFailed, "the session was closed before it was there");
        }
        if let Some(prompt) = self.prompt.take() {
            prompt.ok(&acp::PromptResponse::new(acp::StopReason::Cancelled));
        }
        self.waiting.drain(..).for_each(Waiting::cancelled);
        self.session.close().await;
    }
}

impl Server {
    pub(super) fn new_session(&mut self, responder: Responder, params: &Params) {
        let started = read::<NewSession>(params).and_then(|request| {
            self.require_acp()?;
            let servers = request.mcp_servers.into_iter().map(mcp_server).collect::<Answer<_>>()?;
            let roots = std::iter::once(request.cwd).chain(request.additional_directories).collect();
            self.start_session((session::new_id(), Start::New), roots, servers, Reader::Client)
        });
        let id = match started {
            Ok(id) => id,
            Err(error) => return responder.respond(Err(error)),
        };
        let conversation = &self.conversations[&id];
        let response = acp::NewSessionResponse::new(Arc::clone(&id))
            .modes(modes(conversation.mode))
            .config_options(config_options(conversation));
        let no_model = conversation.no_model.clone();
        responder.ok(&response);
        self.announce_commands(&id, &self.conversations[&id]);
        self.status(&id, no_model);
    }

    /// Starts a conversation on these folders, with these MCP servers; the workspace folders of the client and the servers
    /// of the configuration join them.
    pub(super) fn start_session(
        &mut self,
        (id, start): (SessionId, Start),
        folders: Vec<PathBuf>,
        servers: BTreeMap<String, McpServer>,
        reader: Reader,
    ) -> Answer<SessionId> {
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
        let folders: Vec<PathBuf> = roots.iter().map(|root| root.path().to_owned()).collect();
        let mut settings = (self.load)(&self.options, &folders);
        self.show_problems(&settings);
        settings.mcp.extend(servers);
        let workspace = Workspace::new(roots, self.documents.clone(), self.editor_of(&id));
        let setup = crate::session::setup(Arc::clone(&id), start, &settings, workspace);
        let conversation = Conversation::new(setup, reader, settings, self);
        self.conversations.insert(Arc::clone(&id), conversation);
        Ok(id)
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
        if self.client.speaks_acp || self.carrier == Carrier::Acp {
            return Ok(());
        }
        let message = "sessions are for clients that say so in capabilities.experimental.tandem";
        Err(error(ErrorCode::InvalidRequest, message))
    }
}

impl Conversation {
    fn new(setup: crate::session::Setup, reader: Reader, settings: Settings, server: &Server) -> Self {
        Self {
            mode: setup.mode,
            model: setup.model_name(),
            effort: None,
            commands: Commands { own: settings.commands(), skills: Arc::clone(&setup.skills) },
            settings,
            no_model: setup.provider.as_ref().err().map(|why| why.message.clone()),
            opening: None,
            prompt: None,
            waiting: VecDeque::new(),
            failure: None,
            shown: Shown::new(&setup.id),
            reader,
            session: Session::start(setup, server.events.clone(), &server.end),
        }
    }

    /// The models that can be chosen: those of the configuration, and the one that is used.
    pub fn models(&self) -> Vec<String> {
        let mut models = self.settings.known_models();
        models.extend(self.model.clone().filter(|model| !models.contains(model)));
        models
    }

    /// Whether a turn runs.
    pub fn is_running(&self) -> bool {
        self.prompt.is_some()
    }
}

/// What is read of `session/new`. The protocol requires `mcpServers`; a client without such servers that leaves it out
/// is understood all the same.
#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewSession {
    cwd: PathBuf,
    #[serde(default)]
    additional_directories: Vec<PathBuf>,
    #[serde(default)]
    mcp_servers: Vec<acp::McpServer>,
}

/// Nobody knows a session of this name.
pub(super) fn unknown(id: &str) -> ResponseError {
    error(ErrorCode::InvalidParams, format!("there is no session `{id}`; `session/new` starts one"))
}

/// Sends an update of a session.
pub(super) fn send(peer: &Peer, id: &str, update: acp::SessionUpdate) {
    peer.notify("session/update", &acp::SessionNotification::new(id.to_owned(), update));
}

fn open_root(folder: &Path) -> Answer<Root> {
    let refused = |why: &str| error(ErrorCode::InvalidParams, format!("cwd {}: {why}", folder.display()));
    if !folder.is_absolute() {
        return Err(refused("an absolute path is needed"));
    }
    Root::open(folder).map_err(|problem| refused(&problem.to_string()))
}
