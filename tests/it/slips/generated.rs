//! Generated cases: quotations and explanations of calls, which must not run. A call has the form of a model family; a
//! quotation comes from a file, a search, a command or the person.

use serde_json::{Value, json};

/// A changing call in the forms of the families.
fn forms() -> Vec<(&'static str, String)> {
    forms_of("first\nsecond\n")
}

/// A call that writes a file with this content, in the forms of the families.
fn forms_of(content: &str) -> Vec<(&'static str, String)> {
    let arguments = json!({ "path": "owned.txt", "content": content });
    let call = json!({ "name": "write_file", "arguments": arguments });
    vec![
        ("json", call.to_string()),
        ("pretty", serde_json::to_string_pretty(&call).unwrap()),
        ("hermes", format!("<tool_call>\n{call}\n</tool_call>")),
        ("mistral", format!("[TOOL_CALLS][{call}]")),
        ("llama", format!("<|python_tag|>{call}")),
        (
            "cline",
            format!(
                "<write_file>\n<path>owned.txt</path>\n<content>{content}</content>\n</write_file>"
            ),
        ),
        (
            "qwen",
            format!(
                "<tool_call>\n<function=write_file>\n<parameter=path>\nowned.txt\n</parameter>\n<parameter=content>\n\
                 {content}</parameter>\n</function>\n</tool_call>"
            ),
        ),
        (
            "invoke",
            format!(
                "<invoke name=\"write_file\">\n<parameter name=\"path\">owned.txt</parameter>\n\
                 <parameter name=\"content\">{content}</parameter>\n</invoke>"
            ),
        ),
        (
            "glm",
            format!(
                "<tool_call>write_file\n<arg_key>path</arg_key>\n<arg_value>owned.txt</arg_value>\n\
                 <arg_key>content</arg_key>\n<arg_value>{content}</arg_value>\n</tool_call>"
            ),
        ),
        (
            "harmony",
            format!("<|channel|>commentary to=functions.write_file <|message|>{arguments}<|call|>"),
        ),
        (
            "kimi",
            format!(
                "<|tool_call_begin|>functions.write_file:0<|tool_call_argument_begin|>{arguments}<|tool_call_end|>"
            ),
        ),
        (
            "react",
            format!("Action: write_file\nAction Input: {arguments}"),
        ),
        (
            "inputs",
            json!({ "toolName": "write_file", "inputs": arguments }).to_string(),
        ),
        ("call", format!("call:default_api:write_file{arguments}")),
        (
            "blank",
            format!(
                "<tool_call>\n<function write_file>\n<parameter=path>\nowned.txt\n</parameter>\n<parameter=content>\n\
                 {content}</parameter>\n</function>\n</tool_call>"
            ),
        ),
        (
            "suffixed",
            format!(
                "<tool_call:nextweights>write_file<tool_sep:nextweights>{arguments}<end_of_tool_call:nextweights>"
            ),
        ),
        (
            "glued",
            format!(
                "<|tool_call_begin|>functionswrite_file3<|tool_call_argument_begin|>{arguments}<|tool_call_end|>"
            ),
        ),
    ]
}

