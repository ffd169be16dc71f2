//! The forms in which models write calls as text. Pure.
//!
//! A form is all of the text from its marker on, and must match exactly; a near miss is not a call.

use serde_json::Value;

use super::elements::{self, closed, function};
use super::json::{self, Found, IsTool, TextCall, complete, of_json, with_json};
use super::{python, react};
use crate::text::marks::{self, Kind};
use crate::text::{Fields, lists, repair};

/// The calls that make up `text`; `is_tool` recognizes tool names used as tags.
pub(super) fn calls(text: &str, is_tool: IsTool<'_>) -> Option<Vec<TextCall>> {
    let (calls, rest) = first_calls(text, is_tool);
    // The last end may have been cut.
    let is_end =
        || marks::ends(&[Kind::Calls, Kind::Named]).any(|end| marks::may_become(rest, end));
    (!calls.is_empty() && (rest.is_empty() || is_end())).then_some(calls)
}

/// The calls at the beginning of `text`, and the rest.
pub(super) fn first_calls<'a>(text: &'a str, is_tool: IsTool<'_>) -> (Vec<TextCall>, &'a str) {
    let mut calls = Vec::new();
    let mut rest = noise(text);
    let is_marked = rest.len() < text.trim_start().len();
    while !rest.is_empty() {
        let flat = || flat(rest, is_tool).filter(|_| is_marked);
        let Some((more, after)) = one(rest, is_tool).or_else(flat) else {
            break;
        };
        for call in more {
            let is_completed = call.is_completed;
            let inner = inner(&call.arguments).filter(|_| !is_tool(&call.name));
            let own = inner.unwrap_or_else(|| vec![call]).into_iter();
            calls.extend(own.map(|call| TextCall {
                is_completed,
                ..call
            }));
        }
        rest = noise(after);
    }
    (calls, rest)
}

/// The calls in the arguments of a pseudo-tool such as `multi_tool_use.parallel` or `batch`.
pub(crate) fn inner(arguments: &Fields) -> Option<Vec<TextCall>> {
    of_json(&Value::Object(arguments.clone()))
}

/// Whether a text is nothing but definitions of tools, which a model repeats from its prompt or was asked for.
pub(super) fn are_definitions(text: &str) -> bool {
    let mut rest = noise(text);
    let mut are_some = false;
    while let Some((value, after)) = repair::first_value(rest)
        && json::is_definition(&value)
    {
        (rest, are_some) = (noise(after), true);
    }
    are_some && rest.is_empty()
}

/// The arguments of a native call that are not JSON but written as in text: the whole call, or its parameters. A call
/// of another tool does not count.
pub(super) fn arguments(text: &str, is_same: IsTool<'_>) -> Option<Fields> {
    if let Some([call]) = calls(text, is_same).as_deref() {
        let is_its = is_same(&call.name) && !call.is_completed;
        return is_its.then(|| call.arguments.clone());
    }
    let (calls, rest) = text
        .trim_start()
        .starts_with('<')
        .then(|| function("", text))??;
    let arguments = calls.into_iter().next()?.arguments;
    (rest.is_empty() && !arguments.is_empty()).then_some(arguments)
}

/// A call whose arguments come a few words after its name: JSON, or in the marks of a family. What follows them is left.
pub(super) fn arguments_within<'a>(name: &str, text: &'a str) -> Found<'a> {
    let near = |at: Option<usize>| Some(text.split_at(at.filter(|at| *at < NEAR)?).1);
    let marked =
        marks::begins(&[Kind::Argument]).filter_map(|mark| Some(marks::find(text, mark)?.0));
    let marked = near(marked.min()).and_then(|text| function(name, text));
    marked
        .filter(|(calls, _)| calls.iter().all(|call| !call.arguments.is_empty()))
        .or_else(|| with_json(name, near(text.find('{'))?))
}

/// How many bytes may be between a name and its arguments.
const NEAR: usize = 64;

