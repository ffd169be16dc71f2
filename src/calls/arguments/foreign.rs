//! Translates other agents' argument names and values to ours. Pure.
//!
//! An argument that only comments on the call is dropped. One that changes its effect is translated, or else refused
//! later.

use serde_json::{Map, Value};

use super::super::names::squash;
use super::words::Meaning::{self, FileType, Many, Milliseconds, Not, Same, SomeTime};
use super::words::{ALIASES, COMMENTS, FILE_TYPES, LAST_LINES, RANGES, USUAL, WORDS, WRAPPERS};

/// The one of `ours` that a name means.
pub(super) fn find<'a>(
    name: &str,
    mut ours: impl Iterator<Item = &'a str> + Clone,
) -> Option<&'a str> {
    let name = squash(name);
    let alias = alias(&name, &ours).map(|(word, _)| word);
    ours.find(|it| squash(it) == name).or(alias)
}

/// The value of an enumeration that a word means.
pub(super) fn find_word<'a>(
    word: &str,
    mut ours: impl Iterator<Item = &'a str> + Clone,
) -> Option<&'a str> {
    let word = squash(word);
    let known = WORDS
        .iter()
        .find(|(known, _)| *known == word)
        .map(|(_, ours)| *ours);
    ours.clone()
        .find(|it| squash(it) == word)
        .or_else(|| ours.find(|it| Some(*it) == known))
}

fn alias<'a>(
    name: &str,
    ours: &(impl Iterator<Item = &'a str> + Clone),
) -> Option<(&'a str, Meaning)> {
    let of_name = ALIASES.iter().filter(|(known, _, _)| *known == name);
    of_name
        .into_iter()
        .find_map(|(_, word, meaning)| Some((ours.clone().find(|it| it == word)?, *meaning)))
}

/// Whether an argument only comments on the call, or says what it does anyway.
pub(super) fn is_comment(name: &str, value: &Value) -> bool {
    let name = squash(name);
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit());
    COMMENTS.contains(&name)
        || USUAL
            .iter()
            .any(|usual| usual.0 == name && *value == usual.1)
}

/// Whether a value means the same as omitting it.
pub(super) fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty() || squash(text) == "false",
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

/// How many envelopes may stand in each other.
const ENVELOPES: usize = 3;

/// Unwraps a call from its envelopes.
pub(super) fn unwrap(fields: &mut Map<String, Value>, properties: &Map<String, Value>) {
    let mut left = ENVELOPES;
    while left > 0 && unwrap_once(fields, properties) {
        left -= 1;
    }
}

/// Unwraps a call from an envelope: an object or its JSON, with no known argument beside it. Returns whether it did.
fn unwrap_once(fields: &mut Map<String, Value>, properties: &Map<String, Value>) -> bool {
    let is_wrapper = |name: &String| WRAPPERS.contains(&squash(name).as_str());
    let is_known = |name: &String| {
        is_wrapper(name) || find(name, properties.keys().map(String::as_str)).is_some()
    };
    let wrapper = fields
        .iter()
        .find(|(name, _)| is_wrapper(name) && !properties.contains_key(*name));
    let Some((wrapper, inner)) = wrapper else {
        return false;
    };
    let inner = match inner {
        Value::Object(inner) => Some(inner.clone()),
        Value::String(text) => serde_json::from_str(text).ok(),
        Value::Array(items) => match items.as_slice() {
            [Value::Object(only)] => Some(only.clone()),
            _ => None,
        },
        _ => None,
    };
    let stands_alone = !fields
        .keys()
        .any(|name| name != wrapper && properties.contains_key(name));
    let inner =
        inner.filter(|inner| stands_alone && (inner.is_empty() || inner.keys().any(is_known)));
    let is_unwrapped = inner.is_some();
    *fields = inner.unwrap_or_else(|| std::mem::take(fields));
    is_unwrapped
}