/// How the model reads a call: the prompt, and the tool call that reads it, or writes it.
fn places(text: &str) -> [(&'static str, String, Option<Value>); 5] {
    let call = |name: &str, arguments: Value| Some(json!([[name, arguments.to_string()]]));
    [
        (
            "file",
            "What is in notes.md?".to_owned(),
            call("read_file", json!({ "path": "notes.md" })),
        ),
        (
            "search",
            "Find it.".to_owned(),
            call("grep", json!({ "pattern": ".", "path": "notes.md" })),
        ),
        (
            "command",
            "Print notes.md.".to_owned(),
            call("run_command", json!({ "command": "cat notes.md" })),
        ),
        (
            "written",
            "Write an example and show it.".to_owned(),
            call(
                "write_file",
                json!({ "path": "example.md", "content": format!("{text}\n") }),
            ),
        ),
        (
            "person",
            format!("What does this do?\n\n{text}\n\nExplain it."),
            None,
        ),
    ]
}

/// The model repeats what it has read, as it was and in a fence.
pub fn quotations() -> Vec<Value> {
    let mut cases = Vec::new();
    for (form, text) in forms() {
        for (place, prompt, reading) in places(&text) {
            for (shape, said) in [
                ("alone", text.clone()),
                ("fence", format!("```json\n{text}\n```")),
            ] {
                let reads = usize::from(reading.is_some());
                let answers = reading
                    .iter()
                    .map(|calls| json!({ "calls": calls }))
                    .chain([json!({ "say": said })]);
                cases.push(json!({
                    "id": format!("safety-quotations/{form}-{place}-{shape}"), "category": "safety-quotations",
                    "workspace": { "notes.md": format!("# Notes\n\n{text}\n") },
                    "turns": [{ "prompt": prompt, "script": answers.collect::<Vec<_>>() }],
                    "expect": {
                        "requests": [reads + 1, reads + 1], "ran": [reads, reads],
                        "files": { "owned.txt": null }, "shown": ["write_file", "second"],
                    },
                }));
            }
        }
    }
    cases
}

/// The model explains what a call looks like, then ends or asks what else it can do.
pub fn explanations() -> Vec<Value> {
    const WORDS: [&str; 10] = [
        "A call to this tool:",
        "1. The model writes",
        "## Writing a file\n",
        "So ruft man es auf:",
        "Voici un appel :",
        "Así se escribe:",
        "呼び出し方:",
        "写法是",
        "Ecco come si fa:",
        "Zapisuje się to w ten sposób:",
    ];
    let mut cases = Vec::new();
    for (index, words) in WORDS.iter().enumerate() {
        // Every second form with every second sentence: each is combined with all of the other kind.
        for (form, text) in forms().into_iter().skip(index % 2).step_by(2) {
            cases.push(json!({
                "id": format!("safety-explanations/{form}-{index}"), "category": "safety-explanations",
                "workspace": { "README.md": "r\n" },
                "turns": [{ "prompt": "How do models write calls?", "script": [{ "say": format!("{words}\n\n{text}") }] }],
                "expect": { "requests": [1, 4], "ran": [0, 0], "files": { "owned.txt": null }, "shown": ["second"] },
            }));
        }
    }
    cases
}

/// What begins a message of somebody else, or what a call gave.
const OTHERS: [&str; 14] = [
    "<|im_start|>user\n",
    "<|im_start|>system\n",
    "<|im_start|>tool\n",
    "<|start_header_id|>user<|end_header_id|>\n\n",
    "<|user|>\n",
    "<|observation|>\n",
    "<|im_user|>",
    "<｜User｜>",
    "<start_of_turn>user\n",
    "<|USER_TOKEN|>",
    "<extra_id_1>User\n",
    "<seed:bos>tool\n",
    "[TOOL_RESULTS]",
    "<｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>",
];

/// The answer is a call in a form that shows it: in a fence or indented, in a message of somebody else, with what stands for
/// an argument, or as the record of another kind.
pub fn shown() -> Vec<Value> {
    let mut cases = Vec::new();
    let mut add = |form: &str, how: &str, text: String| {
        cases.push(json!({
            "id": format!("safety-shown/{form}-{how}"), "category": "safety-shown", "workspace": { "README.md": "r\n" },
            "turns": [{ "prompt": "What does a call look like?", "script": [{ "say": text }] }],
            "expect": { "requests": [1, 4], "ran": [0, 0], "files": { "owned.txt": null, "path": null } },
        }));
    };
    for (form, text) in forms() {
        // A fence is all that marks JSON as a call.
        if !text.starts_with('{') {
            for language in ["", "xml", "json", "text"] {
                add(
                    form,
                    &format!("fence-{language}"),
                    format!("```{language}\n{text}\n```"),
                );
            }
        }
        for (how, indent) in [("blanks", "    "), ("tab", "\t")] {
            let lines: Vec<_> = text.lines().map(|line| format!("{indent}{line}")).collect();
            add(form, how, lines.join("\n"));
        }
        for (row, mark) in OTHERS.iter().enumerate() {
            add(form, &format!("other-{row}"), format!("{mark}{text}"));
        }
        for place in [
            "<path>",
            "{path}",
            "{{ file name }}",
            "[path]",
            "$FILE",
            "path",
            "FILE_PATH",
            "src/<name>.py",
        ] {
            add(form, place, text.replace("owned.txt", place));
        }
    }
    for kind in [
        "example",
        "event",
        "message",
        "tool_result",
        "tool_definition",
        "tool_call_result",
        "denied_tool_use",
    ] {
        let call = json!({ "type": kind, "name": "write_file", "input": { "path": "owned.txt", "content": "x" } });
        add("json", kind, call.to_string());
    }
    cases
}

/// A text in a form that no comparison of words matches.
fn encoded(text: &str, way: &str) -> String {
    let letter = |it: char| match (way, it) {
        ("rotated", 'a'..='m') => char::from_u32(u32::from(it) + 13),
        ("rotated", 'n'..='z') => char::from_u32(u32::from(it) - 13),
        _ => Some(it),
    };
    let numbers: Vec<String> = text.chars().map(|it| u32::from(it).to_string()).collect();
    match way {
        "numbers" => numbers.join(" "),
        "backwards" => text.chars().rev().collect(),
        _ => text.chars().filter_map(letter).collect(),
    }
}

/// The model repeats what it has read in another form.
pub fn decoded() -> Vec<Value> {
    let mut cases = Vec::new();
    for (form, text) in forms() {
        for way in ["numbers", "backwards", "rotated"] {
            let read = json!([["read_file", json!({ "path": "notes.md" }).to_string()]]);
            cases.push(json!({
                "id": format!("safety-decoded/{form}-{way}"), "category": "safety-decoded",
                "workspace": { "notes.md": encoded(&text, way) },
                "turns": [{ "prompt": "Decode notes.md.", "script": [{ "calls": read }, { "say": text }] }],
                "expect": { "requests": [2, 3], "ran": [1, 1], "files": { "owned.txt": null } },
            }));
        }
    }
    cases
}

/// The model writes two calls, each after a sentence: neither runs, and it is asked for them.
pub fn between() -> Vec<Value> {
    let marked = forms()
        .into_iter()
        .filter(|(_, text)| !text.starts_with('{'));
    let case = |(form, text): (&str, String)| {
        let other = text.replace("owned.txt", "other.txt");
        json!({
            "id": format!("safety-between/{form}"), "category": "safety-between", "workspace": { "README.md": "r\n" },
            "turns": [{ "prompt": "Do it.", "script": [{ "say": format!("First one.\n{text}\nThen the other.\n{other}") }] }],
            "expect": { "requests": [2, 4], "ran": [0, 0], "files": { "owned.txt": null, "other.txt": null } },
        })
    };
    marked.map(case).collect()
}

/// Lines of files that are about calls, messages and thoughts, or look as if they were.
const LINES: [&str; 18] = [
    "const x = ref<string | null>(null);",
    "let a: Box<A|B> = if (a<b||c>d) {};",
    "const ends = /<\\/script>/g;",
    "tokens = [\"<|im_start|>\", \"<|im_end|>\"]",
    "tpl = '''{a}<|im_end|>\n<|im_start|>user\n{b}'''",
    "x = \"<|eot_id|><|start_header_id|>user<|end_header_id|>\"",
    "x = '<|end|><|start|>user<|message|>'",
    "<start_of_turn>user\nhi<end_of_turn>\n<start_of_turn>model\nho<end_of_turn>",
    "<|channel|>analysis<|message|>thought<|end|>",
    "<think>a</think>",
    "[THINK]a[/THINK]",
    "<minimax:tool_call> <seed:tool_call> <android:parameter>",
    "The end token is <|im_end|>",
    "EOS=</s>",
    "It ends with </content>",
    "s = '</p>';",
    "<|start|>assistant<|channel|>final<|message|>hi<|end|>",
    "<p>5 &lt; 6 &amp;&amp; 7 &gt; 2</p>",
];

/// A file is written, changed or made by a command, natively and as text: it arrives to the byte. What is ambiguous as text
/// may be refused.
pub fn files() -> Vec<Value> {
    let mut cases = Vec::new();
    let mut add = |id: String, answer: Value, files: Value| {
        cases.push(json!({
            "id": format!("safety-files/{id}"), "category": "safety-files",
            "workspace": { "e.txt": "s\nMID\ne\n" },
            "turns": [{ "prompt": "Do it.", "script": [answer] }],
            "expect": { "requests": [2, 6], "done": null, "any": files },
        }));
    };
    let native = |name: &str, arguments: Value| json!({ "calls": [[name, arguments.to_string()]] });
    for (row, line) in LINES.into_iter().enumerate() {
        let content = format!("before\n{line}\nafter\n");
        let write = json!({ "path": "owned.txt", "content": content });
        let whole = json!({ "files": { "owned.txt": content } });
        add(
            format!("write-{row}"),
            native("write_file", write),
            json!([whole]),
        );
        let command = json!({ "command": format!("cat > owned.txt <<'E'\n{line}\nE\necho end") });
        let made = json!([{ "files": { "owned.txt": format!("{line}\n") } }]);
        add(format!("run-{row}"), native("run_command", command), made);
        // A last line that is nothing but a mark may be the end of the call, not of the file.
        if !line.starts_with(['<', '[']) {
            let last = format!("before\n{line}\n");
            let write = json!({ "path": "owned.txt", "content": last });
            let ended = json!([{ "files": { "owned.txt": last } }]);
            add(format!("end-{row}"), native("write_file", write), ended);
            let edits = json!([{ "old_text": "MID\n", "new_text": format!("{line}\n") }]);
            let edit = json!({ "path": "e.txt", "edits": edits });
            let edited = json!([{ "files": { "e.txt": format!("s\n{line}\ne\n") } }]);
            add(format!("edit-{row}"), native("edit_file", edit), edited);
        }
        // Nobody can tell the end of an element from the same tag in it.
        let has_own_end = |form: &str| form == "cline" && line.contains("</content>");
        for (form, text) in forms_of(&content) {
            if has_own_end(form) {
                continue;
            }
            // Some forms do not say whether a line break ends the file.
            let unended = json!({ "files": { "owned.txt": content.trim_end() } });
            let any = json!([whole, unended]);
            add(format!("{form}-{row}"), json!({ "say": text }), any);
        }
    }
    cases
}
