//! What comes along with a prompt: the instructions of `AGENTS.md`, and the files that are mentioned.

use serde_json::{Value, json};

use crate::driver::World;

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
