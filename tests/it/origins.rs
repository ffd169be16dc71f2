//! Why a line is here: hover, actions, `_tandem/origins` and `tandem blame`.

use serde_json::{Value, json};

use crate::driver::{Client, World};
use crate::git::{git, shell};
use crate::plain::type_text;

const FUNCTION: &str = "fn main() {\n    let first_number = 1;\n    let second_number = 2;\n}\n";

/// A world whose model writes `a.rs`, and later inserts a line into it.
fn world() -> World {
    let call = |id: &str, name: &str, arguments: Value| json!([{ "call": { "id": id, "name": name, "arguments": arguments } }]);
    let edits =
        json!([{ "old_text": "}\n", "new_text": "    println!(\"{first_number}\");\n}\n" }]);
    World::new(json!([
        call("c1", "write_file", json!({ "path": "a.rs", "content": FUNCTION })),
        [{ "text": "Done." }],
        call("c2", "edit_file", json!({ "path": "a.rs", "edits": edits })),
        [{ "text": "Done." }],
    ]))
}

fn session(client: &mut Client, world: &World) -> String {
    let session = client.session(world);
    client.call(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": "edit" }),
    );
    session
}

fn turn(client: &mut Client, session: &str, text: &str) {
    let id = client.prompt(session, text);
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
}

/// First line, count, turn, prompt, and whether it was edited.
fn origins(client: &mut Client, uri: &str) -> Vec<(u64, u64, u64, String, bool)> {
    let params = json!({ "textDocument": { "uri": uri } });
    let answer = client.call("_tandem/origins", params)["result"].clone();
    let origin = |origin: &Value| {
        let number = |path: &str| origin.pointer(path).unwrap().as_u64().unwrap();
        let prompt = origin["prompt"].as_str().unwrap().to_owned();
        let edited = origin["edited"].as_bool().unwrap();
        (
            number("/lines/start"),
            number("/lines/count"),
            number("/turn"),
            prompt,
            edited,
        )
    };
    answer.as_array().unwrap().iter().map(origin).collect()
}

fn expected(origins: &[(u64, u64, u64, &str, bool)]) -> Vec<(u64, u64, u64, String, bool)> {
    let owned = |(start, count, turn, prompt, edited): &(u64, u64, u64, &str, bool)| {
        (*start, *count, *turn, (*prompt).to_owned(), *edited)
    };
    origins.iter().map(owned).collect()
}

#[test]
fn lines_have_the_turn_that_wrote_them_even_after_a_restart() {
    let world = world();
    let (server, mut client) = world.serve_editor();
    let id = session(&mut client, &world);
    turn(&mut client, &id, "write a program\nwith two numbers");
    world.write(
        "a.rs",
        &world
            .read("a.rs")
            .replace("second_number = 2", "second_number = 22"),
    );
    turn(&mut client, &id, "print it");
    drop(server);

    let (_server, mut client) = world.serve_editor();
    let uri = world.uri("a.rs");
    let text = world.read("a.rs");
    client.open(&uri, &text);
    let (first, second) = ("write a program", "print it");
    let known = [
        (1, 2, 1, first, false),
        (3, 1, 1, first, true),
        (4, 1, 2, second, false),
        (5, 1, 1, first, false),
    ];
    assert_eq!(origins(&mut client, &uri), expected(&known));

    // Unsaved text counts, and the person's own lines have no origin.
    let typed = text.replace("fn main", "/// The beginning of the program.\nfn main");
    type_text(&mut client, &uri, &typed);
    let known = [
        (2, 2, 1, first, false),
        (4, 1, 1, first, true),
        (5, 1, 2, second, false),
        (6, 1, 1, first, false),
    ];
    assert_eq!(origins(&mut client, &uri), expected(&known));
    let at = json!({ "line": 4, "character": 3 });
    let params = json!({ "textDocument": { "uri": uri }, "range": { "start": at, "end": at } });
    let found = client.call("_tandem/origins", params)["result"].clone();
    assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
    assert_eq!(
        (&found[0]["sessionId"], &found[0]["by"], &found[0]["model"]),
        (&json!(id), &json!("Edit a.rs"), &json!("custom/scripted"))
    );

    world.write("a.rs", &typed);
    git(&world.path(), &["init", "-q"]);
    git(&world.path(), &["add", "a.rs"]);
    git(&world.path(), &["commit", "-q", "-m", "all"]);
    assert_eq!(origins(&mut client, &uri), expected(&[]), "it is committed");
    type_text(
        &mut client,
        &uri,
        &typed.replace("second_number = 22", "second_number = 2"),
    );
    assert_eq!(
        origins(&mut client, &uri),
        expected(&[(4, 1, 1, first, false)]),
        "only an uncommitted line"
    );
}

