//! Parses JSON that has not fully arrived, so that an edit can be shown while its arguments stream.
//!
//! Invariant: the result for a prefix is a prefix of the result for the whole (of strings, arrays and objects); nothing
//! is shown that would have to be retracted.
//!
//! A truncated number, keyword, escape or member name is left out. Runs in linear time.

use serde_json::Value;

/// The longest escape of a character in a string, without its last byte.
const ESCAPE: usize = 11;

/// The value of a prefix of a JSON object or array, with its open strings, arrays and objects closed. `None` while
/// there is nothing to show, and for text that is not JSON.
#[must_use]
pub fn complete(text: &str) -> Option<Value> {
    let bytes = text.as_bytes();
    let (mut open, mut is_value, mut at) = (Vec::new(), false, 0);
    // Up to this byte the text is a value once what is open is closed. Both ends of a container are such places, so the
    // containers open at the last one are those open at the end.
    let mut safe = 0;
    let mut quote = "";
    while let Some(byte) = bytes.get(at) {
        let begun = at;
        at += 1;
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => continue,
            b'{' | b'[' => {
                is_value = *byte == b'[';
                open.push(if is_value { ']' } else { '}' });
            }
            _ if open.is_empty() => return None,
            b'}' | b']' => _ = open.pop(),
            b':' | b',' => {
                is_value = *byte == b':' || open.last() == Some(&']');
                continue;
            }
            b'"' => {
                while bytes.get(at).is_some_and(|byte| *byte != b'"') {
                    at += 1 + usize::from(bytes.get(at) == Some(&b'\\'));
                }
                at += 1;
                if !is_value {
                    continue;
                }
                if at > bytes.len() {
                    // Less, if the text ends in an escape.
                    let is_string = |end: &usize| {
                        let string = text.get(begun..*end).map(|begun| format!("{begun}\""));
                        string.is_some_and(|it| serde_json::from_str::<String>(&it).is_ok())
                    };
                    let least = bytes.len().saturating_sub(ESCAPE);
                    at = (least..=bytes.len()).rev().find(is_string)?;
                    (safe, quote) = (at, "\"");
                    break;
                }
            }
            _ => {
                let ends = |byte: &u8| b",}]:\" \t\n\r".contains(byte);
                // Only the next character shows that a number or keyword is complete.
                let Some(length) = bytes.iter().skip(at).position(ends) else {
                    break;
                };
                at += length;
            }
        }
        safe = at;
    }
    let mut closed = text.get(..safe)?.to_owned() + quote;
    closed.extend(open.iter().rev());
    serde_json::from_str(&closed).ok()
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
