mod repeats;
mod variants;

use super::*;
use crate::tools::{Editing, all};

const CALL: &str = r#"{"name": "read_file", "arguments": {"path": "a.py"}}"#;

/// The text released as it arrives character by character, and what is left at the end.
fn run(text: &str) -> (String, Held) {
    let mut calls = TextCalls::new(all(Editing::Replacements));
    let shown = text
        .chars()
        .map(|letter| calls.push(letter.encode_utf8(&mut [0; 4])))
        .collect();
    (shown, calls.settle(&|_| false))
}

#[track_caller]
fn is_call(text: &str, words: &str) {
    let (shown, held) = run(text);
    let Held::Calls(Written {
        words: rest,
        calls,
        is_beside_prose,
        ..
    }) = held
    else {
        panic!("{text}: {held:?}")
    };
    assert_eq!(is_beside_prose, !words.is_empty(), "{text}");
    assert_eq!(format!("{shown}{rest}").trim(), words, "{text}");
    assert_eq!(
        calls[0].0.trim_start_matches("functions."),
        "read_file",
        "{text}"
    );
}

#[track_caller]
fn is_text(text: &str, told: bool) {
    let (shown, held) = run(text);
    let (rest, unusable) = match held {
        Held::Text(rest) => (rest, false),
        Held::Unusable(rest, _) => (rest, true),
        Held::Calls(_) => panic!("{text}"),
    };
    assert_eq!((format!("{shown}{rest}").as_str(), unusable), (text, told));
}

#[test]
fn a_fence_or_block_of_code_with_anything_but_json_may_be_an_example() {
    for (code, may_be_example) in [
        ("<read_file>\n<path>a.py</path>\n</read_file>", true),
        ("read_file(path=\"a.py\")", true),
        (CALL, false),
        (&format!("<tool_call>{CALL}</tool_call>"), true),
    ] {
        let Held::Calls(written) = run(&format!("```\n{code}\n```")).1 else {
            panic!("{code}")
        };
        assert_eq!(written.is_beside_prose, may_be_example, "{code}");
    }
    for indent in ["    ", "\t"] {
        let Held::Calls(written) = run(&format!("{indent}<tool_call>{CALL}</tool_call>")).1 else {
            panic!("{indent:?}")
        };
        assert!(written.is_beside_prose, "{indent:?}");
    }
}

#[test]
fn a_text_call_at_the_end_is_a_call() {
    is_call(CALL, "");
    is_call(&format!("```json\n{CALL}\n```"), "");
    is_call(&format!("[{CALL}]"), "");
    for kind in ["tool_use", "functionCall", "tool-call", "custom_tool_call"] {
        let typed = format!("{{\"type\": \"{kind}\", ");
        is_call(&CALL.replacen('{', &typed, 1), "");
    }
    is_call("```tool_code\nprint(read_file(path=\"a.py\"))\n```", "");
    is_call("[read_file(path=\"a.py\")]", "");
    is_call(&format!("<tool_call>{CALL}</tool_call>"), "");
    is_call(
        &format!("Reading.\n<tool_call>\n{CALL}\n</tool_call>\n"),
        "Reading.",
    );
    is_call(
        &format!("Reading. <tool_call>\n{CALL}\n</tool_call>"),
        "Reading.",
    );
    is_call(&format!("Reading[TOOL_CALLS][{CALL}]"), "Reading");
    is_call(
        "I read it.\n\n<read_file>\n<path>a.py</path>\n</read_file>",
        "I read it.",
    );
    is_call(
        "<|channel|>commentary to=functions.read_file <|message|>{\"path\": \"a.py\"}",
        "",
    );
    is_call(
        "I look.\nAction: read_file\nAction Input: {\"path\": \"a.py\"}",
        "I look.",
    );
    is_call(
        "Action:\n{\"action\": \"read_file\", \"action_input\": {\"path\": \"a.py\"}}",
        "",
    );
    is_call(
        &format!("<tool_call>{}</tool_call>", CALL.trim_end_matches('}')),
        "",
    );
    is_call(
        &format!("Let me read:\n```json\n{CALL}\n```\n<tool_call>{CALL}</tool_call>"),
        &format!("Let me read:\n```json\n{CALL}\n```"),
    );
    is_call("read_file(\"a.py\")", "");
    is_call("print(read_file(\"a.py\"))", "");
    is_call("print(functions.read_file(\"a.py\"))", "");
    is_call("[read_file('a.py', 2, limit=3)]", "");
    is_call(
        "<read_file><args><file><path>a.py</path><line_range>1-9</line_range></file></args></read_file>",
        "",
    );
    is_call(
        &format!("See:\n```rust\nx\n```\n<tool_call>{CALL}</tool_call>"),
        "See:\n```rust\nx\n```",
    );
}

