//! The forms in which models write calls as text. Pure.
//!
//! A form is all of the text from its marker on, and must match exactly; a near miss is not a call.

use serde_json::Map;

use super::json::{Found, NOISE, TextCall, of_json, unclosed, with_json};
use super::react;
use crate::model::repair;

/// Tokens that never occur in prose: a call may follow them anywhere.
pub(super) const TOKENS: &[&str] = &[
    "[TOOL_CALLS]",
    "<|python_tag|>",
    "<|channel|>",
    "<|start|>assistant",
    "<|tool_calls_section_begin|>",
    "<|tool_call_begin|>",
    "<|tool_call|>",
    "<|tool_calls|>",
    "<|START_ACTION|>",
    "<|action_start|>",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>",
    "<｜DSML｜",
    "<antml:",
];

/// Tags that contain calls; they count at the beginning of a line, or after a sentence.
pub(super) const TAGS: &[&str] = &[
    "<tool_call>",
    "<tool_calls>",
    "<toolcall>",
    "<TOOLCALL>",
    "<TOOL_CALL>",
    "<tools>",
    "<tool_use>",
    "<function_call>",
    "<function_calls>",
    "<functioncall>",
    "<function=",
    "<invoke name=",
    "<minimax:tool_call>",
    "<seed:tool_call>",
];

/// The calls that make up `text`; `is_tool` recognizes tool names used as tags.
pub(super) fn calls(text: &str, is_tool: &dyn Fn(&str) -> bool) -> Option<Vec<TextCall>> {
    let (calls, rest) = first_calls(text, is_tool);
    (!calls.is_empty() && rest.is_empty()).then_some(calls)
}

/// The calls at the beginning of `text`, and the rest. Any namespace of tags is accepted.
pub(super) fn first_calls(text: &str, is_tool: &dyn Fn(&str) -> bool) -> (Vec<TextCall>, String) {
    let plain = ["antml:", "｜DSML｜"].iter().fold(text.to_owned(), |text, namespace| {
        text.replace(&format!("<{namespace}"), "<").replace(&format!("</{namespace}"), "</")
    });
    let mut calls = Vec::new();
    let mut rest = noise(&plain);
    while !rest.is_empty() {
        let Some((more, after)) = one(rest, is_tool) else { break };
        calls.extend(more);
        rest = noise(after);
    }
    (calls, rest.to_owned())
}

/// The calls in a code fence, by its language.
pub(super) fn fenced(language: &str, code: &str, is_tool: &dyn Fn(&str) -> bool) -> Option<Vec<TextCall>> {
    if matches!(language, "tool_code" | "python" | "py") {
        let lines = code.lines().map(str::trim).filter(|line| !line.is_empty());
        return lines.map(|line| python(line).filter(|(_, rest)| rest.is_empty()).map(|(call, _)| call)).collect();
    }
    calls(code, is_tool)
}

fn noise(text: &str) -> &str {
    let mut rest = text.trim_start();
    while let Some(after) = NOISE.iter().find_map(|noise| rest.strip_prefix(noise)) {
        rest = after.trim_start();
    }
    rest
}

fn one<'a>(text: &'a str, is_tool: &dyn Fn(&str) -> bool) -> Found<'a> {
    if let Some(rest) = text.strip_prefix("<function=") {
        let (name, rest) = rest.split_once('>')?;
        return function(name, rest, "</function>", &|text| parameter(text, "<parameter="));
    }
    if let Some(rest) = text.strip_prefix("<invoke name=") {
        let (name, rest) = rest.split_once('>')?;
        return function(name, rest, "</invoke>", &|text| parameter(text, "<parameter name="));
    }
    if let Some(rest) = text.strip_prefix("<|channel|>") {
        let (head, rest) = rest.split_once("<|message|>")?;
        let name = head.split("to=").nth(1)?.split([' ', '<']).next()?;
        return with_json(name, rest);
    }
    if let Some(rest) = text.strip_prefix(react::ACTION) {
        return react::action(rest.trim_start());
    }
    if text.starts_with(['{', '[']) {
        if let Some((value, rest)) = repair::first_value(text).or_else(|| unclosed(text))
            && let Some(calls) = of_json(&value)
        {
            return Some((calls, rest));
        }
        return python_list(text);
    }
    if let Some((name, rest)) = text.strip_prefix('<').and_then(|rest| rest.split_once('>'))
        && is_word(name)
        && is_tool(name)
    {
        let (inside, rest) = rest.split_once(&format!("</{name}>"))?;
        let (call, left) = function(name, inside, "", &element)?;
        return left.trim().is_empty().then_some((call, rest));
    }
    named(text)
}

