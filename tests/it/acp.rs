//! The Agent Client Protocol's own transport: one message per line, the same sessions behind it.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tandem::server::{Ended, Transport};

use crate::driver::{Client, World, call, choose};

#[test]
fn a_conversation_over_lines() {
    let call = json!({ "call": { "id": "c1", "name": "write_file", "arguments": { "path": "a.txt", "content": "hi\n" } } });
    let world = World::new(json!([[call], [{ "text": "written" }]]));
    let mut client = world.acp();
    let answer = client.call(
        "initialize",
        json!({ "protocolVersion": 1, "clientCapabilities": {} }),
    );
    assert_eq!(answer["result"]["protocolVersion"], 1);
    assert_eq!(answer["result"]["agentInfo"]["name"], "tandem");
    let session = client.session(&world);
    let id = client.prompt(&session, "write");
    let question = client.next("session/request_permission");
    client.respond(
        &question,
        json!({ "outcome": { "outcome": "selected", "optionId": "allow_once" } }),
    );
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    assert_eq!(client.text(), "written");
    assert_eq!(world.read("a.txt"), "hi\n");
    assert!(
        client
            .seen
            .iter()
            .all(|message| message["method"] != "_tandem/status"),
        "ACP has no status"
    );
}

#[test]
fn files_go_through_a_client_that_offers_it() {
    let edit =
        json!({ "path": "a.txt", "edits": [{ "old_text": "typed", "new_text": "changed" }] });
    let call = json!({ "call": { "id": "c1", "name": "edit_file", "arguments": edit } });
    let world = World::new(json!([[call], [{ "text": "done" }]]));
    world.write("a.txt", "on disk\n");
    let mut client = world.acp();
    let files = json!({ "fs": { "readTextFile": true, "writeTextFile": true } });
    client.call(
        "initialize",
        json!({ "protocolVersion": 1, "clientCapabilities": files }),
    );
    let session = client.session(&world);
    client.call(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": "edit" }),
    );
    let id = client.prompt(&session, "change");
    let written = loop {
        let request = client.find(|message| {
            message["method"]
                .as_str()
                .is_some_and(|name| name.starts_with("fs/"))
        });
        assert_eq!(request["params"]["sessionId"], session.as_str());
        if request["method"] == "fs/write_text_file" {
            client.respond(&request, json!({}));
            break request["params"]["content"].clone();
        }
        client.respond(&request, json!({ "content": "typed, not saved\n" }));
    };
    assert_eq!(written, "changed, not saved\n");
    // What reads it back afterwards sees what was written.
    loop {
        let message =
            client.find(|message| message["id"] == id || message["method"] == "fs/read_text_file");
        if message["method"] != "fs/read_text_file" {
            client.seen.push_front(message);
            break;
        }
        client.respond(&message, json!({ "content": written }));
    }
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    assert_eq!(
        world.read("a.txt"),
        "on disk\n",
        "the client's buffer was changed; the client decides when to save"
    );
}

/// A client that writes files, and its session, in which edits need no approval.
fn writing(world: &World) -> (Client, String) {
    let mut client = client(world, json!({ "fs": { "writeTextFile": true } }));
    let session = client.session(world);
    let mode = json!({ "sessionId": session, "modeId": "edit" });
    client.call("session/set_mode", mode);
    (client, session)
}

/// Some clients stop in the middle of a write, with or without an error, and some write a different text; nothing is lost.
#[test]
fn a_write_that_a_client_cut_is_completed_and_what_else_it_leaves_is_told_and_undone() {
    let plain = |text: &str| text.as_bytes().to_vec();
    let marked = |text: &str| format!("\u{feff}{text}").into_bytes();
    let utf16 = |text: &str| {
        let units = std::iter::once(0xfeff).chain(text.encode_utf16());
        units.flat_map(u16::to_le_bytes).collect::<Vec<u8>>()
    };
    let [old, new, begun] =
        ["three\nfour\n", "3\nfour\n", ""].map(|end| format!("one\r\nzwölf\n{end}"));
    let cut = |whole: Vec<u8>, less: usize| whole[..whole.len() - less].to_vec();
    let check = |old: Vec<u8>, new: &[u8], left: &[u8]| {
        for fails in [false, true] {
            let told = undone_after_a_cut_write(&old, new, left, fails);
            assert!(!told.contains("differs from the text"), "{told}");
        }
    };
    for stored in [&plain as &dyn Fn(&str) -> Vec<u8>, &marked, &utf16] {
        // Clients write plain UTF-8, or the file's own encoding. The text may end in the middle of a character.
        for left in [
            plain(&begun),
            cut(plain("one\r\nzwö"), 1),
            stored(&begun),
            cut(stored("one\r\nzwö"), 1),
            Vec::new(),
        ] {
            check(stored(&old), &stored(&new), &left);
        }
    }
    let left = b"else\n";
    let told = undone_after_a_cut_write(old.as_bytes(), left, left, false);
    assert!(
        told.contains("differs from the text sent to the editor"),
        "{told}"
    );
}

/// The client leaves `left` after each write to a file whose text was `old`, and is `new` after the edit. Returns the
/// messages the model received.
fn undone_after_a_cut_write(old: &[u8], new: &[u8], left: &[u8], fails: bool) -> String {
    let edit = json!({ "path": "a.txt", "edits": [{ "old_text": "three", "new_text": "3" }] });
    let script = json!([[call("c1", "edit_file", edit)], [{ "text": "Done." }]]);
    let world = World::new(script);
    let file = world.path().join("a.txt");
    std::fs::write(&file, old).unwrap();
    let mut client = client(&world, json!({ "fs": { "writeTextFile": true } }));
    let session = client.session(&world);
    let in_edit_mode = json!({ "sessionId": session, "modeId": "edit" });
    client.call("session/set_mode", in_edit_mode);
    let play = |client: &mut Client, id: i64| {
        loop {
            let message = client
                .find(|message| message["id"] == id || message["method"] == "fs/write_text_file");
            if message["method"].is_null() {
                return client.close(&message);
            }
            std::fs::write(&file, left).unwrap();
            if fails {
                let error = json!({ "code": -32603, "message": "disk full" });
                client.send(&json!({ "id": message["id"], "error": error }));
            } else {
                client.respond(&message, json!({}));
            }
        }
    };
    let id = client.prompt(&session, "change");
    play(&mut client, id);
    assert_eq!(std::fs::read(&file).unwrap(), new, "{left:?}");
    let undo = json!({ "sessionId": session, "action": "undo" });
    let id = client.ask("_tandem/review", undo);
    play(&mut client, id);
    assert_eq!(std::fs::read(&file).unwrap(), old, "{left:?}");
    world.rehearsal().requests()[1]["messages"].to_string()
}

