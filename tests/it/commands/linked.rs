//! A workspace opened through a symbolic link, like `/tmp` on macOS: a file has two names and one history.

use super::*;
use crate::git::git;
use crate::offered;

/// A world whose folder is opened as `link`.
struct Linked {
    stage: Stage,
    link: PathBuf,
}

impl Linked {
    fn new(calls: &[Value]) -> Self {
        let stage = Stage::new(Level::Best, calls);
        let link = stage.home.path().canonicalize().unwrap().join("link");
        std::os::unix::fs::symlink(stage.world.path(), &link).unwrap();
        Self { stage, link }
    }

    fn client(&self) -> Client {
        let mut client = self
            .stage
            .world
            .stranger_in(Transport::Lsp, self.stage.environment());
        let uri = format!("file://{}", self.link.display());
        client.shake_hands(json!({ "processId": null, "rootUri": uri,
            "capabilities": offered::with(&json!({ "experimental": { "tandem": {} } })), "workspaceFolders": [{ "uri": uri, "name": "w" }] }));
        client
    }

    /// A session in the folder, under this name, that has made its calls.
    fn session(&self, client: &mut Client) -> String {
        let answer = client.call("session/new", json!({ "cwd": self.link, "mcpServers": [] }));
        let session = answer["result"]["sessionId"].as_str().unwrap().to_owned();
        client.call(
            "session/set_mode",
            json!({ "sessionId": session, "modeId": "auto" }),
        );
        session
    }
}

fn edit(name: &str, old: &str, new: &str) -> Value {
    json!({ "tool": "edit_file", "path": name, "edits": [{ "old_text": old, "new_text": new }] })
}

fn review(client: &mut Client, session: &str, action: &str, more: Value) -> Value {
    let mut params = json!({ "sessionId": session, "action": action });
    params
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    client.call("_tandem/review", params)
}

/// The files under review by name, with the number of their hunks.
fn files(answer: &Value) -> Vec<(PathBuf, usize)> {
    let turns = answer["result"]["turns"]
        .as_array()
        .unwrap_or_else(|| panic!("{answer}"));
    let files = turns
        .iter()
        .flat_map(|turn| turn["files"].as_array().unwrap());
    let hunks = |file: &Value| file["hunks"].as_array().unwrap().len();
    let mut files: Vec<_> = files
        .map(|file| (file["path"].as_str().unwrap().into(), hunks(file)))
        .collect();
    files.sort();
    files
}

const BEFORE: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
const AFTER: &str = "one\n2\n3\n4\nfive\n6\n7\n8\nnine\n";

#[test]
fn files_are_protected_under_both_names() {
    let line = "cd \"$(cat link)\"; echo x > made; echo obey > AGENTS.md; echo evil > .git/hooks/pre-commit; echo {} > .vscode/x
python3 -c \"import socket; s = socket.socket(socket.AF_UNIX); s.connect('door'); print('THROUGH')\"";
    let linked = Linked::new(&[run(line)]);
    let world = &linked.stage.world;
    world.write("link", &linked.link.display().to_string());
    world.write("AGENTS.md", "be good\n");
    world.write(".vscode/settings.json", "{}");
    git(&world.path(), &["init", "-q"]);
    let _door = std::os::unix::net::UnixListener::bind(world.path().join("door")).unwrap();
    let mut client = linked.client();
    let session = linked.session(&mut client);
    let prompt = client.prompt(&session, "go");
    finish_prompt(&mut client, prompt);
    let told = linked.stage.told();
    assert_eq!(
        (world.read("made"), world.read("AGENTS.md")),
        ("x\n".into(), "be good\n".into()),
        "{told:?}"
    );
    for name in [".git/hooks/pre-commit", ".vscode/x", ".vscode/x.held"] {
        assert!(!world.path().join(name).exists(), "{name}: {told:?}");
    }
    assert!(!told[0].contains("THROUGH"), "{told:?}");
}

#[test]
fn a_tool_and_a_command_changing_one_file_are_one_change() {
    let calls = [
        edit("a", "1\n", "one\n"),
        run("sed -i s/5/five/ a"),
        edit("a", "9\n", "nine\n"),
    ];
    let linked = Linked::new(&calls);
    let world = &linked.stage.world;
    world.write("a", BEFORE);
    let mut client = linked.client();
    let session = linked.session(&mut client);
    let prompt = client.prompt(&session, "go");
    assert_eq!(finish_prompt(&mut client, prompt), "end_turn");
    assert_eq!(world.read("a"), AFTER);
    let (named, real) = (linked.link.join("a"), world.path().join("a"));
    assert_eq!(
        files(&review(&mut client, &session, "list", json!({}))),
        [(named.clone(), 3)]
    );

    let undone = review(&mut client, &session, "undo", json!({}));
    assert_eq!(
        (world.read("a").as_str(), &undone["result"]["message"]),
        (BEFORE, &json!("undid “go”: a"))
    );
    let redone = review(&mut client, &session, "redo", json!({}));
    assert_eq!(
        (world.read("a").as_str(), &redone["result"]["message"]),
        (AFTER, &json!("redid “go”: a"))
    );

    review(
        &mut client,
        &session,
        "reject",
        json!({ "turn": 1, "path": named, "hunk": 9 }),
    );
    review(
        &mut client,
        &session,
        "reject",
        json!({ "turn": 1, "path": real, "hunk": 5 }),
    );
    assert_eq!(world.read("a"), BEFORE.replace("1\n", "one\n"));
    // The rejections are restored first, in reverse order.
    let rejected = AFTER.replace("nine", "9");
    for (text, hunks) in [(rejected.as_str(), 2), (AFTER, 3), (BEFORE, 0)] {
        let undone = review(&mut client, &session, "undo", json!({}));
        let files = files(&undone);
        let left = files.first().map_or(0, |(_, hunks)| *hunks);
        assert_eq!((world.read("a").as_str(), left), (text, hunks), "{undone}");
    }
}

