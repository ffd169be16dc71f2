//! Calls that a model wrote into the text of its answer: run as calls if nothing contradicts that.
//!
//! Text is held back only while it may still turn out to be a call.
//!
//! A call is at the end of an answer without calls of its own, in the marks of a model family or as all of the answer,
//! and matches the schema of a tool. Everything else is text: an example is shown, not run. The model is told about text
//! that looks like a call but cannot be one.
//!
//! No phrase of any language decides. A [quotation](quoted) is not a call. A call beside prose that changes something
//! may be an example: it runs only if a person approves it, and otherwise the model has to send it alone.

mod beginning;
pub(super) mod elements;
mod forms;
mod json;
mod python;
mod quoted;
mod react;
mod search;

use memchr::memmem;
use serde_json::Value;

use self::beginning::{is_example, may_be_mark, whole_fence};
pub(crate) use self::forms::inner;
pub(crate) use self::json::{IsTool, TextCall};
pub(crate) use self::quoted::{Quotation, may_come_from, says};
use self::search::{MODULES, Search};
use crate::calls::Catalog;
use crate::text::{Fields, lists, marks, repair};

/// Why a call in a fence or as JSON after prose is not run.
const EXAMPLE: &str = "it is surrounded by other text and may be an example";
/// Why a call in no known family's form is not run.
const UNREADABLE: &str = "it cannot be read";
/// Why a call with more of the answer after it is not run.
const FOLLOWED: &str = "other text follows it";
/// Why a call that changes something is not run without its own first argument.
const TEMPLATE: &str = "an argument is only a placeholder";
/// Why a call that changes something is not run with truncated arguments.
const INCOMPLETE: &str = "it is not complete";

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
    /// The calls as they were written.
    pub text: String,
    /// The text before them that was held back.
    pub words: String,
    /// Names, and arguments as JSON.
    pub calls: Vec<(String, String)>,
    /// Whether there is prose next to them, so that they may be an example.
    pub is_beside_prose: bool,
}

/// The tokens of Solar Open 2 around an argument, and the tags of GLM that say the same.
const PAIRS: [(&str, &str); 3] = [
    ("<|tool_arg:start|>", "<arg_key>"),
    ("<|tool_arg:value|>", "</arg_key><arg_value>"),
    ("<|tool_arg:end|>", "</arg_value>"),
];

/// How many names of tools at the end of an answer may be followed by arguments.
const NAMES: usize = 4;

/// How many calls with prose between them are looked at.
const CALLS: usize = 16;

/// Whether a call occurs in something the model has read.
pub(crate) type IsQuoted<'a> = &'a dyn Fn(&TextCall) -> bool;

/// The text of one answer.
pub(crate) struct TextCalls<C> {
    tools: C,
    text: String,
    /// How much of it was released.
    shown: usize,
    search: Search,
    /// Whether no call can follow any more.
    is_over: bool,
    /// Whether the answer is a message that the model made up for somebody else.
    is_foreign: bool,
}

impl<C: Catalog> TextCalls<C> {
    pub(crate) fn new(tools: C) -> Self {
        let is_over = tools.names().is_empty();
        Self {
            tools,
            text: String::new(),
            shown: 0,
            search: Search::default(),
            is_over,
            is_foreign: false,
        }
    }

    /// Appends text; returns what may be released.
    pub(crate) fn push(&mut self, more: &str) -> String {
        self.text.push_str(more);
        if self.is_over {
            return self.show(self.text.len());
        }
        self.search.advance(&self.text, &self.tools);
        let until = self.search.begun.unwrap_or(self.text.len());
        self.show(until)
    }

    /// Nothing in the text is a call.
    pub(crate) fn note_foreign(&mut self) {
        self.is_foreign = true;
    }

    /// The arguments of a native call that came as text in one of the forms of a call, where they are all of `raw`.
    pub(crate) fn arguments(&self, name: &str, raw: &str) -> Option<Fields> {
        // No arguments, as an empty list or string.
        if ["[]", "\"\""].contains(&raw.trim()) {
            return Some(Fields::new());
        }
        let tool = self.tools.resolve(name)?;
        let is_same = |name: &str| self.tools.resolve(name).is_some_and(|other| other == tool);
        let read =
            forms::arguments(raw, &is_same).map(|arguments| TextCall::new(tool.clone(), arguments));
        read.map(|call| self.named(&call).arguments)
            .or_else(|| only_argument(&self.tools.parameters(&tool)?, raw))
    }

