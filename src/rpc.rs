//! JSON-RPC over two byte streams: `framing` cuts bytes into bodies, `message` makes messages of them,
//! `transport` runs the reader and the writer thread, `outbox` is the queue between everybody and the writer,
//! [`Peer`] is how the rest of the server talks, `pending` has the requests that wait for the other side.
//!
//! Invariants: every request that came in is answered exactly once (a [`Responder`] answers when it is dropped);
//! one bad message is answered and the next one works; every queue has a bound, and nothing that was accepted is
//! dropped or overtakes what was sent before it.

mod framing;
mod message;
mod outbox;
mod peer;
mod pending;
mod responder;
mod transport;

pub use framing::{Fatal, Frame, FrameReader, Framing};
pub use lsp_server::{ErrorCode, RequestId, ResponseError};
pub use message::{Malformed, Notification, Params, Request, Response};
pub use outbox::{TextKind, TextSource};
pub use peer::{Peer, PendingResponse, RequestError};
pub use responder::Responder;
pub use transport::{Inbox, Incoming, Writer, connect, stdio};
