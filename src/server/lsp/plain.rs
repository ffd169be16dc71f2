//! Conversations of plain clients: one for each chat file.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;
use tokio::sync::mpsc;

use super::ask::Question;
use super::chat::{self, ChatFile, TANDEM, YOU};
use super::progress::Progress;
use crate::agent::event::{AgentEvent, Permission, Termination};
use crate::protocol::lsp::MessageType;
use crate::rpc::ErrorCode;
use crate::server::Server;
use crate::server::conversation::Reader;
use crate::server::dispatch::{Answer, error};
use crate::server::documents::path_of;
use crate::server::slash;
use crate::server::status::show_message;
use crate::server::turns::Work;
use crate::session::{Attachment, Command, Prompt, SessionId};
use crate::text::display;
use crate::workspace::StateFolder;

/// Answers of message boxes that may wait for the server.
const DECISIONS: usize = 8;

/// What a plain client has going on.
#[derive(Debug)]
pub(in crate::server) struct Plain {
    /// The conversation of each chat file.
    sessions: HashMap<String, SessionId>,
    /// Those that were asked something; one that only offered what to mention knows nothing yet.
    begun: HashSet<SessionId>,
    /// The stream of each running turn.
    streams: HashMap<SessionId, Turn>,
    /// How many turns began.
    turns: u32,
    pub(super) questions: Vec<Question>,
    /// Where message boxes send their answers, as a question's key and the decision.
    pub(super) decisions: mpsc::Sender<(String, Permission)>,
    /// The other end.
    pub(in crate::server) decided: mpsc::Receiver<(String, Permission)>,
}

/// A turn that streams into a chat file.
#[derive(Debug)]
struct Turn {
    chat: ChatFile,
    progress: Progress,
    /// What its calls are called, for the lines that tell of them.
    titles: HashMap<String, String>,
}

impl Turn {
    /// What a call is called; one that was never shown goes by the name the model made up.
    fn title(&self, call_id: &str, name: &str) -> String {
        self.titles.get(call_id).cloned().unwrap_or_else(|| display::escape_line(name).into_owned())
    }
}

impl Default for Plain {
    fn default() -> Self {
        let (decisions, decided) = mpsc::channel(DECISIONS);
        Self {
            sessions: HashMap::new(),
            begun: HashSet::new(),
            streams: HashMap::new(),
            turns: 0,
            questions: Vec::new(),
            decisions,
            decided,
        }
    }
}

impl Plain {
    pub(super) fn questions(&self) -> &[Question] {
        &self.questions
    }

    pub(super) fn chat(&self, id: &SessionId) -> Option<&ChatFile> {
        self.streams.get(id).map(|turn| &turn.chat)
    }
}

impl Server {
    /// A document was saved: a chat file with a new question is answered. Where there is no place for one, that is said: the
    /// answer above was cut off by the end of its server.
    pub(in crate::server) fn plain_saved(&mut self, uri: &str) {
        if !chat::is_chat(uri) || self.client.speaks_acp {
            return;
        }
        let Some(document) = self.documents.get(uri) else { return };
        let is_running = self.plain.sessions.get(uri).is_some_and(|id| self.plain.streams.contains_key(id));
        let was_cut = !is_running && chat::asked(&document.text).is_none();
        if (was_cut || chat::question(&document.text).is_some())
            && let Err(problem) = self.send_chat(uri)
        {
            show_message(&self.peer, MessageType::Error, &problem.message);
        }
    }

