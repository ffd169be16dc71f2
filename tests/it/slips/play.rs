//! Playing one case: its workspace, its turns, and what a user has seen at the end.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tandem::server::Transport;

use super::endpoint::Endpoint;
use crate::driver::Client;
use crate::program::{Program, finish};

/// What was seen of a case.
#[derive(Default)]
pub struct Seen {
    /// The folder of all of it, which goes when this does.
    _folder: Option<tempfile::TempDir>,
    pub workspace: PathBuf,
    pub outside: PathBuf,
    /// Unsaved texts of the editor, by path.
    pub buffers: BTreeMap<String, String>,
    pub requests: Vec<Value>,
    pub text: String,
    pub thoughts: String,
    /// Notices, errors, loops and compactions, in words.
    pub notices: Vec<String>,
    pub kinds: Vec<String>,
    pub plan: String,
    /// Tools that ended well.
    pub ran: u64,
    pub asked: u64,
    /// Why the last turn ended.
    pub done: Value,
}

/// Plays a case.
pub fn play(case: &Value) -> Seen {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().canonicalize().unwrap();
    let (workspace, outside, home) = (
        base.join("project"),
        base.join("outside"),
        base.join("home"),
    );
    for place in [&workspace, &outside, &home.join("tmp")] {
        std::fs::create_dir_all(place).unwrap();
    }
    let endpoint = Endpoint::start(workspace.clone());
    let case = &filled(
        case,
        &[
            ("{WSNAME}", "project"),
            ("{WS}", show(&workspace)),
            ("{OUT}", show(&outside)),
        ],
    );
    write_all(&workspace, &case["workspace"]);
    write_all(&outside, &case["outside"]);
    for (name, target) in case["links"].as_object().into_iter().flatten() {
        std::os::unix::fs::symlink(target.as_str().unwrap(), workspace.join(name)).unwrap();
    }
    let config = case["config"]
        .as_str()
        .unwrap_or_default()
        .replace("{BASE}", &endpoint.base_url());
    std::fs::write(home.join("config.toml"), &config).unwrap();
    let mut seen = Seen {
        workspace,
        outside,
        _folder: Some(folder),
        ..Seen::default()
    };
    let stage = Stage {
        case,
        home,
        endpoint,
        configures_model: config.lines().any(|line| line.starts_with("model")),
    };
    match case["via"].as_str() {
        None | Some("run") => stage.run(&mut seen),
        Some("lsp") => stage.edit(&mut seen),
        Some(other) => panic!("the runner does not know via `{other}`"),
    }
    seen.requests = stage.endpoint.requests();
    seen
}

