//! Repairs tool call arguments that are not quite JSON. Pure.
//!
//! Only unambiguous mistakes are repaired: text encoded twice, words or a fence around the object, line breaks in strings,
//! commas too many, comments, other quotes, unknown escapes, Python's keywords.
//!
//! Truncated arguments stay invalid: nothing is invented. Only brackets that are missing at the end are added, where the
//! answer is known to be complete.

mod reader;

use serde_json::Value;

use self::reader::Reader;
use super::{Fields, marks, unfenced};

/// How often text may be encoded.
const LAYERS: usize = 3;

/// What a patch begins and ends with.
pub(crate) const PATCH: (&str, &str) = ("*** Begin Patch", "*** End Patch");
/// The argument that a patch is passed as.
pub(crate) const PATCH_ARGUMENT: &str = "patch";

/// What had to be done to arguments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Repair {
    /// Nothing.
    #[default]
    None,
    /// They were written in another way.
    Spelling,
    /// Their last brackets were added: more may be missing than those.
    Brackets,
}

/// The object in `text`, and how it was repaired. `is_whole`: the model ended it, rather than a limit.
pub fn object(text: &str, is_whole: bool) -> Option<(Fields, Repair)> {
    if let Ok(Value::Object(fields)) = serde_json::from_str(text) {
        return Some((fields, Repair::None));
    }
    if let Some(fields) = last(text).or_else(|| layers(text, LAYERS)) {
        return Some((fields, Repair::Spelling));
    }
    if !is_whole {
        return None;
    }
    if let Some(fields) = closed(text).and_then(|text| layers(&text, LAYERS)) {
        return Some((fields, Repair::Brackets));
    }
    let bare = || layers(bare(text)?, LAYERS);
    let fields = bare()
        .or_else(|| layers(&text.replace("&quot;", "\""), LAYERS))
        .or_else(|| layers(&unescaped(text)?, LAYERS));
    Some((fields?, Repair::Spelling))
}

/// The whole object at the end of ever longer beginnings of it, as servers send that repeat what came before.
fn last(text: &str) -> Option<Fields> {
    const BEGINNING: usize = 3;
    const TRIES: usize = 16;
    let beginning = text.get(..BEGINNING).filter(|it| it.starts_with('{'))?;
    let mut ends = text.rmatch_indices(beginning).take(TRIES);
    ends.find_map(|(at, _)| {
        let (mut before, whole) = text.split_at(at);
        while !before.is_empty() {
            let same = before
                .bytes()
                .zip(whole.bytes())
                .take_while(|(a, b)| a == b);
            before = before
                .get(same.count()..)
                .filter(|rest| rest.len() < before.len())?;
        }
        serde_json::from_str(whole).ok()
    })
}

/// The object without the words around it: `arguments = {…}`, `{…} This reads it.`
fn bare(text: &str) -> Option<&str> {
    let (begin, end) = (text.find('{')?, text.rfind('}')? + 1);
    let (before, rest) = text.split_at(begin);
    let (object, after) = rest.split_at(end - begin);
    let is_plain = |words: &str| !words.contains(['{', '}', '"', '\'']);
    let is_quote = |words: &str| matches!(words.trim(), "\"" | "'");
    let surrounds = |words: &str| is_plain(words) || is_quote(words);
    (object.len() < text.len() && surrounds(before) && surrounds(after)).then_some(object)
}

/// The object whose every quote was escaped, as inside a string: `{\"a\": 1}`.
fn unescaped(text: &str) -> Option<String> {
    serde_json::from_str(&format!("\"{}\"", text.trim())).ok()
}

/// A text with XML's predefined references, as an envelope of markup requires them, and HTML's apostrophe resolved.
pub(crate) fn dereferenced(text: &str) -> String {
    let signs = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&apos;", "'"),
        ("&#39;", "'"),
        ("&amp;", "&"),
    ];
    let resolve = |text: String, (reference, sign)| text.replace(reference, sign);
    signs.into_iter().fold(text.to_owned(), resolve)
}

/// A text with one level of backslash escapes resolved.
pub(crate) fn unescape(text: &str) -> String {
    let (mut plain, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once('\\') {
        plain.push_str(before);
        rest = escape(after, "\"'`\\", &mut plain).unwrap_or_else(|| {
            plain.push('\\');
            after
        });
    }
    plain + rest
}

/// Adds what an escape means whose backslash is before `text`, and returns what follows it. A sign of `plain` means
/// itself; any other escape is what it looks like.
fn escape<'a>(text: &'a str, plain: &str, meant: &mut String) -> Option<&'a str> {
    // The four digits of a code point, or a pair of surrogates (RFC 8259, section 7).
    let coded = [5, 11].into_iter().find_map(|length| {
        let code = text.get(..length).filter(|code| code.starts_with('u'))?;
        let meant: String = serde_json::from_str(&format!("\"\\{code}\"")).ok()?;
        Some((meant, text.split_at(length).1))
    });
    if let Some((code, rest)) = coded {
        meant.push_str(&code);
        return Some(rest);
    }
    let sign = text.chars().next()?;
    match sign {
        'n' => meant.push('\n'),
        't' => meant.push('\t'),
        'r' => meant.push('\r'),
        sign if plain.contains(sign) => meant.push(sign),
        other => meant.extend(['\\', other]),
    }
    Some(text.split_at(sign.len_utf8()).1)
}

