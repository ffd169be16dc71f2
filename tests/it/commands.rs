//! The model's commands: their output, how they end, and that nothing is left of them.

mod changes;
#[cfg(target_os = "linux")]
mod jobs;
mod linked;
#[cfg(target_os = "linux")]
mod odd;
#[cfg(target_os = "linux")]
mod repositories;
mod sandbox;
#[cfg(target_os = "linux")]
mod shadow;
#[cfg(target_os = "linux")]
mod typed;
#[cfg(target_os = "linux")]
mod unsaved;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::{Value, json};
use tandem::config::Environment;
use tandem::server::Transport;

use crate::driver::{Client, World, free_port, until};

/// How commands are confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// By whatever this machine offers.
    Best,
    /// The same while a document has unsaved text, which changes how commands are started.
    Unsaved,
    /// As on a machine without bubblewrap: it is not on PATH.
    Landlock,
    /// As in a workspace that no sandbox can confine: the home folder.
    None,
}

/// A world whose model runs commands, and a person with a home folder.
struct Stage {
    world: World,
    home: tempfile::TempDir,
    level: Level,
    /// Where toolchains are, outside the home folder.
    toolchains: Vec<(&'static str, PathBuf)>,
}

impl Stage {
    /// A model that makes these calls of `run_command` (or of the tool they name), one by one.
    fn new(level: Level, calls: &[Value]) -> Self {
        let call = |(index, arguments): (usize, &Value)| {
            let mut arguments = arguments.clone();
            let tool = arguments.as_object_mut().unwrap().remove("tool");
            let name = tool.unwrap_or_else(|| json!("run_command"));
            json!([{ "call": { "id": format!("c{index}"), "name": name, "arguments": arguments } }])
        };
        let calls = calls.iter().enumerate().map(call);
        let script: Value = calls.chain([json!([{ "text": "Done." }])]).collect();
        let world = World::new(script);
        if level == Level::Unsaved {
            world.write("unsaved", "saved\n");
        }
        Self {
            world,
            home: tempfile::tempdir().unwrap(),
            level,
            toolchains: Vec::new(),
        }
    }

    fn environment(&self) -> Environment {
        let here = std::env::var("PATH").unwrap();
        let path = match self.level {
            Level::Best | Level::Unsaved | Level::None => here.as_str(),
            Level::Landlock => without_bubblewrap(),
        };
        let home = if self.level == Level::None {
            self.world.path()
        } else {
            self.home.path().join("me")
        };
        std::fs::create_dir_all(&home).unwrap();
        let mut variables = vec![
            ("TANDEM_MODEL", "scripted"),
            ("TANDEM_BASE_URL", self.world.model.base_url()),
            ("TANDEM_API_KEY", "sk-secret-of-the-user"),
            ("PATH", path),
            ("HOME", home.to_str().unwrap()),
        ];
        variables.extend(
            self.toolchains
                .iter()
                .map(|(name, folder)| (*name, folder.to_str().unwrap())),
        );
        Environment::made_up(self.home.path(), &variables)
            .with_program(Path::new(env!("CARGO_BIN_EXE_tandem")))
    }

    fn client(&self) -> Client {
        self.client_with(json!({
            "experimental": { "tandem": {} },
            "window": { "showMessage": { "messageActionItem": {} } },
        }))
    }

    fn client_with(&self, capabilities: Value) -> Client {
        let mut client = self.world.stranger_in(Transport::Lsp, self.environment());
        client.shake_hands(self.world.handshake(capabilities));
        if self.level == Level::Unsaved {
            self.world.write("unsaved", "saved\n");
            client.open(&self.world.uri("unsaved"), "unsaved\n");
        }
        client
    }

    /// Runs all calls and returns their results as the model received them.
    fn results(&self) -> Vec<String> {
        let mut client = self.client();
        let session = client.session(&self.world);
        finish(&mut client, &session);
        self.told()
    }

