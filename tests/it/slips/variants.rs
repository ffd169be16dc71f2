//! Generated cases: leaks of a family's marks, and spellings of names, paths and patches that models write.
//! Each kind follows a rule, so it is tried in many variants.

use serde_json::{Value, json};

const APP: &str = "def add(a, b):\n    return a - b\n\n\ndef main():\n    print(add(1, 2))\n";
const FIXED: &str = "def add(a, b):\n    return a + b\n\n\ndef main():\n    print(add(1, 2))\n";

/// One answer with a call, and the expected outcome.
fn case(category: &str, id: &str, call: (&str, &str), expect: &Value) -> Value {
    json!({
        "id": format!("{category}/{id}"), "category": category, "workspace": { "src/app.py": APP },
        "turns": [{ "prompt": "Please do the task.", "script": [{ "calls": [[call.0, call.1]] }] }], "expect": expect,
    })
}

/// Families' spellings of the end of a call or argument.
const CLOSERS: [&str; 18] = [
    "</content>",
    "</content>\n</write_file>",
    "</parameter>",
    "</parameter>\n</invoke>",
    "</parameter>\n</invoke>\n</function_calls>",
    "</parameter>\n</function>\n</tool_call>",
    "</｜DSML｜parameter>\n</｜DSML｜invoke>",
    "</|DSML|parameter></|DSML|invoke></|DSML|tool_calls>",
    "</arg_value>",
    "</arg_value>\n</tool_call>",
    "</minimax:tool_call>",
    "</seed:tool_call>",
    "<|tool_call_end|>",
    "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "<|im_end|>",
    "<|call|>",
    "</TOOL_CALL>",
    "<tool_call|>",
];

/// An answer that leads up to a call that does not come, in any language. One that ends a turn does not.
pub fn trailing() -> Vec<Value> {
    let said = [
        "I found it. Now let me fix add()",
        "Ich ändere jetzt die Zeile",
        "接下来修改文件",
        "これから修正します",
        "Сейчас исправлю функцию",
        "سأصلح الدالة الآن",
        "Je corrige la fonction\n\n- `add`",
    ];
    let edit =
        json!({ "path": "src/app.py", "edits": [{ "old_text": "a - b", "new_text": "a + b" }] });
    let mut cases = Vec::new();
    for (index, words) in said.into_iter().enumerate() {
        for (at, end) in [":", "：", "…", "...", ":\n\n"].into_iter().enumerate() {
            let script = json!([{ "say": format!("{words}{end}") }, { "calls": [["edit_file", edit.to_string()]] }]);
            cases.push(json!({
                "id": format!("trailing/{index}-{at}"), "category": "trailing", "workspace": { "src/app.py": APP },
                "turns": [{ "prompt": "Fix add().", "script": script }],
                "expect": { "requests": [3, 3], "ran": [1, 1], "files": { "src/app.py": FIXED } },
            }));
        }
        let whole = format!("{words}: `a + b`.");
        cases.push(json!({
            "id": format!("trailing/{index}-whole"), "category": "trailing", "workspace": { "src/app.py": APP },
            "turns": [{ "prompt": "How would you fix add()?", "script": [{ "say": whole }] }],
            "expect": { "requests": [1, 1], "files": { "src/app.py": APP } },
        }));
    }
    cases
}

