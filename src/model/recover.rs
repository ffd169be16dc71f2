//! Tool calls that small models write as text: taken as calls when, and only when, the answer is exactly that.
//!
//! Text is held back only while it can still turn out to be a call; ordinary text leaves with its first letters.

use std::sync::Arc;

use serde_json::Value;

use super::ModelEvent;
use super::batch::Batch;

/// Stands between a dialect and the way out.
#[derive(Debug)]
pub(super) struct Recovery {
    /// Names of the tools the model has; text that names another is text.
    tools: Arc<[String]>,
    /// Text that may still be a call; `None` once the answer is known to be an ordinary one.
    held: Option<String>,
}

const OPEN: &str = "<tool_call>";
const CLOSE: &str = "</tool_call>";
const FENCES: [&str; 3] = ["```json", "```tool_call", "```"];

impl Recovery {
    pub(super) fn new(tools: Arc<[String]>) -> Self {
        let held = (!tools.is_empty()).then(String::new);
        Self { tools, held }
    }

    /// Whether events have to come through here at all.
    pub(super) fn is_watching(&self) -> bool {
        self.held.is_some()
    }

    /// Passes events on, except for text that may be a call.
    pub(super) fn pass(&mut self, events: &mut Batch, out: &mut Batch) {
        while let Some(event) = events.pop() {
            match (event, &mut self.held) {
                (ModelEvent::Text(text), Some(held)) => {
                    held.push_str(&text);
                    if !may_be_call(held) {
                        self.release(out);
                    }
                }
                (ModelEvent::Text(text), None) => out.text(&text),
                (ModelEvent::Finish(finish), Some(_)) => {
                    self.settle(out);
                    out.push(ModelEvent::Finish(finish));
                }
                (event @ (ModelEvent::CallStart { .. } | ModelEvent::Refusal(_)), Some(_)) => {
                    self.release(out);
                    out.push(event);
                }
                (event, _) => out.push(event),
            }
        }
    }

    /// The answer is an ordinary one.
    pub(super) fn release(&mut self, out: &mut Batch) {
        out.text(&self.held.take().unwrap_or_default());
    }

    /// The answer is complete: what is held is a call, or text after all.
    pub(super) fn settle(&mut self, out: &mut Batch) {
        let held = self.held.take().unwrap_or_default();
        let Some(calls) = calls(held.trim()).filter(|calls| calls.iter().all(|call| self.tools.contains(&call.name)))
        else {
            return out.text(&held);
        };
        let names = calls.iter().map(|call| call.name.as_str()).collect::<Vec<_>>().join(", ");
        out.push(ModelEvent::Notice(format!("the model wrote a tool call as text; it was taken as one: {names}")));
        for (slot, call) in calls.into_iter().enumerate() {
            out.push(ModelEvent::CallStart { slot, id: String::new(), name: call.name });
            out.arguments(slot, &call.arguments);
            out.push(ModelEvent::CallEnd { slot });
        }
    }
}

#[derive(Debug, PartialEq)]
struct TextCall {
    name: String,
    arguments: String,
}

/// Whether an answer that begins like this can still become a call.
fn may_be_call(text: &str) -> bool {
    let text = text.trim_start();
    let begins = |mark: &str| text.starts_with(mark) || mark.starts_with(text);
    begins(OPEN) || FENCES.iter().any(|fence| may_be_fenced(text, fence))
}

/// Fenced JSON that does not begin with the name of a call is held no longer than that.
fn may_be_fenced(text: &str, fence: &str) -> bool {
    let Some(inside) = text.strip_prefix(fence) else { return fence.starts_with(text) };
    let inside: String = inside.chars().filter(|c| !c.is_whitespace()).take(NAME.len()).collect();
    inside.starts_with(NAME) || NAME.starts_with(&inside)
}

const NAME: &str = "{\"name\":";

