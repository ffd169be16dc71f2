//! Undoing and redoing the changes of turns: as a whole, by file and by hunk, and never over text typed since.

#[cfg(target_os = "linux")]
mod histories;
mod renamed;
mod restart;

use std::path::Path;

use serde_json::{Value, json};

use crate::driver::{Client, World};
use crate::plain::edit_until;

fn call(name: &str, arguments: Value) -> Value {
    json!({ "call": { "id": "c1", "name": name, "arguments": arguments } })
}

fn edit(path: &str, replacements: &[(&str, &str)]) -> Value {
    let edits: Vec<_> = replacements
        .iter()
        .map(|(old, new)| json!({ "old_text": old, "new_text": new }))
        .collect();
    call("edit_file", json!({ "path": path, "edits": edits }))
}

fn write(path: &str, content: &str) -> Value {
    call("write_file", json!({ "path": path, "content": content }))
}

/// A world whose model makes each of these calls in a turn of its own, then says only "Done.".
fn world(calls: &[Value]) -> World {
    let done = json!([{ "text": "Done." }]);
    let turns = calls.iter().flat_map(|call| [json!([call]), done.clone()]);
    World::new(turns.chain([done.clone(), done.clone()]).collect())
}

/// A session that edits without asking.
fn session(client: &mut Client, world: &World) -> String {
    let session = client.session(world);
    client.call(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": "edit" }),
    );
    session
}

fn turn(client: &mut Client, session: &str) {
    ask(client, session, "change it");
}

fn ask(client: &mut Client, session: &str, prompt: &str) {
    let id = client.prompt(session, prompt);
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
}

fn review(client: &mut Client, session: &str, action: &str, more: Value) -> Value {
    let id = ask_review(client, session, action, more);
    client.answer(id)
}

fn ask_review(client: &mut Client, session: &str, action: &str, more: Value) -> i64 {
    let mut params = json!({ "sessionId": session, "action": action });
    params
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    client.ask("_tandem/review", params)
}

fn undo(client: &mut Client, session: &str) -> Value {
    review(client, session, "undo", json!({}))
}

fn redo(client: &mut Client, session: &str) -> Value {
    review(client, session, "redo", json!({}))
}

/// Changes that were left: the file's name, the first line (0: the whole file) and the reason.
fn left<'a>(answer: &'a Value) -> Vec<(&'a str, u64, &'a str)> {
    let one = |left: &'a Value| {
        let name = left["path"].as_str().unwrap().rsplit('/').next().unwrap();
        (
            name,
            left["lines"]["start"].as_u64().unwrap_or(0),
            left["reason"].as_str().unwrap(),
        )
    };
    answer["result"]["left"]
        .as_array()
        .into_iter()
        .flatten()
        .map(one)
        .collect()
}

/// Acts as the editor for one edit: the change first, then the response.
fn apply(client: &mut Client, uri: &str, text: &str) -> Value {
    let request = client.next("workspace/applyEdit");
    let change = &request["params"]["edit"]["documentChanges"][0];
    assert_eq!(change["textDocument"]["uri"], uri);
    let version = change["textDocument"]["version"].as_i64().unwrap() + 1;
    change_document(client, uri, version, text);
    client.respond(&request, json!({ "applied": true }));
    change.clone()
}

fn change_document(client: &mut Client, uri: &str, version: i64, text: &str) {
    let document = json!({ "uri": uri, "version": version });
    client.notify(
        "textDocument/didChange",
        json!({ "textDocument": document, "contentChanges": [{ "text": text }] }),
    );
}

