//! Requests to a server and their answers, over either transport.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures_util::StreamExt as _;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWriteExt as _};
use tokio::process::ChildStdin;
use tokio::sync::mpsc;
use tokio_util::codec::{AnyDelimiterCodec, AnyDelimiterCodecError, FramedRead};

use super::bounded::{LONGEST_LINE, Meter, TOO_LONG};
use super::era;
use super::exchange::{Answer, Exchange, Fault, response};
use super::http::Http;
use crate::workspace::{Editor, EditorError, McpRequest};

/// How many messages may be queued for a server.
pub(super) const OUTBOX: usize = 16;

/// Sends requests to a server. Cheap to clone.
#[derive(Clone)]
pub(super) struct Line {
    pub exchange: Arc<Exchange>,
    pub transport: Transport,
    last_id: Arc<AtomicU64>,
    /// Whether each request describes itself; otherwise there was a handshake.
    is_modern: Arc<AtomicBool>,
}

#[derive(Clone)]
pub(super) enum Transport {
    /// To the task that writes to a program.
    Program(mpsc::Sender<String>),
    Http(Arc<Http>),
    /// To a server of the editor, by the name it has there.
    Editor(Arc<dyn Editor>, String),
}

impl Line {
    pub fn new(exchange: &Arc<Exchange>, transport: Transport) -> Self {
        Self {
            exchange: Arc::clone(exchange),
            transport,
            last_id: Arc::default(),
            is_modern: Arc::default(),
        }
    }

    /// The next request id.
    pub fn next_id(&self) -> u64 {
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Whether the connection was closed.
    pub fn is_over(&self) -> bool {
        self.exchange.over.is_cancelled()
    }

    /// Makes all later requests describe themselves.
    pub fn speak_modern(&self) {
        self.is_modern.store(true, Ordering::Relaxed);
    }

    /// Whether requests describe themselves.
    pub fn is_modern(&self) -> bool {
        self.is_modern.load(Ordering::Relaxed)
    }

    /// Whether the server is a program.
    pub fn is_program(&self) -> bool {
        matches!(self.transport, Transport::Program(_))
    }

    /// Whether parameters of tools are mirrored into headers.
    pub fn mirrors(&self) -> bool {
        self.is_modern() && matches!(self.transport, Transport::Http(_))
    }

    /// Sends a request, and waits for the answer however long it takes.
    pub async fn request(&self, method: &str, params: Value) -> Answer {
        self.request_with(self.next_id(), method, params, HeaderMap::new())
            .await
    }

    /// [`Self::request`] with an id of [`Self::next_id`], and headers that mirror its arguments.
    pub async fn request_with(
        &self,
        id: u64,
        method: &str,
        mut params: Value,
        parameters: HeaderMap,
    ) -> Answer {
        if self.is_modern() {
            era::describe(&mut params);
        }
        let expected = self.exchange.expect(id);
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        match &self.transport {
            Transport::Program(_) => {
                self.send(message).await?;
                expected.await
            }
            Transport::Http(http) => {
                http.ask(&message, parameters, &self.exchange, expected)
                    .await
            }
            Transport::Editor(editor, server) => {
                let request = McpRequest {
                    server: server.clone(),
                    method: method.to_owned(),
                    params: message["params"].clone(),
                };
                ask(editor.as_ref(), request, &self.exchange).await
            }
        }
    }

    /// Sends a notification.
    pub async fn notify(&self, method: &str, params: Value) -> Result<(), Fault> {
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params }))
            .await
    }

    /// Answers a request of the server.
    pub async fn respond(&self, id: &Value, answer: Result<Value, Value>) -> Result<(), Fault> {
        self.send(response(id, answer)).await
    }

    async fn send(&self, message: Value) -> Result<(), Fault> {
        match &self.transport {
            Transport::Program(outbox) => {
                let sent = outbox.send(message.to_string()).await;
                sent.map_err(|_gone| Fault::Over)
            }
            Transport::Http(http) => http.tell(&message).await,
            // It is only asked.
            Transport::Editor(..) => Ok(()),
        }
    }

    /// Notifies the server that a request was cancelled. If requests are self-contained, closing the stream does that.
    pub async fn give_up(&self, id: u64) -> Result<(), Fault> {
        if self.is_modern() && !self.is_program() {
            return Ok(());
        }
        self.notify("notifications/cancelled", json!({ "requestId": id }))
            .await
    }
}