/// A name, and the arguments in one of many forms.
fn named(text: &str) -> Found<'_> {
    let end = text.find(|c: char| !c.is_alphanumeric() && !"_-.:/".contains(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at_checked(end).filter(|(name, _)| !name.is_empty())?;
    if let Some(rest) = rest.strip_prefix("<|tool_call_argument_begin|>") {
        return with_json(name, rest);
    }
    if let Some(rest) = rest.strip_prefix("<｜tool▁sep｜>") {
        if name != "function" {
            return with_json(name, rest);
        }
        let (name, rest) = rest.split_once('\n')?;
        let (call, rest) = with_json(name.trim(), rest.trim_start().strip_prefix("```json")?)?;
        return Some((call, rest.trim_start().strip_prefix("```")?));
    }
    let rest = match rest.strip_prefix("[CALL_ID]") {
        Some(rest) => rest.split_at_checked(rest.find("[ARGS]")?)?.1,
        None => rest,
    };
    let rest = rest.strip_prefix("[ARGS]").unwrap_or(rest);
    if rest.trim_start().starts_with("<arg_key>") {
        return function(name, rest, "", &pair);
    }
    if rest.starts_with('(') {
        return python(text).map(|(call, rest)| (vec![call], rest));
    }
    with_json(name, rest)
}

/// Reads one argument from the beginning of a text.
type Argument<'f> = &'f dyn for<'a> Fn(&'a str) -> Option<(&'a str, &'a str, &'a str)>;

/// Consecutive arguments, or all of them as JSON, up to `end`, which may be missing at the end of the text.
fn function<'a>(name: &str, text: &'a str, end: &str, argument: Argument<'_>) -> Found<'a> {
    let name = name.trim().trim_matches(['"', '\'']);
    let close = |rest: &'a str| {
        let rest = rest.trim_start();
        rest.strip_prefix(end).unwrap_or(rest)
    };
    if text.trim_start().starts_with('{') {
        let (calls, rest) = with_json(name, text)?;
        return Some((calls, close(rest)));
    }
    let mut arguments = Map::new();
    let mut rest = text.trim_start();
    while let Some((key, value, after)) = argument(rest) {
        arguments.insert(key.trim().trim_matches(['"', '\'']).to_owned(), unpadded(value).into());
        rest = after.trim_start();
    }
    Some((vec![TextCall { name: name.to_owned(), arguments }], close(rest)))
}

/// `<parameter=KEY>VALUE</parameter>`, with attributes after the key.
fn parameter<'a>(text: &'a str, open: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let (key, rest) = text.strip_prefix(open)?.split_once('>')?;
    let key = key.split_once("\" ").map_or(key, |(key, _attributes)| key);
    let (value, rest) = rest.split_once("</parameter>").or_else(|| {
        // The last end is often forgotten; the function's own stays where it is.
        rest.split_at_checked(rest.find("</function>").or_else(|| rest.find("</invoke>"))?)
    })?;
    Some((key, value, rest))
}

