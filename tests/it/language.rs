//! `code`: the editor's language servers, queried through `_tandem/language`; their changes are edits like any others.

use serde_json::{Value, json};

use crate::driver::{Client, World};

const ALL: [&str; 13] = [
    "definition",
    "declaration",
    "implementation",
    "type_definition",
    "references",
    "hover",
    "document_symbols",
    "workspace_symbols",
    "incoming_calls",
    "outgoing_calls",
    "rename",
    "quick_fixes",
    "format",
];

/// A client whose editor supports these operations.
fn knowing(world: &World, operations: &[&str]) -> Client {
    world.client_with(
        json!({ "experimental": { "tandem": { "_meta": { "tandem.language": operations } } } }),
    )
}

/// A model that makes this query and then ends.
fn asking(arguments: Value) -> World {
    let call = json!([{ "call": { "id": "c1", "name": "code", "arguments": arguments } }]);
    World::new(json!([call, [{ "text": "I see." }]]))
}

fn range(line: u32, from: u32, to: u32) -> Value {
    json!({ "start": { "line": line, "character": from }, "end": { "line": line, "character": to } })
}

/// The result of its call, as the model received it.
fn result(world: &World) -> String {
    let last = world.rehearsal().requests().last().unwrap()["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .clone();
    last["content"].as_str().unwrap().to_owned()
}

fn in_mode(client: &mut Client, world: &World, mode: &str) -> String {
    let session = client.session(world);
    client.call(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": mode }),
    );
    session
}

/// Two files with three occurrences of `total`, and the edit that renames them to `sum`.
fn renamed(world: &World) -> Value {
    world.write("a.rs", "fn total() {}\n");
    world.write("b.rs", "// größer: total\nfn main() { total(); }\n");
    json!({ "documentChanges": [
        { "textDocument": { "uri": world.uri("b.rs"), "version": null },
          "edits": [{ "range": range(1, 12, 17), "newText": "sum" }, { "range": range(0, 11, 16), "newText": "sum" }] },
        { "textDocument": { "uri": world.uri("a.rs"), "version": null }, "edits": [{ "range": range(0, 3, 8), "newText": "sum" }] },
    ] })
}

#[test]
fn locations_include_their_lines() {
    let world = asking(json!({ "op": "references", "path": "a.rs", "line": 2, "symbol": "total" }));
    world.write("a.rs", "// größe\nfn größe() { total(); }\n");
    let mut client = knowing(&world, &ALL);
    client.open(&world.uri("a.rs"), "// unsaved\nfn größe() { total(1); }\n");
    let session = client.session(&world);
    let prompt = client.prompt(&session, "who calls it?");
    let asked = client.next("_tandem/language");
    let position = json!({ "line": 1, "character": 13 });
    assert_eq!(
        asked["params"],
        json!({ "op": "references", "uri": world.uri("a.rs"), "position": position })
    );
    let outside = "file:///usr/lib/total.rs";
    let at = |uri: &str, line: u32| json!({ "uri": uri, "range": range(line, 0, 1) });
    client.respond(
        &asked,
        json!([
            at(&world.uri("a.rs"), 1),
            at(&world.uri("a.rs"), 1),
            at(outside, 6)
        ]),
    );
    client.answer(prompt);
    assert_eq!(
        result(&world),
        "a.rs:2: fn größe() { total(1); }\n/usr/lib/total.rs:7\n"
    );
}

#[test]
fn a_bare_name_is_looked_up_first() {
    let world = asking(json!({ "op": "hover", "symbol": "text::parse" }));
    world.write(
        "src/text.rs",
        "/// Reads.\npub fn parse() {}\npub fn parse_all() {}\n",
    );
    let mut client = knowing(&world, &ALL);
    let session = client.session(&world);
    let prompt = client.prompt(&session, "what is parse?");
    let asked = client.next("_tandem/language");
    assert_eq!(
        asked["params"],
        json!({ "op": "workspace_symbols", "query": "parse" })
    );
    let uri = world.uri("src/text.rs");
    let symbol = |name: &str, line: u32| {
        let mut range = range(line, 0, 0);
        range["end"]["line"] = json!(line + 1);
        json!({ "name": name, "kind": 12, "location": { "uri": uri, "range": range } })
    };
    client.respond(&asked, json!([symbol("parse", 0), symbol("parse_all", 2)]));
    let asked = client.next("_tandem/language");
    let position = json!({ "line": 1, "character": 7 });
    assert_eq!(
        asked["params"],
        json!({ "op": "hover", "uri": uri, "position": position })
    );
    client.respond(
        &asked,
        json!({ "contents": { "kind": "markdown", "value": "fn parse()\n\nReads." } }),
    );
    client.answer(prompt);
    assert_eq!(result(&world), "fn parse()\n\nReads.\n");
}

#[test]
fn unlisted_names_are_found_as_text_and_ambiguity_is_reported() {
    let world = asking(json!({ "op": "definition", "symbol": "parse" }));
    world.write("a.rs", "fn parse() {}\n");
    world.write("b.py", "def parse():\n    pass\n");
    let mut client = knowing(&world, &["definition"]);
    let session = client.session(&world);
    let prompt = client.prompt(&session, "where is parse?");
    client.answer(prompt);
    let told = result(&world);
    assert!(
        told.contains("a.rs:1: fn parse() {}") && told.contains("b.py:1: def parse():"),
        "{told}"
    );
    assert!(
        client
            .seen
            .iter()
            .all(|message| message["method"] != "_tandem/language"),
        "nothing certain to ask about"
    );
}

#[test]
fn renames_are_previewed_approved_applied_and_undone_like_edits() {
    let world = asking(
        json!({ "op": "rename", "path": "a.rs", "line": 1, "symbol": "total", "new_name": "sum" }),
    );
    let edits = renamed(&world);
    let mut client = knowing(&world, &ALL);
    let session = in_mode(&mut client, &world, "ask");
    let prompt = client.prompt(&session, "rename it");
    let asked = client.next("_tandem/language");
    assert_eq!(
        (&asked["params"]["op"], &asked["params"]["newName"]),
        (&json!("rename"), &json!("sum"))
    );
    client.respond(&asked, edits);
    let request = client.next("session/request_permission");
    let call = &request["params"]["toolCall"];
    assert_eq!(
        (&call["kind"], &call["title"]),
        (&json!("edit"), &json!("Rename `total` to `sum` in 2 files"))
    );
    let diffs = call["content"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|part| part["type"] == "diff")
        .count();
    assert_eq!(diffs, 2, "{call}");
    assert_eq!(
        world.read("a.rs"),
        "fn total() {}\n",
        "nothing happens before the answer"
    );
    client.respond(
        &request,
        json!({ "outcome": { "outcome": "selected", "optionId": "allow_once" } }),
    );
    client.answer(prompt);
    assert_eq!(world.read("a.rs"), "fn sum() {}\n");
    assert_eq!(world.read("b.rs"), "// größer: sum\nfn main() { sum(); }\n");
    let undone = client.call(
        "_tandem/review",
        json!({ "sessionId": session, "action": "undo" }),
    );
    assert!(undone["error"].is_null(), "{undone}");
    assert_eq!(world.read("a.rs"), "fn total() {}\n");
}

#[test]
fn edit_modes_and_rules_apply_to_renames() {
    for (mode, configuration) in [
        ("plan", json!({})),
        (
            "edit",
            json!({ "permissions": { "deny": ["edit_file(b.rs)"] } }),
        ),
    ] {
        let world = asking(
            json!({ "op": "rename", "path": "a.rs", "line": 1, "symbol": "total", "new_name": "sum" }),
        );
        let edits = renamed(&world);
        let mut client = knowing(&world, &ALL);
        client.notify(
            "workspace/didChangeConfiguration",
            json!({ "settings": configuration }),
        );
        let session = in_mode(&mut client, &world, mode);
        let prompt = client.prompt(&session, "rename it");
        let asked = client.next("_tandem/language");
        client.respond(&asked, edits);
        client.answer(prompt);
        assert_eq!(
            world.read("a.rs"),
            "fn total() {}\n",
            "{mode}: {}",
            result(&world)
        );
        assert!(
            client
                .seen
                .iter()
                .all(|message| message["method"] != "session/request_permission"),
            "{mode}"
        );
    }
}

#[test]
fn edits_outside_the_workspace_or_of_whole_files_are_refused() {
    let outside = json!({ "changes": { "file:///etc/hosts": [{ "range": range(0, 0, 0), "newText": "x" }] } });
    let removal = json!({ "documentChanges": [{ "kind": "delete", "uri": "file:///etc/hosts" }] });
    for refused in [outside, removal] {
        let world = asking(json!({ "op": "quick_fixes", "path": "a.rs", "line": 1 }));
        let mut edits = renamed(&world);
        for (key, value) in refused.as_object().unwrap() {
            match (&mut edits[key], value) {
                (Value::Array(all), Value::Array(more)) => all.extend(more.clone()),
                _ => edits = refused.clone(),
            }
        }
        let mut client = knowing(&world, &ALL);
        let session = in_mode(&mut client, &world, "auto");
        let prompt = client.prompt(&session, "fix it");
        let asked = client.next("_tandem/language");
        client.respond(&asked, edits);
        client.answer(prompt);
        assert_eq!(world.read("a.rs"), "fn total() {}\n", "{}", result(&world));
    }
}

#[test]
fn an_open_file_is_renamed_in_the_editor() {
    let world =
        asking(json!({ "op": "rename", "symbol": "total", "path": "a.rs", "new_name": "sum" }));
    world.write("a.rs", "fn saved() {}\n");
    let uri = world.uri("a.rs");
    let mut client = knowing(&world, &ALL);
    client.open(&uri, "fn total() {}\n");
    let session = in_mode(&mut client, &world, "edit");
    let prompt = client.prompt(&session, "rename it");
    let asked = client.next("_tandem/language");
    client.respond(
        &asked,
        json!({ "changes": { &uri: [{ "range": range(0, 3, 8), "newText": "sum" }] } }),
    );
    let request = client.next("workspace/applyEdit");
    let document = json!({ "uri": uri, "version": 2 });
    let changes = json!([{ "text": "fn sum() {}\n" }]);
    client.notify(
        "textDocument/didChange",
        json!({ "textDocument": document, "contentChanges": changes }),
    );
    client.respond(&request, json!({ "applied": true }));
    client.answer(prompt);
    assert_eq!(
        world.read("a.rs"),
        "fn saved() {}\n",
        "the disk is the editor's"
    );
    assert!(
        result(&world).starts_with("Changed a.rs, line 1"),
        "{}",
        result(&world)
    );
}

#[test]
fn unknown_symbols_are_errors_with_a_remedy() {
    let world = asking(json!({ "op": "definition", "path": "a.rs", "line": 1 }));
    world.write("a.rs", "fn a() {}\n");
    let mut client = knowing(&world, &ALL);
    let session = client.session(&world);
    let prompt = client.prompt(&session, "where?");
    let asked = client.next("_tandem/language");
    client.send(
        &json!({ "jsonrpc": "2.0", "id": asked["id"], "error": { "code": -32803, "message": "no server for a.rs" } }),
    );
    client.answer(prompt);
    let told = result(&world);
    assert!(
        told.contains("no server for a.rs") && told.contains("grep"),
        "{told}"
    );
}

#[test]
fn the_code_tool_is_offered_for_supported_operations_and_is_small() {
    let world = World::new(json!([[{ "text": "Hello." }]]));
    let mut client = world.client_with(json!({ "experimental": { "tandem": { "_meta": {
        "tandem.language": ALL, "tandem.diagnostics": true,
    } } } }));
    let session = client.session(&world);
    let prompt = client.prompt(&session, "hello");
    client.answer(prompt);
    let request = world.rehearsal().requests()[0].to_string();
    assert!(
        request.len() <= 12_288,
        "the first request is {} bytes",
        request.len()
    );

    let world = World::new(json!([[{ "text": "Hello." }]]));
    let mut client = knowing(&world, &["hover", "dance"]);
    let session = client.session(&world);
    let prompt = client.prompt(&session, "hello");
    client.answer(prompt);
    let tools = &world.rehearsal().requests()[0]["tools"];
    let code = tools
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["function"]["name"] == "code")
        .unwrap();
    assert_eq!(
        code.pointer("/function/parameters/properties/op/enum")
            .unwrap(),
        &json!(["hover"])
    );
}

