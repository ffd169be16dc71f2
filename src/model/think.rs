//! Reasoning that a server leaves in the text of an answer (`<think>…</think>` at its beginning) is reported as
//! reasoning.
//!
//! Text is held back only while it may still turn out to be a marker. A next message that the model makes up for
//! somebody else is not part of the answer.
//!
//! Some templates put the beginning into the prompt, so that only the end arrives: then the text before it was reasoning.

mod header;
mod released;

use self::header::{Header, MESSAGE_END, MESSAGE_ENDS, header};
use self::released::{FENCE, Released, stray};
use super::ModelEvent;
use super::batch::Batch;
use crate::text::marks::{self, Kind, Speaker};

/// Headers before the answer proper, which carry no content.
fn headers() -> impl Iterator<Item = &'static str> {
    marks::begins(&[Kind::Header, Kind::Stop]).chain(["</think>"])
}

/// Ends of thoughts that end nothing else.
fn ends() -> impl Iterator<Item = &'static str> {
    let is_only =
        |end: &&str| *end != MESSAGE_END && marks::ends(&[Kind::Calls]).all(|it| it != *end);
    marks::ends(&[Kind::Thoughts]).filter(is_only)
}

/// What follows the beginning of thoughts that a text begins with, and the marks that may end them.
fn thought(text: &str) -> Option<(&str, Vec<&'static str>)> {
    let rows = marks::pairs(&[Kind::Thoughts]);
    let fits = rows.filter_map(|(begin, end)| Some((marks::after(text, begin)?, end)));
    let (rests, ends): (Vec<_>, Vec<_>) = fits.unzip();
    Some((rests.first()?, ends))
}

fn begins() -> impl Iterator<Item = &'static str> {
    marks::begins(&[Kind::Thoughts])
}

/// A filter between an API's decoder and its events.
#[derive(Debug)]
pub(super) struct Thoughts {
    state: State,
    /// Text that may still turn out to be something else.
    held: String,
    /// Thoughts came, so that blanks before the answer belong to them.
    any: bool,
    /// How often the beginning of these thoughts came, until something else does.
    begun: Begun,
    /// The last character of the thoughts.
    last: char,
    /// Thoughts came to an end.
    has_ended: bool,
    /// The answer has several messages, each with a header.
    has_headers: bool,
    speaker: Speaker,
    /// What ends the part that the answer began with.
    open: Option<String>,
    released: Released,
    /// The length at which the held text is examined again.
    next: usize,
}

/// How much text is examined at once, in bytes.
const PIECE: usize = 256;
/// Up to this length, held text is examined again with every token.
const NEAR: usize = 128;
/// How much may be held; longer text is the answer, whatever follows, or thoughts if it begins like them.
const MOST: usize = 4 * 1024;
const MOST_THOUGHTS: usize = 4 * MOST;

#[derive(Debug, PartialEq)]
enum Begun {
    Once,
    Twice,
    /// Something else came.
    Over,
}

#[derive(Debug, PartialEq)]
enum State {
    /// The answer may begin with thoughts.
    Beginning,
    /// Until one of these marks.
    Thinking(Vec<&'static str>),
    /// After thoughts within thoughts: thoughts up to one of these marks, or the answer if none comes.
    Between(Vec<&'static str>),
    /// The answer, unless the end of thoughts follows whose beginning never came.
    Answering,
    /// Everything that follows is the answer.
    Over,
}

impl Thoughts {
    pub fn new() -> Self {
        Self {
            state: State::Beginning,
            held: String::new(),
            any: false,
            last: '\n',
            has_ended: false,
            begun: Begun::Over,
            has_headers: false,
            speaker: Speaker::Model,
            open: None,
            released: Released::new(),
            next: 0,
        }
    }

    /// Whether events have to come through here at all.
    pub fn is_watching(&self) -> bool {
        self.state != State::Over
    }

    /// Passes events on, thoughts in the text as such.
    pub fn pass(&mut self, events: &mut Batch, out: &mut Batch) {
        while let Some(event) = events.pop() {
            match event {
                ModelEvent::Text(text) if self.is_plain(&text) => {
                    self.released.note(&text);
                    out.text(&text);
                }
                ModelEvent::Text(text) if self.is_watching() => {
                    let mut rest = text.as_str();
                    while self.is_watching() && !rest.is_empty() {
                        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE));
                        self.hold(piece, out);
                        rest = after;
                    }
                    out.text(rest);
                }
                ModelEvent::Text(text) => out.text(&text),
                event => {
                    if matches!(
                        event,
                        ModelEvent::CallStart { .. }
                            | ModelEvent::Refusal(_)
                            | ModelEvent::Finish(_)
                    ) {
                        self.flush(out);
                        if self.state == State::Answering {
                            self.state = State::Over;
                        }
                    }
                    out.push(event);
                }
            }
        }
    }

