//! How commands treat the unsaved text of open documents.

use std::os::unix::fs::PermissionsExt as _;
use std::time::SystemTime;

use super::changes::automatic;
use super::*;
use crate::driver::{call, until};
use crate::program::Program;

/// A session of the real program with the document `a.rs`, which is `// bad` on disk and `// good` in the editor.
struct Open {
    client: Client,
    _program: Program,
    stage: Stage,
    session: String,
    modified: SystemTime,
}

impl Open {
    fn new(line: &str) -> Self {
        let stage = Stage::new(Level::Best, &[run(line)]);
        stage.world.write("a.rs", "// bad\n");
        let modified = stage
            .world
            .path()
            .join("a.rs")
            .metadata()
            .unwrap()
            .modified()
            .unwrap();
        let (program, mut client) = stage.world.serve_with(Transport::Lsp, |command| {
            let home = stage.home.path();
            command
                .env("PATH", std::env::var_os("PATH").unwrap())
                .env("HOME", home.join("me"));
            command.env("TANDEM_STATE_DIR", home.join("state"));
        });
        client.shake_hands(
            stage
                .world
                .handshake(json!({ "experimental": { "tandem": {} } })),
        );
        client.open(&stage.world.uri("a.rs"), "// good\n");
        let session = automatic(&mut client, &stage);
        Self {
            client,
            _program: program,
            stage,
            session,
            modified,
        }
    }

    /// Runs the command; if a word is expected to replace `good`, the editor receives that edit and shows it.
    fn run(&mut self, word: Option<&str>) {
        let prompt = self.client.prompt(&self.session, "go");
        if let Some(word) = word {
            let is_asked = |message: &Value| message["method"] == "session/request_permission";
            let next = |client: &mut Client| {
                client.find(|it| is_asked(it) || it["method"] == "workspace/applyEdit")
            };
            let mut message = next(&mut self.client);
            while is_asked(&message) {
                allow(&mut self.client, &message);
                message = next(&mut self.client);
            }
            self.client.seen.push_front(message);
            self.edited(2, word);
        }
        assert_eq!(finish_prompt(&mut self.client, prompt), "end_turn");
    }

    fn edited(&mut self, version: i32, word: &str) {
        let uri = self.stage.world.uri("a.rs");
        let edit = self.client.next("workspace/applyEdit");
        let change = &edit["params"]["edit"]["documentChanges"][0];
        assert_eq!(
            (
                &change["textDocument"]["uri"],
                &change["edits"][0]["newText"]
            ),
            (&json!(uri), &json!(word))
        );
        self.shows(version, &format!("// {word}\n"));
        self.client.respond(&edit, json!({ "applied": true }));
    }

    fn shows(&mut self, version: i32, text: &str) {
        let document = json!({ "uri": self.stage.world.uri("a.rs"), "version": version });
        let change = json!({ "textDocument": document, "contentChanges": [{ "text": text }] });
        self.client.notify("textDocument/didChange", change);
    }

    fn undo(&mut self) -> i64 {
        self.client.ask(
            "_tandem/review",
            json!({ "sessionId": self.session, "action": "undo" }),
        )
    }

    fn told(&self) -> String {
        self.stage.told().remove(0)
    }

    /// The file is as last saved.
    fn is_untouched(&self, line: &str) {
        let found = self.stage.world.path().join("a.rs").metadata().unwrap();
        assert_eq!(self.stage.world.read("a.rs"), "// bad\n", "{line}");
        assert_eq!(found.modified().unwrap(), self.modified, "{line}");
    }
}

