//! The server of a case as a process, and the editor at its other end: it notes all it hears and answers questions as
//! the case says. Nothing here fails a test; oracles judge.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::case::{Case, Done, pieces, unknown};
use super::scene::Scene;

/// How long anything may take that has no limit of its own.
pub const PATIENCE: Duration = Duration::from_secs(75);

/// How the client answers questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    Deny,
    Allow,
}

impl Policy {
    pub fn of(case: &Case) -> Done<Self> {
        Ok(match case.input["policy"].as_str() {
            None if case.input["kind"] == "model" => Self::Allow,
            None | Some("auto" | "ask_deny") => Self::Deny,
            Some("ask_allow") => Self::Allow,
            Some(other) => return unknown("policy", other),
        })
    }
}

/// A message and when it came.
#[derive(Debug, Clone)]
pub struct Heard {
    pub at: Instant,
    pub message: Value,
}

impl Heard {
    pub fn is_answer(&self) -> bool {
        self.message.get("method").is_none()
    }

    /// The update it carries, if it is of that kind.
    pub fn update(&self, kind: &str) -> Option<&Value> {
        let update = &self.message["params"]["update"];
        (update["sessionUpdate"] == kind).then_some(update)
    }
}

/// What the client's reader shares with the case.
struct Ear {
    state: Mutex<Ears>,
    changed: Condvar,
    framed: bool,
    policy: Policy,
    on_ask: Value,
    scene: Arc<Scene>,
    mouth: Arc<Mutex<Option<ChildStdin>>>,
}

#[derive(Default)]
struct Ears {
    heard: Vec<Heard>,
    /// What was no message.
    noise: Vec<String>,
    ended: bool,
    deaf_until: Option<Instant>,
    documents: HashMap<String, (i64, String)>,
}

/// A server process with its client. Dropping it kills the process.
pub struct Server {
    pub pid: Pid,
    exit: Receiver<ExitStatus>,
    pub exited: Option<(ExitStatus, Instant)>,
    ear: Arc<Ear>,
    next_id: u32,
}

/// A prompt that was sent.
#[derive(Debug, Clone)]
pub struct Turn {
    pub id: String,
    pub asked: Instant,
    pub cancelled: Option<Instant>,
    pub answered: Option<Instant>,
    pub answer: Value,
    /// How much had been heard before.
    pub from: usize,
}

impl Server {
    pub fn start(scene: &Arc<Scene>, transport: &str, model: u16, case: &Case) -> Done<Self> {
        let wire = case.input["wire"].as_str().unwrap_or("openai-chat");
        if !["openai-chat", "anthropic"].contains(&wire) {
            return unknown("wire", wire);
        }
        let policy = Policy::of(case)?;
        let log = std::fs::File::options().create(true).append(true).open(scene.stderr()).unwrap();
        let mut command = scene.command(if transport == "ndjson" { "acp" } else { transport }, model, wire);
        super::faults::preload(&mut command, scene, case)?;
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let pid = Pid::from_child(&child);
        let mouth = Arc::new(Mutex::new(child.stdin.take()));
        let ear = Arc::new(Ear {
            state: Mutex::default(),
            changed: Condvar::new(),
            framed: transport == "lsp",
            policy,
            on_ask: case.input["on_ask"].clone(),
            scene: Arc::clone(scene),
            mouth,
        });
        let (listener, stdout) = (Arc::clone(&ear), child.stdout.take().unwrap());
        std::thread::spawn(move || listener.listen(stdout));
        let (sender, exit) = sync_channel(1);
        std::thread::spawn(move || sender.send(child.wait().unwrap()));
        Ok(Self { pid, exit, exited: None, ear, next_id: 0 })
    }

    /// Shakes hands; whether the server did too.
    pub fn initialize(&mut self, watched: Option<u32>) -> bool {
        let folder = |root: &std::path::PathBuf| json!({ "uri": format!("file://{}", root.display()), "name": "w" });
        let roots = self.ear.scene.roots();
        let params = if self.ear.framed {
            json!({ "processId": watched, "rootUri": folder(&roots[0])["uri"],
                "capabilities": { "experimental": { "tandem": {} }, "workspace": { "applyEdit": true } },
                "workspaceFolders": roots.iter().map(folder).collect::<Vec<_>>() })
        } else {
            json!({ "protocolVersion": 1, "clientCapabilities": {} })
        };
        let answered = self.call("initialize", params, PATIENCE).is_some_and(|answer| answer.get("result").is_some());
        if self.ear.framed {
            self.notify("initialized", json!({}));
        }
        answered
    }

    /// A session in the workspace.
    pub fn session(&mut self) -> Option<String> {
        let cwd = self.ear.scene.roots()[0].clone();
        let answer = self.call("session/new", json!({ "cwd": cwd, "mcpServers": [] }), PATIENCE)?;
        Some(answer["result"]["sessionId"].as_str()?.to_owned())
    }