/// Ways in which a repository's own configuration can start a program, where reading a file of a commit might.
const PROGRAMS: [&str; 16] = [
    "alias.cat-file",
    "core.alternateRefsCommand",
    "core.askPass",
    "core.editor",
    "core.fsmonitor",
    "core.gitProxy",
    "core.pager",
    "core.sshCommand",
    "credential.helper",
    "diff.external",
    "diff.trap.textconv",
    "filter.trap.clean",
    "filter.trap.process",
    "filter.trap.smudge",
    "pager.cat-file",
    "remote.origin.uploadpack",
];

#[test]
fn a_line_that_two_sessions_wrote_alike_is_of_neither() {
    let write = json!([{ "call": { "id": "c1", "name": "write_file", "arguments": { "path": "a.rs", "content": FUNCTION } } }]);
    let done = json!([{ "text": "Done." }]);
    let world = World::new(json!([write, done, write, done]));
    let (_server, mut client) = world.serve_editor();
    for prompt in ["write a program", "once more"] {
        let id = session(&mut client, &world);
        turn(&mut client, &id, prompt);
        if prompt == "write a program" {
            std::fs::remove_file(world.path().join("a.rs")).unwrap();
        }
    }
    let uri = world.uri("a.rs");
    client.open(&uri, FUNCTION);
    assert_eq!(origins(&mut client, &uri), expected(&[]));
}

#[test]
fn no_repository_starts_a_program_when_a_line_is_looked_up() {
    let world = world();
    let (_server, mut client) = world.serve_editor();
    let session = session(&mut client, &world);
    turn(&mut client, &session, "write a program");
    let (uri, root) = (world.uri("a.rs"), world.path());
    client.open(&uri, &world.read("a.rs"));
    let (sprung, trap) = (root.join("sprung"), root.join("trap"));
    // Its last argument is not a file, so git continues and fails.
    world.write(
        "trap",
        &format!("#!/bin/sh\ntouch '{}'\nexit 1\n", sprung.display()),
    );
    world.write(".gitattributes", "* diff=trap filter=trap\n");
    shell(
        &root,
        "chmod +x trap; git init -q; git add a.rs; git commit -qm all; mkdir hooks; \
         for hook in post-index-change pre-auto-gc reference-transaction; do cp trap hooks/$hook; done",
    );
    assert_eq!(origins(&mut client, &uri), expected(&[]), "it is committed");
    let trap = trap.to_str().unwrap();
    for name in PROGRAMS {
        git(&root, &["config", "--file", "evil", name, trap]);
    }
    git(&root, &["config", "include.path", "../evil"]);
    git(&root, &["config", "core.hooksPath", "hooks"]);
    assert_eq!(origins(&mut client, &uri), expected(&[]), "it still is");
    assert!(!sprung.exists());

    // Its content is missing, and would be fetched.
    shell(
        &root,
        "rm -f .git/objects/$(git rev-parse HEAD:a.rs | sed 's|^..|&/|')",
    );
    for (name, value) in [
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("protocol.allow", "always"),
        ("remote.origin.promisor", "true"),
    ] {
        git(&root, &["config", name, value]);
    }
    let is_sprung = || {
        let is_sprung = sprung.exists();
        drop(std::fs::remove_file(&sprung));
        is_sprung
    };
    for url in [
        "ssh://host/x",
        &format!("ext::{trap}"),
        root.to_str().unwrap(),
    ] {
        git(&root, &["config", "remote.origin.url", url]);
        shell(&root, "! git cat-file blob HEAD:a.rs");
        assert!(is_sprung(), "{url}: this is a trap");
        let first = "write a program";
        let all = expected(&[(1, 4, 1, first, false)]);
        assert_eq!(origins(&mut client, &uri), all, "{url}");
        assert_eq!(world.run(&["blame", "a.rs"]).code, Some(0));
        assert!(!is_sprung(), "{url}");
    }
}

