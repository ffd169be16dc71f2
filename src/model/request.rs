//! One request, from sending to its last event: retries if that is safe, and reports it.
//!
//! Invariants: no retry once any output was delivered; every wait is announced before it begins; dropping the stream at
//! any point drops the connection.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use secrecy::SecretString;
use tokio::time::timeout;

use super::answer::{Answer, LARGEST};
use super::batch::Batch;
use super::connection::Connection;
use super::decoder::StreamDecoder;
use super::fault::Remedy;
use super::{
    Endpoint, ErrorCode, Failure, Finish, ModelEvent, ModelStream, Preamble, TimeLimits, body,
    catalog, fault, whole,
};

/// The maximum number of attempts for one answer.
const TRIES: u32 = 5;
/// The longest wait between attempts; if a server asks for more, the request fails.
const LONGEST_WAIT: Duration = Duration::from_mins(1);
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// While the person's own server loads its model: the wait between attempts, and their maximum number.
const LOADING_WAIT: Duration = Duration::from_secs(2);
const LOADING_TRIES: u32 = 300;
/// A larger stream is an error, in bytes: servers may send hundreds of them for each token.
const LARGEST_STREAM: usize = 128 << 20;
/// Error pages are read up to this size, in bytes.
const LARGEST_ERROR: usize = 64 << 10;
/// How long a failed request waits for the names of similar models.
const LISTING: Duration = Duration::from_secs(3);
/// How long the connection may take to come free after the terminal marker.
const GRACE: Duration = Duration::from_millis(25);

pub(super) fn stream(provider: Arc<Connection>, body: Bytes, preamble: &Preamble) -> ModelStream {
    let request = Request {
        provider,
        conversation: Arc::clone(&preamble.instructions.conversation),
        body,
        phase: Phase::Send,
        batch: Batch::default(),
        failed: None,
        key: None,
        asked: None,
        tries: 0,
        loading: 0,
        waited: Duration::ZERO,
        output: false,
        writes: false,
        size: 0,
    };
    stream::unfold(Box::new(request), |mut request| async move {
        let item = request.next().await?;
        Some((item, request))
    })
    .boxed()
}

struct Request {
    provider: Arc<Connection>,
    conversation: Arc<str>,
    body: Bytes,
    phase: Phase,
    /// Decoded events not yet delivered.
    batch: Batch,
    /// The error after the events in `batch`.
    failed: Option<Failure>,
    /// The key of the last attempt: a provider may quote it.
    key: Option<SecretString>,
    /// How long the server asked to wait.
    asked: Option<Duration>,
    tries: u32,
    /// Attempts while the server loaded its model, which are not among `tries`.
    loading: u32,
    waited: Duration,
    /// Whether part of the answer was delivered.
    output: bool,
    /// Whether text, a call or the end is arriving, rather than thoughts.
    writes: bool,
    /// How much of a stream has arrived, in bytes.
    size: usize,
}

enum Phase {
    Send,
    Wait(Duration),
    Read(Answer, Box<StreamDecoder>),
    /// The answer is complete; only the connection is still in use.
    Drain(Answer),
    Over,
}

impl Request {
    async fn next(&mut self) -> Option<Result<ModelEvent, Failure>> {
        loop {
            if let Some(event) = self.batch.pop() {
                return Some(Ok(self.hand_out(event)));
            }
            if let Some(error) = self.failed.take() {
                let error = fault::without_key(self.key.as_ref(), error);
                if let Some(event) = self.again(error) {
                    return Some(event);
                }
            }
            if !self.step().await {
                return None;
            }
        }
    }

    fn hand_out(&mut self, mut event: ModelEvent) -> ModelEvent {
        if let ModelEvent::Usage(usage) = &mut event {
            usage.cost = usage
                .cost
                .or_else(|| Some(self.provider.prices()?.cost(usage)));
        }
        if let ModelEvent::ReasoningItem(item) = &mut event {
            let endpoint = &self.provider.endpoint;
            item.api = endpoint.api;
            item.model.clone_from(&endpoint.model);
            item.provider.clone_from(&endpoint.provider);
        }
        self.output |= !matches!(
            event,
            ModelEvent::Usage(_) | ModelEvent::Notice(_) | ModelEvent::Finish(Finish::Broken(_))
        );
        self.writes = match event {
            ModelEvent::Text(_)
            | ModelEvent::Refusal(_)
            | ModelEvent::CallStart { .. }
            | ModelEvent::CallDelta { .. }
            | ModelEvent::Finish(_) => true,
            ModelEvent::Usage(_) | ModelEvent::Notice(_) => self.writes,
            _ => false,
        };
        event
    }