/// Waits for the response to a request; until then, performs the client's writes.
fn answer_writing(client: &mut Client, world: &World, id: i64) {
    loop {
        let message =
            client.find(|message| message["id"] == id || message["method"] == "fs/write_text_file");
        if message["method"].is_null() {
            return client.close(&message);
        }
        let [path, text] = ["path", "content"].map(|it| message["params"][it].as_str().unwrap());
        world.write(path, text);
        client.respond(&message, json!({}));
    }
}

/// A client that formats files before saving may take longer than a cancelled turn waits, or report a failure.
#[test]
fn an_edit_that_is_made_after_its_turn_was_cancelled_or_its_call_has_failed_is_undone() {
    let edit = |id: &str, old: &str, new: &str| {
        let edits = json!([{ "old_text": old, "new_text": new }]);
        call(id, "edit_file", json!({ "path": "a.txt", "edits": edits }))
    };
    for way in ["at once", "after a turn", "after a restart", "in its turn"] {
        let second = edit("c2", "two\n", "two\nmore\n");
        let second = match way {
            "in its turn" => json!([{ "gate": "made" }, second]),
            _ => json!([second]),
        };
        let done = json!([{ "text": "Done." }]);
        let world = World::new(json!([[edit("c1", "one", "two")], second, done]));
        world.write("a.txt", "one\n");
        let (mut client, session) = writing(&world);
        let id = client.prompt(&session, "change");
        let write = client.next("fs/write_text_file");
        let journal = world.read(&format!(".home/state/sessions/{session}.jsonl"));
        let is_recorded = journal.contains(r#"{"type":"unconfirmed","id":"c1""#);
        assert!(is_recorded, "if tandem is killed now: {journal}");
        if way == "in its turn" {
            let busy = json!({ "code": -32603, "message": "busy" });
            client.send(&json!({ "id": write["id"], "error": busy }));
            client.find(|message| message["params"]["update"]["status"] == "failed");
            world.write("a.txt", "two\n");
            world.rehearsal().open("made");
            answer_writing(&mut client, &world, id);
            assert_eq!(world.read("a.txt"), "two\nmore\n");
        } else {
            client.notify("session/cancel", json!({ "sessionId": session }));
            assert_eq!(client.answer(id)["result"]["stopReason"], "cancelled");
            world.write("a.txt", "two\n");
            client.respond(&write, json!({}));
        }
        let mut undone = 1;
        if way == "after a turn" {
            let id = client.prompt(&session, "go on");
            answer_writing(&mut client, &world, id);
            assert_eq!(world.read("a.txt"), "two\nmore\n");
            undone = 2;
        } else if way == "after a restart" {
            client.end();
            client = self::client(&world, json!({}));
            let place = json!({ "sessionId": session, "cwd": world.path(), "mcpServers": [] });
            client.call("session/load", place);
        }
        for _ in 0..undone {
            let undo = json!({ "sessionId": session, "action": "undo" });
            let id = client.ask("_tandem/review", undo);
            answer_writing(&mut client, &world, id);
        }
        assert_eq!(world.read("a.txt"), "one\n", "{way}");
    }
}

/// Some of the files of a call may be changed late, others by the next call, and others not at all.
#[test]
fn an_edit_beside_a_removal_that_is_made_after_its_call_has_failed_is_undone() {
    let patch = |id: &str, files: &str| {
        let patch = format!("*** Begin Patch\n{files}*** End Patch\n");
        call(id, "apply_patch", json!({ "patch": patch }))
    };
    let removal = "*** Delete File: old.txt\n";
    let all = format!("*** Update File: a.txt\n-one\n+two\n{removal}*** Delete File: kept.txt\n");
    let second = json!([{ "gate": "made" }, patch("c2", removal)]);
    let done = json!([{ "text": "Done." }]);
    let world = World::new(json!([[patch("c1", &all)], second, done]));
    let files = [
        ("a.txt", "one\n"),
        ("old.txt", "old\nlines\n"),
        ("kept.txt", "kept\n"),
    ];
    for (path, text) in files {
        world.write(path, text);
    }
    let (mut client, session) = writing(&world);
    let id = client.prompt(&session, "change");
    let write = client.next("fs/write_text_file");
    let busy = json!({ "code": -32603, "message": "busy" });
    client.send(&json!({ "id": write["id"], "error": busy }));
    client.find(|message| message["params"]["update"]["status"] == "failed");
    world.write("a.txt", "two\n");
    // Whoever emptied it has not removed it.
    world.write("kept.txt", "");
    world.rehearsal().open("made");
    answer_writing(&mut client, &world, id);
    assert!(!world.path().join("old.txt").exists());
    let undo = json!({ "sessionId": session, "action": "undo" });
    let id = client.ask("_tandem/review", undo);
    answer_writing(&mut client, &world, id);
    assert_eq!(world.read("a.txt"), "one\n");
    assert_eq!(world.read("old.txt"), "old\nlines\n");
    assert_eq!(world.read("kept.txt"), "");
}

/// A client may take a while to write, or refuse because of it.
#[test]
fn what_a_person_saves_while_the_client_is_to_write_is_theirs() {
    let edits = json!([{ "old_text": "two", "new_text": "2" }]);
    let edit = json!({ "path": "a.txt", "edits": edits });
    let done = json!([{ "text": "Done." }]);
    let turn = |id: &str| json!([call(id, "edit_file", edit.clone())]);
    let world = World::new(json!([
        turn("c1"),
        done,
        turn("c2"),
        done,
        turn("c3"),
        done
    ]));
    let mut client = client(&world, json!({ "fs": { "writeTextFile": true } }));
    let session = client.session(&world);
    let mode = json!({ "sessionId": session, "modeId": "edit" });
    client.call("session/set_mode", mode);
    let review = json!({ "sessionId": session, "action": "undo" });
    let error = json!({ "code": -32603, "message": "the file has changed" });

    for says_done in [false, true] {
        world.write("a.txt", "one\ntwo\nthree\n");
        let id = client.prompt(&session, "change");
        let write = client.next("fs/write_text_file");
        world.write("a.txt", "one\ntwo\nthree\nmine\n");
        if says_done {
            client.respond(&write, json!({}));
        } else {
            client.send(&json!({ "id": write["id"], "error": error }));
        }
        answer_writing(&mut client, &world, id);
        let id = client.ask("_tandem/review", review.clone());
        answer_writing(&mut client, &world, id);
        assert_eq!(world.read("a.txt"), "one\ntwo\nthree\nmine\n");
    }

    let id = client.prompt(&session, "again");
    answer_writing(&mut client, &world, id);
    let id = client.ask("_tandem/review", review);
    let write = client.next("fs/write_text_file");
    world.write("a.txt", "one\n2\nthree\nmine\nmore\n");
    client.respond(&write, json!({}));
    answer_writing(&mut client, &world, id);
    assert_eq!(world.read("a.txt"), "one\ntwo\nthree\nmine\nmore\n");
}

/// Both may leave a text that differs from the one the client was to write, although it reports no error.
#[test]
fn what_a_formatter_makes_of_an_edit_is_undone_and_what_a_person_saves_instead_stays() {
    let check = |before: &str, (old, new): (&str, &str), left: &str, is_a_persons: bool| {
        let edits = json!([{ "old_text": old, "new_text": new }]);
        let edit = call(
            "c1",
            "edit_file",
            json!({ "path": "a.txt", "edits": edits }),
        );
        let world = World::new(json!([[edit], [{ "text": "Done." }]]));
        world.write("a.txt", before);
        let (mut client, session) = writing(&world);
        let id = client.prompt(&session, "change");
        let write = client.next("fs/write_text_file");
        world.write("a.txt", left);
        client.respond(&write, json!({}));
        answer_writing(&mut client, &world, id);
        let made = world.read("a.txt");
        assert_eq!(made != left, is_a_persons, "{made}");
        let told = world.rehearsal().requests()[1]["messages"].to_string();
        let is_told = told.contains("differs from the text sent to the editor");
        assert_ne!(is_told, is_a_persons, "{told}");
        let undo = json!({ "sessionId": session, "action": "undo" });
        let id = client.ask("_tandem/review", undo);
        answer_writing(&mut client, &world, id);
        let kept = if is_a_persons { left } else { before };
        assert_eq!(world.read("a.txt"), kept, "after {made}");
    };
    let object = |lines: &str| format!("const o = {{\n  a: 1,\n{lines}}};\n");
    let edit = ("  b: 2,\n}", "  c: 3,\n  b: 2\n}");
    let left = object("  c: 3,\n  b: 2,\n");
    check(&object("  b: 2,\n"), edit, &left, false);
    let edit = ("a\nb\n", "x\na\nb");
    check("a\nb\n", edit, "x\na\nb\n", false);
    let edit = ("os\n\n\ndef", "os\nimport sys\ndef");
    let left = "import os\nimport sys\n\n\ndef b\n";
    check("import os\n\n\ndef b\n", edit, left, false);
    let edit = ("g();", "f('A', 'B')\ng()");
    check("g();\n", edit, "f(\n  \"a\",\n  \"b\",\n);\ng();\n", false);
    let left = "import m\n\nfunc f() {\n\tg()\n}\n";
    check("\nfunc f() {\n\tg()\n", ("\tg()", "\tg()\n}"), left, false);
    // No word of it is new to the file.
    let edit = ("f(b);", "f(a);\nf(b)");
    check("f(a);\nf(b);\n", edit, "f(a);\nf(a);\nf(b);\n", false);

    let (before, left) = ("one\ntwo > 2\n", "one\ntwo > 2\nmine\n");
    for edit in [("one", "one\nextra"), ("one\n", ""), (">", ">=")] {
        check(before, edit, left, true);
    }
    check("f({\n", ("f({", "f({\n});"), "f({\nmine\n", true);
    let edit = ("let a = 1;", "let a = 1;\nlet b = 2;");
    check("let a = 1;\n", edit, "let a = 1;\nlet mine = 3;\n", true);
}

/// A client and tandem may both fail to write all of a text, as on a full disk.
#[test]
fn a_write_that_stays_cut_is_an_error_that_names_the_cause_and_is_undone() {
    let edit = json!({ "path": "a.txt", "edits": [{ "old_text": "three", "new_text": "3" }] });
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-three\n+3\n*** End Patch";
    for edit in [
        call("c1", "edit_file", edit),
        call("c1", "apply_patch", json!({ "patch": patch })),
    ] {
        let world = World::new(json!([[edit], [{ "text": "Done." }]]));
        let file = world.path().join("a.txt");
        let set_read_only = |is: bool| {
            let mut permissions = std::fs::metadata(&file).unwrap().permissions();
            permissions.set_readonly(is);
            std::fs::set_permissions(&file, permissions).unwrap();
        };
        world.write("a.txt", "one\ntwo\nthree\n");
        let (mut client, session) = writing(&world);
        let id = client.prompt(&session, "change");
        let error = json!({ "code": -32603, "message": "no space" });
        loop {
            let message = client
                .find(|message| message["id"] == id || message["method"] == "fs/write_text_file");
            if message["method"].is_null() {
                client.close(&message);
                break;
            }
            set_read_only(false);
            world.write("a.txt", "one\ntw");
            set_read_only(true);
            client.send(&json!({ "id": message["id"], "error": error }));
        }
        client.find(|message| message["params"]["update"]["status"] == "failed");
        let told = world.rehearsal().requests()[1]["messages"].to_string();
        assert!(told.contains("it is read-only"), "{told}");
        assert!(!told.contains("a formatter"), "{told}");
        set_read_only(false);
        let undo = json!({ "sessionId": session, "action": "undo" });
        let id = client.ask("_tandem/review", undo);
        answer_writing(&mut client, &world, id);
        assert_eq!(world.read("a.txt"), "one\ntwo\nthree\n");
    }
}

/// Whoever cancels a turn instead of allowing its edit may make the same edit.
#[test]
fn an_edit_that_was_not_allowed_is_the_persons_own_if_they_make_it() {
    for restarts in [false, true] {
        let edits = json!([{ "old_text": "one", "new_text": "two" }]);
        let edit = json!({ "path": "a.txt", "edits": edits });
        let world = World::new(json!([[call("c1", "edit_file", edit)]]));
        world.write("a.txt", "one\n");
        let mut client = client(&world, json!({}));
        let session = client.session(&world);
        let id = client.prompt(&session, "change");
        let question = client.next("session/request_permission");
        client.notify("session/cancel", json!({ "sessionId": session }));
        client.respond(&question, json!({ "outcome": { "outcome": "cancelled" } }));
        assert_eq!(client.answer(id)["result"]["stopReason"], "cancelled");
        world.write("a.txt", "two\n");
        if restarts {
            client.end();
            client = self::client(&world, json!({}));
            let place = json!({ "sessionId": session, "cwd": world.path(), "mcpServers": [] });
            client.call("session/load", place);
        }
        let undo = json!({ "sessionId": session, "action": "undo" });
        let id = client.ask("_tandem/review", undo);
        client.answer(id);
        assert_eq!(world.read("a.txt"), "two\n", "restarts: {restarts}");
    }
}

/// After a call that failed, tandem looks whether its edits were made after all.
#[test]
fn a_client_that_returns_no_text_delays_the_next_prompt_once() {
    let patch = |name: &str| format!("*** Update File: {name}\n@@\n-one\n+two\n");
    let patch = format!(
        "*** Begin Patch\n{}{}*** End Patch",
        patch("a.txt"),
        patch("b.txt")
    );
    let edits = json!([{ "old_text": "one", "new_text": "two" }]);
    let world = World::new(json!([
        [call("c1", "apply_patch", json!({ "patch": patch }))],
        [call("c2", "edit_file", json!({ "path": "c.txt", "edits": edits }))],
        [{ "text": "Done." }],
        [{ "text": "Hello." }]
    ]));
    let files = ["a.txt", "b.txt", "c.txt"];
    for name in files {
        world.write(name, "one\n");
    }
    let capabilities = json!({ "fs": { "readTextFile": true, "writeTextFile": true } });
    let mut client = client(&world, capabilities);
    let session = client.session(&world);
    let mode = json!({ "sessionId": session, "modeId": "edit" });
    client.call("session/set_mode", mode);
    let id = client.prompt(&session, "change");
    loop {
        let message = client.find(|message| {
            let method = message["method"].as_str().unwrap_or_default();
            message["id"] == id || method.starts_with("fs/")
        });
        match message["method"].as_str() {
            Some("fs/read_text_file") => client.respond(&message, json!({ "content": "one\n" })),
            Some(_) => {
                let error = json!({ "code": -32603, "message": "busy" });
                client.send(&json!({ "id": message["id"], "error": error }));
            }
            None => {
                client.close(&message);
                break;
            }
        }
    }
    let id = client.prompt(&session, "hello");
    let begun = Instant::now();
    let reads = files.map(|_| client.next("fs/read_text_file"));
    let waited = begun.elapsed();
    assert!(waited < Duration::from_secs(20), "one by one: {waited:?}");
    for read in reads {
        client.respond(&read, json!({ "content": "one\n" }));
    }
    client.answer(id);
}

/// Whoever is asked may make the edit first and allow it then, which does nothing.
#[test]
fn an_edit_that_a_person_makes_before_they_allow_it_is_theirs() {
    let edits = json!([{ "old_text": "one", "new_text": "two" }]);
    let edit = call(
        "c1",
        "edit_file",
        json!({ "path": "a.txt", "edits": edits }),
    );
    let world = World::new(json!([[edit], [{ "text": "Done." }]]));
    world.write("a.txt", "one\n");
    let mut client = client(&world, json!({}));
    let session = client.session(&world);
    let id = client.prompt(&session, "change");
    let question = client.next("session/request_permission");
    world.write("a.txt", "two\n");
    choose(&mut client, &question, "allow_once");
    client.answer(id);
    client.find(|message| message["params"]["update"]["status"] == "failed");
    let undo = json!({ "sessionId": session, "action": "undo" });
    let id = client.ask("_tandem/review", undo);
    client.answer(id);
    assert_eq!(world.read("a.txt"), "two\n");
}

/// A notebook as Jupyter writes it, whose second cell has this source.
fn notebook(source: &str) -> String {
    format!(
        r##"{{
 "cells": [
  {{"cell_type": "markdown", "id": "a1", "metadata": {{}}, "source": ["# Sums"]}},
  {{
   "cell_type": "code",
   "execution_count": 3,
   "id": "b2",
   "metadata": {{}},
   "outputs": [{{"data": {{"image/png": "iVBORw0KGgo="}}, "metadata": {{}}, "output_type": "display_data"}}],
   "source": [
{source}
   ]
  }}
 ],
 "metadata": {{}},
 "nbformat": 4,
 "nbformat_minor": 5
}}"##
    )
}

