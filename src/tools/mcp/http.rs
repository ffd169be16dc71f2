//! A server at a URL: [streamable HTTP](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http),
//! and the same [with sessions](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports).
//!
//! Invariant: what is configured for one origin is sent to no other, and secrets are sent unencrypted only to this
//! machine.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::BytesMut;
use futures_util::{FutureExt as _, StreamExt as _};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, ClientBuilder, Method, RequestBuilder, Response, StatusCode, Url, redirect};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::sleep;
use tokio_util::codec::Decoder as _;

use super::Address;
use super::bounded::{LONGEST_LINE, Meter, TOO_LONG};
use super::era;
use super::exchange::{Answer, Exchange, Fault, answer};
use super::headers::describing;
use super::login::{Challenge, Login};
use crate::domain::{is_loopback, same_origin};
use crate::text::redact::is_secret;
use crate::text::sse::{Resume, SseDecoder};

/// Timeout for connecting.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a connection is kept for the next request: less than servers do (Node: 5 s), which may close it just then.
const IDLE: Duration = Duration::from_secs(3);
/// The pause before a stream of events is requested again.
const BETWEEN_STREAMS: Duration = Duration::from_secs(5);
/// The same before the rest of an answer, unless the server names another.
const BETWEEN_PARTS: Duration = Duration::from_secs(1);
/// The shortest and the longest pause a server can ask for.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_mins(5);
/// The longest error that is read, in bytes.
const LONGEST_ERROR: usize = 64 << 10;

const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
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
    login: Option<Arc<Login>>,
    /// The server's session id, if any.
    session: OnceLock<HeaderValue>,
    /// Whether a request was answered in this session.
    worked: AtomicBool,
    /// The negotiated protocol version.
    version: OnceLock<HeaderValue>,
}

impl Http {
    /// A server that was not contacted yet; the error completes `MCP server x …`.
    pub fn new(name: &str, address: &Address) -> Result<Self, String> {
        let headers = &address.headers;
        let url = Url::parse(&address.url).map_err(|error| format!("has no valid URL: {error}"))?;
        let loopback = is_loopback(&url);
        if !matches!(url.scheme(), "http" | "https") {
            return Err("has a URL that begins with neither http:// nor https://".to_owned());
        }
        if let Some(name) = headers
            .keys()
            .find(|name| url.scheme() == "http" && !loopback && may_be_secret(name))
        {
            return Err(format!(
                "would get the header {name} unencrypted: use https"
            ));
        }
        let client = client(&url, redirect::Policy::custom(same_origin))
            .connect_timeout(CONNECT)
            .pool_idle_timeout(IDLE);
        let client = client
            .build()
            .map_err(|error| format!("cannot be reached: {error}"))?;
        Ok(Self {
            client,
            name: name.to_owned(),
            url,
            headers: read(headers)?,
            login: address.login.clone(),
            session: OnceLock::new(),
            worked: AtomicBool::default(),
            version: OnceLock::new(),
        })
    }

    /// Sends the negotiated version with every request from now on.
    pub fn agree(&self, version: &str) {
        let _said_before = HeaderValue::try_from(version).map(|version| self.version.set(version));
    }

    /// Sends a request and waits for its answer. `parameters` are the headers that mirror its arguments.
    pub async fn ask(
        &self,
        message: &Value,
        parameters: HeaderMap,
        exchange: &Exchange,
        mut expected: impl Future<Output = Answer> + Unpin,
    ) -> Answer {
        let response = self.post(message, parameters).await.inspect_err(|fault| {
            if *fault == Fault::Expired {
                exchange.close();
            }
        })?;
        let is_modern = era::version(message).is_some();
        if self.session.get().is_some() {
            self.worked.store(true, Ordering::Relaxed);
        }
        if let Some(session) = response.headers().get(SESSION).filter(|_| !is_modern) {
            let _named_before = self.session.set(session.clone());
        }
        let received = async {
            if is_modern {
                return self.receive(response, exchange).await.map(drop);
            }
            self.receive_parts(response, exchange).await
        };
        tokio::select! {
            biased;
            answer = &mut expected => answer,
            received = received => match (received, (&mut expected).now_or_never()) {
                (_, Some(answer)) => answer,
                (Err(fault), None) => Err(fault),
                (Ok(()), None) if is_modern => {
                    Err(Fault::Unreachable("it closed the stream without an answer".to_owned()))
                }
                // The answer may arrive on the stream of events.
                (Ok(()), None) => expected.await,
            },
        }
    }

    /// Sends a message that has no answer.
    pub async fn tell(&self, message: &Value) -> Result<(), Fault> {
        self.post(message, HeaderMap::new()).await.map(drop)
    }