    /// The answer has calls of its own, or is over: held-back text is text, unless it is nothing but marks.
    pub(crate) fn release(&mut self) -> String {
        if !self.is_over && self.is_noise() {
            self.text
                .truncate(self.search.begun.unwrap_or(self.text.len()));
        }
        self.is_over = true;
        self.show(self.text.len())
    }

    /// The answer has calls of its own: a call in the marks of a family beside them is not shown, unless it is a quotation.
    pub(crate) fn release_beside_calls(&mut self, is_quoted: IsQuoted<'_>) -> String {
        let (before, tail) = self.held();
        let begun = before.len();
        let is_tool = |name: &str| self.tools.resolve(name).is_some();
        if !self.is_over
            && !is_plain(tail)
            && Self::read(tail, &is_tool).is_some_and(|calls| !calls.iter().any(is_quoted))
        {
            self.text.truncate(begun);
        }
        self.release()
    }

    /// The text of the settled answer, without its calls.
    pub(crate) fn take_text(&mut self) -> String {
        let mut text = std::mem::take(&mut self.text);
        // It stays as long as the conversation, and does not grow.
        text.shrink_to_fit();
        text
    }

    /// Whether what is held back is nothing but marks: the ends of something, or the beginning of a call that never came.
    fn is_noise(&self) -> bool {
        let (before, tail) = self.held();
        !tail.is_empty()
            && (marks::without_edges(&self.text).len() <= before.len() || is_begun(tail))
    }

    /// The text before what may be a call, and the text from there on.
    fn held(&self) -> (&str, &str) {
        self.text
            .split_at(self.search.begun.unwrap_or(self.text.len()))
    }

    /// The answer is complete.
    pub(crate) fn settle(&mut self, is_quoted: IsQuoted<'_>) -> Held {
        if self.is_over {
            return Held::Text(String::new());
        }
        if self.is_foreign {
            return Held::Text(self.release());
        }
        let (before, tail) = self.held();
        let begun = before.len();
        let is_tool = |name: &str| self.tools.resolve(name).is_some();
        if self.is_noise() {
            // The beginning of a call was meant as one, and text before the end of one may have been.
            let why = if is_begun(tail) {
                Some(UNREADABLE.to_owned())
            } else {
                self.suspicious(tail, &is_tool, is_quoted)
            };
            return self.as_text(why);
        }
        let why = match Self::read(tail, &is_tool) {
            Some(calls) if calls.iter().any(is_quoted) => None,
            Some(calls) => match self.accepted(before.split_at(self.shown.min(begun)).1, &calls) {
                Some(Ok(written)) => {
                    self.is_over = true;
                    self.text.truncate(self.shown + written.words.len());
                    return Held::Calls(written);
                }
                Some(Err(why)) => Some(why),
                None => None,
            },
            None => self.suspicious(tail, &is_tool, is_quoted),
        };
        self.as_text(why)
    }

    /// Held-back text is text; why, if it was meant as a call. One that nobody can read is for the model alone.
    fn as_text(&mut self, why: Option<String>) -> Held {
        let (before, tail) = self.held();
        // Its last mark is not a word in a sentence.
        let last = tail.rfind('<').map(|at| tail.split_at(at));
        let is_markup = last.is_some_and(|(before, mark)| {
            !before.ends_with(' ') && marks::after_edge(mark.trim_end()) == Some("")
        });
        let is_hidden = self.search.is_certain && is_markup;
        let words = before.len().saturating_sub(self.shown);
        let mut text = self.release();
        match why {
            Some(why) => {
                if why == UNREADABLE && is_hidden {
                    text.truncate(words);
                }
                Held::Unusable(text, why)
            }
            None => Held::Text(text),
        }
    }

    fn show(&mut self, until: usize) -> String {
        let from = self.shown;
        self.shown = until.max(from);
        self.text.get(from..until).unwrap_or_default().to_owned()
    }

    /// The calls that make up all of `tail`.
    fn read(tail: &str, is_tool: IsTool<'_>) -> Option<Vec<TextCall>> {
        let tail = whole_fence(tail).map_or(tail, |(_language, code)| code);
        let plain = |text: String, (token, tag): &(&str, &str)| text.replace(token, tag);
        let spelled_plainly = || PAIRS.iter().fold(marks::plain(tail).into_owned(), plain);
        // As it is, nothing in a value is taken for the spelling of a mark.
        forms::calls(tail, is_tool).or_else(|| forms::calls(&spelled_plainly(), is_tool))
    }