/// The person's last message to the model.
fn last_words(world: &World) -> String {
    world.rehearsal().requests().last().unwrap()["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .to_string()
}

/// The IDs and diffs of the reviewable hunks in a turn's first file.
fn hunks(answer: &Value, turn: usize) -> Vec<(u64, &str)> {
    let hunks = answer["result"]["turns"][turn]["files"][0]["hunks"]
        .as_array()
        .unwrap();
    hunks
        .iter()
        .map(|hunk| (hunk["id"].as_u64().unwrap(), hunk["diff"].as_str().unwrap()))
        .collect()
}

#[test]
fn undo_restores_closed_and_created_files_and_tells_the_model() {
    let world = world(&[edit("a.rs", &[("one", "two")]), write("new/b.rs", "b\n")]);
    world.write("a.rs", "one\r\nmore");
    let mut client = world.client();
    let session = session(&mut client, &world);
    turn(&mut client, &session);
    assert_eq!(world.read("a.rs"), "two\r\nmore");
    let answer = undo(&mut client, &session);
    assert_eq!(world.read("a.rs"), "one\r\nmore");
    assert_eq!(answer["result"]["message"], "undid “change it”: a.rs");
    assert_eq!(answer["result"]["turns"], json!([]));

    turn(&mut client, &session);
    let told = world.rehearsal().requests()[2]["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .to_string();
    assert!(
        told.contains("(the user undid these changes of yours: a.rs)"),
        "{told}"
    );
    assert_eq!(world.read("new/b.rs"), "b\n");
    undo(&mut client, &session);
    assert!(!world.path().join("new/b.rs").exists());
    assert_eq!(world.read("a.rs"), "one\r\nmore", "only the last turn");
}

#[test]
fn undo_restores_an_open_buffer_through_the_editor() {
    let world = world(&[edit("a.rs", &[("let x = 1;", "let x = 2;")])]);
    world.write("a.rs", "// on disk\n");
    let mut client = world.client();
    let uri = world.uri("a.rs");
    client.open(&uri, "// typed\nlet x = 1;\n");
    let session = session(&mut client, &world);
    let prompt = client.prompt(&session, "change it");
    apply(&mut client, &uri, "// typed\nlet x = 2;\n");
    client.answer(prompt);
    let id = ask_review(&mut client, &session, "undo", json!({}));
    let change = apply(&mut client, &uri, "// typed\nlet x = 1;\n");
    assert_eq!(change["textDocument"]["version"], 2);
    assert_eq!(change["edits"][0]["newText"], "1", "the smallest hunk");
    assert!(
        client.answer(id)["result"]["message"]
            .as_str()
            .unwrap()
            .starts_with("undid “change it”: a.rs")
    );
    assert_eq!(
        world.read("a.rs"),
        "// on disk\n",
        "only the person saves to disk"
    );
}

#[test]
fn undone_turns_are_redone_in_reverse_order() {
    let world = world(&[edit("a.rs", &[("one", "two")]), write("b.rs", "b\n")]);
    world.write("a.rs", "one\n");
    let mut client = world.client();
    let session = session(&mut client, &world);
    ask(
        &mut client,
        &session,
        "\nChange a, in a way that takes more than forty characters to say\nplease",
    );
    ask(&mut client, &session, "change b");
    assert_eq!(
        redo(&mut client, &session)["error"]["message"],
        "there is nothing to redo in this session"
    );
    undo(&mut client, &session);
    assert!(!world.path().join("b.rs").exists());
    assert_eq!(
        undo(&mut client, &session)["result"]["message"],
        "undid “Change a, in a way that takes more than …”: a.rs"
    );
    assert_eq!(world.read("a.rs"), "one\n");
    assert_eq!(
        undo(&mut client, &session)["error"]["message"],
        "there is nothing to undo in this session"
    );
    assert_eq!(
        redo(&mut client, &session)["result"]["message"],
        "redid “Change a, in a way that takes more than …”: a.rs"
    );
    assert_eq!(world.read("a.rs"), "two\n");
    let answer = redo(&mut client, &session);
    assert_eq!(world.read("b.rs"), "b\n");
    assert_eq!(
        answer["result"]["turns"].as_array().unwrap().len(),
        2,
        "both can be reviewed again: {answer}"
    );
    review(&mut client, &session, "undo", json!({ "turn": 1 }));
    assert_eq!(
        (world.read("a.rs"), world.read("b.rs")),
        ("one\n".into(), "b\n".into())
    );
    world.write("a.rs", "mine\none\n");
    review(&mut client, &session, "redo", json!({ "turn": 1 }));
    assert_eq!(
        world.read("a.rs"),
        "mine\ntwo\n",
        "text typed in the meantime stays"
    );
}

/// As `u` in an editor does after an undo.
#[test]
fn what_the_person_has_redone_is_not_redone_and_can_be_undone_again() {
    let world = world(&[edit("a.rs", &[("one", "two")])]);
    world.write("a.rs", "one\n");
    let mut client = world.client();
    let session = session(&mut client, &world);
    turn(&mut client, &session);
    undo(&mut client, &session);
    world.write("a.rs", "two\n");
    assert_eq!(
        redo(&mut client, &session)["error"]["message"],
        "there is nothing to redo in this session"
    );
    assert_eq!(
        undo(&mut client, &session)["result"]["message"],
        "undid “change it”: a.rs"
    );
    assert_eq!(world.read("a.rs"), "one\n");
}

/// VS Code keeps the document of a removed file open.
#[test]
fn a_created_file_that_is_still_open_is_redone() {
    let world = world(&[write("b.rs", "b\n")]);
    let mut client = world.client();
    let session = session(&mut client, &world);
    turn(&mut client, &session);
    client.open(&world.uri("b.rs"), "b\n");
    undo(&mut client, &session);
    assert!(!world.path().join("b.rs").exists());
    let redone = redo(&mut client, &session);
    assert_eq!(redone["result"]["message"], "redid “change it”: b.rs");
    assert_eq!(world.read("b.rs"), "b\n");
}

#[test]
fn a_new_change_clears_the_redo_history() {
    let world = world(&[write("a.rs", "a\n"), write("b.rs", "b\n")]);
    let mut client = world.client();
    let session = session(&mut client, &world);
    turn(&mut client, &session);
    undo(&mut client, &session);
    turn(&mut client, &session);
    assert_eq!(
        redo(&mut client, &session)["error"]["message"],
        "there is nothing to redo in this session"
    );
    assert!(!world.path().join("a.rs").exists());
}

#[test]
fn undo_restores_a_rejected_hunk_before_it_undoes_the_turn() {
    let world = world(&[edit("a.rs", &[("a\n", "A\n"), ("e\n", "E\n")])]);
    world.write("a.rs", "a\nb\nc\nd\ne\n");
    let mut client = world.client();
    let session = session(&mut client, &world);
    turn(&mut client, &session);
    let a = world.path().join("a.rs");
    let first = json!({ "turn": 1, "path": a, "hunk": 1 });
    review(&mut client, &session, "reject", first.clone());
    world.write("a.rs", "a\nb\n// mine\nc\nd\nE\n");
    let restored = undo(&mut client, &session);
    assert_eq!(
        restored["result"]["message"], "restored changes: a.rs",
        "{restored}"
    );
    assert_eq!(world.read("a.rs"), "A\nb\n// mine\nc\nd\nE\n");
    let ids = |of: &Value| hunks(of, 0).iter().map(|(id, _)| *id).collect::<Vec<_>>();
    assert_eq!(ids(&restored), [1, 5], "{restored}");

    review(&mut client, &session, "reject", first);
    assert_eq!(world.read("a.rs"), "a\nb\n// mine\nc\nd\nE\n");
    undo(&mut client, &session);
    undo(&mut client, &session);
    assert_eq!(world.read("a.rs"), "a\nb\n// mine\nc\nd\ne\n");
    let redone = redo(&mut client, &session);
    assert_eq!(world.read("a.rs"), "A\nb\n// mine\nc\nd\nE\n");
    assert_eq!(ids(&redone), [1, 5], "{redone}");
}

/// Two turns that change one file each; the later turn is undone first.
#[test]
fn undo_restores_everything_that_was_rejected_in_one_step() {
    let world = world(&[
        write("new/b.rs", "b\n"),
        edit("a.rs", &[("a\n", "A\n")]),
        write("later.rs", "later\n"),
    ]);
    world.write("a.rs", "a\n");
    let mut client = world.client();
    let session = session(&mut client, &world);
    turn(&mut client, &session);
    turn(&mut client, &session);
    let rejected = review(&mut client, &session, "reject", json!({}));
    assert_eq!(rejected["result"]["turns"], json!([]), "{rejected}");
    let is_there = |path: &str| world.path().join(path).exists();
    assert!(!is_there("new/b.rs") && world.read("a.rs") == "a\n");

    turn(&mut client, &session);
    undo(&mut client, &session);
    assert!(!is_there("later.rs") && !is_there("new/b.rs"));
    let restored = undo(&mut client, &session);
    assert_eq!(
        (world.read("new/b.rs").as_str(), world.read("a.rs").as_str()),
        ("b\n", "A\n"),
        "{restored}"
    );
    let turns = restored["result"]["turns"].as_array().unwrap().iter();
    let turns: Vec<_> = turns.map(|turn| turn["turn"].clone()).collect();
    assert_eq!(turns, [1, 2], "they are under review again: {restored}");
    undo(&mut client, &session);
    assert!(world.read("a.rs") == "a\n" && is_there("new/b.rs"));
}

#[test]
fn lines_typed_elsewhere_survive_an_undo() {
    let world = world(&[edit("a.rs", &[("two", "TWO")])]);
    world.write("a.rs", "one\ntwo\nthree\n");
    let mut client = world.client();
    let session = session(&mut client, &world);
    turn(&mut client, &session);
    world.write("a.rs", "mine\none\nTWO\nthree!\n");
    undo(&mut client, &session);
    assert_eq!(world.read("a.rs"), "mine\none\ntwo\nthree!\n");
}

#[test]
fn one_touched_line_stays_and_everything_else_is_undone() {
    let all = json!([
        { "call": { "id": "c1", "name": "write_file", "arguments": { "path": "new.rs", "content": "1\n2\n3\n" } } },
        { "call": { "id": "c2", "name": "edit_file",
            "arguments": { "path": "a.rs", "edits": [{ "old_text": "two", "new_text": "TWO" }] } } },
        { "call": { "id": "c3", "name": "edit_file",
            "arguments": { "path": "b.rs", "edits": [{ "old_text": "x\ny\n", "new_text": "X\nY\n" }] } } },
    ]);
    let world = World::new(json!([all, [{ "text": "Done." }]]));
    world.write("a.rs", "one\ntwo\n");
    world.write("b.rs", "x\ny\nz\n");
    let mut client = world.client();
    let session = session(&mut client, &world);
    turn(&mut client, &session);
    world.write("new.rs", "1\n2\n// mine\n3\n");
    client.open(&world.uri("b.rs"), "X\nY\nz\n");
    change_document(&mut client, &world.uri("b.rs"), 2, "X\nmine\nz\n");
    let id = ask_review(&mut client, &session, "undo", json!({}));
    apply(&mut client, &world.uri("b.rs"), "x\nmine\nz\n");
    let undone = client.answer(id);
    assert_eq!(world.read("a.rs"), "one\ntwo\n");
    assert_eq!(world.read("new.rs"), "// mine\n");
    assert_eq!(
        left(&undone),
        [("new.rs", 1, "changed since"), ("b.rs", 2, "changed since")]
    );
    assert_eq!(
        undone["result"]["message"],
        "undid “change it”: new.rs, a.rs, b.rs; not changed: new.rs:1 (changed since), b.rs:2 (changed since)"
    );
}

#[test]
fn if_nothing_can_be_undone_reasons_are_given() {
    let world = world(&[edit("a.rs", &[("two", "TWO")])]);
    world.write("a.rs", "one\ntwo\n");
    let mut client = world.client();
    let session = session(&mut client, &world);
    turn(&mut client, &session);
    world.write("a.rs", "one\nTWO, mine\n");
    let answer = undo(&mut client, &session);
    assert_eq!(answer["error"]["code"], -32803);
    assert_eq!(
        answer["error"]["message"],
        "nothing was undone: a.rs:2 (changed since)"
    );
    std::fs::remove_file(world.path().join("a.rs")).unwrap();
    let answer = undo(&mut client, &session);
    assert_eq!(
        answer["error"]["message"],
        "nothing was undone: a.rs (it has been removed since)"
    );
}

#[test]
fn hunks_are_split_at_lines_typed_inside() {
    let world = world(&[edit("a.rs", &[("x\n", "1\n2\n3\n4\n")])]);
    world.write("a.rs", "a\nx\nb\n");
    let mut client = world.client();
    let session = session(&mut client, &world);
    turn(&mut client, &session);
    world.write("a.rs", "a\n1\n2\n// mine\n3\n4\nb\n");
    let listed = review(&mut client, &session, "list", json!({}));
    let hunk = |index: usize| listed["result"]["turns"][0]["files"][0]["hunks"][index].clone();
    let lines = |start, count| json!({ "start": start, "count": count });
    assert_eq!(
        (hunk(0)["id"].clone(), hunk(0)["new"].clone()),
        (json!(2), lines(2, 2)),
        "{listed}"
    );
    assert_eq!(
        (hunk(1)["id"].clone(), hunk(1)["new"].clone()),
        (json!(4), lines(5, 2))
    );
    assert_eq!(
        (hunk(0)["oldText"].clone(), hunk(1)["oldText"].clone()),
        (json!("x\n"), json!(""))
    );
    let second = json!({ "turn": 1, "path": world.path().join("a.rs"), "hunk": 4 });
    let rejected = review(&mut client, &session, "reject", second);
    assert_eq!(world.read("a.rs"), "a\n1\n2\n// mine\nb\n");
    assert_eq!(
        hunks(&rejected, 0)
            .iter()
            .map(|(id, _)| *id)
            .collect::<Vec<_>>(),
        [2]
    );
    undo(&mut client, &session);
    assert_eq!(world.read("a.rs"), "a\n1\n2\n// mine\n3\n4\nb\n");
    undo(&mut client, &session);
    assert_eq!(world.read("a.rs"), "a\nx\n// mine\nb\n");
    redo(&mut client, &session);
    assert_eq!(world.read("a.rs"), "a\n1\n2\n// mine\n3\n4\nb\n");
}

#[test]
fn undo_steps_the_system_refuses_can_be_retried() {
    let world = world(&[write("b.rs", "b\n"), write("a.rs", "a\n")]);
    let mut client = world.client();
    let session = session(&mut client, &world);
    turn(&mut client, &session);
    turn(&mut client, &session);
    // A folder is in the file's place.
    let path = world.path().join("a.rs");
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    let refused = undo(&mut client, &session);
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("a.rs"),
        "{refused}"
    );
    assert_eq!(
        world.read("b.rs"),
        "b\n",
        "the turn before is not undone instead"
    );
    std::fs::remove_dir(&path).unwrap();
    world.write("a.rs", "a\n");
    assert_eq!(
        undo(&mut client, &session)["result"]["message"],
        "undid “change it”: a.rs"
    );
}

#[test]
fn a_created_file_with_unsaved_text_is_not_removed() {
    let world = world(&[write("b.rs", "b\n")]);
    let mut client = world.client();
    let session = session(&mut client, &world);
    turn(&mut client, &session);
    client.open(&world.uri("b.rs"), "b\n");
    world.write("b.rs", "changed on the disk\n");
    let refused = undo(&mut client, &session);
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("b.rs (it has unsaved changes"),
        "{refused}"
    );
    change_document(&mut client, &world.uri("b.rs"), 2, "b\nmine\n");
    let id = ask_review(&mut client, &session, "undo", json!({}));
    apply(&mut client, &world.uri("b.rs"), "mine\n");
    assert_eq!(
        client.answer(id)["result"]["message"],
        "undid “change it”: b.rs"
    );
    assert_eq!(world.read("b.rs"), "changed on the disk\n");
}

