//! Tools that read and change files: buffers before disk, permission before change.

use serde_json::{Value, json};

use crate::driver::{Client, World, call, choose};

fn edit(path: &str, old: &str, new: &str) -> Value {
    call(
        "c1",
        "edit_file",
        json!({ "path": path, "edits": [{ "old_text": old, "new_text": new }] }),
    )
}

fn allow(client: &mut Client) -> Value {
    let question = client.next("session/request_permission");
    client.respond(
        &question,
        json!({ "outcome": { "outcome": "selected", "optionId": "allow_once" } }),
    );
    question["params"].clone()
}

/// Receives the server's edit and responds like an editor: the change first, then the answer.
fn apply(client: &mut Client, uri: &str, text: &str) -> Value {
    let request = client.next("workspace/applyEdit");
    let change = &request["params"]["edit"]["documentChanges"][0];
    let version = change["textDocument"]["version"].as_i64().unwrap_or(1) + 1;
    let document = json!({ "uri": uri, "version": version });
    client.notify(
        "textDocument/didChange",
        json!({ "textDocument": document, "contentChanges": [{ "text": text }] }),
    );
    client.respond(&request, json!({ "applied": true }));
    change.clone()
}

#[test]
fn diffs_of_large_files_show_the_changed_region() {
    let world =
        World::new(json!([[edit("big.txt", "the only one", "the one")], [{ "text": "done" }]]));
    let lines = |special: &str| {
        format!(
            "{}{special} here\n{}",
            "before\n".repeat(30_000),
            "after\n".repeat(30_000)
        )
    };
    world.write("big.txt", &lines("the only one"));
    let mut client = world.client();
    let session = client.session(&world);
    let id = client.prompt(&session, "change it");
    let question = allow(&mut client);
    let shown = |special: &str| {
        format!(
            "{}{special} here\n{}",
            "before\n".repeat(50),
            "after\n".repeat(50)
        )
    };
    let diff = &question["toolCall"]["content"][0];
    assert_eq!(
        (&diff["oldText"], &diff["newText"]),
        (&json!(shown("the only one")), &json!(shown("the one")))
    );
    assert_eq!(diff["_meta"]["tandem/skippedLines"], 29_950);
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    assert_eq!(world.read("big.txt"), lines("the one"));
}

#[test]
fn edits_of_open_documents_go_to_the_buffer() {
    let world =
        World::new(json!([[edit("a.rs", "let x = 1;", "let x = 2;")], [{ "text": "done" }]]));
    world.write("a.rs", "// on disk\n");
    let mut client = world.client();
    let uri = world.uri("a.rs");
    client.open(&uri, "// typed, not saved\nlet x = 1;\n");
    let session = client.session(&world);
    let id = client.prompt(&session, "change it");
    let question = allow(&mut client);
    assert_eq!(question["toolCall"]["kind"], "edit");
    let diff = &question["toolCall"]["content"][0];
    assert_eq!(diff["type"], "diff");
    assert_eq!(diff["path"], json!(world.path().join("a.rs")));
    assert_eq!(diff["newText"], "// typed, not saved\nlet x = 2;\n");
    let change = apply(&mut client, &uri, "// typed, not saved\nlet x = 2;\n");
    assert_eq!(change["textDocument"]["version"], 1);
    assert_eq!(change["edits"].as_array().unwrap().len(), 1);
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    assert_eq!(
        world.read("a.rs"),
        "// on disk\n",
        "only the person saves to disk"
    );
}

#[test]
fn edits_of_closed_files_go_to_disk() {
    let world = World::new(json!([[edit("a.rs", "one", "two")], [{ "text": "done" }]]));
    world.write("a.rs", "one\r\nmore\r\n");
    let mut client = world.client();
    let session = client.session(&world);
    let id = client.prompt(&session, "change it");
    allow(&mut client);
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    assert_eq!(world.read("a.rs"), "two\r\nmore\r\n");
}

#[test]
fn a_diff_is_shown_while_the_arguments_stream() {
    let mut step = call(
        "c1",
        "write_file",
        json!({ "path": "new.txt", "content": "first line\nsecond line\n" }),
    );
    step["fragments"] = 3.into();
    let gated = json!([[{ "text": "writing" }, step], [{ "text": "done" }]]);
    let world = World::new(gated);
    let mut client = world.client();
    let session = client.session(&world);
    let id = client.prompt(&session, "write");
    let announced = client.update("tool_call");
    assert_eq!(announced["toolCallId"], "c1");
    assert_eq!(announced["kind"], "edit");
    let shown = client.find(|message| message["params"]["update"]["content"][0]["type"] == "diff");
    assert_eq!(shown["params"]["update"]["toolCallId"], "c1");
    allow(&mut client);
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    assert_eq!(world.read("new.txt"), "first line\nsecond line\n");
}

