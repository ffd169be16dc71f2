//! What commands change, and what they see of the editor.

use super::*;
use crate::git::git;
use crate::program::Program;

/// A session in a mode that runs commands without asking.
pub(super) fn automatic(client: &mut Client, stage: &Stage) -> String {
    let session = client.session(&stage.world);
    client.call(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": "auto" }),
    );
    session
}

/// The diffs of the finished calls: name, old and new text.
fn diffs(client: &mut Client, count: usize) -> Vec<(String, Value, String)> {
    let message = client.find(|message| {
        let update = &message["params"]["update"];
        let content = update["content"].as_array();
        let shown = content.map_or(0, |content| {
            content.iter().filter(|part| part["type"] == "diff").count()
        });
        update["status"] == "completed" && shown == count
    });
    let content = message["params"]["update"]["content"].as_array().unwrap();
    let diffs = content
        .iter()
        .filter(|part| part["type"] == "diff")
        .map(|part| {
            let path = Path::new(part["path"].as_str().unwrap());
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (
                name,
                part["oldText"].clone(),
                part["newText"].as_str().unwrap().to_owned(),
            )
        });
    diffs.collect()
}

#[test]
fn command_changes_are_shown_as_diffs() {
    for level in [Level::Best, Level::Landlock] {
        let stage = Stage::new(
            level,
            &[run(
                "echo more >> a; rm b; echo new > c; mkdir -p target; echo x > target/y",
            )],
        );
        stage.world.write("a", "one\n");
        stage.world.write("b", "gone\n");
        stage.world.write(".gitignore", "target\n");
        let mut client = stage.client();
        let session = automatic(&mut client, &stage);
        let prompt = client.prompt(&session, "go");
        let expected = [
            ("a".to_owned(), json!("one\n"), "one\nmore\n".to_owned()),
            ("b".to_owned(), json!("gone\n"), String::new()),
            ("c".to_owned(), Value::Null, "new\n".to_owned()),
        ];
        assert_eq!(diffs(&mut client, 3), expected, "{level:?}");
        assert_eq!(finish_prompt(&mut client, prompt), "end_turn");
    }
}

#[test]
fn changes_that_no_diff_shows_are_named() {
    let line = "chmod 755 a; ln -s a l; printf '\\0' > new; printf '\\0' >> old; rm gone; printf '%2000000d' 1 > large";
    let stage = Stage::new(Level::Best, &[run(line)]);
    stage.world.write("a", "one\n");
    stage.world.write("gone", "\0");
    stage.world.write("old", "\0");
    let mut client = stage.client();
    let session = automatic(&mut client, &stage);
    let prompt = client.prompt(&session, "go");
    let ended = client.find(|message| message["params"]["update"]["status"] == "completed");
    let content = ended["params"]["update"]["content"].to_string();
    let said = "[a: permissions 644 → 755, gone: removed (not text), l: a link to a, \
        large: created (too large to show), new: created (not text) and 1 more]";
    assert!(content.contains(said), "{content}");
    assert_eq!(finish_prompt(&mut client, prompt), "end_turn");
}

