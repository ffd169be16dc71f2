//! Undoing what commands did to unusual files, and in unusual workspaces.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, symlink};

use super::changes::automatic;
use super::shadow::without_times;
use super::*;
use crate::git::git;

pub(super) fn review(client: &mut Client, session: &str, action: &str) -> Value {
    client.call(
        "_tandem/review",
        json!({ "sessionId": session, "action": action }),
    )
}

/// Runs the stage's calls in a turn of a new session in `folder`, and returns the session.
pub(super) fn turn_in(client: &mut Client, folder: &Path) -> String {
    let answer = client.call("session/new", json!({ "cwd": folder, "mcpServers": [] }));
    let session = answer["result"]["sessionId"]
        .as_str()
        .unwrap_or_else(|| panic!("{answer}"))
        .to_owned();
    client.call(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": "auto" }),
    );
    let prompt = client.prompt(&session, "go");
    assert_eq!(finish_prompt(client, prompt), "end_turn");
    session
}

/// Undoes, redoes, and undoes again after a restart; each time, the folder is as it was.
fn comes_back(stage: &Stage, prepare: impl FnOnce(&Path)) {
    let path = stage.world.path();
    prepare(&path);
    let before = without_times(&path);
    let mut client = stage.client();
    let session = turn_in(&mut client, &path);
    let after = without_times(&path);
    assert_ne!(before, after, "{:?}", stage.told());
    for (action, expected) in [("undo", &before), ("redo", &after)] {
        let answer = review(&mut client, &session, action);
        assert_eq!(answer["result"]["left"], json!([]), "{action}: {answer}");
        assert_eq!(without_times(&path), *expected, "{action}: {answer}");
    }
    client.end();
    let mut client = stage.client();
    client.call(
        "session/load",
        json!({ "sessionId": session, "cwd": path, "mcpServers": [] }),
    );
    let answer = review(&mut client, &session, "undo");
    assert_eq!(answer["result"]["left"], json!([]), "{answer}");
    assert_eq!(without_times(&path), before, "after a restart: {answer}");
}

