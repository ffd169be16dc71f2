//! The demo's editor: a small but faithful language client, with a model of its own that plays a script.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::Stage;
use crate::rpc::{self, Framing, Inbox, Incoming, Peer, Request, Responder, Writer};
use crate::text::{Encoding, Range, apply_change, unified};
use crate::workspace::native;

/// The pause before each word of the model.
const PAUSE: Duration = Duration::from_millis(25);

pub(super) struct Editor<'a> {
    stage: &'a Stage,
    /// The model's answers, each as deltas of the chat API.
    script: VecDeque<Vec<Value>>,
    /// The rest of the current answer.
    deltas: VecDeque<Value>,
    peer: Peer,
    inbox: Inbox,
    writer: Writer,
    server: tokio::process::Child,
    project: PathBuf,
    uri: String,
    version: i32,
    buffer: String,
    mid_line: bool,
    /// Titles of calls, as far as they are known.
    calls: HashMap<String, String>,
}

impl<'a> Editor<'a> {
    /// Starts the real server and initializes the connection.
    #[expect(
        clippy::disallowed_methods,
        reason = "an editor starts its language server"
    )]
    pub async fn start(
        stage: &'a Stage,
        project: &Path,
        script: VecDeque<Vec<Value>>,
    ) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("finding the tandem program")?;
        let (stdin, to_server) = std::io::pipe()?;
        let (from_server, stdout) = std::io::pipe()?;
        let server = tokio::process::Command::new(program)
            .arg("lsp")
            .env("TANDEM_MODEL", "vscode/demo")
            .env_remove("TANDEM_BASE_URL")
            .env_remove("TANDEM_API")
            .env("TANDEM_CONFIG", stage.folder.join("config.toml"))
            .env("TANDEM_STATE_DIR", stage.folder.join("state"))
            .current_dir(project)
            .stdin(stdin)
            .stdout(stdout)
            .kill_on_drop(true)
            .spawn()
            .context("starting `tandem lsp`")?;
        let (peer, inbox, writer) = rpc::connect(Framing::Header, from_server, to_server)?;
        let project = project.to_owned();
        let mut editor = Self {
            stage,
            script,
            deltas: VecDeque::new(),
            peer,
            inbox,
            writer,
            server,
            project,
            uri: String::new(),
            version: 1,
            buffer: String::new(),
            mid_line: false,
            calls: HashMap::new(),
        };
        let root = uri(&editor.project)?;
        let params = json!({
            "processId": std::process::id(),
            "clientInfo": { "name": "tandem demo" },
            "rootUri": root,
            "workspaceFolders": [{ "uri": root, "name": "project" }],
            "capabilities": {
                "experimental": { "tandem": { "_meta": { "tandem.models": true } } },
                "general": { "positionEncodings": ["utf-8"] },
                "workspace": { "applyEdit": true, "workspaceEdit": { "documentChanges": true } },
            },
        });
        editor.call("initialize", &params).await?;
        editor.peer.notify("initialized", &json!({}));
        Ok(editor)
    }

    /// Opens a file with `text` in its buffer.
    pub fn open(&mut self, name: &str, text: &str) {
        self.uri = uri(&self.project.join(name)).unwrap_or_default();
        text.clone_into(&mut self.buffer);
        let document = json!({ "uri": self.uri, "languageId": "shellscript", "version": self.version, "text": text });
        self.peer
            .notify("textDocument/didOpen", &json!({ "textDocument": document }));
    }

    /// Sends a prompt, shows the events, allows every request, and waits for the end.
    pub async fn ask(&mut self, question: &str) -> anyhow::Result<()> {
        let session = self
            .call(
                "session/new",
                &json!({ "cwd": self.project, "mcpServers": [] }),
            )
            .await?;
        let prompt = json!({ "sessionId": session["sessionId"], "prompt": [{ "type": "text", "text": question }] });
        let answer = self.call("session/prompt", &prompt).await?;
        ensure!(
            answer["stopReason"] == "end_turn",
            "the turn ended with {answer}"
        );
        self.end_line()
    }

    /// Shuts the server down and returns the buffer.
    pub async fn close(mut self) -> anyhow::Result<String> {
        self.call("shutdown", &Value::Null).await?;
        self.peer.notify("exit", &Value::Null);
        self.writer.finish().await?;
        let status = self.server.wait().await?;
        ensure!(status.success(), "`tandem lsp` ended with {status}");
        Ok(self.buffer)
    }

    /// Sends a request and serves the server until the answer arrives.
    async fn call(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        let mut answer = self.peer.request(method, params);
        loop {
            tokio::select! {
                // Messages that arrived before the answer are shown first.
                biased;
                incoming = self.inbox.recv() => match incoming {
                    Incoming::Request(request, responder) => self.serve(&request, responder).await?,
                    Incoming::Notification(notification) => self.show(&notification.params.read::<Value>()?["update"])?,
                    Incoming::Fatal(fatal) => bail!("the server sent {fatal}"),
                    Incoming::Closed => bail!("the server ended without an answer to {method}"),
                },
                answer = &mut answer => return answer.with_context(|| method.to_owned()),
            }
        }
    }

    async fn serve(&mut self, request: &Request, responder: Responder) -> anyhow::Result<()> {
        let params: Value = request.params.read()?;
        match request.method.as_str() {
            "session/request_permission" => {
                let call = &params["toolCall"];
                self.line(&format!("? {}", call["title"].as_str().unwrap_or_default()))?;
                for change in call["content"].as_array().into_iter().flatten() {
                    let (old, new) = (change["oldText"].as_str(), change["newText"].as_str());
                    self.stage.diff(&unified(
                        old.unwrap_or_default(),
                        new.unwrap_or_default(),
                        1,
                    ))?;
                }
                Stage::say("  [allow]")?;
                responder
                    .ok(&json!({ "outcome": { "outcome": "selected", "optionId": "allow_once" } }));
            }
            "workspace/applyEdit" => {
                self.apply(&params["edit"]["documentChanges"])?;
                responder.ok(&json!({ "applied": true }));
            }
            "_tandem/editorModels/next" => {
                tokio::time::sleep(PAUSE).await;
                responder.ok(&self.next_chunk(!params["body"].is_null()));
            }
            _ => responder.ok(&Value::Null),
        }
        Ok(())
    }

    /// The next word or call of the model's answer.
    fn next_chunk(&mut self, is_first: bool) -> Value {
        if is_first {
            let answer = self.script.pop_front().unwrap_or_default();
            let words = answer
                .into_iter()
                .flat_map(|delta| match delta["content"].as_str() {
                    Some(text) => text
                        .split_inclusive(' ')
                        .map(|word| json!({ "content": word }))
                        .collect(),
                    None => vec![delta],
                });
            self.deltas = words.collect();
        }
        match self.deltas.pop_front() {
            Some(delta) => json!({ "chunk": { "choices": [{ "delta": delta }] } }),
            None => json!({}),
        }
    }

    /// Applies an edit to the buffer and reports the new version, as every editor does.
    fn apply(&mut self, changes: &Value) -> anyhow::Result<()> {
        let change = &changes[0];
        ensure!(
            change["textDocument"]["uri"] == self.uri.as_str(),
            "an edit of a file that is not open"
        );
        ensure!(
            change["textDocument"]["version"] == self.version,
            "an edit of an old version"
        );
        let mut edits: Vec<(Range, &str)> = change["edits"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|edit| {
                (
                    Range::deserialize(&edit["range"]).unwrap_or_default(),
                    edit["newText"].as_str().unwrap_or_default(),
                )
            })
            .collect();
        // From end to start, so that every range stays valid.
        edits
            .sort_by_key(|(range, _)| std::cmp::Reverse((range.start.line, range.start.character)));
        for (range, text) in edits {
            self.buffer = apply_change(&self.buffer, Some(range), text, Encoding::Utf8);
        }
        self.version += 1;
        let document = json!({ "uri": self.uri, "version": self.version });
        let changes = json!([{ "text": self.buffer }]);
        let params = json!({ "textDocument": document, "contentChanges": changes });
        self.peer.notify("textDocument/didChange", &params);
        Ok(())
    }

    fn show(&mut self, update: &Value) -> anyhow::Result<()> {
        match update["sessionUpdate"].as_str() {
            Some("agent_message_chunk") => {
                let text = update["content"]["text"].as_str().unwrap_or_default();
                self.mid_line = !text.ends_with('\n');
                Stage::print(text)
            }
            Some("tool_call") => {
                let name = update["title"].as_str().unwrap_or_default();
                self.calls
                    .insert(update["toolCallId"].to_string(), name.to_owned());
                self.line(&self.stage.paint("36", &format!("● {name} …")))
            }
            Some("tool_call_update") => {
                let call = self
                    .calls
                    .entry(update["toolCallId"].to_string())
                    .or_default();
                if let Some(title) = update["title"].as_str() {
                    let name = call.split(':').next().unwrap_or_default();
                    *call = format!("{name}: {title}");
                }
                let call = call.clone();
                match update["status"].as_str() {
                    Some("completed") => self.line(&self.stage.paint("32", &format!("✓ {call}"))),
                    Some("failed") => self.line(&self.stage.paint("31", &format!("✗ {call}"))),
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    fn line(&mut self, text: &str) -> anyhow::Result<()> {
        self.end_line()?;
        Stage::say(text)
    }

    fn end_line(&mut self) -> anyhow::Result<()> {
        if std::mem::take(&mut self.mid_line) {
            Stage::say("")
        } else {
            Ok(())
        }
    }
}

fn uri(path: &Path) -> anyhow::Result<String> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    native::uri_of(&path).with_context(|| format!("{} is not absolute", path.display()))
}
