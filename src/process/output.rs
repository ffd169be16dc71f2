//! The output of a program: its beginning and end in memory, all of it in an unnamed file.
//!
//! Invariant: whatever the program writes, memory is bounded and the end of the output is never lost. The file is
//! readable by nobody else and goes away with the process.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use tokio::sync::Notify;

use super::plain::{Plain, Printed, without_colors};
use crate::domain::{JobOutput, Styled, lock};
use crate::process::Live;
use crate::workspace::lines;

/// The size of the beginning and of the end kept in memory, in bytes.
const KEPT: usize = 16_000;
/// The maximum size of the file, in bytes; later output is only in the tail.
const SPILLED: u64 = 256 << 20;
/// How many styles of the beginning and of the end are kept.
const STYLES: usize = 500;
/// The maximum size shown to a person at once, in bytes.
const SHOWN: u64 = 64_000;
/// How much is read at once.
const PIECE: usize = 64 << 10;

/// The output of one program.
#[derive(Debug)]
pub(crate) struct Output {
    name: String,
    folder: Option<PathBuf>,
    state: Mutex<State>,
    news: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Output that was not taken yet.
    fresh: Kept,
    /// With colors.
    file: Option<File>,
    /// Bytes in the file.
    stored: u64,
    /// Bytes in all, and those that were taken.
    total: u64,
    taken: u64,
    /// The styles of what was not taken, by their place in all of the output: the first and the last ones.
    first: Vec<Styled>,
    last: VecDeque<Styled>,
    invalid: u64,
    /// The line after all of that, which may still change, and what was taken of it.
    line: Printed,
    taken_line: String,
    /// Whether the output has ended.
    ended: bool,
    /// Why the file is incomplete, if it is.
    missing: Option<String>,
}

/// The beginning and the end of a text.
#[derive(Debug, Default)]
struct Kept {
    head: String,
    tail: String,
    /// Bytes in between.
    skipped: u64,
}

impl Output {
    /// Empty; the file will be in `folder`.
    pub fn new(name: String, folder: Option<&Path>) -> Self {
        let folder = folder.map(Path::to_owned);
        Self {
            name,
            folder,
            state: Mutex::default(),
            news: Notify::new(),
        }
    }

