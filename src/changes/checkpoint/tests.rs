//! Undoing and redoing the changes of turns' tools and commands, while a person types.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests play commands and a person, and look at the files themselves"
)]

mod mixed;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, any, prop_oneof};
use proptest::strategy::Strategy;
use proptest::test_runner::TestRunner;

use super::*;
use crate::changes::snapshot::Snapshots;
use crate::domain::FileDiff;
use crate::workspace::{
    Documents, FileChange, NoEditor, Replacement, Root, Workspace, WorkspacePath,
};

fn diff(old_text: Option<&str>, new_text: &str) -> FileDiff {
    FileDiff::new("/w/a".into(), old_text.map(Into::into), new_text.into())
}

fn no_files() -> Workspace {
    let documents = Documents::new(crate::text::Encoding::Utf16);
    Workspace::new(Vec::new(), documents, Arc::new(NoEditor))
}

/// The edits as one change.
fn joined(images: &Images, diffs: &[FileDiff]) -> Vec<EntryChange> {
    let mut joined = Vec::new();
    for diff in diffs {
        let (changes, problem) = edits::recorded(&no_files(), images, diff);
        assert!(problem.is_none());
        joined = crate::changes::change_set::joined(joined, changes, |earlier, next| {
            edits::then(images, earlier, next)
        });
    }
    joined
}

#[tokio::test]
async fn a_review_in_an_earlier_journal_counts() {
    let files = joined(&Images::default(), &[diff(Some("a\n"), "b\n")]);
    let git = Vec::new();
    let changed = || {
        Journaled::Changed(
            1,
            ChangeSet {
                files: files.clone(),
                git: git.clone(),
            },
        )
    };
    let state = tokio::sync::watch::channel(Undoable::default()).0;
    let mut checkpoints = Checkpoints::new(None, state);
    checkpoints.restore(changed()).await;
    let before = checkpoints.under_review();
    checkpoints.turns.clear();
    let settled = serde_json::to_value(checkpoints.reviewed_since(&before)).unwrap();
    let [turn, left] = [0, 1].map(|part| settled["turns"][0][part].clone());
    let earlier = serde_json::json!({ "turn": turn, "left": left });
    checkpoints.restore(changed()).await;
    assert_eq!(checkpoints.turns.len(), 1);
    let earlier = serde_json::from_value(earlier).unwrap();
    checkpoints.restore(Journaled::Reviewed(earlier)).await;
    assert_eq!(checkpoints.turns.len(), 0, "{settled}");
}

#[test]
fn successive_changes_merge_without_text_typed_between() {
    let images = Images::default();
    let check = |first: FileDiff, second: FileDiff, expected: &[FileDiff]| {
        assert_eq!(joined(&images, &[first, second]), joined(&images, expected));
    };
    let removed = |old: &str| FileDiff {
        before: Some(crate::domain::Stored::default()),
        ..diff(Some(old), "")
    };
    check(
        diff(Some("a\n"), "b\n"),
        diff(Some("b\n"), "c\n"),
        &[diff(Some("a\n"), "c\n")],
    );
    check(diff(Some("a\n"), "b\n"), diff(Some("b\n"), "a\n"), &[]);
    check(
        diff(None, "b\n"),
        diff(Some("b\n"), "c\n"),
        &[diff(None, "c\n")],
    );
    check(
        removed("a\n"),
        diff(None, "c\n"),
        &[diff(Some("a\n"), "c\n")],
    );
    let (typed, then) = ("b\n1\nmine\n", "b\n2\nmine\n");
    check(
        diff(Some("a\n1\n2\n"), "b\n1\n2\n"),
        diff(Some(typed), then),
        &[diff(Some("a\n1\nmine\n"), then)],
    );
    check(
        diff(Some("a\n"), "b\n"),
        diff(Some("mine\n"), "c\n"),
        &[diff(Some("mine\n"), "c\n")],
    );
    check(
        diff(None, "b\n"),
        diff(Some("b\nmine\n"), "c\nmine\n"),
        &[diff(Some("mine\n"), "c\nmine\n")],
    );
}

