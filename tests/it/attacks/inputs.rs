//! What happens in a case: one function for each kind of input. What came of it is noted, not judged.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::case::{Case, Done, Trouble, unknown};
use super::faults;
use super::model::{self, Hit, Model};
use super::scene::Scene;
use super::server::{Heard, PATIENCE, Server, Turn};

/// A run of a case: who takes part, and what was noted when the input was over.
pub struct Run {
    pub scene: Arc<Scene>,
    pub model: Model,
    /// The host that the model redirects to.
    pub other: Model,
    pub server: Server,
    pub session: Option<String>,
    /// Sessions of other servers in the scene.
    pub more_sessions: Vec<String>,
    pub notes: Notes,
}

/// What was noted.
#[derive(Clone)]
pub struct Notes {
    pub hits: Vec<Hit>,
    pub heard: Vec<Heard>,
    pub noise: Vec<String>,
    pub turns: Vec<Turn>,
    /// When the last thing was done to the server.
    pub last: Instant,
    pub peak: u64,
    /// Whether the fault or the kill the case is about happened.
    pub struck: bool,
    pub port: u16,
}

impl Run {
    /// Plays one run of a case.
    pub fn play(case: &Case, input: &Value) -> Done<Self> {
        let case = Case { input: input.clone(), ..case.clone() };
        let scene = Scene::build(&case)?;
        let mut run = Self::enter(&case, &scene)?;
        match case.input["kind"].as_str().unwrap_or_default() {
            "tool" => run.tools(&case)?,
            "tool_loop" => run.tool_loop(&case),
            "prompt" => {
                let text = case.input["text"].as_str().unwrap_or_default();
                run.converse(text, |_, _| {});
            }
            "model" => run.scripted(&case),
            "rpc" => run.rpc(&case)?,
            "kill_at_syscall" => faults::kill_at_syscall(&mut run, &case)?,
            "kill_after_events" => faults::kill_after_events(&mut run, &case)?,
            "corrupt_session_log" => faults::corrupt(&mut run, &case)?,
            "two_servers" => faults::two_servers(&mut run, &case)?,
            "sigstop" => faults::stop_and_continue(&mut run, &case),
            "mcp_child_env_dump" => run.converse("hi", |_, _| {}),
            other => return unknown("input", other),
        }
        run.note();
        match run.model.unknown() {
            Some(word) => Err(Trouble::Unknown(word)),
            None => Ok(run),
        }
    }

    /// Starts everybody, up to the first session.
    pub fn enter(case: &Case, scene: &Arc<Scene>) -> Done<Self> {
        let script = script(case)?;
        let other = Model::start(Vec::new());
        let redirect = format!("http://localhost:{}/v1/chat/completions", other.port);
        let script = script.into_iter().map(|mut step| {
            if step["to"] == "other_host" {
                step["to"] = redirect.clone().into();
            }
            step
        });
        let model = Model::start(script.collect());
        let stage = Arc::clone(scene);
        // What an operation in the middle could not do shows in the oracles.
        model.set(scene.vars(), Box::new(move |op| _ = stage.apply(op)));
        if case.input["kind"] == "mcp_child_env_dump" {
            let dump = scene.base().join("mcp.env");
            let shell = format!("env > {} 2>&1; exec cat", dump.display());
            scene.configure(&format!("[mcp.dump]\ncommand = [\"sh\", \"-c\", {shell:?}]\n"));
        }
        let transport = case.input["carrier"].as_str().unwrap_or("lsp");
        let server = Server::start(scene, transport, model.port, case)?;
        let notes = Notes {
            hits: Vec::new(),
            heard: Vec::new(),
            noise: Vec::new(),
            turns: Vec::new(),
            last: Instant::now(),
            peak: 0,
            struck: false,
            port: model.port,
        };
        let scene = Arc::clone(scene);
        let mut run = Self { scene, model, other, server, session: None, more_sessions: Vec::new(), notes };
        if case.input["kind"] != "rpc" {
            run.server.initialize(None);
            run.open(case);
        }
        Ok(run)
    }