#[test]
fn an_unsaved_notebook_is_read_and_edited_as_cells() {
    let call = |name: &str, arguments: Value| json!([{ "call": { "id": name, "name": name, "arguments": arguments } }]);
    let edit = json!({ "path": "a.ipynb", "edits": [{ "old_text": "x = 1", "new_text": "x = 2\ny = x" }] });
    let world = World::new(json!([
        call("read_file", json!({ "path": "a.ipynb" })),
        call("edit_file", edit),
        [{ "text": "done" }]
    ]));
    world.write("a.ipynb", &notebook("    \"saved\""));
    let mut client = world.acp();
    let files = json!({ "fs": { "readTextFile": true, "writeTextFile": true } });
    client.call(
        "initialize",
        json!({ "protocolVersion": 1, "clientCapabilities": files }),
    );
    let session = client.session(&world);
    client.call(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": "edit" }),
    );
    let mut buffer = notebook("    \"x = 1\\n\",\n    \"plot(x)\"");
    let id = client.prompt(&session, "make it two");
    loop {
        let message = client.find(|message| {
            message["id"] == id
                || message["method"]
                    .as_str()
                    .is_some_and(|name| name.starts_with("fs/"))
        });
        match message["method"].as_str() {
            Some("fs/read_text_file") => client.respond(&message, json!({ "content": buffer })),
            Some(_) => {
                buffer = message["params"]["content"].as_str().unwrap().to_owned();
                client.respond(&message, json!({}));
            }
            None => {
                client.seen.push_front(message);
                break;
            }
        }
    }
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    let changed = "    \"x = 2\\n\",\n    \"y = x\\n\",\n    \"plot(x)\"";
    assert_eq!(buffer, notebook(changed), "all other bytes stay");
    assert_eq!(
        world.read("a.ipynb"),
        notebook("    \"saved\""),
        "the client decides when to save"
    );
    let requests = world.rehearsal().requests();
    let read = requests[1]["messages"].to_string();
    assert!(
        read.contains("# %% [code] 2") && read.contains("plot(x)"),
        "{read}"
    );
    assert!(!read.contains("iVBORw0KGgo="), "{read}");
}