#[test]
fn names_that_are_not_utf8_are_undone_and_redone() {
    let name = |bytes: &'static [u8]| OsStr::from_bytes(bytes);
    let line = r#"cd "$(printf 'd\377')" && echo two > "$(printf 'a\377')" && rm "$(printf 'b\377')" &&
        echo new > "$(printf 'c\377')" && ln -s "$(printf 'a\377')" "$(printf 'l\377')""#;
    comes_back(&Stage::new(Level::Best, &[run(line)]), |folder| {
        let folder = folder.join(name(b"d\xff"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join(name(b"a\xff")), "one\n").unwrap();
        std::fs::write(folder.join(name(b"b\xff")), "gone\n").unwrap();
    });
}

#[test]
fn a_workspace_that_an_outer_repository_ignores_is_covered_and_searched() {
    for pattern in ["build/", "build/*", "/build/**", "*"] {
        let calls = [
            run("echo two > a; rm -rf sub; echo new > b"),
            json!({ "tool": "grep", "pattern": "two" }),
        ];
        let stage = Stage::new(Level::Best, &calls);
        let outer = stage.world.path();
        git(&outer, &["init", "-q"]);
        stage.world.write(".gitignore", pattern);
        for (name, text) in [
            ("a", "one\n"),
            ("sub/c", "c\n"),
            (".gitignore", "out\n"),
            ("out/built", "x"),
        ] {
            stage.world.write(&format!("build/work/{name}"), text);
        }
        let work = outer.join("build/work");
        let before = without_times(&work);
        let mut client = stage.world.stranger_in(Transport::Lsp, stage.environment());
        let uri = format!("file://{}", work.display());
        client.shake_hands(json!({ "processId": null, "rootUri": uri,
            "capabilities": { "experimental": { "tandem": {} } }, "workspaceFolders": [{ "uri": uri, "name": "w" }] }));
        let session = turn_in(&mut client, &work);
        assert!(
            stage.told()[1].contains("1:two"),
            "{pattern}: {:?}",
            stage.told()
        );
        let answer = review(&mut client, &session, "undo");
        assert_eq!(answer["result"]["left"], json!([]), "{pattern}: {answer}");
        assert_eq!(without_times(&work), before, "{pattern}");
        assert!(work.join("out/built").exists(), "{pattern}");
    }
}

#[test]
fn hard_links_and_sparse_files_are_restored() {
    let line = "echo more >> one; chmod 640 two; sed -i s/x/y/ three; rm -f sparse; truncate -s 3M new; ln new other";
    comes_back(&Stage::new(Level::Best, &[run(line)]), |folder| {
        std::fs::write(folder.join("one"), "text\n").unwrap();
        std::fs::hard_link(folder.join("one"), folder.join("two")).unwrap();
        std::fs::write(folder.join("three"), "x\n").unwrap();
        std::fs::hard_link(folder.join("three"), folder.join("four")).unwrap();
        std::fs::File::create(folder.join("sparse"))
            .unwrap()
            .set_len(5 << 20)
            .unwrap();
    });
}

#[test]
fn pipes_and_sockets_are_left_alone_and_named_if_removed() {
    let stage = Stage::new(
        Level::Best,
        &[run("rm -f pipe socket a; mkfifo made; echo x > b")],
    );
    let path = stage.world.path();
    stage.world.write("a", "one\n");
    let made = std::process::Command::new("mkfifo")
        .args([path.join("pipe"), path.join("kept")])
        .status();
    assert!(made.unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(path.join("socket")).unwrap();
    let mut client = stage.client();
    let session = turn_in(&mut client, &path);
    let answer = review(&mut client, &session, "undo");
    let left = answer["result"]["left"]
        .as_array()
        .unwrap_or_else(|| panic!("{answer}"));
    let reasons: Vec<_> = left
        .iter()
        .map(|left| left["reason"].as_str().unwrap())
        .collect();
    assert!(
        !reasons.is_empty()
            && reasons.iter().all(|reason| *reason
                == "it was not a regular file, or could not be copied, such as on a full disk"),
        "{answer}"
    );
    assert_eq!(stage.world.read("a"), "one\n");
    assert!(path.join("kept").metadata().unwrap().file_type().is_fifo());
    assert!(
        ["made", "b"]
            .iter()
            .all(|name| path.join(name).symlink_metadata().is_err()),
        "{answer}"
    );
}

#[test]
fn a_files_group_and_attributes_survive_an_undo() {
    let stage = Stage::new(Level::Best, &[run("echo more >> a")]);
    let path = stage.world.path().join("a");
    stage.world.write("a", "one\n");
    let attribute = |value: &[u8]| {
        rustix::fs::setxattr(&path, "user.mine", value, rustix::fs::XattrFlags::empty())
    };
    if attribute(b"kept").is_err() {
        // This file system has none.
        return;
    }
    let group = 4242;
    let has_group = std::os::unix::fs::chown(&path, None, Some(group)).is_ok();
    let mut client = stage.client();
    let session = automatic(&mut client, &stage);
    let prompt = client.prompt(&session, "go");
    assert_eq!(finish_prompt(&mut client, prompt), "end_turn");
    assert_eq!(stage.world.read("a"), "one\nmore\n");
    for action in ["undo", "redo", "undo"] {
        assert_eq!(
            review(&mut client, &session, action)["result"]["left"],
            json!([])
        );
        let mut value = [0; 8];
        let length = rustix::fs::getxattr(&path, "user.mine", &mut value).unwrap();
        assert_eq!(&value[..length], b"kept", "{action}");
        assert!(
            !has_group || path.metadata().unwrap().gid() == group,
            "{action}"
        );
    }
    assert_eq!(stage.world.read("a"), "one\n");
}

#[test]
fn a_folder_with_someone_elses_file_stays_and_earlier_turns_can_be_undone() {
    let call = |line| json!([{ "call": { "id": "c1", "name": "run_command", "arguments": { "command": line } } }]);
    let done = json!([{ "text": "Done." }]);
    let script = json!([
        call("echo two > a"),
        done,
        call("mkdir made; echo x > made/x"),
        done
    ]);
    let stage = Stage {
        world: World::new(script),
        ..Stage::new(Level::Best, &[])
    };
    let path = stage.world.path();
    stage.world.write("a", "one\n");
    let mut client = stage.client();
    let session = automatic(&mut client, &stage);
    for _turn in 0..2 {
        let prompt = client.prompt(&session, "go");
        assert_eq!(finish_prompt(&mut client, prompt), "end_turn");
    }
    stage.world.write("made/mine", "mine\n");
    let answer = review(&mut client, &session, "undo");
    assert_eq!(
        answer["result"]["left"][0]["reason"], "it is not empty",
        "{answer}"
    );
    assert_eq!(
        (path.join("made/x").exists(), stage.world.read("a").as_str()),
        (false, "two\n")
    );
    let answer = review(&mut client, &session, "undo");
    assert_eq!(
        (
            stage.world.read("a").as_str(),
            stage.world.read("made/mine").as_str()
        ),
        ("one\n", "mine\n"),
        "{answer}"
    );
}

#[test]
fn a_repository_a_command_creates_is_undone_and_redone_as_a_whole() {
    for line in [
        "git init -q && git add -A && git -c user.name=a -c user.email=a@b commit -qm one",
        "git init -q new && cd new && echo x > f && git add f && git -c user.name=a -c user.email=a@b commit -qm one",
        "git init -q --bare store && git init -q a && git -C a remote -v",
        "git init -q --bare . && echo other > file && echo new > more",
    ] {
        comes_back(&Stage::new(Level::Best, &[run(line)]), |folder| {
            std::fs::write(folder.join("file"), "text\n").unwrap();
        });
    }
}

#[test]
fn a_repository_someone_has_worked_in_since_stays() {
    let line = "git init -q new && cd new && echo x > f && git add f && git -c user.name=a -c user.email=a@b commit -qm one";
    let stage = Stage::new(Level::Best, &[run(line)]);
    let path = stage.world.path();
    let mut client = stage.client();
    let session = turn_in(&mut client, &path);
    let new = path.join("new");
    std::fs::write(new.join("mine"), "mine\n").unwrap();
    git(&new, &["add", "mine"]);
    git(&new, &["commit", "-qm", "mine"]);
    let answer = review(&mut client, &session, "undo");
    assert!(
        answer["result"]["left"]
            .to_string()
            .contains("git's state has changed since"),
        "{answer}"
    );
    git(&new, &["fsck", "--strict"]);
    git(&new, &["cat-file", "-e", "HEAD:f"]);
    assert_eq!(std::fs::read_to_string(new.join("mine")).unwrap(), "mine\n");
}

#[test]
fn links_out_of_the_workspace_are_not_followed_by_undo() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("file"), "outside\n").unwrap();
    let stage = Stage::new(Level::Best, &[run("rm -rf sub && echo x > a")]);
    stage.world.write("sub/file", "inside\n");
    let mut client = stage.client();
    let path = stage.world.path();
    let session = turn_in(&mut client, &path);
    // Someone replaces the folder with a link.
    symlink(outside.path(), path.join("sub")).unwrap();
    let answer = review(&mut client, &session, "undo");
    assert_eq!(
        std::fs::read_to_string(outside.path().join("file")).unwrap(),
        "outside\n"
    );
    assert_eq!(outside.path().read_dir().unwrap().count(), 1, "{answer}");
    assert!(
        !path.join("a").exists() && answer["result"]["left"].to_string().contains("sub"),
        "{answer}"
    );
}