    /// A session in the mode of the case.
    pub fn open(&mut self, case: &Case) {
        self.session = self.server.session();
        let kind = case.input["kind"].as_str().unwrap_or_default();
        let usual =
            if case.input["policy"] == "auto" || kind == "model" || kind.starts_with("kill") { "auto" } else { "ask" };
        let mode = case.input["mode"].as_str().unwrap_or(usual);
        if let Some(session) = self.session.clone().filter(|_| mode != "default") {
            let set = json!({ "sessionId": session, "modeId": mode });
            self.server.call("session/set_mode", set, PATIENCE);
        }
    }

    /// A whole turn; `during` may meddle while it runs.
    pub fn converse(&mut self, text: &str, during: impl FnOnce(&mut Self, &mut Turn)) {
        let Some(session) = self.session.clone() else { return };
        let mut turn = self.server.prompt(&session, text);
        during(self, &mut turn);
        self.server.end(&mut turn, PATIENCE);
        self.notes.last = Instant::now();
        self.notes.turns.push(turn);
    }

    pub fn note(&mut self) {
        let notes = &mut self.notes;
        notes.peak = notes.peak.max(self.server.peak_memory());
        (notes.hits, notes.heard, notes.noise) = (self.model.hits(), self.server.heard(), self.server.noise());
    }

    fn tools(&mut self, case: &Case) -> Done {
        for op in case.input["before"].as_array().into_iter().flatten() {
            self.scene.apply(op)?;
        }
        for message in case.input["before_rpc"].as_array().into_iter().flatten() {
            let Some(name) = message["didOpen"].as_str().or(message["didChange"].as_str()) else {
                return unknown("before_rpc", message);
            };
            let uri = format!("file://{}", self.scene.place("WS").join(name).display());
            self.server.type_in(&uri, message["text"].as_str().unwrap_or_default());
        }
        let fault = faults::inject(self, case)?;
        let cancel_after = if case.is_about("no_process") {
            Some(Duration::from_secs(1))
        } else {
            case.is_about("cancel_works_within_ms").then_some(Duration::from_millis(100))
        };
        self.converse("go", |run, turn| {
            if let Some(time) = cancel_after {
                run.cancel_when_running(turn, time);
            }
        });
        drop(fault);
        Ok(())
    }

    /// Cancels so long after the first tool began.
    fn cancel_when_running(&mut self, turn: &mut Turn, time: Duration) {
        let begun =
            |heard: &Heard| heard.update("tool_call_update").is_some_and(|update| update["status"] == "in_progress");
        let over = |heard: &Heard| heard.is_answer() && heard.message["id"] == *turn.id;
        self.server.wait(PATIENCE, |heard| heard.iter().any(|heard| begun(heard) || over(heard)).then_some(()));
        // How long after is the case's to say: it is about a cancel in the middle of something that tells nothing.
        std::thread::sleep(time);
        let session = self.session.clone().unwrap_or_default();
        self.server.cancel(&session, turn);
    }

    /// Many calls; a hundred a turn, so that no guard against loops ends it.
    fn tool_loop(&mut self, case: &Case) {
        let count = case.input["count"].as_u64().unwrap_or(1);
        let calls: Vec<Value> = case.input["calls"].as_array().cloned().unwrap_or_default();
        let many: Vec<Value> = calls.iter().cycle().take(100).cloned().collect();
        for _ in 0..count.div_ceil(100) {
            self.model.add(json!({ "reply": "calls", "calls": many }));
            self.model.add(json!({ "reply": "ok_text", "text": "OK" }));
            self.converse("go", |_, _| {});
        }
    }

    fn scripted(&mut self, case: &Case) {
        let steps = case.input["script"].as_array().cloned().unwrap_or_default();
        let number = |key: &str| steps.iter().find_map(|step| step[key].as_u64());
        let (after_ms, after_events) = (number("cancel_after_ms"), number("cancel_after_events"));
        self.converse("go", |run, turn| {
            if let Some(ms) = after_ms {
                run.cancel_when_running(turn, Duration::from_millis(ms));
            }
            if let Some(events) = after_events {
                let from = turn.from;
                run.server.wait(PATIENCE, |heard| {
                    let chunks = heard.iter().skip(from).filter_map(|heard| heard.update("agent_message_chunk"));
                    (chunks.count() as u64 >= events).then_some(())
                });
                let session = run.session.clone().unwrap_or_default();
                run.server.cancel(&session, turn);
            }
        });
    }

