//! A model server that enforces the rules of many providers: the first path segment is the provider. A request that breaks
//! a rule is refused with that provider's status and error format, and recorded.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, LazyLock, Mutex};

use rehearsal::{Reply, Step};
use serde_json::{Value, json};
use tandem::model::Api;

use super::efforts;
use super::rows::Row;
use super::rules;
use super::voice::{Issued, Said, speak};
use crate::driver::World;

/// A request.
#[derive(Debug, Clone)]
pub struct Request {
    pub provider: String,
    pub api: Api,
    /// The header that keeps a session on one server.
    pub conversation: Option<String>,
    pub version: Option<String>,
    pub raw: String,
    pub body: Value,
}

impl Request {
    pub fn model(&self) -> &str {
        self.body["model"].as_str().unwrap_or_default()
    }

    pub fn row(&self) -> (String, String) {
        (self.provider.clone(), self.model().to_owned())
    }

    /// Everything before the first message.
    pub fn opening(&self) -> &str {
        let begin = match self.api {
            Api::Chat => "{\"role\":\"user\"",
            Api::Responses => "\"input\":[",
            Api::Messages => "\"messages\":[",
        };
        self.raw.split(begin).next().unwrap()
    }

    /// Whether it must be answered in words.
    pub fn is_summary(&self) -> bool {
        let choice = &self.body["tool_choice"];
        *choice == "none"
            || choice["type"] == "none"
            || self.body["tools"].as_array().is_none_or(Vec::is_empty)
    }
}

/// The server's state for a session.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    pub issued: Vec<Issued>,
    /// The previous request, unless the session was rewritten since.
    pub before: Option<Request>,
    /// The beginning of a row's first request.
    pub openings: BTreeMap<(String, String), String>,
    pub key: Option<Value>,
    /// Whether a temperature and a limit are configured.
    pub is_chosen: bool,
    /// The chosen effort.
    pub effort: Option<&'static str>,
    /// Whether no model accepts an effort.
    pub refuses_efforts: bool,
    pub conversation: Option<String>,
    /// The answer that was just paused.
    pub paused: Option<Value>,
}

/// The model's behavior on the next request.
#[derive(Debug, Clone)]
pub enum Act {
    Say(Said),
    /// It stops midway, and expects the same request again with its partial answer.
    Pause(Said),
    /// It sends only the first half of this, and the connection ends.
    Break(Said),
    /// The session is too long.
    Overflow,
}

#[derive(Default)]
struct Stage {
    script: VecDeque<Act>,
    memory: Memory,
    requests: Vec<(Request, Memory)>,
    refusals: Vec<String>,
    /// How many requests there were.
    count: usize,
}

/// A world's model that enforces the rules.
pub struct Strict {
    base_url: String,
    stage: Arc<Mutex<Stage>>,
}

impl Strict {
    /// Makes the world's model enforce the rules.
    pub fn of(world: &World) -> Self {
        let stage = Arc::<Mutex<Stage>>::default();
        let host = Arc::clone(&stage);
        let model = world.rehearsal();
        model.answer_with(move |request| host.lock().unwrap().reply(request));
        let base_url = world.model.base_url().to_owned();
        Self { base_url, stage }
    }

    pub fn base_url(&self, provider: &str) -> String {
        let host = self.base_url.strip_suffix("/v1").unwrap();
        format!("{host}/{provider}/v1")
    }

    /// The session has a temperature and a limit.
    pub fn choose(&self) {
        self.stage.lock().unwrap().memory.is_chosen = true;
    }

    /// From now on, the session has this effort, or the `default` one: tools, system prompt and settings start afresh.
    pub fn choose_effort(&self, effort: &'static str) {
        let mut stage = self.stage.lock().unwrap();
        stage.memory.effort = Some(effort).filter(|effort| *effort != "default");
        (stage.memory.before, stage.memory.openings) = (None, BTreeMap::new());
        (stage.requests, stage.refusals, stage.script) = Default::default();
    }

