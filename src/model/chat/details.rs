//! Reassembles reasoning from chat servers, so that it can be sent back unchanged.

use std::collections::BTreeMap;

use crate::text::Fields;
use serde_json::{Value, json};

/// The reasoning of one answer.
#[derive(Debug, Default)]
pub(super) struct Details {
    /// Plain reasoning: the field it arrived in, and its text.
    plain: Option<(&'static str, String)>,
    /// `OpenRouter`'s `reasoning_details`, with fragments of one item joined.
    items: Vec<Fields>,
    /// Gemini's signatures of calls, by slot.
    extras: BTreeMap<usize, Value>,
}

/// The fields sent in fragments; other fields of an item are sent in full.
const GROWING: [&str; 3] = ["text", "summary", "data"];

impl Details {
    /// Adds a fragment of plain reasoning.
    pub fn plain(&mut self, field: &'static str, more: &str) {
        self.plain
            .get_or_insert_with(|| (field, String::new()))
            .1
            .push_str(more);
    }

    /// Adds a fragment of `reasoning_details` and returns the text to show.
    pub fn fragment(&mut self, fragment: Fields) -> String {
        let shown = ["text", "summary"]
            .iter()
            .find_map(|field| fragment.get(*field)?.as_str())
            .unwrap_or_default()
            .to_owned();
        match self
            .items
            .last_mut()
            .filter(|item| continues(item, &fragment))
        {
            Some(item) => grow(item, fragment),
            None => self.items.push(fragment),
        }
        shown
    }

    /// Stores data that arrived with a call and has to be sent back with it.
    pub fn extra(&mut self, slot: usize, extra: &Value) {
        self.extras.entry(slot).or_insert_with(|| extra.clone());
    }

    /// The fields for the assistant message.
    pub fn into_item(self) -> Option<Value> {
        let mut fields = Fields::new();
        if !self.items.is_empty() {
            fields.insert("reasoning_details".into(), json!(self.items));
        } else if let Some((field, text)) = self.plain.filter(|(_, text)| !text.is_empty()) {
            let thinking =
                || json!([{ "type": "thinking", "thinking": [{ "type": "text", "text": text }] }]);
            fields.insert(
                field.into(),
                if field == "content" {
                    thinking()
                } else {
                    json!(text)
                },
            );
        }
        if !self.extras.is_empty() {
            fields.insert("extra_content".into(), json!(self.extras));
        }
        (!fields.is_empty()).then_some(Value::Object(fields))
    }
}

/// Encrypted items arrive complete: two in a row are two items.
fn continues(item: &Fields, fragment: &Fields) -> bool {
    let same = |field| item.get(field) == fragment.get(field);
    same("type")
        && same("index")
        && item.get("type").and_then(Value::as_str) != Some("reasoning.encrypted")
}

fn grow(item: &mut Fields, fragment: Fields) {
    for (field, more) in fragment {
        match (item.get_mut(&field), more) {
            (_, Value::Null) => {}
            (Some(Value::String(text)), Value::String(more))
                if GROWING.contains(&field.as_str()) =>
            {
                text.push_str(&more);
            }
            (_, more) => {
                item.insert(field, more);
            }
        }
    }
}
