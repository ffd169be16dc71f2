//! Capabilities in `initialize`: the server sends nothing that the client didn't announce, in requests or in responses.
//! Each client of these tests checks every message.

use serde_json::{Value, json};
use tandem::server::Transport;

use crate::driver::{Client, World, call};
use crate::plain::{actions, ask_in_chat, command, edit_until, titles};

/// The capabilities of a typical editor, unless a test sets them.
pub fn usual() -> Value {
    json!({
        "workspace": { "applyEdit": true, "workspaceEdit": { "documentChanges": true } },
        "window": { "showDocument": { "support": true } },
        "textDocument": {
            "codeAction": { "codeActionLiteralSupport": { "codeActionKind": { "valueSet": ["quickfix"] } } },
            "documentSymbol": { "hierarchicalDocumentSymbolSupport": true },
        },
    })
}

/// `more` on top of the usual capabilities.
pub fn with(more: &Value) -> Value {
    let mut all = usual();
    merge(&mut all, more);
    all
}

fn merge(into: &mut Value, more: &Value) {
    if let (Some(fields), Some(more)) = (into.as_object_mut(), more.as_object()) {
        for (name, value) in more {
            merge(fields.entry(name.clone()).or_insert(Value::Null), value);
        }
    } else {
        *into = more.clone();
    }
}

/// Whether a client with these capabilities accepts a request or an update from the server.
pub fn takes(transport: Transport, offered: &Value, request: &Value) -> bool {
    let at = |pointer: &str| offered.pointer(pointer).unwrap_or(&Value::Null);
    let ours = if transport == Transport::Acp {
        offered
    } else {
        at("/experimental/tandem")
    };
    let params = &request["params"];
    let method = request["method"].as_str().unwrap_or_default();
    match method {
        "workspace/applyEdit" => {
            let versioned = params["edit"].get("documentChanges").is_some();
            *at("/workspace/applyEdit") == true
                && (!versioned
                    || *at("/workspace/workspaceEdit/documentChanges") == true
                    || at("/workspace/workspaceEdit/resourceOperations").is_array())
        }
        "workspace/codeLens/refresh" => *at("/workspace/codeLens/refreshSupport") == true,
        "window/showDocument" => *at("/window/showDocument/support") == true,
        "window/showMessageRequest" => {
            params["actions"].is_null() || at("/window/showMessage/messageActionItem").is_object()
        }
        "window/workDoneProgress/create" => *at("/window/workDoneProgress") == true,
        "session/request_permission" => transport == Transport::Acp || ours.is_object(),
        "elicitation/create" => {
            let mode = params["mode"].as_str().unwrap_or_default();
            ours["elicitation"][mode].is_object()
        }
        "session/update" => match params["update"]["sessionUpdate"].as_str() {
            Some("notice") => ours["session"]["notices"].is_object(),
            Some("compaction_update" | "compaction_summary_chunk") => {
                ours["session"]["compaction"].is_object()
            }
            _ => true,
        },
        // To a server that came with the session.
        "mcp/message" => true,
        "fs/read_text_file" => ours["fs"]["readTextFile"] == true,
        "fs/write_text_file" => ours["fs"]["writeTextFile"] == true,
        "_tandem/diagnostics" => ours["_meta"]["tandem.diagnostics"] == true,
        "_tandem/save" => ours["_meta"]["tandem.save"] == true,
        _ if method.starts_with("_tandem/editorModels") => ours["_meta"]["tandem.models"] == true,
        "_tandem/language" => ours["_meta"]["tandem.language"].is_array(),
        // Registrations, refreshes, configuration: tandem needs none of them.
        _ => false,
    }
}

