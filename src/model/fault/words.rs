//! Extracts the message from an error body of any shape.

use std::time::Duration;

use serde_json::Value;

/// The contents of an error body.
#[derive(Debug, Default)]
pub(super) struct Words {
    pub message: String,
    /// The provider's type and code, joined.
    pub kind: String,
    /// A status inside the body.
    pub status: Option<u16>,
    /// The request field that is wrong.
    pub param: Option<String>,
}

/// Longer texts are truncated: some gateways send whole pages.
const LONGEST: usize = 2000;

/// Parses JSON, a web page or plain text.
pub(super) fn read(body: &str) -> Words {
    let body = body.trim();
    let mut words = match serde_json::from_str::<Value>(body) {
        Ok(value) => of_value(&value),
        Err(_) => Words {
            message: body.to_owned(),
            ..Words::default()
        },
    };
    // Some gateways put the page of another into a JSON error.
    if words.message.trim_start().starts_with('<') && words.message.contains("</") {
        words.message = of_page(&words.message);
    }
    if let Some((at, _)) = words.message.char_indices().nth(LONGEST) {
        words.message.truncate(at);
        words.message.push('…');
    }
    words
}

/// Finds the error in `{"error": {…}}`, `{"error": "…"}`, `{"response": {"error": …}}`, or beside them.
fn of_value(value: &Value) -> Words {
    let value = value.get(0).unwrap_or(value);
    let there = |field: &&Value| !field.is_null();
    let error = ["error", "response"]
        .iter()
        .find_map(|field| value.get(field).filter(there))
        .unwrap_or(value);
    let error = error.get("error").filter(there).unwrap_or(error);
    let text = |field: &str| {
        error
            .get(field)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    let kind = ["type", "code", "status"]
        .iter()
        .filter_map(|field| text(field))
        .collect::<Vec<_>>()
        .join(" ");
    let status = ["code", "status", "status_code"].iter().find_map(|field| {
        let value = error.get(field)?;
        value.as_u64().or_else(|| value.as_str()?.parse().ok())
    });
    let status = status
        .and_then(|status| u16::try_from(status).ok())
        .filter(|status| (400..600).contains(status));
    Words {
        message: message(error),
        kind,
        status,
        param: text("param").map(str::to_owned),
    }
}

/// How long a message asks to wait, such as `7m12.5s`, `11.054s` or `120ms`.
pub(in crate::model) fn wait(message: &str) -> Option<Duration> {
    let mut ways = ["try again in ", "retry in "].into_iter();
    let (_, rest) = ways.find_map(|way| message.split_once(way))?;
    let text = rest.split_whitespace().next()?.trim_end_matches('.');
    let number = |text: &str| text.parse::<f64>().ok();
    let seconds = match text.strip_suffix("ms") {
        Some(ms) => number(ms)? / 1000.0,
        None => match text.strip_suffix('s')?.split_once('m') {
            Some((minutes, seconds)) => number(minutes)? * 60.0 + number(seconds)?,
            None => number(text.strip_suffix('s')?)?,
        },
    };
    Duration::try_from_secs_f64(seconds).ok()
}

/// The message; `OpenRouter` appends the upstream provider's message, validators a list of errors.
fn message(error: &Value) -> String {
    let text = |pointer: &str| {
        error
            .pointer(pointer)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    if let Some(message) = error.as_str().or_else(|| text("/message")) {
        // llama.cpp has the numbers in fields of their own.
        let number = |field: &str| error.get(field).and_then(Value::as_u64);
        if let (Some(sent), Some(window)) = (number("n_prompt_tokens"), number("n_ctx"))
            && !message.contains(&window.to_string())
        {
            return format!("{message} ({sent} of {window} tokens)");
        }
        return match text("/metadata/raw") {
            Some(raw) => format!("{message} ({})", read(raw).message),
            None => message.to_owned(),
        };
    }
    for list in ["/detail", "/message/detail", "/message"] {
        if let Some(complaints) = error.pointer(list).and_then(Value::as_array) {
            return complaints
                .iter()
                .map(complaint)
                .collect::<Vec<_>>()
                .join("; ");
        }
    }
    [
        "/detail",
        "/error_description",
        "/msg",
        "/base_resp/status_msg",
        "/title",
        "/type",
        "/code",
    ]
    .iter()
    .find_map(|pointer| text(pointer))
    .map_or_else(|| error.to_string(), str::to_owned)
}

/// One validator error: what, and in which field.
fn complaint(complaint: &Value) -> String {
    let what = complaint["msg"]
        .as_str()
        .map_or_else(|| complaint.to_string(), str::to_owned);
    let field = complaint["loc"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|step| match step {
            Value::String(step) => step.clone(),
            step => step.to_string(),
        });
    match field.collect::<Vec<_>>().join(".") {
        field if field.is_empty() => what,
        field => format!("{what} ({field})"),
    }
}

/// The title of a page, or else its text without tags.
fn of_page(page: &str) -> String {
    let title = page
        .split_once("<title>")
        .and_then(|(_, rest)| rest.split_once("</title>"));
    let text = match title {
        Some((title, _)) => title.to_owned(),
        None => page
            .split('<')
            .map(|tag| tag.split_once('>').map_or("", |(_, text)| text))
            .collect(),
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: &str, message: &str, kind: &str, status: Option<u16>) {
        let words = read(body);
        assert_eq!(
            (words.message.as_str(), words.kind.as_str(), words.status),
            (message, kind, status)
        );
    }

    #[test]
    fn error_messages_are_found_in_all_body_shapes() {
        let page = r#"{"error":{"message":"\n<html><head><title>502 Bad\nGateway</title></head></html>"}}"#;
        check(page, "502 Bad Gateway", "", None);
        check(
            r#"{"error":"<model> is unknown"}"#,
            "<model> is unknown",
            "",
            None,
        );
        check(
            r#"{"error":{"message":"no","type":"t","code":"c"}}"#,
            "no",
            "t c",
            None,
        );
        check(
            r#"{"error":{"message":"no","code":502}}"#,
            "no",
            "",
            Some(502),
        );
        check(r#"{"error":"no"}"#, "no", "", None);
        check(
            r#"[{"error":{"code":400,"message":"no","status":"INVALID"}}]"#,
            "no",
            "INVALID",
            Some(400),
        );
        check(
            r#"{"type":"error","error":{"type":"overloaded_error","message":"no"}}"#,
            "no",
            "overloaded_error",
            None,
        );
        check(
            r#"{"response":{"error":{"code":"x","message":"no"}}}"#,
            "no",
            "x",
            None,
        );
        check(
            r#"{"type":"error","code":"x","message":"no"}"#,
            "no",
            "error x",
            None,
        );
        check(
            r#"{"detail":[{"loc":["body","n"],"msg":"extra"}]}"#,
            "extra (body.n)",
            "",
            None,
        );
        check(
            r#"{"message":{"detail":[{"loc":["body"],"msg":"extra"}]}}"#,
            "extra (body)",
            "",
            None,
        );
        check(
            r#"{"id":"1","choices":null,"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}"#,
            "insufficient balance",
            "",
            None,
        );
        check(
            r#"{"error":{"message":"no","metadata":{"raw":"{\"error\":\"why\"}"}}}"#,
            "no (why)",
            "",
            None,
        );
        check(
            "<html><head><title>502 Bad\nGateway</title>",
            "502 Bad Gateway",
            "",
            None,
        );
        check("<p>Not <b>here</b></p>", "Not here", "", None);
        check("plain words", "plain words", "", None);
        check("", "", "", None);
    }
}
