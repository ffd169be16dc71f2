//! Chat files: each is a conversation of an editor that has only LSP. Saving one sends the prompt that `chat` finds in it.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::chat::{self, YOU};
use super::front::{ChatFront, Connection};
use super::hints::Hints;
use crate::domain::{Attachment, Prompt};
use crate::protocol::lsp::MessageType;
use crate::rpc::ErrorCode;
use crate::server::Server;
use crate::server::conversation::{Conversation, Opening, Sources};
use crate::server::dispatch::{Answer, error};
use crate::server::problems::show_message;
use crate::session::{Listed, SessionId, Start, new_id};
use crate::workspace::StateFolder;
use crate::workspace::native::{file_of, uri_of};

/// Saves with less time between them belong together.
const TOGETHER: Duration = Duration::from_millis(150);

/// How many chats are open at a time, if their files need not be: each has MCP servers of its own.
const OPEN: usize = 8;

/// The conversations of chat files.
#[derive(Debug, Default)]
pub(in crate::server) struct Chats {
    sessions: HashMap<String, SessionId>,
    /// How many turns began in all of them.
    turns: Arc<AtomicU32>,
    hints: Arc<Hints>,
    /// Why the last one that could not be loaded is not here.
    pub elsewhere: Option<String>,
    pub saves: Saves,
    /// The sessions of earlier servers that are looked for.
    pub earlier: JoinSet<Option<Found>>,
    /// The files of new chats, each with the prompt that is written into it.
    pub created: JoinSet<io::Result<(String, Prompt)>>,
}

/// A session of an earlier server that a chat file shows.
#[derive(Debug)]
pub(in crate::server) struct Found {
    id: SessionId,
    uri: String,
    /// Where it works.
    folders: Vec<PathBuf>,
    /// Whether the chat file was opened: it continues its session.
    is_open: bool,
}

/// The newest saves. What an editor saves together (`:wa`) sends no prompt: it may be half written.
#[derive(Debug, Default)]
pub(in crate::server) struct Saves {
    /// What was saved together so far.
    together: HashSet<String>,
    last: Option<Instant>,
    /// The chat file that was saved, while another document may follow.
    waits: Option<String>,
    due: JoinSet<()>,
}

impl Saves {
    /// Resolves to the chat file that was saved alone.
    pub async fn next(&mut self) -> Option<String> {
        let _waited = self.due.join_next().await?;
        self.waits.take()
    }
}

impl Chats {
    /// A session could not be loaded.
    pub fn forget(&mut self, id: &SessionId, why: &str) {
        self.sessions.retain(|_, open| open != id);
        self.elsewhere = Some(why.to_owned());
    }

    /// The conversation of a chat file.
    pub fn session(&self, uri: &str) -> Option<&SessionId> {
        self.sessions.get(uri)
    }

    /// The hints that are shown.
    pub fn hints(&self) -> Arc<Hints> {
        Arc::clone(&self.hints)
    }
}

impl Server {
    /// A document was opened: a chat file with an answer in it continues its session.
    pub fn chat_opened(&mut self, uri: &str) {
        let document = self.documents.get(uri);
        let was_answered = document.is_some_and(|document| chat::was_answered(&document.text));
        if chat::is_chat(uri) && was_answered && file_of(uri).is_some() {
            self.find_earlier(Some(uri));
        }
    }

    /// Finds the session that an earlier server began in this chat file or, without a file, the last one in any chat file of
    /// the workspace, so that its changes can be reviewed and undone.
    pub fn find_earlier(&mut self, opened: Option<&str>) {
        // Without a workspace, a chat may be about a file that is elsewhere.
        let folder = self.client.folders().find(|folder| folder.is_dir());
        let Some(sessions) = self.sessions() else {
            return;
        };
        if self.client.speaks_acp || (folder.is_none() && opened.is_none()) {
            return;
        }
        let opened = opened.map(str::to_owned);
        self.chats.earlier.spawn(async move {
            let path = opened.as_deref().and_then(file_of);
            let last = sessions.last_in_chat(folder.as_deref(), path).await;
            let last = last.inspect_err(|error| tracing::warn!("cannot list sessions: {error}"));
            let Listed {
                id, chat, folders, ..
            } = last.ok()??;
            let is_open = opened.is_some();
            let uri = opened.or_else(|| uri_of(&chat?))?;
            Some(Found {
                id: id.into(),
                uri,
                folders,
                is_open,
            })
        });
    }

