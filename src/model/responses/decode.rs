//! Decodes stream events. Items are identified by their `output_index`, because ids change from event to event.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::CUSTOM;
use crate::model::batch::Batch;
use crate::model::fragments::Fragments;
use crate::model::lenient::{Index, Text, usage};
use crate::model::{Failure, ModelEvent, ReasoningItem, fault};
use crate::text::sse::Event;

/// Decodes the stream of one answer.
#[derive(Debug, Default)]
pub(in crate::model) struct Decoder {
    items: HashMap<i64, Item>,
    /// The item of the last event that named one: some hosts omit the index.
    current: i64,
    calls: usize,
    /// Whether the terminal event arrived: what follows is not part of the answer.
    pub done: bool,
}

/// An item that is still arriving.
#[derive(Debug, Default)]
struct Item {
    /// The slot of its arguments, if it is a call.
    slot: Option<usize>,
    /// The part whose deltas arrived: its `done` event adds nothing.
    streamed: Option<i64>,
    /// Whether any of it arrived.
    seen: bool,
    ended: bool,
    kind: String,
    /// The call's id and name.
    call: (String, String),
    arguments: Fragments,
}

#[derive(Deserialize)]
struct Data<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Text<'a>,
    #[serde(default)]
    output_index: Index,
    #[serde(default)]
    content_index: Index,
    #[serde(default)]
    summary_index: Index,
    #[serde(borrow, default)]
    delta: Text<'a>,
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(borrow, default)]
    refusal: Text<'a>,
    #[serde(borrow, default)]
    arguments: Text<'a>,
    item: Option<Value>,
    response: Option<Value>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl Item {
    /// Whether it is this call: of the same id, or of the same name where one of them has none.
    fn is_call(&self, item: &Value) -> bool {
        let text = |field: &str| item[field].as_str().unwrap_or_default();
        let (id, name) = &self.call;
        if id.is_empty() || text("call_id").is_empty() {
            self.slot.is_some() && name == text("name")
        } else {
            id == text("call_id")
        }
    }

    /// Whether an event with the same index is about another item.
    fn is_before(&self, item: &Value, begins: bool) -> bool {
        let is_other_kind = !self.kind.is_empty() && item["type"] != self.kind.as_str();
        is_other_kind || self.slot.is_some() && !self.is_call(item) || begins && self.ended
    }
}