/// What follows the marks around calls that a text begins with.
pub(super) fn noise(text: &str) -> &str {
    let ends = [Kind::Calls, Kind::Header, Kind::Named, Kind::Stop];
    let mut rest = text.trim_start();
    loop {
        let begun = || {
            let mut marks = marks::begins(&[Kind::Calls, Kind::Header]);
            let after = marks
                .find_map(|mark| marks::after(rest, mark))?
                .trim_start();
            // A fence around the JSON in it.
            let fenced = after.strip_prefix("```json");
            fenced.or_else(|| after.strip_prefix("```")).or(Some(after))
        };
        let ended = || {
            let is_call = marks::after(rest, "<|channel|>").is_some();
            let after = marks::after_end(rest, &ends).filter(|_| !is_call);
            after.or_else(|| rest.strip_prefix(';'))
        };
        let fence = || {
            let after = rest.strip_prefix("```")?.trim_start();
            after.starts_with("</tool").then_some(after)
        };
        let after = begun().or_else(|| addressed_marks(rest)).or_else(ended);
        match after.or_else(fence) {
            Some(after) => rest = after.trim_start(),
            None => return rest,
        }
    }
}

/// The marks after the header of a message that names a recipient: `<|start|>assistant to=NAME<|message|><invoke …`.
fn addressed_marks(text: &str) -> Option<&str> {
    let header = marks::after(text, "<|start|>assistant")?;
    let (to, _) = marks::find(header, "<|message|>")?;
    let (to, message) = header.split_at(to);
    let (_, body) = marks::find(message, "<|message|>")?;
    let body = message.split_at(body).1;
    let mut marks = marks::begins(&[Kind::Calls, Kind::Named]);
    let is_call = marks.any(|mark| marks::after(body.trim_start(), mark).is_some());
    (to.trim_start().starts_with("to=") && is_call).then_some(body)
}

fn one<'a>(text: &'a str, is_tool: IsTool<'_>) -> Found<'a> {
    let text = text.strip_prefix(RECIPIENT).unwrap_or(text);
    let tags = marks::begins(&[Kind::Named]).filter(|begin| begin.ends_with('='));
    // A blank instead of the sign: not in the table, since this does not begin a call by itself.
    let mut tags = tags.chain(["<function ", "<invoke="]);
    if let Some((name, attributes, inside)) = tags.find_map(|begin| marks::named(text, begin)) {
        let (calls, rest) = function(name, inside)?;
        return with_attributes(name, attributes, calls, rest);
    }
    if let Some((name, rest)) = addressed(text) {
        // The kind of content may be glued to the name.
        let glued = name.strip_suffix("json").filter(|name| is_tool(name));
        let name = glued.unwrap_or(name);
        return with_json(name, rest).or_else(|| patch(rest));
    }
    if let Some(found) = patch(text) {
        return Some(found);
    }
    if let Some(rest) = text.strip_prefix("call:") {
        return escaped(rest);
    }
    let text = text
        .strip_prefix("functools")
        .filter(|rest| rest.starts_with('['))
        .unwrap_or(text);
    if let Some(rest) = text.strip_prefix(react::ACTION) {
        return react::action(rest.trim_start());
    }
    if text.starts_with(['{', '[']) {
        if let Some((value, rest, is_completed)) = complete(text)
            && let Some(calls) = of_json(&value).or_else(|| by_key(&value, is_tool))
        {
            let calls = calls
                .into_iter()
                .map(|call| TextCall {
                    is_completed,
                    ..call
                })
                .collect();
            // A bracket too many is common.
            return Some((calls, rest.trim_start().trim_start_matches('}')));
        }
        let arrows = || {
            one(
                few_headed(text).filter(|_| complete(text).is_none())?,
                is_tool,
            )
        };
        return python::list(text).or_else(arrows);
    }
    if let Some((tag, rest)) = text.strip_prefix('<').and_then(|rest| rest.split_once('>'))
        && let (name, attributes) = tag.split_once([' ', '/']).unwrap_or((tag, ""))
        && json::is_word(name)
        && is_tool(name)
    {
        if attributes.is_empty() {
            return elements::call(name, rest);
        }
        let after = rest.strip_prefix(&format!("</{name}>")).unwrap_or(rest);
        return with_attributes(name, attributes, Vec::new(), after);
    }
    if let Some(rest) = few_headed(text) {
        return one(rest, is_tool);
    }
    glued(text, is_tool).or_else(|| named(text, is_tool))
}

