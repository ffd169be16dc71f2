//! Error messages with what a model needs to succeed on the second attempt.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::ops::Range;

use super::{Asked, MatchError, Replacement, Strategy};
use crate::text::display::escape_line;

/// At most this many matches or lines are quoted.
const QUOTED: usize = 20;
/// Longer lines are truncated.
const WIDTH: usize = 160;
/// Longer texts, in lines, are not searched for similar lines.
const SEARCHED: usize = 50_000;
/// The minimum share of common character pairs for lines to count as similar.
const SIMILAR: f32 = 0.6;

impl Asked {
    /// The subject of a message.
    fn subject(self) -> &'static str {
        match self {
            Self::Replacement => "old_text was",
            Self::Chunk => "the chunk's lines were",
        }
    }

    fn way_out(self) -> &'static str {
        match self {
            Self::Replacement => {
                "Quote more lines around the one you mean, or set replace_all to change all of them."
            }
            Self::Chunk => {
                "Begin the chunk with `@@` and a line above the one you mean, such as `@@ def name():`, or give more lines of \
                 context."
            }
        }
    }
}

pub(super) fn ambiguous(
    text: &str,
    places: &[Range<usize>],
    strategy: Strategy,
    asked: Asked,
) -> MatchError {
    let how = if strategy == Strategy::Exact {
        String::new()
    } else {
        format!(" ({strategy})")
    };
    let mut message = format!("{} found {} times{how}:\n", asked.subject(), places.len());
    let (mut line, mut counted) = (1, 0);
    for place in places.iter().take(QUOTED) {
        line += line_breaks(text.get(counted..place.start).unwrap_or_default());
        counted = place.start;
        let rest = text.get(place.start..).unwrap_or_default();
        // The full first line says more than the matched part of it.
        let before = text.get(..place.start).unwrap_or_default();
        let start = before.rfind(['\n', '\r']).map_or(0, |at| at + 1);
        let begun = before.get(start..).unwrap_or_default();
        let first = format!(
            "{begun}{}",
            rest.split(['\n', '\r']).next().unwrap_or_default()
        );
        writeln!(message, "line {line}: {}", quoted(&first))
            .expect("writing to a string cannot fail");
    }
    if places.len() > QUOTED {
        writeln!(message, "and {} more", places.len() - QUOTED)
            .expect("writing to a string cannot fail");
    }
    message.push_str(asked.way_out());
    MatchError(message)
}

pub(super) fn overlap(text: &str, first: usize, second: usize, at: usize) -> MatchError {
    let line = 1 + line_breaks(text.get(..at).unwrap_or_default());
    let which = if first == second {
        format!("places found by edit {first}")
    } else {
        format!("edits {first} and {second}")
    };
    MatchError(format!(
        "{which} overlap at line {line}, so no edit was made; join them into one"
    ))
}

pub(super) fn absent(text: &str, edit: &Replacement, asked: Asked) -> MatchError {
    let subject = asked.subject();
    if text.is_empty() {
        return MatchError(format!("{subject} not found: the file is empty"));
    }
    let mut message = format!("{subject} not found.");
    if let Some(at) = text
        .find(&edit.new_text)
        .filter(|_| !edit.new_text.trim().is_empty())
    {
        let line = 1 + line_breaks(text.get(..at).unwrap_or_default());
        let new = if asked == Asked::Replacement {
            "new_text is"
        } else {
            "Its replacement is"
        };
        write!(
            message,
            " {new} already present at line {line}; was this edit already applied?"
        )
        .expect("writing to a string cannot fail");
    }
    if edit.old_text.lines().all(is_numbered) {
        message.push_str(" It seems to begin with line numbers: leave them out.");
    }
    match nearest(text, &edit.old_text) {
        Some(start) => message.push_str(&comparison(text, &edit.old_text, start, asked)),
        None => message.push_str(" Nothing similar is in the file; read it again."),
    }
    MatchError(message)
}

fn is_numbered(line: &str) -> bool {
    let line = line.trim_start();
    let rest = line.trim_start_matches(|character: char| character.is_ascii_digit());
    rest.len() < line.len()
        && rest
            .trim_start_matches(' ')
            .starts_with(['|', '\t', '→', ':'])
}

