//! The next edit: the history of edits, the lines that a model may rewrite, and which part of its answer is suggested.
//!
//! Edits near one another and soon after one another are one. Never suggested: nothing but blanks, text that an answer
//! merely leaves out at its end, and what reverts an edit just made.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Place, Suggestion, context};
use crate::model::{PastEdit, Rewrite, rewritten};
use crate::text::{Encoding, Hunk, LineHunk, hunks, line_hunks, patched};
use crate::workspace::{ContentChange, Document, Documents};

/// How many edits are remembered.
const EDITS: usize = 6;
/// Changes are one edit if no more than this number of lines is between them, and no more than the pause.
const NEAR: u32 = 8;
const PAUSE: Duration = Duration::from_secs(10);
/// The largest document in which edits are remembered and suggested, in bytes.
const LARGEST: usize = 512 << 10;
/// How many lines on each side of the cursor's may be rewritten.
const REACH: usize = 10;
/// How many lines are shown on each side of those to rewrite.
const CONTEXT: usize = 30;

/// The last edits, oldest first.
#[derive(Default)]
pub(super) struct History(VecDeque<Edit>);

struct Edit {
    before: Arc<Document>,
    /// The line that was changed last, and when.
    line: u32,
    changed: Instant,
}

/// Lines of a document that a model may rewrite.
pub(super) struct Window {
    document: Arc<Document>,
    /// The first line, and the end in bytes.
    first: usize,
    end: usize,
    /// What the model gets.
    pub rewrite: Rewrite,
    /// What stood in their place before each of the last edits, the newest first.
    earlier: Vec<String>,
}

impl History {
    /// Notes that a document is about to change.
    pub fn note(&mut self, documents: &Documents, uri: &str, changes: &[ContentChange]) {
        let range = changes.first().and_then(|change| change.range);
        let (line, changed) = (range.map_or(0, |range| range.start.line), Instant::now());
        if let Some(last) = self.0.back_mut()
            && last.before.uri == uri
            && last.line.abs_diff(line) <= NEAR
            && last.changed.elapsed() < PAUSE
        {
            (last.line, last.changed) = (line, changed);
            return;
        }
        let document = documents.get(uri);
        if let Some(before) = document.filter(|document| document.text.len() <= LARGEST) {
            self.0.drain(..(self.0.len() + 1).saturating_sub(EDITS));
            self.0.push_back(Edit {
                before,
                line,
                changed,
            });
        }
    }

    /// The edits that still make a difference, oldest first: those of the place's document, and those of other open
    /// files that may be sent.
    pub fn edits(&self, documents: &Documents, place: &Place) -> Vec<PastEdit> {
        let edits = self.0.iter().enumerate();
        let edits = edits.filter_map(|(index, Edit { before, .. })| {
            let mut later = self.0.iter().skip(index + 1).map(|edit| &edit.before);
            let after = later.find(|later| later.uri == before.uri).cloned();
            let new = after.or_else(|| documents.get(&before.uri))?.text.clone();
            let name = if before.uri == place.uri {
                context::own_name(place)
            } else {
                context::shared_name(before, &place.folders)?
            };
            let old = before.text.clone();
            (old != new).then_some(PastEdit { name, old, new })
        });
        edits.collect()
    }
}

impl Window {
    /// The lines around a place; `None` in a document that is too large.
    pub fn new(history: &History, documents: &Documents, place: &Place) -> Option<Self> {
        let document = documents
            .get(&place.uri)
            .filter(|document| document.text.len() <= LARGEST)?;
        let Document {
            lines,
            text,
            language,
            ..
        } = &*document;
        let cursor = lines.offset(text, place.at, documents.encoding());
        let line = lines.line(cursor);
        let first = line.saturating_sub(REACH);
        let at = |line: usize| lines.bytes(text, line).start;
        let (start, end) = (at(first), at(line + REACH + 1));
        let before = history.0.iter().rev().map(|edit| &edit.before);
        let before = before.filter(|before| before.uri == document.uri);
        let earlier: Vec<_> = before
            .map(|before| earlier(&before.text, text, start..end))
            .collect();
        let part = |bytes: Range<usize>| normalized(text.get(bytes).unwrap_or_default());
        let mut window = part(start..end);
        if !window.ends_with('\n') {
            window.push('\n');
        }
        let rewrite = Rewrite {
            name: context::own_name(place),
            before: part(at(first.saturating_sub(CONTEXT))..start),
            cursor: part(start..cursor).len(),
            after: part(end..at(line + REACH + 1 + CONTEXT)),
            earlier: earlier.first().unwrap_or(&window).clone(),
            edits: history.edits(documents, place),
            others: context::others(documents, &place.uri, language, &place.folders),
            window,
        };
        Some(Self {
            document,
            first,
            end,
            rewrite,
            earlier,
        })
    }

