//! What a keystroke and an edit cost in a file of 10 MB, and what snapshots and undoing a command cost in many files.

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use tandem::changes::Images;
use tandem::changes::revert::revert;
use tandem::changes::snapshot::Snapshots;
use tandem::text::{Encoding, Position, Range};
use tandem::workspace::edit::apply;
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
    Change::Edits(vec![Replacement {
        old_text: old.to_owned(),
        new_text: new.to_owned(),
        count: Some(1),
    }])
}

fn typing(c: &mut Criterion) {
    let documents = Documents::new(Encoding::Utf16);
    documents.open(URI, 0, "text", &big());
    let place = Position {
        line: 150_000,
        character: 7,
    };
    let typed = [ContentChange {
        range: Some(Range {
            start: place,
            end: place,
        }),
        text: "x".to_owned(),
    }];
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

/// A workspace of so many files, 30 a folder.
struct Files {
    folder: tempfile::TempDir,
    count: usize,
}

impl Files {
    fn new(count: usize) -> Self {
        let files = Self {
            folder: tempfile::tempdir().expect("a folder for the files"),
            count,
        };
        std::fs::create_dir(files.folder.path().join("store")).expect("a folder");
        for number in 0..count {
            std::fs::create_dir_all(files.path(number).parent().expect("it has one"))
                .expect("a folder");
        }
        files.write("");
        files
    }

    fn path(&self, number: usize) -> PathBuf {
        self.folder.path().join(format!(
            "work/{}/{}/{number}.txt",
            number / 900,
            number / 30
        ))
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a bench plays the command that changes files"
    )]
    fn write(&self, text: &str) {
        for number in 0..self.count {
            std::fs::write(self.path(number), format!("{number}{text}\n")).expect("a file");
        }
    }

    fn root(&self) -> Arc<Root> {
        Root::open(&self.folder.path().join("work"))
            .expect("it is there")
            .into()
    }

    /// Looked at once, and again when nothing is new any more: what changed right before is read again.
    fn snapshots(&self) -> Snapshots {
        let images = self.folder.path().join("images");
        let mut snapshots =
            Snapshots::new(vec![self.root()], &images, None, &[]).expect("it is there");
        let _first = snapshots.look();
        std::thread::sleep(Duration::from_millis(100));
        let _settled = snapshots.look();
        snapshots
    }
}

/// What every command costs in a workspace that has been looked at.
fn snapshots(c: &mut Criterion) {
    for count in [1_000, 27_000, 100_000] {
        let files = Files::new(count);
        let mut snapshots = files.snapshots();
        c.bench_function(&format!("a second snapshot of {count} files"), |bench| {
            bench.iter(|| assert!(snapshots.look().is_empty()));
        });
        c.bench_function(&format!("the protected files among {count}"), |bench| {
            bench.iter(|| black_box(snapshots.guard()));
        });
    }
}

/// What a codemod of 10 000 files costs besides its own work: finding and storing its changes, and undoing them.
fn codemod(c: &mut Criterion) {
    let files = Files::new(10_000);
    let mut snapshots = files.snapshots();
    let store = files.folder.path().join("store");
    let images = Images::open(&store).expect("it was made");
    let mut round = 0;
    let mut changed = |snapshots: &mut Snapshots| {
        round += 1;
        files.write(&format!(" changed {round}"));
        let changes = snapshots.look();
        snapshots
            .images()
            .publish(&changes, &store)
            .expect("there is space");
        assert_eq!(changes.files.len(), 10_000);
        changes
    };
    c.bench_function(
        "10 000 changed files found and stored, with writing them",
        |bench| {
            bench.iter(|| changed(&mut snapshots));
        },
    );
    c.bench_function("10 000 changed files undone", |bench| {
        bench.iter_batched(
            || changed(&mut snapshots),
            |changes| {
                let reverted = revert(&[files.root()], &changes, &images, &|_| false);
                assert_eq!(
                    (reverted.done.files.len(), reverted.left.len()),
                    (10_000, 0)
                );
            },
            BatchSize::PerIteration,
        );
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = typing, editing, snapshots, codemod
}
criterion_main!(benches);