    /// Announces another attempt, or gives up. While a model loads, only the first attempt is announced.
    fn again(&mut self, error: Failure) -> Option<Result<ModelEvent, Failure>> {
        self.phase = Phase::Over;
        let asked = self.asked.take().or_else(|| fault::wait(&error.message));
        let is_loading = error.status == Some(503)
            && self.provider.endpoint.is_own_server()
            && error.message.to_ascii_lowercase().contains("loading");
        if !is_loading || self.loading >= LOADING_TRIES {
            return Some(self.retry(error, asked));
        }
        self.loading += 1;
        self.tries = self.tries.saturating_sub(1);
        let wait = asked.unwrap_or(LOADING_WAIT).min(LONGEST_WAIT);
        self.phase = Phase::Wait(wait);
        (self.loading == 1).then(|| {
            let reason = "the server is loading its model, which may take minutes".to_owned();
            let attempt = self.loading;
            Ok(ModelEvent::Retry {
                attempt,
                wait,
                reason,
            })
        })
    }

    fn retry(
        &mut self,
        mut error: Failure,
        asked: Option<Duration>,
    ) -> Result<ModelEvent, Failure> {
        // Waiting for minutes a second time is pointless.
        let silence = error.code == ErrorCode::Timeout && error.status.is_none();
        if self.output || silence || !error.retryable {
            return Err(error);
        }
        if self.tries >= TRIES {
            error.message = format!("{} (tried {TRIES} times)", error.message);
            return Err(error);
        }
        let wait = asked.unwrap_or_else(|| backoff(self.tries));
        if self.waited + wait > LONGEST_WAIT {
            error.message = format!("{} (retry after {} s)", error.message, wait.as_secs());
            return Err(error);
        }
        self.waited += wait;
        self.phase = Phase::Wait(wait);
        Ok(ModelEvent::Retry {
            attempt: self.tries,
            wait,
            reason: fault::cause(&error.message).to_owned(),
        })
    }