/// Numbers of lines beside the text to replace, and no text to replace in a new file.
pub fn places() -> Vec<Value> {
    let edit = json!({ "path": "src/app.py", "old_text": "a - b", "new_text": "a + b" });
    let mut cases = Vec::new();
    for (first, last) in [
        ("StartLine", "EndLine"),
        ("start_line", "end_line"),
        ("line", "last_line"),
        ("firstLine", "to"),
    ] {
        for value in [json!(2), json!("2")] {
            let mut edit = edit.clone();
            edit[first] = value.clone();
            edit[last] = value.clone();
            let expect = json!({ "ran": [1, 1], "files": { "src/app.py": FIXED } });
            let mut inner = edit.clone();
            inner.as_object_mut().expect("an edit").remove("path");
            let nested = json!({ "path": "src/app.py", "edits": [inner] });
            for (id, arguments) in [("flat", edit), ("nested", nested)] {
                let id = format!("{first}-{id}-{}", value.is_string());
                cases.push(case(
                    "places",
                    &id,
                    ("edit_file", &arguments.to_string()),
                    &expect,
                ));
            }
        }
    }
    for old in ["old_text", "old_string", "oldString", "search"] {
        let mut edit = json!({ "path": "n.py", "new_text": "x = 1\n" });
        edit[old] = Value::Null;
        let expect = json!({ "ran": [1, 1], "files": { "n.py": "x = 1\n" } });
        cases.push(case(
            "places",
            old,
            ("edit_file", &edit.to_string()),
            &expect,
        ));
    }
    cases
}

/// Marks at the end of text that is written, edited or run.
pub fn leaks() -> Vec<Value> {
    let mut cases = Vec::new();
    for (index, closer) in CLOSERS.into_iter().enumerate() {
        for (between, name) in [("", "glued"), ("\n", "line")] {
            let id = |what: &str| format!("{what}-{index}-{name}");
            let arguments =
                json!({ "path": "n.py", "content": format!("x = 1\ny = 2{between}{closer}") });
            let files = json!({ "files": { "n.py": format!("x = 1\ny = 2{between}") } });
            cases.push(case(
                "leaks",
                &id("write"),
                ("write_file", &arguments.to_string()),
                &files,
            ));
            let closer = closer
                .replace("content", "new_text")
                .replace("write_file", "edit_file");
            let edit = json!({ "old_text": "    return a - b", "new_text": format!("    return a + b{between}{closer}") });
            let arguments = json!({ "path": "src/app.py", "edits": [edit] });
            let files = json!({ "files": { "src/app.py": FIXED } });
            cases.push(case(
                "leaks",
                &id("edit"),
                ("edit_file", &arguments.to_string()),
                &files,
            ));
            let leak = format!("{between}{closer}");
            cases.push(in_every_text(&id("edits"), &leak));
            let closer = closer
                .replace("new_text", "command")
                .replace("edit_file", "run_command");
            let arguments = json!({ "command": format!("echo $((40+2))-ran{between}{closer}") });
            let ran = json!({ "results": { "has": ["42-ran"] }, "ran": [1, 1] });
            cases.push(case(
                "leaks",
                &id("run"),
                ("run_command", &arguments.to_string()),
                &ran,
            ));
        }
    }
    let fenced = [
        ("closing-fence", "x = 1\ny = 2\n```"),
        ("whole-fence", "```python\nx = 1\ny = 2\n```"),
    ];
    for (id, content) in fenced {
        let arguments = json!({ "path": "n.py", "content": content });
        let files = json!({ "files": { "n.py": "x = 1\ny = 2\n" } });
        cases.push(case(
            "leaks",
            id,
            ("write_file", &arguments.to_string()),
            &files,
        ));
    }
    // Marks that are part of the file stay.
    for (id, path, content) in [
        (
            "html",
            "n.html",
            "<p>Not <s>this</s>\n<content>x</content>\n",
        ),
        (
            "template",
            "chat.txt",
            "<|im_start|>user\n{prompt}<|im_end|>",
        ),
        ("document", "n.md", "# Use\n\n```sh\nls\n```"),
        ("example", "n.md", "<tool_call>\n{}\n</tool_call>"),
        ("vocabulary", "vocab.txt", "the\nof\n<unused0>\n<unused1>\n"),
    ] {
        let arguments = json!({ "path": path, "content": content });
        cases.push(case(
            "leaks",
            &format!("kept-{id}"),
            ("write_file", &arguments.to_string()),
            &json!({ "files": { path: content } }),
        ));
    }
    cases
}