    fn rpc(&mut self, case: &Case) -> Done {
        let steps = case.input["steps"].as_array().cloned().unwrap_or_default();
        let has = |key: &str| steps.iter().any(|step| step.get(key).is_some());
        let mut watched = if has("kill_watched_pid") {
            let sleep = Command::new("sleep").arg("600").stdin(Stdio::null()).stdout(Stdio::null()).spawn();
            Some(sleep.map_err(|error| Trouble::NotBuilt(format!("sleep: {error}")))?)
        } else {
            None
        };
        if case.input["init"] != false {
            self.server.initialize(watched.as_ref().map(std::process::Child::id));
        }
        if Value::from(steps.clone()).to_string().contains("${SID}") {
            self.open(case);
        }
        for step in &steps {
            if step.get("kill_watched_pid").is_some() {
                let mut child = watched.take().expect("started above");
                child.kill().and_then(|()| child.wait()).map_err(|error| Trouble::NotBuilt(error.to_string()))?;
            } else {
                self.step(step)?;
            }
        }
        self.notes.last = Instant::now();
        if let Some(mut child) = watched {
            let _ = child.kill().and_then(|()| child.wait());
        }
        Ok(())
    }

    fn step(&mut self, step: &Value) -> Done {
        let mut vars = self.scene.vars();
        vars.set("SID", self.session.clone().unwrap_or_default());
        let text = |value: &Value| value.as_str().map(|text| vars.text(text)).unwrap_or_default();
        let (kind, value) = step.as_object().and_then(|step| step.iter().next()).expect("a step has a kind");
        let server = &mut self.server;
        match kind.as_str() {
            "send_raw" => server.raw(&text(value)),
            "send_body" => server.body(&text(value)),
            "send_framed" => match step["headers"].as_array() {
                Some(headers) => {
                    let body = vars.value(value).to_string();
                    let lines: String = headers.iter().map(|header| text(header) + "\r\n").collect();
                    server.raw(&format!("{}\r\n{body}", lines.replace("${LEN}", &body.len().to_string())));
                }
                None => server.body(&vars.value(value).to_string()),
            },
            "send_framed_batch" => {
                let first = value["id"].as_u64().unwrap_or(0);
                let body = |id: u64| {
                    let mut message = value.clone();
                    message["id"] = id.into();
                    let body = message.to_string();
                    format!("Content-Length: {}\r\n\r\n{body}", body.len())
                };
                self.notes.last = Instant::now();
                server.bytes(
                    (first..first + step["count"].as_u64().unwrap_or(1)).map(body).collect::<String>().as_bytes(),
                );
            }
            "wait_id" => {
                let fits = |heard: &Heard| heard.is_answer() && heard.message["id"] == *value;
                server.wait(Duration::from_secs(10), |heard| heard.iter().any(fits).then_some(()));
            }
            "signal" if value == "HUP" => server.signal(Signal::HUP),
            "pause_reading_ms" => server.pause_reading(Duration::from_millis(value.as_u64().unwrap_or(0))),
            other => return unknown("step", other),
        }
        Ok(())
    }
}

/// What the model says in a case.
fn script(case: &Case) -> Done<Vec<Value>> {
    let input = &case.input;
    let list = |key: &str| input[key].as_array().cloned().unwrap_or_default();
    Ok(match input["kind"].as_str().unwrap_or_default() {
        "tool" | "kill_at_syscall" => {
            let mut script = Vec::new();
            let mut before = json!([]);
            for call in list("calls") {
                if let Some(ops) = call.get("pause") {
                    before = ops.clone();
                    continue;
                }
                script.push(json!({ "reply": "calls", "calls": [call], "before": before.take() }));
            }
            script.push(json!({ "reply": "ok_text", "text": "FINAL_OK" }));
            script
        }
        "model" => {
            let script = list("script");
            model::check(&script)?;
            script
        }
        _ => Vec::new(),
    })
}
