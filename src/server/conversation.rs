//! The conversations of a connection: a session, its front end, and the requests that wait for it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::dispatch::{Answer, error, invalid};
use super::editor::SessionEditor;
use super::front_end::{AcpClient, FrontEnd, PluginClient};
use super::prompts::Prompts;
use super::wire::{config_options, mcp_server, modes};
use super::{Server, Transport};
use crate::agent::event::{AgentEvent, Termination};
use crate::config::{McpServer, Settings};
use crate::protocol::acp;
use crate::rpc::{ErrorCode, Responder, ResponseError};
use crate::session::{self, Change, Session, SessionId, Start};
use crate::workspace::{Editor, Root, Workspace};

/// A session and its client.
pub(super) struct Conversation {
    pub session: Session,
    /// What it was started with.
    sources: Sources,
    /// Its title, once it has one.
    pub title: String,
    /// How it is shown.
    pub front: Box<dyn FrontEnd>,
    /// How it is being loaded.
    pub opening: Option<Opening>,
    /// Prompts that were sent and have not ended.
    pub prompts: Prompts,
}

/// What a client opens a conversation with.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Sources {
    /// The folders, besides those of the editor's workspace.
    pub folders: Vec<PathBuf>,
    /// MCP servers, besides the configured ones.
    pub servers: BTreeMap<String, McpServer>,
    /// What the client adds to the system prompt.
    pub instructions: String,
    /// The conversation it is a copy of.
    pub original: Option<SessionId>,
    /// The chat file that shows it.
    pub chat: Option<PathBuf>,
}

/// A conversation being loaded.
pub(super) struct Opening {
    /// The request for it; there is none for that of a chat file.
    pub responder: Option<Responder>,
    pub start: Start,
    /// Whether the session was open before: then an error is one of its turn.
    pub is_again: bool,
}

impl Conversation {
    /// Closes the session. Waiting requests are answered and the turn is cancelled.
    pub async fn close(mut self) {
        if let Some(responder) = self.opening.take().and_then(|opening| opening.responder) {
            responder.error(
                ErrorCode::RequestFailed,
                "the session was closed before it was loaded",
            );
        }
        self.prompts
            .end(&mut *self.front, &Ok(Termination::Cancelled));
        self.session.close().await;
    }

    /// Shows its title, if it has one, and remembers it.
    pub fn entitle(&mut self, title: String) {
        if !title.is_empty() {
            self.title.clone_from(&title);
            self.front.event(AgentEvent::SessionTitle { title });
        }
    }
}

impl Server {
    pub fn new_session(&mut self, opened: Opened, responder: Responder) {
        let toggles = self.client.offers.toggles;
        let started = self.require_acp().and_then(|()| {
            let sources = opened.sources()?;
            let id = session::new_id();
            let front = self.front_end(&id);
            self.start_session((id, Start::New), sources, front)
        });
        let conversation = match started {
            Ok(conversation) => conversation,
            Err(error) => return responder.refuse(&error),
        };
        let state = conversation.session.state();
        let id = Arc::clone(conversation.session.id());
        let response = acp::NewSessionResponse::new(Arc::clone(&id));
        responder.ok(&response
            .modes(modes(state.mode))
            .config_options(config_options(&state, toggles)));
        self.show(&id);
    }

    /// Shows a session for the first time: its commands and its state.
    pub fn show(&mut self, id: &str) {
        if let Some(Conversation { session, front, .. }) = self.conversations.get_mut(id) {
            let state = session.state();
            front.commands(&state.commands);
            front.state(&state);
        }
        self.show_problems_in(id);
    }

    /// Shows what was found wrong with the configuration, where only a session can.
    fn show_problems_in(&mut self, id: &str) {
        if let Some(conversation) = self.conversations.get_mut(id) {
            for message in self.unshown.drain(..) {
                conversation.front.event(AgentEvent::Notice { message });
            }
        }
    }

