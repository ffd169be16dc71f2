//! When a turn goes in circles: the same calls with the same results, two rounds in turns, or the same words again.

use std::collections::VecDeque;
use std::collections::hash_map::DefaultHasher;
use std::fmt;
use std::hash::{Hash, Hasher};

use super::schedule::Outcome;
use crate::model::ToolCall;

/// How often the same round (or the same pair of rounds, or the same words) may come before the person is asked.
const PATIENCE: u32 = 4;

/// Watches the rounds of a turn.
#[derive(Debug, Default)]
pub(super) struct Guard {
    rounds: Track,
    words: Track,
}

/// What was seen, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Circles {
    kind: Kind,
    pub rounds: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Round,
    Pair,
    Words,
}

impl fmt::Display for Circles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            Kind::Round => "the model made the same call with the same result",
            Kind::Pair => "the model went back and forth between the same two calls",
            Kind::Words => "the model said the same words",
        };
        write!(f, "{what} {} times in a row", self.rounds)
    }
}

impl Guard {
    /// Notes an answer with its results; tells what goes in circles once that is too often.
    pub fn note(&mut self, words: &str, calls: &[ToolCall], outcomes: &[Outcome]) -> Option<Circles> {
        let round = (!outcomes.is_empty()).then(|| {
            let mut hasher = DefaultHasher::new();
            for (call, outcome) in calls.iter().zip(outcomes) {
                call.name.hash(&mut hasher);
                format!("{:?}", call.arguments).hash(&mut hasher);
                outcome.result.content.hash(&mut hasher);
            }
            hasher.finish()
        });
        let words = words.trim();
        let words = (!words.is_empty()).then(|| {
            let mut hasher = DefaultHasher::new();
            words.hash(&mut hasher);
            hasher.finish()
        });
        let (same, pairs) = self.rounds.note(round);
        let (said, _) = self.words.note(words);
        let found = [(Kind::Round, same), (Kind::Pair, pairs), (Kind::Words, said)];
        found.into_iter().find(|(_, rounds)| *rounds >= PATIENCE).map(|(kind, rounds)| Circles { kind, rounds })
    }
}

/// How often something came in a row, and how often a pair of two did.
#[derive(Debug, Default)]
struct Track {
    last: Option<u64>,
    before: Option<u64>,
    same: u32,
    alternating: u32,
}

impl Track {
    fn note(&mut self, now: Option<u64>) -> (u32, u32) {
        self.same = match now {
            None => 0,
            Some(_) if now == self.last => self.same + 1,
            Some(_) => 1,
        };
        let back = now.is_some() && now == self.before && now != self.last;
        self.alternating = if back { self.alternating + 1 } else { 0 };
        self.before = self.last;
        self.last = now;
        (self.same, if back { self.alternating.div_ceil(2) + 1 } else { 0 })
    }
}

/// So much of an answer is looked at, in bytes.
const TAIL: usize = 8 * 1024;
/// How often the same words make up all of that.
const REPEATED: usize = 8;

/// Watches the words of one answer while they come: a model that has lost its way says the same again and again.
#[derive(Debug, Default)]
pub(super) struct Babble {
    tail: VecDeque<u8>,
    /// Bytes since it was looked at.
    fresh: usize,
}

impl Babble {
    /// Hears more words; tells whether everything heard lately is one thing repeated.
    pub fn hear(&mut self, words: &str) -> bool {
        self.fresh += words.len();
        self.tail.extend(words.as_bytes());
        self.tail.drain(..self.tail.len().saturating_sub(TAIL));
        if self.tail.len() < TAIL || self.fresh < TAIL / REPEATED {
            return false;
        }
        self.fresh = 0;
        period(self.tail.make_contiguous()) <= TAIL / REPEATED
    }
}

/// The smallest distance after which the bytes repeat, by their longest border.
fn period(bytes: &[u8]) -> usize {
    let mut borders = vec![0; bytes.len()];
    let mut border = 0;
    for (index, byte) in bytes.iter().enumerate().skip(1) {
        while border > 0 && bytes[border] != *byte {
            border = borders[border - 1];
        }
        border += usize::from(bytes[border] == *byte);
        borders[index] = border;
    }
    bytes.len() - border
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::event::ExecutionResult;
    use crate::model::Arguments;
    use std::time::Duration;

    /// The first round that is too many, and what is seen in it. Each is a call, its result and the words before it.
    fn rounds(rounds: &[(&str, &str, &str)]) -> Option<(usize, Kind)> {
        let mut guard = Guard::default();
        rounds.iter().enumerate().find_map(|(index, (name, content, text))| {
            let call =
                ToolCall { id: "1".into(), name: (*name).into(), arguments: Arguments::Object(serde_json::Map::new()) };
            let result = ExecutionResult { content: (*content).into(), ..ExecutionResult::default() };
            let outcome = Outcome {
                id: "1".into(),
                name: (*name).into(),
                result,
                plan: None,
                wait: Duration::ZERO,
                ran: Duration::ZERO,
            };
            guard.note(text, &[call], &[outcome]).map(|circles| (index, circles.kind))
        })
    }

    #[test]
    fn the_same_call_with_the_same_result_is_seen() {
        assert_eq!(rounds(&[("a", "x", ""); 6]), Some((3, Kind::Round)));
    }

    #[test]
    fn a_result_that_changes_is_progress() {
        assert_eq!(rounds(&["1", "2", "3", "4", "5"].map(|content| ("a", content, ""))), None);
    }

    #[test]
    fn two_calls_in_turns_are_seen() {
        let pair = [("a", "x", ""), ("b", "y", "")];
        assert_eq!(rounds(&pair.repeat(5)), Some((6, Kind::Pair)));
    }

    #[test]
    fn the_same_words_are_seen_whatever_is_called() {
        let said = ["1", "2", "3", "4", "5"].map(|content| ("a", content, "Let me look once more."));
        assert_eq!(rounds(&said), Some((3, Kind::Words)));
    }

    /// How many words it takes until they are babble.
    fn babble(mut words: impl Iterator<Item = String>) -> Option<usize> {
        let mut babble = Babble::default();
        words.position(|word| babble.hear(&word))
    }

    #[test]
    fn words_without_end_are_babble_and_long_answers_are_not() {
        let sentence = ["I am sure. ", "Let me look once more. "];
        let endless = babble(sentence.iter().cycle().take(10_000).map(ToString::to_string));
        assert!(endless.is_some_and(|words| words < 1000), "{endless:?}");
        assert_eq!(babble((0..10_000).map(|n| format!("| {n} | ok |\n"))), None, "a table");
        assert_eq!(babble(std::iter::repeat_n("-".repeat(80) + "\n", 80)), None, "a ruler");
    }

    #[test]
    fn a_period_is_the_shortest() {
        for (text, expected) in [("aaaa", 1), ("abab", 2), ("ababa", 2), ("abcd", 4), ("a", 1)] {
            assert_eq!(period(text.as_bytes()), expected, "{text}");
        }
    }
}
