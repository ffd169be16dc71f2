//! Sends notifications, requests and responses to the other side.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use lsp_server::{ErrorCode, ResponseError};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::framing::Framing;
use super::message::{self, Malformed, Response};
use super::outbox::{Outbox, TextSource};
use super::pending::{Answer, Pending};

/// The other side of the connection. Cheap to clone; no method blocks, and all but the `async` ones return at once.
#[derive(Debug, Clone)]
pub struct Peer {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    framing: Framing,
    outbox: Outbox,
    pending: Pending,
}

impl Peer {
    pub(super) fn new(framing: Framing) -> Self {
        let shared = Shared {
            framing,
            outbox: Outbox::default(),
            pending: Pending::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    pub(super) fn framing(&self) -> Framing {
        self.shared.framing
    }

    /// Sends a notification. Params that serialize to `null` are left out.
    pub fn notify(&self, method: &str, params: &impl Serialize) {
        match message::call(None, method, params) {
            Ok(body) => self.outbox().push(body),
            // For example a path that is not Unicode: the notification is lost, the server goes on.
            Err(error) => tracing::error!(method, %error, "notification cannot be serialized"),
        }
    }

    /// Delays later messages briefly, for clients that lose messages read together with a response they are waiting for.
    pub fn pause(&self) {
        self.outbox().pause();
    }

    /// Sends a piece of text as a `session/update`. While the other side is slow, it is merged with the piece before
    /// it.
    pub fn text(&self, source: &Arc<TextSource>, piece: &str) {
        self.outbox().push_text(source, piece);
    }

    /// Sends a request of which nobody needs the response.
    pub fn send(&self, method: &str, params: &impl Serialize) {
        let request = self.request(method, params);
        self.pending().claim(request.id);
    }

    /// Sends a request. Dropping the future cancels it; a late response is then ignored.
    #[must_use = "the answer"]
    pub fn request(&self, method: &str, params: &impl Serialize) -> PendingResponse {
        let (id, receiver) = self.pending().ask();
        match message::call(Some(id), method, params) {
            Ok(body) => self.outbox().push(body),
            Err(error) => {
                if let Some(waiting) = self.pending().claim(id) {
                    // The receiver still exists, so this cannot fail.
                    let _ = waiting.send(Err(unserializable(&error)));
                }
            }
        }
        PendingResponse {
            peer: self.clone(),
            id,
            receiver,
        }
    }

    /// Passes a response to whoever waits for it.
    pub(super) fn resolve(&self, response: &Response) {
        let id = response.id.as_i64().and_then(|id| i32::try_from(id).ok());
        if let Some(waiting) = id.and_then(|id| self.pending().claim(id)) {
            // The waiter may have been dropped at this very moment.
            let _ = waiting.send(response.outcome());
        }
    }

    /// Answers a body that was not a message.
    pub(super) fn reject(&self, malformed: &Malformed) {
        let error = ResponseError {
            code: malformed.code as i32,
            message: malformed.message.clone(),
            data: None,
        };
        self.answer::<()>(&malformed.id, Err(&error));
    }

    /// Whether updates may be sent; if not, wait for [`Self::drained`].
    pub fn accepts_updates(&self) -> bool {
        self.outbox().accepts_updates()
    }

    /// Resolves when the other side has read most of what was sent, or is gone.
    pub async fn drained(&self) {
        self.outbox().drained().await;
    }

    /// Resolves when the other side has closed its end and nothing can reach it any more.
    pub async fn gone(&self) {
        self.outbox().broken().cancelled().await;
    }

    pub(super) fn outbox(&self) -> &Outbox {
        &self.shared.outbox
    }

    pub(super) fn pending(&self) -> &Pending {
        &self.shared.pending
    }

    /// Sends a response; a result that cannot be serialized becomes an internal error.
    pub(super) fn answer<T: Serialize>(
        &self,
        id: &impl Serialize,
        answer: Result<&T, &ResponseError>,
    ) {
        let body = message::answer(id, answer)
            .or_else(|error| message::answer::<()>(id, Err(&unserializable(&error))))
            .expect("an id and an error of strings and numbers serialize");
        self.outbox().push(body);
    }
}

fn unserializable(error: &serde_json::Error) -> ResponseError {
    let message = format!("cannot be written as JSON: {error}");
    ResponseError {
        code: ErrorCode::InternalError as i32,
        message,
        data: None,
    }
}

/// The future response to a request of ours.
#[derive(Debug)]
pub struct PendingResponse {
    peer: Peer,
    id: i32,
    receiver: oneshot::Receiver<Answer>,
}

/// Why a request of ours has no result.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RequestError {
    /// The other side responded with an error.
    #[error("{} ({})", .0.message, .0.code)]
    Refused(ResponseError),
    /// The connection closed first.
    #[error("the connection closed before the response arrived")]
    Closed,
}

impl Future for PendingResponse {
    type Output = Result<Value, RequestError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.receiver)
            .poll(context)
            .map(|received| match received {
                Ok(Ok(value)) => Ok(value),
                Ok(Err(error)) => Err(RequestError::Refused(error)),
                Err(_) => Err(RequestError::Closed),
            })
    }
}

impl Drop for PendingResponse {
    fn drop(&mut self) {
        let id = self.id;
        if self.peer.pending().claim(id).is_none() {
            return;
        }
        // Lines are the Agent Client Protocol.
        let (method, params) = match self.peer.framing() {
            Framing::Header => ("$/cancelRequest", json!({ "id": id })),
            Framing::Line => ("$/cancel_request", json!({ "requestId": id })),
        };
        self.peer.notify(method, &params);
    }
}
