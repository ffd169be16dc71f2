//! Keeps the conversation within the model's window: before it is full, when the provider reports that it is, and on
//! request.
//!
//! Only this module rewrites what was sent before, and makes the only request that no prompt or tool asked for: an
//! iteration of its own, whose text is shown as thoughts.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{Goal, State, Turn};
use crate::agent::answer::End;
use crate::agent::compact;
use crate::agent::event::AgentEvent;
use crate::agent::{Entry, Step, prompt};
use crate::model::collect::{Collector, Outcome};
use crate::model::{
    ErrorCode, Failure, Finish, Message, ModelEvent, ModelRequest, Provider, Usage,
};

/// How long an answer waits for the endpoint's information about its model.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Compaction starts here, in percent of the window.
const FULL: u64 = 80;
/// If removing old tool output gets below this, that is enough.
const ENOUGH: u64 = 55;
/// How many attempts are made at a summary, each with less text.
const TRIES: u32 = 3;

/// Why a conversation is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// The window is nearly full.
    Full,
    /// The provider rejected the request as too long.
    Overflow,
    /// The person asked for it.
    Wish,
}

/// Asks a hosted endpoint about its model while it answers.
pub(super) fn learning(provider: &Provider) -> JoinSet<()> {
    let mut learning = JoinSet::new();
    if provider.is_to_learn() && !provider.is_local() {
        let provider = provider.clone();
        learning.spawn(async move { provider.learn().await });
    }
    learning
}

impl Turn {
    /// How many tokens its model reads: its window, or an explorer's budget if that is smaller.
    pub(super) fn room(&self) -> Option<u64> {
        let window = self.provider.window();
        match self.goal {
            Goal::Explore { bounds, .. } => {
                Some(window.map_or(bounds.tokens, |window| window.min(bounds.tokens)))
            }
            Goal::Answer | Goal::Compact => window,
        }
    }
}

impl State {
    /// Uses the window from the first answer on. A local server knows it once the model is loaded.
    pub async fn learn_window(&mut self, end: &End) {
        let provider = self.turn.provider.clone();
        if !provider.is_to_learn() || matches!(end, End::Failed(_)) {
            return;
        }
        let learn = async {
            if provider.is_local() {
                // Its state is large, and few turns need it.
                Box::pin(provider.learn()).await;
            } else {
                self.learning.join_next().await;
            }
        };
        let cancel = self.turn.context.cancel.clone();
        let _late = timeout(TIMEOUT, cancel.run_until_cancelled(learn)).await;
        self.note_window().await;
    }

    /// Whether the server read everything it was sent. If not, the person is notified and the conversation compacted.
    pub async fn check_window(&mut self, sent: u64, usage: Usage) -> bool {
        let before = self.turn.provider.window();
        if let Some(message) = self.turn.provider.check_window(sent, usage.input) {
            self.steps.notice(message).await;
        }
        self.note_window().await;
        self.turn.provider.window() == before
    }

    /// Takes the window from the provider's message about an overflow.
    pub async fn note_overflow(&mut self, error: &Failure) {
        self.turn.provider.note_overflow(&error.message);
        self.note_window().await;
    }

    /// Why no shorter conversation would fit: nearly all of the request is instructions and tools.
    pub fn too_small(&self) -> Option<String> {
        let (fixed, rest) = (
            self.turn.preamble.bytes.len() as u64 / 4,
            sum(&self.messages),
        );
        let provider = &self.turn.provider;
        let window = provider.window()?;
        (rest * 3 < fixed && window < fixed * 2).then(|| {
            format!(
                "the instructions and tools alone take about {fixed} tokens: {}",
                provider.larger_window()
            )
        })
    }

    /// Reports a changed window to everything that scales with it.
    async fn note_window(&mut self) {
        let window = self.turn.room();
        if let Some(tokens) = window.filter(|_| window != self.turn.context.window) {
            self.turn.context.window = window;
            self.steps.event(AgentEvent::Window { tokens }).await;
        }
    }

    /// Compacts if the next request would come close to the window.
    pub async fn make_room(&mut self) {
        let Some(window) = self.turn.provider.window() else {
            return;
        };
        let size = self.size();
        // If compaction failed to help, it is not tried again with every request.
        if size * 100 >= window * FULL && size >= self.shortest + window / 10 {
            self.compact(Cause::Full).await;
            self.shortest = self.size();
        }
    }

