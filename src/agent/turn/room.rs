//! Keeping the conversation within the model's window: before it is full, when the provider says it is, and by hand.
//!
//! This is the only place where what was sent before is rewritten, and the only request that no prompt and no tool asked
//! for: an iteration of its own, whose words are shown as thoughts.

use std::sync::Arc;

use futures_util::StreamExt as _;

use super::State;
use crate::agent::Entry;
use crate::agent::compact;
use crate::agent::event::AgentEvent;
use crate::model::collect::{Collector, Outcome};
use crate::model::{ErrorCode, Message, ModelError, ModelEvent, ModelRequest, Part};

/// From here on the conversation is made shorter, in percent of the window.
const FULL: u64 = 80;
/// Leaving out old tool output is enough below this.
const ENOUGH: u64 = 55;
/// How often a summary is tried, each time of less.
const TRIES: u32 = 3;

/// Why a conversation is made shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// The window is nearly full.
    Full,
    /// The provider did not take the request.
    Overflow,
    /// The person wants it.
    Wish,
}

impl State {
    /// Makes room where the next request would come near the end of the window.
    pub(super) async fn make_room(&mut self) {
        let Some(window) = self.turn.provider.endpoint().context_window else { return };
        let size = self.size();
        // What could not be made shorter is not tried again with every request.
        if size * 100 >= window * FULL && size >= self.shortest + window / 10 {
            self.compact(Cause::Full).await;
            self.shortest = self.size();
        }
    }

    /// Makes the conversation shorter; tells whether it is.
    pub(super) async fn compact(&mut self, cause: Cause) -> bool {
        let before = self.size();
        let window = self.turn.provider.endpoint().context_window.unwrap_or(before).min(before.max(1));
        let provider = self.turn.provider.clone();
        let newest = self.unseen();
        let recent = compact::tail(&self.messages, window / 4).min(newest);
        let mut messages = compact::elide(&self.messages, recent, &provider).unwrap_or_else(|| self.messages.clone());
        let mut how = "old tool output was left out";
        let enough = (before - (sum(&self.messages) - sum(&messages)).min(before)) * 100 <= window * ENOUGH;
        if cause != Cause::Full || !enough {
            let cut = match cause {
                Cause::Wish => messages.len(),
                Cause::Full => compact::tail(&messages, window / 5).min(newest),
                // How large the window really is, nobody knows.
                Cause::Overflow => compact::tail(&messages, sum(&messages) / 5).min(newest),
            };
            let (old, new) = messages.split_at(cut);
            let new = if cause == Cause::Overflow { compact::digest(new, &provider) } else { new.to_vec() };
            if let Some(summary) = self.summarize(old).await {
                messages = compact::summarized(old, &summary, &new, &provider);
                how = "what was said before is a summary now";
            } else {
                messages = old.iter().cloned().chain(new).collect();
            }
        }
        if sum(&messages) >= sum(&self.messages) {
            return false;
        }
        self.messages.clone_from(&messages);
        self.turn.guidance.recall(messages.iter().map(|entry| entry.message()));
        self.counted = None;
        self.steps.history(messages).await;
        let after = self.size();
        let summary = format!("the conversation was made shorter, from about {before} to {after} tokens: {how}");
        self.steps.event(AgentEvent::Compaction { summary, tokens_before: before, tokens_after: after }).await;
        true
    }

    /// Leaves out the images a model did not take, so that the conversation is not stuck with them; tells whether there
    /// were any.
    pub(super) async fn leave_out_images(&mut self, error: &ModelError) -> bool {
        // Providers have no code for this, but all of them name it.
        let is_about_images = error.message.to_lowercase().contains("image");
        let left = is_about_images.then(|| compact::without_images(&self.messages, &self.turn.provider)).flatten();
        let Some(left) = left else { return false };
        self.messages.clone_from(&left);
        self.steps.history(left).await;
        let message = format!("the model did not take the images, it goes on without them: {}", error.message);
        self.steps.event(AgentEvent::Notice { message }).await;
        true
    }

