//! Where in the text of an answer a call begins, or may begin. Pure.
//!
//! Text that is a quotation by its form (in a fence, indented, after `>`, between backticks) is skipped.

use std::ops::Range;

use super::beginning::{BEGINS, fenced, may_be_mark, may_be_patch, may_be_whole, may_begin};
use super::forms::RECIPIENT;
use super::json::{LONGEST, is_word};
use super::react;
use crate::calls::Catalog;
use crate::text::Fences;
use crate::text::marks::{self, Kind};
use crate::text::repair::PATCH;

/// What some models write around a Python call.
const PRINT: &str = "print(";
/// What Python calls begin with.
pub(super) const MODULES: [&str; 3] = ["default_api.", "functions.", "tools."];
/// How many bytes at the beginning of an answer decide whether all of it may be a call.
const HEAD: usize = 1024;
/// How many times a search checks for the beginning or end of a mark: text that needs more is a flood without calls.
const LOOKS: usize = 10_000;
/// How many checks a possible end counts as.
const EDGE: usize = 8;
/// The kinds of marks that may end an answer.
const ENDS: &[Kind] = &[
    Kind::Calls,
    Kind::Named,
    Kind::Argument,
    Kind::Header,
    Kind::Stop,
];

/// The search, as far as the text has come.
#[derive(Default)]
pub(super) struct Search {
    /// Where a call seems to begin; nothing from there on is released.
    pub begun: Option<usize>,
    /// Whether a complete marker was found there.
    pub is_certain: bool,
    /// Where the unfinished line begins.
    line: usize,
    /// How far the text was scanned: decisions made with less of it are final.
    scanned: usize,
    /// Up to where that line's backticks were counted, and their number.
    ticks: (usize, usize),
    /// The number of checks so far.
    looks: usize,
    /// Whether the answer began unlike any call.
    is_prose: bool,
    fences: Fences,
}

/// The text of an answer so far, and the tools that it may call.
struct Answer<'a, C> {
    text: &'a str,
    tools: &'a C,
}

impl Search {
    /// Goes on to the end of the text so far.
    pub(super) fn advance(&mut self, text: &str, tools: &impl Catalog) {
        if !self.is_certain {
            self.begun = self.scan(&Answer { text, tools });
        }
    }

    fn scan<C: Catalog>(&mut self, answer: &Answer<'_, C>) -> Option<usize> {
        let text = answer.text;
        if !self.is_prose {
            let head = text.split_at(text.floor_char_boundary(HEAD)).0;
            let may_be = match fenced(head) {
                Some((_language, code)) => {
                    answer.is_tag(code) || is_tag_name(code) || answer.may_be_named(code)
                }
                None => answer.may_be_named(head),
            };
            let is_flood = begins_blank(text);
            if !is_flood && (may_be || may_be_whole(head)) {
                return Some(0);
            }
            self.is_prose = is_flood || !head.trim().is_empty();
        }
        while self.looks < LOOKS {
            let from = self.line.max(self.scanned);
            let end = text
                .get(from..)
                .and_then(|rest| rest.find('\n'))
                .map(|end| from + end);
            let line = self.line..end.unwrap_or(text.len());
            if let Some((at, is_certain)) = self.beginning(answer, &line) {
                self.is_certain = is_certain;
                return Some(at);
            }
            let Some(end) = end else {
                self.scanned = text.len();
                return None;
            };
            self.fences.take(text.get(line).unwrap_or_default());
            self.line = end + 1;
            self.ticks = (self.line, 0);
        }
        None
    }

    /// Where in a line of prose a call begins or may begin, and whether that is certain.
    fn beginning<C: Catalog>(
        &mut self,
        answer: &Answer<'_, C>,
        line: &Range<usize>,
    ) -> Option<(usize, bool)> {
        let text = answer.text.get(line.clone())?;
        // Nothing is quoted where all of the answer is indented.
        let is_beside = || !answer.text.split_at(line.start).0.trim().is_empty();
        if self.fences.is_open()
            || begins_blank(text)
            || text.trim_start().starts_with('>')
            || (text.starts_with("    ") || text.starts_with('\t')) && is_beside()
        {
            return None;
        }
        if let Some(found) = answer.action(line, text) {
            return Some(found);
        }
        let body = text.trim_start();
        let is_whole = line.end < answer.text.len() || body.starts_with(PATCH.0);
        if !body.is_empty() && may_be_patch(body) && (body.starts_with(PATCH.0) || !is_whole) {
            return Some((line.end - body.len(), is_whole));
        }
        let first = self.scanned.max(line.start);
        let rest = answer.text.get(first..line.end);
        let rest = rest.filter(|rest| marks::has_sign(rest))?;
        // If a run of marks does not end the answer, neither does the last mark of the run.
        let mut passed = 0;
        for (at, _) in rest.match_indices(marks::SIGNS) {
            let at = first + at;
            let (counted, ticks) = self.ticks;
            let more = answer.text.get(counted..at).unwrap_or_default();
            self.ticks = (at, ticks + more.matches('`').count());
            (self.scanned, self.looks) = (at, self.looks + 1);
            if !self.ticks.1.is_multiple_of(2) {
                continue;
            }
            let (before, rest) = text.split_at(at - line.start);
            // The line may be incomplete: the beginning of a marker may still become one.
            let is_last = line.end == answer.text.len();
            if let Some(is_certain) = answer.decide(before.trim_end(), rest, is_last) {
                return Some((at, is_certain));
            }
            if at >= passed {
                match ends(answer.text.split_at(at).1, &mut self.looks) {
                    Some(len) => passed = at + len,
                    None => return Some((at, false)),
                }
            }
            if self.looks >= LOOKS {
                break;
            }
        }
        None
    }
}

