//! Chunks of a patch: whole lines, matched like any other text. The text after `@@` never finds a match, it only
//! chooses between equal ones.

use std::ops::Range;

use super::replacement::{ended_lines, last_ending};
use super::{
    Asked, MatchError, Outcome, Replacement, Strategy, assembled, explain, first_pass, numbered,
    of_several,
};
use crate::text::Hunk;
use crate::workspace::patch::{Chunk, Line};

/// Applies `chunks` to `text`.
pub(super) fn apply(text: &str, chunks: &[Chunk]) -> Result<Outcome, MatchError> {
    let ending = last_ending(text);
    // Lines are matched with their line endings, so the last line needs one too.
    let is_open = !text.is_empty() && !text.ends_with(['\n', '\r']);
    let lines = if is_open {
        format!("{text}{ending}")
    } else {
        text.to_owned()
    };
    let mut strategy = Strategy::Exact;
    let mut anchors: Vec<&str> = Vec::new();
    let mut places: Vec<(usize, Hunk)> = Vec::new();
    for (number, chunk) in (1..).zip(chunks) {
        anchors.extend(chunk.anchors.iter().map(String::as_str));
        if !chunk.changes() {
            // A chunk of context alone says where the next chunk is.
            anchors.extend(chunk.lines.iter().filter_map(context));
            continue;
        }
        let after = places
            .last()
            .map_or(0, |(_, hunk): &(usize, Hunk)| hunk.range.end);
        let from = Context {
            text: &lines,
            anchors: std::mem::take(&mut anchors),
            after,
            at_end: chunk.at_end,
        };
        let (used, hunk) = from
            .locate(chunk)
            .map_err(|error| of_several("chunk", error, number, chunks.len()))?;
        strategy = strategy.max(used);
        places.push((number, hunk));
    }
    for (number, hunk) in &mut places {
        let newline = chunks.get(*number - 1).and_then(|chunk| chunk.newline);
        if hunk.range.end >= text.len() {
            end(hunk, text.len(), ending, newline.unwrap_or(!is_open));
        }
    }
    assembled(text, places, strategy)
}

fn context(line: &Line) -> Option<&str> {
    match line {
        Line::Context(text) => Some(text.trim()).filter(|text| !text.is_empty()),
        _ => None,
    }
}

/// Restores the end of a text of `len` bytes, to which a line ending may have been added.
fn end(hunk: &mut Hunk, len: usize, ending: &str, has_newline: bool) {
    // In a mixed file the last line may have got the other ending.
    let last = last_ending(&hunk.new_text);
    if !has_newline && let Some(open) = hunk.new_text.strip_suffix(last) {
        hunk.new_text = open.to_owned();
    }
    if hunk.range.start > len {
        hunk.new_text.insert_str(0, ending);
    }
    hunk.range = hunk.range.start.min(len)..hunk.range.end.min(len);
}

/// Where a chunk may match.
struct Context<'a> {
    text: &'a str,
    anchors: Vec<&'a str>,
    /// The end of the previous chunk.
    after: usize,
    at_end: bool,
}

