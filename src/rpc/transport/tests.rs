use std::io::{BufRead as _, BufReader, PipeReader, PipeWriter, pipe};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::*;
use crate::rpc::{ErrorCode, RequestError, TextKind};

/// The client's end of a connection over real pipes.
struct Client {
    input: PipeWriter,
    output: PipeReader,
}

fn connected(framing: Framing) -> (Client, Peer, Inbox, Writer) {
    let (server_input, input) = pipe().unwrap();
    let (output, server_output) = pipe().unwrap();
    let (peer, inbox, writer) = connect(framing, server_input, server_output).unwrap();
    (Client { input, output }, peer, inbox, writer)
}

impl Client {
    fn send(&mut self, value: &Value) {
        let mut bytes = Vec::new();
        Framing::Line.write(&mut bytes, value.to_string().as_bytes());
        self.input.write_all(&bytes).unwrap();
    }

    /// Reads up to and including a message with this method.
    fn read_until(&mut self, method: &str) -> Vec<Value> {
        let mut messages: Vec<Value> = Vec::new();
        for line in BufReader::new(&mut self.output).lines() {
            messages.push(serde_json::from_str(&line.unwrap()).unwrap());
            if messages
                .last()
                .is_some_and(|message| message["method"] == method)
            {
                break;
            }
        }
        messages
    }

    /// Reads to the end of the stream; one value per message.
    fn read_all(mut self, framing: Framing) -> Vec<Value> {
        let mut bytes = Vec::new();
        self.output.read_to_end(&mut bytes).unwrap();
        let mut reader = FrameReader::new(framing);
        let mut rest = &bytes[..];
        let mut messages = Vec::new();
        while let Some(Frame::Body(body)) = reader.read(&mut rest).unwrap() {
            messages.push(serde_json::from_slice(&body).unwrap());
        }
        messages
    }
}

fn source(kind: TextKind) -> Arc<TextSource> {
    Arc::new(TextSource {
        session_id: "s".into(),
        kind,
        message_id: Some("m\"1".into()),
    })
}

#[tokio::test]
async fn dropped_requests_are_still_answered_once() {
    let (mut client, _, mut inbox, writer) = connected(Framing::Line);
    for id in 0..4 {
        client.send(&json!({"jsonrpc": "2.0", "id": id, "method": "m"}));
    }
    for id in 0..4 {
        let Incoming::Request(_, responder) = inbox.recv().await else {
            panic!("a request")
        };
        match id {
            0 => responder.ok(&json!({"a": 1})),
            1 => responder.error(ErrorCode::MethodNotFound, "no"),
            2 => responder.ok(&std::collections::HashMap::from([((), 1)])),
            _ => drop(responder),
        }
    }
    writer.finish().await.unwrap();
    let answers = client.read_all(Framing::Line);
    let brief: Vec<_> = answers
        .iter()
        .map(|answer| (&answer["id"], &answer["result"], &answer["error"]["code"]))
        .collect();
    assert_eq!(
        json!(brief),
        json!([[0, {"a": 1}, null], [1, null, -32601], [2, null, -32603], [3, null, -32603]])
    );
}

#[tokio::test]
async fn bad_messages_are_answered_and_the_next_works() {
    let (mut client, _, mut inbox, writer) = connected(Framing::Header);
    for body in [
        "{",
        r#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","method":"next"}"#,
    ] {
        write!(client.input, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    }
    client
        .input
        .write_all(b"Content-Length: x\r\n\r\n")
        .unwrap();
    assert!(
        matches!(inbox.recv().await, Incoming::Notification(Notification { method, .. }) if method == "next")
    );
    assert!(
        matches!(inbox.recv().await, Incoming::Fatal(Fatal::BadLength(length)) if length == "x")
    );
    assert!(matches!(inbox.recv().await, Incoming::Closed));
    writer.finish().await.unwrap();
    let answers = client.read_all(Framing::Header);
    assert_eq!(answers[0]["error"]["code"], -32700);
    assert_eq!(answers[1]["error"]["code"], -32600);
    assert_eq!(answers[1]["id"], 1.5);
}

#[tokio::test]
async fn outgoing_requests_end_with_an_answer_or_the_connection() {
    let (mut client, peer, mut inbox, _writer) = connected(Framing::Line);
    let (first, second) = (peer.request("a", &json!({})), peer.request("b", &()));
    drop(peer.request("given up", &()));
    let sent = client.read_until("$/cancel_request");
    assert_eq!(sent[3]["params"]["requestId"], sent[2]["id"]);
    client.send(&json!({"jsonrpc": "2.0", "id": 2, "error": {"code": 7, "message": "no"}}));
    client.send(&json!({"jsonrpc": "2.0", "id": "1", "result": "not ours"}));
    client.send(&json!({"jsonrpc": "2.0", "id": 3, "result": "too late"}));
    let Client {
        input,
        output: _output,
    } = client;
    drop(input);
    assert!(matches!(inbox.recv().await, Incoming::Closed));
    assert!(matches!(second.await, Err(RequestError::Refused(error)) if error.code == 7));
    drop(inbox);
    assert!(matches!(first.await, Err(RequestError::Closed)));
    assert!(matches!(
        peer.request("c", &()).await,
        Err(RequestError::Closed)
    ));
}

/// Records each write separately, with its time.
#[derive(Default)]
struct Writes(Vec<(std::time::Instant, String)>);

impl Write for Writes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes).into_owned();
        self.0.push((std::time::Instant::now(), text));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn messages_after_a_pause_are_written_later() {
    let peer = Peer::new(Framing::Line);
    peer.notify("one", &Value::Null);
    peer.notify("two", &Value::Null);
    peer.pause();
    peer.notify("three", &Value::Null);
    peer.outbox().end();
    let mut writes = Writes::default();
    write_loop(&peer, &mut writes).unwrap();
    let [(first, before), (second, after)] = &writes.0[..] else {
        panic!("{} writes", writes.0.len())
    };
    assert!(before.contains("two") && after.contains("three"));
    assert!(*second - *first >= PAUSE);
}