#[test]
fn hunks_are_kept_and_rejected_one_by_one_after_more_typing() {
    let world = world(&[edit(
        "a.rs",
        &[("a\n", "A\n"), ("e\n", "E\n"), ("i\n", "I\n")],
    )]);
    world.write("a.rs", "a\nb\nc\nd\ne\nf\ng\nh\ni\n");
    let mut client = world.client();
    let session = session(&mut client, &world);
    turn(&mut client, &session);
    let listed = review(&mut client, &session, "list", json!({}));
    assert_eq!(
        hunks(&listed, 0)
            .iter()
            .map(|(id, _)| *id)
            .collect::<Vec<_>>(),
        [1, 5, 9]
    );
    let file = &listed["result"]["turns"][0]["files"][0];
    assert_eq!(file["path"], json!(world.path().join("a.rs")));
    assert_eq!(file["hunks"][1]["new"], json!({ "start": 5, "count": 1 }));
    assert_eq!(file["hunks"][1]["oldText"], "e\n");

    world.write("a.rs", "mine\nA\nb\nc\nd\nE\nf\ng\nh\nI, mine\n");
    let path = world.path().join("a.rs");
    let one = |hunk: u64| json!({ "turn": 1, "path": path, "hunk": hunk });
    let kept = review(&mut client, &session, "keep", one(1));
    assert_eq!(kept["result"]["message"], "kept in a.rs");
    assert_eq!(
        hunks(&kept, 0),
        [(5, "@@ -3,7 +3,7 @@\n b\n c\n d\n-e\n+E\n f\n g\n h\n")]
    );
    assert_eq!(
        review(&mut client, &session, "reject", one(9))["error"]["code"],
        -32803,
        "it was rewritten"
    );
    let rejected = review(&mut client, &session, "reject", one(5));
    assert_eq!(rejected["result"]["turns"], json!([]));
    assert_eq!(
        world.read("a.rs"),
        "mine\nA\nb\nc\nd\ne\nf\ng\nh\nI, mine\n"
    );

    turn(&mut client, &session);
    let words = last_words(&world);
    assert!(
        words.contains("the user rejected this change of yours in a.rs")
            && words.contains("-e\\n+E"),
        "{words}"
    );
}

