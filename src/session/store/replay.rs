//! A saved session as events, so that a front end can show it again.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::load::Shown;
use super::record::{Call, Record};
use crate::agent::event::{AgentEvent, CompleteCall, Termination};
use crate::agent::{APPLY, prompt};
use crate::changes::Images;
use crate::changes::change_set::EntryChange;
use crate::changes::checkpoint::Journaled;
use crate::domain::{FileDiff, Preview, ToolKind};
use crate::model::{AssistantMessage, Message, Part, ToolResult};
use crate::tools::ToolOutput;
use crate::workspace::native;

/// How the recorded words of a prompt begin if its turn works on a copy of the workspace.
pub(in crate::session) const TRY: &str = "/try ";
/// How much text of changes is shown again, in bytes: that of the newest ones.
const TEXTS: usize = 32 << 20;
/// Larger texts of commands are not shown again, in bytes.
const TEXT: u64 = 1 << 20;
/// Stands in for the answer of a turn that ended without one: many chat templates reject a conversation in which the
/// roles do not alternate. Nobody said it, so it is not shown again.
pub(in crate::session) const UNANSWERED: &str = "(no answer)";
/// How many changes of a call are shown again.
const DIFFS: usize = 100;

/// What each turn changed, and what of it a person has settled, in order.
pub(in crate::session) fn changes(shown: &Shown) -> impl Iterator<Item = Journaled> {
    let mut turn = shown.turns_before;
    shown.records.iter().filter_map(move |record| match record {
        Record::Prompt { .. } => {
            turn += 1;
            None
        }
        Record::Call(call) if !call.changed.is_empty() => {
            Some(Journaled::Changed(turn, call.changed.clone()))
        }
        Record::Review(review) => Some(Journaled::Reviewed(review.clone())),
        _ => None,
    })
}

/// The events that show the session, whose files a person names below `folders`. Blocks.
pub(in crate::session) fn events(
    shown: Shown,
    images: &Images,
    folders: &[PathBuf],
) -> Vec<AgentEvent> {
    let Shown {
        records,
        turns_before,
        ..
    } = shown;
    let calls = calls(&records, images, folders);
    let asked = asked(&records);
    let mut replay = Replay {
        calls,
        names: HashMap::new(),
        begun: false,
        is_open: false,
        events: Vec::new(),
    };
    if turns_before > 0 {
        let message = format!("this session is long: its first {turns_before} turns are not shown");
        replay.events.push(AgentEvent::Notice { message });
    }
    // Where each turn begins, and what restores have cut.
    let (mut turns, mut cut) = (Vec::new(), Vec::new());
    for record in records {
        match record {
            Record::Prompt {
                text,
                message,
                attached,
            } => {
                replay.ended(None);
                turns.push(replay.events.len());
                let attached = with_images(attached, &message);
                let turn = turns_before + turns.len() as u64;
                replay.asked(text, Some(turn), attached);
            }
            Record::Restored { turn, .. } => {
                let begin = usize::try_from(turn.saturating_sub(1 + turns_before))
                    .ok()
                    .and_then(|turn| turns.get(turn));
                let begin = begin
                    .copied()
                    .unwrap_or(usize::MAX)
                    .min(replay.events.len());
                cut.push(replay.events.split_off(begin));
            }
            Record::Unrestored { .. } => replay.events.extend(cut.pop().into_iter().flatten()),
            Record::Thought { text } => {
                replay.begin();
                replay
                    .events
                    .push(AgentEvent::ReasoningDelta { content: text });
            }
            Record::Message { message } => match Arc::unwrap_or_clone(message) {
                Message::Assistant(answer) if answer.text == UNANSWERED => {}
                Message::Assistant(answer) => replay.answer(answer),
                Message::User { parts } => {
                    for part in parts {
                        match part {
                            Part::Text { text } => replay.asked(text, None, Vec::new()),
                            Part::Note { text } => replay.nudged(&text),
                            Part::Image(_) => {}
                        }
                    }
                }
                Message::Results { results } => {
                    for result in results {
                        replay.result(result);
                    }
                }
            },
            Record::Call(call) if !call.id.is_empty() && !asked.contains(&call.id) => {
                replay.own_call(&call.id);
            }
            Record::End { reason, .. } => replay.ended(reason.or(Some(Termination::EndTurn))),
            Record::Plan { entries } => replay.events.push(AgentEvent::Plan { entries }),
            Record::Finish { message, counts } => {
                replay.events.push(AgentEvent::Finish { message, counts });
            }
            _ => {}
        }
    }
    replay.ended(None);
    replay.events
}

/// Whether the changes of the last turn were applied, if it worked on a copy of the workspace and the model has not been
/// told yet.
pub(in crate::session) fn last_trial(shown: &Shown) -> Option<bool> {
    let mut applied = false;
    for record in shown.records.iter().rev() {
        match record {
            Record::Call(call) if call.id.starts_with(APPLY) => {
                applied = !call.changed.is_empty();
            }
            Record::Prompt { text, .. } => return text.starts_with(TRY).then_some(applied),
            Record::Note { .. } => return None,
            _ => {}
        }
    }
    None
}

/// What was attached to a prompt, with the bytes of its images.
fn with_images(mut attached: Vec<Value>, message: &Message) -> Vec<Value> {
    let Message::User { parts } = message else {
        return attached;
    };
    let mut images = parts.iter().filter_map(|part| match part {
        Part::Image(image) => Some(&image.data),
        _ => None,
    });
    for data in attached
        .iter_mut()
        .filter_map(|block| block.get_mut("data"))
    {
        *data = images
            .next()
            .map_or(Value::Null, |data| data.as_str().into());
    }
    attached
}

