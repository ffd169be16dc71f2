//! Streams of every API and provider, decoded whole and in six cuts: our own in `tests/streams`, and recorded ones
//! where the shared folder has them.
#![expect(clippy::disallowed_methods, reason = "the tests' own data")]
#![expect(
    clippy::print_stderr,
    reason = "how many streams were decoded must be seen"
)]

use std::collections::HashSet;
use std::path::Path;

use bytes::BytesMut;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::codec::Decoder as _;

use crate::model::{
    Api, Arguments, Batch, Collected, Collector, Failure, Finish, Outcome, StreamDecoder,
};
use crate::tests::shared;
use crate::text::sse::SseDecoder;

#[derive(Debug, Deserialize)]
struct Row {
    file: String,
    expected: String,
    api: String,
    acceptance: bool,
}

fn decode(api: Api, cuts: &mut dyn Iterator<Item = &[u8]>) -> Collected {
    let taken = HashSet::new();
    let (mut decoder, mut batch, mut collector) = (
        StreamDecoder::new(api),
        Batch::default(),
        Collector::new(&taken),
    );
    let mut keep = |batch: &mut Batch| {
        while let Some(event) = batch.pop() {
            collector.push(&event);
        }
    };
    let mut end: Result<(), Failure> = Ok(());
    for cut in cuts {
        end = decoder.feed(cut, &mut batch);
        keep(&mut batch);
        if end.is_err() || decoder.done() {
            break;
        }
    }
    let ended = decoder.end(&mut batch);
    keep(&mut batch);
    collector.finish(end.and(ended))
}

/// Cuts of 1 to 40 bytes, the same in every run.
fn random(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let (mut rest, mut seed) = (bytes, 0x2545_f491_4f6c_dd1d_u64);
    std::iter::from_fn(move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        let (cut, tail) = rest
            .split_at_checked(1 + (seed % 40) as usize)
            .unwrap_or((rest, &[]));
        rest = tail;
        (!cut.is_empty()).then_some(cut)
    })
}

fn with_line_ends(bytes: &[u8], end: &[u8]) -> Vec<u8> {
    let unix = bytes
        .split(|byte| *byte == b'\r')
        .collect::<Vec<_>>()
        .concat();
    unix.split(|byte| *byte == b'\n')
        .collect::<Vec<_>>()
        .join(end)
}

/// What is wrong with the events decoded from a stream, as a whole and in cuts.
fn check(api: &str, bytes: &[u8], expected: &Value) -> Vec<String> {
    let api = match api {
        "responses" => Api::Responses,
        "messages" => Api::Messages,
        _ => Api::Chat,
    };
    let whole = decode(api, &mut std::iter::once(bytes));
    let mut wrong = differences(&whole, expected);
    let bom = [b"\xef\xbb\xbf", bytes].concat();
    let (crlf, cr) = (with_line_ends(bytes, b"\r\n"), with_line_ends(bytes, b"\r"));
    let cuts: [(&str, Collected); 6] = [
        ("1 byte", decode(api, &mut bytes.chunks(1))),
        ("random", decode(api, &mut random(bytes))),
        ("CRLF", decode(api, &mut crlf.chunks(7))),
        ("CR", decode(api, &mut cr.chunks(5))),
        ("CR, 1 byte", decode(api, &mut cr.chunks(1))),
        ("BOM", decode(api, &mut bom.chunks(2))),
    ];
    for (name, cut) in cuts {
        if cut != whole {
            wrong.push(format!("{name} differs from whole"));
        }
    }
    wrong
}

