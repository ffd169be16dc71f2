//! What went wrong, in the provider's words, and what to do about it.

use std::time::Duration;

use serde_json::Value;

use super::{Endpoint, ErrorCode, ModelError};

/// An error of an HTTP status.
pub(super) fn of_status(endpoint: &Endpoint, status: u16, body: &str) -> ModelError {
    let words = words(body);
    let code = code(Some(status), &words.kind, &words.message);
    let said = match words.message.as_str() {
        "" => "no explanation".to_owned(),
        message => message.to_owned(),
    };
    let mut message = format!("{} answered {status}: {said}", endpoint.provider);
    if let Some(way) = way_out(endpoint, status, code, &words) {
        message.push_str(" — ");
        message.push_str(&way);
    }
    let transient = matches!(status, 408 | 409 | 425 | 429 | 500..=599);
    ModelError { code, message, status: Some(status), retryable: transient && !is_quota(&words) && !is_final(code) }
}

/// An error inside a stream that began with status 200.
pub(super) fn in_stream(data: &str) -> ModelError {
    let words = words(data);
    let status = words.status;
    let code = code(status, &words.kind, &words.message);
    let retryable = match status {
        Some(status) => matches!(status, 408 | 409 | 425 | 429 | 500..=599),
        None => matches!(code, ErrorCode::Overloaded | ErrorCode::RateLimit) || is_server_fault(&words.kind),
    };
    let retryable = retryable && !is_quota(&words) && !is_final(code);
    ModelError { code, message: words.message, status, retryable }
}

/// A stream that ended without an end.
pub(super) fn truncated() -> ModelError {
    ModelError {
        code: ErrorCode::Truncated,
        message: "the answer was cut off: the connection closed before its end".to_owned(),
        status: None,
        retryable: true,
    }
}

/// A setting that cannot work.
pub(super) fn setting(what: &str) -> ModelError {
    ModelError { code: ErrorCode::InvalidRequest, message: what.to_owned(), status: None, retryable: false }
}

/// A document where a stream was expected: often an error that came with status 200.
pub(super) fn no_stream(endpoint: &Endpoint, body: &str) -> ModelError {
    let has_error =
        serde_json::from_str::<Value>(body).is_ok_and(|value| value.get("error").is_some_and(|e| !e.is_null()));
    if has_error {
        return in_stream(body);
    }
    let what = if body.trim_start().starts_with('<') { "a web page" } else { "a document" };
    setting(&format!(
        "{} answered with {what} instead of a stream: {} — check base-url ({})",
        endpoint.provider,
        words(body).message,
        endpoint.base_url
    ))
}

/// A stream that cannot be read on.
pub(super) fn unreadable(why: &impl std::fmt::Display) -> ModelError {
    ModelError { code: ErrorCode::InvalidRequest, message: why.to_string(), status: None, retryable: false }
}

/// An endpoint that cannot be reached, or a connection that broke.
pub(super) fn network(endpoint: &Endpoint, why: &str) -> ModelError {
    let message = format!("cannot reach {} at {}: {why}", endpoint.provider, endpoint.base_url);
    ModelError { code: ErrorCode::Network, message, status: None, retryable: true }
}

/// Silence.
pub(super) fn timeout(endpoint: &Endpoint, what: &str, limit: Duration) -> ModelError {
    let message = format!("{} sent {what} for {} s", endpoint.provider, limit.as_secs_f32());
    ModelError { code: ErrorCode::Timeout, message, status: None, retryable: true }
}

/// What an error body says.
#[derive(Debug, Default)]
struct Words {
    message: String,
    /// The provider's type and code, side by side.
    kind: String,
    status: Option<u16>,
}

/// Longer error texts are cut: some gateways send whole pages.
const LONGEST: usize = 2000;

fn words(body: &str) -> Words {
    let body = body.trim();
    let mut words = match serde_json::from_str::<Value>(body) {
        Ok(value) => of_value(&value),
        Err(_) if body.starts_with('<') => Words { message: html_text(body), ..Words::default() },
        Err(_) => Words { message: body.to_owned(), ..Words::default() },
    };
    if let Some((at, _)) = words.message.char_indices().nth(LONGEST) {
        words.message.truncate(at);
        words.message.push('…');
    }
    words
}

/// Finds the error in `{"error": {…}}`, `{"error": "…"}`, `{"message": …}`, `{"detail": …}`, or a list of these.
fn of_value(value: &Value) -> Words {
    let value = value.get(0).unwrap_or(value);
    let error = ["error", "response"].iter().find_map(|field| value.get(field)).unwrap_or(value);
    let error = error.get("error").filter(|inner| !inner.is_null()).unwrap_or(error);
    let text = |field: &str| error.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    let nested = error.pointer("/metadata/raw").and_then(Value::as_str).filter(|raw| !raw.is_empty());
    let message = match (error.as_str().or_else(|| text("message")), nested) {
        (Some(message), Some(raw)) => format!("{message} ({})", self::words(raw).message),
        (Some(message), None) => message.to_owned(),
        (None, _) => ["detail", "error_description", "msg", "title", "type", "code"]
            .iter()
            .find_map(|field| text(field))
            .map_or_else(|| error.to_string(), str::to_owned),
    };
    let kind = ["type", "code", "status"].iter().filter_map(|field| text(field)).collect::<Vec<_>>().join(" ");
    let status = ["code", "status", "status_code"].iter().find_map(|field| {
        let value = error.get(field)?;
        value.as_u64().or_else(|| value.as_str()?.parse().ok())
    });
    let status = status.and_then(|status| u16::try_from(status).ok()).filter(|status| (400..600).contains(status));
    Words { message, kind, status }
}

