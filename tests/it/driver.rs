//! A client of the server that writes real frames into a pipe, reads real frames from another, and never sleeps.
//!
//! Dropping it ends the server, and fails the test if the server did not exit cleanly or a request was never answered.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::{offered, schema};
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};
use serde_json::{Value, json};
use tandem::config::Environment;
use tandem::server::{Ended, Transport};

/// How long to wait for anything before the test fails.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// Polls until a condition holds; fails if it never does. These tests' only clock: how long it takes is not a result.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(1)); // leave the cores to the process it waits for
    }
}

/// A port that is free on this machine. The system assigns only higher ones to those who ask for any: one of theirs that was
/// free a moment ago may be another test's model by now, and lose an answer of its script.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(20_000);
    loop {
        let port = NEXT.fetch_add(1, Ordering::Relaxed);
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Applies a function to each item, this many at a time, in order; results are returned in the order they complete.
pub fn side_by_side<T: Send, R: Send>(
    many: usize,
    items: Vec<T>,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let (queue, results) = (Mutex::new(VecDeque::from(items)), Mutex::new(Vec::new()));
    let next = || queue.lock().unwrap().pop_front();
    std::thread::scope(|scope| {
        for _ in 0..many {
            scope.spawn(|| {
                while let Some(item) = next() {
                    let result = work(item);
                    results.lock().unwrap().push(result);
                }
            });
        }
    });
    results.into_inner().unwrap()
}

/// Plays random cases: the same few in every run, or as many new ones as the environment variable `more` says.
pub fn play_random<S: Strategy>(cases: &S, few: u32, more: &str, play: impl Fn(S::Value)) {
    let more = std::env::var(more).ok();
    let config = Config {
        cases: more.as_ref().map_or(few, |more| more.parse().unwrap()),
        failure_persistence: None,
        max_shrink_iters: 200,
        ..Config::default()
    };
    let mut runner = match more {
        None => {
            let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
            TestRunner::new_with_rng(config, rng)
        }
        Some(_) => TestRunner::new(config),
    };
    let played = runner.run(cases, |case| {
        play(case);
        Ok(())
    });
    match played {
        Ok(()) => {}
        Err(TestError::Fail(why, case)) => panic!("{why}\n{case:?}"),
        Err(TestError::Abort(why)) => panic!("{why}"),
    }
}

/// A tool call in a script.
pub fn call(id: &str, name: &str, arguments: Value) -> Value {
    json!({ "call": { "id": id, "name": name, "arguments": arguments } })
}

/// Answers a permission request or a question with the option that has this ID.
pub fn choose(client: &mut Client, request: &Value, option: &str) {
    client.respond(
        request,
        json!({ "outcome": { "outcome": "selected", "optionId": option } }),
    );
}

/// A workspace, a scripted model and a runtime for both ends.
pub struct World {
    pub runtime: tokio::runtime::Runtime,
    pub model: rehearsal::Server,
    pub folder: tempfile::TempDir,
}

impl World {
    /// A world whose model follows `script` (a rehearsal in JSON).
    pub fn new(script: Value) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let script: rehearsal::Script = serde_json::from_value(script).unwrap();
        let model = {
            let _inside = runtime.enter();
            rehearsal::Server::start(script).unwrap()
        };
        Self {
            runtime,
            model,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub fn path(&self) -> std::path::PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap()
    }

    pub fn uri(&self, name: &str) -> String {
        format!("file://{}/{name}", self.path().display())
    }

    pub fn rehearsal(&self) -> &rehearsal::Rehearsal {
        self.model.rehearsal()
    }

    /// Waits for an event of the model.
    pub fn wait<T>(&self, what: impl Future<Output = T>) -> T {
        self.runtime
            .block_on(async { tokio::time::timeout(PATIENCE, what).await })
            .expect("the expected request never reached the model")
    }

    /// A client that has initialized the connection as an ACP client.
    pub fn client(&self) -> Client {
        self.client_with(json!({ "experimental": { "tandem": {} } }))
    }

    /// A client that has initialized the connection with these capabilities.
    pub fn client_with(&self, capabilities: Value) -> Client {
        let mut client = self.stranger();
        client.shake_hands(self.handshake(capabilities));
        client
    }

    /// The params of `initialize` from a client with these capabilities besides the usual ones.
    pub fn handshake(&self, capabilities: Value) -> Value {
        let folder = self.uri("");
        json!({ "processId": null, "rootUri": folder, "capabilities": offered::with(&capabilities),
            "workspaceFolders": [{ "uri": folder.trim_end_matches('/'), "name": "w" }] })
    }

    /// A client that has sent nothing yet.
    pub fn stranger(&self) -> Client {
        self.stranger_on(Transport::Lsp, &self.environment())
    }

    /// A client of the line protocol that has sent nothing yet.
    pub fn acp(&self) -> Client {
        self.stranger_on(Transport::Acp, &self.environment())
    }

    fn environment(&self) -> [(&str, &str); 2] {
        [
            ("TANDEM_MODEL", "scripted"),
            ("TANDEM_BASE_URL", self.model.base_url()),
        ]
    }

    pub fn stranger_on(&self, transport: Transport, environment: &[(&str, &str)]) -> Client {
        let home = self.folder.path().join(".home");
        self.stranger_in(transport, Environment::made_up(&home, environment))
    }

    /// A client of a server with this environment.
    pub fn stranger_in(&self, transport: Transport, environment: Environment) -> Client {
        let (input, to_server) = std::io::pipe().unwrap();
        let (from_server, output) = std::io::pipe().unwrap();
        let load = tandem::cli::settings_loader(environment);
        let server = self
            .runtime
            .spawn(tandem::server::serve(transport, input, output, load));
        let mut client = Client::new(transport, to_server, from_server);
        client.server = Some((server, self.runtime.handle().clone()));
        client
    }
}

pub struct Client {
    transport: Transport,
    /// The capabilities it announced.
    offered: Value,
    writer: Option<PipeWriter>,
    frames: Receiver<Value>,
    /// Messages received but not requested yet.
    pub seen: VecDeque<Value>,
    /// The pending requests, by ID.
    open: BTreeMap<i64, String>,
    /// The IDs of all responses received.
    answered: HashSet<String>,
    last_id: i64,
    /// The server's task, if the server runs in this process.
    server: Option<(
        tokio::task::JoinHandle<std::io::Result<Ended>>,
        tokio::runtime::Handle,
    )>,
    reader: Option<std::thread::JoinHandle<()>>,
    /// Locked between two frames: while it is held elsewhere, nothing more is read.
    reading: Arc<Mutex<()>>,
}

impl Client {
    /// A client at the ends of two pipes.
    pub fn new(transport: Transport, writer: PipeWriter, reader: PipeReader) -> Self {
        let (sender, frames) = sync_channel(10_000);
        let reading = Arc::new(Mutex::new(()));
        let may_read = Arc::clone(&reading);
        let reader = std::thread::spawn(move || {
            let mut reader = BufReader::new(reader);
            while let Some(frame) = read_frame(transport, &mut reader) {
                if sender.send(frame).is_err() {
                    break;
                }
                drop(may_read.lock());
            }
        });
        Self {
            transport,
            offered: Value::Null,
            writer: Some(writer),
            frames,
            seen: VecDeque::new(),
            open: BTreeMap::new(),
            answered: HashSet::new(),
            last_id: 0,
            server: None,
            reader: Some(reader),
            reading,
        }
    }

    /// Sends `initialize` and `initialized`.
    pub fn shake_hands(&mut self, params: Value) {
        let answer = self.call("initialize", params);
        assert_eq!(answer["result"]["serverInfo"]["name"], "tandem", "{answer}");
        self.notify("initialized", json!({}));
    }

    /// While this is locked, the client reads nothing beyond the message it is waiting for.
    pub fn reading(&self) -> Arc<Mutex<()>> {
        Arc::clone(&self.reading)
    }

    /// Sends bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.writer.as_mut().unwrap().write_all(bytes).unwrap();
    }

    pub fn send(&mut self, message: &Value) {
        let body = message.to_string();
        match self.transport {
            Transport::Lsp => {
                self.raw(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
            }
            Transport::Acp => self.raw(format!("{body}\n").as_bytes()),
        }
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Sends a request and returns its ID.
    pub fn ask(&mut self, method: &str, params: Value) -> i64 {
        if method == "initialize" {
            let field = if self.transport == Transport::Lsp {
                "capabilities"
            } else {
                "clientCapabilities"
            };
            self.offered = params[field].clone();
        }
        self.last_id += 1;
        self.open.insert(self.last_id, method.to_owned());
        self.send(
            &json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params }),
        );
        self.last_id
    }

    /// Sends a request and waits for its result.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.answer(id)
    }

    /// The response to a request.
    pub fn answer(&mut self, id: i64) -> Value {
        let answer = self.find(|message| message["id"] == id && message.get("method").is_none());
        self.close(&answer);
        answer
    }

    /// Whether a request has no answer yet.
    pub fn waits(&self) -> bool {
        !self.open.is_empty()
    }

    /// A request has been answered.
    pub fn close(&mut self, answer: &Value) {
        if let Some(method) = answer["id"].as_i64().and_then(|id| self.open.remove(&id)) {
            schema::check_answer(&method, answer);
            assert!(
                offered::understands(&self.offered, &method, answer),
                "not for this client: {method}: {answer}"
            );
        }
    }

    /// Answers a request from the server.
    pub fn respond(&mut self, request: &Value, result: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }));
    }

    /// The next message with that method.
    pub fn next(&mut self, method: &str) -> Value {
        self.find(|message| message["method"] == method)
    }

    /// The next update of this kind.
    pub fn update(&mut self, kind: &str) -> Value {
        let message = self.find(|message| message["params"]["update"]["sessionUpdate"] == kind);
        message["params"]["update"].clone()
    }

    /// The first message, received or to come, that matches; the others are kept for later.
    pub fn find(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(index) = self.seen.iter().position(&fits) {
            return self.seen.remove(index).unwrap();
        }
        while let Some(message) = self.receive() {
            if fits(&message) {
                return message;
            }
            self.seen.push_back(message);
        }
        panic!(
            "the server sent no matching message; it sent {:#?}",
            self.seen
        );
    }

    /// The next message; `None` once the server has ended.
    pub fn receive(&mut self) -> Option<Value> {
        match self.frames.recv_timeout(PATIENCE) {
            Ok(message) => {
                self.check(&message);
                Some(message)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                panic!("the server is silent; it sent {:#?}", self.seen)
            }
        }
    }

    /// Checks that a response conforms to the protocol and is the only one.
    fn check(&mut self, message: &Value) {
        schema::check_message(message);
        let is_request = message.get("method").is_some() && message.get("id").is_some();
        let needs_an_offer = is_request || message["method"] == "session/update";
        assert!(
            !needs_an_offer || offered::takes(self.transport, &self.offered, message),
            "the client did not offer this: {message}"
        );
        if message.get("method").is_none() && !message["id"].is_null() {
            assert!(
                self.answered.insert(message["id"].to_string()),
                "answered twice: {message}"
            );
        }
    }

    /// Starts a session in the world's directory.
    pub fn session(&mut self, world: &World) -> String {
        let answer = self.call(
            "session/new",
            json!({ "cwd": world.path(), "mcpServers": [] }),
        );
        answer["result"]["sessionId"]
            .as_str()
            .unwrap_or_else(|| panic!("no session: {answer}"))
            .to_owned()
    }

    /// Sends a prompt to a session and returns the request's ID.
    pub fn prompt(&mut self, session: &str, text: &str) -> i64 {
        self.ask(
            "session/prompt",
            json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] }),
        )
    }

    pub fn open(&mut self, uri: &str, text: &str) {
        let document = json!({ "uri": uri, "languageId": "rust", "version": 1, "text": text });
        self.notify("textDocument/didOpen", json!({ "textDocument": document }));
    }

    /// All answer text received so far.
    pub fn text(&self) -> String {
        let chunks = self
            .seen
            .iter()
            .filter(|m| m["params"]["update"]["sessionUpdate"] == "agent_message_chunk");
        chunks
            .map(|m| m["params"]["update"]["content"]["text"].as_str().unwrap())
            .collect()
    }

    /// Closes the input.
    pub fn hang_up(&mut self) {
        self.writer = None;
    }

    /// Closes the input and returns how the server ended.
    pub fn end(&mut self) -> Ended {
        self.hang_up();
        let (server, runtime) = self.server.take().expect("ended once");
        runtime
            .block_on(async { tokio::time::timeout(PATIENCE, server).await })
            .unwrap()
            .unwrap()
            .unwrap()
    }

    /// Reads to the end: everything is a message, and every request was answered.
    pub fn finish(&mut self) {
        let rest: Vec<Value> = self.frames.iter().collect();
        self.reader
            .take()
            .expect("finished once")
            .join()
            .expect("nothing but messages on standard output");
        for message in &rest {
            self.check(message);
        }
        self.seen.extend(rest);
        for message in std::mem::take(&mut self.seen) {
            if message.get("method").is_none() {
                self.close(&message);
            }
            self.seen.push_back(message);
        }
        assert_eq!(self.open, BTreeMap::new(), "requests without an answer");
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if !std::thread::panicking() && self.server.is_some() {
            assert_eq!(self.end(), Ended::Well);
            self.finish();
        }
    }
}

fn read_frame(transport: Transport, reader: &mut impl BufRead) -> Option<Value> {
    let mut line = String::new();
    if transport == Transport::Acp {
        return (reader.read_line(&mut line).ok()? > 0)
            .then(|| serde_json::from_str(&line).unwrap());
    }
    let mut length = 0;
    loop {
        line.clear();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            header => {
                length = header
                    .strip_prefix("Content-Length: ")
                    .unwrap()
                    .parse()
                    .unwrap();
            }
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(serde_json::from_slice(&body).expect("only JSON on stdout"))
}