    /// Resumes a session of an earlier server. If another process has it open, the chat file begins a new one.
    pub fn resume_earlier(&mut self, found: Option<Found>) {
        let Some(found) = found else {
            return;
        };
        let Found {
            id,
            uri,
            folders,
            is_open,
        } = found;
        let sessions = &mut self.chats.sessions;
        if sessions.contains_key(&uri) || sessions.values().any(|open| *open == id) {
            return;
        }
        if is_open {
            sessions.insert(uri.clone(), Arc::clone(&id));
        }
        if self.conversations.contains_key(&id) {
            // The editor's spelling of the name may differ from ours.
            let front = self.chat_front(&uri);
            if let Some(conversation) = self.conversations.get_mut(&id) {
                conversation.front = front;
            }
            return;
        }
        let start = Start::Resume;
        match self.start_chat(&uri, folders, (Arc::clone(&id), start)) {
            Ok(conversation) => {
                conversation.opening = Some(Opening {
                    responder: None,
                    start,
                    is_again: false,
                });
            }
            Err(problem) => {
                self.chats.forget(&id, &problem.message);
                tracing::warn!("{}", problem.message);
            }
        }
    }

    /// A document was saved: a new prompt in a chat file is sent if no other document is saved with it.
    pub fn saved(&mut self, uri: &str) {
        if self.client.speaks_acp {
            return;
        }
        let (now, saves) = (Instant::now(), &mut self.chats.saves);
        let is_late = saves
            .last
            .replace(now)
            .is_none_or(|last| now.duration_since(last) >= TOGETHER);
        // An editor that saves all documents saves each once: the second time is a command of its own.
        if is_late || saves.together.contains(uri) {
            saves.together.clear();
        }
        let is_with_another = !saves.together.is_empty();
        saves.together.insert(uri.to_owned());
        let before = saves
            .waits
            .take_if(|waiting| is_with_another || waiting == uri);
        if before.is_some() {
            saves.due = JoinSet::new();
        }
        let chat = Some(uri)
            .filter(|uri| chat::is_chat(uri))
            .map(str::to_owned);
        if !is_with_another {
            if let Some(chat) = chat {
                saves.waits = Some(chat);
                saves.due.spawn(tokio::time::sleep(TOGETHER));
            }
            return;
        }
        for chat in before.into_iter().chain(chat) {
            let text = self
                .documents
                .get(&chat)
                .map(|document| document.text.clone());
            if !self.is_answering(&chat) && text.is_some_and(|text| chat::prompt(&text).is_some()) {
                let message = "tandem: the prompt was saved with other files and is not sent; save the chat alone to send it";
                show_message(&self.peer, MessageType::Info, message);
            }
        }
    }

    /// Sends the new prompt of a chat file that was saved. If there is no place for one, because the answer above was cut
    /// off when its server ended, a notice says so.
    pub fn chat_saved(&mut self, uri: &str) {
        let Some(document) = self.documents.get(uri) else {
            return;
        };
        let was_cut = !self.is_answering(uri) && chat::prompt_start(&document.text).is_none();
        if (was_cut || chat::prompt(&document.text).is_some())
            && let Err(problem) = self.send_chat(uri)
        {
            show_message(&self.peer, MessageType::Error, &problem.message);
        }
    }

    fn is_answering(&self, uri: &str) -> bool {
        let conversation = self
            .chats
            .sessions
            .get(uri)
            .and_then(|id| self.conversations.get(id));
        conversation.is_some_and(|conversation| conversation.prompts.any())
    }

    /// Sends the unanswered prompt of a chat file.
    pub(super) fn send_chat(&mut self, uri: &str) -> Answer<()> {
        let document = self.documents.get(uri);
        let Some(prompt) = document
            .as_ref()
            .and_then(|document| chat::prompt(&document.text))
        else {
            let message = "tandem: write your prompt below the last `## You`, then save";
            show_message(&self.peer, MessageType::Info, message);
            return Ok(());
        };
        let mut parts = vec![Attachment::Text(prompt.to_owned())];
        let conversation = self
            .chats
            .sessions
            .get(uri)
            .and_then(|id| self.conversations.get(id));
        let has_begun = conversation.is_some_and(|conversation| {
            conversation.opening.is_some() || conversation.session.state().begun
        });
        if let Some(document) = document.as_ref().filter(|_| !has_begun) {
            // The session is not here: the file is all there is of the conversation.
            let heading = "The conversation so far, from the chat file".to_owned();
            let earlier = chat::earlier(&document.text).map(str::to_owned);
            parts.extend(earlier.map(|text| Attachment::Shown { heading, text }));
        }
        self.converse(uri, Prompt { parts, focus: None })
    }

    /// Answers a prompt about a document in a new chat file, which is shown where the client can.
    pub(super) fn ask_in_new_chat(
        &mut self,
        words: &str,
        prompt: Prompt,
        about: &str,
    ) -> Answer<()> {
        let Some(state) = self.load_settings(&[]).state_dir else {
            return Err(error(
                ErrorCode::InternalError,
                "there is no directory for chat files; set TANDEM_STATE_DIR",
            ));
        };
        let name = format!("{}.tandem.md", new_id());
        let folder = state.join("chats");
        let path = folder.join(&name);
        let Some(uri) = uri_of(&path) else {
            let message = format!(
                "the state directory {} is not an absolute path",
                folder.display()
            );
            return Err(error(ErrorCode::InternalError, message));
        };
        self.prepare(&uri, about)?;
        let text = format!("{YOU}\n\n{}\n", words.trim());
        self.chats.created.spawn(async move {
            let written = create(folder, &name, text).await;
            written.map(|()| (uri, prompt))
        });
        Ok(())
    }