#[test]
fn changes_of_a_killed_command_are_shown() {
    let shown = |limit: u64| {
        let stage = Stage::new(
            Level::Best,
            &[json!({ "command": "echo half > a; sleep 60", "timeout_s": limit })],
        );
        stage.world.write("a", "whole\n");
        let mut client = stage.client();
        let session = automatic(&mut client, &stage);
        let prompt = client.prompt(&session, "go");
        let ended = client.find(|message| message["params"]["update"]["status"] == "failed");
        let content = ended["params"]["update"]["content"].to_string();
        assert!(
            content.contains(&format!("killed after {limit} s")),
            "{content}"
        );
        assert_eq!(finish_prompt(&mut client, prompt), "end_turn");
        content.contains(r#""oldText":"whole\n""#)
    };
    // On a busy machine, it may not start within the first of these times.
    assert!([1, 5, 25].into_iter().any(shown));
}

#[cfg(target_os = "linux")]
#[test]
fn contents_of_a_folder_made_unreadable_are_undone() {
    use std::os::unix::fs::PermissionsExt as _;
    let line = "echo changed > shut/in/file; rm shut/gone; echo new > shut/new; chmod 000 shut";
    let stage = Stage::new(Level::Best, &[run(line)]);
    stage.world.write("shut/in/file", "one\n");
    stage.world.write("shut/gone", "two\n");
    let (_program, mut client) = stage
        .world
        .serve_with(Transport::Lsp, crate::program::without_override);
    client.shake_hands(
        stage
            .world
            .handshake(json!({ "experimental": { "tandem": {} } })),
    );
    let session = automatic(&mut client, &stage);
    let prompt = client.prompt(&session, "go");
    assert_eq!(finish_prompt(&mut client, prompt), "end_turn");
    let mode = || {
        stage
            .world
            .path()
            .join("shut")
            .metadata()
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(mode(), 0);
    let answer = client.call(
        "_tandem/review",
        json!({ "sessionId": session, "action": "undo" }),
    );
    assert_eq!(
        (&answer["result"]["left"], mode()),
        (&json!([]), 0o755),
        "{answer}"
    );
    assert_eq!(
        (
            stage.world.read("shut/in/file"),
            stage.world.read("shut/gone")
        ),
        ("one\n".into(), "two\n".into())
    );
    assert!(!stage.world.path().join("shut/new").exists());
}

#[test]
fn emptying_a_workspace_requires_approval_unless_undo_covers_all_of_it() {
    enum Uncovered {
        Nothing,
        Ignored,
        Repository,
    }
    let asks = |line: &str, uncovered: Uncovered| {
        let stage = Stage::new(Level::Best, &[run(line)]);
        stage.world.write("a", "one\n");
        stage.world.write(".gitignore", "target\n");
        match uncovered {
            Uncovered::Nothing => {}
            Uncovered::Ignored => stage.world.write("target/built", "x"),
            Uncovered::Repository => git(&stage.world.path(), &["init"]),
        }
        let mut client = stage.client();
        let session = automatic(&mut client, &stage);
        let prompt = client.prompt(&session, "go");
        let message = client.find(|message| {
            message["method"] == "session/request_permission"
                || (message["id"] == prompt && message.get("method").is_none())
        });
        let asks = message["method"] == "session/request_permission";
        if asks {
            allow(&mut client, &message);
        } else {
            client.seen.push_front(message);
        }
        assert_eq!(finish_prompt(&mut client, prompt), "end_turn");
        asks
    };
    for line in [
        "rm -rf *",
        "find . -delete",
        "git clean -fdx",
        "bash -c 'rm -rf ./*'",
    ] {
        assert!(asks(line, Uncovered::Ignored), "{line}");
        assert!(!asks(line, Uncovered::Nothing), "{line}: undo covers it");
    }
    assert!(
        asks("rm -rf \"$PWD\"", Uncovered::Nothing),
        "the workspace itself"
    );
    assert!(!asks("rm -rf target", Uncovered::Ignored), "it is named");
    for line in ["rm -rf *", "find . -delete", "git prune"] {
        assert!(asks(line, Uncovered::Repository), "{line}");
    }
}

#[test]
fn finished_jobs_are_not_reported_as_running() {
    let calls = [
        json!({ "command": "exec echo one", "background": true }),
        json!({ "job": 1 }),
        json!({ "job": 1 }),
    ];
    for _attempt in 0..5 {
        let told = Stage::new(Level::Best, &calls).results();
        let first = told
            .iter()
            .position(|told| told.contains("one\n"))
            .expect("it says so");
        // After that, only its end is new.
        let mut then = told.iter().skip(first).take(2);
        assert!(then.any(|told| told.contains("[exit code 0, ")), "{told:?}");
    }
}

#[test]
fn files_set_aside_are_numbered_and_the_user_is_notified() {
    let stage = Stage::new(Level::Best, &[run("echo evil > AGENTS.md")]);
    stage.world.write("AGENTS.md.held", "mine\n");
    let mut client = stage.client();
    let session = automatic(&mut client, &stage);
    let prompt = client.prompt(&session, "go");
    assert_eq!(finish_prompt(&mut client, prompt), "end_turn");
    assert_eq!(stage.world.read("AGENTS.md.held"), "mine\n");
    assert_eq!(stage.world.read("AGENTS.md.held-2"), "evil\n");
    assert!(!stage.world.path().join("AGENTS.md").exists());
    assert!(
        stage.told()[0].contains("is now AGENTS.md.held-2"),
        "{:?}",
        stage.told()
    );
}

#[cfg(unix)]
#[test]
fn command_changes_are_undone_and_redone_after_a_restart() {
    use std::os::unix::fs::PermissionsExt as _;
    let stage = Stage::new(
        Level::Best,
        &[run("rm -rf *; echo new > c; chmod 600 .hidden")],
    );
    let path = stage.world.path();
    stage.world.write("a", "one\n");
    stage.world.write("dir/b", "two\n");
    stage.world.write(".hidden", "x");
    std::fs::write(path.join("bytes"), b"\0\xff").unwrap();
    std::fs::set_permissions(path.join("dir/b"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mode = |name: &str| path.join(name).metadata().unwrap().permissions().mode() & 0o777;
    let hidden = mode(".hidden");
    let is_undone = |world: &World| {
        assert_eq!(
            (world.read("a"), world.read("dir/b"), mode("dir/b")),
            ("one\n".into(), "two\n".into(), 0o755)
        );
        assert_eq!(
            (std::fs::read(path.join("bytes")).unwrap(), mode(".hidden")),
            (b"\0\xff".to_vec(), hidden)
        );
        assert!(!path.join("c").exists());
    };
    let mut client = stage.client();
    let session = automatic(&mut client, &stage);
    let prompt = client.prompt(&session, "go");
    assert_eq!(finish_prompt(&mut client, prompt), "end_turn");
    assert!(!path.join("dir").exists() && path.join("c").exists());
    let review = |client: &mut Client, action: &str| {
        let answer = client.call(
            "_tandem/review",
            json!({ "sessionId": session, "action": action }),
        );
        assert_eq!(answer["result"]["left"], json!([]), "{answer}");
    };
    review(&mut client, "undo");
    is_undone(&stage.world);
    review(&mut client, "redo");
    assert!(!path.join("dir").exists() && !path.join("bytes").exists() && path.join("c").exists());
    client.end();
    let mut client = stage.client();
    client.call(
        "session/load",
        json!({ "sessionId": session, "cwd": path, "mcpServers": [] }),
    );
    review(&mut client, "undo");
    is_undone(&stage.world);
}

#[test]
fn rejected_command_changes_are_restored_byte_for_byte() {
    let line = "rm -rf *; echo new > c; chmod 600 .hidden";
    let stage = Stage::new(Level::Best, &[run(line)]);
    let path = stage.world.path();
    stage.world.write("dir/b", "two\n");
    stage.world.write(".hidden", "x");
    std::fs::write(path.join("bytes"), b"\0\xff").unwrap();
    let before = contents(&path);
    let mut client = stage.client();
    let session = automatic(&mut client, &stage);
    finish(&mut client, &session);
    let after = contents(&path);
    assert_ne!(before, after);
    let mut review = |action: &str| {
        let params = json!({ "sessionId": session, "action": action });
        client.call("_tandem/review", params)
    };
    for (action, expected) in [("reject", &before), ("undo", &after), ("undo", &before)] {
        let reviewed = review(action);
        assert_eq!(&contents(&path), expected, "{action}: {reviewed}");
    }
}

/// All files below a folder, with their bytes and permissions.
fn contents(folder: &Path) -> std::collections::BTreeMap<std::path::PathBuf, (Vec<u8>, u32)> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut found = std::collections::BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                let mode = entry.metadata().unwrap().permissions().mode();
                found.insert(entry.path(), (std::fs::read(entry.path()).unwrap(), mode));
            }
        }
    }
    found
}