/// Whether a client with these capabilities understands a response to its request.
pub fn understands(offered: &Value, method: &str, answer: &Value) -> bool {
    let items = || answer["result"].as_array().into_iter().flatten();
    let at = |pointer: &str| offered.pointer(pointer).unwrap_or(&Value::Null);
    match method {
        "textDocument/codeAction"
            if at("/textDocument/codeAction/codeActionLiteralSupport").is_null() =>
        {
            items().all(|item| item["command"].is_string())
        }
        "textDocument/documentSymbol"
            if *at("/textDocument/documentSymbol/hierarchicalDocumentSymbolSupport") != true =>
        {
            items()
                .all(|item| item["location"]["uri"].is_string() && item.get("children").is_none())
        }
        _ => true,
    }
}

#[test]
fn messages_beyond_the_clients_capabilities_are_found() {
    let lsp = |offered: &Value, method: &str, params: Value| {
        takes(
            Transport::Lsp,
            offered,
            &json!({ "id": 1, "method": method, "params": params }),
        )
    };
    let versioned = json!({ "edit": { "documentChanges": [] } });
    for (method, params) in [
        ("workspace/applyEdit", versioned.clone()),
        ("workspace/applyEdit", json!({ "edit": { "changes": {} } })),
        ("window/showDocument", json!({})),
    ] {
        assert!(lsp(&usual(), method, params.clone()), "{method} {params}");
        assert!(!lsp(&json!({}), method, params), "{method}");
    }
    assert!(!lsp(
        &json!({ "workspace": { "applyEdit": true } }),
        "workspace/applyEdit",
        versioned
    ));
    for method in [
        "window/workDoneProgress/create",
        "client/registerCapability",
        "workspace/diagnostic/refresh",
        "fs/read_text_file",
    ] {
        assert!(!lsp(&usual(), method, json!({})), "{method}");
    }
    assert!(lsp(
        &with(&json!({ "window": { "workDoneProgress": true } })),
        "window/workDoneProgress/create",
        json!({})
    ));
    for update in ["notice", "compaction_update"] {
        let update = json!({ "update": { "sessionUpdate": update } });
        assert!(!lsp(&usual(), "session/update", update), "not offered");
    }
    let answer = json!({ "result": [{ "title": "t", "command": { "command": "c" } }] });
    assert!(understands(&usual(), "textDocument/codeAction", &answer));
    assert!(!understands(&json!({}), "textDocument/codeAction", &answer));
    let answer = json!({ "result": [{ "name": "n", "children": [] }] });
    assert!(understands(
        &usual(),
        "textDocument/documentSymbol",
        &answer
    ));
    assert!(!understands(
        &json!({}),
        "textDocument/documentSymbol",
        &answer
    ));
}

/// The capabilities of two language clients: one that can only edit, and a typical one.
fn least_and_usual() -> [Value; 2] {
    [json!({ "workspace": { "applyEdit": true } }), usual()]
}

/// A client that announces exactly these capabilities.
fn client(world: &World, capabilities: &Value) -> Client {
    let mut client = world.stranger();
    let mut params = world.handshake(json!({}));
    params["capabilities"] = capabilities.clone();
    client.shake_hands(params);
    client
}

#[test]
fn a_chat_works_whatever_the_client_offers() {
    for offered in least_and_usual() {
        let reads = call("c1", "read_file", json!({ "path": "a.rs" }));
        let world = World::new(json!([[reads], [{ "text": "It adds." }]]));
        world.write("a.rs", "fn add() {}\n");
        let mut client = client(&world, &offered);
        let uri = world.uri("notes.tandem.md");
        let mut text = ask_in_chat(&mut client, &uri, "What is it?\n");
        edit_until(&mut client, &uri, &mut text, |text| {
            text.ends_with("It adds.\n\n## You\n\n")
        });
        assert_eq!(
            client.next("window/showMessage")["params"]["message"],
            "tandem: done"
        );
        let symbols = client.call(
            "textDocument/documentSymbol",
            json!({ "textDocument": { "uri": uri } }),
        );
        let symbols = symbols["result"].as_array().unwrap();
        let tool = if offered == usual() {
            &symbols[0]["children"][0]
        } else {
            &symbols[1]
        };
        assert_eq!(
            (&symbols[0]["name"], &tool["name"]),
            (&json!("What is it?"), &json!("✓ Read a.rs"))
        );
        if offered != usual() {
            assert_eq!(
                (&tool["location"]["uri"], &tool["containerName"]),
                (&json!(uri), &json!("What is it?"))
            );
        }
    }
}

