//! Reading in editors without a plugin, in chat files and changed files: symbols, folds, links, locations, hovers and hints.

use serde_json::{Value, json};

use crate::driver::{Client, World};
use crate::plain::{ask_in_chat, command, edit_until, plain, titles, type_text};

fn ask(client: &mut Client, method: &str, uri: &str, at: Option<(u32, u32)>) -> Value {
    let mut params = json!({ "textDocument": { "uri": uri } });
    if let Some((line, character)) = at {
        params["position"] = json!({ "line": line, "character": character });
    }
    client.call(&format!("textDocument/{method}"), params)["result"].clone()
}

/// The row of this line in a text.
fn row(text: &str, line: &str) -> u32 {
    u32::try_from(text.lines().position(|other| other == line).unwrap()).unwrap()
}

#[test]
fn chat_files_have_symbols_folds_links_and_definitions() {
    let world = World::new(json!([]));
    world.write("src/main.rs", "one\ntwo\n");
    let mut client = plain(&world);
    let (chat, code) = (world.uri("notes.tandem.md"), world.uri("src/main.rs"));
    let text = "## You\n\nwhere?\n\n## tandem\n\n- ✓ Read src/main.rs\n- ● Run `dev`: in the background\n𝒳 `src/main.rs:2` and gone.rs\n\n```\na\n```\n\n## You\n\n";
    client.open(&chat, text);
    client.open(&code, "`src/main.rs:2`\n## You\n");

    let turns = ask(&mut client, "documentSymbol", &chat, None);
    assert_eq!(
        (&turns[0]["name"], &turns[1]),
        (&json!("where?"), &Value::Null)
    );
    assert_eq!(turns[0]["children"][0]["name"], "✓ Read src/main.rs");
    assert_eq!(
        turns[0]["children"][1]["name"],
        "● Run `dev`: in the background"
    );
    let folds = ask(&mut client, "foldingRange", &chat, None);
    assert_eq!(
        folds,
        json!([{ "startLine": 0, "endLine": 12 }, { "startLine": 10, "endLine": 12 }])
    );
    let links = ask(&mut client, "documentLink", &chat, None);
    let targets: Vec<_> = links
        .as_array()
        .unwrap()
        .iter()
        .map(|link| link["target"].as_str().unwrap())
        .collect();
    assert_eq!(
        targets,
        [code.as_str(), &format!("{code}#L2")],
        "a missing file is not a link"
    );
    assert_eq!(
        links[1]["range"]["start"],
        json!({ "line": 8, "character": 4 }),
        "in UTF-16"
    );
    let place = ask(&mut client, "definition", &chat, Some((8, 9)));
    assert_eq!(
        (&place["uri"], &place["range"]["start"]["line"]),
        (&json!(code), &json!(1))
    );
    assert_eq!(
        ask(&mut client, "definition", &chat, Some((0, 0))),
        Value::Null
    );

    for method in ["documentSymbol", "foldingRange", "documentLink"] {
        assert_eq!(
            ask(&mut client, method, &code, None),
            json!([]),
            "{method} in code is left to its own server"
        );
    }
    assert_eq!(
        ask(&mut client, "definition", &code, Some((0, 5))),
        Value::Null
    );
}

#[test]
fn hovering_a_tool_call_shows_its_output() {
    let read = |id: &str, path: &str| json!([{ "call": { "id": id, "name": "read_file", "arguments": { "path": path } } }]);
    let world = World::new(json!([read("c1", "a.rs"), read("c2", "b.rs"), [{ "text": "Read." }]]));
    world.write("a.rs", "alpha\n");
    world.write("b.rs", "beta\n");
    let mut client = plain(&world);
    let chat = world.uri("notes.tandem.md");
    let mut text = ask_in_chat(&mut client, &chat, "Read them.\n");
    edit_until(&mut client, &chat, &mut text, |text| {
        text.contains("Read.\n")
    });
    for (call, output) in [("- ✓ Read a.rs", "alpha"), ("- ✓ Read b.rs", "beta")] {
        let shown = ask(&mut client, "hover", &chat, Some((row(&text, call), 0)));
        assert!(
            shown["contents"]["value"]
                .as_str()
                .unwrap()
                .contains(output),
            "{call}: {shown}"
        );
    }
    assert_eq!(ask(&mut client, "hover", &chat, Some((0, 0))), Value::Null);
}