#[test]
fn an_editor_without_a_plugin_shows_and_opens_the_turn() {
    let world = world();
    let (server, mut client) = world.serve_editor();
    let id = session(&mut client, &world);
    turn(&mut client, &id, "write a `program`");
    drop(server);

    let (_server, mut client) = world.serve(tandem::server::Transport::Lsp);
    let capabilities = json!({ "window": { "showDocument": { "support": true } },
        "textDocument": { "hover": { "contentFormat": ["markdown", "plaintext"] }, "codeAction": { "codeActionLiteralSupport": { "codeActionKind": { "valueSet": [] } } } } });
    client.shake_hands(world.handshake(capabilities));
    let uri = world.uri("a.rs");
    client.open(&uri, &world.read("a.rs"));
    let at = json!({ "line": 1, "character": 3 });
    let hover = client.call(
        "textDocument/hover",
        json!({ "textDocument": { "uri": uri }, "position": at }),
    );
    assert_eq!(
        hover["result"]["contents"]["value"],
        format!(
            "**Turn 1**: ``` write a `program` ```\n\n` Create a.rs `, `custom/scripted`, session `{id}`"
        )
    );
    let params = json!({ "textDocument": { "uri": uri }, "range": { "start": at, "end": at },
        "context": { "diagnostics": [], "triggerKind": 1 } });
    let actions = client.call("textDocument/codeAction", params)["result"].clone();
    assert_eq!(actions[0]["title"], "tandem: Open turn “write a `program`”");
    let command = actions[0]["command"].clone();
    let asked = client.ask(
        "workspace/executeCommand",
        json!({ "command": command["command"], "arguments": command["arguments"] }),
    );
    let shown = client.next("window/showDocument");
    client.respond(&shown, json!({ "success": true }));
    assert_eq!(client.answer(asked)["result"], Value::Null);
    let path = shown["params"]["uri"]
        .as_str()
        .unwrap()
        .strip_prefix("file://")
        .unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    assert!(
        text.starts_with("## You\n\nwrite a `program`\n\n## tandem\n"),
        "{text}"
    );
    assert_eq!(shown["params"]["selection"]["start"]["line"], 0);

    let (_server, mut client) = world.serve_editor();
    let removed = client.call("session/delete", json!({ "sessionId": id }));
    assert!(removed.get("error").is_none(), "{removed}");
    assert!(!std::path::Path::new(path).exists(), "its text goes, too");
}

#[test]
fn blame_lists_the_lines_and_their_turns() {
    let world = world();
    let (server, mut client) = world.serve_editor();
    let id = session(&mut client, &world);
    turn(&mut client, &id, "write a program");
    drop(server);
    let text = world.read("a.rs").replace("= 2;", "= 2 + 2;");
    world.write("a.rs", &format!("// mine, all mine\n{text}"));
    let none = " ".repeat(id.len() + 3);
    let blamed = world.run(&["blame", "a.rs"]);
    assert_eq!(
        (blamed.code, blamed.stdout.as_str()),
        (
            Some(0),
            &*format!(
                "{none}  1  // mine, all mine\n\
                 {id} 1   2  fn main() {{\n\
                 {id} 1   3      let first_number = 1;\n\
                 {id} 1*  4      let second_number = 2 + 2;\n\
                 {id} 1   5  }}\n\n\
                 {id} 1   write a program (Create a.rs, custom/scripted)\n\
                 * edited since\n"
            )
        ),
        "{}",
        blamed.stderr
    );
    let lines = world.run(&["blame", "--json", "a.rs"]).stdout;
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0], json!({ "line": 1, "text": "// mine, all mine" }));
    assert_eq!(lines[3]["origin"]["edited"], true);
    assert_eq!(lines[3]["origin"]["sessionId"], json!(id));
    let missing = world.run(&["blame", "none.rs"]);
    assert_eq!(missing.code, Some(1));
    assert!(
        missing.stderr.starts_with("tandem: reading none.rs: "),
        "{}",
        missing.stderr
    );
}