/// `<KEY>VALUE</KEY>`.
fn element(text: &str) -> Option<(&str, &str, &str)> {
    let (key, rest) = text.strip_prefix('<')?.split_once('>').filter(|(key, _)| is_word(key))?;
    let (value, rest) = rest.split_once(&format!("</{key}>"))?;
    Some((key, value, rest))
}

/// `<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>`.
fn pair(text: &str) -> Option<(&str, &str, &str)> {
    let (key, rest) = text.strip_prefix("<arg_key>")?.split_once("</arg_key>")?;
    let (value, rest) = rest.trim_start().strip_prefix("<arg_value>")?.split_once("</arg_value>")?;
    Some((key, value, rest))
}

/// A value without the line breaks next to its tags.
fn unpadded(value: &str) -> &str {
    let value = value.strip_prefix("\r\n").or_else(|| value.strip_prefix('\n')).unwrap_or(value);
    value.strip_suffix("\r\n").or_else(|| value.strip_suffix('\n')).unwrap_or(value)
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// `[f(a=1), g(b="x")]`.
fn python_list(text: &str) -> Found<'_> {
    let mut rest = text.strip_prefix('[')?.trim_start();
    let mut calls = Vec::new();
    loop {
        let (call, after) = python(rest)?;
        calls.push(call);
        let after = after.trim_start();
        if let Some(after) = after.strip_prefix(']') {
            return Some((calls, after));
        }
        rest = after.strip_prefix(',')?.trim_start();
    }
}

