//! Which lines of a text are certainly lines of an older one, and which are certainly not. Pure.
//!
//! A difference chooses one of several shortest edits. This says only what holds for all of them. Lines that occur once in
//! both texts are the same where they are in the same order; between two of those, lines are the same where some were only
//! added or only removed, and could not be confused with each other.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A line with fewer characters, such as `}` or `return;`, is no landmark by itself.
const LANDMARK: usize = 10;

/// A line as numbers: two lines with the same text have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// The number of its text, in the order in which texts were first found.
    pub text: usize,
    /// The number of its text without whitespace.
    pub words: usize,
    /// Whether it is long enough to be recognized elsewhere.
    is_landmark: bool,
}

/// Gives lines their numbers.
#[derive(Debug, Default)]
pub struct Numbers {
    lines: HashMap<Arc<str>, Line>,
    texts: Vec<Arc<str>>,
    words: HashMap<Box<str>, usize>,
}

impl Numbers {
    /// How many texts of lines were found.
    pub fn count(&self) -> usize {
        self.texts.len()
    }

    /// The lines of a text, without their line breaks.
    pub fn lines(&mut self, text: &str) -> Vec<Line> {
        text.lines().map(|line| self.line(line)).collect()
    }

    /// The text of a line.
    pub fn text(&self, line: Line) -> &str {
        &self.texts[line.text]
    }

    fn line(&mut self, text: &str) -> Line {
        if let Some(line) = self.lines.get(text) {
            return *line;
        }
        let words: String = text.chars().filter(|char| !char.is_whitespace()).collect();
        let is_landmark = words.len() >= LANDMARK;
        let next = self.words.len();
        let line = Line {
            text: self.texts.len(),
            words: *self.words.entry(words.into()).or_insert(next),
            is_landmark,
        };
        let text: Arc<str> = text.into();
        self.texts.push(Arc::clone(&text));
        self.lines.insert(text, line);
        line
    }
}

/// Where a line is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// It is this line of the older text.
    Old(usize),
    /// It is this line of the older text with other blanks.
    Reformatted(usize),
    /// It is not in the older text.
    New,
    /// It may be in the older text.
    Ambiguous,
}

/// Where each line of `new` is from.
pub fn align(old: &[Line], new: &[Line]) -> Vec<Source> {
    let mut sources = vec![Source::New; new.len()];
    let mut removed: HashSet<usize> = HashSet::new();
    let (mut at, mut new_at) = (0, 0);
    for (anchor, new_anchor) in anchors(old, new)
        .into_iter()
        .chain([(old.len(), new.len())])
    {
        let (gap, new_gap) = (&old[at..anchor], &new[new_at..new_anchor]);
        let same = same(gap, new_gap);
        for (old, new) in same.iter().flatten() {
            sources[new_at + new] = Source::Old(at + old);
        }
        let left: HashSet<usize> = gap.iter().map(|line| line.text).collect();
        if same.is_none() {
            for (source, line) in sources[new_at..].iter_mut().zip(new_gap) {
                if left.contains(&line.text) {
                    *source = Source::Ambiguous;
                }
            }
        }
        removed.extend(left);
        if let (Some(line), Some(other)) = (old.get(anchor), new.get(new_anchor)) {
            sources[new_anchor] = if line.text == other.text {
                Source::Old(anchor)
            } else {
                Source::Reformatted(anchor)
            };
        }
        (at, new_at) = (anchor + 1, new_anchor + 1);
    }
    for (source, line) in sources.iter_mut().zip(new) {
        // A line that moved was not written there.
        if *source == Source::New && line.is_landmark && removed.contains(&line.text) {
            *source = Source::Ambiguous;
        }
    }
    sources
}

/// The lines that are the same in two texts if lines were added to one of them in one place, as their places in both.
/// `None` if that is not so, or could be so in more than one way.
fn same(old: &[Line], new: &[Line]) -> Option<Vec<(usize, usize)>> {
    let count = old.len().min(new.len());
    let prefix = old.iter().zip(new).take_while(|(a, b)| a.text == b.text);
    let prefix = prefix.count();
    let suffix = count - prefix;
    let (short, long) = if old.len() < new.len() {
        (old, new)
    } else {
        (new, old)
    };
    let same: HashSet<usize> = short.iter().map(|line| line.text).collect();
    let more = &long[prefix..long.len() - suffix];
    let is_same = old[old.len() - suffix..]
        .iter()
        .zip(&new[new.len() - suffix..])
        .all(|(a, b)| a.text == b.text);
    if !is_same || more.iter().any(|line| same.contains(&line.text)) {
        return None;
    }
    let ends = (0..suffix).map(|at| (old.len() - suffix + at, new.len() - suffix + at));
    Some((0..prefix).map(|at| (at, at)).chain(ends).collect())
}