/// The command in the person's configuration sees the editor's text, and its output goes back to the model.
#[test]
fn a_turn_ends_with_a_command_on_the_unsaved_text() {
    let say = |text: &str| json!([{ "text": text }]);
    let write = |content: &str| {
        let arguments = json!({ "path": "b.rs", "content": content });
        json!([call("c1", "write_file", arguments)])
    };
    let script = json!([
        write("one\n"),
        say("Done."),
        write("two\n"),
        say("Now it is.")
    ]);
    let stage = Stage {
        world: World::new(script),
        ..Stage::new(Level::Best, &[])
    };
    stage.world.write("a.rs", "// bad\n");
    let mut client = stage.world.stranger_in(Transport::Lsp, stage.environment());
    let mut hello = stage
        .world
        .handshake(json!({ "experimental": { "tandem": {} } }));
    let command = "grep -q good a.rs && grep two b.rs";
    hello["initializationOptions"] = json!({ "mode": "edit", "finish": { "command": command } });
    client.shake_hands(hello);
    client.open(&stage.world.uri("a.rs"), "// good\n");
    let session = client.session(&stage.world);
    let prompt = client.prompt(&session, "go");
    let answer = client.answer(prompt);
    assert_eq!(
        answer["result"]["stopReason"], "end_turn",
        "nobody was asked"
    );
    let requests = stage.world.rehearsal().requests();
    let returned = requests[2]["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .to_string();
    assert!(
        returned.contains("which the user runs at the end of each turn, failed"),
        "{returned}"
    );
    assert!(returned.contains("exit code 1"), "{returned}");
    assert_eq!(requests.len(), 4);
    assert!(
        client.text().ends_with(&format!("`{command}` succeeded\n")),
        "{}",
        client.text()
    );
    assert_eq!(stage.world.read("a.rs"), "// bad\n");
}

#[test]
fn commands_replace_unsaved_text_without_changing_the_disk() {
    for line in [
        "grep -q good a.rs && sed -i s/good/better/ a.rs && cat a.rs",
        "sed s/good/better/ a.rs > new && mv new a.rs && cat a.rs",
        "text=$(sed s/good/better/ a.rs) && rm a.rs && echo \"$text\" > a.rs && cat a.rs",
        "printf '// better\\n' > a.rs && cat a.rs",
    ] {
        let mut open = Open::new(line);
        open.run(Some("better"));
        assert!(
            open.told().starts_with("// better\n[exit code 0"),
            "{line}: {}",
            open.told()
        );
        open.is_untouched(line);
        let undone = open.undo();
        open.edited(3, "good");
        assert_eq!(
            open.client.answer(undone)["result"]["left"],
            json!([]),
            "{line}"
        );
        open.is_untouched(line);
    }
}

#[test]
fn a_command_finds_a_document_that_was_never_saved_once_the_editor_saves_it() {
    let stage = Stage::new(Level::Best, &[run("cat new.rs")]);
    let saves = json!({ "_meta": { "tandem.save": true } });
    let mut client = stage.client_with(json!({ "experimental": { "tandem": saves } }));
    client.open(&stage.world.uri("new.rs"), "typed\n");
    let session = client.session(&stage.world);
    let prompt = client.prompt(&session, "go");
    let question = client.next("session/request_permission");
    let title = &question["params"]["toolCall"]["title"];
    assert_eq!(title, "Run `cat new.rs` (saves new.rs first)");
    allow(&mut client, &question);
    let save = client.next("_tandem/save");
    stage.world.write("new.rs", "typed\n");
    let document = json!({ "uri": stage.world.uri("new.rs") });
    client.notify("textDocument/didSave", json!({ "textDocument": document }));
    client.respond(&save, Value::Null);
    assert_eq!(finish_prompt(&mut client, prompt), "end_turn");
    let told = stage.told();
    assert!(told[0].starts_with("typed\n[exit code 0"), "{told:?}");
}

/// VS Code keeps a removed file open, and so does every editor that doesn't watch the disk.
#[test]
fn what_is_left_in_the_editor_of_a_removed_file_is_not_unsaved() {
    for removal in ["reject", "undo", "rm b.rs"] {
        let write = |content: &str| {
            let arguments = json!({ "path": "b.rs", "content": content });
            json!([call("c1", "write_file", arguments)])
        };
        let command = |line: &str| json!([call("c1", "run_command", run(line))]);
        let done = || json!([{ "text": "Done." }]);
        let calls = [command("rm -f b.rs"), command("ls"), write("two\n")];
        let script = [write("one\n"), done()].into_iter().chain(calls);
        let stage = Stage {
            world: World::new(script.chain([done()]).collect()),
            ..Stage::new(Level::Best, &[])
        };
        let saves = json!({ "_meta": { "tandem.save": true } });
        let mut client = stage.client_with(json!({ "experimental": { "tandem": saves } }));
        let session = client.session(&stage.world);
        let mode = json!({ "sessionId": session, "modeId": "edit" });
        client.call("session/set_mode", mode);
        assert_eq!(finish(&mut client, &session), "end_turn");
        client.open(&stage.world.uri("b.rs"), "one\n");
        let path = stage.world.path().join("b.rs");
        if let "reject" | "undo" = removal {
            let review =
                json!({ "sessionId": session, "action": removal, "turn": 1, "path": path });
            client.call("_tandem/review", review);
            assert!(!path.exists(), "{removal}");
        }
        let prompt = client.prompt(&session, "go");
        for line in ["rm -f b.rs", "ls"] {
            let question = client.next("session/request_permission");
            let title = &question["params"]["toolCall"]["title"];
            assert_eq!(title, &format!("Run `{line}`"), "{removal}");
            allow(&mut client, &question);
        }
        // The document has the new text, too.
        let edit = client.next("workspace/applyEdit");
        let change = &edit["params"]["edit"]["documentChanges"][0]["edits"][0];
        assert_eq!(change["newText"], "two", "{removal}");
        let document = json!({ "uri": stage.world.uri("b.rs"), "version": 2 });
        let change = json!({ "textDocument": document, "contentChanges": [{ "text": "two\n" }] });
        client.notify("textDocument/didChange", change);
        client.respond(&edit, json!({ "applied": true }));
        assert_eq!(finish_prompt(&mut client, prompt), "end_turn");
        assert_eq!(stage.world.read("b.rs"), "two\n", "{removal}");
        let asks_to_save = |message: &Value| message["method"] == "_tandem/save";
        assert!(!client.seen.iter().any(asks_to_save), "{removal}");
    }
}

#[test]
fn what_is_typed_into_the_document_of_a_removed_file_is_unsaved() {
    let removal = run("rm a.rs; mkfifo gate; echo gone; read x < gate");
    let stage = Stage::new(Level::Landlock, &[removal, run("ls")]);
    stage.world.write("a.rs", "saved\n");
    let mut client = stage.client();
    client.open(&stage.world.uri("a.rs"), "saved\n");
    let session = client.session(&stage.world);
    let prompt = client.prompt(&session, "go");
    let question = client.next("session/request_permission");
    allow(&mut client, &question);
    hear(&mut client, "gone");
    let document = json!({ "uri": stage.world.uri("a.rs"), "version": 2 });
    let change = json!({ "textDocument": document, "contentChanges": [{ "text": "typed\n" }] });
    client.notify("textDocument/didChange", change);
    // Once a later message is answered, the server has processed it.
    let list = json!({ "sessionId": session, "action": "list" });
    client.call("_tandem/review", list);
    std::fs::write(stage.world.path().join("gate"), "go\n").unwrap();
    let question = client.next("session/request_permission");
    assert_eq!(
        question["params"]["toolCall"]["title"],
        "Run `ls` (ignores unsaved changes in a.rs)"
    );
    allow(&mut client, &question);
    assert_eq!(finish_prompt(&mut client, prompt), "end_turn");
}

/// An editor that restarts the server may still have the text of a file that was removed earlier.
#[test]
fn a_document_the_editor_reports_as_saved_is_not_unsaved() {
    for (saved, title) in [
        (json!([]), "Run `ls` (ignores unsaved changes in gone.rs)"),
        (json!(["gone.rs"]), "Run `ls`"),
    ] {
        let stage = Stage::new(Level::Landlock, &[run("ls")]);
        let mut client = stage.client();
        client.open(&stage.world.uri("gone.rs"), "old\n");
        let uris = saved.as_array().unwrap().iter();
        let uris: Vec<_> = uris
            .map(|name| stage.world.uri(name.as_str().unwrap()))
            .collect();
        client.notify("_tandem/saved", json!({ "uris": uris }));
        let session = client.session(&stage.world);
        let prompt = client.prompt(&session, "go");
        let question = client.next("session/request_permission");
        assert_eq!(question["params"]["toolCall"]["title"], title);
        allow(&mut client, &question);
        assert_eq!(finish_prompt(&mut client, prompt), "end_turn");
    }
}

#[test]
fn git_restores_unsaved_files() {
    let line = "git init -q && git add a.rs && git -c user.name=a -c user.email=a@b commit -qm first && \
                sed -i s/good/worse/ a.rs && git checkout -q -- a.rs && git status --short && cat a.rs";
    let mut open = Open::new(line);
    open.run(None);
    assert!(
        open.told().starts_with("// good\n[exit code 0"),
        "{}",
        open.told()
    );
    open.is_untouched(line);
}

#[test]
fn removed_and_moved_unsaved_files_are_restored() {
    for (line, text) in [
        ("mkdir b; mv a.rs b; cat b/a.rs", "// good\n"),
        ("mkdir b; rm a.rs", ""),
    ] {
        let mut open = Open::new(line);
        open.run(None);
        let root = open.stage.world.path();
        assert!(
            open.told().starts_with(&format!("{text}[exit code 0")),
            "{line}: {}",
            open.told()
        );
        assert!(!root.join("a.rs").exists());
        assert_eq!(
            std::fs::read_to_string(root.join("b/a.rs")).unwrap_or_default(),
            text,
            "{line}"
        );
        let undone = open.undo();
        let answer = open.client.answer(undone);
        assert!(answer.get("error").is_none(), "{answer}");
        assert_eq!(
            open.stage.world.read("a.rs"),
            "// bad\n",
            "{line}: {answer}"
        );
        assert!(!root.join("b").exists(), "{line}: {answer}");
    }
}

#[test]
fn permissions_of_unsaved_files_are_changed_and_undone() {
    let mut open = Open::new("chmod 750 a.rs");
    let mode = |open: &Open| {
        open.stage
            .world
            .path()
            .join("a.rs")
            .metadata()
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    let before = mode(&open);
    open.run(None);
    assert_eq!(mode(&open), 0o750);
    let undone = open.undo();
    assert_eq!(open.client.answer(undone)["result"]["left"], json!([]));
    assert_eq!(mode(&open), before);
    assert_eq!(open.stage.world.read("a.rs"), "// bad\n");
}

#[test]
fn text_saved_while_a_command_replaces_the_file_stays() {
    let line = "mkfifo gate; echo up; read x < gate; rm gate; sed -i s/good/better/ a.rs";
    let mut open = Open::new(line);
    let prompt = open.client.prompt(&open.session, "go");
    hear(&mut open.client, "up");
    open.stage.world.write("a.rs", "// good\n// mine\n");
    open.shows(2, "// good\n// mine\n");
    open.client.notify(
        "textDocument/didSave",
        json!({ "textDocument": { "uri": open.stage.world.uri("a.rs") } }),
    );
    std::fs::write(open.stage.world.path().join("gate"), "go\n").unwrap();
    let edit = open.client.next("workspace/applyEdit");
    assert_eq!(
        edit["params"]["edit"]["documentChanges"][0]["edits"][0]["newText"],
        "better"
    );
    open.shows(3, "// better\n// mine\n");
    open.client.respond(&edit, json!({ "applied": true }));
    assert_eq!(finish_prompt(&mut open.client, prompt), "end_turn");
    assert_eq!(
        open.stage.world.read("a.rs"),
        "// good\n// mine\n",
        "{}",
        open.told()
    );
}

#[test]
fn what_shows_unsaved_text_gives_commands_no_power() {
    let line = "sed -i s/good/better/ a.rs; grep -h Cap /proc/self/status | grep -v 0000000000000000; \
                for pid in $(ls /proc | grep '^[0-9]'); do [ $pid = 1 ] || [ $pid = $$ ] || kill -9 $pid; done; \
                echo x >> AGENTS.md; mv a.rs AGENTS.md; rm -f AGENTS.md; umount AGENTS.md; cat /etc/shadow; \
                cat /proc/1/root/etc/shadow; ls /dev/.tandem/texts; unshare -Ur true && echo THROUGH; cat AGENTS.md";
    let mut open = Open::new(line);
    open.stage.world.write("AGENTS.md", "be good\n");
    open.run(Some("better"));
    let told = open.told();
    assert!(told.contains("be good\n[exit code 0"), "{told}");
    assert!(
        !["Cap", "root:", "THROUGH"]
            .iter()
            .any(|words| told.contains(words)),
        "{told}"
    );
    assert_eq!(open.stage.world.read("AGENTS.md"), "be good\n");
    assert!(!open.stage.world.path().join("AGENTS.md.held").exists());
    open.is_untouched(line);
}

#[test]
fn what_starts_a_command_loads_no_library_of_the_workspace() {
    let mut stage = Stage::new(Level::Best, &[run("echo $LD_LIBRARY_PATH")]);
    let folder = stage.world.path();
    for name in [
        "libcap.so.2",
        "libselinux.so.1",
        "libpcre2-8.so.0",
        "libgcc_s.so.1",
    ] {
        stage.world.write(name, "planted");
    }
    stage.toolchains = vec![("LD_LIBRARY_PATH", folder.clone())];
    let told = stage.results().remove(0);
    assert!(
        told.starts_with(&format!("{}\n[exit code 0", folder.display())),
        "{told}"
    );
}

/// The sandbox check is never killed: bubblewrap, killed at the wrong moment, would leave a process behind.
#[test]
fn a_sandbox_check_ends_by_itself() {
    let world = World::new(
        json!([[{ "text": "ready" }], [call("c1", "report_ready", json!({ "ready": true }))]]),
    );
    let mut doctor = Program::start(&mut world.command(&["doctor"]));
    assert_eq!(doctor.ends().code(), Some(0), "{}", doctor.stderr());
    let home = world.home().into_os_string().into_encoded_bytes();
    let is_of_world = |process: std::fs::DirEntry| {
        std::fs::read(process.path().join("environ"))
            .is_ok_and(|found| memchr::memmem::find(&found, &home).is_some())
    };
    until("every process ended", || {
        !std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .any(is_of_world)
    });
}
