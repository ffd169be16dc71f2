//! Turns the lines of a journal into a session that can continue. Pure.
//!
//! Invariant: every call has exactly one result, in order, whatever the last process was doing when it ended.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

use super::name;
use super::record::{Call, Head, Held, QueuedPrompt, Record, VERSION};
use crate::agent::{Spent, prompt};
use crate::config::Mode;
use crate::model::{Message, Taught, ToolResult};

/// A saved session.
#[derive(Debug, Default)]
pub(in crate::session) struct Kept {
    pub head: Option<Head>,
    /// The turns that can be shown and undone.
    pub shown: Shown,
    /// The model's history.
    pub messages: Vec<Arc<Message>>,
    /// The ids of all its calls.
    pub call_ids: HashSet<String>,
    /// The missing results at its end: part of `messages`, but not of the journal yet.
    pub repair: Option<Arc<Message>>,
    pub mode: Option<Mode>,
    /// The last mode that was not `plan`.
    pub acting: Option<Mode>,
    pub held: Option<Held>,
    /// The options that its models' servers refused, by `provider/model at URL`.
    pub taught: BTreeMap<String, Taught>,
    /// The prompt of each turn, as messages name it.
    pub prompts: Vec<String>,
    /// US dollars, if prices were known.
    pub cost: Option<f64>,
    /// Its usage.
    pub spent: Spent,
    /// Tokens of the last request and its answer.
    pub tokens: u64,
    /// The prompts queued at its end.
    pub queued: Vec<QueuedPrompt>,
    /// The edits that calls may have made although none has reported them.
    pub unconfirmed: Vec<Call>,
    /// What the next prompt tells the model.
    pub notes: Vec<String>,
    /// The number of unreadable lines.
    pub unreadable: usize,
    /// How many of its oldest messages the model's history lacks.
    pub forgotten: usize,
    /// Whether it records what it has used; before that, each turn had its own usage.
    counts_itself: bool,
    /// The sizes of its messages in the journal, and their sum.
    sizes: Vec<u64>,
    history: u64,
}

/// The last turns of a session, as many as fit the limit of [`load`].
#[derive(Debug, Default)]
pub(in crate::session) struct Shown {
    /// Their records, in order.
    pub records: VecDeque<Record>,
    /// How many turns were before them.
    pub turns_before: u64,
    /// The sizes of the records in the journal, and their sum.
    sizes: VecDeque<u64>,
    bytes: u64,
}

/// A journal of a newer version.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::session) struct TooNew(pub u32);

/// How much of a journal stays in memory, in bytes of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct MemoryBounds {
    /// For what can be shown and undone.
    pub shown: u64,
    /// For the model's history.
    pub history: u64,
}

impl MemoryBounds {
    /// To continue: no provider takes a larger request than such a history.
    pub const CONTINUED: Self = Self {
        shown: 16 << 20,
        history: 32 << 20,
    };
    pub const NONE: Self = Self {
        shown: u64::MAX,
        history: u64::MAX,
    };
}

/// Parses the lines of a journal.
pub(super) fn load(
    lines: &mut dyn Iterator<Item = String>,
    limits: MemoryBounds,
) -> Result<Kept, TooNew> {
    let mut kept = Kept::default();
    for line in lines {
        match serde_json::from_str::<Record>(&line) {
            Ok(Record::Session(head)) if head.version > VERSION => {
                return Err(TooNew(head.version));
            }
            Ok(record) => kept.add(record, line.len() as u64, limits),
            Err(_) => kept.unreadable += 1,
        }
    }
    kept.shown.begin_with_a_turn();
    kept.close();
    Ok(kept)
}

/// The model's history before a turn; `None` if there is no such turn.
pub(super) fn before(
    lines: &mut dyn Iterator<Item = String>,
    turn: u64,
) -> Option<Vec<Arc<Message>>> {
    let mut kept = Kept::default();
    for line in lines {
        let Ok(record) = serde_json::from_str(&line) else {
            continue;
        };
        if matches!(record, Record::Prompt { .. }) && kept.turns() + 1 == turn {
            kept.close();
            return Some(kept.messages);
        }
        kept.add(record, line.len() as u64, MemoryBounds::CONTINUED);
    }
    None
}

impl Kept {
    /// How many prompts there were.
    pub fn turns(&self) -> u64 {
        self.prompts.len() as u64
    }

    fn add(&mut self, record: Record, bytes: u64, limits: MemoryBounds) {
        self.take(record, bytes);
        self.shown.shrink(limits.shown);
        if self.history > limits.history {
            self.forget(limits.history / 2);
        }
    }