    /// Compacts the conversation; returns whether it got shorter.
    pub async fn compact(&mut self, cause: Cause) -> bool {
        let before = self.size();
        let provider = self.turn.provider.clone();
        let window = provider.window().unwrap_or(before).min(before.max(1));
        let newest = self.unseen();
        let recent = compact::tail(&self.messages, window / 4).min(newest);
        let mut messages = compact::elide(&self.messages, recent, &provider)
            .unwrap_or_else(|| self.messages.clone());
        let mut how = "old tool output was left out";
        let enough =
            (before - (sum(&self.messages) - sum(&messages)).min(before)) * 100 <= window * ENOUGH;
        if cause != Cause::Full || !enough {
            let cut = match cause {
                Cause::Wish => messages.len(),
                Cause::Full => compact::tail(&messages, window / 5).min(newest),
                // How large the window really is remains unknown.
                Cause::Overflow => {
                    compact::tail(&messages, sum(&messages).min(window) / 5).min(newest)
                }
            };
            let (old, new) = messages.split_at(cut);
            let new = if cause == Cause::Overflow {
                compact::digest(new, &provider)
            } else {
                new.to_vec()
            };
            let summary = self.summarize(old).await;
            if self.turn.context.cancel.is_cancelled() {
                return false;
            }
            if let Some(summary) = summary {
                let facts = compact::facts(old, &self.turn.tools);
                let summary = format!("{}{facts}", summary.trim());
                let plans = self.only_plans();
                let shorter =
                    |verbatim| compact::summarized(verbatim, &summary, &new, plans, &provider);
                let whole = shorter(compact::verbatim(old));
                // A few short messages are no longer than their summary.
                messages = if sum(&whole) < sum(&self.messages) {
                    whole
                } else {
                    shorter(Vec::new())
                };
                how = "earlier messages were summarized";
            } else {
                messages = old.iter().cloned().chain(new).collect();
            }
        }
        if sum(&messages) >= sum(&self.messages) {
            return false;
        }
        if cause == Cause::Overflow && ends_with_half_an_answer(&messages) {
            messages.push(Entry::new(Message::note(prompt::CUT_OFF), &provider));
        }
        self.replace(messages).await;
        let after = self.size();
        let summary =
            format!("the session was shortened from about {before} to {after} tokens: {how}");
        self.steps
            .event(AgentEvent::Compaction {
                summary,
                tokens_before: before,
                tokens_after: after,
            })
            .await;
        true
    }

    /// Continues with other messages.
    pub async fn replace(&mut self, messages: Vec<Arc<Entry>>) {
        let read = messages.iter().map(|entry| entry.message());
        self.turn.guidance.reset_to(read);
        self.counted = None;
        self.messages.clone_from(&messages);
        self.steps.send(Step::History(messages)).await;
    }

    /// Has the model continue a truncated answer in a conversation that cannot be shortened: some providers report a full
    /// window although there is room. Returns whether there was such an answer.
    pub async fn continue_half(&mut self) -> bool {
        let is_half = ends_with_half_an_answer(&self.messages);
        if is_half {
            self.push(Message::note(prompt::CUT_OFF)).await;
        }
        is_half
    }

    /// Switches to the API the server asked for; returns whether it did so just now.
    pub fn switch_dialect(&mut self) -> bool {
        let Some(provider) = self.turn.provider.switched() else {
            return false;
        };
        self.turn.preamble = provider.preamble(&self.turn.preamble.instructions);
        for entry in &mut self.messages {
            *entry = Entry::new(entry.share(), &provider);
        }
        self.turn.provider = provider;
        self.counted = None;
        true
    }

    /// Removes images a model did not accept, so that the conversation can continue; returns whether there were any.
    pub async fn leave_out_images(&mut self, error: &Failure) -> bool {
        let is_refused = error.code == ErrorCode::ImagesRefused;
        let left = is_refused
            .then(|| compact::without_images(&self.messages, &self.turn.provider))
            .flatten();
        let Some(left) = left else { return false };
        self.replace(left).await;
        let message = format!(
            "the model does not accept these images; continuing without them: {}",
            error.message
        );
        self.steps.notice(message).await;
        true
    }

    /// Where the messages begin that the model has not seen yet, with the calls they answer.
    fn unseen(&self) -> usize {
        let last = self
            .messages
            .iter()
            .enumerate()
            .rev()
            .find_map(|(index, entry)| match entry.message() {
                Message::Assistant(answer) => Some(index + usize::from(answer.calls.is_empty())),
                _ => None,
            });
        last.unwrap_or_default()
    }

    /// The approximate size of the next request in tokens: the provider's last count, plus what was added since.
    pub fn size(&self) -> u64 {
        self.size_by(compact::tokens)
    }