#[test]
fn keep_settles_and_single_files_can_be_rejected() {
    let world = world(&[
        write("a.rs", "a\n"),
        write("b.rs", "b\n"),
        edit("a.rs", &[("a", "A")]),
    ]);
    let mut client = world.client();
    let session = session(&mut client, &world);
    for _ in 0..3 {
        turn(&mut client, &session);
    }
    let a = world.path().join("a.rs");
    let left = review(&mut client, &session, "reject", json!({ "path": a }));
    assert!(!a.exists(), "what both turns did to it");
    assert_eq!(left["result"]["turns"].as_array().unwrap().len(), 1);
    assert_eq!(left["result"]["turns"][0]["turn"], 2);
    undo(&mut client, &session);
    assert_eq!(world.read("a.rs"), "A\n");
    let left = review(&mut client, &session, "keep", json!({ "path": a }));
    assert_eq!(left["result"]["turns"].as_array().unwrap().len(), 1);
    let left = review(&mut client, &session, "keep", json!({}));
    assert_eq!(left["result"]["turns"], json!([]));
    assert_eq!(
        undo(&mut client, &session)["error"]["message"],
        "there is nothing to undo in this session"
    );
    assert_eq!(world.read("b.rs"), "b\n");
}

#[test]
fn nothing_is_undone_while_a_turn_runs() {
    let world = World::new(
        json!([[write("a.rs", "a\n")], [{ "text": "And" }, { "gate": "on" }, { "text": " done." }]]),
    );
    let mut client = world.client();
    let session = session(&mut client, &world);
    let prompt = client.prompt(&session, "change it");
    world.wait(world.rehearsal().waiting_at("on"));
    let refused = undo(&mut client, &session);
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("a turn is running"),
        "{refused}"
    );
    world.rehearsal().open("on");
    client.answer(prompt);
    undo(&mut client, &session);
    assert!(!world.path().join("a.rs").exists());
}

