//! An endpoint as configured, for whatever talks to it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use url::Url;

use super::{EditorModels, Effort, Usage, is_local};

/// A model and everything needed to reach it.
#[derive(Debug, Clone, Default)]
pub struct Endpoint {
    /// The provider's name.
    pub provider: String,
    /// The API.
    pub api: Api,
    /// Ends before `/chat/completions`, `/responses` or `/messages`.
    pub base_url: String,
    /// Where the key comes from.
    pub key: Key,
    /// The model's name on the wire.
    pub model: String,
    /// Additional HTTP headers, such as `HTTP-Referer`.
    pub headers: BTreeMap<String, String>,
    /// The reasoning effort, as the provider's own value or one of [`Effort`]; `None` for the best choice for the
    /// model.
    pub effort: Option<String>,
    /// The most tokens of one answer, if configured.
    pub max_tokens: Option<u64>,
    /// Fields merged into every request body (provider switches, temperature).
    pub body: Map<String, Value>,
    /// A PEM file of further certificate authorities.
    pub ca_file: Option<PathBuf>,
    /// The proxy from the environment; `None` takes the platform's, if it has one.
    pub proxy: Option<Proxy>,
    /// The context window in tokens, if configured.
    pub context_window: Option<u64>,
    /// Its prices, if configured.
    pub prices: Option<Prices>,
    /// The separate time limits.
    pub limits: TimeLimits,
    /// The editor, if it provides the model and no HTTP is involved.
    pub editor: Option<Arc<dyn EditorModels>>,
}

impl Endpoint {
    /// An endpoint without a key, with the default timeouts.
    pub fn new(provider: &str, api: Api, base_url: &str, model: &str) -> Self {
        Self {
            provider: provider.to_owned(),
            api,
            base_url: base_url.to_owned(),
            model: model.to_owned(),
            ..Self::default()
        }
    }

    /// The same with this effort instead of the configured one, even if the body sets it by hand.
    #[must_use]
    pub fn with_effort(mut self, effort: Effort) -> Self {
        self.effort = Some(effort.name().to_owned());
        self.body
            .retain(|field, _| !Effort::FIELDS.contains(&field.as_str()));
        self
    }

    /// `provider/model`, as the configuration names it.
    pub fn name(&self) -> String {
        format!("{}/{}", self.provider, self.model)
    }

    /// The base URL for people, without a password.
    pub fn address(&self) -> String {
        without_password(&self.base_url)
    }

    /// Whether it is on this machine.
    pub fn is_local(&self) -> bool {
        is_local(&self.base_url)
    }

    /// Whether requests stay on this machine, without TLS.
    pub fn is_plain_loopback(&self) -> bool {
        self.base_url.starts_with("http://") && self.is_local()
    }
}

/// The source of a key.
#[derive(Debug, Clone, Default)]
pub enum Key {
    /// The endpoint needs no key.
    #[default]
    None,
    /// The key itself.
    Value(SecretString),
    /// A variable that is set.
    Variable {
        /// Its name.
        name: String,
        /// The key.
        value: SecretString,
    },
    /// A program that prints it, run when the first request needs it.
    Command(Vec<String>),
    /// A variable that is not set although the endpoint needs a key: no request is sent.
    Missing {
        /// Its name.
        name: String,
    },
}

/// The origin, for people.
impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => formatter.write_str("no key"),
            Self::Value(_) => formatter.write_str("given"),
            Self::Variable { name, .. } => write!(formatter, "environment variable {name}"),
            Self::Command(words) => write!(formatter, "output of `{}`", words.join(" ")),
            Self::Missing { name } => {
                write!(formatter, "environment variable {name}, which is not set")
            }
        }
    }
}

/// Timeouts of one request.
#[derive(Debug, Clone, Copy)]
pub struct TimeLimits {
    /// Until the connection is established.
    pub connect: Duration,
    /// For the first byte of the answer; `None` for no limit (local models prefill for minutes).
    pub first_byte: Option<Duration>,
    /// Between two reads.
    pub between: Duration,
}

impl Default for TimeLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Some(Duration::from_mins(5)),
            between: Duration::from_secs(90),
        }
    }
}

/// The APIs of model endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Api {
    /// OpenAI chat completions and compatible APIs.
    #[default]
    Chat,
    /// OpenAI responses.
    Responses,
    /// Anthropic messages.
    Messages,
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Messages => "messages",
        })
    }
}

