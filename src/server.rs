//! One task owns all state of a connection: it dispatches messages from the client and events from sessions, and sends
//! the results through the peer.
//!
//! Invariants:
//!
//! * The task never waits for a person, a model or the disk, except for the few files a new session reads. All other work
//!   runs in separate tasks owned by `Server`.
//! * The updates of a turn are sent before its response.
//! * While the client does not read, session events stay queued, which slows their models. While not even responses can
//!   be sent, no request is accepted.
#![expect(
    clippy::needless_pass_by_value,
    clippy::unnecessary_wraps,
    reason = "handlers have one shape, whether they need all of it or not"
)]

mod capabilities;
mod complete;
mod conversation;
mod dispatch;
mod documents;
mod editor;
mod events;
mod front_end;
mod handshake;
mod inline;
mod inline_completion;
mod jobs;
mod lsp;
mod mcp;
mod models;
mod options;
mod origins;
mod permission;
mod problems;
mod prompts;
mod review;
mod sessions;
mod styles;
mod updates;
mod wire;

use std::collections::{HashMap, HashSet};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::completion::Completer;
use crate::config::Settings;
use crate::rpc::{self, Framing, Incoming, Peer};
use crate::session::SessionId;
use crate::session::event::SessionEvent;
use crate::workspace::Documents;
use conversation::Conversation;
use handshake::Client;
use mcp::Relay;
use permission::Requests;

/// How many events of all sessions may be queued for the server.
const EVENTS: usize = 32;
/// How often the server checks that the editor's process is alive.
const WATCH: Duration = Duration::from_secs(3);

/// The protocol on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Language Server Protocol: `Content-Length` frames, documents in sync.
    Lsp,
    /// Agent Client Protocol: one message per line.
    Acp,
}

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// As the protocol requires, or because the other side or its process is gone.
    Well,
    /// With `exit` before `shutdown`, which the standard treats as an error.
    Abruptly,
    /// The next message could not be found in the input.
    Fatally(String),
}

/// Loads the settings for the options a client sent (`initializationOptions`) and its workspace folders.
pub type LoadSettings = Box<dyn Fn(&serde_json::Value, &[PathBuf]) -> Settings + Send>;

/// Serves one connection until it ends.
///
/// # Errors
/// A thread cannot be started, or the last responses could not be written.
pub async fn serve(
    transport: Transport,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    load: LoadSettings,
) -> std::io::Result<Ended> {
    let framing = match transport {
        Transport::Lsp => Framing::Header,
        Transport::Acp => Framing::Line,
    };
    let (peer, inbox, writer) = rpc::connect(framing, input, output)?;
    let (sender, events) = mpsc::channel(EVENTS);
    let mut server = Server::new(transport, peer, sender, load);
    let ended = server.run(inbox, events).await;
    server.close().await;
    match writer.finish().await {
        // A client that is gone does not read its last messages: that is not an error.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(ended),
    }
}

/// The phase of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Before `initialize`.
    Fresh,
    /// Between `initialize` and `shutdown`.
    Serving,
    /// After `shutdown`.
    ShutDown,
}

/// The state of a connection.
struct Server {
    transport: Transport,
    peer: Peer,
    phase: Phase,
    client: Client,
    documents: Documents,
    focus: Option<crate::domain::Focus>,
    options: serde_json::Value,
    load: LoadSettings,
    conversations: HashMap<SessionId, Conversation>,
    /// The permission requests waiting for the person.
    requests: Requests,
    /// The requests to the client's own MCP servers.
    relay: Relay,
    chats: lsp::Chats,
    events: mpsc::Sender<(SessionId, SessionEvent)>,
    /// The running inline edits and completions.
    inlines: Vec<inline::Inline>,
    /// Inline completion, if it is configured and the client offers it.
    completer: Option<Completer>,
    tasks: JoinSet<()>,
    /// Sessions that are closing.
    closing: JoinSet<()>,
    end: CancellationToken,
    ended: Option<Ended>,
    /// Configuration problems that were found.
    reported: HashSet<String>,
    /// Those that the next session shows, where only a session can.
    unshown: Vec<String>,
}

