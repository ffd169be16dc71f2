//! Converts between message bodies and messages. A body that is not a JSON-RPC 2.0 message gets an error that says what
//! is wrong, and its id is preserved byte for byte so that it can be answered.

use lsp_server::{ErrorCode, ResponseError};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use serde_with::skip_serializing_none;

/// A request's id: an integer or a string.
pub type RequestId = Value;

/// A message of one of JSON-RPC's three kinds.
#[derive(Debug)]
pub(crate) enum Message {
    Request(Request),
    Notification(Notification),
    Response(Response),
}

/// A request from the other side.
#[derive(Debug)]
pub struct Request {
    /// Its id.
    pub id: RequestId,
    /// The method to call.
    pub method: String,
    /// Its params.
    pub params: Params,
}

/// A notification from the other side.
#[derive(Debug)]
pub struct Notification {
    /// The method.
    pub method: String,
    /// Its params.
    pub params: Params,
}

/// A response from the other side.
#[derive(Debug)]
pub(crate) struct Response {
    pub(super) id: RequestId,
    result: Option<Box<RawValue>>,
    error: Option<Box<RawValue>>,
}

/// Params as raw JSON: an object, an array or nothing. They are deserialized once, directly into the type a handler
/// needs. A tree of values would take thirty times the memory of the text, and a hostile client sends such texts to
/// methods that do not exist.
#[derive(Debug, Clone, Default)]
pub struct Params(Option<Box<RawValue>>);

impl Params {
    /// Deserializes the params; absent params are read as `null`.
    ///
    /// # Errors
    /// The params do not match `T`.
    pub fn read<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        read(self.0.as_deref().unwrap_or(RawValue::NULL))
    }
}

fn read<T: DeserializeOwned>(json: &RawValue) -> serde_json::Result<T> {
    let json = json.get();
    serde_json::from_str(json).or_else(|_| serde_json::from_str(&with_whole_characters(json)))
}

/// JSON with U+FFFD for each half of a surrogate pair, which a string of JavaScript may have. It is as long in UTF-16, so
/// that positions in a document stay right.
fn with_whole_characters(json: &str) -> String {
    let half = |escape: Option<&str>| {
        let digits = escape?.strip_prefix("\\u")?.get(..4)?;
        let unit = u16::from_str_radix(digits, 16).ok()?;
        (0xd800..0xe000).contains(&unit).then_some(unit)
    };
    let mut whole = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let (text, escape) = rest.split_at(at);
        let length = match (half(Some(escape)), half(escape.get(6..))) {
            (None, _) => 2,
            (Some(..0xdc00), Some(0xdc00..)) => 12,
            (Some(_), _) => 6,
        };
        let (escape, after) = escape.split_at(length);
        whole.push_str(text);
        whole.push_str(if length == 6 { "\\ufffd" } else { escape });
        rest = after;
    }
    whole + rest
}

impl Response {
    /// The outcome. An error object that does not match the standard still ends the wait.
    pub(super) fn outcome(&self) -> Result<Value, ResponseError> {
        match (&self.error, &self.result) {
            (Some(error), _) => {
                Err(serde_json::from_str(error.get())
                    .unwrap_or_else(|_| unknown_error(error.get())))
            }
            (None, Some(result)) => read(result).map_err(|error| unknown_error(error.to_string())),
            (None, None) => Ok(Value::Null),
        }
    }
}

fn unknown_error(message: impl Into<String>) -> ResponseError {
    ResponseError {
        code: ErrorCode::UnknownErrorCode as i32,
        message: message.into(),
        data: None,
    }
}

/// A body that is not a message.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Malformed {
    /// The id as written, `null` if there was none. Anything but an integer or a string.
    pub id: Box<RawValue>,
    /// `ParseError` or `InvalidRequest`.
    pub code: ErrorCode,
    /// What is wrong.
    pub message: String,
}

impl Malformed {
    pub(crate) fn too_long() -> Self {
        Self::invalid(None, "message longer than 64 MiB")
    }

    fn parse(message: impl Into<String>) -> Self {
        Self {
            id: RawValue::NULL.to_owned(),
            code: ErrorCode::ParseError,
            message: message.into(),
        }
    }

    fn invalid(id: Option<&RawValue>, message: impl Into<String>) -> Self {
        let id = id.unwrap_or(RawValue::NULL).to_owned();
        Self {
            id,
            code: ErrorCode::InvalidRequest,
            message: message.into(),
        }
    }
}

