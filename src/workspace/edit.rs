//! Finds the text that an edit refers to and replaces it: by normalization alone, and only if the match is unique.
//!
//! Each pass normalizes the file and the search text in the same way and collects *every* match. The first pass with a
//! match wins; more than one match is an error. There are no anchors, no similarity scores, no case folding and no
//! "first of many". Bytes outside the matches are unchanged.

mod chunks;
mod explain;
mod fenced;
mod numbered;
mod replacement;
#[cfg(test)]
mod tests;
mod view;

use std::ops::Range;
use std::sync::Arc;

use super::content::LineEnding;
use super::patch::Chunk;
use crate::domain::Stored;
use crate::text::{Hunk, hunks, marks, patched, standing};
use replacement::Search;

/// The maximum number of matches that are listed.
const MANY: usize = 1000;

/// A change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Replacements in the current text; all or none.
    Edits(Vec<Replacement>),
    /// Replacements as a model sent them, and without the marks at their ends that may belong to its call.
    Sent {
        /// With the marks.
        sent: Vec<Replacement>,
        /// The same ones without them.
        bare: Vec<Replacement>,
    },
    /// A new text for the whole file.
    Write(String),
    /// Chunks of a patch, in order; all or none.
    Patch(Vec<Chunk>),
    /// Replaces the whole text, if it is still the expected one.
    Exact {
        /// The expected text.
        before: Arc<str>,
        /// The text afterwards.
        after: Arc<str>,
    },
    /// Makes the change between two texts in what the first has become; lines that others changed since stay.
    Merge {
        /// The text to change.
        from: Arc<str>,
        /// The text afterwards, had nobody changed `from`.
        to: Arc<str>,
        /// How it is to be stored; `None`: as the file now is.
        stored: Option<Stored>,
    },
    /// A new file gets what another one had.
    Moved {
        /// Its text.
        text: String,
        /// How it was stored.
        stored: Stored,
    },
}

impl Change {
    /// The change of a file with this text.
    pub(super) fn settled(&self, text: &str) -> Self {
        match self {
            Self::Sent { sent, bare } => Self::Edits(own(text, sent, bare)),
            other => other.clone(),
        }
    }

    /// How the file is to be stored; `None`: as it is.
    pub(super) fn stored(&self) -> Option<Stored> {
        match self {
            Self::Merge { stored, .. } => *stored,
            Self::Moved { stored, .. } => Some(*stored),
            _ => None,
        }
    }
}

/// A text and its replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// The text to replace.
    pub old_text: String,
    /// Taken literally.
    pub new_text: String,
    /// How often it has to occur, to be replaced everywhere; `None`: at least once.
    pub count: Option<usize>,
}

impl Replacement {
    /// The same with its texts read in another way; `None` if that leaves nothing to look for or to change.
    fn reread(&self, old_text: String, new_text: String) -> Option<Self> {
        let changes = !old_text.trim().is_empty() && old_text != new_text;
        changes.then_some(Self {
            old_text,
            new_text,
            count: self.count,
        })
    }
}

/// How the text was found. Each strategy tolerates more than the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strategy {
    /// Byte for byte.
    Exact,
    /// Ignoring line endings.
    LineEndings,
    /// Ignoring trailing whitespace.
    TrailingBlanks,
    /// Ignoring indentation; the replacement is indented to match.
    Indentation,
    /// Ignoring typographic punctuation and compatibility forms (NFKC).
    Unicode,
    /// Ignoring the amount of whitespace inside lines.
    InnerBlanks,
    /// With one level of escapes undone (backslashes, or the references of markup), then as [`Self::LineEndings`].
    Unescaped,
    /// Without the line number before each line, then as any of the above.
    LineNumbers,
    /// Without the code fence around it, then as any of the above but the last.
    Fenced,
}

impl Strategy {
    const PASSES: [Self; 7] = [
        Self::Exact,
        Self::LineEndings,
        Self::TrailingBlanks,
        Self::Indentation,
        Self::Unicode,
        Self::InnerBlanks,
        Self::Unescaped,
    ];

    /// Whether everything but line endings counts.
    fn is_literal(self) -> bool {
        matches!(self, Self::Exact | Self::LineEndings | Self::Unescaped)
    }
}

/// Completes `matched …`.
impl std::fmt::Display for Strategy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Exact => "exactly",
            Self::LineEndings => "with different line endings",
            Self::TrailingBlanks => "ignoring trailing whitespace",
            Self::Indentation => "with different indentation",
            Self::Unicode => "with different typographic characters",
            Self::InnerBlanks => "ignoring whitespace differences",
            Self::Unescaped => "after undoing one level of escapes",
            Self::LineNumbers => "without the line numbers, which are not part of the file",
            Self::Fenced => "without the code fence, which is not part of the file",
        })
    }
}

