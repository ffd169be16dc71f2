//! Requests over HTTP. The client is built when it is first needed, and for loopback without proxy and trust store.
//!
//! Invariants: the key goes to the endpoint's own origin only, and never over plain http except to loopback; it is
//! never printed.

use std::error::Error;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Client, NoProxy, RequestBuilder, Response, StatusCode, redirect};
use rustls::CertificateError;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tokio::sync::Mutex;
use url::Url;

use super::answer::{Answer, LARGEST};
use super::gather::gather;
use super::{Api, Endpoint, Failure, Key, date, editor, fault, key};
use crate::domain::{Proxy, is_loopback, same_origin};

/// The client of one endpoint.
#[derive(Debug, Default)]
pub(super) struct Http {
    client: OnceLock<Client>,
    /// The output of the key program.
    printed: Mutex<Option<SecretString>>,
}

/// Documents are small: a server that takes longer is not available.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Connections are kept this long: people think between prompts.
const IDLE: Duration = Duration::from_mins(5);

impl Http {
    pub async fn send(
        &self,
        endpoint: &Endpoint,
        conversation: &str,
        body: Bytes,
    ) -> Result<Answer, Failure> {
        if let Some(editor) = &endpoint.editor {
            return Ok(editor::answer(editor, &body));
        }
        let url = url(endpoint, path(endpoint.api).split('/'))?;
        let mut request = self.client(endpoint)?.post(url.clone()).body(body);
        if let Some(name) = endpoint.conversation_header()
            && let Ok(value) = HeaderValue::try_from(conversation)
            && !conversation.is_empty()
        {
            request = request.header(name, value);
        }
        self.answer(endpoint, &url, request).await
    }

    /// The answer to a request with the endpoint's key and headers. A key that a program has printed may have expired: if
    /// it is refused, the request is sent again with what the program prints now.
    async fn answer(
        &self,
        endpoint: &Endpoint,
        url: &Url,
        request: RequestBuilder,
    ) -> Result<Answer, Failure> {
        let send = async |key: Option<SecretString>| {
            let request = request.try_clone().expect("its body is in memory");
            let response = request
                .headers(headers(endpoint, url, key.as_ref())?)
                .send();
            let response = response.await.map_err(|error| broken(endpoint, error))?;
            Ok::<_, Failure>(Answer {
                key,
                ..answer(response)
            })
        };
        let answer = send(self.key(endpoint).await?).await?;
        if answer.status != StatusCode::UNAUTHORIZED || !matches!(endpoint.key, Key::Command(_)) {
            return Ok(answer);
        }
        self.printed.lock().await.take();
        send(self.key(endpoint).await?).await
    }

    /// Gets a JSON document, or sends one and returns the response: of the API, or of the whole server where the path
    /// begins with a slash.
    pub async fn document(
        &self,
        endpoint: &Endpoint,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Failure> {
        if let Some(editor) = &endpoint.editor {
            return editor.list().await;
        }
        let mut url = url(endpoint, path.split('/'))?;
        if path.starts_with('/') {
            url.set_path(path);
        } else if endpoint.api == Api::Messages {
            // Otherwise the list comes in pages of twenty.
            url.set_query(Some("limit=1000"));
        }
        let client = self.client(endpoint)?;
        let request = match body {
            Some(body) => client.post(url.clone()).body(body.to_string()),
            None => client.get(url.clone()),
        };
        let request = request.timeout(TIMEOUT);
        let mut answer = self.answer(endpoint, &url, request).await?;
        let mut body = Vec::new();
        while let Some(bytes) = answer.body.next().await {
            body.extend_from_slice(&bytes?);
            if body.len() > LARGEST {
                return Err(fault::too_large(LARGEST));
            }
        }
        let body = String::from_utf8_lossy(&body);
        if !(200..300).contains(&answer.status) {
            return Err(fault::without_key(
                answer.key.as_ref(),
                fault::of_status(endpoint, answer.status, &body),
            ));
        }
        serde_json::from_str(&body).map_err(|_| fault::no_stream(endpoint, &body))
    }

    /// A request without a key to the host's root: harmless, and it leaves an open connection.
    pub async fn warm(&self, endpoint: &Endpoint) {
        let Ok(mut url) = url(endpoint, []) else {
            return;
        };
        if is_loopback(&url) || url.scheme() != "https" {
            return;
        }
        url.set_path("/");
        url.set_query(None);
        if let Ok(client) = self.client(endpoint) {
            _ = client
                .head(url)
                .timeout(endpoint.limits.connect)
                .send()
                .await;
        }
    }

    async fn key(&self, endpoint: &Endpoint) -> Result<Option<SecretString>, Failure> {
        match &endpoint.key {
            Key::None | Key::Missing { .. } => Ok(None),
            Key::Value(key) | Key::Variable { value: key, .. } => Ok(Some(key.clone())),
            Key::Command(command) => {
                let mut printed = self.printed.lock().await;
                if printed.is_none() {
                    *printed = Some(key::run(command).await?);
                }
                Ok(printed.clone())
            }
        }
    }

    fn client(&self, endpoint: &Endpoint) -> Result<&Client, Failure> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = build(endpoint)?;
        Ok(self.client.get_or_init(|| client))
    }
}

