//! Asks the person while a call runs, or before a turn: to fill in a form of a server, or to open an address.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::Preview;

/// The person's reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// They agreed.
    Yes,
    /// The answer to one question.
    Text(String),
    /// A whole form, filled in.
    Form(Map<String, Value>),
    /// They declined, or nobody is there.
    No,
}

/// The way to the person.
pub trait Ask: Send + Sync {
    /// Shows a request until it is answered, or withdrawn by cancelling `withdrawn`.
    fn ask(&self, request: Preview, withdrawn: CancellationToken) -> BoxFuture<'static, Reply>;
}

/// The person of a session. By default nobody is there. Cheap to clone.
#[derive(Clone, Default)]
pub struct Person(Option<Arc<dyn Ask>>);

impl Person {
    /// A person who is reached this way.
    pub fn new(way: impl Ask + 'static) -> Self {
        Self(Some(Arc::new(way)))
    }

    /// Asks, and waits for the reply.
    pub async fn ask(&self, request: Preview, withdrawn: CancellationToken) -> Reply {
        match &self.0 {
            Some(way) => way.ask(request, withdrawn).await,
            None => Reply::No,
        }
    }
}
