//! Assigns fragments to calls. Nothing is ever sized by a provider's index.

use std::collections::HashMap;

use crate::model::ModelEvent;
use crate::model::batch::Batch;
use crate::model::fragments::Fragments;

/// The calls of one answer, in order of appearance.
#[derive(Debug, Default)]
pub(super) struct Slots {
    calls: Vec<Call>,
    /// The latest call for each of the provider's indexes.
    by_index: HashMap<i64, usize>,
    /// The first slot whose end was not announced.
    open: usize,
}

#[derive(Debug)]
struct Call {
    id: String,
    name: String,
    arguments: Fragments,
}

impl Call {
    /// Whether a fragment with the same index belongs to another call, which follows this one.
    fn is_before(&self, id: &str, name: &str, arguments: &str) -> bool {
        let ended = self.arguments.ended();
        let is_same_tool = name.is_empty() || self.name.is_empty() || self.name == name;
        match (self.id.is_empty(), id.is_empty()) {
            (false, false) if self.id != id => !name.is_empty(),
            // After an object nothing but another one can begin.
            _ if self.id == id && is_same_tool => {
                ended
                    && arguments.trim_start().starts_with('{')
                    && !self.arguments.repeats(arguments)
            }
            (true, true) => true,
            _ => ended && !is_same_tool,
        }
    }
}

impl Slots {
    /// The slot of a fragment. Announces a new call, and announces it again when its id or name becomes known: the
    /// first non-empty value of each stays.
    pub fn slot(
        &mut self,
        index: Option<i64>,
        id: &str,
        name: &str,
        arguments: &str,
        out: &mut Batch,
    ) -> usize {
        let Some(slot) = self.find(index, id, name, arguments) else {
            // A server that marks no call at all goes on with the next one of the same tool.
            let before = index.and_then(|index| self.by_index.get(&index));
            let name = match before {
                Some(slot) if name.is_empty() => self.calls[*slot].name.clone(),
                _ => name.to_owned(),
            };
            return self.begin(index, id, &name, out);
        };
        if let Some(index) = index {
            self.by_index.entry(index).or_insert(slot);
        }
        self.announce_again(slot, id, name, out);
        slot
    }

    fn announce_again(&mut self, slot: usize, id: &str, name: &str, out: &mut Batch) {
        let call = &mut self.calls[slot];
        let (new_id, new_name) = (
            call.id.is_empty() && !id.is_empty(),
            call.name.is_empty() && !name.is_empty(),
        );
        if new_id {
            id.clone_into(&mut call.id);
        }
        if new_name {
            name.clone_into(&mut call.name);
        }
        if new_id || new_name {
            out.push(ModelEvent::CallStart {
                slot,
                id: call.id.clone(),
                name: call.name.clone(),
            });
        }
    }

    fn find(&self, index: Option<i64>, id: &str, name: &str, arguments: &str) -> Option<usize> {
        let same_id = || {
            self.calls
                .iter()
                .rposition(|call| !id.is_empty() && call.id == id)
                .filter(|slot| !self.calls[*slot].is_before(id, name, arguments))
        };
        let Some(index) = index else {
            let goes_on = |slot: &usize| {
                let call = &self.calls[*slot];
                let is_open = !call.arguments.is_empty() && !call.arguments.ended();
                name.is_empty()
                    || id.is_empty()
                        && call.name == name
                        && (is_open || call.arguments.repeats(arguments))
            };
            return same_id().or_else(|| self.last().filter(goes_on));
        };
        let Some(&slot) = self.by_index.get(&index) else {
            // Some servers send the arguments of a call under the next index, and some the whole call again.
            let is_open = |slot: &usize| id.is_empty() && !self.calls[*slot].arguments.ended();
            let is_again = |slot: &usize| self.calls[*slot].arguments.repeats(arguments);
            return if name.is_empty() {
                same_id().or_else(|| self.last().filter(is_open))
            } else {
                same_id().filter(is_again)
            };
        };
        (!self.calls[slot].is_before(id, name, arguments)).then_some(slot)
    }

    /// A call begins, so earlier ones have probably ended.
    fn begin(&mut self, index: Option<i64>, id: &str, name: &str, out: &mut Batch) -> usize {
        self.end(out);
        let slot = self.calls.len();
        self.calls.push(Call {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: Fragments::default(),
        });
        if let Some(index) = index {
            self.by_index.insert(index, slot);
        }
        out.push(ModelEvent::CallStart {
            slot,
            id: id.to_owned(),
            name: name.to_owned(),
        });
        slot
    }

    /// Passes on a fragment of a call's arguments, and announces its end after the last one. A call without id or name
    /// may still get them.
    pub fn arguments(&mut self, slot: usize, fragment: &str, out: &mut Batch) {
        let call = &mut self.calls[slot];
        let had_ended = call.arguments.ended();
        out.arguments(slot, &call.arguments.add(fragment));
        let ends = !had_ended && call.arguments.ended();
        if ends && !call.id.is_empty() && !call.name.is_empty() {
            out.push(ModelEvent::CallEnd { slot });
        }
    }

    /// Announces the end of every open call.
    pub fn end(&mut self, out: &mut Batch) {
        for slot in self.open..self.calls.len() {
            out.arguments(slot, &self.calls[slot].arguments.end());
            out.push(ModelEvent::CallEnd { slot });
        }
        self.open = self.calls.len();
    }

    /// Whether the last call began and did not end.
    pub fn is_cut(&self) -> bool {
        self.calls
            .last()
            .is_some_and(|call| call.arguments.is_cut())
    }

    /// The call that would get the next fragment.
    pub fn last(&self) -> Option<usize> {
        self.calls.len().checked_sub(1)
    }
}
