//! The text that replaces a match: the new text as the model wrote it, with the file's indentation and line endings
//! where the pass ignored those.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::time::Duration;

use similar::DiffOp;

use super::view::{View, is_blank, plain_punctuation};
use super::{Replacement, Strategy};
use crate::text::repair::{dereferenced, unescape};
use crate::text::{Hunk, Tokens};
use crate::workspace::content::LineEnding;

const TIMEOUT: Duration = Duration::from_millis(100);

/// The search for an edit.
pub(super) struct Search<'a> {
    pub text: &'a str,
    pub edit: &'a Replacement,
    pub strategy: Strategy,
    pub view: View<'a>,
    pub sought: View<'a>,
}

impl<'a> Search<'a> {
    pub fn new(text: &'a str, edit: &'a Replacement, strategy: Strategy) -> Self {
        Self {
            text,
            edit,
            strategy,
            view: View::new(text, strategy),
            sought: View::new(&edit.old_text, strategy),
        }
    }

    /// The replacements for `places`; `None` where the file's indentation does not say how a new line is indented.
    pub fn hunks(&self, places: &[Range<usize>]) -> Option<Vec<Hunk>> {
        let has_lines = self.edit.new_text.contains(['\n', '\r']);
        let line_ending = if has_lines {
            LineEnding::of(self.text)
        } else {
            LineEnding::Lf
        };
        places
            .iter()
            .map(|place| self.hunk(place, line_ending))
            .collect()
    }

    fn hunk(&self, place: &Range<usize>, line_ending: LineEnding) -> Option<Hunk> {
        if self.leaves_block(place) {
            return None;
        }
        let new = self.edit.new_text.as_str();
        let new_text = match line_ending {
            _ if self.strategy == Strategy::Exact && self.changes_endings() => new.to_owned(),
            _ if !self.strategy.is_literal() || line_ending == LineEnding::Mixed => {
                self.by_lines(place, line_ending)?
            }
            _ => new
                .replace("\r\n", "\n")
                .replace('\n', line_ending.as_str()),
        };
        Some(Hunk {
            range: place.clone(),
            new_text,
        })
    }

    /// Whether the edit changes line endings and nothing else.
    fn changes_endings(&self) -> bool {
        let Replacement {
            old_text, new_text, ..
        } = self.edit;
        let lines = |text: &str| text.replace("\r\n", "\n").replace('\r', "\n");
        old_text != new_text
            && (old_text.contains('\r') || new_text.contains('\r'))
            && lines(old_text) == lines(new_text)
    }

    /// Whether one line was quoted without its indentation and the next one would be less indented than it, though it
    /// closes nothing: it may have lost its own.
    fn leaves_block(&self, place: &Range<usize>) -> bool {
        let before = self.text.get(..place.start).unwrap_or_default();
        // From its end: there may be many places in a long text.
        let depth = before.rsplit(['\n', '\r']).next().unwrap_or_default();
        let is_less = |line: &&str| indentation(line).len() < depth.len();
        let mut after = lines(&self.edit.new_text)
            .skip(1)
            .filter(|line| !line.trim().is_empty());
        depth.trim().is_empty()
            && !self.edit.old_text.trim_end().contains('\n')
            && after
                .find(is_less)
                .is_some_and(|line| !line.trim_start().starts_with(['}', ')', ']', '<']))
    }

    /// The new text line by line: a line the edit does not change stays as in the file, a changed one is indented like
    /// the line it replaces, and each has the line ending of the line it replaces or follows.
    fn by_lines(&self, place: &Range<usize>, line_ending: LineEnding) -> Option<String> {
        let found: Vec<(&str, &str)> =
            ended_lines(self.text.get(place.clone()).unwrap_or_default()).collect();
        let old: Vec<&str> = lines(&self.edit.old_text).collect();
        let new: Vec<&str> = lines(self.trimmed(place, &self.edit.new_text)).collect();
        let levels = self.levels(place, &old, &found, &new);
        let around = self.ending_around(place, line_ending);
        let mut text = String::with_capacity(self.edit.new_text.len() + new.len());
        let Tokens { new, ops, .. } = Tokens::compare(old, new, TIMEOUT);
        for op in &ops {
            for (nth, index) in op.new_range().enumerate() {
                let replaced = op
                    .old_range()
                    .nth(nth)
                    .or_else(|| op.old_range().end.checked_sub(1));
                let theirs = replaced.and_then(|replaced| found.get(replaced));
                let replaced = op.old_range().nth(nth).and_then(|at| found.get(at));
                let line = new.get(index).copied().unwrap_or_default();
                let line = &*self.typeset(place, replaced.map_or("", |line| line.0), line);
                match (op, theirs) {
                    (DiffOp::Equal { .. }, Some((theirs, _)))
                        if self.strategy <= Strategy::Unicode =>
                    {
                        text.push_str(theirs);
                    }
                    _ if index == 0 && !self.starts_line(place) => text.push_str(line),
                    _ if levels.is_ambiguous(line) => {
                        // Flat text says nothing of depth, the line that it replaces does.
                        text.push_str(indentation(replaced?.0));
                        text.push_str(line.trim_start_matches([' ', '\t']));
                    }
                    _ => levels.indent(line, &mut text),
                }
                if index + 1 < new.len() {
                    // One before all of them ends as the first one does.
                    let ending = theirs
                        .or(found.first())
                        .map(|(_, ending)| *ending)
                        .filter(|ending| !ending.is_empty());
                    text.push_str(ending.unwrap_or(around));
                }
            }
        }
        Some(text)
    }

