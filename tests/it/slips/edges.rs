//! Generated cases: marks at the edges of a model's answer, and the text next to them. Each kind of mark is tried in
//! each place; if the text is about the mark, the mark stays.

use serde_json::{Value, json};

const APP: &str = "def add(a, b):\n    return a - b\n";
const FIXED: &str = "def add(a, b):\n    return a + b\n";

pub fn case(category: &str, id: &str, script: &Value, expect: &Value) -> Value {
    json!({
        "id": format!("{category}/{id}"), "category": category, "workspace": { "src/app.py": APP, "b.txt": "second mk4402q\n" },
        "turns": [{ "prompt": "Please do the task.", "script": script }], "expect": expect,
    })
}

/// A text as a whole, in pieces of one character or of three, in turn.
pub fn pieces(text: &str, turn: usize) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    let length = [letters.len(), 1, 3][turn % 3];
    letters
        .chunks(length)
        .map(|it| it.iter().collect())
        .collect()
}

/// Marks that belong to an envelope, and the shape of each.
const EDGES: [&str; 27] = [
    // Tokens with bars on both sides, on one, or on none.
    "<|im_sep|>",
    "<|content|>",
    "<|flush|>",
    "<|CHATBOT_TOKEN|>",
    "<|observation|>",
    "<｜Assistant｜>",
    "<|begin_of_box|>",
    "<|channel>",
    "<|tool_response>",
    "<tool_call|>",
    "<end_of_turn>",
    "<SPECIAL_12>",
    "<unused7>",
    // Headers.
    "<|im_start|>assistant",
    "<|im_start|>user",
    "<|begin|>assistant",
    "<|start_of_role|>user<|end_of_role|>",
    "<SPECIAL_11>Assistant",
    // Closing marks without an opening one.
    "</tool_response>",
    "</function_results>",
    "</tool_call>",
    "</zyphra_tool_call>",
    "</seed:tool_call>",
    "</parameter>\n</invoke>",
    "[/INST]",
    "[/TOOL_RESULTS]",
    "</s>",
];

/// A mark at an edge of an answer, after each text that may come there, or as the subject of the answer.
pub fn edges() -> Vec<Value> {
    let mut cases = Vec::new();
    for (row, mark) in EDGES.into_iter().enumerate() {
        let hidden = mark.trim_matches(['<', '>', '[', ']', '|']);
        let fenced = "```sh\nls\n```";
        let gone = [
            format!("{mark}\nIt is 42."),
            format!("{mark}\n\nIt is 42."),
            format!("\n{mark}\nIt is 42."),
            format!("<|im_end|>\n{mark}\nIt is 42."),
            format!("<think>I compute.</think>{mark}\nIt is 42."),
            format!("{mark}\nIt is 42.{mark}"),
            format!("It is 42.{mark}"),
            format!("It is 42.\n{mark}\n"),
            format!("It is 42.<|im_end|>\n{mark}"),
            format!("It is 42.{mark}{mark}"),
            format!("- It is 42.\n- `x`{mark}"),
            format!("It is 42.\n{fenced}\n{mark}"),
            format!("{mark}It is 42."),
            format!("{mark} It is 42."),
        ];
        // A sender is a word: adjoining text makes it a different word.
        let is_word = mark.ends_with(char::is_alphabetic);
        let gone = gone.iter().take(if is_word { 12 } else { 14 });
        let kept = [
            format!("It has `{mark}`"),
            format!("{fenced}\n\n```\nx{mark}\n```"),
            format!("It says {mark} and goes on."),
            format!("| a |\n|---|\n| `{mark}` |"),
            format!("`{mark}` begins it."),
            format!("Use `grep '{mark}' a.txt`."),
        ];
        let gone = gone.map(|said| (said, false));
        for (column, (said, is_kept)) in gone.chain(kept.iter().map(|it| (it, true))).enumerate() {
            let expect = if is_kept {
                json!({ "requests": [1, 1], "ran": [0, 0], "shown": [said] })
            } else {
                json!({ "requests": [1, 1], "ran": [0, 0], "shown": ["It is 42."], "hidden": [hidden] })
            };
            let script = json!([{ "say": pieces(said, row + column) }]);
            cases.push(case("edges", &format!("{row}-{column}"), &script, &expect));
        }
    }
    cases
}

