//! Folds events into a finished message.
//!
//! Invariants: every call gets an id that no other call of the conversation has; arguments are parsed once, after their
//! last fragment; arguments that are not an object are kept as text and never run.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{
    Arguments, AssistantMessage, ErrorCode, Failure, Finish, ModelEvent, ReasoningItem, ToolCall,
    Usage,
};
use crate::text::repair::{self, Repair};

/// The prefix of the ids that a collector assigns.
const OWN: &str = "call";

/// Whether an id is the provider's: then the model sent the call as such, not as text.
pub(crate) fn is_given(id: &str) -> bool {
    let number = id.strip_prefix(OWN).unwrap_or_default();
    number.is_empty() || !number.bytes().all(|it| it.is_ascii_digit())
}

/// Folds the events of one request.
#[derive(Debug)]
pub struct Collector<'a> {
    taken: &'a HashSet<String>,
    text: String,
    reasoning: String,
    items: Vec<ReasoningItem>,
    refusal: String,
    calls: Vec<Open>,
    used: HashSet<String>,
    usage: Option<Usage>,
    finish: Option<Finish>,
}

/// A call whose fragments are still arriving; `done` once its arguments are parsed.
#[derive(Debug, Default)]
struct Open {
    id: String,
    name: String,
    json: String,
    /// How the arguments were repaired.
    repair: Repair,
    done: Option<ToolCall>,
}

/// The result of a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Collected {
    /// The message for the history.
    pub message: AssistantMessage,
    /// The displayed reasoning.
    pub reasoning: String,
    /// The tokens, if the provider reported them.
    pub usage: Option<Usage>,
    /// Why the model stopped, if it was reported.
    pub finish: Option<Finish>,
    /// How it ended.
    pub outcome: Outcome,
    /// For each call, how its arguments were repaired.
    pub repairs: Vec<Repair>,
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// With its terminator.
    Ok,
    /// Without one: the answer may be incomplete.
    Truncated,
    /// With an error.
    Error(Failure),
}

impl<'a> Collector<'a> {
    /// A collector for a conversation whose calls have the ids in `taken`.
    pub fn new(taken: &'a HashSet<String>) -> Self {
        Self {
            taken,
            text: String::new(),
            reasoning: String::new(),
            items: Vec::new(),
            refusal: String::new(),
            calls: Vec::new(),
            used: HashSet::new(),
            usage: None,
            finish: None,
        }
    }

    /// Adds an event. Returns a call whose arguments just became complete and which may run.
    pub fn push(&mut self, event: &ModelEvent) -> Option<ToolCall> {
        match event {
            ModelEvent::Text(text) => self.text.push_str(text),
            ModelEvent::Reasoning(text) => self.reasoning.push_str(text),
            ModelEvent::TextWasReasoning => {
                self.reasoning.push_str(&std::mem::take(&mut self.text));
            }
            ModelEvent::ReasoningItem(item) => self.items.push(item.clone()),
            ModelEvent::Refusal(text) => self.refusal.push_str(text),
            ModelEvent::CallStart { slot, id, name } => {
                let call = self.call(*slot);
                id.clone_into(&mut call.id);
                name.clone_into(&mut call.name);
            }
            ModelEvent::CallDelta { slot, json } => self.call(*slot).json.push_str(json),
            ModelEvent::CallEnd { slot } => return self.complete(*slot),
            ModelEvent::Usage(usage) => self.usage = Some(*usage),
            ModelEvent::Finish(finish) => self.finish = Some(finish.clone()),
            ModelEvent::TextIsForeign | ModelEvent::Retry { .. } | ModelEvent::Notice(_) => {}
        }
        None
    }

    /// Whether the answer is complete so far.
    pub fn is_whole(&self) -> bool {
        self.finish.as_ref().is_none_or(Finish::is_whole)
    }

    /// How the arguments of this call were repaired.
    pub fn repair(&self, slot: usize) -> Repair {
        self.calls
            .get(slot)
            .map_or(Repair::None, |call| call.repair)
    }

    /// Finishes with the stream's outcome.
    pub fn finish(mut self, end: Result<(), Failure>) -> Collected {
        for slot in 0..self.calls.len() {
            if self.complete(slot).is_none() && self.calls[slot].done.is_none() {
                let raw = std::mem::take(&mut self.calls[slot].json);
                self.close(slot, Arguments::Unparsable(raw));
            }
        }
        let outcome = match end {
            Ok(()) => Outcome::Ok,
            Err(error) if error.code == ErrorCode::Truncated => Outcome::Truncated,
            Err(error) => Outcome::Error(error),
        };
        let repairs = self.calls.iter().map(|call| call.repair).collect();
        let mut calls: Vec<ToolCall> = self
            .calls
            .into_iter()
            .filter_map(|call| call.done)
            .collect();
        // Messages live as long as the conversation, and an open call's buffer is larger.
        calls.shrink_to_fit();
        Collected {
            message: AssistantMessage {
                text: self.text,
                reasoning: self.items,
                refusal: self.refusal,
                calls,
            },
            reasoning: self.reasoning,
            usage: self.usage,
            finish: self.finish,
            outcome,
            repairs,
        }
    }