/// After undo and redo, the turn is as before.
async fn there_and_back(before: BTreeMap<PathBuf, (u32, Vec<u8>)>, mut fixture: Fixture) {
    let after = fixture.tree();
    let undone = fixture.undo().await.unwrap();
    assert_eq!((fixture.tree(), undone.left), (before, Vec::new()));
    let redone = fixture.redo().await.unwrap();
    assert_eq!((fixture.tree(), redone.left), (after, Vec::new()));
}

#[tokio::test]
async fn tools_changes_are_undone_byte_for_byte() {
    let write = |text: &str| crate::workspace::Change::Write(text.to_owned());
    let mut fixture = Fixture::new();
    fixture.write("latin1", b"caf\xe9\n");
    fixture.write("wide", &utf16("w\u{1f600}\n"));
    fixture.write("script", b"#!/bin/sh\n");
    #[cfg(unix)]
    set_mode(&fixture.path("script"), 0o750);
    let before = fixture.tree();
    assert!(fixture.tool(1, "latin1", write("cafe\n")).await);
    assert!(fixture.tool(1, "new/deep/file", write("new\n")).await);
    fixture.removal(1, "wide").await;
    assert!(fixture.tool(1, "wide", write("narrow\n")).await);
    fixture.removal(1, "script").await;
    there_and_back(before, fixture).await;
}

#[tokio::test]
async fn each_turn_is_one_entry_and_empty_turns_are_skipped() {
    let (undoable, watched) = watch::channel(Undoable::default());
    let mut checkpoints = Checkpoints::new(None, undoable);
    let workspace = no_files();
    let same = [diff(Some("a"), "a")];
    let nothing = checkpoints.record(&workspace, 1, &same, None).await;
    assert_eq!(nothing, (ChangeSet::default(), None));
    assert_eq!(*watched.borrow(), Undoable::default());
    for (turn, old, new) in [(1, "a", "b"), (1, "b", "c"), (2, "c", "d")] {
        let diffs = [diff(Some(old), new)];
        let (changed, problem) = checkpoints.record(&workspace, turn, &diffs, None).await;
        assert_eq!((changed.files.len(), problem), (1, None));
    }
    let images = checkpoints.images().await;
    assert_eq!(checkpoints.turns.len(), 2);
    assert_eq!(
        checkpoints.turns[0].changes.files,
        joined(&images, &[diff(Some("a"), "c")])
    );
    assert!(watched.borrow().undo.is_some() && watched.borrow().redo.is_none());
}

/// A workspace with turns, tools and commands.
struct Fixture {
    folder: tempfile::TempDir,
    workspace: Workspace,
    snapshots: Snapshots,
    checkpoints: Checkpoints,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = crate::workspace::native::canonical(folder.path()).unwrap();
        std::fs::create_dir(path.join("ws")).unwrap();
        let root = Arc::new(Root::open(&path.join("ws")).unwrap());
        let documents = Documents::new(crate::text::Encoding::Utf16);
        let workspace = Workspace::new(vec![Arc::clone(&root)], documents, Arc::new(NoEditor));
        let snapshots = Snapshots::new(vec![root], &path.join("copies"), None, &[]).unwrap();
        let checkpoints = Checkpoints::new(
            Some(path.join("state")),
            watch::channel(Undoable::default()).0,
        );
        Self {
            folder,
            workspace,
            snapshots,
            checkpoints,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        crate::workspace::native::canonical(self.folder.path())
            .unwrap()
            .join("ws")
            .join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        std::fs::write(self.path(name), bytes).unwrap();
    }