    /// A line with the file's quotes, dashes and blanks, where the pass ignored them. It gets typographic quotes only from the
    /// line that it `replaces`: one that is added may be code.
    fn typeset<'t>(&self, place: &Range<usize>, replaces: &str, line: &'t str) -> Cow<'t, str> {
        if !matches!(self.strategy, Strategy::Unicode | Strategy::InnerBlanks) {
            return line.into();
        }
        let theirs = self.text.get(place.clone()).unwrap_or_default();
        let has = |character: char| theirs.contains(character);
        let mut before = ' ';
        let typeset = |character: char| {
            let begins = before.is_whitespace() || "([{".contains(before);
            before = character;
            match character {
                _ if has(character) => character,
                '"' if replaces.contains('“') && begins => '“',
                '"' if replaces.contains('”') => '”',
                '\'' if replaces.contains('’') => '’',
                _ if !character.is_ascii() && is_blank(character) && has(' ') => ' ',
                _ if self.edit.old_text.contains(character) => plain_punctuation(character),
                _ => character,
            }
        };
        line.chars().map(typeset).collect::<String>().into()
    }

    fn starts_line(&self, place: &Range<usize>) -> bool {
        let before = self.text.get(..place.start).unwrap_or_default();
        before.is_empty() || before.ends_with(['\n', '\r'])
    }

    /// The new text without blanks at its ends that were in the search text but are not in the file.
    fn trimmed<'n>(&self, place: &Range<usize>, new: &'n str) -> &'n str {
        let old = self.edit.old_text.as_str();
        if self.strategy.is_literal() {
            return new;
        }
        let (_, trailing) = old.split_at(old.trim_end_matches([' ', '\t']).len());
        let new = new.strip_suffix(trailing).unwrap_or(new);
        if self.strategy < Strategy::Indentation || self.starts_line(place) {
            return new;
        }
        new.strip_prefix(indentation(old)).unwrap_or(new)
    }

    /// Maps the model's indentation to the file's.
    fn levels<'l>(
        &self,
        place: &Range<usize>,
        old: &[&'l str],
        found: &[(&'l str, &str)],
        new: &[&str],
    ) -> Levels<'l> {
        let skipped = usize::from(!self.starts_line(place));
        let pairs: Vec<(&str, &str)> = std::iter::zip(old, found)
            .skip(skipped)
            .filter(|(ours, _)| !ours.trim().is_empty())
            .map(|(ours, (theirs, _))| (indentation(ours), indentation(theirs)))
            .collect();
        let first = new
            .iter()
            .skip(skipped)
            .find(|line| !line.trim().is_empty())
            .map(|line| indentation(line));
        // A replacement already indented like the file needs no mapping, even if the search text was not.
        let is_right = pairs
            .first()
            .is_some_and(|(ours, theirs)| ours != theirs && first == Some(theirs));
        let has_blanks = self.strategy == Strategy::TrailingBlanks || self.strategy.is_literal();
        if is_right || has_blanks {
            Levels::default()
        } else {
            Levels::new(&pairs)
        }
    }

    /// The line ending of the line in which `bytes` end, or else of the line before.
    fn ending_around(&self, bytes: &Range<usize>, line_ending: LineEnding) -> &str {
        if line_ending != LineEnding::Mixed {
            return line_ending.as_str();
        }
        let after = self.text.get(bytes.end..).unwrap_or_default();
        let before = self.text.get(..bytes.start).unwrap_or_default();
        let next = ended_lines(after)
            .map(|(_, ending)| ending)
            .find(|ending| !ending.is_empty());
        next.unwrap_or_else(|| last_ending(before))
    }
}

/// A mapping from indentation in the model's text to that in the file.
#[derive(Default)]
struct Levels<'a> {
    known: HashMap<&'a str, &'a str>,
    /// Indentation of the model's that stands for several of the file's.
    ambiguous: HashSet<&'a str>,
    /// One more level in both, if one uses tabs and the other spaces.
    step: Option<(String, String)>,
}