/// The result of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The text afterwards.
    pub new_text: Arc<str>,
    /// The replaced ranges, in order and not overlapping, in bytes of the old text.
    pub places: Vec<Hunk>,
    /// The most tolerant pass that was needed; `None` if the whole text was written.
    pub strategy: Option<Strategy>,
}

/// Why a change cannot be made, with what the model needs to retry successfully.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MatchError(pub String);

/// Applies `change` to `text`.
///
/// # Errors
/// A text to replace is missing or ambiguous, edits overlap, or nothing would change.
pub fn apply(text: &str, change: &Change) -> Result<Outcome, MatchError> {
    match change {
        Change::Write(content) | Change::Moved { text: content, .. } => Ok(write(text, content)),
        Change::Edits(edits) => replace(text, edits),
        Change::Sent { .. } => apply(text, &change.settled(text)),
        Change::Patch(chunks) => chunks::apply(text, chunks),
        Change::Exact { before, after } => exact(text, before, after),
        Change::Merge { from, to, .. } => merge(text, from, to),
    }
}

/// A new text for the whole file. If it uses LF only, the file's line endings stay, in a mixed file those of each line.
fn write(text: &str, content: &str) -> Outcome {
    let new_text = match LineEnding::of(text) {
        _ if content.contains('\r') => content.to_owned(),
        LineEnding::Mixed => {
            let all = Replacement {
                old_text: text.replace("\r\n", "\n").replace('\r', "\n"),
                new_text: content.to_owned(),
                count: Some(1),
            };
            let search = Search::new(text, &all, Strategy::LineEndings);
            let whole = search.hunks(std::slice::from_ref(&(0..text.len())));
            let whole = whole.and_then(|hunks| hunks.into_iter().next());
            whole.map_or_else(|| content.to_owned(), |hunk| hunk.new_text)
        }
        ending => content.replace('\n', ending.as_str()),
    };
    Outcome {
        places: hunks(text, &new_text),
        new_text: new_text.into(),
        strategy: None,
    }
}

fn exact(text: &str, before: &str, after: &Arc<str>) -> Result<Outcome, MatchError> {
    if text != before {
        return Err(MatchError(
            "it changed after this edit was prepared; try again".to_owned(),
        ));
    }
    Ok(Outcome {
        places: hunks(before, after),
        new_text: Arc::clone(after),
        strategy: None,
    })
}

/// What is left of the change from `to` to `from` goes; text that others wrote into it stays.
fn merge(text: &str, from: &str, to: &str) -> Result<Outcome, MatchError> {
    let standing = standing(to, from, text);
    if standing.pieces.is_empty() && !standing.touched.is_empty() {
        return Err(MatchError(
            "these lines have been changed since and were not undone".to_owned(),
        ));
    }
    let (new_text, _touched) = standing.undone(to, text);
    Ok(Outcome {
        places: hunks(text, &new_text),
        new_text: new_text.into(),
        strategy: None,
    })
}

/// The replacements without the marks at their ends that belong to the call: a mark that the file or another text of the
/// replacements has, or whose beginning, is the file's own.
fn own(text: &str, sent: &[Replacement], bare: &[Replacement]) -> Vec<Replacement> {
    let others = bare.iter().flat_map(|it| [&it.old_text, &it.new_text]);
    let others: Vec<&str> = others.map(String::as_str).chain([text]).collect();
    let own = |sent: &String, bare: &String| {
        let ends = sent.strip_prefix(bare.as_str()).unwrap_or_default();
        let is_own = others.iter().any(|other| marks::has_any(other, ends));
        if is_own { sent.clone() } else { bare.clone() }
    };
    let each = |(sent, bare): (&Replacement, &Replacement)| Replacement {
        old_text: own(&sent.old_text, &bare.old_text),
        new_text: own(&sent.new_text, &bare.new_text),
        count: sent.count,
    };
    std::iter::zip(sent, bare).map(each).collect()
}

/// All edits are matched against the current text. If that fails, they may have been meant one after the other, each
/// applied to the result of the previous one; then each has to match exactly once.
fn replace(text: &str, edits: &[Replacement]) -> Result<Outcome, MatchError> {
    let error = match side_by_side(text, edits) {
        Err(error) if edits.len() > 1 => error,
        outcome => return outcome,
    };
    let mut now = text.to_owned();
    let mut strategy = Strategy::Exact;
    for edit in edits {
        let Ok(outcome) = side_by_side(&now, std::slice::from_ref(edit)) else {
            return Err(error);
        };
        strategy = strategy.max(outcome.strategy.unwrap_or(Strategy::Exact));
        now = outcome.new_text.to_string();
    }
    Ok(Outcome {
        places: hunks(text, &now),
        new_text: now.into(),
        strategy: Some(strategy),
    })
}

