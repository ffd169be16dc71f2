//! Calls that a model wrote into the text of its answer: run as calls if nothing contradicts that.
//!
//! Text is held back only while it may still turn out to be a call.
//!
//! A call is at the end of an answer without calls of its own, in the marks of a model family or as all of the answer,
//! and matches the schema of a tool. Everything else is text: an example is shown, not run. The model is told about text
//! that looks like a call but cannot be one.
//!
//! No phrase of any language decides. A [quotation](quoted) is no call. Where a call that changes something stands
//! beside prose, it may be an example: it runs only if a person approves it, and otherwise the model has to send it alone.

mod beginning;
mod elements;
mod forms;
mod json;
mod python;
mod quoted;
mod react;

use std::ops::Range;

use serde_json::{Map, Value};

use self::beginning::{may_be_whole, whole_fence};
use self::elements::is_word;
use self::forms::{ENDS, TAGS, TOKENS};
use self::json::TextCall;
pub(crate) use self::quoted::Quotation;
use crate::calls::Catalog;

/// Why a call in a fence or as JSON after prose is not run.
const EXAMPLE: &str = "beside other text it may be an example";
/// Why a call that changes something is not run from JSON that ends early.
const INCOMPLETE: &str = "its JSON is not complete";

/// The held-back text of a finished answer.
#[derive(Debug, PartialEq)]
pub(crate) enum Held {
    /// Text after all.
    Text(String),
    /// Text that looks like a call but cannot be one, and why.
    Unusable(String, String),
    /// Calls.
    Calls(Written),
}

/// Calls that were written as text.
#[derive(Debug, PartialEq)]
pub(crate) struct Written {
    /// The text before them that was held back.
    pub words: String,
    /// Names, and arguments as JSON.
    pub calls: Vec<(String, String)>,
    /// The calls as they were written, if the answer has prose beside them, so that they may be an example.
    pub in_prose: Option<String>,
}

/// Whether a call stands in something the model has read.
pub(crate) type IsQuoted<'a> = &'a dyn Fn(&TextCall) -> bool;

/// The text of one answer.
pub(crate) struct TextCalls<C> {
    tools: C,
    text: String,
    /// How much of it was released.
    shown: usize,
    /// Where a call seems to begin; nothing from there on is released.
    begun: Option<usize>,
    /// Whether a complete marker was found there.
    is_certain: bool,
    /// Where the unfinished line begins.
    line: usize,
    /// How far that line was scanned.
    scanned: usize,
    /// Whether the answer began as no call does.
    is_prose: bool,
    /// The marker of the open code fence.
    fence: Option<String>,
    is_over: bool,
}

impl<C: Catalog> TextCalls<C> {
    pub(crate) fn new(tools: C) -> Self {
        let is_over = tools.names().is_empty();
        Self {
            tools,
            text: String::new(),
            shown: 0,
            begun: None,
            is_certain: false,
            line: 0,
            scanned: 0,
            is_prose: false,
            fence: None,
            is_over,
        }
    }

    /// Appends text; returns what may be released.
    pub(crate) fn push(&mut self, more: &str) -> String {
        if self.is_over {
            return more.to_owned();
        }
        self.text.push_str(more);
        if !self.is_certain {
            self.begun = self.scan();
        }
        let until = self.begun.unwrap_or(self.text.len());
        self.show(until)
    }

    /// The arguments of a native call that came as text in one of the forms of a call, where they are all of `raw`.
    pub(crate) fn arguments(&self, name: &str, raw: &str) -> Option<Map<String, Value>> {
        let tool = self.tools.resolve(name)?;
        let is_same = |name: &str| self.tools.resolve(name).is_some_and(|other| other == tool);
        let read =
            forms::arguments(raw, &is_same).map(|arguments| TextCall::new(tool.clone(), arguments));
        read.map(|call| self.named(call).arguments)
            .or_else(|| only_argument(&self.tools.parameters(&tool)?, raw))
    }

    /// The answer has calls of its own: held-back text is text.
    pub(crate) fn release(&mut self) -> String {
        self.is_over = true;
        self.show(self.text.len())
    }

