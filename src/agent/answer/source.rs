//! Whether a call in the text of an answer may be another's words: something that the model has read.

use serde_json::{Map, Value};

use super::Inputs;
use crate::agent::compact::{is_mixed, is_summary};
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
        match entry.message() {
            Message::User { parts } => {
                may_any |= is_summary(parts);
                for part in parts {
                    match part {
                        Part::Text { text } => {
                            let is_mixed = is_mixed(text);
                            may_any |= is_mixed;
                            if is_mixed { &mut read } else { &mut asked }.push(text);
                            // The model has read its own earlier answers.
                            read.extend(last.map(|message: &AssistantMessage| &message.text));
                        }
                        Part::Note { text } => read.push(text),
                        Part::Image(_) => {}
                    }
                }
            }
            Message::Results { results } => {
                read.extend(results.iter().map(|result| &result.content));
            }
            Message::Assistant(message) => {
                may_any |= message.calls.iter().any(|call| is_given(&call.id));
                last = Some(message);
            }
        }
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
