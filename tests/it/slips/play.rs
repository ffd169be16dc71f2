//! Runs one case: its workspace, its turns, and what a user has seen at the end.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tandem::config::Environment;
use tandem::server::Transport;

use super::script::Script;
use crate::driver::{Client, World};

/// The observations of a case.
#[derive(Default)]
pub struct Seen {
    /// The model and the temporary folder, which is removed with it.
    world: Option<World>,
    pub workspace: PathBuf,
    pub outside: PathBuf,
    /// Unsaved texts of the editor, by path.
    pub buffers: BTreeMap<String, String>,
    pub requests: Vec<Value>,
    pub text: String,
    pub thoughts: String,
    /// Notices, compactions and the errors of turns, as text.
    pub notices: Vec<String>,
    pub kinds: Vec<String>,
    pub plan: String,
    /// Tools that succeeded.
    pub ran: u64,
    pub asked: u64,
    /// Why the last turn ended.
    pub done: Value,
}

/// Runs a case; its commands are found in `search`.
pub fn play(case: &Value, search: &str) -> Seen {
    let world = World::new(json!([]));
    let base = world.path();
    let [workspace, outside, home] = ["project", "outside", "home"].map(|name| base.join(name));
    for place in [&workspace, &outside, &home] {
        std::fs::create_dir_all(place).unwrap();
    }
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
    let mut seen = Seen {
        workspace,
        outside,
        ..Seen::default()
    };
    let transport = match case["via"].as_str() {
        None | Some("run") => Transport::Acp,
        Some("lsp") => Transport::Lsp,
        Some(other) => panic!("the runner does not know via `{other}`"),
    };
    let mut client = world.stranger_in(transport, environment(case, &world, &home, search));
    seen.play(case, &world, &mut client, transport);
    drop(client);
    seen.requests = world.rehearsal().requests();
    seen.world = Some(world);
    seen
}

/// The environment of the server.
fn environment(case: &Value, world: &World, home: &Path, search: &str) -> Environment {
    let base_url = world.model.base_url();
    let config = case["config"].as_str().unwrap_or_default();
    let config = config.replace("{BASE}", base_url);
    let file = home.join("config.toml");
    std::fs::write(&file, &config).unwrap();
    let mut variables = vec![
        ("PATH", search),
        ("HOME", show(home)),
        ("TANDEM_CONFIG", show(&file)),
        ("TANDEM_API_KEY", "sk-of-the-runner"),
    ];
    if !config.lines().any(|line| line.starts_with("model")) {
        variables.extend([
            (
                "TANDEM_MODEL",
                case["model"].as_str().unwrap_or("test-model"),
            ),
            ("TANDEM_BASE_URL", base_url),
            ("TANDEM_API", case["dialect"].as_str().unwrap_or("chat")),
        ]);
    }
    Environment::made_up(home, &variables).with_program(Path::new(env!("CARGO_BIN_EXE_tandem")))
}

fn show(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A case with its variables expanded, in keys too.
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

impl Seen {
    /// Runs the case's turns in order, in one session.
    fn play(&mut self, case: &Value, world: &World, client: &mut Client, transport: Transport) {
        let script = Arc::new(Mutex::new(Script::of(&self.workspace)));
        let author = Arc::clone(&script);
        let model = world.rehearsal();
        model.answer_with(move |request| author.lock().unwrap().reply(request));
        let root = format!("file://{}", show(&self.workspace));
        if transport == Transport::Acp {
            let capabilities = json!({ "session": { "notices": {}, "compaction": {} } });
            let hello = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
            client.call("initialize", hello);
        } else {
            client.shake_hands(json!({ "processId": null, "rootUri": root,
                "capabilities": { "experimental": { "tandem": {} }, "workspace": { "applyEdit": true, "workspaceEdit": { "documentChanges": true } } },
                "workspaceFolders": [{ "uri": root, "name": "project" }] }));
        }
        for (name, text) in case["open_buffers"].as_object().into_iter().flatten() {
            let text = text.as_str().unwrap();
            client.open(&format!("{root}/{name}"), text);
            self.buffers.insert(name.clone(), text.to_owned());
        }
        let answer = client.call(
            "session/new",
            json!({ "cwd": self.workspace, "mcpServers": [] }),
        );
        let session = answer["result"]["sessionId"].as_str().expect("a session");
        let mode = case["mode"].as_str().unwrap_or("auto");
        client.call(
            "session/set_mode",
            json!({ "sessionId": session, "modeId": mode }),
        );
        // Without an editor, nobody can be asked.
        let policy = match case["policy"].as_str() {
            None if transport == Transport::Lsp => "allow",
            policy => policy.unwrap_or("reject"),
        };
        for turn in case["turns"].as_array().expect("a case has turns") {
            script.lock().unwrap().prepare(turn);
            let prompt = turn["prompt"].as_str().expect("a turn has a prompt");
            let id = client.prompt(session, prompt);
            loop {
                let message = client.find(|message| {
                    message.get("id").is_some()
                        && (message.get("method").is_some() || message["id"] == id)
                });
                if message.get("method").is_none() {
                    self.done = match message.get("error") {
                        Some(error) => {
                            self.notices.push(error["message"].to_string());
                            error["data"]["code"].clone()
                        }
                        None => message["result"]["stopReason"].clone(),
                    };
                    client.close(&message);
                    break;
                }
                let answer = self.react(client, &root, &message, policy);
                client.respond(&message, answer);
            }
        }
        for update in std::mem::take(&mut client.seen) {
            self.update(&update["params"]["update"]);
        }
    }

    /// An update that the editor receives.
    fn update(&mut self, update: &Value) {
        let content = update["content"]["text"].as_str().unwrap_or_default();
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        self.kinds.push(kind.trim_end_matches("_update").to_owned());
        match kind {
            "agent_message_chunk" => self.text.push_str(content),
            "agent_thought_chunk" => self.thoughts.push_str(content),
            "notice" | "compaction_update" => self.notices.push(update.to_string()),
            "plan" => self.plan = update["entries"].to_string(),
            "tool_call_update" | "tool_call" => {
                self.ran += u64::from(update["status"] == "completed");
            }
            _ => {}
        }
    }

    /// The editor's response.
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

    /// Applies an edit of an open document as an editor does. Edited texts in cases are ASCII.
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
