//! Requests to a server and their answers, over either carrier.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWriteExt as _, BufReader};
use tokio::process::ChildStdin;
use tokio::sync::{mpsc, watch};

use super::exchange::{Answer, Exchange, Fault};
use super::http::Http;

/// Messages that may wait for a server to read them.
const OUTBOX: usize = 16;

/// How requests reach a server. Cheap to clone.
#[derive(Clone)]
pub(super) struct Line {
    exchange: Arc<Exchange>,
    carrier: Carrier,
    last_id: Arc<AtomicU64>,
}

#[derive(Clone)]
enum Carrier {
    /// To the task that writes to a program.
    Program(mpsc::Sender<String>),
    Http(Arc<Http>),
}

/// The number of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestId(u64);

impl Line {
    /// A line to a program, and the two tasks that carry it.
    pub fn to_program<R: AsyncRead + Unpin + Send + 'static>(
        exchange: &Arc<Exchange>,
        output: R,
        input: ChildStdin,
    ) -> (Self, impl Future<Output = ()> + Send + use<R>, impl Future<Output = ()> + Send + use<R>) {
        let (sender, outbox) = mpsc::channel(OUTBOX);
        let reading = read(output, Arc::clone(exchange), sender.clone());
        (Self::new(exchange, Carrier::Program(sender)), reading, write(input, outbox, Arc::clone(exchange)))
    }

    /// A line over HTTP.
    pub fn over_http(exchange: &Arc<Exchange>, http: Arc<Http>) -> Self {
        Self::new(exchange, Carrier::Http(http))
    }

    fn new(exchange: &Arc<Exchange>, carrier: Carrier) -> Self {
        Self { exchange: Arc::clone(exchange), carrier, last_id: Arc::default() }
    }

    /// The number of the next request.
    pub fn next_id(&self) -> RequestId {
        RequestId(self.last_id.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Whether the connection is over.
    pub fn is_over(&self) -> bool {
        self.exchange.over.is_cancelled()
    }

    /// Changes with every sign of progress.
    pub fn progress(&self) -> watch::Receiver<u64> {
        self.exchange.progress.subscribe()
    }

    /// Asks, and waits for the answer however long it takes.
    pub async fn request(&self, RequestId(id): RequestId, method: &str, params: Value) -> Answer {
        let mut expected = self.exchange.expect(id);
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string();
        match &self.carrier {
            Carrier::Program(outbox) => {
                outbox.send(message).await.map_err(|_gone| Fault::Over)?;
                expected.come().await
            }
            Carrier::Http(http) => http.ask(message, &self.exchange, &mut expected).await,
        }
    }

    /// Tells.
    pub async fn notify(&self, method: &str, params: Value) -> Result<(), Fault> {
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string();
        match &self.carrier {
            Carrier::Program(outbox) => outbox.send(message).await.map_err(|_gone| Fault::Over),
            Carrier::Http(http) => http.tell(message).await,
        }
    }

    /// Tells that nobody waits for an answer any longer.
    pub async fn give_up(&self, RequestId(id): RequestId) -> Result<(), Fault> {
        self.notify("notifications/cancelled", json!({ "requestId": id })).await
    }
}

impl RequestId {
    /// What a request says so that its progress is reported.
    pub fn progress_token(self) -> Value {
        json!({ "progressToken": self.0 })
    }
}

/// Reads what a program says until it says no more. Lines that are no JSON are no messages: programs print things.
async fn read<R: AsyncRead + Unpin>(output: R, exchange: Arc<Exchange>, outbox: mpsc::Sender<String>) {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    while let Ok(1..) = output.read_until(b'\n', &mut line).await {
        if let Ok(message) = serde_json::from_slice(&line) {
            // A server that asks and does not read gets no answer.
            let _full = exchange.take(&message).map(|answer| outbox.try_send(answer.to_string()));
        } else {
            tracing::debug!("an MCP server prints {}", String::from_utf8_lossy(&line));
        }
        line.clear();
        // A program that never stops must not keep the thread to itself.
        tokio::task::consume_budget().await;
    }
    exchange.close();
}

/// Writes to a program until the connection is over.
async fn write(mut input: ChildStdin, mut outbox: mpsc::Receiver<String>, exchange: Arc<Exchange>) {
    let work = async {
        while let Some(mut message) = outbox.recv().await {
            message.push('\n');
            if input.write_all(message.as_bytes()).await.is_err() {
                break;
            }
        }
    };
    let _over = exchange.over.run_until_cancelled(work).await;
}
