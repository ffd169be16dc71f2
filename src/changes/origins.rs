//! Which of the recorded changes of a file wrote each line of its text. Pure.
//!
//! Follows the lines from one recorded text to the next. A line is a change's if it was not in the text before that change
//! and is in every recorded text since, or came back unmistakably; what happened between two changes was somebody else.
//! Where two answers are possible there is none.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::text::alignment::{Line, Numbers, Source, align};
use crate::text::likeness;

/// How many texts are compared with earlier ones to find lines that came back.
const COMPARED: usize = 500;
/// How alike a line and what became of it are, at least.
const ALIKE: f32 = 0.6;

/// A change of a file: its text before and afterwards.
#[derive(Debug, Clone)]
pub struct Written {
    /// The text before.
    pub before: Arc<str>,
    /// The text afterwards.
    pub after: Arc<str>,
}

/// The change that a line is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// Its index.
    pub change: usize,
    /// Whether the line that the change wrote has been edited since.
    pub is_edited: bool,
}

/// What is known of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// No change wrote it.
    Others,
    /// This one did.
    By(Origin),
    /// More than one answer is possible.
    Nothing,
}

/// What is known of each line of `now` from the `changes`, the oldest first. A change is `None` if its texts are not known.
pub fn origins(changes: &[Option<Written>], now: &str) -> Vec<Known> {
    let mut history = History::default();
    for (index, change) in changes.iter().enumerate() {
        if let Some(Written { before, after }) = change {
            history.meanwhile(before);
            history.changed(after, index);
        } else {
            history.has_gap = true;
        }
    }
    history.meanwhile(now);
    history.texts.pop().unwrap_or_default().known
}

/// The origin of a line in the changes of several sessions, with its session. To each session, the others' changes are
/// foreign, and their order is unknown: a line that two sessions wrote has no origin.
pub fn only(known: impl IntoIterator<Item = Known>) -> Option<(usize, Origin)> {
    let (mut wrote, mut edited, mut unsure) = (Vec::new(), Vec::new(), false);
    for (session, known) in known.into_iter().enumerate() {
        match known {
            Known::By(origin) if origin.is_edited => edited.push((session, origin)),
            Known::By(origin) => wrote.push((session, origin)),
            Known::Nothing => unsure = true,
            Known::Others => {}
        }
    }
    match (wrote.as_slice(), edited.as_slice()) {
        ([origin], _) => Some(*origin),
        ([], [origin]) if !unsure => Some(*origin),
        _ => None,
    }
}

/// A recorded text.
#[derive(Debug, Default)]
struct Text {
    lines: Vec<Line>,
    known: Vec<Known>,
}

#[derive(Debug, Default)]
struct History {
    texts: Vec<Text>,
    numbers: Numbers,
    /// Whether an unknown change was made after the last text.
    has_gap: bool,
    compared: usize,
}

impl History {
    /// A change made this text of the last one.
    fn changed(&mut self, text: &str, change: usize) {
        let lines = self.numbers.lines(text);
        let Some(last) = self.texts.last() else {
            return;
        };
        let origin = Origin {
            change,
            is_edited: false,
        };
        let known = align(&last.lines, &lines)
            .into_iter()
            .map(|source| match source {
                Source::Old(at) => last.known[at],
                Source::New | Source::Reformatted(_) => Known::By(origin),
                Source::Ambiguous => Known::Nothing,
            });
        let known = known.collect();
        self.texts.push(Text { lines, known });
    }

    /// Others made this text of the last one: a person, a formatter, git, an undo.
    fn meanwhile(&mut self, text: &str) {
        let count = self.numbers.count();
        let lines = self.numbers.lines(text);
        let has_gap = std::mem::take(&mut self.has_gap);
        let Some(last) = self.texts.last() else {
            let known = vec![Known::Others; lines.len()];
            return self.texts.push(Text { lines, known });
        };
        if last.lines == lines {
            return;
        }
        let sources = align(&last.lines, &lines);
        let rewritten = self.rewritten(last, &lines, &sources);
        let mut gone: HashSet<usize> = last.lines.iter().map(|line| line.words).collect();
        let (mut known, mut missing) = (Vec::with_capacity(lines.len()), Vec::new());
        for (at, source) in sources.into_iter().enumerate() {
            let is_seen = lines[at].text < count;
            if is_seen {
                missing.push(at);
            }
            known.push(match source {
                Source::Old(old) => {
                    missing.pop();
                    gone.remove(&lines[at].words);
                    last.known[old]
                }
                Source::Reformatted(old) if !is_seen && !has_gap => last.known[old].edited(),
                Source::New if !is_seen && !has_gap => rewritten[at],
                _ => Known::Nothing,
            });
        }
        // A formatter writes again what was there before.
        missing.retain(|at| !gone.contains(&lines[*at].words));
        if !missing.is_empty() {
            self.recognize(&lines, &missing, &mut known);
        }
        self.texts.push(Text { lines, known });
    }

    /// What is known of the lines that replaced similar ones, which are gone now.
    fn rewritten(&self, last: &Text, lines: &[Line], sources: &[Source]) -> Vec<Known> {
        let moved = lines.iter().zip(sources);
        let moved = moved.filter(|(_, source)| **source == Source::Ambiguous);
        let moved: HashSet<usize> = moved.map(|(line, _)| line.text).collect();
        let mut rewritten = vec![Known::Others; sources.len()];
        let (mut at, mut old_at) = (0, 0);
        let end = [Source::Old(last.lines.len())];
        for (index, source) in sources.iter().chain(&end).enumerate() {
            let (Source::Old(old) | Source::Reformatted(old)) = *source else {
                continue;
            };
            // If the number of lines changed, nothing tells which line replaced which.
            let is_paired = old - old_at == index - at;
            for (at, old) in (at..index).zip(old_at..old).filter(|_| is_paired) {
                let [new_text, text] =
                    [lines[at], last.lines[old]].map(|line| self.numbers.text(line));
                if !moved.contains(&last.lines[old].text) && likeness(text, new_text) >= ALIKE {
                    rewritten[at] = last.known[old].edited();
                }
            }
            (at, old_at) = (index + 1, old + 1);
        }
        rewritten
    }

    /// Finds out about lines that came back, by an undo for example: those that occur once, and whole texts. A line that had
    /// different origins may be either.
    fn recognize(&mut self, lines: &[Line], missing: &[usize], known: &mut [Known]) {
        let mut counts: HashMap<usize, usize> = HashMap::new();
        for line in lines {
            *counts.entry(line.text).or_default() += 1;
        }
        let mut found: HashMap<usize, Known> = HashMap::new();
        for text in self.texts.iter().rev() {
            self.compared += 1;
            if self.compared > COMPARED {
                return;
            }
            let is_whole = text.lines == lines;
            let sources = align(&text.lines, lines);
            for at in missing {
                if let Source::Old(old) = sources[*at]
                    && (is_whole || counts[&lines[*at].text] == 1)
                {
                    let origin = text.known[old];
                    let known = found.entry(*at).or_insert(origin);
                    if *known != origin {
                        *known = Known::Nothing;
                    }
                }
            }
        }
        for (at, origin) in found {
            known[at] = origin;
        }
    }
}

impl Known {
    /// The same of a line that somebody rewrote.
    fn edited(self) -> Self {
        match self {
            Self::By(origin) => Self::By(Origin {
                is_edited: true,
                ..origin
            }),
            known => known,
        }
    }
}

#[cfg(test)]
mod tests;
