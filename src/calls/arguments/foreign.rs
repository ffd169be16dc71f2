//! Translates other agents' argument names and values to ours. Pure.
//!
//! An argument that only comments on the call is dropped. One that changes its effect is translated, or else refused
//! later.

use serde_json::Value;

use crate::text::shell::{is_shell, quoted};

use super::super::names::{head, squash};
use super::words::{ARGUMENTS, COMMENTS, FILE_TYPES, LAST_LINES, RANGES, USUAL, WORDS};
use crate::text::{Block, Fields, lists};

/// The one of `ours` that a name means.
fn find<'a>(name: &str, ours: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    meant(&squash(name), ours).map(|(ours, _)| ours)
}

/// The one of these arguments that a name means.
pub(super) fn meant_by<'a>(name: &str, properties: &'a Fields) -> Option<&'a str> {
    find(name, properties.keys().map(String::as_str))
}

/// Whether a name means this argument of ours.
pub(super) fn means(name: &str, ours: &str) -> bool {
    find(name, std::iter::once(ours)).is_some()
}

/// Whether a name is one for an argument of any tool.
pub(super) fn is_argument(name: &str) -> bool {
    ARGUMENTS.iter().any(|(ours, _, _)| means(name, ours))
}

/// The one of `ours` that a name without separators means, and the word that says so.
fn meant<'a>(name: &str, ours: impl Iterator<Item = &'a str>) -> Option<(&'a str, &'static str)> {
    let ours: Vec<&str> = ours.collect();
    // An element of a list has its name in the singular.
    let stem = name.strip_suffix('y').map(|stem| format!("{stem}ies"));
    let is_same = |it: &&&str| squash(it) == name || stem == Some(squash(it));
    if let Some(same) = ours.iter().find(is_same) {
        return Some((same, ""));
    }
    let named = |name: &str| {
        ARGUMENTS.iter().find_map(|(argument, heads, beside)| {
            let ours = ours.iter().find(|it| *it == argument)?;
            Some((*ours, head(name, heads, beside)?))
        })
    };
    // A plural, if the singular has no other meaning.
    named(name).or_else(|| named(name.strip_suffix('s')?))
}

/// The value of an enumeration that a word means.
pub(super) fn find_word<'a>(
    word: &str,
    mut ours: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let word = squash(word);
    let means = |value: &str| {
        let mut known = WORDS.iter().filter(|(ours, _)| *ours == value);
        squash(value) == word || known.any(|(_, words)| head(&word, words, "").is_some())
    };
    ours.find(|value| means(value))
}

/// A value as a word, without case and separators.
pub(super) fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), squash)
}

/// Whether an argument only comments on the call, or says what it does anyway.
pub(super) fn is_comment(name: &str, value: &Value) -> bool {
    let name = squash(name);
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit());
    COMMENTS
        .iter()
        .any(|(_, heads, beside)| head(name, heads, beside).is_some())
        || USUAL
            .iter()
            .any(|(usual, values)| *usual == name && head(&word(value), values, "").is_some())
}

/// Whether an argument is the first or last of some lines.
pub(super) fn is_line_number(name: &str, value: &Value) -> bool {
    let (heads, beside) = LAST_LINES;
    number(value).is_some()
        && (means(name, "offset") || head(&squash(name), heads, beside).is_some())
}

