//! Decodes chunks to events.

use std::hash::{DefaultHasher, Hasher as _};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::details::Details;
use super::slots::Slots;
use crate::model::batch::Batch;
use crate::model::lenient::{Index, OneOrMany, Text, usage};
use crate::model::{Failure, ModelEvent, ReasoningItem, fault};
use crate::text::sse::Event;

/// Decodes the stream of one answer.
#[derive(Debug, Default)]
pub(in crate::model) struct Decoder {
    slots: Slots,
    details: Details,
    /// The plain text and the plain reasoning so far, which a message may repeat.
    text: Known,
    thoughts: Known,
    /// Whether any of it came in deltas.
    deltas: bool,
    /// Whether a finish reason arrived.
    finished: bool,
    /// Whether the terminal marker arrived: what follows is not part of the answer.
    pub done: bool,
    /// How many chunks were invalid.
    unreadable: usize,
}

/// What recognizes a text that came before, without another copy of a long answer.
#[derive(Debug, Default)]
struct Known {
    length: usize,
    hash: DefaultHasher,
}

impl Known {
    fn push(&mut self, text: &str) {
        self.length += text.len();
        self.hash.write(text.as_bytes());
    }

    /// What follows in a text that begins with this one.
    fn rest<'a>(&self, text: &'a str) -> Option<&'a str> {
        let (before, rest) = text.split_at_checked(self.length)?;
        let mut known = Self::default();
        known.push(before);
        (known.hash.finish() == self.hash.finish()).then_some(rest)
    }
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    x_groq: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    /// The message of an error that is not inside `error`.
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(default)]
    index: Index,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    /// In place of a delta, or the whole answer at its end. What is rare is boxed: a choice is moved for each token.
    #[serde(borrow)]
    message: Option<Box<Delta<'a>>>,
    #[serde(borrow, default)]
    finish_reason: Text<'a>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    content: Text<'a>,
    #[serde(borrow, default)]
    reasoning_content: Text<'a>,
    #[serde(borrow, default)]
    reasoning: Text<'a>,
    #[serde(borrow)]
    reasoning_details: Option<&'a RawValue>,
    #[serde(borrow, default)]
    refusal: Text<'a>,
    #[serde(borrow, default)]
    tool_calls: OneOrMany<Fragment<'a>>,
    /// The only call, as servers older than parallel calls have it.
    #[serde(borrow)]
    function_call: Option<Box<Function<'a>>>,
}

#[derive(Deserialize)]
struct Fragment<'a> {
    #[serde(default)]
    index: Index,
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
    /// Without a `function` around them.
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow, alias = "input", alias = "parameters", alias = "args")]
    arguments: Option<&'a RawValue>,
    extra_content: Option<Value>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow, alias = "input", alias = "parameters", alias = "args")]
    arguments: Option<&'a RawValue>,
}

impl Delta<'_> {
    fn says_something(&self) -> bool {
        let texts = [&self.content, &self.reasoning_content, &self.reasoning];
        texts.iter().any(|text| !text.plain().is_empty()) || !self.tool_calls.0.is_empty()
    }
}