/// Asks a server of the editor. What it says meanwhile is handled as from any other server.
async fn ask(editor: &dyn Editor, request: McpRequest, exchange: &Exchange) -> Answer {
    let (sender, mut notifications) = mpsc::channel(OUTBOX);
    let answer = editor.mcp(request, sender);
    tokio::pin!(answer);
    loop {
        tokio::select! {
            biased;
            () = exchange.over.cancelled() => return Err(Fault::Over),
            Some(message) = notifications.recv() => {
                // A notification has no answer.
                let _none = exchange.take(&message);
            }
            answer = &mut answer => {
                return match answer {
                    Ok(message) => super::exchange::answer(&message),
                    Err(EditorError(why)) => Err(Fault::Unreachable(why)),
                };
            }
        }
    }
}

/// Reads a program's output to its end. Lines that are not JSON are ignored, because programs print things.
pub(super) async fn read(
    output: impl AsyncRead + Unpin,
    exchange: Arc<Exchange>,
    outbox: mpsc::Sender<String>,
) {
    let line_feed = b"\n".to_vec();
    let lines = AnyDelimiterCodec::new_with_max_length(line_feed.clone(), line_feed, LONGEST_LINE);
    let (mut lines, mut meter) = (FramedRead::new(output, lines), Meter::new());
    while let Some(line) = lines.next().await {
        let line = match line {
            Ok(line) => line,
            Err(AnyDelimiterCodecError::MaxChunkLengthExceeded) => return exchange.cut(TOO_LONG),
            Err(AnyDelimiterCodecError::Io(_)) => break,
        };
        if let Err(why) = meter.count(line.len(), 1) {
            return exchange.cut(why);
        }
        if let Ok(message) = serde_json::from_slice(&line) {
            // A server that sends requests without reading gets no answer.
            let _full = exchange
                .take(&message)
                .map(|answer| outbox.try_send(answer.to_string()));
        } else {
            tracing::debug!("an MCP server prints {}", String::from_utf8_lossy(&line));
        }
    }
    exchange.close();
}

/// Writes to a program until the connection is closed.
pub(super) async fn write(
    mut input: ChildStdin,
    mut outbox: mpsc::Receiver<String>,
    exchange: Arc<Exchange>,
) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt as _;

    async fn check(input: impl AsyncRead + Unpin, expected: Option<&str>) {
        let exchange = Exchange::new(&[]);
        let (outbox, _answers) = mpsc::channel(OUTBOX);
        read(input, Arc::clone(&exchange), outbox).await;
        assert!(exchange.over.is_cancelled());
        assert_eq!(exchange.cut.get().copied(), expected);
    }

    #[tokio::test]
    async fn lines_and_totals_are_bounded() {
        let lines = |size: usize| [vec![b'x'; size - 1], b"\n".to_vec()].concat();
        check(lines(LONGEST_LINE).as_slice(), None).await;
        check(lines(2 << 20).repeat(3).as_slice(), None).await;
        check(tokio::io::repeat(b'x'), Some(TOO_LONG)).await;
        let flood = Some("sent more than 32 MiB or 20,000 messages within 10 s");
        check(tokio::io::repeat(b'\n').take(20_000), None).await;
        check(tokio::io::repeat(b'\n'), flood).await;
        check(lines(4 << 20).repeat(9).as_slice(), flood).await;
    }
}
