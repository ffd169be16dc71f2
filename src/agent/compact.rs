//! Compaction of a conversation. Pure and deterministic.
//!
//! Old tool output goes first, because the model can read a file again. Then everything but the newest messages is
//! replaced by a summary in the model's words, with the plan and the files taken from the calls, so that no model has
//! to remember them.
//!
//! Invariant: the result is a conversation like any other, with every call beside its result.

use std::sync::Arc;

use serde_json::Value;

use super::prompt::{PLAN, note};
use super::{Entry, guidance};
use crate::model::{
    Arguments, AssistantMessage, Image, Message, Part, Provider, ToolCall, ToolResult,
};
use crate::text::without_middle;
use crate::tools::{PlanEntry, Tool, find};

/// Bytes per token, roughly.
const BYTES: u64 = 4;
/// The cost of an image in tokens, roughly.
const IMAGE: u64 = 1500;
/// Results up to this length are not worth removing, in bytes.
const SHORT: usize = 400;
/// Longer texts are reduced to their beginning and end before summarizing, in bytes.
const LONG: usize = 8000;
/// How many files a summary names.
const FILES: usize = 30;

/// How many bytes of the person's own messages a summary contains.
const WORDS: usize = 16_000;

/// The request for a summary.
pub(super) const ASK: &str = "Summarize the conversation so far for yourself: your summary will replace it, \
    except for the project's instructions and the user's own messages, which are kept word for word. Of a long message, only the \
    beginning and the end are kept; of many messages, only the first and the latest. Use these headings:\n\
    ## Task\nWhat the user wants now, with constraints and what they rejected, and the decisions made so far, with reasons.\n\
    ## State\nWhat is done, what works, what is half done.\n\
    ## Files\nEach relevant file, as path:line, with what it contains and what was changed.\n\
    ## Commands\nThose that worked and those that failed, with the relevant output.\n\
    ## Next steps\nWhat to do next, in order.\n\
    Leave out anything that can be read again. Don't call tools.";

/// What is added to it after a summary that was cut off.
pub(super) const BRIEFLY: &str = "\nYour last summary was cut off: use at most 300 words.";

/// Introduces a person's message in a summary.
const SAID: &str = "I said:";

/// Whether a person's message is the summary that replaced a conversation.
pub(super) fn is_summary(parts: &[Part]) -> bool {
    parts.contains(&note(SAID))
}

/// Whether a text of an earlier journal has more than the person's words: a summary, or instructions.
pub(super) fn is_mixed(text: &str) -> bool {
    let mut lines = text.lines();
    lines.any(|line| line == SAID || guidance::is_block(line))
}

/// What a summary must not paraphrase: instructions that came with prompts, and the person's own messages; if space is
/// short, the first and the last ones.
pub(super) fn verbatim(old: &[Arc<Entry>]) -> Vec<Part> {
    let (mut kept, mut words) = (Vec::new(), Vec::new());
    for entry in old {
        let Message::User { parts } = entry.message() else {
            continue;
        };
        for part in parts {
            match part {
                Part::Text { text } => words.push(text.trim()),
                Part::Note { text } if guidance::is_block(text) && !kept.contains(part) => {
                    kept.push(part.clone());
                }
                Part::Note { .. } | Part::Image(_) => {}
            }
        }
    }
    // A short conversation would not get shorter.
    let size = old.iter().map(|entry| entry.encoded().len()).sum::<usize>();
    let room = WORDS.min(size / 2);
    let words = words.into_iter().filter(|words| !words.is_empty());
    let words = words.map(|words| shortened(words, room / 2)).collect();
    for text in fitting(words, room) {
        kept.extend([note(SAID), Part::Text { text }]);
    }
    kept
}

/// Reduces a long message to its beginning and end.
fn shortened(words: &str, room: usize) -> String {
    if room < SHORT {
        words.to_owned()
    } else {
        middle_out(words, room.min(LONG))
    }
}

/// The first and the last of `words` that fit together, in their order.
fn fitting(words: Vec<String>, mut room: usize) -> Vec<String> {
    let order = (0..words.len().min(1)).chain((1..words.len()).rev());
    let mut fit: Vec<usize> = order
        .take_while(|&index| {
            let length = words.get(index).map_or(0, String::len);
            let fits = length <= room;
            room = room.saturating_sub(length);
            fits
        })
        .collect();
    fit.sort_unstable();
    let mut words: Vec<Option<String>> = words.into_iter().map(Some).collect();
    fit.into_iter()
        .filter_map(|index| words.get_mut(index)?.take())
        .collect()
}