#[test]
fn calls_of_newer_families_are_calls() {
    is_call(
        "<tool_calls:6124c78e><tool_call:6124c78e>read_file<arg_key:6124c78e>path</arg_key:6124c78e>\
         <arg_value:6124c78e>a.py</arg_value:6124c78e></tool_call:6124c78e></tool_calls:6124c78e>",
        "",
    );
    is_call(
        "<function name=\"read_file\"><param name=\"path\">a.py</param></function>",
        "",
    );
    is_call(
        "<dots_function_call>\n<invoke name=\"read_file\">\n<parameter name=\"path\">a.py</parameter>\n\
         </invoke>\n</dots_function_call>",
        "",
    );
    is_call(
        "<|start|>assistant to=read_file<|message|><atem:invoke name=\"read_file\">\n\
         <atem:parameter name=\"path\">a.py</atem:parameter>\n</atem:invoke><|eom|>",
        "",
    );
    is_call(
        "<|message_model|><|content_invoke_tool_json|>{\"name\": \"read_file\", \"args\": {\"path\": \"a.py\"}}<|end_message|>",
        "",
    );
    is_call(
        &format!("function call<|role_sep|>\n{CALL}<|message_sep|>\n"),
        "",
    );
    is_call(
        &format!("I look.<|message_sep|>\n\nfunction call<|role_sep|>\n{CALL}"),
        "I look.",
    );
    is_call(
        "I look.<|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool=\"read_file\"<|sep|>\
         <|open|>argument key=\"path\"<|sep|>a.py<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>",
        "I look.",
    );
}