    /// Receives the server's own messages, as long as it offers that; drops `opening` once it is known whether it does.
    pub async fn listen(&self, exchange: Arc<Exchange>, opening: oneshot::Sender<()>) {
        let mut opening = Some(opening);
        let mut resume = Resume::default();
        loop {
            let response = self.events(&resume).await;
            opening = opening.and(None);
            match response {
                Ok(response) => match self.receive(response, &exchange).await {
                    Ok(next) => resume = next,
                    Err(fault) => {
                        tracing::debug!("an MCP server's events ended early: {fault:?}");
                    }
                },
                Err(Fault::Unreachable(why)) => {
                    tracing::debug!("no events of an MCP server: {why}");
                }
                Err(_no_events) => return,
            }
            sleep(pause(&resume, BETWEEN_STREAMS)).await;
        }
    }

    /// Ends the session.
    pub async fn leave(&self) {
        if self.session.get().is_some() {
            let _goodbye = self.request(Method::DELETE).await.send().await;
        }
    }

    /// Receives an answer that a server may send in several parts, each by a request that names the last event.
    async fn receive_parts(&self, response: Response, exchange: &Exchange) -> Result<(), Fault> {
        let mut resume = self.receive(response, exchange).await?;
        while resume.id.is_some() {
            sleep(pause(&resume, BETWEEN_PARTS)).await;
            let response = self.events(&resume).await?;
            let next = self.receive(response, exchange).await?;
            resume = Resume {
                id: next.id.or(resume.id),
                pause: next.pause.or(resume.pause),
            };
        }
        Ok(())
    }

    /// Requests a stream of events, or the rest of one.
    async fn events(&self, resume: &Resume) -> Result<Response, Fault> {
        let mut request = self.request(Method::GET).await.header(ACCEPT, EVENTS);
        if let Some(id) = &resume.id {
            request = request.header(LAST_EVENT, id);
        }
        let response = request.send().await.map_err(unreachable)?;
        match response.status() {
            status if status.is_success() => Ok(response),
            status => Err(Fault::Denied(self.denied(status))),
        }
    }

    async fn post(&self, message: &Value, parameters: HeaderMap) -> Result<Response, Fault> {
        let mut headers = parameters;
        if let Some(version) = era::version(message) {
            headers.extend(describing(message));
            headers.extend(HeaderValue::try_from(version).map(|version| (VERSION, version)));
        }
        let body = message.to_string();
        let mut may_renew = true;
        loop {
            let request = self
                .request(Method::POST)
                .await
                .header(CONTENT_TYPE, "application/json")
                .header(ACCEPT, "application/json, text/event-stream")
                .headers(headers.clone())
                .body(body.clone())
                .build()
                .map_err(unreachable)?;
            let sent = request.headers().get(AUTHORIZATION).cloned();
            let response = self.client.execute(request).await.map_err(unreachable)?;
            let status = response.status();
            if status.is_success() {
                return Ok(response);
            }
            if let Some(login) = self.login_in_use() {
                let challenge = Challenge::of(response.headers());
                if status == StatusCode::UNAUTHORIZED {
                    if let Some(refused) = sent
                        && std::mem::take(&mut may_renew)
                        && login.renewed(&refused).await
                    {
                        continue;
                    }
                    return Err(Fault::Login(Box::new(challenge)));
                }
                if status == StatusCode::FORBIDDEN && challenge.is_step_up {
                    return Err(Fault::Login(Box::new(challenge)));
                }
            }
            return Err(self.fault(response).await);
        }
    }

    /// The person's login, unless the headers have credentials.
    fn login_in_use(&self) -> Option<&Login> {
        let login = self.login.as_deref()?;
        (!self.headers.contains_key(AUTHORIZATION)).then_some(login)
    }

    /// Why a request was not carried out.
    async fn fault(&self, response: Response) -> Fault {
        match response.status() {
            StatusCode::NOT_FOUND if self.worked.load(Ordering::Relaxed) => Fault::Expired,
            // Later it may answer otherwise.
            status @ (StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS) => {
                unreached(status)
            }
            status if status.is_client_error() => match error_in(response).await {
                // This is how the official servers refuse an unknown session, without looking at the message.
                Some(error) if error["id"].is_null() && self.worked.load(Ordering::Relaxed) => {
                    Fault::Expired
                }
                error => error
                    .and_then(|error| answer(&error).err())
                    .unwrap_or_else(|| Fault::Denied(self.denied(status))),
            },
            status => unreached(status),
        }
    }

