//! A server at a URL: [streamable HTTP](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports).
//!
//! Invariant: what is configured for one origin is sent to no other, and secrets are sent unencrypted only to this
//! machine.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::BytesMut;
use futures_util::StreamExt as _;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url, redirect};
use serde_json::Value;
use tokio::time::sleep;
use tokio_util::codec::Decoder as _;

use super::bounded::{LONGEST_LINE, Meter, TOO_LONG};
use super::exchange::{Answer, Exchange, Expected, Fault};
use crate::domain::is_loopback;
use crate::text::sse::SseDecoder;

/// Timeout for connecting.
const CONNECT: Duration = Duration::from_secs(10);
/// The pause before a stream of events is requested again.
const BETWEEN_STREAMS: Duration = Duration::from_secs(5);

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const EVENTS: &str = "text/event-stream";

/// A server at a URL.
pub(super) struct Http {
    client: Client,
    /// Its name in the configuration.
    name: String,
    url: Url,
    headers: HeaderMap,
    /// The server's session id, if any.
    session: OnceLock<HeaderValue>,
    /// Whether a request was answered in this session.
    worked: AtomicBool,
    /// The negotiated protocol version.
    version: OnceLock<HeaderValue>,
}

impl Http {
    /// A server that was not contacted yet; the error completes `MCP server x …`.
    pub fn new(name: &str, url: &str, headers: &BTreeMap<String, String>) -> Result<Self, String> {
        let url = Url::parse(url).map_err(|error| format!("has no valid URL: {error}"))?;
        let loopback = is_loopback(&url);
        if !matches!(url.scheme(), "http" | "https") {
            return Err("has a URL that begins with neither http:// nor https://".to_owned());
        }
        if let Some(name) = headers
            .keys()
            .find(|name| url.scheme() == "http" && !loopback && is_secret(name))
        {
            return Err(format!(
                "would get the header {name} unencrypted: use https"
            ));
        }
        // Somebody else in this process may have installed a provider; theirs works as well.
        _ = rustls::crypto::ring::default_provider().install_default();
        let mut client = Client::builder()
            .user_agent(concat!("tandem/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT)
            .redirect(redirect::Policy::custom(same_origin));
        if loopback {
            client = client.no_proxy();
        }
        let client = client
            .build()
            .map_err(|error| format!("cannot be reached: {error}"))?;
        let (name, headers) = (name.to_owned(), read(headers)?);
        let (session, worked, version) = (OnceLock::new(), AtomicBool::new(false), OnceLock::new());
        Ok(Self {
            client,
            name,
            url,
            headers,
            session,
            worked,
            version,
        })
    }

    /// Sends the negotiated version with every request from now on.
    pub fn agree(&self, version: &str) {
        let _said_before = HeaderValue::try_from(version).map(|version| self.version.set(version));
    }

    /// Sends a request and waits for its answer.
    pub async fn ask(
        &self,
        message: String,
        exchange: &Exchange,
        expected: &mut Expected,
    ) -> Answer {
        let response = self.post(message).await.inspect_err(|fault| {
            if *fault == Fault::Expired {
                exchange.close();
            }
        })?;
        if self.session.get().is_some() {
            self.worked.store(true, Ordering::Relaxed);
        }
        if let Some(session) = response.headers().get(SESSION) {
            let _named_before = self.session.set(session.clone());
        }
        tokio::select! {
            biased;
            answer = expected.come() => answer,
            received = self.receive(response, exchange) => match (received, expected.come_by_now()) {
                (_, Some(answer)) => answer,
                (Err(fault), None) => Err(fault),
                // The answer may arrive on the stream of events.
                (Ok(()), None) => expected.come().await,
            },
        }
    }

    /// Sends a message that has no answer.
    pub async fn tell(&self, message: String) -> Result<(), Fault> {
        self.post(message).await.map(drop)
    }

    /// Receives the server's own messages, as long as it offers that.
    pub async fn listen(&self, exchange: Arc<Exchange>) {
        loop {
            let request = self.request(Method::GET).header(ACCEPT, EVENTS);
            match request.send().await {
                Ok(response) if response.status().is_success() => {
                    if let Err(fault) = self.receive(response, &exchange).await {
                        tracing::debug!("an MCP server's events ended early: {fault:?}");
                    }
                }
                Ok(_no_events) => return,
                Err(error) => tracing::debug!("no events of an MCP server: {error}"),
            }
            sleep(BETWEEN_STREAMS).await;
        }
    }

    /// Ends the session.
    pub async fn leave(&self) {
        if self.session.get().is_some() {
            let _goodbye = self.request(Method::DELETE).send().await;
        }
    }

    async fn post(&self, message: String) -> Result<Response, Fault> {
        let request = self
            .request(Method::POST)
            .header(CONTENT_TYPE, "application/json");
        let request = request
            .header(ACCEPT, "application/json, text/event-stream")
            .body(message);
        let response = request.send().await.map_err(unreachable)?;
        match response.status() {
            status if status.is_success() => Ok(response),
            StatusCode::NOT_FOUND if self.worked.load(Ordering::Relaxed) => Err(Fault::Expired),
            // Later it may answer otherwise.
            status @ (StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS) => {
                Err(unreached(status))
            }
            status if status.is_client_error() => Err(Fault::Denied(self.denied(status))),
            status => Err(unreached(status)),
        }
    }

    /// What the server answered, and what to do about that.
    fn denied(&self, status: StatusCode) -> String {
        let name = &self.name;
        let remedy = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if self.headers.is_empty() => {
                format!(
                    "set its credentials in mcp.{name}.headers, such as {{ Authorization = \"Bearer …\" }}"
                )
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                format!("it does not accept the credentials in mcp.{name}.headers")
            }
            StatusCode::NOT_FOUND if self.session.get().is_some() => {
                "it began a session and does not continue it".to_owned()
            }
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED | StatusCode::GONE => {
                format!("there is no MCP server at the address in mcp.{name}.url")
            }
            _ => return format!("answers with HTTP status {status}"),
        };
        format!("answers with HTTP status {status}: {remedy}")
    }

    fn request(&self, method: Method) -> RequestBuilder {
        let mut headers = self.headers.clone();
        for (name, value) in [(SESSION, &self.session), (VERSION, &self.version)] {
            if let Some(value) = value.get() {
                headers.insert(name, value.clone());
            }
        }
        self.client
            .request(method, self.url.clone())
            .headers(headers)
    }

    /// Handles all messages of a response.
    async fn receive(&self, response: Response, exchange: &Exchange) -> Result<(), Fault> {
        let kind = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .unwrap_or_default();
        let is_stream = kind.starts_with(EVENTS);
        let objection = |why: &str| Fault::Unreachable(format!("it {why}"));
        let too_long = |_| objection(TOO_LONG);
        let (mut decoder, mut pending) = (SseDecoder::default(), BytesMut::new());
        let mut meter = Meter::new();
        let mut body = response.bytes_stream();
        while let Some(piece) = body.next().await {
            let piece = piece.map_err(unreachable)?;
            meter.count(&piece).map_err(objection)?;
            pending.extend_from_slice(&piece);
            while is_stream && let Some(event) = decoder.decode(&mut pending).map_err(too_long)? {
                self.take(&event.data, exchange).await;
            }
            if pending.len() > LONGEST_LINE {
                return Err(objection(TOO_LONG));
            }
        }
        while is_stream && let Some(event) = decoder.decode_eof(&mut pending).map_err(too_long)? {
            self.take(&event.data, exchange).await;
        }
        if !is_stream {
            self.take(&pending, exchange).await;
        }
        Ok(())
    }

    /// Handles one message; what is not JSON is ignored.
    async fn take(&self, message: &[u8], exchange: &Exchange) {
        let Ok(message) = serde_json::from_slice::<Value>(message) else {
            return;
        };
        if let Some(answer) = exchange.take(&message)
            && let Err(fault) = Box::pin(self.tell(answer.to_string())).await
        {
            tracing::debug!("an MCP server did not take an answer: {fault:?}");
        }
    }
}

fn read(headers: &BTreeMap<String, String>) -> Result<HeaderMap, String> {
    let pair = |(name, value): (&String, &String)| {
        let header = HeaderName::try_from(name)
            .ok()
            .zip(HeaderValue::try_from(value).ok());
        let (name, mut value) =
            header.ok_or_else(|| format!("has a header {name:?} that is not valid"))?;
        value.set_sensitive(true);
        Ok((name, value))
    };
    headers.iter().map(pair).collect()
}

/// Whether a header with this name probably holds a secret.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["auth", "key", "token", "secret", "cookie"]
        .iter()
        .any(|word| name.contains(word))
}