impl Server {
    fn new(
        transport: Transport,
        peer: Peer,
        events: mpsc::Sender<(SessionId, SessionEvent)>,
        load: LoadSettings,
    ) -> Self {
        Self {
            transport,
            requests: Requests::default(),
            relay: Relay::new(peer.clone()),
            chats: lsp::Chats::default(),
            peer,
            phase: Phase::Fresh,
            client: Client::default(),
            documents: Documents::new(crate::text::Encoding::Utf16),
            focus: None,
            options: serde_json::Value::Null,
            load,
            conversations: HashMap::new(),
            events,
            inlines: Vec::new(),
            completer: None,
            tasks: JoinSet::new(),
            closing: JoinSet::new(),
            end: CancellationToken::new(),
            ended: None,
            reported: HashSet::new(),
            unshown: Vec::new(),
        }
    }

    async fn run(
        &mut self,
        mut inbox: rpc::Inbox,
        mut events: mpsc::Receiver<(SessionId, SessionEvent)>,
    ) -> Ended {
        let peer = self.peer.clone();
        let mut batch = Vec::with_capacity(EVENTS);
        let mut terminated = std::pin::pin!(terminated());
        let mut watch = tokio::time::interval(WATCH);
        while self.ended.is_none() {
            let updates = peer.accepts_updates();
            tokio::select! {
                biased;
                () = &mut terminated => return Ended::Well,
                () = peer.gone() => return Ended::Well,
                incoming = inbox.recv() => self.incoming(incoming),
                _ = events.recv_many(&mut batch, EVENTS), if updates => {
                    for (id, event) in batch.drain(..) {
                        self.event(&id, event);
                    }
                }
                () = peer.drained(), if !updates => {}
                Some((request, permission)) = self.requests.decided() => {
                    // A code action may have answered first.
                    let _answered = self.requests.answer(Some(&request), permission);
                }
                Some(found) = self.chats.earlier.join_next() => {
                    self.resume_earlier(found.ok().flatten());
                }
                Some(Ok(created)) = self.chats.created.join_next() => self.chat_created(created),
                Some(uri) = self.chats.saves.next(), if self.chats.earlier.is_empty() => {
                    self.chat_saved(&uri);
                }
                Some(ended) = self.tasks.join_next() => log_panic(ended),
                Some(ended) = self.closing.join_next() => log_panic(ended),
                _ = watch.tick() => if !self.client.is_alive() {
                    tracing::info!("the editor's process is gone");
                    return Ended::Well;
                },
            }
        }
        self.ended.clone().unwrap_or(Ended::Well)
    }

    fn incoming(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::Request(request, responder) => self.request(request, responder),
            Incoming::Notification(notification) => self.notification(notification),
            Incoming::Fatal(fatal) => self.ended = Some(Ended::Fatally(fatal.to_string())),
            Incoming::Closed => self.ended = Some(Ended::Well),
        }
    }

    /// Stops every turn and every task, and waits for them. What is queued behind a turn stays in the journal.
    async fn close(&mut self) {
        self.end.cancel();
        for (_, conversation) in self.conversations.drain() {
            self.closing.spawn(conversation.close());
        }
        while let Some(ended) = self.closing.join_next().await {
            log_panic(ended);
        }
        self.tasks.shutdown().await;
    }
}

/// A task that panicked is at least logged.
fn log_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && !error.is_cancelled()
    {
        tracing::error!("a task of the server panicked: {error}");
    }
}

/// Resolves when the system asks the process to end.
async fn terminated() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let (Ok(mut term), Ok(mut hup)) = (
            signal(SignalKind::terminate()),
            signal(SignalKind::hangup()),
        ) {
            tokio::select! { _ = term.recv() => {} _ = hup.recv() => {} }
            return;
        }
    }
    std::future::pending::<()>().await;
}
