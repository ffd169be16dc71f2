//! The model of a case: an HTTP server on loopback that says what the script has, and remembers what it was sent.

use std::collections::VecDeque;
use std::io::Write as _;
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::speech::{Dialect, speak};
use crate::loopback::{self, document};

/// The server. Its threads end with the process.
pub struct Endpoint {
    port: u16,
    stage: Arc<Mutex<Stage>>,
}

/// What is to be said, and what came.
struct Stage {
    workspace: PathBuf,
    script: VecDeque<Value>,
    rest: String,
    summary: Option<Value>,
    /// The requests' bodies.
    requests: Vec<Value>,
}

impl Endpoint {
    pub fn start(workspace: PathBuf) -> Self {
        let (script, rest, summary, requests) = (VecDeque::new(), String::new(), None, Vec::new());
        let stage = Arc::new(Mutex::new(Stage {
            workspace,
            script,
            rest,
            summary,
            requests,
        }));
        let host = Arc::clone(&stage);
        let port = loopback::listen_to_posts(move |request, stream| serve(&request, stream, &host));
        Self { port, stage }
    }

    pub fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// Adds what a turn's script says.
    pub fn prepare(&self, turn: &Value) {
        let mut stage = self.stage.lock().unwrap();
        if turn["fresh"] == true {
            stage.script.clear();
        }
        stage
            .script
            .extend(turn["script"].as_array().into_iter().flatten().cloned());
        turn["rest"]
            .as_str()
            .unwrap_or("All of it is done now.")
            .clone_into(&mut stage.rest);
        stage.summary = turn.get("summary").cloned();
    }

    pub fn requests(&self) -> Vec<Value> {
        self.stage.lock().unwrap().requests.clone()
    }
}

impl Stage {
    fn answer(&mut self, request: &Value) -> Value {
        let for_summary = asks_for_summary(request);
        if let Some(summary) = self.summary.as_ref().filter(|_| for_summary) {
            return json!({ "say": summary });
        }
        let offers_calls = request["tools"]
            .as_array()
            .is_some_and(|tools| !tools.is_empty())
            && !["none", "None"].iter().any(|none| {
                request["tool_choice"] == *none || request["tool_choice"]["type"] == *none
            });
        while let Some(answer) = self.script.pop_front() {
            let is_there = answer["if_missing"]
                .as_str()
                .is_some_and(|file| self.workspace.join(file).exists());
            let is_late = answer["when"] == "summary" && !(for_summary && offers_calls);
            if !is_there && !is_late {
                return answer;
            }
        }
        json!({ "say": self.rest })
    }
}

/// Whether the last message asks for a summary of the conversation.
fn asks_for_summary(request: &Value) -> bool {
    let messages = if request["input"].is_array() {
        &request["input"]
    } else {
        &request["messages"]
    };
    let last = messages.as_array().and_then(|messages| messages.last());
    last.is_some_and(|last| {
        last["role"] == "user" && last.to_string().to_lowercase().contains("summar")
    })
}

fn serve(
    request: &loopback::Request,
    mut stream: &TcpStream,
    stage: &Mutex<Stage>,
) -> std::io::Result<()> {
    let body: Value = serde_json::from_str(&request.body).expect("a request is JSON");
    let (answer, number) = {
        let mut stage = stage.lock().unwrap();
        let answer = stage.answer(&body);
        stage.requests.push(body);
        (answer, stage.requests.len())
    };
    if let Some(status) = answer["status"].as_u64() {
        let error = json!({ "message": answer["error"], "code": answer["code"], "type": "invalid_request_error" });
        return document(
            stream,
            u16::try_from(status).expect("a status"),
            &json!({ "error": error }),
        );
    }
    let length = u64::try_from(request.body.len()).unwrap();
    let events = speak(Dialect::at(&request.path), &answer, number, length);
    stream.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n",
    )?;
    for event in events.iter().map(String::as_str).chain([""]) {
        stream.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes())?;
    }
    Ok(())
}