    /// The answer is complete.
    pub(crate) fn settle(&mut self, is_quoted: IsQuoted<'_>) -> Held {
        let begun = self.begun.unwrap_or(self.text.len());
        let (before, tail) = self.text.split_at(begun);
        if !tail.is_empty() && without_ends(tail).is_empty() {
            self.is_over = true;
            return Held::Text(before.split_at(self.shown.min(begun)).1.to_owned());
        }
        let is_tool = |name: &str| self.tools.resolve(name).is_some();
        let why = match Self::read(tail, &is_tool) {
            Some(calls) if calls.iter().any(is_quoted) => None,
            Some(calls) => match self.accepted(before.split_at(self.shown.min(begun)).1, calls) {
                Some(Ok(calls)) => {
                    self.is_over = true;
                    return Held::Calls(calls);
                }
                Some(Err(why)) => Some(why),
                None => None,
            },
            None => self.suspicious(tail, &is_tool, is_quoted),
        };
        let text = self.release();
        match why {
            Some(why) => Held::Unusable(text, why),
            None => Held::Text(text),
        }
    }

    fn show(&mut self, until: usize) -> String {
        let from = self.shown;
        self.shown = until.max(from);
        self.text.get(from..until).unwrap_or_default().to_owned()
    }

    /// The calls that make up all of `tail`.
    fn read(tail: &str, is_tool: &dyn Fn(&str) -> bool) -> Option<Vec<TextCall>> {
        match whole_fence(tail) {
            Some((language, code)) => forms::fenced(language, code, is_tool),
            None => forms::calls(tail, is_tool),
        }
    }

