//! Guarantees exactly one response per request by types: each request gets one [`Responder`], responding consumes it,
//! and dropping it responds with an internal error.

use lsp_server::{ErrorCode, ResponseError};
use serde::Serialize;

use super::{Peer, RequestId};

/// The obligation to answer one request.
#[derive(Debug)]
#[must_use = "dropping it answers the request with an internal error"]
pub struct Responder {
    id: RequestId,
    peer: Peer,
    answered: bool,
}

impl Responder {
    pub(super) fn new(id: RequestId, peer: Peer) -> Self {
        Self {
            id,
            peer,
            answered: false,
        }
    }

    /// The request's id.
    pub fn id(&self) -> &RequestId {
        &self.id
    }

    /// Responds with a result.
    pub fn ok(mut self, result: &impl Serialize) {
        self.send(Ok(result));
    }

    /// Responds with an error without data.
    pub fn error(self, code: ErrorCode, message: impl Into<String>) {
        self.refuse(&ResponseError {
            code: code as i32,
            message: message.into(),
            data: None,
        });
    }

    /// Responds with an error.
    pub fn refuse(mut self, error: &ResponseError) {
        self.send::<()>(Err(error));
    }

    /// Responds with a result or an error.
    pub fn answer(self, answer: Result<impl Serialize, ResponseError>) {
        match answer {
            Ok(result) => self.ok(&result),
            Err(error) => self.refuse(&error),
        }
    }

    fn send<T: Serialize>(&mut self, answer: Result<&T, &ResponseError>) {
        self.answered = true;
        self.peer.answer(&self.id, answer);
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        if !self.answered {
            let message = "the request ended without an answer; internal error".to_owned();
            self.send::<()>(Err(&ResponseError {
                code: ErrorCode::InternalError as i32,
                message,
                data: None,
            }));
        }
    }
}