impl<C: Catalog> Answer<'_, C> {
    /// Whether it is certain that a call begins with `rest`; `None` if none does.
    fn decide(&self, before: &str, rest: &str, is_last: bool) -> Option<bool> {
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let is_numbered = is_number(before.trim_end_matches('.'));
        let is_separate =
            before.is_empty() || before.ends_with(marks::ends_sentence) && !is_numbered;
        // Tokens occur in no prose, tags do.
        let is_free = is_separate || marks::is_odd(rest);
        let headers = ["<|start|>assistant", "<|from|>assistant"];
        let marks = marks::begins(BEGINS).filter(|mark| is_free || marks::is_token(mark));
        let mut marks = marks.chain(headers);
        let is_mark = marks.clone().any(|mark| marks::after(rest, mark).is_some());
        // The rest of a call whose own beginning is gone.
        let is_argument = || marks::keyed().any(|(begin, _)| marks::after(rest, begin).is_some());
        if is_mark || before.is_empty() && (self.is_tag(rest) || is_argument()) {
            return Some(true);
        }
        let may_be_tag = || before.is_empty() && is_tag_name(rest);
        (is_last && (may_be_tag() || marks.any(|mark| marks::may_become(rest, mark))))
            .then_some(false)
    }

    /// Whether the answer can still be nothing but `NAME(…)` with the name of an offered tool, or its name and arguments
    /// in marks.
    fn may_be_named(&self, text: &str) -> bool {
        let text = text.trim();
        let text = text.strip_prefix(RECIPIENT).unwrap_or(text);
        let text = text.strip_prefix(PRINT).unwrap_or(text);
        let text = MODULES
            .iter()
            .find_map(|module| text.strip_prefix(module))
            .unwrap_or(text);
        if let Some((name, _)) = text.split_once('(') {
            return self.tools.names().contains(&name);
        }
        let rest = self
            .tools
            .names()
            .into_iter()
            .find_map(|name| text.strip_prefix(name));
        if let Some(rest) = rest {
            let rest = rest
                .trim_start_matches(|c: char| c == ':' || c.is_ascii_digit())
                .trim_start();
            return rest.is_empty()
                || rest.starts_with('{')
                || marks::begins(&[Kind::Argument])
                    .chain(marks::ends(&[Kind::Calls]))
                    .any(|mark| marks::may_begin(rest, mark));
        }
        let begins = |word: &str| word.starts_with(text);
        begins(PRINT)
            || self.tools.names().into_iter().any(begins)
            || MODULES.iter().any(|module| begins(module))
    }

    /// Whether a line begins a `ReAct` call: `Action:` and a tool, with `Action Input:` after it, or JSON in place of both.
    fn action(&self, line: &Range<usize>, text: &str) -> Option<(usize, bool)> {
        let body = text.trim_start();
        let at = line.end - body.len();
        let is_last = line.end == self.text.len();
        let Some(name) = body.strip_prefix(react::ACTION).map(str::trim) else {
            return (is_last && !body.is_empty() && react::ACTION.starts_with(body))
                .then_some((at, false));
        };
        let is_fence = may_begin(name, "```");
        if !is_fence && !is_last && self.tools.resolve(name.trim_matches('`')).is_none() {
            return None;
        }
        if name.starts_with("```") {
            return Some((at, true));
        }
        let next = self.text.split_at(line.end).1.trim_start();
        let wanted: &[&str] = if name.is_empty() {
            &["{", "```"]
        } else {
            &[react::ACTION_INPUT]
        };
        let is_certain = wanted.iter().any(|begin| next.starts_with(begin));
        (is_certain || wanted.iter().any(|begin| begin.starts_with(next)))
            .then_some((at, is_certain))
    }

    /// Whether a text begins with a tool's name as a tag. With attributes, only tandem's own names count.
    fn is_tag(&self, rest: &str) -> bool {
        let tag = rest.strip_prefix('<').and_then(|rest| {
            let (name, rest) = rest.split_at(rest.find(['>', ' ', '/'])?);
            Some((name, rest.starts_with('>')))
        });
        tag.is_some_and(|(name, is_bare)| {
            self.tools.names().contains(&name)
                || is_bare && is_word(name) && self.tools.resolve(name).is_some()
        })
    }
}

/// Whether a text begins with more whitespace than precedes a call.
fn begins_blank(text: &str) -> bool {
    let head = text.split_at(text.floor_char_boundary(HEAD)).0;
    head.len() < text.len() && head.trim_start().is_empty()
}

/// Whether a text may be the beginning of a tag.
fn is_tag_name(text: &str) -> bool {
    let name = text.strip_prefix('<').filter(|_| text.len() < LONGEST);
    name.is_some_and(|name| name.is_empty() || is_word(name))
}

/// Whether a text contains the mark of a call.
pub(super) fn has_mark(text: &str) -> bool {
    marks::begins(BEGINS).any(|mark| marks::find(text, mark).is_some())
}

/// How many bytes of end marks a text begins with; `None` if nothing follows, or a call does. The last mark
/// and the call may be incomplete.
fn ends(text: &str, looks: &mut usize) -> Option<usize> {
    let all = text.trim_end();
    let mut rest = all;
    // Every token is an end, even if a longer end or a mark begins with it.
    while !rest.is_empty() && !marks::may_become_end(rest, ENDS) {
        *looks += EDGE;
        let is_behind = rest.len() < text.len();
        if is_behind && may_be_mark(rest) {
            return None;
        }
        let Some(after) = marks::after_edge(rest) else {
            return Some(all.len() - rest.len());
        };
        if marks::may_become_sender(after) {
            return None;
        }
        rest = after.trim();
    }
    None
}
