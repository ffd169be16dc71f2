//! The transport's hot paths: bytes → frames, and text deltas → a slow or a fast client.

use std::hint::black_box;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use tandem::rpc::{Fatal, FrameReader, Framing, TextKind, TextSource, connect};
use tokio::runtime::{Builder, Runtime};

const DELTAS: u64 = 200_000;

fn framing(criterion: &mut Criterion) {
    let body = r#"{"jsonrpc":"2.0","method":"textDocument/didChange","params":{"x":"0123456789"}}"#;
    let wire = format!("Content-Length: {}\r\n\r\n{body}", body.len())
        .repeat(1000)
        .into_bytes();
    let mut group = criterion.benchmark_group("framing");
    group.throughput(Throughput::Bytes(wire.len() as u64));
    group.bench_function("1000 small messages", |bencher| {
        bencher.iter(|| frames(black_box(&wire)).expect("a valid stream"));
    });
    group.finish();
}

fn frames(mut wire: &[u8]) -> Result<usize, Fatal> {
    let mut reader = FrameReader::new(Framing::Header);
    let mut count = 0;
    while reader.read(&mut wire)?.is_some() {
        count += 1;
    }
    Ok(count)
}

/// A client that needs a while for each read.
struct Slow;

impl Write for Slow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        std::thread::sleep(Duration::from_millis(10));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Sends all deltas as fast as the watermark lets it, and waits until they are written.
async fn stream(output: impl Write + Send + 'static) {
    let (peer, _inbox, writer) = connect(Framing::Header, io::empty(), output).expect("threads");
    let source = Arc::new(TextSource {
        session_id: "sess_0123456789".into(),
        kind: TextKind::AgentMessageChunk,
        message_id: Some("msg_1".into()),
    });
    for _ in 0..DELTAS {
        peer.text(&source, " token");
        if !peer.accepts_updates() {
            peer.drained().await;
        }
    }
    writer.finish().await.expect("everything is written");
}

fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime")
}

fn deltas(criterion: &mut Criterion) {
    let runtime = runtime();
    let mut group = criterion.benchmark_group("text deltas");
    group
        .throughput(Throughput::Elements(DELTAS))
        .sample_size(20);
    group.bench_function("fast client", |bencher| {
        bencher.iter_batched(
            io::sink,
            |sink| runtime.block_on(stream(sink)),
            BatchSize::PerIteration,
        );
    });
    group.bench_function("slow client", |bencher| {
        bencher.iter_batched(
            || Slow,
            |slow| runtime.block_on(stream(slow)),
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

criterion_group!(benches, framing, deltas);
criterion_main!(benches);