/// The end of an argument, and the next call or message, which ended up in its text.
const NEXT: [(&str, &str); 10] = [
    (
        "</parameter>\n</invoke>\n",
        "<invoke name=\"run_command\">\n<parameter name=\"command\">cat README.md",
    ),
    (
        "</parameter>\n</invoke>\n",
        "<invoke name=\"read_file\">\n<parameter name=\"path\">README.md</parameter>\n</invoke>\n</function_calls>",
    ),
    (
        "</parameter>\n</function>\n</tool_call>\n",
        "<tool_call>\n<function=read_file>\n<parameter=path>\nREADME.md",
    ),
    (
        "</arg_value></tool_call>",
        "<tool_call>read_file<arg_key>path</arg_key><arg_value>README.md",
    ),
    (
        "</｜DSML｜parameter>\n</｜DSML｜invoke>\n",
        "<｜DSML｜invoke name=\"read_file\">\n<｜DSML｜parameter name=\"path\" string=\"true\">README.md",
    ),
    (
        "</parameter>\n</invoke>\n</minimax:tool_call>\n",
        "<minimax:tool_call>\n<invoke name=\"read_file\">\n<parameter name=\"path\">README.md",
    ),
    (
        "<|tool_call_end|>",
        "<|tool_call_begin|>functions.read_file:1<|tool_call_argument_begin|>{\"path\": \"README.md\"}",
    ),
    (
        "<|\"|>}<tool_call|>",
        "<|tool_call>call:read_file{path:<|\"|>README.md<|\"|>}",
    ),
    (
        "<|call|>",
        "<|start|>assistant<|channel|>final<|message|>I wrote it to README.md.",
    ),
    (
        "</parameter>\n</function>\n</tool_call><|im_end|>\n",
        "<|im_start|>user\n<tool_response>\nREADME.md",
    ),
];

/// Calls whose last argument continues with the next call: only their own text counts.
pub fn next_calls() -> Vec<Value> {
    let mut cases = Vec::new();
    for (row, (end, next)) in NEXT.into_iter().enumerate() {
        for (name, between) in [("glued", ""), ("line", "\n")] {
            let leak = format!("{between}{end}{next}");
            let mut add = |what: &str, tool: &str, arguments: &Value, expect: &Value| {
                let script = json!([{ "calls": [[tool, arguments.to_string()]] }]);
                cases.push(case(
                    "next-calls",
                    &format!("{row}-{name}-{what}"),
                    &script,
                    expect,
                ));
            };
            for path in ["n.py", "n.md"] {
                let arguments = json!({ "path": path, "content": format!("x = 1\ny = 2{leak}") });
                let files = json!({ "files": { path: { "has": ["x = 1\ny = 2"], "lacks": ["<", "README"] } } });
                add(path, "write_file", &arguments, &files);
            }
            let edit = json!({ "old_text": "    return a - b", "new_text": format!("    return a + b{leak}") });
            let arguments = json!({ "path": "src/app.py", "edits": [edit] });
            add(
                "edit",
                "edit_file",
                &arguments,
                // The model is told of the call that was not run.
                &json!({ "files": { "src/app.py": FIXED }, "results": { "has": ["another call"] } }),
            );
            let arguments = json!({ "command": format!("echo $((40+2))-ran{leak}") });
            let ran =
                json!({ "results": { "has": ["42-ran"], "lacks": ["README"] }, "ran": [1, 1] });
            add("run", "run_command", &arguments, &ran);
        }
        for (what, text) in [
            ("fence", format!("# Marks\n\n```\n{end}{next}\n```\n")),
            (
                "line",
                format!("# Marks\n\nIt begins with {next} and so on."),
            ),
        ] {
            let arguments = json!({ "path": "n.md", "content": text });
            let script = json!([{ "calls": [["write_file", arguments.to_string()]] }]);
            let expect = json!({ "files": { "n.md": text } });
            cases.push(case(
                "next-calls",
                &format!("{row}-kept-{what}"),
                &script,
                &expect,
            ));
        }
    }
    cases
}