/// Renames fields and converts values, unless our own name is present.
pub(super) fn rename(fields: &mut Map<String, Value>, properties: &Map<String, Value>) {
    range(fields, properties);
    for (name, value) in std::mem::take(fields) {
        let ours = properties.keys().map(String::as_str);
        let squashed = squash(&name);
        let squashed = squashed
            .trim_start_matches('-')
            .trim_matches(['"', '\'', ':', '`']);
        let meant = ours
            .clone()
            .find(|it| squash(it) == squashed)
            .map(|word| (word, Same))
            .or_else(|| alias(squashed, &ours));
        // Several lines are not the words of one.
        let is_script =
            squashed == "commands" && value.as_array().is_some_and(|lines| lines.len() > 1);
        match meant.filter(|(word, _)| *word == name || !fields.contains_key(*word) && !is_script) {
            Some((word, meaning)) => fields.insert(word.to_owned(), translated(value, meaning)),
            None => fields.insert(name, value),
        };
    }
}

fn translated(value: Value, meaning: Meaning) -> Value {
    let number = value
        .as_u64()
        .or_else(|| value.as_str()?.trim().parse().ok());
    match (meaning, number) {
        (Not, _) => match &value {
            Value::Bool(is_so) => (!is_so).into(),
            Value::String(word) if squash(word) == "true" => false.into(),
            Value::String(word) if squash(word) == "false" => true.into(),
            _ => value,
        },
        (Many, Some(count)) => (count > 1).into(),
        (Milliseconds, Some(time)) => time.div_ceil(1000).into(),
        (SomeTime, Some(time)) if time >= 1000 => time.div_ceil(1000).into(),
        (SomeTime, None) => value.as_str().and_then(seconds).map_or(value, Value::from),
        (FileType, _) => match value.as_str() {
            Some(name) if name.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                let extension = FILE_TYPES
                    .iter()
                    .find(|(known, _)| *known == name)
                    .map_or(name, |(_, extension)| *extension);
                format!("*.{extension}").into()
            }
            _ => value,
        },
        _ => value,
    }
}

/// `30s`, `500ms` or `2m`, in seconds.
fn seconds(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let number: u64 = digits.parse().ok()?;
    match text.strip_prefix(digits)?.trim() {
        "s" | "sec" | "seconds" => Some(number),
        "ms" => Some(number.div_ceil(1000)),
        "m" | "min" | "minutes" => number.checked_mul(60),
        _ => None,
    }
}

/// The steps of a plan that was written as a list of boxes to tick.
pub(super) fn steps(text: &str) -> Option<Value> {
    let step = |line: &str| {
        let line = line.trim_start_matches(['-', '*', ' ']).strip_prefix('[')?;
        let (mark, words) = line.split_once(']')?;
        let status = match mark.trim() {
            "" => "pending",
            "x" | "X" | "✓" => "completed",
            "-" | "~" | ">" | "/" => "in_progress",
            _ => return None,
        };
        Some(serde_json::json!({ "content": words.trim(), "status": status }))
    };
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let steps: Vec<Value> = lines.map(step).collect::<Option<_>>()?;
    (!steps.is_empty()).then_some(Value::Array(steps))
}

/// The file of edits that each name it, where it is the same one.
pub(super) fn hoist(fields: &mut Map<String, Value>, properties: &Map<String, Value>) {
    if !["path", "edits"]
        .iter()
        .all(|name| properties.contains_key(*name))
    {
        return;
    }
    let outer = fields.get("path").cloned();
    let Some(edits) = fields.get_mut("edits").and_then(Value::as_array_mut) else {
        return;
    };
    let named = |edit: &Value| {
        let (name, value) = edit
            .as_object()?
            .iter()
            .find(|(name, _)| find(name, ["path"].into_iter()).is_some())?;
        Some((name.clone(), value.clone()))
    };
    let paths: Option<Vec<(String, Value)>> = edits.iter().map(named).collect();
    let Some([(_, path), rest @ ..]) = paths.as_deref() else {
        return;
    };
    if rest.iter().any(|(_, other)| other != path) || outer.is_some_and(|outer| outer != *path) {
        return;
    }
    let path = path.clone();
    for (edit, (name, _)) in edits.iter_mut().zip(paths.iter().flatten()) {
        edit.as_object_mut().map(|edit| edit.remove(name));
    }
    fields.insert("path".to_owned(), path);
}

