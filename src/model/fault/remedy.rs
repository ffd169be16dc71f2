//! How to make a refused request acceptable: another API, one field less, or no earlier thoughts. Pure.

use serde_json::Value;

use super::words::Words;
use crate::model::Api;

/// A remedy for a refusal.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::model) enum Remedy {
    /// Use this API.
    Dialect(Api),
    /// Omit the field at this path.
    Without(String),
    /// Omit the thoughts of earlier answers, which were made for another beginning, account or model.
    Forget,
}

/// Fields that are always required.
const NEEDED: [&str; 7] = [
    "model",
    "messages",
    "input",
    "tools",
    "system",
    "instructions",
    "stream",
];

/// Other names servers use for a field when they refuse it.
const ALIASES: [(&str, &[&str]); 5] = [
    ("reasoning.effort", &["reasoning_effort", "reasoningEffort"]),
    (
        "reasoning.summary",
        &["reasoning summaries", "reasoning summary"],
    ),
    ("reasoning_effort", &["reasoningEffort", "reasoning effort"]),
    ("output_config", &["effort"]),
    ("include", &["encrypted_content", "encrypted content"]),
];

/// The remedy for a request with this body, by the server's message.
pub(super) fn find(api: Api, status: u16, words: &Words, body: &[u8]) -> Option<Remedy> {
    if let Some(other) = dialect(api, status, words) {
        return Some(Remedy::Dialect(other));
    }
    if !matches!(status, 400 | 422) {
        return None;
    }
    if refuses_thoughts(words) {
        return Some(Remedy::Forget);
    }
    let body: Value = serde_json::from_slice(body).ok()?;
    let mut fields = candidates(api, &body);
    // The most specific name counts: `reasoning.effort` before `reasoning`.
    fields.sort_by_key(|field| std::cmp::Reverse(field.len()));
    let by_param = fields
        .iter()
        .find(|field| words.param.as_deref() == Some(field.as_str()));
    let by_name = || {
        fields
            .iter()
            .find(|field| names(field).any(|name| is_named(&words.message, name)))
    };
    by_param.or_else(by_name).cloned().map(Remedy::Without)
}

/// Whether a check of signed or encrypted thoughts failed.
fn refuses_thoughts(words: &Words) -> bool {
    let message = words.message.to_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| message.contains(part));
    let names_them = has(&["signature", "encrypted content", "encrypted_content"]);
    names_them
        && has(&[
            "invalid",
            "not valid",
            "corrupt",
            "not be verified",
            "not be decrypted",
        ])
}

/// The API the server's message points to. A server without the responses API does not know the path.
fn dialect(api: Api, status: u16, words: &Words) -> Option<Api> {
    let said = |text: &str| words.message.contains(text);
    match api {
        Api::Chat if matches!(status, 400 | 404) && said("/responses") => Some(Api::Responses),
        Api::Responses
            if matches!(status, 400 | 404)
                && (said("/chat/completions") || said("Responses API")) =>
        {
            Some(Api::Chat)
        }
        Api::Responses
            if matches!(status, 404 | 405 | 501)
                && !words.message.to_lowercase().contains("model") =>
        {
            Some(Api::Chat)
        }
        _ => None,
    }
}

