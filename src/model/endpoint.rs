//! Where a model is and how it is reached.

use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;
use serde_json::{Map, Value};

use super::Api;

/// Where and how to reach a model; built from the settings by `session`.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// The provider's name, for messages.
    pub provider: String,
    /// The dialect.
    pub api: Api,
    /// Ends before `/chat/completions`, `/responses` or `/messages`.
    pub base_url: String,
    /// Where the key comes from.
    pub key: Key,
    /// The model's name on the wire.
    pub model: String,
    /// More headers, such as `HTTP-Referer`.
    pub headers: Vec<(String, String)>,
    /// Fields merged into every request body (provider switches, reasoning effort, temperature, max tokens).
    pub body: Map<String, Value>,
    /// A PEM file of further certificate authorities.
    pub ca_file: Option<PathBuf>,
    /// The model's window in tokens, where it is configured.
    pub context_window: Option<u64>,
    /// The separate time limits.
    pub limits: TimeLimits,
}

impl Endpoint {
    /// An endpoint that needs no key, with the usual time limits and nothing added to its requests.
    #[must_use]
    pub fn new(provider: &str, api: Api, base_url: &str, model: &str) -> Self {
        Self {
            provider: provider.to_owned(),
            api,
            base_url: base_url.to_owned(),
            key: Key::None,
            model: model.to_owned(),
            headers: Vec::new(),
            body: Map::new(),
            ca_file: None,
            context_window: None,
            limits: TimeLimits::default(),
        }
    }
}

/// Where a key comes from.
#[derive(Debug, Clone)]
pub enum Key {
    /// The endpoint needs none.
    None,
    /// The key itself (already read from its variable by `config`).
    Value(SecretString),
    /// A program that prints it, run when the first request needs it.
    Command(Vec<String>),
}

/// Time limits of one request.
#[derive(Debug, Clone, Copy)]
pub struct TimeLimits {
    /// Until the connection stands.
    pub connect: Duration,
    /// Until the first byte of the answer; `None` waits for ever (local models prefill for minutes).
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