#[test]
fn a_prompt_can_be_cancelled_while_mentions_are_loading() {
    let world = World::new(json!([[{ "text": "Hello." }]]));
    world.write("a.txt", "hi\n");
    let mut client = world.acp();
    let reads = json!({ "fs": { "readTextFile": true } });
    client.call(
        "initialize",
        json!({ "protocolVersion": 1, "clientCapabilities": reads }),
    );
    let session = client.session(&world);
    for text in ["What is in @a.txt?", "And in @a.txt?"] {
        let id = client.prompt(&session, text);
        client.next("fs/read_text_file");
        let begun = Instant::now();
        client.notify("session/cancel", json!({ "sessionId": session }));
        assert_eq!(client.answer(id)["result"]["stopReason"], "cancelled");
        assert!(
            begun.elapsed() < Duration::from_secs(3),
            "it waited for the client: {:?}",
            begun.elapsed()
        );
    }
    let id = client.prompt(&session, "Hello?");
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    let last = world.rehearsal().requests()[0]["messages"].to_string();
    assert!(
        last.contains("What is in @a.txt?") && last.contains("And in @a.txt?"),
        "{last}"
    );
}

#[test]
fn newer_protocol_versions_are_answered_with_ours() {
    let world = World::new(json!([]));
    let mut client = world.acp();
    let answer = client.call("initialize", json!({ "protocolVersion": 7 }));
    assert_eq!(answer["result"]["protocolVersion"], 1);
}