    /// Sends the prompt of a new chat, now that its file contains it; the answer is written below it.
    pub(in crate::server) fn chat_created(&mut self, created: io::Result<(String, Prompt)>) {
        let sent = match created {
            Ok((uri, prompt)) => {
                let sent = self.converse(&uri, prompt);
                if self.client.can.shows_documents {
                    let params = json!({ "uri": uri, "external": false, "takeFocus": true });
                    self.peer.send("window/showDocument", &params);
                }
                sent.map_err(|problem| problem.message)
            }
            Err(problem) => Err(format!("tandem cannot write the chat file: {problem}")),
        };
        if let Err(message) = sent {
            show_message(&self.peer, MessageType::Error, &message);
        }
    }

    /// The conversation of a chat file about a document, started if there is none.
    pub(super) fn prepare(&mut self, uri: &str, about: &str) -> Answer<SessionId> {
        if let Some(id) = self.chats.sessions.get(uri) {
            return Ok(Arc::clone(id));
        }
        self.close_idle_chats();
        let id = new_id();
        self.start_chat(uri, self.folders_of(about), (Arc::clone(&id), Start::New))?;
        self.chats.sessions.insert(uri.to_owned(), Arc::clone(&id));
        Ok(id)
    }

    /// Makes room for another chat: closes the oldest ones whose file is not open, which run nothing and have nothing to
    /// undo. Opened again, the file continues its chat.
    fn close_idle_chats(&mut self) {
        while self.chats.sessions.len() >= OPEN {
            let is_idle = |(uri, id): &(&String, &SessionId)| {
                let conversation = self.conversations.get(*id);
                let is_busy = conversation.is_some_and(|it| {
                    let has_changes = it.session.undoable().undo.is_some();
                    it.opening.is_some()
                        || it.prompts.any()
                        || it.session.shell().has_job()
                        || has_changes
                });
                self.documents.get(uri).is_none() && !is_busy
            };
            let idle = self.chats.sessions.iter().filter(is_idle);
            let Some((uri, id)) = idle.min_by_key(|(_, id)| *id) else {
                return;
            };
            let (uri, id) = (uri.clone(), Arc::clone(id));
            self.chats.sessions.remove(&uri);
            let hints = self.chats.hints();
            hints.show_hunks(&self.peer, self.client.can, &id, &[]);
            if let Some(conversation) = self.conversations.remove(&id) {
                self.closing.spawn(conversation.close());
            }
        }
    }

    fn start_chat(
        &mut self,
        uri: &str,
        folders: Vec<PathBuf>,
        id: (SessionId, Start),
    ) -> Answer<&mut Conversation> {
        let sources = Sources {
            folders,
            chat: file_of(uri),
            ..Sources::default()
        };
        let front = self.chat_front(uri);
        self.start_session(id, sources, front)
    }

    fn chat_front(&self, uri: &str) -> Box<ChatFront> {
        let connection = Connection {
            peer: self.peer.clone(),
            documents: self.documents.clone(),
            can: self.client.can,
            shows_last_line: self.client.shows_last_line,
            turns: Arc::clone(&self.chats.turns),
            hints: self.chats.hints(),
        };
        Box::new(ChatFront::new(connection, uri.to_owned()))
    }

    fn converse(&mut self, uri: &str, prompt: Prompt) -> Answer<()> {
        if self.is_answering(uri) {
            let message = "tandem: the previous answer is still being written; wait, or stop it";
            show_message(&self.peer, MessageType::Info, message);
            return Ok(());
        }
        let id = self.prepare(uri, uri)?;
        self.reconfigure(&id);
        let Conversation {
            prompts, session, ..
        } = self.conversation(&id)?;
        prompts.send(session, prompt, Value::Null, &mut None, None)
    }

    /// `tandem.cancel`.
    pub(super) fn cancel_all(&self) {
        for conversation in self.conversations.values() {
            conversation.session.cancel();
        }
    }

    /// `window/workDoneProgress/cancel`.
    pub fn progress_cancelled(&mut self, params: Value) {
        let mut conversations = self.conversations.values();
        if let Some(conversation) =
            conversations.find(|conversation| conversation.front.owns_progress(&params["token"]))
        {
            conversation.session.cancel();
        }
    }
}

async fn create(folder: PathBuf, name: &str, text: String) -> io::Result<()> {
    StateFolder::open(folder)
        .await?
        .write(name, text.into_bytes())
        .await
}
