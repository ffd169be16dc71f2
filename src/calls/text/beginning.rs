//! Whether an answer can still turn out to be nothing but a call. Pure.

use super::forms::HEADER;
use super::json;
use crate::text::lists;
use crate::text::marks::{self, Kind};
use crate::text::repair::PATCH;

/// How the languages of a fence begin that may contain a call.
const LANGUAGES: &[&str] = &["json", "tool", "function", "xml", "diff", "patch"];
/// What Phi writes before a list of calls.
const FUNCTOOLS: &str = "functools";

/// Whether an answer with this beginning can still be nothing but a call.
pub(super) fn may_be_whole(text: &str) -> bool {
    let text = text.trim();
    if text.is_empty() {
        return false;
    }
    if let Some(rest) = text.strip_prefix("```") {
        let Some((language, code)) = fenced(text) else {
            let begun = rest.to_lowercase();
            let may_be = |it: &&str| it.starts_with(&begun) || begun.starts_with(it);
            return !rest.contains('\n') && LANGUAGES.iter().any(may_be);
        };
        return !is_example((language, code));
    }
    let listed = text.strip_prefix(FUNCTOOLS).unwrap_or(text);
    "```".starts_with(text)
        || FUNCTOOLS.starts_with(text)
        || may_be_json(listed)
        || may_be_list(listed)
        || may_be_addressed(text)
        || may_be_patch(text)
        || may_be_mark(text) && text.starts_with(char::is_alphabetic)
}

/// Whether a fence may only illustrate a call: it contains no JSON, no patch and no family's mark.
pub(super) fn is_example((language, code): (&str, &str)) -> bool {
    let code = code.trim_start();
    language != "tool_code" && !may_be_json(code) && !may_be_mark(code) && !may_be_patch(code)
}

/// The language and the code so far of a fence at the beginning of a text, if its language may contain a call.
pub(super) fn fenced(text: &str) -> Option<(&str, &str)> {
    let (language, code) = text.trim_start().strip_prefix("```")?.split_once('\n')?;
    let language = language.trim();
    let lower = language.to_lowercase();
    let is_one = language.is_empty() || LANGUAGES.iter().any(|it| lower.starts_with(it));
    is_one.then(|| (language, code.trim_start()))
}

/// Whether a text can be a patch: it has its first line, or only the beginning of it.
pub(super) fn may_be_patch(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with(PATCH.0) || PATCH.0.starts_with(text)
}

/// Whether a text can begin with the recipient of a call: `call:NAME`, or `to=NAME` after a header without its tokens.
fn may_be_addressed(text: &str) -> bool {
    let begins = |word: &str| text.starts_with(word) || word.starts_with(text);
    let words = HEADER
        .iter()
        .fold(text, |rest, word| rest.strip_prefix(word).unwrap_or(rest));
    begins("call:")
        || begins("to=")
        || HEADER.iter().any(|word| word.starts_with(text))
        || words.len() < text.len()
            && ["to=", " to="]
                .iter()
                .any(|to| words.starts_with(to) || to.starts_with(words))
}

fn may_be_mark(text: &str) -> bool {
    marks::begins(&[Kind::Calls, Kind::Named])
        .any(|mark| marks::after(text, mark).is_some() || marks::may_become(text, mark))
}

/// `[{"name":` and `[f(`.
fn may_be_list(text: &str) -> bool {
    let Some(inside) = text.strip_prefix('[') else {
        return false;
    };
    let inside = inside.trim_start();
    let name: String = inside
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || *c == '_' || *c == '.')
        .collect();
    let rest = inside.strip_prefix(name.as_str()).unwrap_or_default();
    inside.is_empty()
        || may_be_json(inside)
        || !name.is_empty() && (rest.is_empty() || rest.starts_with('('))
}

/// Whether a text begins as the JSON of a call: with one of its members.
fn may_be_json(text: &str) -> bool {
    let text = text.trim_start();
    let text = text.strip_prefix('[').unwrap_or(text).trim_start();
    let Some(inside) = text.strip_prefix('{') else {
        return text.is_empty();
    };
    let member = inside.trim_start();
    let Some(name) = member.strip_prefix(['"', '\'']) else {
        return member.is_empty();
    };
    name.split_once(['"', '\'']).is_none_or(|(name, _)| {
        lists(json::REST, name) || json::tells(name, &[json::NAMES, json::ARGUMENTS])
    })
}

/// The language and code of a fence that makes up all of `text`.
pub(super) fn whole_fence(text: &str) -> Option<(&str, &str)> {
    let inside = text.trim().strip_prefix("```")?;
    let inside = inside.strip_suffix("```").unwrap_or(inside);
    let (language, code) = inside.split_once('\n')?;
    (!code.contains("```")).then(|| (language.trim(), code))
}