#[test]
fn multi_file_patches_are_undone_together() {
    let patch = "*** Begin Patch\n*** Update File: a.rs\n-one\n+two\n*** Add File: b.rs\n+b\n*** Delete File: c.rs\n\
        *** Update File: d.rs\n*** Move to: e.rs\n-d\n+D\n*** End Patch";
    let world = world(&[call("apply_patch", json!({ "patch": patch }))]);
    let before = [("a.rs", "one\n"), ("c.rs", "c\n"), ("d.rs", "d\n")];
    for (name, text) in &before {
        world.write(name, text);
    }
    let environment = [
        ("TANDEM_MODEL", "gpt-5.2"),
        ("TANDEM_BASE_URL", world.model.base_url()),
    ];
    let mut client = world.stranger_on(tandem::server::Transport::Lsp, &environment);
    let capabilities = json!({ "experimental": { "tandem": {} } });
    client.call(
        "initialize",
        json!({ "capabilities": capabilities, "rootUri": world.uri("") }),
    );
    let session = session(&mut client, &world);
    turn(&mut client, &session);
    let requests = world.rehearsal().requests();
    let tools = requests[0]["tools"].to_string();
    assert!(
        tools.contains("apply_patch") && !tools.contains("edit_file"),
        "{tools}"
    );
    assert_eq!(
        requests[0]["tools"], requests[1]["tools"],
        "the beginning of a request never changes"
    );
    assert_eq!(
        (world.read("a.rs"), world.read("b.rs"), world.read("e.rs")),
        ("two\n".into(), "b\n".into(), "D\n".into())
    );
    assert!(!world.path().join("c.rs").exists() && !world.path().join("d.rs").exists());
    undo(&mut client, &session);
    for (name, text) in before {
        assert_eq!(world.read(name), text);
    }
    assert!(!world.path().join("b.rs").exists() && !world.path().join("e.rs").exists());
    redo(&mut client, &session);
    assert_eq!(
        (world.read("a.rs"), world.read("b.rs"), world.read("e.rs")),
        ("two\n".into(), "b\n".into(), "D\n".into())
    );
    assert!(!world.path().join("c.rs").exists() && !world.path().join("d.rs").exists());
}

