//! `/try` turns: a turn on a copy of the workspace, whose changes are applied at its end or not at all.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use super::changes::automatic;
use super::*;
use crate::driver::choose;
use crate::git::git;
use crate::program::Program;

const APPLY: &str = "allow_once";
const DISCARD: &str = "reject_once";

/// The entry at each path of a folder: kind and content, permissions, and modification time.
fn contents(folder: &Path) -> BTreeMap<PathBuf, (String, u32, i64)> {
    let mut found = BTreeMap::new();
    let mut ahead = vec![folder.to_owned()];
    while let Some(next) = ahead.pop() {
        for entry in next.read_dir().unwrap().flatten() {
            let (path, metadata) = (entry.path(), entry.metadata().unwrap());
            let (content, time) = if metadata.is_dir() {
                ahead.push(path.clone());
                ("folder".to_owned(), 0)
            } else if metadata.is_symlink() {
                (
                    format!("link to {}", path.read_link().unwrap().display()),
                    0,
                )
            } else {
                let bytes = std::fs::read(&path).unwrap();
                (
                    String::from_utf8_lossy(&bytes).into_owned(),
                    metadata.mtime_nsec() + metadata.mtime() * 1_000_000_000,
                )
            };
            found.insert(path, (content, metadata.mode(), time));
        }
    }
    found
}

/// The same without times, which undo does not restore.
pub(super) fn without_times(folder: &Path) -> BTreeMap<PathBuf, (String, u32)> {
    contents(folder)
        .into_iter()
        .map(|(path, (content, mode, _))| (path, (content, mode)))
        .collect()
}

/// A server that can be killed, with its state in `state`.
fn serve_in(stage: &Stage, state: &Path) -> (Program, Client) {
    let (program, mut client) = stage.world.serve_with(Transport::Lsp, |command| {
        let path = std::env::var_os("PATH").unwrap();
        command
            .env("PATH", path)
            .env("HOME", stage.home.path().join("me"))
            .env("TANDEM_STATE_DIR", state);
    });
    client.shake_hands(
        stage
            .world
            .handshake(json!({ "experimental": { "tandem": {} } })),
    );
    (program, client)
}

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({ "tool": "edit_file", "path": path, "edits": [{ "old_text": old, "new_text": new }] })
}

fn write(path: &str, content: &str) -> Value {
    json!({ "tool": "write_file", "path": path, "content": content })
}

/// A session whose prompts run on a private copy, in a mode that allows edits and commands.
struct Trial {
    client: Client,
    session: String,
    stage: Stage,
}

impl Trial {
    fn new(level: Level, calls: &[Value], prepare: impl FnOnce(&Path)) -> Self {
        let stage = Stage::new(level, calls);
        prepare(&stage.world.path());
        Self::on(stage)
    }

    /// A model that follows a script of several turns.
    fn of(script: Value) -> Self {
        Self::on(Stage {
            world: World::new(script),
            ..Stage::new(Level::Best, &[])
        })
    }