/// A server that cuts in the wrong place does so in every argument.
fn in_every_text(id: &str, leak: &str) -> Value {
    let edit = |old: &str, new: &str| json!({ "old_text": format!("{old}{leak}"), "new_text": format!("{new}{leak}") });
    let edits = [
        edit("    return a - b", "    return a + b"),
        edit("def main():", "def main(x):"),
    ];
    let arguments = json!({ "path": "src/app.py", "edits": edits }).to_string();
    let files = json!({ "files": { "src/app.py": FIXED.replace("def main()", "def main(x)") } });
    case("leaks", id, ("edit_file", &arguments), &files)
}

/// An argument that includes the next one.
pub fn swallowed() -> Vec<Value> {
    let forms = [
        ("named", "</parameter>\n<parameter name=\"content\">", ""),
        (
            "named-closed",
            "</parameter>\n<parameter name=\"content\">",
            "\n</parameter>\n</invoke>",
        ),
        (
            "equals",
            "</parameter>\n<parameter=content>\n",
            "\n</parameter>",
        ),
        (
            "dsml",
            "</｜DSML｜parameter>\n<｜DSML｜parameter name=\"content\" string=\"true\">",
            "</｜DSML｜parameter>",
        ),
        (
            "glm",
            "</arg_value>\n<arg_key>content</arg_key>\n<arg_value>",
            "</arg_value>",
        ),
        ("tags", "</path>\n<content>", "</content>"),
    ];
    let mut cases = Vec::new();
    for (id, between, end) in forms {
        let open = between.trim_start_matches(|it| it != '\n');
        for (id, between) in [(id.to_owned(), between), (format!("{id}-not-closed"), open)] {
            let arguments = json!({ "path": format!("n.py{between}x = 1\ny = 2{end}") });
            let expect = json!({ "files": { "n.py": { "has": ["x = 1\ny = 2"], "lacks": ["<", "parameter"] } } });
            cases.push(case(
                "swallowed",
                &id,
                ("write_file", &arguments.to_string()),
                &expect,
            ));
        }
        let between = between
            .replace("content", "timeout")
            .replace("</path>", "</command>");
        let arguments = json!({ "command": format!("echo $((40+2))-ran{between}30{}", end.replace("content", "timeout")) });
        let expect = json!({ "results": { "has": ["42-ran"] }, "ran": [1, 1] });
        cases.push(case(
            "swallowed",
            &format!("{id}-run"),
            ("run_command", &arguments.to_string()),
            &expect,
        ));
    }
    cases
}

/// Tokens of the families at the ends of answers.
#[expect(clippy::too_many_lines, reason = "one table of spellings")]
pub fn ends() -> Vec<Value> {
    let tokens = [
        "<eos>",
        "</s>",
        "<end_of_turn>",
        "<|observation|>",
        "<|user|>",
        "<|im_end|>",
        "<|endoftext|>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<|end|>",
        "<|return|>",
        "<|end_of_text|>",
        "<｜end▁of▁sentence｜>",
        "<|end_of_sentence|>",
        "<|END_RESPONSE|>",
        "<|END_OF_TURN_TOKEN|>",
        "[|endofturn|]",
        "<|role_end|>",
        "<turn|>",
        "[EOS]",
        "[e~[",
        "</tool_call>",
        "</function_calls>",
        "</invoke>\n</minimax:tool_call>",
        "<|tool_calls_section_end|>",
        "</｜DSML｜function_calls>",
        "</parameter>\n</function>\n</tool_call>",
        "<|tool_call_end|>",
        "[/TOOL_CALLS]",
        "</tools>",
        "<|call|>",
        "<|eos|>",
        "<|eot|>",
        "<end_of_utterance>",
        "<end_of_text>",
    ];
    let mut cases = Vec::new();
    for (index, token) in tokens.into_iter().enumerate() {
        for (place, between) in [("glued", ""), ("line", "\n"), ("twice", "")] {
            let token = if place == "twice" {
                token.repeat(2)
            } else {
                token.to_owned()
            };
            let answer = format!("Ça va: the answer is 42.{between}{token}");
            let (first, second) =
                answer.split_at(answer.len() - token.chars().next_back().unwrap().len_utf8());
            let expect = json!({ "requests": [1, 1], "shown": ["the answer is 42."], "hidden": [token.trim()] });
            cases.push(json!({
                "id": format!("ends/{index}-{place}"), "category": "ends", "workspace": { "src/app.py": APP },
                "turns": [{ "prompt": "What is it?", "script": [{ "say": [first, second] }] }], "expect": expect,
            }));
        }
    }
    for (index, begin) in [
        "<|channel|>final<|message|>",
        "<|start|>assistant<|channel|>final<|message|>",
        "<|assistant|>\n",
        "<|im_start|>assistant\n",
        "<start_of_turn>model\n",
        "<|START_RESPONSE|>",
        "<|header_start|>assistant<|header_end|>\n\n",
    ]
    .into_iter()
    .enumerate()
    {
        cases.push(json!({
            "id": format!("ends/begin-{index}"), "category": "ends", "workspace": { "src/app.py": APP },
            "turns": [{ "prompt": "What is it?", "script": [{ "say": format!("{begin}The answer is 42.") }] }],
            "expect": { "requests": [1, 1], "shown": ["The answer is 42."], "hidden": [begin.trim()] },
        }));
    }
    // Tokens are shown in text about them.
    for (index, said) in [
        "Qwen ends its turns with <|im_end|> and begins them with <|im_start|>.",
        "A turn is `<|im_start|>user` to `<|im_end|>`",
        "Close it with `</tool_call>`",
        "```\n<s>old</s>\n</tool_call>\n```",
    ]
    .into_iter()
    .enumerate()
    {
        cases.push(json!({
            "id": format!("ends/kept-{index}"), "category": "ends", "workspace": { "src/app.py": APP },
            "turns": [{ "prompt": "How?", "script": [{ "say": said }] }],
            "expect": { "requests": [1, 2], "shown": [said] },
        }));
    }
    cases
}