    /// How many tokens the next request has at least, however few the model counts for an image.
    pub fn least_size(&self) -> u64 {
        self.size_by(compact::text_tokens)
    }

    fn size_by(&self, tokens: impl Fn(&Entry) -> u64) -> u64 {
        let fixed = self.turn.preamble.bytes.len() as u64 / 4;
        let (known, messages) = self.counted.unwrap_or((fixed, 0));
        let added = self.messages.iter().skip(messages);
        known + added.map(|entry| tokens(entry)).sum::<u64>()
    }

    /// A summary in the model's words; what does not fit even then is dropped from the beginning.
    async fn summarize(&mut self, old: &[Arc<Entry>]) -> Option<String> {
        // A summary of next to nothing saves nothing, and an explorer does not pay for one.
        let is_explorer = matches!(self.turn.goal, Goal::Explore { .. });
        if is_explorer || sum(old) * 10 <= sum(&self.messages) {
            return None;
        }
        self.iteration += 1;
        let (iteration, message_count) = (self.iteration, old.len() + 1);
        self.steps
            .event(AgentEvent::IterationStart {
                iteration,
                message_count,
            })
            .await;
        let mut old = compact::digest(old, &self.turn.provider);
        let (mut ask, mut summary) = (compact::ASK.to_owned(), Err(None));
        for _ in 0..TRIES {
            summary = self.say(&old, &ask).await;
            match &summary {
                Ok(summary) if summary.is_cut => ask = [compact::ASK, compact::BRIEFLY].concat(),
                Err(Some(error)) if error.code == ErrorCode::ContextOverflow => {
                    old = self.later_half(&old);
                }
                _ => break,
            }
        }
        self.steps
            .event(AgentEvent::IterationComplete {
                iteration,
                tool_calls: 0,
            })
            .await;
        match summary {
            Ok(Summary { text, is_cut }) => Some(text + if is_cut { CUT } else { "" }),
            Err(why) => {
                let why = why.map_or_else(
                    || "the model returned an empty summary".to_owned(),
                    |error| error.message,
                );
                if !self.turn.context.cancel.is_cancelled() {
                    let message = format!("the session could not be summarized: {why}");
                    self.steps.notice(message).await;
                }
                None
            }
        }
    }

    fn later_half(&self, old: &[Arc<Entry>]) -> Vec<Arc<Entry>> {
        let later = old.iter().skip(old.len() / 2);
        let later = later
            .skip_while(|entry| matches!(entry.message(), Message::Results { .. }))
            .cloned();
        let lost = Message::note("(The beginning of the session does not fit here.)");
        let lost = Entry::new(lost, &self.turn.provider);
        std::iter::once(lost).chain(later).collect()
    }

    /// Requests the summary. `Err(None)`: there is none, and no error to report.
    async fn say(&mut self, old: &[Arc<Entry>], ask: &str) -> Result<Summary, Option<Failure>> {
        let ask = Message::text(ask);
        let messages = old
            .iter()
            .map(|entry| entry.encoded().clone())
            .chain([self.turn.provider.encode(&ask)])
            .collect();
        let mut stream = self.turn.provider.stream(ModelRequest {
            preamble: self.turn.preamble.clone(),
            messages,
            may_call: false,
        });
        let mut collector = Collector::new(&self.turn.call_ids);
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
                self.steps
                    .event(AgentEvent::ReasoningDelta { content })
                    .await;
            }
        };
        let collected = collector.finish(end);
        if let Some(usage) = collected.usage {
            self.account(usage).await;
        }
        let text = collected.message.text;
        match collected.outcome {
            Outcome::Error(error) => Err(Some(error)),
            Outcome::Truncated => Err(Some(Failure::passing(
                ErrorCode::Truncated,
                "the model's stream ended early",
            ))),
            Outcome::Ok if text.trim().is_empty() => Err(None),
            Outcome::Ok => Ok(Summary {
                text,
                is_cut: collected.finish == Some(Finish::Length),
            }),
        }
    }
}

/// The model's summary of a conversation.
struct Summary {
    text: String,
    /// Whether it is longer than an answer may be.
    is_cut: bool,
}

/// What such a summary ends with.
const CUT: &str = "\n\n(This summary was cut off here.)";

/// No model continues an answer that it ended itself.
fn ends_with_half_an_answer(messages: &[Arc<Entry>]) -> bool {
    matches!(messages.last().map(|entry| entry.message()), Some(Message::Assistant(answer)) if answer.calls.is_empty())
}

fn sum(entries: &[Arc<Entry>]) -> u64 {
    entries.iter().map(|entry| compact::tokens(entry)).sum()
}