    /// A command of the turn that applies `what`.
    async fn command(&mut self, turn: u64, what: impl FnOnce(&Self)) {
        self.snapshots.look();
        what(self);
        let changes = self.snapshots.look();
        self.snapshots
            .images()
            .publish(&changes, &self.folder.path().join("state"))
            .unwrap();
        let diffs: Vec<_> = changes
            .files
            .iter()
            .filter_map(|change| self.snapshots.images().diff(change, 1 << 20))
            .collect();
        let recorded = self
            .checkpoints
            .record(&self.workspace, turn, &diffs, Some(&changes));
        assert_eq!(recorded.await, (changes.clone(), None));
    }

    /// A tool of a turn that writes a file.
    async fn tool(&mut self, turn: u64, name: &str, change: crate::workspace::Change) -> bool {
        let path = self.workspace.resolve(name).unwrap();
        let _known = self.workspace.read(&path).await;
        let Ok(done) = self.workspace.commit(&path, &change).await else {
            return false;
        };
        self.record(turn, &path, done).await;
        true
    }

    /// A tool of a turn that removes a file.
    async fn removal(&mut self, turn: u64, name: &str) {
        let path = self.workspace.resolve(name).unwrap();
        let _known = self.workspace.read(&path).await;
        if let Ok(done) = self.workspace.remove(&path).await {
            self.record(turn, &path, done).await;
        }
    }

    async fn record(&mut self, turn: u64, path: &WorkspacePath, done: FileChange) {
        let diff = done.diff_of(path.recorded());
        let recorded = self
            .checkpoints
            .record(&self.workspace, turn, &[diff], None)
            .await;
        assert_eq!(recorded.1, None);
    }

    async fn undo(&mut self) -> Result<Reviewed, ReviewError> {
        self.checkpoints
            .review(&self.workspace, Review::Undo(None))
            .await
    }

    async fn redo(&mut self) -> Result<Reviewed, ReviewError> {
        self.checkpoints
            .review(&self.workspace, Review::Redo(None))
            .await
    }

    /// Everything in the workspace, byte for byte, with modes and links.
    fn tree(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let mut tree = BTreeMap::new();
        let mut folders = vec![self.path("")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let found = path.symlink_metadata().unwrap();
                let bytes = if found.is_symlink() {
                    path.read_link()
                        .unwrap()
                        .into_os_string()
                        .into_encoded_bytes()
                } else if found.is_dir() {
                    folders.push(path.clone());
                    Vec::new()
                } else {
                    std::fs::read(&path).unwrap()
                };
                tree.insert(path, (mode(&found), bytes));
            }
        }
        tree
    }
}

#[cfg(unix)]
fn mode(found: &std::fs::Metadata) -> u32 {
    std::os::unix::fs::MetadataExt::mode(found)
}

#[cfg(not(unix))]
fn mode(_: &std::fs::Metadata) -> u32 {
    0
}

/// Other systems have no modes.
fn set_mode(path: &Path, mode: u32) {
    #[cfg(unix)]
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    #[cfg(not(unix))]
    let _unchanged = (path, mode);
}

fn whole(text: &str) -> crate::workspace::Change {
    crate::workspace::Change::Write(text.to_owned())
}

#[cfg(unix)]
#[tokio::test]
async fn command_changes_are_undone_byte_for_byte_and_redone() {
    let mut fixture = Fixture::new();
    fixture.write("a.txt", b"one\n");
    fixture.write("b.bin", b"\0\xff");
    fixture.write("utf16.txt", b"\xff\xfea\0\n\0");
    fixture.write("dir/c.txt", b"c\n");
    fixture.write("run.sh", b"#!/bin/sh\n");
    std::os::unix::fs::symlink("a.txt", fixture.path("link")).unwrap();
    let before = fixture.tree();
    fixture
        .command(1, |fixture| {
            fixture.write("a.txt", b"two\n");
            fixture.write("b.bin", b"\0\xfe\xfe");
            std::fs::remove_file(fixture.path("utf16.txt")).unwrap();
            std::fs::rename(fixture.path("dir"), fixture.path("moved")).unwrap();
            set_mode(&fixture.path("run.sh"), 0o755);
            std::fs::remove_file(fixture.path("link")).unwrap();
            std::os::unix::fs::symlink("b.bin", fixture.path("link")).unwrap();
            fixture.write("new/deep/file", b"\0new");
        })
        .await;
    let after = fixture.tree();
    let undone = fixture.undo().await.unwrap();
    assert_eq!((fixture.tree(), undone.left), (before.clone(), Vec::new()));
    let redone = fixture.redo().await.unwrap();
    assert_eq!((fixture.tree(), redone.left), (after, Vec::new()));
    fixture.undo().await.unwrap();
    assert_eq!(fixture.tree(), before);
}

