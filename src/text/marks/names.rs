//! The names of marks around calls: made of a few words, in any order. Pure.

use super::folded;
use crate::text::lists;

/// The words of names that stand around calls: two words at least, one of them of the first list, which begins the name or
/// follows `start`. In each list a word stands before those that begin it.
const HEADS: &str = "tools tool functions function calls call action python";
const MORE: &str = "code use request invocation section begin start prefix tag";
/// The words of names that end calls, and a slash, or stand around their results.
const ENDINGS: &str = "end suffix / response results result output";

/// The words for the others in a conversation, and for what they tell the model.
const OTHERS: &str = "user system developer human observation";

/// What the names of marks around thoughts have in them.
pub(crate) const THOUGHTS: &str = "think thought reasoning scratchpad reflect monologue analysis";
/// The words of the names of elements around an answer.
const ANSWERS: &str = "answer final response reply solution assistant";
/// The words that say which end of something a mark is.
const BEGINS: &str = "begin start header";
const ENDS: &str = "end close";

/// The words of a name, in lower case.
fn split(name: &str) -> impl Iterator<Item = String> {
    let parts = name.split(['_', '▁', '-', ' ', '.']);
    parts.map(str::to_lowercase).collect::<Vec<_>>().into_iter()
}

/// Whether a name is one of a mark around thoughts, at the end of them or at the beginning.
pub(super) fn is_thought(name: &str, ends: bool) -> bool {
    let lower = name.to_lowercase();
    let is_end = lower.starts_with('/') || split(name).any(|word| lists(ENDS, &word));
    is_end == ends && THOUGHTS.split(' ').any(|it| lower.contains(it))
}

/// Whether a name is made of words for an answer.
pub(super) fn is_answer(name: &str) -> bool {
    split(name).all(|word| lists(ANSWERS, &word))
}

/// Whether a name says that a message begins.
pub(super) fn is_message(name: &str) -> bool {
    let name = name.to_lowercase();
    BEGINS.split(' ').any(|it| name.contains(it))
}

/// The token at the end of what one with this name begins, if that is a part of the answer.
pub(super) fn end_of_part(name: &str) -> Option<String> {
    let name = name.to_lowercase();
    let begin = BEGINS.split(' ').find(|it| name.contains(it))?;
    let mut others = HEADS.split(' ').chain(THOUGHTS.split(' '));
    let is_part = name != begin && !others.any(|it| name.contains(it));
    is_part.then(|| format!("<|{}|>", name.replace(begin, "end")))
}

/// Whether a name needs no bars to be one of a token: it says of what it is the beginning or end (`end_of_turn`,
/// `turn_end`, `eos`), or what is left for later (`pad`).
pub(super) fn is_bare(name: &str) -> bool {
    let is_edge = |word: &String| lists(BEGINS, word) || lists(ENDS, word);
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
    [HEADS, MORE, ENDINGS]
        .into_iter()
        .flat_map(|it| it.split(' '))
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
    let any = |list| words.iter().any(|word| lists(list, word));
    let begins = words.first().is_some_and(|word| may_be_first(word));
    rest.is_empty() && begins && words.len() > 1 && any(HEADS) && any(ENDINGS) == ends
}

/// Whether a name may begin with a word.
pub(super) fn may_be_first(word: &str) -> bool {
    word == "start" || !lists(MORE, word)
}

/// Whether a name is one of the words that stand for a call.
pub(super) fn is_head(name: &str) -> bool {
    lists(HEADS, &name.to_lowercase())
}

/// Whether a name is one of a mark that begins a message of somebody else, or what a call gave.
pub(super) fn is_of_other(name: &str) -> bool {
    let words: Vec<String> = split(name).collect();
    let any = |list| words.iter().any(|word| lists(list, word));
    let is_result = any(HEADS) && any(ENDINGS) && !any(ENDS);
    !name.starts_with('/') && (any(OTHERS) || is_result)
}

/// Whether the type of a record says that it is a call.
pub(crate) fn is_kind_of_call(kind: &str) -> bool {
    let kind = kind.replace('-', "_");
    let kind = kind.strip_prefix("custom_").unwrap_or(&kind);
    is_head(kind) || is_name(kind, false)
}

/// Whether a word is a name of a mark around calls.
pub(crate) fn is_name_of_calls(word: &str) -> bool {
    is_name(word, false)
}