/// Unexpected events of the stream.
fn differences(got: &Collected, expected: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut same = |what: &str, got: Value, expected: &Value| {
        if got != *expected {
            wrong.push(format!("{what}: got {got}, expected {expected}"));
        }
    };
    let message = &got.message;
    same("text", message.text.as_str().into(), &expected["text"]);
    same(
        "reasoning",
        got.reasoning.as_str().into(),
        &expected["reasoning"],
    );
    same(
        "refusal",
        message.refusal.as_str().into(),
        &expected["refusal"],
    );
    let outcome = match &got.outcome {
        Outcome::Ok => "ok",
        Outcome::Truncated => "truncated",
        Outcome::Error(_) => "error",
    };
    same("outcome", outcome.into(), &expected["outcome"]);
    if let Outcome::Error(error) = &got.outcome {
        let words = expected["error"]["message"].as_str().unwrap_or_default();
        same("error", error.message.contains(words).into(), &true.into());
    }
    let calls = expected["tool_calls"].as_array().unwrap();
    same("calls", message.calls.len().into(), &calls.len().into());
    for (call, expected) in message.calls.iter().zip(calls) {
        same("name", call.name.as_str().into(), &expected["name"]);
        same(
            "runnable",
            super::runnable(call).into(),
            &expected["runnable"],
        );
        if let Arguments::Object(object) = &call.arguments {
            same("arguments", object.clone().into(), &expected["arguments"]);
        }
        match expected["id"].as_str() {
            Some("") | None => same("made-up id", call.id.is_empty().into(), &false.into()),
            Some(_) => same("id", call.id.as_str().into(), &expected["id"]),
        }
    }
    if let Some(reason) = expected["finish_reason"].as_str() {
        let fits = got
            .finish
            .as_ref()
            .is_some_and(|finish| names(finish).contains(&reason));
        same(
            &format!("finish {:?} of {reason}", got.finish),
            fits.into(),
            &(reason != "failed").into(),
        );
    }
    usage(got, &expected["usage"], &mut same);
    wrong
}

/// Each API's word for a finish reason.
fn names(finish: &Finish) -> &[&str] {
    match finish {
        Finish::Stop => &["stop", "end_turn", "completed", "stop_sequence"],
        Finish::ToolCalls => &["tool_calls", "tool_use", "completed"],
        Finish::Length => &["length", "max_tokens", "incomplete"],
        Finish::ContentFilter(_) => &["content_filter", "incomplete"],
        Finish::Refusal => &["refusal"],
        Finish::Pause => &["pause_turn"],
        Finish::Malformed | Finish::Broken(_) | Finish::Other(_) => &[],
    }
}

fn usage(got: &Collected, expected: &Value, same: &mut impl FnMut(&str, Value, &Value)) {
    let Some(usage) = got.usage else {
        return same("usage", Value::Null, expected);
    };
    let number = |field: &str| expected[field].as_u64().unwrap_or_default();
    // The corpus keeps Anthropic's counts separate; tandem includes cached tokens in the input, as for every other provider.
    let separate = if expected.get("cache_write").is_some() {
        number("cached") + number("cache_write")
    } else {
        0
    };
    same(
        "input",
        usage.input.into(),
        &(number("input") + separate).into(),
    );
    same("output", usage.output.into(), &expected["output"]);
    same("cached", usage.cached.into(), &number("cached").into());
    if expected["reasoning"].is_u64() {
        same(
            "reasoning tokens",
            usage.reasoning.into(),
            &expected["reasoning"],
        );
    }
}

/// A stream of our own; a comment in its first line states the expected result.
fn own_stream(path: &Path) -> (Vec<u8>, Value) {
    let bytes = std::fs::read(path).unwrap();
    let text = std::str::from_utf8(&bytes).unwrap();
    let (first, _) = text.split_once('\n').unwrap();
    let expected = serde_json::from_str(first.strip_prefix(": ").unwrap()).unwrap();
    (bytes, expected)
}

fn own_streams() -> Vec<(String, Vec<u8>, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams");
    let mut found = Vec::new();
    for api in ["chat", "messages", "responses"] {
        for entry in std::fs::read_dir(folder.join(api)).unwrap() {
            let (bytes, expected) = own_stream(&entry.unwrap().path());
            found.push((api.to_owned(), bytes, expected));
        }
    }
    found
}

#[test]
fn recorded_streams_decode_to_the_expected_events() {
    let streams = own_streams();
    let wrong = |(api, bytes, expected): &(String, Vec<u8>, Value)| {
        let wrong = check(api, bytes, expected);
        (!wrong.is_empty()).then(|| format!("{}\n{wrong:#?}", String::from_utf8_lossy(bytes)))
    };
    let failed: Vec<_> = streams.iter().filter_map(wrong).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    eprintln!("own streams: {} × 7 cuts", streams.len());
}

