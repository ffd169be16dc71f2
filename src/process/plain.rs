//! Converts a program's output bytes to the text that a terminal shows in the end: no control code gets through, however
//! the bytes are split.

use std::borrow::Cow;
use std::fmt::Write as _;

use anstyle_parse::{DefaultCharAccumulator, Params, Parser, Perform};

use crate::domain::{Style, Styled};
use crate::text::display;

/// How long a line is, in characters, before its beginning can no longer be overwritten.
const LINE: usize = 1000;
/// The control code that ends a control sequence.
const CANCEL: u8 = 0x18;

/// Converts bytes to text, piece by piece.
#[derive(Debug, Default)]
pub(super) struct Plain {
    terminal: Parser<DefaultCharAccumulator>,
    screen: Screen,
    /// The beginning of an incomplete character.
    cut: Vec<u8>,
    /// How many bytes were not UTF-8.
    pub invalid: u64,
}

/// A text, and how a terminal shows parts of it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Printed {
    pub text: String,
    /// In order, none across lines.
    pub styles: Vec<Styled>,
}

impl Printed {
    /// The text with the control sequences that select its styles, and no others. Each line begins without a style.
    pub fn colored(&self) -> String {
        let (mut colored, mut at) = (String::with_capacity(self.text.len()), 0);
        let part = |range| self.text.get(range).unwrap_or_default();
        for Styled { range, style } in &self.styles {
            let (before, styled) = (part(at..range.start), part(range.clone()));
            let _ = write!(colored, "{before}\x1b[{}m{styled}\x1b[m", style.numbers());
            at = range.end;
        }
        colored + part(at..self.text.len())
    }
}

/// A text of [`Printed::colored`] without its control sequences.
pub(super) fn without_colors(colored: &str) -> String {
    let mut parts = colored.split('\x1b');
    let begin = parts.next().unwrap_or_default();
    let rest = parts.map(|part| part.split_once('m').map_or("", |(_numbers, text)| text));
    std::iter::once(begin).chain(rest).collect()
}

impl Plain {
    /// The lines that the next bytes end.
    pub fn lines(&mut self, bytes: &[u8]) -> Printed {
        let bytes = if self.cut.is_empty() {
            Cow::Borrowed(bytes)
        } else {
            let mut joined = std::mem::take(&mut self.cut);
            joined.extend_from_slice(bytes);
            Cow::Owned(joined)
        };
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            for byte in chunk.valid().bytes() {
                if byte == b'\n' {
                    // Ends a sequence that is not finished, which would swallow all that follows.
                    self.terminal.advance(&mut self.screen, CANCEL);
                }
                self.terminal.advance(&mut self.screen, byte);
            }
            match chunk.invalid() {
                [] => {}
                unfinished if chunks.peek().is_none() && may_go_on(unfinished) => {
                    self.cut = unfinished.to_vec();
                }
                invalid => {
                    self.invalid += invalid.len() as u64;
                    self.screen.print(char::REPLACEMENT_CHARACTER);
                }
            }
        }
        std::mem::take(&mut self.screen.ended)
    }

    /// The unfinished line after those: it may still change.
    pub fn line(&self) -> Printed {
        let mut line = Printed::default();
        self.screen.draw(&mut line);
        line
    }

    /// That line when no more bytes come.
    pub fn rest(&mut self) -> Printed {
        let cut = std::mem::take(&mut self.cut);
        self.invalid += cut.len() as u64;
        if !cut.is_empty() {
            self.screen.print(char::REPLACEMENT_CHARACTER);
        }
        self.line()
    }
}

/// What a terminal would show, by line: what moves the cursor within its line, erases there or selects colors is
/// understood, and all other control codes are dropped.
#[derive(Debug, Default)]
struct Screen {
    /// The lines that have ended.
    ended: Printed,
    /// The line that has not.
    line: Vec<(char, Style)>,
    /// The place of the cursor in it.
    column: usize,
    style: Style,
}

