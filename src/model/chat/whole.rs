//! Detects the end of an object that arrives in fragments: chat streams do not mark the end of a call's arguments.
//!
//! Only brackets are counted; whether it is valid JSON is found when it is parsed.

use memchr::memchr2;

/// Tracks the arguments of one call; each byte is examined once.
#[derive(Debug, Default)]
pub(super) struct Whole {
    depth: usize,
    /// Whether there is anything between the outer brackets. Some servers send `{}` first and the arguments after it.
    filled: bool,
    quoted: bool,
    escaped: bool,
}

impl Whole {
    /// Adds a fragment; returns whether the outermost object ended with it.
    pub(super) fn ends_with(&mut self, fragment: &str) -> bool {
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
}
