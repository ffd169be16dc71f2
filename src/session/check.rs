//! Checks whether a model can do what an agent needs: answer, stream, call tools, and read enough.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use serde_json::json;

use crate::domain::Finding;
use crate::model::{Failure, Instructions, ModelEvent, NO_TOOLS, Provider, SMALL_WINDOW, ToolSpec};

/// Timeout for one probe.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Checks the model. Each finding is passed to `report` as soon as it is available, because a slow model takes a while.
pub async fn check(provider: &Provider, mut report: impl FnMut(Finding)) {
    let text = probe(provider, "Answer with the single word: ready", Arc::new([])).await;
    report(match text {
        Ok(Probe { text, first, .. }) if !text.trim().is_empty() => Finding::good(
            "streaming",
            format!("first token after {} ms", first.as_millis()),
        ),
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
        Ok(Probe { called: true, .. }) => Finding::good("tool calls", "the model calls tools"),
        Ok(_) if provider.lacks_tools() => Finding::warning(
            "tool calls",
            NO_TOOLS,
            "choose a model that supports tool calling, or start llama-server with `--chat-template-file`",
        ),
        Ok(Probe { text, .. }) if text.contains("\"report_ready\"") => Finding::warning(
            "tool calls",
            "the model writes its calls as text; tandem runs those that are unambiguous",
            "choose a model that supports tool calling",
        ),
        Ok(_) => Finding::warning(
            "tool calls",
            "the model did not call the tool it was asked to",
            "choose a model that supports tool calling",
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

/// The context window, and where the figure comes from.
fn window(provider: &Provider) -> Finding {
    let configured = provider.endpoint().context_window;
    match (provider.reported_window(), configured) {
        (Some(reported), Some(configured)) if configured > reported => Finding::warning(
            "window",
            format!(
                "the endpoint offers {reported} tokens, but the configuration says {configured}"
            ),
            "lower context-window, or start the local server with a larger context",
        ),
        (Some(reported), _) if reported < SMALL_WINDOW => Finding::warning(
            "window",
            format!("{reported} tokens, reported by the endpoint"),
            format!("too small for agent work: {}", provider.larger_window()),
        ),
        (Some(reported), _) => Finding::good(
            "window",
            format!("{reported} tokens, reported by the endpoint"),
        ),
        (None, Some(configured)) => {
            Finding::good("window", format!("{configured} tokens, configured"))
        }
        (None, None) => match provider.window() {
            Some(known) => Finding::good(
                "window",
                format!("{known} tokens, built-in value for this model"),
            ),
            None => Finding::warning(
                "window",
                "the endpoint does not report the model's context window",
                format!(
                    "set context-window in [providers.{}.models.{:?}]",
                    provider.endpoint().provider,
                    provider.endpoint().model
                ),
            ),
        },
    }
}

/// Advice for a model that does not answer.
pub fn unreachable(error: &Failure) -> Finding {
    let advice = match error.status {
        Some(401 | 403) => {
            "the key is not accepted: check it, or the variable or api-key-command it comes from"
        }
        Some(404) => "check base-url (it ends before /chat/completions) and the model's name",
        Some(_) => "the endpoint answered with an error; see its message",
        None => {
            "check the address, whether the server runs, the proxy (HTTPS_PROXY, NO_PROXY) and the CA file"
        }
    };
    Finding::bad("reachability", error.message.clone(), advice)
}

/// The result of a probe.
#[derive(Debug, Default)]
struct Probe {
    text: String,
    called: bool,
    first: Duration,
}

async fn probe(
    provider: &Provider,
    question: &str,
    tools: Arc<[ToolSpec]>,
) -> Result<Probe, Failure> {
    let instructions = Instructions {
        system: "You are being checked by `tandem doctor`.".to_owned(),
        tools,
        ..Instructions::default()
    };
    let begun = Instant::now();
    let mut stream = provider.ask(&instructions, question.to_owned());
    let mut result = Probe::default();
    let deadline = tokio::time::sleep(TIMEOUT);
    tokio::pin!(deadline);
    loop {
        let event = tokio::select! {
            event = stream.next() => event.transpose()?,
            () = &mut deadline => return Ok(result),
        };
        match event {
            Some(ModelEvent::Text(text) | ModelEvent::Reasoning(text)) => {
                if result.text.is_empty() {
                    result.first = begun.elapsed();
                }
                result.text.push_str(&text);
            }
            Some(ModelEvent::CallEnd { .. }) => result.called = true,
            Some(_) => {}
            None => return Ok(result),
        }
    }
}
