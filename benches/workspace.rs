//! What a keystroke and an edit cost in a file of 10 MB.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use tandem::text::{Encoding, Position, Range};
use tandem::workspace::edit::apply;
use tandem::workspace::{Change, ContentChange, Documents, Replacement};

const URI: &str = "untitled:big";

/// 300 000 lines, one of them unlike the others.
fn big() -> String {
    let mut text = String::new();
    for number in 0..300_000 {
        text.push_str(if number == 200_000 {
            "    the only one  of its kind\n"
        } else {
            "    a line like many others, 33\n"
        });
    }
    text
}

fn change(old: &str, new: &str) -> Change {
    Change::Edits(vec![Replacement { old_text: old.to_owned(), new_text: new.to_owned(), replace_all: false }])
}

fn typing(c: &mut Criterion) {
    let documents = Documents::new(Encoding::Utf16);
    documents.open(URI, 0, "text", &big());
    let place = Position { line: 150_000, character: 7 };
    let typed = [ContentChange { range: Some(Range { start: place, end: place }), text: "x".to_owned() }];
    c.bench_function("one character typed in 10 MB", |bench| {
        bench.iter(|| documents.change(URI, 1, black_box(&typed)));
    });
}

fn editing(c: &mut Criterion) {
    let text = big();
    let exact = change("the only one  of", "a new one of");
    c.bench_function("exact edit of 10 MB", |bench| {
        bench.iter(|| apply(black_box(&text), &exact).expect("it is there"));
    });
    let forgiven = change("the only one of", "a new one of");
    c.bench_function("edit of 10 MB found by the sixth pass", |bench| {
        bench.iter(|| apply(black_box(&text), &forgiven).expect("it is there"));
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = typing, editing
}
criterion_main!(benches);