/// Whether a value means the same as omitting it.
pub(super) fn is_nothing(name: &str, value: &Value) -> bool {
    if USUAL.iter().any(|(usual, _)| *usual == squash(name)) && !value.is_null() {
        return false;
    }
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty() || squash(text) == "false",
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

/// Turns an operation of OpenAI's own tool (`update_file`, a path and the changed lines) into a patch.
pub(super) fn operation(fields: &mut Fields, properties: &Fields) {
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    if let (Some(kind), Some(path)) = (text("type"), text("path"))
        && let Some(action) = kind.strip_suffix("_file")
        && properties.contains_key("patch")
    {
        let lines = text("diff").unwrap_or_default().trim_end_matches('\n');
        let patch = format!("*** Begin Patch\n*** {action} File: {path}\n{lines}\n*** End Patch");
        *fields = Fields::from_iter([("patch".to_owned(), patch.into())]);
    }
}

/// How deep envelopes may be nested.
const ENVELOPES: usize = 3;

/// Unwraps a call from its envelopes.
pub(super) fn unwrap(fields: &mut Fields, properties: &Fields) {
    let _unwrapped = (0..ENVELOPES).all(|_| unwrap_once(fields, properties));
}

/// Unwraps a call from an envelope: an object or its JSON, with none of our arguments beside it under its own name. One
/// under another name stays, except `name`, which is the tool's. Returns whether it unwrapped one.
fn unwrap_once(fields: &mut Fields, properties: &Fields) -> bool {
    let is_known = |name: &String| meant_by(name, properties).is_some();
    let within = |value: &Value| match value {
        Value::Object(inner) => Some(inner.clone()),
        Value::String(text) if text.trim_start().starts_with('{') => {
            serde_json::from_str(text).ok()
        }
        Value::Array(items) => match items.as_slice() {
            [Value::Object(only)] => Some(only.clone()),
            _ => None,
        },
        _ => None,
    };
    let mut unknown = fields
        .iter()
        .filter(|(name, _)| !properties.contains_key(*name));
    let Some((wrapper, inner)) = unknown.find_map(|(name, value)| Some((name, within(value)?)))
    else {
        return false;
    };
    let stands_alone = !fields
        .keys()
        .any(|name| name != wrapper && properties.contains_key(name));
    let is_envelope = inner.is_empty()
        || inner.keys().any(is_known)
        || inner.values().any(|value| within(value).is_some());
    let is_wrapped = stands_alone && is_envelope;
    if is_wrapped {
        let wrapper = wrapper.clone();
        for (name, value) in std::mem::replace(fields, inner) {
            if name != wrapper && name != "name" && is_known(&name) {
                fields.entry(name).or_insert(value);
            }
        }
    }
    is_wrapped
}

/// Renames fields and converts values, unless our own name is present.
pub(super) fn rename(fields: &mut Fields, properties: &Fields) {
    range(fields, properties);
    let sent = std::mem::take(fields);
    for (name, value) in sent.clone() {
        let ours = properties.keys().map(String::as_str);
        let squashed = squash(&name);
        let squashed = squashed
            .trim_start_matches('-')
            .trim_matches(['"', '\'', ':', '`']);
        let meant = meant(squashed, ours);
        // Several lines are not the words of one.
        let is_script =
            squashed == "commands" && value.as_array().is_some_and(|lines| lines.len() > 1);
        // With two values for one argument, it is unknown which one is meant.
        let is_only = |word: &str| {
            let mut others = sent.get(word).into_iter().chain(fields.get(word));
            others.all(|other| *other == value)
        };
        match meant.filter(|(word, _)| *word == name || is_only(word) && !is_script) {
            Some((word, head)) => {
                let value = translated(value, head);
                let is_time = word.ends_with(SECONDS) && word != name;
                let value = if is_time {
                    in_seconds(value, squashed)
                } else {
                    value
                };
                fields.insert(word.to_owned(), value)
            }
            None => fields.insert(name, value),
        };
    }
}

/// The value of an argument that this word names, with the sign before it.
fn translated(value: Value, head: &str) -> Value {
    let sign = head.split(char::is_alphanumeric).next().unwrap_or_default();
    match sign {
        "!" => word(&value)
            .parse()
            .map_or(value, |is_so: bool| (!is_so).into()),
        "#" => match number(&value) {
            Some(..2) => false.into(),
            count => count.map_or(value, Value::from),
        },
        "*" => match value.as_str() {
            Some(name) if name.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                let mut types = FILE_TYPES.iter().filter(|(known, _)| *known == name);
                let extension = types.next().map_or(name, |(_, extension)| *extension);
                format!("*.{extension}").into()
            }
            _ => value,
        },
        _ => value,
    }
}

