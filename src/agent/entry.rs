//! A message of the conversation together with its bytes, which are the same in every request.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use crate::model::{Arguments, Message, Part, Provider};
use crate::text::repair::PATCH;

/// A message of the conversation. Immutable.
#[derive(Debug)]
pub struct Entry {
    message: Arc<Message>,
    encoded: Bytes,
}

impl Entry {
    /// Encodes the message in this provider's API.
    pub fn new(message: impl Into<Arc<Message>>, provider: &Provider) -> Arc<Self> {
        let message = message.into();
        let encoded = provider.encode(&message);
        Arc::new(Self { message, encoded })
    }

    /// The message.
    pub fn message(&self) -> &Message {
        &self.message
    }

    /// The same, for the journal and others that keep it.
    pub fn share(&self) -> Arc<Message> {
        Arc::clone(&self.message)
    }

    /// The texts that an answer may quote: of a person, a file, a tool, and what the model wrote into files.
    pub fn read_texts(&self) -> Vec<String> {
        match &*self.message {
            Message::User { parts } => {
                let text = |part: &Part| match part {
                    Part::Text { text } | Part::Note { text } => Some(text.clone()),
                    Part::Image(_) => None,
                };
                parts.iter().filter_map(text).collect()
            }
            Message::Results { results } => {
                let contents = results.iter().map(|result| result.content.clone());
                contents.collect()
            }
            Message::Assistant(message) => {
                let mut texts = Vec::new();
                for call in &message.calls {
                    if let Arguments::Object(arguments) = &call.arguments {
                        arguments
                            .values()
                            .for_each(|value| written(value, &mut texts));
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
    pub fn images(&self) -> Vec<usize> {
        match &*self.message {
            Message::User { parts } => {
                let data = |part: &Part| match part {
                    Part::Image(image) => Some(image.data.len()),
                    Part::Text { .. } | Part::Note { .. } => None,
                };
                parts.iter().filter_map(data).collect()
            }
            Message::Results { results } => {
                let images = results.iter().flat_map(|result| &result.images);
                images.map(|image| image.data.len()).collect()
            }
            Message::Assistant(_) => Vec::new(),
        }
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
