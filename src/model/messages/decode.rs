//! Decodes stream events. The type inside the data counts, not the `event:` line.

use std::collections::BTreeMap;

use memchr::memchr2;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::model::batch::Batch;
use crate::model::fragments::Fragments;
use crate::model::lenient::{Index, Text, count};
use crate::model::{Failure, ModelEvent, ReasoningItem, Usage, fault};
use crate::text::sse::Event;

/// Decodes the stream of one answer.
#[derive(Debug, Default)]
pub(in crate::model) struct Decoder {
    blocks: BTreeMap<Option<i64>, Block>,
    /// The finished blocks in order, as they are sent back.
    ended: Vec<Value>,
    calls: usize,
    /// Token counts from the start and the deltas, merged: the last value counts. `input` excludes cached tokens, as
    /// on the wire.
    tokens: Usage,
    finished: bool,
    /// Whether the terminal marker arrived: what follows is not part of the answer.
    pub done: bool,
}

/// A block that is still arriving.
#[derive(Debug)]
enum Block {
    Text(String),
    Thinking {
        text: String,
        signature: String,
    },
    Call {
        slot: usize,
        /// Arguments sent in full at the start; fragments replace them, if there are any.
        whole: Option<String>,
        fragments: Fragments,
    },
    /// Other blocks, such as tools the provider runs itself: they are sent back unchanged.
    Other {
        block: Value,
        input: String,
    },
}

#[derive(Deserialize)]
struct Data<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Text<'a>,
    #[serde(default)]
    index: Index,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    // Rare fields stay raw JSON, so that parsing the frequent deltas stays cheap.
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(borrow, default)]
    thinking: Text<'a>,
    #[serde(borrow, default)]
    signature: Text<'a>,
    #[serde(borrow, default)]
    partial_json: Text<'a>,
    #[serde(borrow, default)]
    stop_reason: Text<'a>,
}

