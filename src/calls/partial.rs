//! Parses JSON that has not fully arrived, so that an edit can be shown while its arguments stream.
//!
//! Invariant: the result for a prefix is a prefix of the result for the whole (of strings, arrays and objects); nothing
//! is shown that would have to be retracted.
//!
//! A truncated number, keyword, escape or member name is left out. Runs in linear time.

use serde_json::Value;

/// The value of a prefix of a JSON object or array, with its open strings, arrays and objects closed. `None` while
/// there is nothing to show, and for text that is not JSON.
#[must_use]
pub fn complete(text: &str) -> Option<Value> {
    let mut scan = Scan {
        text,
        ..Scan::default()
    };
    scan.run()?;
    let mut closed = text.get(..scan.safe)?.to_owned();
    if scan.in_string {
        closed.push('"');
    }
    closed.extend(scan.open.iter().rev());
    serde_json::from_str(&closed).ok()
}

/// One pass over the text. Since opening and closing a container are safe points both, the containers open at the
/// last safe point are the ones open at the end.
#[derive(Default)]
struct Scan<'a> {
    text: &'a str,
    /// What closes the containers that are open, outermost first.
    open: Vec<char>,
    /// Up to this byte, the text is a value once it is closed.
    safe: usize,
    /// Whether `safe` is inside a string.
    in_string: bool,
    /// Whether a value comes next, rather than a member name.
    value_next: bool,
}

impl Scan<'_> {
    fn run(&mut self) -> Option<()> {
        let bytes = self.text.as_bytes();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            if self.open.is_empty() && !matches!(byte, b'{' | b'[' | b' ' | b'\t' | b'\n' | b'\r') {
                return None;
            }
            at = match byte {
                b'{' => self.push('}', at),
                b'[' => self.push(']', at),
                b'}' | b']' => self.pop(byte, at)?,
                b':' => {
                    self.value_next = true;
                    at + 1
                }
                b',' => {
                    self.value_next = self.open.last() == Some(&']');
                    at + 1
                }
                b'"' => self.string(at + 1),
                b' ' | b'\t' | b'\n' | b'\r' => at + 1,
                _ => self.scalar(at),
            };
        }
        Some(())
    }

    fn push(&mut self, closer: char, at: usize) -> usize {
        self.open.push(closer);
        self.value_next = closer == ']';
        self.value_ends(at + 1)
    }

    fn pop(&mut self, byte: u8, at: usize) -> Option<usize> {
        (self.open.pop()? == char::from(byte)).then(|| self.value_ends(at + 1))
    }

    fn value_ends(&mut self, end: usize) -> usize {
        self.safe = end;
        self.in_string = false;
        end
    }

    /// A string whose contents begin at `start`; returns where it ends.
    fn string(&mut self, start: usize) -> usize {
        let bytes = self.text.as_bytes();
        let mut at = start;
        while let Some(step) = bytes
            .get(at..)
            .and_then(|rest| memchr::memchr2(b'"', b'\\', rest))
        {
            at += step;
            if bytes.get(at) == Some(&b'"') {
                return if self.value_next {
                    self.value_ends(at + 1)
                } else {
                    at + 1
                };
            }
            match escape_length(bytes.get(at..).unwrap_or_default()) {
                Some(length) => at += length,
                None => return self.string_is_cut(at),
            }
        }
        self.string_is_cut(bytes.len())
    }

    fn string_is_cut(&mut self, safe: usize) -> usize {
        if self.value_next {
            self.safe = safe;
            self.in_string = true;
        }
        self.text.len()
    }

    /// A number or keyword; only the next character shows that it is complete.
    fn scalar(&mut self, start: usize) -> usize {
        let rest = self.text.as_bytes().get(start..).unwrap_or_default();
        let ends = |byte: &u8| {
            matches!(
                byte,
                b',' | b'}' | b']' | b':' | b'"' | b' ' | b'\t' | b'\n' | b'\r'
            )
        };
        match rest.iter().position(ends) {
            Some(length) => self.value_ends(start + length),
            None => self.text.len(),
        }
    }
}