impl Perform for Screen {
    fn print(&mut self, character: char) {
        if character.is_control() {
            return;
        }
        if self.column >= self.line.len() {
            self.line.resize(self.column + 1, (' ', Style::default()));
        }
        if let Some(cell) = self.line.get_mut(self.column) {
            *cell = (character, self.style);
        }
        self.column += 1;
        if self.line.len() >= LINE {
            self.end();
        }
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\n' => {
                self.end();
                self.ended.text.push('\n');
            }
            b'\r' => self.column = 0,
            b'\x08' => self.move_to(self.column.saturating_sub(1)),
            b'\t' if self.column < self.line.len() => self.column += 1,
            b'\t' => {
                self.print(' ');
                if let Some(last) = self.line.last_mut() {
                    last.0 = '\t';
                }
            }
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], ignore: bool, action: u8) {
        if !intermediates.is_empty() || ignore {
            return;
        }
        let number = params.iter().flatten().next().copied().unwrap_or_default();
        let count = usize::from(number.max(1));
        match (action, number) {
            (b'm', _) => self.style.select(params.iter().flatten().copied()),
            (b'C', _) => self.move_to(self.column + count),
            (b'D', _) => self.move_to(self.column.saturating_sub(count)),
            (b'G', _) => self.move_to(count - 1),
            (b'K', 0) => self.line.truncate(self.column),
            (b'K', 1) => {
                let erased = self.line.iter_mut().take(self.column + 1);
                erased.for_each(|cell| *cell = (' ', Style::default()));
            }
            (b'K', 2) => self.line.clear(),
            _ => {}
        }
    }
}

impl Screen {
    fn move_to(&mut self, column: usize) {
        self.column = column.min(LINE - 1);
    }

    /// The line can no longer change.
    fn end(&mut self) {
        let mut ended = std::mem::take(&mut self.ended);
        self.draw(&mut ended);
        self.ended = ended;
        self.line.clear();
        self.column = 0;
    }