fn side_by_side(text: &str, edits: &[Replacement]) -> Result<Outcome, MatchError> {
    let mut strategy = Strategy::Exact;
    let mut places: Vec<(usize, Hunk)> = Vec::new();
    for (number, edit) in (1..).zip(edits) {
        let (used, found) =
            locate(text, edit).map_err(|error| of_several("edit", error, number, edits.len()))?;
        strategy = strategy.max(used);
        places.extend(found.into_iter().map(|hunk| (number, hunk)));
    }
    assembled(text, places, strategy)
}

/// The result of all numbered replacements in `text`.
fn assembled(
    text: &str,
    mut places: Vec<(usize, Hunk)>,
    strategy: Strategy,
) -> Result<Outcome, MatchError> {
    places.sort_by_key(|(_, hunk)| (hunk.range.start, hunk.range.end));
    for pair in places.windows(2) {
        if let [(first, before), (second, after)] = pair
            && after.range.start < before.range.end
        {
            return Err(explain::overlap(text, *first, *second, after.range.start));
        }
    }
    let places: Vec<Hunk> = places.into_iter().map(|(_, hunk)| hunk).collect();
    let new_text = patched(text, &places);
    if new_text == text {
        return Err(MatchError(
            "it changes nothing: the text is already as requested".to_owned(),
        ));
    }
    Ok(Outcome {
        new_text: new_text.into(),
        places,
        strategy: Some(strategy),
    })
}

fn of_several(what: &str, error: MatchError, number: usize, of: usize) -> MatchError {
    if of == 1 {
        error
    } else {
        MatchError(format!("{what} {number} of {of} (none was made): {error}"))
    }
}

/// The matches of one edit, with their replacements.
fn locate(text: &str, edit: &Replacement) -> Result<(Strategy, Vec<Hunk>), MatchError> {
    if edit.old_text.is_empty() {
        if text.is_empty() && !edit.new_text.is_empty() {
            return Ok((
                Strategy::Exact,
                vec![Hunk {
                    range: 0..0,
                    new_text: edit.new_text.clone(),
                }],
            ));
        }
        return Err(MatchError(
            "old_text is empty; quote the text to replace, with enough context to be unique"
                .to_owned(),
        ));
    }
    if edit.old_text == edit.new_text {
        return Err(MatchError(
            "old_text and new_text are the same, so there is nothing to change".to_owned(),
        ));
    }
    let choose = |places: &[Range<usize>], strategy| match edit.count {
        Some(count) if places.len() != count && !places.is_empty() => Err(explain::ambiguous(
            text,
            places,
            strategy,
            Asked::Replacement,
        )),
        _ => Ok(places.to_vec()),
    };
    if let Some(found) = first_pass(text, edit, choose)? {
        return Ok(found);
    }
    let ends_text = |places: &[Range<usize>], _| {
        let ends_text = |place: &&Range<usize>| place.end == text.len();
        Ok(places.iter().filter(ends_text).cloned().collect())
    };
    if edit.count.is_none_or(|count| count == 1)
        && let Some(plain) = without_last_break(edit)
        && let Some((strategy, hunks)) = first_pass(text, &plain, ends_text)?
    {
        return Ok((strategy.max(Strategy::LineEndings), hunks));
    }
    let plain = [
        (Strategy::LineNumbers, numbered::plain(edit)),
        (Strategy::Fenced, fenced::plain(edit)),
    ];
    for (strategy, plain) in plain {
        if let Some(plain) = plain
            && let Some((_, hunks)) = first_pass(text, &plain, choose)?
        {
            return Ok((strategy, hunks));
        }
    }
    Err(explain::absent(text, edit, Asked::Replacement))
}

/// The replacement without its final line break, which the last line of a file may lack.
fn without_last_break(edit: &Replacement) -> Option<Replacement> {
    let bare = |text: &str| {
        let text = text.strip_suffix('\n')?;
        Some(text.strip_suffix('\r').unwrap_or(text).to_owned())
    };
    let new_text = bare(&edit.new_text).unwrap_or_else(|| edit.new_text.clone());
    edit.reread(bare(&edit.old_text)?, new_text)
}

/// What a search text is called in messages to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// `old_text` of a replacement.
    Replacement,
    /// Lines of a chunk of a patch.
    Chunk,
}