    /// Whether text of the answer contains no mark, nor the beginning or rest of one: nearly all of it.
    fn is_plain(&self, text: &str) -> bool {
        self.state == State::Answering && self.held.is_empty() && !marks::has_sign(text)
    }

    /// Holds text that may be part of a mark, or inside one. Held text is examined again once it has doubled.
    fn hold(&mut self, text: &str, out: &mut Batch) {
        self.held.push_str(text);
        if self.held.len() < self.next {
            return;
        }
        while self.step(out) {}
        self.next = if self.held.len() > NEAR {
            2 * self.held.len()
        } else {
            0
        };
        if self.held.len() > MOST {
            match thought(self.held.trim_start()) {
                Some(_) if self.held.len() < MOST_THOUGHTS => {}
                Some((rest, ends)) => {
                    self.held = rest.to_owned();
                    (self.state, self.any) = (State::Thinking(ends), true);
                }
                None => {
                    self.flush(out);
                    self.state = State::Over;
                }
            }
        }
    }

    /// No more text comes.
    pub fn flush(&mut self, out: &mut Batch) {
        while self.step(out) {}
        let held = std::mem::take(&mut self.held);
        match &self.state {
            State::Thinking(_) => out.reasoning(&held),
            // The thoughts have only begun.
            State::Beginning
                if thought(held.trim_start()).is_some_and(|(rest, _)| rest.trim().is_empty()) => {}
            State::Beginning | State::Between(_) if self.any => out.text(held.trim_start()),
            _ => out.text(&held),
        }
    }

    /// Takes what is certain from what is held; whether there may be more.
    fn step(&mut self, out: &mut Batch) -> bool {
        if self.begun == Begun::Once && !self.is_clear() {
            return false;
        }
        match &self.state {
            State::Over => false,
            State::Beginning => self.begin(out),
            State::Answering => self.answer(out),
            State::Between(ends) => {
                let found = ends.iter().filter_map(|end| marks::find(&self.held, end));
                let Some((from, to)) = found.min() else {
                    return false;
                };
                out.reasoning(self.held.split_at(from).0);
                self.held.drain(..to);
                self.state = State::Beginning;
                true
            }
            State::Thinking(ends) => {
                let found = ends.iter().filter_map(|end| marks::find(&self.held, end));
                if let Some((from, to)) = found.min() {
                    let thought = self.held.split_at(from).0;
                    if nests(self.last, thought) {
                        self.begun = Begun::Twice;
                    }
                    out.reasoning(thought);
                    let is_header = self.held.split_at(from).1.starts_with(char::is_alphabetic);
                    self.held.drain(..if is_header { from } else { to });
                    self.has_ended = true;
                    self.state = match self.begun {
                        Begun::Twice => State::Between(ends.clone()),
                        Begun::Once | Begun::Over => State::Beginning,
                    };
                    return true;
                }
                let marks = ends.iter().copied().chain(begins());
                let pending = marks.map(|mark| marks::pending(&self.held, mark));
                let certain = self.held.len() - pending.max().unwrap_or(0);
                let (thought, rest) = self.held.split_at(certain);
                if nests(self.last, thought) {
                    self.begun = Begun::Twice;
                }
                self.last = thought.chars().next_back().unwrap_or(self.last);
                out.reasoning(thought);
                self.held = rest.to_owned();
                false
            }
        }
    }

    /// Whether it is certain how often thoughts began.
    fn is_clear(&mut self) -> bool {
        let text = self.held.trim_start();
        if let Some(rest) = begins().find_map(|mark| marks::after(text, mark)) {
            (self.held, self.begun) = (rest.to_owned(), Begun::Twice);
        } else if text.is_empty() || begins().any(|mark| marks::may_become(text, mark)) {
            return false;
        } else {
            self.begun = Begun::Over;
        }
        true
    }

