//! Generated cases: files of many kinds whose lines end in what looks like the end of a call. Whatever part of them is
//! written, edited or run arrives to the byte.

use serde_json::{Value, json};

const FILES: [(&str, &str); 20] = [
    (
        "App.csproj",
        "<Project>\n  <Target Name=\"Build\">\n    <Exec Command=\"a\" />\n  </Target>\n  <Target Name=\"Clean\">\n    <Exec Command=\"b\" />\n  </Target>\n</Project>\n",
    ),
    (
        "NLog.config",
        "<nlog>\n  <targets>\n    <target name=\"a\" />\n  </targets>\n  <rules>\n    <logger name=\"*\" />\n  </rules>\n</nlog>\n",
    ),
    (
        "build.xml",
        "<project>\n  <target name=\"a\">\n    <echo>one</echo>\n  </target>\n  <target name=\"b\">\n    <echo>two</echo>\n  </target>\n</project>\n",
    ),
    (
        "Mapper.xml",
        "<mapper>\n  <update id=\"a\">\n    UPDATE t SET a = 1\n  </update>\n  <update id=\"b\">\n    UPDATE t SET b = 1\n  </update>\n</mapper>\n",
    ),
    (
        "struts.xml",
        "<config>\n  <action name=\"a\">\n    <response>a.jsp</response>\n  </action>\n  <code>\n    x\n  </code>\n  <output>\n    y\n  </output>\n</config>\n",
    ),
    (
        "pom.xml",
        "<configuration>\n  <arguments>\n    <argument>-a</argument>\n  </arguments>\n  <args>\n    <arg>-b</arg>\n  </args>\n  <parameters>true</parameters>\n</configuration>\n",
    ),
    (
        "introspection.xml",
        "<function name=\"a\">\n  <parameters>\n    <parameter name=\"x\">\n      <type name=\"int\" />\n    </parameter>\n    <parameter name=\"y\">1</parameter>\n  </parameters>\n</function>\n",
    ),
    (
        "tools.xml",
        "<tools>\n  <tool>\n    <invoke name=\"a\">\n      one\n    </invoke>\n    <new_text>\n      two\n    </new_text>\n  </tool>\n  <file_content>\n    three\n  </file_content>\n</tools>\n",
    ),
    (
        "soap.xml",
        "<soap:Envelope>\n  <soap:Body>\n    <m:Call>1</m:Call>\n  </soap:Body>\n</soap:Envelope>\n",
    ),
    (
        "feed.xml",
        "<feed>\n  <content><![CDATA[\n    x\n  ]]>\n  </content>\n  <text>\n    y\n  </text>\n</feed>\n",
    ),
    (
        "page.html",
        "<html>\n<main>\n  <p>Not <s>this\n  </s>\n  <template>x</template>\n</main>\n<my_element>\n  x\n</my_element>\n</html>\n",
    ),
    (
        "Page.jsx",
        "export default () => (\n  <Page>\n    <SentimentAnalysis>\n      <Chart />\n    </SentimentAnalysis>\n    <Tools>\n      <Action />\n    </Tools>\n    <Function>\n      one\n    </Function>\n  </Page>\n);\n",
    ),
    (
        "chat.jinja",
        "<|im_start|>system\n{{ system }}<|im_end|>\n<|im_start|>user\n{{ user }}<|im_end|>\n",
    ),
    (
        "gemma.jinja",
        "{% for m in messages %}\n<start_of_turn>{{ m.role }}\n{{ m.content }}<end_of_turn>\n{% endfor %}\n",
    ),
    (
        "llama.txt",
        "[INST] {{ system }} [/INST]\n{{ answer }}\n[INST] {{ user }} [/INST]\n",
    ),
    (
        "prompt.md",
        "# Form\n\n<think>\nReasons.\n</think>\n<answer>\n42\n</answer>\n<tool_call>\n{}\n</tool_call>\n",
    ),
    (
        "agent.py",
        "results: list[ToolResult]\nmessages += [tool_result]\nids = [BOS] + ids + [EOS]\nx = [y[0] for y in tool_outputs[TOOL_OUTPUT]]\nreturn cache[tool_result]\n",
    ),
    (
        "args.ts",
        "type A = Vec<Args>\ntype P = Partial<Parameters>\ntype R = Record<string, Arguments>\ntype V = Array<zorp_end>\nlet b = i <args\nlet c = <uint32>\n",
    ),
    (
        "v.h",
        "#include <vector3>\n#include <tool_call>\nusing A = vector<my_end>\nusing B = vector<my_type>\n",
    ),
    (
        "tools.ini",
        "[tool]\na = 1\n[tool_call]\nb = 2\n[TOOL_OUTPUT]\n[END]\n",
    ),
];

fn case(id: &str, before: &Value, call: (&str, &Value), expect: &Value) -> Value {
    json!({
        "id": format!("kept/{id}"), "category": "kept", "workspace": before,
        "turns": [{ "prompt": "Please do the task.", "script": [{ "calls": [[call.0, call.1.to_string()]] }] }], "expect": expect,
    })
}

/// The lines up to one of them that occur in a text once, and from where on; `None` if there are none.
fn unique(lines: &[&str], end: usize, text: &str) -> Option<usize> {
    (0..end)
        .rev()
        .find(|from| text.matches(&lines[*from..end].join("\n")).count() == 1)
}

