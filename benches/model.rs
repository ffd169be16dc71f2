//! The way of an answer from bytes to a finished message: how many bytes a second, and how time grows with fragments.

use std::collections::HashSet;
use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tandem::model::{Api, Batch, Collected, Collector, StreamDecoder};

/// What a read from a socket brings.
const READ: usize = 8 << 10;

fn collect(api: Api, bytes: &[u8], read: usize) -> Collected {
    let taken = HashSet::new();
    let mut decoder = StreamDecoder::new(api);
    let (mut batch, mut collector) = (Batch::default(), Collector::new(&taken));
    for read in bytes.chunks(read) {
        decoder
            .feed(read, &mut batch)
            .expect("the stream has no error");
        while let Some(event) = batch.pop() {
            collector.push(&event);
        }
    }
    let end = decoder.end(&mut batch);
    while let Some(event) = batch.pop() {
        collector.push(&event);
    }
    collector.finish(end)
}

const HEAD: &str = r#"data: {"id":"chatcmpl-9x2hVdsSkkxFJ2h","object":"chat.completion.chunk","created":1732000000,"model":"gpt-4.1-mini-2025-04-14","service_tier":"default","system_fingerprint":"fp_6f2eabb9a5","choices":[{"index":0,"delta":"#;
const TAIL: &str = ",\"logprobs\":null,\"finish_reason\":null}],\"usage\":null}\n\n";

fn chat(deltas: impl Iterator<Item = String>) -> Vec<u8> {
    let mut stream = String::new();
    for delta in deltas {
        stream.extend([HEAD, &delta, TAIL]);
    }
    stream.push_str("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
    stream.into()
}

fn text(deltas: usize) -> Vec<u8> {
    chat((0..deltas).map(|n| format!(r#"{{"content":" word{}"}}"#, n % 1000)))
}

fn arguments(fragments: usize) -> Vec<u8> {
    let start = r#"{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"write_file","arguments":"{\"content\":\""}}]}"#;
    let end = r#"{"tool_calls":[{"index":0,"function":{"arguments":"\"}"}}]}"#;
    let middle = (0..fragments).map(|n| {
        format!(
            r#"{{"tool_calls":[{{"index":0,"function":{{"arguments":"line {} \\n"}}}}]}}"#,
            n % 1000
        )
    });
    chat(
        [start.to_owned()]
            .into_iter()
            .chain(middle)
            .chain([end.to_owned()]),
    )
}

fn messages(deltas: usize) -> Vec<u8> {
    let mut stream = String::new();
    for n in 0..deltas {
        let delta = format!(r#"{{"type":"text_delta","text":" word{}"}}"#, n % 1000);
        stream.extend([
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":",
            &delta,
            "}\n\n",
        ]);
    }
    stream.push_str("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
    stream.into()
}

fn responses(deltas: usize) -> Vec<u8> {
    let mut stream = String::new();
    for n in 0..deltas {
        let event = format!(
            r#"{{"type":"response.output_text.delta","sequence_number":{n},"item_id":"msg_68f0a1b2c3d4e5f60718293a4b5c6d7e","output_index":0,"content_index":0,"delta":" word{}","logprobs":[],"obfuscation":"k3X9q"}}"#,
            n % 1000
        );
        stream.extend(["event: response.output_text.delta\ndata: ", &event, "\n\n"]);
    }
    stream.push_str("data: {\"type\":\"response.completed\",\"response\":{\"output\":[]}}\n\n");
    stream.into()
}

fn benches(c: &mut Criterion) {
    let mut group = c.benchmark_group("decode_and_collect");
    group
        .measurement_time(Duration::from_secs(3))
        .sample_size(20);
    let streams = [
        ("chat", Api::Chat, text(20_000)),
        ("messages", Api::Messages, messages(20_000)),
        ("responses", Api::Responses, responses(20_000)),
    ];
    for (name, api, bytes) in streams {
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function(name, |b| b.iter(|| collect(api, black_box(&bytes), READ)));
    }
    let bytes = text(2_000);
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    group.bench_function("chat, 1-byte reads", |b| {
        b.iter(|| collect(Api::Chat, black_box(&bytes), 1));
    });
    for fragments in [20_000, 40_000] {
        let bytes = arguments(fragments);
        group.throughput(Throughput::Elements(fragments as u64));
        group.bench_with_input(
            BenchmarkId::new("argument fragments", fragments),
            &bytes,
            |b, bytes| {
                b.iter(|| collect(Api::Chat, black_box(bytes), READ));
            },
        );
    }
    group.finish();
}

criterion_group!(model, benches);
criterion_main!(model);
