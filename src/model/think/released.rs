//! What was released as the answer so far, as far as it decides what a mark after it means.

use super::header::{Header, header};
use super::{CALLS, begins, ends, thought, unquoted};
use crate::text::{Fences, marks};

/// What was released as the answer.
#[derive(Debug)]
pub(super) struct Released {
    pub last: char,
    /// The last one that is not whitespace.
    pub last_letter: char,
    /// How the unfinished line begins.
    pub line: String,
    /// The fences of the lines before that.
    pub fences: Fences,
    /// Whether the beginning of thoughts or of a message was mentioned: then all such marks are text.
    pub is_about_marks: bool,
    /// Whether it ends with a recipient: what follows belongs to a call.
    pub is_addressed: bool,
    call: Call,
    /// The end of it.
    end: String,
}

/// What calls are in an answer.
#[derive(Debug, PartialEq)]
enum Call {
    None,
    /// One has begun, in marks.
    Marked,
    /// All of it is one, without marks.
    Bare,
}

impl Released {
    /// Nothing was released.
    pub fn new() -> Self {
        Self {
            last: '\n',
            last_letter: '\n',
            line: String::new(),
            fences: Fences::default(),
            is_about_marks: false,
            is_addressed: false,
            call: Call::None,
            end: String::new(),
        }
    }

    /// Whether the answer with this text appended begins as a call without marks.
    fn is_bare(&self, text: &str) -> bool {
        // Until then, its end is all of it.
        self.call == Call::Bare
            || self.end.len() + 4 < END && begins_bare(&(self.end.clone() + text))
    }

    /// From where on a text that follows belongs to calls: a mark, the name of a tool as a tag, or all of an answer that
    /// begins as a call without marks.
    pub fn call_in(&self, text: &str) -> usize {
        if self.call != Call::None || self.is_bare(text) {
            return 0;
        }
        let is_of_name = |c: char| c == '_' || c.is_ascii_lowercase();
        let is_call = |before: &str, rest: &str| {
            let name = rest.strip_prefix('<').and_then(|it| it.split_once('>'));
            // No element of a page has such a name, and a placeholder is in a sentence.
            let is_tool = |(name, _): (&str, &str)| {
                let is_name = name.contains('_') && name.chars().all(is_of_name);
                is_name && thought(rest).is_none() && marks::after_edge(rest).is_none()
            };
            self.ends_line(before) && name.is_some_and(is_tool)
                || marks::begins(CALLS).any(|mark| marks::after(rest, mark).is_some())
                    && header(rest) == Header::None
        };
        let place = unquoted(text, self).find(|(before, rest)| is_call(before, rest));
        place.map_or(usize::MAX, |(before, _)| before.len())
    }

    /// Whether a call in marks begins in what is released next.
    pub fn note_call(&mut self, begins: bool) {
        if begins && self.call == Call::None {
            self.call = Call::Marked;
        }
    }

    /// Whether a call ends with this text appended.
    pub fn ends_call(&self, text: &str) -> bool {
        let near = text.ceil_char_boundary(text.len().saturating_sub(END));
        let whole = match near {
            0 => self.end.clone() + text,
            near => text.split_at(near).1.to_owned(),
        };
        let whole = whole.trim_end();
        // `<|close|>call<|sep|>` has three signs at most.
        let lasts = whole.rmatch_indices(marks::SIGNS).take(3);
        let mut lasts = lasts.map(|(at, _)| whole.split_at(at).1);
        let is_end = |last: &str| marks::ends(CALLS).any(|end| marks::after(last, end) == Some(""));
        self.is_bare(text) && whole.ends_with(['}', ']', ')']) || lasts.any(is_end)
    }

    /// The last character of the answer with this text appended.
    pub fn last_of(&self, text: &str) -> char {
        text.chars().next_back().unwrap_or(self.last)
    }

    /// Whether only whitespace follows the last line break.
    pub fn ends_line(&self, text: &str) -> bool {
        self.last_of(text.trim_end_matches([' ', '\t'])) == '\n'
    }

    /// The last character that is not whitespace.
    pub fn last_letter_of(&self, text: &str) -> char {
        let last = text.trim_end().chars().next_back();
        last.unwrap_or(self.last_letter)
    }

    pub fn ends_sentence(&self, text: &str) -> bool {
        marks::ends_sentence(self.last_letter_of(text))
    }