    /// Advances by one wait, answer or read; `false` when nothing is left.
    async fn step(&mut self) -> bool {
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Send => self.send().await,
            Phase::Wait(wait) => {
                tokio::time::sleep(wait).await;
                self.phase = Phase::Send;
            }
            Phase::Read(answer, decoder) => self.read(answer, decoder).await,
            Phase::Drain(mut answer) => {
                let rest = async { while let Some(Ok(_)) = answer.body.next().await {} };
                _ = timeout(GRACE, rest).await;
            }
            Phase::Over => return false,
        }
        true
    }

    async fn send(&mut self) {
        self.tries += 1;
        let provider = Arc::clone(&self.provider);
        let Connection {
            endpoint,
            http,
            learned,
        } = &*provider;
        let refused = learned.lock().taught.refused.clone();
        if !refused.is_empty() {
            self.body = body::without(&self.body, &refused).into();
        }
        let body = match learned.forgotten(&self.conversation, &self.body) {
            Some(first) => body::without_thoughts(&self.body, first).into(),
            None => self.body.clone(),
        };
        let sending = http.send(endpoint, &self.conversation, body);
        let sent = within_first_byte(endpoint, sending)
            .await
            .and_then(|sent| sent);
        let mut answer = match sent {
            Ok(answer) => answer,
            Err(error) => return self.failed = Some(error),
        };
        self.key = answer.key.take();
        if (200..300).contains(&answer.status) {
            self.phase = Phase::Read(answer, StreamDecoder::new(endpoint.api).into());
            return;
        }
        let status = answer.status;
        self.asked = answer.retry_after;
        let said = text(endpoint, answer, Vec::new(), LARGEST_ERROR).await;
        if self.adapt(status, &said) {
            return;
        }
        let mut error = fault::of_status(endpoint, status, &said);
        if fault::is_unknown_model(status, &said)
            && let Ok(Ok(models)) = timeout(LISTING, catalog::models(http, endpoint)).await
            && let near = catalog::nearest(&endpoint.model, &models)
            && !near.is_empty()
        {
            error.message = format!(
                "{}; {} offers {}",
                error.message,
                endpoint.provider,
                near.join(", ")
            );
        }
        self.failed = Some(error);
    }

    /// Omits what the server refused, and sends the request again at once; `false` if that was not the cause. A different
    /// API requires the messages, so it is only recorded here for the turn.
    fn adapt(&mut self, status: u16, said: &str) -> bool {
        let provider = Arc::clone(&self.provider);
        let Connection {
            endpoint, learned, ..
        } = &*provider;
        let (name, model) = (&endpoint.provider, &endpoint.model);
        let remedy = fault::remedy(endpoint, status, said, &self.body);
        let send_again = !matches!(remedy, Some(Remedy::Dialect(_)));
        let notice = match remedy {
            Some(Remedy::Without(path)) => {
                let body = body::without(&self.body, std::slice::from_ref(&path));
                if body.len() == self.body.len() {
                    return false;
                }
                self.body = body.into();
                // Another request may have been refused for it at the same time.
                learned.refuse(&path).then(|| {
                    format!(
                        "{name} does not accept `{path}` for {model}; omitting it for the rest of this session"
                    )
                })
            }
            Some(Remedy::Forget) if learned.forget(&self.conversation, &self.body) => {
                Some(format!(
                    "{name} rejects the earlier reasoning of {model}, because the messages before it have changed; omitting it"
                ))
            }
            Some(Remedy::Dialect(api)) if learned.switch(api) => Some(format!(
                "{name} expects the `{api}` API for {model}; using it for the rest of this session"
            )),
            _ => return false,
        };
        if let Some(notice) = notice {
            self.batch.push(ModelEvent::Notice(notice));
        }
        if send_again {
            self.tries -= 1;
            self.phase = Phase::Send;
        }
        send_again
    }

    async fn read(&mut self, mut answer: Answer, mut decoder: Box<StreamDecoder>) {
        let provider = Arc::clone(&self.provider);
        let endpoint = &provider.endpoint;
        let TimeLimits {
            first_byte,
            between,
            ..
        } = endpoint.limits;
        let bytes = if decoder.fresh() {
            within_first_byte(endpoint, answer.body.next()).await
        } else {
            // Some models think silently for minutes.
            let longer = first_byte.filter(|limit| !self.writes && *limit > between);
            let limit = longer.unwrap_or(between);
            timeout(limit, answer.body.next())
                .await
                .map_err(|_| fault::timeout(endpoint, "no more", limit))
        };
        let mut lost = None;
        let fed = match bytes {
            Ok(Some(Ok(bytes))) => {
                if decoder.fresh() && is_document(&bytes) {
                    return self.document(answer, decoder, bytes).await;
                }
                self.size += bytes.len();
                let fed = if self.size > LARGEST_STREAM {
                    Err(fault::too_large(LARGEST_STREAM))
                } else {
                    decoder.feed(&bytes, &mut self.batch)
                };
                if fed.is_ok() && !decoder.done() {
                    return self.phase = Phase::Read(answer, decoder);
                }
                fed
            }
            Ok(None) => Ok(()),
            Ok(Some(Err(error))) | Err(error) => {
                lost = Some(error);
                Ok(())
            }
        };
        // The decoder's remaining events belong to the answer. One that had ended is complete even if the connection
        // breaks afterwards, and a missing end is the lesser error.
        let ended = decoder.end(&mut self.batch);
        self.failed = match fed {
            Ok(()) => ended.err().map(|error| lost.unwrap_or(error)),
            Err(error) => Some(fault::explained(endpoint, error)),
        };
        if self.failed.is_none() {
            self.phase = Phase::Drain(answer);
        }
    }

    /// A document instead of a stream: a complete answer, or an error.
    async fn document(&mut self, answer: Answer, mut decoder: Box<StreamDecoder>, begin: Bytes) {
        let endpoint = &self.provider.endpoint;
        let body = text(endpoint, answer, begin.into(), LARGEST).await;
        self.failed = match whole::stream(endpoint.api, &body) {
            Some(stream) => {
                let fed = decoder.feed(&stream, &mut self.batch);
                fed.and(decoder.end(&mut self.batch))
                    .map_err(|error| fault::explained(endpoint, error))
                    .err()
            }
            None => Some(fault::no_stream(endpoint, &body)),
        };
    }
}

async fn within_first_byte<T>(
    endpoint: &Endpoint,
    work: impl Future<Output = T>,
) -> Result<T, Failure> {
    match endpoint.limits.first_byte {
        Some(limit) => timeout(limit, work)
            .await
            .map_err(|_| fault::timeout(endpoint, "nothing", limit)),
        None => Ok(work.await),
    }
}

/// The rest of a body that is not a stream, as far as it arrives in time.
async fn text(
    endpoint: &Endpoint,
    mut answer: Answer,
    mut body: Vec<u8>,
    largest: usize,
) -> String {
    while body.len() < largest
        && let Ok(Some(Ok(bytes))) = timeout(endpoint.limits.between, answer.body.next()).await
    {
        body.extend_from_slice(&bytes);
    }
    body.truncate(largest);
    String::from_utf8_lossy(&body).into_owned()
}

/// Neither JSON nor a web page is a stream of events, whatever its content type says.
fn is_document(bytes: &[u8]) -> bool {
    matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'[' | b'<'))
}

/// Doubles with every attempt, with up to a quarter of random variation, so that clients do not retry in step.
fn backoff(tries: u32) -> Duration {
    let base = FIRST_WAIT * 2_u32.pow(tries.saturating_sub(1));
    let random = RandomState::new().hash_one(tries) % 512;
    base * (768 + u32::try_from(random).expect("less than 512")) / 1024
}
