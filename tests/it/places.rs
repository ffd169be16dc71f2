//! Machines that lack something: a home, a writable place, plain names. tandem reports what is missing and works as far as it can.

use serde_json::json;

use crate::driver::World;
use crate::program::finish;

/// The variables that name these places.
const NAMED: [&str; 2] = ["TANDEM_CONFIG", "TANDEM_STATE_DIR"];

#[test]
fn a_read_only_home_disables_storage_only() {
    let world = World::new(json!([[{ "text": "Hello." }]]));
    let without_places = |arguments: &[&str]| {
        let mut command = world.command(arguments);
        NAMED
            .iter()
            .fold(&mut command, |command, name| command.env_remove(name))
            .env("HOME", "/dev/null");
        finish(&mut command)
    };
    let answered = without_places(&["run", "hi"]);
    assert_eq!(
        (answered.code, answered.stdout.as_str()),
        (Some(0), "Hello.\n"),
        "{}",
        answered.stderr
    );
    assert!(
        answered.stderr.contains("/dev/null"),
        "what is not kept is said: {}",
        answered.stderr
    );
    let checked = without_places(&["doctor"]);
    assert!(
        checked
            .stdout
            .contains("set TANDEM_STATE_DIR to a writable directory"),
        "{}",
        checked.stdout
    );
    let refused = without_places(&["init", "--editor", "helix", "--write"]);
    assert!(
        refused.code == Some(1) && refused.stderr.contains("/dev/null/.config/helix"),
        "{}",
        refused.stderr
    );
}

#[test]
fn prompts_work_without_a_home() {
    let world = World::new(json!([[{ "text": "Hello." }]]));
    let output = finish(world.command(&["run", "hi"]).env_remove("HOME"));
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (Some(0), "Hello.\n"),
        "{}",
        output.stderr
    );
}

#[test]
fn unusual_folder_names_work() {
    let folder = "с пробелами и \u{fc}ml\u{e4}uten/漢字 'quoted' $HOME";
    let edit = json!({ "path": "a file.txt", "edits": [{ "old_text": "one", "new_text": "two" }] });
    let world = World::new(json!([
        [
            { "call": { "id": "c1", "name": "edit_file", "arguments": edit } },
            { "call": { "id": "c2", "name": "grep", "arguments": { "pattern": "two|one" } } },
            { "call": { "id": "c3", "name": "run_command", "arguments": { "command": "pwd && cat 'a file.txt'" } } },
        ],
        [{ "text": "Done." }],
    ]));
    world.write(&format!("{folder}/a file.txt"), "one\n");
    let place = world.path().join(folder);
    let output = finish(
        world
            .command(&["run", "--mode", "auto", "do it"])
            .current_dir(&place),
    );
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert_eq!(
        std::fs::read_to_string(place.join("a file.txt")).unwrap(),
        "two\n"
    );
    let request = world.rehearsal().requests().pop().unwrap();
    let messages = request["messages"].as_array().unwrap();
    let results: Vec<_> = messages
        .iter()
        .filter(|message| message["role"] == "tool")
        .collect();
    let command = results[2]["content"].as_str().unwrap();
    assert!(
        command.contains(folder) && command.contains("two\n"),
        "{command}"
    );
}

#[test]
fn a_missing_temporary_folder_is_named() {
    let world = World::new(json!([]));
    let output = finish(world.command(&["demo"]).env("TMPDIR", "/nowhere"));
    assert!(
        output.code == Some(1) && output.stderr.contains("/nowhere"),
        "{}",
        output.stderr
    );
}
