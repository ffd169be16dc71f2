//! Converts a program's output bytes to displayable text: no terminal control code gets through, however the bytes are
//! split.

use std::borrow::Cow;

use anstyle_parse::{DefaultCharAccumulator, Params, Parser, Perform};

use crate::domain::{Style, Styled};
use crate::text::display;

/// Converts bytes to text, piece by piece.
#[derive(Debug, Default)]
pub(super) struct Plain {
    terminal: Parser<DefaultCharAccumulator>,
    screen: Screen,
    /// The beginning of an incomplete character.
    cut: Vec<u8>,
    /// How many bytes were not UTF-8.
    pub invalid: u64,
    /// The styles of the text that was returned last.
    pub styles: Vec<Styled>,
}

impl Plain {
    /// The text of the next bytes.
    pub fn text(&mut self, bytes: &[u8]) -> String {
        let bytes = if self.cut.is_empty() {
            Cow::Borrowed(bytes)
        } else {
            let mut joined = std::mem::take(&mut self.cut);
            joined.extend_from_slice(bytes);
            Cow::Owned(joined)
        };
        let mut text = String::with_capacity(bytes.len());
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            match chunk.invalid() {
                [] => {}
                unfinished if chunks.peek().is_none() && may_go_on(unfinished) => {
                    self.cut = unfinished.to_vec();
                }
                invalid => {
                    self.invalid += invalid.len() as u64;
                    text.push(char::REPLACEMENT_CHARACTER);
                }
            }
        }
        self.clean(&text)
    }

    /// The rest when no more bytes come.
    pub fn rest(&mut self) -> &'static str {
        let cut = std::mem::take(&mut self.cut);
        self.invalid += cut.len() as u64;
        if cut.is_empty() { "" } else { "\u{fffd}" }
    }

    fn clean(&mut self, text: &str) -> String {
        for byte in text.bytes() {
            self.terminal.advance(&mut self.screen, byte);
        }
        let clean = std::mem::take(&mut self.screen.text);
        self.styles = std::mem::take(&mut self.screen.styles);
        match display::escape_piece(&clean) {
            Cow::Borrowed(_) => clean,
            Cow::Owned(escaped) => {
                self.styles.clear(); // they are those of another text
                escaped
            }
        }
    }
}

/// What a terminal would print; all control codes are dropped, and only those that select colors are understood.
#[derive(Debug, Default)]
struct Screen {
    text: String,
    style: Style,
    styles: Vec<Styled>,
    /// Whether the last character was a carriage return: a following line feed ends the same line.
    after_return: bool,
}

impl Perform for Screen {
    fn print(&mut self, character: char) {
        if !character.is_control() {
            let start = self.text.len();
            self.text.push(character);
            self.styled(start);
        }
        self.after_return = false;
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\n' if self.after_return => {}
            // A progress bar overwrites itself; here every state is a line.
            b'\r' | b'\n' => self.text.push('\n'),
            b'\t' => self.text.push('\t'),
            _ => {}
        }
        self.after_return = byte == b'\r';
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], ignore: bool, action: u8) {
        if action == b'm' && intermediates.is_empty() && !ignore {
            self.style.select(params.iter().flatten().copied());
        }
    }
}

impl Screen {
    /// The text from `start` on has the current style.
    fn styled(&mut self, start: usize) {
        let (style, end) = (self.style, self.text.len());
        match self
            .styles
            .last_mut()
            .filter(|last| last.style == style && last.range.end == start)
        {
            Some(last) => last.range.end = end,
            None if style != Style::default() => self.styles.push(Styled {
                range: start..end,
                style,
            }),
            None => {}
        }
    }
}

/// Whether these bytes are the beginning of an incomplete character.
fn may_go_on(bytes: &[u8]) -> bool {
    let needed = match bytes.first() {
        Some(0xc2..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf4) => 4,
        _ => return false,
    };
    bytes.len() < needed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: &str) {
        let mut whole = Plain::default();
        assert_eq!(whole.text(bytes) + whole.rest(), expected);
        let mut bit_by_bit = Plain::default();
        let mut text: String = bytes.iter().map(|byte| bit_by_bit.text(&[*byte])).collect();
        text.push_str(bit_by_bit.rest());
        assert_eq!(text, expected, "byte by byte");
        assert_eq!(bit_by_bit.invalid, whole.invalid);
    }

    #[test]
    fn control_codes_are_removed() {
        check(b"\x1b[1;31mred\x1b[0m\n", "red\n");
        check(b"\x1b]0;title\x07text", "text");
        check(b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link");
        check(b"a\x08\x07b\x00c", "abc");
        check("\u{9b}31mx".as_bytes(), "31mx");
    }

    #[test]
    fn colors_are_known_beside_the_text_also_across_pieces() {
        use crate::domain::{Color, Weight};
        let mut plain = Plain::default();
        assert_eq!(plain.text(b"a \x1b[1;31mred\nmo"), "a red\nmo");
        let red = Style {
            color: Some(Color::Terminal(1)),
            weight: Weight::Bold,
            ..Style::default()
        };
        let styled = |range| Styled { range, style: red };
        assert_eq!(plain.styles, [styled(2..5), styled(6..8)]);
        assert_eq!(plain.text("re\x1b[m é\x1b[?25h\x1b[2J".as_bytes()), "re é");
        assert_eq!(plain.styles, [styled(0..2)]);
        plain.text("\x1b[31mx\u{202e}".as_bytes());
        assert!(plain.styles.is_empty(), "an escaped text has no colors");
    }

    #[test]
    fn line_ends_are_normalized() {
        check(b"a\r\nb\n", "a\nb\n");
        check(b" 10%\r 20%\r\n", " 10%\n 20%\n");
    }

    #[test]
    fn deceptive_characters_are_escaped() {
        check("a\u{202e}b".as_bytes(), "a\\u{202e}b");
    }

    #[test]
    fn invalid_bytes_are_replaced_and_counted() {
        check("é漢🎉".as_bytes(), "é漢🎉");
        check(b"a\xffb\xe6\xbc", "a\u{fffd}b\u{fffd}");
        let mut plain = Plain::default();
        plain.text(b"\xff\xfe");
        assert_eq!(plain.invalid, 2);
    }

    proptest! {
        #[test]
        fn no_input_yields_control_characters(bytes: Vec<u8>, cut in 0_usize..64) {
            let mut plain = Plain::default();
            let (first, second) = bytes.split_at(cut.min(bytes.len()));
            let text = plain.text(first) + &plain.text(second);
            let is_plain = |c| matches!(c, '\n' | '\t' | '\u{200c}' | '\u{200d}') || !display::is_deceptive(c);
            prop_assert!(text.chars().all(is_plain), "{text:?}");
        }
    }
}
