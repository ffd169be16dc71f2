//! Detects the server's real context window from the token count it reports.
//!
//! Ollama and others silently drop the beginning of a prompt that is too long: the system prompt and the question are
//! gone, and the answer looks fine. Only the token count reveals it.

use super::Provider;
use super::host::Host;

/// Shorter requests prove nothing, in tokens.
const SHORT: u64 = 3_000;
/// A smaller window holds little more than the instructions, in tokens.
pub const SMALL_WINDOW: u64 = 16_384;

/// Why a server's model has no tools.
pub const NO_TOOLS: &str = "its server reports that its chat template has no tools";

impl Provider {
    /// Whether its server reports that the model cannot call tools.
    pub fn lacks_tools(&self) -> bool {
        let info = self.connection().learned.info();
        info.is_some_and(|info| info.calls == Some(false))
    }

    /// Compares what was sent with what the server reports to have read, in tokens. Returns a warning, once per session, if
    /// the window is so small that the beginning of the conversation was, or soon will be, cut off.
    pub fn check_window(&self, sent: u64, read: u64) -> Option<String> {
        let inner = self.connection();
        // Providers report a prompt that is too long; self-hosted servers may not.
        let trusted = !inner.endpoint.is_local() && inner.endpoint.host() != Host::Other;
        if !trusted && read >= LEAST && sent >= SHORT && read * 2 < sent {
            inner.learned.lock().cut = Some(read);
            let warning = format!(
                "{} read only {read} of about {sent} tokens: the beginning of the session was cut off, including the instructions. \
                 tandem continues with a window of {read} tokens",
                self.name()
            );
            return inner
                .learned
                .warn()
                .then(|| format!("{warning}; {}", self.larger_window()));
        }
        let own = inner.endpoint.context_window.is_none();
        let small = self.window().filter(|window| own && *window < SMALL_WINDOW);
        let small = small.map(|window| {
            format!(
                "{} has a context window of only {window} tokens, too small for agent work; {}",
                self.name(),
                self.larger_window()
            )
        });
        let toolless = self.lacks_tools().then(|| {
            format!(
                "{} cannot call tools: {NO_TOOLS}, so the model never learns that it can read and change files; choose a model that can",
                self.name()
            )
        });
        let warnings: Vec<_> = toolless.into_iter().chain(small).collect();
        (!warnings.is_empty() && inner.learned.warn()).then(|| warnings.join(". "))
    }

    /// Takes the window from a provider's message about a request that does not fit.
    pub fn note_overflow(&self, message: &str) {
        if let Some(window) = told(message) {
            self.connection().learned.lock().cut = Some(window);
        }
    }

    /// How this server is given a larger window.
    pub fn larger_window(&self) -> &'static str {
        match self.endpoint().provider.as_str() {
            "ollama" => {
                "start Ollama with a larger one: `OLLAMA_CONTEXT_LENGTH=64000 ollama serve`; if the model sets its own `num_ctx`, raise that"
            }
            "lmstudio" => "load the model in LM Studio with a context length of 64000",
            "llamacpp" => "start llama-server with `-c 65536`",
            "vllm" => "start vLLM with `--max-model-len 65536`",
            _ => {
                "start the server with a larger context (Ollama: `OLLAMA_CONTEXT_LENGTH=64000 ollama serve`)"
            }
        }
    }
}

/// The window in a provider's message. The largest number is what the request would take. Two or three of the others
/// may add up to it; the one left over is the window. If two are left over that exceed the largest, it is the largest.
fn told(message: &str) -> Option<u64> {
    let numbers = message.split(|c: char| !c.is_ascii_digit());
    let numbers = numbers.filter_map(|number| number.parse::<u64>().ok());
    let mut numbers: Vec<u64> = numbers.filter(|number| *number < 10_000_000).collect();
    numbers.sort_unstable_by(|one, other| other.cmp(one));
    numbers.dedup();
    let (largest, others) = numbers.split_first()?;
    let is_part = |number: u64| {
        let mut second = others.iter().chain([&0]);
        second.any(|second| {
            let third = largest.checked_sub(number + second);
            third.is_some_and(|third| third != number && others.contains(&third))
        })
    };
    let left = others.iter().copied();
    let left: Vec<u64> = left
        .filter(|number| *number >= LEAST_TOLD && !is_part(*number))
        .collect();
    match *left.as_slice() {
        [window] => Some(window),
        [one, other] if one + other > *largest => Some(*largest),
        _ => None,
    }
}

/// The smallest window that is believed: smaller numbers are statuses and the like.
const LEAST_TOLD: u64 = 1_024;

/// The smallest window that servers run with: one that reports less counts something else, such as what was not cached.
const LEAST: u64 = 512;
