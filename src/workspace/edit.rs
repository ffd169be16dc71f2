//! Finding the text a model means and replacing it: by normalization only, unique or refused.

use std::ops::Range;
use std::sync::Arc;

/// What is to happen to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Replacements in the text as it is; all or none.
    Edits(Vec<Replacement>),
    /// The whole text.
    Write(String),
}

/// Some text and what is to stand there instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// Must be there once, or at least once with `replace_all`.
    pub old_text: String,
    /// Taken literally.
    pub new_text: String,
    /// Every occurrence instead of the only one.
    pub replace_all: bool,
}

/// How the text was found. Later ones forgive more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strategy {
    /// Byte for byte.
    Exact,
    /// Line endings aside.
    LineEndings,
    /// Blanks at line ends aside.
    TrailingBlanks,
    /// Indentation aside; the replacement is indented alike.
    Indentation,
    /// Typographic punctuation and compatibility forms aside (NFKC).
    Unicode,
    /// The length of inner blanks aside.
    InnerBlanks,
    /// With one level of backslash escapes undone.
    Unescaped,
}

/// One place that changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splice {
    /// Bytes of the old text.
    pub range: Range<usize>,
    /// What replaces them.
    pub new_text: String,
}

/// What a change does to a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The text afterwards.
    pub new_text: Arc<str>,
    /// The places, in order, in bytes of the old text.
    pub splices: Vec<Splice>,
    /// The most forgiving pass that was needed.
    pub strategy: Strategy,
}

/// Why a change cannot be made, with what the model needs for one good retry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MatchError(pub String);

/// What `change` does to `text`.
///
/// # Errors
/// When a text to replace is absent or ambiguous, edits overlap, or nothing would change.
pub fn apply(text: &str, change: &Change) -> Result<Outcome, MatchError> {
    match change {
        Change::Write(content) => Ok(Outcome {
            new_text: content.as_str().into(),
            splices: vec![Splice { range: 0..text.len(), new_text: content.clone() }],
            strategy: Strategy::Exact,
        }),
        Change::Edits(edits) => {
            let edit = edits.first().ok_or_else(|| MatchError("no edits were given".to_owned()))?;
            let at = text.find(&edit.old_text).ok_or_else(|| MatchError("old_text was not found".to_owned()))?;
            let range = at..at + edit.old_text.len();
            let mut new_text = text.to_owned();
            new_text.replace_range(range.clone(), &edit.new_text);
            let splices = vec![Splice { range, new_text: edit.new_text.clone() }];
            Ok(Outcome { new_text: new_text.into(), splices, strategy: Strategy::Exact })
        }
    }
}