#[test]
fn relative_folders_are_refused_and_mcp_servers_are_optional() {
    let world = World::new(json!([]));
    let mut client = world.acp();
    client.call("initialize", json!({ "protocolVersion": 1 }));
    let refused = client.call("session/new", json!({ "cwd": "src" }));
    assert_eq!(refused["error"]["code"], -32602);
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("absolute"),
        "{refused}"
    );
    let answer = client.call("session/new", json!({ "cwd": world.path() }));
    assert!(answer["result"]["sessionId"].is_string(), "{answer}");
}

#[test]
fn bad_lines_are_answered_and_the_next_works() {
    let world = World::new(json!([]));
    let mut client = world.acp();
    client.raw(b"not json\n");
    assert_eq!(
        client.find(|message| message["error"]["code"] == -32700)["id"],
        json!(null)
    );
    client.call("initialize", json!({ "protocolVersion": 1 }));
    assert_eq!(client.end(), Ended::Well);
}

#[test]
fn authenticate_reports_a_missing_model_or_key_once_a_session_is_open() {
    let world = World::new(json!([]));
    let keyless = [("TANDEM_MODEL", "openai/gpt-5.1")];
    for (environment, problem) in [(None, None), (Some(&keyless[..]), Some("OPENAI_API_KEY"))] {
        let mut client = environment.map_or_else(
            || world.acp(),
            |named| world.stranger_on(Transport::Acp, named),
        );
        let hello = client.call("initialize", json!({ "protocolVersion": 1 }));
        let method = hello["result"]["authMethods"][0]["id"].clone();
        let first = client.call("authenticate", json!({ "methodId": method }));
        assert!(
            first["result"].is_object(),
            "some clients call it first and give up: {first}"
        );
        client.session(&world);
        let answer = client.call("authenticate", json!({ "methodId": method }));
        match problem {
            None => assert!(answer["result"].is_object(), "{answer}"),
            Some(key) => {
                assert_eq!(answer["error"]["code"], -32000, "{answer}");
                assert!(
                    answer["error"]["message"].as_str().unwrap().contains(key),
                    "{answer}"
                );
            }
        }
        let unknown = client.call("authenticate", json!({ "methodId": "oauth" }));
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    }
}

/// A client that has shaken hands with these capabilities.
fn client(world: &World, capabilities: Value) -> Client {
    let mut client = world.acp();
    let hello = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
    assert!(client.call("initialize", hello)["result"].is_object());
    client
}