/// Tool names as models know and spell them, with text that leaks into them.
pub fn names() -> Vec<Value> {
    let ran = json!({ "results": { "has": ["42-ran"] }, "ran": [1, 1] });
    let read = json!({ "results": { "has": ["return a - b"] }, "ran": [1, 1] });
    let edited = json!({ "files": { "src/app.py": FIXED }, "ran": [1, 1] });
    let written = json!({ "files": { "n.txt": { "has": ["one"] } }, "ran": [1, 1] });
    let listed = json!({ "results": { "has": ["app.py"] }, "ran": [1, 1] });
    let edit = json!({ "path": "src/app.py", "old_text": "a - b", "new_text": "a + b" });
    let tools: [(&[&str], Value, &Value); 7] = [
        (
            &[
                "run_command",
                "Bash",
                "execute_terminal_command",
                "run-shell-command",
                "shellExecute",
                "system_command",
            ],
            json!({ "command": "echo $((40+2))-ran" }),
            &ran,
        ),
        (
            &[
                "read_file",
                "ReadFile",
                "view-file",
                "get_file_contents",
                "open_document",
                "fs_read",
                "read_file_lines",
            ],
            json!({ "path": "src/app.py" }),
            &read,
        ),
        (
            &[
                "edit_file",
                "EditFile",
                "str_replace",
                "search-and-replace",
                "replaceInFile",
                "modify_file",
                "update_text",
            ],
            edit,
            &edited,
        ),
        (
            &[
                "write_file",
                "WriteFile",
                "create_or_write_file",
                "save-file",
                "createTextFile",
                "write_document",
            ],
            json!({ "path": "n.txt", "content": "one\n" }),
            &written,
        ),
        (
            &[
                "grep",
                "Grep",
                "search_for_pattern",
                "search-in-files",
                "ripgrep_search",
                "searchCode",
            ],
            json!({ "pattern": "return" }),
            &read,
        ),
        (
            &["glob", "find_files", "find-file-by-name", "globSearch"],
            json!({ "pattern": "**/*.py" }),
            &listed,
        ),
        (
            &[
                "list_files",
                "ListDirectory",
                "list-files-in-directory",
                "explore_directory",
                "get_directory_structure",
            ],
            json!({ "path": "src" }),
            &listed,
        ),
    ];
    let mut cases = Vec::new();
    for (names, arguments, expect) in &tools {
        for name in *names {
            let leaked = [
                (*name).to_owned(),
                format!("functions.{name}"),
                format!("functions.{name}:0"),
                format!("default_api:{name}"),
                format!("tools/{name}"),
                format!("{name}<|channel|>commentary"),
                format!("{name}<|constrain|>json"),
                format!("<function={name}>"),
                format!("\"{name}\""),
                format!("{name}\n"),
                format!("{name}()"),
                format!("mcp__tandem__{name}"),
            ];
            for (index, leaked) in leaked.iter().enumerate() {
                let id = format!("{name}-{index}");
                cases.push(case(
                    "spell-names",
                    &id,
                    (leaked, &arguments.to_string()),
                    expect,
                ));
            }
        }
        let name = names[0];
        let call = json!({ "name": name, "arguments": arguments });
        let pairs: Vec<String> = arguments
            .as_object()
            .unwrap()
            .iter()
            .map(|(key, value)| {
                format!(
                    "<arg_key>{key}</arg_key>\n<arg_value>{}</arg_value>",
                    value.as_str().unwrap()
                )
            })
            .collect();
        for (index, packed) in [
            call.to_string(),
            format!("{name}{arguments}"),
            format!("{name}\n{}", pairs.join("\n")),
            format!("<tool_call>{call}</tool_call>"),
        ]
        .iter()
        .enumerate()
        {
            let id = format!("{name}-packed-{index}");
            cases.push(case("spell-names", &id, (packed, "{}"), expect));
        }
    }
    cases
}

