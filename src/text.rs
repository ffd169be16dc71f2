//! Text as editors see it: lines, positions, diffs, safe display, JSON repair, shell lines, event streams. Pure: no files,
//! no protocol.

pub mod alignment;
mod blocks;
pub mod diff;
pub mod display;
pub mod fence;
pub(crate) mod marks;
pub mod middle;
pub mod position;
pub mod redact;
pub mod repair;
pub mod script;
pub mod shell;
pub mod sse;
pub mod standing;
pub mod upkeep;

pub use blocks::{Block, blocks};
pub use diff::{
    Hunk, LineHunk, Tokens, around, common, has_lines_of, hunks, likeness, line_breaks, line_hunks,
    patched, unified,
};
pub use fence::{Fences, fence, unfenced};
pub use middle::without_middle;
pub use position::{Encoding, LineIndex, Position, Range, apply_change};
pub use redact::Redactor;
pub use standing::{Piece, is_untouched, standing, undone};
pub use upkeep::Upkeep;

/// The members of a JSON object, in order.
pub type Fields = serde_json::Map<String, serde_json::Value>;

/// Whether a list of words, with white space between them, has this one.
pub fn lists(words: &str, word: &str) -> bool {
    words.split_ascii_whitespace().any(|it| it == word)
}
