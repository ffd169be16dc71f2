//! What a provider is made of: the endpoint, the transport, and what the server taught.

use std::sync::Arc;

use super::http::Http;
use super::learned::Learned;
use super::rehearsal::Rehearsal;
use super::{Endpoint, ModelInfo, Prices, known};

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
    /// What the model's tokens cost: as configured, as the endpoint says, as is generally known.
    pub(super) fn prices(&self) -> Option<Prices> {
        let told = || self.learned.info().and_then(|info| info.prices);
        self.endpoint.prices.or_else(told).or_else(|| self.known()?.prices)
    }

    /// What is generally known of the model. A local server serves it with another window and for nothing.
    pub(super) fn known(&self) -> Option<ModelInfo> {
        if self.endpoint.is_own_server() { None } else { known::find(&self.endpoint.model) }
    }
}
