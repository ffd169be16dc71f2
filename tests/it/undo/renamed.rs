//! Pending changes follow a file that the editor renames, moves, or moves with its folder.

use super::*;

fn rename(client: &mut Client, world: &World, from: &str, to: &str) {
    let (from_path, to_path) = (world.path().join(from), world.path().join(to));
    std::fs::create_dir_all(to_path.parent().unwrap()).unwrap();
    std::fs::rename(from_path, to_path).unwrap();
    client.notify(
        "workspace/didRenameFiles",
        json!({ "files": [{ "oldUri": world.uri(from), "newUri": world.uri(to) }] }),
    );
}

/// The names of the files with changes, by turn.
fn listed(client: &mut Client, world: &World, session: &str) -> Vec<Vec<String>> {
    let list = review(client, session, "list", json!({}));
    let name = |file: &Value| {
        let path = Path::new(file["path"].as_str().unwrap());
        let below = path.strip_prefix(world.path()).unwrap();
        below.to_str().unwrap().replace('\\', "/")
    };
    let turns = list["result"]["turns"].as_array().unwrap().iter();
    turns
        .map(|turn| turn["files"].as_array().unwrap().iter().map(name).collect())
        .collect()
}

/// Two turns: the first edits a file and creates another in a new folder; the second edits the first file again.
fn two_turns() -> (World, Client, String) {
    let both = json!([
        { "call": { "id": "c1", "name": "edit_file",
            "arguments": { "path": "a.rs", "edits": [{ "old_text": "one", "new_text": "ONE" }] } } },
        { "call": { "id": "c2", "name": "write_file",
            "arguments": { "path": "new/b.rs", "content": "b\n" } } },
    ]);
    let again = json!([edit("a.rs", &[("three", "THREE")])]);
    let done = json!([{ "text": "Done." }]);
    let turns = json!([both, done, again, done, done, done]);
    let world = World::new(turns);
    world.write("a.rs", "one\ntwo\nthree\n");
    let mut client = world.client();
    let session = session(&mut client, &world);
    turn(&mut client, &session);
    turn(&mut client, &session);
    (world, client, session)
}

#[test]
fn changes_follow_a_file_and_a_folder_that_are_renamed() {
    let (world, mut client, session) = two_turns();
    rename(&mut client, &world, "a.rs", "lib/c.rs");
    rename(&mut client, &world, "new", "old");
    let seen = listed(&mut client, &world, &session);
    assert_eq!(seen, [vec!["lib/c.rs", "old/b.rs"], vec!["lib/c.rs"]]);
    turn(&mut client, &session);
    let told = last_words(&world);
    let renamed = "the user renamed a.rs to lib/c.rs";
    assert!(told.contains(renamed), "{told}");

    let mut client = restart::restarted(client, &world, &session);
    assert_eq!(listed(&mut client, &world, &session), seen);
    let path = world.path().join("lib/c.rs");
    let kept = json!({ "turn": 2, "path": path });
    review(&mut client, &session, "keep", kept);
    let undone = undo(&mut client, &session);
    assert_eq!(
        undone["result"]["message"],
        "undid “change it”: lib/c.rs, old/b.rs"
    );
    assert_eq!(world.read("lib/c.rs"), "one\ntwo\nTHREE\n");
    assert!(!world.path().join("old").exists());
}

#[test]
fn what_was_undone_or_rejected_follows_too() {
    let (world, mut client, session) = two_turns();
    undo(&mut client, &session);
    rename(&mut client, &world, "a.rs", "c.rs");
    let redone = redo(&mut client, &session);
    assert_eq!(redone["result"]["message"], "redid “change it”: c.rs");
    let all = "ONE\ntwo\nTHREE\n";
    assert_eq!(world.read("c.rs"), all);
    let path = world.path().join("c.rs");
    let hunk = json!({ "turn": 1, "path": path, "hunk": 1 });
    review(&mut client, &session, "reject", hunk);
    review(&mut client, &session, "undo", json!({ "turn": 2 }));
    assert_eq!(world.read("c.rs"), "one\ntwo\nthree\n");
    // Only one of the two changes this file, so their order must survive the restart.
    rename(&mut client, &world, "c.rs", "d.rs");
    assert_eq!(listed(&mut client, &world, &session), [vec!["new/b.rs"]]);

    let mut client = restart::restarted(client, &world, &session);
    let redone = redo(&mut client, &session);
    assert_eq!(redone["result"]["message"], "redid “change it”: d.rs");
    let restored = undo(&mut client, &session);
    let message = "restored changes: d.rs";
    assert_eq!(restored["result"]["message"], message);
    assert_eq!(world.read("d.rs"), all);
}

#[test]
fn a_file_replaced_by_another_or_moved_out_of_the_workspace_counts_as_removed() {
    let (world, mut client, session) = two_turns();
    rename(&mut client, &world, "a.rs", "new/b.rs");
    assert_eq!(listed(&mut client, &world, &session), [vec!["new/b.rs"]]);
    let nothing = |client: &mut Client, turn: u64, why: &str| {
        let undone = review(client, &session, "undo", json!({ "turn": turn }));
        assert_eq!(undone["error"]["message"], why);
    };
    let removed =
        "nothing was undone: a.rs (it has been removed since), new/b.rs:1-3 (changed since)";
    nothing(&mut client, 1, removed);
    rename(&mut client, &world, "new/b.rs", "../elsewhere.rs");
    let removed = "nothing was undone: new/b.rs (it has been removed since)";
    nothing(&mut client, 2, removed);
}

#[test]
fn an_edit_that_is_made_after_its_call_has_failed_follows_too() {
    for restarts in [false, true] {
        let world = world(&[edit("a.rs", &[("one", "ONE")])]);
        world.write("a.rs", "one\n");
        let mut client = world.client();
        let session = session(&mut client, &world);
        client.open(&world.uri("a.rs"), "one\n");
        let id = client.prompt(&session, "change it");
        let request = client.next("workspace/applyEdit");
        let busy = json!({ "code": -32603, "message": "busy" });
        client.send(&json!({ "id": request["id"], "error": busy }));
        client.answer(id);
        let closed = json!({ "textDocument": { "uri": world.uri("a.rs") } });
        client.notify("textDocument/didClose", closed);
        world.write("a.rs", "ONE\n");
        rename(&mut client, &world, "a.rs", "c.rs");
        listed(&mut client, &world, &session);
        if restarts {
            client = restart::restarted(client, &world, &session);
        }
        undo(&mut client, &session);
        assert_eq!(world.read("c.rs"), "one\n", "restarts: {restarts}");
    }
}