/// A server with this search path, with the state and the home directory of the stage.
fn served(stage: &Stage, path: &str) -> (Program, Client) {
    let (program, mut client) = stage.world.serve_with(Transport::Lsp, |command| {
        command
            .env("PATH", path)
            .env("HOME", stage.home.path().join("me"))
            .env("TANDEM_CONFIG", stage.home.path().join("config.toml"))
            .env("TANDEM_STATE_DIR", stage.home.path().join("state"));
    });
    let extended = json!({ "experimental": { "tandem": {} } });
    client.shake_hands(stage.world.handshake(extended));
    (program, client)
}

#[test]
fn changes_made_before_the_server_was_killed_are_undone() {
    let path = std::env::var("PATH").unwrap();
    for path in [path.as_str(), without_bubblewrap()] {
        let line = "rm -rf src; echo new > new; chmod +x a; echo half > a; echo typed > b; \
                    echo evil > .envrc; echo obey > AGENTS.md; echo up; sleep 60";
        let stage = Stage::new(Level::Best, &[run(line)]);
        stage.world.write("a", "whole\n");
        stage.world.write("src/lib.rs", "// code\n");
        stage.world.write("AGENTS.md", "be good\n");
        let state = stage.home.path().join("state");
        let serve = || served(&stage, path);
        let load_and_be_killed = |load: &Value| {
            let (mut program, mut client) = serve();
            client.call("session/load", load.clone());
            program.signal(rustix::process::Signal::KILL);
            program.ends();
        };
        let (mut program, mut client) = serve();
        let session = automatic(&mut client, &stage);
        stage.world.write("d", "theirs\n");
        client.open(&stage.world.uri("d"), "theirs\n");
        client.prompt(&session, "go");
        hear(&mut client, "up");
        save(&mut client, &stage, "d", "mine\n");
        let listed = json!({ "sessionId": session, "action": "list" });
        client.call("_tandem/review", listed);
        program.signal(rustix::process::Signal::KILL);
        program.ends();
        drop(client);
        let has_ended = |folder: std::fs::DirEntry| folder.path().join("ended").exists();
        until("the command is gone", || {
            state
                .join("commands")
                .read_dir()
                .unwrap()
                .flatten()
                .any(has_ended)
        });
        stage.world.write("b", "mine\n");
        stage.world.write("c", "mine\n");
        stage.world.write("CLAUDE.md", "mine\n");
        let load = json!({ "sessionId": session, "cwd": stage.world.path(), "mcpServers": [] });
        let commands = || state.join("commands").read_dir().unwrap().count();
        // While nothing can be stored, what the command destroyed stays where it is.
        let store = state.join("checkpoints");
        let _not_yet_there = std::fs::remove_dir_all(&store);
        std::fs::write(&store, "").unwrap();
        load_and_be_killed(&load);
        assert_eq!(commands(), 1);
        std::fs::remove_file(&store).unwrap();
        // The recorded changes survive another end.
        for _start in 0..2 {
            load_and_be_killed(&load);
        }
        assert_eq!(commands(), 0, "its changes are recorded only once");
        let (_program, mut client) = serve();
        client.call("session/load", load);
        assert_eq!(stage.world.read("a"), "half\n");
        assert_eq!(
            ["AGENTS.md", ".envrc.held", "CLAUDE.md"].map(|name| stage.world.read(name)),
            ["be good\n", "evil\n", "mine\n"],
            "what is protected is restored"
        );
        assert!(!stage.world.path().join(".envrc").exists());
        let undone = client.call(
            "_tandem/review",
            json!({ "sessionId": session, "action": "undo" }),
        );
        assert!(undone.get("error").is_none(), "{undone}");
        assert_eq!(
            (stage.world.read("a"), stage.world.read("src/lib.rs")),
            ("whole\n".into(), "// code\n".into())
        );
        assert_eq!(
            ["b", "c", "d"].map(|name| stage.world.read(name)),
            ["mine\n"; 3]
        );
        assert!(!stage.world.path().join("new").exists());
    }
}