#[test]
#[expect(clippy::too_many_lines, reason = "one story, in order")]
fn lsp_only_clients_undo_and_keep_by_command() {
    let world = world(&[edit("a.rs", &[("one", "two")])]);
    world.write("a.rs", "one\n");
    let mut client = world.client_with(json!({}));
    let execute = |client: &mut Client, name: &str, arguments: Value| {
        let answer = client.call(
            "workspace/executeCommand",
            json!({ "command": name, "arguments": arguments }),
        );
        assert_eq!(answer["result"], Value::Null, "{answer}");
        client.next("window/showMessage")["params"]["message"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        execute(&mut client, "tandem.undo", json!([])),
        "tandem: there is nothing to undo"
    );
    let uri = world.uri("notes.tandem.md");
    client.open(&uri, "Change it.\n");
    client.notify(
        "textDocument/didSave",
        json!({ "textDocument": { "uri": uri } }),
    );
    let mut text = "Change it.\n".to_owned();
    edit_until(&mut client, &uri, &mut text, |text| {
        text.contains("*Allow*")
    });
    assert_eq!(
        client.next("window/showMessage")["params"]["message"],
        "tandem: needs approval: Edit a.rs"
    );
    client.ask(
        "workspace/executeCommand",
        json!({ "command": "tandem.allow", "arguments": [] }),
    );
    edit_until(&mut client, &uri, &mut text, |text| {
        text.ends_with("Done.\n\n## You\n\n")
    });
    assert_eq!(
        client.next("window/showMessage")["params"]["message"],
        "tandem: done"
    );
    assert_eq!(world.read("a.rs"), "two\n");
    let offered = offers(&mut client, &world, 1);
    let undo = offered
        .iter()
        .find(|action| action["title"] == "tandem: Undo the last turn")
        .unwrap()
        .clone();
    assert!(
        offered
            .iter()
            .any(|action| action["title"] == "tandem: Keep the changes")
    );
    assert_eq!(
        offers(&mut client, &world, 2),
        Vec::<Value>::new(),
        "nothing for automatic requests"
    );
    let said = execute(
        &mut client,
        "tandem.undo",
        undo["command"]["arguments"].clone(),
    );
    assert_eq!(said, "tandem: undid “Change it.”: a.rs");
    assert_eq!(world.read("a.rs"), "one\n");
    let offered = offers(&mut client, &world, 1);
    let redo = offered
        .iter()
        .find(|action| action["title"] == "tandem: Redo the last undone turn")
        .unwrap();
    let said = execute(
        &mut client,
        "tandem.redo",
        redo["command"]["arguments"].clone(),
    );
    assert_eq!(said, "tandem: redid “Change it.”: a.rs");
    assert_eq!(
        execute(&mut client, "tandem.redo", json!([])),
        "tandem: there is nothing to redo"
    );
    assert_eq!(world.read("a.rs"), "two\n");
    assert_eq!(
        execute(&mut client, "tandem.keep", json!([])),
        "tandem: kept all changes"
    );
    assert_eq!(
        execute(&mut client, "tandem.undo", json!([])),
        "tandem: there is nothing to undo"
    );
    assert!(
        offers(&mut client, &world, 1)
            .iter()
            .all(|action| action["command"]["command"] != "tandem.undo")
    );
}

fn offers(client: &mut Client, world: &World, trigger: u8) -> Vec<Value> {
    let at = json!({ "line": 0, "character": 0 });
    let params = json!({ "textDocument": { "uri": world.uri("a.rs") }, "range": { "start": at, "end": at },
        "context": { "diagnostics": [], "triggerKind": trigger } });
    client.call("textDocument/codeAction", params)["result"]
        .as_array()
        .unwrap()
        .clone()
}

#[cfg(unix)]
#[test]
fn before_images_survive_the_process_and_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = world(&[edit("a.rs", &[("one", "two")]), write("b.rs", "b\n")]);
    world.write("a.rs", "one, precious\n");
    let mut client = world.client();
    let session = session(&mut client, &world);
    turn(&mut client, &session);
    turn(&mut client, &session);
    client.end();
    let folder = world.path().join(".home/state/checkpoints");
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    let files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(files.iter().all(|file| mode(file) == 0o600), "{files:?}");
    let journal = world
        .path()
        .join(format!(".home/state/sessions/{session}.jsonl"));
    let journal = std::fs::read_to_string(journal).unwrap();
    let records = journal
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let changed: Vec<_> = records
        .filter(|record| record["type"] == "call")
        .map(|record| record["changed"]["files"][0].clone())
        .collect();
    assert_eq!(changed[0]["path"], json!(world.path().join("a.rs")));
    let image = folder.join(changed[0]["before"]["image"].as_str().unwrap());
    assert_eq!(std::fs::read_to_string(image).unwrap(), "one, precious\n");
    assert_eq!(changed[1]["before"], json!({ "kind": "absent" }));
    assert_eq!(
        files.len(),
        3,
        "three texts: a created file has none before: {files:?}"
    );
}