#[test]
fn a_request_to_change_several_files_names_each() {
    let edit = |id: &str, path: &str| {
        let edits = json!([{ "old_text": "alpha", "new_text": "ALPHA" }]);
        json!([{ "call": { "id": id, "name": "edit_file", "arguments": { "path": path, "edits": edits } } }])
    };
    let world = World::new(json!([edit("c1", "a.rs"), edit("c2", "b.rs"), [{ "text": "Tried." }]]));
    world.write("a.rs", "alpha\n");
    world.write("b.rs", "alpha\n");
    let mut client = plain(&world);
    let chat = world.uri("notes.tandem.md");
    let mut text = ask_in_chat(&mut client, &chat, "/try rename it\n");
    edit_until(&mut client, &chat, &mut text, |text| {
        text.contains("Apply?** Apply the changes to a.rs, b.rs")
    });
    for name in ["a.rs", "b.rs"] {
        assert!(
            text.contains(&format!("/{name}`\n\n```diff")),
            "{name}: {text}"
        );
    }
}

#[test]
fn a_change_has_lenses_that_settle_it_and_its_old_text_is_plain_where_markdown_is_not_read() {
    let edits =
        json!([{ "old_text": "b\n", "new_text": "B\n" }, { "old_text": "h\n", "new_text": "H\n" }]);
    let call = json!({ "call": { "id": "c1", "name": "edit_file", "arguments": { "path": "a.rs", "edits": edits } } });
    let world = World::new(json!([[call], [{ "text": "Done." }]]));
    world.write("a.rs", "a\nb\nc\nd\ne\nf\ng\nh\n");
    let mut client = world.client_with(json!({
        "workspace": { "codeLens": { "refreshSupport": true } },
        "textDocument": { "codeLens": {}, "hover": { "contentFormat": ["plaintext", "markdown"] } },
    }));
    let (chat, code) = (world.uri("notes.tandem.md"), world.uri("a.rs"));
    let mut text = ask_in_chat(&mut client, &chat, "Change it.\n");
    edit_until(&mut client, &chat, &mut text, |text| {
        text.contains("*Allow*")
    });
    command(&mut client, "tandem.allow", json!([]));
    edit_until(&mut client, &chat, &mut text, |text| {
        text.contains("Done.\n")
    });
    let refresh = client.next("workspace/codeLens/refresh");
    assert_eq!(refresh.get("params"), None, "{refresh}");
    client.respond(&refresh, Value::Null);
    let lenses = |client: &mut Client| {
        let lenses = ask(client, "codeLens", &code, None);
        let of = |lens: &Value| {
            let line = lens["range"]["start"]["line"].as_u64().unwrap();
            (line, lens["command"].clone())
        };
        lenses
            .as_array()
            .unwrap()
            .iter()
            .map(of)
            .collect::<Vec<_>>()
    };
    let shown = lenses(&mut client);
    let places: Vec<_> = shown
        .iter()
        .map(|(line, command)| (*line, command["title"].as_str().unwrap()))
        .collect();
    assert_eq!(
        places,
        [(1, "Keep"), (1, "Reject"), (7, "Keep"), (7, "Reject")]
    );
    let hover = ask(&mut client, "hover", &code, Some((1, 0)));
    assert_eq!(
        hover["contents"],
        json!({ "kind": "plaintext", "value": "tandem changed this. Before:\n\nb" })
    );
    let reject = &shown[1].1;
    command(&mut client, "tandem.undo", reject["arguments"].clone());
    client.next("workspace/codeLens/refresh");
    assert_eq!(world.read("a.rs"), "a\nb\nc\nd\ne\nf\ng\nH\n");
    assert_eq!(lenses(&mut client).len(), 2);
}