/// The processes that descend from this one.
fn descendants(of: rustix::process::Pid) -> Vec<rustix::process::Pid> {
    let parents: Vec<(i32, i32)> = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| {
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            let (_, rest) = stat.rsplit_once(") ")?;
            let parent = rest.split(' ').nth(1)?.parse().ok()?;
            Some((entry.file_name().to_str()?.parse().ok()?, parent))
        })
        .collect();
    let mut found = vec![of.as_raw_nonzero().get()];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(parents.iter().filter(|it| it.1 == parent).map(|it| it.0));
        next += 1;
    }
    let pids = found.into_iter().skip(1);
    pids.filter_map(rustix::process::Pid::from_raw).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn what_a_person_changed_after_a_crash_of_the_system_is_theirs() {
    use rustix::process::{Signal, kill_process};
    use std::time::Duration;
    let line = "echo half > a; echo evil > .envrc; echo up; sleep 60";
    let stage = Stage::new(Level::Best, &[run(line)]);
    for name in ["a", "b", "AGENTS.md"] {
        stage.world.write(name, "whole\n");
    }
    let path = std::env::var("PATH").unwrap();
    let (mut program, mut client) = served(&stage, &path);
    let session = automatic(&mut client, &stage);
    client.prompt(&session, "go");
    hear(&mut client, "up");
    let commands = stage.home.path().join("state/commands");
    let of_command = || commands.read_dir().unwrap().next().unwrap().unwrap().path();
    until("it is noted that the command runs", || {
        of_command().join("alive").exists()
    });
    program.signal(Signal::STOP);
    for process in descendants(program.pid()) {
        let _gone_with_another = kill_process(process, Signal::KILL);
    }
    program.signal(Signal::KILL);
    program.ends();
    drop(client);
    assert!(!of_command().join("ended").exists());
    // As if that had been a while ago.
    stage.world.write("now", "");
    let now = stage.world.path().join("now").metadata().unwrap();
    let noted = now.modified().unwrap() - Duration::from_secs(2);
    for name in ["alive", "running"] {
        let file = std::fs::File::options()
            .write(true)
            .open(of_command().join(name));
        file.unwrap().set_modified(noted).unwrap();
    }
    for name in ["b", "AGENTS.md"] {
        stage.world.write(name, "mine\n");
    }
    let (_program, mut client) = served(&stage, &path);
    let load = json!({ "sessionId": session, "cwd": stage.world.path(), "mcpServers": [] });
    client.call("session/load", load);
    let answer = client.call(
        "_tandem/review",
        json!({ "sessionId": session, "action": "undo" }),
    );
    assert!(answer.get("error").is_none(), "{answer}");
    assert_eq!(
        ["a", "b", "AGENTS.md", ".envrc.held"].map(|name| stage.world.read(name)),
        ["whole\n", "mine\n", "mine\n", "evil\n"],
        "{answer}"
    );
}

