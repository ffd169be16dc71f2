//! A model to talk to: what the rest of the house holds.

use std::sync::Arc;

use bytes::Bytes;

use super::http::Http;
use super::rehearsal::Rehearsal;
use super::wire::Wire;
use super::{
    Api, Endpoint, Instructions, Message, ModelError, ModelInfo, ModelRequest, ModelStream, Preamble, body, catalog,
    chat, messages, request, responses, silence,
};

/// A model behind an endpoint. Clones share one client and its connections.
#[derive(Debug, Clone)]
pub struct Provider(Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) endpoint: Endpoint,
    pub(super) wire: Wire,
}

impl Provider {
    /// A model reached over HTTP. Nothing is opened before the first request or [`Provider::warm`].
    #[must_use]
    pub fn http(endpoint: Endpoint) -> Self {
        Self(Arc::new(Inner { endpoint, wire: Wire::Http(Http::default()) }))
    }

    /// A model that plays a script in this process, through the real decoder, retries included.
    #[must_use]
    pub fn scripted(script: impl Into<Rehearsal>) -> Self {
        let endpoint = Endpoint::new("rehearsal", Api::Chat, "rehearsal:", "script");
        Self(Arc::new(Inner { endpoint, wire: Wire::Rehearsal(script.into()) }))
    }

    /// `provider/model`, as the configuration names it.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}/{}", self.0.endpoint.provider, self.0.endpoint.model)
    }

    /// The dialect.
    #[must_use]
    pub fn api(&self) -> Api {
        self.0.endpoint.api
    }

    /// The endpoint.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.0.endpoint
    }

    /// The bytes that open every request of a session.
    #[must_use]
    pub fn preamble(&self, instructions: &Instructions) -> Preamble {
        let preamble = match self.api() {
            Api::Chat => chat::preamble,
            Api::Responses => responses::preamble,
            Api::Messages => messages::preamble,
        };
        let bytes = preamble(&self.0.endpoint, instructions).into();
        let tools = instructions.tools.iter().map(|tool| tool.name.clone()).collect();
        Preamble { bytes, tools }
    }

    /// The bytes of one message; made once and never changed, so that requests share them.
    #[must_use]
    pub fn encode(&self, message: &Message) -> Bytes {
        let encode = match self.api() {
            Api::Chat => chat::message,
            Api::Responses => responses::message,
            Api::Messages => messages::message,
        };
        let mut bytes = encode(&self.0.endpoint, message);
        // It stays as long as the conversation, and does not grow.
        bytes.shrink_to_fit();
        bytes.into()
    }

    /// Sends a request when the stream is first polled. Dropping the stream cancels it.
    #[must_use]
    pub fn stream(&self, request: ModelRequest) -> ModelStream {
        let ModelRequest { preamble, messages } = request;
        let body = body::close(&preamble, &messages);
        let events = request::stream(Arc::clone(&self.0), body.into(), preamble.tools);
        silence::told(events, self.0.endpoint.provider.clone())
    }

    /// The models the endpoint offers.
    ///
    /// # Errors
    /// When it cannot be reached, refuses the key, or has no list.
    pub async fn models(&self) -> Result<Vec<ModelInfo>, ModelError> {
        match &self.0.wire {
            Wire::Http(http) => catalog::models(http, &self.0.endpoint).await,
            Wire::Rehearsal(_) => Ok(vec![ModelInfo { id: self.0.endpoint.model.clone(), context_window: None }]),
        }
    }

    /// Opens the connection so that the first prompt need not wait for it; silent when that fails. Sends no API
    /// request. On loopback there is nothing to gain, and nothing is done.
    pub async fn warm(&self) {
        if let Wire::Http(http) = &self.0.wire {
            http.warm(&self.0.endpoint).await;
        }
    }
}