    /// Sends a request and gives its id.
    pub fn ask(&mut self, method: &str, params: Value) -> String {
        self.next_id += 1;
        let id = format!("runner-{}", self.next_id);
        self.ear.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.ear.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// The answer to a request, if it comes in time.
    pub fn answer(&self, id: &str, limit: Duration) -> Option<Heard> {
        self.wait(limit, |ears| ears.iter().find(|heard| heard.is_answer() && heard.message["id"] == id).cloned())
    }

    pub fn call(&mut self, method: &str, params: Value, limit: Duration) -> Option<Value> {
        let id = self.ask(method, params);
        Some(self.answer(&id, limit)?.message)
    }

    /// Asks a question in a session.
    pub fn prompt(&mut self, session: &str, text: &str) -> Turn {
        let from = self.heard().len();
        let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
        let asked = Instant::now();
        let id = self.ask("session/prompt", params);
        Turn { id, asked, cancelled: None, answered: None, answer: Value::Null, from }
    }

    /// Waits for the end of a turn.
    pub fn end(&self, turn: &mut Turn, limit: Duration) {
        if let Some(heard) = self.answer(&turn.id, limit) {
            (turn.answered, turn.answer) = (Some(heard.at), heard.message);
        }
    }

    pub fn cancel(&mut self, session: &str, turn: &mut Turn) {
        turn.cancelled = Some(Instant::now());
        self.notify("session/cancel", json!({ "sessionId": session }));
    }

    /// Everything heard so far.
    pub fn heard(&self) -> Vec<Heard> {
        self.ear.lock().heard.clone()
    }

    pub fn noise(&self) -> Vec<String> {
        self.ear.lock().noise.clone()
    }

    /// The text of a document as the editor has it.
    pub fn document(&self, uri: &str) -> Option<String> {
        Some(self.ear.lock().documents.get(uri)?.1.clone())
    }

    /// `textDocument/didOpen` or `didChange`.
    pub fn type_in(&mut self, uri: &str, text: &str) {
        let version = {
            let mut ears = self.ear.lock();
            let document = ears.documents.entry(uri.to_owned()).or_insert((0, String::new()));
            *document = (document.0 + 1, text.to_owned());
            document.0
        };
        if version == 1 {
            let document = json!({ "uri": uri, "languageId": "text", "version": 1, "text": text });
            return self.notify("textDocument/didOpen", json!({ "textDocument": document }));
        }
        self.notify("textDocument/didChange", changed(uri, version, text));
    }

    /// Waits until what was heard shows something; `None` when the time or the server has run out.
    pub fn wait<T>(&self, limit: Duration, find: impl Fn(&[Heard]) -> Option<T>) -> Option<T> {
        let until = Instant::now() + limit;
        let mut ears = self.ear.lock();
        loop {
            if let Some(found) = find(&ears.heard) {
                return Some(found);
            }
            let left = until.checked_duration_since(Instant::now())?;
            if ears.ended {
                return None;
            }
            ears = self.ear.changed.wait_timeout(ears, left).unwrap().0;
        }
    }

    /// Sends text as it is, `${A*1000}` written out on the way. A server that is gone hears nothing.
    pub fn raw(&mut self, text: &str) {
        for piece in pieces(text) {
            match piece {
                super::case::Piece::Text(text) => self.ear.say(text.as_bytes()),
                super::case::Piece::Repeat(letter, mut times) => {
                    let block = vec![letter; times.min(1 << 20)];
                    while times > 0 {
                        let now = times.min(block.len());
                        self.ear.say(&block[..now]);
                        times -= now;
                    }
                }
            }
        }
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.ear.say(bytes);
    }

    /// Sends a body in a frame of the transport.
    pub fn body(&mut self, body: &str) {
        if self.ear.framed {
            let length: usize = pieces(body).iter().map(super::case::Piece::len).sum();
            self.raw(&format!("Content-Length: {length}\r\n\r\n"));
            self.raw(body);
        } else {
            self.raw(&format!("{body}\n"));
        }
    }

    /// Reads nothing for a while from now on.
    pub fn pause_reading(&mut self, time: Duration) {
        self.ear.lock().deaf_until = Some(Instant::now() + time);
    }

    pub fn signal(&self, signal: Signal) {
        // It may be gone already.
        let _ = kill_process(self.pid, signal);
    }

    /// Waits for the end of the process.
    pub fn exits_within(&mut self, limit: Duration) -> Option<ExitStatus> {
        if self.exited.is_none() {
            let status = self.exit.recv_timeout(limit).ok()?;
            self.exited = Some((status, Instant::now()));
        }
        self.exited.map(|(status, _)| status)
    }

    /// Kills the process and waits.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.exits_within(PATIENCE);
    }

    pub fn was_killed(&mut self) -> bool {
        self.exits_within(Duration::from_secs(5)).is_some_and(|status| status.signal() == Some(9))
    }

