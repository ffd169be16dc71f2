//! Who still waits for whom: requests that came in and are not answered, requests that went out and are not answered.
//!
//! Exactly one answer to every request is a matter of types: [`Responder`] is made once for each request, answering
//! consumes it, and dropping it answers with an internal error.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lsp_server::{ErrorCode, RequestId, ResponseError};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::Peer;

/// What the other side answers.
pub(super) type Answer = Result<Value, ResponseError>;

/// Both tables.
#[derive(Debug, Default)]
pub(super) struct Pending(Mutex<Tables>);

#[derive(Debug, Default)]
struct Tables {
    incoming: HashMap<RequestId, CancellationToken>,
    outgoing: HashMap<i32, oneshot::Sender<Answer>>,
    last_id: i32,
    closed: bool,
}

impl Pending {
    /// A request came in; the token is set when the client cancels it.
    fn begin(&self, id: RequestId) -> CancellationToken {
        let token = CancellationToken::new();
        self.lock().incoming.insert(id, token.clone());
        token
    }

    fn finish(&self, id: &RequestId) {
        self.lock().incoming.remove(id);
    }

    pub(super) fn cancel(&self, id: &RequestId) {
        let token = self.lock().incoming.get(id).cloned();
        if let Some(token) = token {
            token.cancel();
        }
    }

    /// A request goes out under a new id; the receiver fails when no answer can come any more.
    pub(super) fn ask(&self) -> (i32, oneshot::Receiver<Answer>) {
        let (sender, receiver) = oneshot::channel();
        let mut tables = self.lock();
        tables.last_id = tables.last_id.wrapping_add(1);
        let id = tables.last_id;
        if !tables.closed {
            tables.outgoing.insert(id, sender);
        }
        (id, receiver)
    }

    pub(super) fn forget(&self, id: i32) {
        self.lock().outgoing.remove(&id);
    }

    /// Who waits for the answer with this id; nobody where there is no such request.
    pub(super) fn claim(&self, id: &RequestId) -> Option<oneshot::Sender<Answer>> {
        self.lock().outgoing.remove(&outgoing_id(id)?)
    }

    /// No answer can come any more.
    pub(super) fn close(&self) {
        let mut tables = self.lock();
        tables.closed = true;
        tables.outgoing.clear();
    }

    /// Every change of the tables is complete before anything can panic, so poison means nothing here.
    fn lock(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Our own ids are integers; `RequestId` shows them as they are and strings in quotes.
fn outgoing_id(id: &RequestId) -> Option<i32> {
    id.to_string().parse().ok()
}

/// The duty to answer one request.
#[derive(Debug)]
#[must_use = "dropping it answers the request with an internal error"]
pub struct Responder {
    id: RequestId,
    peer: Peer,
    cancelled: CancellationToken,
    answered: bool,
}

impl Responder {
    pub(super) fn new(id: RequestId, peer: Peer) -> Self {
        let cancelled = peer.pending().begin(id.clone());
        Self { id, peer, cancelled, answered: false }
    }

    /// The id of the request.
    #[must_use]
    pub fn id(&self) -> &RequestId {
        &self.id
    }

    /// Set when the client cancels the request (see [`Peer::cancel`]); the request still has to be answered.
    #[must_use]
    pub fn cancelled(&self) -> CancellationToken {
        self.cancelled.clone()
    }

    /// Answers with a result.
    pub fn ok(mut self, result: &impl Serialize) {
        self.send(Ok(result));
    }

    /// Answers with an error without data.
    pub fn error(self, code: ErrorCode, message: impl Into<String>) {
        self.respond(Err(ResponseError { code: code as i32, message: message.into(), data: None }));
    }

    /// Answers with either.
    pub fn respond(mut self, answer: Result<Value, ResponseError>) {
        match answer {
            Ok(value) => self.send(Ok(&value)),
            Err(error) => self.send::<()>(Err(&error)),
        }
    }

    fn send<T: Serialize>(&mut self, answer: Result<&T, &ResponseError>) {
        self.answered = true;
        self.peer.pending().finish(&self.id);
        self.peer.answer(&self.id, answer);
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        if !self.answered {
            let message = "the request ended without an answer; this is a fault of tandem".to_owned();
            self.send::<()>(Err(&ResponseError { code: ErrorCode::InternalError as i32, message, data: None }));
        }
    }
}