    /// Arguments that have a position get the name that our tool has for it. Another agent's tool may have another
    /// order.
    fn named(&self, call: TextCall) -> TextCall {
        let (Some(tool), Some(schema)) = (
            self.tools.resolve(&call.name),
            self.tools.parameters(&call.name),
        ) else {
            return call;
        };
        let name = MODULES
            .iter()
            .find_map(|module| call.name.strip_prefix(module))
            .unwrap_or(&call.name);
        let ours = schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name);
        let ours: Vec<&String> = ours
            .take(if name == tool { usize::MAX } else { 1 })
            .collect();
        let taken: Vec<String> = call.arguments.keys().cloned().collect();
        let name_of = |key: String| {
            let position = key
                .strip_prefix(python::POSITION)
                .and_then(|position| position.parse::<usize>().ok());
            let name = position
                .and_then(|position| ours.get(position))
                .filter(|name| !taken.contains(name));
            name.map_or(key, |name| (*name).clone())
        };
        let arguments = call
            .arguments
            .into_iter()
            .map(|(key, value)| (name_of(key), value))
            .collect();
        TextCall { arguments, ..call }
    }

    /// The calls, if each of them is beyond doubt; `None` if none can have been meant.
    fn accepted(&self, words: &str, calls: Vec<TextCall>) -> Option<Result<Written, String>> {
        let calls: Vec<TextCall> = calls.into_iter().map(|call| self.named(call)).collect();
        let wrong = calls.iter().find_map(|call| {
            let why = self.tools.accept(&call.name, &call.arguments).err()?;
            Some((self.tools.resolve(&call.name).is_some(), why))
        });
        let (prose, tail) = self.text.split_at(self.begun.unwrap_or_default());
        if let Some((is_known, why)) = wrong {
            // JSON that names something else is just JSON.
            return (is_known || !is_plain(tail)).then_some(Err(why));
        }
        if calls
            .iter()
            .any(|call| call.is_completed && !self.only_reads(call))
        {
            return Some(Err(INCOMPLETE.to_owned()));
        }
        let json = |call: TextCall| (call.name, Value::Object(call.arguments).to_string());
        let in_prose = (!prose.trim().is_empty()).then(|| tail.to_owned());
        Some(Ok(Written {
            words: words.to_owned(),
            calls: calls.into_iter().map(json).collect(),
            in_prose,
        }))
    }

    fn only_reads(&self, call: &TextCall) -> bool {
        self.tools.only_reads(&call.name)
    }

    /// Why text that did not become a call was still meant as one, if it was.
    fn suspicious(
        &self,
        tail: &str,
        is_tool: &dyn Fn(&str) -> bool,
        is_quoted: IsQuoted<'_>,
    ) -> Option<String> {
        if without_ends(tail).len() < tail.len() {
            return None;
        }
        if self.is_certain && !is_plain(tail) {
            let (calls, rest) = forms::first_calls(tail, is_tool);
            if rest.starts_with(react::OBSERVATION) {
                return Some("its result was made up".to_owned());
            }
            // Text after it explains what it is about.
            let is_broken = !rest.is_empty() && (calls.is_empty() || rest.starts_with('<'));
            let is_broken = is_broken && !calls.iter().any(is_quoted);
            return is_broken.then(|| "it cannot be read".to_owned());
        }
        let calls = self
            .example(is_tool)
            .filter(|calls| !calls.iter().any(is_quoted))?;
        let mut calls = calls.into_iter().map(|call| self.named(call));
        let is_meant = calls.all(|call| self.tools.accept(&call.name, &call.arguments).is_ok());
        is_meant.then(|| EXAMPLE.to_owned())
    }

    /// The calls in a fence or as JSON after the answer's text.
    fn example(&self, is_tool: &dyn Fn(&str) -> bool) -> Option<Vec<TextCall>> {
        let text = self.text.trim_end();
        if let Some(before) = text.strip_suffix("```") {
            let begin = before.rfind("```")?;
            let (language, code) = before.split_at(begin + 3).1.split_once('\n')?;
            return forms::fenced(language.trim(), code, is_tool);
        }
        let begin = text
            .rmatch_indices("\n{")
            .map(|(at, _)| at)
            .find(|at| text.split_at(*at).1.trim_start().starts_with('{') && text.ends_with('}'))?;
        forms::calls(text.split_at(begin).1, is_tool)
    }

    /// Looks for the beginning of a call in the text so far.
    fn scan(&mut self) -> Option<usize> {
        if !self.is_prose {
            if may_be_whole(&self.text) || self.may_be_python() {
                return Some(0);
            }
            self.is_prose = !self.text.trim().is_empty();
        }
        loop {
            let from = self.line.max(self.scanned);
            let end = self
                .text
                .get(from..)
                .and_then(|rest| rest.find('\n'))
                .map(|end| from + end);
            let line = self.line..end.unwrap_or(self.text.len());
            if let Some((at, is_certain)) = self.beginning(&line) {
                self.is_certain = is_certain;
                return Some(at);
            }
            let Some(end) = end else {
                self.scanned = self.text.len();
                return None;
            };
            self.turn_fence(&line);
            self.line = end + 1;
        }
    }

    /// Whether the answer can still be nothing but `NAME(…)` with the name of an offered tool.
    fn may_be_python(&self) -> bool {
        let text = self.text.trim();
        if text == PRINT {
            return true;
        }
        let text = text.strip_prefix(PRINT).unwrap_or(text);
        let text = MODULES
            .iter()
            .find_map(|module| text.strip_prefix(module))
            .unwrap_or(text);
        if let Some((name, _)) = text.split_once('(') {
            return self.tools.names().contains(&name);
        }
        let begins = |word: &str| !text.is_empty() && word.starts_with(text);
        begins(PRINT)
            || self.tools.names().into_iter().any(begins)
            || MODULES.iter().any(|module| begins(module))
    }

    /// Opens or closes a code fence.
    fn turn_fence(&mut self, line: &Range<usize>) {
        let line = self.text.get(line.clone()).unwrap_or_default().trim();
        let marks: String = line
            .chars()
            .take_while(|c| *c == '`' || *c == '~')
            .collect();
        let rest = line.strip_prefix(marks.as_str()).unwrap_or_default();
        match &self.fence {
            None if marks.len() >= 3 => self.fence = Some(marks),
            Some(open) if marks.starts_with(open.as_str()) && rest.is_empty() => self.fence = None,
            _ => {}
        }
    }

    /// Where in a line of prose a call begins or may begin, and whether that is certain.
    fn beginning(&self, line: &Range<usize>) -> Option<(usize, bool)> {
        let text = self.text.get(line.clone())?;
        if self.fence.is_some()
            || text.trim_start().starts_with('>')
            || text.starts_with("    ")
            || text.starts_with('\t')
        {
            return None;
        }
        if let Some(found) = self.action(line, text) {
            return Some(found);
        }
        // Earlier positions were decided with the earlier text, so that a long line is scanned only once.
        let undecided = self
            .text
            .floor_char_boundary(self.scanned.saturating_sub(LONGEST_MARK));
        let first = undecided.saturating_sub(line.start);
        let starts = text
            .get(first..)?
            .match_indices(['<', '['])
            .map(|(at, _)| first + at);
        let free = starts.filter(|at| text.split_at(*at).0.matches('`').count() % 2 == 0);
        let mut found = free.filter_map(|at| {
            let (before, rest) = text.split_at(at);
            let before = before.trim_end();
            let is_numbered = before
                .trim_end_matches('.')
                .bytes()
                .all(|byte| byte.is_ascii_digit());
            let is_separate =
                before.is_empty() || before.ends_with(['.', '!', '?', '…']) && !is_numbered;
            let marks = || {
                TOKENS
                    .iter()
                    .chain(ENDS)
                    .chain(TAGS.iter().filter(|_| is_separate))
            };
            if marks().any(|mark| rest.starts_with(mark)) || before.is_empty() && self.is_tag(rest)
            {
                return Some((line.start + at, true));
            }
            // The line may be incomplete: the beginning of a marker may still become one.
            let is_last = line.end == self.text.len();
            let may_be_tag = before.is_empty() && rest.len() < LONGEST_TAG && is_tag_name(rest);
            (is_last && (marks().any(|mark| mark.starts_with(rest)) || may_be_tag))
                .then_some((line.start + at, false))
        });
        found.next()
    }

    /// Whether a line begins a `ReAct` call: `Action:` and a tool, with `Action Input:` after it, or JSON in place of both.
    fn action(&self, line: &Range<usize>, text: &str) -> Option<(usize, bool)> {
        let body = text.trim_start();
        let at = line.end - body.len();
        let is_last = line.end == self.text.len();
        let Some(name) = body.strip_prefix(react::ACTION).map(str::trim) else {
            return (is_last && !body.is_empty() && react::ACTION.starts_with(body))
                .then_some((at, false));
        };
        if !name.is_empty()
            && !"```".starts_with(name)
            && !name.starts_with("```")
            && self.tools.resolve(name.trim_matches('`')).is_none()
            && !is_last
        {
            return None;
        }
        let next = self.text.split_at(line.end).1.trim_start();
        if name.starts_with("```") {
            return Some((at, true));
        }
        let wanted: &[&str] = if name.is_empty() {
            &["{", "```"]
        } else {
            &[react::ACTION_INPUT]
        };
        let is_certain = wanted.iter().any(|begin| next.starts_with(begin));
        (is_certain || wanted.iter().any(|begin| begin.starts_with(next)))
            .then_some((at, is_certain))
    }

    /// Whether a text begins with a tool's name as a tag.
    fn is_tag(&self, rest: &str) -> bool {
        let name = rest
            .strip_prefix('<')
            .and_then(|rest| rest.split_once('>'))
            .map(|(name, _)| name);
        name.is_some_and(|name| is_word(name) && self.tools.resolve(name).is_some())
    }
}