#[test]
fn without_a_state_folder_undo_works_with_one_notice() {
    let world = world(&[
        edit("a.rs", &[("one", "two")]),
        edit("a.rs", &[("two", "three")]),
    ]);
    world.write("a.rs", "one\n");
    world.write(".home/state", "a file where the folder should be");
    let mut client = world.client();
    let session = session(&mut client, &world);
    turn(&mut client, &session);
    turn(&mut client, &session);
    let warned = |message: &&Value| {
        message["params"]["message"]
            .as_str()
            .is_some_and(|text| text.contains("stored"))
    };
    assert_eq!(
        client.seen.iter().filter(warned).count(),
        1,
        "{:#?}",
        client.seen
    );
    undo(&mut client, &session);
    assert_eq!(world.read("a.rs"), "two\n");
}

#[test]
fn turns_are_undone_around_lines_of_later_turns() {
    let world = world(&[
        edit("a.rs", &[("one", "ONE"), ("three", "THREE")]),
        edit("a.rs", &[("ONE", "First")]),
    ]);
    world.write("a.rs", "one\ntwo\nthree\n");
    let mut client = world.client();
    let session = session(&mut client, &world);
    turn(&mut client, &session);
    turn(&mut client, &session);
    let undone = review(&mut client, &session, "undo", json!({ "turn": 1 }));
    assert_eq!(world.read("a.rs"), "First\ntwo\nthree\n", "{undone}");
    assert_eq!(left(&undone), [("a.rs", 1, "changed since")]);
    redo(&mut client, &session);
    assert_eq!(world.read("a.rs"), "First\ntwo\nTHREE\n");
    undo(&mut client, &session);
    assert_eq!(world.read("a.rs"), "ONE\ntwo\nTHREE\n");
    undo(&mut client, &session);
    assert_eq!(world.read("a.rs"), "one\ntwo\nthree\n");
}

#[test]
fn a_change_made_again_is_reviewed_once() {
    let (there, back) = (
        edit("a.rs", &[("one", "two")]),
        edit("a.rs", &[("two", "one")]),
    );
    let calls = [there.clone(), back.clone(), there, back];
    let world = world(&calls);
    world.write("a.rs", "one\nlast\n");
    let mut client = world.client();
    let session = session(&mut client, &world);
    for _ in &calls {
        turn(&mut client, &session);
    }
    let listed = |answer: &Value| -> Vec<u64> {
        let turns = answer["result"]["turns"].as_array().unwrap().iter();
        turns.map(|turn| turn["turn"].as_u64().unwrap()).collect()
    };
    let pending = review(&mut client, &session, "list", json!({}));
    assert_eq!(listed(&pending), [4], "{pending}");
    assert_eq!(hunks(&pending, 0).len(), 1, "{pending}");
    let hunk =
        json!({ "turn": 4, "path": world.path().join("a.rs"), "hunk": hunks(&pending, 0)[0].0 });
    let rejected = review(&mut client, &session, "reject", hunk.clone());
    assert_eq!(
        (world.read("a.rs"), listed(&rejected)),
        ("two\nlast\n".into(), vec![3])
    );
    undo(&mut client, &session);
    let kept = review(&mut client, &session, "keep", hunk);
    assert_eq!(
        (world.read("a.rs"), listed(&kept)),
        ("one\nlast\n".into(), vec![])
    );
}