fn show(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A case with its variables written out, in keys too.
fn filled(value: &Value, vars: &[(&str, &str)]) -> Value {
    let text = |text: &str| {
        vars.iter().fold(text.to_owned(), |text, (name, value)| {
            text.replace(name, value)
        })
    };
    match value {
        Value::String(value) => text(value).into(),
        Value::Array(items) => items.iter().map(|item| filled(item, vars)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (text(name), filled(value, vars)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

fn write_all(folder: &Path, files: &Value) {
    for (name, content) in files.as_object().into_iter().flatten() {
        let bytes = match content {
            Value::String(text) => text.clone().into_bytes(),
            other => STANDARD
                .decode(other["b64"].as_str().expect("a file is a text or base64"))
                .unwrap(),
        };
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

struct Stage<'a> {
    case: &'a Value,
    home: PathBuf,
    endpoint: Endpoint,
    configures_model: bool,
}

impl Stage<'_> {
    fn command(&self, folder: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
        command
            .args(arguments)
            .current_dir(folder)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", &self.home)
            .env("TMPDIR", self.home.join("tmp"))
            .env("TANDEM_CONFIG", self.home.join("config.toml"))
            .env("TANDEM_STATE_DIR", self.home.join("state"))
            .env("TANDEM_API_KEY", "sk-of-the-runner")
            .stdin(Stdio::null());
        if !self.configures_model {
            command
                .env(
                    "TANDEM_MODEL",
                    self.case["model"].as_str().unwrap_or("test-model"),
                )
                .env("TANDEM_BASE_URL", self.endpoint.base_url())
                .env(
                    "TANDEM_API",
                    self.case["dialect"].as_str().unwrap_or("chat"),
                );
        }
        command
    }

    fn mode(&self) -> &str {
        self.case["mode"].as_str().unwrap_or("auto")
    }

    fn turns(&self) -> impl Iterator<Item = (usize, &str)> {
        let turns = self.case["turns"].as_array().expect("a case has turns");
        turns.iter().enumerate().map(|(number, turn)| {
            self.endpoint.prepare(turn);
            (
                number,
                turn["prompt"].as_str().expect("a turn has a prompt"),
            )
        })
    }

    /// `tandem run --json`, once a turn.
    fn run(&self, seen: &mut Seen) {
        for (number, prompt) in self.turns() {
            let mut arguments = vec!["run", "--json", "--mode", self.mode()];
            if number > 0 {
                arguments.push("--continue");
            }
            let output = finish(&mut self.command(
                &seen.workspace.clone(),
                &[&arguments[..], &[prompt]].concat(),
            ));
            let events = output
                .stdout
                .lines()
                .map(|line| serde_json::from_str(line).expect("an event a line"));
            let events: Vec<Value> = events.collect();
            assert!(!events.is_empty(), "no event: {}", output.stderr);
            for event in &events {
                seen.event(event);
            }
        }
    }

    /// An opted-in editor with unsaved texts.
    fn edit(&self, seen: &mut Seen) {
        let (input, to_server) = std::io::pipe().unwrap();
        let (from_server, output) = std::io::pipe().unwrap();
        let mut command = self.command(&seen.workspace, &["lsp"]);
        let _program = Program::start(command.stdin(input).stdout(output));
        drop(command);
        let mut client = Client::new(Transport::Lsp, to_server, from_server);
        let root = format!("file://{}", show(&seen.workspace));
        client.shake_hands(json!({ "processId": null, "rootUri": root,
            "capabilities": { "experimental": { "tandem": {} }, "workspace": { "applyEdit": true, "workspaceEdit": { "documentChanges": true } } },
            "workspaceFolders": [{ "uri": root, "name": "project" }] }));
        for (name, text) in self.case["open_buffers"].as_object().into_iter().flatten() {
            let text = text.as_str().unwrap();
            client.open(&format!("{root}/{name}"), text);
            seen.buffers.insert(name.clone(), text.to_owned());
        }
        let answer = client.call(
            "session/new",
            json!({ "cwd": seen.workspace, "mcpServers": [] }),
        );
        let session = answer["result"]["sessionId"]
            .as_str()
            .expect("a session")
            .to_owned();
        client.call(
            "session/set_mode",
            json!({ "sessionId": session, "modeId": self.mode() }),
        );
        for (_, prompt) in self.turns() {
            let id = client.prompt(&session, prompt);
            loop {
                let message = client.find(|message| {
                    message.get("id").is_some()
                        && (message.get("method").is_some() || message["id"] == id)
                });
                if message.get("method").is_none() {
                    let reason = &message["result"]["stopReason"];
                    seen.done = if reason.is_null() {
                        message["error"]["data"]["code"].clone()
                    } else {
                        reason.clone()
                    };
                    break;
                }
                let answer = seen.react(
                    &mut client,
                    &root,
                    &message,
                    self.case["policy"].as_str().unwrap_or("allow"),
                );
                client.respond(&message, answer);
            }
        }
        for update in std::mem::take(&mut client.seen) {
            seen.update(&update["params"]["update"]);
        }
    }
}

impl Seen {
    /// An event of `run --json`.
    fn event(&mut self, event: &Value) {
        let kind = event["type"].as_str().unwrap();
        self.kinds.push(kind.to_owned());
        let content = event["content"].as_str().unwrap_or_default();
        match kind {
            "text_delta" => self.text.push_str(content),
            "reasoning_delta" => self.thoughts.push_str(content),
            "notice" | "error" | "loop_detected" | "compaction" => {
                self.notices.push(event.to_string());
            }
            "plan" => self.plan = event["entries"].to_string(),
            "tool_execution_end" => self.ran += u64::from(event["result"]["is_error"] == false),
            "permission_requested" => self.asked += 1,
            "done" => self.done = event["termination_reason"].clone(),
            _ => {}
        }
    }

    /// An update an editor gets.
    fn update(&mut self, update: &Value) {
        let content = update["content"]["text"].as_str().unwrap_or_default();
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        self.kinds.push(kind.to_owned());
        match kind {
            "agent_message_chunk" => self.text.push_str(content),
            "agent_thought_chunk" => {
                self.thoughts.push_str(content);
                self.notices.push(content.to_owned());
            }
            "plan" => self.plan = update["entries"].to_string(),
            "tool_call_update" | "tool_call" => {
                self.ran += u64::from(update["status"] == "completed");
            }
            _ => {}
        }
    }

    /// What the editor answers.
    fn react(&mut self, client: &mut Client, root: &str, request: &Value, policy: &str) -> Value {
        match request["method"].as_str().unwrap() {
            "session/request_permission" => {
                self.asked += 1;
                let kind = if policy == "allow" {
                    "allow_once"
                } else {
                    "reject_once"
                };
                let options = request["params"]["options"].as_array().unwrap();
                let option = options
                    .iter()
                    .find(|option| option["kind"] == kind)
                    .expect("an option of that kind");
                json!({ "outcome": { "outcome": "selected", "optionId": option["optionId"] } })
            }
            "workspace/applyEdit" => self.apply(
                client,
                root,
                &request["params"]["edit"]["documentChanges"][0],
            ),
            _ => Value::Null,
        }
    }

    /// Makes an edit of an open document, as an editor does. The texts of cases are ASCII where they are edited.
    fn apply(&mut self, client: &mut Client, root: &str, change: &Value) -> Value {
        let uri = change["textDocument"]["uri"].as_str().unwrap();
        let name = uri.strip_prefix(&format!("{root}/")).unwrap();
        let Some(text) = self.buffers.get_mut(name) else {
            return json!({ "applied": false });
        };
        for edit in change["edits"].as_array().unwrap().iter().rev() {
            let at = |end: &str| {
                let number =
                    |key: &str| usize::try_from(edit["range"][end][key].as_u64().unwrap()).unwrap();
                let start: usize = text
                    .split_inclusive('\n')
                    .take(number("line"))
                    .map(str::len)
                    .sum();
                (start + number("character")).min(text.len())
            };
            let (from, to) = (at("start"), at("end"));
            text.replace_range(from..to, edit["newText"].as_str().unwrap());
        }
        let version = change["textDocument"]["version"].as_i64().unwrap_or(1) + 1;
        client.notify(
            "textDocument/didChange",
            json!({ "textDocument": { "uri": uri, "version": version }, "contentChanges": [{ "text": text }] }),
        );
        json!({ "applied": true })
    }
}