#[tokio::test]
async fn text_is_merged_for_slow_clients_without_loss() {
    let (mut client, peer, _inbox, writer) = connected(Framing::Line);
    let (answer, thought) = (
        source(TextKind::AgentMessageChunk),
        source(TextKind::AgentThoughtChunk),
    );
    let mut expected = String::new();
    let mut sent = 0;
    // Nobody reads yet: the pipe fills, then the queue, until the watermark tells writers to wait.
    while peer.accepts_updates() {
        let piece = format!("{sent} \"ä\"\n");
        peer.text(&answer, &piece);
        expected.push_str(&piece);
        sent += 1;
    }
    peer.text(&thought, "hm");
    peer.notify("after", &());
    assert!(peer.outbox().accepts_answers());

    let reader = tokio::task::spawn_blocking(move || (client.read_until("after"), client));
    peer.drained().await;
    assert!(peer.accepts_updates());
    let (mut messages, _client) = reader.await.unwrap();
    writer.finish().await.unwrap();
    messages.pop();
    assert_eq!(
        messages.pop().unwrap(),
        json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": {
            "sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}, "messageId": "m\"1"}}})
    );
    let text = |message: &Value| {
        message["params"]["update"]["content"]["text"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(messages.iter().map(text).collect::<String>(), expected);
    assert!(
        messages.len() < sent / 100,
        "{} messages for {sent} pieces",
        messages.len()
    );
}

#[tokio::test]
async fn a_stalled_client_ends_the_connection() {
    let (client, peer, _inbox, writer) = connected(Framing::Line);
    let Client {
        input: _input,
        output,
    } = client;
    let pending = peer.request("question", &());
    while peer.outbox().accepts_answers() {
        peer.notify("flood", &"x".repeat(100_000));
    }
    drop(output);
    peer.gone().await;
    peer.drained().await;
    assert!(matches!(pending.await, Err(RequestError::Closed)));
    assert!(writer.finish().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn shutdown_waits_one_second_for_a_stalled_client() {
    let (_client, peer, _inbox, writer) = connected(Framing::Line);
    peer.notify("large", &"x".repeat(1 << 20));
    assert_eq!(
        writer.finish().await.unwrap_err().kind(),
        io::ErrorKind::TimedOut
    );
}

/// Yields the same message a number of times, counting.
struct Flood {
    message: Vec<u8>,
    left: usize,
    read: Arc<AtomicUsize>,
}

impl Read for Flood {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Ok(0);
        }
        self.left -= 1;
        self.read.fetch_add(1, Ordering::SeqCst);
        self.message.as_slice().read(buffer)
    }
}

#[tokio::test]
async fn reading_pauses_while_the_server_is_busy() {
    let message = format!(
        "{}\n",
        json!({"jsonrpc": "2.0", "method": "m", "params": ["x".repeat(60_000)]})
    )
    .into_bytes();
    let most = BUDGET / message.len() + 2;
    let left = 4 * most;
    let read = Arc::new(AtomicUsize::new(0));
    let input = Flood {
        message,
        left,
        read: Arc::clone(&read),
    };
    let (_peer, mut inbox, _writer) = connect(Framing::Line, input, io::sink()).unwrap();
    let mut received = 0;
    while let Incoming::Notification(_) = inbox.recv().await {
        let ahead = read.load(Ordering::SeqCst) - received;
        assert!(ahead <= most, "{ahead} messages were read ahead");
        received += 1;
    }
    assert_eq!(received, left);
}