/// Fields of a body, and fields inside them, that can be omitted.
fn candidates(api: Api, body: &Value) -> Vec<String> {
    let mut fields = Vec::new();
    for (field, value) in body.as_object().into_iter().flatten() {
        if NEEDED.contains(&field.as_str()) || api == Api::Messages && field == "max_tokens" {
            continue;
        }
        fields.push(field.clone());
        if field == "reasoning" {
            fields.extend(
                value
                    .as_object()
                    .into_iter()
                    .flatten()
                    .map(|(inner, _)| format!("{field}.{inner}")),
            );
        }
    }
    let tools = body["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_object);
    let of_tools = ["eager_input_streaming", "strict"].into_iter();
    let tools: Vec<_> = tools.collect();
    fields.extend(
        of_tools
            .filter(|field| tools.iter().any(|tool| tool.contains_key(*field)))
            .map(str::to_owned),
    );
    fields
}

fn names(field: &str) -> impl Iterator<Item = &str> {
    let aliases = ALIASES
        .iter()
        .find(|(name, _)| *name == field)
        .map_or(&[][..], |(_, aliases)| aliases);
    std::iter::once(field).chain(aliases.iter().copied())
}

/// Whether `message` mentions the field. A name that is also an English word counts only if it is quoted.
fn is_named(message: &str, name: &str) -> bool {
    let is_word = name.chars().all(|c| c.is_ascii_lowercase());
    message.match_indices(name).any(|(at, _)| {
        let (before, rest) = message.split_at(at);
        let after = rest.get(name.len()..).unwrap_or_default();
        let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if before.ends_with(part) || after.starts_with(part) {
            return false;
        }
        !is_word
            || after.starts_with(['\'', '"', '`'])
            || after.starts_with(": ") && before.is_empty()
            || before.ends_with('(') && after.starts_with(')')
            || after.starts_with(" parameter")
            || after.starts_with('.') && !after.starts_with(". ") && after.len() > 1
            || [
                "parameter ",
                "parameter: ",
                "argument ",
                "supplied: ",
                "field ",
                "field: ",
                "property ",
                "(body.",
            ]
            .iter()
            .any(|word| before.ends_with(word))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::fault::words;

    #[track_caller]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a case writes what it expects in place"
    )]
    fn check(api: Api, status: u16, error: &str, expected: Option<Remedy>) {
        let body = json!({
            "model": "m", "stream": true, "store": false, "include": ["reasoning.encrypted_content"],
            "reasoning": { "effort": "high", "summary": "auto" }, "reasoning_effort": "high", "max_tokens": 5,
            "thinking": { "type": "adaptive" }, "output_config": { "effort": "high" }, "prompt_cache_key": "k",
            "stream_options": {}, "tools": [{ "name": "f", "eager_input_streaming": true }], "messages": [],
        });
        assert_eq!(
            find(
                api,
                status,
                &words::read(error),
                body.to_string().as_bytes()
            ),
            expected,
            "{error}"
        );
    }

    #[expect(clippy::unnecessary_wraps, reason = "it is what a case expects")]
    fn without(path: &str) -> Option<Remedy> {
        Some(Remedy::Without(path.to_owned()))
    }

    #[test]
    fn refused_fields_are_recognized_by_name() {
        let check = |error, path: &str| check(Api::Chat, 400, error, without(path));
        check(
            r#"{"error":"Model grok-4 does not support parameter reasoningEffort."}"#,
            "reasoning.effort",
        );
        check(
            r#"{"error":{"message":"Unsupported parameter: 'reasoning_effort' is not supported with this model.","param":"reasoning_effort"}}"#,
            "reasoning_effort",
        );
        check(
            r#"{"error":{"message":"Your organization must be verified to generate reasoning summaries.","param":"reasoning.summary"}}"#,
            "reasoning.summary",
        );
        check(
            "Encrypted content is not supported with this model. (include)",
            "include",
        );
        check(
            "thinking.type.enabled is not supported for this model.",
            "thinking",
        );
        check("thinking: Extra inputs are not permitted", "thinking");
        check(
            "Unrecognized request argument supplied: prompt_cache_key",
            "prompt_cache_key",
        );
        check(
            "tools.0.custom.eager_input_streaming: Extra inputs are not permitted",
            "eager_input_streaming",
        );
        check(
            r#"{"detail":[{"loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}"#,
            "stream_options",
        );
        check(
            "This model does not support the effort parameter.",
            "output_config",
        );
    }

    #[test]
    fn refused_thoughts_are_recognized() {
        for error in [
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.5.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation."}}"#,
            r#"{"error":{"code":"invalid_encrypted_content","message":"The encrypted content gAAA could not be verified. Reason: Encrypted content could not be decrypted or parsed."}}"#,
            r#"{"error":{"code":400,"message":"Corrupted thought signature.","status":"INVALID_ARGUMENT"}}"#,
        ] {
            check(Api::Messages, 400, error, Some(Remedy::Forget));
        }
    }

    #[test]
    fn prose_is_not_a_field_name() {
        check(
            Api::Chat,
            400,
            "messages must include a user message; the store is closed",
            None,
        );
        check(Api::Chat, 401, "reasoning_effort is not allowed", None);
        check(
            Api::Messages,
            400,
            "max_tokens: 64000 > 8192, which is the maximum",
            None,
        );
    }

    #[test]
    fn a_suggested_dialect_is_recognized() {
        let tools = "Function tools with reasoning_effort are not supported for gpt-5.5 in /v1/chat/completions. Please use \
                     /v1/responses instead.";
        check(Api::Chat, 400, tools, Some(Remedy::Dialect(Api::Responses)));
        let only = "This model is only supported in v1/responses and not in v1/chat/completions.";
        check(Api::Chat, 404, only, Some(Remedy::Dialect(Api::Responses)));
        check(
            Api::Responses,
            404,
            "Not Found",
            Some(Remedy::Dialect(Api::Chat)),
        );
        check(
            Api::Responses,
            404,
            "The model `gpt-9` does not exist",
            None,
        );
        check(
            Api::Responses,
            400,
            "Use /v1/chat/completions for this model",
            Some(Remedy::Dialect(Api::Chat)),
        );
        check(Api::Messages, 400, "see /v1/responses", None);
    }
}
