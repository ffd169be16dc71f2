//! Streams that real providers sent, decoded whole and in every cut: what they must give is in the shared folder.
#![expect(clippy::disallowed_methods, reason = "test data from the shared folder")]
#![expect(clippy::print_stderr, reason = "an absent corpus must be seen, and so must the counts")]

use std::collections::HashSet;
use std::path::PathBuf;

use bytes::BytesMut;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::codec::Decoder as _;

use super::sse::SseDecoder;
use super::{Api, Arguments, Batch, Collected, Collector, Finish, ModelError, Outcome, StreamDecoder};

#[derive(Debug, Deserialize)]
struct Row {
    file: String,
    expected: String,
    api: String,
    acceptance: bool,
}

/// The shared folder's corpus; loud where it is absent.
fn corpus() -> Option<PathBuf> {
    let shared =
        std::env::var("TANDEM_SHARED").unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../shared").into());
    let corpus = PathBuf::from(shared).join("corpus/sse");
    if !corpus.is_dir() {
        eprintln!("SKIPPED: no corpus at {}", corpus.display());
        return None;
    }
    Some(corpus)
}

fn decode(api: Api, cuts: &mut dyn Iterator<Item = &[u8]>) -> Collected {
    let taken = HashSet::new();
    let (mut decoder, mut batch, mut collector) =
        (StreamDecoder::new(api, "m"), Batch::default(), Collector::new(&taken));
    let mut keep = |batch: &mut Batch| {
        while let Some(event) = batch.pop() {
            collector.push(&event);
        }
    };
    let mut end: Result<(), ModelError> = Ok(());
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
        let (cut, tail) = rest.split_at_checked(1 + (seed % 40) as usize).unwrap_or((rest, &[]));
        rest = tail;
        (!cut.is_empty()).then_some(cut)
    })
}

fn with_line_ends(bytes: &[u8], end: &[u8]) -> Vec<u8> {
    let unix = bytes.split(|byte| *byte == b'\r').collect::<Vec<_>>().concat();
    unix.split(|byte| *byte == b'\n').collect::<Vec<_>>().join(end)
}

fn check(row: &Row, bytes: &[u8], expected: &Value) -> Vec<String> {
    let api = match row.api.as_str() {
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
    if row.acceptance && row.api != "gemini" { wrong } else { Vec::new() }
}

/// What the stream gave that it should not have given.
fn differences(got: &Collected, expected: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut same = |what: &str, got: Value, expected: &Value| {
        if got != *expected {
            wrong.push(format!("{what}: got {got}, expected {expected}"));
        }
    };
    let message = &got.message;
    same("text", message.text.as_str().into(), &expected["text"]);
    same("reasoning", got.reasoning.as_str().into(), &expected["reasoning"]);
    same("refusal", message.refusal.as_str().into(), &expected["refusal"]);
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
        same("runnable", call.runnable().into(), &expected["runnable"]);
        if let Arguments::Object(object) = &call.arguments {
            same("arguments", object.clone().into(), &expected["arguments"]);
        }
        match expected["id"].as_str() {
            Some("") | None => same("made-up id", call.id.is_empty().into(), &false.into()),
            Some(_) => same("id", call.id.as_str().into(), &expected["id"]),
        }
    }
    if let Some(reason) = expected["finish_reason"].as_str() {
        let fits = got.finish.as_ref().is_some_and(|finish| names(finish).contains(&reason));
        same(&format!("finish {:?} of {reason}", got.finish), fits.into(), &(reason != "failed").into());
    }
    usage(got, &expected["usage"], &mut same);
    wrong
}

/// The words of the dialects for one finish.
fn names(finish: &Finish) -> &[&str] {
    match finish {
        Finish::Stop => &["stop", "end_turn", "completed", "stop_sequence"],
        Finish::ToolCalls => &["tool_calls", "tool_use", "completed"],
        Finish::Length => &["length", "max_tokens", "incomplete"],
        Finish::ContentFilter => &["content_filter", "incomplete"],
        Finish::Refusal => &["refusal"],
        Finish::Other(_) => &["pause_turn"],
    }
}

fn usage(got: &Collected, expected: &Value, same: &mut impl FnMut(&str, Value, &Value)) {
    let Some(usage) = got.usage else {
        return same("usage", Value::Null, expected);
    };
    let number = |field: &str| expected[field].as_u64().unwrap_or_default();
    // The corpus keeps Anthropic's numbers apart; ours has what came from the cache in the input, as everywhere else.
    let apart = if expected.get("cache_write").is_some() { number("cached") + number("cache_write") } else { 0 };
    same("input", usage.input.into(), &(number("input") + apart).into());
    same("output", usage.output.into(), &expected["output"]);
    same("cached", usage.cached.into(), &number("cached").into());
    if expected["reasoning"].is_u64() {
        same("reasoning tokens", usage.reasoning.into(), &expected["reasoning"]);
    }
}

#[test]
fn streams_give_what_their_provider_meant() {
    let Some(corpus) = corpus() else { return };
    let (mut failed, mut counted, mut accepted) = (Vec::new(), 0, 0);
    for folder in [corpus.clone(), corpus.join("quirks")] {
        let manifest = std::fs::read(folder.join("manifest.json")).unwrap();
        for row in serde_json::from_slice::<Vec<Row>>(&manifest).unwrap() {
            let bytes = std::fs::read(folder.join(&row.file)).unwrap();
            let expected = std::fs::read(folder.join(&row.expected)).unwrap();
            let wrong = check(&row, &bytes, &serde_json::from_slice(&expected).unwrap());
            counted += 1;
            accepted += usize::from(row.acceptance && row.api != "gemini");
            if !wrong.is_empty() {
                failed.push(format!("{}: {}", row.file, wrong.join("; ")));
            }
        }
    }
    eprintln!("corpus: {counted} streams × 7 cuts, {} of {accepted} acceptance rows match", accepted - failed.len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[derive(Deserialize)]
struct Framing {
    name: String,
    input_b64: String,
    lenient: Vec<FramedEvent>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct FramedEvent {
    r#type: String,
    data: String,
}

#[test]
fn framing_follows_the_standard() {
    let Some(corpus) = corpus() else { return };
    let cases = std::fs::read(corpus.join("spec_cases.json")).unwrap();
    let cases: Vec<Framing> = serde_json::from_slice(&cases).unwrap();
    for case in &cases {
        let input = base64(&case.input_b64);
        for chunk in [1, 2, 3, input.len().max(1)] {
            assert_eq!(frame(&input, chunk), case.lenient, "{} in chunks of {chunk}", case.name);
        }
    }
    eprintln!("framing: {} cases × 4 cuts match", cases.len());
}

fn frame(input: &[u8], chunk: usize) -> Vec<FramedEvent> {
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
        if name.is_empty() { "message".to_owned() } else { String::from_utf8_lossy(name).into() }
    };
    events.iter().map(|event| FramedEvent { r#type: named(&event.name), data: event.text().into() }).collect()
}

fn base64(text: &str) -> Vec<u8> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let sextets = text.bytes().filter_map(|byte| ALPHABET.iter().position(|letter| *letter == byte));
    let (mut bytes, mut bits, mut held) = (Vec::new(), 0_u32, 0);
    for sextet in sextets {
        bits = bits << 6 | u32::try_from(sextet).unwrap();
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held & 0xff) as u8);
        }
    }
    bytes
}