    /// Where the messages begin that the model has not seen yet, with the calls they answer.
    fn unseen(&self) -> usize {
        let last = self.messages.iter().enumerate().rev().find_map(|(index, entry)| match entry.outline() {
            Message::Assistant(answer) => Some(index + usize::from(answer.calls.is_empty())),
            _ => None,
        });
        last.unwrap_or_default()
    }

    /// About how many tokens the next request has: as the provider counted last, and what came since.
    fn size(&self) -> u64 {
        match self.counted {
            Some((tokens, messages)) => tokens + sum(self.messages.get(messages..).unwrap_or_default()),
            None => self.turn.preamble.bytes.len() as u64 / 4 + sum(&self.messages),
        }
    }

    /// A summary in the model's words; what does not fit even so is left out from the beginning.
    async fn summarize(&mut self, old: &[Arc<Entry>]) -> Option<String> {
        // A summary of next to nothing saves nothing.
        if sum(old) * 10 <= sum(&self.messages) {
            return None;
        }
        self.iteration += 1;
        let (iteration, message_count) = (self.iteration, old.len() + 1);
        self.steps.event(AgentEvent::IterationStart { iteration, message_count }).await;
        let mut old = compact::digest(old, &self.turn.provider);
        let mut summary = Err(None);
        for _ in 0..TRIES {
            summary = self.say(&old).await;
            match &summary {
                Err(Some(error)) if error.code == ErrorCode::ContextOverflow => old = self.later_half(&old),
                _ => break,
            }
        }
        self.steps.event(AgentEvent::IterationComplete { iteration, tool_calls: 0 }).await;
        match summary {
            Ok(summary) => Some(summary),
            Err(why) => {
                let why = why.map_or_else(|| "the model said nothing".to_owned(), |error| error.message);
                if !self.turn.context.cancel.is_cancelled() {
                    let message = format!("the conversation could not be summarized: {why}");
                    self.steps.event(AgentEvent::Notice { message }).await;
                }
                None
            }
        }
    }

    fn later_half(&self, old: &[Arc<Entry>]) -> Vec<Arc<Entry>> {
        let later = old.iter().skip(old.len() / 2);
        let later = later.skip_while(|entry| matches!(entry.outline(), Message::Results { .. })).cloned();
        let lost = Part::Text { text: "(The beginning of the conversation does not fit here.)".to_owned() };
        let lost = Entry::new(Message::User { parts: vec![lost] }, &self.turn.provider);
        std::iter::once(lost).chain(later).collect()
    }

    /// Asks for the summary. An error of `None`: there is none, and nobody to blame.
    async fn say(&mut self, old: &[Arc<Entry>]) -> Result<String, Option<ModelError>> {
        let ask = Message::User { parts: vec![Part::Text { text: compact::ASK.to_owned() }] };
        let messages =
            old.iter().map(|entry| entry.encoded().clone()).chain([self.turn.provider.encode(&ask)]).collect();
        let mut stream = self.turn.provider.stream(ModelRequest { preamble: self.turn.preamble.clone(), messages });
        let mut collector = Collector::new(&self.call_ids);
        let end = loop {
            let event = tokio::select! {
                biased;
                () = self.turn.context.cancel.cancelled() => return Err(None),
                event = stream.next() => match event {
                    Some(Ok(event)) => event,
                    Some(Err(error)) => break Err(error),
                    None => break Ok(()),
                },
            };
            let _no_call_runs = collector.push(&event);
            if let ModelEvent::Text(content) = event {
                self.steps.event(AgentEvent::ReasoningDelta { content }).await;
            }
        };
        let collected = collector.finish(end);
        if let Some(usage) = collected.usage {
            self.account(usage).await;
        }
        match collected.outcome {
            Outcome::Error(error) => Err(Some(error)),
            Outcome::Ok if !collected.message.text.trim().is_empty() => Ok(collected.message.text),
            Outcome::Ok | Outcome::Truncated => Err(None),
        }
    }
}

fn sum(entries: &[Arc<Entry>]) -> u64 {
    entries.iter().map(|entry| compact::tokens(entry)).sum()
}