#[tokio::test]
async fn tool_and_command_changes_to_one_file_are_undone_together() {
    let mut fixture = Fixture::new();
    fixture.write("a.txt", b"\xff\xfea\0\n\0");
    fixture.write("b.txt", b"one\ntwo\n");
    let before = fixture.tree();
    // Written, then removed.
    assert!(fixture.tool(1, "a.txt", whole("b\n")).await);
    assert!(fixture.tool(1, "made.txt", whole("made\n")).await);
    // Edited, then formatted, then edited again.
    let edit = |old: &str, new: &str| {
        let edit = Replacement {
            old_text: old.to_owned(),
            new_text: new.to_owned(),
            count: Some(1),
        };
        crate::workspace::Change::Edits(vec![edit])
    };
    assert!(fixture.tool(1, "b.txt", edit("one", "1")).await);
    fixture
        .command(1, |fixture| {
            std::fs::remove_file(fixture.path("a.txt")).unwrap();
            std::fs::remove_file(fixture.path("made.txt")).unwrap();
            fixture.write("b.txt", b"1;\ntwo;\n");
            fixture.write("made by command.txt", b"x\n");
        })
        .await;
    assert!(fixture.tool(1, "b.txt", edit("two;", "2;")).await);
    assert!(fixture.tool(1, "made by command.txt", edit("x", "y")).await);
    there_and_back(before, fixture).await;
}

#[tokio::test]
async fn undoing_a_command_keeps_lines_typed_afterwards() {
    let mut fixture = Fixture::new();
    fixture.write("a.txt", b"one\ntwo\n");
    fixture.write("b.bin", b"\0");
    fixture.write("c.txt", b"c\n");
    fixture
        .command(1, |fixture| {
            fixture.write("a.txt", b"ONE\nTWO\n");
            fixture.write("b.bin", b"\0\0");
            std::fs::remove_file(fixture.path("c.txt")).unwrap();
        })
        .await;
    fixture.write("a.txt", b"ONE\nmine\n");
    fixture.write("b.bin", b"\0mine");
    let undone = fixture.undo().await.unwrap();
    let mut left: Vec<_> = undone
        .left
        .iter()
        .map(|left| left.path.file_name().unwrap().to_str().unwrap())
        .collect();
    left.sort_unstable();
    assert_eq!(left, ["a.txt", "b.bin"]);
    assert_eq!(
        std::fs::read(fixture.path("a.txt")).unwrap(),
        b"one\nmine\n"
    );
    assert_eq!(std::fs::read(fixture.path("b.bin")).unwrap(), b"\0mine");
    assert_eq!(std::fs::read(fixture.path("c.txt")).unwrap(), b"c\n");
}

/// Changes two lines of a file, one of them again in the next turn, then rejects the other.
async fn with_a_rejected_hunk() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.write("a.txt", b"1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    for (turn, text) in [
        (1, "1\ntwo\n3\n4\n5\n6\n7\neight\n9\n"),
        (2, "1\nTwo!\n3\n4\n5\n6\n7\neight\n9\n"),
    ] {
        assert!(fixture.tool(turn, "a.txt", whole(text)).await);
    }
    let selection = Selection {
        turn: Some(1),
        path: Some(fixture.path("a.txt")),
        hunk: Some(8),
    };
    let reject = Review::Reject(selection);
    let rejected = fixture.checkpoints.review(&fixture.workspace, reject).await;
    assert_eq!(
        rejected.unwrap().message.as_deref(),
        Some("rejected in a.txt")
    );
    fixture
}

