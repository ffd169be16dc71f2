//! Lines and positions as the Language Server Protocol counts them: 0-based, in UTF-8, UTF-16 or UTF-32 units.
//!
//! Nothing here fails: a position past the end of its line means the end of that line, one past the last line the end
//! of the text, and one inside a character the start of that character.
//!
//! Lines end with LF, CRLF or CR.

use serde::{Deserialize, Serialize};

/// The unit in which [`Position::character`] counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// Bytes.
    Utf8,
    /// 16-bit code units, LSP's default.
    #[default]
    Utf16,
    /// Characters.
    Utf32,
}

impl Encoding {
    /// How many units `text` has.
    pub fn len(self, text: &str) -> usize {
        text.chars().map(|character| self.units(character)).sum()
    }

    fn units(self, character: char) -> usize {
        match self {
            Self::Utf8 => character.len_utf8(),
            Self::Utf16 => character.len_utf16(),
            Self::Utf32 => 1,
        }
    }
}

/// A place between two characters.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Position {
    /// 0-based line.
    pub line: u32,
    /// 0-based offset in the line, in units of the [`Encoding`] in use.
    pub character: u32,
}

/// From `start` up to, not including, `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Range {
    /// The first position.
    pub start: Position,
    /// The position after the last.
    pub end: Position,
}

impl Range {
    /// Whole lines; nothing, at the beginning of a line, if there are none.
    pub fn of_lines(lines: std::ops::Range<usize>) -> Self {
        let at = |line: usize| Position {
            line: line.try_into().unwrap_or(u32::MAX),
            character: 0,
        };
        Self {
            start: at(lines.start),
            end: at(lines.end),
        }
    }

    /// The last line; one of which nothing but its beginning is in the range does not count.
    pub fn last_line(&self) -> u32 {
        let last = if self.end.character == 0 {
            self.end.line.saturating_sub(1)
        } else {
            self.end.line
        };
        last.max(self.start.line)
    }
}

/// The offsets at which the lines of a text start. Valid only for that text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineIndex {
    /// Byte offsets; the first is 0.
    starts: Vec<usize>,
}

impl LineIndex {
    /// The lines of `text`.
    pub fn new(text: &str) -> Self {
        let mut starts = vec![0];
        starts.extend(line_ends(text));
        Self { starts }
    }

    /// How many lines there are; a text that ends with a line break has an empty last one.
    pub fn count(&self) -> usize {
        self.starts.len()
    }

    /// The 0-based line that byte `offset` is in.
    pub fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|&start| start <= offset) - 1
    }

    /// The bytes of 0-based `line` with its line break; empty past the last line.
    pub fn bytes(&self, text: &str, line: usize) -> std::ops::Range<usize> {
        let end = self.starts.get(line + 1).copied().unwrap_or(text.len());
        self.starts.get(line).copied().unwrap_or(text.len())..end
    }

    /// The byte offset of `position`.
    pub fn offset(&self, text: &str, position: Position, encoding: Encoding) -> usize {
        let bytes = self.bytes(text, position.line as usize);
        let start = bytes.start;
        let line = text
            .get(bytes)
            .unwrap_or_default()
            .trim_end_matches(['\n', '\r']);
        let mut left = position.character as usize;
        for (offset, character) in line.char_indices() {
            let units = encoding.units(character);
            if left < units {
                return start + offset;
            }
            left -= units;
        }
        start + line.len()
    }

    /// The position of byte `offset`.
    pub fn position(&self, text: &str, offset: usize, encoding: Encoding) -> Position {
        let offset = text.floor_char_boundary(offset);
        let line = self.line(offset);
        let before = text
            .get(self.bytes(text, line).start..offset)
            .unwrap_or_default();
        Position {
            line: clamp(line),
            character: clamp(encoding.len(before)),
        }
    }

    /// The bytes of `range`; empty at its start if the range is reversed.
    pub fn span(&self, text: &str, range: Range, encoding: Encoding) -> std::ops::Range<usize> {
        let start = self.offset(text, range.start, encoding);
        start..self.offset(text, range.end, encoding).max(start)
    }

    /// The range of `bytes`.
    pub fn range(&self, text: &str, bytes: &std::ops::Range<usize>, encoding: Encoding) -> Range {
        Range {
            start: self.position(text, bytes.start, encoding),
            end: self.position(text, bytes.end, encoding),
        }
    }

    /// Updates the offsets after a replacement of `bytes`, reading only the lines it touches. `text` is the text
    /// afterwards.
    pub fn replaced(&mut self, text: &str, bytes: &std::ops::Range<usize>, new_len: usize) {
        // A line break may join its neighbor (CR + LF), so the line before the edit is scanned again, too.
        let first = self.line(bytes.start.saturating_sub(1));
        let after = self.starts.partition_point(|&start| start <= bytes.end);
        let moved = |offset: usize| offset - bytes.end + bytes.start + new_len;
        for start in self.starts.iter_mut().skip(after) {
            *start = moved(*start);
        }
        let from = self.starts.get(first).copied().unwrap_or(0);
        let to = self.starts.get(after).copied().unwrap_or(text.len());
        let ends: Vec<usize> = line_ends(text.get(from..to).unwrap_or_default())
            .map(|end| from + end)
            .collect();
        // The last of them is the line that starts at `to`, which is already there.
        let known = usize::from(after < self.starts.len());
        let fresh = ends.len() - known.min(ends.len());
        self.starts
            .splice(first + 1..after, ends.into_iter().take(fresh));
    }
}

