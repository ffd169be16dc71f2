//! Reasoning that a server leaves in the text of an answer (`<think>…</think>` at its beginning) is reported as
//! reasoning.
//!
//! Text is held back only while it may still turn out to be a marker; after the reasoning everything is text, even
//! markers.

use super::ModelEvent;
use super::batch::Batch;

/// Markers at the beginning and end of reasoning.
const MARKS: &[(&str, &str)] = &[
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    ("<|thinking|>", "<|/thinking|>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|channel|>analysis<|message|>", "<|end|>"),
];

/// What stands before the answer proper and says nothing.
const NOISE: &[&str] = &["</think>", "<|start|>assistant", "<|channel|>final<|message|>"];

/// Stands between a dialect and the way out.
#[derive(Debug)]
pub(super) struct Thoughts {
    state: State,
    /// Text of which it is not known yet what it is.
    held: String,
    /// Thoughts came, so that blanks before the answer belong to them.
    any: bool,
}

#[derive(Debug, PartialEq)]
enum State {
    /// The answer may begin with thoughts.
    Beginning,
    /// Until this mark.
    Thinking(&'static str),
    /// Everything that follows is the answer.
    Over,
}

impl Thoughts {
    pub(super) fn new() -> Self {
        Self { state: State::Beginning, held: String::new(), any: false }
    }

    /// Whether events have to come through here at all.
    pub(super) fn is_watching(&self) -> bool {
        self.state != State::Over
    }

    /// Passes events on, thoughts in the text as such.
    pub(super) fn pass(&mut self, events: &mut Batch, out: &mut Batch) {
        while let Some(event) = events.pop() {
            match event {
                ModelEvent::Text(text) if self.is_watching() => {
                    self.held.push_str(&text);
                    while self.step(out) {}
                }
                ModelEvent::Text(text) => out.text(&text),
                event => {
                    if matches!(event, ModelEvent::CallStart { .. } | ModelEvent::Refusal(_) | ModelEvent::Finish(_)) {
                        self.flush(out);
                    }
                    out.push(event);
                }
            }
        }
    }

    /// No more text comes.
    pub(super) fn flush(&mut self, out: &mut Batch) {
        let held = std::mem::take(&mut self.held);
        match self.state {
            State::Thinking(_) => out.reasoning(&held),
            State::Beginning if self.any => out.text(held.trim_start()),
            State::Beginning | State::Over => out.text(&held),
        }
    }

    /// Takes what is certain from what is held; whether there may be more.
    fn step(&mut self, out: &mut Batch) -> bool {
        match self.state {
            State::Over => false,
            State::Beginning => self.begin(out),
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
        if let Some((rest, end)) = MARKS.iter().find_map(|(mark, end)| Some((text.strip_prefix(mark)?, end))) {
            (self.state, self.any) = (State::Thinking(end), true);
            self.held = rest.to_owned();
            return true;
        }
        if let Some(rest) = NOISE.iter().find_map(|noise| text.strip_prefix(noise)) {
            self.any = true;
            self.held = rest.to_owned();
            return true;
        }
        let marks = MARKS.iter().map(|(mark, _)| mark).chain(NOISE);
        if marks.clone().any(|mark| mark.starts_with(text)) {
            return false;
        }
        self.flush(out);
        self.state = State::Over;
        false
    }
}

/// How many bytes at the end of `text` may be the beginning of `mark`.
fn beginning_at_end(text: &str, mark: &str) -> usize {
    let beginnings = mark.char_indices().map(|(at, _)| mark.split_at(at).0);
    beginnings.filter(|beginning| text.ends_with(beginning)).map(str::len).max().unwrap_or(0)
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
                    _ => {}
                }
            }
            assert_eq!((thought.as_str(), said.as_str()), (thoughts, text), "{answer} by {size}");
        }
    }

    #[test]
    fn thoughts_at_the_beginning_are_thoughts() {
        check("<think>\na < b\n</think>\n\nYes.", "\na < b\n", "Yes.");
        check(" <thinking>a</thinking>Yes.", "a", "Yes.");
        check("<think></think><think>a</think>Yes.", "a", "Yes.");
        check("<think>never ends </thi", "never ends </thi", "");
        check("<think>a</think>", "a", "");
        check("</think>\nYes.", "", "Yes.");
        check("<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>Yes.", "a", "Yes.");
    }

    #[test]
    fn what_comes_later_is_text() {
        for text in ["Use <think>x</think>.", "", " \n", "<thin", "<p>x</p>", "<think", "[x]"] {
            check(text, "", text);
        }
        check("<think>a</think>b <think>c</think>", "a", "b <think>c</think>");
    }
}
