//! Calls whose arguments are written as tags: `<read_file><path>a.rs</path></read_file>`. Pure.

use serde_json::Value;

use super::json::{Found, TextCall, is_word, split_word, with_json};
use super::python;
use crate::text::Fields;
use crate::text::marks::{self, Kind};

/// The calls in the element that names a tool, after its tag: one, or one for each file.
pub(super) fn call<'a>(name: &str, text: &'a str) -> Found<'a> {
    let (inside, rest) = text.split_once(&format!("</{name}>"))?;
    let Some(args) = inside
        .trim()
        .strip_prefix("<args>")
        .and_then(|args| args.strip_suffix("</args>"))
    else {
        let (call, left) = function(name, inside)?;
        return left.trim().is_empty().then_some((call, rest));
    };
    let elements = all(args)?;
    let files: Option<Vec<Fields>> = if elements.iter().all(|(key, _)| *key == "file") {
        let files = elements.iter();
        files.map(|(_, file)| members(all(file)?)).collect()
    } else {
        members(elements).map(|only| vec![only])
    };
    let call = |arguments| TextCall::new(name.to_owned(), arguments);
    Some((files?.into_iter().map(call).collect(), rest))
}

/// The arguments in the elements of a file; several `<diff>` are one.
fn members(elements: Vec<(&str, &str)>) -> Option<Fields> {
    let mut members = Fields::new();
    for (key, value) in elements {
        let is_diff = key == "diff";
        let value = if is_diff { content(value) } else { value };
        match members.get_mut(key) {
            Some(Value::String(before)) if is_diff => before.extend(["\n", value]),
            Some(_) => return None,
            None => _ = members.insert(key.to_owned(), value.into()),
        }
    }
    Some(members)
}

/// The `<content>` of a `<diff>`, which may have a number of its line beside it.
fn content(diff: &str) -> &str {
    let inside = diff.split_once("<content>");
    let inside = inside.and_then(|(_, inside)| inside.rsplit_once("</content>"));
    inside.map_or(diff, |(inside, _line)| unpadded(inside))
}

/// Consecutive arguments in any form, or all of them as JSON.
pub(super) fn function<'a>(name: &str, text: &'a str) -> Found<'a> {
    let mut rest = text.trim_start();
    if rest.starts_with('{') {
        if let Some((calls, rest)) = with_json(name, rest) {
            return Some((calls, closed(rest)));
        }
        rest = rest.trim_start_matches(['{', ' ', '\n']);
        // The other forms don't apply to broken JSON.
        (!rest.starts_with(['"', '\''])).then_some(())?;
    }
    let mut arguments = Fields::new();
    while let Some((key, value, after)) = argument(rest) {
        let key = key.trim().trim_matches(['"', '\'']).to_owned();
        let before = arguments.insert(key.clone(), value);
        // A repeated key: these are lines of prose that look like arguments, or items of a list.
        (before.is_none() || rest.starts_with('<')).then_some(())?;
        if let Some(before) = before
            && let Some(value) = arguments.get_mut(&key)
        {
            listed(before, value);
        }
        rest = after.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
    }
    let rest = closed(rest);
    // Without a closing character, the last value may be incomplete.
    let is_open = !text.trim_end().ends_with(['"', '\'', '>', ')', '}', ']']);
    let call = TextCall {
        is_completed: rest.is_empty() && is_open,
        ..TextCall::new(name.to_owned(), arguments)
    };
    Some((vec![call], rest))
}

/// Puts a value that has elements of its own behind an earlier one of the same name. Of other values, the last one counts.
fn listed(before: Value, value: &mut Value) {
    let has_elements = |value: &Value| value.as_str().is_some_and(|text| all(text).is_some());
    let last = value.take();
    *value = match before {
        Value::Array(mut items) => {
            items.push(last);
            items.into()
        }
        before if has_elements(&before) && has_elements(&last) => vec![before, last].into(),
        _ => last,
    };
}

/// The text after the brackets and tags that may end arguments.
pub(super) fn closed(text: &str) -> &str {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || "})\"'/>".contains(c));
        let after = marks::ends(&[Kind::Argument]).find_map(|end| marks::after(rest, end));
        match after {
            Some(after) => rest = after,
            None => return rest,
        }
    }
}

/// An argument in a family's form, as an element, or as an assignment.
fn argument(text: &str) -> Option<(&str, Value, &str)> {
    let tagged = parameter(text)
        .or_else(|| pair(text))
        .or_else(|| element(text));
    let tagged = tagged.map(|(key, value, rest)| (key, unpadded(value).into(), rest));
    tagged.or_else(|| assigned(text))
}

