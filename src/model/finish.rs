//! Why the model stopped, from the word a provider has for it: by the stems of its parts, whatever API and host it
//! comes from.

use super::{Failure, Finish, fault};

/// The longest part of an unknown word that is shown, in characters.
const LONGEST: usize = 60;

/// What a word means.
#[derive(Clone, Copy)]
enum Kind {
    /// The context window is full: the conversation must get shorter before it can go on.
    Window,
    Malformed,
    Filter,
    Refusal,
    /// The provider failed in the middle of its answer.
    Broken,
    Length,
    Calls,
    Pause,
    Stop,
}

/// The first rule with a stem that begins a part of the word decides.
const STEMS: [(Kind, &[&str]); 11] = [
    (Kind::Window, &["context", "window", "prompt"]),
    (Kind::Malformed, &["malform", "unpars"]),
    (
        Kind::Filter,
        &[
            "filter",
            "safe",
            "unsafe",
            "sensitive",
            "guard",
            "recit",
            "block",
            "prohibit",
            "spii",
            "pii",
            "moderat",
            "policy",
            "violat",
            "censor",
            "risk",
            "harm",
            "toxic",
            "copyright",
            "inappropriate",
        ],
    ),
    (Kind::Refusal, &["refus", "declin"]),
    (
        Kind::Broken,
        &[
            "error",
            "fail",
            "insufficient",
            "resource",
            "overload",
            "unavail",
            "timeout",
            "timed",
            "network",
            "server",
            "exception",
            "internal",
            "busy",
            "capacity",
            "abort",
            "cancel",
            "interrupt",
            "preempt",
            "evict",
            "disconnect",
            "quota",
            "rate",
            "exhaust",
            "crash",
            "unload",
            "deadline",
        ],
    ),
    (
        Kind::Malformed,
        &["unexpected", "invalid", "missing", "many"],
    ),
    (Kind::Stop, &["eos", "eot", "stop", "natural"]),
    (
        Kind::Length,
        &[
            "length",
            "max",
            "token",
            "limit",
            "truncated",
            "incomplete",
            "budget",
        ],
    ),
    (Kind::Calls, &["tool", "function", "call"]),
    (Kind::Pause, &["pause"]),
    (
        Kind::Stop,
        &[
            "end", "done", "complete", "finish", "success", "normal", "turn", "matched",
        ],
    ),
];

/// The meaning of a provider's word.
///
/// # Errors
/// The context window is full.
pub(super) fn read(word: &str) -> Result<Finish, Failure> {
    let parts = parts(word);
    let kind = STEMS.iter().find_map(|(kind, stems)| {
        let begins = |part: &String| stems.iter().any(|stem| part.starts_with(stem));
        parts.iter().any(begins).then_some(*kind)
    });
    let word: String = word.chars().take(LONGEST).collect();
    Ok(match kind {
        Some(Kind::Window) => return Err(fault::window_full()),
        Some(Kind::Malformed) => Finish::Malformed,
        Some(Kind::Filter) => Finish::ContentFilter(word),
        Some(Kind::Refusal) => Finish::Refusal,
        Some(Kind::Broken) => Finish::Broken(word),
        Some(Kind::Length) => Finish::Length,
        Some(Kind::Calls) => Finish::ToolCalls,
        Some(Kind::Pause) => Finish::Pause,
        Some(Kind::Stop) => Finish::Stop,
        None => Finish::Other(word),
    })
}

/// The lower-case parts of a word in any case: `MAX_TOKENS`, `maxTokens`, `max-tokens`.
fn parts(word: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_lower = false;
    for c in word.chars() {
        if !c.is_alphanumeric() || c.is_uppercase() && was_lower {
            parts.push(String::new());
        }
        was_lower = c.is_lowercase();
        if let Some(part) = parts.last_mut()
            && c.is_alphanumeric()
        {
            part.extend(c.to_lowercase());
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words of providers' references and issues (November 2026), and what each means.
    const WORDS: [(&str, &str); 10] = [
        (
            "window",
            "context_length_exceeded context_window_exceeded model_context_window_exceeded prompt_too_long",
        ),
        (
            "malformed",
            "malformed_function_call malformed_tool_use malformed_model_output unexpected_tool_call too_many_tool_calls missing_thought_signature",
        ),
        (
            "filter",
            "content_filter content_filtered safety image_safety sensitive guardrail_intervened recitation blocklist prohibited_content spii error_toxic",
        ),
        ("refusal", "refusal refused"),
        (
            "broken",
            "error network_error insufficient_system_resource abort aborted cancelled user_cancel timeout server_error overloaded resource_exhausted failed",
        ),
        (
            "length",
            "length max_tokens max_output_tokens model_length token_limit truncated incomplete",
        ),
        ("calls", "tool_calls tool_call tool_use function_call"),
        ("pause", "pause_turn"),
        (
            "stop",
            "stop end_turn stop_sequence eos eos_token complete completed finished matched_eos done",
        ),
        ("other", "other language load repetition"),
    ];

    fn meaning(word: &str) -> &'static str {
        match read(word) {
            Err(_) => "window",
            Ok(Finish::Malformed) => "malformed",
            Ok(Finish::ContentFilter(_)) => "filter",
            Ok(Finish::Refusal) => "refusal",
            Ok(Finish::Broken(_)) => "broken",
            Ok(Finish::Length) => "length",
            Ok(Finish::ToolCalls) => "calls",
            Ok(Finish::Pause) => "pause",
            Ok(Finish::Stop) => "stop",
            Ok(Finish::Other(_)) => "other",
        }
    }

    #[test]
    fn finish_reasons_are_read_in_every_spelling() {
        for (expected, words) in WORDS {
            for word in words.split(' ') {
                let mut camel = String::new();
                for (at, c) in word.char_indices() {
                    if at > 0 && word.as_bytes()[at - 1] == b'_' {
                        camel.push(c.to_ascii_uppercase());
                    } else if c != '_' {
                        camel.push(c);
                    }
                }
                for spelling in [
                    word.to_owned(),
                    word.to_uppercase(),
                    word.replace('_', "-"),
                    format!("gateway.{word}"),
                    camel,
                ] {
                    assert_eq!(meaning(&spelling), expected, "{spelling}");
                }
            }
        }
    }
}