    fn take(&mut self, record: Record, bytes: u64) {
        match &record {
            Record::Session(head) => self.head = Some(head.clone()),
            Record::Prompt { text, message, .. } => {
                self.prompts.push(name(text));
                self.unconfirmed.clear();
                self.notes.clear();
                self.push(message.clone(), bytes);
            }
            Record::Message { message } => {
                let is_answer = matches!(**message, Message::Assistant(_));
                self.spent.iterations += u64::from(is_answer && !self.counts_itself);
                let calls = message.calls().iter();
                self.call_ids.extend(calls.map(|call| call.id.clone()));
                self.push(message.clone(), bytes);
            }
            Record::Compacted { messages }
            | Record::Restored { messages, .. }
            | Record::Unrestored { messages } => {
                self.messages.clone_from(messages);
                self.sizes = vec![bytes / (messages.len() as u64).max(1); messages.len()];
                self.history = bytes;
            }
            Record::Note { text } => self.notes.push(text.clone()),
            Record::Mode { mode } => {
                self.mode = Some(*mode);
                self.acting = self.mode.filter(|mode| *mode != Mode::Plan).or(self.acting);
            }
            Record::Queue { prompts } => self.queued.clone_from(prompts),
            Record::Unconfirmed(call) => {
                self.unconfirmed.retain(|other| other.id != call.id);
                self.unconfirmed.push(call.clone());
            }
            Record::Call(call) => self.unconfirmed.retain(|other| other.id != call.id),
            Record::Model(held) => self.held = Some(held.clone()),
            Record::Taught { model, taught } => {
                _ = self.taught.insert(model.clone(), taught.clone());
            }
            Record::Used {
                spent,
                tokens,
                cost,
            } => {
                (self.spent, self.tokens, self.cost) = (*spent, *tokens, *cost);
                self.counts_itself = true;
            }
            Record::End {
                usage: Some(usage),
                filled,
                ..
            } if !self.counts_itself => {
                self.spent.add(usage);
                self.tokens = *filled;
                if let Some(cost) = usage.cost {
                    *self.cost.get_or_insert_default() += cost;
                }
            }
            Record::End { .. }
            | Record::Thought { .. }
            | Record::Review(_)
            | Record::Plan { .. }
            | Record::Finish { .. }
            | Record::Unknown => {}
        }
        self.shown.push(record, bytes);
    }

    fn push(&mut self, message: Arc<Message>, bytes: u64) {
        match &*message {
            // A result without its call (whose line was lost) would be rejected by every provider.
            Message::Results { results } if !self.owes(results) => {
                self.unreadable += 1;
            }
            Message::Results { .. } => self.messages.push(message),
            _ => {
                self.messages.extend(self.missing());
                self.messages.push(message);
            }
        }
        self.history += bytes * (self.messages.len() - self.sizes.len()) as u64;
        self.sizes.resize(self.messages.len(), bytes);
    }

    /// Drops the oldest messages up to a prompt, so that at most `limit` bytes are left, but not the last prompt.
    fn forget(&mut self, limit: u64) {
        let (mut bytes, mut first) = (0, None);
        for (index, (message, size)) in self.messages.iter().zip(&self.sizes).enumerate().rev() {
            bytes += size;
            if bytes > limit && first.is_some() {
                break;
            }
            if matches!(**message, Message::User { .. }) {
                first = Some(index);
            }
        }
        let first = first.unwrap_or_default();
        self.forgotten += first;
        self.messages.drain(..first);
        self.sizes.drain(..first);
        self.history = self.sizes.iter().sum();
    }

    fn close(&mut self) {
        self.repair = self.missing();
        self.messages.extend(self.repair.clone());
    }

    /// Whether these are the results of the calls in the last message.
    fn owes(&self, results: &[ToolResult]) -> bool {
        let calls = self.messages.last().map_or(&[][..], |last| last.calls());
        let ids = results.iter().map(|result| &result.call_id);
        calls.iter().map(|call| &call.id).eq(ids)
    }

    /// The results missing after the last message. A call known to have ended is distinguished from one that may not
    /// have begun.
    fn missing(&self) -> Option<Arc<Message>> {
        let mut missing = prompt::missing_results(self.messages.last()?)?;
        let ended = self.shown.records.iter().filter_map(|record| match record {
            Record::Call(call) => Some(call.id.as_str()),
            _ => None,
        });
        let ended: HashSet<&str> = ended.collect();
        if let Message::Results { results } = &mut missing {
            for result in results {
                let why = if ended.contains(result.call_id.as_str()) {
                    RAN
                } else {
                    STOPPED
                };
                why.clone_into(&mut result.content);
            }
        }
        Some(Arc::new(missing))
    }
}

impl Shown {
    fn push(&mut self, record: Record, bytes: u64) {
        self.records.push_back(record);
        self.sizes.push_back(bytes);
        self.bytes += bytes;
    }

    /// Drops the oldest records above the limit; the last one stays.
    fn shrink(&mut self, limit: u64) {
        while self.bytes > limit && self.records.len() > 1 {
            self.drop_first();
        }
    }

    /// Drops the rest of a turn whose beginning was dropped, unless it is the last turn.
    fn begin_with_a_turn(&mut self) {
        let first = self
            .records
            .iter()
            .position(|record| matches!(record, Record::Prompt { .. }));
        for _ in 0..first.filter(|_| self.turns_before > 0).unwrap_or_default() {
            self.drop_first();
        }
    }

    fn drop_first(&mut self) {
        self.bytes -= self.sizes.pop_front().unwrap_or_default();
        if let Some(Record::Prompt { .. }) = self.records.pop_front() {
            self.turns_before += 1;
        }
    }
}

const RAN: &str = "it ran, but tandem was stopped before its result was saved; check the state before you repeat it";
const STOPPED: &str = "tandem was stopped before it ended; check the state before you repeat it";