/// The object that `text` is without its last brackets; `None` if anything else is missing.
pub fn unclosed(text: &str) -> Option<Value> {
    value(&closed(text)?).filter(Value::is_object)
}

/// How many brackets may be missing.
const MISSING: usize = 3;

/// `text` with the brackets it lacks after a complete value: a string, a bracket, `true`, `false` or `null`. A number may
/// go on.
fn closed(text: &str) -> Option<String> {
    let text = text.trim_end();
    let (mut open, mut quoted, mut escaped) = (Vec::new(), false, false);
    for character in text.chars() {
        match character {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '{' => open.push('}'),
            '[' => open.push(']'),
            '}' | ']' => _ = open.pop().filter(|wanted| *wanted == character)?,
            _ => {}
        }
    }
    let is_complete = ["\"", "}", "]", "true", "false", "null"]
        .iter()
        .any(|end| text.ends_with(end));
    let is_near = !quoted && is_complete && (1..=MISSING).contains(&open.len());
    is_near.then(|| text.chars().chain(open.into_iter().rev()).collect())
}

fn layers(text: &str, left: usize) -> Option<Fields> {
    let text = unfenced(text.trim_start_matches('\u{feff}').trim()).trim();
    if text.starts_with(PATCH.0) {
        let is_whole = text.trim_end().ends_with(PATCH.1);
        return is_whole.then(|| Fields::from_iter([(PATCH_ARGUMENT.to_owned(), text.into())]));
    }
    match value(text)? {
        Value::Object(fields) => Some(fields),
        Value::String(inner) if left > 0 => layers(&inner, left - 1),
        Value::Array(items) => match <[Value; 1]>::try_from(items) {
            Ok([Value::Object(fields)]) => Some(fields),
            _ => None,
        },
        _ => None,
    }
}

/// The value that all of `text` is, read as leniently as it can be without guessing.
pub fn value(text: &str) -> Option<Value> {
    if let Ok(value) = serde_json::from_str(text) {
        return Some(value);
    }
    let text = unfenced(text.trim());
    let (mut value, mut rest) = first_value(text)?;
    let mut text = text;
    // Some servers begin with the empty value that a stream of arguments starts from.
    if is_empty(&value) && rest.trim_start().starts_with('{') {
        text = rest;
        (value, rest) = first_value(text)?;
    }
    // A copy of it cut off by a limit, or nothing.
    let again = rest.trim();
    let is_copy = ["\"\"", "{}"].contains(&again)
        || (again.len() > 1 && text.trim_start().starts_with(again));
    (is_copy || is_noise(rest)).then_some(value)
}

/// The value that `text` begins with, and what follows it.
pub fn first_value(text: &str) -> Option<(Value, &str)> {
    read(text, false)
}

/// The same, where quotes may be missing and parentheses stand for braces.
pub(crate) fn bare_value(text: &str) -> Option<(Value, &str)> {
    read(text, true)
}

fn read(rest: &str, is_bare: bool) -> Option<(Value, &str)> {
    let mut reader = Reader { rest, is_bare };
    Some((reader.value(0)?, reader.rest))
}

fn is_empty(value: &Value) -> bool {
    value == "" || value.as_object().is_some_and(Fields::is_empty)
}

