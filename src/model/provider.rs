//! [`Provider`]: a model at an endpoint, as other modules use it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use tokio::time::timeout;

use super::connection::Connection;
use super::learned::Taught;
use super::{
    Api, Endpoint, Failure, Instructions, Message, ModelInfo, ModelRequest, ModelStream, Preamble,
    body, catalog, chat, messages, request, responses, silence,
};
use crate::domain::Prices;

/// How long the first request waits for a local server's information about its model.
const EARLY: Duration = Duration::from_millis(300);

/// A model at an endpoint. Clones share one client and its connections.
#[derive(Debug, Clone)]
pub struct Provider(Arc<Connection>);

impl Provider {
    /// Another endpoint of the same server, over the same connections.
    fn at(&self, endpoint: Endpoint) -> Self {
        Self(Arc::new(Connection {
            endpoint,
            http: Arc::clone(&self.0.http),
            learned: Arc::default(),
        }))
    }

    /// A model reached over HTTP. Nothing is opened before the first request or [`Provider::warm`].
    pub fn http(endpoint: Endpoint) -> Self {
        Self(Arc::new(Connection {
            endpoint,
            http: Arc::default(),
            learned: Arc::default(),
        }))
    }

    /// The same model in the API its server asked for; `None` if that is the current one.
    pub fn switched(&self) -> Option<Self> {
        let mut switched = (*self.0).clone();
        let asked = switched.learned.lock().taught.api?;
        let before = std::mem::replace(&mut switched.endpoint.api, asked);
        (before != asked).then(|| Self(Arc::new(switched)))
    }

    /// Another model of the same endpoint, over the same connections.
    #[must_use]
    pub fn with_model(&self, model: &str) -> Self {
        self.at(Endpoint {
            model: model.to_owned(),
            ..self.0.endpoint.clone()
        })
    }

    /// Takes over what is known about the server from `before`, if it is the same model.
    #[must_use]
    pub fn remembering(self, before: &Self) -> Self {
        if self.place() == before.place() {
            self.0.learned.take_over(&before.0.learned);
        }
        self
    }

    /// What the server refused so far.
    pub fn taught(&self) -> Taught {
        self.0.learned.lock().taught.clone()
    }

    /// Takes over what the server refused in an earlier process.
    #[must_use]
    pub fn teach(self, taught: Taught) -> Self {
        self.0.learned.lock().taught = taught;
        self
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.0
    }

    /// `provider/model`, as the configuration names it.
    pub fn name(&self) -> String {
        self.0.endpoint.name()
    }

    /// The model and its server: what one server refuses says nothing about another with the same name.
    pub fn place(&self) -> String {
        format!("{} at {}", self.name(), self.0.endpoint.address())
    }

    /// The API.
    pub fn api(&self) -> Api {
        self.0.endpoint.api
    }

