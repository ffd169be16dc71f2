//! Why the model stopped, from the word a provider has for it: by the stems of its parts, whatever API and host it
//! comes from.

use super::{Failure, Finish, fault};

/// The longest part of an unknown word that is shown, in characters.
const LONGEST: usize = 60;

/// Stems of words for what the model reads.
const READ: &str = "context prompt input";

/// Stems that say it is too much: not one of a word such as `prompt_blocked` or `context_canceled`.
const TOO_MUCH: &str = "long length large limit token size full overflow exceed exhaust out max";

/// What a word means, given the word, and its stems.
type Rule = (fn(String) -> Finish, &'static str);

/// The first rule with a stem that begins a part of the word decides.
const STEMS: [Rule; 10] = [
    (|_| Finish::Malformed, "malform unpars"),
    (
        Finish::ContentFilter,
        "filter safe unsafe sensitive guard recit block prohibit spii pii moderat policy violat censor risk harm toxic \
         copyright inappropriate",
    ),
    (|_| Finish::Refusal, "refus declin"),
    (
        Finish::Broken,
        "error fail insufficient resource overload unavail timeout timed network server exception internal busy \
         capacity abort cancel interrupt preempt evict disconnect quota rate exhaust crash unload deadline",
    ),
    (|_| Finish::Malformed, "unexpected invalid missing many"),
    (|_| Finish::Stop, "eos eot stop natural"),
    (
        |_| Finish::Length,
        "length max token limit truncated incomplete budget",
    ),
    (|_| Finish::ToolCalls, "tool function call"),
    (|_| Finish::Pause, "pause"),
    (
        |_| Finish::Stop,
        "end done complete finish success normal turn matched",
    ),
];

/// The meaning of a provider's word.
///
/// # Errors
/// The context window is full.
pub(super) fn read(word: &str) -> Result<Finish, Failure> {
    let parts = parts(word);
    let has = |stems: &str| {
        let mut stems = stems.split(' ');
        stems.any(|stem| parts.iter().any(|part| part.starts_with(stem)))
    };
    // The conversation must get shorter before it can go on. (Go's own error for a time limit exceeds one, too.)
    if has("window") || has(READ) && has(TOO_MUCH) && !has("deadline") {
        return Err(fault::window_full());
    }
    let word = word.chars().take(LONGEST).collect();
    Ok(match STEMS.iter().find(|(_, stems)| has(stems)) {
        Some((meaning, _)) => meaning(word),
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
            "context_length_exceeded context_window_exceeded model_context_window_exceeded prompt_too_long max_input_tokens context_overflow context_exhausted out_of_context",
        ),
        (
            "malformed",
            "malformed_function_call malformed_tool_use malformed_model_output unexpected_tool_call too_many_tool_calls missing_thought_signature",
        ),
        (
            "filter",
            "content_filter content_filtered safety image_safety sensitive guardrail_intervened recitation blocklist prohibited_content spii error_toxic \
             prompt_blocked",
        ),
        ("refusal", "refusal refused"),
        (
            "broken",
            "error network_error insufficient_system_resource abort aborted cancelled user_cancel timeout server_error overloaded resource_exhausted failed \
             context_canceled context_deadline_exceeded",
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
