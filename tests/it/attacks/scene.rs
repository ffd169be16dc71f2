//! The scene of an attack: the real program, a workspace, a folder beside it that nobody may touch, a home, and a model
//! that does what the attacker wants.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tandem::server::Transport;

use crate::driver::{Client, World};
use crate::git::git;
use crate::program::Program;

/// A secret that must never appear.
pub const CANARY: &str = "CANARY-7f3a";

/// The folders and the model, which the programs of a scene share.
pub struct Scene {
    pub world: World,
}

impl Scene {
    pub fn new() -> Self {
        let scene = Self {
            world: World::new(json!([])),
        };
        std::fs::create_dir(scene.ws("")).unwrap();
        scene.write(&scene.outside("secret.txt"), CANARY);
        scene
    }

    /// The workspace, or a path in it.
    pub fn ws(&self, name: &str) -> PathBuf {
        self.world.path().join("ws").join(name)
    }

    /// The folder beside the workspace, or a path in it.
    pub fn outside(&self, name: &str) -> PathBuf {
        self.world.path().join("ws-evil").join(name)
    }

    pub fn home(&self, name: &str) -> PathBuf {
        self.world.home().join(name)
    }

    pub fn write(&self, path: &Path, bytes: impl AsRef<[u8]>) {
        assert!(
            path.starts_with(self.world.path()),
            "{} is not of the scene",
            path.display()
        );
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    /// Makes the workspace a repository.
    pub fn git(&self) {
        git(&self.ws(""), &["init", "--quiet", "--template="]);
        std::fs::create_dir(self.ws(".git/hooks")).unwrap();
    }

    /// The model's next replies, one per request.
    pub fn say(&self, replies: Value) {
        self.world
            .rehearsal()
            .add(serde_json::from_value(replies).unwrap());
    }

    /// The model makes these calls, if any, and then says that it is done.
    pub fn calls(&self, calls: &[(&str, Value)]) {
        if !calls.is_empty() {
            self.say(json!([reply(calls)]));
        }
        self.say(json!([[{ "text": "FINAL_OK" }]]));
    }

    /// A server and a session in this mode. The client rejects all requests.
    pub fn start(&self, mode: &str) -> Play<'_> {
        self.start_with(mode, |_| ())
    }

    /// The same with the command as `change` makes it.
    pub fn start_with(&self, mode: &str, change: impl FnOnce(&mut Command)) -> Play<'_> {
        let mut play = self.serve(change);
        let session = json!({ "cwd": self.ws(""), "mcpServers": [] });
        let answer = play.client.call("session/new", session);
        answer["result"]["sessionId"]
            .as_str()
            .unwrap()
            .clone_into(&mut play.session);
        play.set_mode(mode);
        play
    }

    /// A server without a session.
    pub fn serve(&self, change: impl FnOnce(&mut Command)) -> Play<'_> {
        let (program, mut client) = self.world.serve_with(Transport::Lsp, |command| {
            command
                .env("TANDEM_LOG", "info")
                .env("TANDEM_API_KEY", "sk-of-the-test");
            change(command);
        });
        let root = format!("file://{}", self.world.path().join("ws").display());
        client.shake_hands(json!({
            "processId": null, "rootUri": root, "workspaceFolders": [{ "uri": root, "name": "w" }],
            "capabilities": { "experimental": { "tandem": {} }, "workspace": { "applyEdit": true, "workspaceEdit": { "documentChanges": true } } }
        }));
        Play {
            scene: self,
            program,
            client,
            session: String::new(),
            answer: "reject_once",
            heard: Vec::new(),
        }
    }

    /// Runs one turn in which the model makes these calls.
    pub fn play(&self, mode: &str, calls: &[(&str, Value)]) -> Play<'_> {
        self.calls(calls);
        let mut play = self.start(mode);
        play.turn();
        play
    }
}