    /// Reads from the pipe until its other end is closed. Blocks.
    pub fn listen(&self, mut pipe: impl Read, live: Option<&Live>) {
        let mut plain = Plain::default();
        let mut piece = vec![0; PIECE];
        loop {
            let printed = match pipe.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => plain.lines(piece.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    tracing::warn!("reading the output of a command: {error}");
                    break;
                }
            };
            let line = plain.line();
            if let Some(live) = live {
                live.say(&printed.text, line.text.clone());
            }
            self.add(&printed, line);
        }
        self.add(&plain.rest(), Printed::default());
        let mut state = self.state();
        (state.ended, state.invalid) = (true, plain.invalid);
        drop(state);
        self.news.notify_waiters();
    }

    fn add(&self, printed: &Printed, line: Printed) {
        let mut state = self.state();
        state.line = line;
        if !printed.text.is_empty() {
            state.style(&printed.styles);
            let mut text = &*printed.text;
            // It begins with the unfinished line that was taken before.
            let taken = std::mem::take(&mut state.taken_line);
            if let Some(rest) = text.strip_prefix(&*taken) {
                text = rest;
                state.taken += taken.len() as u64;
            }
            state.fresh.add(text);
            state.total += printed.text.len() as u64;
            if let Err(error) = state.store(&printed.colored(), self.folder.as_deref()) {
                state.missing = Some(error.to_string());
            }
        }
        drop(state);
        self.news.notify_waiters();
    }

    /// The output since the last call, at most `bytes` bytes: its beginning and end, with a note on what is in between.
    pub fn take(&self, bytes: usize) -> String {
        self.take_styled(bytes).0
    }

    /// The same, with its styles.
    pub fn take_styled(&self, bytes: usize) -> (String, Vec<Styled>) {
        let mut state = self.state();
        let Kept {
            mut head,
            tail,
            skipped,
        } = std::mem::take(&mut state.fresh).within(bytes);
        let (before, after) = (head.len(), tail.len());
        if skipped > 0 {
            let whole = match &state.missing {
                None => format!("; read_file returns all of it: `{}`", self.name),
                Some(why) => format!("; it was not saved in full: {why}"),
            };
            head = format!("{head}\n[… {skipped} bytes left out{whole} …]\n");
        }
        let mut styles = state.take_styles(before, after, head.len());
        head.push_str(&tail);
        state.take_line(&mut head, &mut styles);
        let said = match std::mem::take(&mut state.invalid) {
            0 => head,
            invalid => {
                format!("{head}\n[{invalid} bytes were not UTF-8 and are shown as \u{fffd}]\n")
            }
        };
        (said, styles)
    }

    /// Waits for output, or its end.
    pub async fn news(&self) {
        loop {
            let news = self.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            if self.has_news() {
                return;
            }
            news.await;
        }
    }

    /// Whether the output has ended.
    pub fn has_ended(&self) -> bool {
        self.state().ended
    }

    fn has_news(&self) -> bool {
        let state = self.state();
        state.ended || !state.fresh.head.is_empty() || state.line.text != state.taken_line
    }

    /// The lines from `offset` (1-based), at most `limit` lines and `bytes` bytes, and whether there are more.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn lines(&self, offset: usize, limit: usize, bytes: u64) -> io::Result<(String, bool)> {
        let mut state = self.state();
        let State { file, line, .. } = &mut *state;
        let Some(file) = file else {
            return Ok((String::new(), false));
        };
        file.seek(SeekFrom::Start(0))?;
        let all = (&*file).chain(line.text.as_bytes());
        let read = lines(BufReader::new(all), offset, limit, bytes);
        file.seek(SeekFrom::End(0))?;
        read.map(|(text, more)| (without_colors(&text), more))
    }

    /// Everything from `offset` on, which is 0 or was given before. Of more than [`SHOWN`] bytes the middle is left out.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn from(&self, offset: u64, colors: bool) -> io::Result<JobOutput> {
        let mut state = self.state();
        let (end, line) = (state.stored, state.line.colored());
        let from = offset.min(end);
        let text = if end - from <= SHOWN {
            state.read(from..end)?
        } else {
            let mut text = state.read(from..from + SHOWN / 2)?;
            let rest = state.read(end - SHOWN / 2..end)?;
            text.truncate(text.rfind('\n').map_or(text.len(), |at| at + 1));
            let rest = rest.split_once('\n').map_or(&*rest, |(_cut, lines)| lines);
            let left_out = end - from - (text.len() + rest.len()) as u64;
            if !text.ends_with('\n') {
                text.push('\n');
            }
            let _ = write!(text, "[… {left_out} bytes left out …]\n{rest}");
            text
        };
        drop(state);
        let shown = |text: String| {
            if colors { text } else { without_colors(&text) }
        };
        Ok(JobOutput {
            text: shown(text),
            offset: end,
            line: shown(line),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl State {
    /// A part of the file.
    fn read(&mut self, part: Range<u64>) -> io::Result<String> {
        let mut bytes = Vec::new();
        if let Some(file) = &mut self.file {
            file.seek(SeekFrom::Start(part.start))?;
            (&*file)
                .take(part.end - part.start)
                .read_to_end(&mut bytes)?;
            file.seek(SeekFrom::End(0))?;
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Takes what is new of the unfinished line.
    fn take_line(&mut self, text: &mut String, styles: &mut Vec<Styled>) {
        let line = &self.line.text;
        let new = line.strip_prefix(&*self.taken_line).unwrap_or(line);
        let part = line.len() - new.len()..line.len();
        let of_line = self.line.styles.iter();
        styles.extend(of_line.filter_map(|styled| styled.within(&part, text.len())));
        text.push_str(new);
        self.taken_line.clone_from(line);
    }

    /// Remembers the styles of a text that is added.
    fn style(&mut self, styles: &[Styled]) {
        let at = usize::try_from(self.total).unwrap_or(usize::MAX / 2);
        for Styled { range, style } in styles {
            let styled = Styled {
                range: range.start + at..range.end + at,
                style: *style,
            };
            if self.first.len() < STYLES {
                self.first.push(styled);
            } else {
                self.last.push_back(styled);
                if self.last.len() > STYLES {
                    self.last.pop_front();
                }
            }
        }
    }

    /// The styles in a text of the first `head` and the last `tail` bytes, which begin at 0 and at `at`.
    fn take_styles(&mut self, head: usize, tail: usize, at: usize) -> Vec<Styled> {
        let [from, to] =
            [self.taken, self.total].map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX / 2));
        self.taken = self.total;
        let (head, tail) = (from..from + head, to - tail..to);
        let all: Vec<_> = self.first.drain(..).chain(self.last.drain(..)).collect();
        let begin = all.iter().filter_map(|styled| styled.within(&head, 0));
        begin
            .chain(all.iter().filter_map(|styled| styled.within(&tail, at)))
            .collect()
    }

    fn store(&mut self, text: &str, folder: Option<&Path>) -> io::Result<()> {
        if self.missing.is_some() {
            return Ok(());
        }
        if self.stored + text.len() as u64 > SPILLED {
            return Err(io::Error::other(format!(
                "only the first {SPILLED} bytes are"
            )));
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(unnamed(folder)?),
        };
        file.write_all(text.as_bytes())?;
        self.stored += text.len() as u64;
        Ok(())
    }
}

/// A file that only this process has open.
fn unnamed(folder: Option<&Path>) -> io::Result<File> {
    match folder {
        Some(folder) => tempfile::tempfile_in(folder),
        None => tempfile::tempfile(),
    }
}

impl Kept {
    /// At most this many bytes, half of them from the end.
    fn within(mut self, bytes: usize) -> Self {
        let too_much = (self.head.len() + self.tail.len()).saturating_sub(bytes);
        if too_much == 0 {
            return self;
        }
        if self.tail.is_empty() {
            self.tail = self
                .head
                .split_off(self.head.floor_char_boundary(self.head.len() / 2));
        }
        let head = self.head.floor_char_boundary(bytes / 2);
        let tail = self
            .tail
            .ceil_char_boundary(self.tail.len().saturating_sub(bytes / 2));
        self.skipped += (self.head.len() - head + tail) as u64;
        self.head.truncate(head);
        self.tail.drain(..tail);
        self
    }

    fn add(&mut self, text: &str) {
        let room = if self.tail.is_empty() {
            text.floor_char_boundary(KEPT.saturating_sub(self.head.len()))
        } else {
            0
        };
        let (head, rest) = text.split_at(room);
        self.head.push_str(head);
        self.tail.push_str(rest);
        // Rarely, so that a flood is not copied again and again.
        if self.tail.len() > 2 * KEPT {
            let cut = self.tail.ceil_char_boundary(self.tail.len() - KEPT);
            self.tail.drain(..cut);
            self.skipped += cut as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Output {
        let output = Output::new("output:1".to_owned(), None);
        output.listen(text.as_bytes(), None);
        output
    }

    #[test]
    fn small_windows_get_both_ends_of_long_output() {
        let lines = (1..=1000).fold(String::new(), |lines, line| {
            lines + &format!("line {line}\n")
        });
        let text = said(&lines).take(2000);
        assert!(text.len() < 2200, "{}", text.len());
        assert!(
            text.starts_with("line 1\n")
                && text.ends_with("line 1000\n")
                && text.contains("bytes left out")
        );
    }

    #[test]
    fn short_output_is_complete() {
        let output = said("one\ntwo\n");
        assert_eq!(output.take(usize::MAX), "one\ntwo\n");
        assert_eq!(output.take(usize::MAX), "", "it was taken");
    }

    #[test]
    fn long_output_keeps_both_ends_and_is_complete_on_disk() {
        let lines: Vec<_> = (1..=200_000)
            .map(|line| format!("line {line} é\n"))
            .collect();
        let lines = lines.concat();
        let output = said(&lines);
        let memory = |output: &Output| {
            let state = output.state();
            state.fresh.head.capacity() + state.fresh.tail.capacity()
        };
        assert!(memory(&output) < 1 << 18, "{}", memory(&output));
        let text = output.take(usize::MAX);
        assert!(text.starts_with("line 1 é\nline 2 é\n"), "{}", text.len());
        assert!(text.ends_with("line 199999 é\nline 200000 é\n"));
        assert!(text.contains("bytes left out; read_file returns all of it: `output:1` …]"));
        assert!(text.len() < 3 * KEPT + 200, "{}", text.len());
        let middle = output.lines(100_000, 2, 1000).unwrap();
        assert_eq!(middle, ("line 100000 é\nline 100001 é\n".to_owned(), true));
        assert_eq!(
            output.lines(200_000, 9, 1000).unwrap(),
            ("line 200000 é\n".to_owned(), false)
        );
        assert_eq!(
            output.lines(300_000, 9, 1000).unwrap(),
            (String::new(), false)
        );
    }

    #[test]
    fn styles_follow_both_ends_of_long_output_and_are_bounded() {
        let lines = (1..=5000).fold(String::new(), |lines, line| {
            lines + &format!("\x1b[3{}mline {line}\n", line % 8)
        });
        let output = said(&lines);
        let (text, styles) = output.take_styled(2000);
        assert!(
            text.starts_with("line 1\n") && text.ends_with("line 5000\n"),
            "{text}"
        );
        let looks: Vec<_> = styles
            .iter()
            .map(|styled| text.get(styled.range.clone()).unwrap())
            .collect();
        assert_eq!((looks[0], looks[looks.len() - 1]), ("line 1", "line 5000"));
        assert!(
            looks.iter().all(|look| !look.contains("left out")),
            "{looks:?}"
        );
        let flood = said(&"\x1b[31mx\x1b[32my".repeat(100_000));
        let state = flood.state();
        assert_eq!((state.first.len(), state.last.len()), (STYLES, STYLES));
    }

    #[test]
    fn styles_begin_again_with_what_was_not_taken() {
        let output = Output::new("output:1".to_owned(), None);
        let mut plain = Plain::default();
        for bytes in [&b"\x1b[31mone\x1b[m\n"[..], b"two \x1b[32mthree"] {
            let lines = plain.lines(bytes);
            output.add(&lines, plain.line());
            let (said, styles) = output.take_styled(usize::MAX);
            let [styled] = &*styles else {
                panic!("{styles:?}")
            };
            assert_eq!(
                said.get(styled.range.clone()),
                Some(if said == "one\n" { "one" } else { "three" })
            );
        }
    }

    #[test]
    fn an_unfinished_line_is_taken_as_far_as_it_is_new_and_again_where_it_changed() {
        let output = Output::new("output:1".to_owned(), None);
        let mut plain = Plain::default();
        for (bytes, expected) in [
            ("ready", "ready"),
            ("...", "..."),
            ("\n10%", "\n10%"),
            ("\r20%", "20%"),
            ("\r30%\n\x1b[31mred", "30%\nred"),
            (" and\n\x1b[32mgreen", " and\ngreen"),
        ] {
            let lines = plain.lines(bytes.as_bytes());
            output.add(&lines, plain.line());
            assert!(output.has_news(), "{bytes:?}");
            let (said, styles) = output.take_styled(usize::MAX);
            assert_eq!(said, expected, "{bytes:?}");
            assert!(!output.has_news(), "{bytes:?}");
            let styled: Vec<_> = styles
                .iter()
                .map(|it| said.get(it.range.clone()).unwrap())
                .collect();
            let colored: Vec<_> = expected
                .split('\n')
                .filter(|it| it.starts_with([' ', 'r', 'g']) && *it != "ready")
                .collect();
            assert_eq!(styled, colored, "{bytes:?}");
        }
        let all = "ready...\n30%\nred and\n";
        let JobOutput { text, line, offset } = output.from(0, false).unwrap();
        assert_eq!((&*text, &*line), (all, "green"));
        assert_eq!(output.lines(2, 9, 1000).unwrap().0, "30%\nred and\ngreen");
        let colored = output.from(0, true).unwrap();
        assert_eq!(colored.text, "ready...\n30%\n\x1b[31mred and\x1b[m\n");
        assert_eq!(colored.line, "\x1b[32mgreen\x1b[m");
        assert_eq!(output.from(offset, false).unwrap().text, "");
    }

    #[test]
    fn a_person_is_shown_both_ends_of_long_output_and_what_is_left_out() {
        let lines: Vec<_> = (1..=200_000)
            .map(|line| format!("\x1b[3{}m{line}\x1b[m é\n", line % 8))
            .collect();
        let output = said(&lines.concat());
        for colors in [false, true] {
            let JobOutput { text, offset, line } = output.from(0, colors).unwrap();
            assert_eq!((offset, &*line), (output.state().stored, ""));
            assert!(text.len() < 65_000, "{}", text.len());
            let plain = without_colors(&text);
            assert!(plain.starts_with("1 é\n2 é\n") && plain.ends_with("199999 é\n200000 é\n"));
            let (begin, rest) = text.split_once("[… ").unwrap();
            let (left_out, rest) = rest.split_once(" bytes left out …]\n").unwrap();
            if colors {
                let all = begin.len() as u64 + left_out.parse::<u64>().unwrap() + rest.len() as u64;
                assert_eq!(all, offset);
            }
            assert!(
                plain
                    .lines()
                    .all(|line| line.ends_with(" é") || line.starts_with("[… "))
            );
        }
        assert_eq!(output.from(u64::MAX, false).unwrap().text, "");
    }

    #[test]
    fn a_page_of_a_huge_line_is_bounded() {
        let output = said(&"x".repeat(1_000_000));
        let (text, more) = output.lines(1, 1, 100).unwrap();
        assert_eq!((text.len(), more), (100, true));
    }

    #[test]
    fn binary_output_is_reported() {
        let output = Output::new("output:1".to_owned(), None);
        output.listen(&b"a\xff\xfe"[..], None);
        assert_eq!(
            output.take(usize::MAX),
            "a\u{fffd}\u{fffd}\n[2 bytes were not UTF-8 and are shown as \u{fffd}]\n"
        );
    }
}
