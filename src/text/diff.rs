//! Differences between two texts: hunks for an editor, and a short unified diff for people and models.

mod tokens;

use std::fmt::Write;
use std::ops::Range;
use std::time::Duration;

use similar::DiffOp;

pub use self::tokens::{Tokens, likeness};

/// Past this the comparison gets coarser, never wrong.
const TIMEOUT: Duration = Duration::from_millis(200);

/// A replacement of some bytes of a text. It never begins or ends inside a character; those [`hunks`] makes never split
/// a CRLF either.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// The bytes of the old text it replaces.
    pub range: Range<usize>,
    /// The text that replaces them.
    pub new_text: String,
}

/// Small hunks, in order and not adjacent, that turn `old` into `new`. Unchanged text is not touched, so that cursors,
/// folds and marks survive.
pub fn hunks(old: &str, new: &str) -> Vec<Hunk> {
    let middle = Middle::of(old, new);
    let diff = middle.diff();
    let mut hunks = Vec::new();
    let (mut at, mut new_at) = (middle.start, middle.start);
    for op in &diff.ops {
        let (before, after) = diff.of(op);
        let (removed, added) = diff.bytes(op);
        let (from, new_from) = (at, new_at);
        at += removed;
        new_at += added;
        match op {
            DiffOp::Equal { .. } => {}
            // Line by line where lines correspond, so that one changed letter in each of two lines is two small hunks.
            _ if before.len() == after.len() => {
                let mut start = from;
                for (before, after) in before.iter().zip(after) {
                    hunks.extend(trimmed(start, before, after));
                    start += before.len();
                }
            }
            _ => {
                let before = old.get(from..at).unwrap_or_default();
                let after = new.get(new_from..new_at).unwrap_or_default();
                hunks.extend(trimmed(from, before, after));
            }
        }
    }
    hunks
}

/// The bytes of `old` that are also in `new`, in order, character by character.
pub fn common(old: &str, new: &str) -> Vec<Range<usize>> {
    let (mut common, mut at) = (Vec::new(), 0);
    for Hunk { range, new_text } in hunks(old, new) {
        common.push(at..range.start);
        let before = old.get(range.clone()).unwrap_or_default();
        let diff = Tokens::characters(before, &new_text, TIMEOUT);
        let mut start = range.start;
        for op in &diff.ops {
            let end = start + diff.bytes(op).0;
            if matches!(op, DiffOp::Equal { .. }) {
                common.push(start..end);
            }
            start = end;
        }
        at = range.end;
    }
    common.push(at..old.len());
    common
}

/// Neighboring whole lines of a text that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineHunk {
    /// Their bytes in the old text.
    pub old: Range<usize>,
    /// The bytes that replace them in the new text.
    pub new: Range<usize>,
    /// The lines of `old`, counted from 0.
    pub old_lines: Range<usize>,
    /// The lines of `new`, counted from 0.
    pub new_lines: Range<usize>,
}

/// Whether `text` still has all lines of an `old` one, in order.
pub fn has_lines_of(text: &str, old: &str) -> bool {
    line_hunks(old, text).iter().all(|hunk| hunk.old.is_empty())
}

/// The hunks of whole lines that turn `old` into `new`, in order, with at least one line between two of them. What is only
/// added or removed is as far down as it can be.
pub fn line_hunks(old: &str, new: &str) -> Vec<LineHunk> {
    let middle = Middle::of(old, new);
    let diff = middle.diff();
    let lines = line_breaks(old, 0..middle.start);
    let mut hunks: Vec<LineHunk> = Vec::new();
    let (mut at, mut new_at) = (middle.start, middle.start);
    for op in &diff.ops {
        let (from, new_from) = (at, new_at);
        let (removed, added) = diff.bytes(op);
        at += removed;
        new_at += added;
        let moved = |range: Range<usize>| range.start + lines..range.end + lines;
        let (old_lines, new_lines) = (moved(op.old_range()), moved(op.new_range()));
        match hunks
            .last_mut()
            .filter(|last| last.old.end == from && last.new.end == new_from)
        {
            _ if matches!(op, DiffOp::Equal { .. }) => {}
            Some(last) => {
                (last.old.end, last.new.end) = (at, new_at);
                (last.old_lines.end, last.new_lines.end) = (old_lines.end, new_lines.end);
            }
            None => hunks.push(LineHunk {
                old: from..at,
                new: new_from..new_at,
                old_lines,
                new_lines,
            }),
        }
    }
    slide(old, new, &mut hunks);
    hunks
}