#[test]
fn running_git_status_does_not_prevent_an_undo() {
    let line = "sed -i s/one/two/ a && git add -A && git -c user.name=a -c user.email=a@b commit -qm two && echo x > b";
    let stage = Stage::new(Level::Best, &[run(line)]);
    let path = stage.world.path();
    stage.world.write("a", "one\n");
    git(&path, &["init", "-qb", "master"]);
    git(&path, &["add", "."]);
    git(&path, &["commit", "-qm", "one"]);
    let head = std::fs::read(path.join(".git/refs/heads/master")).ok();
    let mut client = stage.client();
    let session = turn_in(&mut client, &path);
    // The file's time differs from the one in the index.
    std::fs::File::open(path.join("a"))
        .unwrap()
        .set_modified(std::time::SystemTime::UNIX_EPOCH)
        .unwrap();
    let index = std::fs::read(path.join(".git/index")).unwrap();
    git(&path, &["status"]);
    assert_ne!(
        std::fs::read(path.join(".git/index")).unwrap(),
        index,
        "git rewrites it"
    );
    let answer = review(&mut client, &session, "undo");
    assert_eq!(answer["result"]["left"], json!([]), "{answer}");
    assert_eq!(
        (
            stage.world.read("a"),
            std::fs::read(path.join(".git/refs/heads/master")).ok()
        ),
        ("one\n".into(), head)
    );
    git(&path, &["diff", "--exit-code", "HEAD"]);
}