/// `KEY=VALUE`, `KEY: VALUE`, `KEY => VALUE` or `--KEY VALUE`. After a colon, the value
/// may be an unquoted line without brackets, quotes or separators.
fn assigned(text: &str) -> Option<(&str, Value, &str)> {
    let inside = text.trim_start_matches(['-', '"', '\'']);
    let (key, rest) = split_word(inside);
    let rest = rest.trim_start_matches(['"', '\'']).trim_start_matches(' ');
    // Unquoted, `=` may assign a variable, and an option may take several values.
    let is_unclear = rest.starts_with('=') || text.starts_with("--");
    let mut signs = ["=>", "=", ":"].iter();
    let after = signs.find_map(|sign| rest.strip_prefix(sign));
    let value = after.or_else(|| text.starts_with("--").then_some(rest))?;
    let value = value.trim_start_matches(' ');
    let is_end = |rest: &str| {
        rest.is_empty() || rest.starts_with(|c: char| c.is_whitespace() || ",)}]<[/>".contains(c))
    };
    let literal = python::value(value).filter(|(_, rest)| is_end(rest));
    let line = || {
        let (line, rest) = value.split_at(value.find(['\n', '<', '[']).unwrap_or(value.len()));
        let is_one = !line.trim().is_empty() && !line.contains(|c| "{}()>,;|\"'`".contains(c));
        (is_one && !is_unclear).then(|| (line.trim_end().into(), rest))
    };
    let (value, rest) = literal.or_else(line)?;
    is_word(key).then_some((key, value, rest))
}

/// The argument of `MiniCPM` 5. Not in the table: C# comments have such elements, and an edit may end with one.
const PARAM: (&str, &str) = ("<param name=", "</param>");

/// `<parameter=KEY>VALUE</parameter>` and the like, with attributes after the key.
fn parameter(text: &str) -> Option<(&str, &str, &str)> {
    let mut marks = marks::keyed().chain([PARAM]);
    let found = marks.find_map(|(begin, end)| Some((marks::named(text, begin)?, end)));
    let ((key, _, rest), end) = found?;
    let (value, rest) = up_to(rest, end).or_else(|| {
        // The last end is often forgotten; the function's own stays where it is.
        let ends = marks::ends(&[Kind::Named, Kind::Calls]);
        let end = ends.filter_map(|end| marks::find(rest, end)).min();
        Some(rest.split_at(end?.0))
    })?;
    Some((key, value, rest))
}

/// A value up to the end of its parameter: the first end that another parameter or the end of the call follows.
fn up_to<'a>(text: &'a str, end: &'a str) -> Option<(&'a str, &'a str)> {
    let is_last = |rest: &str| {
        let rest = rest.trim_start();
        let begins = |next: &&str| marks::after(rest, next).is_some();
        rest.is_empty()
            || marks::keyed()
                .map(|(begin, _)| begin)
                .chain([PARAM.0, "</function", "</invoke", "</tool", "</call"])
                .any(|next| begins(&next))
    };
    let mut ends =
        marks::all(text, end).map(|(from, to)| (text.split_at(from).0, text.split_at(to).1));
    let first = ends.next()?;
    let mut all = std::iter::once(first).chain(ends);
    Some(all.find(|(_, rest)| is_last(rest)).unwrap_or(first))
}

/// `<KEY>VALUE</KEY>`.
fn element(text: &str) -> Option<(&str, &str, &str)> {
    let (key, rest) = text
        .strip_prefix('<')?
        .split_once('>')
        .filter(|(key, _)| is_word(key))?;
    let (value, rest) = rest.split_once(&format!("</{key}>"))?;
    Some((key, value, rest))
}

/// The elements that a text consists of; `None` if it has anything else.
pub(in crate::calls) fn all(text: &str) -> Option<Vec<(&str, &str)>> {
    let mut elements = Vec::new();
    let mut rest = text.trim();
    while let Some((key, value, after)) = element(rest) {
        elements.push((key, unpadded(value)));
        rest = after.trim_start();
    }
    (rest.is_empty() && !elements.is_empty()).then_some(elements)
}

/// `<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>`. The beginning of a key may be missing or be another one, and
/// each of its tags may be there twice.
fn pair<'a>(text: &'a str) -> Option<(&'a str, &'a str, &'a str)> {
    let mut rest = text;
    let begins = |rest| {
        ["<arg_key>", "<tool_call>"]
            .iter()
            .find_map(|mark| marks::after(rest, mark))
    };
    while let Some(after) = begins(rest) {
        rest = after.trim_start();
    }
    let split = |text: &'a str, end| {
        let (from, to) = marks::find(text, end)?;
        Some((text.split_at(from).0, text.split_at(to).1))
    };
    let (key, mut rest) = split(rest, "</arg_key>")?;
    while let Some(after) = marks::after(rest.trim_start(), "</arg_key>") {
        rest = after;
    }
    let opened = marks::after(rest.trim_start(), "<arg_value>");
    let (value, rest) = match split(opened.unwrap_or(rest), "</arg_value>") {
        Some(parts) if opened.is_some() || !parts.0.contains('<') => parts,
        // The last end is often forgotten.
        _ => {
            let rest = opened?;
            rest.split_at(marks::find(rest, "</tool_call>")?.0)
        }
    };
    is_word(key.trim()).then_some((key, value, rest))
}

/// A value without its `CDATA` and the line breaks next to both of its tags.
fn unpadded<'a>(value: &'a str) -> &'a str {
    let inside = value
        .trim()
        .strip_prefix("<![CDATA[")
        .and_then(|inside| inside.strip_suffix("]]>"));
    let value = inside.unwrap_or(value);
    let begun = value
        .strip_prefix("\r\n")
        .or_else(|| value.strip_prefix('\n'));
    // Without one at its beginning, the line break at its end is its own.
    let ended = |value: &'a str| {
        value
            .strip_suffix("\r\n")
            .or_else(|| value.strip_suffix('\n'))
            .unwrap_or(value)
    };
    begun.map_or(value, ended)
}
