//! Whether a call in the text of an answer may be another's words: something that the model has read.

use serde_json::{Map, Value};

use super::Inputs;
use crate::agent::compact::{is_summary, said};
use crate::calls::text::{may_come_from, says};
use crate::model::collect::is_given;
use crate::model::{Arguments, AssistantMessage, Message, Part, ToolCall};
use crate::tools::Tool;

/// Whether a call changes something, may come from what was read, and was not asked for by a person. If the model also
/// sends calls as such, every call may: it has no need to write one, and no comparison finds a quotation that it
/// decoded. After a compaction, what was read is unknown. A call that the model repeats after it was told about it is
/// meant.
pub(super) fn may_be_read(
    inputs: &Inputs<'_>,
    tool: &dyn Tool,
    arguments: &Map<String, Value>,
) -> bool {
    if tool.kind().is_read_only() {
        return false;
    }
    let (mut asked, mut read) = (Vec::new(), Vec::new());
    let (mut last, mut may_any) = (None, false);
    for entry in inputs.history {
        let mut texts = entry.read_texts().into_iter();
        match entry.message() {
            // Attachments follow the person's own words, which may come with instructions or a summary. The model has
            // read its own earlier answers, and nobody asked for what is in a note of ours.
            Message::User { parts } if matches!(parts.first(), Some(Part::Text { .. })) => {
                let own = texts.next().unwrap_or_default();
                may_any |= is_summary(&own);
                let words = said(&Message::text(own.as_str()));
                if words != [own.trim()] {
                    read.push(own);
                }
                asked.extend(words);
                read.extend(last.map(|message: &AssistantMessage| message.text.clone()));
            }
            Message::User { .. } | Message::Results { .. } => {}
            Message::Assistant(message) => {
                may_any |= message.calls.iter().any(|call| is_given(&call.id));
                last = Some(message);
                continue;
            }
        }
        read.extend(texts);
    }
    let is_same = |call: &ToolCall| {
        call.name == tool.name() && call.arguments == Arguments::Object(arguments.clone())
    };
    !last.is_some_and(|message| message.calls.iter().any(is_same))
        && read
            .iter()
            .any(|text| may_any || may_come_from(arguments, text))
        && !asked.iter().any(|text| says(text, arguments))
}