/// The members of a message as raw JSON, so that the id is known whatever else is wrong.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// Distinguishes `"id": null` from no id at all.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Parses a body; `None` for a response that matches no possible request.
pub(crate) fn parse(body: &[u8]) -> Result<Option<Message>, Box<Malformed>> {
    let text = str::from_utf8(body)
        .map_err(|error| Malformed::parse(format!("body is not UTF-8: {error}")))?;
    // Checked by hand: derived structs would accept an array (a batch) as their members in order.
    if !text.trim_ascii_start().starts_with('{') {
        return Err(Box::new(match serde_json::from_str::<IgnoredAny>(text) {
            Ok(_) => Malformed::invalid(
                None,
                "a message is a JSON object; batches are not supported",
            ),
            Err(error) => Malformed::parse(format!("body is not JSON: {error}")),
        }));
    }
    let envelope: Envelope<'_> = serde_json::from_str(text).map_err(|error| {
        if error.is_data() {
            Malformed::invalid(None, format!("not a JSON-RPC message: {error}"))
        } else {
            Malformed::parse(format!("body is not JSON: {error}"))
        }
    })?;
    envelope.into_message().map_err(Box::new)
}

impl Envelope<'_> {
    fn into_message(self) -> Result<Option<Message>, Malformed> {
        let raw = self.id;
        let invalid = |message: &str| Malformed::invalid(raw, message);
        let id = raw.map(request_id);
        let Some(method) = self.method else {
            // A response is never answered, whatever is wrong with it: two such peers would answer each other forever.
            let (result, error) = (
                self.result.map(ToOwned::to_owned),
                self.error.map(ToOwned::to_owned),
            );
            if result.is_none() && error.is_none() {
                return Err(invalid("neither method nor result"));
            }
            return Ok(id
                .flatten()
                .map(|id| Message::Response(Response { id, result, error })));
        };
        if self
            .jsonrpc
            .is_none_or(|version| version.get() != "\"2.0\"")
        {
            return Err(invalid("`jsonrpc` is not \"2.0\""));
        }
        let method =
            serde_json::from_str(method.get()).map_err(|_| invalid("`method` is not a string"))?;
        if self
            .params
            .is_some_and(|params| !params.get().starts_with(['{', '[']))
        {
            return Err(invalid("`params` is neither an object nor an array"));
        }
        let params = Params(self.params.map(ToOwned::to_owned));
        match id {
            None => Ok(Some(Message::Notification(Notification { method, params }))),
            Some(Some(id)) => Ok(Some(Message::Request(Request { id, method, params }))),
            Some(None) => Err(invalid("`id` is neither an integer nor a string")),
        }
    }
}

/// `None` if it is no integer or string. Anything larger is not even read.
fn request_id(written: &RawValue) -> Option<RequestId> {
    if written.get().starts_with(['{', '[']) {
        return None;
    }
    let id: Value = read(written).ok()?;
    (id.is_i64() || id.is_u64() || id.is_string()).then_some(id)
}

/// The body of a request (with an id) or a notification (without); `null` params are left out.
pub(crate) fn call(
    id: Option<i32>,
    method: &str,
    params: &impl Serialize,
) -> serde_json::Result<Vec<u8>> {
    #[skip_serializing_none]
    #[derive(Serialize)]
    struct Call<'a, P> {
        jsonrpc: &'a str,
        id: Option<i32>,
        method: &'a str,
        params: &'a P,
    }
    const NONE: &[u8] = br#","params":null}"#;
    let mut body = serde_json::to_vec(&Call {
        jsonrpc: "2.0",
        id,
        method,
        params,
    })?;
    if body.ends_with(NONE) {
        body.truncate(body.len() - NONE.len());
        body.push(b'}');
    }
    Ok(body)
}