/// The APIs that fill in the middle of a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CompletionApi {
    /// llama.cpp's `/infill`.
    Infill,
    /// Ollama's `/api/generate` with a suffix.
    Ollama,
    /// Mistral's `/fim/completions`.
    Mistral,
    /// `DeepSeek`'s `/beta/completions` with a suffix.
    Deepseek,
    /// OpenAI-compatible `/completions`: with the model's own fill-in-the-middle tokens if its name tells them, else with
    /// a suffix.
    Completions,
    /// A chat model that is shown the text around the cursor.
    #[default]
    Chat,
}

/// The prompts that models of the next edit were trained with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EditFormat {
    /// Sweep's, of 0.5B and 1.5B.
    Sweep,
    /// Zed's Zeta.
    Zeta,
    /// Zed's Zeta 2.
    #[serde(rename = "zeta-2")]
    Zeta2,
    /// Zed's Zeta 2.1.
    #[serde(rename = "zeta-2.1")]
    Zeta21,
}

/// US dollars per million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Prices {
    /// Input tokens.
    pub input: f64,
    /// Input tokens read from the provider's cache; defaults to `input`.
    pub cached: Option<f64>,
    /// Input tokens written to the provider's cache; defaults to `input`.
    pub cache_write: Option<f64>,
    /// Output tokens.
    pub output: f64,
    /// Where long requests cost more.
    #[serde(skip)]
    pub long: Option<LongRequests>,
}

/// What a request costs above a number of input tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LongRequests {
    /// The largest number of input tokens at the usual price.
    pub beyond: u64,
    /// How many times the usual price all of its input costs.
    pub input: f64,
    /// The same for its output.
    pub output: f64,
}

impl Prices {
    /// The cost of these tokens. Cached ones are part of those read.
    pub fn cost(&self, usage: &Usage) -> f64 {
        let cached = usage.cached.min(usage.input);
        let written = usage.written.min(usage.input - cached);
        let long = self.long.filter(|long| usage.input > long.beyond);
        let (more_input, more_output) = long.map_or((1.0, 1.0), |long| (long.input, long.output));
        let input = millions(usage.input - cached - written) * self.input
            + millions(cached) * self.cached.unwrap_or(self.input)
            + millions(written) * self.cache_write.unwrap_or(self.input);
        input * more_input + millions(usage.output) * self.output * more_output
    }
}

#[expect(clippy::cast_precision_loss, reason = "nobody uses 2^52 tokens")]
fn millions(tokens: u64) -> f64 {
    tokens as f64 / 1e6
}

/// A proxy from the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    /// The variable that names it.
    pub variable: &'static str,
    /// Its URL.
    pub url: String,
    /// The hosts reached directly, as in `NO_PROXY`.
    pub except: String,
}

/// Without the password.
impl fmt::Display for Proxy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} ({}",
            without_password(&self.url),
            self.variable
        )?;
        if !self.except.is_empty() {
            write!(formatter, ", but not for {}", self.except)?;
        }
        formatter.write_str(")")
    }
}

/// A URL without its password, for display; any other text unchanged.
pub fn without_password(text: &str) -> String {
    match Url::parse(text) {
        Ok(mut url) if url.password().is_some() => url
            .set_password(Some("***"))
            .map_or_else(|()| "***".into(), |()| url.into()),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(input: u64, cached: u64, output: u64, cost: f64) {
        let prices = Prices {
            input: 3.0,
            cached: Some(0.25),
            cache_write: Some(4.0),
            output: 16.0,
            long: Some(LongRequests {
                beyond: 5_000_000,
                input: 2.0,
                output: 1.5,
            }),
        };
        let usage = Usage {
            input,
            output,
            cached,
            ..Usage::default()
        };
        assert!(
            (prices.cost(&usage) - cost).abs() < 1e-12,
            "{usage:?} cost {}",
            prices.cost(&usage)
        );
    }

    #[test]
    fn all_tokens_of_a_long_request_cost_more() {
        check(5_000_000, 0, 500_000, 15.0 + 8.0);
        check(
            6_000_000,
            1_000_000,
            500_000,
            (15.0 + 0.25) * 2.0 + 8.0 * 1.5,
        );
    }

    #[test]
    fn cached_tokens_are_billed_once_at_the_cached_price() {
        check(1_000_000, 0, 0, 3.0);
        check(1_000_000, 1_000_000, 0, 0.25);
        check(2_000_000, 1_000_000, 500_000, 3.0 + 0.25 + 8.0);
        check(0, 5, 0, 0.0);
        let prices = Prices {
            input: 3.0,
            cached: Some(0.25),
            cache_write: Some(4.0),
            output: 16.0,
            long: None,
        };
        let usage = Usage {
            input: 3_000_000,
            cached: 1_000_000,
            written: 1_000_000,
            ..Usage::default()
        };
        assert!((prices.cost(&usage) - 7.25).abs() < 1e-12);
    }
}