impl Decoder {
    pub fn event(&mut self, event: &Event, out: &mut Batch) -> Result<(), Failure> {
        let text = event.text();
        let data = text.trim();
        if data == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        if let Some((index, delta)) = plain_delta(data) {
            self.delta(Some(index), &delta, out);
            return Ok(());
        }
        let Ok(parsed) = serde_json::from_str::<Data<'_>>(data) else {
            return if &event.name[..] == b"error" {
                Err(fault::in_stream(data))
            } else {
                Ok(())
            };
        };
        match parsed.kind.plain() {
            "message_start" => {
                self.blocks.clear();
                self.ended.clear();
                let message = value(parsed.message);
                self.usage(&message["usage"], out);
                self.whole(&message, out);
            }
            "content_block_start" => self.start(parsed.index.0, value(parsed.content_block), out),
            "content_block_delta" => {
                if let Some(delta) = parsed.delta {
                    self.delta(parsed.index.0, &delta, out);
                }
            }
            "content_block_stop" => self.stop(parsed.index.0, out),
            "message_delta" => {
                self.usage(&value(parsed.usage), out);
                self.finish(
                    parsed
                        .delta
                        .as_ref()
                        .map_or("", |delta| delta.stop_reason.plain()),
                    out,
                )?;
            }
            "message_stop" => {
                self.whole(&value(parsed.message), out);
                self.done = true;
            }
            "error" => return Err(fault::in_stream(data)),
            _ if parsed.error.is_some() => return Err(fault::in_stream(data)),
            _ => {}
        }
        Ok(())
    }

    /// Adds the blocks of a whole message that did not arrive in events of their own.
    fn whole(&mut self, message: &Value, out: &mut Batch) {
        let known = self.ended.len() + self.blocks.len();
        let blocks = message["content"].as_array().into_iter().flatten();
        for (index, block) in (0..).zip(blocks).skip(known) {
            self.start(Some(index), block.clone(), out);
            self.stop(Some(index), out);
        }
    }

    /// Ends the stream.
    pub fn end(&mut self, out: &mut Batch) -> Result<(), Failure> {
        while let Some((&index, _)) = self.blocks.first_key_value() {
            self.stop(index, out);
        }
        self.hand_back(out);
        if self.finished || self.done {
            Ok(())
        } else {
            Err(fault::truncated())
        }
    }

    fn start(&mut self, index: Option<i64>, block: Value, out: &mut Batch) {
        if !block.is_object() {
            return;
        }
        // Some hosts give every block the same index, and no end.
        if self.blocks.contains_key(&index) {
            self.stop(index, out);
        }
        let text = |field: &str| block[field].as_str().unwrap_or_default().to_owned();
        let state = match block["type"].as_str().unwrap_or_default() {
            "text" => {
                let text = text("text");
                out.text(&text);
                Block::Text(text)
            }
            "thinking" => {
                let (text, signature) = (text("thinking"), text("signature"));
                out.reasoning(&text);
                Block::Thinking { text, signature }
            }
            "tool_use" => {
                let slot = self.calls;
                self.calls += 1;
                out.push(ModelEvent::CallStart {
                    slot,
                    id: text("id"),
                    name: text("name"),
                });
                let whole = block["input"].as_object().filter(|input| !input.is_empty());
                Block::Call {
                    slot,
                    whole: whole.map(|_| block["input"].to_string()),
                    fragments: Fragments::default(),
                }
            }
            _ => Block::Other {
                block,
                input: String::new(),
            },
        };
        self.blocks.insert(index, state);
    }

    fn delta(&mut self, index: Option<i64>, delta: &Delta<'_>, out: &mut Batch) {
        out.text(delta.text.plain());
        out.reasoning(delta.thinking.plain());
        match self.blocks.get_mut(&index) {
            Some(Block::Text(text)) => text.push_str(delta.text.plain()),
            Some(Block::Thinking { text, signature }) => {
                text.push_str(delta.thinking.plain());
                signature.push_str(delta.signature.plain());
            }
            Some(Block::Call {
                slot,
                whole,
                fragments,
            }) => {
                let fragment = delta.partial_json.plain();
                if !fragment.is_empty() {
                    *whole = None;
                }
                out.arguments(*slot, &fragments.add(fragment));
            }
            Some(Block::Other { input, .. }) => input.push_str(delta.partial_json.plain()),
            None => {}
        }
    }

    fn stop(&mut self, index: Option<i64>, out: &mut Batch) {
        match self.blocks.remove(&index) {
            Some(Block::Text(text)) => self.ended.push(json!({ "type": "text", "text": text })),
            Some(Block::Thinking { text, signature }) => {
                self.ended
                    .push(json!({ "type": "thinking", "thinking": text, "signature": signature }));
            }
            Some(Block::Call {
                slot,
                whole,
                mut fragments,
            }) => {
                out.arguments(slot, &fragments.end());
                self.ended.push(json!({ "type": "tool_use", "slot": slot }));
                out.arguments(slot, &whole.unwrap_or_default());
                out.push(ModelEvent::CallEnd { slot });
            }
            Some(Block::Other { mut block, input }) => {
                if let Ok(input) = serde_json::from_str(&input) {
                    block["input"] = input;
                }
                self.ended.push(block);
            }
            None => {}
        }
    }

    /// Sends the blocks back in order, if that differs from text before calls.
    fn hand_back(&mut self, out: &mut Batch) {
        let ended = std::mem::take(&mut self.ended);
        if ended
            .iter()
            .all(|block| matches!(block["type"].as_str(), Some("text" | "tool_use")))
        {
            return;
        }
        for item in ended {
            out.push(ModelEvent::ReasoningItem(ReasoningItem::new(item)));
        }
    }

    fn finish(&mut self, reason: &str, out: &mut Batch) -> Result<(), Failure> {
        if reason.is_empty() {
            return Ok(());
        }
        self.finished = true;
        out.finish(reason)
    }

    fn usage(&mut self, usage: &Value, out: &mut Batch) {
        if !usage.is_object() {
            return;
        }
        let (before, tokens) = (self.tokens, &mut self.tokens);
        for (number, pointer) in [
            (&mut tokens.input, "/input_tokens"),
            (&mut tokens.cached, "/cache_read_input_tokens"),
            (&mut tokens.written, "/cache_creation_input_tokens"),
            (&mut tokens.output, "/output_tokens"),
            (
                &mut tokens.reasoning,
                "/output_tokens_details/thinking_tokens",
            ),
        ] {
            *number = usage.pointer(pointer).and_then(count).unwrap_or(*number);
        }
        let input = |tokens: &Usage| tokens.input + tokens.cached + tokens.written;
        if input(tokens) == 0 {
            // Some hosts report the input at the start, and none at the end.
            (tokens.input, tokens.cached, tokens.written) =
                (before.input, before.cached, before.written);
        }
        tokens.cost = usage["cost"].as_f64().or(tokens.cost);
        out.push(ModelEvent::Usage(Usage {
            input: input(tokens),
            ..*tokens
        }));
    }
}