/// Spellings of the paths of existing files.
#[expect(clippy::too_many_lines, reason = "one table of spellings")]
pub fn paths() -> Vec<Value> {
    let mut cases = Vec::new();
    let mut add = |id: String, file: &str, spelled: &str| {
        cases.push(json!({
            "id": format!("spell-paths/{id}"), "category": "spell-paths", "workspace": { file: "mk7731q\n" },
            "turns": [{ "prompt": "Read it.", "script": [{ "calls": [["read_file", json!({ "path": spelled }).to_string()]] }] }],
            "expect": { "results": { "has": ["mk7731q"] }, "ran": [1, 1] },
        }));
    };
    let plain = [
        "file://{WS}/src/app.py",
        "file:{WS}/src/app.py",
        "file:///src/app.py",
        "vscode://file{WS}/src/app.py",
        "vscode://file/{WS}/src/app.py",
        "vscode-file://vscode-app{WS}/src/app.py",
        "zed://file{WS}/src/app.py",
        "cursor://file{WS}/src/app.py:1:1",
        "workspace://src/app.py",
        "workspace:///src/app.py",
        "repo://src/app.py",
        "vscode-remote://wsl+Ubuntu{WS}/src/app.py",
        "file://localhost{WS}/src/app.py",
        "file://{WS}/src/app.py#L1",
        "file://{WS}/src/app.py?line=3",
        "src%2Fapp.py",
        "file://{WS}/src%2Fapp%2Epy",
        "\"src/app.py\"",
        "'src/app.py'",
        "@\"src/app.py\"",
        "@src/app.py",
        "`src/app.py`",
        "<src/app.py>",
        "./src/./app.py",
        "src//app.py",
        "/src/app.py",
        "src\\app.py",
        "project/src/app.py",
        "src/app.py:12",
        "src/app.py#L3",
        "src/app.py (line 3)",
        "a/src/app.py",
        "[app.py](src/app.py)",
        "**src/app.py**",
        " src/app.py\n",
        "path: src/app.py",
        "src/app.py,",
        "${workspaceFolder}/src/app.py",
        "${workspaceRoot}/src/app.py",
        "$PWD/src/app.py",
        "$(pwd)/src/app.py",
        "%PROJECT_DIR%\\src\\app.py",
        "$env:GITHUB_WORKSPACE\\src\\app.py",
        "{{workspace}}/src/app.py",
        "<project_root>/src/app.py",
    ];
    for (index, spelled) in plain.into_iter().enumerate() {
        add(format!("plain-{index}"), "src/app.py", spelled);
    }
    for (index, (file, spelled)) in [
        ("my notes/a b.txt", "my%20notes/a%20b.txt"),
        ("my notes/a b.txt", "my\\ notes/a\\ b.txt"),
        ("my notes/a b.txt", "file://{WS}/my%20notes/a%20b.txt"),
        ("my notes/a b.txt", "\"my notes/a b.txt\""),
        ("my notes/a (1).txt", "my\\ notes/a\\ \\(1\\).txt"),
        ("caf\u{e9}/men\u{fc}.txt", "cafe\u{301}/menu\u{308}.txt"),
        ("cafe\u{301}/menu\u{308}.txt", "caf\u{e9}/men\u{fc}.txt"),
        ("cafe\u{301}.txt", "caf%C3%A9.txt"),
        (
            "Screenshot at 9.41.00\u{202f}AM.txt",
            "Screenshot at 9.41.00 AM.txt",
        ),
        (
            "Screenshot at 9.41.00\u{202f}AM.txt",
            "Screenshot%20at%209.41.00%20AM.txt",
        ),
        (
            "Screenshot at 9.41.00\u{202f}AM.txt",
            "Screenshot\\ at\\ 9.41.00\\ AM.txt",
        ),
        ("Ann\u{2019}s notes.txt", "Ann's notes.txt"),
        ("Ann's notes.txt", "Ann\u{2019}s notes.txt"),
        ("\u{201c}quoted\u{201d}.txt", "\"quoted\".txt"),
        ("2020\u{2013}2021.txt", "2020-2021.txt"),
        ("a\u{a0}b.txt", "a b.txt"),
        ("\u{fb01}le.txt", "file.txt"),
        ("\u{ff21}.txt", "A.txt"),
        ("50%20off.txt", "50%20off.txt"),
        ("a%b.txt", "a%b.txt"),
        ("odd\\ name.txt", "odd\\ name.txt"),
    ]
    .into_iter()
    .enumerate()
    {
        add(format!("odd-{index}"), file, spelled);
    }
    cases
}