#[test]
fn positions_get_our_names_and_files_a_call_each() {
    let arguments = |text: &str| {
        let Held::Calls(held) = run(text).1 else {
            panic!("{text}")
        };
        held.calls
            .into_iter()
            .map(|(_, arguments)| arguments)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        arguments("read_file('a.py', 2, limit=3)"),
        [r#"{"path":"a.py","offset":2,"limit":3}"#]
    );
    assert_eq!(
        arguments("read_file(\"a.py\")\nread_file(\"b.py\")"),
        [r#"{"path":"a.py"}"#, r#"{"path":"b.py"}"#]
    );
    let files = "<read_file>\n<args>\n<file><path>a</path></file>\n<file><path>b</path></file>\n</args>\n</read_file>";
    assert_eq!(arguments(files), [r#"{"path":"a"}"#, r#"{"path":"b"}"#]);
    is_text("[view('a.py', 2)]", true);
    is_text("read_file('a.py', path='b.py')", true);
    is_text("read_file(limit=3, 'a.py')", false);
    is_text("read_file(name)", false);
}

#[test]
fn tokens_that_end_an_answer_are_no_text() {
    for text in [
        "Yes.<|im_end|>",
        "Yes.<|end|><|return|>\n",
        "Yes.<|eot_id|>",
    ] {
        let (shown, held) = run(text);
        assert_eq!(
            (shown.as_str(), held),
            ("Yes.", Held::Text(String::new())),
            "{text}"
        );
    }
}

#[test]
fn a_text_call_in_an_example_is_text() {
    is_text(
        &format!("Like this:\n```\n<tool_call>{CALL}</tool_call>\n```\nThat is all."),
        false,
    );
    is_text(
        &format!("The tag is `<tool_call>{CALL}</tool_call>`."),
        false,
    );
    is_text(&format!("```json\n{CALL}\n```\n\nThis would read."), false);
    is_text(&format!("> <tool_call>{CALL}</tool_call>"), false);
    is_text(
        &format!("It is:\n\n    <tool_call>{CALL}</tool_call>"),
        false,
    );
    is_text(
        &format!("<tool_call>{CALL}</tool_call> is the form."),
        false,
    );
    is_text(&format!("The form is <tool_call>{CALL}</tool_call>"), false);
    is_text(&format!("1. <tool_call>{CALL}</tool_call>"), false);
    is_text("The token <|im_end|> ends a turn.", false);
    is_text(
        &format!("````md\n```\n<tool_call>{CALL}</tool_call>\n```\n````"),
        false,
    );
    for text in [
        "",
        "{\"name\": \"demo\", \"version\": 1}",
        "{\"name\": \"send_mail\", \"arguments\": {}}",
        "[1, 2]",
        "a < b [c]",
        "Action: edit\nOwner: Ann",
        "Action:\nWe read it.",
        "Old Qwen wrote ✿FUNCTION✿: read_file and ✿ARGS✿: {\"path\": \"a.py\"} in a row.",
        "Action: read_file",
        "```\nAction: read_file\nAction Input: {\"path\": \"a.py\"}\n```\nis ReAct.",
    ] {
        is_text(text, false);
    }
}

#[test]
fn unusable_text_calls_are_reported() {
    is_text(
        "<tool_call>{\"name\": \"send_mail\", \"arguments\": {}}</tool_call>",
        true,
    );
    is_text(
        "<tool_call>{\"name\": \"read_file\", \"arguments\": {}}</tool_call>",
        true,
    );
    // The marks at both ends leave no other interpretation.
    let broken = "<tool_call>{\"name\": \"read_file\"</tool_call>";
    let hidden = Held::Unusable(String::new(), UNREADABLE.to_owned());
    assert_eq!(run(broken), (String::new(), hidden));
    let unfinished = r#"{"name": "write_file", "arguments": {"path": "a.py", "content": "x""#;
    for text in [
        unfinished.to_owned(),
        format!("<tool_call>{unfinished}</tool_call>"),
        format!("```json\n{unfinished}"),
    ] {
        is_text(&text, true);
    }
    is_text(
        "{\"name\": \"read_file\", \"arguments\": {\"offset\": 1}}",
        true,
    );
    let write = r#"{"name": "write_file", "arguments": {"path": "a.py", "content": "x"}}"#;
    is_text(&format!("Let me write:\n```json\n{write}\n```"), true);
    is_text(&format!("Let me write:\n{write}"), true);
    is_text(&format!("The file:\n```json\n{CALL}\n```"), true);
    is_text(&format!("Let me show you:\n```json\n{CALL}\n```"), true);
    is_text(&format!("Let me read:\n```json\n{CALL}\n```"), true);
    is_text(&format!("I'll read it.\n{CALL}"), true);
    is_text(
        "I'll read it.\n```tool_code\nprint(read_file(\"a.py\"))\n```",
        true,
    );
    is_text(
        &format!("Let me read:\n```json\n{CALL}\n```\nThat is all."),
        false,
    );
    is_text(
        &format!("<tool_call>{CALL}</tool_call>\n\nIt has three lines."),
        true,
    );
    is_text(
        "<textarea readonly>\n<read_file>\n<path>a.py</path>\n</read_file>\n</textarea>\n<p>It is never sent.</p>",
        false,
    );
    is_text(
        "Let me see:\n```json\n{\"name\": \"demo\", \"version\": 1}\n```",
        false,
    );
}

#[test]
fn ordinary_text_streams_without_delay() {
    for text in [
        "Hello",
        "Actions: x",
        "Action: wait\nx",
        "<b>x",
        "```rust\nfn",
        "{\"version\"",
        "a [b",
        "x\n<div>",
        "> q",
    ] {
        assert_eq!(run(text).0, text);
    }
}

#[test]
fn a_flood_of_marks_does_not_mute_the_answer() {
    // Reparsing everything on each letter would take hours.
    let floods = [
        ("[", 20_000),
        ("</", 20_000),
        ("]", 20_000),
        (" ", 100_000),
        ("<|a|>", 5_000),
    ];
    for (flood, count) in floods {
        let text = format!("{}\nThat is all.", flood.repeat(count));
        let (shown, held) = run(&text);
        assert_eq!((shown, held), (text, Held::Text(String::new())), "{flood}");
    }
}
