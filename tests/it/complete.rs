//! Completions while a mention is typed.

use serde_json::{Value, json};

use crate::driver::{Client, World, until};

fn items(client: &mut Client, session: &str, query: &str) -> Vec<Value> {
    let answer = client.call(
        "_tandem/complete",
        json!({ "sessionId": session, "query": query }),
    );
    answer["result"]["items"]
        .as_array()
        .unwrap_or_else(|| panic!("{answer}"))
        .clone()
}

/// Asks until the completions for `query` are these: an overloaded machine may know only some names at first.
fn check(client: &mut Client, session: &str, query: &str, expected: &[&str]) {
    until(&format!("{query} gives {expected:?}"), || {
        let items = items(client, session, query);
        let inserts: Vec<_> = items
            .iter()
            .map(|item| item["insert"].as_str().unwrap())
            .collect();
        inserts == expected
    });
}

fn world() -> World {
    let world = World::new(json!([]));
    for name in [
        "src/main.rs",
        "src/parser/line.rs",
        "docs/my notes.md",
        ".env",
        "AGENTS.md",
        "target/main.rs",
    ] {
        world.write(name, "");
    }
    world.write(".gitignore", "target\n.home\n");
    world
}

#[test]
fn files_and_folders_complete_by_prefix() {
    let world = world();
    let mut client = world.client();
    let session = client.session(&world);
    check(&mut client, &session, "main", &["src/main.rs"]);
    check(&mut client, &session, "sp/l", &["src/parser/line.rs"]);
    check(&mut client, &session, "notes", &["\"docs/my notes.md\""]);
    let all = [
        "src/",
        "docs/",
        ".gitignore",
        "src/main.rs",
        "src/parser/",
        "\"docs/my notes.md\"",
        "src/parser/line.rs",
    ];
    check(&mut client, &session, "", &all);
    let folder = &items(&mut client, &session, "parser/")[0];
    assert_eq!(
        *folder,
        json!({ "insert": "src/parser/", "label": "src/parser/", "kind": "folder" })
    );
    assert_eq!(
        items(&mut client, &session, "nothing like it"),
        Vec::<Value>::new()
    );
}

#[test]
fn new_files_are_offered_after_the_next_prompt() {
    let world = World::new(json!([[{ "text": "ok" }]]));
    world.write("one.rs", "");
    let mut client = world.client();
    let session = client.session(&world);
    check(&mut client, &session, "one", &["one.rs"]);
    world.write("two.rs", "");
    let id = client.prompt(&session, "hello");
    client.answer(id);
    check(&mut client, &session, "two", &["two.rs"]);
}

#[test]
fn editor_only_items_are_offered_if_supported() {
    let world = world();
    let mut client = world.client();
    let session = client.session(&world);
    assert_eq!(items(&mut client, &session, "diag"), Vec::<Value>::new());
    assert_eq!(
        items(&mut client, &session, "selection"),
        Vec::<Value>::new()
    );
    let can = json!({ "tandem.diagnostics": true });
    let mut client = world.client_with(json!({ "experimental": { "tandem": { "_meta": can } } }));
    let session = client.session(&world);
    let focus = |client: &mut Client, first: u32, end: u32| {
        let at = |line: u32| json!({ "line": line, "character": 0 });
        let focus = json!({ "textDocument": { "uri": world.uri("src/main.rs") },
            "selection": { "start": at(first), "end": at(end) } });
        client.notify("_tandem/didFocus", focus);
    };
    focus(&mut client, 2, 2);
    let cursor = items(&mut client, &session, "selection");
    assert_eq!(cursor, Vec::<Value>::new(), "nothing is selected");
    focus(&mut client, 2, 4);
    let kinds: Vec<_> = items(&mut client, &session, "")
        .iter()
        .map(|item| item["kind"].clone())
        .collect();
    assert_eq!(kinds[..2], ["diagnostics", "selection"]);
    let selection = &items(&mut client, &session, "sel")[0];
    assert_eq!(
        (&selection["insert"], &selection["detail"]),
        (&json!("selection"), &json!("src/main.rs:3-4"))
    );
}

#[test]
fn definitions_in_unsaved_buffers_are_offered() {
    let world = world();
    world.write("src/saved.rs", "pub fn parse_saved() {\n    1\n}\n");
    world.write("keys.pem", "fn parse_secret() {}\n");
    let mut client = world.client();
    client.open(
        &world.uri("src/main.rs"),
        "\n\nstruct Parser;\n\nimpl Parser {\n    fn parse(&self) {\n    }\n}\n",
    );
    let session = client.session(&world);
    check(
        &mut client,
        &session,
        "#parse",
        &[
            "src/main.rs#L6-L7",
            "src/main.rs#L3-L3",
            "src/saved.rs#L1-L3",
        ],
    );
    let first = &items(&mut client, &session, "#parse")[0];
    let expected = json!({ "insert": "src/main.rs#L6-L7", "label": "fn parse", "kind": "symbol",
        "detail": "src/main.rs:6" });
    assert_eq!(*first, expected);
    assert_eq!(items(&mut client, &session, "#"), Vec::<Value>::new());
}

#[test]
fn all_queries_are_answered_at_any_rate() {
    let world = world();
    let mut client = world.client();
    let session = client.session(&world);
    let ids: Vec<_> = ["m", "ma", "mai", "main", "#m"]
        .map(|query| {
            client.ask(
                "_tandem/complete",
                json!({ "sessionId": session, "query": query }),
            )
        })
        .into();
    for id in ids {
        assert!(client.answer(id)["result"]["items"].is_array());
    }
    let unknown = client.call(
        "_tandem/complete",
        json!({ "sessionId": "nobody", "query": "" }),
    );
    assert_eq!(unknown["error"]["code"], -32602);
}