/// What the model writes. A truncated preview ends in the middle of `readonly`.
const CLASS: &str = "class Shop {\n  constructor(private readonly stock: Stock) {}\n}\n";

/// An answer of calls, each with its ID, name and streamed arguments. The stream stops at each `|` in them, at a gate with
/// the name of the call.
fn streamed(calls: &[(&str, &str, String)]) -> Value {
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        json!({ "raw": format!("data: {}\n\n", json!({ "choices": [choice] })) })
    };
    let mut steps = Vec::new();
    for (index, (id, name, arguments)) in calls.iter().enumerate() {
        let begin =
            json!({ "index": index, "id": id, "type": "function", "function": { "name": name } });
        steps.push(chunk(json!({ "tool_calls": [begin] }), Value::Null));
        for (number, piece) in arguments.split('|').enumerate() {
            if number > 0 {
                steps.push(json!({ "gate": id }));
            }
            let more = json!({ "index": index, "function": { "arguments": piece } });
            steps.push(chunk(json!({ "tool_calls": [more] }), Value::Null));
        }
    }
    steps.push(chunk(json!({}), json!("tool_calls")));
    steps.push(json!({ "raw": "data: [DONE]\n\n" }));
    steps.into()
}

/// The next matching update of a call.
fn update(client: &mut Client, call: &str, fits: impl Fn(&Value) -> bool) -> Value {
    let message = client.find(|message| {
        let update = &message["params"]["update"];
        update["sessionUpdate"] == "tool_call_update"
            && update["toolCallId"] == call
            && fits(update)
    });
    message["params"]["update"].clone()
}

/// Waits until the beginning of a call's change is shown, then lets the rest of its arguments arrive.
fn pass(world: &World, client: &mut Client, call: &str) {
    let shown = update(client, call, |update| {
        update["content"][0]["type"] == "diff"
    });
    assert!(shown["content"][0]["newText"] != CLASS, "{shown:#}");
    world.rehearsal().open(call);
}