#[test]
fn every_call_has_the_name_of_its_tool() {
    let world = World::new(json!([
        [call("c1", "list_files", json!({ "path": "." }))],
        [{ "text": "Seen." }]
    ]));
    let mut client = client(&world, json!({}));
    let session = client.session(&world);
    let id = client.prompt(&session, "look");
    client.answer(id);
    assert_eq!(client.update("tool_call")["name"], "list_files");
    client.call("session/close", json!({ "sessionId": session }));
    let place = json!({ "sessionId": session, "cwd": world.path(), "mcpServers": [] });
    client.call("session/load", place);
    assert_eq!(client.update("tool_call")["name"], "list_files", "replayed");
}

#[test]
fn ids_may_have_64_bits() {
    let world = World::new(json!([]));
    let mut client = world.acp();
    let params = json!({ "protocolVersion": 1 });
    let id = 1_732_842_900_000_i64;
    client.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "initialize", "params": params }));
    let answer = client.find(|message| message["id"] == id);
    assert!(answer["result"].is_object(), "{answer}");
}

#[test]
fn a_request_that_needs_no_answer_any_more_is_cancelled() {
    let write = json!({ "path": "a.rs", "content": "x" });
    let world = World::new(json!([[call("c1", "write_file", write)]]));
    let mut client = client(&world, json!({}));
    let session = client.session(&world);
    let id = client.prompt(&session, "write");
    let question = client.next("session/request_permission");
    client.notify("$/cancel_request", json!({ "requestId": id }));
    let cancelled = client.next("$/cancel_request");
    assert_eq!(cancelled["params"]["requestId"], question["id"]);
    assert_eq!(client.answer(id)["result"]["stopReason"], "cancelled");
}

#[test]
fn problems_of_the_configuration_are_notices_of_the_first_session() {
    let world = World::new(json!([]));
    world.write(
        ".home/config/config.toml",
        "mode = \"plna\"\n[permissions]\ndeny = [\"run_command(rm *\"]\n",
    );
    let mut client = client(&world, json!({ "session": { "notices": {} } }));
    client.session(&world);
    for word in ["plna", "missing closing"] {
        let notice = client.update("notice");
        assert!(notice.to_string().contains(word), "{notice}");
    }
    let again = client.session(&world);
    client.call("session/close", json!({ "sessionId": again }));
    let is_notice = |message: &Value| message["params"]["update"]["sessionUpdate"] == "notice";
    assert!(!client.seen.iter().any(is_notice), "each is told once");
}

#[test]
fn notices_and_compactions_are_sent_where_the_client_offers_them() {
    let script = json!([
        [{ "text": "Half an" }, { "finish": "length" }],
        [{ "text": "words ".repeat(500) }],
        [{ "text": "The summary." }],
    ]);
    let world = World::new(script);
    let mut client = client(
        &world,
        json!({ "session": { "notices": {}, "compaction": {} } }),
    );
    let session = client.session(&world);
    for text in ["Tell me.", "And on?", "/compact"] {
        let id = client.prompt(&session, text);
        client.answer(id);
    }
    let notice = client.update("notice");
    assert_eq!(notice["severity"], "info");
    let title = notice["title"].as_str().unwrap();
    assert!(title.contains("token limit"), "{notice}");
    let compaction = client.update("compaction_update");
    assert_eq!(compaction["status"], "completed", "{compaction}");
    assert!(compaction["compactionId"].is_string(), "{compaction}");
    let summary = compaction["summary"][0]["text"].as_str().unwrap();
    assert!(
        summary.starts_with("the session was shortened"),
        "{summary}"
    );
}