/// A call whose arguments are its tag's attributes, if it has no others.
fn with_attributes<'a>(
    name: &str,
    attributes: &str,
    calls: Vec<TextCall>,
    rest: &'a str,
) -> Found<'a> {
    if attributes.is_empty() || calls.iter().any(|call| !call.arguments.is_empty()) {
        return Some((calls, rest));
    }
    let (calls, left) = function(name, attributes.trim_end_matches('/'))?;
    left.is_empty().then_some((calls, rest))
}

/// The name after a keyword for it and the punctuation around it: `<tool_name>`, `tool => "`, `function<|tool_sep|>`.
fn headed(text: &str) -> Option<&str> {
    let (word, rest) = json::split_word(text.trim_start_matches(['<', '{', ' ', '\n']));
    let after = marks::after_end(rest, &[]).unwrap_or(rest);
    let name = after.trim_start_matches(|c: char| c.is_whitespace() || "\"':=>".contains(c));
    let is_head = json::tells(word, &[json::NAMES]) && name.len() < rest.trim_start().len();
    (is_head && name.starts_with(|c: char| c.is_alphabetic() || c == '<')).then_some(name)
}

/// The same where at most two more keywords follow.
fn few_headed(text: &str) -> Option<&str> {
    headed(text).filter(|rest| headed(rest).and_then(headed).is_none())
}

/// The recipient in the header of a message, and its body: `<|channel|>commentary to=NAME<|message|>{…}`. The tokens
/// may be gone.
fn addressed(text: &str) -> Option<(&str, &str)> {
    let body = text.find('{').into_iter().chain(text.find(repair::PATCH.0));
    let (head, body) = text.split_at(body.min()?);
    let (before, name) = head.split_once("to=")?;
    let is_header = marks::after(before, "<|channel|>").is_some()
        || HEADER
            .iter()
            .fold(before, |rest, word| rest.trim_start_matches(word))
            .trim()
            .is_empty();
    is_header.then(|| Some((name.split([' ', '<']).next()?, body)))?
}

/// What Functionary writes before the name of a tool.
pub(super) const RECIPIENT: &str = ">>>";

/// The words of a header without its tokens.
pub(super) const HEADER: [&str; 3] = ["assistant", "commentary", "analysis"];

/// `NAMEKEY</arg_key><arg_value>…`: the beginning of the key is gone (GLM).
fn glued<'a>(text: &'a str, is_tool: IsTool<'_>) -> Found<'a> {
    let (both, _) = text.split_once("</arg_key>")?;
    let is_name = |at: &usize| both.get(..*at).is_some_and(is_tool);
    let mut ends = (1..both.len().min(json::LONGEST)).rev();
    let end = json::is_word(both).then(|| ends.find(is_name))??;
    let (name, rest) = text.split_at(end);
    function(name, rest)
}

/// A patch in the V4A format (GPT), up to its last end.
fn patch(text: &str) -> Found<'_> {
    let (begin, end) = repair::PATCH;
    text.starts_with(begin).then_some(())?;
    let ends = text.match_indices(end).map(|(at, _)| at + end.len());
    let (patch, rest) = text.split_at(ends.last()?);
    let arguments = Fields::from_iter([(repair::PATCH_ARGUMENT.to_owned(), patch.into())]);
    // Stars after the mark are part of it.
    let rest = rest.trim_start_matches([' ', '*']);
    Some((vec![TextCall::new(PATCH_TOOL.to_owned(), arguments)], rest))
}

/// The tool that applies a patch.
const PATCH_TOOL: &str = "apply_patch";

/// `{"TOOL": {…}}`, one or a list of them.
fn by_key(value: &Value, is_tool: IsTool<'_>) -> Option<Vec<TextCall>> {
    let items = match value {
        Value::Array(items) => items.as_slice(),
        one => std::slice::from_ref(one),
    };
    let call = |item: &Value| {
        let mut fields = item.as_object()?.iter();
        let (Some((name, Value::Object(arguments))), None) = (fields.next(), fields.next()) else {
            return None;
        };
        is_tool(name).then(|| TextCall::new(name.clone(), arguments.clone()))
    };
    items
        .iter()
        .map(call)
        .collect::<Option<Vec<_>>>()
        .filter(|calls| !calls.is_empty())
}

