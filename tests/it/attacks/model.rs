//! A model server on loopback that plays the script of a case, misbehaves as told, and remembers who came when.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::case::{Vars, unknown};
use super::tools;
use super::wire::{Call, Wire};

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Hit {
    pub at: Instant,
    pub head: String,
    pub body: String,
    pub wire: Wire,
}

/// What is done to the scene before a reply that says so.
type Before = Box<dyn Fn(&Value) + Send + Sync>;

/// The server. Dropping it closes the port.
pub struct Model {
    pub port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    hits: Mutex<Vec<Hit>>,
    script: Mutex<VecDeque<Value>>,
    vars: Mutex<Vars>,
    before: Mutex<Option<Before>>,
    unknown: Mutex<Vec<String>>,
    over: AtomicBool,
}

/// So long a door that is shut stays so for each time a case says it is.
const SHUT: Duration = Duration::from_millis(700);

impl Model {
    pub fn start(script: Vec<Value>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared { script: Mutex::new(script.into()), ..Shared::default() });
        let host = Arc::clone(&shared);
        std::thread::spawn(move || accept(listener, port, &host));
        Self { port, shared }
    }

    pub fn hits(&self) -> Vec<Hit> {
        self.shared.hits.lock().unwrap().clone()
    }

    /// Words of the script that are not known.
    pub fn unknown(&self) -> Option<String> {
        self.shared.unknown.lock().unwrap().first().cloned()
    }

    pub fn add(&self, step: Value) {
        self.shared.script.lock().unwrap().push_back(step);
    }

    /// From here on every answer is the usual one.
    pub fn forget(&self) {
        self.shared.script.lock().unwrap().clear();
    }

    pub fn set(&self, vars: Vars, before: Before) {
        *self.shared.vars.lock().unwrap() = vars;
        *self.shared.before.lock().unwrap() = Some(before);
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
    }
}

fn accept(listener: TcpListener, port: u16, shared: &Arc<Shared>) {
    let mut door = Some(listener);
    while !shared.over.load(Ordering::Relaxed) {
        if let Some(times) = shared.refused() {
            door = None;
            // A server that is down for a while is what is played.
            std::thread::sleep(SHUT * times);
            continue;
        }
        let listener = door.get_or_insert_with(|| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap());
        listener.set_nonblocking(true).unwrap();
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false).unwrap();
                let shared = Arc::clone(shared);
                // It ends with its connection. Whatever breaks there is part of the play.
                std::thread::spawn(move || _ = serve(stream, &shared));
            }
            // Nobody yet; the standard library cannot wait for a connection and for the end at once.
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

impl Shared {
    /// How often the next connections are to be refused.
    fn refused(&self) -> Option<u32> {
        let mut script = self.script.lock().unwrap();
        script.front()?.get("refuse")?;
        let step = script.pop_front()?;
        Some(u32::try_from(step["times"].as_u64().unwrap_or(1)).unwrap())
    }

    fn next(&self) -> Value {
        let mut script = self.script.lock().unwrap();
        let Some(step) = script.front_mut() else { return json!({ "reply": "ok_text", "text": "OK" }) };
        let left = step["times"].as_u64().unwrap_or(1);
        if left > 1 {
            step["times"] = (left - 1).into();
            return step.clone();
        }
        script.pop_front().unwrap()
    }
}

fn serve(stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    if !head.starts_with("POST ") {
        return (&stream).write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    }
    let mut body = vec![0; length.unwrap_or(0)];
    let step = shared.next();
    // A connection that is closed with something unread is reset, not ended.
    let unread = usize::from(step["close"] == "rst");
    let wanted = body.len() - unread;
    reader.read_exact(&mut body[..wanted])?;
    let wire = Wire::of_path(&path);
    let body = String::from_utf8_lossy(&body).trim_end_matches('\0').to_owned();
    let accepts = |line: &str| line.starts_with("accept-encoding:") && line.contains("br");
    if step["encoding"] == "br" && head.to_lowercase().lines().any(accepts) {
        shared.unknown.lock().unwrap().push("brotli, which the client offers".to_owned());
    }
    shared.hits.lock().unwrap().push(Hit { at: Instant::now(), head, body, wire });
    let step = shared.vars.lock().unwrap().value(&step);
    if let (Some(ops), Some(apply)) = (step["before"].as_array(), &*shared.before.lock().unwrap()) {
        ops.iter().for_each(apply);
    }
    Reply { wire, stream }.play(&step).unwrap_or_else(|word| {
        shared.unknown.lock().unwrap().push(word);
        Ok(())
    })
}

/// A reply on its way. The outer error is a word of the script that is not known.
struct Reply {
    wire: Wire,
    stream: TcpStream,
}

type Played = Result<std::io::Result<()>, String>;