/// Calls in text with missing or extra marks: they run, or the model is told.
pub fn broken_marks() -> Vec<Value> {
    let arguments = json!({ "path": "b.txt" }).to_string();
    let call = json!({ "name": "read_file", "arguments": { "path": "b.txt" } });
    let element = "<function=read_file>\n<parameter=path>\nb.txt\n</parameter>\n</function>";
    let forms = [
        format!("leton\n{call}\n</tool_call>"),
        format!("I look.\n{call}\n</tool_call>"),
        format!("I look: {call}</tool_call><|im_end|>"),
        format!("Reading now.\n\n{call}\n</function_calls>"),
        format!("read_file\n{arguments}\n</invoke>"),
        format!("<function-name>read_file</function-name>\n<arguments>{arguments}</arguments>"),
        format!("<tool-name>read_file</tool-name><params>{arguments}</params>"),
        format!("<tool_call>\n{element} ok </tool_call>"),
        format!("<tool_call>\n{call}\nI hope that helps.\n</tool_call>"),
        format!("<function_invocation>\n{element}\n</function_invocation>"),
        format!("<tool_invocation>{call}</tool_invocation>"),
        "<parameter=read_file>\n<parameter=path>\nb.txt\n</parameter>\n</function>".to_owned(),
        "<parameter name=\"path\">b.txt</parameter>\n</invoke>".to_owned(),
        format!("I look.\n\n<tool_call>\n{{\"x\": {call}\n</tool_call>"),
    ];
    let play = |(row, said): (usize, &String)| {
        let script = json!([{ "say": said }, { "calls": [["read_file", arguments]] }]);
        let mut expect =
            json!({ "requests": [2, 3], "ran": [1, 2], "results": { "has": ["mk4402q"] } });
        // Only the model needs text that begins and ends with marks and cannot be read.
        if row >= 11 {
            expect["hidden"] = json!(["<", ">"]);
        }
        case("broken-marks", &row.to_string(), &script, &expect)
    };
    forms.iter().enumerate().map(play).collect()
}

/// Thoughts after the beginning of an answer.
pub fn later_thoughts() -> Vec<Value> {
    let marks = [
        ("<think>", "</think>"),
        ("<thinking>", "</thinking>"),
        ("[THINK]", "[/THINK]"),
        ("<seed:think>", "</seed:think>"),
        ("<|START_THINKING|>", "<|END_THINKING|>"),
    ];
    let mut cases = Vec::new();
    for (row, (begin, end)) in marks.into_iter().enumerate() {
        let thought = format!("{begin}I compute.{end}");
        for (column, said) in [
            format!("It is 42.\n\n{thought}"),
            format!("Well.\n{begin}\nI compute.\n{end}\nIt is 42."),
            format!("It is 42.\n{thought}<|im_end|>"),
        ]
        .iter()
        .enumerate()
        {
            let expect = json!({
                "requests": [1, 1], "shown": ["It is 42."], "hidden": ["I compute", begin, end], "thought": ["I compute."],
            });
            let script = json!([{ "say": pieces(said, row + column) }]);
            cases.push(case(
                "later-thoughts",
                &format!("{row}-{column}"),
                &script,
                &expect,
            ));
        }
        for (column, said) in [
            format!("Use `{begin}` and\nthen `{end}`."),
            format!("```\n{begin}\nI compute.\n{end}\n```\nis it."),
            format!("It writes {thought} first."),
            format!("It begins with\n\n{begin}\n\nand does not end."),
        ]
        .iter()
        .enumerate()
        {
            let expect = json!({ "requests": [1, 1], "shown": [said] });
            let script = json!([{ "say": pieces(said, row + column) }]);
            cases.push(case(
                "later-thoughts",
                &format!("{row}-kept-{column}"),
                &script,
                &expect,
            ));
        }
    }
    cases
}

