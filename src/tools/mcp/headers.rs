//! The HTTP headers of the protocol since 2026-07-28: what a request is about, and the parameters of a tool that its
//! schema mirrors into headers (`x-mcp-header`).
//!
//! Invariant: a value in a header is the value in the message; one that a header cannot carry is encoded.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

/// The keyword of a schema.
const KEYWORD: &str = "x-mcp-header";
/// Keywords whose values are data rather than schemas.
const DATA: [&str; 4] = ["const", "default", "enum", "examples"];
/// The largest integer that all JSON parsers read exactly.
const SAFE: i64 = (1 << 53) - 1;

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The headers that describe a message.
pub(super) fn describing(message: &Value) -> HeaderMap {
    let method = message["method"].as_str().unwrap_or_default();
    let params = &message["params"];
    let name = match method {
        "tools/call" | "prompts/get" => params["name"].as_str(),
        "resources/read" => params["uri"].as_str(),
        _ => None,
    };
    [(METHOD, Some(method)), (NAME, name)]
        .into_iter()
        .filter_map(|(header, value)| Some((header, encoded(value?)?)))
        .collect()
}

/// The parameters of a tool that are mirrored into headers.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Mirrored(Vec<Parameter>);

#[derive(Debug, Clone, PartialEq)]
struct Parameter {
    /// The names that lead to it in the arguments.
    path: Vec<String>,
    header: HeaderName,
}

impl Mirrored {
    /// The mirrored parameters of a schema.
    ///
    /// # Errors
    /// An annotation breaks the rules: the tool must not be offered.
    pub fn of(schema: &Value) -> Result<Self, String> {
        let mut mirrored = Self::default();
        mirrored.collect(schema, &[])?;
        Ok(mirrored)
    }

