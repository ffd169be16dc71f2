//! The two threads between the byte streams and the server.
//!
//! The reader thread pauses while the server has enough to do ([`BUDGET`] bytes or [`MESSAGES`] messages). The writer
//! thread writes everything queued in as few writes as possible. Neither ever blocks the server.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::mem;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::framing::{Fatal, Frame, FrameReader, Framing};
use super::message::{self, Malformed, Message, Notification, Request};
use super::outbox::{Item, TextSource};
use super::{Peer, Responder};

/// How many messages are read ahead of the server.
const MESSAGES: usize = 256;
/// How many bytes are read ahead of the server; a larger message is read only when nothing else is waiting.
const BUDGET: usize = 4 << 20;
/// Data is written as soon as this much is ready.
const BATCH: usize = 64 << 10;
/// How long a [`Peer::pause`] lasts: long enough for a client to process earlier messages.
const PAUSE: Duration = Duration::from_millis(100);
/// How long shutdown waits for a slow reader.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Incoming messages, in order. Responses to requests of ours are passed to whoever waits for them, and bodies that are
/// no messages are answered.
#[derive(Debug)]
pub enum Incoming {
    /// A request and its responder.
    Request(Request, Responder),
    /// A notification.
    Notification(Notification),
    /// The next message cannot be found. Nothing follows.
    Fatal(Fatal),
    /// The stream ended. Nothing follows.
    Closed,
}

/// A parsed frame.
type Parsed = Result<Result<Message, Box<Malformed>>, Fatal>;

/// The receiving end of the connection.
#[derive(Debug)]
pub struct Inbox {
    receiver: mpsc::Receiver<(Parsed, u32)>,
    budget: Arc<Semaphore>,
    peer: Peer,
}

/// The writer thread.
#[derive(Debug)]
pub struct Writer {
    peer: Peer,
    done: oneshot::Receiver<io::Result<()>>,
}

/// Standard input and output as unbuffered files, so that a batch is one write.
///
/// # Errors
/// One of them is closed.
pub fn stdio() -> io::Result<(File, File)> {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd as _;
        let input = io::stdin().as_fd().try_clone_to_owned()?;
        let output = io::stdout().as_fd().try_clone_to_owned()?;
        Ok((File::from(input), File::from(output)))
    }
    #[cfg(windows)]
    {
        use std::os::windows::io::AsHandle as _;
        let input = io::stdin().as_handle().try_clone_to_owned()?;
        let output = io::stdout().as_handle().try_clone_to_owned()?;
        Ok((File::from(input), File::from(output)))
    }
}

/// Starts both threads. Must be called inside a tokio runtime. The reader thread ends with its input (a blocking read
/// cannot be woken), the writer thread on [`Writer::finish`] or when its output is closed.
///
/// # Errors
/// A thread cannot be started.
pub fn connect(
    framing: Framing,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) -> io::Result<(Peer, Inbox, Writer)> {
    let peer = Peer::new(framing);
    let budget = Arc::new(Semaphore::new(BUDGET));
    let (sender, receiver) = mpsc::channel(MESSAGES);
    let feed = Feed {
        sender,
        budget: Arc::clone(&budget),
        runtime: Handle::current(),
    };
    thread::Builder::new()
        .name("rpc-reader".into())
        .spawn(move || read_loop(framing, input, &feed))?;

    let (done_sender, done) = oneshot::channel();
    let writer = peer.clone();
    thread::Builder::new()
        .name("rpc-writer".into())
        .spawn(move || {
            let result = write_loop(&writer, output);
            if let Err(error) = &result {
                tracing::warn!(%error, "the client stopped reading");
                writer.outbox().fail();
                writer.pending().close();
            }
            // The server may have ended without waiting.
            let _ = done_sender.send(result);
        })?;
    Ok((
        peer.clone(),
        Inbox {
            receiver,
            budget,
            peer: peer.clone(),
        },
        Writer { peer, done },
    ))
}

impl Inbox {
    /// The next message, once the other side has read enough of what was sent. Cancel safe.
    pub async fn recv(&mut self) -> Incoming {
        loop {
            if !self.peer.outbox().accepts_answers() {
                self.peer.drained().await;
            }
            let Some((parsed, weight)) = self.receiver.recv().await else {
                return Incoming::Closed;
            };
            self.budget.add_permits(weight as usize);
            match parsed {
                Ok(Ok(Message::Request(request))) => {
                    let responder = Responder::new(request.id.clone(), self.peer.clone());
                    return Incoming::Request(request, responder);
                }
                Ok(Ok(Message::Notification(notification))) => {
                    return Incoming::Notification(notification);
                }
                Ok(Ok(Message::Response(response))) => self.peer.resolve(&response),
                Ok(Err(malformed)) => self.peer.reject(&malformed),
                Err(fatal) => return Incoming::Fatal(fatal),
            }
        }
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        // Nobody receives a response any more.
        self.peer.pending().close();
        // Lets a reader that waits for permits end.
        self.budget.close();
    }
}