/// The files of a list, for the tool that reads one and `more_paths`.
pub(super) fn spread_paths(fields: &mut Map<String, Value>, properties: &Map<String, Value>) {
    if !properties.contains_key("more_paths") {
        return;
    }
    let files: Vec<Value> = match fields.get("path") {
        Some(Value::Array(files)) => files.clone(),
        Some(Value::String(text)) if text.starts_with("[\"") => {
            serde_json::from_str(text).unwrap_or_default()
        }
        _ => return,
    };
    let of_file = |file: &Value| {
        let named = |file: &Value| {
            let (_, path) = file
                .as_object()?
                .iter()
                .find(|(name, _)| find(name, ["path"].into_iter()).is_some())?;
            path.as_str().map(str::to_owned)
        };
        file.as_str().map(str::to_owned).or_else(|| named(file))
    };
    if let Some(paths) = files.iter().map(of_file).collect::<Option<Vec<_>>>()
        && let [first, more @ ..] = paths.as_slice()
    {
        fields.insert("path".to_owned(), first.as_str().into());
        fields.insert("more_paths".to_owned(), more.into());
    }
}

/// Lines from one to another, for a first line and a number of them.
fn range(fields: &mut Map<String, Value>, properties: &Map<String, Value>) {
    if !["offset", "limit"]
        .iter()
        .all(|name| properties.contains_key(*name))
    {
        return;
    }
    let number = |value: &Value| {
        value
            .as_i64()
            .or_else(|| value.as_str()?.trim().parse().ok())
    };
    let of = |fields: &Map<String, Value>, names: &[&str]| {
        fields
            .keys()
            .find(|name| names.contains(&squash(name).as_str()))
            .cloned()
    };
    let mut last = None;
    if let Some(name) = of(fields, RANGES) {
        let range = match &fields[&name] {
            Value::Array(ranges) => match ranges.as_slice() {
                [only @ (Value::Array(_) | Value::Object(_) | Value::String(_))] => only,
                _ => &fields[&name],
            },
            range => range,
        };
        let ends: Option<Vec<i64>> = match range {
            Value::Array(ends) => ends.iter().map(number).collect(),
            Value::Object(ends) => ["start", "end"]
                .iter()
                .map(|end| number(ends.get(*end)?))
                .collect(),
            Value::String(ends) => ends
                .split(['-', ',', ':'])
                .map(|end| end.trim().parse().ok())
                .collect(),
            _ => None,
        };
        let Some([first, end]) = ends.as_deref() else {
            return;
        };
        fields.remove(&name);
        fields.insert("offset".to_owned(), (*first).into());
        last = Some(*end);
    }
    if let Some(end) = of(fields, LAST_LINES).and_then(|name| fields.remove(&name)) {
        last = number(&end);
    }
    let first = fields
        .iter()
        .find(|(name, _)| find(name, ["offset"].into_iter()).is_some());
    let first = first
        .and_then(|(_, value)| number(value))
        .unwrap_or(1)
        .max(1);
    if let Some(last) = last.filter(|last| *last >= first) {
        fields.insert("limit".to_owned(), (last - first + 1).into());
    }
}

