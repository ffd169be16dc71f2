//! Whether a call in the text of an answer may be another's words: something that the model has read.

use serde_json::Value;

use super::Inputs;
use crate::calls::text::{may_come_from, says};
use crate::model::{Arguments, Message, ToolCall};
use crate::tools::{self, Resolved};

/// Whether one of these calls changes something, may come from what was read, and was not asked for by a person. One that
/// the model repeats after it was told of it is meant.
pub(super) fn may_be_read(inputs: &Inputs<'_>, calls: &[(String, String)]) -> bool {
    let (mut asked, mut read, mut last) = (Vec::new(), Vec::new(), None);
    for entry in inputs.history {
        let mut texts = entry.read_texts().into_iter();
        match entry.outline() {
            // What is attached stands behind the person's own words.
            Message::User { .. } => asked.extend(texts.next()),
            Message::Results { .. } => {}
            Message::Assistant(message) => {
                last = Some(message);
                continue;
            }
        }
        read.extend(texts);
    }
    calls.iter().any(|(name, json)| {
        let written = serde_json::from_str(json).unwrap_or_default();
        let Ok(Resolved {
            tool,
            arguments: Value::Object(arguments),
            ..
        }) = tools::resolve(inputs.tools, name, written)
        else {
            return false;
        };
        let is_same = |call: &ToolCall| {
            call.name == tool.name() && call.arguments == Arguments::Object(arguments.clone())
        };
        !tool.kind().is_read_only()
            && !last.is_some_and(|message| message.calls.iter().any(is_same))
            && read.iter().any(|text| may_come_from(&arguments, text))
            && !asked.iter().any(|text| says(text, &arguments))
    })
}