async fn undone(fixture: &mut Fixture) -> String {
    fixture.undo().await.unwrap().message.unwrap()
}

#[tokio::test]
async fn restoring_a_hunk_keeps_what_a_later_turn_changed_again() {
    let mut fixture = with_a_rejected_hunk().await;
    assert_eq!(undone(&mut fixture).await, "restored changes: a.txt");
    for turn in [2, 1] {
        let expected = format!("undid turn {turn}: a.txt");
        assert_eq!(undone(&mut fixture).await, expected);
    }
    let text = std::fs::read_to_string(fixture.path("a.txt")).unwrap();
    assert_eq!(text, "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
}

#[tokio::test]
async fn what_a_person_restored_themselves_is_no_undo() {
    let mut fixture = with_a_rejected_hunk().await;
    fixture.write("a.txt", b"1\nTwo!\n3\n4\n5\n6\n7\neight\n9\n");
    assert_eq!(undone(&mut fixture).await, "undid turn 2: a.txt");
}

/// Something that happens in a turn or between turns.
#[derive(Debug, Clone)]
enum Deed {
    /// A tool replaces a line of a file.
    Edit(usize, usize),
    /// A tool writes a whole file.
    Write(usize, String),
    /// A tool removes a file.
    Remove(usize),
    /// A command does something to a file.
    Command(usize, Command),
    /// The next turn begins.
    Turn,
}

#[derive(Debug, Clone)]
enum Command {
    Write(Vec<u8>),
    Remove,
    Move(usize),
    Mode(u32),
    Link,
}

const NAMES: [&str; 6] = [
    "a.txt",
    "b.txt",
    "dir/c.txt",
    "dir/d",
    "other/e.txt",
    "new/deep/f.txt",
];

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let file = 0..NAMES.len();
    let text = vec(prop_oneof![Just("x\n"), Just("y\n"), Just("z\n")], 0..4)
        .prop_map(|lines| lines.concat());
    let command = prop_oneof![
        text.clone()
            .prop_map(|text| Command::Write(text.into_bytes())),
        vec(any::<u8>(), 0..4).prop_map(Command::Write),
        text.clone().prop_map(|text| Command::Write(utf16(&text))),
        Just(Command::Remove),
        file.clone().prop_map(Command::Move),
        prop_oneof![Just(0o644_u32), Just(0o755), Just(0o600)].prop_map(Command::Mode),
        Just(Command::Link),
    ];
    let deed = prop_oneof![
        1 => (file.clone(), 0..9_usize).prop_map(|(file, line)| Deed::Edit(file, line)),
        1 => (file.clone(), text).prop_map(|(file, text)| Deed::Write(file, text)),
        1 => file.clone().prop_map(Deed::Remove),
        4 => (file, command).prop_map(|(file, command)| Deed::Command(file, command)),
        1 => Just(Deed::Turn),
    ];
    vec(deed, 1..12)
}