/// The session continues from there, and the reverted changes are not lost.
#[test]
fn undo_restores_what_a_restore_reverted_after_it_undid_the_next_turn() {
    let world = world(&[
        edit("a.rs", &[("one", "two")]),
        edit("a.rs", &[("two", "three")]),
        write("b.rs", "b\n"),
        edit("a.rs", &[("two", "four")]),
    ]);
    world.write("a.rs", "one\n");
    let mut client = world.client();
    let session = session(&mut client, &world);
    for _ in 0..3 {
        turn(&mut client, &session);
    }
    review(&mut client, &session, "restore", json!({ "turn": 2 }));
    turn(&mut client, &session);
    assert_eq!(world.read("a.rs"), "four\n");

    let undone = undo(&mut client, &session);
    assert_eq!(undone["result"]["message"], "undid “change it”: a.rs");
    assert_eq!(world.read("a.rs"), "two\n");
    let restored = undo(&mut client, &session);
    assert_eq!(
        restored["result"]["message"],
        "restored changes: a.rs, b.rs"
    );
    assert_eq!(
        (world.read("a.rs"), world.read("b.rs")),
        ("three\n".into(), "b\n".into())
    );
    let turns = restored["result"]["turns"].as_array().unwrap().iter();
    let turns: Vec<_> = turns.map(|turn| turn["turn"].as_u64().unwrap()).collect();
    assert_eq!(turns, [2, 3], "they are under review again");
}

#[test]
fn the_undo_of_a_restore_leaves_a_later_rejection_alone() {
    let names = ["a", "b", "c", "d"];
    let world = world(&names.map(|name| write(name, "new\n")));
    let mut client = world.client();
    let session = session(&mut client, &world);
    for _ in names {
        turn(&mut client, &session);
    }
    // The restore rejects `b` as the third reversal, and so does the last rejection `d` once *keep all* has settled that one.
    for (action, more) in [
        ("undo", json!({})),
        ("undo", json!({})),
        ("restore", json!({ "turn": 2 })),
        ("keep", json!({})),
        ("redo", json!({ "turn": 4 })),
        ("reject", json!({})),
    ] {
        let answer = review(&mut client, &session, action, more);
        assert!(answer["error"].is_null(), "{action}: {answer}");
    }
    let back = undo(&mut client, &session);
    assert_eq!(
        back["result"]["message"], "restored “change it” and later",
        "{back}"
    );
    assert!(!world.path().join("d").exists(), "{back}");
    undo(&mut client, &session);
    assert_eq!(world.read("d"), "new\n");
}

#[test]
fn restore_reverts_files_and_conversation_and_can_be_undone() {
    let world = world(&[
        edit("a.rs", &[("one", "two")]),
        edit("a.rs", &[("two", "three")]),
        write("b.rs", "b\n"),
    ]);
    world.write("a.rs", "one\n");
    let mut client = world.client();
    let session = session(&mut client, &world);
    for _ in 0..3 {
        turn(&mut client, &session);
    }
    assert_eq!(
        review(&mut client, &session, "restore", json!({}))["error"]["code"],
        -32602
    );
    let missing = review(&mut client, &session, "restore", json!({ "turn": 9 }));
    assert_eq!(missing["error"]["message"], "this session has no turn 9");

    let restored = review(&mut client, &session, "restore", json!({ "turn": 2 }));
    assert_eq!(
        restored["result"]["message"],
        "restored to before “change it”: a.rs, b.rs"
    );
    assert_eq!(restored["result"]["cutFrom"], 2);
    assert_eq!(
        (
            world.read("a.rs").as_str(),
            world.path().join("b.rs").exists()
        ),
        ("two\n", false)
    );
    let back = undo(&mut client, &session);
    assert_eq!(
        (back["result"]["cutFrom"].clone(), left(&back).len()),
        (Value::Null, 0),
        "{back}"
    );
    assert_eq!(
        (world.read("a.rs"), world.read("b.rs")),
        ("three\n".into(), "b\n".into())
    );

    review(&mut client, &session, "restore", json!({ "turn": 2 }));
    let before = world.rehearsal().requests()[2]["messages"]
        .as_array()
        .unwrap()
        .clone();
    turn(&mut client, &session);
    let after = world.rehearsal().requests().last().unwrap()["messages"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(
        after[..before.len() - 1],
        before[..before.len() - 1],
        "what the model knew before turn 2"
    );
    assert_eq!(after.len(), before.len());
    client.end();

    let mut client = world.client();
    let load = json!({ "sessionId": session, "cwd": world.path(), "mcpServers": [] });
    client.call("session/load", load);
    let said = client
        .seen
        .iter()
        .filter(|m| m["params"]["update"]["sessionUpdate"] == "user_message_chunk");
    let turns: Vec<_> = said
        .map(|m| m["params"]["update"]["_meta"]["tandem/turn"].as_u64())
        .collect();
    assert_eq!(
        turns,
        [Some(1), Some(4)],
        "turn 1 and the one after the restore"
    );
    let restored = review(&mut client, &session, "restore", json!({ "turn": 4 }));
    assert_eq!(
        restored["result"]["cutFrom"], 4,
        "a turn of an earlier process"
    );
}