    /// Whether it is of the place's document, which still has the text that the model was shown.
    pub fn is_current(&self, documents: &Documents, place: &Place) -> bool {
        let now = documents
            .get(&place.uri)
            .filter(|now| now.uri == self.document.uri);
        now.is_some_and(|now| now.text == self.document.text)
    }

    /// The change of an answer that is nearest to the cursor, as whole lines unless it is an insertion there.
    pub fn suggestion(
        &self,
        answer: &str,
        place: &Place,
        encoding: Encoding,
    ) -> Option<Suggestion> {
        let Document { lines, text, .. } = &*self.document;
        let Rewrite { window, cursor, .. } = &self.rewrite;
        let mut new = rewritten(answer, window)?;
        let ink = window.trim_end_matches('\n').len();
        new.truncate(new.trim_end_matches('\n').len());
        new.push_str(window.get(ink..)?);
        let (typed, rest) = window.split_at_checked(*cursor)?;
        let row = typed.matches('\n').count();
        let mut changes = line_hunks(window, &new);
        let next = inked(text.get(self.end..)?).next();
        changes.retain(|change| {
            let old = window.get(change.old.clone()).unwrap_or_default();
            let added = new.get(change.new.clone()).unwrap_or_default();
            // A model that stops early leaves out the end, one that stops late repeats what follows.
            let is_last = change.old.end >= ink;
            let stops_early = is_last && change.new_lines.len() < change.old_lines.len();
            let stops_late = is_last && next.is_some() && inked(added).next_back() == next;
            !stops_early && !stops_late && !inked(old).eq(inked(added))
        });
        let hunk = changes.iter().min_by_key(|LineHunk { old_lines, .. }| {
            let below = old_lines.start.saturating_sub(row);
            below.max((row + 1).saturating_sub(old_lines.end))
        })?;
        let mut added = new.get(hunk.new.clone())?.to_owned();
        let (before, after) = (window.get(..hunk.old.start)?, window.get(hunk.old.end..)?);
        let result = [before, &added, after].concat();
        let goes_back = |earlier: &String| distance(earlier, &result) < distance(earlier, window);
        if self.earlier.iter().any(goes_back) {
            return None;
        }
        if let Some(text) = result
            .strip_prefix(typed)
            .and_then(|text| text.strip_suffix(rest))
        {
            let text = if rest.is_empty() {
                text.trim_end_matches('\n')
            } else {
                text
            };
            return place.insertion(text.to_owned());
        }
        let at = |row: usize| lines.bytes(text, self.first + row).start;
        let bytes = at(hunk.old_lines.start)..at(hunk.old_lines.end);
        if bytes.end == text.len() && !text.ends_with('\n') {
            added.pop();
            if bytes.is_empty() {
                added.insert(0, '\n');
            }
        }
        let range = lines.range(text, &bytes, encoding);
        Some(Suggestion { range, text: added })
    }
}

/// `window` of `now` without the changes in it since `before`.
fn earlier(before: &str, now: &str, window: Range<usize>) -> String {
    let mut changes = line_hunks(before, now);
    changes.retain(|change| window.start <= change.new.start && change.new.end <= window.end);
    let undone = changes.into_iter().map(|LineHunk { old, new, .. }| Hunk {
        range: new.start - window.start..new.end - window.start,
        new_text: before.get(old).unwrap_or_default().to_owned(),
    });
    let undone: Vec<_> = undone.collect();
    normalized(&patched(now.get(window).unwrap_or_default(), &undone))
}

/// How many bytes differ.
fn distance(one: &str, other: &str) -> usize {
    let changes = hunks(one, other);
    changes
        .iter()
        .map(|hunk| hunk.range.len() + hunk.new_text.len())
        .sum()
}

/// The lines that are not blank.
fn inked(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    let lines = text.lines().map(str::trim_end);
    lines.filter(|line| !line.is_empty())
}

fn normalized(text: &str) -> String {
    text.replace('\r', "")
}