impl Reply {
    fn play(mut self, step: &Value) -> Played {
        if let Some(status) = step["status"].as_u64() {
            return Ok(self.document(status, step));
        }
        if let Some(status) = step["redirect"].as_u64() {
            let mut step = step.clone();
            step["headers"] = json!({ "location": step["to"] });
            return Ok(self.document(status, &step));
        }
        match step["close"].as_str() {
            Some("rst") => return Ok(Ok(())),
            Some(other) => return Err(format!("close `{other}`")),
            None => {}
        }
        let texts = |key: &str| step[key].as_array().into_iter().flatten().filter_map(Value::as_str);
        let count = || step["n"].as_u64().unwrap_or(1);
        Ok(match step["reply"].as_str() {
            Some("ok_text") => self.text(step),
            Some("raw_sse") => self.stream(&[step["sse"].as_str().unwrap_or_default().to_owned()], None),
            Some("raw_events") => {
                let events: Vec<String> = texts("events").map(|event| self.raw(event)).collect();
                self.stream(&[events, vec!["data: [DONE]\n\n".to_owned()]].concat(), None)
            }
            Some("giant_line") => self.giant(step["mb"].as_u64().unwrap_or(1)),
            Some("tool_call") => {
                let name = step["name"].as_str().unwrap_or_default();
                let arguments = step["arguments"].as_str().unwrap_or("{}");
                let (name, arguments) = match serde_json::from_str(arguments) {
                    Ok(parsed) => {
                        let (name, arguments) = tools::ours(name, &parsed);
                        (name, arguments.to_string())
                    }
                    Err(_) => (tools::ours(name, &Value::Null).0, arguments.to_owned()),
                };
                self.call(vec![("c1".to_owned(), name, arguments)], false)
            }
            Some("calls") => {
                let calls = step["calls"].as_array().into_iter().flatten().enumerate().map(|(index, call)| {
                    let (name, arguments) = tools::ours(call["name"].as_str().unwrap(), &call["args"]);
                    (format!("c{index}"), name, arguments.to_string())
                });
                self.call(calls.collect(), false)
            }
            Some("many_tool_calls") => self.call(harmless(count()), false),
            Some("interleaved_tool_calls") => self.call(harmless(count()), true),
            Some(other) => return Err(format!("reply `{other}`")),
            None => return Err(format!("step `{step}`")),
        })
    }

    fn document(mut self, status: u64, step: &Value) -> std::io::Result<()> {
        let body = step["body"].as_str().map(str::to_owned);
        let body = body.unwrap_or_else(|| json!({ "error": { "message": format!("injected {status}") } }).to_string());
        let mut head = format!("HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\nconnection: close\r\n");
        for (name, value) in step["headers"].as_object().into_iter().flatten() {
            head.extend([name, ": ", value.as_str().unwrap_or_default(), "\r\n"]);
        }
        self.stream.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes())
    }

    fn text(&mut self, step: &Value) -> std::io::Result<()> {
        let mut events = vec![self.wire.begin()];
        if step["bom"] == true {
            events.insert(0, "\u{feff}".to_owned());
        }
        events.extend(self.wire.words(step["text"].as_str().unwrap_or_default()));
        events.push(self.wire.end(false, step["omit_done"] != true));
        self.stream(&events, step["delay_ms"].as_u64())
    }

    fn call(&mut self, calls: Vec<Call>, interleave: bool) -> std::io::Result<()> {
        let mut events = vec![self.wire.begin()];
        events.extend(self.wire.calls(&calls, interleave));
        events.push(self.wire.end(true, true));
        self.stream(&events, None)
    }

    /// An event of a case, in the words of the chat wire.
    fn raw(&self, event: &str) -> String {
        match event {
            "${OK_EVENTS}" => self.wire.words("FINAL_OK").concat() + &self.wire.end(false, false),
            "${TOOL_FINISH}" => self.wire.end(true, false),
            event => format!("data: {event}\n\n"),
        }
    }

    fn stream(&mut self, events: &[String], delay_ms: Option<u64>) -> std::io::Result<()> {
        self.head()?;
        for event in events.iter().filter(|event| !event.is_empty()) {
            self.chunk(event.as_bytes())?;
            if let Some(delay) = delay_ms {
                // The pace of a slow model is what is played.
                std::thread::sleep(Duration::from_millis(delay));
            }
        }
        self.chunk(b"")
    }

    fn giant(&mut self, megabytes: u64) -> std::io::Result<()> {
        self.head()?;
        self.chunk(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"")?;
        let piece = vec![b'A'; 1 << 20];
        for _ in 0..megabytes {
            self.chunk(&piece)?;
        }
        self.chunk(b"\"}}]}\n\n")?;
        self.chunk(b"")
    }

    fn head(&mut self) -> std::io::Result<()> {
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close";
        self.stream.write_all(format!("{head}\r\n\r\n").as_bytes())
    }

    /// One chunk; the empty one is the last.
    fn chunk(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(&[format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat())
    }
}

/// Calls that read and find nothing, each another.
fn harmless(count: u64) -> Vec<Call> {
    let call = |n| (format!("c{n}"), "glob".to_owned(), json!({ "pattern": format!("*.none{n}") }).to_string());
    (0..count).map(call).collect()
}

/// Words of a script that will not be known when it is played.
pub fn check(script: &[Value]) -> super::case::Done {
    const KEYS: [&str; 21] = [
        "reply",
        "text",
        "delay_ms",
        "cancel_after_events",
        "cancel_after_ms",
        "bom",
        "omit_done",
        "encoding",
        "status",
        "body",
        "headers",
        "times",
        "redirect",
        "to",
        "close",
        "refuse",
        "mb",
        "events",
        "sse",
        "n",
        "name",
    ];
    for key in script.iter().filter_map(Value::as_object).flat_map(|step| step.keys()) {
        if !KEYS.contains(&key.as_str()) && !["arguments", "shuffle", "before", "calls"].contains(&key.as_str()) {
            return unknown("key of a script", key);
        }
    }
    Ok(())
}
