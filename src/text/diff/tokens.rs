//! Differences between two sequences of tokens: lines, or characters.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::{DiffOp, DiffableStr};

/// Two sequences, and the operations that turn the old one into the new one.
pub struct Tokens<'a> {
    /// The old tokens.
    pub old: Vec<&'a str>,
    /// The new tokens.
    pub new: Vec<&'a str>,
    /// Cover both sequences, in order.
    pub ops: Vec<DiffOp>,
}

impl<'a> Tokens<'a> {
    /// Compares two texts line by line; lines keep their endings.
    pub(super) fn lines(old: &'a str, new: &'a str, timeout: Duration) -> Self {
        Self::compare(old.tokenize_lines(), new.tokenize_lines(), timeout)
    }

    /// Compares two texts character by character.
    pub(super) fn characters(old: &'a str, new: &'a str, timeout: Duration) -> Self {
        Self::compare(old.tokenize_chars(), new.tokenize_chars(), timeout)
    }

    /// Compares two sequences. After `timeout` the comparison gets coarser, never wrong.
    ///
    /// It compares numbers that stand for the tokens: `similar` is generic, and one kind of sequence is a twentieth of
    /// the code that its `TextDiff` is.
    pub fn compare(old: Vec<&'a str>, new: Vec<&'a str>, timeout: Duration) -> Self {
        let mut numbers = HashMap::new();
        let mut numbered = |tokens: &[&'a str]| -> Vec<usize> {
            let number = |token| {
                let next = numbers.len();
                *numbers.entry(token).or_insert(next)
            };
            tokens.iter().copied().map(number).collect()
        };
        let (before, after) = (numbered(&old), numbered(&new));
        let deadline = Some(Instant::now() + timeout);
        let mut hook = Compact::new(Replace::new(Capture::new()), &before, &after);
        let Ok(()) = myers::diff_deadline(
            &mut hook,
            &before,
            0..before.len(),
            &after,
            0..after.len(),
            deadline,
        );
        Self {
            old,
            new,
            ops: hook.into_inner().into_inner().into_ops(),
        }
    }

    /// The bytes of the old and of the new tokens of an operation.
    pub(super) fn bytes(&self, op: &DiffOp) -> (usize, usize) {
        let sum = |tokens: &[&str]| tokens.iter().map(|token| token.len()).sum();
        let (old, new) = self.of(op);
        (sum(old), sum(new))
    }

    /// The old and the new tokens of an operation.
    pub(super) fn of(&self, op: &DiffOp) -> (&[&'a str], &[&'a str]) {
        (
            self.old.get(op.old_range()).unwrap_or_default(),
            self.new.get(op.new_range()).unwrap_or_default(),
        )
    }
}

/// How alike two short texts are, from 0 to 1.
pub fn likeness(a: &str, b: &str) -> f32 {
    let tokens = Tokens::characters(a, b, Duration::from_millis(10));
    similar::diff_ratio(&tokens.ops, tokens.old.len(), tokens.new.len())
}