    /// From now on, no model accepts an effort.
    pub fn refuse_efforts(&self) {
        self.stage.lock().unwrap().memory.refuses_efforts = true;
    }

    /// A new session begins.
    pub fn forget(&self) {
        *self.stage.lock().unwrap() = Stage::default();
    }

    pub fn add(&self, acts: impl IntoIterator<Item = Act>) {
        self.stage.lock().unwrap().script.extend(acts);
    }

    /// The requests so far, each with the server's state at that time.
    pub fn requests(&self) -> Vec<(Request, Memory)> {
        self.stage.lock().unwrap().requests.clone()
    }

    /// The refusals so far, with reasons.
    pub fn refusals(&self) -> Vec<String> {
        self.stage.lock().unwrap().refusals.clone()
    }
}

impl Stage {
    fn reply(&mut self, request: &rehearsal::Request) -> Reply {
        let header = |name| request.header(name).map(str::to_owned);
        let raw = String::from_utf8(request.body.to_vec()).expect("a body is a text");
        let request = Request {
            provider: request.path().split('/').nth(1).unwrap().to_owned(),
            api: match request.path().rsplit('/').next() {
                Some("responses") => Api::Responses,
                Some("messages") => Api::Messages,
                _ => Api::Chat,
            },
            conversation: header("x-grok-conv-id"),
            version: header("anthropic-version"),
            body: serde_json::from_str(&raw).expect("a body is JSON"),
            raw,
        };
        vec![match self.answer(&request) {
            Ok(raw) => Step::Raw { raw },
            Err((status, body)) => Step::Status {
                status,
                body,
                headers: BTreeMap::new(),
            },
        }]
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each kind of reply")]
    fn answer(&mut self, request: &Request) -> Result<String, (u16, Value)> {
        let broken = rules::broken(request, &self.memory);
        self.requests.push((request.clone(), self.memory.clone()));
        self.count += 1;
        if let Some(first) = broken.first() {
            self.refusals.push(format!(
                "{}/{}: {}",
                request.provider,
                request.model(),
                broken.join("; ")
            ));
            return Err(refusal(&request.provider, first));
        }
        let row = known(request).expect("a known row");
        self.memory
            .openings
            .entry(request.row())
            .or_insert_with(|| request.opening().to_owned());
        self.memory.key = self
            .memory
            .key
            .take()
            .or_else(|| request.body.get("prompt_cache_key").cloned());
        self.memory.conversation = self
            .memory
            .conversation
            .take()
            .or_else(|| request.conversation.clone());
        self.memory.before = Some(request.clone());
        self.memory.paused = None;
        let (number, tokens) = (self.count, request.raw.len() / 4);
        if request.is_summary() {
            self.forget();
            return Ok(speak(
                row,
                &Said {
                    text: "THE-SUMMARY",
                    ..Said::default()
                },
                number,
                tokens,
            )
            .0);
        }
        match self
            .script
            .pop_front()
            .expect("an answer is left in the script")
        {
            Act::Overflow => {
                self.forget();
                Err(overflow(row.0))
            }
            Act::Say(said) => {
                let (events, issued) = speak(row, &said, number, tokens);
                self.memory.issued.push(issued);
                Ok(events)
            }
            Act::Pause(said) => {
                let (events, issued) = speak(
                    row,
                    &Said {
                        pauses: true,
                        ..said
                    },
                    number,
                    tokens,
                );
                self.memory.paused = Some(issued.exact.clone());
                self.memory.issued.push(issued);
                Ok(events)
            }
            Act::Break(said) => {
                let (events, issued) = speak(row, &said, number, tokens);
                // Only values that were received can be returned.
                self.memory.issued.push(Issued {
                    exact: Value::Null,
                    ..issued
                });
                let half = events
                    .match_indices("\n\n")
                    .map(|(at, _)| at + 2)
                    .find(|at| *at * 2 > events.len());
                Ok(events.split_at(half.unwrap_or(events.len())).0.to_owned())
            }
        }
    }

    /// The session is shortened: nothing has to be returned, but secret values stay secret.
    fn forget(&mut self) {
        self.memory.before = None;
        for issued in &mut self.memory.issued {
            issued.exact = Value::Null;
        }
    }
}

/// The row of a request's model, if there is one.
pub fn known(request: &Request) -> Option<Row> {
    static ROWS: LazyLock<Vec<Row>> = LazyLock::new(efforts::rows);
    let mut rows = ROWS.iter().copied();
    rows.find(|row| *row == (&*request.provider, request.model()))
}

/// A refusal in a provider's format.
fn refusal(provider: &str, says: &str) -> (u16, Value) {
    let kind = "invalid_request_error";
    match provider {
        "anthropic" => (
            400,
            json!({ "type": "error", "error": { "type": kind, "message": says }, "request_id": "req_011" }),
        ),
        "mistral" => {
            let detail = json!([{ "type": "extra_forbidden", "loc": ["body"], "msg": says }]);
            (
                422,
                json!({ "object": "error", "message": { "detail": detail }, "type": kind, "param": null, "code": null }),
            )
        }
        "xai" => (
            400,
            json!({ "code": "Client specified an invalid argument", "error": says }),
        ),
        "gemini" | "vertex" => (
            400,
            json!([{ "error": { "code": 400, "message": says, "status": "INVALID_ARGUMENT" } }]),
        ),
        "cerebras" => (
            400,
            json!({ "message": says, "type": kind, "param": "messages", "code": "wrong_api_format" }),
        ),
        "openrouter" => {
            let raw = json!({ "error": { "message": says } }).to_string();
            let metadata = json!({ "raw": raw, "provider_name": "Upstream" });
            (
                400,
                json!({ "error": { "message": "Provider returned error", "code": 400, "metadata": metadata } }),
            )
        }
        "vllm" => (
            400,
            json!({ "object": "error", "message": says, "type": "BadRequestError", "param": null, "code": 400 }),
        ),
        "ollama" | "lmstudio" => (400, json!({ "error": says })),
        _ => (
            400,
            json!({ "error": { "message": says, "type": kind, "param": null, "code": kind } }),
        ),
    }
}

/// A provider's error for a session that is too long.
fn overflow(provider: &str) -> (u16, Value) {
    let (status, says) = match provider {
        "openai" | "azure" => (
            400,
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
        ),
        "anthropic" => (400, "prompt is too long: 210000 tokens > 200000 maximum"),
        "gemini" | "vertex" => (
            400,
            "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
        ),
        "moonshot" => (
            400,
            "Invalid request: Your request exceeded model token limit: 262144",
        ),
        "mistral" => (
            400,
            "Prompt contains 140000 tokens and 0 draft tokens, too large for model with 131072 maximum context length",
        ),
        "xai" => (
            400,
            "This model's maximum prompt length is 256000 but the request contains 300000 tokens.",
        ),
        "groq" => (
            400,
            "Please reduce the length of the messages or completion.",
        ),
        "cerebras" => (
            400,
            "Please reduce the length of the messages or completion. Current length is 140000 while limit is 131072",
        ),
        "together" => (
            422,
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 262145. Given: 270000 `inputs` tokens and 4096 `max_new_tokens`",
        ),
        "fireworks" => (
            400,
            "The prompt is too long: 270000, model maximum context length: 262143",
        ),
        "github" => (
            413,
            "Request body too large for gpt-4.1 model. Max size: 8000 tokens.",
        ),
        "huggingface" => (
            422,
            "Input validation error: `inputs` must have less than 131072 tokens. Given: 140000",
        ),
        "bedrock" => (400, "Input is too long for requested model."),
        "zai" => (400, "Prompt exceeds max length"),
        "llamacpp" => (
            400,
            "the request exceeds the available context size (8192 tokens), try increasing it",
        ),
        "lmstudio" => (
            400,
            "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input",
        ),
        "ollama" => (400, "input length exceeds the context length"),
        _ => (
            400,
            "This model's maximum context length is 131072 tokens. However, you requested 140000 tokens. Please reduce the length of the messages.",
        ),
    };
    (status, refusal(provider, says).1)
}
