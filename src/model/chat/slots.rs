//! Assigns fragments to calls. Nothing is ever sized by a provider's index.

use std::collections::HashMap;

use super::whole::Whole;
use crate::model::ModelEvent;
use crate::model::batch::Batch;

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
    arguments: Whole,
}

impl Slots {
    /// The slot of a fragment. Announces a new call, and announces it again when its id or name becomes known: the
    /// first non-empty value of each stays.
    pub(super) fn slot(
        &mut self,
        index: Option<i64>,
        id: &str,
        name: &str,
        out: &mut Batch,
    ) -> usize {
        let Some(slot) = self.find(index, id, name) else {
            return self.begin(index, id, name, out);
        };
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
        slot
    }

    fn find(&self, index: Option<i64>, id: &str, name: &str) -> Option<usize> {
        let same_id = || {
            self.calls
                .iter()
                .rposition(|call| !id.is_empty() && call.id == id)
        };
        let Some(index) = index else {
            return same_id().or_else(|| if name.is_empty() { self.last() } else { None });
        };
        let Some(&slot) = self.by_index.get(&index) else {
            return if name.is_empty() { same_id() } else { None };
        };
        let call = &self.calls[slot];
        let another = !name.is_empty() && !id.is_empty() && !call.id.is_empty() && call.id != id;
        (!another).then_some(slot)
    }

    /// A call begins, so earlier ones have probably ended.
    fn begin(&mut self, index: Option<i64>, id: &str, name: &str, out: &mut Batch) -> usize {
        self.end(out);
        let slot = self.calls.len();
        self.calls.push(Call {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: Whole::default(),
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
    pub(super) fn arguments(&mut self, slot: usize, fragment: &str, out: &mut Batch) {
        out.arguments(slot, fragment);
        let call = &mut self.calls[slot];
        if call.arguments.ends_with(fragment) && !call.id.is_empty() && !call.name.is_empty() {
            out.push(ModelEvent::CallEnd { slot });
        }
    }

    /// Announces the end of every open call.
    pub(super) fn end(&mut self, out: &mut Batch) {
        for slot in self.open..self.calls.len() {
            out.push(ModelEvent::CallEnd { slot });
        }
        self.open = self.calls.len();
    }

    /// The call that would get the next fragment.
    pub(super) fn last(&self) -> Option<usize> {
        self.calls.len().checked_sub(1)
    }
}
