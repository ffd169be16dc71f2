//! JSON-RPC over two byte streams.
//!
//! `framing` splits bytes into bodies, `message` parses bodies into messages, `transport` runs the reader and the
//! writer thread, `outbox` is the queue between all senders and the writer, [`Peer`] is the sending interface of the
//! server, and `pending` has the requests that wait for the other side.
//!
//! Invariants: every request is answered exactly once (a [`Responder`] answers when it is dropped); a malformed message
//! is answered and the next one works; every queue is bounded; accepted messages are neither dropped nor reordered.

mod framing;
mod message;
mod outbox;
mod peer;
mod pending;
mod responder;
mod transport;

pub use framing::{Fatal, FrameReader, Framing};
pub use lsp_server::{ErrorCode, ResponseError};
pub use message::{Notification, Params, Request, RequestId};
pub use outbox::{TextKind, TextSource};
pub use peer::{Peer, PendingResponse, RequestError};
pub use responder::Responder;
pub use transport::{Inbox, Incoming, Writer, connect, stdio};