/// Follows redirects that keep method, body and origin.
fn same_origin(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let keeps = matches!(attempt.status().as_u16(), 307 | 308);
    let same = attempt
        .previous()
        .last()
        .is_some_and(|last| last.origin() == attempt.url().origin());
    if keeps && same && attempt.previous().len() <= 3 {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

fn unreached(status: StatusCode) -> Fault {
    Fault::Unreachable(format!("HTTP status {status}"))
}

/// The innermost cause is the most specific.
fn unreachable(error: reqwest::Error) -> Fault {
    let error = error.without_url();
    let causes = std::iter::successors(Some(&error as &dyn Error), |&cause| cause.source());
    Fault::Unreachable(causes.last().map(ToString::to_string).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_never_sent_unencrypted() {
        let check = |url: &str, header: &str, expected: Option<&str>| {
            let headers = BTreeMap::from([(header.to_owned(), "x".to_owned())]);
            let refused = Http::new("x", url, &headers).err();
            assert_eq!(refused.as_deref(), expected, "{url} {header}");
        };
        let unencrypted = Some("would get the header Authorization unencrypted: use https");
        check("http://tools.example/mcp", "Authorization", unencrypted);
        check("http://tools.example/mcp", "X-Team", None);
        check("http://127.0.0.1:1/mcp", "Authorization", None);
        check(
            "ftp://tools.example/mcp",
            "X",
            Some("has a URL that begins with neither http:// nor https://"),
        );
        check(
            "https://tools.example/mcp",
            "a b",
            Some("has a header \"a b\" that is not valid"),
        );
    }
}