fn clamp(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The byte offset after each line break.
fn line_ends(text: &str) -> impl Iterator<Item = usize> + '_ {
    let bytes = text.as_bytes();
    memchr::memchr2_iter(b'\n', b'\r', bytes)
        .filter(move |&at| bytes.get(at) == Some(&b'\n') || bytes.get(at + 1) != Some(&b'\n'))
        .map(|at| at + 1)
}

/// `text` with `range` replaced by `new`; without a range, `new`.
pub fn apply_change(text: &str, range: Option<Range>, new: &str, encoding: Encoding) -> String {
    let Some(range) = range else {
        return new.to_owned();
    };
    let mut changed = text.to_owned();
    changed.replace_range(LineIndex::new(text).span(text, range, encoding), new);
    changed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "a😀é\r\nx\ry\n";

    #[track_caller]
    fn check(encoding: Encoding, line: u32, character: u32, offset: usize) {
        let index = LineIndex::new(TEXT);
        assert_eq!(
            index.offset(TEXT, Position { line, character }, encoding),
            offset,
            "{line}:{character}"
        );
    }

    #[test]
    fn positions_count_in_the_negotiated_units() {
        check(Encoding::Utf8, 0, 5, 5);
        check(Encoding::Utf16, 0, 3, 5);
        check(Encoding::Utf32, 0, 2, 5);
        check(Encoding::Utf16, 0, 4, 7);
        check(Encoding::Utf16, 1, 1, 10);
        check(Encoding::Utf16, 2, 0, 11);
        check(Encoding::Utf16, 3, 0, 13);
    }

    #[test]
    fn positions_past_the_end_are_clamped() {
        // Inside a character: its start. Past the line: before its line break. Past the text: its end.
        check(Encoding::Utf16, 0, 2, 1);
        check(Encoding::Utf16, 0, 99, 7);
        check(Encoding::Utf16, 1, u32::MAX, 10);
        check(Encoding::Utf16, u32::MAX, 0, TEXT.len());
    }

    #[test]
    fn a_change_replaces_its_range() {
        let range = Range {
            start: Position {
                line: 1,
                character: 0,
            },
            end: Position {
                line: 2,
                character: 1,
            },
        };
        assert_eq!(
            apply_change(TEXT, Some(range), "z", Encoding::Utf16),
            "a😀é\r\nz\n"
        );
        assert_eq!(apply_change(TEXT, None, "all", Encoding::Utf16), "all");
    }

    proptest! {
        #[test]
        fn the_line_index_follows_replacements(
            text in "[a\u{e9}\r\n]{0,30}", new in "[b\u{1f600}\r\n]{0,6}", start in 0usize..40, len in 0usize..10,
        ) {
            let start = text.floor_char_boundary(start.min(text.len()));
            let end = text.floor_char_boundary((start + len).min(text.len()));
            let mut index = LineIndex::new(&text);
            let mut after = text.clone();
            after.replace_range(start..end, &new);
            index.replaced(&after, &(start..end), new.len());
            prop_assert_eq!(index, LineIndex::new(&after));
        }

        #[test]
        fn offsets_and_positions_agree(text in "[a\u{e9}\u{1f600}\r\n]{0,30}") {
            let index = LineIndex::new(&text);
            for encoding in [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32] {
                for (offset, _) in text.char_indices() {
                    // Between CR and LF there is no position.
                    let (before, after) = text.split_at(offset);
                    if !before.ends_with('\r') || !after.starts_with('\n') {
                        let position = index.position(&text, offset, encoding);
                        prop_assert_eq!(index.offset(&text, position, encoding), offset);
                    }
                }
            }
        }
    }
}