/// Names that look alike, or lead outside in another spelling, are never confused.
pub fn other_paths() -> Vec<Value> {
    let mut cases = Vec::new();
    for (index, spelled) in [
        "file://{OUT}/secret.txt",
        "vscode://file{OUT}/secret.txt",
        "..%2Foutside%2Fsecret.txt",
        "%2e%2e/outside/secret.txt",
        "x://../outside/secret.txt",
        "..\\/outside\\/secret.txt",
        "file:///..%2Foutside/secret.txt",
        "li\u{fb01}nk/secret.txt",
        "workspace://x/../../outside/secret.txt",
        "\u{ff0e}\u{ff0e}/outside/secret.txt",
        "..\u{2215}outside/secret.txt",
        "@\"../outside/secret.txt\"",
        "${workspaceFolder}/../outside/secret.txt",
        "$PWD/lifink/secret.txt",
        "$HOME/secret.txt",
        "${workspaceFolder}/${workspaceFolder}/../outside/secret.txt",
    ]
    .into_iter()
    .enumerate()
    {
        for (tool, arguments) in [
            ("read_file", json!({ "path": spelled })),
            ("write_file", json!({ "path": spelled, "content": "x\n" })),
        ] {
            cases.push(json!({
                "id": format!("safety-spellings/{index}-{tool}"), "category": "safety-spellings",
                "workspace": { "a.txt": "a\n" }, "outside": { "secret.txt": "mk7731q\n" }, "links": { "lifink": "{OUT}" },
                "turns": [{ "prompt": "Do it.", "script": [{ "calls": [[tool, arguments.to_string()]] }] }],
                "expect": { "outside": { "secret.txt": "mk7731q\n" }, "results": { "lacks": ["mk7731q"] } },
            }));
        }
    }
    for (id, spelled) in [("two-quotes", "a's.txt"), ("two-blanks", "b c.txt")] {
        cases.push(json!({
            "id": format!("safety-spellings/{id}"), "category": "safety-spellings",
            "workspace": { "a\u{2018}s.txt": "mk7731q\n", "a\u{2019}s.txt": "mk7731q\n", "b\u{a0}c.txt": "mk7731q\n", "b\u{202f}c.txt": "mk7731q\n" },
            "turns": [{ "prompt": "Do it.", "script": [{ "calls": [["read_file", json!({ "path": spelled }).to_string()]] }] }],
            "expect": { "ran": [0, 0], "results": { "lacks": ["mk7731q"] } },
        }));
    }
    cases
}

