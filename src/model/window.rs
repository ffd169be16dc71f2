//! The window a server really gives, seen from what it says it has read.
//!
//! Ollama and others cut the beginning of a prompt that is too long without a word: the system prompt and the question are
//! gone, and the answer looks fine. Only the count of tokens gives it away.

use super::Provider;
use super::host::Host;

/// Requests below this are too short to tell, in tokens.
const SHORT: u64 = 3_000;
/// A window below this holds the instructions and little else.
const SMALL: u64 = 16_384;

impl Provider {
    /// Compares what was sent with what the server says it has read, in tokens. A warning when the window is so small that
    /// the beginning of the conversation was, or soon will be, left out; once a session.
    #[must_use]
    pub fn check_window(&self, sent: u64, read: u64) -> Option<String> {
        check(self, sent, read)
    }

    /// How this server is given a larger window.
    #[must_use]
    pub fn larger_window(&self) -> &'static str {
        remedy(self)
    }
}

fn check(provider: &Provider, sent: u64, read: u64) -> Option<String> {
    let inner = provider.connection();
    // Providers say so when a prompt is too long; servers that people run may not.
    let trusted = !inner.endpoint.is_local() && inner.endpoint.host() != Host::Other;
    if !trusted && read > 0 && sent >= SHORT && read * 2 < sent {
        inner.learned.cut_at(read);
        let warning = format!(
            "{} read {read} of about {sent} tokens: the beginning of the conversation was cut off, the instructions with it. \
             tandem goes on with a window of {read} tokens",
            provider.name()
        );
        return inner.learned.warn().then(|| format!("{warning}; {}", remedy(provider)));
    }
    let window = provider.window().filter(|window| *window < SMALL)?;
    let own = inner.endpoint.context_window.is_none();
    (own && inner.learned.warn()).then(|| {
        format!("{} reads only {window} tokens at once, too few for a project; {}", provider.name(), remedy(provider))
    })
}

/// How each server is given a larger window.
fn remedy(provider: &Provider) -> &'static str {
    match provider.endpoint().provider.as_str() {
        "ollama" => "start Ollama with a larger one: `OLLAMA_CONTEXT_LENGTH=64000 ollama serve`",
        "lmstudio" => "load the model in LM Studio with a context length of 64000",
        "llamacpp" => "start llama-server with `-c 65536`",
        "vllm" => "start vLLM with `--max-model-len 65536`",
        _ => "start the server with a larger context (Ollama: `OLLAMA_CONTEXT_LENGTH=64000 ollama serve`)",
    }
}