/// The calls that the model made.
fn asked(records: &VecDeque<Record>) -> HashSet<String> {
    let mut asked = HashSet::new();
    for record in records {
        if let Record::Message { message } = record {
            asked.extend(message.calls().iter().map(|call| call.id.clone()));
        }
    }
    asked
}

/// The calls by their ids, with their changes as texts.
fn calls(
    records: &VecDeque<Record>,
    images: &Images,
    folders: &[PathBuf],
) -> HashMap<String, (Call, Vec<FileDiff>)> {
    let (mut calls, mut left) = (HashMap::new(), TEXTS);
    for record in records.iter().rev() {
        let Record::Call(call) = record else { continue };
        let diffs = if left > 0 {
            diffs(call, images, folders)
        } else {
            Vec::new()
        };
        for diff in &diffs {
            let before = diff.old_text.as_ref().map_or(0, |text| text.len());
            left = left.saturating_sub(diff.new_text.len() + before);
        }
        calls
            .entry(call.id.clone())
            .or_insert_with(|| (call.clone(), diffs));
    }
    calls
}

struct Replay {
    calls: HashMap<String, (Call, Vec<FileDiff>)>,
    names: HashMap<String, String>,
    /// Whether reasoning has begun the next answer.
    begun: bool,
    /// Whether a turn has begun and not ended.
    is_open: bool,
    events: Vec<AgentEvent>,
}

impl Replay {
    /// A message of the person; one that has no number joined a turn.
    fn asked(&mut self, content: String, turn: Option<u64>, attached: Vec<Value>) {
        self.is_open |= turn.is_some();
        self.events.push(AgentEvent::UserMessage {
            content,
            prompt: None,
            turn,
            attached,
        });
    }

    /// The turn ended for this reason, or with the process.
    fn ended(&mut self, reason: Option<Termination>) {
        let was_open = std::mem::take(&mut self.is_open);
        if was_open && reason != Some(Termination::EndTurn) {
            self.events.push(AgentEvent::Interrupted { reason });
        }
    }

    fn begin(&mut self) {
        self.begun = true;
        self.events.push(AgentEvent::IterationStart {
            iteration: 1,
            message_count: 0,
        });
    }

    /// The model was asked for more: another paragraph, unless its answer was cut off.
    fn nudged(&mut self, note: &str) {
        let goes_on = [prompt::CUT_OFF, prompt::BROKEN].contains(&note);
        if let Some(AgentEvent::TextDelta { .. }) = self.events.last()
            && !goes_on
        {
            let content = "\n\n".to_owned();
            self.events.push(AgentEvent::TextDelta { content });
        }
    }

    fn answer(&mut self, answer: AssistantMessage) {
        if !std::mem::take(&mut self.begun) {
            self.begin();
            self.begun = false;
        }
        for content in [answer.text, answer.refusal] {
            if !content.is_empty() {
                self.events.push(AgentEvent::TextDelta { content });
            }
        }
        for (index, call) in answer.calls.into_iter().enumerate() {
            self.names.insert(call.id.clone(), call.name.clone());
            let (id, name) = (call.id.clone(), call.name.clone());
            let kind = self
                .calls
                .get(&id)
                .map_or(ToolKind::Other, |(call, _)| call.kind);
            self.events.push(AgentEvent::ToolCallStart {
                index,
                id,
                name,
                kind,
            });
            let call = CompleteCall::from(&call);
            self.events.push(AgentEvent::ToolCallComplete { call });
        }
    }

    /// A call of ours: an edit in place, or the decision about what a turn tried. One that changed nothing was refused.
    fn own_call(&mut self, id: &str) {
        let Some((call, _)) = self.calls.get(id) else {
            return;
        };
        let (name, kind) = (call.title.clone(), call.kind);
        let result = ToolOutput {
            is_error: call.changed.is_empty(),
            ..ToolOutput::default()
        };
        self.events.push(AgentEvent::ToolCallStart {
            index: 0,
            id: id.to_owned(),
            name: name.clone(),
            kind,
        });
        self.call_ended(id, &name, result);
    }

    fn result(&mut self, result: ToolResult) {
        let name = self.names.remove(&result.call_id).unwrap_or_default();
        let shown = ToolOutput {
            content: result.content,
            is_error: result.is_error,
            ..ToolOutput::default()
        };
        self.call_ended(&result.call_id, &name, shown);
    }

    fn call_ended(&mut self, id: &str, name: &str, mut result: ToolOutput) {
        if let Some((call, diffs)) = self.calls.remove(id) {
            result.diffs = diffs;
            result.exit = call.exit;
            result.rejected = call.rejected;
            result.locations.clone_from(&call.locations);
            let preview = Preview {
                title: call.title,
                locations: call.locations,
                ..Preview::default()
            };
            self.events
                .push(AgentEvent::preview(id, call.kind, preview));
        }
        self.events.push(AgentEvent::ended(id, name, result));
    }
}

/// The texts that a call changed, as far as they are still stored.
fn diffs(call: &Call, images: &Images, folders: &[PathBuf]) -> Vec<FileDiff> {
    let diff = |change: &EntryChange| {
        let limit = if change.is_edit { u64::MAX } else { TEXT };
        let diff = images.diff(change, limit)?;
        Some(FileDiff {
            path: name_of(&diff.path, folders),
            ..diff
        })
    };
    call.changed
        .files
        .iter()
        .filter_map(diff)
        .take(DIFFS)
        .collect()
}

/// What a person calls the file at `path`, in which no part is a link.
fn name_of(path: &Path, folders: &[PathBuf]) -> PathBuf {
    for folder in folders {
        let inside = native::canonical(folder)
            .ok()
            .and_then(|real| Some(folder.join(path.strip_prefix(real).ok()?)));
        if let Some(inside) = inside {
            return inside;
        }
    }
    path.to_owned()
}