/// The approximate size of a message in tokens.
pub(super) fn tokens(entry: &Entry) -> u64 {
    text_tokens(entry) + entry.images().len() as u64 * IMAGE
}

/// The same without its images, which count for less with some models.
pub(super) fn text_tokens(entry: &Entry) -> u64 {
    let images: usize = entry.images().iter().sum();
    entry.encoded().len().saturating_sub(images) as u64 / BYTES
}

/// Where the newest messages with at most `keep` tokens begin: never at results, which belong to the calls before them.
pub(super) fn tail(entries: &[Arc<Entry>], keep: u64) -> usize {
    let mut sum = 0;
    let mut start = entries.len();
    for (index, entry) in entries.iter().enumerate().rev() {
        sum += tokens(entry);
        if sum > keep {
            break;
        }
        if !matches!(entry.message(), Message::Results { .. }) {
            start = index;
        }
    }
    start
}

/// The entries, with another message in the place of each that `change` changes; `None` if it changes none.
fn changed(
    entries: &[Arc<Entry>],
    provider: &Provider,
    change: impl Fn(&Message) -> Message,
) -> Option<Vec<Arc<Entry>>> {
    let mut any = false;
    let mut all = Vec::new();
    for entry in entries {
        let message = change(entry.message());
        if message == *entry.message() {
            all.push(Arc::clone(entry));
        } else {
            any = true;
            all.push(Entry::new(message, provider));
        }
    }
    any.then_some(all)
}

/// The message with other parts and results.
fn with(
    message: &Message,
    part: impl Fn(&Part) -> Part,
    result: impl Fn(&ToolResult) -> ToolResult,
) -> Message {
    match message {
        Message::User { parts } => Message::User {
            parts: parts.iter().map(part).collect(),
        },
        Message::Results { results } => Message::Results {
            results: results.iter().map(result).collect(),
        },
        Message::Assistant(_) => message.clone(),
    }
}

/// The conversation without the tool output before `start`; `None` if that would save too little.
pub(super) fn elide(
    entries: &[Arc<Entry>],
    start: usize,
    provider: &Provider,
) -> Option<Vec<Arc<Entry>>> {
    let (old, new) = entries.split_at_checked(start)?;
    let mut elided = changed(old, provider, |message| {
        with(message, Part::clone, without_output)
    })?;
    elided.extend_from_slice(new);
    Some(elided)
}

fn without_output(result: &ToolResult) -> ToolResult {
    let length = result.content.len();
    if length <= SHORT {
        return result.clone();
    }
    let line = result.content.lines().next().unwrap_or_default();
    let line: String = line.chars().take(80).collect();
    ToolResult {
        content: format!("{line}\n[{length} bytes left out to save room; call again if needed]"),
        ..result.clone()
    }
}

/// The conversation without its images; `None` if there are none.
pub(super) fn without_images(
    entries: &[Arc<Entry>],
    provider: &Provider,
) -> Option<Vec<Arc<Entry>>> {
    changed(entries, provider, |message| {
        with(message, in_words, result_in_words)
    })
}

/// Converts a part to one that every model accepts.
fn in_words(part: &Part) -> Part {
    match part {
        Part::Text { .. } | Part::Note { .. } => part.clone(),
        Part::Image(Image { mime_type, .. }) => note(format!("(an image, {mime_type})")),
    }
}

/// The same for a result.
fn result_in_words(result: &ToolResult) -> ToolResult {
    let images = result
        .images
        .iter()
        .map(|image| format!("\n(an image, {})", image.mime_type));
    let content = std::iter::once(result.content.clone())
        .chain(images)
        .collect();
    ToolResult {
        content,
        images: Vec::new(),
        ..result.clone()
    }
}

/// The text to summarize: `entries` with long texts cut in the middle.
pub(super) fn digest(entries: &[Arc<Entry>], provider: &Provider) -> Vec<Arc<Entry>> {
    let digest = changed(entries, provider, |message| match message {
        Message::Assistant(answer) => Message::Assistant(AssistantMessage {
            text: middle_out(&answer.text, LONG),
            ..answer.clone()
        }),
        _ => with(message, short_part, short_result),
    });
    digest.unwrap_or_else(|| entries.to_vec())
}

fn short_part(part: &Part) -> Part {
    match part {
        Part::Text { text } => Part::Text {
            text: middle_out(text, LONG),
        },
        Part::Note { text } => note(middle_out(text, LONG)),
        Part::Image(_) => in_words(part),
    }
}