    /// The result of each call, as the model received it.
    fn told(&self) -> Vec<String> {
        let last = self.world.rehearsal().requests().last().unwrap()["messages"].clone();
        let results = last
            .as_array()
            .unwrap()
            .iter()
            .filter(|message| message["role"] == "tool");
        results
            .map(|message| message["content"].as_str().unwrap().to_owned())
            .collect()
    }
}

/// Runs a prompt to its end; every request is answered with yes.
fn finish(client: &mut Client, session: &str) -> String {
    let prompt = client.prompt(session, "go");
    finish_prompt(client, prompt)
}

fn finish_prompt(client: &mut Client, prompt: i64) -> String {
    loop {
        let message = client.find(|message| {
            message["method"] == "session/request_permission"
                || (message["id"] == prompt && message.get("method").is_none())
        });
        if message["method"] == "session/request_permission" {
            allow(client, &message);
            continue;
        }
        client.seen.push_front(message);
        return client.answer(prompt)["result"]["stopReason"]
            .as_str()
            .unwrap()
            .to_owned();
    }
}

fn allow(client: &mut Client, question: &Value) {
    let options = question["params"]["options"].as_array().unwrap();
    let once = options
        .iter()
        .find(|option| option["kind"] == "allow_once")
        .unwrap();
    client.respond(
        question,
        json!({ "outcome": { "outcome": "selected", "optionId": once["optionId"] } }),
    );
}

/// This machine's PATH, in which each folder with bubblewrap is replaced by a copy without it, made of links.
pub fn without_bubblewrap() -> &'static str {
    static PATH: LazyLock<String> = LazyLock::new(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("programs");
        std::fs::create_dir_all(&folder).unwrap();
        let path = std::env::var("PATH").unwrap();
        let folders = std::env::split_paths(&path).map(|place| {
            if !place.join("bwrap").exists() {
                return place;
            }
            for program in place
                .read_dir()
                .unwrap()
                .flatten()
                .filter(|program| program.file_name() != "bwrap")
            {
                // `/bin` and `/usr/bin` are often the same, and an earlier run may have created them.
                let _known =
                    std::os::unix::fs::symlink(program.path(), folder.join(program.file_name()));
            }
            folder.clone()
        });
        std::env::join_paths(folders)
            .unwrap()
            .into_string()
            .unwrap()
    });
    &PATH
}

fn run(command: &str) -> Value {
    json!({ "command": command })
}

/// A background server on this loopback port, which prints a line once it listens.
fn serve(port: u16) -> Value {
    let server = format!(
        "python3 -uc \"import socket; s = socket.create_server(('127.0.0.1', {port})); print('ready')
while True: s.accept()[0].sendall(b'SERVED')\""
    );
    json!({ "command": server, "background": true })
}

/// Runs one command at every level that can confine it.
fn check(command: &str, expected: &str) {
    for level in LEVELS {
        let stage = Stage::new(level, &[run(command)]);
        let results = stage.results();
        assert!(
            results[0].contains(expected),
            "{level:?}: {command}: {}",
            results[0]
        );
    }
}

/// A sleep duration that no other process uses.
fn unique() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!(
        "4242.{}{:02}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    )
}

/// How many processes sleep that long.
fn sleepers(length: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes
        .filter_map(|process| std::fs::read_to_string(process.path().join("cmdline")).ok());
    lines
        .filter(|line| line.starts_with("sleep\0") && line.contains(length))
        .count()
}

fn wait_for_sleepers(length: &str, count: usize) {
    until("the commands sleep", || sleepers(length) >= count);
}

/// Waits for an update whose content holds `text`.
fn hear(client: &mut Client, text: &str) -> String {
    let message = client.find(|message| {
        message["params"]["update"]["content"][0]["content"]["text"]
            .as_str()
            .is_some_and(|said| said.contains(text))
    });
    message["params"]["update"]["content"][0]["content"]["text"]
        .as_str()
        .unwrap()
        .to_owned()
}

const LEVELS: [Level; 3] = [Level::Best, Level::Landlock, Level::None];

#[test]
fn exit_code_and_output_are_reported() {
    check("echo out; echo err >&2; exit 3", "out\nerr\n[exit code 3, ");
    check("kill -9 $$", "[exit code 137, ");
    check("cd sub 2>&1; pwd", "sub");
}

#[test]
fn a_commands_exit_code_is_in_its_last_update_and_in_a_loaded_session() {
    let stage = Stage::new(Level::Best, &[run("echo no; exit 3")]);
    let mut client = stage.client();
    let session = client.session(&stage.world);
    let prompt = client.prompt(&session, "go");
    let question = client.next("session/request_permission");
    allow(&mut client, &question);
    let exit = |client: &mut Client| {
        let ended =
            client.find(|message| message["params"]["update"]["_meta"]["tandem/exit"].is_object());
        assert_eq!(ended["params"]["update"]["status"], "failed");
        ended["params"]["update"]["_meta"]["tandem/exit"].clone()
    };
    let told = exit(&mut client);
    assert_eq!(told["code"], 3);
    assert!(told["durationMs"].is_u64(), "{told}");
    assert_eq!(finish_prompt(&mut client, prompt), "end_turn");
    client.call("session/close", json!({ "sessionId": session }));
    client.seen.clear();
    let params = json!({ "sessionId": session, "cwd": stage.world.path(), "mcpServers": [] });
    assert!(client.call("session/load", params)["result"].is_object());
    assert_eq!(exit(&mut client), told);
}

