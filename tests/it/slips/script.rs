//! The script of a case's model: answer by answer, as steps of a rehearsal.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use rehearsal::{Call, Reply, Request, Step};
use serde_json::{Value, json};

/// The answers to come.
#[derive(Default)]
pub struct Script {
    workspace: PathBuf,
    answers: VecDeque<Value>,
    rest: String,
    summary: Option<Value>,
    /// The number of requests so far.
    number: usize,
}

impl Script {
    /// An empty script about the files of this workspace.
    pub fn of(workspace: &Path) -> Self {
        Self {
            workspace: workspace.to_owned(),
            ..Self::default()
        }
    }

    /// Adds the script of a turn.
    pub fn prepare(&mut self, turn: &Value) {
        if turn["fresh"] == true {
            self.answers.clear();
        }
        let answers = turn["script"].as_array().into_iter().flatten();
        self.answers.extend(answers.cloned());
        let rest = turn["rest"].as_str().unwrap_or("All of it is done now.");
        rest.clone_into(&mut self.rest);
        self.summary = turn.get("summary").cloned();
    }

    pub fn reply(&mut self, request: &Request) -> Reply {
        let body = serde_json::from_slice(&request.body).expect("a request is JSON");
        self.number += 1;
        let answer = self.answer(&body);
        steps(&answer, self.number, request.body.len())
    }

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
        while let Some(answer) = self.answers.pop_front() {
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

/// An answer to the request with this number and this size in bytes.
fn steps(answer: &Value, number: usize, bytes: usize) -> Reply {
    if let Some(status) = answer["status"].as_u64() {
        let error = json!({ "message": answer["error"], "code": answer["code"], "type": "invalid_request_error" });
        return vec![Step::Status {
            status: u16::try_from(status).expect("a status"),
            body: json!({ "error": error }),
            headers: BTreeMap::new(),
        }];
    }
    if let Some(events) = answer["raw"].as_array() {
        let raw = |event: &Value| match event.as_str() {
            Some(event) => event.to_owned(),
            None => format!("data: {event}\n\n"),
        };
        return events
            .iter()
            .map(|event| Step::Raw { raw: raw(event) })
            .collect();
    }
    let mut steps = Reply::new();
    if let Some(reasoning) = answer["think"].as_str() {
        let reasoning = reasoning.to_owned();
        steps.push(Step::Reasoning { reasoning });
    }
    let said = &answer["say"];
    for delta in said.as_array().unwrap_or(&vec![said.clone()]) {
        if let Some(text) = delta.as_str().filter(|text| !text.is_empty()) {
            let text = text.to_owned();
            steps.push(Step::Text { text });
        }
    }
    for (index, call) in answer["calls"].as_array().into_iter().flatten().enumerate() {
        let call = Call {
            id: format!("call_{number}_{index}"),
            name: call[0].as_str().unwrap_or_default().to_owned(),
            arguments: call[1].as_str().unwrap_or_default().into(),
        };
        steps.push(Step::Call { call, fragments: 2 });
    }
    if let Some(finish) = answer["finish"].as_str() {
        let finish = finish.to_owned();
        steps.push(Step::Finish { finish });
    }
    let tokens = |input: Value| json!({ "prompt_tokens": input, "completion_tokens": 20 });
    let usage = match &answer["usage"] {
        Value::Array(usage) => {
            Some(json!({ "prompt_tokens": usage[0], "completion_tokens": usage[1] }))
        }
        Value::String(none) if none == "none" => Some(Value::Null),
        Value::Number(factor) => Some(tokens(scaled(bytes / 4, factor.as_f64().unwrap()).into())),
        _ => None,
    };
    steps.extend(usage.map(|usage| Step::Usage { usage }));
    steps
}

/// Token counts as a share of others.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a few thousand tokens"
)]
fn scaled(tokens: usize, factor: f64) -> u64 {
    (tokens as f64 * factor) as u64
}