fn short_result(result: &ToolResult) -> ToolResult {
    let result = result_in_words(result);
    ToolResult {
        content: middle_out(&result.content, LONG),
        ..result
    }
}

fn middle_out(text: &str, longest: usize) -> String {
    match without_middle(text, longest / 2, longest / 2) {
        Some((head, left_out, end)) => format!("{head}\n[{left_out} bytes left out]\n{end}"),
        None => text.to_owned(),
    }
}

/// The new conversation: the verbatim parts and a summary, followed by `newest`. It still `only_plans` if the old one did.
pub(super) fn summarized(
    mut verbatim: Vec<Part>,
    summary: &str,
    newest: &[Arc<Entry>],
    only_plans: bool,
    provider: &Provider,
) -> Vec<Arc<Entry>> {
    let text = summary.trim();
    // Some templates reject two user messages in a row.
    let newest_message = newest.first().map(|entry| entry.message());
    let answer = if let Some(Message::Assistant(_)) = newest_message {
        verbatim.push(note(format!(
            "The conversation so far, in your own summary:\n\n{text}\n\nContinue with what you were doing."
        )));
        None
    } else {
        verbatim.push(note("What was said and done so far?"));
        Some(Message::answer(text))
    };
    if only_plans {
        verbatim.push(note(PLAN));
    }
    std::iter::once(Message::User { parts: verbatim })
        .chain(answer)
        .map(|message| Entry::new(message, provider))
        .chain(newest.iter().cloned())
        .collect()
}

/// What the calls themselves record: the last state of the plan, and the files read or changed last.
pub(super) fn facts(entries: &[Arc<Entry>], tools: &[Arc<dyn Tool>]) -> String {
    let calls = entries.iter().flat_map(|entry| entry.message().calls());
    let calls: Vec<&ToolCall> = calls.collect();
    let mut text = String::new();
    if let Some(steps) = calls.iter().rev().find_map(|call| plan(call, tools)) {
        text.push_str("\n\nThe plan:");
        for step in steps {
            text += &format!("\n- [{}] {}", step.status, step.content);
        }
    }
    let mut files: Vec<&str> = Vec::new();
    for path in calls
        .iter()
        .rev()
        .filter_map(|call| argument(call, "path")?.as_str())
    {
        if files.len() < FILES && !files.contains(&path) {
            files.push(path);
        }
    }
    if !files.is_empty() {
        text += &format!(
            "\n\nFiles and directories worked with, most recent first: {}",
            files.join(", ")
        );
    }
    text
}

fn plan(call: &ToolCall, tools: &[Arc<dyn Tool>]) -> Option<Vec<PlanEntry>> {
    let Arguments::Object(arguments) = &call.arguments else {
        return None;
    };
    find(tools, &call.name)?.plan(&Value::Object(arguments.clone()))
}

