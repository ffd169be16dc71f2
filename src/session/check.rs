//! Whether a model does what an agent needs, tried out: it answers, it streams, it calls tools, it reads enough.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use serde::Serialize;
use serde_json::json;

use crate::model::{Instructions, Message, ModelError, ModelEvent, ModelRequest, Part, Provider, ToolSpec};

/// A window below this holds the instructions and little else.
const SMALL_WINDOW: u64 = 16_384;
/// How long one probe may take.
const TIMEOUT: Duration = Duration::from_mins(1);

/// One thing that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was tried.
    pub check: &'static str,
    /// How it went.
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// How a check went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As it should.
    Good,
    /// Not as well as it could.
    Warning,
    /// It does not work.
    Bad,
}

impl Finding {
    /// Something that is as it should be.
    #[must_use]
    pub fn good(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Good, found: found.into(), advice: None }
    }

    /// Something that could be better, and how.
    #[must_use]
    pub fn warning(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Warning, found: found.into(), advice: Some(advice.into()) }
    }

    /// Something that does not work, and what to do.
    #[must_use]
    pub fn bad(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Bad, found: found.into(), advice: Some(advice.into()) }
    }
}

/// Tries the model out. Each finding is handed to `report` as soon as it is there: a slow model takes its time.
pub async fn check(provider: &Provider, mut report: impl FnMut(Finding)) {
    let text = probe(provider, "Answer with the single word: ready", Arc::new([])).await;
    report(match text {
        Ok(Heard { text, first, .. }) if !text.trim().is_empty() => {
            Finding::good("streaming", format!("first words after {} ms", first.as_millis()))
        }
        Ok(_) => Finding::warning("streaming", "an answer without text", "try another model"),
        Err(error) => return report(unreachable(&error)),
    });
    let called = probe(
        provider,
        "Call the tool report_ready with ready = true. Do not answer in text.",
        Arc::new([ready_tool()]),
    );
    let called = called.await;
    provider.learn().await;
    report(window(provider));
    report(match called {
        Ok(Heard { called: true, .. }) => Finding::good("tool calls", "the model calls tools"),
        Ok(_) => Finding::warning(
            "tool calls",
            "the model did not call the tool it was asked to",
            "choose a model made for tool use: without calls it can only talk",
        ),
        Err(error) => unreachable(&error),
    });
}

fn ready_tool() -> ToolSpec {
    ToolSpec {
        name: "report_ready".to_owned(),
        description: "Reports that the model can call tools.".to_owned(),
        parameters: json!({ "type": "object", "properties": { "ready": { "type": "boolean" } }, "required": ["ready"] }),
        streams: false,
    }
}

/// How much the model reads at once, and who says so.
fn window(provider: &Provider) -> Finding {
    let configured = provider.endpoint().context_window;
    match (provider.told_window(), configured) {
        (Some(told), Some(configured)) if configured > told => Finding::warning(
            "window",
            format!("the endpoint gives {told} tokens, the configuration promises {configured}"),
            "lower context-window, or start the local server with a larger context",
        ),
        (Some(told), _) if told < SMALL_WINDOW => Finding::warning(
            "window",
            format!("{told} tokens, as the endpoint says"),
            format!("too small for a project: {}", provider.larger_window()),
        ),
        (Some(told), _) => Finding::good("window", format!("{told} tokens, as the endpoint says")),
        (None, Some(configured)) => Finding::good("window", format!("{configured} tokens, as configured")),
        (None, None) => match provider.window() {
            Some(known) => Finding::good("window", format!("{known} tokens, as is generally known of the model")),
            None => Finding::warning(
                "window",
                "the endpoint does not say how much the model reads at once",
                format!(
                    "set context-window in [providers.{}.models.{:?}]",
                    provider.endpoint().provider,
                    provider.endpoint().model
                ),
            ),
        },
    }
}

/// A model that does not answer, and what to look at.
#[must_use]
pub fn unreachable(error: &ModelError) -> Finding {
    let advice = match error.status {
        Some(401 | 403) => "the key is not accepted: check its variable or api-key-command",
        Some(404) => "check base-url (it ends before /chat/completions) and the model's name",
        Some(_) => "the endpoint answers, but not as it should; see its words",
        None => "check the address, whether the server runs, the proxy (HTTPS_PROXY, NO_PROXY) and the CA file",
    };
    Finding::bad("reachability", error.message.clone(), advice)
}

/// What came of a probe.
#[derive(Debug, Default)]
struct Heard {
    text: String,
    called: bool,
    first: Duration,
}

async fn probe(provider: &Provider, question: &str, tools: Arc<[ToolSpec]>) -> Result<Heard, ModelError> {
    let instructions = Instructions {
        system: "You are being checked by `tandem doctor`.".to_owned(),
        tools,
        ..Instructions::default()
    };
    let message = Message::User { parts: vec![Part::Text { text: question.to_owned() }] };
    let request = ModelRequest {
        preamble: provider.preamble(&instructions),
        messages: vec![provider.encode(&message)],
        may_call: true,
    };
    let begun = Instant::now();
    let mut stream = provider.stream(request);
    let mut heard = Heard::default();
    let deadline = tokio::time::sleep(TIMEOUT);
    tokio::pin!(deadline);
    loop {
        let event = tokio::select! {
            event = stream.next() => event.transpose()?,
            () = &mut deadline => return Ok(heard),
        };
        match event {
            Some(ModelEvent::Text(text) | ModelEvent::Reasoning(text)) => {
                if heard.text.is_empty() {
                    heard.first = begun.elapsed();
                }
                heard.text.push_str(&text);
            }
            Some(ModelEvent::CallEnd { .. }) => heard.called = true,
            Some(_) => {}
            None => return Ok(heard),
        }
    }
}