#[test]
fn calls_that_wait_are_shown_whole() {
    let class = json!(CLASS).to_string();
    let (begun, rest) = class.split_at(class.find("ly stock").unwrap());
    let edit = |path: &str, new_text: &str| {
        format!(
            r#"{{"path":"{path}","edits":[{{"old_text":"class Shop {{}}\\n","new_text":{new_text}}}]}}"#
        )
    };
    let calls = [
        (
            "c1",
            "write_file",
            r#"{"path":"new.ts","content":"1"}"#.to_owned(),
        ),
        ("c2", "edit_file", edit("a.ts", &format!("{begun}|{rest}"))),
        ("c3", "edit_file", edit("b.ts", &class)),
        ("c4", "run_command", r#"{"command":"npm test"}"#.to_owned()),
    ];
    let world = World::new(json!([streamed(&calls), [{ "text": "ok" }]]));
    world.write("a.ts", "class Shop {}\n");
    world.write("b.ts", "class Shop {}\n");
    let mut client = world.client();
    let session = client.session(&world);
    let id = client.prompt(&session, "change them");
    let mut question = client.next("session/request_permission");
    pass(&world, &mut client, "c2");
    let whole = |update: &Value| update["content"][0]["newText"] == CLASS;
    let shown = [
        ("c2", update(&mut client, "c2", whole)),
        ("c3", update(&mut client, "c3", whole)),
        (
            "c4",
            update(&mut client, "c4", |update| update["title"].is_string()),
        ),
    ];
    assert!(
        shown[2].1["title"]
            .as_str()
            .unwrap()
            .starts_with("Run `npm test`"),
        "{shown:#?}"
    );
    for (call, update) in &shown {
        choose(&mut client, &question, "reject_once");
        question = client.next("session/request_permission");
        let asked = &question["params"]["toolCall"];
        assert_eq!(
            (&asked["toolCallId"], &asked["title"]),
            (&json!(call), &update["title"])
        );
    }
    choose(&mut client, &question, "reject_once");
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    let failed = update(&mut client, "c2", |update| update["status"] == "failed");
    assert_eq!(failed["content"][0]["newText"], CLASS);
}

#[test]
fn calls_that_cannot_work_are_shown_whole_or_not_at_all() {
    // The file has not been read, so it may not be replaced. Of the edits, the second matches nothing.
    let class = json!(CLASS).to_string();
    let (begun, rest) = class.split_at(class.find("ly stock").unwrap());
    let write = format!(r#"{{"path":"a.ts","content":{begun}|{rest}}}"#);
    let edits = r#"{"old_text":"Shop","new_text":"Store"},{"old_text":"go|ne","new_text":"x"}"#;
    let edit = format!(r#"{{"path":"a.ts","edits":[{edits}]}}"#);
    let answers = [
        streamed(&[("c1", "write_file", write)]),
        streamed(&[("c2", "edit_file", edit)]),
    ];
    let world = World::new(json!([answers[0], answers[1], [{ "text": "sorry" }]]));
    world.write("a.ts", "class Shop {}\n");
    let mut client = world.client();
    let session = client.session(&world);
    let id = client.prompt(&session, "change it");
    let mut ended = |call: &str| {
        pass(&world, &mut client, call);
        update(&mut client, call, |update| update["status"] == "failed")["content"].clone()
    };
    assert_eq!(ended("c1")[0]["newText"], CLASS);
    assert_eq!(
        ended("c2")[0]["type"],
        "content",
        "half of an edit is no edit"
    );
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
}

#[test]
fn rejected_edits_change_nothing_and_are_reported_to_the_model() {
    let world = World::new(json!([[edit("a.rs", "one", "two")], [{ "text": "as you wish" }]]));
    world.write("a.rs", "one\n");
    let mut client = world.client();
    let session = client.session(&world);
    let id = client.prompt(&session, "change it");
    let question = client.next("session/request_permission");
    client.respond(
        &question,
        json!({ "outcome": { "outcome": "selected", "optionId": "reject_once" } }),
    );
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    assert_eq!(world.read("a.rs"), "one\n");
    let failed = client.find(|message| message["params"]["update"]["status"] == "failed");
    let update = &failed["params"]["update"];
    assert_eq!(update["toolCallId"], "c1");
    let content = update["content"].as_array().unwrap();
    assert_eq!(
        content[0]["newText"], "two\n",
        "the refused change is still shown: {update:#}"
    );
    let is_rejected = |update: &Value| {
        let content = update["content"].as_array().unwrap();
        content.last().unwrap()["content"]["text"] == "rejected"
            && update["_meta"]["tandem/rejected"] == true
    };
    assert!(is_rejected(update), "{update:#}");
    let messages = world.rehearsal().requests()[1]["messages"].to_string();
    assert!(
        messages.contains("the user rejected this call"),
        "{messages}"
    );
    let place = json!({ "sessionId": session, "cwd": world.path(), "mcpServers": [] });
    client.call("session/close", json!({ "sessionId": session }));
    client.call("session/load", place);
    let loaded = self::update(&mut client, "c1", |update| update["status"] == "failed");
    assert!(is_rejected(&loaded), "{loaded:#}");
}

#[test]
fn plan_mode_refuses_changes_without_asking() {
    let world = World::new(json!([[edit("a.rs", "one", "two")], [{ "text": "a plan" }]]));
    world.write("a.rs", "one\n");
    let mut client = world.client();
    let session = client.session(&world);
    client.call(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": "plan" }),
    );
    let id = client.prompt(&session, "change it");
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    assert_eq!(world.read("a.rs"), "one\n");
    assert!(
        client
            .seen
            .iter()
            .all(|message| message["method"] != "session/request_permission")
    );
}

#[test]
fn edit_mode_changes_files_without_asking() {
    let world = World::new(json!([[edit("a.rs", "one", "two")], [{ "text": "done" }]]));
    world.write("a.rs", "one\n");
    let mut client = world.client();
    let session = client.session(&world);
    client.call(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": "edit" }),
    );
    let id = client.prompt(&session, "change it");
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    assert_eq!(world.read("a.rs"), "two\n");
}

#[test]
fn reading_sees_the_unsaved_buffer() {
    let world = World::new(
        json!([[call("c1", "read_file", json!({ "path": "a.rs" }))], [{ "text": "seen" }]]),
    );
    world.write("a.rs", "on disk\n");
    let mut client = world.client();
    client.open(&world.uri("a.rs"), "typed but not saved\n");
    let session = client.session(&world);
    let id = client.prompt(&session, "read it");
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    let messages = world.rehearsal().requests()[1]["messages"].to_string();
    assert!(
        messages.contains("typed but not saved") && !messages.contains("on disk"),
        "{messages}"
    );
}

#[test]
fn outside_paths_are_reported_to_the_model() {
    let outside = call("c1", "read_file", json!({ "path": "../../etc/passwd" }));
    let world = World::new(
        json!([[outside, call("c2", "no_such_tool", json!({}))], [{ "text": "sorry" }]]),
    );
    let mut client = world.client();
    let session = client.session(&world);
    let id = client.prompt(&session, "read it");
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    let messages = world.rehearsal().requests()[1]["messages"].to_string();
    assert!(messages.contains("outside"), "{messages}");
    assert!(messages.contains("unknown tool"), "{messages}");
}

/// A patch that deletes a file and adds it again replaces its text, whatever comes between; in the opposite order it
/// contradicts itself about one file.
#[test]
fn a_file_that_a_patch_deletes_and_adds_is_replaced() {
    let section = |words: &str| match words.split_once(' ') {
        Some(("delete", name)) => format!("*** Delete File: {name}\n"),
        Some(("add", name)) => format!("*** Add File: {name}\n+new {name}\n"),
        Some((_, name)) => {
            format!("*** Update File: {name}\n@@\n-old {name}\n+changed {name}\n")
        }
        None => panic!("a section is a verb and a name"),
    };
    let cases = [
        ("delete a, add a", "new a\n", None),
        ("delete a, update b, add a", "new a\n", None),
        ("update b, delete a, add c, add a", "new a\n", None),
        ("add a, delete a", "old a\n", Some("names a twice")),
        ("delete a, delete a", "old a\n", Some("names a twice")),
        ("add a", "old a\n", Some("already exists")),
    ];
    for (sections, expected, problem) in cases {
        let sections: String = sections.split(", ").map(section).collect();
        let patch = format!("*** Begin Patch\n{sections}*** End Patch\n");
        let world = World::new(json!([
            [call("r1", "read_file", json!({ "path": "a" }))],
            [call("c1", "apply_patch", json!({ "patch": patch }))],
            [{ "text": "done" }],
        ]));
        for name in ["a", "b"] {
            world.write(name, &format!("old {name}\n"));
        }
        let mut client = world.stranger();
        let mut hello = world.handshake(json!({ "experimental": { "tandem": {} } }));
        hello["initializationOptions"] = json!({ "model": "gpt-5", "mode": "edit" });
        client.shake_hands(hello);
        let session = client.session(&world);
        let id = client.prompt(&session, "replace it");
        assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
        let told = world.rehearsal().requests()[2]["messages"].to_string();
        assert_eq!(world.read("a"), expected, "{patch}{told}");
        assert!(
            problem.is_none_or(|problem| told.contains(problem)),
            "{patch}{told}"
        );
    }
}

/// The text of git's diff is applied, and the model learns that the permissions were not.
#[test]
fn permissions_in_a_diff_are_not_applied_and_reported() {
    let text = "--- a/run.sh\n+++ b/run.sh\n@@ -1 +1 @@\n-echo a\n+echo b\n";
    for (modes, is_said) in [
        ("old mode 100644\nnew mode 100755\n", true),
        ("index 1234567..89abcde 100644\n", false),
    ] {
        let patch = format!("diff --git a/run.sh b/run.sh\n{modes}{text}");
        let world = World::new(json!([
            [call("r1", "read_file", json!({ "path": "run.sh" }))],
            [call("c1", "apply_patch", json!({ "patch": patch }))],
            [{ "text": "done" }],
        ]));
        world.write("run.sh", "echo a\n");
        let mut client = world.client();
        let session = client.session(&world);
        client.call(
            "session/set_mode",
            json!({ "sessionId": session, "modeId": "auto" }),
        );
        let id = client.prompt(&session, "apply it");
        assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
        assert_eq!(world.read("run.sh"), "echo b\n");
        let told = world.rehearsal().requests()[2]["messages"].to_string();
        assert_eq!(told.contains("run chmod"), is_said, "{told}");
    }
}

#[test]
fn an_ignore_file_counts_whatever_encoding_its_comments_have() {
    let world = World::new(
        json!([[call("c1", "glob", json!({ "pattern": "**/*.txt" }))], [{ "text": "Done." }]]),
    );
    world.write("a.txt", "");
    world.write("built/b.txt", "");
    std::fs::write(world.path().join(".gitignore"), b"# gr\xf6\xdfer\nbuilt/\n").unwrap();
    let mut client = world.client();
    let session = client.session(&world);
    let prompt = client.prompt(&session, "list them");
    client.answer(prompt);
    let requests = world.rehearsal().requests();
    let result = &requests[1]["messages"].as_array().unwrap().last().unwrap()["content"];
    assert_eq!(result, "a.txt\n");
}