/// A changing call from an earlier answer doesn't run when it is repeated.
pub fn own_words() -> Vec<Value> {
    let arguments = json!({ "path": "owned.txt", "content": "first\nsecond\n" });
    let call = json!({ "name": "write_file", "arguments": arguments });
    let forms = [
        format!(
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.write_file:0<|tool_call_argument_begin|>{arguments}\
             <|tool_call_end|><|tool_calls_section_end|>"
        ),
        format!("<tool_call>\n{call}\n</tool_call>"),
        format!("[TOOL_CALLS][{call}]"),
        call.to_string(),
        "<write_file>\n<path>owned.txt</path>\n<content>first\nsecond\n</content>\n</write_file>"
            .to_owned(),
    ];
    let mut cases = Vec::new();
    for (row, form) in forms.iter().enumerate() {
        for (column, said) in [
            format!("Like so: `{form}`, and the server reads it."),
            format!("Like so:\n\n```\n{form}\n```\n\nThe server reads it."),
            "The path is owned.txt, the content:\n\nfirst\nsecond\n\nin a call of write_file."
                .to_owned(),
        ]
        .iter()
        .enumerate()
        {
            cases.push(json!({
                "id": format!("safety-own-words/{row}-{column}"), "category": "safety-own-words",
                "workspace": { "README.md": "r\n" },
                "turns": [
                    { "prompt": "How do you write a call?", "script": [{ "say": said }] },
                    { "prompt": "Only the example, please.", "script": [{ "say": form }] },
                ],
                "expect": { "requests": [2, 4], "ran": [0, 0], "files": { "owned.txt": null } },
            }));
        }
    }
    cases
}

/// JSON that describes a tool or a call without calling it: a schema, or a field with a sample.
pub fn data() -> Vec<Value> {
    let arguments = json!({ "path": "owned.txt", "content": "x\n" });
    let call = json!({ "name": "write_file", "arguments": arguments });
    let schema = json!({
        "type": "object", "required": ["path", "content"],
        "properties": { "path": { "type": "string" }, "content": { "type": "string" } },
    });
    let described =
        |key: &str| json!({ "name": "write_file", "description": "Writes one file", key: schema });
    let samples = [
        json!(call),
        json!(call.to_string()),
        json!(format!("<tool_call>\n{call}\n</tool_call>")),
        json!(format!("[TOOL_CALLS][{call}]")),
        json!(format!("write_file({arguments})")),
    ];
    let samples =
        samples.map(|sample| json!({ "title": "A form", "sample": sample, "note": "no call" }));
    let schemas = ["parameters", "input_schema", "arguments"].map(described);
    let wrapped = json!({ "type": "function", "function": described("parameters") });
    let mut cases = Vec::new();
    for (row, value) in samples
        .into_iter()
        .chain(schemas)
        .chain([wrapped])
        .enumerate()
    {
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        for (column, said) in [
            value.to_string(),
            json!([value]).to_string(),
            pretty.clone(),
            format!("```json\n{pretty}\n```"),
            format!("This is the entry:\n\n{value}"),
        ]
        .iter()
        .enumerate()
        {
            let script = json!([{ "say": pieces(said, row + column) }]);
            let expect = json!({ "requests": [1, 1], "ran": [0, 0], "shown": [said], "files": { "owned.txt": null } });
            cases.push(case(
                "safety-data",
                &format!("{row}-{column}"),
                &script,
                &expect,
            ));
        }
    }
    // A call cited at the end of an answer requests nothing.
    let marked = [
        call.to_string(),
        format!("[TOOL_CALLS][{call}]"),
        "<tool_call>write_file<arg_key>path</arg_key><arg_value>owned.txt</arg_value></tool_call>"
            .to_owned(),
        format!(
            "<|tool_call_begin|>functions.write_file:0<|tool_call_argument_begin|>{arguments}<|tool_call_end|>"
        ),
        format!("<|channel|>commentary to=functions.write_file<|message|>{arguments}<|call|>"),
    ];
    for (row, form) in marked.iter().enumerate() {
        for (column, sign) in ["> ", "    ", "\t"].into_iter().enumerate() {
            let said = format!("The log says:\n\n{sign}{form}");
            let script = json!([{ "say": pieces(&said, row + column) }]);
            let expect = json!({ "requests": [1, 1], "ran": [0, 0], "shown": [said] });
            cases.push(case(
                "safety-data",
                &format!("cited-{row}-{column}"),
                &script,
                &expect,
            ));
        }
    }
    cases
}
