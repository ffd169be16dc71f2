//! A text as a pass sees it, and the mapping back to its bytes.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::canonical_combining_class;

use super::Strategy;

/// A text with what a pass ignores removed or normalized.
pub(super) struct View<'a> {
    source: &'a str,
    /// `None` if it is unchanged.
    normal: Option<Normal>,
}

struct Normal {
    strategy: Strategy,
    shown: String,
    pieces: Vec<Piece>,
}

/// A run of the normalized text and the bytes it stands for. Bytes between two pieces are left out.
#[derive(Debug, Clone, Copy)]
struct Piece {
    shown: usize,
    shown_len: usize,
    source: usize,
    source_len: usize,
    /// Whether it is unchanged; otherwise no offset inside it can be mapped.
    verbatim: bool,
}

impl<'a> View<'a> {
    pub fn new(source: &'a str, strategy: Strategy) -> Self {
        let shows_all =
            strategy == Strategy::Exact || (strategy.is_literal() && !source.contains('\r'));
        Self {
            source,
            normal: (!shows_all).then(|| Normal::new(source, strategy)),
        }
    }

    pub fn shown(&self) -> &str {
        self.normal
            .as_ref()
            .map_or(self.source, |normal| &normal.shown)
    }

    /// The bytes that `seen` stands for; `None` if it begins or ends inside a normalized piece. At the start of a line
    /// they include its indentation.
    pub fn bytes(&self, seen: &Range<usize>) -> Option<Range<usize>> {
        let Some(normal) = &self.normal else {
            return Some(seen.clone());
        };
        Some(normal.start(seen.start)?..normal.end(seen.end)?)
    }
}

impl Normal {
    fn new(source: &str, strategy: Strategy) -> Self {
        let mut normal = Self {
            strategy,
            shown: String::with_capacity(source.len()),
            pieces: Vec::new(),
        };
        let mut at = 0;
        while at < source.len() {
            let rest = source.get(at..).unwrap_or_default();
            let end = memchr::memchr2(b'\n', b'\r', rest.as_bytes()).unwrap_or(rest.len());
            let (content, tail) = rest.split_at_checked(end).unwrap_or((rest, ""));
            normal.line(content, at);
            at += end;
            let line_break = match tail.as_bytes() {
                [] => break,
                [b'\r', b'\n', ..] => 2,
                _ => 1,
            };
            normal.piece("\n", at, line_break, tail.starts_with('\n'));
            at += line_break;
        }
        normal
    }

    fn line(&mut self, content: &str, at: usize) {
        if self.strategy.is_literal() {
            return self.piece(content, at, content.len(), true);
        }
        let seen = content.trim_end_matches([' ', '\t']);
        let body = match self.strategy {
            Strategy::TrailingBlanks => seen,
            _ => seen.trim_start_matches([' ', '\t']),
        };
        let at = at + (seen.len() - body.len());
        if self.strategy < Strategy::Unicode {
            return self.piece(body, at, body.len(), true);
        }
        self.folded(body, at);
    }

    /// Appends text with its characters and, from that pass on, its blanks normalized.
    fn folded(&mut self, text: &str, mut at: usize) {
        let joins_blanks = self.strategy == Strategy::InnerBlanks;
        // The common case: no character has to be examined.
        if text.is_ascii() && !(joins_blanks && (text.contains("  ") || text.contains('\t'))) {
            return self.piece(text, at, text.len(), true);
        }
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let len = if joins_blanks && is_blank(first) {
                rest.len() - rest.trim_start_matches(is_blank).len()
            } else {
                let is_mark = |character| {
                    canonical_combining_class(character) != 0
                        || matches!(character, '\u{1160}'..='\u{11ff}')
                };
                rest.char_indices()
                    .skip(1)
                    .find(|&(_, character)| !is_mark(character))
                    .map_or(rest.len(), |(next, _)| next)
            };
            let (cluster, tail) = rest.split_at_checked(len).unwrap_or((rest, ""));
            if joins_blanks && is_blank(first) {
                self.piece(" ", at, len, cluster == " ");
            } else if cluster.is_ascii() {
                self.piece(cluster, at, len, true);
            } else {
                let folded: String = cluster.nfkc().map(plain_punctuation).collect();
                self.piece(&folded, at, len, folded == cluster);
            }
            at += len;
            rest = tail;
        }
    }

    fn piece(&mut self, text: &str, source: usize, source_len: usize, verbatim: bool) {
        let shown = self.shown.len();
        self.shown.push_str(text);
        match self.pieces.last_mut() {
            _ if source_len == 0 => {}
            Some(last) if verbatim && last.verbatim && last.source + last.source_len == source => {
                last.shown_len += text.len();
                last.source_len += source_len;
            }
            _ => self.pieces.push(Piece {
                shown,
                shown_len: text.len(),
                source,
                source_len,
                verbatim,
            }),
        }
    }

    fn start(&self, seen: usize) -> Option<usize> {
        match seen.checked_sub(1) {
            None => return Some(0),
            // The beginning of a line may be left out: it starts where the previous line ends.
            Some(before) if self.shown.as_bytes().get(before) == Some(&b'\n') => {
                return self.end(seen);
            }
            Some(_) => {}
        }
        let piece = self.at(seen)?;
        let into = seen - piece.shown;
        (piece.verbatim || into == 0).then_some(piece.source + into)
    }

    fn end(&self, seen: usize) -> Option<usize> {
        let piece = self.at(seen.checked_sub(1)?)?;
        let length = seen - piece.shown;
        let end = piece.source
            + if piece.verbatim {
                length
            } else {
                piece.source_len
            };
        (piece.verbatim || length == piece.shown_len).then_some(end)
    }

    /// The piece that contains the byte at `seen`.
    fn at(&self, seen: usize) -> Option<&Piece> {
        self.pieces.get(
            self.pieces
                .partition_point(|piece| piece.shown <= seen)
                .checked_sub(1)?,
        )
    }
}

pub(super) fn is_blank(character: char) -> bool {
    matches!(
        character,
        ' ' | '\t' | '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
    )
}

/// The ASCII equivalent of a typographic character, where NFKC has none.
pub(super) fn plain_punctuation(character: char) -> char {
    match character {
        '\u{2018}'..='\u{201b}' | '\u{2032}' => '\'',
        '\u{201c}'..='\u{201f}' | '\u{2033}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        other => other,
    }
}
