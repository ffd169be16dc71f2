//! The location of a model and how to reach it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use serde_json::{Map, Value};
use url::Url;

use crate::domain::{Api, EditorModels, Effort, Prices, Proxy, is_loopback};

/// An endpoint; built from the settings by `session`.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// The provider's name, for messages.
    pub provider: String,
    /// The API.
    pub api: Api,
    /// Ends before `/chat/completions`, `/responses` or `/messages`.
    pub base_url: String,
    /// Where the key comes from.
    pub key: Key,
    /// The model's name on the wire.
    pub model: String,
    /// Additional headers, such as `HTTP-Referer`.
    pub headers: Vec<(String, String)>,
    /// The reasoning effort, as the provider's own value or one of [`Effort`]; `None` for the best choice for the
    /// model.
    pub effort: Option<String>,
    /// The most tokens of one answer, if configured.
    pub max_tokens: Option<u64>,
    /// Fields merged into every request body (provider switches, temperature).
    pub body: Map<String, Value>,
    /// A PEM file of further certificate authorities.
    pub ca_file: Option<PathBuf>,
    /// The proxy; `None` takes the platform's, if it has one.
    pub proxy: Option<Proxy>,
    /// The context window in tokens, if configured.
    pub context_window: Option<u64>,
    /// Its prices, if configured.
    pub prices: Option<Prices>,
    /// The separate time limits.
    pub limits: TimeLimits,
    /// The editor, where the model is one of its own and not reached over HTTP.
    pub editor: Option<Arc<dyn EditorModels>>,
}

impl Endpoint {
    /// An endpoint without a key, with the default timeouts.
    #[must_use]
    pub fn new(provider: &str, api: Api, base_url: &str, model: &str) -> Self {
        Self {
            provider: provider.to_owned(),
            api,
            base_url: base_url.to_owned(),
            key: Key::None,
            model: model.to_owned(),
            headers: Vec::new(),
            effort: None,
            max_tokens: None,
            body: Map::new(),
            ca_file: None,
            proxy: None,
            context_window: None,
            prices: None,
            limits: TimeLimits::default(),
            editor: None,
        }
    }
}

impl Endpoint {
    /// The same with this effort in place of whatever is configured, by hand in the body too.
    #[must_use]
    pub fn with_effort(mut self, effort: Effort) -> Self {
        self.effort = Some(effort.name().to_owned());
        self.body
            .retain(|field, _| !Effort::FIELDS.contains(&field.as_str()));
        self
    }

    /// Whether it is on this machine.
    pub(super) fn is_local(&self) -> bool {
        Url::parse(&self.base_url).is_ok_and(|url| is_loopback(&url))
    }

    /// The same in another API.
    pub(super) fn in_dialect(&self, api: Api) -> Self {
        Self {
            api,
            ..self.clone()
        }
    }
}

/// The source of a key.
#[derive(Debug, Clone)]
pub enum Key {
    /// The endpoint needs no key.
    None,
    /// The key itself (already read from its variable by `config`).
    Value(SecretString),
    /// A program that prints it, run when the first request needs it.
    Command(Vec<String>),
}

/// Timeouts of one request.
#[derive(Debug, Clone, Copy)]
pub struct TimeLimits {
    /// Until the connection stands.
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
