//! The output of a program: its beginning and end in memory, all of it in an unnamed file.
//!
//! Invariant: whatever the program writes, memory is bounded and the end of the output is never lost. The file is
//! readable by nobody else and goes away with the process.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use tokio::sync::Notify;

use super::plain::Plain;
use crate::domain::{JobOutput, Styled, lock};
use crate::process::Live;
use crate::workspace::lines;

/// How much of the beginning and of the end is kept in memory, in bytes.
const KEPT: usize = 16_000;
/// How much is kept in the file; later output is only in the tail.
const SPILLED: u64 = 256 << 20;
/// How many styles of the beginning and of the end are kept.
const STYLES: usize = 500;
/// How much a person is shown at once, in bytes.
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

    /// Reads from the pipe until nothing holds its other end. Blocks.
    pub fn listen(&self, mut pipe: impl Read, live: Option<&Live>) {
        let mut plain = Plain::default();
        let mut piece = vec![0; PIECE];
        loop {
            let text = match pipe.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => plain.text(piece.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    tracing::warn!("reading the output of a command: {error}");
                    break;
                }
            };
            self.add(&text, &plain.styles);
            if let Some(live) = live {
                live.say(&text);
            }
        }
        self.add(plain.rest(), &[]);
        let mut state = self.state();
        (state.ended, state.invalid) = (true, plain.invalid);
        drop(state);
        self.news.notify_waiters();
    }

    fn add(&self, text: &str, styles: &[Styled]) {
        if text.is_empty() {
            return;
        }
        let mut state = self.state();
        state.style(styles);
        state.fresh.add(text);
        state.total += text.len() as u64;
        if let Err(error) = state.store(text, self.folder.as_deref()) {
            state.missing = Some(error.to_string());
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
                None => format!("; read_file reads it all: `{}`", self.name),
                Some(why) => format!("; it was not saved in full: {why}"),
            };
            head = format!("{head}\n[… {skipped} bytes left out{whole} …]\n");
        }
        let styles = state.take_styles(before, after, head.len());
        head.push_str(&tail);
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
        state.ended || !state.fresh.head.is_empty()
    }

    /// The lines from `offset` (1-based), at most `limit` lines and `bytes` bytes, and whether there are more.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn lines(&self, offset: usize, limit: usize, bytes: u64) -> io::Result<(String, bool)> {
        let mut state = self.state();
        let Some(file) = &mut state.file else {
            return Ok((String::new(), false));
        };
        file.seek(SeekFrom::Start(0))?;
        let read = lines(BufReader::new(&*file), offset, limit, bytes);
        file.seek(SeekFrom::End(0))?;
        read
    }

    /// A piece of it from `offset`, or its end, at most [`SHOWN`] bytes.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn piece(&self, offset: Option<u64>) -> io::Result<JobOutput> {
        let mut state = self.state();
        let stored = state.stored;
        let from = offset.unwrap_or(stored.saturating_sub(SHOWN)).min(stored);
        let mut bytes = Vec::new();
        if let Some(file) = &mut state.file {
            file.seek(SeekFrom::Start(from))?;
            (&*file).take(SHOWN).read_to_end(&mut bytes)?;
            file.seek(SeekFrom::End(0))?;
        }
        drop(state);
        // Whole characters: the end of one may be in the next piece, its beginning in the one before.
        let begin = bytes
            .iter()
            .take_while(|byte| **byte & 0xC0 == 0x80)
            .count();
        let mut end = bytes.len();
        if let Err(error) = std::str::from_utf8(bytes.get(begin..).unwrap_or_default()) {
            end = begin + error.valid_up_to();
        }
        let text = bytes.get(begin..end).unwrap_or_default();
        Ok(JobOutput {
            text: String::from_utf8_lossy(text).into_owned(),
            offset: from + end as u64,
            truncated: offset.is_none() && from > 0,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl State {
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
    /// As much of it as that, half of it from the end.
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
        assert!(text.contains("bytes left out; read_file reads it all: `output:1` …]"));
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
            let text = plain.text(bytes);
            output.add(&text, &plain.styles);
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
