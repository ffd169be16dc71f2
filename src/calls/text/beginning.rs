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

/// The kinds of marks that begin a call.
pub(super) const BEGINS: &[Kind] = &[Kind::Calls, Kind::Named];

/// Whether a text begins with the mark of a call, or is the beginning of one.
pub(super) fn may_be_mark(text: &str) -> bool {
    marks::begins(BEGINS).any(|mark| marks::may_begin(text, mark))
}

/// Whether an answer with this beginning can still be nothing but a call.
pub(super) fn may_be_whole(text: &str) -> bool {
    let text = text.trim();
    if text.is_empty() {
        return false;
    }
    if let Some(rest) = text.strip_prefix("```") {
        let Some((language, code)) = fenced(text) else {
            let begun = rest.to_lowercase();
            return !rest.contains('\n') && LANGUAGES.iter().any(|it| may_begin(&begun, it));
        };
        return may_be_mark(code) || may_be_patch(code) || !is_example((language, code));
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

/// Whether a fence may only illustrate a call: it contains no JSON, which has no marks of its own.
pub(super) fn is_example((language, code): (&str, &str)) -> bool {
    language != "tool_code" && !may_be_json(code.trim_start())
}

/// The language and the code so far of a fence at the beginning of a text, if its language may contain a call.
pub(super) fn fenced(text: &str) -> Option<(&str, &str)> {
    let (language, code) = text.trim_start().strip_prefix("```")?.split_once('\n')?;
    let language = language.trim();
    let lower = language.to_lowercase();
    let is_one = language.is_empty() || LANGUAGES.iter().any(|it| lower.starts_with(it));
    is_one.then(|| (language, code.trim_start()))
}

/// Whether a text begins with a word, or is the beginning of it.
pub(super) fn may_begin(text: &str, word: &str) -> bool {
    text.starts_with(word) || word.starts_with(text)
}

/// Whether a text can be a patch: it has its first line, or only the beginning of it.
pub(super) fn may_be_patch(text: &str) -> bool {
    may_begin(text.trim_start(), PATCH.0)
}

/// Whether a text can begin with the recipient of a call: `call:NAME`, or `to=NAME` after a header without its tokens.
fn may_be_addressed(text: &str) -> bool {
    let headers = HEADER.iter();
    let to = headers.fold(text, |rest, word| rest.strip_prefix(word).unwrap_or(rest));
    may_begin(text, "call:")
        || HEADER.iter().any(|word| word.starts_with(text))
        || ["to=", " to="].iter().any(|it| may_begin(to, it))
}

/// `[{"name":` and `[f(`.
fn may_be_list(text: &str) -> bool {
    let Some(inside) = text.strip_prefix('[').map(str::trim_start) else {
        return false;
    };
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let rest = inside.trim_start_matches(is_of_name);
    may_be_json(inside) || rest.len() < inside.len() && may_begin(rest, "(")
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