    /// Appends the line.
    fn draw(&self, printed: &mut Printed) {
        let begin = printed.text.len();
        let known = printed.styles.len();
        for (character, style) in &self.line {
            let start = printed.text.len();
            printed.text.push(*character);
            let end = printed.text.len();
            let last = printed.styles.get_mut(known..).and_then(<[_]>::last_mut);
            match last.filter(|last| last.style == *style && last.range.end == start) {
                Some(last) => last.range.end = end,
                None if *style != Style::default() => printed.styles.push(Styled {
                    range: start..end,
                    style: *style,
                }),
                None => {}
            }
        }
        let line = printed.text.get(begin..).unwrap_or_default();
        if let Cow::Owned(escaped) = display::escape_piece(line) {
            printed.text.replace_range(begin.., &escaped);
            printed.styles.truncate(known); // they are those of another text
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
        assert_eq!(whole.lines(bytes).text + &whole.rest().text, expected);
        let mut bit_by_bit = Plain::default();
        let lines: Vec<_> = bytes
            .iter()
            .map(|byte| bit_by_bit.lines(&[*byte]).text)
            .collect();
        let text = lines.concat() + &bit_by_bit.rest().text;
        assert_eq!(text, expected, "byte by byte");
        assert_eq!(bit_by_bit.invalid, whole.invalid);
    }

    #[test]
    fn control_codes_are_removed() {
        check(b"\x1b[1;31mred\x1b[0m\n", "red\n");
        check(b"\x1b]0;title\x07text", "text");
        check(b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link");
        check(b"a\x07b\x00c", "abc");
        check(b"\x1b]0;no end\ntext\n\x1bPq\nmore", "\ntext\n\nmore");
        check("\u{9b}31mx".as_bytes(), "31mx");
        check(b"a\tb\t\n", "a\tb\t\n");
    }

    #[test]
    fn overwritten_output_is_shown_in_its_final_state() {
        check(b"a\r\nb\n", "a\nb\n");
        check(b" 10%\r 20%\r\n", " 20%\n");
        check(b"100%\rok\n", "ok0%\n");
        check(b"100%\rok\x1b[K\n", "ok\n");
        check(b"one\x1b[2K\rtwo\n", "two\n");
        check(b"abc\x08\x08x\n", "axc\n");
        check(b"abcd\x1b[2D\x1b[1Kx\x1b[5Gy\x1b[2Cz", "  xdy  z");
        check(
            b"\x1b[65535Cx\rend",
            &format!("{}xend", " ".repeat(LINE - 1)),
        );
        let long = "0123456789".repeat(1000);
        check(long.as_bytes(), &long);
        let mut plain = Plain::default();
        assert_eq!(plain.lines(b"one\n 10%\r 2").text, "one\n");
        assert_eq!(plain.line().text, " 20%");
    }

    fn red() -> Style {
        use crate::domain::{Color, Weight};
        Style {
            color: Some(Color::Terminal(1)),
            weight: Weight::Bold,
            ..Style::default()
        }
    }

    #[test]
    fn colors_are_known_beside_the_text_also_across_pieces() {
        let mut plain = Plain::default();
        let styled = |range| Styled {
            range,
            style: red(),
        };
        let printed = plain.lines(b"a \x1b[1;31mred\nmo");
        assert_eq!(
            (&*printed.text, printed.styles),
            ("a red\n", vec![styled(2..5)])
        );
        assert_eq!(plain.line().styles, [styled(0..2)]);
        plain.lines("re\x1b[m \u{e9}\x1b[?25h\x1b[2J".as_bytes());
        let line = plain.line();
        assert_eq!(
            (&*line.text, &line.styles),
            ("more \u{e9}", &vec![styled(0..4)])
        );
        assert_eq!(line.colored(), "\x1b[1;31mmore\x1b[m \u{e9}");
        let printed = plain.lines("\x1b[1;31mx\u{202e}\ny\n".as_bytes());
        assert_eq!(printed.text, "more \u{e9}x\\u{202e}\ny\n");
        let y = printed.text.len() - 2;
        assert_eq!(
            printed.styles,
            [styled(y..y + 1)],
            "an escaped line has no colors"
        );
    }

    #[test]
    fn deceptive_characters_are_escaped() {
        check("a\u{202e}b".as_bytes(), "a\\u{202e}b");
    }

    #[test]
    fn invalid_bytes_are_replaced_and_counted() {
        check(
            "\u{e9}\u{6f22}\u{1f389}".as_bytes(),
            "\u{e9}\u{6f22}\u{1f389}",
        );
        check(b"a\xffb\xe6\xbc", "a\u{fffd}b\u{fffd}");
        let mut plain = Plain::default();
        plain.lines(b"\xff\xfe");
        assert_eq!(plain.invalid, 2);
    }

    proptest! {
        #[test]
        fn no_input_yields_control_characters(bytes: Vec<u8>, cut in 0_usize..64) {
            let mut plain = Plain::default();
            let (first, second) = bytes.split_at(cut.min(bytes.len()));
            let text = plain.lines(first).text + &plain.lines(second).text + &plain.line().text;
            let is_plain = |c| matches!(c, '\n' | '\t' | '\u{200c}' | '\u{200d}') || !display::is_deceptive(c);
            prop_assert!(text.chars().all(is_plain), "{text:?}");
        }

        #[test]
        fn colors_are_written_and_removed(words in proptest::collection::vec((0_u16..110, "[a-z\\n\r]{0,4}"), 0..20)) {
            let said = words.iter().fold(String::new(), |said, (number, word)| said + &format!("\x1b[{number}m{word}"));
            let mut plain = Plain::default();
            let mut printed = plain.lines(said.as_bytes());
            plain.screen.draw(&mut printed);
            let colored = printed.colored();
            prop_assert_eq!(without_colors(&colored), &*printed.text);
            let mut again = Plain::default();
            let mut read = again.lines(colored.as_bytes());
            again.screen.draw(&mut read);
            prop_assert_eq!(read, printed);
        }
    }
}
