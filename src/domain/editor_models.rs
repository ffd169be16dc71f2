//! The models of an editor, which it asks on behalf of tandem.

use std::fmt::Debug;

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::Failure;

/// The editor's answer to one request.
pub type EditorAnswer = BoxFuture<'static, Result<Value, Failure>>;

/// The models that an editor has itself, asked over its own connection.
pub trait EditorModels: Debug + Send + Sync {
    /// The list of them, in the form of OpenAI's `/models`.
    fn list(&self) -> EditorAnswer;

    /// The next `chunk` of an answer, in the form of OpenAI's chat completions; none when it is complete. The first one
    /// comes with the `body` of the request.
    fn next(&self, id: u64, body: Option<Value>) -> EditorAnswer;

    /// Cancels an answer that is not complete.
    fn end(&self, id: u64);
}
