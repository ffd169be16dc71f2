//! A scripted model: the same answers, byte for byte, every time.
//!
//! A [`Server`] on loopback that speaks the real APIs, so that decoding, retries and cancelling are exercised, too.
//! Gates hold an answer until they are opened, and every event can be awaited, so tests need no sleep.

mod script;
mod server;
mod voice;

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::watch;

pub use script::{Call, Reply, Script, Step};
use script::{Piece, Played};
pub use server::{Request, Server};
use voice::Api;

/// A script being played; clones are handles to the same play.
#[derive(Debug, Clone)]
pub struct Rehearsal(Arc<watch::Sender<State>>);

/// The progress of a play.
#[derive(Debug, Default)]
struct State {
    replies: VecDeque<Reply>,
    author: Option<Author>,
    documents: HashMap<String, Value>,
    requests: Vec<Value>,
    paths: Vec<String>,
    open: HashSet<String>,
    waiting: Vec<String>,
    closed_early: usize,
    connections: usize,
}

/// Writes the reply to a request that has arrived.
struct Author(Box<dyn FnMut(&Request) -> Reply + Send + Sync>);

impl fmt::Debug for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Author")
    }
}

impl From<Script> for Rehearsal {
    fn from(script: Script) -> Self {
        let state = State {
            replies: script.into(),
            ..State::default()
        };
        Self(Arc::new(watch::Sender::new(state)))
    }
}

impl Rehearsal {
    /// Adds replies at the end of the script.
    pub fn add(&self, script: Script) {
        self.0.send_modify(|state| state.replies.extend(script));
    }

    /// Makes `author` write the replies that the script lacks.
    pub fn answer_with(&self, author: impl FnMut(&Request) -> Reply + Send + Sync + 'static) {
        let author = Author(Box::new(author));
        self.0.send_modify(|state| state.author = Some(author));
    }

    /// Discards the remaining replies.
    pub fn clear(&self) {
        self.0.send_modify(|state| state.replies.clear());
    }

    /// Serves a document at `path`; other paths have none.
    pub fn document(&self, path: &str, document: Value) {
        self.0
            .send_modify(|state| _ = state.documents.insert(path.to_owned(), document));
    }

    /// Opens a gate, for later answers, too.
    pub fn open(&self, gate: &str) {
        self.0
            .send_modify(|state| _ = state.open.insert(gate.to_owned()));
    }

    /// The bodies of the requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Value> {
        self.0.borrow().requests.clone()
    }

    /// The paths of the requests the server received so far.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        self.0.borrow().paths.clone()
    }

    /// How many connections the server has accepted.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.0.borrow().connections
    }

    /// Waits until an answer has reached a gate.
    pub async fn waiting_at(&self, gate: &str) {
        self.until(|state| state.waiting.iter().any(|name| name == gate))
            .await;
    }

    /// Waits until `n` requests have arrived.
    pub async fn requested(&self, n: usize) {
        self.until(|state| state.requests.len() >= n).await;
    }

    /// Waits until `n` answers were dropped before their end.
    pub async fn closed_early(&self, n: usize) {
        self.until(|state| state.closed_early >= n).await;
    }

    async fn until(&self, condition: impl Fn(&State) -> bool) {
        let held = self
            .0
            .subscribe()
            .wait_for(|state| condition(state))
            .await
            .is_ok();
        assert!(held, "the sender lives in self");
    }

    /// Accepts a request and begins the next reply.
    fn answer(&self, request: &Request, api: Api) -> Answer {
        let body = serde_json::from_slice(&request.body)
            .unwrap_or_else(|_| String::from_utf8_lossy(&request.body).into());
        let mut reply = None;
        self.0.send_modify(|state| {
            state.requests.push(body);
            reply = state.replies.pop_front();
            if let (None, Some(Author(write))) = (&reply, &mut state.author) {
                reply = Some(write(request));
            }
        });
        let Played {
            status,
            headers,
            pieces,
        } = script::play(
            reply.unwrap_or_else(script::exhausted),
            api,
            request.body.len(),
        );
        Answer {
            status,
            headers,
            body: Play {
                rehearsal: self.clone(),
                pieces: pieces.into(),
                ended: false,
            },
        }
    }
}

/// The head of an answer, and its body.
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Play,
}

/// An answer being sent.
struct Play {
    rehearsal: Rehearsal,
    pieces: VecDeque<Piece>,
    ended: bool,
}

impl Play {
    /// The next bytes; an error if the connection breaks.
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            match self.pieces.pop_front() {
                Some(Piece::Bytes(bytes)) => return Some(Ok(bytes)),
                Some(Piece::Pause(time)) => tokio::time::sleep(time).await,
                Some(Piece::Gate(gate)) => self.gate(gate).await,
                Some(Piece::Hang) => std::future::pending().await,
                Some(Piece::Cut) => {
                    self.ended = true;
                    self.pieces.clear();
                    return Some(Err(io::ErrorKind::ConnectionReset.into()));
                }
                None => {
                    self.ended = true;
                    return None;
                }
            }
        }
    }

    async fn gate(&self, gate: String) {
        let Rehearsal(state) = &self.rehearsal;
        state.send_modify(|state| state.waiting.push(gate.clone()));
        self.rehearsal
            .until(|state| state.open.contains(&gate))
            .await;
        state.send_modify(|state| state.waiting.retain(|name| *name != gate));
    }
}

impl Drop for Play {
    fn drop(&mut self) {
        if !self.ended {
            self.rehearsal
                .0
                .send_modify(|state| state.closed_early += 1);
        }
    }
}
