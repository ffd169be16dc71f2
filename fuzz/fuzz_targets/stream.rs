//! Any bytes, in any cut, through the decoder of every dialect and the collector: nothing panics, and where the bytes
//! were cut makes no difference. An input is nothing but the stream, so a recording is a seed as it is.
#![no_main]

use std::collections::HashSet;

use libfuzzer_sys::fuzz_target;
use tandem::model::{Api, Arguments, Batch, Collected, Collector, StreamDecoder};

fuzz_target!(|bytes: &[u8]| {
    for api in [Api::Chat, Api::Responses, Api::Messages] {
        let whole = decode(api, std::iter::once(bytes));
        assert_eq!(decode(api, cuts(bytes)), whole, "{api:?}");
        for call in &whole.message.calls {
            assert!(!call.id.is_empty(), "a call has no id");
            assert_eq!(call.runnable(), !call.name.is_empty() && matches!(call.arguments, Arguments::Object(_)));
        }
    }
});

fn decode<'a>(api: Api, cuts: impl Iterator<Item = &'a [u8]>) -> Collected {
    let taken = HashSet::new();
    let mut decoder = StreamDecoder::new(api);
    let (mut batch, mut collector) = (Batch::default(), Collector::new(&taken));
    let mut keep = |batch: &mut Batch| {
        while let Some(event) = batch.pop() {
            collector.push(&event);
        }
    };
    let mut fed = Ok(());
    for cut in cuts {
        fed = decoder.feed(cut, &mut batch);
        keep(&mut batch);
        if fed.is_err() || decoder.done() {
            break;
        }
    }
    let ended = decoder.end(&mut batch);
    keep(&mut batch);
    collector.finish(fed.and(ended))
}

/// Pieces of 1 to 16 bytes whose lengths follow from the input, so that a finding repeats itself.
fn cuts(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let (mut rest, mut seed) = (bytes, bytes.len() as u64 | 1);
    std::iter::from_fn(move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (cut, tail) = rest.split_at(rest.len().min(1 + (seed >> 60) as usize));
        rest = tail;
        (!cut.is_empty()).then_some(cut)
    })
}