    /// Walks the properties of a schema, the only way to a parameter that may be mirrored.
    fn collect(&mut self, schema: &Value, path: &[String]) -> Result<(), String> {
        let Value::Object(keywords) = schema else {
            return Ok(());
        };
        for (keyword, value) in keywords {
            match (keyword.as_str(), value) {
                (KEYWORD, name) => self.add(schema, name, path)?,
                ("properties", Value::Object(properties)) => {
                    for (name, property) in properties {
                        self.collect(property, &[path, std::slice::from_ref(name)].concat())?;
                    }
                }
                (keyword, _) if DATA.contains(&keyword) => {}
                (keyword, value) if mentions(value) => {
                    return Err(format!("it is below `{keyword}`"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn add(&mut self, schema: &Value, name: &Value, path: &[String]) -> Result<(), String> {
        let name = name.as_str().unwrap_or_default();
        if path.is_empty() {
            return Err("it is not on a parameter".to_owned());
        }
        let kinds = match &schema["type"] {
            Value::Array(kinds) => kinds.as_slice(),
            kind => std::slice::from_ref(kind),
        };
        let mut kinds = kinds.iter().filter(|kind| **kind != "null").peekable();
        let is_primitive = |kind: &Value| {
            ["string", "integer", "boolean"]
                .iter()
                .any(|simple| kind == simple)
        };
        if kinds.peek().is_none() || !kinds.all(is_primitive) {
            return Err(format!("`{}` is not a simple value", path.join(".")));
        }
        let header = (!name.is_empty())
            .then(|| HeaderName::try_from(format!("mcp-param-{name}")).ok())
            .flatten()
            .ok_or_else(|| format!("{name:?} is not a valid header name"))?;
        if self.0.iter().any(|other| other.header == header) {
            return Err(format!("{name:?} is used twice"));
        }
        self.0.push(Parameter {
            path: path.to_vec(),
            header,
        });
        Ok(())
    }

    /// The headers for a call with these arguments; a parameter that is absent or null has none.
    pub fn headers(&self, arguments: &Value) -> HeaderMap {
        let header = |parameter: &Parameter| {
            let value = parameter
                .path
                .iter()
                .try_fold(arguments, |value, name| value.get(name))?;
            Some((parameter.header.clone(), encoded(&as_text(value)?)?))
        };
        self.0.iter().filter_map(header).collect()
    }
}

/// Whether a schema is annotated anywhere.
fn mentions(schema: &Value) -> bool {
    match schema {
        Value::Object(keywords) => keywords.iter().any(|(keyword, value)| {
            keyword == KEYWORD && value.is_string()
                || !DATA.contains(&keyword.as_str()) && mentions(value)
        }),
        Value::Array(schemas) => schemas.iter().any(mentions),
        _ => false,
    }
}

fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => {
            let whole = number.as_i64().or_else(|| {
                // Some models write `42.0`.
                #[expect(clippy::cast_possible_truncation, reason = "checked on the next line")]
                let whole = number.as_f64()? as i64;
                number.as_f64()?.fract().eq(&0.0).then_some(whole)
            })?;
            (-SAFE..=SAFE).contains(&whole).then(|| whole.to_string())
        }
        _ => None,
    }
}

/// A header's value: the text itself, or in base64 where a header cannot carry it.
fn encoded(text: &str) -> Option<HeaderValue> {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'))
        && text.trim_matches([' ', '\t']).len() == text.len()
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    if is_plain {
        return HeaderValue::try_from(text).ok();
    }
    HeaderValue::try_from(format!("=?base64?{}?=", STANDARD.encode(text))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[track_caller]
    fn check(schema: &Value, expected: Result<&[&str], &str>) {
        let named = Mirrored::of(schema).map(|mirrored| {
            let names = mirrored
                .0
                .iter()
                .map(|parameter| parameter.header.as_str().to_owned());
            names.collect::<Vec<_>>()
        });
        let expected = expected.map(|names| names.iter().map(|&name| name.to_owned()).collect());
        assert_eq!(named, expected.map_err(str::to_owned), "{schema}");
    }

    #[test]
    fn only_simple_parameters_are_mirrored() {
        let of = |kind: &str, name: Value| json!({ "type": kind, KEYWORD: name });
        let tool = |property: Value| json!({ "type": "object", "properties": { "a": property } });
        check(
            &tool(of("string", json!("Region"))),
            Ok(&["mcp-param-region"]),
        );
        let nested = tool(tool(of("boolean", json!("Deep"))));
        check(&nested, Ok(&["mcp-param-deep"]));
        check(&tool(json!({ "type": "string" })), Ok(&[]));
        let named = json!({ "properties": { KEYWORD: { "type": "string" } } });
        check(&named, Ok(&[]));
        check(&tool(json!({ "default": { KEYWORD: "x" } })), Ok(&[]));
        let simple = Err("`a` is not a simple value");
        check(&tool(of("number", json!("N"))), simple);
        check(&tool(of("object", json!("N"))), simple);
        check(&tool(of("null", json!("N"))), simple);
        check(&tool(json!({ KEYWORD: "N" })), simple);
        for name in ["", "a b", "a\r\nb", "ä", "a:b"] {
            let why = format!("{name:?} is not a valid header name");
            check(&tool(of("string", json!(name))), Err(&why));
        }
        check(
            &tool(of("string", json!(7))),
            Err("\"\" is not a valid header name"),
        );
        let twice = json!({ "properties": { "a": of("string", json!("X")), "b": of("string", json!("x")) } });
        check(&twice, Err("\"x\" is used twice"));
        check(&of("string", json!("X")), Err("it is not on a parameter"));
        for keyword in ["items", "anyOf", "if", "not", "$defs"] {
            let why = format!("it is below `{keyword}`");
            check(
                &tool(json!({ keyword: [of("string", json!("X"))] })),
                Err(&why),
            );
        }
    }

    #[test]
    fn values_become_text() {
        let schema = json!({ "properties": { "a": { "type": "string", KEYWORD: "A" } } });
        let mirrored = Mirrored::of(&schema).unwrap();
        let check = |value: Value, expected: Option<&str>| {
            let headers = mirrored.headers(&json!({ "a": value }));
            let sent = headers
                .get("mcp-param-a")
                .map(|value| value.to_str().unwrap());
            assert_eq!(sent, expected, "{value}");
        };
        check(json!("us-west1"), Some("us-west1"));
        check(
            json!("Hello, 世界"),
            Some("=?base64?SGVsbG8sIOS4lueVjA==?="),
        );
        check(json!(" padded "), Some("=?base64?IHBhZGRlZCA=?="));
        check(json!("line1\nline2"), Some("=?base64?bGluZTEKbGluZTI=?="));
        check(
            json!("=?base64?literal?="),
            Some("=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        );
        check(json!(-7), Some("-7"));
        check(json!(42.0), Some("42"));
        check(json!(4.5), None);
        check(json!(1_u64 << 60), None);
        check(json!(false), Some("false"));
        check(json!(null), None);
        check(json!([1]), None);
        assert!(mirrored.headers(&json!({})).is_empty());
    }

    proptest! {
        /// Any value becomes one header from which it can be read back.
        #[test]
        fn any_text_survives(text in ".*") {
            let value = encoded(&text).unwrap();
            let value = value.to_str().unwrap();
            let inner = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
            let read = match inner {
                Some(inner) => String::from_utf8(STANDARD.decode(inner).unwrap()).unwrap(),
                None => value.to_owned(),
            };
            prop_assert_eq!(read, text);
        }
    }
}