#[test]
fn an_answer_in_a_new_chat_is_found_whatever_the_client_offers() {
    for offered in least_and_usual() {
        let world = World::new(json!([[{ "text": "It adds." }]]));
        let mut client = client(&world, &offered);
        client.open(&world.uri("a.rs"), "fn add() {}\n");
        let actions = actions(&mut client, &world.uri("a.rs"), 1);
        assert_eq!(
            titles(&actions),
            [
                "tandem: Ask about this",
                "tandem: Explain this",
                "tandem: Edit this"
            ]
        );
        let is_usual = offered == usual();
        let run = if is_usual {
            &actions[1]["command"]
        } else {
            &actions[1]
        };
        command(
            &mut client,
            run["command"].as_str().unwrap(),
            run["arguments"].clone(),
        );
        if is_usual {
            client.next("window/showDocument");
            continue;
        }
        let message = client.next("window/showMessage")["params"]["message"]
            .as_str()
            .unwrap()
            .to_owned();
        let path = message
            .strip_prefix("tandem: the answer is in ")
            .expect(&message);
        let text = std::fs::read_to_string(path).unwrap();
        assert!(
            text.contains("Explain this") && text.contains("## tandem\n\nIt adds."),
            "{text}"
        );
        assert_eq!(client.end(), tandem::server::Ended::Well);
        client.finish();
        let again = client
            .seen
            .iter()
            .filter(|message| message["method"] == "window/showMessage");
        assert_eq!(again.count(), 0, "it is said once");
    }
}

#[test]
fn an_open_document_is_edited_in_the_form_the_client_supports() {
    let capabilities =
        |workspace: Value| json!({ "experimental": { "tandem": {} }, "workspace": workspace });
    let delete =
        json!({ "applyEdit": true, "workspaceEdit": { "resourceOperations": ["delete"] } });
    for (workspace, field) in [
        (json!({ "applyEdit": true }), Some("changes")),
        (
            json!({ "applyEdit": true, "workspaceEdit": { "documentChanges": true } }),
            Some("documentChanges"),
        ),
        (delete, Some("documentChanges")),
        (json!({}), None),
    ] {
        let edits = json!([{ "old_text": "one", "new_text": "two" }]);
        let edit = call("c1", "edit_file", json!({ "path": "a.rs", "edits": edits }));
        let world = World::new(json!([[edit], [{ "text": "done" }]]));
        world.write("a.rs", "saved\n");
        let mut client = client(&world, &capabilities(workspace));
        let uri = world.uri("a.rs");
        client.open(&uri, "one\n");
        let session = client.session(&world);
        client.call(
            "session/set_mode",
            json!({ "sessionId": session, "modeId": "edit" }),
        );
        let prompt = client.prompt(&session, "change it");
        if let Some(field) = field {
            let request = client.next("workspace/applyEdit");
            let edit = &request["params"]["edit"];
            let names: Vec<_> = edit.as_object().unwrap().keys().collect();
            assert_eq!(names, [field]);
            let edits = if field == "changes" {
                &edit[field][&uri]
            } else {
                &edit[field][0]["edits"]
            };
            assert!(edits[0]["newText"].is_string(), "{edit}");
            let change = json!({ "textDocument": { "uri": uri, "version": 2 }, "contentChanges": [{ "text": "two\n" }] });
            client.notify("textDocument/didChange", change);
            client.respond(&request, json!({ "applied": true }));
        }
        assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");
        let told = world.rehearsal().requests()[1]["messages"].to_string();
        assert_eq!(
            told.contains("did not announce `workspace.applyEdit`"),
            field.is_none(),
            "{told}"
        );
        assert_eq!(
            world.read("a.rs"),
            "saved\n",
            "only the person saves to disk"
        );
    }
}
