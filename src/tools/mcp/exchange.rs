//! Matches answers to requests, and handles a server's other messages. Independent of the transport.
//!
//! Invariants: an answer reaches only its request; when the connection ends, current and later waiters are notified at
//! once.

use crate::domain::lock;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use futures_util::FutureExt as _;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::input::METHOD_NOT_FOUND;
use super::login::Challenge;
use crate::workspace::native;

/// How many requests of a server may wait for a call that answers them.
const ASKED: usize = 4;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// The connection was closed.
    Over,
    /// The server answered with an error.
    Refused(Refusal),
    /// The server answered with an HTTP status that another attempt would not change; the text completes `MCP server x …`.
    Denied(String),
    /// The server requires a login, or one with more permissions.
    Login(Box<Challenge>),
    /// The server no longer knows the session, and did not look at the request.
    Expired,
    /// The server cannot be reached, with a reason such as `connection refused`.
    Unreachable(String),
}

/// An error of JSON-RPC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub code: i64,
    pub message: String,
    pub data: Value,
}

impl Fault {
    /// An answer that is not valid.
    pub fn invalid(why: &str) -> Self {
        Self::Refused(Refusal {
            code: 0,
            message: why.to_owned(),
            data: Value::Null,
        })
    }
}

/// The answer to a request.
pub(super) type Answer = Result<Value, Fault>;

/// One side of a connection.
#[derive(Default)]
pub(super) struct Exchange {
    waiting: Mutex<HashMap<u64, oneshot::Sender<Answer>>>,
    /// The workspace folders, as the protocol represents them.
    roots: Value,
    /// The calls that take requests of the server, oldest first.
    calls: Mutex<Vec<mpsc::Sender<Value>>>,
    /// Notified when something that the server lists changed.
    pub changes: Notify,
    /// Changes with every progress report.
    pub progress: watch::Sender<u64>,
    /// Why it was cut off, if it was.
    pub cut: OnceLock<&'static str>,
    /// Cancelled when the connection is closed.
    pub over: CancellationToken,
}

impl Exchange {
    /// A new exchange for a workspace with these folders.
    pub fn new(roots: &[PathBuf]) -> Arc<Self> {
        let roots = roots
            .iter()
            .filter_map(|root| Some(json!({ "uri": native::uri_of(root)? })));
        Arc::new(Self {
            roots: roots.collect(),
            ..Self::default()
        })
    }

    /// Expects an answer until the expectation is dropped.
    pub fn expect(&self, id: u64) -> impl Future<Output = Answer> + Unpin + use<> {
        let (sender, answer) = oneshot::channel();
        let mut waiting = lock(&self.waiting);
        waiting.retain(|_, waiter| !waiter.is_closed());
        if !self.over.is_cancelled() {
            waiting.insert(id, sender);
        }
        answer.map(|answer| answer.unwrap_or(Err(Fault::Over)))
    }

    /// Handles a message from the server; returns the answer to send. Invalid messages are ignored.
    pub fn take(&self, message: &Value) -> Option<Value> {
        let id = &message["id"];
        match (message["method"].as_str(), id) {
            (Some(method), Value::Null) => self.on_notification(method),
            (Some("ping"), id) => return Some(response(id, Ok(json!({})))),
            (Some("roots/list"), id) => {
                return Some(response(id, Ok(json!({ "roots": self.roots }))));
            }
            (Some("elicitation/create"), id) => {
                // The protocol does not say which call a request is for; with one call at a time there is no doubt.
                let mut calls = lock(&self.calls);
                calls.retain(|call| !call.is_closed());
                let newest = calls.last();
                if newest.is_none_or(|call| call.try_send(message.clone()).is_err()) {
                    return Some(response(id, Ok(json!({ "action": "cancel" }))));
                }
            }
            (Some(method), id) => {
                let error = json!({ "code": METHOD_NOT_FOUND, "message": format!("tandem has no method `{method}`") });
                return Some(response(id, Err(error)));
            }
            (None, id) => {
                let waiting = id.as_u64().and_then(|id| lock(&self.waiting).remove(&id));
                let _gone = waiting.map(|waiting| waiting.send(answer(message)));
            }
        }
        None
    }

    /// The requests of the server from now on, until the receiver is dropped or a later call takes them.
    pub fn requests(&self) -> mpsc::Receiver<Value> {
        let (sender, asked) = mpsc::channel(ASKED);
        lock(&self.calls).push(sender);
        asked
    }

    fn on_notification(&self, notification: &str) {
        match notification {
            "notifications/tools/list_changed"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed" => self.changes.notify_one(),
            "notifications/progress" => self.progress.send_modify(|count| *count += 1),
            _ => tracing::debug!("an MCP server sends {notification}"),
        }
    }

    /// Closes the connection of a server that exceeds a limit.
    pub fn cut(&self, why: &'static str) {
        self.cut.get_or_init(|| why);
        for (_, waiting) in lock(&self.waiting).drain() {
            let _gone = waiting.send(Err(Fault::Denied(format!("was stopped: it {why}"))));
        }
        self.close();
    }

    /// Closes the connection.
    pub fn close(&self) {
        self.over.cancel();
        lock(&self.waiting).clear();
    }
}

/// The message that answers a request of the server.
pub(super) fn response(id: &Value, answer: Result<Value, Value>) -> Value {
    match answer {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
    }
}

/// The answer in a message.
pub(super) fn answer(message: &Value) -> Answer {
    let error = &message["error"];
    // Some servers send both, one of them null.
    match message.get("result").filter(|_| error.is_null()) {
        Some(result) => Ok(result.clone()),
        None => Err(Fault::Refused(Refusal {
            code: error["code"].as_i64().unwrap_or_default(),
            message: error["message"]
                .as_str()
                .unwrap_or("an error without a message")
                .to_owned(),
            data: error["data"].clone(),
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answers_reach_only_their_waiter() {
        let exchange = Exchange::new(&[]);
        let (one, two) = (exchange.expect(1), exchange.expect(2));
        let take = |message: Value| assert_eq!(exchange.take(&message), None, "{message}");
        take(json!({ "id": 3, "result": "nobody's" }));
        take(json!({ "id": "1", "result": "of another type" }));
        take(json!([7]));
        take(json!({ "id": 2, "error": { "message": "no" } }));
        take(json!({ "id": 1, "result": 1 }));
        take(json!({ "id": 1, "result": "twice" }));
        assert_eq!(one.await, Ok(json!(1)));
        assert_eq!(two.await, Err(Fault::invalid("no")));
    }

    #[tokio::test]
    async fn all_waiters_learn_of_the_end() {
        let exchange = Exchange::new(&[]);
        let before = exchange.expect(1);
        exchange.close();
        assert_eq!(before.await, Err(Fault::Over));
        assert_eq!(exchange.expect(2).await, Err(Fault::Over));
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