/// The title of a page, else its text without tags.
fn html_text(page: &str) -> String {
    let title = page.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
    if let Some((title, _)) = title {
        return title.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    let text: String = page.split('<').map(|tag| tag.split_once('>').map_or("", |(_, text)| text)).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn code(status: Option<u16>, kind: &str, message: &str) -> ErrorCode {
    let has = |needles: &[&str]| {
        let (kind, message) = (kind.to_lowercase(), message.to_lowercase());
        needles.iter().any(|needle| kind.contains(needle) || message.contains(needle))
    };
    if has(OVERFLOW) && !has(&["rate limit", "rate_limit", "per minute"]) {
        return ErrorCode::ContextOverflow;
    }
    match status {
        Some(401 | 403) => return ErrorCode::Auth,
        Some(402 | 429) => return ErrorCode::RateLimit,
        Some(503 | 529) => return ErrorCode::Overloaded,
        Some(408 | 504) => return ErrorCode::Timeout,
        Some(400..=499) => return ErrorCode::InvalidRequest,
        Some(500..) => return ErrorCode::Network,
        _ => {}
    }
    let kind = kind.to_lowercase();
    let kind_has = |needles: &[&str]| needles.iter().any(|needle| kind.contains(needle));
    if kind_has(&["authentication", "permission", "invalid_api_key", "unauthorized"]) {
        ErrorCode::Auth
    } else if kind_has(&["rate_limit", "quota", "billing", "too_many_requests", "resource_exhausted"]) {
        ErrorCode::RateLimit
    } else if has(&["overload", "at capacity", "over capacity", "server is busy"]) {
        ErrorCode::Overloaded
    } else if is_server_fault(&kind) {
        ErrorCode::Network
    } else {
        ErrorCode::InvalidRequest
    }
}

fn is_server_fault(kind: &str) -> bool {
    let kind = kind.to_lowercase();
    ["server_error", "api_error", "internal", "unavailable", "timeout"].iter().any(|word| kind.contains(word))
}

/// How providers say that the conversation does not fit.
const OVERFLOW: &[&str] = &[
    "context_length_exceeded",
    "exceed_context_size",
    "model_context_window_exceeded",
    "maximum context length",
    "context length exceeded",
    "context window",
    "context size",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "input length and `max_tokens` exceed",
    "input token count",
    "exceeds the maximum number of tokens",
    "maximum prompt length",
    "too many tokens",
    "too large for model with",
    "reduce the length of the messages",
    "exceeds the context",
    "exceeds the available context",
    "longer than the model's context",
    "longer than the maximum",
    "tokens exceed",
    "token limit exceeded",
];

/// No credit is not a matter of waiting.
fn is_quota(words: &Words) -> bool {
    let text = format!("{} {}", words.kind, words.message).to_lowercase();
    [
        "insufficient_quota",
        "exceeded your current quota",
        "billing",
        "credit balance",
        "insufficient credit",
        "insufficient balance",
    ]
    .iter()
    .any(|word| text.contains(word))
}

fn is_final(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::ContextOverflow | ErrorCode::Auth)
}

fn way_out(endpoint: &Endpoint, status: u16, code: ErrorCode, words: &Words) -> Option<String> {
    let provider = &endpoint.provider;
    Some(match (status, code) {
        (_, ErrorCode::ContextOverflow) => "the conversation is longer than the model's window".to_owned(),
        _ if is_quota(words) => {
            format!("the quota is used up: check plan and billing at {provider}, or choose another model")
        }
        (401, _) => format!("the API key for {provider} is missing or wrong: check api-key-env or TANDEM_API_KEY"),
        (402, _) => format!("add credit at {provider}, or choose another model"),
        (403, _) => format!(
            "the API key for {provider} may not use {}: check its rights, or choose another model",
            endpoint.model
        ),
        (404, _) => format!(
            "check the model's name ({}) and the base URL ({}); `tandem models` lists what is there",
            endpoint.model, endpoint.base_url
        ),
        (413, _) => "the request is too large: start a new session or leave out large files".to_owned(),
        (300..=399, _) => "set base-url to where the endpoint really is".to_owned(),
        (429, _) => "too many requests: wait a little, or choose another model".to_owned(),
        (500..=599, _) => "the fault is the server's: try again later, or choose another model".to_owned(),
        _ => return None,
    })
}
