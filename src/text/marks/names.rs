//! The names of marks around calls: made of a few words, in any order. Pure.

use super::folded;

/// The words of names that stand around calls: two words at least, one of them of the first list, which begins the name or
/// follows `start`. In each list a word stands before those that begin it.
const HEADS: [&str; 8] = [
    "tools",
    "tool",
    "functions",
    "function",
    "calls",
    "call",
    "action",
    "python",
];
const MORE: [&str; 9] = [
    "code",
    "use",
    "request",
    "invocation",
    "section",
    "begin",
    "start",
    "prefix",
    "tag",
];
/// The words of names that end calls, and a slash, or stand around their results.
const ENDINGS: [&str; 7] = [
    "end", "suffix", "/", "response", "results", "result", "output",
];

/// The names of elements around thoughts.
pub(crate) const THOUGHTS: [&str; 6] = [
    "think",
    "thinking",
    "thought",
    "reasoning",
    "scratchpad",
    "reflection",
];

/// The words of names around calls.
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    HEADS.iter().chain(&MORE).chain(&ENDINGS).copied()
}

/// The words of a name, as far as they are words for calls, and what is left.
pub(super) fn in_words(name: &str) -> (Vec<&'static str>, String) {
    let mut rest: String = name.chars().map(folded).collect();
    let mut known = Vec::new();
    loop {
        let found = words().find_map(|word| Some((word, rest.strip_prefix(word)?.to_owned())));
        let Some((word, after)) = found else {
            return (known, rest);
        };
        known.push(word);
        after.trim_start_matches(['_', ':']).clone_into(&mut rest);
    }
}

/// Whether a name is made of words for calls, and ends them if it is to.
pub(super) fn is_name(name: &str, ends: bool) -> bool {
    let (words, rest) = in_words(name);
    let has = |list: &[&str]| words.iter().any(|word| list.contains(word));
    let begins = words.first().is_some_and(|word| may_be_first(word));
    rest.is_empty() && begins && words.len() > 1 && has(&HEADS) && has(&ENDINGS) == ends
}

/// Whether a name may begin with a word.
pub(super) fn may_be_first(word: &str) -> bool {
    word == "start" || !MORE.contains(&word)
}

/// Whether a name is one of the words that stand for a call.
pub(super) fn is_head(name: &str) -> bool {
    HEADS.contains(&name.to_lowercase().as_str())
}

/// Whether a word is a name of a mark around calls.
pub(crate) fn is_name_of_calls(word: &str) -> bool {
    is_name(word, false)
}