fn utf16(text: &str) -> Vec<u8> {
    std::iter::once(0xfeff)
        .chain(text.encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect()
}

/// Runs an event; returns whether the turn changed anything.
async fn play(fixture: &mut Fixture, turn: u64, deed: &Deed) {
    match deed {
        Deed::Turn => {}
        Deed::Edit(file, line) => {
            let Ok(text) = std::fs::read_to_string(fixture.path(NAMES[*file])) else {
                return;
            };
            let mut lines: Vec<_> = text.split_inclusive('\n').map(str::to_owned).collect();
            if let Some(line) = lines.get_mut(*line) {
                *line = format!("edited {line}");
                fixture
                    .tool(turn, NAMES[*file], whole(&lines.concat()))
                    .await;
            }
        }
        Deed::Write(file, text) => _ = fixture.tool(turn, NAMES[*file], whole(text)).await,
        Deed::Remove(file) => fixture.removal(turn, NAMES[*file]).await,
        Deed::Command(file, command) => {
            fixture
                .command(turn, |fixture| run(fixture, NAMES[*file], command))
                .await;
        }
    }
}

fn run(fixture: &Fixture, name: &str, command: &Command) {
    let path = fixture.path(name);
    let exists = path.symlink_metadata().is_ok();
    match command {
        Command::Write(bytes) if !path.is_symlink() => fixture.write(name, bytes),
        Command::Remove if exists => std::fs::remove_file(path).unwrap(),
        Command::Move(to) if exists => {
            std::fs::create_dir_all(fixture.path(NAMES[*to]).parent().unwrap()).unwrap();
            std::fs::rename(path, fixture.path(NAMES[*to])).unwrap();
        }
        Command::Mode(mode) if exists && !path.is_symlink() => set_mode(&path, *mode),
        #[cfg(unix)]
        Command::Link if !exists && path.parent().unwrap().is_dir() => {
            std::os::unix::fs::symlink("nowhere", path).unwrap();
        }
        _ => {}
    }
}

/// Undoing every turn restores the initial state, and redoing them the final one, whatever tools and commands did.
#[test]
fn all_turns_can_be_undone_and_redone() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let run = |deeds: Vec<Deed>| {
        runtime.block_on(async {
            let mut fixture = Fixture::new();
            for name in ["a.txt", "dir/c.txt", "dir/d", "other/kept"] {
                fixture.write(name, b"x\ny\n");
            }
            let before = fixture.tree();
            let mut turn = 1;
            for deed in &deeds {
                turn += u64::from(matches!(deed, Deed::Turn));
                play(&mut fixture, turn, deed).await;
            }
            let after = fixture.tree();
            let mut undone = 0;
            while let Ok(reviewed) = fixture.undo().await {
                assert_eq!(reviewed.left, Vec::new());
                undone += 1;
            }
            assert_eq!(fixture.tree(), before, "undone");
            for _ in 0..undone {
                assert_eq!(fixture.redo().await.unwrap().left, Vec::new());
            }
            assert_eq!(fixture.tree(), after, "redone");
        });
        Ok(())
    };
    runner.run(&deeds(), run).unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_is_removed_and_written_again_gets_its_permissions() {
    let mut fixture = Fixture::new();
    fixture.write("dir/d", b"x\n");
    let before = fixture.tree();
    for (turn, deed) in [
        (1, Deed::Command(3, Command::Mode(0o755))),
        (2, Deed::Remove(3)),
        (2, Deed::Write(3, String::new())),
    ] {
        play(&mut fixture, turn, &deed).await;
    }
    let after = fixture.tree();
    for _ in 0..2 {
        assert_eq!(fixture.undo().await.unwrap().left, Vec::new());
    }
    assert_eq!(fixture.tree(), before);
    for _ in 0..2 {
        assert_eq!(fixture.redo().await.unwrap().left, Vec::new());
    }
    assert_eq!(fixture.tree(), after);
}

#[tokio::test]
async fn a_file_created_through_a_deleted_symlink_is_removed() {
    let mut fixture = Fixture::new();
    fixture.write("other/kept", b"x\n");
    let before = fixture.tree();
    for deed in [
        Deed::Command(4, Command::Link),
        Deed::Write(4, String::new()),
        Deed::Command(4, Command::Remove),
    ] {
        play(&mut fixture, 1, &deed).await;
    }
    assert_eq!(fixture.undo().await.unwrap().left, Vec::new());
    assert_eq!(fixture.tree(), before);
}

#[cfg(unix)]
#[tokio::test]
async fn permissions_are_restored_even_if_text_is_merged() {
    let mut fixture = Fixture::new();
    fixture.write("a.txt", b"one\ntwo\n");
    fixture
        .command(1, |fixture| {
            fixture.write("a.txt", b"ONE\ntwo\n");
            set_mode(&fixture.path("a.txt"), 0o755);
        })
        .await;
    fixture.write("a.txt", b"ONE\ntwo\nmine\n");
    assert_eq!(fixture.undo().await.unwrap().left, Vec::new());
    let seen = |fixture: &Fixture| fixture.tree().remove(&fixture.path("a.txt")).unwrap();
    assert_eq!(seen(&fixture), (0o100_644, b"one\ntwo\nmine\n".to_vec()));
    assert_eq!(fixture.redo().await.unwrap().left, Vec::new());
    assert_eq!(seen(&fixture), (0o100_755, b"ONE\ntwo\nmine\n".to_vec()));
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_somebody_wrote_in_the_place_of_a_removed_one_stays_as_it_is() {
    let mut fixture = Fixture::new();
    fixture.write("a.txt", b"caf\xe9\n");
    fixture.write("b.txt", b"one\n");
    set_mode(&fixture.path("a.txt"), 0o755);
    fixture.removal(1, "a.txt").await;
    assert!(fixture.tool(1, "b.txt", whole("two\n")).await);
    fixture.write("a.txt", "mine: caf\u{e9}\n".as_bytes());
    set_mode(&fixture.path("a.txt"), 0o600);
    let mut expected = fixture.tree();
    fixture.undo().await.unwrap();
    expected.get_mut(&fixture.path("b.txt")).unwrap().1 = b"one\n".to_vec();
    assert_eq!(fixture.tree(), expected);
}

#[tokio::test]
async fn what_is_open_in_the_editor_can_be_undone_once_it_is_closed() {
    let mut fixture = Fixture::new();
    fixture.write("a.bin", b"\0");
    fixture.write("b.txt", b"b\n");
    let before = fixture.tree();
    fixture
        .command(1, |fixture| {
            fixture.write("a.bin", b"text\n");
            fixture.write("b.txt", b"B\n");
        })
        .await;
    let uri = format!("file://{}", fixture.path("a.bin").display());
    let documents = fixture.workspace.documents();
    documents.open(&uri, 1, "", "text\ntyped\n");
    let left = fixture.undo().await.unwrap().left;
    assert_eq!(left.len(), 1, "{left:?}");
    fixture.workspace.documents().close(&uri);
    assert_eq!(fixture.undo().await.unwrap().left, Vec::new());
    assert_eq!(fixture.tree(), before);
}

#[tokio::test]
async fn a_kept_hunk_of_a_notebook_is_settled_in_any_layout() {
    let mut fixture = Fixture::new();
    let notebook = |first: &str, second: &str| {
        let cell = |source: &str| serde_json::json!({"cell_type": "code", "source": [source], "metadata": {}, "outputs": [], "execution_count": null});
        serde_json::json!({"cells": [cell(first), cell(second)], "metadata": {}, "nbformat": 4, "nbformat_minor": 0})
    };
    let [before, after] =
        ["first = 1", "first = 10"].map(|first| notebook(first, "b = 2").to_string());
    fixture.write("a.ipynb", before.as_bytes());
    let edit = |fixture: &Fixture| fixture.write("a.ipynb", after.as_bytes());
    fixture.command(1, edit).await;
    let laid_out = format!("{:#}\n", notebook("first = 10", "b = 2 # mine"));
    fixture.write("a.ipynb", laid_out.as_bytes());
    let workspace = fixture.workspace.clone();
    let listed = fixture
        .checkpoints
        .review(&workspace, Review::List)
        .await
        .unwrap();
    let hunk = Some(listed.turns[0].files[0].hunks[0].id);
    let path = Some(fixture.path("a.ipynb"));
    let turn = Some(1);
    let kept = Review::Keep(Selection { turn, path, hunk });
    fixture.checkpoints.review(&workspace, kept).await.unwrap();
    assert!(fixture.checkpoints.turns.is_empty());
}