fn argument<'a>(call: &'a ToolCall, name: &str) -> Option<&'a Value> {
    match &call.arguments {
        Arguments::Object(arguments) => arguments.get(name),
        Arguments::Unparsable(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Api, Endpoint};
    use crate::tools::{Editing, all};
    use serde_json::json;

    fn provider() -> Provider {
        Provider::http(Endpoint::new("rehearsal", Api::Chat, "", "script"))
    }

    fn user(text: &str) -> Arc<Entry> {
        Entry::new(Message::text(text), &provider())
    }

    /// An answer with one call, and its result.
    fn round(id: &str, name: &str, arguments: Value, content: &str) -> [Arc<Entry>; 2] {
        let Value::Object(arguments) = arguments else {
            panic!("arguments are an object")
        };
        let call = ToolCall {
            id: id.into(),
            name: name.into(),
            arguments: Arguments::Object(arguments),
        };
        let answer = AssistantMessage {
            calls: vec![call],
            ..AssistantMessage::default()
        };
        let result = ToolResult {
            call_id: id.into(),
            content: content.into(),
            is_error: false,
            ..ToolResult::default()
        };
        [
            Message::Assistant(answer),
            Message::Results {
                results: vec![result],
            },
        ]
        .map(|m| Entry::new(m, &provider()))
    }

    fn conversation() -> Vec<Arc<Entry>> {
        let mut entries = vec![user("change it")];
        entries.extend(round(
            "1",
            "read_file",
            json!({ "path": "a.rs" }),
            &"old line\n".repeat(200),
        ));
        let plan = json!({ "entries": [{ "content": "Find it", "status": "completed" }] });
        entries.extend(round("2", "update_plan", plan, "Plan updated"));
        entries.extend(round(
            "3",
            "edit_file",
            json!({ "path": "b.rs" }),
            &"new line\n".repeat(200),
        ));
        entries
    }

    #[test]
    fn kept_history_never_starts_with_tool_results() {
        let entries = conversation();
        let sizes: Vec<u64> = entries.iter().map(|entry| tokens(entry)).collect();
        for keep in 0..sizes.iter().sum::<u64>() + 2 {
            let start = tail(&entries, keep);
            assert!(sizes[start..].iter().sum::<u64>() <= keep);
            assert!(
                !matches!(
                    entries.get(start).map(|entry| entry.message()),
                    Some(Message::Results { .. })
                ),
                "{keep}"
            );
        }
        assert_eq!(tail(&entries, u64::MAX), 0);
    }

    #[test]
    fn only_old_tool_output_is_dropped() {
        let entries = conversation();
        let elided = elide(&entries, 5, &provider()).unwrap();
        let changed: Vec<_> = (0..entries.len())
            .filter(|n| !Arc::ptr_eq(&entries[*n], &elided[*n]))
            .collect();
        assert_eq!(
            changed,
            [2],
            "what is short and what is new stays, byte for byte"
        );
        let Message::Results { results } = elided[2].message().clone() else {
            panic!("results stay results")
        };
        assert_eq!(
            results[0].content,
            "old line\n[1800 bytes left out to save room; call again if needed]"
        );
        assert!(
            elide(&elided, 5, &provider()).is_none(),
            "there is nothing left to leave out"
        );
    }

    #[test]
    fn a_summary_keeps_the_plan_and_the_files() {
        let entries = conversation();
        let tools = all(Editing::Replacements);
        let summary = format!("  We look for it.\n{}", facts(&entries[..5], &tools));
        let summarized = |old, summary: &str, new| {
            super::summarized(verbatim(old), summary, new, false, &provider())
        };
        let new = summarized(&entries[..5], &summary, &entries[5..]);
        assert_eq!(new.len(), 3, "one message, because an answer follows");
        let text = new[0].read_texts().join("\n\n");
        for part in [
            "I said:\n\nchange it",
            "We look for it.",
            "- [completed] Find it",
            "most recent first: a.rs",
            "Continue with what you were doing",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let whole = summarized(&entries, &facts(&entries, &tools), &[]);
        assert!(
            matches!(whole[1].message(), Message::Assistant(answer) if answer.text.contains("b.rs, a.rs"))
        );
    }

    #[test]
    fn repeated_summaries_keep_instructions_and_user_text() {
        let rules =
            guidance::Rules::new(std::path::Path::new("/w/AGENTS.md"), "Use tabs.").to_string();
        let prompt = Message::User {
            parts: vec![
                note(rules),
                Part::Text {
                    text: "the task".into(),
                },
            ],
        };
        let mut entries = vec![Entry::new(prompt, &provider())];
        entries.extend(round("1", "read_file", json!({ "path": "a.rs" }), "text"));
        entries.push(user("and blue, please"));
        for summary in ["First.", "Second."] {
            entries = summarized(verbatim(&entries), summary, &[], false, &provider());
            let text = String::from_utf8(entries[0].encoded().to_vec()).unwrap();
            for words in ["the task", "and blue, please", "Use tabs."] {
                assert_eq!(text.matches(words).count(), 1, "{words}: {text}");
            }
        }
    }

    #[test]
    fn text_to_summarize_is_truncated_in_the_middle() {
        let long = format!("begin {} end", "é".repeat(9000));
        let short = digest(&[user(&long), user("short")], &provider());
        let text = |entry: &Entry| String::from_utf8(entry.encoded().to_vec()).unwrap();
        assert!(
            text(&short[0]).len() < 8200
                && text(&short[0]).contains("begin")
                && text(&short[0]).contains(" end")
        );
        assert!(text(&short[1]).contains("short"));
    }

    #[test]
    fn images_are_not_counted_by_size_in_bytes() {
        let image = Image {
            mime_type: "image/png".into(),
            data: "A".repeat(4_000_000),
        };
        let read = ToolResult {
            images: vec![image.clone()],
            ..ToolResult::default()
        };
        for message in [
            Message::User {
                parts: vec![Part::Image(image)],
            },
            Message::Results {
                results: vec![read],
            },
        ] {
            let entry = Entry::new(message, &provider());
            assert!(
                (IMAGE..IMAGE + 100).contains(&tokens(&entry)),
                "{}",
                tokens(&entry)
            );
        }
    }
}