fn number(value: &Value) -> Option<i64> {
    value
        .as_i64()
        .or_else(|| value.as_str()?.trim().parse().ok())
}

/// How the names of our arguments in seconds end.
const SECONDS: &str = "_s";
/// Units of time, as they end a name or a value, in milliseconds. The longer of two that match is above.
const UNITS: [(&str, i64); 3] = [
    ("milliseconds millis ms", 1),
    ("minutes min m", 60_000),
    ("seconds secs sec s", 1000),
];

/// A time in seconds, by the unit at the end of its value (`30s`) or of its argument's name. Without one a thousand and
/// more are milliseconds, as Claude Code and Gemini count them.
fn in_seconds(value: Value, name: &str) -> Value {
    let text = value.as_str().unwrap_or_default().trim();
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let (digits, unit) = (text.split_at(text.len() - unit.len()).0, unit.trim());
    let ends = |units: &str| units.split(' ').any(|unit| name.ends_with(unit));
    let mut units = UNITS.iter();
    let (count, unit) = if unit.is_empty() {
        (number(&value), units.find(|(units, _)| ends(units)))
    } else {
        let unit = units.find(|(units, _)| lists(units, unit));
        (digits.parse().ok().filter(|_| unit.is_some()), unit)
    };
    let Some(count) = count else { return value };
    let usual = if count < 1000 { 1000 } else { 1 };
    let milliseconds = count.saturating_mul(unit.map_or(usual, |(_, scale)| *scale));
    (milliseconds.saturating_add(999) / 1000).into()
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

/// The member of an object that names a file.
fn path(value: &Value) -> Option<(String, Value)> {
    let mut fields = value.as_object()?.iter();
    let (name, value) = fields.find(|(name, _)| means(name, "path"))?;
    Some((name.clone(), value.clone()))
}

/// The file of edits that each name it, where it is the same one.
pub(super) fn hoist(fields: &mut Fields, properties: &Fields) {
    let (Some(Value::Array(edits)), true) = (fields.get("edits"), properties.contains_key("edits"))
    else {
        return;
    };
    let Some(named) = edits.iter().map(path).collect::<Option<Vec<_>>>() else {
        return;
    };
    let mut paths = named.iter().map(|(_, path)| path).chain(fields.get("path"));
    let Some(path) = paths.next().cloned() else {
        return;
    };
    if paths.any(|other| *other != path) {
        return;
    }
    let edits = fields.get_mut("edits").and_then(Value::as_array_mut);
    for (edit, (name, _)) in edits.into_iter().flatten().zip(named) {
        edit.as_object_mut().map(|edit| edit.remove(&name));
    }
    fields.insert("path".to_owned(), path);
}

/// The files of a list, for the tool that reads one and `more_paths`.
pub(super) fn spread_paths(fields: &mut Fields, properties: &Fields) {
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
        let named = path(file).map(|(_, value)| value);
        named.as_ref().unwrap_or(file).as_str().map(str::to_owned)
    };
    if let Some(paths) = files.iter().map(of_file).collect::<Option<Vec<_>>>()
        && let [first, more @ ..] = paths.as_slice()
    {
        fields.insert("path".to_owned(), first.as_str().into());
        fields.insert("more_paths".to_owned(), more.into());
    }
}