/// The most lines that occur once in both texts and are in the same order, as their places in both.
fn anchors(old: &[Line], new: &[Line]) -> Vec<(usize, usize)> {
    let olds = unique(old);
    let mut pairs: Vec<(usize, usize)> = unique(new)
        .into_iter()
        .filter_map(|(words, at)| Some((*olds.get(&words)?, at)))
        .collect();
    pairs.sort_unstable_by_key(|(_, at)| *at);
    // The longest increasing sequence: `ends[n]` is the pair with which the one of length `n + 1` ends lowest.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (index, (at, _)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].0 < *at);
        before.push(length.checked_sub(1).map(|last| ends[last]));
        match ends.get_mut(length) {
            Some(end) => *end = index,
            None => ends.push(index),
        }
    }
    let mut next = ends.last().copied();
    let mut anchors = Vec::with_capacity(ends.len());
    while let Some(index) = next {
        anchors.push(pairs[index]);
        next = before[index];
    }
    // Any other line counts beside one that does: alone it was as likely written again.
    let mut known: HashSet<(usize, usize)> = HashSet::from([(old.len(), new.len())]);
    known.extend(anchors.iter().filter(|(at, _)| old[*at].is_landmark));
    for (at, new_at) in &anchors {
        if known.contains(&(at + 1, new_at + 1)) {
            known.insert((*at, *new_at));
        }
    }
    anchors.reverse();
    for (at, new_at) in &anchors {
        let before = (at.wrapping_sub(1), new_at.wrapping_sub(1));
        if (*at, *new_at) == (0, 0) || known.contains(&before) {
            known.insert((*at, *new_at));
        }
    }
    anchors.retain(|pair| known.contains(pair));
    anchors
}

/// The lines that occur once, and where.
fn unique(lines: &[Line]) -> HashMap<usize, usize> {
    let mut found: HashMap<usize, Option<usize>> = HashMap::with_capacity(lines.len());
    for (at, line) in lines.iter().enumerate() {
        found
            .entry(line.words)
            .and_modify(|at| *at = None)
            .or_insert(Some(at));
    }
    found
        .into_iter()
        .filter_map(|(words, at)| Some((words, at?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each letter is a line, a capital one a line that says more: `=` where a line is the older one, `~` where it is with
    /// other blanks, `+` where it is new, `?` where more is possible.
    #[track_caller]
    fn check(old: &str, new: &str, expected: &str) {
        let text = |letters: &str| {
            let line = |letter: char| match letter {
                'A'..='Z' => format!("let {letter} = 1 + 2 + 3;\n"),
                '1'..='9' => format!(
                    "  let {} = 1 + 2 + 3;\n",
                    char::from(letter as u8 - b'1' + b'A')
                ),
                _ => format!("{letter}\n"),
            };
            letters.chars().map(line).collect::<String>()
        };
        let mut numbers = Numbers::default();
        let (before, after) = (numbers.lines(&text(old)), numbers.lines(&text(new)));
        let signs: String = align(&before, &after)
            .into_iter()
            .map(|source| match source {
                Source::Old(_) => '=',
                Source::Reformatted(_) => '~',
                Source::New => '+',
                Source::Ambiguous => '?',
            })
            .collect();
        assert_eq!(signs, expected, "{old} → {new}");
    }

    #[test]
    fn only_lines_that_every_difference_keeps_are_certain() {
        check("", "ab", "++");
        check("abc", "abc", "===");
        check("abc", "axc", "=+=");
        check("A}B}", "A}B}", "====");
        check("A}B}C", "A}XB}C", "==+===");
        // One of both is new, and either may be.
        check("A}B", "A}X}B", "=?+?=");
        check("A}}B", "A}B", "=?=");
        check("A}XB", "AY}B", "=+?=");
        check("AB", "A}B}", "=+=+");
    }

    #[test]
    fn a_line_that_moved_is_not_new() {
        check("ABCD", "BCDA", "===?");
        check("A}BCD", "BCDA}", "===?+");
    }

    #[test]
    fn a_short_line_matches_only_beside_another() {
        check("AbC", "XbZ", "+?+");
        check("AbC", "AbZ", "==+");
        check("AbC", "XbC", "+==");
        check("abCd", "abXd", "==+=");
    }

    #[test]
    fn lines_that_differ_in_whitespace_are_the_same_line() {
        check("A}B", "1}2", "~=~");
    }

    #[test]
    fn lines_are_found_where_they_were() {
        let mut numbers = Numbers::default();
        let old = numbers.lines("let first = 1;\r\nlet second = 2;\r\n");
        let new = numbers.lines("let second = 2;\nlet first = 1;\nlet third = 3;\nlet second = 2;");
        let sources = align(&old, &new);
        assert_eq!(sources[1..3], [Source::Old(0), Source::New]);
    }
}