    /// Arguments that have a position get the name that our tool has for it. Another agent's tool may have another
    /// order.
    fn named(&self, call: &TextCall) -> TextCall {
        let (Some(tool), Some(schema)) = (
            self.tools.resolve(&call.name),
            self.tools.parameters(&call.name),
        ) else {
            return call.clone();
        };
        let name = MODULES
            .iter()
            .find_map(|module| call.name.strip_prefix(module))
            .unwrap_or(&call.name);
        let count = if name == tool { usize::MAX } else { 1 };
        let ours = schema["properties"].as_object().into_iter();
        let ours: Vec<&String> = ours.flat_map(Fields::keys).take(count).collect();
        let name_of = |key: &String| {
            let position: usize = key.strip_prefix(python::POSITION)?.parse().ok()?;
            let name = *ours.get(position)?;
            (!call.arguments.contains_key(name)).then(|| name.clone())
        };
        let arguments = call.arguments.iter();
        let arguments = arguments
            .map(|(key, value)| (name_of(key).unwrap_or_else(|| key.clone()), value.clone()))
            .collect();
        TextCall {
            arguments,
            ..call.clone()
        }
    }

    /// The calls, if each of them is beyond doubt; `None` if none can have been meant.
    fn accepted(&self, words: &str, calls: &[TextCall]) -> Option<Result<Written, String>> {
        let calls: Vec<TextCall> = calls.iter().map(|call| self.named(call)).collect();
        let wrong = calls.iter().find_map(|call| {
            let why = self.tools.accept(&call.name, &call.arguments).err()?;
            Some((self.tools.resolve(&call.name).is_some(), why))
        });
        let (prose, tail) = self.held();
        if let Some((is_known, why)) = wrong {
            // JSON that names something else is just JSON.
            return (is_known || !is_plain(tail)).then_some(Err(why));
        }
        let mut changing = calls
            .iter()
            .filter(|call| !self.tools.only_reads(&call.name));
        let doubt = changing.find_map(|call| match call {
            call if call.is_completed => Some(INCOMPLETE),
            call => self.is_template(call).then_some(TEMPLATE),
        });
        if let Some(why) = doubt {
            return Some(Err(why.to_owned()));
        }
        let json = |call: TextCall| (call.name, Value::Object(call.arguments).to_string());
        Some(Ok(Written {
            words: words.trim_end().to_owned(),
            calls: calls.into_iter().map(json).collect(),
            text: tail.to_owned(),
            is_beside_prose: !prose.trim().is_empty() || self.is_shown(),
        }))
    }

    /// Whether the value of a call's first argument only says what belongs there: `<path>`, `{{command}}`, `$FILE`,
    /// `src/<name>.py`, or the name of the argument or of its type.
    fn is_template(&self, call: &TextCall) -> bool {
        let schema = self.tools.parameters(&call.name).unwrap_or_default();
        let Some(key) = schema["required"][0].as_str() else {
            return false;
        };
        let values = &call.arguments;
        let value = values.get(key).or_else(|| values.values().next());
        let value = value.and_then(Value::as_str).unwrap_or_default().trim();
        let is_name = |text: &str| {
            let mut characters = text.trim().chars();
            !text.is_empty() && characters.all(|c| c.is_alphanumeric() || " _-".contains(c))
        };
        let inside = value.trim_matches(|c: char| "<>‹›{}[]$".contains(c));
        let is_framed = inside.len() < value.len() && is_name(inside);
        let has_gap = || {
            let gap = value.split_once('<').and_then(|it| it.1.split_once('>'));
            gap.is_some_and(|(name, _)| is_name(name)) && !value.contains(char::is_whitespace)
        };
        let upper = key.to_uppercase();
        is_framed
            || has_gap()
            || value.eq_ignore_ascii_case(key)
            || value
                .strip_suffix(&upper)
                .is_some_and(|it| it.ends_with('_'))
            || lists(json::TYPES, value)
    }

    /// Whether the form of the whole answer shows a call rather than makes it: a fence or a block of code.
    fn is_shown(&self) -> bool {
        let text = self.text.trim_start_matches('\n');
        whole_fence(text).is_some_and(is_example)
            || text.starts_with('\t')
            || text.starts_with("    ")
    }

