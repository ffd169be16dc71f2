//! The `session/*` methods: between the wire's sessions and ours.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::client_files::{FileAccess, SessionEditor};
use super::dispatch::{Answer, error, read};
use super::documents::path_of;
use super::slash::Commands;
use super::turns::Waiting;
use super::updates::{self, Chunk, Projected};
use super::wire::{config_options, failure, mcp_server, modes, parse_effort, parse_mode};
use super::{Carrier, Server};
use crate::agent::event::{AgentEvent, FileDiff, GO_ON, Usage};
use crate::config::{McpServer, Mode, Settings};
use crate::protocol::acp;
use crate::rpc::{ErrorCode, Params, Peer, Responder, ResponseError, TextKind, TextSource};
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
    /// The question whether the turn goes on, while it is open: a call of ours, not of the model's.
    pause: Option<String>,
    /// What running calls are about to change: a call that fails keeps its diff.
    pub proposed: HashMap<String, Vec<FileDiff>>,
    /// How many tokens the model reads at once, where that is known.
    window: Option<u64>,
    /// US dollars so far, where prices are known.
    pub cost: Option<f64>,
    message: Arc<TextSource>,
    thought: Arc<TextSource>,
    answers: u64,
    /// What the running call said.
    said: updates::Said,
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
    pub fn undoable(&self) -> Option<Undoable> {
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

    /// What the client is told of the tokens of a request: how full the window is, and the cost of the whole session.
    /// The protocol has no word for one without the other.
    fn used(&mut self, usage: Usage) -> Option<acp::UsageUpdate> {
        if let Some(cost) = usage.cost {
            *self.cost.get_or_insert_default() += cost;
        }
        let update = acp::UsageUpdate::new(usage.input + usage.output, self.window?);
        Some(update.cost(self.cost.map(|amount| acp::Cost::new(amount, "USD"))))
    }

    fn next_answer(&mut self) {
        self.answers += 1;
        let id: Arc<str> = format!("m{}", self.answers).into();
        let source = |kind| {
            let session_id = Arc::clone(&self.message.session_id);
            Arc::new(TextSource { session_id, kind, message_id: Some(Arc::clone(&id)) })
        };
        (self.message, self.thought) = (source(TextKind::AgentMessageChunk), source(TextKind::AgentThoughtChunk));
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

    pub(super) fn set_mode(&mut self, params: &acp::SetSessionModeRequest) -> Answer<acp::SetSessionModeResponse> {
        let mode = parse_mode(&params.mode_id.0)?;
        self.change_mode(&params.session_id.0, mode)?;
        Ok(acp::SetSessionModeResponse::new())
    }

    pub(super) fn set_config_option(
        &mut self,
        params: &acp::SetSessionConfigOptionRequest,
    ) -> Answer<acp::SetSessionConfigOptionResponse> {
        let id = &params.session_id.0;
        let value = match &params.value {
            acp::SessionConfigOptionValue::ValueId { value } => value.0.to_string(),
            _ => String::new(),
        };
        match &*params.config_id.0 {
            "mode" => self.change_mode(id, parse_mode(&value)?)?,
            "model" if self.conversation(id)?.models().contains(&value) => {
                let effort = self.conversation(id)?.effort;
                self.change_model(id, &value, effort)?;
            }
            "model" => return Err(error(ErrorCode::InvalidParams, format!("no model `{value}` is configured"))),
            "effort" => {
                let effort = parse_effort(&value)?;
                let model = self.conversation(id)?.model.clone().unwrap_or_default();
                self.change_model(id, &model, effort)?;
            }
            other => return Err(error(ErrorCode::InvalidParams, format!("there is no option `{other}`"))),
        }
        let options = config_options(self.conversation(id)?);
        Ok(acp::SetSessionConfigOptionResponse::new(options))
    }

    pub(super) fn close_session(&mut self, params: &acp::CloseSessionRequest) -> Answer<acp::CloseSessionResponse> {
        self.conversation(&params.session_id.0)?;
        if let Some(conversation) = self.conversations.remove(&params.session_id.0) {
            self.tasks.spawn(conversation.close());
        }
        Ok(acp::CloseSessionResponse::new())
    }

    /// Passes an event of a session on to whoever reads it.
    pub(super) fn event(&mut self, id: &SessionId, event: AgentEvent) {
        let Some(conversation) = self.conversations.get_mut(id) else { return };
        let reader = conversation.reader;
        match event {
            AgentEvent::TurnStart { model, context_window, .. } => {
                conversation.model = Some(model);
                conversation.no_model = None;
                conversation.window = context_window;
            }
            AgentEvent::IterationStart { .. } => conversation.next_answer(),
            AgentEvent::Resumed { .. } => self.opened(id, event),
            AgentEvent::Error { message, .. } if conversation.opening.is_some() => self.not_opened(id, &message),
            AgentEvent::Error { message, code, status, retryable } => {
                conversation.failure = Some(failure(&message, code, status, retryable));
            }
            AgentEvent::PermissionRequested { call_id, name, kind, preview, rule, reply: Some(reply) } => {
                match reader {
                    Reader::Client => {
                        if name == GO_ON {
                            conversation.pause = Some(call_id.clone());
                            send(&self.peer, id, updates::pause(&call_id, &preview));
                        }
                        self.ask_permission(id, &call_id, kind, (*preview, rule), reply);
                    }
                    Reader::ChatFile => self.plain_ask(id, &call_id, &preview, rule, reply),
                }
            }
            AgentEvent::PermissionResolved { call_id, .. } => {
                if conversation.pause.take_if(|pause| *pause == call_id).is_some() {
                    send(&self.peer, id, updates::paused(call_id.clone()));
                }
                if reader == Reader::ChatFile {
                    self.plain_answered(id, &call_id);
                }
                self.status(id, None);
            }
            AgentEvent::Usage(usage) if reader == Reader::Client => {
                if let Some(update) = conversation.used(usage) {
                    send(&self.peer, id, acp::SessionUpdate::UsageUpdate(update));
                }
            }
            AgentEvent::ToolOutput { call_id, content } if reader == Reader::Client => {
                let update = conversation.said.more(call_id, &content);
                send(&self.peer, id, update);
            }
            AgentEvent::Done { termination_reason, .. } => self.turn_ended(id, termination_reason),
            event => match reader {
                Reader::Client => self.update(id, event),
                Reader::ChatFile => self.plain_event(id, event),
            },
        }
    }

    fn update(&mut self, id: &SessionId, event: AgentEvent) {
        let Some(conversation) = self.conversations.get_mut(id) else { return };
        let proposed = match &event {
            AgentEvent::ToolPreview { call_id, preview, .. } if !preview.diffs.is_empty() => {
                conversation.proposed.insert(call_id.clone(), preview.diffs.clone());
                None
            }
            AgentEvent::ToolExecutionEnd { call_id, .. } => conversation.proposed.remove(call_id),
            _ => None,
        };
        match updates::project(event, &proposed.unwrap_or_default()) {
            Some(Projected::Text { chunk, text }) => {
                let source = match chunk {
                    Chunk::Message => &conversation.message,
                    Chunk::Thought => &conversation.thought,
                };
                self.peer.text(source, &text);
            }
            Some(Projected::Update(update)) => send(&self.peer, id, *update),
            Some(Projected::Remark(remark)) => self.remark(id, remark),
            None => {}
        }
    }

    pub(super) fn change_mode(&mut self, id: &str, mode: Mode) -> Answer<()> {
        let conversation = self.conversation(id)?;
        conversation.mode = mode;
        conversation.send(Command::SetMode(mode));
        if conversation.reader == Reader::Client {
            let mode = acp::SessionUpdate::CurrentModeUpdate(acp::CurrentModeUpdate::new(mode.name()));
            let options = acp::ConfigOptionUpdate::new(config_options(conversation));
            send(&self.peer, id, mode);
            send(&self.peer, id, acp::SessionUpdate::ConfigOptionUpdate(options));
        }
        self.status(id, None);
        Ok(())
    }

    /// Another model, or the same thinking harder or less.
    pub(super) fn change_model(&mut self, id: &str, name: &str, effort: Option<Effort>) -> Answer<()> {
        let conversation = self.conversation(id)?;
        let provider = session::provider_named(&conversation.settings, name, effort)
            .map_err(|why| error(ErrorCode::InvalidParams, why.message))?;
        conversation.model = Some(provider.name());
        conversation.effort = effort;
        conversation.no_model = None;
        conversation.send(Command::SetModel(provider, effort));
        if conversation.reader == Reader::Client {
            let options = acp::ConfigOptionUpdate::new(config_options(conversation));
            send(&self.peer, id, acp::SessionUpdate::ConfigOptionUpdate(options));
        }
        self.status(id, None);
        Ok(())
    }

    pub(super) fn conversation(&mut self, id: &str) -> Answer<&mut Conversation> {
        self.conversations.get_mut(id).ok_or_else(|| {
            error(ErrorCode::InvalidParams, format!("there is no session `{id}`; `session/new` starts one"))
        })
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
        let source = |kind| Arc::new(TextSource { session_id: Arc::clone(&setup.id), kind, message_id: None });
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
            pause: None,
            proposed: HashMap::new(),
            window: None,
            cost: None,
            message: source(TextKind::AgentMessageChunk),
            thought: source(TextKind::AgentThoughtChunk),
            answers: 0,
            said: updates::Said::default(),
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