fn calls(text: &str) -> Option<Vec<TextCall>> {
    if let Some(json) = FENCES.iter().find_map(|fence| text.strip_prefix(fence)?.strip_suffix("```")) {
        return Some(vec![call(json)?]);
    }
    let mut calls = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (json, after) = rest.strip_prefix(OPEN)?.split_once(CLOSE)?;
        calls.push(call(json)?);
        rest = after.trim_start();
    }
    (!calls.is_empty()).then_some(calls)
}

/// A name, arguments, and nothing else.
fn call(json: &str) -> Option<TextCall> {
    let Value::Object(mut fields) = serde_json::from_str(json.trim()).ok()? else { return None };
    let Some(Value::String(name)) = fields.remove("name") else { return None };
    let arguments = fields.remove("arguments").or_else(|| fields.remove("parameters"))?;
    (arguments.is_object() && fields.is_empty()).then(|| TextCall { name, arguments: arguments.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Finish;

    /// What leaves while the text comes letter by letter, and what leaves at the end.
    fn run(text: &str) -> (String, Vec<ModelEvent>) {
        let mut recovery = Recovery::new(["f".to_owned(), "g".to_owned()].into());
        let (mut events, mut out, mut streamed) = (Batch::default(), Batch::default(), String::new());
        for letter in text.chars() {
            events.text(&letter.to_string());
            recovery.pass(&mut events, &mut out);
            while let Some(event) = out.pop() {
                let ModelEvent::Text(text) = event else { panic!("{event:?} before the end") };
                streamed.push_str(&text);
            }
        }
        events.push(ModelEvent::Finish(Finish::Stop));
        recovery.pass(&mut events, &mut out);
        (streamed, std::iter::from_fn(|| out.pop()).collect())
    }

    #[track_caller]
    fn is_call(text: &str, names: &[&str]) {
        let (streamed, end) = run(text);
        assert_eq!(streamed, "", "{text}");
        let started: Vec<_> = end
            .iter()
            .filter_map(|event| match event {
                ModelEvent::CallStart { name, .. } => Some(name.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(started, names, "{text}");
        assert!(matches!(end.first(), Some(ModelEvent::Notice(_))) && !end.contains(&ModelEvent::Text(text.into())));
    }

    #[track_caller]
    fn is_text(text: &str) {
        let (streamed, end) = run(text);
        let rest = match end.first() {
            Some(ModelEvent::Text(text)) => text.as_str(),
            _ => "",
        };
        assert_eq!(format!("{streamed}{rest}"), text);
        assert!(!end.iter().any(|event| matches!(event, ModelEvent::CallStart { .. })), "{text}");
    }

    #[test]
    fn text_that_is_exactly_a_call_becomes_one() {
        is_call(r#"<tool_call>{"name":"f","arguments":{"x":1}}</tool_call>"#, &["f"]);
        is_call("\n<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>\n", &["f"]);
        is_call(
            r#"<tool_call>{"name":"f","arguments":{}}</tool_call> <tool_call>{"name":"g","parameters":{}}</tool_call>"#,
            &["f", "g"],
        );
        is_call("```json\n{\"name\": \"g\", \"arguments\": {\"x\": 1}}\n```", &["g"]);
    }

    #[test]
    fn everything_else_stays_text() {
        is_text("Sure: <tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>");
        is_text("<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call> Done.");
        is_text("<tool_call>{\"name\":\"unknown\",\"arguments\":{}}</tool_call>");
        is_text("<tool_call>{\"name\":\"f\"");
        is_text("```json\n{\"name\": \"f\"}\n```");
        is_text("```json\n{\"name\": \"f\", \"arguments\": {}, \"more\": 1}\n```");
    }

    #[test]
    fn ordinary_text_is_not_held_back() {
        for text in ["Hello", "<b>", "```rust\nfn main() {}", "```json\n{\"version\": 1}", "{\"name\":"] {
            assert_eq!(run(text).0, text);
        }
    }
}