/// The lines from `start` on next to those that were searched for, with blanks made visible.
fn comparison(text: &str, sought: &str, start: usize, asked: Asked) -> String {
    let sought: Vec<&str> = sought.lines().collect();
    let found: Vec<&str> = text.lines().skip(start).take(sought.len()).collect();
    let mut message = format!(
        " The nearest text is at line {}; lines that differ are marked, · is a space and → a tab:\n",
        start + 1
    );
    for (number, line) in (start + 1..).zip(&found).take(QUOTED) {
        let mark = if sought.get(number - start - 1) == Some(line) {
            ' '
        } else {
            '!'
        };
        writeln!(message, "{mark}{number}|{}", visible(line))
            .expect("writing to a string cannot fail");
    }
    if let Some((found, sought)) = found
        .iter()
        .zip(&sought)
        .find(|(found, sought)| found != sought)
    {
        let case = if found.to_lowercase() == sought.to_lowercase() {
            " (upper and lower case differ)"
        } else {
            ""
        };
        let asked = if asked == Asked::Replacement {
            "old_text"
        } else {
            "the chunk"
        };
        writeln!(message, "where {asked} has{case}:\n  |{}", visible(sought))
            .expect("writing to a string cannot fail");
    }
    message.push_str("Quote the file exactly as it is, with real spaces and tabs.");
    message
}

/// The 0-based line of `text` where `sought` was most likely meant to be.
fn nearest(text: &str, sought: &str) -> Option<usize> {
    let lines: Vec<&str> = text.lines().take(SEARCHED).map(str::trim).collect();
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (offset, line) in sought
        .lines()
        .map(str::trim)
        .enumerate()
        .filter(|(_, line)| line.len() > 1)
    {
        places.entry(line).or_default().push(offset);
    }
    // Each line found votes for a start; a long one counts more.
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (number, line) in lines.iter().enumerate() {
        for offset in places.get(line).into_iter().flatten() {
            *votes.entry(number.saturating_sub(*offset)).or_default() += line.len();
        }
    }
    let best = votes
        .into_iter()
        .max_by_key(|&(start, weight)| (weight, std::cmp::Reverse(start)));
    best.map(|(start, _)| start)
        .or_else(|| most_similar(&lines, sought))
}

fn most_similar(lines: &[&str], sought: &str) -> Option<usize> {
    let (offset, sought) = sought
        .lines()
        .map(str::trim)
        .enumerate()
        .max_by_key(|(_, line)| line.len())?;
    let wanted: HashSet<_> = pairs(sought).collect();
    let score = |line: &str| {
        let (mut all, mut common) = (0, 0);
        for pair in pairs(line) {
            all += 1;
            common += usize::from(wanted.contains(&pair));
        }
        // Lines have at most a few hundred pairs.
        #[expect(clippy::cast_precision_loss, reason = "a few hundred at most")]
        let share = 2.0 * common as f32 / (all + wanted.len()).max(1) as f32;
        share
    };
    let scored = lines
        .iter()
        .enumerate()
        .map(|(number, line)| (number, score(line)));
    let (number, _) = scored
        .filter(|(_, score)| *score >= SIMILAR)
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(number.saturating_sub(offset))
}

fn pairs(line: &str) -> impl Iterator<Item = (char, char)> {
    let folded = || {
        line.chars()
            .filter(|character| !character.is_whitespace())
            .take(200)
            .flat_map(char::to_lowercase)
    };
    folded().zip(folded().skip(1))
}

fn line_breaks(text: &str) -> usize {
    text.matches('\n').count() + text.matches('\r').count() - text.matches("\r\n").count()
}

fn quoted(line: &str) -> String {
    match line.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}…", escape_line(line.get(..end).unwrap_or_default())),
        None => escape_line(line).into_owned(),
    }
}

/// A line with its tabs, and the blanks at its ends, made visible.
fn visible(line: &str) -> String {
    let shown = quoted(&line.replace('\t', "→"));
    let body = shown.trim_matches(' ');
    let start = shown.len() - shown.trim_start_matches(' ').len();
    let end = shown.len() - start - body.len();
    format!("{}{body}{}", "·".repeat(start), "·".repeat(end))
}
