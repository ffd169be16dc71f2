//! Classifies errors, and decides whether a retry may help.

use super::words::{Words, wait};
use crate::model::ErrorCode;

/// The kind, by status if there is one, otherwise by the provider's message.
pub(super) fn code(status: Option<u16>, words: &Words) -> ErrorCode {
    if is_overflow(status, words) {
        return ErrorCode::ContextOverflow;
    }
    if is_about_images(status, words) {
        return ErrorCode::ImagesRefused;
    }
    match status {
        Some(401 | 403) => ErrorCode::Auth,
        Some(402 | 429) => ErrorCode::RateLimit,
        Some(503 | 529) => ErrorCode::Overloaded,
        Some(408 | 504) => ErrorCode::Timeout,
        Some(500..) => ErrorCode::Network,
        None if has(
            &words.kind,
            &["authentication", "permission", "api_key", "unauthorized"],
        ) =>
        {
            ErrorCode::Auth
        }
        None if has(
            &words.kind,
            &["rate_limit", "quota", "billing", "too_many", "exhausted"],
        ) =>
        {
            ErrorCode::RateLimit
        }
        None if has(&words.kind, BUSY) || has(&words.message, BUSY) => ErrorCode::Overloaded,
        None if has(&words.kind, BROKEN) => ErrorCode::Network,
        _ => ErrorCode::InvalidRequest,
    }
}

/// Whether the same request may work later.
pub(super) fn is_transient(status: Option<u16>, words: &Words) -> bool {
    let code = code(status, words);
    let transient = match status {
        Some(status) => matches!(status, 408 | 409 | 425 | 429 | 500..=599),
        None => matches!(
            code,
            ErrorCode::Overloaded | ErrorCode::RateLimit | ErrorCode::Network
        ),
    };
    transient
        && !matches!(code, ErrorCode::ContextOverflow | ErrorCode::ImagesRefused)
        && !is_quota(words)
}

/// Waiting does not help without credit. What says when to try again is a limit per minute, whatever it is called.
pub(super) fn is_quota(words: &Words) -> bool {
    wait(&words.message).is_none() && (has(&words.kind, QUOTA) || has(&words.message, QUOTA))
}

/// A limit on tokens per minute is not a context window, although the messages are similar.
fn is_overflow(status: Option<u16>, words: &Words) -> bool {
    let possible = matches!(status, None | Some(400 | 413 | 422 | 500));
    let said = has(&words.kind, OVERFLOW) || has(&words.message, OVERFLOW);
    possible && said && !has(&words.message, &["per minute", "per min", "rate limit"])
}

/// Providers have no code for images they do not take, but all of them name them.
fn is_about_images(status: Option<u16>, words: &Words) -> bool {
    let possible = matches!(status, None | Some(400 | 404 | 413 | 415 | 422 | 500));
    possible
        && has(&words.message, &["image"])
        && !(has(&words.message, &["model"]) && has(&words.message, GONE))
}

/// The model does not exist, or no longer.
pub(super) fn is_unknown_model(status: u16, words: &Words) -> bool {
    let about_models = has(&words.message, &["model"]) || has(&words.kind, &["model_not_found"]);
    matches!(status, 400 | 404 | 410 | 422)
        && about_models
        && (status == 404 || has(&words.message, GONE))
}

fn has(text: &str, needles: &[&str]) -> bool {
    let text = text.to_lowercase();
    needles.iter().any(|needle| text.contains(needle))
}

/// Providers' messages about an unknown model.
const GONE: &[&str] = &[
    "not exist",
    "not found",
    "not a valid model",
    "invalid model",
    "unknown model",
    "no such model",
    "decommissioned",
    "deprecated",
    "retired",
    "no longer",
];

const BUSY: &[&str] = &[
    "overload",
    "at capacity",
    "over capacity",
    "server is busy",
    "unavailable",
];
const BROKEN: &[&str] = &["server_error", "api_error", "internal", "timeout"];

const QUOTA: &[&str] = &[
    "insufficient_quota",
    "exceeded your current quota",
    "billing",
    "credit balance",
    "insufficient credit",
    "insufficient balance",
];

