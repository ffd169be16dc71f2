//! Loop detection: the same calls with the same results, two alternating rounds, or the same words without progress.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::schedule::Outcome;
use crate::model::{Arguments, ToolCall};
use crate::tools::{self, Tool};

/// How often the same round (or pair of rounds, or words) may occur before the person is asked.
const MAX_REPEATS: u32 = 4;

/// Watches the rounds of a turn.
#[derive(Debug, Default)]
pub(super) struct LoopDetector {
    rounds: Track,
    words: Track,
    /// The results so far: only a new one counts as progress.
    results: HashSet<u64>,
}

/// The kind of loop, and how often it occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Loop {
    kind: Kind,
    pub rounds: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Round,
    Pair,
    Words,
}

impl fmt::Display for Loop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            Kind::Round => "the model made the same call with the same result",
            Kind::Pair => "the model went back and forth between the same two calls",
            Kind::Words => "the model repeated itself without making progress",
        };
        write!(f, "{what} {} times in a row", self.rounds)
    }
}

impl LoopDetector {
    /// Records an answer with its results; returns the loop once it has occurred too often. What a call's tool takes no
    /// notice of, such as an explanation, makes it no other call.
    pub fn note(
        &mut self,
        words: &str,
        calls: &[ToolCall],
        outcomes: &[Outcome],
        tools: &[Arc<dyn Tool>],
    ) -> Option<Loop> {
        let results = outcomes
            .iter()
            .map(|outcome| hash(&timeless(&outcome.result.content)));
        let results: Vec<u64> = results.collect();
        let round = (!outcomes.is_empty()).then(|| {
            let mut hasher = DefaultHasher::new();
            for (call, result) in calls.iter().zip(&results) {
                call.name.hash(&mut hasher);
                let taken = match &call.arguments {
                    Arguments::Object(fields) => {
                        tools::resolve(tools, &call.name, fields.clone().into()).ok()
                    }
                    Arguments::Unparsable(_) => None,
                };
                match taken {
                    Some(call) => call.as_taken().to_string().hash(&mut hasher),
                    None => format!("{:?}", call.arguments).hash(&mut hasher),
                }
                result.hash(&mut hasher);
            }
            hasher.finish()
        });
        let mut news = false;
        for (outcome, result) in outcomes.iter().zip(results) {
            news |= !outcome.result.is_error && self.results.insert(result);
        }
        let words = words.trim();
        let words = (!news && !words.is_empty()).then(|| hash(words));
        let (same, pairs) = self.rounds.note(round);
        let (said, _) = self.words.note(words);
        let found = [
            (Kind::Round, same),
            (Kind::Pair, pairs),
            (Kind::Words, said),
        ];
        found
            .into_iter()
            .find(|(_, rounds)| *rounds >= MAX_REPEATS)
            .map(|(kind, rounds)| Loop { kind, rounds })
    }
}

/// A result without how long something took, which is never twice the same.
fn timeless(result: &str) -> String {
    let is_time = |word: &&str| {
        let word = word.trim_end_matches(|it: char| !it.is_alphanumeric());
        let number = word.trim_end_matches(char::is_alphabetic);
        let has_unit = number.len() < word.len() && word.ends_with('s');
        number.parse::<f64>().is_ok() && (has_unit || number.contains('.'))
    };
    let words = result.split_inclusive(|it: char| !it.is_alphanumeric() && it != '.');
    words.filter(|word| !is_time(word)).collect()
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// How often a round occurred in a row, and how often a pair of rounds did.
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
        (
            self.same,
            if back {
                self.alternating.div_ceil(2) + 1
            } else {
                0
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::ToolOutput;
    use std::time::Duration;

    /// The first round that is too many, and the loop detected there. Each item is a call, its result and the words
    /// before it.
    fn rounds(rounds: &[(&str, &str, &str)]) -> Option<(usize, Kind)> {
        let mut loops = LoopDetector::default();
        rounds
            .iter()
            .enumerate()
            .find_map(|(index, (name, content, text))| {
                let call = ToolCall {
                    id: "1".into(),
                    name: (*name).into(),
                    arguments: Arguments::Object(serde_json::Map::new()),
                };
                let result = ToolOutput {
                    content: (*content).into(),
                    ..ToolOutput::default()
                };
                let outcome = Outcome {
                    id: "1".into(),
                    name: (*name).into(),
                    result,
                    wait: Duration::ZERO,
                    ran: Duration::ZERO,
                };
                loops
                    .note(text, &[call], &[outcome], &[])
                    .map(|found| (index, found.kind))
            })
    }

    #[test]
    fn identical_calls_with_identical_results_are_a_loop() {
        assert_eq!(rounds(&[("a", "x", ""); 6]), Some((3, Kind::Round)));
    }

    #[test]
    fn changing_results_are_progress() {
        assert_eq!(
            rounds(&["1", "2", "3", "4", "5"].map(|content| ("a", content, ""))),
            None
        );
    }

    #[test]
    fn times_are_no_progress() {
        let ran = [
            "1 failed in 0.41s\n[exit code 1, 0.6 s]",
            "1 failed in 0.39s\n[exit code 1, 12.0 s]",
        ];
        let ran = ran.map(|content| ("a", content, "")).repeat(3);
        assert_eq!(rounds(&ran), Some((3, Kind::Round)));
    }

    #[test]
    fn alternating_calls_are_a_loop() {
        let pair = [("a", "x", ""), ("b", "y", "")];
        assert_eq!(rounds(&pair.repeat(5)), Some((6, Kind::Pair)));
    }

    #[test]
    fn repeated_text_without_new_results_is_a_loop() {
        let said = |content: [&'static str; 6]| {
            let calls = ["a", "b", "c", "d", "e", "f"];
            let said: Vec<_> = calls
                .into_iter()
                .zip(content)
                .map(|(name, x)| (name, x, "Once more."))
                .collect();
            rounds(&said)
        };
        assert_eq!(said(["none"; 6]), Some((4, Kind::Words)));
        assert_eq!(said(["1", "2", "3", "4", "5", "6"]), None);
    }
}
