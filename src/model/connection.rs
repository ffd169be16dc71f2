//! What a provider is made of: the endpoint, the transport, and what the server taught.

use std::sync::Arc;

use super::http::Http;
use super::learned::Learned;
use super::{Endpoint, ModelInfo, known};
use crate::domain::Prices;

/// A model behind an endpoint, as its providers share it.
#[derive(Debug, Clone)]
pub(super) struct Connection {
    pub endpoint: Endpoint,
    pub http: Arc<Http>,
    pub learned: Arc<Learned>,
}

impl Connection {
    /// The model's prices: configured, reported by the endpoint, or built-in.
    pub fn prices(&self) -> Option<Prices> {
        if self.endpoint.prices.is_some() {
            return self.endpoint.prices;
        }
        let reported = self.learned.info().and_then(|info| info.prices);
        let mut prices = reported.or_else(|| self.known()?.prices)?;
        if self.endpoint.caches_for_an_hour() {
            // Model lists and the built-in table have the price of the five-minute cache.
            prices.cache_write = Some(2.0 * prices.input);
        }
        Some(prices)
    }

    /// Built-in values for the model. A local server uses another window, and is free.
    pub fn known(&self) -> Option<ModelInfo> {
        if self.endpoint.is_own_server() {
            None
        } else {
            known::find(&self.endpoint.model)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::model::{Api, Endpoint, Provider};

    #[test]
    fn an_hour_of_cache_costs_twice_the_input() {
        let written = |endpoint: &Endpoint| {
            let prices = Provider::http(endpoint.clone()).prices().unwrap();
            (prices.input, prices.cache_write)
        };
        let mut endpoint = Endpoint::new("anthropic", Api::Messages, "", "claude-sonnet-4-6");
        assert_eq!(written(&endpoint), (3.0, Some(3.75)));
        let control = json!({ "type": "ephemeral", "ttl": "1h" });
        endpoint.body.insert("cache_control".to_owned(), control);
        assert_eq!(written(&endpoint), (3.0, Some(6.0)));
    }
}