/// The deltas that nearly all events are, as Anthropic writes them.
type Begin = (&'static str, for<'a> fn(Text<'a>) -> Delta<'a>);
const DELTAS: [Begin; 3] = [
    (r#"text_delta","text":""#, |text| Delta {
        text,
        ..Delta::default()
    }),
    (r#"thinking_delta","thinking":""#, |thinking| Delta {
        thinking,
        ..Delta::default()
    }),
    (r#"input_json_delta","partial_json":""#, |partial_json| {
        Delta {
            partial_json,
            ..Delta::default()
        }
    }),
];

/// Reads a delta without escapes several times as fast as the parser, which reads everything else.
fn plain_delta(data: &str) -> Option<(i64, Delta<'_>)> {
    let rest = data.strip_prefix(r#"{"type":"content_block_delta","index":"#)?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (index, rest) = rest.split_at_checked(digits)?;
    let rest = rest.strip_prefix(r#","delta":{"type":""#)?;
    let (rest, delta) = DELTAS
        .iter()
        .find_map(|(begin, delta)| Some((rest.strip_prefix(begin)?, delta)))?;
    let (text, end) = rest.split_at_checked(memchr2(b'"', b'\\', rest.as_bytes())?)?;
    let is_whole = end.strip_prefix("\"}")?.trim_start() == "}"
        && !text.bytes().any(|byte| byte.is_ascii_control());
    is_whole.then_some((index.parse().ok()?, delta(Text::Plain(text.into()))))
}

fn value(raw: Option<&RawValue>) -> Value {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_path_agrees_with_the_parser() {
        for (data, is_quick) in [
            (
                r#"{"type":"content_block_delta","index":12,"delta":{"type":"text_delta","text":"é <b>"}}"#,
                true,
            ),
            (
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":""}     }"#,
                true,
            ),
            (
                r#"{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"hm"}}"#,
                true,
            ),
            (
                r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
                true,
            ),
            (
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\n"}}"#,
                false,
            ),
            (
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a","x":1}}"#,
                false,
            ),
            (
                r#"{"type":"content_block_delta","index":-1,"delta":{"type":"text_delta","text":"a"}}"#,
                false,
            ),
            (
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}},"#,
                false,
            ),
        ] {
            let quick = plain_delta(data);
            assert_eq!(quick.is_some(), is_quick, "{data}");
            let Some((index, delta)) = quick else {
                continue;
            };
            let parsed: Data<'_> = serde_json::from_str(data).unwrap();
            let slow = parsed.delta.unwrap();
            assert_eq!(Some(index), parsed.index.0);
            let words = |delta: &Delta<'_>| {
                [&delta.text, &delta.thinking, &delta.partial_json]
                    .map(|text| text.plain().to_owned())
            };
            assert_eq!(words(&delta), words(&slow), "{data}");
        }
    }
}
