//! What a keystroke and an edit cost in a file of 10 MB, and what a snapshot costs in 27 000 files.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use tandem::text::{Encoding, Position, Range};
use tandem::workspace::edit::apply;
use tandem::workspace::snapshot::Snapshots;
use tandem::workspace::{Change, ContentChange, Documents, Replacement, Root};

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

/// A workspace of 27 000 files in 900 folders, looked at a second time.
#[expect(clippy::disallowed_methods, reason = "the workspace that is measured has to be made")]
fn snapshots(c: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder for the files");
    for number in 0..27_000 {
        let inner = folder.path().join(format!("work/{}/{}", number / 900, number / 30));
        std::fs::create_dir_all(&inner).expect("a folder");
        std::fs::write(inner.join(format!("{number}.txt")), format!("{number}\n")).expect("a file");
    }
    let images = folder.path().join("images");
    std::fs::create_dir(&images).expect("a folder");
    let root = Root::open(&folder.path().join("work")).expect("it is there");
    let mut snapshots = Snapshots::new(vec![root.into()], &images, &[]).expect("it is there");
    let _first = snapshots.look();
    // What changed right before it was looked at is read again.
    std::thread::sleep(std::time::Duration::from_millis(100));
    let _settled = snapshots.look();
    c.bench_function("a second snapshot of 27 000 files", |bench| {
        bench.iter(|| assert!(snapshots.look().is_empty()));
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = typing, editing, snapshots
}
criterion_main!(benches);