#[test]
fn a_text_saved_before_a_command_overwrote_it_survives_a_kill() {
    let line = "mkfifo gate; echo up; read x < gate; rm gate; echo cmd > c; echo over; sleep 60";
    let stage = Stage::new(Level::Best, &[run(line)]);
    stage.world.write("c", "whole\n");
    let path = std::env::var("PATH").unwrap();
    let (mut program, mut client) = served(&stage, &path);
    let session = automatic(&mut client, &stage);
    client.open(&stage.world.uri("c"), "whole\n");
    client.prompt(&session, "go");
    hear(&mut client, "up");
    save(&mut client, &stage, "c", "mine\n");
    let listed = json!({ "sessionId": session, "action": "list" });
    client.call("_tandem/review", listed);
    std::fs::write(stage.world.path().join("gate"), "go\n").unwrap();
    hear(&mut client, "over");
    program.signal(rustix::process::Signal::KILL);
    program.ends();
    drop(client);
    let commands = stage.home.path().join("state/commands");
    until("the command is gone", || {
        let mut folders = commands.read_dir().unwrap().flatten();
        folders.any(|folder| folder.path().join("ended").exists())
    });
    let (_program, mut client) = served(&stage, &path);
    let load = json!({ "sessionId": session, "cwd": stage.world.path(), "mcpServers": [] });
    client.call("session/load", load);
    let read = |name: &str| stage.world.read(name);
    assert_eq!(["c", "c.held"].map(read), ["mine\n", "cmd\n"]);
    client.call(
        "_tandem/review",
        json!({ "sessionId": session, "action": "undo" }),
    );
    assert_eq!(read("c"), "mine\n");
    assert!(!stage.world.path().join("c.held").exists());
}

#[test]
fn what_could_not_be_stored_can_be_undone_once_there_is_room() {
    let write = json!({ "tool": "write_file", "path": "b", "content": "tool\n" });
    let stage = Stage::new(
        Level::Best,
        &[
            write,
            run("mkfifo gate; echo up; read x < gate; rm gate; rm a; echo cmd > b"),
        ],
    );
    stage.world.write("a", "precious\n");
    let mut client = stage.client();
    let session = automatic(&mut client, &stage);
    let prompt = client.prompt(&session, "go");
    hear(&mut client, "up");
    let store = stage.home.path().join("state/checkpoints");
    let aside = store.with_file_name("aside");
    std::fs::rename(&store, &aside).unwrap();
    std::fs::write(&store, "").unwrap();
    std::fs::write(stage.world.path().join("gate"), "go\n").unwrap();
    assert_eq!(finish_prompt(&mut client, prompt), "end_turn");
    std::fs::remove_file(&store).unwrap();
    std::fs::rename(&aside, &store).unwrap();
    let answer = client.call(
        "_tandem/review",
        json!({ "sessionId": session, "action": "undo" }),
    );
    assert_eq!(answer["result"]["left"], json!([]), "{answer}");
    assert_eq!(stage.world.read("a"), "precious\n");
    assert!(!stage.world.path().join("b").exists());
}

/// Saves a file in the editor, which has it open.
fn save(client: &mut Client, stage: &Stage, name: &str, text: &str) {
    let uri = stage.world.uri(name);
    stage.world.write(name, text);
    let document = json!({ "uri": uri, "version": 2 });
    client.notify(
        "textDocument/didChange",
        json!({ "textDocument": document, "contentChanges": [{ "text": text }] }),
    );
    client.notify(
        "textDocument/didSave",
        json!({ "textDocument": { "uri": uri } }),
    );
}