    fn on(stage: Stage) -> Self {
        let mut client = stage.client();
        let session = automatic(&mut client, &stage);
        Self {
            client,
            session,
            stage,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.stage.world.path().join(name)
    }

    fn begin(&mut self) -> i64 {
        self.client.prompt(&self.session, "/try change it")
    }

    /// The request to apply the changes.
    fn request(&mut self) -> Value {
        let request = self.client.next("session/request_permission");
        let title = &request["params"]["toolCall"]["title"];
        assert!(
            title.as_str().unwrap().starts_with("Apply the changes to "),
            "{title}"
        );
        request
    }

    fn ends(&mut self, prompt: i64) -> String {
        self.client.answer(prompt)["result"]["stopReason"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// A whole turn with this answer to the request to apply.
    fn play(&mut self, answer: &str) {
        let prompt = self.begin();
        let request = self.request();
        choose(&mut self.client, &request, answer);
        assert_eq!(self.ends(prompt), "end_turn");
    }

    fn review(&mut self, action: &str) -> Value {
        self.client.call(
            "_tandem/review",
            json!({ "sessionId": self.session, "action": action }),
        )
    }

    /// The existing copies of workspaces.
    fn copies(&self) -> usize {
        let folders = self.stage.home.path().join("state/commands").read_dir();
        folders.map_or(0, |folders| {
            folders
                .flatten()
                .filter(|folder| folder.path().join("copies").exists())
                .count()
        })
    }

    /// The last content of the call that applies the changes.
    fn applied(&mut self) -> String {
        let message = self.client.find(|message| {
            let update = &message["params"]["update"];
            let is_apply = update["toolCallId"]
                .as_str()
                .is_some_and(|id| id.starts_with("apply-"));
            is_apply && (update["status"] == "completed" || update["status"] == "failed")
        });
        message["params"]["update"]["content"].to_string()
    }
}

#[test]
fn in_mode_ask_only_the_end_requires_approval() {
    let calls = [
        write("made.txt", "made\n"),
        write("too.txt", "too\n"),
        run("cat made.txt too.txt > both.txt"),
    ];
    let mut trial = Trial::new(Level::Best, &calls, |_| {});
    let mode = json!({ "sessionId": trial.session, "modeId": "ask" });
    trial.client.call("session/set_mode", mode);
    trial.play(APPLY);
    assert_eq!(trial.stage.world.read("both.txt"), "made\ntoo\n");
    assert_eq!(trial.stage.world.read("made.txt"), "made\n");
}

#[test]
#[expect(clippy::too_many_lines, reason = "one story, in order")]
fn edits_and_commands_see_each_other_and_nothing_changes_until_apply() {
    let calls = [
        write("new/made.txt", "made\n"),
        run(
            "cat new/made.txt b.rs && echo two >> a.txt && chmod 750 a.txt && rm gone && ln -s a.txt link && pwd",
        ),
        json!({ "tool": "read_file", "path": "a.txt" }),
        edit("b.rs", "unsaved", "fresh"),
        run("grep -c fresh b.rs; git status --short a.txt; printf '\\377\\376' > binary; ls -A"),
    ];
    let mut trial = Trial::new(Level::Best, &calls, |folder| {
        std::fs::write(folder.join("a.txt"), "one\n").unwrap();
        std::fs::write(folder.join("b.rs"), "// saved\n").unwrap();
        std::fs::write(folder.join("gone"), "there\n").unwrap();
        git(folder, &["init", "-q"]);
        git(folder, &["add", "."]);
        git(folder, &["commit", "-qm", "first"]);
    });
    let uri = trial.stage.world.uri("b.rs");
    trial.client.open(&uri, "// unsaved\n");
    let before = contents(&trial.stage.world.path());
    let prompt = trial.begin();
    let request = trial.request();
    assert_eq!(
        contents(&trial.stage.world.path()),
        before,
        "only the copy has changed"
    );
    assert!(
        trial
            .client
            .seen
            .iter()
            .all(|message| message["method"] != "workspace/applyEdit")
    );
    let options = request["params"]["options"].as_array().unwrap();
    let names: Vec<_> = options
        .iter()
        .map(|option| option["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["Apply", "Discard"]);
    let content = request["params"]["toolCall"]["content"].to_string();
    for diff in [
        r#""oldText":"one\n""#,
        r#""newText":"one\ntwo\n""#,
        r#""newText":"// fresh\n""#,
        r#""newText":"made\n""#,
    ] {
        assert!(content.contains(diff), "{diff}: {content}");
    }
    choose(&mut trial.client, &request, APPLY);

    let asked = trial.client.next("workspace/applyEdit");
    assert_eq!(
        asked["params"]["edit"]["documentChanges"][0]["edits"][0]["newText"],
        "fresh"
    );
    let shows = |client: &mut Client, version: i32, text: &str| {
        let change = json!({ "textDocument": { "uri": uri, "version": version }, "contentChanges": [{ "text": text }] });
        client.notify("textDocument/didChange", change);
    };
    shows(&mut trial.client, 2, "// fresh\n");
    trial.client.respond(&asked, json!({ "applied": true }));
    assert_eq!(trial.ends(prompt), "end_turn");
    let told = trial.stage.told();
    assert!(
        told[1].starts_with(&format!(
            "made\n// unsaved\n{}\n[exit",
            trial.stage.world.path().display()
        )),
        "{told:?}"
    );
    assert!(told[2].contains("two"), "{told:?}");
    assert!(told[4].starts_with("1\n M a.txt\n"), "{told:?}");
    assert_eq!(trial.stage.world.read("a.txt"), "one\ntwo\n");
    assert_eq!(
        trial.path("a.txt").metadata().unwrap().permissions().mode() & 0o777,
        0o750
    );
    assert_eq!(
        trial.stage.world.read("b.rs"),
        "// saved\n",
        "its change is in the editor, unsaved"
    );
    assert_eq!(trial.stage.world.read("new/made.txt"), "made\n");
    assert_eq!(std::fs::read(trial.path("binary")).unwrap(), b"\xff\xfe");
    assert_eq!(trial.path("link").read_link().unwrap(), Path::new("a.txt"));
    assert!(!trial.path("gone").exists());
    until("the copy is removed", || trial.copies() == 0);

    let listed = trial.review("list");
    assert_eq!(
        listed["result"]["turns"].as_array().unwrap().len(),
        1,
        "{listed}"
    );
    let undone = trial.client.ask(
        "_tandem/review",
        json!({ "sessionId": trial.session, "action": "undo" }),
    );
    let asked = trial.client.next("workspace/applyEdit");
    shows(&mut trial.client, 3, "// unsaved\n");
    trial.client.respond(&asked, json!({ "applied": true }));
    let undone = trial.client.answer(undone);
    assert_eq!(undone["result"]["left"], json!([]), "{undone}");
    let kept = |(path, (content, mode, _)): (PathBuf, (String, u32, i64))| (path, (content, mode));
    assert_eq!(
        without_times(&trial.stage.world.path()),
        before.into_iter().map(kept).collect()
    );
}

#[test]
fn discarded_and_cancelled_turns_change_nothing_and_the_model_is_told() {
    let script = json!([
        [{ "call": { "id": "c1", "name": "write_file", "arguments": { "path": "a", "content": "tried" } } }],
        [{ "text": "Done." }],
        [{ "call": { "id": "c2", "name": "write_file", "arguments": { "path": "a", "content": "again" } } }],
        [{ "gate": "go" }, { "text": "Done." }],
        [{ "text": "Hello." }],
    ]);
    let mut trial = Trial::of(script);
    // An empty file may be overwritten unread.
    trial.stage.world.write("a", "");
    let before = contents(&trial.stage.world.path());
    trial.play(DISCARD);
    assert!(
        trial
            .applied()
            .contains("nothing in the workspace was changed")
    );
    assert_eq!(contents(&trial.stage.world.path()), before);
    assert_eq!(trial.review("list")["result"]["turns"], json!([]));

    let prompt = trial.begin();
    trial
        .stage
        .world
        .wait(trial.stage.world.rehearsal().waiting_at("go"));
    trial
        .client
        .notify("session/cancel", json!({ "sessionId": trial.session }));
    assert_eq!(trial.ends(prompt), "cancelled");
    assert_eq!(contents(&trial.stage.world.path()), before);
    until("the copies are removed", || trial.copies() == 0);

    let prompt = trial.client.prompt(&trial.session, "hello");
    assert_eq!(trial.ends(prompt), "end_turn");
    let requests = trial.stage.world.rehearsal().requests();
    let last = |index: usize| {
        requests[index]["messages"]
            .as_array()
            .unwrap()
            .last()
            .unwrap()
            .to_string()
    };
    assert!(
        last(2).contains("the user discarded the changes of that turn"),
        "{}",
        last(2)
    );
    assert!(
        last(4).contains("the user cancelled that turn"),
        "{}",
        last(4)
    );
}

#[test]
fn no_mode_discards_what_a_person_may_apply() {
    let mut trial = Trial::new(Level::Best, &[write("made.txt", "made\n")], |_| {});
    let prompt = trial.begin();
    let request = trial.request();
    let mode = json!({ "sessionId": trial.session, "modeId": "plan" });
    trial.client.call("session/set_mode", mode);
    choose(&mut trial.client, &request, APPLY);
    assert_eq!(trial.ends(prompt), "end_turn");
    assert_eq!(trial.stage.world.read("made.txt"), "made\n");
}

#[test]
fn cancelling_instead_of_applying_cancels_the_turn() {
    let mut trial = Trial::new(Level::Best, &[write("made.txt", "made\n")], |_| {});
    let prompt = trial.begin();
    trial.request();
    trial
        .client
        .notify("session/cancel", json!({ "sessionId": trial.session }));
    assert_eq!(trial.ends(prompt), "cancelled");
    assert!(!trial.path("made.txt").exists());
}

#[test]
fn what_was_typed_or_saved_meanwhile_stays() {
    let calls = [
        edit("open.rs", "two", "2"),
        run("sed -i s/two/2/ closed.txt same.txt && rm removed"),
    ];
    let text = "one\ntwo\nthree\nfour\nfive\n";
    let mut trial = Trial::new(Level::Best, &calls, |folder| {
        for name in ["open.rs", "closed.txt", "same.txt", "removed"] {
            std::fs::write(folder.join(name), text).unwrap();
        }
    });
    let uri = trial.stage.world.uri("open.rs");
    trial.client.open(&uri, text);
    let prompt = trial.begin();
    let request = trial.request();
    let shows = |client: &mut Client, version: i32, text: &str| {
        let change = json!({ "textDocument": { "uri": uri, "version": version }, "contentChanges": [{ "text": text }] });
        client.notify("textDocument/didChange", change);
    };
    shows(&mut trial.client, 2, "one\ntwo\nthree\nfour\nmine\n");
    trial
        .stage
        .world
        .write("closed.txt", "one\ntwo\nthree\nfour\nmine\n");
    trial
        .stage
        .world
        .write("same.txt", "one\nmine\nthree\nfour\nfive\n");
    trial.stage.world.write("removed", "mine\n");
    choose(&mut trial.client, &request, APPLY);
    let asked = trial.client.next("workspace/applyEdit");
    shows(&mut trial.client, 3, "one\n2\nthree\nfour\nmine\n");
    trial.client.respond(&asked, json!({ "applied": true }));
    assert_eq!(trial.ends(prompt), "end_turn");
    assert_eq!(
        trial.stage.world.read("closed.txt"),
        "one\n2\nthree\nfour\nmine\n"
    );
    assert_eq!(
        trial.stage.world.read("same.txt"),
        "one\nmine\nthree\nfour\nfive\n"
    );
    assert_eq!(trial.stage.world.read("removed"), "mine\n");
    assert_eq!(trial.stage.world.read("open.rs"), text);
    assert!(
        !trial.path("closed.txt.held").exists(),
        "no command overwrote it"
    );
    let id = trial.client.prompt(&trial.session, "/review");
    let _no_more_script = trial.client.answer(id);
    let told = trial.stage.world.rehearsal().requests().last().unwrap()["messages"].to_string();
    for left in [
        "not applied: removed: it has been changed since",
        "not applied: same.txt: ",
    ] {
        assert!(told.contains(left), "{left}: {told}");
    }
}

#[test]
fn what_is_saved_after_a_trial_is_restored_when_a_command_removes_it() {
    let script = json!([
        [{ "call": { "id": "c1", "name": "run_command", "arguments": { "command": "echo tried > b" } } }],
        [{ "text": "Done." }],
        [{ "call": { "id": "c2", "name": "run_command", "arguments": { "command": "rm a" } } }],
        [{ "text": "Done." }],
    ]);
    let mut trial = Trial::of(script);
    trial.play(DISCARD);
    trial.stage.world.write("a", "saved after the trial\n");
    let prompt = trial.client.prompt(&trial.session, "remove it");
    assert_eq!(trial.ends(prompt), "end_turn");
    assert!(!trial.path("a").exists());
    trial.review("undo");
    assert_eq!(trial.stage.world.read("a"), "saved after the trial\n");
}

#[test]
fn nothing_leaves_the_copy() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "CANARY").unwrap();
    let out = outside.path().display().to_string();
    let calls = [
        run(
            "echo x > \"$PWD/absolute\"; echo x >> \"$(realpath .)/a\"; cat out/secret way/a; echo x > out/new",
        ),
        run(
            "echo '#!/bin/sh' > .git/hooks/pre-commit; git config alias.x '!touch y'; git commit -qam x; echo x > .git/HEAD",
        ),
        run("cd ..; ls -A; echo x > beside; cat */a; ls -A \"$HOME\"/../state/commands"),
        run(
            "rm -f a; ln -s way/a a; rm -rf sub; ln -s \"$PWD\" sub; echo x > target/built; cat target/built",
        ),
        write("out/by-tool", "x"),
        write("../by-tool", "x"),
        json!({ "tool": "read_file", "path": format!("{out}/secret") }),
        run("echo evil > AGENTS.md; cat AGENTS.md"),
    ];
    let mut trial = Trial::new(Level::Best, &calls, |folder| {
        std::fs::write(folder.join("a"), "mine\n").unwrap();
        std::fs::create_dir_all(folder.join("sub")).unwrap();
        std::fs::create_dir_all(folder.join("target")).unwrap();
        std::fs::write(folder.join("sub/b"), "mine\n").unwrap();
        std::fs::write(folder.join("AGENTS.md"), "be good\n").unwrap();
        std::fs::write(folder.join(".gitignore"), "target\n").unwrap();
        std::fs::write(folder.join("target/built"), "built\n").unwrap();
        symlink(outside.path(), folder.join("out")).unwrap();
        symlink(folder, folder.join("way")).unwrap();
        git(folder, &["init", "-q"]);
        git(folder, &["add", "."]);
        git(folder, &["commit", "-qm", "first"]);
    });
    let before = (
        contents(&trial.stage.world.path()),
        contents(outside.path()),
    );
    let prompt = trial.client.prompt(&trial.session, "/try break out");
    let request = trial.client.find(|message| {
        let title = message["params"]["toolCall"]["title"].as_str();
        message["method"] == "session/request_permission"
            && title.is_some_and(|title| title.starts_with("Apply"))
    });
    assert_eq!(
        (
            contents(&trial.stage.world.path()),
            contents(outside.path())
        ),
        before
    );
    choose(&mut trial.client, &request, DISCARD);
    assert_eq!(trial.ends(prompt), "end_turn");
    assert_eq!(
        (
            contents(&trial.stage.world.path()),
            contents(outside.path())
        ),
        before
    );
    let told = trial.stage.told();
    assert!(told.iter().all(|said| !said.contains("CANARY")), "{told:?}");
    assert!(
        told[0].contains("mine\nx\n"),
        "a link to the workspace is one to the copy: {told:?}"
    );
    assert!(told[1].contains("Read-only file system"), "{told:?}");
    assert!(
        !told[2].contains("session-") && !told[2].contains("mine"),
        "{told:?}"
    );
    assert!(
        told[3].contains("x\n[exit code 0"),
        "ignored folders are copied, too: {told:?}"
    );
    assert!(
        told[4].contains("outside the workspace") && told[5].contains("outside the workspace"),
        "{told:?}"
    );
    assert!(told[7].contains("be good"), "{told:?}");
}

#[test]
fn commands_need_a_sandbox_that_keeps_them_in_the_copy() {
    for level in [Level::Landlock, Level::None] {
        let calls = [run("echo x > by-command"), write("by-tool", "x\n")];
        let mut trial = Trial::new(level, &calls, |_| ());
        trial.play(APPLY);
        assert!(
            trial.stage.told()[0].contains("requires bubblewrap"),
            "{level:?}: {:?}",
            trial.stage.told()
        );
        assert!(!trial.path("by-command").exists(), "{level:?}");
        assert_eq!(trial.stage.world.read("by-tool"), "x\n", "{level:?}");
    }
}

#[test]
fn large_ignored_folders_stay_where_they_are_and_other_large_files_are_refused() {
    let sparse = |path: &Path| {
        std::fs::File::create(path)
            .unwrap()
            .set_len(3 << 30)
            .unwrap();
    };
    let calls = [run(
        "stat -c %s target/large; echo x > target/new; cat small/built; echo y > a",
    )];
    let mut trial = Trial::new(Level::Best, &calls, |folder| {
        for name in ["target", "small"] {
            std::fs::create_dir(folder.join(name)).unwrap();
        }
        std::fs::write(folder.join(".gitignore"), "target\nsmall\n").unwrap();
        std::fs::write(folder.join("small/built"), "built\n").unwrap();
        sparse(&folder.join("target/large"));
    });
    trial.play(DISCARD);
    let told = trial.stage.told();
    assert!(
        told[0].starts_with("3221225472\n") && told[0].contains("Read-only file system\nbuilt\n"),
        "{told:?}"
    );

    let mut trial = Trial::new(Level::Best, &[run("true")], |folder| {
        sparse(&folder.join("large"));
    });
    let prompt = trial.begin();
    let error = trial.client.answer(prompt)["error"]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    let why = "the workspace cannot be copied: ";
    assert!(
        error.contains(why) && error.contains("large is larger than 64 MiB"),
        "{error}"
    );
    assert_eq!(trial.stage.world.rehearsal().requests().len(), 0);
    assert_eq!(trial.copies(), 0);
}

#[test]
fn the_copy_of_a_killed_server_is_removed_at_the_next_start() {
    let stage = Stage::new(Level::Best, &[write("a", "tried\n"), run("echo more >> a")]);
    let state = stage.home.path().join("state");
    let folders = || state.join("commands").read_dir().map_or(0, Iterator::count);
    let (mut program, mut client) = serve_in(&stage, &state);
    let session = automatic(&mut client, &stage);
    client.prompt(&session, "/try go");
    client.find(|message| {
        message["params"]["toolCall"]["title"]
            .as_str()
            .is_some_and(|it| it.starts_with("Apply"))
    });
    assert!(folders() > 0);
    program.signal(rustix::process::Signal::KILL);
    program.ends();
    drop(client);
    assert!(!stage.world.path().join("a").exists());
    let (_program, mut client) = serve_in(&stage, &state);
    let load = json!({ "sessionId": session, "cwd": stage.world.path(), "mcpServers": [] });
    client.call("session/load", load);
    until("the copy is removed", || folders() == 0);
    assert!(!stage.world.path().join("a").exists());
    let listed = client.call(
        "_tandem/review",
        json!({ "sessionId": session, "action": "list" }),
    );
    assert_eq!(listed["result"]["turns"], json!([]));
}

#[test]
fn try_says_what_it_needs() {
    let mut trial = Trial::new(Level::Best, &[], |_| ());
    let ask = |trial: &mut Trial, text: &str| {
        let id = trial.client.prompt(&trial.session, text);
        assert_eq!(trial.client.answer(id)["result"]["stopReason"], "end_turn");
        trial.client.update("agent_message_chunk")["content"]["text"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let many = "/try ".repeat(100_000);
    for text in ["/try", "/try /undo", "/try /try", &many] {
        assert!(
            ask(&mut trial, text).starts_with("`/try PROMPT` runs"),
            "{text:.20}"
        );
    }
    let mode = json!({ "sessionId": trial.session, "modeId": "plan" });
    trial.client.call("session/set_mode", mode);
    assert!(ask(&mut trial, "/try go").contains("mode `plan`"));
    assert_eq!(trial.stage.world.rehearsal().requests().len(), 0);
}

#[test]
fn a_headless_run_discards_because_nobody_can_apply() {
    let stage = Stage::new(Level::Best, &[write("a", "tried\n")]);
    let output = stage.world.run(&["run", "--mode", "edit", "/try go"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(
        output.stderr.contains("Apply the changes to a") && output.stderr.contains("+tried"),
        "{output:?}"
    );
    assert!(
        output
            .stderr
            .contains("discarded, because there is no terminal to ask in"),
        "{output:?}"
    );
    assert!(!stage.world.path().join("a").exists());
}

#[test]
fn calls_that_may_leave_the_copy_require_approval() {
    let calls = [
        json!({ "command": "echo x > a", "network": true }),
        write("a", "x\n"),
    ];
    let mut trial = Trial::new(Level::Best, &calls, |_| ());
    trial.client.call(
        "session/set_mode",
        json!({ "sessionId": trial.session, "modeId": "ask" }),
    );
    let prompt = trial.begin();
    let asked = trial.client.next("session/request_permission");
    assert_eq!(
        asked["params"]["toolCall"]["title"],
        "Run `echo x > a` (with the network)"
    );
    choose(&mut trial.client, &asked, DISCARD);
    let asked = trial.request();
    choose(&mut trial.client, &asked, APPLY);
    assert_eq!(trial.ends(prompt), "end_turn");
    assert_eq!(trial.stage.world.read("a"), "x\n");
}

#[test]
fn a_client_of_acp_that_serves_files_gets_the_merged_text_on_apply() {
    let edit =
        json!({ "path": "a.txt", "edits": [{ "old_text": "on disk", "new_text": "tried" }] });
    let call = json!({ "call": { "id": "c1", "name": "edit_file", "arguments": edit } });
    let world = World::new(json!([[call], [{ "text": "done" }]]));
    world.write("a.txt", "on disk\ntwo\nthree\n");
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
    let prompt = client.prompt(&session, "/try change it");
    let (mut now, mut writes, mut is_asked) = ("on disk\ntwo\nmine\n".to_owned(), 0, false);
    loop {
        let message = client.find(|message| {
            let method = message["method"].as_str().unwrap_or_default();
            method.starts_with("fs/")
                || method == "session/request_permission"
                || message["id"] == prompt
        });
        match message["method"].as_str() {
            Some("fs/read_text_file") => client.respond(&message, json!({ "content": now })),
            Some("fs/write_text_file") => {
                assert!(is_asked, "written before it is applied");
                now = message["params"]["content"].as_str().unwrap().to_owned();
                writes += 1;
                client.respond(&message, json!({}));
            }
            Some(_) => {
                is_asked = true;
                choose(&mut client, &message, APPLY);
            }
            None => {
                client.seen.push_front(message);
                break;
            }
        }
    }
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!((now.as_str(), writes), ("tried\ntwo\nmine\n", 1));
    assert_eq!(
        world.read("a.txt"),
        "on disk\ntwo\nthree\n",
        "the client saves it"
    );
}

#[test]
fn what_was_applied_before_the_server_was_killed_can_be_undone() {
    let line = "for f in f*; do echo new > $f; done; rm gone; echo made > new; chmod 600 a; printf '\\377' > a";
    let stage = Stage::new(Level::Best, &[run(line)]);
    for number in 0..600 {
        stage.world.write(&format!("f{number}"), "old\n");
    }
    stage.world.write("gone", "there\n");
    stage.world.write("a", "one\n");
    // The program's own home is in there, too.
    let now = || {
        let mut now = without_times(&stage.world.path());
        now.retain(|path, _| !path.starts_with(stage.world.home()));
        now
    };
    let before = now();
    let state = stage.home.path().join("state");
    let (mut program, mut client) = serve_in(&stage, &state);
    let session = automatic(&mut client, &stage);
    client.prompt(&session, "/try go");
    let request = client.next("session/request_permission");
    choose(&mut client, &request, APPLY);
    let is_new = |number: &usize| stage.world.read(&format!("f{number}")) == "new\n";
    until("some of it is applied", || {
        (0..600).any(|number| is_new(&number))
    });
    program.signal(rustix::process::Signal::KILL);
    program.ends();
    drop(client);
    let (_program, mut client) = serve_in(&stage, &state);
    client.call(
        "session/load",
        json!({ "sessionId": session, "cwd": stage.world.path(), "mcpServers": [] }),
    );
    let undone = client.call(
        "_tandem/review",
        json!({ "sessionId": session, "action": "undo" }),
    );
    assert_eq!(undone["result"]["left"], json!([]), "{undone}");
    assert_eq!(now(), before);
}

#[test]
fn two_sessions_try_at_once_and_both_results_are_merged() {
    let edits = [edit("a.txt", "one", "1"), edit("a.txt", "five", "5")];
    let reply = |call: &Value| {
        let mut arguments = call.clone();
        let name = arguments.as_object_mut().unwrap().remove("tool").unwrap();
        json!([{ "call": { "id": "c1", "name": name, "arguments": arguments } }])
    };
    let script = [
        reply(&edits[0]),
        json!([{ "text": "Done." }]),
        reply(&edits[1]),
        json!([{ "text": "Done." }]),
    ];
    let stage = Stage {
        world: World::new(script.into_iter().collect()),
        ..Stage::new(Level::Best, &[])
    };
    stage.world.write("a.txt", "one\ntwo\nthree\nfour\nfive\n");
    let mut client = stage.client();
    let sessions = [
        automatic(&mut client, &stage),
        automatic(&mut client, &stage),
    ];
    let mut trials = Vec::new();
    for session in &sessions {
        let prompt = client.prompt(session, "/try change it");
        let request = client.next("session/request_permission");
        assert_eq!(request["params"]["sessionId"], **session);
        trials.push((prompt, request));
    }
    // Each has its own changes only.
    for ((_, request), (its, other)) in trials.iter().zip([("1", "5"), ("5", "1")]) {
        let content = request["params"]["toolCall"]["content"].to_string();
        assert!(
            content.contains(its) && !content.contains(&format!("\\n{other}\\n")),
            "{content}"
        );
    }
    for (prompt, request) in trials {
        choose(&mut client, &request, APPLY);
        assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");
    }
    assert_eq!(stage.world.read("a.txt"), "1\ntwo\nthree\nfour\n5\n");
    for (session, text) in sessions.iter().zip([
        "one\ntwo\nthree\nfour\n5\n",
        "one\ntwo\nthree\nfour\nfive\n",
    ]) {
        let answer = client.call(
            "_tandem/review",
            json!({ "sessionId": session, "action": "undo" }),
        );
        assert_eq!(
            (
                &answer["result"]["left"],
                stage.world.read("a.txt").as_str()
            ),
            (&json!([]), text),
            "{answer}"
        );
    }
}

#[test]
fn a_queued_try_starts_from_the_results_of_earlier_turns() {
    let script = json!([
        [{ "gate": "go" }, { "call": { "id": "c1", "name": "write_file", "arguments": { "path": "a", "content": "first\n" } } }],
        [{ "text": "Done." }],
        [{ "call": { "id": "c2", "name": "run_command", "arguments": { "command": "cat a && echo tried >> a" } } }],
        [{ "text": "Done." }],
    ]);
    let mut trial = Trial::of(script);
    let first = trial.client.prompt(&trial.session, "write it");
    trial
        .stage
        .world
        .wait(trial.stage.world.rehearsal().waiting_at("go"));
    let second = trial.client.prompt(&trial.session, "/try change it");
    trial.stage.world.rehearsal().open("go");
    assert_eq!(
        trial.client.answer(first)["result"]["stopReason"],
        "end_turn"
    );
    let request = trial.client.next("session/request_permission");
    assert_eq!(trial.stage.world.read("a"), "first\n");
    choose(&mut trial.client, &request, APPLY);
    assert_eq!(
        trial.client.answer(second)["result"]["stopReason"],
        "end_turn"
    );
    assert_eq!(trial.stage.world.read("a"), "first\ntried\n");
}

#[test]
fn a_repository_made_in_the_copy_is_applied_whole() {
    let line = "git init -q new && cd new && echo x > f && git add f && git -c user.name=a -c user.email=a@b commit -qm one";
    let mut trial = Trial::new(Level::Best, &[run(line)], |folder| {
        std::fs::write(folder.join("a"), "one\n").unwrap();
    });
    let before = without_times(&trial.stage.world.path());
    trial.play(APPLY);
    let new = trial.path("new");
    git(&new, &["fsck", "--strict"]);
    git(&new, &["diff", "--exit-code", "HEAD"]);
    let undone = trial.review("undo");
    assert_eq!(undone["result"]["left"], json!([]), "{undone}");
    assert_eq!(without_times(&trial.stage.world.path()), before);
}
