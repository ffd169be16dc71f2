use super::*;
use serde_json::json;

fn read(text: &str) -> Option<Vec<(String, Value)>> {
    let found = calls(text, &|name| name == "read_file")?;
    Some(
        found
            .into_iter()
            .map(|call| (call.name, Value::Object(call.arguments)))
            .collect(),
    )
}

#[track_caller]
fn check(text: &str, name: &str) {
    assert_eq!(
        read(text),
        Some(vec![(name.to_owned(), json!({ "path": "a.py" }))]),
        "{text}"
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table of formats")]
fn all_common_text_call_formats_are_parsed() {
    let json = r#"{"name": "read_file", "arguments": {"path": "a.py"}}"#;
    check(json, "read_file");
    check(&format!("<tool_call>\n{json}\n</tool_call>"), "read_file");
    check(&format!("<tool_call>{json}"), "read_file");
    check(&format!("[TOOL_CALLS][{json}]</s>"), "read_file");
    check(
        &format!(
            "<|python_tag|>{}<|eom_id|>",
            json.replace("arguments", "parameters")
        ),
        "read_file",
    );
    check(
        r#"{"type": "function", "function": {"name": "read_file", "arguments": "{\"path\": \"a.py\"}"}}"#,
        "read_file",
    );
    check(
        r#"{"tool_calls": [{"id": "1", "function": {"name": "read_file", "arguments": {"path": "a.py"}}}]}"#,
        "read_file",
    );
    check(
        r#"[TOOL_CALLS]read_file[ARGS]{"path": "a.py"}"#,
        "read_file",
    );
    check(
        r#"[TOOL_CALLS]read_file[CALL_ID]x1[ARGS]{"path": "a.py"}"#,
        "read_file",
    );
    check(
        "<function=read_file>\n<parameter=path>\na.py\n</parameter>\n</function>\n</tool_call>",
        "read_file",
    );
    check(
        r#"<function=read_file>{"path": "a.py"}</function>"#,
        "read_file",
    );
    check(
        "<tool_call>\n<function=read_file>\n<parameter=path>\na.py\n</function>",
        "read_file",
    );
    check(&format!("<tools>\n{json}\n</tools>"), "read_file");
    check(
        "<invoke name=\"read_file\">\n<parameter name=\"path\">a.py</parameter>\n</invoke>",
        "read_file",
    );
    check(
        "<｜DSML｜function_calls><｜DSML｜invoke name=\"read_file\"><｜DSML｜parameter name=\"path\" string=\"true\">a.py</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜function_calls>",
        "read_file",
    );
    check("<read_file>\n<path>a.py</path>\n</read_file>", "read_file");
    check(
        "<tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>a.py</arg_value>\n</tool_call>",
        "read_file",
    );
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
    check(
        "Action: read_file\nAction Input: {\"path\": \"a.py\"}",
        "read_file",
    );
    check(
        "<|tool_calls_begin|><｜tool_call_begin｜>read_file<|tool▁sep|>{\"path\": \"a.py\"}<|tool_call_end|>",
        "read_file",
    );
    check(
        "<tool_call>\n<tool_name>read_file</tool_name>\n<parameters>\n<path>a.py</path>\n</parameters>\n</tool_call>",
        "read_file",
    );
    check(
        "<tool_use><name>read_file</name><arguments>{\"path\": \"a.py\"}</arguments></tool_use>",
        "read_file",
    );
    check(
        "<function name=\"read_file\"><parameter name=\"path\">a.py</parameter></function>",
        "read_file",
    );
    check(
        "<tool_call>{\"read_file\": {\"path\": \"a.py\"}}</tool_call>",
        "read_file",
    );
    check(
        "<tool_calls><tool_call>read_file\n```json\n{\"path\": \"a.py\"}\n```\n</tool_call></tool_calls>",
        "read_file",
    );
    check(
        "<tool_call>\n```json\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a.py\"}}\n```\n</tool_call>",
        "read_file",
    );
    check(
        "<|tool_call_start|>[read_file(path=\"a.py\")]<|tool_call_end|>",
        "read_file",
    );
    check("<|python_tag|>read_file.call(path=\"a.py\")", "read_file");
    check(
        "<|tool_call>call:read_file{path:<|\"|>a.py<|\"|>}<tool_call|>",
        "read_file",
    );
    check(
        "<|start|>assistant to=functions.read_file<|channel|>commentary json<|message|>{\"path\": \"a.py\"}<|call|>",
        "functions.read_file",
    );
    check(
        "Action: `read_file`\nAction Input:\n```json\n{\"path\": \"a.py\"}\n```\nObservation:",
        "read_file",
    );
    check(
        "Action:\n```json\n{\"action\": \"read_file\", \"action_input\": {\"path\": \"a.py\"}}\n```",
        "read_file",
    );
    check(
        r#"{"name": "read_file", "arguments": {"path": "a.py"}"#,
        "read_file",
    );
    check(
        r#"<tool_call>{"name": "read_file", "arguments": {"path": "a.py"}</tool_call>"#,
        "read_file",
    );
    check(
        r#"[TOOL_CALLS]read_file[ARGS]{"path": "a.py"</s>"#,
        "read_file",
    );
    check(
        r#"<tool_call>read_file({"path": "a.py"})</tool_call>"#,
        "read_file",
    );
    check(
        r#"<|tool_call_begin|>read_file:0<|tool_call_argument_begin|>"{\"path\": \"a.py\"}"<|tool_call_end|>"#,
        "read_file:0",
    );
    check(
        "print(default_api.read_file(path='a.py'))",
        "default_api.read_file",
    );
    assert_eq!(
        read(&format!(
            "<tool_call>{json}</tool_call>\n<tool_call>{json}</tool_call>"
        ))
        .unwrap()
        .len(),
        2
    );
}

#[test]
fn arguments_of_a_native_call_may_be_written_as_in_a_text() {
    let is_same = |name: &str| name == "read_file";
    for text in [
        "<parameter name=\"path\">a.py</parameter>",
        "<parameter=path>\na.py\n</parameter>",
        "<arg_key>path</arg_key>\n<arg_value>a.py</arg_value>",
        "<path>a.py</path>",
        "read_file(path=\"a.py\")",
        "<tool_call>{\"name\": \"read_file\", \"arguments\": {\"path\": \"a.py\"}}</tool_call>",
    ] {
        assert_eq!(
            arguments(text, &is_same).map(Value::Object),
            Some(json!({ "path": "a.py" })),
            "{text}"
        );
    }
    for text in [
        "<parameter name=\"path\">a.py</parameter><parameter name=\"content\">x",
        "<tool_call>{\"name\": \"write_file\", \"arguments\": {\"path\": \"a.py\"}}</tool_call>",
        "write_file(path=\"a.py\")",
        "a.py",
        "{\"path\": \"a.p",
        "",
    ] {
        assert_eq!(arguments(text, &is_same), None, "{text}");
    }
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