impl Context<'_> {
    fn locate(&self, chunk: &Chunk) -> Result<(Strategy, Hunk), MatchError> {
        if chunk
            .lines
            .iter()
            .all(|line| matches!(line, Line::Added(_)))
        {
            return Ok((Strategy::Exact, self.insertion(chunk)?));
        }
        let readings = readings(chunk);
        for reading in &readings {
            let found = first_pass(self.text, reading, |places, strategy| {
                self.chosen(places, strategy)
            })?;
            if let Some((strategy, hunk)) =
                found.and_then(|(strategy, hunks)| Some((strategy, hunks.into_iter().next()?)))
            {
                let before = self.text.get(..hunk.range.end).unwrap_or_default();
                let lost = self.anchors.iter().find(|anchor| !mentions(before, anchor));
                return lost.map_or(Ok((strategy, hunk)), |anchor| {
                    Err(MatchError(format!(
                        "{anchor:?} after @@ is not in the file before these lines; use a line of the file that precedes the chunk"
                    )))
                });
            }
        }
        Err(readings.first().map_or_else(
            || MatchError("it has no lines".to_owned()),
            |first| explain::absent(self.text, first, Asked::Chunk),
        ))
    }

    /// Lines inserted without context: after the anchor, else at the end of the file.
    fn insertion(&self, chunk: &Chunk) -> Result<Hunk, MatchError> {
        let lost = || {
            MatchError(format!(
                "{:?} after @@ does not match a line of the file; include surrounding lines as context",
                self.anchors
            ))
        };
        if chunk.is_numbered && !chunk.at_end && !self.text.is_empty() {
            return Err(MatchError(
                "its lines to add have no context, so their place is uncertain; include the lines around them".to_owned(),
            ));
        }
        let at = if self.anchors.is_empty() {
            self.text.len()
        } else {
            self.anchored().ok_or_else(lost)?.start
        };
        // Like the line they follow.
        let before = self.text.get(..at).unwrap_or_default();
        let ending = last_ending(if before.is_empty() { self.text } else { before });
        let lines = chunk.lines.iter().filter_map(|line| {
            if let Line::Added(text) = line {
                Some(text.as_str())
            } else {
                None
            }
        });
        let new_text = lines.flat_map(|line| [line, ending]).collect();
        Ok(Hunk {
            range: at..at,
            new_text,
        })
    }

    /// The one of `places` that is meant; none if no match consists of whole lines.
    fn chosen(
        &self,
        places: &[Range<usize>],
        strategy: Strategy,
    ) -> Result<Vec<Range<usize>>, MatchError> {
        let starts_line = |place: &&Range<usize>| {
            place.start == 0
                || self
                    .text
                    .get(..place.start)
                    .is_some_and(|before| before.ends_with(['\n', '\r']))
        };
        let whole: Vec<_> = places.iter().filter(starts_line).cloned().collect();
        if whole.len() < 2 {
            return Ok(whole);
        }
        let anchored = self.anchored();
        let anchor = anchored.as_ref().map(|block| block.start);
        let narrowed = [
            whole
                .iter()
                .filter(|place| self.at_end && place.end == self.text.len())
                .collect::<Vec<_>>(),
            whole
                .iter()
                .filter(|place| anchor == Some(place.start))
                .collect(),
            whole
                .iter()
                .filter(|place| anchor.is_some_and(|anchor| anchor <= place.start))
                .collect(),
            whole
                .iter()
                .filter(|place| {
                    anchored
                        .as_ref()
                        .is_some_and(|block| block.contains(&place.start))
                })
                .collect(),
            whole
                .iter()
                .filter(|place| self.after > 0 && self.after <= place.start)
                .collect(),
        ];
        let one = narrowed.iter().find_map(|places| {
            if let [place] = places.as_slice() {
                Some((*place).clone())
            } else {
                None
            }
        });
        one.map(|place| vec![place])
            .ok_or_else(|| explain::ambiguous(self.text, &whole, strategy, Asked::Chunk))
    }

    /// From the end of the line that the anchors lead to, to the end of its block; `None` if that is not one line. An
    /// anchor that occurs once in the block of the one before is that line, wherever else it occurs.
    fn anchored(&self) -> Option<Range<usize>> {
        let mut within = self.after..self.text.len();
        for anchor in &self.anchors {
            let rest = within.start..self.text.len();
            within = self
                .line(anchor, within)
                .or_else(|| self.line(anchor, rest))?;
        }
        (!self.anchors.is_empty()).then_some(within)
    }

    /// The end of the only line `anchor` in a range, or else of the only one that begins with it and opens a block
    /// (`class B:`), and the end of its block.
    fn line(&self, anchor: &str, within: Range<usize>) -> Option<Range<usize>> {
        let text = self.text.get(within.clone())?;
        let goes_on = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        [false, true].into_iter().find_map(|may_go_on| {
            let mut at = within.start;
            let mut found = ended_lines(text).filter_map(|(line, ending)| {
                at += line.len() + ending.len();
                let rest = line.trim().strip_prefix(anchor)?;
                let is_found = rest.is_empty() || may_go_on && goes_on(rest);
                is_found.then(|| (rest, at..self.block(line, at)))
            });
            let (rest, one) = found.next().filter(|_| found.next().is_none())?;
            (rest.is_empty() || rest.ends_with([':', '{'])).then_some(one)
        })
    }

    /// The end of the lines from `at` on that are indented more than `line`.
    fn block(&self, line: &str, at: usize) -> usize {
        let depth = |line: &str| line.len() - line.trim_start().len();
        let rest = ended_lines(self.text.split_at(at).1);
        let inner =
            rest.take_while(|(next, _)| next.trim().is_empty() || depth(next) > depth(line));
        at + inner
            .map(|(line, ending)| line.len() + ending.len())
            .sum::<usize>()
    }
}

/// Whether the letters of an anchor are in one line of a text.
fn mentions(text: &str, anchor: &str) -> bool {
    let letters = |text: &str| -> String { text.chars().filter(|c| c.is_alphanumeric()).collect() };
    let anchor = letters(anchor);
    text.lines().any(|line| letters(line).contains(&anchor))
}

/// What a chunk may mean, most likely first: context with or without the leading blank, and with or without the empty
/// lines that models put between chunks.
fn readings(chunk: &Chunk) -> Vec<Replacement> {
    let is_bare = |line: &Line| matches!(line, Line::Context(text) if !text.is_empty() && !text.starts_with(' '));
    let is_blank = |line: &Line| matches!(line, Line::Context(text) if text.trim().is_empty());
    let lines = chunk.lines.as_slice();
    let end = lines
        .iter()
        .rposition(|line| !is_blank(line))
        .map_or(0, |last| last + 1);
    let start = lines.iter().position(|line| !is_blank(line)).unwrap_or(0);
    let extents = [Some(lines), lines.get(..end), lines.get(start..end)];
    let styles: &[Style] = if lines.iter().any(is_bare) {
        &[Style::Bare, Style::Prefixed]
    } else {
        &[Style::Prefixed]
    };
    let readings = styles.iter().flat_map(|style| {
        extents
            .iter()
            .flatten()
            .map(move |lines| reading(lines, *style))
    });
    let mut readings: Vec<_> = readings
        .filter(|reading| !reading.old_text.is_empty())
        .collect();
    readings.dedup();
    // Each of them once more without the numbers of its lines.
    let plain: Vec<_> = readings.iter().filter_map(numbered::plain).collect();
    readings.extend(plain);
    readings
}

/// How context is written.
#[derive(Clone, Copy)]
enum Style {
    /// After a blank, as the format requires.
    Prefixed,
    /// Without it.
    Bare,
}

fn reading(lines: &[Line], style: Style) -> Replacement {
    let (mut old_text, mut new_text) = (String::new(), String::new());
    let add = |text: &mut String, line: &str| text.extend([line, "\n"]);
    for line in lines {
        match (line, style) {
            (Line::Removed(line), _) => add(&mut old_text, line),
            (Line::Added(line), _) => add(&mut new_text, line),
            (Line::Context(line), style) => {
                let bare = match style {
                    Style::Prefixed => line.strip_prefix(' ').unwrap_or(line),
                    Style::Bare => line,
                };
                add(&mut old_text, bare);
                add(&mut new_text, bare);
            }
        }
    }
    Replacement {
        old_text,
        new_text,
        count: Some(1),
    }
}
