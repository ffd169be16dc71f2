//! What version 0.1 left behind opens in this one: its journal, its before-images, its configuration. The samples were written by 0.1.0.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::driver::World;

const SESSION: &str = "1a201ae0f14-3f05-0";

/// Copies the samples of 0.1 to where the state is, for the workspace of `world`.
fn place_samples(world: &World) {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/samples/0.1");
    for folder in ["sessions", "checkpoints"] {
        for entry in fs::read_dir(samples.join(folder)).unwrap() {
            let entry = entry.unwrap();
            let text = fs::read_to_string(entry.path()).unwrap();
            let name = format!(
                ".home/state/{folder}/{}",
                entry.file_name().to_str().unwrap()
            );
            world.write(
                &name,
                &text.replace("${WS}", world.path().to_str().unwrap()),
            );
        }
    }
}

#[test]
fn conversations_of_0_1_are_listed_shown_continued_and_undone() {
    let world = World::new(json!([[{ "text": "It says hello." }]]));
    place_samples(&world);
    world.write("hello.txt", "hello\n");
    let mut client = world.client();
    let listed = client.call("session/list", json!({ "cwd": world.path() }))["result"].clone();
    assert_eq!(
        listed["sessions"][0]["title"], "write hello.txt",
        "{listed}"
    );
    let loaded = client.call(
        "session/load",
        json!({ "sessionId": SESSION, "cwd": world.path(), "mcpServers": [] }),
    );
    assert_eq!(
        loaded["result"]["modes"]["currentModeId"], "edit",
        "{loaded}"
    );
    assert_eq!(client.text(), "Writing.Done: hello.txt says hello.");

    let undone = client.call(
        "_tandem/review",
        json!({ "sessionId": SESSION, "action": "undo" }),
    );
    assert!(
        undone.get("error").is_none() && !world.path().join("hello.txt").exists(),
        "{undone}"
    );

    let id = client.prompt(SESSION, "what does it say?");
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    let request = world.rehearsal().requests().pop().unwrap();
    let roles: Vec<_> = request["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["role"].clone())
        .collect();
    assert_eq!(
        roles,
        ["system", "user", "assistant", "tool", "assistant", "user"],
        "{request}"
    );
}

#[test]
fn a_configuration_of_0_1_has_no_mistakes() {
    let world = World::new(json!([]));
    let config = fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/samples/0.1/config.toml"),
    )
    .unwrap();
    let environment = tandem::config::Environment::made_up(&world.path().join(".home"), &[]);
    let file = environment.config_file().unwrap();
    world.write(
        file.strip_prefix(world.path()).unwrap().to_str().unwrap(),
        &config,
    );
    let problems =
        tandem::config::Settings::load(&environment, &tandem::config::Sources::default()).problems;
    assert!(problems.is_empty(), "{problems:#?}");
}
