//! The queue between all senders and the writer thread.
//!
//! Sending never blocks and never drops a message. While the writer is busy, adjacent pieces of the same text are
//! merged into one item, so a slow editor costs memory only for the text itself. Producers check two watermarks first:
//! updates stop early, responses late, and both wait for [`Outbox::drained`].

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::domain::lock;

/// Above this many queued bytes, no more updates should be sent.
const UPDATES: usize = 512 << 10;
/// Above this many queued bytes, no more requests should be accepted.
const ANSWERS: usize = 16 << 20;
/// Below this many queued bytes, the producers are woken.
const DRAINED: usize = 256 << 10;
/// The longest text that is still merged into.
const MAX_MERGED: usize = 64 << 10;
/// The cost of an item in addition to its bytes.
const OVERHEAD: usize = 128;

/// Identifies the text a piece belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextSource {
    /// The ACP session.
    pub session_id: Arc<str>,
    /// The kind of text.
    pub kind: TextKind,
    /// The message the piece belongs to.
    pub message_id: Option<Arc<str>>,
}

/// The `sessionUpdate` variants that carry text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// The answer.
    AgentMessageChunk,
    /// Reasoning.
    AgentThoughtChunk,
}

impl TextKind {
    /// The name on the wire.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::AgentMessageChunk => "agent_message_chunk",
            Self::AgentThoughtChunk => "agent_thought_chunk",
        }
    }
}

/// One thing to write.
#[derive(Debug)]
pub(crate) enum Item {
    /// A finished JSON body.
    Body(Vec<u8>),
    /// A pause, so that the other side reads later messages separately.
    Pause,
    /// Text that becomes a `session/update` when it is written; until then more may be appended.
    Text {
        source: Arc<TextSource>,
        text: String,
    },
}

impl Item {
    /// What the item adds to the queue's size.
    pub fn cost(&self) -> usize {
        OVERHEAD
            + match self {
                Self::Body(body) => body.len(),
                Self::Pause => 0,
                Self::Text { text, .. } => text.len(),
            }
    }
}

/// The queue, shared by every [`crate::rpc::Peer`] and the writer.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    queue: Mutex<Queue>,
    /// Wakes the writer.
    filled: Condvar,
    /// Wakes the producers.
    drained: Notify,
    /// Cancelled when the other side is gone and nothing can be written any more.
    broken: CancellationToken,
}

#[derive(Debug, Default)]
struct Queue {
    items: VecDeque<Item>,
    /// The cost of everything queued or taken by the writer but not yet written.
    bytes: usize,
    /// Whether the writer sleeps and has to be woken.
    writer_waits: bool,
    /// Whether the queue is closed.
    ended: bool,
}

impl Outbox {
    /// Queues a body.
    pub fn push(&self, body: Vec<u8>) {
        self.add(|queue| queue.append(Item::Body(body)));
    }

    /// Queues a pause.
    pub fn pause(&self) {
        self.add(|queue| queue.append(Item::Pause));
    }

    /// Queues a piece of text, merged with the last item if that has the same source.
    pub fn push_text(&self, source: &Arc<TextSource>, piece: &str) {
        self.add(|queue| match queue.items.back_mut() {
            Some(Item::Text { source: last, text })
                if text.len() + piece.len() <= MAX_MERGED
                    && (Arc::ptr_eq(last, source) || last == source) =>
            {
                text.push_str(piece);
                queue.bytes += piece.len();
            }
            _ => queue.append(Item::Text {
                source: Arc::clone(source),
                text: piece.to_owned(),
            }),
        });
    }

    fn add(&self, change: impl FnOnce(&mut Queue)) {
        let mut queue = self.lock();
        if queue.ended {
            return;
        }
        change(&mut queue);
        if mem::take(&mut queue.writer_waits) {
            self.filled.notify_one();
        }
    }

    /// Moves everything queued into `items` (which is empty); blocks until there is something. Returns false when the
    /// queue is closed and empty.
    pub fn take(&self, items: &mut VecDeque<Item>) -> bool {
        let mut queue = self.lock();
        while queue.items.is_empty() {
            if queue.ended {
                return false;
            }
            queue.writer_waits = true;
            queue = self
                .filled
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
        mem::swap(&mut queue.items, items);
        true
    }

    /// Reports that the writer has written items of this [`Item::cost`].
    pub fn written(&self, cost: usize) {
        let mut queue = self.lock();
        queue.bytes -= cost;
        if queue.bytes <= DRAINED {
            drop(queue);
            self.drained.notify_waiters();
        }
    }

    /// Closes the queue: the writer ends when it has written what is queued.
    pub fn end(&self) {
        self.lock().ended = true;
        self.filled.notify_one();
    }

    /// Drops everything queued and wakes all waiters: nothing can be written any more.
    pub fn fail(&self) {
        let mut queue = self.lock();
        *queue = Queue {
            ended: true,
            ..Queue::default()
        };
        drop(queue);
        self.broken.cancel();
        self.drained.notify_waiters();
    }

    /// Cancelled when the other side is gone.
    pub fn broken(&self) -> &CancellationToken {
        &self.broken
    }

    pub fn accepts_updates(&self) -> bool {
        self.lock().bytes < UPDATES
    }

    pub fn accepts_answers(&self) -> bool {
        self.lock().bytes < ANSWERS
    }

    /// Resolves when little is queued.
    pub async fn drained(&self) {
        loop {
            let mut notified = std::pin::pin!(self.drained.notified());
            notified.as_mut().enable();
            if self.lock().bytes <= DRAINED {
                return;
            }
            notified.await;
        }
    }

    /// No operation on the queue can panic halfway, so a poisoned lock is still consistent.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }
}

impl Queue {
    fn append(&mut self, item: Item) {
        self.bytes += item.cost();
        self.items.push_back(item);
    }
}
