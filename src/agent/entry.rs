//! A message of the conversation together with its bytes, which are the same in every request.
//!
//! Invariant: a long text is stored once, as JSON in the bytes. It is read back from there when the full message is
//! needed, which is rare: for the journal, for compaction, for another model.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use crate::model::{Arguments, Message, Part, Provider};
use crate::text::repair::PATCH;

/// Texts up to this length are stored twice, in bytes.
const SHORT: usize = 256;

/// A message of the conversation. Immutable.
#[derive(Debug)]
pub struct Entry {
    outline: Message,
    encoded: Bytes,
    /// Where in the bytes the [`texts`] are that the outline lacks.
    places: Vec<Option<Range<usize>>>,
}

impl Entry {
    /// Encodes the message in this provider's API.
    pub fn new(mut message: Message, provider: &Provider) -> Arc<Self> {
        let encoded = provider.encode(&message);
        let mut end = 0;
        let places = texts(&mut message).into_iter().map(|text| {
            let place = place(text, &encoded, end)?;
            *text = String::new();
            end = place.end;
            Some(place)
        });
        let places = places.collect();
        Arc::new(Self {
            outline: message,
            encoded,
            places,
        })
    }

    /// The message without the long texts of a person or a tool.
    pub fn outline(&self) -> &Message {
        &self.outline
    }

    /// The complete message.
    pub fn message(&self) -> Cow<'_, Message> {
        if self.places.iter().all(Option::is_none) {
            return Cow::Borrowed(&self.outline);
        }
        let mut message = self.outline.clone();
        for (text, place) in texts(&mut message).into_iter().zip(&self.places) {
            if let Some(place) = place {
                *text = self.text(place);
            }
        }
        Cow::Owned(message)
    }

    /// The texts that an answer may quote: of a person, a file, a tool, and what the model wrote into files.
    pub fn read_texts(&self) -> Vec<String> {
        match self.message().into_owned() {
            Message::User { parts } => {
                let text = |part| match part {
                    Part::Text { text } | Part::Note { text } => Some(text),
                    Part::Image { .. } => None,
                };
                parts.into_iter().filter_map(text).collect()
            }
            Message::Results { results } => {
                results.into_iter().map(|result| result.content).collect()
            }
            Message::Assistant(message) => {
                let mut texts = Vec::new();
                for call in message.calls {
                    if let Arguments::Object(arguments) = call.arguments {
                        written(&Value::Object(arguments), &mut texts);
                    }
                }
                texts
            }
        }
    }

    /// The encoded bytes.
    pub fn encoded(&self) -> &Bytes {
        &self.encoded
    }

    /// The sizes of its images' data, in bytes.
    pub fn images(&self) -> impl Iterator<Item = usize> {
        let parts: &[Part] = if let Message::User { parts } = &self.outline {
            parts
        } else {
            &[]
        };
        parts
            .iter()
            .zip(&self.places)
            .filter_map(|(part, place)| match part {
                Part::Image { data, .. } => Some(place.as_ref().map_or(data.len(), Range::len)),
                Part::Text { .. } | Part::Note { .. } => None,
            })
    }

    fn text(&self, place: &Range<usize>) -> String {
        let json = [
            b"\"",
            self.encoded.get(place.clone()).unwrap_or_default(),
            b"\"",
        ]
        .concat();
        serde_json::from_slice(&json).expect("what was found as the JSON of a text is JSON")
    }
}

/// The texts in the arguments of a call. A patch is a call by itself, so it has no first line here.
fn written(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.replacen(PATCH.0, "", 1)),
        Value::Array(items) => items.iter().for_each(|item| written(item, texts)),
        Value::Object(fields) => fields.values().for_each(|value| written(value, texts)),
        _ => {}
    }
}

/// The texts of a message that may be long, in the order they have in its bytes.
fn texts(message: &mut Message) -> Vec<&mut String> {
    match message {
        Message::User { parts } => parts.iter_mut().map(words).collect(),
        Message::Assistant(_) => Vec::new(),
        Message::Results { results } => results
            .iter_mut()
            .map(|result| &mut result.content)
            .collect(),
    }
}

fn words(part: &mut Part) -> &mut String {
    match part {
        Part::Text { text } | Part::Note { text } => text,
        Part::Image { data, .. } => data,
    }
}

/// Where a long text is in `encoded`, from `from` on, without its quotes: an API may embed it in a longer string.
fn place(text: &str, encoded: &[u8], from: usize) -> Option<Range<usize>> {
    if text.len() <= SHORT {
        return None;
    }
    let json = serde_json::to_vec(text).expect("a text always serializes");
    let inside = json.get(1..json.len() - 1)?;
    let start = from + memchr::memmem::find(encoded.get(from..)?, inside)?;
    Some(start..start + inside.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{Api, Endpoint, ToolResult};

    fn providers() -> impl Iterator<Item = Provider> {
        let endpoint = |api| Endpoint::new("p", api, "http://localhost/v1", "m");
        [Api::Chat, Api::Responses, Api::Messages]
            .into_iter()
            .map(move |api| Provider::http(endpoint(api)))
    }

    fn long_text() -> impl Strategy<Value = String> {
        (any::<String>(), 0..200_usize).prop_map(|(text, times)| text.repeat(times))
    }

    fn message() -> impl Strategy<Value = Message> {
        let part = prop_oneof![
            long_text().prop_map(|text| Part::Text { text }),
            "[A-Za-z0-9+/]{0,999}".prop_map(|data| Part::Image {
                mime_type: "image/png".into(),
                data
            }),
        ];
        let result = (long_text(), any::<bool>()).prop_map(|(content, is_error)| ToolResult {
            call_id: "c".into(),
            content,
            is_error,
            images: Vec::new(),
        });
        prop_oneof![
            prop::collection::vec(part, 0..5).prop_map(|parts| Message::User { parts }),
            prop::collection::vec(result, 0..5).prop_map(|results| Message::Results { results }),
        ]
    }

    proptest! {
        #[test]
        fn messages_survive_encoding(message in message()) {
            for provider in providers() {
                let entry = Entry::new(message.clone(), &provider);
                prop_assert_eq!(&*entry.message(), &message);
                prop_assert_eq!(entry.encoded(), &provider.encode(&message));
            }
        }
    }

    #[test]
    fn long_texts_are_stored_once() {
        let text = "a \"line\"\n".repeat(100);
        let results = [&text, &text].map(|text| ToolResult {
            call_id: "c".into(),
            content: text.clone(),
            is_error: false,
            ..ToolResult::default()
        });
        for provider in providers() {
            let entry = Entry::new(
                Message::Results {
                    results: results.to_vec(),
                },
                &provider,
            );
            let Message::Results { results: outline } = entry.outline() else {
                panic!("results stay results")
            };
            assert!(outline.iter().all(|result| result.content.capacity() == 0));
        }
    }

    #[test]
    fn images_are_counted_in_prompts_and_results() {
        let image = |length| Part::Image {
            mime_type: "image/png".into(),
            data: "A".repeat(length),
        };
        for provider in providers() {
            let entry = Entry::new(
                Message::User {
                    parts: vec![image(3), image(3000)],
                },
                &provider,
            );
            assert_eq!(entry.images().collect::<Vec<_>>(), [3, 3000]);
        }
    }
}
