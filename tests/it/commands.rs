//! Commands of the model: what they say, how they end, and that nothing of them stays.

mod sandbox;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tandem::config::Environment;
use tandem::server::Carrier;

use crate::driver::{Client, PATIENCE, World};

/// What holds the commands of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// Whatever this machine has.
    Best,
    /// As where bubblewrap is not installed: it is not in the search path.
    Landlock,
    /// As on a system without any sandbox.
    None,
}

/// A world whose model runs commands, and a person with a home of their own.
struct Stage {
    world: World,
    home: tempfile::TempDir,
    level: Level,
}

impl Stage {
    /// A model that makes these calls of `run_command` (or of the tool they name), one after the other.
    fn new(level: Level, calls: &[Value]) -> Self {
        let call = |(index, arguments): (usize, &Value)| {
            let name = arguments["tool"].as_str().unwrap_or("run_command");
            json!([{ "call": { "id": format!("c{index}"), "name": name, "arguments": arguments } }])
        };
        let calls = calls.iter().enumerate().map(call);
        let script: Value = calls.chain([json!([{ "text": "Done." }])]).collect();
        Self { world: World::new(script), home: tempfile::tempdir().unwrap(), level }
    }

    fn environment(&self) -> Environment {
        let path = match self.level {
            Level::Best => std::env::var("PATH").unwrap(),
            _ => without_bubblewrap(&self.home.path().join("programs")),
        };
        let home = self.home.path().join("me");
        std::fs::create_dir_all(&home).unwrap();
        let variables = [
            ("TANDEM_MODEL", "scripted"),
            ("TANDEM_BASE_URL", self.world.model.base_url()),
            ("TANDEM_API_KEY", "sk-secret-of-the-user"),
            ("PATH", &path),
            ("HOME", home.to_str().unwrap()),
        ];
        let environment = Environment::made_up(self.home.path(), &variables);
        if self.level == Level::None {
            return environment;
        }
        environment.with_program(Path::new(env!("CARGO_BIN_EXE_tandem")))
    }

    fn client(&self) -> Client {
        self.client_with(json!({ "experimental": { "tandem": {} } }))
    }

    fn client_with(&self, capabilities: Value) -> Client {
        let mut client = self.world.stranger_in(Carrier::Lsp, self.environment());
        client.shake_hands(self.world.handshake(capabilities));
        client
    }

    /// Runs all the calls and gives what the model was told of each.
    fn results(&self) -> Vec<String> {
        let mut client = self.client();
        let session = client.session(&self.world);
        finish(&mut client, &session);
        self.told()
    }

    /// What the model was told of each call.
    fn told(&self) -> Vec<String> {
        let last = self.world.rehearsal().requests().last().unwrap()["messages"].clone();
        let results = last.as_array().unwrap().iter().filter(|message| message["role"] == "tool");
        results.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
    }
}

/// A prompt to its end; every question is answered with yes.
fn finish(client: &mut Client, session: &str) -> String {
    let prompt = client.prompt(session, "go");
    finish_prompt(client, prompt)
}

fn finish_prompt(client: &mut Client, prompt: i64) -> String {
    loop {
        let message = client.find(|message| {
            message["method"] == "session/request_permission" || (message["id"] == prompt && message.get("method").is_none())
        });
        if message["method"] == "session/request_permission" {
            allow(client, &message);
            continue;
        }
        client.seen.push_front(message);
        return client.answer(prompt)["result"]["stopReason"].as_str().unwrap().to_owned();
    }
}

fn allow(client: &mut Client, question: &Value) {
    let options = question["params"]["options"].as_array().unwrap();
    let once = options.iter().find(|option| option["kind"] == "allow_once").unwrap();
    client.respond(question, json!({ "outcome": { "outcome": "selected", "optionId": once["optionId"] } }));
}

/// A folder with all programs of this machine but bubblewrap.
fn without_bubblewrap(folder: &Path) -> String {
    std::fs::create_dir_all(folder).unwrap();
    let path = std::env::var("PATH").unwrap();
    for place in std::env::split_paths(&path).filter_map(|place| place.read_dir().ok()) {
        for program in place.flatten().filter(|program| program.file_name() != "bwrap") {
            // The first of a name counts, as in a search path.
            let _later = std::os::unix::fs::symlink(program.path(), folder.join(program.file_name()));
        }
    }
    folder.to_str().unwrap().to_owned()
}

fn run(command: &str) -> Value {
    json!({ "command": command })
}

/// Runs one command on every level that can hold it.
fn check(command: &str, expected: &str) {
    for level in [Level::Best, Level::Landlock, Level::None] {
        let stage = Stage::new(level, &[run(command)]);
        let results = stage.results();
        assert!(results[0].contains(expected), "{level:?}: {command}: {}", results[0]);
    }
}

#[test]
fn exit_and_output_are_told() {
    check("echo out; echo err >&2; exit 3", "out\nerr\n[exit code 3, ");
}
