//! The answer to one request, before it is decoded.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use secrecy::SecretString;

use super::Failure;

/// A larger answer is an error, in bytes.
pub(super) const LARGEST: usize = 32 << 20;

/// The head of an answer, and its body as it arrives. Once the body has ended, it stays so. Dropping it closes the
/// connection.
pub(super) struct Answer {
    pub status: u16,
    /// The key the request was sent with.
    pub key: Option<SecretString>,
    /// How long the server asks to wait before the next try.
    pub retry_after: Option<Duration>,
    pub body: BoxStream<'static, Result<Bytes, Failure>>,
}