#[test]
fn leftovers_are_named_by_the_path_the_user_opened() {
    let linked = Linked::new(&[edit("a", "1\n", "one\n"), run("sed -i s/5/five/ a")]);
    let world = &linked.stage.world;
    world.write("a", BEFORE);
    let mut client = linked.client();
    let session = linked.session(&mut client);
    let prompt = client.prompt(&session, "go");
    assert_eq!(finish_prompt(&mut client, prompt), "end_turn");
    world.write("a", &world.read("a").replace("five", "mine"));
    let undone = review(&mut client, &session, "undo", json!({}));
    assert_eq!(world.read("a"), BEFORE.replace('5', "mine"), "{undone}");
    let left = undone["result"]["left"].as_array().unwrap();
    assert_eq!(
        left.iter().map(|left| &left["path"]).collect::<Vec<_>>(),
        [&json!(linked.link.join("a"))]
    );
}

#[test]
fn undo_works_by_either_name_of_the_folder_after_a_restart() {
    for undo_in_real in [false, true] {
        let linked = Linked::new(&[
            edit("a", "1\n", "one\n"),
            run("sed -i s/5/five/ a"),
            run("rm b"),
        ]);
        let world = &linked.stage.world;
        world.write("a", BEFORE);
        world.write("b", "b\n");
        let mut client = linked.client();
        let session = linked.session(&mut client);
        let prompt = client.prompt(&session, "go");
        assert_eq!(finish_prompt(&mut client, prompt), "end_turn");
        let rewritten = world.read("a");
        review(
            &mut client,
            &session,
            "reject",
            json!({ "path": linked.link.join("a"), "hunk": 5 }),
        );
        client.end();
        let (mut client, cwd) = if undo_in_real {
            (linked.stage.client(), world.path())
        } else {
            (linked.client(), linked.link.clone())
        };
        client.call(
            "session/load",
            json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] }),
        );
        let listed = review(&mut client, &session, "list", json!({}));
        assert_eq!(
            files(&listed),
            [(cwd.join("a"), 1), (cwd.join("b"), 1)],
            "{undo_in_real}"
        );
        // The last rejection is restored first.
        let restored = review(&mut client, &session, "undo", json!({}));
        assert_eq!(world.read("a"), rewritten, "{restored}");
        let undone = review(&mut client, &session, "undo", json!({}));
        assert_eq!(
            (world.read("a").as_str(), world.read("b").as_str()),
            (BEFORE, "b\n"),
            "{undone}"
        );
    }
}

#[test]
fn documents_are_named_as_in_the_editor() {
    for is_real in [false, true] {
        let linked = Linked::new(&[edit("a", "1\n", "one\n"), run("sed -i s/5/five/ a")]);
        let world = &linked.stage.world;
        world.write("a", BEFORE);
        let path = if is_real {
            world.path().join("a")
        } else {
            linked.link.join("a")
        };
        let uri = format!("file://{}", path.display());
        let mut client = linked.client();
        client.open(&uri, BEFORE);
        let session = linked.session(&mut client);
        let prompt = client.prompt(&session, "go");
        let first = BEFORE.replace("1\n", "one\n");
        show(&mut client, &uri, &first);
        // What the command writes to unsaved text arrives as an edit, too.
        show(&mut client, &uri, &first.replace('5', "five"));
        assert_eq!(finish_prompt(&mut client, prompt), "end_turn", "{is_real}");
        let listed = review(&mut client, &session, "list", json!({}));
        assert_eq!(files(&listed), [(path.clone(), 2)]);
        let params = json!({ "sessionId": session, "action": "reject", "path": path, "hunk": 5 });
        let rejected = client.ask("_tandem/review", params);
        show(&mut client, &uri, &first);
        assert!(client.answer(rejected).get("error").is_none());
        // The rejected hunk is restored first.
        for text in [&*first.replace('5', "five"), BEFORE] {
            let undone = client.ask(
                "_tandem/review",
                json!({ "sessionId": session, "action": "undo" }),
            );
            show(&mut client, &uri, text);
            assert_eq!(client.answer(undone)["result"]["left"], json!([]));
        }
        assert_eq!(world.read("a"), BEFORE);
    }
}

/// Acts as the editor for one edit of a document, whose text is this afterwards.
fn show(client: &mut Client, uri: &str, text: &str) {
    let request = client.next("workspace/applyEdit");
    let document = &request["params"]["edit"]["documentChanges"][0]["textDocument"];
    assert_eq!(document["uri"], uri);
    let document = json!({ "uri": uri, "version": document["version"].as_i64().unwrap() + 1 });
    client.notify(
        "textDocument/didChange",
        json!({ "textDocument": document, "contentChanges": [{ "text": text }] }),
    );
    client.respond(&request, json!({ "applied": true }));
}