/// Whether nothing but blanks, closing brackets too many and control tokens is left.
fn is_noise(rest: &str) -> bool {
    let rest = rest.trim().trim_matches(['}', ']', ';', '`']).trim();
    rest == r"\n" || marks::after_edges(rest).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a case writes its JSON in place"
    )]
    fn check(text: &str, expected: Value) {
        let (fields, repaired) = object(text, true).unwrap_or_else(|| panic!("{text}"));
        assert!(repaired != Repair::None, "{text}");
        assert_eq!(Value::Object(fields), expected, "{text}");
    }

    #[test]
    fn valid_json_is_not_changed() {
        assert_eq!(
            object(r#"{"a": "\u00e9\n"}"#, true),
            Some((
                Fields::from_iter([("a".to_owned(), "é\n".into())]),
                Repair::None
            ))
        );
    }

    #[test]
    fn unambiguous_json_errors_are_repaired() {
        check(r#""{\"a\": 1}""#, json!({ "a": 1 }));
        check(r#""\"{\\\"a\\\": 1}\"""#, json!({ "a": 1 }));
        check("```json\n{\"a\": 1}\n```", json!({ "a": 1 }));
        check("{\"a\": \"x\ny\t\"}", json!({ "a": "x\ny\t" }));
        check(
            r#"{"a": [1, 2,], "b": {"c": 3,},}"#,
            json!({ "a": [1, 2], "b": { "c": 3 } }),
        );
        check(
            r#"{"a": "\d+\(\bx\"\n\u00e9\ud83e\udd80"}"#,
            json!({ "a": "\\d+\\(\\bx\"\n\u{e9}\u{1f980}" }),
        );
        check(
            "{'a': True, 'b': None, 'c': False, d: 'it\\'s'}",
            json!({ "a": true, "b": null, "c": false, "d": "it's" }),
        );
        check(r#"{"a": 1, "b": \n2\n}"#, json!({ "a": 1, "b": 2 }));
        check(r#"{}{"a": 1}"#, json!({ "a": 1 }));
        check(r#"{"a": 1}{}"#, json!({ "a": 1 }));
        check(r#"""{"a": 1}"#, json!({ "a": 1 }));
        check(r#"{"a": "x{"a": "xy"}"#, json!({ "a": "xy" }));
        check(r#"{"a{"a": "é{"a": "éy"}"#, json!({ "a": "éy" }));
        check(r#"{"a": 1}}"#, json!({ "a": 1 }));
        check(r#"{"a": 1}<|call|>"#, json!({ "a": 1 }));
        check("\u{feff}{\"a\": 1}", json!({ "a": 1 }));
        check(r#"{"a": 1}</arguments></tool_call>"#, json!({ "a": 1 }));
        check(
            "{\"a\": /* one **/ 1, // two\n \"b\": \"//3\"}",
            json!({ "a": 1, "b": "//3" }),
        );
        check(r#"[{"a": 1}]"#, json!({ "a": 1 }));
        check("{“a”: “x”}", json!({ "a": "x" }));
        check(
            "{ # one\n,'a' => 1,, \"b\" = +02, c: NaN}",
            json!({ "a": 1, "b": 2, "c": null }),
        );
        check(
            "{\"a\": 1\n \"b\": \"x\"\n\"c\": 2}",
            json!({ "a": 1, "b": "x", "c": 2 }),
        );
        check(
            "{\"a\": \"\"\"say \"hi\"\\n\"\"\", \"b\": `x\ny`, \"c\": \"1\" + \"2\"}",
            json!({ "a": "say \"hi\"\n", "b": "x\ny", "c": "12" }),
        );
        check(r#"{"a": "x" "b": 0x20}"#, json!({ "a": "x", "b": 32 }));
        check(r#"{\"a\": \"x\"}"#, json!({ "a": "x" }));
        check(r#"{{"a": 1}}"#, json!({ "a": 1 }));
        check("arguments = {\"a\": 1}", json!({ "a": 1 }));
        check("```json\n{\"a\": 1}\n```\nThat is all.", json!({ "a": 1 }));
        check("<arguments>{\"a\": 1}</arguments>", json!({ "a": 1 }));
        check("\"{\"a\": 1}\"", json!({ "a": 1 }));
        let patch = "*** Begin Patch\n*** Delete File: a\n*** End Patch";
        check(patch, json!({ "patch": patch }));
        check(&format!("```\n{patch}\n```"), json!({ "patch": patch }));
        check(
            &serde_json::to_string(patch).unwrap(),
            json!({ "patch": patch }),
        );
    }

    #[test]
    fn truncated_or_ambiguous_json_is_not_repaired() {
        let cases = [
            "{",
            r#"{"a""#,
            r#"{"a": "x"#,
            r#"{"a": 1"#,
            r#"{"a": tru"#,
            r#"{"a": "say "hi" now"}"#,
            r#"{"a": "x"} y"}"#,
            r#"{"a": "x" "b" "c"}"#,
            r#"{"a": "x" "b c": 1}"#,
            r#"{"a": """x"}"#,
            "awk '{a: 1}'",
            "{\"a\": 1 /*",
            "[1]",
            "7",
        ];
        for text in cases.iter().chain(&[
            "*** Begin Patch\n-x",
            "",
            "ls",
            r#"{"a": 1} {"a": 2}"#,
            r#"{"a": "x{"b": "xy"}"#,
            r#"{"a": "x {"a": "y"}"#,
            r#""x""#,
        ]) {
            assert_eq!(object(text, true), None, "{text}");
        }
        assert_eq!(object(&"[".repeat(100_000), true), None);
    }

    #[test]
    fn missing_brackets_are_added_where_the_answer_is_complete() {
        check(r#"{"a": "x""#, json!({ "a": "x" }));
        check(
            r#"{"a": [{"b": "}", "c": true}]"#,
            json!({ "a": [{ "b": "}", "c": true }] }),
        );
        check("{\"a\": {\"b\": [\"é\"\n", json!({ "a": { "b": ["é"] } }));
        for text in [r#"{"a": "x""#, r#"{"a": {}"#] {
            assert_eq!(object(text, false), None, "{text}");
        }
        for text in [
            r#"{"a": "x","#,
            r#"{"a":"#,
            r#"{"a": 12"#,
            r#"{"a": {"b": ["c", {"d": "e""#,
            r#"{"a": "x"]"#,
        ] {
            assert_eq!(object(text, true), None, "{text}");
        }
    }
}