#[test]
fn output_streams_into_the_call() {
    let stage = Stage::new(
        Level::Best,
        &[run("mkfifo gate; echo first; read x < gate; echo then $x")],
    );
    let mut client = stage.client();
    let session = client.session(&stage.world);
    let prompt = client.prompt(&session, "go");
    let question = client.next("session/request_permission");
    allow(&mut client, &question);
    assert_eq!(hear(&mut client, "first"), "first\n");
    std::fs::write(stage.world.path().join("gate"), "second\n").unwrap();
    assert_eq!(finish_prompt(&mut client, prompt), "end_turn");
    // All of it may also arrive before its exit code does.
    assert!(hear(&mut client, "[exit code 0, ").starts_with("first\nthen second\n[exit code 0, "));
}

#[test]
fn commands_have_no_input_and_no_terminal() {
    check(
        "cat; read x; echo \"nothing: $x\"",
        "nothing: \n[exit code 0,",
    );
    check("cat /dev/tty", "[exit code 1,");
    check(
        "git init -q new; cd new; git -c user.name=a -c user.email=a@b commit --allow-empty",
        "empty commit message",
    );
    check("echo $TERM $PAGER $GIT_TERMINAL_PROMPT", "dumb cat 0\n");
}

#[test]
fn control_codes_and_invalid_bytes_are_removed() {
    let command = r"printf '\033[31mred\033[0m \033]0;title\007\302\233x\n'; printf '\377\376\n'";
    check(
        command,
        "red x\n\u{fffd}\u{fffd}\n\n[2 bytes were not UTF-8 and are shown as \u{fffd}]\n[exit code 0",
    );
}

#[test]
fn a_command_that_times_out_is_killed_with_its_process_tree() {
    for level in LEVELS {
        let length = unique();
        let command = format!("echo begun; setsid sleep {length} & sleep {length}");
        // On a busy machine, it may not start within the first of these times.
        let told_of_begun = [1, 5, 25].iter().any(|limit| {
            let stage = Stage::new(level, &[json!({ "command": command, "timeout_s": limit })]);
            let told = stage.results().remove(0);
            assert!(
                told.contains(&format!(
                    "[killed after {limit} s; pass a larger `timeout_s`"
                )),
                "{told}"
            );
            assert_eq!(sleepers(&length), 0, "{level:?}");
            told.starts_with("begun\n[killed")
        });
        assert!(told_of_begun, "{level:?}");
    }
}

#[test]
fn nothing_outlives_its_command() {
    for level in LEVELS {
        let length = unique();
        let daemon = format!(
            "(setsid setsid sleep {length} >/dev/null 2>&1 &) ; sleep {length} & echo started"
        );
        let stage = Stage::new(level, &[run(&daemon)]);
        assert!(
            stage.results()[0].starts_with("started\n[exit code 0,"),
            "{level:?}"
        );
        assert_eq!(sleepers(&length), 0, "{level:?}");
    }
}

#[test]
fn cancel_ends_a_tree_of_fifty_processes() {
    for level in LEVELS {
        let length = unique();
        let tree = format!(
            "trap '' TERM INT HUP; for i in $(seq 25); do sleep {length} & (setsid sh -c 'sleep {length} & wait' &); done; echo up; wait"
        );
        let stage = Stage::new(level, &[run(&tree)]);
        let mut client = stage.client();
        let session = client.session(&stage.world);
        let prompt = client.prompt(&session, "go");
        let question = client.next("session/request_permission");
        allow(&mut client, &question);
        hear(&mut client, "up");
        wait_for_sleepers(&length, 50);
        client.notify("session/cancel", json!({ "sessionId": session }));
        assert_eq!(finish_prompt(&mut client, prompt), "cancelled");
        assert_eq!(sleepers(&length), 0, "{level:?}");
    }
}

#[test]
fn cancelling_a_starting_command_leaves_nothing_behind() {
    const MOMENTS: u64 = 24;
    for level in LEVELS {
        let length = unique();
        let calls: Vec<_> = (0..MOMENTS)
            .map(|_| run(&format!("sleep {length}")))
            .collect();
        let stage = Stage::new(level, &calls);
        let mut client = stage.client();
        let session = client.session(&stage.world);
        for moment in 0..MOMENTS {
            let prompt = client.prompt(&session, "go");
            let question = client.next("session/request_permission");
            allow(&mut client, &question);
            client.find(|message| message["params"]["update"]["status"] == "in_progress");
            // Any moment between starting the confinement and starting the command.
            (0..moment * 50).for_each(|_| std::thread::yield_now());
            client.notify("session/cancel", json!({ "sessionId": session }));
            assert_eq!(finish_prompt(&mut client, prompt), "cancelled");
            assert_eq!(sleepers(&length), 0, "{level:?}, moment {moment}");
        }
    }
}

