//! Reasoning that a server leaves in the text of an answer (`<think>…</think>` at its beginning) is reported as
//! reasoning.
//!
//! Text is held back only while it may still turn out to be a marker; after the reasoning everything is text, even
//! markers.
//!
//! Some templates put the beginning into the prompt, so that only the end arrives: then the text before it was reasoning.

use super::ModelEvent;
use super::batch::Batch;

/// Markers at the beginning and end of reasoning.
const MARKS: &[(&str, &str)] = &[
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    ("<THINK>", "</THINK>"),
    ("<Think>", "</Think>"),
    ("<scratchpad>", "</scratchpad>"),
    ("<reflection>", "</reflection>"),
    ("<antml:thinking>", "</antml:thinking>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|channel>thought\n", "<channel|>"),
    ("<|channel|>commentary<|message|>", "<|end|>"),
    ("<|thinking|>", "<|/thinking|>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|channel|>analysis<|message|>", "<|end|>"),
];

/// What a message begins with.
const HEADER: &str = "<|start|>assistant";
/// What stands before the answer proper and says nothing.
const NOISE: &[&str] = &[
    "</think>",
    HEADER,
    "<|channel|>final<|message|>",
    "<|START_RESPONSE|>",
];

/// Stands between a dialect and the way out.
#[derive(Debug)]
pub(super) struct Thoughts {
    state: State,
    /// Text of which it is not known yet what it is.
    held: String,
    /// Thoughts came, so that blanks before the answer belong to them.
    any: bool,
    released: Released,
}

/// What was let through as the answer.
#[derive(Debug)]
struct Released {
    last: char,
    /// How the unfinished line begins.
    line: String,
    is_in_fence: bool,
    /// Whether a beginning was mentioned: then an end is text too.
    has_beginning: bool,
}

#[derive(Debug, PartialEq)]
enum State {
    /// The answer may begin with thoughts.
    Beginning,
    /// Until this mark.
    Thinking(&'static str),
    /// The answer, unless the end of thoughts follows whose beginning never came.
    Answering,
    /// Everything that follows is the answer.
    Over,
}

impl Thoughts {
    pub(super) fn new() -> Self {
        let released = Released {
            last: '\n',
            line: String::new(),
            is_in_fence: false,
            has_beginning: false,
        };
        Self {
            state: State::Beginning,
            held: String::new(),
            any: false,
            released,
        }
    }

    /// Whether events have to come through here at all.
    pub(super) fn is_watching(&self) -> bool {
        self.state != State::Over
    }

