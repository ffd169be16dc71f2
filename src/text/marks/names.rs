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

/// What the names of marks around thoughts have in them.
pub(crate) const THOUGHTS: [&str; 7] = [
    "think",
    "thought",
    "reasoning",
    "scratchpad",
    "reflect",
    "monologue",
    "analysis",
];
/// The words of the names of elements around an answer.
const ANSWERS: [&str; 6] = [
    "answer",
    "final",
    "response",
    "reply",
    "solution",
    "assistant",
];
/// The words that say which end of something a mark is.
const BEGINS: [&str; 3] = ["begin", "start", "header"];
const ENDS: [&str; 2] = ["end", "close"];

/// The words of a name, in lower case.
fn split(name: &str) -> impl Iterator<Item = String> {
    let parts = name.split(['_', '▁', '-', ' ', '.']);
    parts.map(str::to_lowercase).collect::<Vec<_>>().into_iter()
}

/// Whether a name is one of a mark around thoughts, at the end of them or at the beginning.
pub(super) fn is_thought(name: &str, ends: bool) -> bool {
    let lower = name.to_lowercase();
    let is_end = lower.starts_with('/') || split(name).any(|word| ENDS.contains(&word.as_str()));
    is_end == ends && THOUGHTS.iter().any(|it| lower.contains(it))
}

/// Whether a name is made of words for an answer.
pub(super) fn is_answer(name: &str) -> bool {
    split(name).all(|word| ANSWERS.contains(&word.as_str()))
}

/// Whether a name says that a message begins.
pub(super) fn is_message(name: &str) -> bool {
    let name = name.to_lowercase();
    BEGINS.iter().any(|it| name.contains(it))
}

/// Whether a name needs no bars to be one of a token: it says of what it is the beginning or end (`end_of_turn`,
/// `turn_end`, `eos`), or what is left for later (`pad`).
pub(super) fn is_bare(name: &str) -> bool {
    let is_edge = |word: &String| BEGINS.contains(&word.as_str()) || ENDS.contains(&word.as_str());
    let words: Vec<String> = split(name).collect();
    match words.as_slice() {
        [only] => {
            let short = only
                .strip_prefix(['b', 'e'])
                .and_then(|it| it.strip_prefix('o'));
            short.is_some_and(|it| it.len() == 1) || only == "pad"
        }
        [first, second, ..] if is_edge(first) => second == "of",
        [.., last] => is_edge(last),
        [] => false,
    }
}

/// Whether a name that needs no bars may be one of a type, too.
pub(super) fn may_be_type(name: &str) -> bool {
    is_numbered(name) || name.contains('_') && !name.contains("_of_")
}

/// Whether a name is that of a token kept for later: a word and a number (`unused7`, `SPECIAL_12`).
pub(super) fn is_numbered(name: &str) -> bool {
    const SHORTEST: usize = 4;
    let word = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_word = word
        .bytes()
        .all(|it| it.is_ascii_alphabetic() || it == b'_');
    word.len() < name.len() && word.len() >= SHORTEST && is_word
}

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