/// The body of a response.
pub(crate) fn answer<T: Serialize>(
    id: &impl Serialize,
    result: Result<&T, &ResponseError>,
) -> serde_json::Result<Vec<u8>> {
    #[skip_serializing_none]
    #[derive(Serialize)]
    struct Answer<'a, I, T> {
        jsonrpc: &'a str,
        id: &'a I,
        result: Option<&'a T>,
        error: Option<&'a ResponseError>,
    }
    serde_json::to_vec(&Answer {
        jsonrpc: "2.0",
        id,
        result: result.ok(),
        error: result.err(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A one-line description of a body, for tests.
    fn describe(body: &[u8]) -> String {
        match parse(body) {
            Ok(None) => "nothing".into(),
            Ok(Some(Message::Request(Request { id, method, params }))) => {
                format!("request {id} {method} {}", params.read::<Value>().unwrap())
            }
            Ok(Some(Message::Notification(Notification { method, params }))) => {
                format!("notification {method} {}", params.read::<Value>().unwrap())
            }
            Ok(Some(Message::Response(response))) => match response.outcome() {
                Ok(value) => format!("response {} {value}", response.id),
                Err(error) => format!(
                    "response {} error {} {}",
                    response.id, error.code, error.message
                ),
            },
            Err(malformed) => format!("{} id {}", malformed.code as i32, malformed.id),
        }
    }

    fn check(body: &str, expected: &str) {
        assert_eq!(describe(body.as_bytes()), expected, "{body}");
    }

    #[test]
    fn message_kinds_are_distinguished() {
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[]}}"#,
            r#"request 1 m {"a":[]}"#,
        );
        check(
            r#"{"params":null,"method":"m","id":"x","jsonrpc":"2.0","more":1}"#,
            r#"request "x" m null"#,
        );
        for id in ["-3", "9007199254740993", "18446744073709551615"] {
            check(
                &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#),
                &format!("request {id} m null"),
            );
        }
        check(r#" {"jsonrpc":"2.0","method":"m"}"#, "notification m null");
        check(
            r#"{"jsonrpc":"2.0","id":1,"result":null}"#,
            "response 1 null",
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"result":2,"error":null}"#,
            "response 1 2",
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}"#,
            "response 1 error 1 x",
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"error":"x"}"#,
            r#"response 1 error -32001 "x""#,
        );
        check(
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#,
            "nothing",
        );
        check(r#"{"jsonrpc":"2.0","result":1}"#, "nothing");
    }

    #[test]
    fn invalid_json_is_a_parse_error() {
        for body in [
            "",
            "{",
            r#"{"jsonrpc":"2.0","id":5,"method":"#,
            "nope",
            "[1,",
            r#"{"id":5}}"#,
        ] {
            check(body, "-32700 id null");
        }
        assert_eq!(
            describe(b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}"),
            "-32700 id null"
        );
    }

    #[test]
    fn json_that_is_not_a_message_is_an_invalid_request() {
        for body in [
            "1",
            "null",
            "\"hi\"",
            "[]",
            r#"[{"jsonrpc":"2.0","id":7,"method":"m"}]"#,
            "{}",
            r#"{"id":1,"id":2}"#,
        ] {
            check(body, "-32600 id null");
        }
        for body in [
            r#"{"jsonrpc":"2.0","id":5}"#,
            r#"{"jsonrpc":"1.0","id":5,"method":"m"}"#,
            r#"{"id":5,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":5,"method":7}"#,
            r#"{"jsonrpc":"2.0","id":5,"method":"m","params":"x"}"#,
        ] {
            check(body, "-32600 id 5");
        }
    }

    #[test]
    fn unusual_ids_are_echoed_byte_for_byte() {
        for id in [
            "null",
            "true",
            "1.50",
            "1e3",
            "-99999999999999999999999",
            r#"{"a" : 1}"#,
            "[1]",
        ] {
            check(
                &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#),
                &format!("-32600 id {id}"),
            );
        }
    }

    #[test]
    fn deep_nesting_is_refused_without_recursion() {
        let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
        check(&deep, "-32600 id null");
        let body = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"m","params":{deep}}}"#);
        let Ok(Some(Message::Request(request))) = parse(body.as_bytes()) else {
            panic!("a request")
        };
        assert!(request.params.read::<Value>().is_err());
        assert!(request.params.read::<IgnoredAny>().is_ok());
    }

    #[test]
    fn messages_are_encoded_per_json_rpc() {
        let text = |body: serde_json::Result<Vec<u8>>| String::from_utf8(body.unwrap()).unwrap();
        assert_eq!(
            text(call(None, "m", &())),
            r#"{"jsonrpc":"2.0","method":"m"}"#
        );
        assert_eq!(
            text(call(Some(3), "m", &json!({"params": null}))),
            r#"{"jsonrpc":"2.0","id":3,"method":"m","params":{"params":null}}"#
        );
        let id = RequestId::from("a\"b");
        assert_eq!(
            text(answer(&id, Ok(&json!(null)))),
            r#"{"jsonrpc":"2.0","id":"a\"b","result":null}"#
        );
        let error = ResponseError {
            code: -32601,
            message: "no".into(),
            data: None,
        };
        assert_eq!(
            text(answer::<()>(&RawValue::NULL, Err(&error))),
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no"}}"#
        );
    }
}
