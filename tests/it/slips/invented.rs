//! Generated cases: marks of invented model families. No table can contain them, so the pass rate shows
//! what to expect of the next real family.

use serde_json::{Value, json};

use super::edges::{case, pieces};

/// The possible shapes of a mark; `zorp` is the family's word.
const ENDS: [&str; 19] = [
    "<|zorp_fin|>",
    "<|ZORP|>",
    "<zorp|>",
    "<|zorp>",
    "<｜zorp▁fin｜>",
    "<||zorp||>",
    "<|zorp-end|>",
    "<|/zorp|>",
    "</|zorp|>",
    "<|zorp_fin",
    "<end_of_zorp>",
    "<zorp_end>",
    "<zorp77>",
    "[/ZORP]",
    "[|zorp|]",
    "[ZORP_END]",
    "</zorp>",
    "</zorp:call>",
    "<|close|>zorp",
];
const BEGINS: [&str; 12] = [
    "<|zorp_start|>",
    "<|zorp>",
    "<｜zorp｜>",
    "<||zorp||>",
    "<start_of_zorp>",
    "<zorp_begin>",
    "<zorp77>",
    "[|zorp|]",
    "[ZORP_START]",
    "</zorp>",
    "<|zorp|>assistant\n",
    "<zorp_begin>model\n",
];

/// Marks around an answer, and as its subject.
pub fn invented_edges() -> Vec<Value> {
    let mut cases = Vec::new();
    for (row, mark) in ENDS.into_iter().enumerate() {
        let gone = [
            format!("It is 42.{mark}"),
            format!("It is 42.\n{mark}\n"),
            format!("- It is 42.\n- `x`{mark}"),
            format!("It is 42.<|im_end|>{mark}"),
        ];
        let kept = [
            format!("It ends with `{mark}`"),
            format!("It ends with {mark}"),
            format!("It says {mark} and goes on."),
            format!("```\nx{mark}\n```"),
            format!("- `{mark}`\n- {mark}"),
            format!("Use `grep '{mark}' a.txt`."),
        ];
        add(&mut cases, "invented-ends", row, &gone, &kept, &["zorp"]);
    }
    for (row, mark) in BEGINS.into_iter().enumerate() {
        let gone = [
            format!("{mark}It is 42."),
            format!("{mark}\nIt is 42."),
            format!("<think>I compute.</think>{mark}It is 42."),
        ];
        let kept = [format!("`{mark}` begins it."), format!("```\n{mark}x\n```")];
        add(&mut cases, "invented-begins", row, &gone, &kept, &["zorp"]);
    }
    cases
}

/// A part of an answer between tokens that name it.
pub fn invented_parts() -> Vec<Value> {
    let marks = [
        ("<|begin_of_box|>", "<|end_of_box|>"),
        ("<|zorp_start|>", "<|zorp_end|>"),
        ("<|START_ZORP|>", "<|END_ZORP|>"),
        ("<｜begin▁of▁zorp｜>", "<｜end▁of▁zorp｜>"),
    ];
    let mut cases = Vec::new();
    for (row, (begin, end)) in marks.into_iter().enumerate() {
        let gone = [
            format!("It is {begin}42{end}."),
            format!("{begin}It{end} is 42."),
            format!("So:\n\n{begin}It is 42.\nYes.{end}\n\nAll done."),
            format!("Well, {begin}It{end} is {begin}42.{end}"),
        ];
        let kept = [
            format!("It writes {begin} before and {end} after."),
            format!("Use `{begin}42{end}`."),
            format!("```\n{begin}42{end}\n```"),
            format!("It goes {begin}on for ever."),
        ];
        let hidden = [begin, end, "<", ">"];
        add(&mut cases, "invented-parts", row, &gone, &kept, &hidden);
    }
    cases
}