    fn begin(&mut self, out: &mut Batch) -> bool {
        let text = self.held.trim_start();
        if let Some((rest, ends)) = thought(text) {
            let may_be = rest.is_empty() || marks::is_spoken_of(rest);
            if may_be && !ends.iter().any(|end| is_ended(rest, end)) {
                return false;
            }
            (self.state, self.any) = (State::Thinking(ends), true);
            self.begun = Begun::Once;
            self.held = rest.to_owned();
            return true;
        }
        let found = header(text);
        if let Header::Whole { is_thought, rest } = found {
            self.held = rest.to_owned();
            (self.any, self.has_headers) = (true, true);
            if is_thought {
                self.state = State::Thinking(MESSAGE_ENDS.to_vec());
            }
            return true;
        }
        let mut marks = begins().chain(headers());
        let is_open = found == Header::Begun || marks.any(|mark| marks::may_become(text, mark));
        let known = headers().find_map(|header| marks::after(text, header));
        let header = known.or_else(|| marks::after_header(text).filter(|_| !is_open));
        if header.is_none() && (text.is_empty() || is_open)
            || known.is_none() && marks::may_become_header(text)
        {
            return false;
        }
        if let Some(rest) = header {
            self.any = true;
            self.open = marks::part(text).map(|(end, _)| end);
            self.speaker = marks::speaker_of_header(text, rest).unwrap_or(self.speaker);
            self.held = rest.to_owned();
            return true;
        }
        self.state = State::Answering;
        if self.speaker == Speaker::Other {
            self.speaker = Speaker::Model;
            out.push(ModelEvent::TextIsForeign);
        }
        if self.any && !self.has_headers {
            self.held = self.held.trim_start().to_owned();
        }
        if !self.has_ended
            && let Some((thought, rest)) = stray(&self.held, &self.released)
            && !rest.trim().is_empty()
        {
            out.reasoning(thought);
            self.held = rest.to_owned();
            self.end_thoughts();
        }
        true
    }

    fn end_thoughts(&mut self) {
        (self.any, self.has_ended, self.state) = (true, true, State::Beginning);
    }

    /// Lets the answer through up to what may be the end of thoughts.
    fn answer(&mut self, out: &mut Batch) -> bool {
        let has_ended = self.has_ended && !self.has_headers;
        let stray = stray(&self.held, &self.released)
            .filter(|(before, _)| !has_ended || self.released.ends_sentence(before));
        if let Some((before, rest)) = stray
            && (has_ended || rest.trim().is_empty())
        {
            // Nothing follows the end of these thoughts, or they had ended before: the text before it is the answer.
            out.text(before);
            self.released.note(before);
            let is_last = rest.trim().is_empty();
            let held = if is_last {
                self.held.split_at(before.len()).1
            } else {
                rest
            };
            self.held = held.to_owned();
            return !is_last;
        }
        if let Some((thought, rest)) = stray {
            out.text(thought);
            out.push(ModelEvent::TextWasReasoning);
            self.held = rest.to_owned();
            self.end_thoughts();
            return true;
        }
        // What a call says is no part of the answer's form.
        let call = self.released.call_in(&self.held);
        let is_outside = |before: &str| before.len() < call || self.released.ends_call(before);
        let later = later(&self.held, &self.released).filter(|(before, _)| is_outside(before));
        if let Some((before, Some((thought, rest)))) = later {
            out.text(before);
            self.released.note(before);
            out.reasoning(thought);
            self.held = rest.to_owned();
            return true;
        }
        if let Some(end) = &self.open
            && let Some((from, to)) = marks::find(&self.held, end)
            && from < call
        {
            self.held.drain(from..to);
            self.open = None;
            return true;
        }
        let framed = framed(&self.held, &self.released).filter(|(before, _)| is_outside(before));
        if let Some((before, Some((own, rest)))) = framed {
            self.held = [before, own, rest].concat();
            return true;
        }
        let calls = marks::begins(CALLS).filter(|mark| mark.starts_with(marks::SIGNS));
        let marks = ends().chain(begins()).chain(calls);
        let unclear = marks.map(|mark| marks::pending(&self.held, mark)).max();
        let mut certain = self.held.len() - unclear.unwrap_or(0);
        // Without their end they are text.
        for (before, _) in later.into_iter().chain(framed) {
            certain = certain.min(before.len());
        }
        let next = next_header(&self.held, &self.released, call);
        if let Some((at, is_whole)) = next.filter(|(at, _)| *at <= certain) {
            certain = at;
            if is_whole {
                self.state = State::Beginning;
            }
        }
        if let Some((at, is_made_up)) = foreign(&self.held, &self.released, call)
            && at <= certain
        {
            match is_made_up {
                // Nothing ends what the model made up.
                Some(true) => self.state = State::Thinking(Vec::new()),
                Some(false) => self.released.is_about_marks = true,
                None => {}
            }
            if is_made_up != Some(false) {
                certain = at;
            }
        }
        self.released.note_call(call < certain);
        let (text, rest) = self.held.split_at(certain);
        out.text(text);
        self.released.note(text);
        self.held = rest.to_owned();
        self.state != State::Answering
    }
}