    /// Passes events on, thoughts in the text as such.
    pub(super) fn pass(&mut self, events: &mut Batch, out: &mut Batch) {
        while let Some(event) = events.pop() {
            match event {
                ModelEvent::Text(text) if self.is_plain(&text) => {
                    self.released.note(&text);
                    out.text(&text);
                }
                ModelEvent::Text(text) if self.is_watching() => {
                    self.held.push_str(&text);
                    while self.step(out) {}
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
        self.state == State::Answering
            && self.held.is_empty()
            && memchr::memchr2(b'<', b'[', text.as_bytes()).is_none()
    }

    /// No more text comes.
    pub(super) fn flush(&mut self, out: &mut Batch) {
        let held = std::mem::take(&mut self.held);
        match self.state {
            State::Thinking(_) => out.reasoning(&held),
            State::Beginning if self.any => out.text(held.trim_start()),
            State::Beginning | State::Answering | State::Over => out.text(&held),
        }
    }

    /// Takes what is certain from what is held; whether there may be more.
    fn step(&mut self, out: &mut Batch) -> bool {
        match self.state {
            State::Over => false,
            State::Beginning => self.begin(out),
            State::Answering => self.answer(out),
            State::Thinking(end) => {
                if let Some((thought, rest)) = self.held.split_once(end) {
                    out.reasoning(thought);
                    self.held = rest.to_owned();
                    self.state = State::Beginning;
                    return true;
                }
                let certain = self.held.len() - beginning_at_end(&self.held, end);
                let (thought, rest) = self.held.split_at(certain);
                out.reasoning(thought);
                self.held = rest.to_owned();
                false
            }
        }
    }

    fn begin(&mut self, out: &mut Batch) -> bool {
        let text = self.held.trim_start();
        if let Some((rest, end)) = MARKS
            .iter()
            .find_map(|(mark, end)| Some((text.strip_prefix(mark)?, end)))
        {
            (self.state, self.any) = (State::Thinking(end), true);
            self.held = rest.to_owned();
            return true;
        }
        // With a recipient after it the header is part of a call.
        let is_header = text
            .strip_prefix(HEADER)
            .is_some_and(|rest| !rest.starts_with('<'));
        let noise = || NOISE.iter().find_map(|noise| text.strip_prefix(noise));
        if let Some(rest) = noise().filter(|_| !is_header) {
            self.any = true;
            self.held = rest.to_owned();
            return true;
        }
        let marks = MARKS.iter().map(|(mark, _)| mark).chain(NOISE);
        if marks.clone().any(|mark| mark.starts_with(text)) || text == HEADER {
            return false;
        }
        if self.any {
            self.flush(out);
            self.state = State::Over;
            return false;
        }
        self.state = State::Answering;
        if let Some((thought, rest)) = stray(&self.held, &self.released) {
            out.reasoning(thought);
            (self.held, self.any, self.state) = (rest.to_owned(), true, State::Beginning);
        }
        true
    }

    /// Lets the answer through up to what may be the end of thoughts.
    fn answer(&mut self, out: &mut Batch) -> bool {
        if let Some((thought, rest)) = stray(&self.held, &self.released) {
            out.text(thought);
            out.push(ModelEvent::TextWasReasoning);
            (self.held, self.any, self.state) = (rest.to_owned(), true, State::Beginning);
            return true;
        }
        let marks = ENDS.iter().chain(MARKS.iter().map(|(begin, _)| begin));
        let unclear = |mark: &str| {
            if self.held.ends_with(mark) {
                mark.len()
            } else {
                beginning_at_end(&self.held, mark)
            }
        };
        let certain = self.held.len() - marks.map(|mark| unclear(mark)).max().unwrap_or(0);
        let (text, rest) = self.held.split_at(certain);
        out.text(text);
        self.released.note(text);
        self.held = rest.to_owned();
        false
    }
}

impl Released {
    fn note(&mut self, text: &str) {
        self.last = text.chars().next_back().unwrap_or(self.last);
        self.has_beginning |= mentions_beginning(text);
        for (number, line) in text.split('\n').enumerate() {
            if number > 0 {
                self.is_in_fence ^= self.line.trim_start().starts_with(FENCE);
                self.line.clear();
            }
            self.line
                .extend(line.chars().take(LINE.saturating_sub(self.line.len())));
        }
    }
}

/// How much of a line says whether it is a fence, in bytes.
const LINE: usize = 16;
const FENCE: &str = "```";

fn mentions_beginning(text: &str) -> bool {
    memchr::memchr2(b'<', b'[', text.as_bytes()).is_some()
        && MARKS.iter().any(|(begin, _)| text.contains(begin))
}

/// Ends of thoughts that no answer contains by accident.
const ENDS: [&str; 4] = ["</think>", "</thinking>", "</seed:think>", "[/THINK]"];

/// The text before and after the end of thoughts: one that begins a line, or ends one without a blank before it. One that is
/// mentioned stands in a sentence, in quotes or behind a beginning.
fn stray<'a>(text: &'a str, released: &Released) -> Option<(&'a str, &'a str)> {
    let is_end = |(before, _, after): &(&str, &str, &str)| {
        let fences = before
            .lines()
            .filter(|line| line.trim_start().starts_with(FENCE))
            .count()
            % 2
            == 1;
        let last = |text: &str| text.chars().next_back().unwrap_or(released.last);
        let is_line = last(before.trim_end_matches([' ', '\t'])) == '\n';
        let is_glued =
            !last(before).is_whitespace() && last(before) != '`' && after.starts_with(['\n', '\r']);
        fences == released.is_in_fence && !mentions_beginning(before) && (is_line || is_glued)
    };
    if released.has_beginning {
        return None;
    }
    let ends = ENDS.iter().flat_map(|mark| text.match_indices(mark));
    let parts =
        ends.map(|(at, mark)| (text.split_at(at).0, mark, text.split_at(at + mark.len()).1));
    parts
        .filter(is_end)
        .map(|(before, _, after)| (before, after))
        .min_by_key(|(before, _)| before.len())
}

/// How many bytes at the end of `text` may be the beginning of `mark`.
fn beginning_at_end(text: &str, mark: &str) -> usize {
    let beginnings = mark.char_indices().map(|(at, _)| mark.split_at(at).0);
    beginnings
        .filter(|beginning| text.ends_with(beginning))
        .map(str::len)
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Finish;

    #[track_caller]
    fn check(answer: &str, thoughts: &str, text: &str) {
        for size in [1, 2, 3, 7, answer.len().max(1)] {
            let (mut events, mut out) = (Batch::default(), Batch::default());
            let mut filter = Thoughts::new();
            let letters: Vec<char> = answer.chars().collect();
            for piece in letters.chunks(size) {
                events.text(&piece.iter().collect::<String>());
                filter.pass(&mut events, &mut out);
            }
            events.push(ModelEvent::Finish(Finish::Stop));
            filter.pass(&mut events, &mut out);
            let (mut thought, mut said) = (String::new(), String::new());
            while let Some(event) = out.pop() {
                match event {
                    ModelEvent::Text(text) => said.push_str(&text),
                    ModelEvent::Reasoning(text) => thought.push_str(&text),
                    ModelEvent::TextWasReasoning => thought.push_str(&std::mem::take(&mut said)),
                    _ => {}
                }
            }
            assert_eq!(
                (thought.trim_end(), said.as_str()),
                (thoughts.trim_end(), text),
                "{answer} by {size}"
            );
        }
    }

    #[test]
    fn leading_think_blocks_are_reasoning() {
        check("<think>\na < b\n</think>\n\nYes.", "\na < b\n", "Yes.");
        check(" <thinking>a</thinking>Yes.", "a", "Yes.");
        check("<think></think><think>a</think>Yes.", "a", "Yes.");
        check("<think>never ends </thi", "never ends </thi", "");
        check("<think>a</think>", "a", "");
        check("</think>\nYes.", "", "Yes.");
        check(
            "<|START_THINKING|>a<|END_THINKING|><|START_RESPONSE|>Yes.",
            "a",
            "Yes.",
        );
        check("<|channel>thought\na<channel|>Yes.", "a", "Yes.");
        check(
            "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>Yes.",
            "a",
            "Yes.",
        );
    }

    #[test]
    fn an_end_without_a_beginning_ends_thoughts() {
        check("a plan\n</think>\n\nYes.", "a plan", "Yes.");
        check("a plan.</think>\n\nYes.", "a plan.", "Yes.");
        check("eins\nzwei\n</thinking>Ja.", "eins\nzwei", "Ja.");
        check("计划\n[/THINK]\n好。", "计划", "好。");
    }

    #[test]
    fn later_think_tags_are_text() {
        for text in [
            "Close it with `</think>`.",
            "The end is </think>\nand no more.",
            "```\n</think>\n```\nis how it ends.",
            "Begin with <think>\nand end with\n</think>\nso.",
        ] {
            check(text, "", text);
        }
        for text in [
            "Use <think>x</think>.",
            "",
            " \n",
            "<thin",
            "<p>x</p>",
            "<think",
            "[x]",
        ] {
            check(text, "", text);
        }
        check(
            "<think>a</think>b <think>c</think>",
            "a",
            "b <think>c</think>",
        );
    }
}
