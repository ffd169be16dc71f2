//! Generated cases: calls whose envelope is broken, split, nested or unknown, and answers that lost their marks.

use serde_json::{Value, json};

const APP: &str = "def add(a, b):\n    return a - b\n";
const FIXED: &str = "def add(a, b):\n    return a + b\n";

fn case(category: &str, id: &str, script: &Value, expect: &Value) -> Value {
    json!({
        "id": format!("{category}/{id}"), "category": category, "workspace": { "src/app.py": APP, "b.txt": "second mk4402q\n" },
        "turns": [{ "prompt": "Please do the task.", "script": script }], "expect": expect,
    })
}

/// A stream chunk with these calls in its delta.
fn chunk(calls: &Value, finish: Option<&str>) -> Value {
    let choice = json!({ "index": 0, "delta": { "tool_calls": calls }, "finish_reason": finish });
    json!({ "id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [choice] })
}

/// Calls as gateways split, repeat and wrap them in a stream.
#[expect(clippy::too_many_lines, reason = "one table of forms")]
pub fn streams() -> Vec<Value> {
    let name = json!({ "name": "read_file", "arguments": "" });
    let mut cases = Vec::new();
    for (path, found) in [("src/app.py", "return a - b"), ("b.txt", "mk4402q")] {
        let arguments = json!({ "path": path }).to_string();
        let (half, rest) = arguments.split_at(arguments.len() / 2);
        let function = json!({ "name": "read_file", "arguments": arguments });
        let piece = |at: i64, id: Value, function: Value| json!({ "index": at, "id": id, "type": "function", "function": function });
        let body = |text: &str| json!({ "name": "", "arguments": text });
        let unnamed = |text: &str| json!({ "arguments": text });
        let forms = [
            ("object", vec![piece(0, json!("a"), function.clone())]),
            (
                "two-indexes",
                vec![
                    json!([piece(0, json!("a"), name.clone())]),
                    json!([piece(1, Value::Null, body(&arguments))]),
                ],
            ),
            (
                "two-indexes-in-parts",
                vec![
                    json!([piece(0, json!("a"), name.clone())]),
                    json!([piece(1, Value::Null, body(half))]),
                    json!([piece(1, Value::Null, body(rest))]),
                ],
            ),
            (
                "no-names-later",
                vec![
                    json!([piece(0, json!("a"), name.clone())]),
                    json!([piece(0, Value::Null, unnamed(&arguments))]),
                ],
            ),
            (
                "next-indexes",
                vec![
                    json!([piece(0, json!("a"), name.clone())]),
                    json!([piece(1, Value::Null, unnamed(half))]),
                    json!([piece(2, Value::Null, unnamed(rest))]),
                ],
            ),
            (
                "again-at-the-next-index",
                vec![
                    json!([piece(0, json!("a"), function.clone())]),
                    json!([piece(1, json!("a"), function.clone())]),
                ],
            ),
            (
                "no-index-at-first",
                vec![
                    json!([{ "id": "a", "function": { "name": "read_file", "arguments": half } }]),
                    json!([piece(0, Value::Null, unnamed(rest))]),
                ],
            ),
            (
                "cumulative",
                vec![json!([piece(
                    0,
                    json!("a"),
                    json!({ "name": "read_file", "arguments": format!("{half}{arguments}") })
                )])],
            ),
            (
                "grows",
                vec![json!([piece(
                    0,
                    json!("a"),
                    json!({ "name": "read_file", "arguments": format!("{{\"p{half}{arguments}") })
                )])],
            ),
            (
                "empty-first",
                vec![json!([piece(
                    0,
                    json!("a"),
                    json!({ "name": "read_file", "arguments": format!("\"\"{arguments}") })
                )])],
            ),
            (
                "empty-last",
                vec![json!([piece(
                    0,
                    json!("a"),
                    json!({ "name": "read_file", "arguments": format!("{arguments}{{}}") })
                )])],
            ),
        ];
        for (id, chunks) in forms {
            let mut raw: Vec<Value> = chunks.iter().map(|calls| chunk(calls, None)).collect();
            raw.extend([
                chunk(&json!([]), Some("tool_calls")),
                "data: [DONE]\n\n".into(),
            ]);
            let expect =
                json!({ "requests": [2, 2], "ran": [1, 1], "results": { "has": [found] } });
            cases.push(case(
                "split-streams",
                &format!("{id}-{path}"),
                &json!([{ "raw": raw }]),
                &expect,
            ));
        }
    }
    cases
}

/// Calls in the arguments of a tool that doesn't exist.
pub fn parallel() -> Vec<Value> {
    let mut cases = Vec::new();
    let names = [
        "multi_tool_use.parallel",
        "multi_tool_use",
        "batch",
        "parallel_tools",
        "functions.parallel",
    ];
    for (index, name) in names.into_iter().enumerate() {
        for (wrapper, tool, inner) in [
            ("tool_uses", "recipient_name", "parameters"),
            ("tool_calls", "tool", "parameters"),
            ("tool_calls", "name", "arguments"),
        ] {
            let read = |path: &str| json!({ tool: "functions.read_file", inner: { "path": path } });
            let write = json!({ tool: "write_file", inner: { "path": "n.txt", "content": "x\n" } });
            let id = format!("{index}-{wrapper}-{tool}");
            let arguments = json!({ wrapper: [read("src/app.py"), read("b.txt")] }).to_string();
            let expect = json!({ "requests": [2, 2], "ran": [2, 2], "results": { "has": ["return a - b", "mk4402q"] } });
            cases.push(case(
                "parallel",
                &id,
                &json!([{ "calls": [[name, arguments]] }]),
                &expect,
            ));
            // A read-only mode writes nothing this way, either.
            let arguments = json!({ wrapper: [read("b.txt"), write] }).to_string();
            let mut plan = case(
                "safety-parallel",
                &id,
                &json!([{ "calls": [[name, arguments]] }]),
                &json!({ "ran": [1, 1], "files": { "n.txt": null }, "done": null }),
            );
            plan["mode"] = "plan".into();
            cases.push(plan);
        }
    }
    cases
}

/// The same in the text of an answer, in the marks of each family.
pub fn parallel_in_text() -> Vec<Value> {
    let mut cases = Vec::new();
    for (column, key) in ["tool_uses", "calls", "invocations"]
        .into_iter()
        .enumerate()
    {
        let read = |path: &str| json!({ "recipient_name": "functions.read_file", "parameters": { "path": path } });
        let write =
            json!({ "name": "write_file", "arguments": { "path": "n.txt", "content": "x\n" } });
        let reads = json!({ key: [read("src/app.py"), read("b.txt")] });
        let writes = json!({ key: [read("b.txt"), write] });
        let forms = |arguments: &Value| {
            let call = json!({ "name": "multi_tool_use.parallel", "arguments": arguments });
            [
                format!("<tool_call>\n{call}\n</tool_call>"),
                format!(
                    "<|channel|>commentary to=multi_tool_use.parallel <|constrain|>json<|message|>{arguments}<|call|>"
                ),
                format!("to=multi_tool_use.parallel {arguments}"),
                format!("[TOOL_CALLS]parallel{arguments}"),
                format!("<function=batch>{arguments}</function>"),
                call.to_string(),
            ]
        };
        for (row, (reads, writes)) in forms(&reads).iter().zip(forms(&writes)).enumerate() {
            let id = format!("text-{row}-{column}");
            let expect = json!({ "requests": [2, 2], "ran": [2, 2], "results": { "has": ["return a - b", "mk4402q"] } });
            cases.push(case("parallel", &id, &json!([{ "say": reads }]), &expect));
            let expect = json!({ "ran": [1, 1], "files": { "n.txt": null }, "done": null });
            let mut plan = case("safety-parallel", &id, &json!([{ "say": writes }]), &expect);
            plan["mode"] = "plan".into();
            cases.push(plan);
        }
    }
    cases
}

/// Unknown names that only the arguments explain, and names of servers and editors that are not connected.
pub fn by_arguments() -> Vec<Value> {
    let mut cases = Vec::new();
    let edit = json!({ "path": "src/app.py", "old_string": "a - b", "new_string": "a + b" });
    let edited = json!({ "ran": [1, 1], "files": { "src/app.py": FIXED } });
    let write = json!({ "path": "n.txt", "content": "x\n" });
    let written = json!({ "ran": [1, 1], "files": { "n.txt": "x\n" } });
    for word in ["block", "region", "snippet", "symbol_body", "buffer"] {
        for (verb, arguments, expect) in [
            ("edit", &edit, &edited),
            ("replace", &edit, &edited),
            ("write", &write, &written),
            ("create", &write, &written),
        ] {
            for name in [format!("{verb}_{word}"), format!("{word}-{verb}")] {
                let call = json!([{ "calls": [[name, arguments.to_string()]] }]);
                cases.push(case("names-by-arguments", &name, &call, expect));
            }
        }
    }
    for name in ["read_text_file", "read_file", "get_file_info_contents"]
        .into_iter()
        .take(2)
    {
        let call =
            json!([{ "calls": [[format!("mcp__filesystem__{name}"), "{\"path\": \"b.txt\"}"]] }]);
        let expect = json!({ "ran": [1, 1], "results": { "has": ["mk4402q"] } });
        cases.push(case(
            "names-by-arguments",
            &format!("server-{name}"),
            &call,
            &expect,
        ));
    }
    for (command, key) in [
        ("create", "file_text"),
        ("write", "content"),
        ("create_file", "content"),
    ] {
        for name in ["fs_write", "str_replace_editor", "text_editor"] {
            let arguments = json!({ "command": command, "path": "n.txt", key: "x\n" });
            let call = json!([{ "calls": [[name, arguments.to_string()]] }]);
            cases.push(case(
                "names-by-arguments",
                &format!("{name}-{command}-{key}"),
                &call,
                &written,
            ));
        }
    }
    // Words after one of tandem's own names ask for more than it does.
    for (tool, arguments) in [
        ("read_file", json!({ "path": "b.txt" })),
        ("write_file", write.clone()),
        ("edit_file", edit.clone()),
    ] {
        for more in ["_and_delete", "_then_remove", "_delete", "AndRun"] {
            let name = format!("{tool}{more}");
            let call = json!([{ "calls": [[name, arguments.to_string()]] }]);
            let files = json!({ "src/app.py": APP, "n.txt": null });
            let expect = json!({ "ran": [0, 0], "files": files, "done": null });
            cases.push(case("safety-names", &name, &call, &expect));
        }
    }
    // An action meant for another machine is not carried out here.
    for server in ["ssh", "remote", "github", "files"] {
        for (tool, arguments) in [
            ("run_command", json!({ "command": "touch n.txt" })),
            ("write_file", write.clone()),
        ] {
            let name = format!("mcp__{server}__{tool}");
            let call = json!([{ "calls": [[name, arguments.to_string()]] }]);
            let expect = json!({ "ran": [0, 0], "files": { "n.txt": null }, "done": null });
            cases.push(case("safety-servers", &name, &call, &expect));
        }
    }
    cases
}

/// Calls in marks of no known family: they don't run, and the model is asked to call the tool.
pub fn unknown_marks() -> Vec<Value> {
    let mut cases = Vec::new();
    let write = json!({ "path": "n.txt", "content": "x\n" });
    for (tool, arguments, expect) in [
        (
            "read_file",
            json!({ "path": "b.txt" }),
            json!({ "requests": [3, 3], "ran": [1, 1], "results": { "has": ["mk4402q"] } }),
        ),
        (
            "write_file",
            write,
            json!({ "requests": [3, 3], "ran": [1, 1], "files": { "n.txt": "x\n" } }),
        ),
    ] {
        let mut pairs = String::new();
        for (key, value) in arguments.as_object().unwrap() {
            let value = value.as_str().unwrap();
            pairs.extend([
                "<arg_key>",
                key,
                "</arg_key><arg_value>",
                value,
                "</arg_value>",
            ]);
        }
        for (index, said) in [
            format!("[Calling tool: {tool}({arguments})]"),
            format!("[Tool Call: {tool}]\nArguments: {arguments}"),
            format!("I look. +#+#+#assistant to=functions.{tool} մեկնաբանություն \n{arguments}"),
            format!("Now I do it:<tool_call>{tool}{pairs}</tool_call>"),
            format!("🔧 {tool} → {arguments}"),
            format!("<<{tool}>> {arguments} <</{tool}>>"),
            format!("Executing `{tool}` with\n{arguments}"),
            format!("<|fn_begin|>{{\"name\": \"{tool}\", \"arguments\": {arguments}}}<|fn_end|>"),
            format!("```{tool}\n{arguments}\n```"),
            format!("call:{tool}{{path:b.txt,content:x}}"),
            format!("{tool} path=\"b.txt\" content=\"x\""),
            format!("```tool\nTOOL_NAME: {tool}\nBEGIN_ARG: path\nb.txt\nEND_ARG\n```"),
        ]
        .into_iter()
        .enumerate()
        {
            let script = json!([{ "say": said }, { "calls": [[tool, arguments.to_string()]] }]);
            cases.push(case(
                "unknown-marks",
                &format!("{tool}-{index}"),
                &script,
                &expect,
            ));
        }
        // A text that only mentions a call is an answer.
        for (index, said) in [
            format!("Use `{tool} {arguments}`."),
            format!("The tool {tool} takes {arguments} and nothing else is needed."),
            format!("It has {tool}."),
        ]
        .into_iter()
        .enumerate()
        {
            let expect = json!({ "requests": [1, 1], "ran": [0, 0], "shown": [said] });
            cases.push(case(
                "unknown-marks",
                &format!("kept-{tool}-{index}"),
                &json!([{ "say": said }]),
                &expect,
            ));
        }
    }
    cases
}

/// Messages of GPT-OSS with and without their tokens; each is a thought or addressed to the person.
pub fn messages() -> Vec<Value> {
    let mut cases = Vec::new();
    let call = "<|start|>assistant<|channel|>commentary to=functions.read_file <|constrain|>json<|message|>{\"path\": \"b.txt\"}<|call|>";
    for (index, thought) in ["We need the product.", "Six sevens; easy.", "用户要结果。"]
        .into_iter()
        .enumerate()
    {
        for (form, said) in [
            ("no-tokens", format!("analysisWe know: {thought}assistantfinalIt is 42.")),
            ("no-start", format!("assistantanalysisWe know: {thought}assistantfinalIt is 42.")),
            ("half", format!("<|channel|>analysis<|message|>{thought}<|end|>assistantfinalIt is 42.")),
            ("end-only", format!("We know: {thought}</think><|channel|>final<|message|>It is 42.")),
            ("all", format!("<|channel|>analysis<|message|>{thought}<|end|><|start|>assistant<|channel|>final<|message|>It is 42.<|return|>")),
            ("next-turn", "<|channel|>final<|message|>It is 42.<|end|><|start|>user<|message|>thanks".to_owned()),
            ("preamble", "<|channel|>commentary<|message|>I compute.<|end|><|start|>assistant<|channel|>final<|message|>It is 42.<|return|>".to_owned()),
        ] {
            let expect = json!({
                "requests": [1, 1], "ran": [0, 0], "shown": ["It is 42."],
                "hidden": ["<|", "assistantfinal", "analysis", "commentary", thought, "thanks"],
            });
            cases.push(case("messages", &format!("{form}-{index}"), &json!([{ "say": said }]), &expect));
        }
        let said = format!("<|channel|>commentary<|message|>{thought}<|end|>{call}");
        let expect = json!({ "requests": [2, 2], "ran": [1, 1], "shown": [thought], "hidden": ["<|"], "results": { "has": ["mk4402q"] } });
        cases.push(case(
            "messages",
            &format!("preamble-call-{index}"),
            &json!([{ "say": said }]),
            &expect,
        ));
    }
    cases
}

/// Answers between the tokens that begin and end one in a family's template, in one piece or letter by letter.
pub fn frames() -> Vec<Value> {
    const BEGINS: [&str; 9] = [
        "<|START_TEXT|>",
        "<|START_RESPONSE|>",
        "<|startoftext|>",
        "<|begin_of_text|>",
        "<｜begin▁of▁sentence｜>",
        "[|assistant|]",
        "<bos>",
        "<s>",
        "<|im_start|>assistant\n",
    ];
    const ENDS: [&str; 7] = [
        "<|END_TEXT|>",
        "<|im_end|>",
        "<｜end▁of▁sentence｜>",
        "[|endofturn|]",
        "</s>",
        "<unused12><unused345>",
        "<extra_id_1>",
    ];
    let mut cases = Vec::new();
    for (row, begin) in BEGINS.into_iter().enumerate() {
        for (column, end) in ENDS.into_iter().enumerate() {
            let said = format!("{begin}It is 42.{end}");
            let said = if (row + column) % 2 == 0 {
                json!(said)
            } else {
                said.chars().map(String::from).collect()
            };
            let expect = json!({
                "requests": [1, 1], "ran": [0, 0], "shown": ["It is 42."], "hidden": ["|", "<", ">", "[", "]"],
            });
            cases.push(case(
                "frames",
                &format!("{row}-{column}"),
                &json!([{ "say": said }]),
                &expect,
            ));
        }
    }
    // The subject of the answer stays.
    for (index, said) in [
        "The array is [|x|]",
        "It takes <unused> values.",
        "Old: <s>41</s>, new: 42",
        "Templates write <|startoftext|> first.",
    ]
    .into_iter()
    .enumerate()
    {
        let expect = json!({ "requests": [1, 1], "ran": [0, 0], "shown": [said] });
        cases.push(case(
            "frames",
            &format!("kept-{index}"),
            &json!([{ "say": said }]),
            &expect,
        ));
    }
    // The beginning of a call's mark beside a call.
    for (index, begun) in [
        "<｜DSML｜function_calls",
        "\n\n<｜DSML｜tool_calls",
        "<|DSML|invoke",
    ]
    .into_iter()
    .enumerate()
    {
        let call = ["read_file", "{\"path\": \"b.txt\"}"];
        let script = json!([{ "say": format!("I look.{begun}"), "calls": [call] }]);
        let expect = json!({ "requests": [2, 2], "ran": [1, 1], "shown": ["I look."], "hidden": ["DSML", "<"] });
        cases.push(case("frames", &format!("begun-{index}"), &script, &expect));
    }
    cases
}