#[test]
fn of_large_changes_only_some_are_shown_and_all_are_undone() {
    let stage = Stage::new(Level::Best, &[run("sed -i 1s/a/b/ large*")]);
    let text = format!("a\n{}", "a line of a large file\n".repeat(18_000));
    for number in 0..30 {
        stage.world.write(&format!("large{number}"), &text);
    }
    let mut client = stage.client();
    let session = turn_in(&mut client, &stage.world.path());
    assert!(
        stage.told()[0].contains("[it changed 30 files, of which 10 are shown]"),
        "{:?}",
        stage.told()
    );
    let files = |answer: &Value| {
        answer["result"]["turns"][0]["files"]
            .as_array()
            .map_or(0, Vec::len)
    };
    assert_eq!(files(&review(&mut client, &session, "list")), 30);
    for (action, expected) in [
        ("undo", &text),
        ("redo", &text.replacen('a', "b", 1)),
        ("undo", &text),
    ] {
        assert_eq!(
            review(&mut client, &session, action)["result"]["left"],
            json!([]),
            "{action}"
        );
        assert!(
            (0..30).all(|number| stage.world.read(&format!("large{number}")) == *expected),
            "{action}"
        );
    }
}

#[test]
fn a_turn_that_changed_only_the_state_of_git_is_listed_and_can_be_rejected() {
    let stage = Stage::new(Level::Best, &[run("git checkout -qb other")]);
    let path = stage.world.path();
    stage.world.write("a", "one\n");
    git(&path, &["init", "-qb", "master"]);
    git(&path, &["add", "a"]);
    git(&path, &["commit", "-qm", "one"]);
    let mut client = stage.client();
    let session = turn_in(&mut client, &path);
    let listed = review(&mut client, &session, "list");
    let file = &listed["result"]["turns"][0]["files"][0];
    assert_eq!(
        (&file["path"], &file["hunks"]),
        (&json!(path.join(".git/HEAD")), &json!([])),
        "{listed}"
    );
    let rejected = client.call(
        "_tandem/review",
        json!({ "sessionId": session, "action": "reject", "turn": 1, "path": file["path"] }),
    );
    assert_eq!(rejected["result"]["turns"], json!([]), "{rejected}");
    let head = std::fs::read_to_string(path.join(".git/HEAD")).unwrap();
    assert_eq!(head, "ref: refs/heads/master\n");
}

#[test]
fn redoing_a_removal_leaves_unsaved_text_alone() {
    let stage = Stage::new(Level::Best, &[run("rm -rf a b")]);
    stage.world.write("a", "one\ntwo\n");
    stage.world.write("b", "b\n");
    let mut client = stage.client();
    let session = turn_in(&mut client, &stage.world.path());
    review(&mut client, &session, "undo");
    client.open(&stage.world.uri("a"), "one\ntwo\nmine\n");
    let redone = review(&mut client, &session, "redo");
    assert_eq!(
        redone["result"]["message"],
        "redid “go”: b; not changed: a (it has unsaved changes in the editor, so it was not removed)"
    );
    let is_edit = |message: &Value| message["method"] == "workspace/applyEdit";
    assert!(!client.seen.iter().any(is_edit), "{:#?}", client.seen);
    assert_eq!(stage.world.read("a"), "one\ntwo\n");
    assert!(!stage.world.path().join("b").exists());
}

#[test]
fn a_repository_that_a_command_moves_is_never_lost() {
    for level in [Level::Best, Level::Landlock, Level::None] {
        let stage = Stage::new(level, &[run("mv .git kept; echo two > a; true")]);
        let path = stage.world.path();
        stage.world.write("a", "one\n");
        git(&path, &["init", "-q"]);
        git(&path, &["add", "a"]);
        git(&path, &["commit", "-qm", "one"]);
        let mut client = stage.client();
        let session = turn_in(&mut client, &path);
        let answer = review(&mut client, &session, "undo");
        let told = stage.told();
        assert_eq!(stage.world.read("a"), "one\n", "{level:?}: {answer}");
        // Without a sandbox, it stays where the command moved it.
        let now = if level == Level::None { "kept" } else { ".git" };
        assert!(path.join(now).exists(), "{level:?}: {told:?} {answer}");
        git(
            &path,
            &[&format!("--git-dir={now}"), "fsck", "--full", "--strict"],
        );
        git(&path, &[&format!("--git-dir={now}"), "show", "HEAD:a"]);
    }
}