impl<'a> Levels<'a> {
    fn new(pairs: &[(&'a str, &'a str)]) -> Self {
        let (mut known, mut ambiguous) = (HashMap::new(), HashSet::new());
        for (ours, theirs) in pairs {
            if *known.entry(*ours).or_insert(*theirs) != *theirs {
                ambiguous.insert(*ours);
            }
        }
        let deeper = |pair: &(&'a str, &'a str)| {
            let (ours, theirs) = pairs.first()?;
            step(pair.0.strip_prefix(ours)?, pair.1.strip_prefix(theirs)?)
        };
        let step = pairs
            .iter()
            .find_map(deeper)
            .or_else(|| pairs.iter().find_map(|(ours, theirs)| step(ours, theirs)));
        Self {
            known,
            ambiguous,
            step,
        }
    }

    fn is_ambiguous(&self, line: &str) -> bool {
        !line.trim().is_empty() && self.ambiguous.contains(indentation(line))
    }

    /// Adds `line` to `text`, indented as the file is.
    fn indent(&self, line: &str, text: &mut String) {
        if line.trim().is_empty() {
            return text.push_str(line);
        }
        let ours = indentation(line);
        text.push_str(&self.theirs(ours));
        text.push_str(line.strip_prefix(ours).unwrap_or(line));
    }

    fn theirs(&self, ours: &str) -> String {
        if let Some(theirs) = self.known.get(ours) {
            return (*theirs).to_owned();
        }
        let shallower = self
            .known
            .iter()
            .filter(|(known, _)| ours.starts_with(**known))
            .max_by_key(|(known, _)| known.len());
        if let Some((known, theirs)) = shallower {
            return format!(
                "{theirs}{}",
                self.converted(ours.strip_prefix(known).unwrap_or_default())
            );
        }
        let deeper = self
            .known
            .iter()
            .filter(|(known, _)| known.starts_with(ours))
            .min_by_key(|(known, _)| known.len());
        let Some((known, theirs)) = deeper else {
            return ours.to_owned();
        };
        let step = self.converted(known.strip_prefix(ours).unwrap_or_default());
        theirs
            .strip_suffix(step.as_str())
            .unwrap_or(theirs)
            .to_owned()
    }

    fn converted(&self, ours: &str) -> String {
        self.step.as_ref().map_or_else(
            || ours.to_owned(),
            |(step, theirs)| ours.replace(step, theirs),
        )
    }
}

/// The smallest unit of `ours` and `theirs`, if one uses tabs and the other spaces.
fn step(ours: &str, theirs: &str) -> Option<(String, String)> {
    let is_only = |text: &str, byte| !text.is_empty() && text.bytes().all(|other| other == byte);
    let (spaces, tabs) = match () {
        () if is_only(ours, b' ') && is_only(theirs, b'\t') => (ours, theirs),
        () if is_only(ours, b'\t') && is_only(theirs, b' ') => (theirs, ours),
        () => return None,
    };
    let width = spaces
        .len()
        .is_multiple_of(tabs.len())
        .then(|| " ".repeat(spaces.len() / tabs.len()))?;
    Some(if spaces == ours {
        (width, "\t".to_owned())
    } else {
        ("\t".to_owned(), width)
    })
}

/// `edit` with one level of escapes resolved on both sides: backslashes, or the references of markup; `None` if the old
/// text has none.
pub(super) fn unescaped(edit: &Replacement) -> Option<Replacement> {
    [unescape, dereferenced]
        .into_iter()
        .find_map(|read: fn(&str) -> String| {
            let old_text = read(&edit.old_text);
            let differs = old_text != edit.old_text;
            differs.then(|| edit.reread(old_text, read(&edit.new_text)))?
        })
}

fn indentation(line: &str) -> &str {
    line.split_at_checked(line.len() - line.trim_start_matches([' ', '\t']).len())
        .map_or("", |(indentation, _)| indentation)
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    ended_lines(text).map(|(line, _)| line)
}

/// What the last line that ends with a line break ends with.
pub(super) fn last_ending(text: &str) -> &'static str {
    let end = text.rfind(['\n', '\r']).map_or(0, |at| at + 1);
    let ended = text.get(..end).unwrap_or_default();
    let mut longer = ["\r\n", "\r"].into_iter();
    longer
        .find(|ending| ended.ends_with(ending))
        .unwrap_or("\n")
}

/// The lines of `text` with their line endings; a text that ends with one has an empty last line.
pub(super) fn ended_lines(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = memchr::memchr2(b'\n', b'\r', text.as_bytes()).unwrap_or(text.len());
        let (line, tail) = text.split_at_checked(end)?;
        let len = if tail.starts_with("\r\n") {
            2
        } else {
            usize::from(!tail.is_empty())
        };
        let (ending, after) = tail.split_at_checked(len)?;
        rest = (len > 0).then_some(after);
        Some((line, ending))
    })
}
