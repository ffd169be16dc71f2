//! Turns the lines of a journal into a conversation that can continue. Pure.
//!
//! Invariant: every call has exactly one result, in order, whatever the last process was doing when it ended.

use std::collections::HashSet;

use super::record::{Head, Held, QueuedPrompt, Record, VERSION};
use crate::agent::{Spent, prompt};
use crate::config::Mode;
use crate::model::{Message, ToolResult};

/// A saved conversation.
#[derive(Debug, Default)]
pub(in crate::session) struct Kept {
    pub head: Option<Head>,
    /// Everything after the head, in order.
    pub records: Vec<Record>,
    /// The model's history.
    pub messages: Vec<Message>,
    /// The missing results at its end: part of `messages`, but not of the journal yet.
    pub repair: Option<Message>,
    pub mode: Option<Mode>,
    pub held: Option<Held>,
    /// How many prompts there were.
    pub turns: u64,
    /// US dollars, if prices were known.
    pub cost: Option<f64>,
    /// Its usage.
    pub spent: Spent,
    /// The process that opened it last.
    pub pid: Option<u32>,
    /// The prompts queued at its end.
    pub queued: Vec<QueuedPrompt>,
    /// The number of unreadable lines.
    pub unreadable: usize,
}

/// A journal of a newer version.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::session) struct TooNew(pub u32);

/// Parses the lines of a journal.
pub(super) fn load(text: &str) -> Result<Kept, TooNew> {
    let mut kept = Kept::default();
    for line in text.lines() {
        match serde_json::from_str::<Record>(line) {
            Ok(Record::Session(head)) if head.version > VERSION => return Err(TooNew(head.version)),
            Ok(record) => kept.take(record),
            Err(_) => kept.unreadable += 1,
        }
    }
    kept.close();
    Ok(kept)
}

/// The model's history before a turn; `None` if there is no such turn.
pub(super) fn before(text: &str, turn: u64) -> Option<Vec<Message>> {
    let mut kept = Kept::default();
    for record in text.lines().filter_map(|line| serde_json::from_str(line).ok()) {
        if matches!(record, Record::Prompt { .. }) && kept.turns + 1 == turn {
            kept.close();
            return Some(kept.messages);
        }
        kept.take(record);
    }
    None
}

impl Kept {
    fn take(&mut self, record: Record) {
        match &record {
            Record::Session(head) => self.head = Some(head.clone()),
            Record::Opened { pid } => self.pid = Some(*pid),
            Record::Prompt { message, .. } => {
                self.turns += 1;
                self.push(message.clone());
            }
            Record::Message { message } => {
                self.spent.iterations += u64::from(matches!(message, Message::Assistant(_)));
                self.push(message.clone());
            }
            Record::Compacted { messages } | Record::Restored { messages, .. } | Record::Unrestored { messages } => {
                self.messages.clone_from(messages);
            }
            Record::Mode { mode } => self.mode = Some(*mode),
            Record::Queue { prompts } => self.queued.clone_from(prompts),
            Record::Model(held) => self.held = Some(held.clone()),
            Record::End { usage } => {
                self.spent.add(usage);
                if let Some(cost) = usage.cost {
                    *self.cost.get_or_insert_default() += cost;
                }
            }
            Record::Thought { .. } | Record::Call(_) | Record::Reviewed(_) | Record::Plan { .. } | Record::Unknown => {}
        }
        self.records.push(record);
    }

    fn push(&mut self, message: Message) {
        match &message {
            // A result without its call (whose line was lost) would be rejected by every provider.
            Message::Results { results } if !self.owed().is_some_and(|owed| answers(&owed, results)) => {
                self.unreadable += 1;
            }
            Message::Results { .. } => self.messages.push(message),
            _ => {
                self.messages.extend(self.missing());
                self.messages.push(message);
            }
        }
    }

    fn close(&mut self) {
        self.repair = self.missing();
        self.messages.extend(self.repair.clone());
    }

    /// The calls of the last message, if it is an answer with calls.
    fn owed(&self) -> Option<Vec<String>> {
        let Some(Message::Assistant(answer)) = self.messages.last() else { return None };
        Some(answer.calls.iter().map(|call| call.id.clone()).collect())
    }

    /// The results missing after the last message. A call known to have ended is distinguished from one that may not
    /// have begun.
    fn missing(&self) -> Option<Message> {
        let mut missing = prompt::missing_results(self.messages.last()?)?;
        let ended = self.records.iter().filter_map(|record| match record {
            Record::Call(call) => Some(call.id.as_str()),
            _ => None,
        });
        let ended: HashSet<&str> = ended.collect();
        if let Message::Results { results } = &mut missing {
            for result in results {
                let why = if ended.contains(result.call_id.as_str()) { RAN } else { STOPPED };
                why.clone_into(&mut result.content);
            }
        }
        Some(missing)
    }
}

const RAN: &str = "it ran, but tandem was stopped before its result was saved; check the state before you repeat it";
const STOPPED: &str = "tandem was stopped before it ended; check the state before you repeat it";

fn answers(owed: &[String], results: &[ToolResult]) -> bool {
    owed.iter().eq(results.iter().map(|result| &result.call_id))
}