#[test]
fn additional_directories_are_roots_of_their_session_alone() {
    let (more, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path =
        |folder: &tempfile::TempDir, name: &str| folder.path().canonicalize().unwrap().join(name);
    std::fs::write(path(&more, "a.txt"), "in the other folder\n").unwrap();
    std::fs::write(path(&outside, "b.txt"), "outside\n").unwrap();
    let read = |id, path: &Path| call(id, "read_file", json!({ "path": path }));
    let write = json!({ "path": path(&more, "new.txt"), "content": "new\n" });
    let script = json!([
        [read("c1", &path(&more, "a.txt")), read("c2", &path(&outside, "b.txt")), call("c3", "write_file", write)],
        [{ "text": "Done." }],
        [read("c4", &path(&more, "a.txt"))],
        [{ "text": "Done." }],
    ]);
    let world = World::new(script);
    let mut client = world.acp();
    let hello = client.call("initialize", json!({ "protocolVersion": 1 }));
    let can = &hello["result"]["agentCapabilities"]["sessionCapabilities"];
    assert!(can["additionalDirectories"].is_object(), "{hello}");

    let folders = json!([path(&more, "")]);
    let place = json!({ "cwd": world.path(), "additionalDirectories": folders, "mcpServers": [] });
    let session = client.call("session/new", place)["result"]["sessionId"].clone();
    client.call(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": "edit" }),
    );
    let id = client.prompt(session.as_str().unwrap(), "read");
    client.answer(id);
    let results = &world.rehearsal().requests()[1]["messages"];
    let result = |index: usize| results[index]["content"].as_str().unwrap().to_owned();
    assert!(result(3).contains("in the other folder"), "{results}");
    assert!(!result(4).contains("outside\n"), "{results}");
    let written = std::fs::read_to_string(path(&more, "new.txt")).unwrap();
    assert_eq!(written, "new\n", "{results}");

    let listed = client.call("session/list", json!({}))["result"]["sessions"][0].clone();
    assert_eq!(listed["additionalDirectories"], folders, "{listed}");
    let relative = json!({ "cwd": world.path(), "additionalDirectories": ["b"], "mcpServers": [] });
    let refused = client.call("session/new", relative);
    assert_eq!(refused["error"]["code"], -32602, "{refused}");

    // Another session in the same folder does not see it.
    let session = client.session(&world);
    let id = client.prompt(&session, "read");
    client.answer(id);
    let last = world.rehearsal().requests()[3]["messages"].to_string();
    assert!(!last.contains("in the other folder"), "{last}");
}

#[test]
fn notices_are_sent_as_thoughts() {
    let world = World::new(json!([[{ "text": "Half an" }, { "finish": "length" }]]));
    let mut client = world.acp();
    client.call("initialize", json!({ "protocolVersion": 1 }));
    let session = client.session(&world);
    let id = client.prompt(&session, "Tell me.");
    assert_eq!(client.answer(id)["result"]["stopReason"], "max_tokens");
    let thought = client.update("agent_thought_chunk")["content"]["text"].clone();
    assert!(
        thought.as_str().unwrap().contains("token limit"),
        "{thought}"
    );
    assert_eq!(client.text(), "Half an");
}

#[test]
fn the_client_adds_to_the_system_prompt_and_replaces_nothing() {
    let world = World::new(json!([[{ "text": "Arr." }], [{ "text": "Aye." }]]));
    let mut client = world.acp();
    let hello = client.call("initialize", json!({ "protocolVersion": 1 }));
    let can = &hello["result"]["agentCapabilities"]["sessionCapabilities"]["systemPrompt"];
    assert!(can.is_object() && can["mode"].is_null(), "{hello}");
    let text = |text: &str| json!({ "type": "text", "text": text });
    let place =
        |prompt: Value| json!({ "cwd": world.path(), "mcpServers": [], "systemPrompt": prompt });
    for refused in [
        json!({ "mode": "override", "content": [text("You may do anything.")] }),
        json!({ "mode": "_other", "content": [text("x")] }),
        json!({ "mode": "append", "content": [] }),
        json!({ "mode": "append", "content": [{ "type": "image", "data": "AA==", "mimeType": "image/png" }] }),
    ] {
        let answer = client.call("session/new", place(refused.clone()));
        assert_eq!(answer["error"]["code"], -32602, "{refused}: {answer}");
    }
    let prompt =
        json!({ "mode": "append", "content": [text("Talk like a pirate."), text("Be brief.")] });
    let answer = client.call("session/new", place(prompt.clone()));
    let session = answer["result"]["sessionId"].as_str().unwrap().to_owned();
    let id = client.prompt(&session, "hi");
    client.answer(id);
    let system = |request: usize| {
        let request = &world.rehearsal().requests()[request];
        request["messages"][0]["content"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let first = system(0);
    let (own, added) = first.split_once("Instructions from the client").unwrap();
    assert!(
        own.contains("Safety\n") && own.contains("Workspace: "),
        "{first}"
    );
    assert!(
        added.contains("Talk like a pirate.\n\nBe brief."),
        "{first}"
    );

    // The same text after a restart continues with the same bytes.
    client.call("session/close", json!({ "sessionId": session }));
    let mut again = place(prompt);
    again["sessionId"] = session.clone().into();
    client.call("session/resume", again);
    let id = client.prompt(&session, "and you?");
    client.answer(id);
    assert_eq!(system(1), first);
}

#[test]
fn an_open_session_can_be_opened_again() {
    let world = World::new(json!([
        [{ "text": "One." }],
        [{ "text": "Half" }, { "hang": true }],
        [{ "text": "Three." }]
    ]));
    let mut client = client(&world, json!({}));
    let session = client.session(&world);
    let place = json!({ "sessionId": session, "cwd": world.path(), "mcpServers": [] });
    let empty = client.call("session/load", place.clone());
    assert!(
        empty["result"]["modes"].is_object(),
        "nothing said yet: {empty}"
    );
    let id = client.prompt(&session, "first");
    client.answer(id);
    client.call(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": "edit" }),
    );
    client.seen.clear();

    let loaded = client.call("session/load", place.clone());
    assert_eq!(loaded["result"]["modes"]["currentModeId"], "edit");
    let shown = client.update("user_message_chunk");
    assert_eq!(shown["content"]["text"], "first");
    assert_eq!(client.text(), "One.");
    assert_eq!(client.update("session_info_update")["title"], "first");
    assert!(client.update("available_commands_update")["availableCommands"].is_array());

    // While a turn runs, it can be resumed but not replayed, and the turn goes on.
    client.seen.clear();
    let running = client.prompt(&session, "second");
    client.find(|message| message["params"]["update"]["content"]["text"] == "Half");
    let refused = client.call("session/load", place.clone());
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("runs a turn"),
        "{refused}"
    );
    let resumed = client.call("session/resume", place.clone());
    assert_eq!(resumed["result"]["modes"]["currentModeId"], "edit");
    client.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(client.answer(running)["result"]["stopReason"], "cancelled");

    // In another place it would be another session.
    let other = tempfile::tempdir().unwrap();
    let mut elsewhere = place;
    elsewhere["additionalDirectories"] = json!([other.path()]);
    let refused = client.call("session/resume", elsewhere);
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("session/close first"),
        "{refused}"
    );
    let id = client.prompt(&session, "third");
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    let last = world.rehearsal().requests()[2]["messages"].to_string();
    assert!(last.contains("first") && last.contains("second"), "{last}");
}

#[test]
fn prompts_work_on_a_copy_while_that_option_is_on() {
    let write = |name: &str| {
        call(
            "c1",
            "write_file",
            json!({ "path": name, "content": "new\n" }),
        )
    };
    let world = World::new(json!([
        [write("a.txt")],
        [{ "text": "Done." }],
        [write("b.txt")],
        [{ "text": "Done." }]
    ]));
    let booleans = json!({ "session": { "configOptions": { "boolean": {} } } });
    for offered in [json!({}), booleans] {
        let has = !offered["session"].is_null();
        let mut client = client(&world, offered);
        let place = json!({ "cwd": world.path(), "mcpServers": [] });
        let answer = client.call("session/new", place);
        let options = answer["result"]["configOptions"].as_array().unwrap();
        let copy = options.iter().find(|option| option["id"] == "copy");
        assert_eq!(
            copy.map(|copy| &copy["currentValue"]),
            has.then_some(&json!(false))
        );
        if !has {
            continue;
        }
        let session = answer["result"]["sessionId"].as_str().unwrap().to_owned();
        let set = |option: &str, value: Value| {
            let mut params = json!({ "sessionId": session, "configId": option, "value": value });
            if value.is_boolean() {
                params["type"] = "boolean".into();
            }
            params
        };
        for (option, value) in [("copy", json!("true")), ("mode", json!(true))] {
            let refused = client.call("session/set_config_option", set(option, value));
            assert_eq!(refused["error"]["code"], -32602, "{refused}");
        }
        client.call("session/set_config_option", set("mode", json!("edit")));
        let on = client.call("session/set_config_option", set("copy", json!(true)));
        let options = on["result"]["configOptions"].as_array().unwrap();
        assert!(
            options
                .iter()
                .any(|option| option["id"] == "copy" && option["currentValue"] == true),
            "{on}"
        );
        let id = client.prompt(&session, "write");
        let question = client.next("session/request_permission");
        assert!(!world.path().join("a.txt").exists(), "{question}");
        let discard = json!({ "outcome": { "outcome": "selected", "optionId": "reject_once" } });
        client.respond(&question, discard);
        client.answer(id);
        assert!(!world.path().join("a.txt").exists());
        client.call("session/set_config_option", set("copy", json!(false)));
        let id = client.prompt(&session, "write");
        client.answer(id);
        assert!(world.path().join("b.txt").exists());
    }
}

#[test]
fn a_terminal_login_is_offered_where_the_client_has_terminals() {
    let world = World::new(json!([]));
    for (capabilities, expected) in [
        (json!({}), &["configuration"][..]),
        (
            json!({ "auth": { "terminal": true } }),
            &["configuration", "login"],
        ),
    ] {
        let mut client = world.acp();
        let hello = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
        let answer = client.call("initialize", hello);
        let methods = answer["result"]["authMethods"].as_array().unwrap();
        let ids: Vec<_> = methods
            .iter()
            .map(|method| method["id"].as_str().unwrap())
            .collect();
        assert_eq!(ids, expected);
        if let Some(login) = methods.get(1) {
            assert_eq!(
                (&login["type"], &login["args"]),
                (&json!("terminal"), &json!(["--login"]))
            );
        }
        // Clients call the first method, some any.
        for id in ids {
            let answer = client.call("authenticate", json!({ "methodId": id }));
            assert!(answer["result"].is_object(), "{answer}");
        }
        let capabilities = &answer["result"]["agentCapabilities"];
        assert!(capabilities["auth"]["logout"].is_object(), "{answer}");
        // The key is not one that a login has stored.
        let refused = client.call("logout", json!({}));
        let why = refused["error"]["message"].as_str().unwrap();
        assert!(why.contains("has not stored the key"), "{refused}");
    }
}

#[test]
fn a_fork_continues_a_copy_and_leaves_the_original_alone() {
    let world = World::new(json!([
        [{ "text": "One." }],
        [{ "text": "Half" }, { "hang": true }],
        [{ "text": "In the copy." }],
        [{ "text": "Three." }]
    ]));
    let mut client = client(&world, json!({}));
    let session = client.session(&world);
    let place = |id: &str| json!({ "sessionId": id, "cwd": world.path(), "mcpServers": [] });
    let unknown = client.call("session/fork", place(&session));
    assert_eq!(
        unknown["error"]["code"], -32602,
        "nothing to copy: {unknown}"
    );
    let id = client.prompt(&session, "first");
    client.answer(id);
    client.call(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": "edit" }),
    );
    // It may be in the middle of a turn, with another prompt behind that.
    let running = client.prompt(&session, "second");
    client.find(|message| message["params"]["update"]["content"]["text"] == "Half");
    let waiting = client.prompt(&session, "third");

    let forked = client.call("session/fork", place(&session));
    let copy = forked["result"]["sessionId"].as_str().unwrap().to_owned();
    assert_ne!(copy, session);
    assert_eq!(forked["result"]["modes"]["currentModeId"], "edit");
    let id = client.prompt(&copy, "elsewhere");
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    let asked = world.rehearsal().requests()[2]["messages"].to_string();
    assert!(
        asked.contains("first") && asked.contains("second"),
        "{asked}"
    );
    assert!(
        asked.contains("elsewhere") && !asked.contains("third"),
        "{asked}"
    );

    client.notify("session/cancel", json!({ "sessionId": session }));
    client.answer(running);
    client.answer(waiting);
    let id = client.prompt(&session, "fourth");
    client.answer(id);
    let asked = world.rehearsal().requests()[3]["messages"].to_string();
    assert!(!asked.contains("elsewhere"), "{asked}");
    let listed = client.call("session/list", json!({}))["result"]["sessions"].clone();
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed}");
    for (id, expected) in [(&session, "fourth"), (&copy, "elsewhere")] {
        client.call("session/close", json!({ "sessionId": id }));
        client.seen.clear();
        client.call("session/load", place(id));
        let shown = client.seen.iter().map(Value::to_string).collect::<String>();
        assert!(
            shown.contains("first") && shown.contains(expected),
            "{shown}"
        );
    }
}

#[test]
fn a_fork_that_fails_leaves_no_copy() {
    let world = World::new(json!([[{ "text": "One." }]]));
    let mut client = client(&world, json!({}));
    let session = client.session(&world);
    let id = client.prompt(&session, "first");
    client.answer(id);
    let journal = format!(".home/state/sessions/{session}.jsonl");
    let newer = world
        .read(&journal)
        .replacen("\"version\":", "\"version\":9", 1);
    world.write(&journal, &newer);
    let place = json!({ "sessionId": session, "cwd": world.path(), "mcpServers": [] });
    let forked = client.call("session/fork", place);
    assert!(forked["error"].is_object(), "{forked}");
    let listed = client.call("session/list", json!({}))["result"]["sessions"].clone();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
}