/// Acts as an editor that doesn't reload files: the text on disk arrives as an edit.
fn edited(client: &mut Client, stage: &Stage, name: &str, text: &str) {
    let edit = client.next("workspace/applyEdit");
    let document = &edit["params"]["edit"]["documentChanges"][0]["textDocument"];
    assert_eq!(document["uri"], stage.world.uri(name));
    let document =
        json!({ "uri": document["uri"], "version": document["version"].as_i64().unwrap() + 1 });
    client.notify(
        "textDocument/didChange",
        json!({ "textDocument": document, "contentChanges": [{ "text": text }] }),
    );
    client.respond(&edit, json!({ "applied": true }));
}

#[test]
fn open_documents_show_what_a_command_wrote() {
    let calls = [
        run("sed -i s/one/two/ a"),
        run("cat a; sed -i s/two/three/ a"),
    ];
    let stage = Stage::new(Level::Best, &calls);
    stage.world.write("a", "one\n");
    let mut client = stage.client();
    let uri = stage.world.uri("a");
    client.open(&uri, "one\n");
    let session = automatic(&mut client, &stage);
    let prompt = client.prompt(&session, "go");
    edited(&mut client, &stage, "a", "two\n");
    // This time the editor reloads the file itself.
    until("the second command is done", || {
        stage.world.read("a") == "three\n"
    });
    let document = json!({ "uri": uri, "version": 9 });
    let change = json!({ "textDocument": document, "contentChanges": [{ "text": "three\n" }] });
    client.notify("textDocument/didChange", change);
    assert_eq!(finish_prompt(&mut client, prompt), "end_turn");
    assert!(
        stage.told()[1].starts_with("two\n[exit code 0"),
        "{:?}",
        stage.told()
    );
    let undone = client.ask(
        "_tandem/review",
        json!({ "sessionId": session, "action": "undo" }),
    );
    edited(&mut client, &stage, "a", "one\n");
    assert_eq!(client.answer(undone)["result"]["left"], json!([]));
    assert_eq!(stage.world.read("a"), "one\n");
    assert!(
        client
            .seen
            .iter()
            .all(|message| message["method"] != "workspace/applyEdit")
    );
}

#[test]
fn saves_by_the_user_during_a_command_are_kept() {
    let line = "mkfifo gate; echo up; read x < gate; rm gate; echo cmd >> b; echo cmd > c; rm d; echo made > e; \
                printf '1\\n2\\n3\\n' > f";
    let stage = Stage::new(Level::Best, &[run(line)]);
    let names = ["a", "b", "c", "d", "f"];
    let mut client = stage.client();
    for name in names {
        stage.world.write(name, "1\n2\n3\n");
        client.open(&stage.world.uri(name), "1\n2\n3\n");
    }
    let session = automatic(&mut client, &stage);
    let prompt = client.prompt(&session, "go");
    hear(&mut client, "up");
    for name in names {
        save(&mut client, &stage, name, "mine\n2\n3\n");
    }
    std::fs::write(stage.world.path().join("gate"), "go\n").unwrap();
    edited(&mut client, &stage, "b", "mine\n2\n3\ncmd\n");
    assert_eq!(finish_prompt(&mut client, prompt), "end_turn");
    let told = stage.told().remove(0);
    let read = |name: &str| stage.world.read(name);
    assert_eq!(
        ["a", "b", "c", "d", "f", "c.held", "f.held"].map(read),
        [
            "mine\n2\n3\n",
            "mine\n2\n3\ncmd\n",
            "mine\n2\n3\n",
            "mine\n2\n3\n",
            "mine\n2\n3\n",
            "cmd\n",
            "1\n2\n3\n"
        ]
    );
    assert!(
        told.contains("the command's version is in c.held]"),
        "{told}"
    );
    assert!(
        told.contains("and the command then removed it: it has been restored]"),
        "{told}"
    );
    let answer = client.ask(
        "_tandem/review",
        json!({ "sessionId": session, "action": "undo" }),
    );
    edited(&mut client, &stage, "b", "mine\n2\n3\n");
    let answer = client.answer(answer);
    assert!(answer.get("error").is_none(), "{answer}");
    assert_eq!(names.map(read), ["mine\n2\n3\n"; 5], "{answer}");
    assert!(!stage.world.path().join("e").exists() && !stage.world.path().join("c.held").exists());
}