    /// The endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.0.endpoint
    }

    /// The bytes at the beginning of every request of a session.
    pub fn preamble(&self, instructions: &Instructions) -> Preamble {
        let preamble = match self.api() {
            Api::Chat => chat::preamble,
            Api::Responses => responses::preamble,
            Api::Messages => messages::preamble,
        };
        let bytes = preamble(&self.0.endpoint, instructions).into();
        let tools = instructions
            .tools
            .iter()
            .map(|tool| tool.name.clone())
            .collect();
        let instructions = Arc::new(instructions.clone());
        Preamble {
            bytes,
            tools,
            instructions,
            gap: chat::gap(&self.0.endpoint).into(),
        }
    }

    /// The bytes of one message; made once and never changed, so that requests share them.
    pub fn encode(&self, message: &Message) -> Bytes {
        let encode = match self.api() {
            Api::Chat => chat::message,
            Api::Responses => responses::message,
            Api::Messages => messages::message,
        };
        let mut bytes = encode(&self.0.endpoint, message);
        // Messages live as long as the conversation, and do not grow.
        bytes.shrink_to_fit();
        bytes.into()
    }

    /// Sends a request when the stream is first polled. Dropping the stream cancels it.
    pub fn stream(&self, request: ModelRequest) -> ModelStream {
        let ModelRequest {
            preamble,
            messages,
            may_call,
        } = request;
        let tail = body::tail(self.api(), &preamble, may_call);
        let body = body::close(&preamble, &messages, tail).into();
        let events = request::stream(Arc::clone(&self.0), body, &preamble);
        silence::with_notices(events, self.0.endpoint.provider.clone())
    }

    /// Sends a single request outside any session; again, if the server asks for another API.
    pub fn ask(&self, instructions: &Instructions, question: String) -> ModelStream {
        let instructions = instructions.clone();
        let question = Message::text(question);
        let ask = move |provider: &Self| {
            provider.stream(ModelRequest {
                preamble: provider.preamble(&instructions),
                messages: vec![provider.encode(&question)],
                may_call: true,
            })
        };
        let provider = self.switched().unwrap_or_else(|| self.clone());
        let stream = ask(&provider);
        stream::unfold(
            (provider, stream, ask),
            |(mut provider, mut stream, ask)| async move {
                let mut event = stream.next().await?;
                if event.is_err()
                    && let Some(switched) = provider.switched()
                {
                    provider = switched;
                    stream = ask(&provider);
                    event = stream.next().await?;
                }
                Some((event, (provider, stream, ask)))
            },
        )
        .boxed()
    }

    /// The models the endpoint offers.
    ///
    /// # Errors
    /// When it cannot be reached, refuses the key, or has no list.
    pub async fn models(&self) -> Result<Vec<ModelInfo>, Failure> {
        catalog::models(&self.0.http, &self.0.endpoint).await
    }

    /// The context window in tokens: what the server has been observed to read, else the configured value, the endpoint's or
    /// the built-in one.
    pub fn window(&self) -> Option<u64> {
        let Connection {
            endpoint, learned, ..
        } = &*self.0;
        let reported = || learned.info().and_then(|info| info.context_window);
        let window = endpoint
            .context_window
            .or_else(reported)
            .or_else(|| self.0.known()?.context_window);
        match (learned.lock().cut, window) {
            (Some(cut), Some(window)) => Some(cut.min(window)),
            (cut, window) => cut.or(window),
        }
    }

    /// The endpoint's own value for the window, once it was asked.
    pub fn reported_window(&self) -> Option<u64> {
        self.0.learned.info()?.context_window
    }

    /// Whether the model takes images, where that is known.
    pub fn sees(&self) -> Option<bool> {
        let told = self.0.learned.info().and_then(|info| info.images);
        told.or_else(|| self.0.known()?.images)
    }

    /// Additional instructions for models of this family.
    pub fn habit(&self) -> Option<&'static str> {
        self.0.endpoint.known().habit()
    }

    /// Its prices, if known.
    pub fn prices(&self) -> Option<Prices> {
        self.0.prices()
    }

    /// Whether to ask the endpoint about its model before the first answer is shown: it is local, or the model is
    /// unknown.
    pub fn is_to_learn(&self) -> bool {
        let Connection {
            endpoint, learned, ..
        } = &*self.0;
        let unknown =
            || endpoint.is_local() || self.0.known().is_none() || endpoint.lists_windows();
        learned.info().is_none() && unknown()
    }

    /// Whether a local server has to load the model first.
    pub fn is_local(&self) -> bool {
        self.0.endpoint.is_local()
    }

    /// Asks a local server about its model before the first request, which depends on the window. A server that has not
    /// loaded the model yet knows it only after the first answer. Returns whether the window became known.
    pub async fn learn_early(&self) -> bool {
        let Connection {
            endpoint,
            learned,
            http,
        } = &*self.0;
        if endpoint.is_local()
            && learned.info().is_none()
            && let Ok(Some(info)) = timeout(EARLY, catalog::model(http, endpoint)).await
            && info.context_window.is_some()
        {
            learned.lock().info = Some(info);
            return true;
        }
        false
    }

    /// Asks the endpoint about its model. What it does not report stays unknown.
    pub async fn learn(&self) {
        let Connection {
            endpoint,
            learned,
            http,
        } = &*self.0;
        let info = catalog::model(http, endpoint).await;
        learned.lock().info = info.or_else(|| Some(ModelInfo::named(&endpoint.model)));
    }

    /// Whether its requests cost nothing: one of the usual local servers runs the model itself.
    pub fn is_free(&self) -> bool {
        let endpoint = &self.0.endpoint;
        // Ollama passes these on.
        let is_hosted = endpoint.model.ends_with("cloud");
        endpoint.is_local() && endpoint.is_local_row() && !is_hosted
    }

    /// Has a server read a request's beginning, so that it can answer the request sooner. Dropping the future ends it.
    pub async fn evaluate(&self, instructions: &Instructions, messages: Vec<Bytes>) {
        let mut endpoint = Endpoint {
            max_tokens: Some(1),
            ..self.0.endpoint.clone()
        };
        endpoint.body.remove(endpoint.limit_field());
        let provider = self.at(endpoint).teach(self.taught());
        let request = ModelRequest {
            preamble: provider.preamble(instructions),
            messages,
            may_call: true,
        };
        let mut answer = provider.stream(request);
        // What it answers is nobody's concern, and neither is a failure: the prompt will report it.
        while let Some(Ok(_)) = answer.next().await {}
    }

    /// Opens the connection so that the first prompt does not wait for it; failure is ignored. Sends no API request.
    /// Does nothing on loopback, where it would gain nothing.
    pub async fn warm(&self) {
        self.0.http.warm(&self.0.endpoint).await;
    }
}