    /// The most memory it has had so far, in bytes; 0 where it is gone.
    pub fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid.as_raw_nonzero())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) << 10
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Ear {
    fn lock(&self) -> MutexGuard<'_, Ears> {
        self.state.lock().unwrap()
    }

    fn send(&self, message: &Value) {
        let body = message.to_string();
        if self.framed {
            self.say(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
        } else {
            self.say(format!("{body}\n").as_bytes());
        }
    }

    fn say(&self, bytes: &[u8]) {
        let mut mouth = self.mouth.lock().unwrap();
        let broken = mouth.as_mut().is_some_and(|stdin| stdin.write_all(bytes).is_err());
        if broken {
            *mouth = None;
        }
    }

    fn listen(&self, stdout: ChildStdout) {
        let mut reader = BufReader::new(stdout);
        while let Some(body) = self.frame(&mut reader) {
            let message = match String::from_utf8(body) {
                Ok(text) => serde_json::from_str::<Value>(&text).map_err(|_| text),
                Err(error) => Err(format!("not UTF-8: {error}")),
            };
            let mut ears = self.lock();
            match message {
                Ok(message) => {
                    ears.heard.push(Heard { at: Instant::now(), message: message.clone() });
                    self.changed.notify_all();
                    drop(ears);
                    self.react(&message);
                }
                Err(noise) => ears.noise.push(noise),
            }
            let ears = self.lock();
            let deaf = ears.deaf_until;
            drop(ears);
            if let Some(left) = deaf.and_then(|until| until.checked_duration_since(Instant::now())) {
                std::thread::sleep(left);
            }
        }
        self.lock().ended = true;
        self.changed.notify_all();
    }

    fn frame(&self, reader: &mut impl BufRead) -> Option<Vec<u8>> {
        let mut line = Vec::new();
        if !self.framed {
            return (reader.read_until(b'\n', &mut line).ok()? > 0).then_some(line);
        }
        let mut length = None;
        loop {
            line.clear();
            if reader.read_until(b'\n', &mut line).ok()? == 0 {
                return None;
            }
            let header = String::from_utf8_lossy(&line).trim_end().to_owned();
            if header.is_empty() {
                break;
            }
            match header.strip_prefix("Content-Length: ").and_then(|length| length.parse().ok()) {
                Some(found) => length = Some(found),
                None => self.lock().noise.push(header),
            }
        }
        let mut body = vec![0; length?];
        reader.read_exact(&mut body).ok()?;
        Some(body)
    }

    /// Answers what the server asks.
    fn react(&self, message: &Value) {
        let answer = match message["method"].as_str() {
            Some("session/request_permission") => self.decide(message),
            Some("workspace/applyEdit") => self.edit(&message["params"]["edit"]),
            Some(_) if message.get("id").is_some() => Value::Null,
            _ => return,
        };
        self.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": answer }));
    }

    fn decide(&self, question: &Value) -> Value {
        for op in self.on_ask.as_array().into_iter().flatten() {
            // What it could not do shows in the oracles.
            let _ = self.scene.apply(op);
        }
        let wanted: &[&str] = match self.policy {
            Policy::Allow => &["allow_once"],
            Policy::Deny => &["reject_once", "reject_always"],
        };
        let options = question["params"]["options"].as_array().cloned().unwrap_or_default();
        let chosen = wanted.iter().find_map(|kind| options.iter().find(|option| option["kind"] == *kind));
        match chosen {
            Some(option) => json!({ "outcome": { "outcome": "selected", "optionId": option["optionId"] } }),
            None => json!({ "outcome": { "outcome": "cancelled" } }),
        }
    }

    /// Makes an edit of open documents, as an editor does; stale ones are refused.
    fn edit(&self, edit: &Value) -> Value {
        let change = &edit["documentChanges"][0];
        let uri = change["textDocument"]["uri"].as_str().unwrap_or_default();
        let mut ears = self.lock();
        let Some((version, text)) = ears.documents.get_mut(uri) else { return json!({ "applied": false }) };
        if change["textDocument"]["version"] != *version {
            return json!({ "applied": false, "failureReason": "stale" });
        }
        let mut edits: Vec<&Value> = change["edits"].as_array().into_iter().flatten().collect();
        edits.reverse();
        for edit in edits {
            let at = |end: &str| offset(text, &edit["range"][end]);
            let (from, to) = (at("start"), at("end"));
            text.replace_range(from..to, edit["newText"].as_str().unwrap_or_default());
        }
        *version += 1;
        let params = changed(uri, *version, text);
        drop(ears);
        self.send(&json!({ "jsonrpc": "2.0", "method": "textDocument/didChange", "params": params }));
        json!({ "applied": true })
    }
}

fn changed(uri: &str, version: i64, text: &str) -> Value {
    json!({ "textDocument": { "uri": uri, "version": version }, "contentChanges": [{ "text": text }] })
}

/// Where a position is. The documents of cases are ASCII.
fn offset(text: &str, position: &Value) -> usize {
    let line = usize::try_from(position["line"].as_u64().unwrap_or(0)).unwrap();
    let character = usize::try_from(position["character"].as_u64().unwrap_or(0)).unwrap();
    let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    (start + character).min(text.len())
}