/// Thoughts between marks whose names identify them.
pub fn invented_thoughts() -> Vec<Value> {
    let marks = [
        ("<zorp_thinking>", "</zorp_thinking>"),
        ("<zorp:thoughts>", "</zorp:thoughts>"),
        ("<chain_of_thought>", "</chain_of_thought>"),
        ("<inner_monologue >", "</inner_monologue >"),
        ("<|zorp_think_start|>", "<|zorp_think_end|>"),
        ("<|begin_of_thought|>", "<|end_of_thought|>"),
        ("<begin_of_thinking>", "<end_of_thinking>"),
        ("<｜begin▁of▁zorp▁think｜>", "<｜end▁of▁zorp▁think｜>"),
        ("[REASONING]", "[/REASONING]"),
        ("◁reflection▷", "◁/reflection▷"),
    ];
    let mut cases = Vec::new();
    for (row, (begin, end)) in marks.into_iter().enumerate() {
        let thought = format!("{begin}I compute.{end}");
        let gone = [
            format!("{thought}It is 42."),
            format!("{thought}<|im_end|>\nIt is 42."),
            format!("It is 42.\n\n{thought}"),
            format!("Well. {thought} It is 42."),
            format!("{begin}I compute.<thought>Six sevens.</thought> Yes.{end}It is 42."),
            format!("{begin} so, I compute. {end} It is 42."),
        ];
        // If it arrives in pieces, it was shown before its end arrived.
        let said = format!("I compute.\n{end}\n\nIt is 42.");
        let expect =
            json!({ "requests": [1, 1], "shown": ["It is 42."], "hidden": ["I compute", end] });
        let script = json!([{ "say": said }]);
        let id = format!("end-{row}");
        cases.push(case("invented-thoughts", &id, &script, &expect));
        let kept = [
            format!("Use `{begin}` and\nthen `{end}`."),
            format!("It writes {thought} first."),
            format!("It writes:\n\n{thought}\n\nand then more."),
            format!("1. {thought}\n2. It answers."),
            format!("{begin} begins it and {end} ends it."),
            format!("{begin} is what it begins with; `{end}` ends it."),
        ];
        let hidden = ["I compute", "Six sevens", begin, end];
        add(&mut cases, "invented-thoughts", row, &gone, &kept, &hidden);
    }
    cases
}

/// The next message, which the model wrote in someone else's name.
pub fn made_up() -> Vec<Value> {
    let messages = [
        "<|user|>Thanks!",
        "<｜User｜>Thanks!<｜Assistant｜>Gladly.",
        "<|im_end|>\n<|im_start|>user\nThanks!<|im_end|>\n<|im_start|>assistant\nGladly.",
        "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nThanks!",
        "<end_of_turn>\n<start_of_turn>user\nThanks!",
        "</s>[INST] Thanks! [/INST] Gladly.",
        "<|zorp_end|><|zorp_start|>user<|zorp_sep|>Thanks!",
        "<|im_end|>\n<|im_start|>tool\nThanks!",
    ];
    let mut cases = Vec::new();
    for (row, message) in messages.into_iter().enumerate() {
        let gone = [
            format!("It is 42.{message}"),
            format!("<think>I compute.</think>It is 42.{message}"),
        ];
        let kept = [
            format!("The template:\n\n{message}\n\nand so on."),
            format!("It has {message} in it."),
            format!("```\n{message}\n```"),
        ];
        let hidden = ["Thanks", "Gladly", "<", "["];
        add(&mut cases, "made-up", row, &gone, &kept, &hidden);
    }
    cases
}

fn add(
    cases: &mut Vec<Value>,
    category: &str,
    row: usize,
    gone: &[String],
    kept: &[String],
    hidden: &[&str],
) {
    for (column, said) in gone.iter().chain(kept).enumerate() {
        let mut expect = json!({ "requests": [1, 1], "ran": [0, 0], "shown": [said] });
        if column < gone.len() {
            expect["shown"] = json!(["It is 42."]);
            expect["hidden"] = json!(hidden);
        }
        for turn in 0..2 {
            let script = json!([{ "say": pieces(said, turn) }]);
            let id = format!("{row}-{column}-{turn}");
            cases.push(case(category, &id, &script, &expect));
        }
    }
}