    /// Sends the question that waits in a chat file.
    pub(super) fn send_chat(&mut self, uri: &str) -> Answer<()> {
        let document = self.documents.get(uri);
        let Some(question) = document.as_ref().and_then(|document| chat::question(&document.text)) else {
            show_message(
                &self.peer,
                MessageType::Info,
                "tandem: write your question under the last `## You`, then save",
            );
            return Ok(());
        };
        let mut parts = vec![Attachment::Text(question.to_owned())];
        let has_begun = self.plain.sessions.get(uri).is_some_and(|id| self.plain.begun.contains(id));
        if let Some(document) = document.as_ref().filter(|_| !has_begun) {
            // The server is another one than wrote it: the file is what there is of the conversation.
            let heading = "The conversation so far, from the chat file".to_owned();
            let earlier = chat::earlier(&document.text).map(str::to_owned);
            parts.extend(earlier.map(|text| Attachment::Shown { heading, text }));
        }
        let breaks = document.map_or(0, |document| document.text.len() - document.text.trim_end_matches('\n').len());
        self.converse(uri, Prompt { parts, focus: None }, breaks)
    }

    /// Answers a prompt in a chat file of its own, which is shown.
    pub(super) fn ask_in_new_chat(&mut self, words: &str, prompt: Prompt) -> Answer<()> {
        let Some(state) = (self.load)(&self.options, &[]).state_dir else {
            return Err(error(ErrorCode::InternalError, "there is no folder for chat files; set TANDEM_STATE_DIR"));
        };
        let name = format!("{}.tandem.md", crate::session::new_id());
        let folder = state.join("chats");
        let path = folder.join(&name);
        let Ok(uri) = url::Url::from_file_path(&path).map(String::from) else {
            let message = format!("the state folder {} is no absolute path", folder.display());
            return Err(error(ErrorCode::InternalError, message));
        };
        self.prepare(&uri)?;
        let text = format!("{YOU}\n\n{}\n", words.trim());
        let shown = uri.clone();
        let peer = self.peer.clone();
        self.tasks.spawn(async move {
            if let Err(problem) = create(folder, &name, text).await {
                let message = format!("tandem cannot write the chat file: {problem}");
                show_message(&peer, MessageType::Error, &message);
            } else {
                let params = json!({ "uri": shown, "external": false, "takeFocus": true });
                let _shown = peer.request("window/showDocument", &params).await;
            }
        });
        self.converse(&uri, prompt, 1)
    }

    /// The conversation of a chat file, begun when there is none.
    pub(super) fn prepare(&mut self, uri: &str) -> Answer<SessionId> {
        if let Some(id) = self.plain.sessions.get(uri) {
            return Ok(Arc::clone(id));
        }
        let own_folder = || path_of(uri).and_then(|path| path.parent().map(std::path::Path::to_owned));
        let folders = if self.client.folders.is_empty() { own_folder().into_iter().collect() } else { Vec::new() };
        let id = self.start_session(
            (crate::session::new_id(), crate::session::Start::New),
            folders,
            std::collections::BTreeMap::new(),
            Reader::ChatFile,
        )?;
        self.plain.sessions.insert(uri.to_owned(), Arc::clone(&id));
        Ok(id)
    }

    fn converse(&mut self, uri: &str, prompt: Prompt, breaks: usize) -> Answer<()> {
        let id = self.prepare(uri)?;
        if self.plain.streams.contains_key(&id) {
            show_message(
                &self.peer,
                MessageType::Info,
                "tandem: the answer before is still being written; stop it or wait",
            );
            return Ok(());
        }
        let chat = ChatFile::new(uri.to_owned(), breaks);
        chat.block(TANDEM);
        self.tasks.spawn(deliver(chat.clone(), self.peer.clone(), self.documents.clone()));
        self.plain.begun.insert(Arc::clone(&id));
        self.plain.turns += 1;
        let progress = Progress::begin(&self.peer, self.client.shows_progress, self.plain.turns);
        self.plain.streams.insert(Arc::clone(&id), Turn { chat, progress, titles: HashMap::new() });
        let conversation = self.conversation(&id)?;
        let begun = match slash::understand(prompt, &conversation.commands) {
            Work::Prompt(prompt) => conversation.try_send(Command::Prompt(prompt)),
            Work::Compact => conversation.try_send(Command::Compact),
            Work::Local(local) => {
                let words = self.words_for(&id, &local);
                if let Some(chat) = self.plain.chat(&id) {
                    chat.block(&words);
                }
                self.plain_done(&id, Termination::EndTurn, None);
                Ok(())
            }
        };
        if let Err(busy) = begun {
            self.plain_done(&id, Termination::Error, Some(&busy.to_string()));
        }
        Ok(())
    }