/// Lines from one to another, for a first line and a number of them.
fn range(fields: &mut Fields, properties: &Fields) {
    if !properties.contains_key("offset") {
        return;
    }
    let of = |fields: &Fields, (heads, beside): (&str, &str)| {
        fields
            .keys()
            .find(|name| head(&squash(name), heads, beside).is_some())
            .cloned()
    };
    let mut last = None;
    if let Some(name) = of(fields, RANGES) {
        let mut range = &fields[&name];
        if let Value::Array(ranges) = range
            && let [only @ (Value::Array(_) | Value::Object(_) | Value::String(_))] =
                ranges.as_slice()
        {
            range = only;
        }
        let ends: Option<Vec<i64>> = match range {
            Value::Array(ends) => ends.iter().map(number).collect(),
            Value::String(ends) => ends
                .split(['-', ',', ':'])
                .map(|end| end.trim().parse().ok())
                .collect(),
            ends => ["start", "end"]
                .iter()
                .map(|end| number(ends.get(end)?))
                .collect(),
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
    let first = fields.iter().find(|(name, _)| means(name, "offset"));
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
    if let [program, option, line] = words.as_slice()
        && is_shell(program)
        && option.starts_with('-')
        && option.ends_with('c')
    {
        return Some((*line).to_owned());
    }
    if let [line] = words.as_slice() {
        // It is a shell line already.
        return Some((*line).to_owned());
    }
    Some(quoted(&words))
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

/// The replacements in blocks of SEARCH and REPLACE.
pub(super) fn blocks(text: &str) -> Option<Value> {
    let edit = |block: Block<'_>| {
        let [old, new] = [block.old, block.new].map(|lines| lines.join("\n"));
        serde_json::json!({ "old_text": old, "new_text": new })
    };
    Some(crate::text::blocks(text)?.into_iter().map(edit).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Each word for an argument, alone and with each word that may stand beside it, as models spell names.
    #[test]
    fn arguments_are_understood_in_every_spelling() {
        for (ours, heads, beside) in ARGUMENTS {
            for head in heads
                .split(' ')
                .map(|head| head.trim_matches(['!', '#', '*']))
            {
                let mut names = vec![head.to_owned(), format!("--{head}"), head.to_uppercase()];
                let beside = beside
                    .split(' ')
                    .filter(|word| !word.is_empty() && head.len() > 1);
                for word in beside.filter(|word| word.len() > 1) {
                    names.extend(
                        ["", "_", "-", " "].map(|between| format!("{word}{between}{head}")),
                    );
                    names.push(format!("{head}_{word}"));
                }
                for name in names {
                    let properties = Fields::from_iter([((*ours).to_owned(), json!({}))]);
                    let mut fields = Fields::from_iter([(name.clone(), json!("value"))]);
                    rename(&mut fields, &properties);
                    assert!(fields.contains_key(*ours), "{name}: {ours}");
                }
            }
        }
    }

    #[test]
    fn arguments_that_say_more_stay_unknown() {
        let schema = ["path", "content", "command", "pattern", "glob", "timeout_s"];
        for name in [
            "exclude",
            "exclude_path",
            "append",
            "file_mode",
            "dry_run",
            "old_path",
            "env",
            "stdin",
            "user",
            "destination",
            "backup_file",
            "not_pattern",
            "url",
            "line_ending",
            "start_line",
            "output_file",
        ] {
            assert_eq!(find(name, schema.into_iter()), None, "{name}");
        }
    }

    #[test]
    fn times_are_converted_by_their_unit() {
        let properties = Fields::from_iter([("timeout_s".to_owned(), json!({}))]);
        for (name, value, expected) in [
            ("timeout", json!(30), 30),
            ("timeout", json!(120_000), 120),
            ("timeout_ms", json!(500), 1),
            ("timeoutMillis", json!("20000"), 20),
            ("timeout-milliseconds", json!(1500), 2),
            ("timeout_seconds", json!(5000), 5000),
            ("maxWaitSeconds", json!(9), 9),
            ("timeout_minutes", json!(2), 120),
            ("command_timeout", json!("90s"), 90),
            ("timeout", json!("500ms"), 1),
            ("timeout", json!("2 m"), 120),
            ("timeout_s", json!(2000), 2000),
        ] {
            let mut fields = Fields::from_iter([(name.to_owned(), value)]);
            rename(&mut fields, &properties);
            assert_eq!(fields.get("timeout_s"), Some(&json!(expected)), "{name}");
        }
    }

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
}