/// Providers' messages about a conversation that is too long.
const OVERFLOW: &[&str] = &[
    "context_length_exceeded",
    "exceed_context_size",
    "context_window_exceeded",
    "maximum context length",
    "context length exceeded",
    "context length is only",
    "context length of",
    "than the context length",
    "range of input length",
    "context window",
    "context size",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "input length and `max_tokens` exceed",
    "input token count",
    "exceeds the maximum number of tokens",
    "maximum prompt length",
    "maximum number of tokens allowed",
    "too many tokens",
    "too large for model with",
    "reduce the length of the messages",
    "exceeds the context",
    "longer than the model's context",
    "longer than the maximum",
    "prompt contains more tokens",
    "token limit exceeded",
    "exceeded model token limit",
    "exceeds max length",
    "max_new_tokens` must be",
    "`inputs` must have less than",
    "request body too large for",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::fault::words;

    #[track_caller]
    fn check(status: u16, body: &str, code: ErrorCode, transient: bool) {
        let (status, words) = ((status > 0).then_some(status), words::read(body));
        assert_eq!(
            (super::code(status, &words), is_transient(status, &words)),
            (code, transient),
            "{body}"
        );
    }

    #[test]
    fn context_overflow_is_recognized_for_all_providers() {
        for body in [
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
            "prompt is too long: 210000 tokens > 200000 maximum",
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            "the request exceeds the available context size. try increasing the context size or enable context shift",
            "input length and `max_tokens` exceed context limit: 199000 + 32000 > 200000",
            "Please reduce the length of the messages or completion.",
            "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
            "Prompt contains 130000 tokens and 0 draft tokens, too large for model with 128000 maximum context length",
            r#"{"error":{"message":"no","code":"context_length_exceeded"}}"#,
        ] {
            check(400, body, ErrorCode::ContextOverflow, false);
        }
        check(
            429,
            "Request too large: tokens per min (TPM): Limit 30000, too many tokens",
            ErrorCode::RateLimit,
            true,
        );
    }

    #[test]
    fn refused_images_are_recognized_for_all_providers() {
        for body in [
            "Invalid content type. image_url is only supported by certain models.",
            "This model does not support image input",
            "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum",
            r#"{"error":{"message":"Could not process image","type":"invalid_request_error"}}"#,
        ] {
            check(400, body, ErrorCode::ImagesRefused, false);
        }
        check(
            404,
            "No endpoints found that support image input",
            ErrorCode::ImagesRefused,
            false,
        );
        check(
            500,
            "image input is not supported - hint: you may need to provide the mmproj",
            ErrorCode::ImagesRefused,
            false,
        );
        check(
            404,
            "The model `gpt-image-9` does not exist",
            ErrorCode::InvalidRequest,
            false,
        );
        check(401, "no key for image models", ErrorCode::Auth, false);
        check(429, "too many images per min", ErrorCode::RateLimit, true);
    }

    #[test]
    fn a_missing_model_is_not_a_refused_field() {
        let check = |status, said: &str, expected| {
            assert_eq!(
                is_unknown_model(status, &words::read(said)),
                expected,
                "{said}"
            );
        };
        check(
            404,
            "The model `gpt-9` does not exist or you do not have access to it.",
            true,
        );
        check(400, "Model Not Exist", true);
        check(400, "anthropic/claude-9 is not a valid model ID", true);
        check(400, "The model `llama2-70b` has been decommissioned", true);
        check(404, "Not Found", false);
        check(
            400,
            "reasoning_effort is not supported with this model",
            false,
        );
    }

    #[test]
    fn stream_errors_are_classified_by_type() {
        let typed = |kind: &str| format!(r#"{{"error":{{"type":"{kind}","message":"no"}}}}"#);
        check(0, &typed("overloaded_error"), ErrorCode::Overloaded, true);
        check(0, &typed("rate_limit_exceeded"), ErrorCode::RateLimit, true);
        check(0, &typed("insufficient_quota"), ErrorCode::RateLimit, false);
        check(0, &typed("server_error"), ErrorCode::Network, true);
        check(0, &typed("authentication_error"), ErrorCode::Auth, false);
        check(
            0,
            &typed("invalid_request_error"),
            ErrorCode::InvalidRequest,
            false,
        );
        check(502, r#"{"error":"bad gateway"}"#, ErrorCode::Network, true);
        check(402, "Insufficient Balance", ErrorCode::RateLimit, false);
    }
}