#[test]
fn background_jobs_run_until_stopped_or_the_session_ends() {
    let length = unique();
    let server = format!("echo serving; sleep {length}");
    let calls = [
        json!({ "command": server, "background": true }),
        json!({ "command": "stop", "job": 1 }),
        json!({ "command": "read", "job": 1 }),
        json!({ "command": "mkfifo gate; echo one; read x < gate; echo $x; exit 4", "background": true }),
        run("echo two > gate"),
        json!({ "command": "read", "job": 4 }),
        json!({ "command": "stop", "job": 9 }),
        json!({ "command": server, "background": true }),
    ];
    for level in LEVELS {
        let stage = Stage::new(level, &calls);
        let told = stage.results();
        assert_eq!(
            told[0], "[job 1]\nserving\n[job 1 is running]\n",
            "{level:?}"
        );
        assert!(
            told[1].contains("[exit code 137, ") || told[1].contains("signal: 9"),
            "{level:?}: {}",
            told[1]
        );
        assert!(told[2].starts_with('['), "nothing new: {}", told[2]);
        assert!(
            told[3].starts_with("[job 2]\none\n[job 2 is running]"),
            "{}",
            told[3]
        );
        assert_eq!(told[5], "unknown job 4");
        assert_eq!(sleepers(&length), 0, "{level:?}");
    }
}

#[test]
fn only_finished_jobs_make_room_for_others() {
    let length = unique();
    let ended = vec![json!({ "command": "echo here", "background": true }); 9];
    let running = vec![json!({ "command": format!("sleep {length}"), "background": true }); 9];
    let more = [
        json!({ "command": "read", "job": 1 }),
        json!({ "command": "stop", "job": 17 }),
    ];
    let calls: Vec<_> = ended.into_iter().chain(running).chain(more).collect();
    let told = Stage::new(Level::Best, &calls).results();
    assert!(told[8].starts_with("[job 9]\nhere\n"), "{}", told[8]);
    assert!(told[16].starts_with("[job 17]\n"), "{}", told[16]);
    assert_eq!(
        told[17],
        "8 jobs are already running; stop one of them first"
    );
    assert_eq!(told[18], "unknown job 1");
    assert!(told[19].starts_with("[exit code 137, "), "{}", told[19]);
    assert_eq!(sleepers(&length), 0);
}

#[test]
fn an_endless_control_sequence_is_not_kept_and_ends_with_its_line() {
    let title = "printf '\\033]0;'; head -c 50000000 /dev/zero | tr '\\0' t; printf '\\nTHE END'";
    let stage = Stage::new(Level::Best, &[run(title)]);
    let (program, mut client) = stage.world.serve_editor();
    let session = client.session(&stage.world);
    let before = program.peak_memory();
    assert_eq!(finish(&mut client, &session), "end_turn");
    let grown = program.peak_memory() - before;
    let told = stage.told();
    assert!(told[0].starts_with("\nTHE END\n[exit code 0, "), "{told:?}");
    assert!(grown < 8 << 20, "it grew by {grown} bytes");
}

#[test]
fn the_end_of_long_output_is_shown_and_all_of_it_is_readable() {
    let flood = "yes 'a line of twelve megabytes of lines' | head -c 12000000; echo; echo THE END";
    let stage = Stage::new(
        Level::Best,
        &[
            run(flood),
            json!({ "tool": "read_file", "path": "output:1", "offset": 300_000, "limit": 1 }),
        ],
    );
    let (program, mut client) = stage.world.serve_editor();
    let session = client.session(&stage.world);
    let before = program.peak_memory();
    assert_eq!(finish(&mut client, &session), "end_turn");
    let grown = program.peak_memory() - before;
    let told = stage.told();
    assert!(told[0].starts_with("a line of twelve megabytes of lines\n"));
    assert!(
        told[0].contains("bytes left out; read_file returns all of it: `output:1` …]"),
        "{}",
        told[0].len()
    );
    assert!(
        told[0].contains("\nTHE END\n[exit code 0, "),
        "{}",
        told[0].len()
    );
    assert!(told[0].len() < 50_000, "{}", told[0].len());
    assert_eq!(
        told[1],
        "300000\ta line of twelve megabytes of lines\n[continue with offset 300001]\n"
    );
    assert!(grown < 8 << 20, "it grew by {grown} bytes");
    let updates = client
        .seen
        .iter()
        .filter(|message| message["method"] == "session/update")
        .count();
    assert!(updates < 2000, "{updates} updates");
}

