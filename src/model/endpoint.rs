//! The location of a model and how to reach it.

use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;
use serde_json::{Map, Value};
use url::Url;

use super::{Api, Usage};
use crate::domain::{Effort, is_loopback};

/// An endpoint; built from the settings by `session`.
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

    /// The same in another dialect.
    pub(super) fn in_dialect(&self, api: Api) -> Self {
        Self {
            api,
            ..self.clone()
        }
    }
}

/// A proxy for an endpoint.
#[derive(Debug, Clone)]
pub struct Proxy {
    /// Its URL.
    pub url: String,
    /// The hosts reached directly, as in `NO_PROXY`.
    pub except: String,
}

/// US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prices {
    /// Tokens read.
    pub input: f64,
    /// Tokens read from the provider's cache.
    pub cached: f64,
    /// Tokens read and written into the cache.
    pub written: f64,
    /// Tokens written.
    pub output: f64,
}

impl Prices {
    /// The cost of these tokens. Cached ones are part of those read.
    pub(super) fn cost(&self, usage: &Usage) -> f64 {
        let cached = usage.cached.min(usage.input);
        let written = usage.written.min(usage.input - cached);
        millions(usage.input - cached - written) * self.input
            + millions(cached) * self.cached
            + millions(written) * self.written
            + millions(usage.output) * self.output
    }
}

#[expect(clippy::cast_precision_loss, reason = "nobody uses 2^52 tokens")]
fn millions(tokens: u64) -> f64 {
    tokens as f64 / 1e6
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(input: u64, cached: u64, output: u64, cost: f64) {
        let prices = Prices {
            input: 3.0,
            cached: 0.25,
            written: 4.0,
            output: 16.0,
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
    fn cached_tokens_are_billed_once_at_the_cached_price() {
        check(1_000_000, 0, 0, 3.0);
        check(1_000_000, 1_000_000, 0, 0.25);
        check(2_000_000, 1_000_000, 500_000, 3.0 + 0.25 + 8.0);
        check(0, 5, 0, 0.0);
        let prices = Prices {
            input: 3.0,
            cached: 0.25,
            written: 4.0,
            output: 16.0,
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
