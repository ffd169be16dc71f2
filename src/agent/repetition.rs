//! A model that repeats itself without an end: a server without a limit would let it go on for hours.

use memchr::memmem;

/// Repetition is searched for each time this much has arrived, in bytes.
const STEP: usize = 1_024;
/// The repeated text together is at least this long, in bytes.
const LONG: usize = 4_096;
/// The longest text that is repeated, in bytes.
const PERIOD: usize = 512;
/// The end of the text, by which the repetition before it is found, in bytes.
const PROBE: usize = 24;

/// Watches the text of an answer.
#[derive(Debug, Default)]
pub(super) struct Repetition {
    tail: String,
    fresh: usize,
}

impl Repetition {
    /// Adds text; returns whether it has repeated itself for too long.
    pub fn add(&mut self, text: &str) -> bool {
        self.tail.push_str(text);
        self.fresh += text.len();
        if self.fresh < STEP || self.tail.len() < LONG {
            return false;
        }
        self.fresh = 0;
        let cut = self.tail.floor_char_boundary(self.tail.len() - LONG);
        self.tail.drain(..cut);
        let tail = self.tail.as_bytes();
        let (before, probe) = tail.split_at(tail.len() - PROBE);
        // Blanks and rulers may repeat often.
        if probe
            .iter()
            .all(|byte| !byte.is_ascii_alphanumeric() && byte.is_ascii())
        {
            return false;
        }
        let Some(at) = memmem::rfind(tail.get(..tail.len() - 1).unwrap_or(before), probe) else {
            return false;
        };
        let period = before.len() - at;
        period <= PERIOD && tail.get(period..) == tail.get(..tail.len() - period)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_found(text: &str) -> bool {
        let mut repetition = Repetition::default();
        text.as_bytes()
            .chunks(7)
            .any(|piece| repetition.add(std::str::from_utf8(piece).unwrap()))
    }

    #[test]
    fn only_long_repetitions_are_found() {
        let lines: Vec<String> = (0..2_000)
            .map(|n| format!("line {n} of a list\n"))
            .collect();
        let lines = lines.concat();
        assert!(!is_found(&lines));
        assert!(!is_found(&"-".repeat(10_000)));
        assert!(!is_found(&"I will do it. ".repeat(200)));
        assert!(is_found(&"I will do it. ".repeat(600)));
        assert!(is_found(&format!("{lines}{}", "ab".repeat(4_000))));
    }
}
