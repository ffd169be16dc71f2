//! Whatever a person settled, undid or redid persists across a restart.

use super::*;

pub(super) fn restarted(mut client: Client, world: &World, session: &str) -> Client {
    client.end();
    let mut client = world.client();
    client.call(
        "session/load",
        json!({ "sessionId": session, "cwd": world.path(), "mcpServers": [] }),
    );
    client
}

#[test]
fn the_model_learns_of_a_rejection_after_a_restart_and_once() {
    let world = world(&[write("a.rs", "a\n")]);
    let mut client = world.client();
    let session = session(&mut client, &world);
    turn(&mut client, &session);
    review(
        &mut client,
        &session,
        "reject",
        json!({ "turn": 1, "path": world.path().join("a.rs") }),
    );
    let rejected = "the user rejected these changes of yours: a.rs";
    let mut client = restarted(client, &world, &session);
    turn(&mut client, &session);
    assert!(last_words(&world).contains(rejected));
    let mut client = restarted(client, &world, &session);
    turn(&mut client, &session);
    assert!(!last_words(&world).contains(rejected));
}

#[test]
fn settled_hunks_stay_settled_after_a_restart() {
    let numbers = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
    let edits = edit(
        "a.rs",
        &[("1\n", "one\n"), ("5\n", "five\n"), ("9\n", "nine\n")],
    );
    let world = world(&[edits, write("b.rs", "b\n"), write("c.rs", "c\n")]);
    world.write("a.rs", numbers);
    let mut client = world.client();
    let session = session(&mut client, &world);
    for _ in 0..3 {
        turn(&mut client, &session);
    }
    let path = |name: &str| world.path().join(name);
    review(
        &mut client,
        &session,
        "keep",
        json!({ "turn": 1, "path": path("a.rs"), "hunk": 1 }),
    );
    review(
        &mut client,
        &session,
        "reject",
        json!({ "turn": 1, "path": path("a.rs"), "hunk": 9 }),
    );
    review(
        &mut client,
        &session,
        "keep",
        json!({ "turn": 2, "path": path("b.rs") }),
    );
    review(&mut client, &session, "undo", json!({ "turn": 3 }));
    assert!(!path("c.rs").exists());

    let mut client = restarted(client, &world, &session);
    let list = review(&mut client, &session, "list", json!({}));
    assert_eq!(
        list["result"]["turns"].as_array().unwrap().len(),
        1,
        "{list}"
    );
    assert_eq!(
        hunks(&list, 0)
            .iter()
            .map(|(id, _)| *id)
            .collect::<Vec<_>>(),
        [5]
    );
    let restored = undo(&mut client, &session);
    assert_eq!(restored["result"]["message"], "restored changes: a.rs");
    let undone = undo(&mut client, &session);
    assert_eq!(undone["result"]["message"], "undid “change it”: a.rs");
    assert_eq!(world.read("a.rs"), numbers.replace("1\n", "one\n"));
    assert_eq!(
        (path("b.rs").exists(), path("c.rs").exists()),
        (true, false)
    );
    let redone = redo(&mut client, &session);
    assert_eq!(redone["result"]["message"], "redid “change it”: a.rs");

    let mut client = restarted(client, &world, &session);
    undo(&mut client, &session);
    assert_eq!(
        world.read("a.rs"),
        numbers.replace("1\n", "one\n"),
        "what was redone can be undone"
    );
    assert_eq!(
        undo(&mut client, &session)["error"]["message"],
        "there is nothing to undo in this session"
    );
}

#[test]
fn rejections_can_be_undone_after_a_restart() {
    let world = world(&[
        edit("a.rs", &[("a\n", "A\n")]),
        write("new/b.rs", "b\n"),
        write("c.rs", "c\n"),
        write("d.rs", "d\n"),
    ]);
    world.write("a.rs", "a\n");
    let mut client = world.client();
    let session = session(&mut client, &world);
    let is_there = |path: &str| world.path().join(path).exists();
    turn(&mut client, &session);
    turn(&mut client, &session);
    let path = world.path().join("new/b.rs");
    review(&mut client, &session, "reject", json!({ "path": path }));
    review(&mut client, &session, "reject", json!({}));
    assert!(world.read("a.rs") == "a\n" && !is_there("new/b.rs"));

    let mut client = restarted(client, &world, &session);
    turn(&mut client, &session);
    assert_eq!(
        undo(&mut client, &session)["result"]["message"],
        "undid “change it”: c.rs",
        "later changes are undone first"
    );
    assert_eq!(
        undo(&mut client, &session)["result"]["message"],
        "restored changes: a.rs"
    );
    assert!(world.read("a.rs") == "A\n" && !is_there("new/b.rs"));

    let mut client = restarted(client, &world, &session);
    assert_eq!(
        undo(&mut client, &session)["result"]["message"],
        "restored changes: new/b.rs",
        "what was restored is no longer rejected"
    );
    assert_eq!(world.read("new/b.rs"), "b\n");
    review(&mut client, &session, "reject", json!({}));
    turn(&mut client, &session);
    review(&mut client, &session, "keep", json!({}));
    let mut client = restarted(client, &world, &session);
    assert_eq!(
        undo(&mut client, &session)["error"]["message"],
        "there is nothing to undo in this session",
        "what was kept is settled, and what was rejected before"
    );
    assert!(world.read("a.rs") == "a\n" && is_there("d.rs"));
}