    /// Slots count from 0 in order of appearance: a new one is always the next.
    fn call(&mut self, slot: usize) -> &mut Open {
        if slot >= self.calls.len() {
            self.calls.push(Open::default());
        }
        let last = self.calls.len() - 1;
        &mut self.calls[slot.min(last)]
    }

    /// Parses the arguments of a call that ended; `None` if they are incomplete or were already parsed.
    fn complete(&mut self, slot: usize) -> Option<ToolCall> {
        let call = self
            .calls
            .get(slot)
            .filter(|call| call.done.is_none() && !call.name.is_empty())?;
        let (arguments, repair) = parse(&call.json, self.finish.as_ref())?;
        self.calls[slot].repair = repair;
        Some(self.close(slot, Arguments::Object(arguments)))
    }

    fn close(&mut self, slot: usize, arguments: Arguments) -> ToolCall {
        let id = self.unique(slot);
        let open = &mut self.calls[slot];
        let call = ToolCall {
            id,
            name: std::mem::take(&mut open.name),
            arguments,
        };
        open.json = String::new();
        open.done.insert(call).clone()
    }

    /// The provider's id, or if that is missing or taken, nine letters and digits, which every provider accepts.
    fn unique(&mut self, slot: usize) -> String {
        let free = |id: &str| !self.taken.contains(id) && !self.used.contains(id);
        let given = std::mem::take(&mut self.calls[slot].id);
        let id = if !given.is_empty() && free(&given) {
            given
        } else {
            let mut n = self.taken.len() + slot;
            while !free(&format!("{OWN}{n:05}")) {
                n += 1;
            }
            format!("{OWN}{n:05}")
        };
        self.used.insert(id.clone());
        id
    }
}

/// The arguments as an object; blank ones are an empty object unless the token limit cut the call.
fn parse(json: &str, finish: Option<&Finish>) -> Option<(Map<String, Value>, Repair)> {
    let json = json.trim();
    if matches!(json, "" | "null" | "None") {
        return finish
            .is_some_and(|finish| !matches!(finish, Finish::Length | Finish::Broken(_)))
            .then(|| (Map::new(), Repair::None));
    }
    let is_whole = matches!(finish, Some(Finish::Stop | Finish::ToolCalls));
    repair::object(json, is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(events: &[ModelEvent], taken: &[&str]) -> Collected {
        let taken = taken.iter().map(|&id| id.to_owned()).collect();
        let mut collector = Collector::new(&taken);
        for event in events {
            collector.push(event);
        }
        collector.finish(Ok(()))
    }

    fn call(slot: usize, id: &str, json: &str) -> [ModelEvent; 2] {
        [
            ModelEvent::CallStart {
                slot,
                id: id.into(),
                name: "f".into(),
            },
            ModelEvent::CallDelta {
                slot,
                json: json.into(),
            },
        ]
    }

    #[track_caller]
    fn check(json: &str, finish: &Finish, runnable: bool) {
        let mut events = call(0, "a", json).to_vec();
        events.push(ModelEvent::Finish(finish.clone()));
        let collected = collect(&events, &[]);
        assert_eq!(
            matches!(collected.message.calls[0].arguments, Arguments::Object(_)),
            runnable,
            "{json:?} {finish:?}"
        );
    }

    #[test]
    fn only_object_arguments_are_accepted() {
        check(r#"{"x":1}"#, &Finish::Stop, true);
        check(r#" {"x":1} "#, &Finish::Length, true);
        check("", &Finish::Stop, true);
        check("null", &Finish::ToolCalls, true);
        check("", &Finish::Length, false);
        check(r#"{"x":"#, &Finish::ToolCalls, false);
        check(r#"{"x":"a""#, &Finish::ToolCalls, true);
        check(r#"{"x":"a""#, &Finish::Length, false);
        check("[1]", &Finish::ToolCalls, false);
    }

    #[test]
    fn call_ids_are_kept_unless_missing_or_repeated() {
        let events: Vec<_> = ["a", "", "a", "old", "b"]
            .iter()
            .enumerate()
            .flat_map(|(slot, id)| call(slot, id, "{}"))
            .collect();
        let ids: Vec<_> = collect(&events, &["old"])
            .message
            .calls
            .into_iter()
            .map(|call| call.id)
            .collect();
        assert_eq!(ids, ["a", "call00002", "call00003", "call00004", "b"]);
    }

    #[test]
    fn complete_calls_are_emitted_once() {
        let taken = HashSet::new();
        let mut collector = Collector::new(&taken);
        for event in call(0, "a", r#"{"x":1}"#) {
            assert_eq!(collector.push(&event), None);
        }
        assert_eq!(
            collector.push(&ModelEvent::CallEnd { slot: 0 }).unwrap().id,
            "a"
        );
        assert_eq!(collector.push(&ModelEvent::CallEnd { slot: 0 }), None);
        assert_eq!(collector.finish(Ok(())).message.calls.len(), 1);
    }
}
