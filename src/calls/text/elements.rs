//! Calls whose arguments are written as tags: `<read_file><path>a.rs</path></read_file>`. Pure.

use serde_json::{Map, Value};

use super::json::{Found, TextCall, with_json};
use crate::text::marks::{self, Kind};

/// The calls in the element that names a tool, after its tag: one, or one for each file.
pub(super) fn call<'a>(name: &str, text: &'a str) -> Found<'a> {
    let (inside, rest) = text.split_once(&format!("</{name}>"))?;
    let Some(args) = inside
        .trim()
        .strip_prefix("<args>")
        .and_then(|args| args.strip_suffix("</args>"))
    else {
        let (call, left) = function(name, inside, "", &element)?;
        return left.trim().is_empty().then_some((call, rest));
    };
    let call = |arguments| TextCall::new(name.to_owned(), arguments);
    Some((files(args.trim())?.into_iter().map(call).collect(), rest))
}

/// The arguments of each `<file>` in `<args>`; without one all of it.
fn files(args: &str) -> Option<Vec<Map<String, Value>>> {
    if !args.starts_with("<file>") {
        return Some(vec![members(args)?]);
    }
    let mut files = Vec::new();
    let mut rest = args;
    while !rest.is_empty() {
        let (file, after) = rest.strip_prefix("<file>")?.split_once("</file>")?;
        files.push(members(file)?);
        rest = after.trim_start();
    }
    Some(files)
}

/// The elements of a file; several `<diff>` are one.
fn members(text: &str) -> Option<Map<String, Value>> {
    let mut members: Map<String, Value> = Map::new();
    let mut rest = text.trim();
    while let Some((key, value, after)) = element(rest) {
        let value = if key == "diff" {
            content(value)
        } else {
            unpadded(value)
        };
        match members.get_mut(key) {
            Some(Value::String(before)) if key == "diff" => before.extend(["\n", value]),
            Some(_) => return None,
            None => _ = members.insert(key.to_owned(), value.into()),
        }
        rest = after.trim_start();
    }
    rest.is_empty().then_some(members)
}

/// The `<content>` of a `<diff>`, which may have a number of its line beside it.
fn content(diff: &str) -> &str {
    let inside = diff
        .split_once("<content>")
        .and_then(|(_, inside)| inside.rsplit_once("</content>"));
    unpadded(inside.map_or(diff, |(inside, _line)| inside))
}

/// Reads one argument from the beginning of a text.
pub(super) type Argument<'f> = &'f dyn for<'a> Fn(&'a str) -> Option<(&'a str, &'a str, &'a str)>;

/// Consecutive arguments, or all of them as JSON, up to `end`, which may be missing at the end of the text.
pub(super) fn function<'a>(
    name: &str,
    text: &'a str,
    end: &str,
    argument: Argument<'_>,
) -> Found<'a> {
    let name = name.trim().trim_matches(['"', '\'']);
    let close = |rest: &'a str| {
        let rest = rest.trim_start();
        marks::after(rest, end).unwrap_or(rest)
    };
    if text.trim_start().starts_with('{') {
        let (calls, rest) = with_json(name, text)?;
        return Some((calls, close(rest)));
    }
    let mut arguments = Map::new();
    let mut rest = text.trim_start();
    while let Some((key, value, after)) = argument(rest) {
        arguments.insert(
            key.trim().trim_matches(['"', '\'']).to_owned(),
            unpadded(value).into(),
        );
        rest = after.trim_start();
    }
    Some((vec![TextCall::new(name.to_owned(), arguments)], close(rest)))
}

/// The argument of `MiniCPM` 5. No row of the table: the comments of C# have such elements, and an edit may end with one.
const PARAM: (&str, &str) = ("<param name=", "</param>");

/// `<parameter=KEY>VALUE</parameter>` and the like, with attributes after the key.
pub(super) fn parameter(text: &str) -> Option<(&str, &str, &str)> {
    let rows = marks::pairs(&[Kind::Argument]).filter(|(begin, _)| begin.ends_with('='));
    let mut marks = rows.chain([PARAM]);
    let (rest, end) = marks.find_map(|(begin, end)| Some((marks::after(text, begin)?, end)))?;
    let (key, rest) = rest.split_once('>')?;
    let key = key.split_once("\" ").map_or(key, |(key, _attributes)| key);
    let (value, rest) = closed(rest, end).or_else(|| {
        // The last end is often forgotten; the function's own stays where it is.
        let ends = marks::ends(&[Kind::Named, Kind::Calls]);
        let end = ends.filter_map(|end| marks::find(rest, end)).min();
        Some(rest.split_at(end?.0))
    })?;
    Some((key, value, rest))
}

/// A value up to the end of its parameter: the first end that another parameter or the end of the call follows.
fn closed<'a>(text: &'a str, end: &'a str) -> Option<(&'a str, &'a str)> {
    let ends: Vec<(&str, &str)> = marks::all(text, end)
        .map(|(from, to)| (text.split_at(from).0, text.split_at(to).1))
        .collect();
    let is_last = |rest: &str| {
        let rest = rest.trim_start();
        let begins = |next: &&str| marks::after(rest, next).is_some();
        rest.is_empty()
            || marks::begins(&[Kind::Argument])
                .filter(|begin| begin.ends_with('='))
                .chain([PARAM.0, "</function", "</invoke", "</tool", "</call"])
                .any(|next| begins(&next))
    };
    let last = ends.iter().find(|(_, rest)| is_last(rest));
    last.or(ends.first()).copied()
}

/// `<KEY>VALUE</KEY>`.
pub(super) fn element(text: &str) -> Option<(&str, &str, &str)> {
    let (key, rest) = text
        .strip_prefix('<')?
        .split_once('>')
        .filter(|(key, _)| is_word(key))?;
    let (value, rest) = rest.split_once(&format!("</{key}>"))?;
    Some((key, value, rest))
}

/// `<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>`. The beginning of a key may be missing or be another one, and
/// each of its tags may be there twice.
pub(super) fn pair(text: &str) -> Option<(&str, &str, &str)> {
    let mut rest = text;
    let begins = |rest| {
        ["<arg_key>", "<tool_call>"]
            .iter()
            .find_map(|mark| marks::after(rest, mark))
    };
    while let Some(after) = begins(rest) {
        rest = after.trim_start();
    }
    let (key, mut rest) = rest.split_once("</arg_key>")?;
    while let Some(after) = marks::after(rest.trim_start(), "</arg_key>") {
        rest = after;
    }
    let opened = marks::after(rest.trim_start(), "<arg_value>");
    let (value, rest) = match opened.unwrap_or(rest).split_once("</arg_value>") {
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

pub(super) fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}