/// Moves what is only added or removed as far down as equal lines allow, as Git does. A change that fits in several places
/// is then always found in the same one, and the end of a function stays with its beginning.
fn slide(old: &str, new: &str, hunks: &mut [LineHunk]) {
    let (mut old_end, mut new_end) = (old.len(), new.len());
    for hunk in hunks.iter_mut().rev() {
        let changed = match (hunk.old.is_empty(), hunk.new.is_empty()) {
            (true, _) => new.get(hunk.new.start..new_end),
            (_, true) => old.get(hunk.old.start..old_end),
            _ => None,
        };
        let changed = changed.unwrap_or_default();
        let below = changed
            .get(hunk.old.len() + hunk.new.len()..)
            .unwrap_or_default();
        // One line stays between this hunk and the next.
        let is_last = old_end == old.len() && new_end == new.len();
        let most = below.len().saturating_sub(usize::from(!is_last));
        let (mut bytes, mut lines) = (0, 0);
        for (first, next) in changed
            .split_inclusive('\n')
            .zip(below.split_inclusive('\n'))
        {
            if first != next || bytes + next.len() > most {
                break;
            }
            bytes += next.len();
            lines += 1;
        }
        for (range, down) in [
            (&mut hunk.old, bytes),
            (&mut hunk.new, bytes),
            (&mut hunk.old_lines, lines),
            (&mut hunk.new_lines, lines),
        ] {
            *range = range.start + down..range.end + down;
        }
        (old_end, new_end) = (hunk.old.start, hunk.new.start);
    }
}

/// `text` with `hunks` applied; they must be in order and must not overlap.
pub fn patched(text: &str, hunks: &[Hunk]) -> String {
    let grown: usize = hunks.iter().map(|hunk| hunk.new_text.len()).sum();
    let mut patched = String::with_capacity(text.len() + grown);
    let mut copied = 0;
    for hunk in hunks {
        patched.push_str(text.get(copied..hunk.range.start).unwrap_or_default());
        patched.push_str(&hunk.new_text);
        copied = hunk.range.end;
    }
    patched.push_str(text.get(copied..).unwrap_or_default());
    patched
}

/// A unified diff with `context` lines around each change, without file headers; empty when nothing differs.
pub fn unified(old: &str, new: &str, context: usize) -> String {
    if old == new {
        return String::new();
    }
    let middle = Middle::of(old, new).widened(context);
    let skipped = line_breaks(old, 0..middle.start);
    let diff = middle.diff();
    let mut out = String::new();
    for group in similar::group_diff_ops(diff.ops.clone(), context) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let header = |a: Range<usize>, b: Range<usize>| match b.end - a.start {
            0 => format!("{},0", skipped + a.start),
            1 => format!("{}", skipped + a.start + 1),
            count => format!("{},{count}", skipped + a.start + 1),
        };
        let (olds, news) = (
            header(first.old_range(), last.old_range()),
            header(first.new_range(), last.new_range()),
        );
        writeln!(out, "@@ -{olds} +{news} @@").expect("writing to a string cannot fail");
        for op in &group {
            let (before, after) = diff.of(op);
            let (removed, added) = if matches!(op, DiffOp::Equal { .. }) {
                (' ', None)
            } else {
                ('-', Some(after))
            };
            let lines = before.iter().map(|line| (removed, line));
            for (sign, line) in lines.chain(added.into_iter().flatten().map(|line| ('+', line))) {
                let end = if line.ends_with('\n') {
                    ""
                } else {
                    "\n\\ No newline at end of file\n"
                };
                write!(out, "{sign}{line}{end}").expect("writing to a string cannot fail");
            }
        }
    }
    out
}

/// Everything from the first differing line to the last, with `context` lines on both sides; and how many lines precede
/// it.
pub fn around<'a>(old: &'a str, new: &'a str, context: usize) -> (&'a str, &'a str, usize) {
    let Middle {
        start,
        old_end,
        new_end,
        ..
    } = Middle::of(old, new).widened(context);
    (
        old.get(start..old_end).unwrap_or_default(),
        new.get(start..new_end).unwrap_or_default(),
        line_breaks(old, 0..start),
    )
}

/// How many line breaks are in these bytes of a text.
pub fn line_breaks(text: &str, bytes: Range<usize>) -> usize {
    memchr::memchr_iter(b'\n', text.as_bytes().get(bytes).unwrap_or_default()).count()
}

/// The differing whole lines between the common prefix and the common suffix of both texts.
struct Middle<'a> {
    old: &'a str,
    new: &'a str,
    start: usize,
    old_end: usize,
    new_end: usize,
}