/// The arguments of a call whose only required argument, a text, came alone as a JSON string.
fn only_argument(schema: &Value, raw: &str) -> Option<Map<String, Value>> {
    let text: String = serde_json::from_str(raw).ok()?;
    let required = schema
        .get("required")
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    let name = match required {
        [Value::String(name)] => name.as_str(),
        // A job does without one.
        [] if schema["properties"].get("command").is_some() => "command",
        _ => return None,
    };
    (schema["properties"][name]["type"] == "string")
        .then(|| Map::from_iter([(name.to_owned(), text.into())]))
}

/// What some models write around a Python call.
const PRINT: &str = "print(";
/// What Python calls begin with.
const MODULES: [&str; 3] = ["default_api.", "functions.", "tools."];

/// What follows the tokens at the beginning of a text that end an answer.
fn without_ends(text: &str) -> &str {
    let mut rest = text;
    while let Some(after) = ENDS.iter().find_map(|end| rest.strip_prefix(end)) {
        rest = after.trim();
    }
    rest
}

/// Whether a text begins as JSON or a fence, which nothing marks as a call.
fn is_plain(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[', '`'])
}

/// The longest marker or tag, in bytes.
const LONGEST_MARK: usize = 64;
/// The longest tool name as a tag, in bytes.
const LONGEST_TAG: usize = 40;

fn is_tag_name(text: &str) -> bool {
    text.strip_prefix('<')
        .is_some_and(|name| name.is_empty() || is_word(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::{Editing, all};

    const CALL: &str = r#"{"name": "read_file", "arguments": {"path": "a.py"}}"#;

    /// What is released when the text arrives character by character, and what the rest is at the end.
    fn run(text: &str) -> (String, Held) {
        let mut calls = TextCalls::new(all(Editing::Replacements));
        let shown = text
            .chars()
            .map(|letter| calls.push(letter.encode_utf8(&mut [0; 4])))
            .collect();
        (shown, calls.settle(&|_| false))
    }

    #[track_caller]
    fn is_call(text: &str, words: &str) {
        let (shown, held) = run(text);
        let Held::Calls(Written {
            words: rest,
            calls,
            in_prose,
        }) = held
        else {
            panic!("{text}: {held:?}")
        };
        assert_eq!(in_prose.is_some(), !words.is_empty(), "{text}");
        assert_eq!(format!("{shown}{rest}").trim(), words, "{text}");
        assert_eq!(
            calls[0].0.trim_start_matches("functions."),
            "read_file",
            "{text}"
        );
    }

    #[track_caller]
    fn is_text(text: &str, told: bool) {
        let (shown, held) = run(text);
        let (rest, unusable) = match held {
            Held::Text(rest) => (rest, false),
            Held::Unusable(rest, _) => (rest, true),
            Held::Calls(_) => panic!("{text}"),
        };
        assert_eq!((format!("{shown}{rest}").as_str(), unusable), (text, told));
    }

    #[test]
    fn a_text_call_at_the_end_is_a_call() {
        is_call(CALL, "");
        is_call(&format!("```json\n{CALL}\n```"), "");
        is_call(&format!("[{CALL}]"), "");
        is_call("```tool_code\nprint(read_file(path=\"a.py\"))\n```", "");
        is_call("[read_file(path=\"a.py\")]", "");
        is_call(&format!("<tool_call>{CALL}</tool_call>"), "");
        is_call(
            &format!("Reading.\n<tool_call>\n{CALL}\n</tool_call>\n"),
            "Reading.",
        );
        is_call(
            &format!("Reading. <tool_call>\n{CALL}\n</tool_call>"),
            "Reading.",
        );
        is_call(&format!("Reading[TOOL_CALLS][{CALL}]"), "Reading");
        is_call(
            "I read it.\n\n<read_file>\n<path>a.py</path>\n</read_file>",
            "I read it.",
        );
        is_call(
            "<|channel|>commentary to=functions.read_file <|message|>{\"path\": \"a.py\"}",
            "",
        );
        is_call(
            "I look.\nAction: read_file\nAction Input: {\"path\": \"a.py\"}",
            "I look.",
        );
        is_call(
            "Action:\n{\"action\": \"read_file\", \"action_input\": {\"path\": \"a.py\"}}",
            "",
        );
        is_call(
            &format!("<tool_call>{}</tool_call>", CALL.trim_end_matches('}')),
            "",
        );
        is_call(
            &format!("Let me read:\n```json\n{CALL}\n```\n<tool_call>{CALL}</tool_call>"),
            &format!("Let me read:\n```json\n{CALL}\n```"),
        );
        is_call("read_file(\"a.py\")", "");
        is_call("print(read_file(\"a.py\"))", "");
        is_call("[read_file('a.py', 2, limit=3)]", "");
        is_call(
            "<read_file><args><file><path>a.py</path><line_range>1-9</line_range></file></args></read_file>",
            "",
        );
        is_call(
            &format!("See:\n```rust\nx\n```\n<tool_call>{CALL}</tool_call>"),
            "See:\n```rust\nx\n```",
        );
    }

    #[test]
    fn positions_get_our_names_and_files_a_call_each() {
        let arguments = |text: &str| {
            let Held::Calls(held) = run(text).1 else {
                panic!("{text}")
            };
            held.calls
                .into_iter()
                .map(|(_, arguments)| arguments)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            arguments("read_file('a.py', 2, limit=3)"),
            [r#"{"path":"a.py","offset":2,"limit":3}"#]
        );
        assert_eq!(
            arguments("read_file(\"a.py\")\nread_file(\"b.py\")"),
            [r#"{"path":"a.py"}"#, r#"{"path":"b.py"}"#]
        );
        let files = "<read_file>\n<args>\n<file><path>a</path></file>\n<file><path>b</path></file>\n</args>\n</read_file>";
        assert_eq!(arguments(files), [r#"{"path":"a"}"#, r#"{"path":"b"}"#]);
        is_text("[view('a.py', 2)]", true);
        is_text("read_file('a.py', path='b.py')", true);
        is_text("read_file(limit=3, 'a.py')", false);
        is_text("read_file(name)", false);
    }

    #[test]
    fn tokens_that_end_an_answer_are_no_text() {
        for text in [
            "Yes.<|im_end|>",
            "Yes.<|end|><|return|>\n",
            "Yes.<|eot_id|>",
        ] {
            let (shown, held) = run(text);
            assert_eq!(
                (shown.as_str(), held),
                ("Yes.", Held::Text(String::new())),
                "{text}"
            );
        }
    }

    #[test]
    fn a_text_call_in_an_example_is_text() {
        is_text(
            &format!("Like this:\n```\n<tool_call>{CALL}</tool_call>\n```\nThat is all."),
            false,
        );
        is_text(
            &format!("The tag is `<tool_call>{CALL}</tool_call>`."),
            false,
        );
        is_text(&format!("```json\n{CALL}\n```\n\nThis would read."), false);
        is_text(&format!("> <tool_call>{CALL}</tool_call>"), false);
        is_text(&format!("    <tool_call>{CALL}</tool_call>"), false);
        is_text(
            &format!("<tool_call>{CALL}</tool_call> is the form."),
            false,
        );
        is_text(&format!("The form is <tool_call>{CALL}</tool_call>"), false);
        is_text(&format!("1. <tool_call>{CALL}</tool_call>"), false);
        is_text("The token <|im_end|> ends a turn.", false);
        is_text(
            &format!("````md\n```\n<tool_call>{CALL}</tool_call>\n```\n````"),
            false,
        );
        for text in [
            "",
            "{\"name\": \"demo\", \"version\": 1}",
            "{\"name\": \"send_mail\", \"arguments\": {}}",
            "[1, 2]",
            "a < b [c]",
            "Action: edit\nOwner: Ann",
            "Action:\nWe read it.",
            "Action: read_file",
            "```\nAction: read_file\nAction Input: {\"path\": \"a.py\"}\n```\nis ReAct.",
        ] {
            is_text(text, false);
        }
    }

    #[test]
    fn unusable_text_calls_are_reported() {
        is_text(
            "<tool_call>{\"name\": \"send_mail\", \"arguments\": {}}</tool_call>",
            true,
        );
        is_text(
            "<tool_call>{\"name\": \"read_file\", \"arguments\": {}}</tool_call>",
            true,
        );
        is_text("<tool_call>{\"name\": \"read_file\"</tool_call>", true);
        let unfinished = r#"{"name": "write_file", "arguments": {"path": "a.py", "content": "x""#;
        for text in [
            unfinished.to_owned(),
            format!("<tool_call>{unfinished}</tool_call>"),
            format!("```json\n{unfinished}"),
        ] {
            is_text(&text, true);
        }
        is_text(
            "{\"name\": \"read_file\", \"arguments\": {\"offset\": 1}}",
            true,
        );
        let write = r#"{"name": "write_file", "arguments": {"path": "a.py", "content": "x"}}"#;
        is_text(&format!("Let me write:\n```json\n{write}\n```"), true);
        is_text(&format!("Let me write:\n{write}"), true);
        is_text(&format!("The file:\n```json\n{CALL}\n```"), true);
        is_text(&format!("Let me show you:\n```json\n{CALL}\n```"), true);
        is_text(&format!("Let me read:\n```json\n{CALL}\n```"), true);
        is_text(&format!("I'll read it.\n{CALL}"), true);
        is_text(
            "I'll read it.\n```tool_code\nprint(read_file(\"a.py\"))\n```",
            true,
        );
        is_text(
            &format!("Let me read:\n```json\n{CALL}\n```\nThat is all."),
            false,
        );
        is_text(
            "Let me see:\n```json\n{\"name\": \"demo\", \"version\": 1}\n```",
            false,
        );
    }

    #[test]
    fn ordinary_text_streams_without_delay() {
        for text in [
            "Hello",
            "Actions: x",
            "Action: wait\nx",
            "<b>x",
            "```rust\nfn",
            "{\"version\"",
            "a [b",
            "x\n<div>",
            "> q",
        ] {
            assert_eq!(run(text).0, text);
        }
    }
}
