//! What a provider is made of: the endpoint, the transport, and what the server taught.

use std::sync::Arc;

use super::http::Http;
use super::learned::Learned;
use super::rehearsal::Rehearsal;
use super::{Endpoint, ModelInfo, known};
use crate::domain::Prices;

/// A model behind an endpoint, as its providers share it.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) endpoint: Endpoint,
    pub(super) wire: Arc<Wire>,
    pub(super) learned: Arc<Learned>,
}

/// The transport of a provider: HTTP, or a rehearsal that plays without a network.
#[derive(Debug)]
pub(super) enum Wire {
    Http(Http),
    Rehearsal(Rehearsal),
}

impl Connection {
    /// The model's prices: configured, reported by the endpoint, or built-in.
    pub(super) fn prices(&self) -> Option<Prices> {
        let reported = || self.learned.info().and_then(|info| info.prices);
        self.endpoint
            .prices
            .or_else(reported)
            .or_else(|| self.known()?.prices)
    }

    /// Built-in values for the model. A local server uses another window, and is free.
    pub(super) fn known(&self) -> Option<ModelInfo> {
        if self.endpoint.is_own_server() {
            None
        } else {
            known::find(&self.endpoint.model)
        }
    }
}