impl<'a> Middle<'a> {
    fn of(old: &'a str, new: &'a str) -> Self {
        let prefix = common_prefix(old.as_bytes(), new.as_bytes());
        let start = memchr::memrchr(b'\n', old.as_bytes().get(..prefix).unwrap_or_default())
            .map_or(0, |at| at + 1);
        let rest = |text: &'a str| text.as_bytes().get(start..).unwrap_or_default();
        let suffix = common_suffix(rest(old), rest(new));
        // The suffix begins after its first line break: the text before it may be half a line.
        let kept = old.as_bytes().get(old.len() - suffix..).unwrap_or_default();
        let suffix = memchr::memchr(b'\n', kept).map_or(0, |at| suffix - at - 1);
        Self {
            old,
            new,
            start,
            old_end: old.len() - suffix,
            new_end: new.len() - suffix,
        }
    }

    /// With up to `lines` more lines on both sides.
    fn widened(mut self, lines: usize) -> Self {
        for _ in 0..lines {
            let before = self
                .old
                .as_bytes()
                .get(..self.start.saturating_sub(1))
                .unwrap_or_default();
            self.start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
            let after = self.old.as_bytes().get(self.old_end..).unwrap_or_default();
            let more = memchr::memchr(b'\n', after).map_or(after.len(), |at| at + 1);
            self.old_end += more;
            self.new_end += more;
        }
        self
    }

    fn diff(&self) -> Tokens<'a> {
        let old = self.old.get(self.start..self.old_end).unwrap_or_default();
        let new = self.new.get(self.start..self.new_end).unwrap_or_default();
        Tokens::lines(old, new, TIMEOUT)
    }
}

/// The hunk that turns `before`, which begins at byte `start`, into `after`, without their common prefix and suffix.
fn trimmed(start: usize, before: &str, after: &str) -> Option<Hunk> {
    if before == after {
        return None;
    }
    let mut prefix = before.floor_char_boundary(common_prefix(before.as_bytes(), after.as_bytes()));
    if splits_crlf(before, prefix) || splits_crlf(after, prefix) {
        prefix -= 1;
    }
    let rest = before.len().min(after.len()) - prefix;
    let suffix = common_suffix(before.as_bytes(), after.as_bytes()).min(rest);
    let mut end = before.ceil_char_boundary(before.len() - suffix);
    let delta = |end: usize| after.len() + end - before.len();
    if splits_crlf(before, end) || splits_crlf(after, delta(end)) {
        end += 1;
    }
    let new_text = after.get(prefix..delta(end)).unwrap_or_default().to_owned();
    Some(Hunk {
        range: start + prefix..start + end,
        new_text,
    })
}

fn splits_crlf(text: &str, at: usize) -> bool {
    text.get(..at).is_some_and(|before| before.ends_with('\r'))
        && text.get(at..).is_some_and(|after| after.starts_with('\n'))
}

/// How many bytes are compared at once: enough to run at memory speed.
const BLOCK: usize = 4096;

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let blocks = a
        .chunks_exact(BLOCK)
        .zip(b.chunks_exact(BLOCK))
        .take_while(|(a, b)| a == b)
        .count()
        * BLOCK;
    let rest = a.iter().skip(blocks).zip(b.iter().skip(blocks));
    blocks + rest.take_while(|(a, b)| a == b).count()
}

fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    let blocks = a
        .rchunks_exact(BLOCK)
        .zip(b.rchunks_exact(BLOCK))
        .take_while(|(a, b)| a == b)
        .count()
        * BLOCK;
    let rest = a.iter().rev().skip(blocks).zip(b.iter().rev().skip(blocks));
    blocks + rest.take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