/// `{"name": "TOOL", "path": …}`: the arguments are next to the name. Without marks, it may be data.
fn flat<'a>(text: &'a str, is_tool: IsTool<'_>) -> Found<'a> {
    let (Value::Object(mut arguments), rest, is_completed) = complete(text)? else {
        return None;
    };
    let mut names = arguments
        .iter()
        .filter_map(|(key, name)| Some((key, name.as_str()?)));
    let (key, name) =
        names.find(|(key, name)| json::tells(key, &[json::NAMES]) && is_tool(name))?;
    let (key, name) = (key.clone(), name.to_owned());
    arguments.shift_remove(&key);
    let is_own =
        |key: &String| !json::tells(key, &[json::ARGUMENTS]) && !lists(json::WRAPPERS, key);
    (!arguments.is_empty() && arguments.keys().all(is_own)).then_some((
        vec![TextCall {
            name,
            arguments,
            is_completed,
        }],
        rest,
    ))
}

/// `NAME{key:<escape>value<escape>,…}`: JSON whose quotes are a token, any others or none, in braces or parentheses (Gemma).
fn escaped(text: &str) -> Found<'_> {
    let (name, arguments) = text.split_at(text.find(['{', '('])?);
    let (Value::Object(arguments), rest) = repair::bare_value(arguments)? else {
        return None;
    };
    let call = TextCall::new(name.trim().to_owned(), arguments);
    Some((vec![call], rest))
}

/// Separators between a name and its arguments, besides tokens: Hunyuan, Mistral, Qwen 1.5.
const BETWEEN: [&str; 3] = ["<tool_sep>", "[ARGS]", "✿ARGS✿:"];

/// The text after the marks, punctuation and keywords between a name and its arguments.
fn between(text: &str) -> &str {
    let mut rest = text;
    loop {
        let inside =
            rest.trim_start_matches(|c: char| c.is_whitespace() || "\"':=>→,]".contains(c));
        let mark = BETWEEN.iter().find_map(|mark| marks::after(inside, mark));
        let (word, after) = json::split_word(inside.trim_start_matches(['<', '{']));
        let begun = after.trim_start_matches(|c: char| c.is_whitespace() || "\"':=>".contains(c));
        let is_word = json::tells(word, &[json::ARGUMENTS])
            && (begun.starts_with(['{', '<', '-'])
                || after.trim_start_matches([':', ' ']).starts_with('\n'));
        let Some(after) = mark
            .or_else(|| is_word.then_some(begun))
            .or_else(|| marks::after_edge(inside))
        else {
            return inside;
        };
        rest = after;
    }
}

/// The name that a text begins with, and the rest.
fn split_name(text: &str) -> (&str, &str) {
    let is_of_name = |c: char| c.is_alphanumeric() || "_-.:/".contains(c);
    text.split_at(text.find(|c| !is_of_name(c)).unwrap_or(text.len()))
}

/// A name, and the arguments in one of many forms.
fn named<'a>(text: &'a str, is_tool: IsTool<'_>) -> Found<'a> {
    // The text before it is an id (Solar).
    let text = marks::after(split_name(text).1, "<|tool_call:name|>").unwrap_or(text);
    let (name, rest) = Some(split_name(text)).filter(|(name, _)| !name.is_empty())?;
    if rest.starts_with('(')
        && let Some((call, rest)) = python::call(text)
    {
        return Some((vec![call], rest));
    }
    if let Some(after) = marks::after(rest.trim_start(), "</tool_call>")
        && is_tool(name)
    {
        let call = TextCall::new(name.to_owned(), Fields::new());
        return Some((vec![call], after));
    }
    let rest = match rest.strip_prefix("[CALL_ID]") {
        Some(rest) => rest.split_at_checked(rest.find("[ARGS]")?)?.1,
        None => rest,
    };
    let name = name.trim_end_matches(':');
    let rest = between(rest.strip_prefix('(').unwrap_or(rest));
    if let Some(found) = with_json(name, rest) {
        return Some((found.0, closed(found.1)));
    }
    let found = is_tool(name).then(|| function(name, rest))?;
    found.filter(|(calls, rest)| {
        calls.iter().all(|call| !call.arguments.is_empty())
            && (rest.is_empty() || rest.starts_with('`') || rest.starts_with(marks::SIGNS))
    })
}

#[cfg(test)]
mod tests;