/// `f(a=1, b="x")`, with or without `print`.
fn python(text: &str) -> Option<(TextCall, &str)> {
    if let Some(inside) = text.strip_prefix("print(") {
        let (call, rest) = python(inside.trim_start())?;
        return Some((call, rest.trim_start().strip_prefix(')')?));
    }
    let (name, rest) = text.split_once('(')?;
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.') {
        return None;
    }
    let mut arguments = Map::new();
    let mut rest = rest.trim_start();
    while !rest.starts_with(')') {
        let (key, value) = rest.split_once('=')?;
        let value = value.trim_start();
        let (value, after) = match ["\"\"\"", "'''"].iter().find_map(|quote| Some((quote, value.strip_prefix(quote)?)))
        {
            Some((quote, inside)) => inside.split_once(quote).map(|(text, after)| (text.into(), after))?,
            None => repair::first_value(value)?,
        };
        if !is_word(key.trim()) {
            return None;
        }
        arguments.insert(key.trim().to_owned(), value);
        rest = after.trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
    }
    Some((TextCall { name: name.to_owned(), arguments }, rest.strip_prefix(')')?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(text: &str) -> Option<Vec<(String, Value)>> {
        let found = calls(text, &|name| name == "read_file")?;
        Some(found.into_iter().map(|call| (call.name, Value::Object(call.arguments))).collect())
    }

    #[track_caller]
    fn check(text: &str, name: &str) {
        assert_eq!(read(text), Some(vec![(name.to_owned(), json!({ "path": "a.py" }))]), "{text}");
    }

    #[test]
    fn all_common_text_call_formats_are_parsed() {
        let json = r#"{"name": "read_file", "arguments": {"path": "a.py"}}"#;
        check(json, "read_file");
        check(&format!("<tool_call>\n{json}\n</tool_call>"), "read_file");
        check(&format!("<tool_call>{json}"), "read_file");
        check(&format!("[TOOL_CALLS][{json}]</s>"), "read_file");
        check(&format!("<|python_tag|>{}<|eom_id|>", json.replace("arguments", "parameters")), "read_file");
        check(
            r#"{"type": "function", "function": {"name": "read_file", "arguments": "{\"path\": \"a.py\"}"}}"#,
            "read_file",
        );
        check(
            r#"{"tool_calls": [{"id": "1", "function": {"name": "read_file", "arguments": {"path": "a.py"}}}]}"#,
            "read_file",
        );
        check(r#"[TOOL_CALLS]read_file[ARGS]{"path": "a.py"}"#, "read_file");
        check(r#"[TOOL_CALLS]read_file[CALL_ID]x1[ARGS]{"path": "a.py"}"#, "read_file");
        check("<function=read_file>\n<parameter=path>\na.py\n</parameter>\n</function>\n</tool_call>", "read_file");
        check(r#"<function=read_file>{"path": "a.py"}</function>"#, "read_file");
        check("<tool_call>\n<function=read_file>\n<parameter=path>\na.py\n</function>", "read_file");
        check(&format!("<tools>\n{json}\n</tools>"), "read_file");
        check("<invoke name=\"read_file\">\n<parameter name=\"path\">a.py</parameter>\n</invoke>", "read_file");
        check(
            "<｜DSML｜function_calls><｜DSML｜invoke name=\"read_file\"><｜DSML｜parameter name=\"path\" string=\"true\">a.py</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜function_calls>",
            "read_file",
        );
        check("<read_file>\n<path>a.py</path>\n</read_file>", "read_file");
        check("<tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>a.py</arg_value>\n</tool_call>", "read_file");
        check(
            r#"<|channel|>commentary to=functions.read_file <|constrain|>json<|message|>{"path": "a.py"}<|call|>"#,
            "functions.read_file",
        );
        check(
            r#"<|tool_calls_section_begin|><|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>{"path": "a.py"}<|tool_call_end|><|tool_calls_section_end|>"#,
            "functions.read_file:0",
        );
        check(
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read_file\n```json\n{\"path\": \"a.py\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
            "read_file",
        );
        check(
            r#"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read_file<｜tool▁sep｜>{"path": "a.py"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"#,
            "read_file",
        );
        check(
            r#"<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "read_file", "parameters": {"path": "a.py"}}]<|END_ACTION|>"#,
            "read_file",
        );
        check(r#"[read_file(path="a.py")]"#, "read_file");
        check("Action: read_file\nAction Input: {\"path\": \"a.py\"}", "read_file");
        check("Action: `read_file`\nAction Input:\n```json\n{\"path\": \"a.py\"}\n```\nObservation:", "read_file");
        check(
            "Action:\n```json\n{\"action\": \"read_file\", \"action_input\": {\"path\": \"a.py\"}}\n```",
            "read_file",
        );
        check(r#"{"name": "read_file", "arguments": {"path": "a.py"}"#, "read_file");
        check(r#"<tool_call>{"name": "read_file", "arguments": {"path": "a.py"}</tool_call>"#, "read_file");
        check(r#"[TOOL_CALLS]read_file[ARGS]{"path": "a.py"</s>"#, "read_file");
        let code = fenced("tool_code", "print(default_api.read_file(path='a.py'))", &|_| false).unwrap();
        assert_eq!(code[0].name, "default_api.read_file");
        assert_eq!(read(&format!("<tool_call>{json}</tool_call>\n<tool_call>{json}</tool_call>")).unwrap().len(), 2);
    }

    #[test]
    fn near_misses_are_not_calls() {
        for text in [
            "",
            "<tool_call></tool_call>",
            r#"<tool_call>{"name": "read_file"}</tool_call>"#,
            r#"{"name": "read_file", "arguments": {}, "version": 1}"#,
            r#"{"name": "demo", "version": "1.0.0"}"#,
            r#"<tool_call>{"name": "read_file", "arguments": {"path": "a"#,
            "<function=read_file>\n<parameter=path>\na.p",
            r#"<tool_call>{"name": "read_file", "arguments": {}}</tool_call> That is all."#,
            "<other>\n<path>a</path>\n</other>",
            "<read_file>\n<path>a.py</path>",
            "read_file(a.py)",
            "Action: read_file\nAction Input: a.py",
            "Action: read_file\nAction Input: {\"path\": \"a.py\"}\nObservation: it is empty",
            "Action: read_file\nAction Input: {\"path\": \"a.p",
            "[1, 2]",
            "just words",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
