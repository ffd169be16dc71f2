//! Matches answers to requests, and handles a server's other messages. Independent of the transport.
//!
//! Invariants: an answer reaches only its request; when the connection ends, current and later waiters are notified at
//! once.

use crate::domain::lock;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot, watch};
use tokio_util::sync::CancellationToken;
use url::Url;

/// JSON-RPC's error code for an unknown method.
const METHOD_NOT_FOUND: i32 = -32601;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// The connection was closed.
    Over,
    /// The server answered with an error, with its message.
    Refused(String),
    /// The server answered with an HTTP status that another attempt would not change; the text completes `MCP server x …`.
    Denied(String),
    /// The server no longer knows the session, and did not look at the request.
    Expired,
    /// The server cannot be reached, with a reason such as `connection refused`.
    Unreachable(String),
}

/// The answer to a request.
pub(super) type Answer = Result<Value, Fault>;

/// One side of a connection.
pub(super) struct Exchange {
    waiting: Mutex<HashMap<u64, oneshot::Sender<Answer>>>,
    /// The workspace folders, as the protocol represents them.
    roots: Value,
    /// Notified when the server's tools changed.
    pub changes: Notify,
    /// Changes with every progress report.
    pub progress: watch::Sender<u64>,
    /// Cancelled when the connection is closed.
    pub over: CancellationToken,
}

impl Exchange {
    /// A new exchange for a workspace with these folders.
    pub fn new(roots: &[PathBuf]) -> Arc<Self> {
        let (progress, _) = watch::channel(0);
        let (changes, over) = (Notify::new(), CancellationToken::new());
        let roots = roots
            .iter()
            .filter_map(|root| Some(json!({ "uri": Url::from_file_path(root).ok()?.as_str() })));
        Arc::new(Self {
            waiting: Mutex::default(),
            roots: roots.collect(),
            changes,
            progress,
            over,
        })
    }

    /// Expects an answer until the expectation is dropped.
    pub fn expect(self: &Arc<Self>, id: u64) -> Expected {
        let (sender, answer) = oneshot::channel();
        if !self.over.is_cancelled() {
            self.waiting().insert(id, sender);
        }
        Expected {
            id,
            answer,
            exchange: Arc::clone(self),
        }
    }

    /// Handles a message from the server; returns the answer to send. Invalid messages are ignored.
    pub fn take(&self, message: &Value) -> Option<Value> {
        let id = &message["id"];
        match (message["method"].as_str(), id) {
            (Some(method), Value::Null) => self.on_notification(method),
            (Some("ping"), id) => return Some(json!({ "jsonrpc": "2.0", "id": id, "result": {} })),
            (Some("roots/list"), id) => {
                return Some(
                    json!({ "jsonrpc": "2.0", "id": id, "result": { "roots": self.roots } }),
                );
            }
            (Some(method), id) => {
                let error = json!({ "code": METHOD_NOT_FOUND, "message": format!("tandem has no method `{method}`") });
                return Some(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
            }
            (None, id) => {
                let waiting = id.as_u64().and_then(|id| self.waiting().remove(&id));
                let _gone = waiting.map(|waiting| waiting.send(answer(message)));
            }
        }
        None
    }

    fn on_notification(&self, notification: &str) {
        match notification {
            "notifications/tools/list_changed" => self.changes.notify_one(),
            "notifications/progress" => self.progress.send_modify(|count| *count += 1),
            _ => tracing::debug!("an MCP server sends {notification}"),
        }
    }

    /// Closes the connection.
    pub fn close(&self) {
        self.over.cancel();
        self.waiting().clear();
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Answer>>> {
        lock(&self.waiting)
    }
}

/// A pending answer.
pub(super) struct Expected {
    id: u64,
    answer: oneshot::Receiver<Answer>,
    exchange: Arc<Exchange>,
}

impl Expected {
    /// The answer, if it has arrived.
    pub fn come_by_now(&mut self) -> Option<Answer> {
        match self.answer.try_recv() {
            Ok(answer) => Some(answer),
            Err(oneshot::error::TryRecvError::Closed) => Some(Err(Fault::Over)),
            Err(oneshot::error::TryRecvError::Empty) => None,
        }
    }

    /// Waits for the answer.
    pub async fn come(&mut self) -> Answer {
        (&mut self.answer).await.unwrap_or(Err(Fault::Over))
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        self.exchange.waiting().remove(&self.id);
    }
}

fn answer(message: &Value) -> Answer {
    match (message.get("result"), &message["error"]["message"]) {
        (Some(result), _) => Ok(result.clone()),
        (None, Value::String(message)) => Err(Fault::Refused(message.clone())),
        (None, _) => Err(Fault::Refused("an error without a message".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answers_reach_only_their_waiter() {
        let exchange = Exchange::new(&[]);
        let (mut one, mut two) = (exchange.expect(1), exchange.expect(2));
        let take = |message: Value| assert_eq!(exchange.take(&message), None, "{message}");
        take(json!({ "id": 3, "result": "nobody's" }));
        take(json!({ "id": "1", "result": "of another type" }));
        take(json!([7]));
        take(json!({ "id": 2, "error": { "message": "no" } }));
        take(json!({ "id": 1, "result": 1 }));
        take(json!({ "id": 1, "result": "twice" }));
        assert_eq!(one.come().await, Ok(json!(1)));
        assert_eq!(two.come().await, Err(Fault::Refused("no".to_owned())));
    }

    #[tokio::test]
    async fn all_waiters_are_told_of_the_end() {
        let exchange = Exchange::new(&[]);
        let mut before = exchange.expect(1);
        exchange.close();
        assert_eq!(before.come().await, Err(Fault::Over));
        assert_eq!(exchange.expect(2).come().await, Err(Fault::Over));
    }

    #[cfg(unix)]
    #[test]
    fn server_requests_are_answered() {
        let exchange = Exchange::new(&[PathBuf::from("/a b")]);
        let check = |method: &str, expected: Value| {
            let request = json!({ "jsonrpc": "2.0", "id": "s1", "method": method });
            let answer = exchange.take(&request).unwrap();
            assert_eq!(
                (&answer["id"], &answer["result"], &answer["error"]["code"]),
                (&json!("s1"), &expected["ok"], &expected["code"])
            );
        };
        check("ping", json!({ "ok": {} }));
        check(
            "roots/list",
            json!({ "ok": { "roots": [{ "uri": "file:///a%20b" }] } }),
        );
        check("sampling/createMessage", json!({ "code": -32601 }));
    }
}