#[test]
fn saves_in_protected_files_during_a_command_are_kept() {
    let line = "mkfifo gate; echo up; read x < gate; rm gate; rm -f sub/AGENTS.md; mkdir -p .vscode; \
                for name in AGENTS.md CLAUDE.md .vscode/tasks.json; do echo obey > $name; done; true";
    for level in [Level::Best, Level::Landlock] {
        let stage = Stage::new(level, &[run(line)]);
        let mut client = stage.client();
        for name in ["AGENTS.md", "sub/AGENTS.md"] {
            stage.world.write(name, "before\n");
        }
        let session = automatic(&mut client, &stage);
        let prompt = client.prompt(&session, "go");
        hear(&mut client, "up");
        let saved = [
            "AGENTS.md",
            "sub/AGENTS.md",
            "CLAUDE.md",
            ".vscode/settings.json",
        ];
        for name in saved {
            client.open(&stage.world.uri(name), "");
            save(&mut client, &stage, name, "mine\n");
        }
        std::fs::write(stage.world.path().join("gate"), "go\n").unwrap();
        assert_eq!(finish_prompt(&mut client, prompt), "end_turn");
        let told = stage.told();
        for name in saved {
            let now = std::fs::read_to_string(stage.world.path().join(name));
            assert_eq!(
                now.ok().as_deref(),
                Some("mine\n"),
                "{level:?}: {name}: {told:?}"
            );
        }
        let aside = ["CLAUDE.md.held", ".vscode/tasks.json.held"];
        assert_eq!(
            aside.map(|name| stage.world.read(name)),
            ["obey\n", "obey\n"],
            "{level:?}: {told:?}"
        );
        assert!(!stage.world.path().join(".vscode/tasks.json").exists());
        assert!(
            told[0].contains("CLAUDE.md.held; the text saved in the meantime was restored"),
            "{level:?}: {told:?}"
        );
        let undone = json!({ "sessionId": session, "action": "undo" });
        client.call("_tandem/review", undone);
        assert_eq!(
            saved.map(|name| stage.world.read(name)),
            ["mine\n"; 4],
            "{level:?}"
        );
    }
}

#[test]
fn background_job_changes_are_undone_separately_from_tool_edits() {
    let server = "echo up; echo job > made; until [ -e go ]; do sleep 0.02; done; echo job > late; echo late; sleep 60";
    let calls = [
        json!({ "command": server, "background": true }),
        json!({ "tool": "write_file", "path": "written", "content": "tool\n" }),
        run("echo cmd > byhand; touch go"),
        json!({ "command": "read", "job": 1 }),
    ];
    let stage = Stage::new(Level::Best, &calls);
    stage.world.write("made", "before\n");
    let mut client = stage.client();
    let session = automatic(&mut client, &stage);
    let prompt = client.prompt(&session, "go");
    assert_eq!(finish_prompt(&mut client, prompt), "end_turn");
    until("the job goes on", || {
        stage.world.path().join("late").exists()
    });
    let exists = |name: &str| stage.world.path().join(name).exists();
    let answer = client.call(
        "_tandem/review",
        json!({ "sessionId": session, "action": "undo" }),
    );
    assert!(answer.get("error").is_none(), "{answer}");
    assert_eq!(stage.world.read("made"), "before\n");
    assert_eq!(
        ["late", "written", "byhand", "go"].map(exists),
        [false; 4],
        "{answer}"
    );
    let answer = client.call(
        "_tandem/review",
        json!({ "sessionId": session, "action": "redo" }),
    );
    assert_eq!(stage.world.read("made"), "job\n", "{answer}");
    assert_eq!(["late", "written", "byhand", "go"].map(exists), [true; 4]);
}

#[test]
fn lines_saved_between_two_changes_of_a_job_survive_its_undo() {
    let job = "until [ -e begin ]; do sleep 0.02; done; echo job >> a; \
               until [ -e go ]; do sleep 0.02; done; echo more >> a; touch done; sleep 60";
    let call = |arguments: Value| json!([{ "call": { "id": "c1", "name": "run_command", "arguments": arguments } }]);
    let done = json!([{ "text": "Done." }]);
    let job = call(json!({ "command": job, "background": true }));
    let script = [job, done.clone(), call(run("true")), done];
    let stage = Stage {
        world: World::new(script.to_vec().into()),
        ..Stage::new(Level::Best, &[])
    };
    stage.world.write("a", "whole\n");
    let mut client = stage.client();
    let session = automatic(&mut client, &stage);
    assert_eq!(finish(&mut client, &session), "end_turn");
    stage.world.write("begin", "");
    let is_written = || stage.world.read("a") == "whole\njob\n";
    until("the job writes", is_written);
    // Its change is seen before another command begins.
    assert_eq!(finish(&mut client, &session), "end_turn");
    let uri = stage.world.uri("a");
    client.open(&uri, "whole\njob\n");
    save(&mut client, &stage, "a", "mine\nwhole\njob\n");
    client.notify(
        "textDocument/didClose",
        json!({ "textDocument": { "uri": uri } }),
    );
    stage.world.write("go", "");
    until("the job goes on", || {
        stage.world.path().join("done").exists()
    });
    assert_eq!(stage.world.read("a"), "mine\nwhole\njob\nmore\n");
    let answer = client.call(
        "_tandem/review",
        json!({ "sessionId": session, "action": "undo" }),
    );
    assert!(answer.get("error").is_none(), "{answer}");
    assert_eq!(stage.world.read("a"), "mine\nwhole\n", "{answer}");
}