/// The kinds of marks that begin calls.
const CALLS: &[Kind] = &[Kind::Calls, Kind::Named];

/// Where in an answer the next message begins or may begin, and whether its header is complete.
fn next_header(text: &str, released: &Released, call: usize) -> Option<(usize, bool)> {
    outside(text, released, call).find_map(|(before, rest)| {
        let found = header(rest);
        let is_free = found != Header::None && !released.addresses(before);
        is_free.then(|| (before.len(), found != Header::Begun))
    })
}

/// Where in an answer the first message of somebody else begins or may begin, and whether the model made it up: it
/// follows a sentence or a mark. Where one is mentioned, all are what the answer is about.
fn foreign(text: &str, released: &Released, call: usize) -> Option<(usize, Option<bool>)> {
    if released.is_about_marks {
        return None;
    }
    outside(text, released, call).find_map(|(before, rest)| {
        let is_foreign = marks::begins_foreign(rest);
        let is_behind = released.last_letter != '\n' || !before.trim().is_empty();
        let is_free = released.is_between_sentences(before) || released.is_glued(before);
        let found = (before.len(), is_foreign.map(|_| is_free && is_behind));
        (is_foreign != Some(false)).then_some(found)
    })
}

/// The places of an answer where a mark may begin: neither in a fence nor after a backtick, where one is mentioned.
fn unquoted<'a>(
    text: &'a str,
    released: &'a Released,
) -> impl Iterator<Item = (&'a str, &'a str)> + 'a {
    let starts = text.match_indices(['<', '[']);
    let starts = starts.map(|(at, _)| text.split_at(at));
    starts.filter(|(before, _)| {
        !released.fences.is_open()
            && !released.line_with(before).contains(FENCE)
            && released.last_of(before) != '`'
    })
}

/// The same, outside of the calls that begin at `call`.
fn outside<'a>(
    text: &'a str,
    released: &'a Released,
    call: usize,
) -> impl Iterator<Item = (&'a str, &'a str)> + 'a {
    let places = unquoted(text, released);
    places.filter(move |(before, _)| before.len() < call || released.ends_call(before))
}

/// Whether thoughts begin within thoughts. A beginning after a blank or a quote is mentioned.
fn nests(last: char, text: &str) -> bool {
    let begun = |begin: &str| Some(text.split_at(marks::find(text, begin)?.0).0);
    let is_mentioned = |c: char| c != '\n' && c.is_whitespace() || "`'\"(".contains(c);
    marks::has_sign(text)
        && begins()
            .filter_map(begun)
            .any(|before| !is_mentioned(before.chars().next_back().unwrap_or(last)))
}

/// Thoughts that begin a line in the middle of an answer, or follow a sentence: the text before them and, once they
/// have ended, the thoughts and what follows. A beginning that was mentioned is what the answer is about.
fn later<'a>(text: &'a str, released: &Released) -> Option<(&'a str, Option<(&'a str, &'a str)>)> {
    if released.is_about_marks {
        return None;
    }
    let found = begins().filter_map(|begin| Some(marks::find(text, begin)?.0));
    let (before, thoughts) = text.split_at(found.min()?);
    let (inside, ends) = thought(thoughts)?;
    let ended = ends.iter().filter_map(|end| marks::find(inside, end)).min();
    let parts = ended.map(|(from, to)| (inside.split_at(from).0, inside.split_at(to).1));
    let is_free = released.is_between_sentences(before) && !released.is_fenced(before);
    is_free.then_some((before, parts))
}

/// Whether thoughts end in a text, at a mark that the text does not merely mention.
fn is_ended(text: &str, end: &str) -> bool {
    marks::all(text, end).any(|(from, to)| {
        let (before, after) = (text.split_at(from).0, text.split_at(to).1);
        let is_mentioned = before.ends_with(['`', '\'', '"', '(']);
        let is_spoken_of = before.ends_with(' ') && marks::is_spoken_of(after);
        !is_mentioned && !is_spoken_of && !after.trim().is_empty()
    })
}

/// A part of an answer between tokens that say so: the text before it and, once it has ended, the part and what
/// follows.
fn framed<'a>(
    text: &'a str,
    released: &'a Released,
) -> Option<(&'a str, Option<(&'a str, &'a str)>)> {
    if released.is_about_marks {
        return None;
    }
    unquoted(text, released).find_map(|(before, rest)| {
        let (own, rest) = marks::framed(rest)?;
        Some((before, rest.map(|rest| (own, rest))))
    })
}

#[cfg(test)]
mod tests;