impl Writer {
    /// Closes the connection: writes what is queued, unless the other side does not read it within a second.
    ///
    /// # Errors
    /// Not everything could be written.
    pub async fn finish(self) -> io::Result<()> {
        self.peer.outbox().end();
        match tokio::time::timeout(LAST_WORDS, self.done).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(io::Error::other("the writer thread panicked")),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// Sends parsed messages from the reader thread to the server.
struct Feed {
    sender: mpsc::Sender<(Parsed, u32)>,
    budget: Arc<Semaphore>,
    runtime: Handle,
}

impl Feed {
    /// Waits for permits; returns whether the server still listens.
    fn send(&self, parsed: Parsed, size: usize) -> bool {
        let weight = u32::try_from(size.clamp(1, BUDGET)).expect("the budget fits");
        self.runtime.block_on(async {
            let Ok(permit) = self.budget.acquire_many(weight).await else {
                return false;
            };
            permit.forget();
            self.sender.send((parsed, weight)).await.is_ok()
        })
    }

    /// Parses a frame on this thread, so that the server does not have to.
    fn send_frame(&self, frame: Frame) -> bool {
        let (parsed, size) = match frame {
            Frame::TooLong => (Some(Err(Box::new(Malformed::too_long()))), 0),
            Frame::Body(body) => (message::parse(&body).transpose(), body.len()),
        };
        parsed.is_none_or(|parsed| self.send(Ok(parsed), size))
    }
}

fn read_loop(framing: Framing, input: impl Read, feed: &Feed) {
    if let Err(fatal) = read_frames(framing, input, feed) {
        feed.send(Err(fatal), 0);
    }
}

fn read_frames(framing: Framing, mut input: impl Read, feed: &Feed) -> Result<(), Fatal> {
    let mut reader = FrameReader::new(framing);
    let mut buffer = vec![0; 64 << 10];
    loop {
        let length = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Fatal::Unreadable(error.kind())),
        };
        let mut rest = &buffer[..length];
        while let Some(frame) = reader.read(&mut rest)? {
            if !feed.send_frame(frame) {
                return Ok(());
            }
        }
    }
    if let Some(frame) = reader.finish() {
        feed.send_frame(frame);
    }
    Ok(())
}

/// Writes what is queued until the queue is closed or writing fails.
fn write_loop(peer: &Peer, mut output: impl Write) -> io::Result<()> {
    let mut batch = Batch {
        framing: peer.framing(),
        bytes: Vec::new(),
        cost: 0,
        scratch: Vec::new(),
    };
    let mut items = VecDeque::new();
    while peer.outbox().take(&mut items) {
        for item in items.drain(..) {
            let pauses = matches!(item, Item::Pause);
            batch.add(&item);
            if pauses || batch.bytes.len() >= BATCH {
                batch.write(&mut output, peer)?;
            }
            if pauses {
                thread::sleep(PAUSE);
            }
        }
        batch.write(&mut output, peer)?;
    }
    Ok(())
}

/// The contents of the next write.
struct Batch {
    framing: Framing,
    bytes: Vec<u8>,
    /// The cost reported to the outbox once it is written.
    cost: usize,
    /// Scratch space in which a text update is assembled, because its length comes first.
    scratch: Vec<u8>,
}

impl Batch {
    fn add(&mut self, item: &Item) {
        self.cost += item.cost();
        match item {
            Item::Body(body) => self.framing.write(&mut self.bytes, body),
            Item::Pause => {}
            Item::Text { source, text } => {
                self.scratch.clear();
                text_update(&mut self.scratch, source, text);
                self.framing.write(&mut self.bytes, &self.scratch);
            }
        }
    }

    fn write(&mut self, output: &mut impl Write, peer: &Peer) -> io::Result<()> {
        output.write_all(&self.bytes)?;
        output.flush()?;
        self.bytes.clear();
        // Do not keep the memory of one huge message.
        self.bytes.shrink_to(2 * BATCH);
        self.scratch.shrink_to(2 * BATCH);
        peer.outbox().written(mem::take(&mut self.cost));
        Ok(())
    }
}

/// The ACP v1 `session/update` for a piece of text, written by hand because it is most of the traffic.
fn text_update(out: &mut Vec<u8>, source: &TextSource, text: &str) {
    let mut put = |raw: &[u8], value: &str| {
        out.extend_from_slice(raw);
        serde_json::to_writer(&mut *out, value).expect("a string serializes");
    };
    put(
        br#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"#,
        &source.session_id,
    );
    put(br#","update":{"sessionUpdate":"#, source.kind.name());
    put(br#","content":{"type":"text","text":"#, text);
    out.push(b'}');
    if let Some(message_id) = &source.message_id {
        out.extend_from_slice(br#","messageId":"#);
        serde_json::to_writer(&mut *out, &**message_id).expect("a string serializes");
    }
    out.extend_from_slice(b"}}}");
}

#[cfg(test)]
mod tests;
