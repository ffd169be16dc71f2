//! Calls as Python writes them. Pure.

use serde_json::{Map, Value};

use super::json::{Found, TextCall, is_word};
use crate::text::repair;

/// Begins the key of an argument that has a position instead of a name; its number follows.
pub(super) const POSITION: char = '#';

/// `[f(a=1), g(b="x")]`.
pub(super) fn list(text: &str) -> Found<'_> {
    let mut rest = text.strip_prefix('[')?.trim_start();
    let mut calls = Vec::new();
    loop {
        let (call, after) = call(rest)?;
        calls.push(call);
        let after = after.trim_start();
        if let Some(after) = after.strip_prefix(']') {
            return Some((calls, after));
        }
        rest = after.strip_prefix(',')?.trim_start();
    }
}

/// `f(a=1, b="x")` or `f("x")`, with or without `print`.
pub(super) fn call(text: &str) -> Option<(TextCall, &str)> {
    match text.strip_prefix("print(") {
        Some(inside) => {
            let (call, rest) = plain(inside.trim_start())?;
            Some((call, rest.trim_start().strip_prefix(')')?))
        }
        None => plain(text),
    }
}

fn plain(text: &str) -> Option<(TextCall, &str)> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let (name, rest) = text.split_once('(')?;
    if rest.starts_with('{') || name.is_empty() || !name.chars().all(is_of_name) {
        return None;
    }
    let mut arguments = Map::new();
    let mut rest = rest.trim_start();
    let mut are_named = false;
    while !rest.starts_with(')') {
        let key = rest
            .split_once('=')
            .map(|(key, value)| (key.trim(), value))
            .filter(|(key, _)| is_word(key));
        are_named |= key.is_some();
        let (key, text) = match key {
            Some((key, value)) => (key.to_owned(), value.trim_start()),
            None if !are_named => (format!("{POSITION}{}", arguments.len()), rest),
            None => return None,
        };
        let (value, after) = value(text)?;
        arguments.insert(key, value);
        let after = after.trim_start();
        rest = after
            .strip_prefix(',')
            .or_else(|| after.starts_with(')').then_some(after))?
            .trim_start();
    }
    let name = name.strip_suffix(".call").unwrap_or(name);
    Some((
        TextCall::new(name.to_owned(), arguments),
        rest.strip_prefix(')')?,
    ))
}

pub(super) fn value(text: &str) -> Option<(Value, &str)> {
    match ["\"\"\"", "'''"]
        .iter()
        .find_map(|quote| Some((quote, text.strip_prefix(quote)?)))
    {
        Some((quote, inside)) => inside
            .split_once(quote)
            .map(|(text, after)| (text.into(), after)),
        None => repair::first_value(text).filter(|_| text.starts_with(is_literal)),
    }
}

/// Whether a literal can begin with this character; a variable has no value here.
fn is_literal(begin: char) -> bool {
    begin.is_ascii_digit() || "\"'<-[{TFNtfn".contains(begin)
}