#[test]
fn what_a_restore_reverted_can_be_restored_after_a_restart() {
    let world = world(&[write("a.rs", "a\n"), write("b.rs", "b\n")]);
    let mut client = world.client();
    let session = session(&mut client, &world);
    turn(&mut client, &session);
    review(&mut client, &session, "restore", json!({ "turn": 1 }));
    turn(&mut client, &session);
    let is_there = |path: &str| world.path().join(path).exists();
    assert!(!is_there("a.rs") && is_there("b.rs"));

    let mut client = restarted(client, &world, &session);
    undo(&mut client, &session);
    assert!(!is_there("a.rs") && !is_there("b.rs"));
    assert_eq!(
        undo(&mut client, &session)["result"]["message"],
        "restored changes: a.rs"
    );
    assert_eq!(world.read("a.rs"), "a\n");
}

#[test]
fn what_was_undone_can_be_redone_after_a_restart_until_a_turn_changes_something() {
    let world = world(&[
        write("a.rs", "a\n"),
        write("b.rs", "b\n"),
        write("c.rs", "c\n"),
    ]);
    let mut client = world.client();
    let session = session(&mut client, &world);
    turn(&mut client, &session);
    turn(&mut client, &session);
    undo(&mut client, &session);

    let mut client = restarted(client, &world, &session);
    assert_eq!(
        redo(&mut client, &session)["result"]["message"],
        "redid “change it”: b.rs"
    );
    assert_eq!(world.read("b.rs"), "b\n");
    undo(&mut client, &session);
    turn(&mut client, &session);

    let mut client = restarted(client, &world, &session);
    assert_eq!(
        redo(&mut client, &session)["error"]["message"],
        "there is nothing to redo in this session"
    );
    review(&mut client, &session, "restore", json!({ "turn": 1 }));
    let is_there = |path: &str| world.path().join(path).exists();
    assert!(!is_there("a.rs") && !is_there("c.rs"));

    let mut client = restarted(client, &world, &session);
    assert_eq!(
        undo(&mut client, &session)["result"]["message"],
        "restored changes: a.rs, c.rs"
    );
    assert!(is_there("a.rs") && is_there("c.rs"));
}

/// It may be killed after it removed a file, before it could record that.
#[test]
fn files_that_were_removed_and_moved_when_tandem_was_killed_are_there_again_after_an_undo() {
    let patch = "*** Begin Patch\n*** Delete File: a.rs\n*** Update File: b.rs\n*** Move to: new/c.rs\n\
                 *** Delete File: empty.rs\n*** Add File: blank.rs\n*** End Patch\n";
    let world = world(&[call("apply_patch", json!({ "patch": patch }))]);
    let old = [("a.rs", "\u{feff}a\r\n"), ("b.rs", "b\n"), ("empty.rs", "")];
    for (path, text) in old {
        world.write(path, text);
    }
    let mut client = world.client();
    let session = session(&mut client, &world);
    turn(&mut client, &session);
    let path = |name: &str| world.path().join(name);
    assert!(path("new/c.rs").exists() && path("blank.rs").exists() && !path("a.rs").exists());
    client.end();
    let journal = world.home().join(format!("state/sessions/{session}.jsonl"));
    let text = std::fs::read_to_string(&journal).unwrap();
    let announced = text.find(r#"{"type":"unconfirmed""#).expect(&text);
    let end = announced + text.split_at(announced).1.find('\n').unwrap() + 1;
    std::fs::write(&journal, text.split_at(end).0).unwrap();

    let mut client = world.client();
    client.call(
        "session/load",
        json!({ "sessionId": session, "cwd": world.path(), "mcpServers": [] }),
    );
    let undone = undo(&mut client, &session);
    for (path, text) in old {
        assert_eq!(world.read(path), text, "{undone}");
    }
    assert!(
        !path("new").exists() && !path("blank.rs").exists(),
        "{undone}"
    );
}

#[test]
fn what_was_changed_today_can_be_undone_whatever_else_was_stored_since() {
    let world = world(&[edit("a.rs", &[("one", "two")]), write("b.rs", "b\n")]);
    world.write("a.rs", "one\n");
    let mut client = world.client();
    let first = session(&mut client, &world);
    turn(&mut client, &first);
    // Another session's, with holes.
    let large = world.path().join(".home/state/checkpoints/large");
    let large = std::fs::File::create(large).unwrap();
    large.set_len(1 << 40).unwrap();
    let mut client = restarted(client, &world, &first);
    let other = session(&mut client, &world);
    turn(&mut client, &other);
    undo(&mut client, &first);
    assert_eq!(world.read("a.rs"), "one\n");
}