#[test]
fn changed_lines_have_hints_and_old_text_until_settled() {
    let edits = json!([{ "old_text": "b\n", "new_text": "B\n" }]);
    let call = json!({ "call": { "id": "c1", "name": "edit_file", "arguments": { "path": "a.rs", "edits": edits } } });
    let world = World::new(json!([[call], [{ "text": "Done." }]]));
    world.write("a.rs", "a\nb\nc\n");
    let mut client = plain(&world);
    let (chat, code) = (world.uri("notes.tandem.md"), world.uri("a.rs"));
    let mut text = ask_in_chat(&mut client, &chat, "Change it.\n");
    edit_until(&mut client, &chat, &mut text, |text| {
        text.contains("*Allow*")
    });
    command(&mut client, "tandem.allow", json!([]));
    edit_until(&mut client, &chat, &mut text, |text| {
        text.contains("Done.\n")
    });
    let request = client.next("textDocument/publishDiagnostics");
    assert!(request.to_string().contains("Allow? Edit"), "{request}");
    assert_eq!(
        client.next("textDocument/publishDiagnostics")["params"]["diagnostics"],
        json!([]),
        "it is decided"
    );
    let is_hunk = |message: &Value| {
        let hint = &message["params"]["diagnostics"][0]["message"];
        message["params"]["uri"] == code
            && hint
                .as_str()
                .is_some_and(|hint| hint.starts_with("tandem: +1 −1"))
    };
    let hint = client.find(is_hunk)["params"]["diagnostics"][0].clone();
    assert_eq!(
        (&hint["range"]["start"]["line"], &hint["severity"]),
        (&json!(1), &json!(4))
    );
    let shown = ask(&mut client, "hover", &code, Some((1, 0)));
    assert_eq!(
        shown["contents"]["value"],
        "tandem changed this. Before:\n\n```\nb\n```"
    );
    assert_eq!(ask(&mut client, "hover", &code, Some((0, 0))), Value::Null);

    let at = json!({ "line": 1, "character": 0 });
    let params = json!({ "textDocument": { "uri": code }, "range": { "start": at, "end": at },
        "context": { "diagnostics": [hint], "triggerKind": 1 } });
    let offered = client.call("textDocument/codeAction", params)["result"]
        .as_array()
        .unwrap()
        .clone();
    assert!(
        titles(&offered).iter().all(|title| !title.contains("Fix")),
        "tandem's hints are not problems: {offered:?}"
    );
    let keep = offered
        .iter()
        .find(|action| action["title"] == "tandem: Keep this change")
        .unwrap();
    command(
        &mut client,
        "tandem.keep",
        keep["command"]["arguments"].clone(),
    );
    client.find(|message| {
        message["params"]["uri"] == code && message["params"]["diagnostics"] == json!([])
    });
    assert_eq!(ask(&mut client, "hover", &code, Some((1, 0))), Value::Null);
}

#[test]
fn hints_follow_their_lines_and_the_persons_undo_and_redo() {
    let edits = json!([{ "old_text": "b\n", "new_text": "B\n" }]);
    let call = json!({ "call": { "id": "c1", "name": "edit_file", "arguments": { "path": "a.rs", "edits": edits } } });
    let world = World::new(json!([[call], [{ "text": "Done." }]]));
    world.write("a.rs", "a\nb\nc\n");
    let mut client = plain(&world);
    let (chat, code) = (world.uri("notes.tandem.md"), world.uri("a.rs"));
    let mut text = ask_in_chat(&mut client, &chat, "Change it.\n");
    edit_until(&mut client, &chat, &mut text, |text| {
        text.contains("*Allow*")
    });
    command(&mut client, "tandem.allow", json!([]));
    edit_until(&mut client, &chat, &mut text, |text| {
        text.contains("Done.\n")
    });
    for _ in ["Allow?", "decided", "+1 −1"] {
        client.next("textDocument/publishDiagnostics");
    }
    client.open(&code, "a\nB\nc\n");
    let mut hints = |text: &str| {
        type_text(&mut client, &code, text);
        client.next("textDocument/publishDiagnostics")["params"]["diagnostics"].clone()
    };
    assert_eq!(hints("\na\nB\nc\n")[0]["range"]["start"]["line"], 2);
    assert_eq!(hints("\na\nb\nc\n"), json!([]));
    assert_eq!(hints("\na\nB\nc\n")[0]["range"]["start"]["line"], 2);
}
