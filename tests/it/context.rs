//! What comes along with a prompt: the instructions of `AGENTS.md`, and the files that are mentioned.

use serde_json::{Value, json};

use crate::driver::{Client, World};

/// What the model gets with these words, sent twice.
fn asked(world: &World, words: &str) -> (String, Vec<Value>) {
    let mut client = world.client();
    let session = client.session(world);
    for words in [words, "and now?"] {
        let id = client.prompt(&session, words);
        assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    }
    let requests = world.rehearsal().requests();
    let messages = |request: &Value| request["messages"].as_array().unwrap().clone();
    let (first, second) = (messages(&requests[0]), messages(&requests[1]));
    assert_eq!(second[..first.len()], first, "the beginning of a request never changes");
    client.end();
    (first[1]["content"].as_str().unwrap().to_owned(), second)
}

fn world() -> World {
    World::new(json!([[{ "text": "one" }], [{ "text": "two" }]]))
}

#[test]
fn instructions_come_with_the_first_prompt_once() {
    let world = world();
    world.write("AGENTS.md", "Use tabs.\u{200b}\n");
    world.write(".home/config/AGENTS.md", "Speak plainly.\n");
    let (message, all) = asked(&world, "hello");
    assert!(message.contains("Speak plainly.") && message.contains("grant no permission"), "{message}");
    assert!(message.contains("Use tabs.\\u{200b}"), "what cannot be seen is written out: {message}");
    assert!(message.ends_with("hello"), "{message}");
    let all = Value::from(all).to_string();
    assert_eq!(all.matches("Use tabs.").count(), 1, "{all}");
}

#[test]
fn instructions_are_cut_where_they_are_too_long_and_never_come_from_elsewhere() {
    let world = world();
    let elsewhere = tempfile::tempdir().unwrap();
    let secret = elsewhere.path().join("secret");
    std::fs::write(&secret, "CANARY").unwrap();
    std::os::unix::fs::symlink(&secret, world.path().join("AGENTS.md")).unwrap();
    world.write(".home/config/AGENTS.md", &"Be brief. ".repeat(4000));
    let (message, _) = asked(&world, "hello");
    assert!(!message.contains("CANARY"), "{message}");
    assert!(message.contains("bytes left out") && message.len() < 34_000, "{}", message.len());
}

#[test]
fn mentioned_files_come_along_as_they_are_in_the_editor() {
    let world = world();
    world.write("src/a.rs", "saved\n");
    world.write(".env", "KEY=CANARY\n");
    let mut client = world.client();
    client.open(&world.uri("src/a.rs"), "typed\n");
    let session = client.session(&world);
    let id = client.prompt(&session, "compare @src/a.rs, @.env and @../../etc/passwd, me@example.com");
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    let request = world.rehearsal().requests()[0]["messages"][1]["content"].as_str().unwrap().to_owned();
    assert!(request.contains("From src/a.rs (as it is in the editor now):\n```\ntyped\n```"), "{request}");
    assert!(!request.contains("CANARY") && request.contains(".env may hold secrets"), "{request}");
    assert!(!request.contains("root:") && request.contains("outside the workspace"), "{request}");
    client.end();
}

/// The message the model gets with these words in a new session.
fn told(world: &World, client: &mut Client, words: &str) -> String {
    let session = client.session(world);
    let id = client.prompt(&session, words);
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    world.rehearsal().requests()[0]["messages"][1]["content"].as_str().unwrap().to_owned()
}

#[test]
fn lines_and_folders_come_along_as_they_are_mentioned() {
    let world = world();
    world.write("src/a.rs", "one\ntwo\nthree\nfour\n");
    world.write("src/deep/my notes.md", "hm\n");
    world.write(".ssh/config", "CANARY");
    let mut client = world.client();
    let message = told(
        &world,
        &mut client,
        "see @src/a.rs#L2-L3, @src/a.rs#L4 @src/a.rs#L9 @src/ @\"src/deep/my notes.md\" and @src/a.rs#L4 again, @.ssh/config",
    );
    assert!(
        message.contains("From src/a.rs, lines 2-3 (as it is in the editor now):\n```\ntwo\nthree\n```"),
        "{message}"
    );
    assert_eq!(message.matches("From src/a.rs, line 4 (").count(), 1, "{message}");
    assert!(message.contains("(src/a.rs has 4 lines; there is no line 9)"), "{message}");
    assert!(message.contains("What is in the folder src:\n```\n  a.rs\n  deep/\n    my notes.md\n```"), "{message}");
    assert!(message.contains("From src/deep/my notes.md (as"), "{message}");
    assert!(!message.contains("CANARY"), "{message}");
}

#[test]
fn what_the_editor_knows_comes_along_when_it_is_mentioned() {
    let world = world();
    world.write("a.rs", "one\ntwo\n");
    let can = json!({ "tandem.diagnostics": true });
    let mut client = world.client_with(json!({ "experimental": { "tandem": { "_meta": can } } }));
    client.open(&world.uri("a.rs"), "one\ntyped\n");
    let at = |line: u32| json!({ "line": line, "character": 0 });
    let selection = json!({ "start": at(1), "end": at(2) });
    client.notify("_tandem/didFocus", json!({ "textDocument": { "uri": world.uri("a.rs") }, "selection": selection }));
    let session = client.session(&world);
    let id = client.prompt(&session, "fix @diagnostics in @selection");
    let asked = client.next("_tandem/diagnostics");
    assert_eq!(asked["params"], json!({ "uris": [], "settled": false }));
    let problem = json!({ "range": { "start": at(1), "end": at(1) }, "severity": 1, "message": "``` no such word" });
    client.respond(&asked, json!({ "documents": [{ "uri": world.uri("a.rs"), "diagnostics": [problem] }] }));
    client.answer(id);
    let message = world.rehearsal().requests()[0]["messages"][1]["content"].as_str().unwrap().to_owned();
    let problems = "Diagnostics, as the editor shows them:\n````\na.rs:2: error: ``` no such word\n````";
    assert!(message.contains(problems), "{message}");
    assert!(message.contains("From a.rs, line 2 (as it is in the editor now):\n```\ntyped\n```"), "{message}");
}

#[test]
fn what_the_editor_does_not_tell_is_said() {
    let world = world();
    let mut client = world.client();
    let message = told(&world, &mut client, "fix @diagnostics in @selection");
    assert!(message.contains("(the editor does not tell of its diagnostics)"), "{message}");
    assert!(message.contains("(the editor does not tell what is selected)"), "{message}");
}