/// A reply of the model with these calls.
pub fn reply(calls: &[(&str, Value)]) -> Value {
    let call = |(index, (name, arguments)): (usize, &(&str, Value))| json!({ "call": { "id": format!("c{index}"), "name": name, "arguments": arguments } });
    calls.iter().enumerate().map(call).collect()
}

pub fn run(command: &str) -> (&'static str, Value) {
    ("run_command", json!({ "command": command }))
}

pub fn read(path: &str) -> (&'static str, Value) {
    ("read_file", json!({ "path": path }))
}

pub fn write(path: &str, content: &str) -> (&'static str, Value) {
    ("write_file", json!({ "path": path, "content": content }))
}

pub fn edit(path: &str, old: &str, new: &str) -> (&'static str, Value) {
    (
        "edit_file",
        json!({ "path": path, "edits": [{ "old_text": old, "new_text": new }] }),
    )
}

/// A server, its client, and everything the client received during turns.
pub struct Play<'a> {
    pub scene: &'a Scene,
    pub program: Program,
    pub client: Client,
    pub session: String,
    /// The option the client chooses in permission requests.
    pub answer: &'static str,
    pub heard: Vec<Value>,
}

impl Play<'_> {
    /// Runs a prompt to its end; returns the response.
    pub fn turn(&mut self) -> Value {
        let prompt = self.prompt();
        self.end(prompt)
    }

    pub fn prompt(&mut self) -> i64 {
        self.client.prompt(&self.session, "go")
    }

    /// The response to a prompt.
    pub fn end(&mut self, prompt: i64) -> Value {
        self.end_or_death(prompt).expect("the server lives")
    }

    /// The response to a prompt, unless the server dies first. Answers its requests in the meantime.
    pub fn end_or_death(&mut self, prompt: i64) -> Option<Value> {
        loop {
            let message = self
                .client
                .seen
                .pop_front()
                .or_else(|| self.client.receive())?;
            self.heard.push(message.clone());
            match message["method"].as_str() {
                Some("session/request_permission") => {
                    let outcome = json!({ "outcome": "selected", "optionId": self.answer });
                    self.client.respond(&message, json!({ "outcome": outcome }));
                }
                Some("workspace/applyEdit") => {
                    self.client.respond(&message, json!({ "applied": false }));
                }
                Some(_) if message.get("id").is_some() => {
                    self.client.respond(&message, Value::Null);
                }
                None if message["id"] == prompt => {
                    self.client.seen.push_front(message);
                    return Some(self.client.answer(prompt));
                }
                _ => {}
            }
        }
    }

    /// Waits for an update of this kind during a turn.
    pub fn update(&mut self, kind: &str) -> Value {
        let update = self
            .client
            .find(|message| message["params"]["update"]["sessionUpdate"] == kind);
        self.heard.push(update.clone());
        update["params"]["update"].clone()
    }

    pub fn cancel(&mut self) {
        self.client
            .notify("session/cancel", json!({ "sessionId": self.session }));
    }

    pub fn set_mode(&mut self, mode: &str) {
        let answer = self.client.call(
            "session/set_mode",
            json!({ "sessionId": self.session, "modeId": mode }),
        );
        assert!(answer.get("result").is_some(), "{answer}");
    }

    /// `session/load` of its session in a server that was started again.
    pub fn load(&mut self, session: &str) -> Value {
        session.clone_into(&mut self.session);
        let cwd = self.scene.ws("");
        self.client.call(
            "session/load",
            json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] }),
        )
    }

    /// The server responds, whatever happened before.
    pub fn lives(&mut self) {
        assert_eq!(
            self.client.call("tandem/areYouThere", json!({}))["error"]["code"],
            -32601
        );
    }

    /// The next prompt works, and the history in its request is valid in the API.
    pub fn works(&mut self) {
        self.scene.world.rehearsal().clear();
        self.scene.say(json!([[{ "text": "still here" }]]));
        let answer = self.turn();
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
        let request = self.scene.world.rehearsal().requests().pop().unwrap();
        assert_eq!(
            super::checks::mistakes(&request),
            Vec::<String>::new(),
            "{request}"
        );
    }

    /// Kills the process, unless it is dead already, and waits for its end; returns the session.
    pub fn die(mut self) -> String {
        let _dead =
            rustix::process::kill_process(self.program.pid(), rustix::process::Signal::KILL);
        self.program.ends();
        self.session
    }

    /// Shuts the server down; returns its log.
    pub fn log(mut self) -> String {
        self.client.hang_up();
        self.program.ends();
        self.client.finish();
        self.program.stderr()
    }

    fn updates<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.heard
            .iter()
            .map(|message| &message["params"]["update"])
            .filter(move |update| update["sessionUpdate"] == kind)
    }

    /// Everything a person sees of each permission request.
    pub fn asked(&self) -> Vec<String> {
        let requests = self
            .heard
            .iter()
            .filter(|message| message["method"] == "session/request_permission");
        requests
            .map(|request| visible(&request["params"]))
            .collect()
    }

    /// How each call ended and what its result says.
    pub fn results(&self) -> Vec<(String, String)> {
        let over = self.updates("tool_call_update").filter(|update| {
            ["completed", "failed"]
                .iter()
                .any(|end| update["status"] == *end)
        });
        over.map(|update| {
            (
                update["status"].as_str().unwrap().to_owned(),
                texts(&update["content"]),
            )
        })
        .collect()
    }

    /// A call failed with this word in its result.
    pub fn fails_with(&self, word: &str) {
        let failed = |(status, text): &(String, String)| {
            status == "failed" && text.to_lowercase().contains(word)
        };
        assert!(
            self.results().iter().any(failed),
            "no {word:?} in {:?}",
            self.results()
        );
    }

    /// The text of the answers.
    pub fn said(&self) -> String {
        self.updates("agent_message_chunk")
            .filter_map(|update| update["content"]["text"].as_str())
            .collect()
    }

    /// Anything else the person was told: errors and notices.
    pub fn notices(&self) -> Vec<String> {
        let texts = self.heard.iter().filter_map(|m| {
            m["error"]["message"]
                .as_str()
                .or(m["params"]["message"].as_str())
        });
        texts.map(str::to_lowercase).collect()
    }

    /// Neither the model nor the client received this.
    pub fn hides(&self, secret: &str) {
        let requests = self.scene.world.rehearsal().requests();
        for message in self.heard.iter().chain(&self.client.seen).chain(&requests) {
            assert!(!super::checks::tells(message, secret), "{message}");
        }
    }

    /// Nor is it in the log or in tandem's stored files.
    pub fn hides_everywhere(self, secret: &str) {
        self.hides(secret);
        let state = self.scene.home("state");
        let log = self.log();
        assert!(!log.contains(secret), "{log}");
        for path in super::checks::everything(&state)
            .iter()
            .filter(|path| path.is_file())
        {
            let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
            assert!(!text.contains(secret), "{}: {text}", path.display());
        }
    }
}

/// Everything a person reads of a permission request.
fn visible(request: &Value) -> String {
    let call = &request["toolCall"];
    let mut seen = texts(&call["content"]);
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let content = list(&call["content"])
        .into_iter()
        .flat_map(|item| [item["path"].clone(), item["newText"].clone()]);
    let places = list(&call["locations"])
        .into_iter()
        .map(|place| place["path"].clone());
    let options = list(&request["options"])
        .into_iter()
        .map(|option| option["name"].clone());
    for text in content
        .chain(places)
        .chain(options)
        .chain([call["title"].clone()])
    {
        write!(seen, "\n{}", text.as_str().unwrap_or_default()).unwrap();
    }
    seen
}

fn texts(content: &Value) -> String {
    content
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|item| item["content"]["text"].as_str())
        .collect()
}