#[test]
fn two_sessions_in_one_folder_undo_each_its_own() {
    let calls = [
        "echo a >> shared; echo a > a; rm gone",
        "echo b >> shared; echo b > b; chmod +x kept",
    ];
    for first in [0, 1] {
        let done = json!([{ "text": "Done." }]);
        let call = |line: &&str| json!([{ "call": { "id": "c1", "name": "run_command", "arguments": run(line) } }]);
        let script: Vec<Value> = calls
            .iter()
            .flat_map(|line| [call(line), done.clone()])
            .collect();
        let stage = Stage {
            world: World::new(script.into()),
            ..Stage::new(Level::Best, &[])
        };
        for name in ["shared", "gone", "kept"] {
            stage.world.write(name, "mine\n");
        }
        let mut client = stage.client();
        let sessions = [
            automatic(&mut client, &stage),
            automatic(&mut client, &stage),
        ];
        for session in &sessions {
            assert_eq!(finish(&mut client, session), "end_turn");
        }
        assert_eq!(stage.world.read("shared"), "mine\na\nb\n");
        let undo = |client: &mut Client, session: &str| {
            let answer = client.call(
                "_tandem/review",
                json!({ "sessionId": session, "action": "undo" }),
            );
            assert_eq!(answer["result"]["left"], json!([]), "{answer}");
        };
        let exists = |name: &str| stage.world.path().join(name).exists();
        undo(&mut client, &sessions[first]);
        let others = if first == 0 { "mine\nb\n" } else { "mine\na\n" };
        assert_eq!(
            (
                stage.world.read("shared").as_str(),
                exists("a"),
                exists("b")
            ),
            (others, first == 1, first == 0)
        );
        undo(&mut client, &sessions[1 - first]);
        assert_eq!(
            ["shared", "gone", "kept"].map(|name| stage.world.read(name)),
            ["mine\n"; 3]
        );
        assert_eq!((exists("a"), exists("b")), (false, false));
    }
}

#[test]
fn two_commands_at_once_lose_nothing() {
    let lines = [
        "echo up; until [ -e b-up ]; do sleep 0.02; done; echo a >> shared; echo a > a; rm gone; touch a-done",
        "touch b-up; until [ -e a-done ]; do sleep 0.02; done; echo b >> shared; echo b > b; chmod +x kept",
    ];
    for first in [0, 1] {
        let call = |line: &&str| json!([{ "call": { "id": "c1", "name": "run_command", "arguments": run(line) } }]);
        let done = json!([{ "text": "Done." }]);
        let script: Vec<Value> = lines.iter().map(call).chain([done.clone(), done]).collect();
        let stage = Stage {
            world: World::new(script.into()),
            ..Stage::new(Level::Best, &[])
        };
        for name in ["shared", "gone", "kept", "mine"] {
            stage.world.write(name, "mine\n");
        }
        let mut client = stage.client();
        let sessions = [
            automatic(&mut client, &stage),
            automatic(&mut client, &stage),
        ];
        let one = client.prompt(&sessions[0], "go");
        hear(&mut client, "up");
        let other = client.prompt(&sessions[1], "go");
        assert_eq!(finish_prompt(&mut client, one), "end_turn");
        assert_eq!(finish_prompt(&mut client, other), "end_turn");
        assert_eq!(stage.world.read("shared"), "mine\na\nb\n");
        stage.world.write("mine", "mine, later\n");
        for session in [&sessions[first], &sessions[1 - first]] {
            let answer = client.call(
                "_tandem/review",
                json!({ "sessionId": session, "action": "undo" }),
            );
            assert!(answer.get("error").is_none(), "{answer}");
        }
        let read = |name: &str| stage.world.read(name);
        assert_eq!(
            ["gone", "kept", "mine"].map(read),
            ["mine\n", "mine\n", "mine, later\n"]
        );
        assert!(read("shared").starts_with("mine\n"), "{}", read("shared"));
        assert!(!stage.world.path().join("b").exists() && !stage.world.path().join("a").exists());
    }
}