/// Calls in forms of no known family: they run, or the model is told to call the tool.
pub fn invented_calls() -> Vec<Value> {
    const FORMS: [&str; 23] = [
        "<read_file path=\"b.txt\"/>",
        "<tool name=\"read_file\" path=\"b.txt\"/>",
        "<zorp_call>read_file<zorp_key>path</zorp_key><zorp_val>b.txt</zorp_val></zorp_call>",
        "<|zorp_call|>read_file<|zorp_arg|>path=b.txt<|zorp_end|>",
        "<use_tool><name>read_file</name><path>b.txt</path></use_tool>",
        "<invoke tool=\"read_file\"><path>b.txt</path></invoke>",
        "tool: read_file\nargs:\n  path: b.txt",
        "Action: read_file\nPath: b.txt",
        "@read_file(path=\"b.txt\")",
        "{{read_file(path=\"b.txt\")}}",
        "read_file --path b.txt",
        "(read_file :path \"b.txt\")",
        "[read_file path=\"b.txt\"]",
        "[[read_file: path=b.txt]]",
        "{\"tool\": \"read_file\", \"path\": \"b.txt\"}",
        "{\"command\": \"read_file\", \"path\": \"b.txt\"}",
        "<|tool_call>call:read_file{path:b.txt}<tool_call|>",
        "<|tool_call>call:read_file{path:<|\"|>b.txt<|\"|>limit:50}<tool_call|>",
        "⟨tool_call⟩{\"name\": \"read_file\", \"arguments\": {\"path\": \"b.txt\"}}⟨/tool_call⟩",
        "declaration:zorp:read_file{path:\"b.txt\"}",
        "<zorp>\n<function=read_file>\n<parameter=path>\nb.txt\n</parameter>\n</function>\n</zorp>",
        "<tool_call>\n<function=bash>\ncat b.txt\n</bash>",
        "read_file</tool_call>{\"path\": \"b.txt\"}",
    ];
    let arguments = json!({ "path": "b.txt" }).to_string();
    let mut cases = Vec::new();
    for (row, form) in FORMS.into_iter().enumerate() {
        for (column, said) in [form.to_owned(), format!("I look.\n\n{form}")]
            .iter()
            .enumerate()
        {
            let script =
                json!([{ "say": pieces(said, row) }, { "calls": [["read_file", arguments]] }]);
            let expect =
                json!({ "requests": [2, 3], "ran": [1, 2], "results": { "has": ["mk4402q"] } });
            let id = format!("{row}-{column}");
            cases.push(case("invented-calls", &id, &script, &expect));
        }
    }
    for (row, said) in [
        "Read it with read_file path by path.",
        "The tools:\n\n- read_file: path (string)\n- grep: pattern",
        "The signature:\n\nread_file(path: string)",
        "Use `read_file(path=\"b.txt\")`.",
        "Note: read_file needs the path: without it nothing is read.",
        "> tool: read_file\n> path: b.txt",
    ]
    .iter()
    .enumerate()
    {
        let expect = json!({ "requests": [1, 1], "ran": [0, 0], "shown": [said] });
        let script = json!([{ "say": said }]);
        cases.push(case(
            "invented-calls",
            &format!("kept-{row}"),
            &script,
            &expect,
        ));
    }
    cases
}

/// Ends of calls after a file's text, with two-part names of no known family.
pub fn invented_leaks() -> Vec<Value> {
    const LEAKS: [&str; 9] = [
        "</zorp_parameter>",
        "</zorp_value>\n</zorp:tool_call>",
        "</write_to_file>",
        "\"}}</zorp_call>",
        "<|zorp_fin|>",
        "<end_of_zorp>",
        "</parameter>\n```",
        "<|close|>zorp",
        "<parameter name=\"path\">PATH</parameter>",
    ];
    const FILES: [(&str, &str); 3] = [
        ("n.py", "x = 1\ny = 2\n"),
        ("n.md", "# Marks\n\nMeasure.\n"),
        ("n.go", "package main\n\nfunc main() {\n}\n"),
    ];
    const KEPT: [(&str, &str); 12] = [
        ("quote.txt", "[QUOTE]x[/QUOTE]\n"),
        ("server.ini", "[SERVER_1]\na = 1\n[SERVER_2]\n"),
        ("foot.xml", "{{ x }}\n</soap:Body>\n</soap:Envelope>\n"),
        ("n.h", "#include <vector3>\n"),
        ("m.h", "#include <zorp_end>\n"),
        ("n.cpp", "using A = vector<my_end>\n"),
        ("n.html", "  </div>\n</body>\n</html>\n"),
        ("n.xml", "<a_b>1</a_b>\n<c:d>2</c:d>\n"),
        ("n.rs", "type A = Vec<my_type>\n"),
        ("n.ts", "type A = Array<zorp_end>\n"),
        ("n.txt", "<pad>\n<eos>\n<unk>\n"),
        ("n.ini", "[a]\n[END]\n"),
    ];
    let mut cases = Vec::new();
    let mut add = |id: &str, path: &str, content: &str, file: &Value| {
        let arguments = json!({ "path": path, "content": content }).to_string();
        let script = json!([{ "calls": [["write_file", arguments]] }]);
        let expect = json!({ "files": { path: file } });
        cases.push(case("invented-leaks", id, &script, &expect));
    };
    for (row, leak) in LEAKS.into_iter().enumerate() {
        for (path, own) in FILES {
            let content = format!("{own}{}", leak.replace("PATH", path));
            let file = json!({ "has": [own.trim_end()], "lacks": ["zorp", "</", "<|", "```"] });
            add(&format!("{row}-{path}"), path, &content, &file);
        }
    }
    for (path, own) in KEPT {
        add(path, path, own, &json!(own));
    }
    cases
}