#[test]
fn unsaved_files_are_named() {
    let stage = Stage::new(Level::Landlock, &[run("cat a.rs")]);
    stage.world.write("a.rs", "saved\n");
    stage.world.write("b.rs", "same\n");
    let mut client = stage.client();
    client.open(&stage.world.uri("a.rs"), "typed\n");
    client.open(&stage.world.uri("b.rs"), "same\n");
    client.open(&stage.world.uri("notes.tandem.md"), "## You\n");
    let session = client.session(&stage.world);
    let prompt = client.prompt(&session, "go");
    let question = client.next("session/request_permission");
    assert_eq!(
        question["params"]["toolCall"]["title"],
        "Run `cat a.rs` (ignores unsaved changes in a.rs)"
    );
    allow(&mut client, &question);
    assert_eq!(finish_prompt(&mut client, prompt), "end_turn");
    let told = stage.told().remove(0);
    assert!(
        told.starts_with(
            "[unsaved in the editor, so the command reads the older version on disk: a.rs]\nsaved\n"
        ),
        "{told}"
    );
}

#[test]
fn editors_that_can_save_are_asked_to() {
    let stage = Stage::new(Level::Landlock, &[run("cat a.rs")]);
    stage.world.write("a.rs", "saved\n");
    let mut client = stage
        .client_with(json!({ "experimental": { "tandem": { "_meta": { "tandem.save": true } } } }));
    client.open(&stage.world.uri("a.rs"), "typed\n");
    let session = client.session(&stage.world);
    let prompt = client.prompt(&session, "go");
    let question = client.next("session/request_permission");
    assert_eq!(
        question["params"]["toolCall"]["title"],
        "Run `cat a.rs` (saves a.rs first)"
    );
    allow(&mut client, &question);
    let save = client.next("_tandem/save");
    assert_eq!(save["params"], json!({ "uris": [stage.world.uri("a.rs")] }));
    stage.world.write("a.rs", "typed\n");
    client.respond(&save, json!(null));
    assert_eq!(finish_prompt(&mut client, prompt), "end_turn");
    assert!(
        stage.told()[0].starts_with("typed\n[exit code 0"),
        "{:?}",
        stage.told()
    );
}

#[test]
fn a_killed_server_leaves_nothing_behind() {
    for path in [std::env::var("PATH").unwrap(), String::new()] {
        let length = unique();
        let stage = Stage::new(
            Level::Best,
            &[run(&format!(
                "(setsid sleep {length} &); echo up; sleep {length}"
            ))],
        );
        let path = if path.is_empty() {
            without_bubblewrap().to_owned()
        } else {
            path
        };
        let (mut program, mut client) = stage.world.serve_with(Transport::Lsp, |command| {
            command
                .env("PATH", &path)
                .env("HOME", stage.home.path())
                .env("TANDEM_CONFIG", stage.home.path().join("config.toml"))
                .env("TANDEM_STATE_DIR", stage.home.path().join("state"));
        });
        client.shake_hands(
            stage
                .world
                .handshake(json!({ "experimental": { "tandem": {} } })),
        );
        let session = client.session(&stage.world);
        client.prompt(&session, "go");
        let question = client.next("session/request_permission");
        allow(&mut client, &question);
        hear(&mut client, "up");
        wait_for_sleepers(&length, 2);
        program.signal(rustix::process::Signal::KILL);
        program.ends();
        until("no orphan is left", || sleepers(&length) == 0);
    }
}

#[test]
fn commands_that_cannot_run_need_no_approval() {
    let calls = [
        run(" "),
        json!({ "command": "ls", "cwd": "gone" }),
        json!({ "command": "ls", "cwd": "/etc" }),
        run("a\0b"),
    ];
    let stage = Stage::new(Level::Best, &calls);
    let mut client = stage.client();
    let session = client.session(&stage.world);
    let prompt = client.prompt(&session, "go");
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");
    let told = stage.told();
    assert_eq!(told[0], "the command is empty");
    assert_eq!(told[1], "the directory gone does not exist");
    assert!(
        told[2].starts_with("/etc is outside the workspace"),
        "{}",
        told[2]
    );
    assert_eq!(told[3], "the command contains a NUL character");
}