fn build(endpoint: &Endpoint) -> Result<Client, Failure> {
    let mut builder = Client::builder()
        .user_agent(concat!("tandem/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(endpoint.limits.connect)
        .pool_idle_timeout(IDLE)
        .tcp_nodelay(true)
        .redirect(redirect::Policy::custom(same_origin));
    if endpoint.is_plain_loopback() {
        builder = builder.no_proxy().tls_backend_preconfigured(no_roots());
    } else {
        // Somebody else in this process may have chosen a provider before: theirs is as good.
        _ = rustls::crypto::ring::default_provider().install_default();
        if let Some(file) = &endpoint.ca_file {
            builder = builder.tls_certs_merge(key::certificates(file)?);
        }
        if let Some(proxy) = &endpoint.proxy {
            builder = builder.proxy(through(proxy)?);
        }
    }
    builder.build().map_err(|error| {
        fault::invalid(&format!(
            "cannot set up a connection to {}: {}",
            endpoint.provider,
            innermost(&error)
        ))
    })
}

fn through(proxy: &Proxy) -> Result<reqwest::Proxy, Failure> {
    // The address may have a password in it.
    let refused = |error: reqwest::Error| {
        fault::invalid(&format!("the proxy cannot be used: {}", innermost(&error)))
    };
    let all = reqwest::Proxy::all(&proxy.url).map_err(|error| refused(error.without_url()))?;
    Ok(all.no_proxy(NoProxy::from_string(&proxy.except)))
}

/// TLS that trusts nobody, for clients that never use it: the platform's trust store costs megabytes.
fn no_roots() -> rustls::ClientConfig {
    rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring supports the default versions")
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth()
}

fn path(api: Api) -> &'static str {
    match api {
        Api::Chat => "chat/completions",
        Api::Responses => "responses",
        Api::Messages => "messages",
    }
}

fn url<'a>(endpoint: &Endpoint, path: impl IntoIterator<Item = &'a str>) -> Result<Url, Failure> {
    let base = &endpoint.base_url;
    let mut url = Url::parse(base)
        .map_err(|error| fault::invalid(&format!("base-url {base:?} is not a URL: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(fault::invalid(&format!(
            "base-url {base:?} begins with neither http:// nor https://"
        )));
    }
    url.path_segments_mut()
        .expect("http URLs have a path")
        .pop_if_empty()
        .extend(path);
    Ok(url)
}

fn headers(
    endpoint: &Endpoint,
    url: &Url,
    key: Option<&SecretString>,
) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if endpoint.api == Api::Messages {
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
    }
    if let Some(key) = key {
        if url.scheme() == "http" && !is_loopback(url) {
            return Err(fault::invalid(&format!(
                "the key for {} would be sent unencrypted to {}: use https, or remove the key",
                endpoint.provider,
                endpoint.address()
            )));
        }
        let (name, value) = match endpoint.api {
            Api::Messages => (
                HeaderName::from_static("x-api-key"),
                key.expose_secret().to_owned(),
            ),
            Api::Chat | Api::Responses => {
                (AUTHORIZATION, format!("Bearer {}", key.expose_secret()))
            }
        };
        let mut value = HeaderValue::try_from(value).map_err(|_| {
            fault::invalid(&format!(
                "the key for {} contains invalid characters",
                endpoint.provider
            ))
        })?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    for (name, value) in &endpoint.headers {
        let pair = HeaderName::try_from(name)
            .ok()
            .zip(HeaderValue::try_from(value).ok());
        let (name, value) =
            pair.ok_or_else(|| fault::invalid(&format!("the header {name:?} is not valid")))?;
        headers.insert(name, value);
    }
    Ok(headers)
}

fn answer(response: Response) -> Answer {
    let status = response.status();
    let retry_after = retry_after(response.headers(), SystemTime::now());
    if status.is_redirection() {
        let target = response
            .headers()
            .get(LOCATION)
            .and_then(|target| target.to_str().ok())
            .unwrap_or("nowhere");
        let said = Bytes::from(format!("the endpoint redirects to {target}"));
        let body = futures_util::stream::iter([Ok(said)]).fuse().boxed();
        return Answer {
            status: status.as_u16(),
            key: None,
            retry_after,
            body,
        };
    }
    let body = gather(
        response
            .bytes_stream()
            .map_err(|error| fault::cut_off(&innermost(&error))),
    );
    Answer {
        status: status.as_u16(),
        key: None,
        retry_after,
        body,
    }
}

/// Seconds, a date, or (a common extension) milliseconds.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    if let Some(ms) = text("retry-after-ms").and_then(|ms| ms.trim().parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(ms / 1000.0).ok();
    }
    let value = text("retry-after")?.trim();
    match value.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => Some(date::parse(value)?.duration_since(now).unwrap_or_default()),
    }
}

fn broken(endpoint: &Endpoint, error: reqwest::Error) -> Failure {
    let error = error.without_url();
    let mut why = if error.is_timeout() && error.is_connect() {
        let limit = endpoint.limits.connect.as_secs_f32();
        format!("no connection within {limit} s")
    } else {
        innermost(&error)
    };
    if unknown_authority(&error) {
        why += " — the certificate was signed by an unknown authority; if you trust it, set ca-file to its PEM file in the provider's section of config.toml";
    }
    fault::network(endpoint, &why)
}

fn unknown_authority(error: &reqwest::Error) -> bool {
    chain(error).any(|cause| {
        let cause = cause.downcast_ref();
        matches!(
            cause,
            Some(rustls::Error::InvalidCertificate(
                CertificateError::UnknownIssuer
            ))
        )
    })
}

/// The innermost cause is the most specific: `connection refused`, `invalid peer certificate`.
fn innermost(error: &reqwest::Error) -> String {
    chain(error)
        .last()
        .map(ToString::to_string)
        .unwrap_or_default()
}

type Cause = dyn Error + 'static;

/// An error and its causes, including those wrapped in an I/O error.
fn chain(error: &reqwest::Error) -> impl Iterator<Item = &Cause> {
    fn below(cause: &Cause) -> Option<&Cause> {
        match cause.downcast_ref().and_then(std::io::Error::get_ref) {
            Some(wrapped) => Some(wrapped),
            None => cause.source(),
        }
    }
    std::iter::successors(Some(error as &Cause), |cause| below(*cause))
}
