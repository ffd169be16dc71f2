//! Errors: the provider's message, and what to do about it.

mod kind;
mod remedy;
mod words;

use std::fmt::Display;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::{Endpoint, ErrorCode, Failure};
pub(super) use remedy::Remedy;
use words::Words;
pub(super) use words::wait;

/// Separates a cause from what to do about it.
const WAY: &str = " — ";

/// What a proxy of the environment may lack.
const PROXY: &str = "if the proxy needs a password, put it in the variable: HTTPS_PROXY=http://NAME:PASSWORD@HOST:PORT";

/// An error of an HTTP status.
pub(super) fn of_status(endpoint: &Endpoint, status: u16, body: &str) -> Failure {
    let words = words::read(body);
    let code = kind::code(Some(status), &words);
    let said = if words.message.is_empty() {
        "no explanation"
    } else {
        &words.message
    };
    let message = format!(
        "{}: HTTP {status}: {said}{}",
        endpoint.provider,
        way_out(endpoint, Some(status), &words)
    );
    Failure {
        code,
        message,
        status: Some(status),
        retryable: kind::is_transient(Some(status), &words),
    }
}

/// Whether the model does not exist, or no longer.
pub(super) fn is_unknown_model(status: u16, said: &str) -> bool {
    kind::is_unknown_model(status, &words::read(said))
}

/// What would make a refused request acceptable, if anything.
pub(super) fn remedy(endpoint: &Endpoint, status: u16, said: &str, body: &[u8]) -> Option<Remedy> {
    let words = words::read(said);
    if kind::code(Some(status), &words) == ErrorCode::ContextOverflow {
        return None;
    }
    remedy::find(endpoint.api, status, &words, body)
}

/// An error inside a stream that began with status 200, with only the provider's message.
pub(super) fn in_stream(data: &str) -> Failure {
    let words = words::read(data);
    let status = words.status;
    Failure {
        code: kind::code(status, &words),
        retryable: kind::is_transient(status, &words),
        message: words.message,
        status,
    }
}

/// The same for the person: names the provider and says what to do.
pub(super) fn explained(endpoint: &Endpoint, error: Failure) -> Failure {
    if error.code == ErrorCode::Truncated {
        return error;
    }
    let words = words::read(&error.message);
    let message = format!(
        "{}: {}{}",
        endpoint.provider,
        error.message,
        way_out(endpoint, error.status, &words)
    );
    Failure { message, ..error }
}

/// A stream that ended without its terminator.
pub(super) fn truncated() -> Failure {
    Failure::passing(
        ErrorCode::Truncated,
        "the connection closed before the response was complete",
    )
}

/// A connection that was lost during an answer.
pub(super) fn cut_off(why: &str) -> Failure {
    Failure::passing(
        ErrorCode::Truncated,
        format!("the answer was cut off: {why}"),
    )
}

/// An answer that filled the model's window before its end.
pub(super) fn window_full() -> Failure {
    Failure::new(
        ErrorCode::ContextOverflow,
        "the answer filled the model's context window",
    )
}

/// An answer that its provider ended with a word for a failure.
pub(super) fn broken_off(word: &str) -> Failure {
    Failure::passing(
        ErrorCode::Network,
        format!("the provider ended the answer with an error (`{word}`)"),
    )
}

/// An invalid setting, or an unreadable answer.
pub(super) fn invalid(what: &impl Display) -> Failure {
    Failure::new(ErrorCode::InvalidRequest, what.to_string())
}

/// An answer of more than `largest` bytes.
pub(super) fn too_large(largest: usize) -> Failure {
    let largest = largest >> 20;
    invalid(&format!("the answer is larger than {largest} MiB"))
}

/// A document instead of a stream: often an error with status 200.
pub(super) fn no_stream(endpoint: &Endpoint, body: &str) -> Failure {
    let value = serde_json::from_str::<Value>(body).unwrap_or_default();
    if value.get("error").is_some_and(|error| !error.is_null()) {
        return explained(endpoint, in_stream(body));
    }
    let what = if body.trim_start().starts_with('<') {
        "a web page"
    } else {
        "a document"
    };
    let said = words::read(body).message;
    let (provider, address) = (&endpoint.provider, endpoint.address());
    invalid(&format!(
        "{provider} answered with {what} instead of a stream: {said} — check base-url ({address})"
    ))
}

/// Removes the key, which some providers quote.
pub(super) fn without_key(key: Option<&SecretString>, mut error: Failure) -> Failure {
    let key = key.map(ExposeSecret::expose_secret).unwrap_or_default();
    // A shorter one is a placeholder for a server that wants none.
    if key.len() >= 8 {
        error.message = error.message.replace(key, "[secret]");
    }
    error
}

/// An endpoint that cannot be reached.
pub(super) fn network(endpoint: &Endpoint, why: &str) -> Failure {
    let (provider, address) = (&endpoint.provider, endpoint.address());
    let proxy = match &endpoint.proxy {
        Some(proxy) if !endpoint.is_plain_loopback() => {
            format!(", and the proxy {proxy}; {PROXY}")
        }
        _ => String::new(),
    };
    let way = format!("check that it runs and that base-url is right{proxy}");
    let message = format!("cannot reach {provider} at {address}: {why}{WAY}{way}");
    Failure::passing(ErrorCode::Network, message)
}

/// Silence.
pub(super) fn timeout(endpoint: &Endpoint, what: &str, limit: Duration) -> Failure {
    let message = format!(
        "{} sent {what} for {} s",
        endpoint.provider,
        limit.as_secs_f32()
    );
    Failure::passing(ErrorCode::Timeout, message)
}

/// What to do, as the end of a message.
fn way_out(endpoint: &Endpoint, status: Option<u16>, words: &Words) -> String {
    let Endpoint {
        provider, model, ..
    } = endpoint;
    let address = endpoint.address();
    let way = match (status.unwrap_or_default(), kind::code(status, words)) {
        (_, ErrorCode::ContextOverflow) => {
            "the session is longer than the model's context window".to_owned()
        }
        _ if kind::is_quota(words) => {
            format!(
                "the quota is used up: check plan and billing at {provider}, or choose another model"
            )
        }
        (401, _) => format!(
            "the API key for {provider} is missing or wrong: set it in your editor's setup, with `tandem login`, in TANDEM_API_KEY, or in the variable named by api-key-env"
        ),
        (402, _) => format!("add credit at {provider}, or choose another model"),
        (403, _) => {
            format!(
                "the API key for {provider} has no access to {model}: check its permissions, or choose another model"
            )
        }
        (404, _) if model == "?" => {
            format!("check the base URL ({address}), which ends in /v1 for most servers")
        }
        (404, _) => format!(
            "check the model's name ({model}) and the base URL ({address}); `tandem models` lists the available models"
        ),
        (407, _) => PROXY.to_owned(),
        (413, _) => {
            "the request is too large: start a new session or leave out large files".to_owned()
        }
        (300..=399, _) => "set base-url to the endpoint's actual location".to_owned(),
        (429, _) => "too many requests: wait a little, or choose another model".to_owned(),
        (500..=599, _) => "the server failed: try again later, or choose another model".to_owned(),
        _ => return String::new(),
    };
    format!("{WAY}{way}")
}

/// The cause without the advice, for somebody who only has to wait.
pub(super) fn cause(message: &str) -> &str {
    message.split_once(WAY).map_or(message, |(cause, _)| cause)
}