    /// Why text that did not become a call was still meant as one, if it was.
    fn suspicious(
        &self,
        tail: &str,
        is_tool: IsTool<'_>,
        is_quoted: IsQuoted<'_>,
    ) -> Option<String> {
        let names = self.tools.names();
        let (_, last) = self.text.rsplit_once("\n\n").unwrap_or(("", &self.text));
        let (language, _code) = whole_fence(last).unwrap_or_default();
        let is_data = |it| json::is_data(&it, &|name| names.contains(&name));
        let is_cited = last.starts_with(['>', '\t']) || last.starts_with("    ");
        let code = whole_fence(tail).map_or(tail, |(_language, code)| code);
        if forms::are_definitions(code)
            || is_cited && last.len() < self.text.len()
            || !names.contains(&language) && repair::value(last).is_some_and(is_data)
        {
            return None;
        }
        let is_meant = || self.spelled_out().is_some_and(|call| !is_quoted(&call));
        self.broken(tail, is_tool, is_quoted)
            .or_else(|| is_meant().then(|| UNREADABLE.to_owned()))
    }

    /// Why text that looks like a call in a family's form is not one.
    fn broken(&self, tail: &str, is_tool: IsTool<'_>, is_quoted: IsQuoted<'_>) -> Option<String> {
        let is_meant = |calls: &Vec<TextCall>| {
            let is_accepted = |call: &TextCall| {
                let call = self.named(call);
                self.tools.accept(&call.name, &call.arguments).is_ok()
            };
            !calls.iter().any(is_quoted) && calls.iter().all(is_accepted)
        };
        let is_ended = marks::after_edges(tail).len() < tail.len() && !marks::begins_call(tail);
        if is_ended {
            let call = self.mentioned().filter(is_meant);
            return call.map(|_| EXAMPLE.to_owned());
        }
        if self.search.is_certain && !is_plain(tail) {
            let tail = marks::plain(tail);
            let (calls, rest) = forms::first_calls(&tail, is_tool);
            let call = tail.rsplit_once(rest).map_or("", |(call, _)| call);
            let (before, _) = self.held();
            // Text after it, or an element around it, explains it.
            let is_around = rest
                .strip_prefix("</")
                .and_then(|rest| rest.split_once('>'))
                .is_some_and(|(name, _)| marks::is_open(before, name));
            // Text that continues up to another mark is not an explanation.
            let is_whole = || marks::without_edges(rest).len() < rest.trim_end().len();
            let is_broken = calls.is_empty() || rest.starts_with('<') && !is_around || is_whole();
            if is_broken {
                return (!calls.iter().any(is_quoted)).then(|| UNREADABLE.to_owned());
            }
            // An answer that begins with a call and continues right behind it may describe a made-up result.
            let begins = |c: char| c.is_alphabetic() && !c.is_lowercase();
            let is_next = !call.ends_with(' ') && rest.starts_with(begins);
            let goes_on = before.trim().is_empty() && is_next;
            let goes_on = goes_on || rest.starts_with(react::OBSERVATION);
            // Words between two calls may be about the second.
            let goes_on = goes_on
                || self
                    .last_calls(rest, is_tool)
                    .as_ref()
                    .is_some_and(is_meant);
            return (goes_on && is_meant(&calls)).then(|| FOLLOWED.to_owned());
        }
        let calls = self.example(is_tool).or_else(|| self.mentioned());
        calls.filter(is_meant).map(|_| EXAMPLE.to_owned())
    }

    /// The calls that a text ends with, if there is prose between those in it.
    fn last_calls(&self, text: &str, is_tool: IsTool<'_>) -> Option<Vec<TextCall>> {
        let mut rest = text;
        for _ in 0..CALLS {
            let mut search = Search::default();
            search.advance(rest, &self.tools);
            let tail = rest.split_at(search.begun?).1;
            let calls = Self::read(tail, is_tool);
            if calls.is_some() {
                return calls;
            }
            rest = forms::first_calls(tail, is_tool).1;
        }
        None
    }