impl Decoder {
    pub fn event(&mut self, event: &Event, out: &mut Batch) -> Result<(), Failure> {
        let text = event.text();
        let data = text.trim();
        if data.is_empty() {
            return Ok(());
        }
        if data == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        if &event.name[..] == b"error" {
            return Err(fault::in_stream(data));
        }
        if let Ok(chunk) = serde_json::from_str::<Chunk<'_>>(data) {
            return self.chunk(chunk, data, out);
        }
        // Servers that forget the empty line between events send several at once.
        let chunks: Result<Vec<Chunk<'_>>, _> = data
            .lines()
            .filter(|line| *line != "[DONE]")
            .map(serde_json::from_str)
            .collect();
        let Ok(chunks) = chunks else {
            self.skip(data, out);
            return Ok(());
        };
        self.done |= data.ends_with("[DONE]");
        let mut chunks = chunks.into_iter();
        chunks.try_for_each(|chunk| self.chunk(chunk, data, out))
    }

    /// Ends the stream.
    pub fn end(&mut self, out: &mut Batch) -> Result<(), Failure> {
        if let Some(item) = std::mem::take(&mut self.details).into_item() {
            out.push(ModelEvent::ReasoningItem(ReasoningItem::new(item)));
        }
        if self.unreadable > 0 {
            let n = self.unreadable;
            out.push(ModelEvent::Notice(format!(
                "{n} part(s) of the answer could not be read and are missing"
            )));
        }
        if self.finished || self.done && !self.slots.is_cut() {
            Ok(())
        } else {
            Err(fault::truncated())
        }
    }

    fn chunk(&mut self, chunk: Chunk<'_>, data: &str, out: &mut Batch) -> Result<(), Failure> {
        let message = chunk.message.filter(|_| chunk.choices.is_none());
        if chunk.error.or(message).is_some_and(is_error) {
            return Err(fault::in_stream(data));
        }
        let mut choices = chunk.choices.into_iter().flatten();
        let ended = choices.try_for_each(|choice| match choice.index.0 {
            None | Some(0) => self.choice(choice, out),
            Some(_) => Ok(()),
        });
        for usage in [chunk.usage, chunk.x_groq].into_iter().flatten() {
            report(usage, out);
        }
        ended
    }

    fn choice(&mut self, choice: Choice<'_>, out: &mut Batch) -> Result<(), Failure> {
        let is_last = !choice.finish_reason.plain().is_empty();
        let beside = choice.delta.as_ref().is_some_and(Delta::says_something);
        if let Some(delta) = choice.delta {
            self.deltas |= beside;
            self.delta(delta, out);
        }
        if let Some(message) = choice.message {
            self.message(*message, beside, is_last, out);
        }
        if let Some(error) = choice.error.filter(|error| is_error(error)) {
            return Err(fault::in_stream(error.get()));
        }
        let reason = choice.finish_reason.plain();
        if let Some(usage) = choice.usage {
            report(usage, out);
        }
        if reason.is_empty() {
            return Ok(());
        }
        self.finished = true;
        let ended = out.finish(reason);
        self.slots.end(out);
        ended
    }

    /// A message in place of a delta, or beside it. It has a piece of the answer, or all of it so far.
    fn message(&mut self, mut message: Delta<'_>, beside: bool, is_last: bool, out: &mut Batch) {
        let fields = [
            (&mut message.content, &self.text),
            (&mut message.reasoning_content, &self.thoughts),
            (&mut message.reasoning, &self.thoughts),
        ];
        let is_known = beside || self.deltas;
        for (field, before) in fields {
            let more = match before.rest(field.plain()) {
                // The same word twice does not mean that the message repeats everything.
                Some("") if !is_known && !is_last => None,
                more => more.map(str::to_owned),
            };
            if let Some(more) = more.or_else(|| is_known.then(String::new)) {
                *field = Text::Plain(more.into());
            }
        }
        if self.thoughts.length > 0 {
            message.reasoning_details = None;
        }
        if beside {
            message.tool_calls.0.clear();
        }
        let calls = (0..).zip(&mut message.tool_calls.0);
        for (position, call) in calls {
            call.index = Index(call.index.0.or(Some(position)));
        }
        self.delta(message, out);
    }

    fn delta(&mut self, delta: Delta<'_>, out: &mut Batch) {
        self.reasoning(&delta, out);
        match delta.content {
            Text::Plain(text) => {
                self.text.push(&text);
                out.text(&text);
            }
            Text::Parts(parts) => self.parts(&parts, out),
            Text::Empty => {}
        }
        out.refusal(delta.refusal.plain());
        let only = delta.function_call.map(|function| Fragment {
            index: Index(Some(0)),
            id: Text::Empty,
            function: Some(*function),
            name: Text::Empty,
            arguments: None,
            extra_content: None,
        });
        for fragment in delta.tool_calls.0.into_iter().chain(only) {
            self.fragment(&fragment, out);
        }
    }

    /// Of three possible fields, the first with text is shown; details are always kept.
    fn reasoning(&mut self, delta: &Delta<'_>, out: &mut Batch) {
        let plain = [
            ("reasoning_content", &delta.reasoning_content),
            ("reasoning", &delta.reasoning),
        ]
        .map(|(field, text)| (field, text.plain()))
        .into_iter()
        .find(|(_, text)| !text.is_empty());
        if let Some((field, text)) = plain {
            self.details.plain(field, text);
            self.thoughts.push(text);
            out.reasoning(text);
        }
        let Some(details) = delta.reasoning_details else {
            return;
        };
        for fragment in serde_json::from_str::<Vec<_>>(details.get()).unwrap_or_default() {
            let shown = self.details.fragment(fragment);
            if plain.is_none() {
                out.reasoning(&shown);
            }
        }
    }

    /// Content as an array of typed text and thinking.
    fn parts(&mut self, parts: &[Value], out: &mut Batch) {
        for part in parts {
            if part["type"] == "thinking" {
                let thinking = flat(&part["thinking"]);
                self.details.plain("content", &thinking);
                out.reasoning(&thinking);
            } else {
                out.text(&flat(&part["text"]));
            }
        }
    }

    fn fragment(&mut self, fragment: &Fragment<'_>, out: &mut Batch) {
        let (name, raw) = match &fragment.function {
            Some(function) => (function.name.plain(), function.arguments),
            None => (fragment.name.plain(), fragment.arguments),
        };
        let raw = raw.map_or("", RawValue::get);
        let arguments = match serde_json::from_str::<Text<'_>>(raw) {
            Ok(Text::Plain(text)) => text,
            _ => raw.into(),
        };
        let (index, id) = (fragment.index.0, fragment.id.plain());
        let slot = self.slots.slot(index, id, name, &arguments, out);
        if let Some(extra) = &fragment.extra_content {
            self.details.extra(slot, extra);
        }
        self.slots.arguments(slot, &arguments, out);
    }

    /// An invalid chunk does not end the answer. But arguments that lost a fragment must not run even if the rest
    /// happens to parse, so a NUL is added, which never parses.
    fn skip(&mut self, data: &str, out: &mut Batch) {
        if !data.starts_with('{') {
            return;
        }
        self.unreadable += 1;
        if let Some(slot) = self.slots.last() {
            out.arguments(slot, "\0");
        }
    }
}