/// The length of the escape (or surrogate pair) at the beginning of the text; `None` if it is truncated.
fn escape_length(text: &[u8]) -> Option<usize> {
    if *text.get(1)? != b'u' {
        return Some(2);
    }
    let code = std::str::from_utf8(text.get(2..6)?).ok()?;
    let is_high_surrogate =
        u16::from_str_radix(code, 16).is_ok_and(|unit| (0xD800..0xDC00).contains(&unit));
    if is_high_surrogate {
        text.get(11).map(|_| 12)
    } else {
        Some(6)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::complete;

    #[test]
    fn open_brackets_are_closed() {
        let check =
            |text: &str, expected: Value| assert_eq!(complete(text), Some(expected), "{text}");
        check("{", json!({}));
        check(r#"{"pa"#, json!({}));
        check(r#"{"path""#, json!({}));
        check(r#"{"path":"#, json!({}));
        check(r#"{"path": ""#, json!({"path": ""}));
        check(r#"{"path": "src/ma"#, json!({"path": "src/ma"}));
        check(r#"{"path": "a","#, json!({"path": "a"}));
        check(
            r#"{"path": "a", "edits": [{"old_text": "x", "new"#,
            json!({"path": "a", "edits": [{"old_text": "x"}]}),
        );
        check(
            r#"{"edits": [{}, {"a": [1, 2"#,
            json!({"edits": [{}, {"a": [1]}]}),
        );
        check(r#"[{"a": "b"}"#, json!([{"a": "b"}]));
        check(r#"{"a": {"b": "c"}}"#, json!({"a": {"b": "c"}}));
    }

    #[test]
    fn truncated_values_are_dropped() {
        let check =
            |text: &str, expected: Value| assert_eq!(complete(text), Some(expected), "{text}");
        check(r#"{"a": 12"#, json!({}));
        check(r#"{"a": 12 "#, json!({"a": 12}));
        check(r#"{"a": tru"#, json!({}));
        check(r#"{"a": "x\"#, json!({"a": "x"}));
        check(r#"{"a": "x\n"#, json!({"a": "x\n"}));
        check(r#"{"a": "x\u00e"#, json!({"a": "x"}));
        check(r#"{"a": "x\u00e9"#, json!({"a": "xé"}));
        check(r#"{"a": "x\ud83d\ude0"#, json!({"a": "x"}));
        check(r#"{"a": "x\ud83d\ude00"#, json!({"a": "x😀"}));
    }

    #[test]
    fn non_json_is_rejected() {
        for text in [
            "",
            "  ",
            "12",
            "}",
            "[}",
            "{\"a\": }",
            "{\"a\": 1} x",
            "hello",
            "{\"a\" \"b\"}",
        ] {
            assert_eq!(complete(text), None, "{text}");
        }
    }

    fn is_prefix(part: &Value, whole: &Value) -> bool {
        match (part, whole) {
            (Value::String(part), Value::String(whole)) => whole.starts_with(part.as_str()),
            (Value::Array(part), Value::Array(whole)) => {
                part.len() <= whole.len()
                    && part
                        .iter()
                        .zip(whole)
                        .all(|(part, whole)| is_prefix(part, whole))
            }
            (Value::Object(part), Value::Object(whole)) => part
                .iter()
                .all(|(key, part)| whole.get(key).is_some_and(|whole| is_prefix(part, whole))),
            _ => part == whole,
        }
    }

    fn object() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f32>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        let value = leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::hash_map(any::<String>(), inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        });
        prop::collection::hash_map(any::<String>(), value, 0..5)
            .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>()))
    }

    /// The same JSON with every character that is not ASCII as an escape.
    fn escaped(json: &str) -> String {
        let unit = |unit: u16| match u8::try_from(unit) {
            Ok(ascii) if ascii.is_ascii() => char::from(ascii).to_string(),
            _ => format!("\\u{unit:04x}"),
        };
        json.encode_utf16().map(unit).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn each_prefix_parses_as_a_prefix(whole in object(), pretty: bool, escape: bool) {
            let text = if pretty { format!("{whole:#}") } else { whole.to_string() };
            let text = if escape { escaped(&text) } else { text };
            prop_assert_eq!(complete(&text), Some(whole.clone()));
            for end in (1..text.len()).filter(|&end| text.is_char_boundary(end)) {
                let part = complete(text.get(..end).unwrap());
                prop_assert!(part.as_ref().is_some_and(|part| is_prefix(part, &whole)), "{:?} of {}", part, text);
            }
        }

        #[test]
        fn never_panics(text in "[\\[\\]{}:,\"\\\\u0-9aé ]{0,40}") {
            let _ = complete(&text);
        }
    }
}