    /// What the server answered, and what to do about that.
    fn denied(&self, status: StatusCode) -> String {
        let name = &self.name;
        let remedy = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if !self.headers.is_empty() => {
                "it does not accept the credentials in its headers".to_owned()
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => self
                .login
                .as_ref()
                .map(|login| login.remedy())
                .unwrap_or_default(),
            StatusCode::NOT_FOUND if self.session.get().is_some() => {
                "it does not accept the session it started".to_owned()
            }
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED | StatusCode::GONE => {
                format!("there is no MCP server at the address in mcp.{name}.url")
            }
            _ => return format!("answers with HTTP status {status}"),
        };
        format!("answers with HTTP status {status}: {remedy}")
    }

    async fn request(&self, method: Method) -> RequestBuilder {
        let mut headers = self.headers.clone();
        for (name, value) in [(SESSION, &self.session), (VERSION, &self.version)] {
            if let Some(value) = value.get() {
                headers.insert(name, value.clone());
            }
        }
        if let Some(login) = self.login_in_use()
            && let Some(authorization) = login.authorization().await
        {
            headers.insert(AUTHORIZATION, authorization);
        }
        self.client
            .request(method, self.url.clone())
            .headers(headers)
    }

    /// Handles all messages of a response; returns where it can be continued. A stream that breaks off can be, too.
    async fn receive(&self, response: Response, exchange: &Exchange) -> Result<Resume, Fault> {
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
            let piece = match piece {
                Ok(piece) => piece,
                Err(_broke_off) if decoder.resume.id.is_some() => break,
                Err(error) => return Err(unreachable(error)),
            };
            let lines = memchr::memchr_iter(b'\n', &piece).count();
            meter.count(piece.len(), lines).map_err(objection)?;
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
        Ok(decoder.resume)
    }

    /// Handles one message; what is not JSON is ignored.
    async fn take(&self, message: &[u8], exchange: &Exchange) {
        let Ok(message) = serde_json::from_slice::<Value>(message) else {
            return;
        };
        if let Some(answer) = exchange.take(&message)
            && let Err(fault) = Box::pin(self.tell(&answer)).await
        {
            tracing::debug!("an MCP server did not take an answer: {fault:?}");
        }
    }
}

/// A client for a server, and for addresses that may be used with it.
pub(super) fn client(server: &Url, redirects: redirect::Policy) -> ClientBuilder {
    // Somebody else in this process may have installed a provider; theirs works as well.
    _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder()
        .user_agent(concat!("tandem/", env!("CARGO_PKG_VERSION")))
        .redirect(redirects);
    if is_loopback(server) {
        client.no_proxy()
    } else {
        client
    }
}

/// The whole body of a response of at most `most` bytes; the error completes `it …`.
pub(super) async fn body(response: Response, most: usize) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    let mut stream = response.bytes_stream();
    while let Some(piece) = stream.next().await {
        let piece = piece.map_err(|error| format!("ended its response early: {}", cause(error)))?;
        body.extend_from_slice(&piece);
        if body.len() > most {
            return Err("is too long".to_owned());
        }
    }
    Ok(body)
}

/// The error of JSON-RPC in a response.
async fn error_in(response: Response) -> Option<Value> {
    let body = body(response, LONGEST_ERROR).await.ok()?;
    let message: Value = serde_json::from_slice(&body).ok()?;
    message["error"]["code"].is_i64().then_some(message)
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

/// Whether a header may hold a secret, by a part of its name (`AccessKey`, `X-Authkey`).
fn may_be_secret(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    is_secret(name) || ["auth", "key"].iter().any(|part| lower.contains(part))
}

/// How long to wait before a stream is requested again.
fn pause(resume: &Resume, usual: Duration) -> Duration {
    let pause = resume.pause.unwrap_or(usual);
    pause.clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
}

fn unreached(status: StatusCode) -> Fault {
    Fault::Unreachable(format!("HTTP status {status}"))
}

fn unreachable(error: reqwest::Error) -> Fault {
    Fault::Unreachable(cause(error))
}

/// The innermost cause, which is the most specific.
pub(super) fn cause(error: reqwest::Error) -> String {
    let error = error.without_url();
    let causes = std::iter::successors(Some(&error as &dyn Error), |&cause| cause.source());
    causes.last().map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_never_sent_unencrypted() {
        let check = |url: &str, header: &str, expected: Option<&str>| {
            let headers = BTreeMap::from([(header.to_owned(), "x".to_owned())]);
            let address = Address {
                url: url.to_owned(),
                headers,
                login: None,
            };
            let refused = Http::new("x", &address).err();
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