    /// Starts a conversation.
    pub fn start_session(
        &mut self,
        (id, start): (SessionId, Start),
        mut sources: Sources,
        front: Box<dyn FrontEnd>,
    ) -> Answer<&mut Conversation> {
        let roots = self.roots(&sources)?;
        sources.folders = paths(&roots);
        let settings = self.settings(sources.clone());
        let workspace = Workspace::new(roots, self.documents.clone(), self.editor_of(&id));
        let mut setup = crate::session::setup(Arc::clone(&id), start, &settings, workspace);
        setup.instructions.clone_from(&sources.instructions);
        setup.original = sources.original.take();
        setup.offers_import = start == Start::New;
        // For a chat file, the configuration is the only way to choose them.
        setup.keeps_mode = sources.chat.is_none();
        setup.keeps_model = sources.chat.is_none();
        setup.chat.clone_from(&sources.chat);
        let session = Session::start(setup, self.events.clone(), &self.end);
        let conversation = Conversation {
            session,
            sources,
            title: String::new(),
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

    /// Whether an open conversation was started with these sources.
    pub fn is_open_with(&self, id: &str, sources: &Sources) -> Answer<bool> {
        let folders = paths(&self.roots(sources)?);
        let wanted = Sources {
            folders,
            ..sources.clone()
        };
        let open = self.conversations.get(id);
        Ok(open.is_some_and(|open| open.sources == wanted))
    }

    /// The roots for these folders, and for those of the editor's workspace.
    fn roots(&self, sources: &Sources) -> Answer<Vec<Arc<Root>>> {
        let mut roots: Vec<Arc<Root>> = Vec::new();
        let workspace = self.client.folders();
        // A chat file works in the folders that can be opened.
        let required = match sources.chat {
            Some(_) => 0,
            None => sources.folders.len(),
        };
        for (index, folder) in sources.folders.iter().cloned().chain(workspace).enumerate() {
            match open_root(&folder) {
                Ok(root) if roots.iter().any(|other| other.real() == root.real()) => {}
                Ok(root) => roots.push(Arc::new(root)),
                Err(error) if index < required => return Err(error),
                Err(problem) => tracing::warn!("workspace folder left out: {}", problem.message),
            }
        }
        if roots.is_empty() {
            return Err(invalid("no directory to work in; open one in the editor"));
        }
        Ok(roots)
    }

    /// The settings for these folders, as they are now.
    pub fn load_settings(&self, folders: &[PathBuf]) -> Settings {
        let mut settings = (self.load)(&self.options, folders);
        if self.client.has_models {
            settings.editor_models = Some(Arc::new(self.peer.clone()));
        }
        settings
    }

    /// The settings of a conversation, as they are now.
    fn settings(&mut self, sources: Sources) -> Settings {
        let mut settings = self.load_settings(&sources.folders);
        self.show_problems(&settings);
        settings.mcp.extend(sources.servers);
        settings
    }

    /// A conversation without a model, or whose key was refused, reads the configuration again: the person may have
    /// changed it since.
    pub fn reconfigure(&mut self, id: &str) {
        let Some(conversation) = self.conversations.get(id) else {
            return;
        };
        let state = conversation.session.state();
        if state.model.is_err() || state.refusal.is_some() {
            self.pass_settings(id);
        }
    }

    /// Applies the current settings to a conversation, as far as it may take them.
    pub fn pass_settings(&mut self, id: &str) {
        let Some(conversation) = self.conversations.get(id) else {
            return;
        };
        let settings = self.settings(conversation.sources.clone());
        if let Some(conversation) = self.conversations.get(id) {
            // The session handles this before anything sent later.
            drop(
                conversation
                    .session
                    .change(Change::Settings(Box::new(settings))),
            );
        }
        self.show_problems_in(id);
    }

    /// The client as the editor of a session.
    fn editor_of(&self, id: &SessionId) -> Arc<dyn Editor> {
        Arc::new(SessionEditor {
            session: Arc::clone(id),
            peer: self.peer.clone(),
            relay: self.relay.clone(),
            can: self.client.editor.clone(),
        })
    }

    /// The front end for a new session of this client.
    pub fn front_end(&self, id: &SessionId) -> Box<dyn FrontEnd> {
        match self.transport {
            Transport::Lsp => Box::new(PluginClient::new(self.peer.clone(), id)),
            Transport::Acp => Box::new(AcpClient::new(self.peer.clone(), id, self.client.offers)),
        }
    }

    /// Whether a turn runs in any conversation.
    pub fn is_busy(&self) -> bool {
        self.conversations
            .values()
            .any(|conversation| conversation.prompts.any())
    }

    pub fn conversation(&mut self, id: &str) -> Answer<&mut Conversation> {
        self.conversations.get_mut(id).ok_or_else(|| unknown(id))
    }

    pub fn require_acp(&self) -> Answer<()> {
        if self.client.speaks_acp || self.transport == Transport::Acp {
            return Ok(());
        }
        let message = "this client cannot open sessions: it did not announce `capabilities.experimental.tandem` in `initialize`";
        Err(error(ErrorCode::InvalidRequest, message))
    }
}

/// The fields read of requests that open a session. The protocol requires `mcpServers`; a client without such servers
/// may omit it.
#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Opened {
    cwd: PathBuf,
    additional_directories: Option<Vec<PathBuf>>,
    mcp_servers: Option<Vec<acp::McpServer>>,
    system_prompt: Option<acp::SystemPrompt>,
}

impl Opened {
    pub fn sources(self) -> Answer<Sources> {
        let more = self.additional_directories.unwrap_or_default();
        let servers = self.mcp_servers.unwrap_or_default().into_iter();
        let instructions = self.system_prompt.map(appended).transpose()?;
        Ok(Sources {
            folders: std::iter::once(self.cwd).chain(more).collect(),
            servers: servers.map(mcp_server).collect::<Answer<_>>()?,
            instructions: instructions.unwrap_or_default(),
            ..Sources::default()
        })
    }
}

/// The text that a client adds to the system prompt. It never replaces tandem's own, which has the safety rules.
fn appended(prompt: acp::SystemPrompt) -> Answer<String> {
    let refused = |why: &str| invalid(format!("systemPrompt: {why}"));
    if prompt.mode != acp::SystemPromptMode::Append {
        return Err(refused("unsupported mode; expected `append`"));
    }
    let mut texts = Vec::new();
    for block in prompt.content {
        match block {
            acp::ContentBlock::Text(text) => texts.push(text.text),
            _ => return Err(refused("expected text blocks only")),
        }
    }
    if texts.is_empty() {
        return Err(refused("expected at least one text block"));
    }
    Ok(texts.join("\n\n"))
}

fn paths(roots: &[Arc<Root>]) -> Vec<PathBuf> {
    roots.iter().map(|root| root.path().to_owned()).collect()
}

/// The error for an unknown session id.
pub(super) fn unknown(id: &str) -> ResponseError {
    invalid(format!("unknown session `{id}`; `session/new` starts one"))
}

fn open_root(folder: &Path) -> Answer<Root> {
    let refused = |why: &str| invalid(format!("directory {}: {why}", folder.display()));
    if !folder.is_absolute() {
        return Err(refused("expected an absolute path"));
    }
    Root::open(folder).map_err(|problem| refused(&problem.to_string()))
}