    /// Whether the text that follows begins a line or comes after a sentence, and is not an example: examples are announced
    /// or indented.
    pub fn is_between_sentences(&self, text: &str) -> bool {
        let line = match text.rsplit_once('\n') {
            Some((_, line)) => line.to_owned(),
            None => self.line_with(text),
        };
        let is_listed = line.trim_start().starts_with(|c: char| c.is_ascii_digit());
        let is_sentence =
            self.ends_sentence(text) && !(is_listed && line.trim_end().len() < LINE / 2);
        let is_announced = matches!(self.last_letter_of(text), ':' | '：');
        let is_example = is_announced || line.starts_with("    ");
        (is_sentence || self.ends_line(text)) && !is_example
    }

    /// Whether the text that follows comes after a word or a sentence without a space.
    pub fn is_glued(&self, text: &str) -> bool {
        let last = self.last_of(text);
        last.is_alphanumeric() || marks::ends_sentence(last)
    }

    /// The beginning of the unfinished line with this text appended: a fence may arrive in pieces.
    pub fn line_with(&self, text: &str) -> String {
        self.line.clone() + text
    }

    /// Whether what follows is in a fence.
    pub fn is_fenced(&self, text: &str) -> bool {
        let (text, mut fences) = (self.line_with(text), self.fences.clone());
        for line in text.lines() {
            fences.take(line);
        }
        fences.is_open()
    }

    /// Whether the text ends with a recipient: `to=NAME`.
    pub fn addresses(&self, text: &str) -> bool {
        let text = text.trim_end_matches(' ');
        match text.rsplit_once([' ', '\n', '<']) {
            Some((_, word)) => word.contains("to="),
            None => self.is_addressed || text.contains("to="),
        }
    }

    pub fn note(&mut self, text: &str) {
        if self.is_bare(text) {
            self.call = Call::Bare;
        }
        self.last = self.last_of(text);
        self.last_letter = self.last_letter_of(text);
        self.is_about_marks |= mentions_beginning(text);
        self.is_addressed = self.addresses(text);
        self.end.push_str(text);
        let more = self.end.len().saturating_sub(END);
        self.end.drain(..self.end.ceil_char_boundary(more));
        for (number, line) in text.split('\n').enumerate() {
            if number > 0 {
                self.fences.take(&std::mem::take(&mut self.line));
            }
            self.line
                .extend(line.chars().take(LINE.saturating_sub(self.line.len())));
        }
    }
}

/// How much of the end says whether a call ends, in bytes.
const END: usize = 64;

/// Whether a text begins as a call in JSON or Python, or with the words before one: `[Note]` and `{x}` do not.
fn begins_bare(text: &str) -> bool {
    let text = text.trim_start();
    let inside = text.trim_start_matches(|c: char| c.is_whitespace() || "[{".contains(c));
    let is_of_name = |c: char| c.is_alphanumeric() || "_.".contains(c);
    let is_name = |name: &str| !name.is_empty() && name.chars().all(is_of_name);
    let is_python = || {
        inside
            .split_once('(')
            .is_some_and(|(name, _)| is_name(name))
    };
    text.starts_with(['{', '[']) && inside.starts_with('"')
        || text.starts_with('[') && is_python()
        || ["call:", "Action:"]
            .iter()
            .any(|begin| text.starts_with(begin))
}

/// How much of a line says whether it is a fence, in bytes.
const LINE: usize = 16;

pub(super) const FENCE: &str = "```";

fn mentions_beginning(text: &str) -> bool {
    marks::has_sign(text) && begins().any(|begin| marks::find(text, begin).is_some())
}

/// The text before and after an end mark of thoughts: one at the beginning of a line, or one with no space between a word
/// and the beginning of a sentence, a line or a mark. A mention is inside a sentence, in quotes or after a begin mark.
pub(super) fn stray<'a>(text: &'a str, released: &Released) -> Option<(&'a str, &'a str)> {
    let is_end = |(before, after): &(&str, &str)| {
        let last = released.last_of(before);
        let begins = |c: char| c.is_alphabetic() && !c.is_lowercase();
        let is_between = released.is_glued(before) && after.starts_with(begins);
        let is_glued =
            !last.is_whitespace() && last != '`' && after.starts_with(['\n', '\r', '<', '[']);
        (released.ends_line(before) || is_glued || is_between) && !released.is_fenced(before)
    };
    if released.is_about_marks {
        return None;
    }
    let begun = begins().filter_map(|mark| Some(marks::find(text, mark)?.0));
    let begun = begun.min().unwrap_or(text.len());
    let ends = ends().flat_map(|mark| marks::all(text, mark).take_while(|(from, _)| *from < begun));
    let parts = ends.map(|(from, to)| (text.split_at(from).0, text.split_at(to).1));
    parts.filter(is_end).min_by_key(|(before, _)| before.len())
}