impl Decoder {
    pub fn event(&mut self, event: &Event, out: &mut Batch) -> Result<(), Failure> {
        let text = event.text();
        let data = text.trim();
        let Ok(parsed) = serde_json::from_str::<Data<'_>>(data) else {
            return if &event.name[..] == b"error" {
                Err(fault::in_stream(data))
            } else {
                Ok(())
            };
        };
        // Some gateways name an event only before its data.
        let named = std::str::from_utf8(&event.name).unwrap_or_default();
        let kind = match parsed.kind.plain() {
            "" if parsed.error.is_none() => named,
            kind => kind,
        };
        self.current = parsed.output_index.0.unwrap_or_else(|| self.place(kind));
        match kind {
            "response.completed"
            | "response.incomplete"
            | "response.done"
            | "response.cancelled" => {
                self.complete(kind, parsed.response.unwrap_or_default(), out)?;
            }
            "response.failed" | "error" => return Err(fault::in_stream(data)),
            "response.output_item.added" => {
                if let Some(item) = parsed.item {
                    self.set_aside(&item, true);
                    self.begin(&item, out);
                }
            }
            "response.output_item.done" => {
                if let Some(item) = parsed.item {
                    self.set_aside(&item, false);
                    self.item(item, out);
                }
            }
            _ if kind.is_empty() && parsed.error.is_some() => return Err(fault::in_stream(data)),
            _ => self.part(kind, &parsed, out),
        }
        Ok(())
    }

    /// Ends the stream.
    pub fn end(&mut self) -> Result<(), Failure> {
        if self.done {
            Ok(())
        } else {
            Err(fault::truncated())
        }
    }

    /// Some hosts give every item the same index: the one before makes way for another.
    fn set_aside(&mut self, item: &Value, begins: bool) {
        let another = |before: &&mut Item| before.is_before(item, begins);
        if let Some(before) = self.items.get_mut(&self.current).filter(another) {
            let before = std::mem::take(before);
            self.items.insert(self.next_place(), before);
        }
    }

    /// The item of an event that names none: the current one, unless a new one begins.
    fn place(&self, kind: &str) -> i64 {
        let ended = self.items.get(&self.current).is_some_and(|item| item.ended);
        if kind == "response.output_item.added" || kind == "response.output_item.done" && ended {
            self.next_place()
        } else {
            self.current
        }
    }

    fn next_place(&self) -> i64 {
        let last = self.items.keys().max();
        last.map_or(0, |last| last.saturating_add(1))
    }

    /// Handles deltas, and the complete text that follows them, which is used if there were no deltas. Parts of an
    /// unannounced call are used once its item is complete.
    fn part(&mut self, kind: &str, data: &Data<'_>, out: &mut Batch) {
        let item = self.items.entry(self.current).or_default();
        let part = data.summary_index.0.or(data.content_index.0).or(Some(0));
        let delta = data.delta.plain();
        let whole = |text| if item.streamed == part { "" } else { text };
        match kind {
            "response.output_text.delta" => out.text(delta),
            "response.refusal.delta" => out.refusal(delta),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                if item.seen && item.streamed != part {
                    out.reasoning("\n\n");
                }
                out.reasoning(delta);
            }
            "response.output_text.done" => out.text(whole(data.text.plain())),
            "response.refusal.done" => out.refusal(whole(data.refusal.plain())),
            "response.function_call_arguments.delta" => {
                let Some(slot) = item.slot else { return };
                out.arguments(slot, &item.arguments.add(delta));
            }
            "response.custom_tool_call_input.delta" => {
                let Some(slot) = item.slot else { return };
                out.arguments(slot, &escaped(delta));
            }
            "response.function_call_arguments.done" => {
                let Some(slot) = item.slot else { return };
                let arguments = if item.seen {
                    ""
                } else {
                    data.arguments.plain()
                };
                out.arguments(slot, arguments);
            }
            _ => return,
        }
        item.streamed = part;
        item.seen |= !(delta.is_empty()
            && data.text.plain().is_empty()
            && data.arguments.plain().is_empty());
    }

    /// An item begins; a call is announced.
    fn begin(&mut self, item: &Value, out: &mut Batch) {
        let state = self.items.entry(self.current).or_default();
        let text = |field: &str| item[field].as_str().unwrap_or_default().to_owned();
        state.kind = text("type");
        let custom = item["type"] == "custom_tool_call";
        if !custom && item["type"] != "function_call" || state.slot.is_some() {
            return;
        }
        let slot = self.calls;
        self.calls += 1;
        state.slot = Some(slot);
        let (id, name) = (text("call_id"), text("name"));
        state.call = (id.clone(), name.clone());
        let opening = if name == "apply_patch" {
            "{\"patch\":\""
        } else {
            "{\"input\":\""
        };
        let id = if custom { format!("{CUSTOM}{id}") } else { id };
        out.push(ModelEvent::CallStart { slot, id, name });
        if custom {
            out.arguments(slot, opening);
        }
    }

    /// A complete item: adds what its deltas did not contain.
    fn item(&mut self, item: Value, out: &mut Batch) {
        self.begin(&item, out);
        let state = self.items.entry(self.current).or_default();
        if std::mem::replace(&mut state.ended, true) {
            return;
        }
        let seen = state.seen;
        match item["type"].as_str().unwrap_or_default() {
            "message" if !seen => {
                for part in item["content"].as_array().into_iter().flatten() {
                    out.text(part["text"].as_str().unwrap_or_default());
                    out.refusal(part["refusal"].as_str().unwrap_or_default());
                }
            }
            "function_call" => {
                let slot = state.slot.unwrap_or_default();
                out.arguments(slot, &state.arguments.end());
                if !seen {
                    out.arguments(slot, &arguments(&item));
                }
                out.push(ModelEvent::CallEnd { slot });
            }
            "custom_tool_call" => {
                let slot = state.slot.unwrap_or_default();
                if !seen {
                    out.arguments(slot, &escaped(item["input"].as_str().unwrap_or_default()));
                }
                out.arguments(slot, "\"}");
                out.push(ModelEvent::CallEnd { slot });
            }
            "reasoning" if !seen => out.reasoning(&thoughts(&item)),
            _ => {}
        }
        if goes_back(&item) {
            out.push(ModelEvent::ReasoningItem(ReasoningItem::new(item)));
        }
    }

    /// The end. From the list of items, it adds only those that did not arrive on their own: all of them, or calls.
    fn complete(
        &mut self,
        kind: &str,
        mut response: Value,
        out: &mut Batch,
    ) -> Result<(), Failure> {
        self.done = true;
        let has_items = self
            .items
            .values()
            .any(|item| item.seen || item.ended || item.slot.is_some());
        if let Some(Value::Array(items)) = response.get_mut("output").map(Value::take) {
            let is_call = |item: &Value| item["type"] == "function_call";
            let none_came = self.calls == 0;
            for (index, item) in (0..).zip(items) {
                let has_id = item["call_id"].as_str().is_some_and(|id| !id.is_empty());
                let is_new = || has_id && !self.items.values().any(|known| known.is_call(&item));
                let is_lost = is_call(&item) && (none_came || is_new());
                if !has_items || is_lost {
                    self.current = if has_items { -1 - index } else { index };
                    self.item(item, out);
                }
            }
        }
        if let Some(usage) = usage(&response["usage"]) {
            out.push(ModelEvent::Usage(usage));
        }
        let cut = response
            .pointer("/incomplete_details/reason")
            .and_then(Value::as_str);
        let status = response["status"].as_str().unwrap_or_default();
        out.finish(match cut {
            Some(word) => word,
            None if kind == "response.incomplete" => "length",
            None if matches!(status, "cancelled" | "failed") => status,
            None if self.calls > 0 => "tool_calls",
            None => "stop",
        })
    }
}

/// The arguments of a complete call: a string, or the object itself.
fn arguments(item: &Value) -> String {
    match &item["arguments"] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Some hosts omit the text from the complete item although the deltas had it; then the text is sent back without the
/// item.
fn goes_back(item: &Value) -> bool {
    let mut parts = item["content"].as_array().into_iter().flatten();
    item["type"] != "message"
        || parts.any(|part| part["text"].is_string() || part["refusal"].is_string())
}

/// The contents of a JSON string.
fn escaped(text: &str) -> String {
    let json = serde_json::to_string(text).unwrap_or_default();
    json.get(1..json.len().saturating_sub(1))
        .unwrap_or_default()
        .to_owned()
}

/// The text of a reasoning item: its summary, or else the reasoning that some hosts show.
fn thoughts(item: &Value) -> String {
    let parts = ["summary", "content"]
        .iter()
        .filter_map(|field| item[field].as_array());
    let texts = parts.flatten().filter_map(|part| part["text"].as_str());
    texts.collect::<Vec<_>>().join("\n\n")
}