/// The first pass that has matches after `choose` filtered them.
fn first_pass(
    text: &str,
    edit: &Replacement,
    choose: impl Fn(&[Range<usize>], Strategy) -> Result<Vec<Range<usize>>, MatchError>,
) -> Result<Option<(Strategy, Vec<Hunk>)>, MatchError> {
    let unescaped = replacement::unescaped(edit);
    for strategy in Strategy::PASSES {
        let edit = match (strategy, &unescaped) {
            (Strategy::Unescaped, Some(edit)) => edit,
            (Strategy::Unescaped, None) => break,
            _ => edit,
        };
        if !is_possible(text, &edit.old_text, strategy) {
            continue;
        }
        let search = Search::new(text, edit, strategy);
        let chosen = choose(&find(&search), strategy)?;
        if !chosen.is_empty() {
            let hunks = search.hunks(&chosen).ok_or_else(|| {
                MatchError(
                    "its lines are indented differently than in the file, so the place of a new line is uncertain; copy the lines with their indentation"
                        .to_owned(),
                )
            })?;
            return Ok(Some((strategy, hunks)));
        }
    }
    Ok(None)
}

/// Whether a pass can match at all, as far as that is known without scanning every line: the normalized text of a line
/// or word must occur in the text.
fn is_possible(text: &str, sought: &str, strategy: Strategy) -> bool {
    let has = |parts: &mut dyn Iterator<Item = &str>| {
        let longest = parts.max_by_key(|part| part.len()).unwrap_or_default();
        memchr::memmem::find(text.as_bytes(), longest.as_bytes()).is_some()
    };
    let is_plain = || text.is_ascii() && sought.is_ascii();
    match strategy {
        Strategy::Exact
        | Strategy::LineEndings
        | Strategy::Unescaped
        | Strategy::LineNumbers
        | Strategy::Fenced => true,
        Strategy::TrailingBlanks | Strategy::Indentation => has(&mut sought
            .split(['\n', '\r'])
            .map(|line| line.trim_matches([' ', '\t']))),
        // Nothing to fold.
        Strategy::Unicode => !is_plain(),
        Strategy::InnerBlanks => !is_plain() || has(&mut sought.split([' ', '\t', '\n', '\r'])),
    }
}

/// Every match, including overlapping ones, so that none is unique by accident; to replace all, only those that do not
/// overlap.
fn find(search: &Search) -> Vec<Range<usize>> {
    let Search {
        text,
        strategy,
        view,
        sought,
        ..
    } = search;
    let is_exact = strategy.is_literal();
    if !is_exact && sought.shown().trim().is_empty() {
        return Vec::new();
    }
    let finder = memchr::memmem::Finder::new(sought.shown());
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(at) = view
        .shown()
        .as_bytes()
        .get(from..)
        .and_then(|rest| finder.find(rest))
    {
        let seen = from + at..from + at + sought.shown().len();
        let bytes = view
            .bytes(&seen)
            .filter(|bytes| is_exact || ends_at_words(text, bytes));
        if bytes
            .as_ref()
            .is_some_and(|bytes| !splits_no_crlf(text, bytes))
        {
            // Not a match, but it must not be skipped in favor of another one.
            return Vec::new();
        }
        from = match &bytes {
            Some(_) if search.edit.count != Some(1) => seen.end,
            _ => view.shown().ceil_char_boundary(seen.start + 1),
        };
        places.extend(bytes);
        if places.len() == MANY && search.edit.count == Some(1) {
            break;
        }
    }
    places
}

/// Whether neither end of `bytes` is between CR and LF, where an editor has no position. The next pass treats CRLF as
/// one.
fn splits_no_crlf(text: &str, bytes: &Range<usize>) -> bool {
    let byte = |at: usize| text.as_bytes().get(at).copied();
    let splits = |at: usize| byte(at) == Some(b'\n') && byte(at.wrapping_sub(1)) == Some(b'\r');
    !splits(bytes.start) && !splits(bytes.end)
}

/// Whether `bytes` begin and end at word boundaries. With blanks ignored, ` id` must not match in `grid`.
fn ends_at_words(text: &str, bytes: &Range<usize>) -> bool {
    let is_word = |character: Option<char>| {
        character.is_some_and(|character| character.is_alphanumeric() || character == '_')
    };
    let inside = text.get(bytes.clone()).unwrap_or_default();
    let before = text
        .get(..bytes.start)
        .and_then(|before| before.chars().next_back());
    let after = text.get(bytes.end..).and_then(|after| after.chars().next());
    let splits = |left, right| is_word(left) && is_word(right);
    !splits(before, inside.chars().next()) && !splits(inside.chars().next_back(), after)
}