    /// What a turn does, as lines of its chat file.
    pub(in crate::server) fn plain_event(&mut self, id: &SessionId, event: AgentEvent) {
        let Some(turn) = self.plain.streams.get_mut(id) else { return };
        match event {
            AgentEvent::TextDelta { content } => turn.chat.prose(&display::escape_piece(&content)),
            AgentEvent::ToolPreview { call_id, preview, .. } => {
                turn.titles.insert(call_id, display::escape_line(&preview.title).into_owned());
            }
            AgentEvent::ToolExecutionStart { call_id, name, .. } => {
                turn.progress.report(&turn.title(&call_id, &name));
            }
            AgentEvent::ToolExecutionEnd { call_id, name, result, .. } => {
                let title = turn.title(&call_id, &name);
                let item = if result.is_error {
                    let why = result.content.lines().next().unwrap_or_default();
                    format!("✗ {title}: {}", display::escape_line(why))
                } else {
                    format!("✓ {title}")
                };
                turn.chat.item(&item);
            }
            AgentEvent::Notice { message }
            | AgentEvent::Compaction { summary: message, .. }
            | AgentEvent::LoopDetected { action: message, .. } => turn.chat.quote(&display::escape(&message)),
            AgentEvent::Retry { reason, wait_ms, .. } => {
                let reason = display::escape_line(&reason);
                turn.progress.report(&format!("{reason}; next try in {} s", wait_ms.div_ceil(1000)));
            }
            _ => {}
        }
    }

    /// The turn is over: the chat file gets its end and the person's next heading.
    pub(in crate::server) fn plain_done(&mut self, id: &SessionId, reason: Termination, problem: Option<&str>) {
        let Some(Turn { chat, progress, .. }) = self.plain.streams.remove(id) else { return };
        let open: Vec<String> =
            self.plain.questions.iter().filter(|q| q.session == *id).map(|q| q.call_id.clone()).collect();
        for call_id in open {
            self.plain_answered(id, &call_id);
        }
        let (kind, message) = match (problem, reason) {
            (Some(problem), _) => {
                chat.quote(&format!("**error:** {}", display::escape(problem)));
                (MessageType::Error, format!("tandem: {problem}"))
            }
            (None, Termination::Cancelled) => {
                chat.quote("stopped");
                (MessageType::Info, "tandem: stopped".to_owned())
            }
            _ => (MessageType::Info, "tandem: done".to_owned()),
        };
        chat.block(&format!("{YOU}\n\n"));
        chat.finish();
        progress.end();
        show_message(&self.peer, kind, &message);
    }

    pub(super) fn plain_is_running(&self) -> bool {
        !self.plain.streams.is_empty()
    }

    pub(super) fn plain_cancel(&mut self) {
        for id in self.plain.streams.keys() {
            if let Some(conversation) = self.conversations.get_mut(id) {
                conversation.cancel();
            }
        }
    }

    /// `window/workDoneProgress/cancel`.
    pub(in crate::server) fn plain_progress_cancelled(&mut self, params: &serde_json::Value) {
        let meant = self.plain.streams.iter().find(|(_, turn)| turn.progress.is(&params["token"]));
        if let Some(conversation) = meant.and_then(|(id, _)| self.conversations.get_mut(id)) {
            conversation.cancel();
        }
    }
}

/// Streams into the chat file; what cannot be written there is at least said.
async fn deliver(chat: ChatFile, peer: crate::rpc::Peer, documents: crate::workspace::Documents) {
    if let Err(problem) = chat.stream(peer.clone(), documents).await {
        let message = format!("tandem cannot write its answer into the chat file: {problem}");
        show_message(&peer, MessageType::Error, &message);
    }
}

async fn create(folder: PathBuf, name: &str, text: String) -> std::io::Result<()> {
    StateFolder::open(folder).await?.write(name, text.into_bytes()).await
}