/// Each line that ends in a bracket: kept below a new one, added, and added together with the line that begins it.
pub fn parts() -> Vec<Value> {
    let mut cases = Vec::new();
    for (path, text) in FILES {
        let mut add = |id: &str, before: &str, edits: &Value, after: &str| {
            let arguments = json!({ "path": path, "edits": edits });
            let expect = json!({ "files": { path: after }, "ran": [1, 1] });
            let before = json!({ path: before });
            cases.push(case(
                &format!("{path}-{id}"),
                &before,
                ("edit_file", &arguments),
                &expect,
            ));
        };
        let lines: Vec<&str> = text.lines().collect();
        let whole = |lines: &[&str]| format!("{}\n", lines.join("\n"));
        for (at, line) in lines.iter().enumerate() {
            if !line.ends_with(['>', ']']) && !line.contains(" <") || at == 0 {
                continue;
            }
            // In turn, so that each kind of line is tried both ways.
            let ends = [at % 2, (at + 1) % 2].map(|turn| ["", "\n"][turn]);
            if let Some(from) = unique(&lines, at + 1, text) {
                let old = format!("{}{}", lines[from..=at].join("\n"), ends[0]);
                let edit = json!({ "old_text": old, "new_text": format!("added\n{old}") });
                let mut after = lines.clone();
                after.insert(from, "added");
                add(&format!("{at}-below"), text, &json!([edit]), &whole(&after));
            }
            let mut before = lines.clone();
            before.remove(at);
            let before = whole(&before);
            if let Some(from) = unique(&lines, at, &before) {
                let [old, new] = [from..at, from..at + 1]
                    .map(|part| format!("{}{}", lines[part].join("\n"), ends[1]));
                let edit = json!({ "old_text": old, "new_text": new });
                add(&format!("{at}-added"), &before, &json!([edit]), text);
            }
            // An element that is put around others.
            let name = line.trim().trim_matches(['<', '/', '>']);
            let is_begin = |line: &&str| line.trim().starts_with(&format!("<{name}"));
            let Some(begin) = lines[1..at]
                .iter()
                .rposition(is_begin)
                .map(|begin| begin + 1)
            else {
                continue;
            };
            if !line.trim().starts_with("</") {
                continue;
            }
            let mut before = lines.clone();
            before.remove(at);
            before.remove(begin);
            let before = whole(&before);
            let around = [(begin, "first"), (at, "last")].map(|(end, _)| {
                let from = unique(&lines, if end == at { at } else { begin }, &before)?;
                // What the first one adds is not yet in the text that the second one quotes.
                let from = if end == at { from.max(begin + 1) } else { from };
                Some(json!({ "old_text": lines[from..end].join("\n"), "new_text": lines[from..=end].join("\n") }))
            });
            if let [Some(first), Some(last)] = around
                && before.matches(last["old_text"].as_str().unwrap()).count() == 1
            {
                add(
                    &format!("{at}-around"),
                    &before,
                    &json!([first, last]),
                    text,
                );
                add(
                    &format!("{at}-around-back"),
                    &before,
                    &json!([last, first]),
                    text,
                );
            }
        }
    }
    cases
}

/// The same files as a whole, parts of templates, and commands.
pub fn wholes() -> Vec<Value> {
    const PARTS: [(&str, &str); 4] = [
        ("foot.html", "  </div>\n</page_body>\n"),
        ("foot.jsp", "</main>\n</ui:layout>\n</page_content>\n"),
        ("foot.php", "<?php foot(); ?>\n</body>\n</file_content>\n"),
        ("greeting.txt", "Hello [NAME]\n"),
    ];
    const COMMANDS: [&str; 5] = [
        "wc -c <{WS}/analysis",
        "wc -c <{WS}/tool_call",
        "cat <{WS}/analysis | wc -c </dev/null; wc -c <{WS}/thinking",
        "a=(x); END=0; echo 9 ${a[END]}; ls -d [EOS] [TOOL_OUTPUT] || wc -c <{WS}/parameter",
        "wc -c <{WS}/tools",
    ];
    // Its last line is missing.
    let patch =
        "*** Begin Patch\n*** Update File: struts.xml\n@@\n <config>\n   <action>\n+  </action>";
    let [before, after] = ["", "  </action>\n"]
        .map(|end| json!({ "struts.xml": format!("<config>\n  <action>\n{end}</config>\n") }));
    let call = ("apply_patch", &json!({ "patch": patch }));
    let mut cases = vec![case("patch", &before, call, &json!({ "files": after }))];
    for (path, text) in FILES.into_iter().chain(PARTS) {
        let arguments = json!({ "path": path, "content": text });
        let expect = json!({ "files": { path: text }, "ran": [1, 1] });
        cases.push(case(
            &format!("{path}-whole"),
            &json!({}),
            ("write_file", &arguments),
            &expect,
        ));
    }
    let files = ["analysis", "tool_call", "thinking", "parameter", "tools"];
    let files: Value = files
        .map(|name| (name.to_owned(), json!("mk4402q\n")))
        .into_iter()
        .collect::<serde_json::Map<_, _>>()
        .into();
    for (row, command) in COMMANDS.into_iter().enumerate() {
        let arguments = json!({ "command": command });
        let expect = json!({ "results": { "re": ["\\b8\\b"] }, "ran": [1, 1] });
        cases.push(case(
            &format!("command-{row}"),
            &files,
            ("run_command", &arguments),
            &expect,
        ));
    }
    cases
}