/// A command given as a list of words, as a shell line.
pub(super) fn line(words: &[Value]) -> Option<String> {
    let words: Vec<&str> = words.iter().map(Value::as_str).collect::<Option<_>>()?;
    let is_shell = |program: &str| {
        let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
        ["sh", "bash", "zsh", "dash", "ash"].contains(&name)
    };
    if let [program, option, line] = words.as_slice()
        && is_shell(program)
        && option.starts_with('-')
        && option.ends_with('c')
    {
        return Some((*line).to_owned());
    }
    // A single item is already a shell line.
    if let [line] = words.as_slice() {
        return Some((*line).to_owned());
    }
    Some(
        words
            .iter()
            .map(|word| quoted(word))
            .collect::<Vec<_>>()
            .join(" "),
    )
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Lines that came as a list.
pub(super) fn lines(items: &[Value]) -> Option<String> {
    let lines: Vec<&str> = items.iter().map(Value::as_str).collect::<Option<_>>()?;
    let (_, first) = lines.split_last()?;
    let have_ends = !first.is_empty() && first.iter().all(|line| line.ends_with('\n'));
    Some(if have_ends {
        lines.concat()
    } else {
        lines.join("\n")
    })
}

/// The replacements in blocks of SEARCH and REPLACE, as some agents write a change.
pub(super) fn blocks(text: &str) -> Option<Value> {
    let mut edits = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let mark = line.trim().trim_start_matches(['<', '-']).trim();
        if mark != "SEARCH" {
            continue;
        }
        let mut part = |is_end: &dyn Fn(&str) -> bool| {
            let mut part = Vec::new();
            loop {
                match lines.next()? {
                    line if is_end(line.trim()) => return Some(part.join("\n")),
                    // Which lines it is about: what follows after a rule has to be there anyway.
                    line if part.is_empty()
                        && line.starts_with([':'])
                        && line.contains("_line:") => {}
                    line if part.is_empty() && line == "-------" => {}
                    line => part.push(line),
                }
            }
        };
        let old_text = part(&|line| line.len() >= 5 && line.bytes().all(|byte| byte == b'='))?;
        let new_text = part(&|line| line.trim_start_matches(['>', '+']).trim() == "REPLACE")?;
        edits.push(serde_json::json!({ "old_text": old_text, "new_text": new_text }));
    }
    (!edits.is_empty()).then_some(Value::Array(edits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_argument_list_becomes_a_shell_line() {
        let check = |words: Value, expected: &str| {
            assert_eq!(line(words.as_array().unwrap()).as_deref(), Some(expected));
        };
        check(json!(["bash", "-lc", "echo $HOME | wc"]), "echo $HOME | wc");
        check(json!(["/bin/sh", "-c", "ls"]), "ls");
        check(json!(["ls", "-1", "src"]), "ls -1 src");
        check(
            json!(["echo", "it's $HOME", ""]),
            r"echo 'it'\''s $HOME' ''",
        );
        check(json!(["ls -la"]), "ls -la");
        assert_eq!(line(&[json!(1)]), None);
    }

    #[test]
    fn search_replace_blocks_are_edits() {
        let text = "<<<<<<< SEARCH\na\n\nb\n=======\nc\n>>>>>>> REPLACE\n\n------- SEARCH\nd\n=======\n+++++++ REPLACE\n";
        let expected =
            json!([{ "old_text": "a\n\nb", "new_text": "c" }, { "old_text": "d", "new_text": "" }]);
        assert_eq!(blocks(text), Some(expected));
        let numbered = "<<<<<<< SEARCH\n:start_line:2\n-------\na\n=======\nb\n>>>>>>> REPLACE";
        assert_eq!(
            blocks(numbered),
            Some(json!([{ "old_text": "a", "new_text": "b" }]))
        );
        assert_eq!(blocks("<<<<<<< SEARCH\na\n=======\nb"), None);
        assert_eq!(blocks("nothing"), None);
    }

    #[test]
    fn argument_aliases_are_unambiguous() {
        let mut names: Vec<_> = ALIASES
            .iter()
            .map(|(alias, ours, _)| (*alias, *ours))
            .collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