/// Positions of an answer count in the text that the language server had.
#[test]
fn an_answer_to_a_text_that_was_typed_in_since_changes_nothing() {
    let world = asking(
        json!({ "op": "rename", "path": "a.rs", "line": 1, "symbol": "total", "new_name": "sum" }),
    );
    let edits = renamed(&world);
    let mut client = knowing(&world, &ALL);
    let open = "// größer: total\nfn main() { total(); }\n";
    client.open(&world.uri("b.rs"), open);
    let session = in_mode(&mut client, &world, "auto");
    let prompt = client.prompt(&session, "rename it");
    let asked = client.next("_tandem/language");
    let document = json!({ "uri": world.uri("b.rs"), "version": 2 });
    let typed = json!([{ "text": format!("//\n{open}") }]);
    client.notify(
        "textDocument/didChange",
        json!({ "textDocument": document, "contentChanges": typed }),
    );
    client.respond(&asked, edits);
    client.answer(prompt);
    let told = result(&world);
    assert!(told.contains("try again"), "{told}");
    assert_eq!(world.read("a.rs"), "fn total() {}\n", "{told}");
    assert!(
        client
            .seen
            .iter()
            .all(|message| message["method"] != "workspace/applyEdit")
    );
}

#[test]
fn a_name_means_the_definition_that_a_language_server_reports_and_nothing_below_it() {
    let world = asking(json!({ "op": "rename", "symbol": "total", "new_name": "sum" }));
    world.write(
        "a.rs",
        "define!(to, tal);\n\nfn main() { let total = 1; }\n",
    );
    let mut client = knowing(&world, &ALL);
    let session = in_mode(&mut client, &world, "auto");
    let prompt = client.prompt(&session, "rename it");
    let asked = client.next("_tandem/language");
    let place = json!({ "uri": world.uri("a.rs"), "range": range(0, 0, 16) });
    client.respond(
        &asked,
        json!([{ "name": "total", "kind": 12, "location": place }]),
    );
    let asked = client.next("_tandem/language");
    assert_eq!(
        asked["params"]["position"],
        json!({ "line": 0, "character": 0 })
    );
    client.respond(&asked, json!(null));
    client.answer(prompt);
}

#[test]
fn a_rename_of_a_name_that_a_file_has_several_times_is_one_of_its_definition() {
    let local = "def one():\n    count = 1\n\ndef two():\n    count = 2\n";
    let defined = "# count them\ndef count():\n    return count()\n";
    for (text, line) in [(local, None), (defined, Some(1))] {
        let world = asking(
            json!({ "op": "rename", "path": "a.py", "symbol": "count", "new_name": "total" }),
        );
        world.write("a.py", text);
        world.write("b.py", defined);
        let mut client = knowing(&world, &ALL);
        let session = in_mode(&mut client, &world, "auto");
        let prompt = client.prompt(&session, "rename it");
        if let Some(line) = line {
            let asked = client.next("_tandem/language");
            let position = json!({ "line": line, "character": 4 });
            assert_eq!(asked["params"]["position"], position, "{text}");
            client.respond(&asked, json!(null));
        }
        client.answer(prompt);
        if line.is_none() {
            let told = result(&world);
            assert!(
                told.contains("pass `line`") && told.contains("2, 5"),
                "{told}"
            );
        }
    }
}