/// Patches in the spellings of models.
#[expect(clippy::too_many_lines, reason = "one table of spellings")]
pub fn patches() -> Vec<Value> {
    let body = "@@ def add(a, b):\n-    return a - b\n+    return a + b\n";
    let patch = format!("*** Begin Patch\n*** Update File: src/app.py\n{body}*** End Patch");
    let diff = "--- a/src/app.py\n+++ b/src/app.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n";
    let spelled = [
        patch.clone(),
        format!("```\n{patch}\n```"),
        format!("```diff\n{patch}\n```\n"),
        format!("```patch\n{}\n```", patch.strip_suffix("\n*** End Patch").unwrap()),
        format!("```diff\n{diff}```"),
        diff.to_owned(),
        format!("diff --git a/src/app.py b/src/app.py\nindex 1..2 100644\n{diff}"),
        patch.replace('\n', "\\n"),
        patch.replace('\n', "\r\n"),
        patch.replace(" Patch", " Patch ***"),
        patch.replace("app.py\n", "app.py ***\n"),
        patch.replace("app.py\n", "app.py ***\n").replace(" Patch", " Patch ***"),
        format!("apply_patch\n{patch}"),
        format!("apply_patch {patch}"),
        format!("apply_patch <<'EOF'\n{patch}\nEOF"),
        format!("Here it is:\n{patch}\nThat is all."),
        patch.replace("src/app.py", "`src/app.py`"),
        patch.replace("src/app.py", "file://{WS}/src/app.py"),
        patch.replace("src/app.py", "./src/app.py"),
        patch.strip_suffix("\n*** End Patch").unwrap().to_owned(),
        format!("{}\n\n", patch.strip_suffix("\n*** End Patch").unwrap()),
        patch.split_once('\n').unwrap().1.to_owned(),
        patch.replace("@@ def add(a, b):", "@@ def add(a, b): @@"),
        patch.replace("@@ def add(a, b):", "@@ -1,2 +1,2 @@"),
        patch.replace("*** End Patch", "*** Update File: src/app.py\n@@ def main():\n-    print(add(1, 2))\n+    print(add(1, 2))  # 3\n*** End Patch"),
        format!("{patch}</parameter>\n</invoke>"),
        format!("  {patch}"),
        patch.replace("return a - b\n", "return a - b\n\\ No newline at end of file\n"),
        patch.replace("\n*** End", "\n\\ Kein Zeilenumbruch am Dateiende.\n*** End"),
        patch.replace("@@ def", "index 27db863..eea102d 100644\n@@ def"),
        patch.replace("@@ def", "--- a/src/app.py\n+++ b/src/app.py\n@@ def"),
        patch.replace("-    return", "-2\t    return").replace("+    return", "+2\t    return"),
        patch.replace("-    return", "-   2→    return").replace("+    return", "+   2→    return"),
    ];
    let mut cases = Vec::new();
    for (index, text) in spelled.iter().enumerate() {
        let expect = json!({ "files": { "src/app.py": { "has": ["return a + b"], "lacks": ["return a - b", "***"] } }, "ran": [1, 1] });
        for (tool, key) in [("apply_patch", "patch"), ("functions.apply_patch", "input")] {
            let arguments = json!({ key: text });
            cases.push(case(
                "spell-patches",
                &format!("{index}-{key}"),
                (tool, &arguments.to_string()),
                &expect,
            ));
        }
    }
    let others = [
        (
            "blank",
            "*** Begin Patch\n*** Add File: n.txt\n+a\n\n+b\n\n*** End Patch",
            json!({ "n.txt": "a\n\nb\n" }),
        ),
        (
            "end-of-file",
            "*** Begin Patch\n*** Update File: src/app.py\n@@\n-    print(add(1, 2))\n+    print(3)\n*** End of File\n\n*** Add File: n.txt\n+a\n*** End Patch",
            json!({ "n.txt": "a\n", "src/app.py": { "has": ["print(3)"] } }),
        ),
        (
            "git-new",
            "diff --git a/n.txt b/n.txt\nnew file mode 100644\nindex 0..1\n--- /dev/null\n+++ b/n.txt\n@@ -0,0 +1,2 @@\n+a\n+b\n",
            json!({ "n.txt": "a\nb\n" }),
        ),
        (
            "git-deleted",
            "diff --git a/src/app.py b/src/app.py\ndeleted file mode 100644\n--- a/src/app.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-def add(a, b):\n",
            json!({ "src/app.py": null }),
        ),
        (
            "git-renamed",
            "diff --git a/src/app.py b/src/main.py\nsimilarity index 90%\nrename from src/app.py\nrename to src/main.py\n--- a/src/app.py\n+++ b/src/main.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n",
            json!({ "src/app.py": null, "src/main.py": FIXED }),
        ),
        (
            "git-moved",
            "diff --git a/src/app.py b/src/main.py\nsimilarity index 100%\nrename from src/app.py\nrename to src/main.py\n",
            json!({ "src/app.py": null, "src/main.py": APP }),
        ),
        (
            "two",
            "*** Begin Patch\n*** Add File: n.txt\n+a\n*** End Patch\n*** Begin Patch\n*** Add File: m.txt\n+b\n*** End Patch",
            json!({ "n.txt": "a\n", "m.txt": "b\n" }),
        ),
    ];
    for (id, text, files) in others {
        let read = json!([["read_file", json!({ "path": "src/app.py" }).to_string()]]);
        let calls = json!([["apply_patch", json!({ "patch": text }).to_string()]]);
        cases.push(json!({
            "id": format!("spell-patches/{id}"), "category": "spell-patches", "workspace": { "src/app.py": APP },
            "turns": [{ "prompt": "Do it.", "script": [{ "calls": read }, { "calls": calls }] }], "expect": { "files": files, "ran": [2, 2] },
        }));
    }
    // The answer alone; a fence shows it, and beside prose it may be an example.
    for (id, said, ran) in [
        ("answer", patch.clone(), 1),
        ("answer-fenced", format!("```diff\n{patch}\n```"), 0),
        ("answer-plain-fence", format!("```\n{patch}\n```"), 0),
        ("answer-stars", patch.replace(" Patch", " Patch ***"), 1),
    ] {
        let text = if ran == 1 { FIXED } else { APP };
        cases.push(json!({
            "id": format!("spell-patches/{id}"), "category": "spell-patches", "workspace": { "src/app.py": APP },
            "turns": [{ "prompt": "Fix it.", "script": [{ "say": said }] }],
            "expect": { "ran": [ran, ran], "files": { "src/app.py": text } },
        }));
    }
    for (id, prompt, said) in [
        (
            "prose",
            "How does it look?".to_owned(),
            format!("A patch looks like this:\n\n{patch}"),
        ),
        (
            "heading",
            "How does it look?".to_owned(),
            format!("## Ein Beispiel\n{patch}\n\nSo sieht das aus."),
        ),
        (
            "quoted",
            format!("What does this do?\n{patch}"),
            patch.clone(),
        ),
        (
            "quoted-fence",
            format!("What does this do?\n{patch}"),
            format!("```diff\n{patch}\n```"),
        ),
    ] {
        cases.push(json!({
            "id": format!("safety-patch-text/{id}"), "category": "safety-patch-text", "workspace": { "src/app.py": APP },
            "turns": [{ "prompt": prompt, "script": [{ "say": said }] }],
            "expect": { "ran": [0, 0], "requests": [1, 4], "files": { "src/app.py": APP } },
        }));
    }
    cases
}