#[expect(
    clippy::string_slice,
    reason = "the ranges under test are to be of whole lines"
)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(old: &str, new: &str, expected: &[(&str, &str)]) {
        let hunks = hunks(old, new);
        assert_eq!(patched(old, &hunks), new);
        let seen: Vec<_> = hunks
            .iter()
            .map(|hunk| (old.get(hunk.range.clone()).unwrap(), hunk.new_text.as_str()))
            .collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn context_consists_of_whole_lines() {
        let check = |old, new, expected| assert_eq!(around(old, new, 1), expected);
        check(
            "a\nb\nc\nd\ne\n",
            "a\nb\nX\nY\nd\ne\n",
            ("b\nc\nd\n", "b\nX\nY\nd\n", 1),
        );
        check("a\nb", "X\nb", ("a\nb", "X\nb", 0));
        check("", "new\n", ("", "new\n", 0));
    }

    #[test]
    fn common_lines_are_found_across_blocks() {
        let same = vec![b'x'; 3 * BLOCK];
        for at in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK - 1] {
            let mut other = same.clone();
            other[at] = b'y';
            assert_eq!(
                (common_prefix(&same, &other), common_suffix(&same, &other)),
                (at, same.len() - at - 1)
            );
            assert_eq!(
                (
                    common_prefix(&same, &same[..at]),
                    common_suffix(&same[..at], &same)
                ),
                (at, at)
            );
        }
    }

    #[test]
    fn hunks_are_small() {
        check("same\n", "same\n", &[]);
        check(
            "let a = 1;\nlet b = 2;\n",
            "let a = 10;\nlet b = 20;\n",
            &[("", "0"), ("", "0")],
        );
        check("a\nb\nc\n", "a\nc\n", &[("b\n", "")]);
        check("a\nc\n", "a\nb\nc\n", &[("", "b\n")]);
        check("a", "a\nb", &[("", "\nb")]);
        check("", "new\n", &[("", "new\n")]);
        check(
            "f() {\n  one();\n}\nx\n",
            "f() {\n  one();\n  two();\n}\nx\n",
            &[("", "  two();\n")],
        );
    }

    #[test]
    fn common_text_is_found_inside_lines() {
        let check = |old: &str, new: &str, expected: &[&str]| {
            let common = common(old, new)
                .into_iter()
                .filter(|range| !range.is_empty());
            let texts: String = common
                .map(|range| old.get(range).unwrap().to_owned() + "|")
                .collect();
            assert_eq!(
                texts.trim_end_matches('|').replace('|', ""),
                expected.concat()
            );
        };
        check("a\nb\nc\n", "a\nB\nc\n", &["a\n", "\nc\n"]);
        check(
            "aaaa bbbb cccc\n",
            "Xaaaa ccccX\n",
            &["aaaa ", "cccc", "\n"],
        );
        check("é1\n", "é2\n", &["é", "\n"]);
    }

    #[test]
    fn hunks_split_neither_a_character_nor_a_crlf() {
        check("é\n", "è\n", &[("é", "è")]);
        check("a\r\n", "a\n", &[("\r\n", "\n")]);
        check("a\n", "a\r\n", &[("\n", "\r\n")]);
        check("a\r\nb", "a\r\rb", &[("\r\n", "\r\r")]);
    }

    #[test]
    fn unified_numbers_lines_of_the_whole_text() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        insta::assert_snapshot!(unified(old, &old.replace("5\n", "five\nfünf\n"), 1), @r"
        @@ -4,3 +4,4 @@
         4
        -5
        +five
        +fünf
         6
        ");
        insta::assert_snapshot!(unified("a\n", "a\nb", 1), @r"
        @@ -1 +1,2 @@
         a
        +b
        \ No newline at end of file
        ");
        assert_eq!(unified("x", "x", 3), "");
    }

    proptest! {
        #[test]
        fn hunks_turn_old_into_new(old in "[ab\u{e9}\u{1f600}\r\n]{0,40}", new in "[ab\u{e9}\u{1f600}\r\n]{0,40}") {
            let hunks = hunks(&old, &new);
            prop_assert_eq!(patched(&old, &hunks), new);
            for pair in hunks.windows(2) {
                prop_assert!(pair[0].range.end <= pair[1].range.start);
            }
        }

        #[test]
        fn line_hunks_turn_old_into_new(old in "[ab\n]{0,20}", new in "[ab\n]{0,20}") {
            let lines = |text: &str, range: &std::ops::Range<usize>| -> String {
                text.split_inclusive('\n').skip(range.start).take(range.len()).collect()
            };
            let hunks = line_hunks(&old, &new);
            let replacements: Vec<_> = hunks
                .iter()
                .map(|hunk| Hunk { range: hunk.old.clone(), new_text: new[hunk.new.clone()].to_owned() })
                .collect();
            prop_assert_eq!(patched(&old, &replacements), new.clone());
            for hunk in &hunks {
                prop_assert_eq!(lines(&old, &hunk.old_lines), &old[hunk.old.clone()]);
                prop_assert_eq!(lines(&new, &hunk.new_lines), &new[hunk.new.clone()]);
            }
            for pair in hunks.windows(2) {
                prop_assert!(pair[0].old.end < pair[1].old.start);
            }
        }
    }
}