/// Each expectation stated in a first line can fail.
#[test]
fn unexpected_events_fail_the_stream_check() {
    let demands = [
        "text",
        "reasoning",
        "refusal",
        "outcome",
        "finish_reason",
        "usage",
        "tool_calls",
    ];
    for (api, bytes, expected) in own_streams() {
        for demand in demands {
            let mut other = expected.clone();
            other[demand] = match demand {
                "usage" => serde_json::json!({ "input": 9_999, "output": 9_999, "cached": 9_999 }),
                "tool_calls" => serde_json::json!([{}, {}, {}, {}, {}, {}, {}]),
                _ => "something else".into(),
            };
            assert!(
                !check(&api, &bytes, &other).is_empty(),
                "{demand} is not checked: {expected}"
            );
        }
    }
}

/// The corpus leaves thoughts where a server that doesn't recognize them does: in the text.
fn separate_thoughts(expected: &mut Value) {
    let text = expected["text"].as_str().unwrap_or_default();
    let Some((thoughts, answer)) = text
        .strip_prefix("<think>")
        .and_then(|text| text.split_once("</think>"))
    else {
        return;
    };
    (expected["reasoning"], expected["text"]) = (thoughts.into(), answer.trim_start().into());
}

#[test]
fn shared_streams_decode_to_the_expected_events() {
    let Some(corpus) = shared("corpus/sse") else {
        return;
    };
    let (mut failed, mut counted) = (Vec::new(), 0);
    for folder in [corpus.clone(), corpus.join("quirks")] {
        let manifest = std::fs::read(folder.join("manifest.json")).unwrap();
        for row in serde_json::from_slice::<Vec<Row>>(&manifest).unwrap() {
            if !row.acceptance || row.api == "gemini" {
                continue;
            }
            let bytes = std::fs::read(folder.join(&row.file)).unwrap();
            let expected = std::fs::read(folder.join(&row.expected)).unwrap();
            let mut expected = serde_json::from_slice(&expected).unwrap();
            separate_thoughts(&mut expected);
            let wrong = check(&row.api, &bytes, &expected);
            counted += 1;
            if !wrong.is_empty() {
                failed.push(format!("{}: {}", row.file, wrong.join("; ")));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    eprintln!("recorded streams: {counted} × 7 cuts");
}

/// A framing case: the bytes, and the name and data of each event.
#[derive(Deserialize)]
struct Framing {
    name: String,
    input: String,
    events: Vec<(String, String)>,
}

#[test]
fn framing_follows_the_standard() {
    let cases = include_bytes!("../../../tests/streams/framing.json");
    let cases: Vec<Framing> = serde_json::from_slice(cases).unwrap();
    assert!(cases.len() > 30);
    for case in &cases {
        let input = case.input.as_bytes();
        for chunk in [1, 2, 3, input.len().max(1)] {
            assert_eq!(
                frame(input, chunk),
                case.events,
                "{} in chunks of {chunk}",
                case.name
            );
        }
    }
}

#[test]
fn invalid_utf8_is_replaced() {
    let replaced = |bytes: &[u8]| frame(bytes, 1);
    assert_eq!(
        replaced(b"data: \xff\xe2\x82 ok\n\n"),
        [("message".into(), "\u{fffd}\u{fffd} ok".into())]
    );
    assert_eq!(
        replaced(b"data: \xe2\x82"),
        [("message".into(), "\u{fffd}".into())]
    );
}

fn frame(input: &[u8], chunk: usize) -> Vec<(String, String)> {
    let (mut decoder, mut buf, mut events) = (SseDecoder::default(), BytesMut::new(), Vec::new());
    for piece in input.chunks(chunk) {
        buf.extend_from_slice(piece);
        while let Some(event) = decoder.decode(&mut buf).unwrap() {
            events.push(event);
        }
    }
    while let Some(event) = decoder.decode_eof(&mut buf).unwrap() {
        events.push(event);
    }
    let named = |name: &[u8]| {
        if name.is_empty() {
            "message".to_owned()
        } else {
            String::from_utf8_lossy(name).into()
        }
    };
    events
        .iter()
        .map(|event| (named(&event.name), event.text().into()))
        .collect()
}
