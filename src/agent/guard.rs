//! When to stop a turn that goes in circles: the same calls with the same results, again and again.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use super::schedule::Outcome;
use crate::model::ToolCall;

/// How often the same round (or the same pair of rounds) may repeat before the turn is stopped.
const PATIENCE: u32 = 4;

/// Watches the rounds of a turn.
#[derive(Debug, Default)]
pub(super) struct Guard {
    last: Option<u64>,
    before: Option<u64>,
    same: u32,
    alternating: u32,
}

impl Guard {
    /// Notes a round of calls and their results; tells how often it came in a row once that is too often.
    pub fn note(&mut self, calls: &[ToolCall], outcomes: &[Outcome]) -> Option<u32> {
        let mut hasher = DefaultHasher::new();
        for (call, outcome) in calls.iter().zip(outcomes) {
            call.name.hash(&mut hasher);
            format!("{:?}", call.arguments).hash(&mut hasher);
            outcome.result.content.hash(&mut hasher);
        }
        let round = Some(hasher.finish());
        self.same = if round == self.last { self.same + 1 } else { 1 };
        self.alternating = if round == self.before && round != self.last { self.alternating + 1 } else { 0 };
        self.before = self.last;
        self.last = round;
        let repeated = self.same.max(self.alternating.div_ceil(2) + 1);
        (repeated >= PATIENCE).then_some(repeated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::event::ExecutionResult;
    use crate::model::Arguments;
    use std::time::Duration;

    fn rounds(names: &[(&str, &str)]) -> Option<usize> {
        let mut guard = Guard::default();
        names.iter().position(|(name, content)| {
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
            guard.note(&[call], &[outcome]).is_some()
        })
    }

    #[test]
    fn the_same_call_with_the_same_result_is_stopped() {
        assert_eq!(rounds(&[("a", "x"); 6]), Some(3));
    }

    #[test]
    fn a_result_that_changes_is_progress() {
        assert_eq!(rounds(&[("a", "1"), ("a", "2"), ("a", "3"), ("a", "4"), ("a", "5")]), None);
    }

    #[test]
    fn two_calls_in_turns_are_stopped() {
        let pair = [("a", "x"), ("b", "y")];
        assert_eq!(rounds(&pair.repeat(5)), Some(6));
    }
}