    /// The call that the last paragraph is, in the form of no family: the name of a tool and an argument that it requires,
    /// and up to that no word without a sign next to it, as sentences have. The values are left out.
    fn spelled_out(&self) -> Option<TextCall> {
        let text = self.text.trim();
        let text = match whole_fence(text) {
            Some(_) => text.trim_matches('`').trim_end(),
            None => text,
        };
        let paragraph = text.rsplit("\n\n").next()?;
        let mut shown = paragraph;
        while let Some((before, _tag)) = shown.strip_suffix('>').and_then(|it| it.rsplit_once('<'))
        {
            shown = before.trim_end();
        }
        let names = self.tools.names();
        let is_named = |name: &&str| memmem::find(paragraph.as_bytes(), name.as_bytes()).is_some();
        let is_prose = paragraph.contains('`')
            || shown.ends_with(marks::ends_sentence)
            || !names.iter().any(is_named);
        if is_prose || paragraph.starts_with(['>', ' ', '\t']) {
            return None;
        }
        let mut called: Option<(&str, Value)> = None;
        for (at, word) in words(paragraph) {
            let (before, rest) = paragraph.split_at(at);
            let behind = rest.split_at(word.len()).1;
            let is_signed = before.ends_with(|c: char| !c.is_whitespace())
                || behind.starts_with(|c| !" \t.,;".contains(c));
            match &called {
                None if names.contains(&word) => {
                    let schema = self.tools.parameters(word)?;
                    called = Some((word, schema["required"].clone()));
                }
                _ if !is_signed => return None,
                Some((name, Value::Array(required)))
                    if required.iter().any(|key| *key == word.to_lowercase()) =>
                {
                    let (_, value) = words(behind).next()?;
                    let arguments = Fields::from_iter([(word.to_lowercase(), "".into())]);
                    let call = TextCall::new((*name).to_owned(), arguments);
                    return (!lists(json::TYPES, value)).then_some(call);
                }
                _ => {}
            }
        }
        None
    }

    /// The call at the end of the answer in marks that no family has: the last name of a tool, and its arguments.
    fn mentioned(&self) -> Option<Vec<TextCall>> {
        let text = marks::plain(self.text.trim_end());
        let names = self.tools.names();
        let places = |name| memmem::find_iter(text.as_bytes(), name).map(move |at| (at, name));
        let mut places: Vec<(usize, &str)> = names.iter().flat_map(|name| places(*name)).collect();
        places.sort_unstable();
        let (call, rest) = places.iter().rev().take(NAMES).find_map(|(at, name)| {
            forms::arguments_within(name, text.split_at(at + name.len()).1)
        })?;
        // Nothing but marks may follow. JSON in the marks of a family was passed over: it is an example.
        let is_known = search::has_mark(&text);
        let outside = rest
            .split(['<', '['])
            .enumerate()
            .map(|(number, part)| match part {
                part if number == 0 => part,
                part => part
                    .split_once(['>', ']'])
                    .map_or(part, |(_mark, after)| after),
            });
        let mut outside = outside.flat_map(str::chars);
        let is_more = |c: char| c.is_alphanumeric() || c == '`' || c == '}' && is_known;
        (!outside.any(is_more)).then_some(call)
    }

    /// The calls in a fence or as JSON after the answer's text.
    fn example(&self, is_tool: IsTool<'_>) -> Option<Vec<TextCall>> {
        let text = self.text.trim_end();
        let code = match text.strip_suffix("```") {
            Some(before) => before.rsplit_once("```")?.1.split_once('\n')?.1,
            None => text.split_at(text.rfind("\n{")?).1,
        };
        forms::calls(code, is_tool)
    }
}

/// The call that was written in place of a tool's name, with its arguments, as GLM and others do.
pub(crate) fn packed(name: &str, is_tool: IsTool<'_>) -> Option<TextCall> {
    let call = <[TextCall; 1]>::try_from(forms::calls(name, is_tool)?).ok()?;
    call.into_iter()
        .find(|call| !call.is_completed && is_tool(&call.name))
}

/// The words of a text, and where each begins.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut end = 0;
    std::iter::from_fn(move || {
        let begin = end + text.get(end..)?.find(is_of_word)?;
        let rest = text.get(begin..)?;
        end = begin + rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
        Some((begin, text.get(begin..end)?))
    })
}

/// The arguments of a call whose only required argument, a text, came alone as a JSON string.
fn only_argument(schema: &Value, raw: &str) -> Option<Fields> {
    let text: String = serde_json::from_str(raw).ok()?;
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    let name = match required {
        [Value::String(name)] => name.as_str(),
        // A job needs none.
        [] if schema["properties"].get("command").is_some() => "command",
        _ => return None,
    };
    (schema["properties"][name]["type"] == "string")
        .then(|| Fields::from_iter([(name.to_owned(), text.into())]))
}

/// Whether a text is nothing but the mark that begins a call, or the beginning of one that occurs in no prose.
fn is_begun(text: &str) -> bool {
    if marks::begins_call(text) {
        return forms::noise(text).is_empty();
    }
    marks::is_odd(text) && may_be_mark(text)
}

/// Whether a text begins as JSON or a fence, which nothing marks as a call.
fn is_plain(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with(['{', '[', '`']) && !marks::begins_call(text)
}

#[cfg(test)]
mod tests;
