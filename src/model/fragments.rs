//! The arguments of a call, which arrive in fragments: what each adds, and where the object ends.
//!
//! A fragment is a continuation, or everything so far and more, or the whole once again at the end. JSON
//! distinguishes them: an object cannot go on with its own beginning. The end is found by counting brackets; whether it is valid JSON
//! is found when it is parsed.

use memchr::memchr2;
use serde_json::Value;

/// The arguments of one call so far.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    text: String,
    whole: Whole,
    /// Whether the outermost object has ended.
    ended: bool,
    /// Whether fragments were seen to repeat what came before.
    cumulative: bool,
    /// A fragment that may be a nested object or a repetition: the next one tells.
    held: Option<String>,
}

impl Fragments {
    /// Takes a fragment and returns the text it adds.
    pub fn add(&mut self, fragment: &str) -> String {
        let mut added = String::new();
        if let Some(held) = self.held.take() {
            if fragment.starts_with(&held) {
                self.cumulative = true;
            } else {
                self.push(&held, &mut added);
            }
        }
        if self.text.starts_with('{')
            && let Some(more) = fragment.strip_prefix(self.text.as_str())
        {
            if !self.cumulative && self.may_nest() {
                self.held = Some(fragment.to_owned());
            } else {
                self.cumulative = true;
                self.push(more, &mut added);
            }
        } else if !self.repeats(fragment) {
            self.push(fragment, &mut added);
        }
        added
    }

    /// The text that a held-back fragment adds at the end of the answer.
    pub fn end(&mut self) -> String {
        let mut added = String::new();
        if let Some(held) = self.held.take() {
            let nested = format!("{}{held}", self.text);
            let is_nested = serde_json::from_str::<Value>(&nested).is_ok();
            let more = held.get(self.text.len()..).filter(|_| !is_nested);
            let more = more.unwrap_or(&held).to_owned();
            self.push(&more, &mut added);
        }
        added
    }

    /// Whether the outermost object has ended.
    pub fn ended(&self) -> bool {
        self.ended
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.held.is_none()
    }

    /// Whether the object began and is not closed. `{}` is closed, though a server may still send what belongs in it.
    pub fn is_cut(&self) -> bool {
        self.whole.depth > 0
    }

    /// Whether a fragment is the object again, which has ended; perhaps in another notation.
    pub fn repeats(&self, fragment: &str) -> bool {
        let value = |text: &str| serde_json::from_str::<Value>(text).ok();
        self.ended
            && fragment.trim_start().starts_with('{')
            && value(fragment).is_some_and(|fragment| value(&self.text) == Some(fragment))
    }

    /// Whether an object may come next.
    fn may_nest(&self) -> bool {
        !self.whole.quoted && self.text.trim_end().ends_with([':', '[', ','])
    }

    fn push(&mut self, more: &str, added: &mut String) {
        self.ended |= self.whole.ends_with(more);
        self.text.push_str(more);
        added.push_str(more);
    }
}

/// Counts brackets; each byte is examined once.
#[derive(Debug, Default)]
struct Whole {
    depth: usize,
    /// Whether there is anything between the outer brackets. Some servers send `{}` first and the arguments after it.
    filled: bool,
    quoted: bool,
    escaped: bool,
}

impl Whole {
    /// Adds a fragment; returns whether the outermost object ended with it.
    fn ends_with(&mut self, fragment: &str) -> bool {
        let mut ended = false;
        let mut rest = fragment.as_bytes();
        while let Some((&byte, tail)) = rest.split_first() {
            if self.quoted && !self.escaped {
                let Some(at) = memchr2(b'"', b'\\', rest) else {
                    break;
                };
                self.quoted = rest[at] != b'"';
                self.escaped = self.quoted;
                rest = &rest[at + 1..];
                continue;
            }
            rest = tail;
            if self.escaped {
                self.escaped = false;
                continue;
            }
            ended = self.structure(byte) || ended && byte.is_ascii_whitespace();
        }
        ended
    }

    /// Adds a byte outside strings; returns whether it closes the outermost object.
    fn structure(&mut self, byte: u8) -> bool {
        match byte {
            b'{' | b'[' => {
                self.filled |= self.depth > 0;
                self.depth += 1;
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                return self.depth == 0 && self.filled;
            }
            b'"' => {
                self.filled |= self.depth > 0;
                self.quoted = true;
            }
            _ => {}
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fragments after which the arguments are complete.
    #[track_caller]
    fn check(fragments: &[&str], complete: &[usize]) {
        let mut whole = Whole::default();
        let ends: Vec<_> = (0..fragments.len())
            .filter(|&n| whole.ends_with(fragments[n]))
            .collect();
        assert_eq!(ends, complete, "{fragments:?}");
    }

    #[test]
    fn arguments_end_at_the_outermost_bracket() {
        check(&[r#"{"path":"a"}"#], &[0]);
        check(
            &[
                "",
                "{",
                r#""a"#,
                r#"":{"#,
                r#""b":[1,{}]"#,
                "}",
                "} \n",
                " ",
            ],
            &[6],
        );
        check(&[r#"{"a":"}\"#, r#""}\\"#, r#""}"#], &[2]);
        check(&[r#"{"a":""#, "é}", "\\", "\\", "\"", "}"], &[5]);
        check(&["{}", r#"{"a":1}"#], &[1]);
        check(&["{ }"], &[]);
        check(&[r#"{"a":1}{"#, r#""b":2}"#], &[1]);
        check(&["}", "]", "\"{", "\""], &[]);
    }

    /// What each fragment adds, and what the end does.
    #[track_caller]
    fn added(fragments: &[&str], expected: &[&str]) {
        let mut arguments = Fragments::default();
        let mut added: Vec<_> = fragments.iter().map(|more| arguments.add(more)).collect();
        added.push(arguments.end());
        assert_eq!(added, expected, "{fragments:?}");
    }

    #[test]
    fn a_repetition_adds_only_what_is_new() {
        added(&["{", r#"{"a""#, r#"{"a":1}"#], &["{", r#""a""#, ":1}", ""]);
        added(&[r#"{"a":1}"#, r#"{ "a": 1 }"#], &[r#"{"a":1}"#, "", ""]);
        added(
            &[r#"{"a":"#, "1}", r#"{"a":1}"#],
            &[r#"{"a":"#, "1}", "", ""],
        );
        added(
            &[r#"{"a":"{"#, r#"{"a":"{"}"#],
            &[r#"{"a":"{"#, r#""}"#, ""],
        );
        // An ambiguous fragment is resolved by the next one, or at the end.
        let (begin, nested) = (r#"{"a":"#, r#"{"a":{"#);
        added(&[begin, nested, "}}}"], &[begin, "", r#"{"a":{}}}"#, ""]);
        added(&[begin, nested, r#"{"a":{}}"#], &[begin, "", "{}}", ""]);
        added(&[begin, r#"{"a":1}"#], &[begin, "", "1}"]);
        added(&[r#"{"a":{"a":"#, "1}}"], &[r#"{"a":{"a":"#, "1}}", ""]);
    }
}