/// `"error": {}` and `"error": ""` are ways to say that there is none.
fn is_error(error: &RawValue) -> bool {
    !matches!(error.get(), "null" | "{}" | "\"\"" | "false")
}

fn flat(text: &Value) -> String {
    match text {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect(),
        _ => String::new(),
    }
}

/// Token counts, which Groq wraps once more.
fn report(raw: &RawValue, out: &mut Batch) {
    let Ok(reported) = serde_json::from_str::<Value>(raw.get()) else {
        return;
    };
    let counts = reported.get("usage").filter(|inner| inner.is_object());
    if let Some(usage) = usage(counts.unwrap_or(&reported)) {
        out.push(ModelEvent::Usage(usage));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The reasoning to send back from these deltas.
    #[track_caller]
    fn check(deltas: &[Value], item: &Value) {
        let (mut decoder, mut out) = (Decoder::default(), Batch::default());
        for delta in deltas {
            let data = json!({ "choices": [{ "delta": delta }] }).to_string();
            decoder
                .event(
                    &Event {
                        data: data.into(),
                        ..Event::default()
                    },
                    &mut out,
                )
                .unwrap();
        }
        decoder.done = true;
        decoder.end(&mut out).unwrap();
        let items: Vec<_> = std::iter::from_fn(|| out.pop())
            .filter_map(|event| match event {
                ModelEvent::ReasoningItem(item) => Some(item.item),
                _ => None,
            })
            .collect();
        assert_eq!(items, std::slice::from_ref(item));
    }

    #[test]
    fn reasoning_is_sent_back_verbatim() {
        check(
            &[
                json!({ "reasoning_content": "a" }),
                json!({ "reasoning_content": "b" }),
            ],
            &json!({ "reasoning_content": "ab" }),
        );
        let text =
            |text| json!({ "type": "reasoning.text", "text": text, "index": 0, "signature": null });
        let signed = json!({ "type": "reasoning.text", "index": 0, "signature": "s" });
        let secret = json!({ "type": "reasoning.encrypted", "data": "x", "index": 0 });
        check(
            &[
                json!({ "reasoning": "a", "reasoning_details": [text("a")] }),
                json!({ "reasoning": "b", "reasoning_details": [text("b"), signed] }),
                json!({ "reasoning_details": [secret, secret] }),
            ],
            &json!({ "reasoning_details": [
                { "type": "reasoning.text", "text": "ab", "index": 0, "signature": "s" }, secret, secret,
            ] }),
        );
        let extra = json!({ "google": { "thought_signature": "s" } });
        check(
            &[
                json!({ "tool_calls": [{ "id": "a", "function": { "name": "f" }, "extra_content": extra }] }),
            ],
            &json!({ "extra_content": { "0": extra } }),
        );
    }
}
