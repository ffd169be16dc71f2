//! The conversation as the model reads it, and its journal.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use super::SessionId;
use super::models::Models;
use super::outbox::Outbox;
use super::store::{self, Journal, Record};
use crate::agent::prompt::Stage;
use crate::agent::{Entry, Guidance, prompt};
use crate::config::Mode;
use crate::model::{Message, Part, Provider};

#[derive(Default)]
pub(super) struct Conversation {
    id: SessionId,
    pub journal: Journal,
    pub history: Vec<Arc<Entry>>,
    /// The ids of all calls so far.
    pub call_ids: HashSet<String>,
    /// Loaded messages that wait for a model to be encoded for.
    pub loaded: Vec<Arc<Message>>,
    pub guidance: Guidance,
    /// Notes for the model about what the person did since the last message.
    pub notes: Vec<String>,
    /// How many prompts there were.
    pub turns: u64,
    /// Turns since the last prompt that had another purpose.
    others: u32,
    /// Its title, until that was reported.
    pub title: Option<String>,
    restored: Vec<Restored>,
}

/// The conversation before it was restored; dropped with the next prompt.
pub(super) struct Restored {
    /// The first turn that was cut.
    turn: u64,
    messages: Vec<Arc<Message>>,
    /// The number of the rejection that undid its files, if there were any.
    pub rejection: Option<u64>,
}

impl Conversation {
    pub fn new(id: SessionId, journal: Journal) -> Self {
        Self {
            id,
            journal,
            ..Self::default()
        }
    }

    /// Encodes loaded messages for a model, and those that were encoded for another one.
    pub fn encode_for(&mut self, provider: &Provider, is_stale: bool) {
        if is_stale {
            for entry in &mut self.history {
                *entry = Entry::new(entry.share(), provider);
            }
        }
        for message in self.loaded.drain(..) {
            self.history.push(Entry::new(message, provider));
        }
        // A turn that panicked may have left calls without results, which no provider accepts.
        let last = self.history.last();
        if let Some(results) = last.and_then(|last| prompt::missing_results(last.message())) {
            self.keep(Entry::new(results, provider), Some(provider));
        }
    }

    /// A turn that ended without an answer gets one.
    pub fn close_last_turn(&mut self, provider: &Provider) {
        if self
            .history
            .last()
            .is_some_and(|last| !matches!(last.message(), Message::Assistant(_)))
        {
            self.answer(store::UNANSWERED, provider);
        }
    }

    /// Appends an answer that no model gave.
    pub fn answer(&mut self, text: &str, provider: &Provider) {
        self.keep(Entry::new(Message::answer(text), provider), Some(provider));
    }

    /// Appends to the conversation and its journal, with what the model's server refused.
    pub fn keep(&mut self, entry: Arc<Entry>, provider: Option<&Provider>) {
        if let Some(provider) = provider {
            self.journal.taught(provider);
        }
        self.journal.message(&entry);
        let calls = entry.message().calls().iter();
        self.call_ids.extend(calls.map(|call| call.id.clone()));
        self.history.push(entry);
    }

    pub fn compact(&mut self, entries: Vec<Arc<Entry>>) {
        self.history = entries;
        let messages = self.messages();
        self.journal.note(Record::Compacted { messages });
    }

    /// Tells the model something with the next prompt, after a restart, too.
    pub fn tell(&mut self, text: String) {
        self.journal.note(Record::Note { text: text.clone() });
        self.notes.push(text);
    }

    /// The person's message becomes part of the conversation and begins its next turn.
    pub fn begin_turn(
        &mut self,
        words: &str,
        attached: Vec<Value>,
        parts: Vec<Part>,
        provider: &Provider,
        models: &Models,
    ) {
        self.turns += 1;
        self.others = 0;
        self.restored.clear();
        self.title = (self.turns == 1).then(|| store::title(words));
        let entry = Entry::new(Message::User { parts }, provider);
        let held = models.held(provider);
        self.journal
            .prompt(words, attached, &entry, held, &models.environment);
        self.history.push(entry);
    }

    /// An id for a turn that has no prompt.
    pub fn other_turn(&mut self) -> String {
        self.others += 1;
        format!("{}-{}.{}", self.id, self.turns, self.others)
    }

    /// What the mode means for the next message. Whether the last one asked for a plan is recorded in the history
    /// itself.
    pub fn stage(&self, mode: Mode) -> Stage {
        match mode {
            Mode::Plan => Stage::Plan,
            _ if prompt::plans_only(&self.history) => Stage::Go,
            _ => Stage::Usual,
        }
    }

    fn messages(&self) -> Vec<Arc<Message>> {
        let mut messages = Vec::new();
        for entry in &self.history {
            messages.push(entry.share());
        }
        messages.extend(self.loaded.iter().cloned());
        messages
    }

    /// Restores which instructions the model has seen, from its messages alone.
    pub fn reset_guidance(&self) {
        self.guidance
            .reset_to(self.messages().iter().map(|it| &**it));
    }

    /// Continues with the messages before `turn`; `rejection` is what was undone with it.
    pub fn restore(&mut self, turn: u64, messages: Vec<Arc<Message>>, rejection: Option<u64>) {
        self.restored.push(Restored {
            turn,
            messages: self.messages(),
            rejection,
        });
        self.replace(messages.clone());
        self.journal.note(Record::Restored { turn, messages });
    }

    /// Reverts the last restore of the conversation; returns its turn.
    pub fn unrestore(&mut self) -> Option<u64> {
        let Restored { turn, messages, .. } = self.restored.pop()?;
        self.replace(messages.clone());
        self.journal.note(Record::Unrestored { messages });
        Some(turn)
    }

    /// Continues with other messages, to be encoded for the next request's model.
    fn replace(&mut self, messages: Vec<Arc<Message>>) {
        self.history.clear();
        self.loaded = messages;
        self.reset_guidance();
    }

    /// The last restore, if it is still in effect.
    pub fn last_restore(&self) -> Option<&Restored> {
        self.restored.last()
    }

    /// The first turn that is cut.
    pub fn cut_from(&self) -> Option<u64> {
        self.restored.iter().map(|restored| restored.turn).min()
    }

    /// Writes the recorded changes before they are reported.
    pub async fn write(&mut self, outbox: &mut Outbox) {
        if let Err(message) = self.journal.flush().await {
            outbox.unsaved(message);
        }
    }
}
